"""Driver of ``conv2d_f32``: direct convolutions in float32, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pynq_torch.models import tiling

from . import windows
from .arguments import ArgumentError, check_tensor
from .base import Kernel
from .job import Planned, job_in_cma
from .operand import Operand
from .tables.convolution import BIAS, JOB, RELU
from .windows import Window

if TYPE_CHECKING:
    import torch

__all__ = [
    "Conv2dFloat",
    "check_window",
    "pair",
    "plan_forward",
    "plan_grad_input",
    "plan_grad_weight",
]


def plan_forward(
    x: Operand,
    weight: Operand,
    result: Operand,
    window: Window,
    bias: Operand | None = None,
    *,
    relu: bool = False,
    tile: tiling.Tiling | None = None,
) -> Planned:
    """Return the run of a convolution; arguments as in `windows.forward`, `bias` [OC]."""
    settings = windows.forward(x, weight, result, window, tile)
    return _planned(x.address, weight.address, result, bias, settings, relu=relu)


def plan_grad_input(
    grad: Operand,
    weight: Operand,
    result: Operand,
    window: Window,
    bias: Operand | None = None,
) -> Planned:
    """Return the run for the gradient of the input; shapes as in `windows.grad_input`."""
    settings, offset = windows.grad_input(grad, weight, result, window)
    at = weight.address + offset * weight.itemsize
    return _planned(grad.address, at, result, bias, settings)


def plan_grad_weight(x: Operand, grad: Operand, result: Operand, window: Window) -> Planned:
    """Return the run for the gradient of the weight; shapes as in `windows.grad_weight`."""
    settings = windows.grad_weight(x, grad, result, window)
    return _planned(x.address, grad.address, result, None, settings)


def _planned(
    image: int,
    weight: int,
    result: Operand,
    bias: Operand | None,
    settings: tuple[int, ...],
    *,
    relu: bool = False,
) -> Planned:
    mode = (BIAS if bias is not None else 0) | (RELU if relu else 0)
    job = job_in_cma(JOB, (*settings, mode), result.memory.device)
    offset = bias.address if bias is not None else 0
    return [(image, weight, offset, result.address, job.address)], job


def pair(value: int | Sequence[int]) -> tuple[int, int]:
    """Return (vertical, horizontal), for which torch takes one number too."""
    if isinstance(value, int):
        return value, value
    return (value[0], value[0]) if len(value) == 1 else (value[0], value[1])


def check_images(cu: str, dtype: torch.dtype | None, **tensors: Any) -> None:
    """Raise `ArgumentError` unless all have that dtype, four dimensions, and elements."""
    for name, tensor in tensors.items():
        check_tensor(cu, name, tensor, dtype, ndim=4)
        if not tensor.numel():
            raise ArgumentError(f"{cu}: {name} has no elements; expected some", cu)


def check_window(cu: str, x: Any, weight: Any, window: Window) -> tuple[int, int]:
    """Raise `ArgumentError` where a weight does not fit an image; return the result's size."""
    shapes = f"the image has shape {tuple(x.shape)} and the weight {tuple(weight.shape)}"
    if min(*window.stride, *window.dilation, window.groups) < 1 or min(window.padding) < 0:
        raise ArgumentError(
            f"{cu}: {window}; expected stride, dilation and groups of 1 or more, padding of 0 or "
            "more",
            cu,
        )
    if x.shape[1] != weight.shape[1] * window.groups or weight.shape[0] % window.groups:
        raise ArgumentError(
            f"{cu}: {shapes}, with {window.groups} groups; expected (N, C, H, W) and "
            "(OC, C / groups, kh, kw), with OC a multiple of groups",
            cu,
        )
    size = window.out_size(tuple(x.shape[2:]), tuple(weight.shape[2:]))
    if min(size) < 1:
        raise ArgumentError(f"{cu}: {shapes}; expected an image no smaller than the weight", cu)
    return size


class Conv2dFloat(Kernel):
    """``overlay.conv2d_f32(x, weight)`` convolves float32 images, and gives both gradients."""

    expects: ClassVar[tuple[str, ...]] = ("image", "weight", "bias", "result", "job")
    job: ClassVar[tuple[str, ...]] = JOB

    def __call__(
        self,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None = None,
        *,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        relu: bool = False,
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Return ``relu(conv2d(x, weight, bias, ...))``.

        Parameters
        ----------
        x : torch.Tensor
            float32 [N, C, H, W], device cpu; any strides in CMA memory, copied there otherwise.
        weight : torch.Tensor
            float32 [OC, C / groups, kh, kw].
        bias : torch.Tensor, optional
            float32 [OC].
        stride, padding, dilation, groups
            As for torch.nn.functional.conv2d; no padding by words.
        relu : bool
            Whether negative results become 0.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        torch.Tensor
            float32 [N, OC, rows, columns] in CMA memory.

        Raises
        ------
        ArgumentError
            A tensor has another dtype, or the shapes do not fit each other.

        Notes
        -----
        What lies beside the image is no product, so that an infinite weight does not become NaN
        there. An element is off by at most ``(K + 2) * 2**-23`` times the sum of the magnitudes of
        its K products.
        """
        window = Window(pair(stride), pair(padding), pair(dilation), groups)
        check_images(self.cu, None, x=x, weight=weight)
        rows, columns = check_window(self.cu, x, weight, window)
        shape = (x.shape[0], weight.shape[0], rows, columns)
        image, filters = self.operand("x", x), self.operand("weight", weight)
        offset = self.vector("bias", bias, shape=(weight.shape[0],))
        result = self.result(shape)
        tile = self._tile(window, result.shape, weight)
        runs, job = plan_forward(image, filters, result, window, offset, relu=relu, tile=tile)
        return self.run_into(result, runs, (image, filters, offset, job), timeout_s)

    call: Any = __call__

    def grad_input(
        self,
        grad: torch.Tensor,
        weight: torch.Tensor,
        size: Sequence[int],
        *,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Return the gradient of the input, [N, C, *size], given that of the result."""
        window = Window(pair(stride), pair(padding), pair(dilation), groups)
        check_images(self.cu, None, grad=grad, weight=weight)
        shape = (grad.shape[0], weight.shape[1] * groups, *size)
        reads = [self.operand("grad", grad), self.operand("weight", weight)]
        result = self.result(shape)
        self._check_gradient(result.tensor, weight, window, grad)
        runs, job = plan_grad_input(reads[0], reads[1], result, window)
        return self.run_into(result, runs, (*reads, job), timeout_s)

    def grad_weight(
        self,
        x: torch.Tensor,
        grad: torch.Tensor,
        size: Sequence[int],
        *,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Return the gradient of the weight, [OC, C / groups, *size], given that of the result."""
        window = Window(pair(stride), pair(padding), pair(dilation), groups)
        check_images(self.cu, None, x=x, grad=grad)
        reads = [self.operand("x", x), self.operand("grad", grad)]
        result = self.result((grad.shape[1], x.shape[1] // groups, *size))
        self._check_gradient(x, result.tensor, window, grad)
        runs, job = plan_grad_weight(reads[0], reads[1], result, window)
        return self.run_into(result, runs, (*reads, job), timeout_s)

    def _tile(self, window: Window, shape: Sequence[int], weight: Any) -> tiling.Tiling | None:
        """Return the tiles; ``None`` for those of `tiling.tiling`."""
        return None

    def _check_gradient(self, x: Any, weight: Any, window: Window, grad: Any) -> None:
        size = check_window(self.cu, x, weight, window)
        expected = (x.shape[0], weight.shape[0], *size)
        if tuple(grad.shape) != expected:
            raise self.wrong(
                f"grad has shape {tuple(grad.shape)}; expected {expected}, that of the "
                f"result for an image {tuple(x.shape)} and a weight {tuple(weight.shape)}"
            )
