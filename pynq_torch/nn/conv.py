"""``pynq_torch.nn.Conv2d``: a convolution that multiplies in int8."""

from __future__ import annotations

from typing import Any, Literal, cast

import torch
from torch.nn import functional

from pynq_torch.kernels.epilogue import BIAS, INT8, INT32, KIND
from pynq_torch.kernels.windows import Window
from pynq_torch.ops import conv_direct
from pynq_torch.ops.conv import Geometry, convolve
from pynq_torch.ops.quantise import Packed
from pynq_torch.ops.units import Units, Vector, finish
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.fallback import place

from .layer import Gradients, QuantisedLayer
from .weights import Weights

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
        torch.nn.Conv2d.__init__(
            self,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )
        self.relu = relu

    @classmethod
    def from_float(cls, module: torch.nn.Conv2d, *, relu: bool = False) -> Conv2d:
        """Return a quantised layer that shares the parameters of a float one.

        Parameters
        ----------
        module : torch.nn.Conv2d
            Its hooks and its mode (training or not) are taken over too.
        relu : bool
            Whether negative results become 0.
        """
        made = cls.__new__(cls)
        made._take_over(module, torch.nn.Conv2d)
        made.relu = relu
        return made

    def forward(
        self, input: torch.Tensor, *, scale: float | None = None, out_scale: float | None = None
    ) -> torch.Tensor:
        """Return the layer's result; see `QuantisedLayer.forward`."""
        left, right, top, bottom = self._reversed_padding_repeated_twice
        if self.padding_mode != "zeros" or left != right or top != bottom:
            # Before the quantisation, which changes neither zeros nor copies of values.
            mode = "constant" if self.padding_mode == "zeros" else self.padding_mode
            input = functional.pad(input, self._reversed_padding_repeated_twice, mode)
        return super().forward(input, scale=scale, out_scale=out_scale)

    @property
    def _symmetric_padding(self) -> tuple[int, int]:
        """The padding of the product itself: (vertical, horizontal)."""
        left, right, top, bottom = self._reversed_padding_repeated_twice
        if self.padding_mode != "zeros" or left != right or top != bottom:
            return 0, 0
        return top, left

    def _check(self, input: torch.Tensor) -> None:
        if input.dim() not in (3, 4) or input.shape[-3] != self.in_channels:
            raise RuntimeError(
                f"{self!r}: the input has shape {tuple(input.shape)}; expected (N, "
                f"{self.in_channels}, H, W) or ({self.in_channels}, H, W)"
            )
        if min(self._geometry(input).out_size) < 1:
            raise RuntimeError(
                f"{self!r}: the input has shape {tuple(input.shape)}, padded by "
                f"{self._symmetric_padding}; expected it to be no smaller than the kernel, "
                f"{self.kernel_size} with dilation {self.dilation}"
            )

    def _geometry(self, input: torch.Tensor) -> Geometry:
        batch = input.shape[0] if input.dim() == 4 else 1
        height, width = input.shape[-2:]
        return Geometry(
            batch,
            self.in_channels,
            height,
            width,
            self.out_channels,
            _pair(self.kernel_size),
            _pair(self.stride),
            self._symmetric_padding,
            _pair(self.dilation),
            self.groups,
        )

    def _matrices(self, weight: torch.Tensor) -> list[torch.Tensor]:
        return [part.reshape(part.shape[0], -1).t() for part in weight.chunk(self.groups)]

    def _product(
        self,
        input: Packed,
        weights: Weights,
        mode: int,
        factors: list[Vector],
        bias: Vector | None,
        on: Units,
    ) -> torch.Tensor:
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
        """Return the result of ``conv2d_i8``, which reads the image as it lies."""
        stride, dilation = _pair(self.stride), _pair(self.dilation)
        scale = factors[0].tensor
        if len(factors) > 1:
            scale = place(torch.cat([memory.alias(f.tensor) for f in factors]))
        batched = values if values.dim() == 4 else values.unsqueeze(0)
        found = conv_direct.convolve(
            batched,
            weights.filters(self.weight.shape),
            Window(stride, self._symmetric_padding, dilation, self.groups),
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
        geometry = self._geometry(input)
        kernels = torch.cat([p.values.t() for p in packed])
        shape = (self.out_channels, self.in_channels // self.groups, *geometry.kernel)
        batched = input if input.dim() == 4 else input.unsqueeze(0)
        sums = functional.conv2d(
            batched.double(),
            kernels.double().view(shape),
            None,
            geometry.stride,
            geometry.padding,
            geometry.dilation,
            self.groups,
        )
        return sums.permute(0, 2, 3, 1)

    def _arrange(self, result: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
        return self._layout(result.permute(0, 3, 1, 2), input)

    def _float(
        self, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
    ) -> torch.Tensor:
        sizes = (self.stride, self._symmetric_padding, self.dilation, self.groups)
        return functional.conv2d(input, weight, bias, *sizes)

    def _gradients(
        self, grad: torch.Tensor, input: torch.Tensor, weight: torch.Tensor, needed: list[bool]
    ) -> Gradients:
        batched = input.dim() == 4
        found = torch.ops.aten.convolution_backward(
            grad if batched else grad.unsqueeze(0),
            input if batched else input.unsqueeze(0),
            weight,
            [self.out_channels],
            self.stride,
            self._symmetric_padding,
            self.dilation,
            False,
            [0, 0],
            self.groups,
            needed,
        )
        to_input = found[0] if batched or found[0] is None else found[0].squeeze(0)
        return (to_input, *found[1:]) if needed[0] else (None, *found[1:])


def _pair(sizes: tuple[int, ...]) -> tuple[int, int]:
    return cast("tuple[int, int]", sizes)
