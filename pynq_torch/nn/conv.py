"""``pynq_torch.nn.Conv2d``: a convolution that multiplies in int8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import torch
from torch.nn import functional

from pynq_torch.kernels.epilogue import BIAS, INT8, INT32, KIND
from pynq_torch.kernels.windows import Window
from pynq_torch.ops import conv_direct
from pynq_torch.ops.conv import Geometry, convolve
from pynq_torch.ops.quantise import Packed
from pynq_torch.ops.units import Vector, finish
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.fallback import place

from .layer import Gradients, Operands, QuantisedLayer
from .weights import Weights

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Conv2d"]


class Conv2d(QuantisedLayer, torch.nn.Conv2d):
    """``torch.nn.Conv2d`` with int8 weights, one scale an output channel; see `QuantisedLayer`.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode
        As for torch's.
    device, dtype
        Of the parameters, as for torch's.
    relu : bool
        Whether negative results become 0, which costs nothing here.
    """

    operator = "pynq_torch::conv2d"
    kind = "nn.Conv2d"
    float_class = torch.nn.Conv2d

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: str | int | tuple[int, int] = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: Literal["zeros", "reflect", "replicate", "circular"] = "zeros",
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        relu: bool = False,
    ) -> None:
        sizes = (in_channels, out_channels, kernel_size, stride, padding, dilation, groups)
        torch.nn.Conv2d.__init__(self, *sizes, bias, padding_mode, device, dtype)
        self.relu = relu

    def forward(
        self, input: torch.Tensor, *, scale: float | None = None, out_scale: float | None = None
    ) -> torch.Tensor:
        """Return the layer's result; see `QuantisedLayer.forward`."""
        if self._symmetric_padding is None:
            # Before the quantisation, which changes neither zeros nor copies of values.
            mode = "constant" if self.padding_mode == "zeros" else self.padding_mode
            input = functional.pad(input, self._reversed_padding_repeated_twice, mode)
        return super().forward(input, scale=scale, out_scale=out_scale)

    @property
    def _symmetric_padding(self) -> tuple[int, int] | None:
        """Zeros above and below, left and right; ``None`` for any other padding."""
        left, right, top, bottom = self._reversed_padding_repeated_twice
        symmetric = self.padding_mode == "zeros" and left == right and top == bottom
        return (top, left) if symmetric else None

    @property
    def _sizes(self) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int], int]:
        """Stride, padding, dilation and groups of the product, whose input may be padded before."""
        padding = self._symmetric_padding or (0, 0)
        return _pair(self.stride), padding, _pair(self.dilation), self.groups

    def _check(self, input: torch.Tensor) -> None:
        if input.dim() not in (3, 4) or input.shape[-3] != self.in_channels:
            raise RuntimeError(
                f"{self!r}: the input has shape {tuple(input.shape)}; expected (N, "
                f"{self.in_channels}, H, W) or ({self.in_channels}, H, W)"
            )
        if min(self._geometry(input).out_size) < 1:
            raise RuntimeError(
                f"{self!r}: the input has shape {tuple(input.shape)}, padded by "
                f"{self._sizes[1]}; expected it to be no smaller than the kernel, "
                f"{self.kernel_size} with dilation {self.dilation}"
            )

    def _geometry(self, input: torch.Tensor) -> Geometry:
        batch = input.shape[0] if input.dim() == 4 else 1
        height, width = input.shape[-2:]
        channels, kernel = self.out_channels, _pair(self.kernel_size)
        return Geometry(batch, self.in_channels, height, width, channels, kernel, *self._sizes)

    def _matrices(self, weight: torch.Tensor) -> list[torch.Tensor]:
        return [part.reshape(part.shape[0], -1).t() for part in weight.chunk(self.groups)]

    def _product(self, *given: Unpack[Operands]) -> torch.Tensor:
        input, weights, mode, factors, bias, _ = given
        if self._is_direct():
            return self._directly(input.values, weights, mode, factors, bias)
        values = input.values
        batched = values if values.dim() == 4 else values.unsqueeze(0)
        geometry, packed = self._geometry(batched), Packed(batched, 1.0)
        offset = None if bias is None else bias.tensor
        if mode & KIND == INT8 and self.groups > 1:
            # Rows of int8 are whole words, which the channels of a group need not be.
            sums = convolve(packed, weights.packed, geometry, mode=INT32, bias=offset)
            scales = torch.cat([memory.alias(f.tensor) for f in factors])
            last = memory.alias(sums).permute(0, 2, 3, 1)
            found = place(finish(last, mode & ~BIAS, scales, None)).permute(0, 3, 1, 2)
        else:
            found = convolve(
                packed,
                weights.packed,
                geometry,
                mode=mode & ~BIAS,
                factors=[f.tensor for f in factors],
                bias=offset,
            )
        return self._layout(found, values)

    def _is_direct(self) -> bool:
        return conv_direct.is_direct()

    def _directly(
        self,
        values: torch.Tensor,
        weights: Weights,
        mode: int,
        factors: list[Vector],
        bias: Vector | None,
    ) -> torch.Tensor:
        """Return the result of ``conv2d_i8``, which reads the image where it is."""
        scale = factors[0].tensor
        if len(factors) > 1:
            scale = place(torch.cat([memory.alias(f.tensor) for f in factors]))
        found = conv_direct.convolve(
            values if values.dim() == 4 else values.unsqueeze(0),
            weights.filters(self.weight.shape),
            Window(*self._sizes),
            mode=mode,
            scale=scale,
            bias=None if bias is None else bias.tensor,
        )
        assert not isinstance(found, Declined)  # the overlay has the kernel, and sizes were checked
        return found if values.dim() == 4 else found.squeeze(0)

    def _layout(self, result: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
        """Return a batched result in the layout and with the dimensions of the input."""
        if input.dim() == 3:
            return result.squeeze(0).contiguous()
        last = input.is_contiguous(memory_format=torch.channels_last)
        kept = last and not input.is_contiguous()
        return result.contiguous(
            memory_format=torch.channels_last if kept else torch.contiguous_format
        )

    def _sums(self, input: torch.Tensor, packed: list[Packed]) -> torch.Tensor:
        kernels = torch.cat([p.values.t() for p in packed])
        kernels = kernels.view(self.out_channels, -1, *_pair(self.kernel_size))
        batched = input if input.dim() == 4 else input.unsqueeze(0)
        return self._float(batched.double(), kernels.double(), None).permute(0, 2, 3, 1)

    def _arrange(self, result: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
        return self._layout(result.permute(0, 3, 1, 2), input)

    def _float(
        self, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
    ) -> torch.Tensor:
        return functional.conv2d(input, weight, bias, *self._sizes)

    def _gradients(
        self, grad: torch.Tensor, input: torch.Tensor, weight: torch.Tensor, needed: list[bool]
    ) -> Gradients:
        batched = input.dim() == 4
        found = torch.ops.aten.convolution_backward(
            grad if batched else grad.unsqueeze(0),
            input if batched else input.unsqueeze(0),
            weight,
            [self.out_channels],
            *self._sizes[:3],
            False,
            [0, 0],
            self.groups,
            needed,
        )
        to_input = found[0] if batched or found[0] is None else found[0].squeeze(0)
        return (to_input, *found[1:]) if needed[0] else (None, *found[1:])


def _pair(sizes: tuple[int, ...]) -> tuple[int, int]:
    return cast("tuple[int, int]", sizes)
