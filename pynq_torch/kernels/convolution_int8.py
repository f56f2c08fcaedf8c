"""Drivers of ``conv2d_i8``, ``depthwise_i8`` and ``depthwise_f32``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pynq_torch.models import tiling
from pynq_torch.models.tiling import depthwise_tiling

from . import windows
from .arguments import ArgumentError
from .base import Kernel
from .convolution import Conv2dFloat, check_images, check_window, pair
from .epilogue import INT8, KIND, check_columns, mode_of
from .job import Planned, job_in_cma
from .operand import Operand
from .tables.convolution import JOB
from .windows import Window

if TYPE_CHECKING:
    import torch

__all__ = ["Conv2dInt8", "DepthwiseFloat", "DepthwiseInt8", "check_depthwise", "plan_int8"]


def plan_int8(
    x: Operand,
    weight: Operand,
    result: Operand,
    window: Window,
    mode: int,
    *,
    bias: Operand | None = None,
    scale: Operand | None = None,
    tile: tiling.Tiling | None = None,
) -> Planned:
    """Return the run of an int8 convolution.

    Parameters
    ----------
    x, weight, result : Operand
        As in `windows.forward`; the result of the dtype that `mode` stores.
    window : Window
        Stride, padding, dilation and groups.
    mode : int
        See :mod:`pynq_torch.kernels.epilogue`.
    bias, scale : Operand, optional
        [OC], as `mode` asks for.
    tile : tuple of int, optional
        See `windows.forward`.
    """
    settings = windows.forward(x, weight, result, window, tile)
    columns = [o.address if o is not None else 0 for o in (bias, scale)]
    # Bytes have a port of their own.
    places = (0, result.address) if mode & KIND == INT8 else (result.address, 0)
    job = job_in_cma(JOB, (*settings, mode), result.memory.device)
    return [(x.address, weight.address, *columns, *places, job.address)], job


def check_depthwise(cu: str, window: Window, result: Sequence[int], weight: Any) -> tiling.Tiling:
    """Return the tiles of a depthwise kernel; raise `ArgumentError` where it cannot do the work."""
    kernel = (int(weight.shape[2]), int(weight.shape[3]))
    if weight.shape[1] != 1:
        raise ArgumentError(
            f"{cu}: the weight has shape {tuple(weight.shape)}; expected one channel, (OC, 1, kh, "
            "kw), and as many groups as the image has channels: others are for conv2d",
            cu,
        )
    tile = depthwise_tiling((result[2], result[3]), kernel, window.stride, window.dilation)
    if tile is None:
        raise ArgumentError(
            f"{cu}: the weight is {kernel[0]} x {kernel[1]} with dilation {window.dilation}; "
            f"expected at most {tiling.TAPS} taps within "
            f"{' x '.join(map(str, tiling.DEPTHWISE_PATCH))} cells: larger ones are for conv2d",
            cu,
        )
    return tile


class DepthwiseFloat(Conv2dFloat):
    """``overlay.depthwise_f32(x, weight, groups=C)`` convolves each channel by itself.

    The arguments are those of `Conv2dFloat`; the weight is [OC, 1, kh, kw].
    """

    def _tile(self, window: Window, shape: Sequence[int], weight: Any) -> tiling.Tiling:
        return check_depthwise(self.cu, window, shape, weight)

    def grad_input(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Refuse: gradients are for ``conv2d_f32``."""
        raise ArgumentError(
            f"{self.cu} has no gaps between elements and adds up over no channels; expected a call "
            "of conv2d_f32, which computes gradients",
            self.cu,
        )

    grad_weight = grad_input


class Conv2dInt8(Kernel):
    """``overlay.conv2d_i8(x, weight)`` convolves int8 images exactly."""

    expects: ClassVar[tuple[str, ...]] = (
        "image",
        "weight",
        "bias",
        "scale",
        "result",
        "steps",
        "job",
    )
    job: ClassVar[tuple[str, ...]] = JOB

    def __call__(
        self,
        x: torch.Tensor,
        weight: torch.Tensor,
        *,
        bias: torch.Tensor | None = None,
        scale: torch.Tensor | None = None,
        relu: bool = False,
        dtype: torch.dtype | None = None,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Return a convolution, and what becomes of it on the way to memory.

        Parameters
        ----------
        x : torch.Tensor
            int8 [N, C, H, W], device cpu; any strides in CMA memory, copied there otherwise.
        weight : torch.Tensor
            int8 [OC, C / groups, kh, kw].
        bias : torch.Tensor, optional
            [OC]: int32, added to the sums; float32, added after scaling, with float32 results.
        scale : torch.Tensor, optional
            float32 [OC]. Needed for int8 and float32 results, refused for int32.
        relu : bool
            Whether negative results become 0.
        dtype : torch.dtype, optional
            Of the result: torch.int32 (default), torch.int8 or torch.float32.
        stride, padding, dilation, groups
            As for torch.nn.functional.conv2d.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        torch.Tensor
            `dtype` [N, OC, rows, columns] in CMA memory, to the bits of the formulas of `Gemm`.

        Raises
        ------
        ArgumentError
            A tensor has another dtype, or the shapes do not fit each other.
        """
        import torch

        kind = torch.int32 if dtype is None else dtype
        mode = mode_of(kind, bias=bias is not None, relu=relu)
        window = Window(pair(stride), pair(padding), pair(dilation), groups)
        check_images(self.cu, torch.int8, x=x, weight=weight)
        size = check_window(self.cu, x, weight, window)
        check_columns(self.cu, mode, int(weight.shape[0]), bias, scale)
        shape = (x.shape[0], weight.shape[0], *size)
        tile = self._tile(window, shape, weight)
        how = {"window": window, "mode": mode, "tile": tile}
        return self._convolved(x, weight, (bias, scale), shape, kind, timeout_s, **how)

    call: Any = __call__

    def _convolved(
        self,
        x: torch.Tensor,
        weight: torch.Tensor,
        columns: tuple[torch.Tensor | None, torch.Tensor | None],
        shape: Sequence[int],
        kind: torch.dtype,
        timeout_s: float,
        **how: Any,
    ) -> torch.Tensor:
        import torch

        image, filters = (
            self.operand(name, t, torch.int8) for name, t in (("x", x), ("weight", weight))
        )
        bias, scale = columns
        offset = self.vector("bias", bias, None if bias is None else bias.dtype)
        factor = self.vector("scale", scale)
        result = self.result(shape, kind)
        runs, job = plan_int8(image, filters, result, bias=offset, scale=factor, **how)
        return self.run_into(result, runs, (image, filters, offset, factor, job), timeout_s)

    def _tile(self, window: Window, shape: Sequence[int], weight: Any) -> tiling.Tiling | None:
        """Return the tiles; ``None`` for those of `tiling.tiling`."""
        return None


class DepthwiseInt8(Conv2dInt8):
    """``overlay.depthwise_i8(x, weight, groups=C)`` convolves each int8 channel by itself.

    The arguments are those of `Conv2dInt8`; the weight is [OC, 1, kh, kw].
    """

    def _tile(self, window: Window, shape: Sequence[int], weight: Any) -> tiling.Tiling:
        return check_depthwise(self.cu, window, shape, weight)
