"""Driver of ``gemm`` and its variants: int8 x int8 -> int32, one start for one product."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import buffers
from .arguments import ArgumentError, check_tensor
from .base import Kernel, KernelStart
from .vadd import deliver

if TYPE_CHECKING:
    import torch

__all__ = ["Gemm", "split_gemm"]

#: int8 products are at most 2**14: a longer sum may leave int32.
MAX_EXACT_K = (2**31 - 1) // 2**14
_INT32 = 2**31


class Gemm(Kernel):
    """``overlay.gemm(a, b)`` multiplies int8 matrices exactly."""

    def __call__(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        out: torch.Tensor | None = None,
        *,
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Return ``a @ b`` in int32.

        Parameters
        ----------
        a : torch.Tensor
            int8 [M, K], device cpu.
        b : torch.Tensor
            int8 [K, N].
        out : torch.Tensor, optional
            int32 [M, N]; in CMA memory with unit column stride without a copy.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        torch.Tensor
            int32 [M, N] in CMA memory, or `out`. Sums wrap at 32 bits, as in torch, which cannot
            happen for K <= 131,071. An empty product is returned without a start.

        Notes
        -----
        Matrices in CMA memory are used as they are, whatever their row stride, where elements of a
        row follow each other; others are copied. The columns of `b` in ``b.T`` do not.
        """
        import torch

        m, k, n = self._check(a, b, out)
        if not m * n:
            return torch.empty((m, n), dtype=torch.int32) if out is None else out
        if not k:
            return torch.zeros((m, n), dtype=torch.int32) if out is None else out.zero_()
        place = self._place_out(out, m, n, a, b)
        self.start_product(a, b, place).wait(timeout_s)
        return deliver(place, out)

    call: Any = __call__

    def start_product(self, a: Any, b: Any, c: Any, *, flush: bool = True) -> KernelStart:
        """Start ``c = a @ b`` and return at once.

        Parameters
        ----------
        a, b : torch.Tensor or PynqBuffer
            int8 [M, K] and [K, N], not empty.
        c : PynqBuffer
            int32 [M, N] with unit column stride.
        flush : bool
            ``False`` where the caller has written the CPU's cache back already: while another unit
            writes to a part of `c`, that must not happen again.
        """
        left, lda = _rows(a, self.device)
        right, ldb = _rows(b, self.device)
        m, k, n = int(a.shape[0]), int(a.shape[1]), int(b.shape[1])
        ldc = _stride(c) or n
        sizes = {"m": m, "n": n, "k": k, "lda": lda, "ldb": ldb, "ldc": ldc}
        return self._begin({"a": left, "b": right, "c": c, **sizes}, flush)

    def _check(self, a: Any, b: Any, out: Any) -> tuple[int, int, int]:
        import torch

        check_tensor(self.cu, "a", a, torch.int8, ndim=2)
        check_tensor(self.cu, "b", b, torch.int8, ndim=2)
        m, k = a.shape
        if b.shape[0] != k:
            raise ArgumentError(
                f"{self.cu}: a is {m}x{k} and b is {b.shape[0]}x{b.shape[1]}; expected b to have "
                f"{k} "
                "rows, as many as a has columns",
                self.cu,
            )
        n = b.shape[1]
        for name, size in (("M", m), ("K", k), ("N", n)):
            if size >= _INT32:
                raise ArgumentError(
                    f"{self.cu}: {name} is {size}; expected at most {_INT32 - 1}", self.cu
                )
        if out is not None:
            check_tensor(self.cu, "out", out, torch.int32, shape=(m, n))
        return int(m), int(k), int(n)

    def _place_out(self, out: Any, m: int, n: int, *sources: Any) -> Any:
        place = buffers.buffer_of(out) if out is not None else None
        # An input is read again for every tile of columns: a result written over it would spoil it.
        if place is None or _stride(place) is None or any(_overlap(place, s) for s in sources):
            return buffers.empty((m, n), "int32", device=self.device)
        return place


def _stride(matrix: Any) -> int | None:
    """Return the row stride in elements; ``None`` where elements of a row are apart."""
    strides = (
        matrix.stride()
        if hasattr(matrix, "stride")
        else [s // matrix.itemsize for s in matrix.strides]
    )
    rows, columns = matrix.shape
    if columns > 1 and strides[1] != 1:
        return None
    if rows <= 1:
        return int(columns)
    return int(strides[0]) if strides[0] >= columns else None


def _overlap(place: Any, source: Any) -> bool:
    other = buffers.buffer_of(source)
    return other is not None and bool(np.may_share_memory(np.asarray(place), np.asarray(other)))


def _rows(matrix: Any, device: Any) -> tuple[Any, int]:
    """Return a matrix in CMA memory and its row stride in elements; copy it only if need be."""
    own = buffers.buffer_of(matrix)
    stride = None if own is None else _stride(own)
    if own is not None and stride is not None:
        return own, stride
    return buffers.to_buffer(matrix, device=device), int(matrix.shape[1])


def split_gemm(
    units: Sequence[Gemm],
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor | None = None,
    *,
    speeds: Sequence[float] | None = None,
    timeout_s: float = 10.0,
) -> torch.Tensor:
    """Compute ``a @ b`` on several compute units in parallel, each with its share of the rows.

    Parameters
    ----------
    units : sequence of Gemm
        E.g. ``[overlay.gemm, overlay.gemm_lut]``.
    a, b, out
        As for `Gemm`.
    speeds : sequence of float, optional
        Rows a second, to any scale. Default: from the latency model of each kernel's
        description.json, where it lies in this checkout; equal shares otherwise.
    timeout_s : float
        Bound of each wait.

    Returns
    -------
    torch.Tensor
        int32 [M, N], the exact product.
    """
    import torch

    if not units:
        raise ValueError("split_gemm needs at least one compute unit")
    first = units[0]
    m, k, n = first._check(a, b, out)
    if len(units) == 1 or not m * n * k:
        return first(a, b, out, timeout_s=timeout_s)
    if speeds is None:
        from ..timing import model_cycles

        cycles = [model_cycles(u.kernel_name, m=m, n=n, k=k) for u in units]
        speeds = [1 / c if c else 1.0 for c in cycles] if all(cycles) else [1.0] * len(units)
    if len(speeds) != len(units) or min(speeds) <= 0:
        raise ValueError(f"speeds is {list(speeds)}; expected {len(units)} numbers greater than 0")
    place = first._place_out(out, m, n, a, b)
    right, _ = _rows(b, first.device)
    left, _ = _rows(a, first.device)
    bounds = share(m, speeds)
    buffers.flush(left, right, place)
    runs: list[KernelStart] = []
    try:
        for unit, (begin, end) in zip(units, itertools.pairwise(bounds), strict=True):
            if end > begin:
                part = left[begin:end], right, place[begin:end]
                runs.append(unit.start_product(*part, flush=False))
    finally:
        # If one cannot start, the others are still at work on these buffers.
        for run in runs:
            run.wait(timeout_s)
    result = deliver(place, out)
    assert result.dtype == torch.int32
    return result


def share(total: int, speeds: Sequence[float]) -> list[int]:
    """Return the bounds that divide ``range(total)`` in proportion to `speeds`.

    Examples
    --------
    >>> share(10, [3.0, 1.0])
    [0, 8, 10]
    """
    whole = sum(speeds)
    bounds = [0]
    for part in itertools.accumulate(speeds):
        bounds.append(min(total, max(bounds[-1], round(total * part / whole))))
    bounds[-1] = total
    return bounds
