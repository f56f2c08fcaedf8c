"""The program format of kernel ``net``: instructions of 32 words, and what the words mean.

``docs/net.md`` is the page for readers, ``hw/include/net_program.hpp`` the same for the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

__all__ = [
    "ADD",
    "CONV",
    "END",
    "FLOAT",
    "HEADER",
    "MAX",
    "MEAN",
    "NAMES",
    "OPCODES",
    "OUTS",
    "PATCH",
    "REASONS",
    "SUM",
    "SUM_WORDS",
    "TAPS",
    "VERSION",
    "WORDS",
    "Instruction",
    "before_sum",
    "decode",
    "encode",
    "float_words",
    "head",
    "sum_words",
]

VERSION = 1
#: Words of an instruction, and of the report before its first cycle count.
WORDS, HEADER = 32, 8
#: What the kernel keeps on chip: cells of a channel, columns of a window; and its output channels.
PATCH, TAPS, OUTS = 4096, 1024, 16

END, CONV, MAX, MEAN, ADD = range(5)
OPCODES = ("end", "conv", "max", "mean", "add")
#: Flags: the result is float32; a convolution ends in an addition.
FLOAT, SUM = 1, 2
#: Words of the table that such an addition has, behind those of the channels.
SUM_WORDS = 4

#: What word 0 of the report says, by its number.
REASONS = (
    "it ended",
    f"the version is not {VERSION}",
    "the opcode or its flags are unknown",
    "a size is not 1 to 65535, or a padding above 65535",
    "the sizes of input, result and groups do not fit each other",
    "the first or the last window lies beside the image",
    f"the window has more than {TAPS} columns, or spans more than {PATCH} cells",
    "a zero point or bound is not -128 to 127, or low is above high",
    "rows or channels overlap in memory, or a float32 is not aligned to 4 bytes",
    "an input leaves the arena",
    "the result leaves the arena",
    "the result overlaps an input",
    "the weights end after their buffer",
    "the table of biases and multipliers ends after its buffer",
    "it needs more than 2**32 products",
    "the program has no end instruction",
    "memory has answered an error",  # in RTL, where the kernel sees it
)


@dataclass(frozen=True)
class Instruction:
    """One instruction; a member is a word, in this order.

    Addresses (``x``, ``y``, ``b``) and the steps from channel to channel and from row to row are
    bytes in the arena; ``weights`` is a byte of the weights, ``table`` a word of the table.

    Attributes
    ----------
    head : int
        The opcode, flags from bit 8 on, the version from bit 24 on.
    x, y, b : int
        Input, result, and the other operand of an addition.
    channels, height, width : int
        Of the input.
    outs, rows, columns : int
        Of the result.
    groups, k_rows, k_columns, stride_y, stride_x, pad_y, pad_x, step_y, step_x : int
        The window; ``pad`` is above and to the left, ``step`` is the dilation.
    x_zero, y_zero, b_zero, low, high : int
        Zero points, and the bounds of the result.
    """

    head: int
    x: int = 0
    x_channel: int = 0
    x_row: int = 0
    y: int = 0
    y_channel: int = 0
    y_row: int = 0
    channels: int = 1
    height: int = 1
    width: int = 1
    outs: int = 1
    rows: int = 1
    columns: int = 1
    groups: int = 1
    k_rows: int = 1
    k_columns: int = 1
    stride_y: int = 1
    stride_x: int = 1
    pad_y: int = 0
    pad_x: int = 0
    step_y: int = 1
    step_x: int = 1
    weights: int = 0
    table: int = 0
    x_zero: int = 0
    y_zero: int = 0
    low: int = -128
    high: int = 127
    b: int = 0
    b_channel: int = 0
    b_row: int = 0
    b_zero: int = 0

    @property
    def opcode(self) -> int:
        """What is done: `END`, `CONV`, `MAX`, `MEAN` or `ADD`."""
        return self.head & 0xFF

    @property
    def flags(self) -> int:
        """`FLOAT`, `SUM` or 0."""
        return self.head >> 8 & 0xFFFF

    @property
    def version(self) -> int:
        """Of the format."""
        return self.head >> 24

    @property
    def size(self) -> int:
        """Bytes of an element of the result."""
        return 4 if self.flags & FLOAT else 1

    @property
    def reads_b(self) -> bool:
        """Whether there is an addition."""
        return self.opcode == ADD or bool(self.flags & SUM)

    @property
    def table_words(self) -> int:
        """Words of the table."""
        if self.opcode != CONV:
            return 2
        return 2 * self.outs + (SUM_WORDS if self.flags & SUM else 0)

    @property
    def taps(self) -> int:
        """Products of one element of the result."""
        return self.channels // max(self.groups, 1) * self.k_rows * self.k_columns

    @property
    def work(self) -> int:
        """Products (of an addition, a maximum or a mean: elements that are read)."""
        elements = self.outs * self.rows * self.columns
        return elements * (2 if self.opcode == ADD else self.taps)


#: The words' names, in order.
NAMES = tuple(field.name for field in fields(Instruction))
assert len(NAMES) == WORDS


def head(opcode: int, flags: int = 0) -> int:
    """Return the first word of an instruction of this version."""
    return VERSION << 24 | flags << 8 | opcode


def encode(instructions: list[Instruction]) -> np.ndarray[Any, Any]:
    """Return the words of a program: uint32 [instructions, 32]."""
    rows = [[getattr(item, name) & 0xFFFFFFFF for name in NAMES] for item in instructions]
    return np.array(rows, np.uint32).reshape(-1, WORDS)


_SIGNED = {NAMES.index(name) for name in ("x_zero", "y_zero", "b_zero", "low", "high")}


def decode(words: np.ndarray[Any, Any]) -> list[Instruction]:
    """Return the instructions of a program; see `encode`."""
    rows = np.ascontiguousarray(words, np.uint32).reshape(-1, WORDS).tolist()
    return [
        Instruction(*(v - (v >> 31 << 32) if i in _SIGNED else v for i, v in enumerate(row)))
        for row in rows
    ]


def before_sum(words: Any) -> tuple[int, int, int]:
    """Return zero point and bounds of the elements before an addition; `words` are its four."""
    numbers = np.array([words[2]], np.int32).view(np.int8)
    return int(numbers[0]), int(numbers[1]), int(numbers[2])


def sum_words(factors: Any, zero: int, low: int, high: int) -> np.ndarray[Any, Any]:
    """Return the words that a convolution's addition has in the table; see docs/net.md."""
    numbers = np.array([zero, low, high, 0], np.int8).view(np.int32)
    return np.concatenate([float_words(factors), numbers, np.zeros(1, np.int32)])


def float_words(values: Any) -> np.ndarray[Any, Any]:
    """Return the bits of float32 numbers as int32, as the table has them."""
    return np.asarray(values, np.float32).view(np.int32)
