"""Driver of ``vadd``: c = a + b in float32, any shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pynq_torch import buffers

from .arguments import check_tensor
from .base import Kernel

if TYPE_CHECKING:
    import torch

__all__ = ["Vadd"]


class Vadd(Kernel):
    """``overlay.vadd(a, b)`` adds two float32 tensors of the same shape."""

    expects: ClassVar[tuple[str, ...]] = ("a", "b", "c", "n")

    def __call__(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        out: torch.Tensor | None = None,
        *,
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Return ``a + b``.

        Parameters
        ----------
        a, b : torch.Tensor
            float32, the same shape, device cpu. Contiguous tensors in CMA memory are used as they
            are; others are copied there (non-contiguous ones become contiguous).
        out : torch.Tensor, optional
            Receives the sum; a contiguous one in CMA memory without a copy.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        torch.Tensor
            float32 in CMA memory, or `out`. Empty tensors give an empty one without a start.
        """
        import torch

        check_tensor(self.cu, "a", a, torch.float32)
        check_tensor(self.cu, "b", b, torch.float32, shape=tuple(a.shape))
        if out is not None:
            check_tensor(self.cu, "out", out, torch.float32, shape=tuple(a.shape))
        if not a.numel():
            return torch.empty(a.shape) if out is None else out
        left, right = (buffers.to_buffer(t, device=self.device) for t in (a, b))
        place = place_for(out, left, right, device=self.device)
        self.start(a=left, b=right, c=place, n=a.numel()).wait(timeout_s)
        return deliver(place, out)

    call: Any = __call__


def place_for(out: torch.Tensor | None, *sources: Any, device: Any) -> Any:
    """Return `out` in CMA memory, or a new float32 buffer where the kernel cannot write to it."""
    place = buffers.buffer_of(out) if out is not None else None
    if place is None or not place.flags.c_contiguous or any(shifted(place, s) for s in sources):
        return buffers.empty(sources[0].shape, "float32", device=device)
    return place


def shifted(place: Any, source: Any) -> bool:
    """Whether writing `place` in order would change elements of `source` not read yet.

    At the same address each element is read before it is written.
    """
    begin, other = int(place.device_address), int(source.device_address)
    return begin != other and begin < other + source.nbytes and other < begin + place.nbytes


def deliver(place: Any, out: torch.Tensor | None) -> torch.Tensor:
    """Return the tensor over `place`, or `out` with its values."""
    result = buffers.as_tensor(place, None if out is None else out.dtype)
    if out is None:
        return result
    if out.data_ptr() != result.data_ptr():
        out.copy_(result)
    return out
