"""Gradients of quantised layers: as of the float layer, the roundings counting as nothing."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["StraightThrough"]


class StraightThrough(torch.autograd.Function):
    """The quantised layer forward, the float layer backward."""

    @staticmethod
    def forward(
        ctx: Any,
        input: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        layer: Any,
        scale: float | None,
        out_scale: float | None,
    ) -> torch.Tensor:
        """Compute in int8."""
        result: torch.Tensor = layer._compute(input, weight, bias, scale, out_scale)
        if result.dtype is torch.int8:
            # Whole steps in floating point: what follows finds the same int8 in them again.
            result = result.to(weight.dtype) * (out_scale or 1.0)
        ctx.layer, ctx.scale = layer, scale
        ctx.save_for_backward(input, weight, result if layer.relu else None)
        return result

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        """Differentiate the float layer; with ReLU, where the quantised result is positive."""
        input, weight, result = ctx.saved_tensors
        if input.dtype is torch.int8:
            input = input.to(weight.dtype) * ctx.scale
        if result is not None:
            grad = torch.ops.aten.threshold_backward(grad, result, 0)
        needed = list(ctx.needs_input_grad[:3])
        return (*ctx.layer._gradients(grad, input, weight, needed), None, None, None)
