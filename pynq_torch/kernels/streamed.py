"""The driver of a kernel between the two channels of a DMA."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from pynq_torch import buffers
from pynq_torch.errors import KernelError
from pynq_torch.waits.transfers import transfer

from .base import Kernel

if TYPE_CHECKING:
    import torch

__all__ = ["StreamKernel"]


class StreamKernel(Kernel):
    """A kernel with one stream in and one out, a DMA at both ends."""

    _dma: Any = None

    @property
    def dma(self) -> Any:
        """The DMA that feeds the kernel; set by `pynq_torch.load` where the overlay has one."""
        return self._dma() if isinstance(self._dma, weakref.ref) else self._dma

    @dma.setter
    def dma(self, value: Any) -> None:
        self._dma = value

    @property
    def packet_bytes(self) -> int:
        """Bytes of the longest packet that the DMA moves.

        Raises
        ------
        KernelError
            The kernel has no DMA.
        """
        if self.dma is None:
            raise KernelError(
                f"{self.cu} has no DMA: set overlay.{self.cu}.dma to the DMA on its streams",
                self.cu,
            )
        return int(self.dma.buffer_max_size)

    def move(self, sent: Any, received: Any, timeout_s: float, **arguments: Any) -> None:
        """Do one run: start, send a packet, receive one, and wait.

        Parameters
        ----------
        sent, received : PynqBuffer
            The packets.
        timeout_s : float
            Bound of the transfer, and of the wait.
        **arguments
            As for `start`.
        """
        run = self.start(**arguments)
        try:
            transfer(self.dma, send=sent, recv=received, timeout_s=timeout_s)
        except BaseException:
            self.abandon()
            raise
        run.wait(timeout_s)

    def through(
        self, name: str, tensor: torch.Tensor, timeout_s: float, **arguments: Any
    ) -> torch.Tensor:
        """Send a tensor as one packet and return what comes back, of the same shape and dtype.

        Parameters
        ----------
        name : str
            The tensor's, for messages.
        tensor : torch.Tensor
            On the CPU. An empty one comes back without a run.
        timeout_s, **arguments
            See `move`.

        Raises
        ------
        ArgumentError
            The tensor is longer than a packet of the DMA.
        """
        import torch

        if not tensor.numel():
            return torch.empty_like(tensor)
        if tensor.nbytes > self.packet_bytes:
            raise self.wrong(
                f"{name} has {tensor.nbytes} bytes; expected at most {self.packet_bytes}, one "
                "transfer of the DMA. Pass it in parts"
            )
        source = buffers.to_buffer(tensor, device=self.device)
        result = buffers.empty(tensor.shape, tensor.dtype, device=self.device)
        self.move(source.reshape(-1), result.reshape(-1), timeout_s, **arguments)
        return buffers.as_tensor(result, tensor.dtype)
