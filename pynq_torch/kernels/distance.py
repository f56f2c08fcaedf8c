"""Driver of ``distance_f32``: distances between rows of matrices, and dot products."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .arguments import check_tensor
from .base import Kernel
from .operand import Operand, float_bits
from .strided import broadcast_strides, collapse, outer_offsets
from .tables.reductions import DISTANCES

if TYPE_CHECKING:
    import torch

__all__ = ["Distance", "distance_of", "distance_runs", "distances_shape", "dot_run"]

_BY_ORDER = {0: "count", 1: "manhattan", 2: "euclid", math.inf: "chebyshev"}
Walk = tuple[list[tuple[int, int, int]], tuple[int, ...]]


def distance_of(p: float) -> str:
    """Return what the kernel calls the distance of order `p`."""
    return _BY_ORDER.get(p, "minkowski")


def distances_shape(a: torch.Tensor, b: torch.Tensor) -> tuple[int, ...] | None:
    """Return the shape [..., P, R] of the distances; ``None`` where the operands do not fit."""
    if a.dim() < 2 or b.dim() < 2 or a.shape[-1] != b.shape[-1]:
        return None
    batch: list[int] = []
    leading = reversed(a.shape[:-2]), reversed(b.shape[:-2])
    for m, n in itertools.zip_longest(*leading, fillvalue=1):
        if m != n and 1 not in (m, n):
            return None
        batch.insert(0, n if m == 1 else m)
    return (*batch, a.shape[-2], b.shape[-2])


def distance_runs(a: Operand, b: Operand, c: Operand, p: float) -> list[tuple[int, ...]]:
    """Return the registers of each run, in the order of the kernel's arguments.

    Parameters
    ----------
    a, b : Operand
        [..., P, M] and [..., R, M], not empty; the leading dimensions broadcast.
    c : Operand
        [..., P, R], contiguous.
    p : float
        Order of the distance, not negative.
    """
    runs, rest = _walk(a.shape, a.strides, b.shape, b.strides, c.shape, c.strides)
    code, bits = DISTANCES[distance_of(p)], float_bits(p)
    return [
        (a.address + 4 * i, b.address + 4 * j, c.address + 4 * k, code, *rest, bits)
        for i, j, k in runs
    ]


@lru_cache(maxsize=256)
def _walk(
    a: tuple[int, ...],
    a_strides: tuple[int, ...],
    b: tuple[int, ...],
    b_strides: tuple[int, ...],
    c: tuple[int, ...],
    c_strides: tuple[int, ...],
) -> Walk:
    """Return where each run begins, and the registers from ``batches`` to ``c_row``."""
    batch = c[:-2]
    sizes, strides = collapse(
        batch,
        broadcast_strides(a[:-2], a_strides[:-2], batch),
        broadcast_strides(b[:-2], b_strides[:-2], batch),
        c_strides[:-2],
    )
    (a_batch, b_batch, c_batch) = (own[-1] for own in strides)
    registers = (
        *(sizes[-1], a[-2], b[-2], a[-1]),
        *(a_batch, a_strides[-2], a_strides[-1]),
        *(b_batch, b_strides[-2], b_strides[-1]),
        *(c_batch, c_strides[-2]),
    )
    return [(i, j, k) for i, j, k in outer_offsets(sizes, strides, 1)], registers


def dot_run(a: Operand, b: Operand, c: Operand) -> tuple[int, ...]:
    """Return the registers of the dot product of two vectors of the same length, not empty."""
    steps = (0, 0, a.strides[0], 0, 0, b.strides[0], 0, 0)
    return (a.address, b.address, c.address, DISTANCES["dot"], 1, 1, 1, a.shape[0], *steps, 0)


class Distance(Kernel):
    """``overlay.distance_f32(a, b)`` is the distance of every row of a from every row of b."""

    def __call__(
        self, a: torch.Tensor, b: torch.Tensor, p: float = 2.0, *, timeout_s: float = 10.0
    ) -> torch.Tensor:
        """Return the distances of order `p`, as ``torch.cdist``.

        Parameters
        ----------
        a, b : torch.Tensor
            float32 [..., P, M] and [..., R, M] on the CPU, any strides, not empty; the leading
            dimensions broadcast.
        p : float
            Order of the distance: 0 counts the elements that differ, ``math.inf`` takes the largest
            difference.
        timeout_s : float
            Bound of the wait for one run.

        Returns
        -------
        torch.Tensor
            New, float32 [..., P, R], contiguous, in CMA memory. The bounds of its error are those
            of `pynq_torch.kernels.tables.reductions`.

        Raises
        ------
        ArgumentError
            Another dtype, shapes that do not fit, nothing to measure, or a negative order.
        """
        shape = self._checked(a, b)
        if not p >= 0:
            raise self.wrong(f"p is {p}; expected 0 or more")
        left = self.operand("a", a)
        right = self.operand("b", b)
        c = self.result(shape)
        return self.run_into(c, distance_runs(left, right, c, p), (left, right), timeout_s)

    call: Any = __call__

    def _checked(self, a: torch.Tensor, b: torch.Tensor) -> tuple[int, ...]:
        """Return the shape of the distances of two tensors that the kernel can measure."""
        for name, value in (("a", a), ("b", b)):
            check_tensor(self.cu, name, value)
        shape = distances_shape(a, b)
        if shape is None or not a.numel() or not b.numel():
            raise self.wrong(
                f"a is {tuple(a.shape)} and b {tuple(b.shape)}; expected [..., P, M] "
                "and [..., R, M] with at least one element"
            )
        return shape

    def dot(self, a: torch.Tensor, b: torch.Tensor, *, timeout_s: float = 10.0) -> torch.Tensor:
        """Return the dot product of two vectors.

        Parameters
        ----------
        a, b : torch.Tensor
            float32 [N] on the CPU, any strides, not empty.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        torch.Tensor
            float32 of no dimension, in CMA memory.

        Raises
        ------
        ArgumentError
            Another dtype, or no vectors of the same length.
        """
        import torch

        check_tensor(self.cu, "a", a, torch.float32, ndim=1)
        check_tensor(self.cu, "b", b, torch.float32, shape=tuple(a.shape))
        if not a.numel():
            raise self.wrong("a has no element; expected at least one")
        left = self.operand("a", a)
        right = self.operand("b", b)
        c = self.result(())
        return self.run_into(c, [dot_run(left, right, c)], (left, right), timeout_s)
