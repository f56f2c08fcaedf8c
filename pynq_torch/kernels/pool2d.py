"""Driver of ``pool2d_f32``: maxima and averages over windows of images, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .base import Kernel
from .operand import Operand, word
from .tables.pooling import AVERAGE, BACKWARD, BAND, COUNT_PAD, MAX, TILE

if TYPE_CHECKING:
    import torch

__all__ = ["Pool2d", "Window", "adaptive", "plan", "pooled"]

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Window:
    """How windows lie on an image; all pairs are (vertical, horizontal).

    Attributes
    ----------
    kernel, stride, padding, dilation : tuple of int
        As in `torch.nn.MaxPool2d`.
    divisor : int
        What an average divides by; 0 for the pixels in the window.
    """

    kernel: Pair
    stride: Pair
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    divisor: int = 0


def pooled(window: Window, size: Sequence[int], ceil_mode: bool = False) -> Pair:
    """Return rows and columns of the output.

    With `ceil_mode` a window may begin inside the image and end beyond its padding, as in
    ``pooling_output_shape`` of ATen/native/Pool.h.
    """
    outs = []
    for n, k, s, p, d in zip(
        size, window.kernel, window.stride, window.padding, window.dilation, strict=True
    ):
        out = (n + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
        outs.append(out - 1 if ceil_mode and (out - 1) * s >= n + p else out)
    return outs[0], outs[1]


def adaptive(size: Pair, out: Pair) -> Window:
    """Return the largest window and step of an adaptive average, which tiles have to hold."""
    kernel = tuple(-(-n // o) + 1 for n, o in zip(size, out, strict=True))
    step = tuple(-(-n // o) for n, o in zip(size, out, strict=True))
    return Window((kernel[0], kernel[1]), (step[0], step[1]))


@lru_cache(maxsize=512)
def _tile(window: Window, size: Pair, out: Pair) -> Pair | None:
    """Return the outputs of a tile so that what its windows see fits on chip, ``None`` if none."""
    spans = [d * (k - 1) + 1 for d, k in zip(window.dilation, window.kernel, strict=True)]
    height = min(size[0], spans[0])
    columns = min(out[1], TILE)
    if height * min(size[1], (columns - 1) * window.stride[1] + spans[1]) > BAND:
        columns = min(columns, (BAND // height - spans[1]) // window.stride[1] + 1)
        if columns < 1:
            return None
    width = min(size[1], (columns - 1) * window.stride[1] + spans[1])
    rows = out[0] if size[0] * width <= BAND else (BAND // width - spans[0]) // window.stride[0] + 1
    return max(1, min(out[0], TILE // columns, rows)), columns


def plan(
    op: int,
    source: Operand,
    result: Operand,
    indices: Operand | None,
    window: Window,
) -> list[tuple[int, ...]]:
    """Return the registers of the run; empty where a window is too large for the chip.

    Parameters
    ----------
    op : int
        Of `pynq_torch.kernels.tables.pooling`.
    source, result : Operand
        Float32 [N, C, H, W] or [C, H, W]: input and output, or, backward, the gradients of the
        output and of the input.
    indices : Operand or None
        int64, of the output's shape; ``None`` for averages.
    window : Window
        For an adaptive average that of `adaptive`.
    """
    inputs, outputs = (result, source) if op & BACKWARD else (source, result)
    height, width = inputs.shape[-2:]
    out = (outputs.shape[-2], outputs.shape[-1])
    tile = (1, 1) if op & BACKWARD else _tile(window, (height, width), out)
    if tile is None:
        return []
    flat = len(inputs.shape) == 3
    batch, channels = (1, inputs.shape[0]) if flat else inputs.shape[:2]
    places = (source, result, indices or result)
    strides = [(0, *o.strides) if flat else o.strides for o in places]
    return [
        (
            *(o.address for o in places),
            *(op, batch, channels, height, width, *out),
            *window.kernel,
            *window.stride,
            *window.padding,
            *window.dilation,
            word(window.divisor),
            *tile,
            *strides[0],
            *strides[1],
            *strides[2],
        )
    ]


class Pool2d(Kernel):
    """``overlay.pool2d_f32_0(images, 2)`` takes the maximum over windows of 2x2 pixels."""

    def __call__(
        self,
        images: torch.Tensor,
        kernel: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        *,
        average: bool = False,
        ceil_mode: bool = False,
        timeout_s: float = 10.0,
    ) -> tuple[torch.Tensor, torch.Tensor] | torch.Tensor:
        """Pool images over windows.

        Parameters
        ----------
        images : torch.Tensor
            float32 [N, C, H, W] or [C, H, W] on the CPU, any strides; used as it lies in CMA
            memory, copied there otherwise.
        kernel, stride, padding : int or pair of int
            As in `torch.nn.functional.max_pool2d`.
        average : bool
            Averages, the padding counted, in place of maxima.
        ceil_mode : bool
            Whether a window may end beyond the padding.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        torch.Tensor or tuple of torch.Tensor
            Averages; or maxima, and int64 indices of theirs in each plane.

        Raises
        ------
        ArgumentError
            No float32 images, or windows that do not fit them.
        """
        import torch

        source = self.operand("images", images)
        window = Window(_pair(kernel), _pair(kernel if stride is None else stride), _pair(padding))
        shape = self._shape(images, window, ceil_mode)
        result = self.result(shape)
        index = None if average else self.result(shape, torch.int64)
        op = AVERAGE | COUNT_PAD if average else MAX
        runs = plan(op, source, result, index, window)
        if not runs:
            raise self.wrong(f"{TOO_WIDE}: use smaller ones")
        self.do_runs(runs, (source,), (result, index), timeout_s)
        return result.tensor if index is None else (result.tensor, index.tensor)

    call: Any = __call__

    def _shape(self, images: torch.Tensor, window: Window, ceil_mode: bool) -> tuple[int, ...]:
        """Return the shape of the result, when the windows fit the images."""
        if images.dim() not in (3, 4) or not images.numel():
            raise self.wrong(
                f"images has shape {tuple(images.shape)}; expected [N, C, H, W] or "
                "[C, H, W] with at least one pixel"
            )
        if reason := misfit(window):
            raise self.wrong(f"{reason}; choose others")
        shape = (*images.shape[:-2], *pooled(window, images.shape[-2:], ceil_mode))
        if min(shape) < 1:
            raise self.wrong(
                f"windows of {window.kernel} pixels give {shape[-2:]} outputs of an "
                f"image of {tuple(images.shape[-2:])}; expected at least one: use smaller ones"
            )
        return shape


TOO_WIDE = f"one window sees more than the {BAND} pixels that the kernel has room for"


def misfit(window: Window) -> str:
    """Say what is wrong with a window, an empty text if nothing is; torch's own rules."""
    if min(*window.kernel, *window.stride, *window.dilation) < 1:
        return (
            f"window {window.kernel}, stride {window.stride} and dilation {window.dilation}; "
            "expected at least 1 of each"
        )
    for k, p in zip(window.kernel, window.padding, strict=True):
        if not 0 <= p <= k // 2:  # of the window, whatever its dilation
            return f"padding {window.padding}; expected at most half of the window {window.kernel}"
    return ""


def _pair(value: int | Sequence[int]) -> Pair:
    if isinstance(value, int):
        return value, value
    return (value[0], value[-1])
