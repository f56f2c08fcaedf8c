"""Driver of ``move_32``: copies, gathers and scatter-adds of float32 and int32 tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pynq_torch import buffers

from . import walks
from .base import Kernel
from .operand import Operand

if TYPE_CHECKING:
    import torch

__all__ = ["Move32"]


class Move32(Kernel):
    """``overlay.move_32(x)`` makes a strided tensor contiguous; with an index it gathers."""

    def __call__(
        self,
        x: torch.Tensor,
        index: torch.Tensor | None = None,
        dim: int = 0,
        *,
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Return ``x.contiguous()``, or ``x.index_select(dim, index)``.

        Parameters
        ----------
        x : torch.Tensor
            float32 or int32, device cpu, any shape and strides. In CMA memory it is read as it
            lies; elsewhere it is copied there first.
        index : torch.Tensor, optional
            int64 or int32 [n], each in ``range(x.shape[dim])``.
        dim : int
            Along which the index chooses.
        timeout_s : float
            Bound of the wait for one run.

        Returns
        -------
        torch.Tensor
            Of the dtype of `x`, contiguous, in new CMA memory. Bits are kept, NaN payloads too.

        Raises
        ------
        ArgumentError
            Another dtype or device, or an index out of range. Nothing was started.
        """
        if index is None:
            return self._copied(x, timeout_s)
        return self._selected(x, dim, index, timeout_s)

    call: Any = __call__

    def gather(
        self, x: torch.Tensor, dim: int, index: torch.Tensor, *, timeout_s: float = 10.0
    ) -> torch.Tensor:
        """Return ``x.gather(dim, index)``.

        Parameters
        ----------
        x, timeout_s
            As for a call.
        dim : int
            Along which the index chooses.
        index : torch.Tensor
            int64 or int32, as many dimensions as `x`, nowhere larger but along `dim`.

        Raises
        ------
        ArgumentError
            See a call.
        """
        dim, index = self._checked(x, index, dim)
        fits = index.dim() == x.dim() and all(
            n <= size
            for i, (n, size) in enumerate(zip(index.shape, x.shape, strict=False))
            if i != dim
        )
        if not fits:
            raise self.wrong(
                f"index has shape {tuple(index.shape)}; expected {x.dim()} dimensions, "
                f"none but dimension {dim} larger than that of x, {tuple(x.shape)}"
            )
        return self._gathered(walks.gather_runs, x, dim, index, tuple(index.shape), timeout_s)

    def add_rows(
        self,
        target: torch.Tensor,
        dim: int,
        index: torch.Tensor,
        source: torch.Tensor,
        *,
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Do ``target.index_add_(dim, index, source)`` in float32, and return the target.

        Parameters
        ----------
        target : torch.Tensor
            float32 in CMA memory; written in place.
        dim : int
            Along which the index chooses.
        index : torch.Tensor
            int64 or int32 [n].
        source : torch.Tensor
            float32, of the shape of the target but for n along `dim`.
        timeout_s : float
            Bound of the wait.

        Raises
        ------
        ArgumentError
            See a call; or the target does not lie in CMA memory.
        """
        dim, index = self._checked(target, index, dim)
        shape = (*target.shape[:dim], *index.shape, *target.shape[dim + 1 :])
        own = buffers.buffer_of(target)
        if own is None or index.dim() != 1 or tuple(source.shape) != shape:
            raise self.wrong(
                f"target {tuple(target.shape)}, index {tuple(index.shape)} and source "
                f"{tuple(source.shape)}; expected a target in CMA memory (buffers.empty_tensor), a "
                f"vector, and a source of the target's shape but along dimension {dim}"
            )
        place = self.operand("target", target)
        added = self.operand("source", source)
        chosen = self.operand("index", index, index.dtype)
        if source.numel():
            runs = walks.scatter_runs(place, dim, chosen, added, shape, rows=True)
            if not runs:
                raise self.wrong(
                    f"target {tuple(target.shape)} has more dimensions than the kernel "
                    "has loops; make it contiguous, or view it with fewer"
                )
            self.do_runs(runs, (added, chosen), (place,), timeout_s)
        return target

    # ---- the parts -------------------------------------------------------------------------------

    def _checked(self, x: torch.Tensor, index: torch.Tensor, dim: int) -> tuple[int, torch.Tensor]:
        """Return dim as a positive number and the index, when they fit the tensor."""
        import torch

        if not -x.dim() <= dim < x.dim():
            raise self.wrong(f"x {tuple(x.shape)} has no dimension {dim}")
        if index.dtype not in (torch.int64, torch.int32):
            raise self.wrong(
                f"index has dtype {index.dtype}; expected torch.int64 or torch.int32; "
                "convert with index.long()"
            )
        size = x.shape[dim]
        if index.numel():
            low, high = (int(v) for v in index.aminmax())
            if low < 0 or high >= size:
                wrong = low if low < 0 else high
                raise self.wrong(
                    f"index {wrong} is out of range; expected 0 to {size - 1}, the "
                    f"places of x {tuple(x.shape)} along dimension {dim}"
                )
        return dim % x.dim(), index

    def _word(self, x: torch.Tensor) -> Operand:
        import torch

        dtype = torch.int32 if x.dtype is torch.int32 else torch.float32
        return self.operand("x", x, dtype)

    def _copied(self, x: torch.Tensor, timeout_s: float) -> torch.Tensor:
        source = self._word(x)
        result = self.result(x.shape, source.tensor.dtype)
        if x.numel():
            # Of the operand: what is copied to CMA memory on the way has other strides.
            runs = walks.copy_runs(
                x.shape, source.address, source.strides, result.address, result.strides
            )
            self.do_runs(runs, (source,), (result,), timeout_s)
        return result.tensor

    def _selected(
        self, x: torch.Tensor, dim: int, index: torch.Tensor, timeout_s: float
    ) -> torch.Tensor:
        """Return ``x.index_select(dim, index)``."""
        dim, index = self._checked(x, index, dim)
        if index.dim() != 1:
            raise self.wrong(
                f"index has shape {tuple(index.shape)}; expected 1 dimension; gather() "
                "takes one of the shape of the result"
            )
        shape = (*x.shape[:dim], index.shape[0], *x.shape[dim + 1 :])
        return self._gathered(walks.select_runs, x, dim, index, shape, timeout_s)

    def _gathered(
        self,
        plan: Any,
        x: torch.Tensor,
        dim: int,
        index: torch.Tensor,
        shape: tuple[int, ...],
        timeout_s: float,
    ) -> torch.Tensor:
        source = self._word(x)
        chosen = self.operand("index", index, index.dtype)
        result = self.result(shape, source.tensor.dtype)
        if result.tensor.numel():
            runs = plan(source, dim, chosen, result, shape)
            self.do_runs(runs, (source, chosen), (result,), timeout_s)
        return result.tensor
