"""Driver of ``scale_stream``: y = gain * x + offset, streamed through the DMA beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pynq_torch import buffers

from .arguments import check_tensor
from .streamed import StreamKernel
from .vadd import deliver, place_for

if TYPE_CHECKING:
    import torch

__all__ = ["ScaleStream"]


class ScaleStream(StreamKernel):
    """``overlay.scale_stream(x, gain, offset)`` scales a float32 tensor."""

    def __call__(
        self,
        x: torch.Tensor,
        gain: float = 1.0,
        offset: float = 0.0,
        out: torch.Tensor | None = None,
        *,
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Return ``gain * x + offset``.

        Parameters
        ----------
        x : torch.Tensor
            float32, any shape, device cpu.
        gain, offset : float
            Rounded to float32.
        out : torch.Tensor, optional
            Receives the result.
        timeout_s : float
            Bound of the transfer and of the wait.

        Returns
        -------
        torch.Tensor
            float32 in CMA memory, or `out`. An empty tensor is returned without a start.
        """
        import torch

        check_tensor(self.cu, "x", x, torch.float32)
        if out is not None:
            check_tensor(self.cu, "out", out, torch.float32, shape=tuple(x.shape))
        if not x.numel():
            return torch.empty(x.shape) if out is None else out
        source = buffers.to_buffer(x, device=self.device)
        place = place_for(out, source, device=self.device)
        sent, received, step = source.reshape(-1), place.reshape(-1), self.packet_bytes // 4
        for part in (slice(begin, begin + step) for begin in range(0, sent.size, step)):
            self.move(sent[part], received[part], timeout_s, gain=float(gain), offset=float(offset))
        return deliver(place, out)

    call: Any = __call__
