"""Whether a program of kernel ``net`` stays within its memory: before a start, without the kernel.

The rules and their order are those of ``check`` in ``hw/include/net_program.hpp``, so that both
find the same instruction and reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pynq_torch.errors import KernelError

from .format import (
    ADD,
    CONV,
    END,
    FLOAT,
    OPCODES,
    PATCH,
    REASONS,
    SUM,
    SUM_WORDS,
    TAPS,
    VERSION,
    WORDS,
    Instruction,
    before_sum,
    decode,
)

__all__ = ["Limits", "ProgramError", "check", "verdict"]

_SIZES = (
    *("channels", "height", "width", "outs", "rows", "columns", "groups", "k_rows", "k_columns"),
    *("stride_y", "stride_x", "step_y", "step_x"),
)
_LARGEST = 0xFFFF
#: Products of an instruction: 84 ms at 512 a cycle and 100 MHz.
_MOST_WORK = 1 << 32


class ProgramError(KernelError):
    """A program of kernel ``net`` is invalid.

    Attributes
    ----------
    index : int
        The instruction.
    reason : int
        See `pynq_torch.kernels.net.format.REASONS`.
    """

    def __init__(self, index: int, reason: int, name: str, cu: str = "net") -> None:
        text = REASONS[reason] if reason < len(REASONS) else f"reason {reason} is unknown"
        super().__init__(
            f"{cu}: instruction {index} ({name}) cannot run: {text}. "
            "`python -m pynq_torch net show FILE` prints the program.",
            cu,
        )
        self.index = index
        self.reason = reason


@dataclass(frozen=True)
class Limits:
    """The memory that a program may use.

    Attributes
    ----------
    weights : int
        Bytes.
    table : int
        Words.
    arena : int
        Bytes.
    """

    weights: int
    table: int
    arena: int


def check(
    program: np.ndarray[Any, Any], limits: Limits, table: np.ndarray[Any, Any] | None = None
) -> list[Instruction]:
    """Return the instructions of a program up to its end.

    Parameters
    ----------
    program : numpy.ndarray
        uint32, 32 words an instruction.
    limits : Limits
        The memory that it may use.
    table : numpy.ndarray, optional
        int32; where it is given, its multipliers have to be finite.

    Raises
    ------
    ProgramError
        It has an invalid instruction, or no end.
    """
    found = decode(program[: len(program) // WORDS * WORDS] if program.ndim == 1 else program)
    index, reason = verdict(found, limits)
    if reason:
        name = "none" if index >= len(found) else _name(found[index])
        raise ProgramError(index, reason, name)
    if table is not None:
        _check_table(found[:index], table)
    return found[:index]


def verdict(instructions: list[Instruction], limits: Limits) -> tuple[int, int]:
    """Return the instruction at which the kernel would stop, and its reason (0: at the end)."""
    for index, item in enumerate(instructions):
        reason = _reason(item, limits)
        if reason or item.opcode == END:
            return index, reason
    return len(instructions), 15


def _name(item: Instruction) -> str:
    return OPCODES[item.opcode] if item.opcode < len(OPCODES) else f"opcode {item.opcode}"


def _reason(item: Instruction, limits: Limits) -> int:
    if item.version != VERSION:
        return 1
    if item.opcode > ADD or item.flags not in ((0, FLOAT, SUM) if item.opcode == CONV else (0,)):
        return 2
    if item.opcode == END:
        return 0
    return _shape(item) or _memory(item, limits)


def _shape(item: Instruction) -> int:
    if not all(1 <= getattr(item, name) <= _LARGEST for name in _SIZES):
        return 3
    if item.pad_y > _LARGEST or item.pad_x > _LARGEST:
        return 3
    if item.opcode == CONV:
        if item.channels % item.groups or item.outs % item.groups:
            return 4
    elif not item.channels == item.outs == item.groups:
        return 4
    if item.opcode == ADD and (item.rows, item.columns) != (item.height, item.width):
        return 4
    if item.flags & SUM and (item.b_channel, item.b_row) != (item.y_channel, item.y_row):
        return 4
    for pad, taps, step, count, stride, size in (
        (item.pad_y, item.k_rows, item.step_y, item.rows, item.stride_y, item.height),
        (item.pad_x, item.k_columns, item.step_x, item.columns, item.stride_x, item.width),
    ):
        if pad > (taps - 1) * step or (count - 1) * stride - pad >= size:
            return 5
    if item.k_columns > TAPS or (item.k_columns - 1) * item.step_x >= PATCH:
        return 6
    numbers = (item.x_zero, item.y_zero, item.b_zero, item.low, item.high)
    return 7 if not all(-128 <= n <= 127 for n in numbers) or item.low > item.high else 0


def _place(
    at: int, channel: int, row: int, shape: tuple[int, int, int], size: int = 1
) -> tuple[bool, int]:
    """Return whether rows and channels are apart, and the byte behind the last element."""
    channels, rows, columns = shape
    plane = (rows - 1) * row + columns * size
    return row >= columns * size and channel >= plane, at + (channels - 1) * channel + plane


def _memory(item: Instruction, limits: Limits) -> int:
    image = (item.channels, item.height, item.width)
    result = (item.outs, item.rows, item.columns)
    sources = [(item.x, *_place(item.x, item.x_channel, item.x_row, image))]
    if item.reads_b:
        sources.append((item.b, *_place(item.b, item.b_channel, item.b_row, result)))
    apart, y_end = _place(item.y, item.y_channel, item.y_row, result, item.size)
    unaligned = item.size == 4 and (item.y | item.y_channel | item.y_row) & 3
    if not apart or unaligned or not all(good for _, good, _ in sources):
        return 8
    if any(end > limits.arena for _, _, end in sources):
        return 9
    if y_end > limits.arena:
        return 10
    if any(first < y_end and item.y < end for first, _, end in sources):
        return 11
    if item.opcode == CONV and item.weights + item.outs * item.taps > limits.weights:
        return 12
    if item.table + item.table_words > limits.table:
        return 13
    return 14 if item.outs * item.rows * item.columns * item.taps > _MOST_WORK else 0


def _check_table(instructions: list[Instruction], table: np.ndarray[Any, Any]) -> None:
    """Raise where a multiplier is no number, or bounds cross: results are not defined there."""
    for index, item in enumerate(instructions):
        words = table[item.table : item.table + item.table_words]
        bits = words if item.opcode == ADD else words[1::2]
        if item.flags & SUM:
            words, last = words[:-SUM_WORDS], words[-SUM_WORDS:]
            bits = np.concatenate([words[1::2], last[:2]])
            _, low, high = before_sum(last)
            if low > high:
                raise KernelError(
                    f"net: instruction {index} ({_name(item)}) has the bounds {low} to {high} "
                    "before its addition, in the table; expected a lower one first",
                    "net",
                )
        if not np.isfinite(np.ascontiguousarray(bits).view(np.float32)).all():
            raise KernelError(
                f"net: instruction {index} ({_name(item)}) has a multiplier that is infinite or "
                "NaN in the table; expected finite numbers",
                "net",
            )
