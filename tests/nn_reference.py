"""The arithmetic of quantised layers, written once more with nothing but torch on the CPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional

__all__ = ["quantised_input", "quantised_weight", "reference"]


def quantised_input(x: torch.Tensor, step: float | None) -> tuple[torch.Tensor, float]:
    """int8 and its step."""
    if step is None:
        largest = x.abs().max().item()
        if not largest:
            return torch.zeros(x.shape, dtype=torch.int8), 1.0
        return (x * (127 / largest)).round().to(torch.int8), largest / 127
    return (x * (1 / step)).round().clamp(-128, 127).to(torch.int8), step


def quantised_weight(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """int8, and one float32 step for each output channel (the first dimension)."""
    largest = weight.abs().flatten(1).amax(1)
    zero = largest < 2.0**-110
    factor = torch.where(zero, 0.0, 127 / largest)
    shape = (-1, *[1] * (weight.dim() - 1))
    rounded = (weight * factor.view(shape)).round().to(torch.int8)
    return rounded, torch.where(zero, 1.0, largest / 127)


def reference(
    layer: torch.nn.Module,
    x: torch.Tensor,
    *,
    step: float | None = None,
    out_step: float | None = None,
    relu: bool = False,
) -> torch.Tensor:
    """Return what a layer should: float32, or int8 where `out_step` is given.

    `layer` is a float Linear or Conv2d (padded with zeros); an int8 `x` is in steps of `step`.
    """
    weight, bias = layer.weight.detach().cpu(), layer.bias
    bias = None if bias is None else bias.detach().cpu()
    q, s = (x, step) if x.dtype is torch.int8 else quantised_input(x, step)
    assert s is not None
    w, t = quantised_weight(weight)
    if isinstance(layer, torch.nn.Conv2d):
        sums = functional.conv2d(
            *(q.double(), w.double(), None),
            *(layer.stride, layer.padding, layer.dilation, layer.groups),
        )
        shape: Sequence[int] = (-1, 1, 1)
    else:
        sums, shape = q.double() @ w.double().t(), (-1,)
    assert float(sums.abs().max()) < 2**31
    acc = sums.to(torch.int32)
    if out_step is None:
        y = acc.float() * (t * s).view(shape)
        y = y if bias is None else y + bias.view(shape)
        return y.relu() if relu else y
    if bias is not None:
        acc = acc + (bias.double() / (t.double() * s)).round().to(torch.int32).view(shape)
    factor = (t.double() * (s / out_step)).float()
    y = (acc.float() * factor.view(shape)).round()
    return y.clamp(0 if relu else -128, 127).to(torch.int8)
