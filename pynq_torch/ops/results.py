"""Results of operators: images in the memory format that torch chooses, several by ``out=``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from pynq_torch.kernels.operand import Operand
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.offering import NOT_THERE, RESIZED

from .launch import operand

__all__ = ["channels_last", "formatted", "into_outs"]


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


def into_outs(functional: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """Return the out variant of an operator with several results, written to `names` in order."""

    def run(*args: Any, **kwargs: Any) -> Any:
        outs = [kwargs.pop(name) for name in names]
        results = functional(*args, **kwargs)
        if isinstance(results, Declined):
            return results
        for out, result in zip(outs, results, strict=True):
            if out.device.type != "pynq" or out.dtype is not result.dtype:
                return NOT_THERE
            if out.shape != result.shape:
                return RESIZED
        return tuple(out.copy_(result) for out, result in zip(outs, results, strict=True))

    return run
