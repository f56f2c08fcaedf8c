"""Drivers of the kernels for 8-bit images: the 3x3 filters and ``histogram``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pynq_torch import buffers

from .arguments import check_tensor
from .base import Kernel
from .streamed import StreamKernel

if TYPE_CHECKING:
    import torch

__all__ = ["Filter3x3", "Histogram"]

#: Pixels of a line buffer, in ``hw/include/lines3x3.hpp``.
MAX_WIDTH = 1920


class Filter3x3(StreamKernel):
    """``overlay.sobel(image)`` marks edges, ``overlay.gauss(image)`` smooths.

    ``sobel_fixed`` and ``gauss_fixed`` do so in fixed point.

    Pixels outside the image count as 0, as with ``torch.nn.functional.conv2d(..., padding=1)``.
    """

    expects: ClassVar[tuple[str, ...]] = ("columns", "rows")

    def __call__(self, image: torch.Tensor, *, timeout_s: float = 10.0) -> torch.Tensor:
        """Return the filtered image.

        Parameters
        ----------
        image : torch.Tensor
            uint8, height x width, device cpu; at most `MAX_WIDTH` pixels a row.
        timeout_s : float
            Bound of the transfer and of the wait.

        Returns
        -------
        torch.Tensor
            uint8, the same shape, in CMA memory.
        """
        import torch

        check_tensor(self.cu, "image", image, torch.uint8, ndim=2)
        height, width = image.shape
        if width > MAX_WIDTH:
            raise self.wrong(
                f"image has rows of {width} pixels; expected at most {MAX_WIDTH}, what a line "
                "buffer holds. Cut it into parts that overlap by a pixel on each side"
            )
        return self.through("image", image, timeout_s, columns=width, rows=height)

    call: Any = __call__


class Histogram(Kernel):
    """``overlay.histogram(values)`` counts how often each byte occurs."""

    expects: ClassVar[tuple[str, ...]] = ("values", "counts", "n")

    def __call__(self, values: torch.Tensor, *, timeout_s: float = 10.0) -> torch.Tensor:
        """Return the counts of the 256 values.

        Parameters
        ----------
        values : torch.Tensor
            uint8, any shape, device cpu.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        torch.Tensor
            int32, 256 counts, in CMA memory; zeros for an empty tensor, without a start.
        """
        import torch

        check_tensor(self.cu, "values", values, torch.uint8)
        if not values.numel():
            return torch.zeros(256, dtype=torch.int32)
        source = buffers.to_buffer(values, device=self.device)
        counts = buffers.empty(256, torch.int32, device=self.device)
        self.start(values=source, counts=counts, n=source.size).wait(timeout_s)
        return buffers.as_tensor(counts)

    call: Any = __call__
