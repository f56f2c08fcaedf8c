"""The arithmetic of quantised layers: scales, sums and roundings, in torch on the CPU.

With ``q`` the input in int8 (``x ~ q * s``), ``w`` the weight in int8 (``W[n] ~ w[n] * t[n]``, one
scale an output channel) and ``acc = sum(q * w)`` in int32, a layer returns

- float32: ``relu(acc.float() * (t * s) + bias)``
- int8 in steps of `r`, which another layer takes as its input:
  ``clamp(round((acc + b).float() * f), -128, 127)``, from 0 with ReLU, where
  ``b = round(bias / (t * s))`` and ``f = t * (s / r)``, both worked out in float64

Scales, bias and factors are float32 vectors over the output channels; every operation rounds once,
and halves round to even. The units of an overlay compute the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from pynq_torch.kernels.epilogue import BIAS, FLOAT32, INT8, RELU
from pynq_torch.ops.linear import MAX_EXACT_K
from pynq_torch.ops.quantise import Packed, write_columns, write_steps
from pynq_torch.ops.units import finish

if TYPE_CHECKING:
    from .layer import QuantisedLayer

__all__ = ["columns", "finish", "mode_of", "overflows", "reference", "requantisation", "steps"]

#: What a float32 can hold, as a sum of products that are 1 in int8.
_LARGEST = float(torch.finfo(torch.float32).max) / 2**14
#: Sums of int8 products beyond which a bias might take int32 over its end.
ROOM = 2**31 - 1


def steps(values: torch.Tensor, scale: float | None = None) -> tuple[torch.Tensor, float] | None:
    """Return an activation on the CPU in int8 and its scale; ``None`` if it is not finite.

    The scale is ``max|values| / 127`` where none is given; there is at least one value.
    """
    values = values.detach()
    out = torch.empty(values.shape, dtype=torch.int8)
    found = write_steps(values, out, scale)
    return None if found is None else (out, found)


def columns(matrix: torch.Tensor) -> Packed | None:
    """Return a weight [K, N] in int8 with its scales float32 [N]; ``None`` if it is not finite."""
    matrix = matrix.detach()
    out = torch.empty(matrix.shape, dtype=torch.int8)
    scale = write_columns(matrix, out)
    return None if scale is None else Packed(out, scale, float(scale.max()))


def requantisation(
    weight_scale: torch.Tensor,
    scale: float,
    out_scale: float,
    bias: torch.Tensor | None,
    depth: int,
) -> tuple[torch.Tensor, torch.Tensor | None] | None:
    """Return the factors float32 [N] and the bias int32 [N] (``None`` without) for an int8 result.

    `weight_scale` is ``t``, `scale` and `out_scale` are ``s`` and ``r``, `depth` is the products in
    a sum. ``None`` where a sum with its bias could leave int32, because a bias is huge beside its
    channel's weights, and where a factor is no float32.
    """
    if not 0 < out_scale < float("inf"):
        raise ValueError(f"out_scale is {out_scale}; expected a finite number greater than 0")
    wide = weight_scale.double()
    factors = (wide * (scale / out_scale)).float()
    if depth * 2**14 > ROOM or not bool(factors.isfinite().all()):
        return None
    if bias is None:
        return factors, None
    whole = (bias.detach().double() / (wide * scale)).round()
    # Also false for a bias that is not finite.
    if not bool((whole.abs() <= ROOM - depth * 2**14).all()):
        return None
    return factors, whole.to(torch.int32)


def overflows(top: float, scale: float, depth: int) -> bool:
    """Whether sums could leave float32 when they are scaled; the float layer computes then.

    `top` is the largest scale of the weight, `scale` the input's, `depth` the products in a sum.
    """
    return top * scale * depth >= _LARGEST


def mode_of(*, int8: bool, bias: bool, relu: bool) -> int:
    """Return the gemm kernel's mode for a layer."""
    return (INT8 if int8 else FLOAT32) | (BIAS if bias else 0) | (RELU if relu else 0)


def reference(
    layer: QuantisedLayer,
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    packed: list[Packed] | None,
    scale: float | None,
    out_scale: float | None,
) -> torch.Tensor:
    """Return the result of a layer, worked out on the CPU: the same bits as from the PL.

    The tensors are on the CPU. `packed` is the weight in int8, one matrix a group; ``None`` where
    int8 cannot hold it. The parameters of `layer` are not read.
    """
    found = None
    if packed is not None and input.numel():
        found = steps(input, layer.in_scale) if scale is None else (input, scale)
    depth = packed[0].values.shape[0] if packed else 0
    if packed is None or found is None or overflows(max(p.top for p in packed), found[1], depth):
        input = input if scale is None else input.to(weight.dtype) * scale
        result = layer._float(input, weight, bias)
        return result.relu() if layer.relu else result
    values, scale = found
    scales = torch.cat([p.scale for p in packed])
    sums = layer._sums(values, packed)
    whole = None
    if out_scale is not None:
        whole = requantisation(scales, scale, out_scale, bias, depth)
    if depth > MAX_EXACT_K:
        result = sums * (scales.double() * scale)
        result = (result if bias is None else result + bias).float()
        result = result.relu() if layer.relu else result
    else:
        mode = mode_of(int8=whole is not None, bias=bias is not None, relu=layer.relu)
        offset = None if bias is None else bias.detach().float()
        result = finish(sums.to(torch.int32), mode, *(whole or (scales * scale, offset)))
    result = layer._arrange(result, input)
    return result if whole is not None else result.to(weight.dtype)
