"""Random instructions of kernel ``net``, within an arena of their own."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from pynq_torch.kernels.net.format import (
    ADD,
    CONV,
    END,
    FLOAT,
    MAX,
    MEAN,
    SUM,
    Instruction,
    encode,
    float_words,
    head,
    sum_words,
)

#: Bytes before and after what a program uses; they have to stay as they are.
GUARD = 64


class Case:
    """One instruction with its memory; ``program`` has the end behind it.

    `sizes` has the members that are not random, `flags` those of the first word, if they are not.
    """

    def __init__(self, seed: int, opcode: int, flags: int | None = None, **sizes: int) -> None:
        rng, noise = random.Random(seed), np.random.default_rng(seed)
        if flags is None:
            flags = rng.choice([0, 0, 0, FLOAT, SUM]) if opcode == CONV else 0
        self.item = item = self._instruction(rng, head(opcode, flags), sizes)
        self.program = encode([item, Instruction(head(END))])
        self.weights = noise.integers(-128, 128, item.outs * item.taps, dtype=np.int8)
        entries = item.outs if opcode == CONV else 1
        scale = 60 / (item.taps**0.5 * 74 * 74) if opcode == CONV else 1 / item.taps
        factors = float_words(noise.uniform(0.5, 2, (entries, 1)) * scale)
        biases = noise.integers(-3000, 3000, (entries, 1), dtype=np.int32)
        if opcode == ADD:
            biases, factors = float_words([[0.7]]), float_words([[1.3]])
        self.table = np.concatenate([biases, factors], 1).flatten()
        if item.flags & SUM:
            low, high = sorted(rng.choice([(-128, 127), (-128, 127), (-20, 90), (5, 5)]))
            last = sum_words(noise.uniform(0.2, 1.5, 2), rng.randint(-128, 127), low, high)
            self.table = np.concatenate([self.table, last])
        self.arena = noise.integers(-128, 128, self.size, dtype=np.int8)

    def _instruction(self, rng: random.Random, first: int, sizes: dict[str, int]) -> Instruction:
        opcode, flags = Instruction(first).opcode, Instruction(first).flags
        groups = rng.choice([1, 1, 2, 3, 20])
        outs, channels = groups * rng.choice([1, 2, 17, 33]), groups * rng.choice([1, 3, 5])
        values: dict[str, Any] = {"groups": groups, "outs": outs, "channels": channels}
        if opcode != CONV:
            values |= {"groups": outs, "channels": outs}
        wide = rng.random() < 0.15  # more pixels than a tile has
        values |= self._axis(rng, "height", "rows", "y", "k_rows", 1 if wide else 12)
        values |= self._axis(rng, "width", "columns", "x", "k_columns", 600 if wide else 20)
        if opcode == ADD:
            one = dict.fromkeys(
                ("k_rows", "k_columns", "stride_y", "stride_x", "step_y", "step_x"), 1
            )
            values |= one | {"pad_y": 0, "pad_x": 0}
            values |= {"rows": values["height"], "columns": values["width"]}
        values |= sizes
        size, place = 4 if flags & FLOAT else 1, GUARD
        shapes = {"x": "channels height width", "y": "outs rows columns", "b": "outs rows columns"}
        for name, shape in shapes.items():
            count, rows, columns = (values[key] for key in shape.split())
            width = size if name == "y" else 1
            row = columns * width + width * rng.choice([0, 0, 3])
            channel = rows * row + width * rng.choice([0, 5])
            if name == "b" and flags & SUM:
                row, channel = values["y_row"], values["y_channel"]
            values |= {name: place, f"{name}_row": row, f"{name}_channel": channel}
            place += count * channel + (-count * channel) % 4 + GUARD
        self.size = place
        low, high = sorted(rng.choice([(-128, 127), (-128, 127), (-5, 100), (90, -90)]))
        zeros = {f"{name}_zero": rng.randint(-128, 127) for name in "xyb"}
        return Instruction(first, low=low, high=high, **values, **zeros)

    @staticmethod
    def _axis(
        rng: random.Random, size: str, count: str, axis: str, taps: str, most: int
    ) -> dict[str, int]:
        window, step, stride = (
            rng.choice([1, 2, 3, 5]),
            rng.choice([1, 1, 2]),
            rng.choice([1, 2, 3]),
        )
        pad = rng.randint(0, min(2, (window - 1) * step))
        length = rng.randint(1, most) if most > 1 else 1
        span = (window - 1) * step + 1
        # Sometimes windows at the far edge see the padding only in part, as with a pad there.
        last = length + pad + rng.randint(0, span - 1) - span
        windows = max(last, 0) // stride + 1
        return {
            size: length, count: windows, taps: window,
            f"stride_{axis}": stride, f"step_{axis}": step, f"pad_{axis}": pad,
        }  # fmt: skip


def sized(
    channels: int, size: tuple[int, int], outs: int, window: tuple[int, int] = (1, 1),
    stride: int = 1, pad: int = 0, step_x: int = 1, groups: int = 1,
) -> dict[str, int]:  # fmt: skip
    """Return the sizes of a window for `Case`; the padding is the same on all sides."""
    (height, width), (k_rows, k_columns) = size, window
    return {
        "channels": channels, "height": height, "width": width, "outs": outs, "groups": groups,
        "k_rows": k_rows, "k_columns": k_columns, "stride_y": stride, "stride_x": stride,
        "pad_y": pad, "pad_x": pad, "step_y": 1, "step_x": step_x,
        "rows": (height + 2 * pad - k_rows) // stride + 1,
        "columns": (width + 2 * pad - (k_columns - 1) * step_x - 1) // stride + 1,
    }  # fmt: skip


OPCODES = {"conv": CONV, "max": MAX, "mean": MEAN, "add": ADD}
