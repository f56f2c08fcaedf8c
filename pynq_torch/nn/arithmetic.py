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

import torch

from pynq_torch.kernels.epilogue import BIAS, FLOAT32, INT8, RELU
from pynq_torch.ops.quantise import Packed, write_columns, write_steps
from pynq_torch.ops.units import finish

__all__ = ["columns", "factor", "finish", "mode_of", "overflows", "requantisation", "steps", "sums"]

#: What a float32 can hold, as a sum of products that are 1 in int8.
_LARGEST = float(torch.finfo(torch.float32).max) / 2**14
#: Sums of int8 products beyond which a bias might take int32 over its end.
ROOM = 2**31 - 1


def steps(values: torch.Tensor, scale: float | None = None) -> tuple[torch.Tensor, float] | None:
    """Return an activation in int8 and its scale.

    Parameters
    ----------
    values : torch.Tensor
        Floating, on the CPU, any shape, at least one element.
    scale : float, optional
        Default: ``max|values| / 127``.

    Returns
    -------
    tuple of torch.Tensor and float, or None
        int8, same shape; ``None`` where a value is not finite.
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


def sums(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the exact int32 product of int8 matrices on the CPU.

    Parameters
    ----------
    a, b : torch.Tensor
        int8 [M, K] and [K, N]. float64 holds every sum below 2**53, far beyond int32.
    """
    return (a.double() @ b.double()).to(torch.int64).to(torch.int32)


def factor(weight_scale: torch.Tensor, scale: float) -> torch.Tensor:
    """Return ``t * s`` in float32: what a sum is multiplied by for a float32 result."""
    return weight_scale * scale


def requantisation(
    weight_scale: torch.Tensor,
    scale: float,
    out_scale: float,
    bias: torch.Tensor | None,
    depth: int,
) -> tuple[torch.Tensor, torch.Tensor | None] | None:
    """Return the factors and the int32 bias for an int8 result.

    Parameters
    ----------
    weight_scale : torch.Tensor
        float32 [N], ``t``.
    scale, out_scale : float
        Of the input and of the result, ``s`` and ``r``.
    bias : torch.Tensor or None
        Floating [N].
    depth : int
        Products in a sum.

    Returns
    -------
    tuple of torch.Tensor, or None
        float32 [N] and int32 [N] (``None`` without a bias). ``None`` where a sum with its bias
        could leave int32, because a bias is huge beside its channel's weights, and where a factor
        is no float32.
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

    Parameters
    ----------
    top : float
        The largest scale of the weight.
    scale : float
        Of the input.
    depth : int
        Products in a sum.
    """
    return top * scale * depth >= _LARGEST


def mode_of(*, int8: bool, bias: bool, relu: bool) -> int:
    """Return the gemm kernel's mode for a layer."""
    return (INT8 if int8 else FLOAT32) | (BIAS if bias else 0) | (RELU if relu else 0)
