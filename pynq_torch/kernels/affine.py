"""Drivers of the kernels of the lesson on interfaces: y = gain * x + offset in five ways.

``affine_dma`` is driven as ``scale_stream`` is, see `ScaleStream`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pynq_torch import buffers
from pynq_torch.errors import KernelError
from pynq_torch.waits import wait, wait_async
from pynq_torch.waits.transfers import transfer

from .arguments import check_tensor
from .base import Kernel, KernelStart
from .operand import Operand, float_bits

if TYPE_CHECKING:
    import torch

__all__ = ["AffineDmas", "AffineLite", "AffineMaxi"]


class AffineLite(Kernel):
    """``overlay.affine_lite(x, gain, offset)``: the host writes `x` into registers, word by word.

    Attributes
    ----------
    capacity : int
        Elements that the registers hold.
    """

    @property
    def capacity(self) -> int:
        """Elements that the registers hold."""
        return self._by_name["x"].nbytes // 4

    def __call__(
        self, x: torch.Tensor, gain: float = 1.0, offset: float = 0.0, *, timeout_s: float = 10.0
    ) -> torch.Tensor:
        """Return ``gain * x + offset``.

        Parameters
        ----------
        x : torch.Tensor
            float32, any shape, device cpu. More than `capacity` elements take several runs.
        gain, offset : float
            Rounded to float32.
        timeout_s : float
            Bound of the wait for one run.

        Returns
        -------
        torch.Tensor
            float32, in ordinary memory: nothing here needs CMA.
        """
        import torch

        check_tensor(self.cu, "x", x, torch.float32)
        source = x.detach().reshape(-1).numpy()
        result = np.empty(source.size, np.float32)
        for begin in range(0, source.size, self.capacity):
            part = source[begin : begin + self.capacity]
            self.start(x=part, gain=float(gain), offset=float(offset), n=part.size).wait(timeout_s)
            result[begin : begin + part.size] = self.read_memory("y", part.size, "f4")
        return torch.from_numpy(result).reshape(x.shape)

    call: Any = __call__


class AffineMaxi(Kernel):
    """``overlay.affine_maxi(x, gain, offset)``: the kernel reads and writes memory itself."""

    def __call__(
        self, x: torch.Tensor, gain: float = 1.0, offset: float = 0.0, *, timeout_s: float = 10.0
    ) -> torch.Tensor:
        """Return ``gain * x + offset``, asking the unit again and again whether it has finished.

        Parameters
        ----------
        x : torch.Tensor
            float32, any shape, device cpu; contiguous in CMA memory it is read as it lies.
        gain, offset : float
            Rounded to float32.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        torch.Tensor
            float32 in CMA memory.
        """
        run, result = self._started(x, gain, offset)
        if run is not None:
            run.wait(timeout_s)
        return result.tensor

    call: Any = __call__

    async def by_interrupt(
        self, x: torch.Tensor, gain: float = 1.0, offset: float = 0.0, *, timeout_s: float = 10.0
    ) -> torch.Tensor:
        """Return the same, sleeping until the unit's interrupt: ``await unit.by_interrupt(x)``.

        Other coroutines run meanwhile. Arguments as for a call.
        """
        run, result = self._started(x, gain, offset)
        if run is not None:
            try:
                await wait_async(self, timeout_s)
            except BaseException:
                self.abandon()
                raise
        return result.tensor

    def _started(
        self, x: torch.Tensor, gain: float, offset: float
    ) -> tuple[KernelStart | None, Operand]:

        source = self.operand("x", x.contiguous())
        result = self.result(x.shape)
        if not x.numel():
            return None, result
        values = (source.address, result.address, float_bits(gain), float_bits(offset), x.numel())
        memory = (source.memory, result.memory)
        return self.start_raw(values, held=[source], flush=memory, results=memory[1:]), result


class AffineDmas(Kernel):
    """``overlay.affine_dmas(x, gains, offset)``: two streams from memory, each through a DMA.

    Attributes
    ----------
    dmas : list of pynq.lib.DMA
        Those on its streams: one that sends `x` and takes the results, one that sends the gains.
        Set by `pynq_torch.load`.
    """

    dmas: list[Any] | None = None

    def __call__(
        self,
        x: torch.Tensor,
        gains: torch.Tensor,
        offset: float = 0.0,
        *,
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Return ``gains * x + offset``.

        Parameters
        ----------
        x, gains : torch.Tensor
            float32, the same shape, device cpu.
        offset : float
            Rounded to float32.
        timeout_s : float
            Bound of each transfer and wait.

        Returns
        -------
        torch.Tensor
            float32 in CMA memory.

        Raises
        ------
        KernelError
            The overlay has no two DMAs on its streams.
        """
        import torch

        check_tensor(self.cu, "x", x, torch.float32)
        check_tensor(self.cu, "gains", gains, torch.float32, shape=tuple(x.shape))
        both, feeds = self._roles()
        result = buffers.empty(x.shape, torch.float32, device=self.device)
        sent, weights = (buffers.to_buffer(t, device=self.device).reshape(-1) for t in (x, gains))
        received = result.reshape(-1)
        limit = min(int(dma.buffer_max_size) for dma in (both, feeds)) // 4
        for begin in range(0, received.size, limit):
            part = slice(begin, min(begin + limit, received.size))
            run = self.start(offset=float(offset))
            try:
                # Armed first: without gains the kernel takes no sample, and `transfer` waits.
                feeds.sendchannel.transfer(weights[part])
                transfer(both, send=sent[part], recv=received[part], timeout_s=timeout_s)
                wait(feeds.sendchannel, timeout_s=timeout_s)
            except BaseException:
                self.abandon()
                raise
            run.wait(timeout_s)
        return buffers.as_tensor(result)

    call: Any = __call__

    def _roles(self) -> tuple[Any, Any]:
        """Return the DMA that also receives, and the one that only sends."""
        found = self.dmas or []
        both = [dma for dma in found if dma.recvchannel is not None]
        feeds = [dma for dma in found if dma.recvchannel is None]
        if len(both) != 1 or len(feeds) != 1:
            raise KernelError(
                f"{self.cu} has {len(found)} DMAs; expected two on its streams, one of which does "
                f"not receive: set overlay.{self.cu}.dmas",
                self.cu,
            )
        return both[0], feeds[0]
