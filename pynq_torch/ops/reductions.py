"""Reductions of device "pynq" on ``reduce_f32``: sums, means, products, extremes, norms, variances.

float32, over any dimensions, of any shape and strides. `families.reductions` has the bounds of the
error. What is empty, of another dtype, or has no degree of freedom is left to the CPU, and so is a
variance or norm whose squares or powers left float32's range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch

from pynq_torch.kernels.operand import Operand
from pynq_torch.kernels.reduce import INDEXED, norm_of, reduce_runs
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined

from . import launch

__all__ = ["reduce"]

_NO_UNIT = Declined(
    "no overlay loaded with pynq_torch.load has a unit for reductions: "
    "pynq_torch.load('reductions')",
    missing=True,
)
_EMPTY = Declined("there is nothing to reduce")
_DIM = Declined(
    "a dimension is not there, or named twice, or there are more than 64; torch raises the error "
    "on the CPU"
)
_RUNNING_MEAN = Declined(
    "the mean is infinite or NaN: torch has it from running sums, so it depends on their order"
)
_NOT_HERE = Declined("the operand is not on device 'pynq'; torch raises the error on the CPU")
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


def _refused(x: torch.Tensor, dtype: torch.dtype | None) -> Declined | None:
    """Say why `reduce_f32` cannot take a tensor, ``None`` if it can."""
    if x.dtype is not torch.float32 or dtype not in (torch.float32, None):
        found = x.dtype if x.dtype is not torch.float32 else dtype
        name = str(found).removeprefix("torch.")
        return Declined(f"reduce_f32 takes and gives float32, found {name}")
    if x.device.type != "pynq":
        return _NOT_HERE
    if x.numel() >= 1 << 31:
        return _HUGE
    if x.dim() > 64:
        return _DIM
    return None if x.numel() else _EMPTY


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
    """Return what `op` makes of a tensor on device "pynq".

    Parameters
    ----------
    op : str
        A key of `families.reductions.REDUCE`.
    x : torch.Tensor
    dim : int, sequence of int or None
        The dimensions to reduce; none named means all.
    keepdim : bool
        Whether they stay, with size 1.
    dtype : torch.dtype, optional
        That the operator was asked for.
    correction : float
        Of ``var`` and ``std``.
    p : float
        Of ``norm_p``.

    Returns
    -------
    torch.Tensor, tuple of torch.Tensor or Declined
        For ``max`` and ``min`` the values and where they are.
    """
    slots = launch.available("reduce_f32")
    if not slots:
        return _NO_UNIT
    refused = _refused(x, dtype)
    if refused is not None:
        return refused
    named = (dim,) if isinstance(dim, int) else tuple(dim or ())
    geometry = _geometry(tuple(x.shape), named, keepdim)
    if geometry is None:
        return _DIM
    dims, shape, count = geometry
    if op in ("var", "std") and count <= correction:
        return _FREEDOM
    source = launch.operand(x)
    y = launch.room(shape, torch.float32)
    index = launch.room(shape, torch.int64) if op in INDEXED else None
    divisor = count if op == "mean" else count - correction if op in ("var", "std") else 1.0
    runs = reduce_runs(op, source, y, index, dims, divisor=divisor, p=p)
    if runs is None:
        source, dims = _packed(x, dims)
        runs = reduce_runs(op, source, y, index, dims, divisor=divisor, p=p)
        assert runs is not None, "one kept and one reduced stretch can be walked"
    writes = [y] if index is None else [y, index]
    launch.launch(slots, runs, reads=[source], writes=writes)
    if op in _POWERS and not _in_range(y.tensor, _POWERS[op] or p, count / divisor):
        return _RANGE
    return y.tensor if index is None else (y.tensor, index.tensor)


#: Operation -> the power of the result that its sum is of; 0 for that of `p`.
_POWERS = {"var": 1.0, "std": 2.0, "norm_2": 2.0, "norm_p": 0.0}
#: Sums of squares above this many for each element have lost nothing to float32: its smallest
#: normal number, and 24 bits.
_LEAST_EXPONENT = -126 + 24


def _in_range(result: torch.Tensor, power: float, count: float) -> bool:
    """Whether the sums that results are made of have kept within float32's range.

    Parameters
    ----------
    result : torch.Tensor
        On device "pynq".
    power : float
        ``result ** power`` is the sum, over what it was divided by.
    count : float
        Elements of a sum, over the same.
    """
    low, high = (float(v) for v in memory.alias(result).aminmax())
    exponent = (_LEAST_EXPONENT + math.log2(count)) / power
    bound = 2.0 ** min(max(exponent, -1000.0), 1000.0)  # an order near 0 gives any exponent
    if power < 0:
        return low > 0 and high <= bound
    return bound <= low and high < math.inf


def _packed(x: torch.Tensor, dims: tuple[int, ...]) -> tuple[Operand, tuple[int, ...]]:
    """Copy a tensor so that the reduced dimensions are one, the last."""
    kept = [d for d in range(x.dim()) if d not in dims]
    packed = x.permute(*kept, *dims).contiguous().flatten(len(kept))
    return launch.operand(packed), (len(kept),)


# ---- operators -----------------------------------------------------------------------------------


def plain(op: str) -> Callable[..., Any]:
    """Return the offer of a reduction with the arguments (dim, keepdim, dtype)."""

    def run(
        self: torch.Tensor,
        dim: Dims = None,
        keepdim: bool = False,
        *,
        dtype: torch.dtype | None = None,
    ) -> Any:
        return reduce(op, self, dim, keepdim, dtype=dtype)

    return run


def extreme(op: str, part: int) -> Callable[..., Any]:
    """Return the offer of argmax or argmin (part 1)."""

    def run(self: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        found = reduce(op, self, dim, keepdim)
        return found if isinstance(found, Declined) else found[part]

    return run


def aminmax(self: torch.Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    low = reduce("amin", self, dim, keepdim)
    return low if isinstance(low, Declined) else (low, reduce("amax", self, dim, keepdim))


def spread(op: str) -> Callable[..., Any]:
    """Return the offer of var or std."""

    def run(
        self: torch.Tensor, dim: Dims = None, *, correction: Any = None, keepdim: bool = False
    ) -> Any:
        freedom = 1 if correction is None else correction
        if isinstance(freedom, complex):
            return _FREEDOM
        return reduce(op, self, dim, keepdim, correction=freedom)

    return run


def spread_mean(op: str) -> Callable[..., Any]:
    of = spread(op)

    def run(
        self: torch.Tensor, dim: Dims = None, *, correction: Any = None, keepdim: bool = False
    ) -> Any:
        found = of(self, dim, correction=correction, keepdim=keepdim)
        if isinstance(found, Declined):
            return found
        mean = reduce("mean", self, dim, keepdim)
        return (found, mean) if memory.alias(mean).isfinite().all() else _RUNNING_MEAN

    return run


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
