"""Driver of ``softmax_f32``: softmax, its logarithm, logsumexp, and what goes backwards."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .arguments import check_tensor
from .base import Kernel
from .operand import Operand
from .strided import collapse, outer_offsets
from .tables.reductions import LANES, SOFTMAX

if TYPE_CHECKING:
    import torch

__all__ = ["Softmax", "softmax_runs"]

Strides = tuple[int, ...]


def softmax_runs(
    op: str, a: Operand, b: Operand | None, c: Operand, dim: int
) -> list[tuple[int, ...]]:
    """Return the registers of each run, in the order of the kernel's arguments.

    Parameters
    ----------
    op : str
        A key of `pynq_torch.kernels.tables.reductions.SOFTMAX`.
    a : Operand
        The values; backwards the gradient. No size is 0.
    b : Operand, optional
        Backwards what the forward operator gave, of the shape of `a`.
    c : Operand
        Of the shape of `a`; for logsumexp contiguous, without `dim` or with size 1 there.
    dim : int
        The dimension of the rows, not negative.
    """
    other = a if b is None else b
    target = _row_major(a.shape, dim) if op == "logsumexp" else c.strides
    runs, rest = _walk(a.shape, a.strides, other.strides, target, dim)
    first, second, third = a.address, other.address, c.address
    code, size = SOFTMAX[op], a.itemsize
    return [
        (first + size * i, second + size * j, third + size * k, code, *rest) for i, j, k in runs
    ]


@lru_cache(maxsize=256)
def _row_major(shape: tuple[int, ...], dim: int) -> Strides:
    """Return the strides of a contiguous result of this shape with size 1 at `dim`."""
    sizes = [1 if i == dim else n for i, n in enumerate(shape)]
    return tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes)))


@lru_cache(maxsize=256)
def _walk(
    shape: tuple[int, ...], a: Strides, b: Strides, c: Strides, dim: int
) -> tuple[list[tuple[int, int, int]], tuple[int, ...]]:
    """Return where each run begins (offsets in elements), and the registers after ``op``."""
    if not shape:
        return [(0, 0, 0)], (1, 1, 1, *(0,) * 9, 0)
    # Neighbours in memory last, so that rows which lie side by side can be taken together.
    kept = sorted((i for i in range(len(shape)) if i != dim), key=lambda i: -a[i])
    sizes, strides = collapse([shape[i] for i in kept], *([s[i] for i in kept] for s in (a, b, c)))
    runs = [(i, j, k) for i, j, k in outer_offsets(sizes, strides, 2)]
    outer = sizes[-2] if len(sizes) > 1 else 1
    steps = []
    for along, own in zip(strides, (a, b, c), strict=True):
        steps += [along[-2] if len(sizes) > 1 else 0, own[dim], along[-1]]
    column = sizes[-1] >= LANES and strides[0][-1] < a[dim]
    return runs, (outer, shape[dim], sizes[-1], *steps, int(column))


class Softmax(Kernel):
    """``overlay.softmax_f32(x)`` is the softmax of each row of a float32 tensor."""

    def __call__(
        self,
        x: torch.Tensor,
        dim: int = -1,
        op: str = "softmax",
        result: torch.Tensor | None = None,
        *,
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Return what `op` makes of `x` along a dimension.

        Parameters
        ----------
        x : torch.Tensor
            float32 on the CPU, any shape and strides; backwards the gradient of the result.
        dim : int
            The dimension of the rows; negative ones count from the last.
        op : str
            ``"softmax"``, ``"log_softmax"``, ``"logsumexp"``, ``"softmax_backward"`` or
            ``"log_softmax_backward"``.
        result : torch.Tensor, optional
            Backwards: what softmax or log_softmax gave, float32 of the shape of `x`.
        timeout_s : float
            Bound of the wait for one run.

        Returns
        -------
        torch.Tensor
            New, float32, contiguous, in CMA memory; of the shape of `x`, for logsumexp without
            `dim`. The bounds of its error are those of `pynq_torch.kernels.tables.reductions`.

        Raises
        ------
        ArgumentError
            Another dtype, no such `op` or `dim`, or a `result` that does not fit.
        """
        import torch

        check_tensor(self.cu, "x", x, torch.float32)
        self._check(x, dim, op, result)
        dim = dim % max(x.dim(), 1)
        shape = list(x.shape)
        if op == "logsumexp" and shape:
            del shape[dim]
        if not x.numel():
            return torch.empty(shape)
        a = self.operand("x", x)
        b = None if result is None else self.operand("result", result)
        c = self.result(shape)
        return self.run_into(c, softmax_runs(op, a, b, c, dim), (a, b), timeout_s)

    call: Any = __call__

    def _check(self, x: torch.Tensor, dim: int, op: str, result: torch.Tensor | None) -> None:
        if op not in SOFTMAX:
            raise self.wrong(f"op is {op!r}; expected one of {', '.join(SOFTMAX)}")
        if not -max(x.dim(), 1) <= dim < max(x.dim(), 1):
            raise self.wrong(
                f"dim is {dim}; expected one of the {x.dim()} dimensions of x, "
                f"{-x.dim()} to {x.dim() - 1}"
            )
        if op.endswith("backward") != (result is not None):
            wanted = "the result of the forward operator" if result is None else "none"
            raise self.wrong(f"op {op!r} takes {wanted} as result")
        if result is not None and result.shape != x.shape:
            raise self.wrong(
                f"result has shape {tuple(result.shape)}; expected {tuple(x.shape)}, "
                "that of the gradient"
            )
