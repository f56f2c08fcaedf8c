"""LSTM and GRU on device "pynq" against the CPU, forward and backward."""

from __future__ import annotations

import copy

import pytest
import torch


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU])
def test_outputs_and_gradients_are_those_of_the_cpu(kind: type, bias: bool) -> None:
    torch.manual_seed(3)
    on_cpu = kind(4, 6, num_layers=2, bias=bias, bidirectional=True)
    on_pynq = copy.deepcopy(on_cpu).to("pynq")
    x = torch.randn(5, 3, 4)
    inputs = [x.clone().requires_grad_(), x.to("pynq").requires_grad_()]
    outputs = [on_cpu(inputs[0]), on_pynq(inputs[1])]
    weight = torch.randn_like(outputs[0][0])
    for (y, states), w in zip(outputs, (weight, weight.to("pynq")), strict=True):
        last = states if isinstance(states, torch.Tensor) else states[1]  # LSTM: cells, not hidden
        ((y * w).sum() + last.square().sum()).backward()
    torch.testing.assert_close(outputs[1][0].cpu(), outputs[0][0])
    torch.testing.assert_close(inputs[1].grad.cpu(), inputs[0].grad)
    for (name, found), expected in zip(
        on_pynq.named_parameters(), on_cpu.parameters(), strict=True
    ):
        torch.testing.assert_close(found.grad.cpu(), expected.grad, msg=name)


@pytest.mark.parametrize("kind", [torch.nn.LSTMCell, torch.nn.GRUCell])
def test_cells_can_be_differentiated_twice(kind: type) -> None:
    torch.manual_seed(4)
    on_cpu = kind(2, 3)
    seconds = []
    for cell in (on_cpu, copy.deepcopy(on_cpu).to("pynq")):
        device = next(cell.parameters()).device
        x = torch.linspace(-1, 1, 4).reshape(2, 2).to(device).requires_grad_()
        state = cell(x)
        hidden = state if isinstance(state, torch.Tensor) else state[0]
        (first,) = torch.autograd.grad(hidden.sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), x)
        seconds.append(second.cpu())
    torch.testing.assert_close(seconds[1], seconds[0])
