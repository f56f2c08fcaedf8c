"""Driver of ``reduce_f32``: many float32 values become one, over any dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .arguments import check_tensor
from .base import Kernel
from .operand import Operand, float_bits
from .strided import collapse, outer_offsets
from .tables.reductions import COMBINES, FINISHES, LANES, REDUCE, TERMS

if TYPE_CHECKING:
    import torch

__all__ = ["INDEXED", "Reduce", "norm_of", "reduce_runs"]

#: Operations that also say where the extreme is.
INDEXED = ("max", "min")
#: Dimensions of each kind that the kernel walks through itself.
DIMENSIONS = 3
Walk = tuple[list[tuple[int, int]], tuple[int, ...]]


def norm_of(p: float) -> str:
    """Return the operation that is the vector norm of order `p`."""
    return f"norm_{p:g}" if p in (0, 1, 2, math.inf, -math.inf) else "norm_p"


def reduce_runs(
    op: str,
    x: Operand,
    y: Operand,
    index: Operand | None,
    dims: tuple[int, ...],
    *,
    divisor: float = 1.0,
    p: float = 1.0,
) -> list[tuple[int, ...]] | None:
    """Return the registers of each run, in the order of the kernel's arguments.

    ``None`` where the reduced dimensions lie so that the kernel cannot walk through them (more than
    three jumps); a copy with these as its last ones, joined, can always be walked.

    Parameters
    ----------
    op : str
        A key of `pynq_torch.kernels.tables.reductions.REDUCE`.
    x : Operand
        Of at least one element.
    y : Operand
        Contiguous; the dimensions that are kept, in their order, and any of size 1.
    index : Operand, optional
        int64, as `y`: where the extremes are, for the operations of `INDEXED`.
    dims : tuple of int
        The dimensions to reduce, ascending, not negative.
    divisor : float
        Of ``mean``, ``var`` and ``std``.
    p : float
        Of ``norm_p``.
    """
    walk = _walk(x.shape, x.strides, dims, op in INDEXED)
    if walk is None:
        return None
    term, combine, finish = REDUCE[op]
    codes = TERMS[term], COMBINES[combine], FINISHES[finish]
    numbers = float_bits(divisor), float_bits(p)
    # Without an index nothing is written there; an address of the result's is one in memory.
    place = y.address if index is None else index.address
    return [
        (x.address + 4 * i, y.address + 4 * o, place + 8 * o, *codes, *walk[1], *numbers)
        for i, o in walk[0]
    ]


@lru_cache(maxsize=256)
def _walk(
    shape: tuple[int, ...], strides: tuple[int, ...], dims: tuple[int, ...], ordered: bool
) -> Walk | None:
    """Return where each run begins in x and y, and the registers from ``k0`` to ``column``."""
    kept = [d for d in range(len(shape)) if d not in dims]
    steps = [math.prod(shape[later] for later in kept[i + 1 :]) for i in range(len(kept))]
    # Neighbours in memory last: bursts, and lanes for neighbouring results.
    order = sorted(range(len(kept)), key=lambda i: -strides[kept[i]])
    sizes, (x_kept, y_kept) = collapse(
        [shape[kept[i]] for i in order],
        [strides[kept[i]] for i in order],
        [steps[i] for i in order],
    )
    along = dims if ordered else sorted(dims, key=lambda d: -strides[d])
    lengths, (x_reduced,) = collapse([shape[d] for d in along], [strides[d] for d in along])
    if len(lengths) > DIMENSIONS:
        return None
    column = sizes[-1] >= LANES and x_kept[-1] < x_reduced[-1]
    registers = (
        *_three(sizes, 1),
        *_three(lengths, 1),
        *_three(x_kept, 0),
        *_three(x_reduced, 0),
        *_three(y_kept, 0),
        int(column),
    )
    return [(i, o) for i, o in outer_offsets(sizes, (x_kept, y_kept), DIMENSIONS)], registers


def _three(values: tuple[int, ...], fill: int) -> tuple[int, ...]:
    return (*(fill,) * (DIMENSIONS - len(values)), *values[-DIMENSIONS:])


class Reduce(Kernel):
    """``overlay.reduce_f32(x)`` is the sum of a float32 tensor."""

    def __call__(
        self,
        x: torch.Tensor,
        dims: int | Sequence[int] | None = None,
        op: str = "sum",
        *,
        correction: float = 1,
        p: float = 2,
        timeout_s: float = 10.0,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        """Return what `op` makes of `x` over some of its dimensions.

        Parameters
        ----------
        x : torch.Tensor
            float32 on the CPU, any shape and strides, not empty.
        dims : int or sequence of int, optional
            The dimensions to reduce, negative ones from the last; default: all.
        op : str
            A key of `pynq_torch.kernels.tables.reductions.REDUCE`.
        correction : float
            Of ``var`` and ``std``: what is taken from the count.
        p : float
            Of ``norm_p``.
        timeout_s : float
            Bound of the wait for one run.

        Returns
        -------
        torch.Tensor or tuple of torch.Tensor
            New, float32, contiguous, in CMA memory; for ``max`` and ``min`` also where the extremes
            are, int64, counted through the reduced dimensions. The bounds of the error are those of
            `pynq_torch.kernels.tables.reductions`.

        Raises
        ------
        ArgumentError
            Another dtype, no element, no such `op` or dimension.
        """
        import torch

        check_tensor(self.cu, "x", x, torch.float32)
        reduced = self._dims(x, dims, op)
        if not x.numel():
            raise self.wrong(f"x has shape {tuple(x.shape)}, no element; expected at least one")
        kept = [d for d in range(x.dim()) if d not in reduced]
        shape = [x.shape[d] for d in kept]
        count = math.prod(x.shape[d] for d in reduced)
        divisor = {"mean": count, "var": count - correction, "std": count - correction}.get(op, 1)
        source = self.operand("x", x)
        y = self.result(shape)
        index = self.result(shape, torch.int64) if op in INDEXED else None
        runs = reduce_runs(op, source, y, index, reduced, divisor=divisor, p=p)
        if runs is None:
            source = self.operand("x", x.permute(*kept, *reduced).reshape(*shape, count))
            runs = reduce_runs(op, source, y, index, (len(kept),), divisor=divisor, p=p)
            assert runs is not None, "one kept and one reduced stretch can be walked"
        self.do_runs(runs, (source,), (y, index), timeout_s)
        return y.tensor if index is None else (y.tensor, index.tensor)

    call: Any = __call__

    def _dims(self, x: torch.Tensor, dims: int | Sequence[int] | None, op: str) -> tuple[int, ...]:
        if op not in REDUCE:
            raise self.wrong(f"op is {op!r}; expected one of {', '.join(REDUCE)}")
        if dims is None:
            return tuple(range(x.dim()))
        given = (dims,) if isinstance(dims, int) else tuple(dims)
        if any(not -x.dim() <= d < x.dim() for d in given):
            raise self.wrong(
                f"dims is {dims}; expected dimensions of x, {-x.dim()} to {x.dim() - 1}"
            )
        return tuple(sorted({d % x.dim() for d in given}))
