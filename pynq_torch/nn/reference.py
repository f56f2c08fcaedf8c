"""What a quantised layer returns, worked out on the CPU: the same bits as from the PL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from pynq_torch.ops.linear import MAX_EXACT_K
from pynq_torch.ops.quantise import Packed

from .arithmetic import factor, finish, mode_of, overflows, requantisation, steps

if TYPE_CHECKING:
    from .layer import QuantisedLayer

__all__ = ["reference"]


def reference(
    layer: QuantisedLayer,
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    packed: list[Packed] | None,
    scale: float | None,
    out_scale: float | None,
) -> torch.Tensor:
    """Return the result of a layer.

    Parameters
    ----------
    layer : QuantisedLayer
        Which arithmetic; its parameters are not read.
    input, weight, bias : torch.Tensor
        On the CPU.
    packed : list of Packed or None
        The weight in int8, one matrix a group, on the CPU; ``None`` where int8 cannot hold it.
    scale, out_scale : float or None
        See `QuantisedLayer.forward`.
    """
    found: tuple[torch.Tensor, float] | None = None
    if packed is not None and input.numel():
        found = steps(input, layer._in_scale) if scale is None else (input, scale)
    if packed is not None and found is not None:
        top, depth = max(p.top for p in packed), packed[0].values.shape[0]
        found = None if overflows(top, found[1], depth) else found
    if packed is None or found is None:
        if scale is not None:
            input = input.to(weight.dtype) * scale
        result = layer._float(input, weight, bias)
        return result.relu() if layer.relu else result
    values, scale = found
    scales = torch.cat([p.scale for p in packed])
    depth = packed[0].values.shape[0]
    sums = layer._sums(values, packed)
    whole = None
    if out_scale is not None:
        whole = requantisation(scales, scale, out_scale, bias, depth)
    if depth > MAX_EXACT_K:
        result = sums * (scales.double() * scale)
        result = (result if bias is None else result + bias).float()
        result = result.relu() if layer.relu else result
    else:
        exact = sums.to(torch.int32)
        mode = mode_of(int8=whole is not None, bias=bias is not None, relu=layer.relu)
        if whole is not None:
            result = finish(exact, mode, *whole)
        else:
            offset = None if bias is None else bias.detach().float()
            result = finish(exact, mode, factor(scales, scale), offset)
    result = layer._arrange(result, input)
    return result if whole is not None else result.to(weight.dtype)
