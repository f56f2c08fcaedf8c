"""The arithmetic of kernel ``net``, in plain torch: the bytes that every board has to give.

Weights are symmetric int8, activations affine int8: ``x ~ (x_q - z_x) * s_x``. Padding is the zero
point, so that the zero points fold into the bias: ``bias[c] = round(b[c] / (s_x * s_w[c])) -
z_x * sum(w[c])``. With sums and bias in int32:

- convolution and linear: ``y = clamp(rne(float32(acc + bias[c]) * m[c]) + z_y, low, high)``, where
  ``m[c] = s_x * s_w[c] / s_y`` in float32; as float32 ``y = float32(acc + bias[c]) * m[c]``
- mean: the same with weights of 1, ``m = s_x / (s_y * elements of the window)``
- maximum: ``clamp(max(x), low, high)``; padding is -128
- addition: ``clamp(rne(float32(a - z_a) * m_a + float32(b - z_b) * m_b) + z_y, low, high)``, each
  product and the sum rounded once to float32

- convolution that ends in an addition: both, one after the other; what is between them is int8 with
  a zero point and bounds of its own

``float32`` of a sum above 2**24 rounds to nearest even, as does ``rne``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from pynq_torch.kernels.net.format import (
    ADD,
    CONV,
    FLOAT,
    MAX,
    SUM,
    SUM_WORDS,
    Instruction,
    before_sum,
)

from .layout import unpack

__all__ = ["result_of", "run"]


def run(
    instructions: list[Instruction],
    weights: np.ndarray[Any, Any],
    table: np.ndarray[Any, Any],
    arena: np.ndarray[Any, Any],
) -> list[torch.Tensor]:
    """Run a program in torch, and return what each instruction wrote.

    Parameters
    ----------
    instructions : list of Instruction
        Valid ones, without the end.
    weights, table : numpy.ndarray
        int8, int32.
    arena : numpy.ndarray
        int8, with the input; results are written there.

    Returns
    -------
    list of torch.Tensor
        int8 or float32 [outs, rows, columns] each.
    """
    memory, constants = torch.from_numpy(arena), torch.from_numpy(weights)
    results = []
    for item in instructions:
        words = table[item.table : item.table + item.table_words]
        entry = torch.from_numpy(words.reshape(-1, 2))
        value = _compute(item, constants, entry, memory)
        into = result_of(item, arena)
        into.copy_(value)
        results.append(value)
    return results


def result_of(item: Instruction, arena: np.ndarray[Any, Any]) -> torch.Tensor:
    """Return where an instruction writes in the arena: int8 or float32 [outs, rows, columns]."""
    memory = torch.from_numpy(arena)
    shape = (item.outs, item.rows, item.columns)
    if item.flags & FLOAT:
        whole = memory[: len(memory) // 4 * 4].view(torch.float32)
        return whole.as_strided(shape, (item.y_channel // 4, item.y_row // 4, 1), item.y // 4)
    return memory.as_strided(shape, (item.y_channel, item.y_row, 1), item.y)


def _compute(
    item: Instruction, weights: torch.Tensor, entry: torch.Tensor, memory: torch.Tensor
) -> torch.Tensor:
    shape = (item.channels, item.height, item.width)
    x = memory.as_strided(shape, (item.x_channel, item.x_row, 1), item.x)
    factors = entry.contiguous().view(torch.float32)
    if item.opcode == ADD:
        return _sum(item, x, item.x_zero, factors[0], memory)
    if item.opcode == MAX:
        return _clamp(_windows(item, x, -128).amax(1).float(), item, 0)
    seen = _windows(item, x, item.x_zero)
    if item.opcode == CONV:
        acc = _products(item, seen, weights[item.weights : item.weights + item.outs * item.taps])
    else:
        acc = seen.to(torch.int32).sum(1, dtype=torch.int32)
    rows = item.outs if item.opcode == CONV else 1
    value = (acc + entry[:rows, :1]).float() * factors[:rows, 1:]
    if item.flags & FLOAT:
        return value.reshape(item.outs, item.rows, item.columns)
    if item.flags & SUM:
        last = entry[rows:].flatten()
        assert len(last) == SUM_WORDS
        zero, low, high = before_sum(last.numpy())
        q = _clamp(value, replace(item, low=low, high=high), zero)
        return _sum(item, q, zero, factors[rows], memory)
    return _clamp(value, item, item.y_zero)


def _sum(
    item: Instruction, a: torch.Tensor, zero: int, factors: torch.Tensor, memory: torch.Tensor
) -> torch.Tensor:
    """Return the sum of an int8 tensor and the other operand."""
    b = memory.as_strided(a.shape, (item.b_channel, item.b_row, 1), item.b)
    # Differences of int8 values are exact in float32.
    left = (a.float() - zero) * factors[0]
    return _clamp(left + (b.float() - item.b_zero) * factors[1], item, item.y_zero)


def _windows(item: Instruction, x: torch.Tensor, beside: int) -> torch.Tensor:
    """Return what the windows see: int8 [channels, k_rows * k_columns, pixels]."""
    below = (item.rows - 1) * item.stride_y + (item.k_rows - 1) * item.step_y + 1
    right = (item.columns - 1) * item.stride_x + (item.k_columns - 1) * item.step_x + 1
    padded = x.new_full((item.channels, below, right), beside)
    part = padded[:, item.pad_y :, item.pad_x :]
    rows, columns = min(part.shape[1], item.height), min(part.shape[2], item.width)
    part[:, :rows, :columns] = x[:, :rows, :columns]
    channel, row, column = padded.stride()
    shape = (item.channels, item.k_rows, item.k_columns, item.rows, item.columns)
    steps = (item.step_y * row, item.step_x * column, item.stride_y * row, item.stride_x * column)
    seen = padded.as_strided(shape, (channel, *steps))
    return seen.reshape(item.channels, item.k_rows * item.k_columns, item.rows * item.columns)


def _products(item: Instruction, seen: torch.Tensor, packed: torch.Tensor) -> torch.Tensor:
    """Return the sums: int32 [outs, pixels]."""
    columns = seen.reshape(item.groups, item.taps, -1)
    matrix = unpack(packed, item.groups, item.outs // item.groups, item.taps)
    # Products of int8 are below 2**14, so that float64 holds the sums of 2**39 of them exactly.
    sums = torch.bmm(matrix.double(), columns.double()).long()
    # int32 wraps, as the kernel's sums do.
    return sums.to(torch.int32).reshape(item.outs, -1)


def _clamp(value: torch.Tensor, item: Instruction, zero: int) -> torch.Tensor:
    # In float64, so that a large value plus the zero point is exact. Infinity
    # less infinity is no number: the lower bound.
    rounded = torch.round(value).double().nan_to_num(nan=float("-inf")) + zero
    # As the kernel, also where a table has the lower bound above the upper one.
    clamped = torch.where(rounded > item.high, item.high, rounded.clamp(min=item.low))
    return clamped.to(torch.int8).reshape(item.outs, item.rows, item.columns)
