"""LeNet-5 trains on device "pynq": its heavy operators on the PL, its numbers those of the CPU."""

from __future__ import annotations

import copy
from math import prod
from typing import Any

import pytest
import torch
from device_helpers import closing, loaded, watched
from torch import nn
from torch.nn import functional

from pynq_torch.errors import KernelError
from pynq_torch.events import KernelCall
from pynq_torch.lessons import datasets, lenet
from pynq_torch.models.run_model import modelled, run_cycles, symbols
from pynq_torch.timing import model_cycles

pytestmark = [pytest.mark.timeout(180), pytest.mark.usefixtures("closing")]
__all__ = ["closing"]

FORWARD = {
    *("convolution", "relu", "max_pool2d_with_indices", "addmm"),
    *("_log_softmax", "nll_loss_forward"),
}
BACKWARD = {
    *("convolution_backward", "threshold_backward", "max_pool2d_with_indices_backward", "mm"),
    *("_log_softmax_backward_data", "nll_loss_backward"),
}


@pytest.fixture(scope="module")
def digits() -> datasets.Digits:
    return datasets.enlarged(datasets.digits())


def train(model: nn.Module, data: datasets.Digits, steps: int) -> list[float]:
    """Take plain steps down the gradient, 32 images each; return the losses."""
    device = next(model.parameters()).device
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for i in range(steps):
        rows = slice(32 * i, 32 * (i + 1))
        x, y = data.x_train[rows].to(device), data.y_train[rows].to(device)
        optimiser.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    return losses


def test_two_steps_on_the_pl_are_those_of_the_cpu(digits: datasets.Digits) -> None:
    loaded("lenet")
    on_cpu = lenet.lenet5()
    exact, on_pl = copy.deepcopy(on_cpu).double(), copy.deepcopy(on_cpu).to("pynq")
    doubled = datasets.Digits(digits.x_train.double(), digits.y_train, *[torch.empty(0)] * 2)
    reference = train(exact, doubled, 2)
    train(on_cpu, digits, 2)
    with watched() as calls:
        losses = train(on_pl, digits, 2)
    assert losses == pytest.approx(reference, rel=1e-6)
    for name, parameter in on_pl.named_parameters():
        right = exact.get_parameter(name).grad
        theirs, mine = on_cpu.get_parameter(name).grad, parameter.grad
        assert right is not None and theirs is not None and mine is not None
        scale = float(right.abs().max())
        # As close as float32 on the CPU is, give or take the order of the sums.
        bound = max(1e-5, 8 * float((theirs - right).abs().max()) / scale)
        assert float((mine.cpu() - right).abs().max()) <= bound * scale, name
        step = (parameter.detach().cpu() - exact.get_parameter(name).detach()).abs().max()
        assert float(step) <= 1e-6, name
    where = {(c.op.removeprefix("aten::"), c.where) for c in calls}
    for op in FORWARD | BACKWARD:
        assert (op, "PL") in where and (op, "CPU") not in where, op
    kernels = {run.kernel for c in calls for run in c.kernels}
    assert kernels >= {
        *("conv2d_f32", "matmul_f32", "pool2d_f32", "softmax_f32", "nll_f32"),
        "activation_f32",
    }


def test_the_gradient_of_an_embedding_is_added_up_on_the_pl() -> None:
    loaded("neural")
    words, target = torch.tensor([[1, 2, 1], [0, 1, 4]]), torch.tensor([2, 0])
    on_cpu = nn.Sequential(nn.Embedding(5, 6), nn.Flatten(), nn.LayerNorm(18), nn.Linear(18, 3))
    on_pl = copy.deepcopy(on_cpu).to("pynq")
    functional.cross_entropy(on_cpu(words), target).backward()
    with watched() as calls:
        functional.cross_entropy(on_pl(words.to("pynq")), target.to("pynq")).backward()
    for mine, theirs in zip(on_pl.parameters(), on_cpu.parameters(), strict=True):
        assert mine.grad is not None and theirs.grad is not None
        torch.testing.assert_close(mine.grad.cpu(), theirs.grad, rtol=1e-5, atol=1e-6)
    where = {c.op.removeprefix("aten::"): c.where for c in calls}
    for op in ("embedding_dense_backward", "native_layer_norm", "nll_loss_backward"):
        assert where[op] == "PL", op


def test_what_the_layers_cost(digits: datasets.Digits) -> None:
    overlay = loaded("lenet")
    model = lenet.lenet5().to("pynq")
    x, y = digits.x_train[:16].to("pynq"), digits.y_train[:16].to("pynq")
    costs = lenet.layer_costs(model, x, y, overlay.clock_hz)
    names = [name for name, _ in model.named_children()]
    assert [(c.name, c.stage) for c in costs] == [
        *((name, "forward") for name in [*names, "loss"]),
        *((name, "backward") for name in ["loss", *reversed(names)]),
    ]
    at = {(c.name, c.stage): c for c in costs}
    assert at["conv2", "backward"].on_pl == ("convolution_backward",)
    assert at["flatten", "forward"].calls == () and at["flatten", "forward"].measured.seconds == 0
    for cost in costs:
        assert cost.measured.kind == "measured" and cost.model.kind == "model"
        assert bool(cost.on_pl) == (cost.model.seconds > 0)
    # The whole step at once gives the same gradients.
    whole = lenet.lenet5().to("pynq")
    functional.cross_entropy(whole(x), y).backward()
    for mine, theirs in zip(model.parameters(), whole.parameters(), strict=True):
        assert mine.grad is not None and theirs.grad is not None
        assert torch.equal(mine.grad.cpu(), theirs.grad.cpu())
    text = str(lenet.cost_table(costs))
    assert "measured (csim on this PC)" in text and "model (at 100 MHz)" in text
    assert "convolution_backward" in text
    told = lenet.places(call for cost in costs for call in cost.calls)
    assert [row[1] for row in told.rows] == sorted((row[1] for row in told.rows), reverse=True)
    assert all((row[1] == "PL") == (row[3] == "") for row in told.rows)


def test_the_model_of_a_run_comes_from_its_registers(digits: datasets.Digits) -> None:
    overlay = loaded("lenet")
    model = lenet.lenet5().to("pynq")
    with watched() as calls:
        hidden = model[:3](digits.x_train[:4].to("pynq"))
        functional.log_softmax(hidden.flatten(1), 1)
    convolution, relu, pool, softmax = (c.kernels[0] for c in calls if c.kernels)
    sizes = symbols(convolution)
    assert (sizes["batch"], sizes["outs"], sizes["pixels"], sizes["taps"]) == (4, 6, 784, 25)
    assert symbols(relu) == {"n": 4 * 6 * 784}
    assert symbols(softmax) == {"rows": 4, "length": 6 * 196}
    assert run_cycles(pool) == model_cycles(
        *("pool2d_f32",), op=0, batch=4, channels=6, rows=28, cols=28, out_rows=14, out_cols=14,
        kernel_rows=2, kernel_cols=2,
    )  # fmt: skip
    both = modelled([relu, pool], overlay.clock_hz, "both")
    assert both.seconds == pytest.approx((run_cycles(relu) + run_cycles(pool)) / 100e6)
    assert both.provenance == "model (at 100 MHz)" and both.label == "both"


def test_rows_with_gaps_cost_more() -> None:
    loaded("pointwise")
    base = torch.randn(6, 10, 8).to("pynq")
    with watched() as calls:
        torch.relu(base)
        torch.relu(base[:, ::2, :4])
        torch.relu(base[:, :, ::2])
    dense, gaps, single = (symbols(c.kernels[0]) for c in calls if c.kernels)
    relu = dense["op"]
    assert dense == {"n": 480, "rows": 1, "single": 0, "op": relu}
    assert gaps == {"n": 120, "rows": 30, "single": 0, "op": relu}
    assert single["n"] == single["single"] == prod((6, 10, 4))


def test_a_symbol_that_is_no_register_is_named() -> None:
    run: Any = KernelCall("gemm_0", "gemm", {"m": 3, "n": 4}, {})
    with pytest.raises(KernelError, match="gemm asks for k, which is no register"):
        symbols(run)


def test_the_network_is_lecuns_and_its_seed_is_its_own() -> None:
    state = torch.get_rng_state()
    model, again, other = lenet.lenet5(), lenet.lenet5(), lenet.lenet5(seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    assert sum(p.numel() for p in model.parameters()) == 61706
    assert model(torch.zeros(2, 1, lenet.SIZE, lenet.SIZE)).shape == (2, 10)
    assert torch.equal(model.conv1.weight, again.conv1.weight)
    assert not torch.equal(model.conv1.weight, other.conv1.weight)
