"""Reductions of device "pynq" on ``reduce_f32``: sums, means, products, extremes, norms, variances.

float32, over any dimensions, of any shape and strides. `kernels.tables.reductions` has the bounds
of the error. What is empty, of another dtype, or has no degree of freedom is left to the CPU, and
so is a variance or norm whose squares or powers left float32's range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch

from pynq_torch.kernels.reduce import INDEXED, norm_of, reduce_runs
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined

from .common import on_cpu, run, short, units_of
from .launch import ComputeUnit, operand, room

__all__ = ["reduce"]

_EMPTY = Declined("there is nothing to reduce")
_DIM = on_cpu("a dimension is not there, or named twice, or there are more than 64")
_RUNNING_MEAN = Declined(
    "the mean is infinite or NaN: torch has it from running sums, so it depends on their order"
)
_FREEDOM = Declined("the correction leaves no degree of freedom; torch computes it on the CPU")
_ORDER = Declined("the order of the norm is no real number")
_RANGE = Declined(
    "squares or powers have left float32's range, or all are 0: the CPU has a wider one for them"
)
_HUGE = Declined("the kernel counts to 2**31 - 1 elements")
#: Over which dimensions: one, several, or all of them (``None``, or none named).
Dims = int | Sequence[int] | None


@lru_cache(maxsize=512)
def _geometry(
    sizes: tuple[int, ...], named: tuple[int, ...], keepdim: bool
) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
    """Return the dimensions to reduce, the result's shape, and how many elements each is made of.

    ``None``: a dimension is not there, or named twice.
    """
    count = len(sizes) or 1
    if any(not -count <= d < count for d in named):
        return None
    found = sorted({d % count for d in named})
    if len(found) < len(named):
        return None
    dims = tuple(found or range(count)) if sizes else ()
    shape = tuple(1 if d in dims else n for d, n in enumerate(sizes) if keepdim or d not in dims)
    return dims, shape, math.prod(sizes[d] for d in dims)


def _units(x: torch.Tensor, dtype: torch.dtype | None) -> tuple[ComputeUnit, ...] | Declined:
    """Return the units, or say why they cannot take a tensor and give that dtype."""
    slots = units_of("reduce_f32", x)
    if isinstance(slots, Declined):
        return slots
    if dtype not in (torch.float32, None):
        return Declined(f"reduce_f32 gives float32, found {short(dtype)}")
    if x.numel() >= 1 << 31:
        return _HUGE
    if x.dim() > 64:
        return _DIM
    return slots if x.numel() else _EMPTY


def reduce(
    op: str,
    x: torch.Tensor,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    correction: float = 0,
    p: float = 1.0,
) -> Any:
    """Return what `op`, a key of `kernels.tables.reductions.REDUCE`, makes of a tensor.

    No dimension means all of them. `dtype` is what the operator was asked for, `correction` that of
    ``var`` and ``std``, `p` that of ``norm_p``. ``max`` and ``min`` give the values and where they
    are. A call that the kernel cannot do exactly gives a `Declined`.
    """
    slots = _units(x, dtype)
    if isinstance(slots, Declined):
        return slots
    named = (dim,) if isinstance(dim, int) else tuple(dim or ())
    geometry = _geometry(tuple(x.shape), named, keepdim)
    if geometry is None:
        return _DIM
    dims, shape, count = geometry
    if op in ("var", "std") and count <= correction:
        return _FREEDOM
    divisor = count if op == "mean" else count - correction if op in ("var", "std") else 1.0
    found = _reduced(op, slots, x, dims, shape, divisor, p)
    if op in _POWERS and not _in_range(found, _POWERS[op] or p, count / divisor):
        return _RANGE
    return found


def _reduced(
    op: str,
    slots: tuple[ComputeUnit, ...],
    x: torch.Tensor,
    dims: tuple[int, ...],
    shape: tuple[int, ...],
    divisor: float,
    p: float,
) -> Any:
    source, y = operand(x), room(shape, torch.float32)
    index = room(shape, torch.int64) if op in INDEXED else None
    runs = reduce_runs(op, source, y, index, dims, divisor=divisor, p=p)
    if runs is None:
        # Copied so that the reduced dimensions are one, the last.
        kept = [d for d in range(x.dim()) if d not in dims]
        source = operand(x.permute(*kept, *dims).contiguous().flatten(len(kept)))
        runs = reduce_runs(op, source, y, index, (len(kept),), divisor=divisor, p=p)
        assert runs is not None, "one kept and one reduced stretch can be walked"
    return (
        run(slots, runs, (source,), y) if index is None else run(slots, runs, (source,), y, index)
    )


#: Operation -> the power of the result that its sum is of; 0 for that of `p`.
_POWERS = {"var": 1.0, "std": 2.0, "norm_2": 2.0, "norm_p": 0.0}
#: Sums of squares above this many for each element have lost nothing to float32: its smallest
#: normal number, and 24 bits.
_LEAST_EXPONENT = -126 + 24


def _in_range(result: torch.Tensor, power: float, count: float) -> bool:
    """Whether the sums that results are made of have kept within float32's range.

    ``result ** power`` is the sum over what it was divided by; `count` are the elements of a sum
    over the same.
    """
    low, high = (float(v) for v in memory.alias(result).aminmax())
    exponent = (_LEAST_EXPONENT + math.log2(count)) / power
    bound = 2.0 ** min(max(exponent, -1000.0), 1000.0)  # an order near 0 gives any exponent
    if power < 0:
        return low > 0 and high <= bound
    return bound <= low and high < math.inf


# ---- operators -----------------------------------------------------------------------------------


def plain(op: str) -> Callable[..., Any]:
    """Return the offer of a reduction with the arguments (dim, keepdim, dtype)."""

    def offer(
        self: torch.Tensor,
        dim: Dims = None,
        keepdim: bool = False,
        *,
        dtype: torch.dtype | None = None,
    ) -> Any:
        return reduce(op, self, dim, keepdim, dtype=dtype)

    return offer


def extreme(op: str) -> Callable[..., Any]:
    """Return the offer of argmax or argmin: the second of what max or min gives."""

    def offer(self: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        found = reduce(op, self, dim, keepdim)
        return found if isinstance(found, Declined) else found[1]

    return offer


def aminmax(self: torch.Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    low = reduce("amin", self, dim, keepdim)
    return low if isinstance(low, Declined) else (low, reduce("amax", self, dim, keepdim))


def spread(op: str, *, mean: bool = False) -> Callable[..., Any]:
    """Return the offer of var or std, or of one of them and the mean."""

    def offer(
        self: torch.Tensor, dim: Dims = None, *, correction: Any = None, keepdim: bool = False
    ) -> Any:
        freedom = 1 if correction is None else correction
        if isinstance(freedom, complex):
            return _FREEDOM
        found = reduce(op, self, dim, keepdim, correction=freedom)
        if not mean or isinstance(found, Declined):
            return found
        average = reduce("mean", self, dim, keepdim)
        return (found, average) if memory.alias(average).isfinite().all() else _RUNNING_MEAN

    return offer


def norm(
    self: torch.Tensor,
    p: Any = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Any:
    order = 2.0 if p is None else p
    if isinstance(order, complex) or math.isnan(order):
        return _ORDER
    return reduce(norm_of(order), self, dim, keepdim, dtype=dtype, p=float(order))
