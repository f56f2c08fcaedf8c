"""Addition and dot products of device "pynq" on the kernels of the optimisation ladder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pynq_torch.kernels.ladder import add_runs, dot_runs, word_bytes
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.variants import MIXED

from .launch import ComputeUnit, available, launch, operand, room

__all__ = ["RUNGS"]

#: The best rung of an overlay is asked first.
RUNGS = (4, 3, 2, 1)

_MISSING = Declined(
    "no overlay loaded with pynq_torch.load has a kernel of the ladder: "
    "pynq_torch.load('ladder_4')",
    missing=True,
)
_EMPTY = Declined("there is nothing to compute")
_SHAPES = Declined("the ladder adds tensors of one shape that lie in memory without a gap")
_VECTORS = Declined("the ladder multiplies two vectors of one length without a gap")
_WORDS = Declined("a vector does not begin on a word of the kernel's ports, 8 bytes")
_FLOAT = Declined("the ladder computes in float32")
_FACTOR = Declined("the ladder adds with alpha = 1 only")
_TOO_LONG = Declined("the vectors have 2**31 elements or more")


#: The kernels of each function, best first; the first lessons' `vadd` is none of the rungs.
_DOT = tuple(f"dot_{rung}" for rung in RUNGS)
_VADD = (*(f"vadd_{rung}" for rung in RUNGS), "vadd")


def _units(kernels: Sequence[str]) -> tuple[ComputeUnit, ...]:
    for kernel in kernels:
        found = available(kernel)
        if found:
            return found
    return ()


def _unsuitable(a: Any, b: Any) -> Declined | None:
    if not isinstance(b, torch.Tensor) or a.device.type != "pynq" or b.device.type != "pynq":
        return MIXED
    if a.dtype is not torch.float32 or b.dtype is not torch.float32:
        return _FLOAT
    if not a.numel():
        return _EMPTY
    return _TOO_LONG if a.numel() >= 1 << 31 else None


def add(self: torch.Tensor, other: torch.Tensor, *, alpha: Any = 1) -> Any:
    units = _units(_VADD)
    if not units:
        return _MISSING
    declined = _unsuitable(self, other)
    if declined is not None:
        return declined
    if type(alpha) is bool or alpha != 1:
        return _FACTOR
    if self.shape != other.shape or not (self.is_contiguous() and other.is_contiguous()):
        return _SHAPES
    a, b = operand(self), operand(other)
    word = word_bytes(units[0].driver.kernel_name)
    if a.address % word or b.address % word:
        return _WORDS
    c = room(self.shape, torch.float32)
    launch(units, add_runs(a, b, c, self.numel(), len(units)), reads=(a, b), writes=(c,))
    return c.tensor


def dot(self: torch.Tensor, tensor: torch.Tensor) -> Any:
    units = _units(_DOT)
    if not units:
        return _MISSING
    declined = _unsuitable(self, tensor)
    if declined is not None:
        return declined
    if self.dim() != 1 or self.shape != tensor.shape:
        return _VECTORS
    if not (self.is_contiguous() and tensor.is_contiguous()):
        return _VECTORS
    a, b = operand(self), operand(tensor)
    word = word_bytes(units[0].driver.kernel_name)
    if a.address % word or b.address % word:
        return _WORDS
    sums = room((len(units),), torch.float32)
    runs = dot_runs(a, b, sums, self.numel(), len(units))
    launch(units, runs, reads=(a, b), writes=(sums,))
    result = memory.new((), torch.float32)
    # The sums of the units, two numbers or one, are the host's to add.
    torch.sum(memory.alias(sums.tensor)[: len(runs)], 0, out=memory.alias(result))
    memory.note_write(result)
    return result
