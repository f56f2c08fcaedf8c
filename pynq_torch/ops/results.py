"""Results of operators: images in the memory format that torch chooses."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from pynq_torch.kernels.operand import Operand
from pynq_torch.torch_device import memory

from .launch import operand

__all__ = ["channels_last", "formatted"]


def formatted(shape: Sequence[int], like: torch.Tensor, dtype: torch.dtype) -> Operand:
    """Return room for images in the memory format of others: row-major or channels-last.

    As ``suggest_memory_format`` of c10/core/MemoryFormat.h, which torch's own kernels ask.
    """
    if len(shape) == 4 and channels_last(like.shape, like.stride()):
        n, c, h, w = shape
        return operand(memory.new_strided((n, c, h, w), (h * w * c, 1, w * c, c), dtype))
    return operand(memory.new(tuple(shape), dtype))


def channels_last(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether torch takes images, or volumes, for channels-last (``suggest_memory_format``)."""
    if len(shape) not in (4, 5) or strides[1] == 0:
        return False
    least = 0
    for axis in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[axis] == 0 or strides[axis] < least or (axis == 0 and least == strides[1]):
            return False
        least = strides[axis] * shape[axis]
    return True
