"""LSTM and GRU cells: torch asks devices other than the CPU for fused cells, which these are.

The workspace between forward and backward is ours to lay out. Derivatives: those of the formulas in
``torch.nn.LSTMCell`` and ``torch.nn.GRUCell``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .fallback import place
from .memory import alias

__all__ = ["cell_kernels"]


def _on_cpu(tensor: torch.Tensor | None) -> torch.Tensor | None:
    return None if tensor is None else alias(tensor)


def _sum(first: torch.Tensor, *others: torch.Tensor | None) -> torch.Tensor:
    for other in others:
        if other is not None:
            first = first + alias(other)
    return first


def _lstm(
    input_gates: torch.Tensor,
    hidden_gates: torch.Tensor,
    cx: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    hidden_bias: torch.Tensor | None = None,
) -> Any:
    gates = _sum(alias(input_gates), input_bias, hidden_gates, hidden_bias)
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * alias(cx) + i * g
    return place((o * cy.tanh(), cy, torch.cat((i, f, g, o), 1)))


def _lstm_backward(
    grad_hy: torch.Tensor | None,
    grad_cy: torch.Tensor | None,
    cx: torch.Tensor,
    cy: torch.Tensor,
    workspace: torch.Tensor,
    has_bias: bool,
) -> Any:
    i, f, g, o = alias(workspace).chunk(4, 1)
    bent = alias(cy).tanh()
    dh, dc = _on_cpu(grad_hy), _on_cpu(grad_cy)
    dh = torch.zeros_like(bent) if dh is None else dh
    dc = torch.zeros_like(bent) if dc is None else dc
    dc = dc + dh * o * (1 - bent * bent)
    gates = torch.cat(
        (
            dc * g * i * (1 - i),
            dc * alias(cx) * f * (1 - f),
            dc * i * (1 - g * g),
            dh * bent * o * (1 - o),
        ),
        1,
    )
    return place((gates, dc * f, gates.sum(0) if has_bias else None))


def _gru(
    input_gates: torch.Tensor,
    hidden_gates: torch.Tensor,
    hx: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    hidden_bias: torch.Tensor | None = None,
) -> Any:
    ir, iz, i_new = _sum(alias(input_gates), input_bias).chunk(3, 1)
    hr, hz, h_new = _sum(alias(hidden_gates), hidden_bias).chunk(3, 1)
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (i_new + r * h_new).tanh()
    h = alias(hx)
    return place((n + z * (h - n), torch.cat((r, z, n, h, h_new), 1)))


def _gru_backward(grad_hy: torch.Tensor, workspace: torch.Tensor, has_bias: bool) -> Any:
    r, z, n, h, h_new = alias(workspace).chunk(5, 1)
    dh = alias(grad_hy)
    d_new = dh * (1 - z) * (1 - n * n)
    dr, dz = d_new * h_new * r * (1 - r), dh * (h - n) * z * (1 - z)
    inputs, hidden = torch.cat((dr, dz, d_new), 1), torch.cat((dr, dz, d_new * r), 1)
    biases = (inputs.sum(0), hidden.sum(0)) if has_bias else (None, None)
    return place((inputs, hidden, dh * z, *biases))


def cell_kernels() -> dict[str, Callable[..., Any]]:
    """Return the kernels of this module by overload."""
    return {
        "aten::_thnn_fused_lstm_cell": _lstm,
        "aten::_thnn_fused_lstm_cell_backward_impl": _lstm_backward,
        "aten::_thnn_fused_gru_cell": _gru,
        "aten::_thnn_fused_gru_cell_backward": _gru_backward,
    }
