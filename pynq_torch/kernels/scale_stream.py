"""Driver of ``scale_stream``: y = gain * x + offset, streamed through the DMA beside it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from pynq_torch import buffers
from pynq_torch.errors import KernelError
from pynq_torch.waits.transfers import transfer

from .arguments import check_tensor
from .base import Kernel
from .vadd import deliver, place_for

if TYPE_CHECKING:
    import torch

__all__ = ["ScaleStream"]


class ScaleStream(Kernel):
    """``overlay.scale_stream(x, gain, offset)`` scales a float32 tensor.

    Attributes
    ----------
    dma : pynq.lib.DMA or None
        The DMA at both ends of its streams; set by `pynq_torch.load` where the overlay has one.
    """

    _dma: Any = None

    @property
    def dma(self) -> Any:
        """The DMA that feeds the kernel and takes its results."""
        return self._dma() if isinstance(self._dma, weakref.ref) else self._dma

    @dma.setter
    def dma(self, value: Any) -> None:
        self._dma = value

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
        dma = self.dma
        if dma is None:
            raise KernelError(
                f"{self.cu} has no DMA: set overlay.{self.cu}.dma to the DMA on its streams",
                self.cu,
            )
        source = buffers.to_buffer(x, device=self.device)
        place = place_for(out, source, device=self.device)
        limit = int(dma.buffer_max_size) // 4
        sent, received = source.reshape(-1), place.reshape(-1)
        for begin in range(0, sent.size, limit):
            part = slice(begin, min(begin + limit, sent.size))
            run = self.start(gain=float(gain), offset=float(offset))
            try:
                transfer(dma, send=sent[part], recv=received[part], timeout_s=timeout_s)
            except BaseException:
                self.abandon()
                raise
            run.wait(timeout_s)
        return deliver(place, out)

    call: Any = __call__
