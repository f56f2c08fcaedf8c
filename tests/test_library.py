"""Every operator that the kernel library promises: on the PL of csim, and equal to the CPU's.

One line an operator, on plain values; the families' own tests go through shapes, strides and
special values. The bound is the largest error in units of the last place of the largest result, or
0 for the same bits.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from device_helpers import loaded, watched
from torch import nn
from torch.nn import functional

Make = Callable[[Callable[..., torch.Tensor]], Any]
F = functional
EXACT = 0.0

pytestmark = pytest.mark.usefixtures("closing")


@pytest.fixture(scope="module")
def closing() -> Any:
    """Close the board in use when the module's tests are done."""
    from pynq_torch.board import current_board

    yield
    board = current_board()
    if board is not None:
        board.close()


def _values(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _positive(*shape: int, seed: int = 0) -> torch.Tensor:
    return _values(*shape, seed=seed).abs() + 0.1


X = _values(3, 5, 7)
Y = _values(3, 5, 7, seed=1)
Z = _values(3, 5, 7, seed=2)
P = _positive(3, 5, 7)
I32 = torch.randint(-1000, 1000, (4, 9), dtype=torch.int32)
J32 = torch.randint(1, 50, (4, 9), dtype=torch.int32)
I8 = torch.randint(-128, 128, (4, 9), dtype=torch.int8)
J8 = torch.randint(1, 12, (4, 9), dtype=torch.int8)

#: Name -> function, bound, argument.
UNARY = {
    "abs": (torch.abs, EXACT, X), "neg": (torch.neg, EXACT, X), "relu": (torch.relu, EXACT, X),
    "sigmoid": (torch.sigmoid, 4, X), "tanh": (torch.tanh, 4, X), "exp": (torch.exp, 4, X),
    "log": (torch.log, 4, P), "sqrt": (torch.sqrt, 1, P), "rsqrt": (torch.rsqrt, 2, P),
    "reciprocal": (torch.reciprocal, 1, P), "floor": (torch.floor, EXACT, X),
    "ceil": (torch.ceil, EXACT, X), "round": (torch.round, EXACT, X),
    "sign": (torch.sign, EXACT, X), "gelu": (F.gelu, 8, X), "silu": (F.silu, 4, X),
    "clamp": (lambda x: torch.clamp(x, -0.5, 0.7), EXACT, X),
    "threshold": (lambda x: F.threshold(x, 0.1, 20.0), EXACT, X),
    "hardtanh": (F.hardtanh, EXACT, X),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), EXACT, X),
}  # fmt: skip
BINARY = {
    "add": (lambda x, y: torch.add(x, y, alpha=2), 1), "sub": (torch.sub, EXACT),
    "mul": (torch.mul, EXACT), "div": (torch.div, EXACT), "remainder": (torch.remainder, 1),
    "maximum": (torch.maximum, EXACT), "minimum": (torch.minimum, EXACT),
    "pow": (lambda x, y: torch.pow(x.abs(), y), 4),
}  # fmt: skip
SCALAR = {
    "add": lambda x: x + 2, "sub": lambda x: x - 0.5, "mul": lambda x: 3.0 * x,
    "div": lambda x: x / 4, "remainder": lambda x: torch.remainder(x, 0.75),
    "pow": lambda x: x**3,
}  # fmt: skip
TERNARY = {
    "addcmul": (lambda x, y, z: torch.addcmul(x, y, z, value=0.5), 2),
    "addcdiv": (lambda x, y, z: torch.addcdiv(x, y, z.abs() + 1, value=0.5), 2),
    "lerp": (lambda x, y, z: torch.lerp(x, y, z.sigmoid()), 4),
    "where": (lambda x, y, z: torch.where(z > 0, x, y), EXACT),
}  # fmt: skip
INTEGER = {
    "abs": torch.abs, "neg": torch.neg, "relu": torch.relu, "sign": torch.sign,
    "clamp": lambda x: torch.clamp(x, -5, 100),
}  # fmt: skip
INTEGER2 = {
    "add": lambda x, y: torch.add(x, y, alpha=3), "sub": torch.sub, "mul": torch.mul,
    "remainder": torch.remainder, "maximum": torch.maximum, "minimum": torch.minimum,
}  # fmt: skip
REDUCTIONS = {
    "sum": (lambda x: x.sum((0, 2)), 8), "mean": (lambda x: x.mean(1, keepdim=True), 8),
    "max": (lambda x: x.max(1), EXACT), "min": (lambda x: x.min(2), EXACT),
    "argmax": (lambda x: x.argmax(1), EXACT), "argmin": (lambda x: x.argmin(), EXACT),
    "prod": (lambda x: x.prod(2), 16), "norm": (lambda x: x.norm(dim=1), 8),
    "var": (lambda x: x.var((1, 2)), 16), "softmax": (lambda x: x.softmax(1), 8),
    "log_softmax": (lambda x: x.log_softmax(2), 8),
    "logsumexp": (lambda x: x.logsumexp((0, 1)), 8),
    "cdist": (lambda x: torch.cdist(x, x + 1), 16),
    "dot": (lambda x: torch.dot(x.reshape(-1), x.reshape(-1)), 32),
}  # fmt: skip
IMAGES = _values(2, 4, 9, 8)
FILTERS = _values(6, 4, 3, 3, seed=3) * 0.2
NEURAL = {
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), EXACT),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2, ceil_mode=True), 8),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (4, 3)), 8),
    "batch_norm": (
        lambda x: F.batch_norm(
            x, torch.arange(4.0).to(x.device), (torch.arange(4.0) + 1).to(x.device)
        ),
        8,
    ),
    "layer_norm": (lambda x: F.layer_norm(x, (9, 8)), 32),
}
CONVOLUTION = {
    "conv2d": (lambda x: F.conv2d(x, FILTERS.to(x.device), stride=2, padding=1), 32),
    "depthwise": (
        lambda x: F.conv2d(x, FILTERS[:4, :1].contiguous().to(x.device), groups=4),
        32,
    ),
}
TABLE = _values(11, 6)
ROWS = torch.tensor([[3, 0, 10], [3, 3, 7]])
MOVEMENT = {
    "embedding": (lambda x: F.embedding(ROWS.to(x.device), x), EXACT),
    "index_select": (lambda x: x.index_select(1, ROWS[0, :2].to(x.device)), EXACT),
    "gather": (lambda x: x.gather(0, ROWS.to(x.device)), EXACT),
    "cat": (lambda x: torch.cat([x, 2 * x], 1), EXACT),
    "copy": (lambda x: x[:, ::2].clone(memory_format=torch.contiguous_format), EXACT),
    "transpose": (lambda x: x.t().contiguous(), EXACT),
}


def _cases() -> list[Any]:
    cases: list[Any] = []

    def case(overlay: str, name: str, bound: float, function: Any, *arguments: Any) -> None:
        label = f"{overlay}-{name}-{str(arguments[0].dtype).removeprefix('torch.')}"
        cases.append(pytest.param(overlay, name, bound, function, arguments, id=label))

    for name, (function, bound, values) in UNARY.items():
        case("pointwise", name, bound, function, values)
    for name, (function, bound) in BINARY.items():
        case("pointwise", name, bound, function, X, Y)
    for name, function in SCALAR.items():
        case("pointwise", f"{name} with a number", 2, function, X)
    for name, (function, bound) in TERNARY.items():
        case("pointwise", name, bound, function, X, Y, Z)
    for first, second in ((I32, J32), (I8, J8)):
        for name, function in INTEGER.items():
            case("pointwise_int", name, EXACT, function, first)
        for name, function in INTEGER2.items():
            case("pointwise_int", name, EXACT, function, first, second)
    for overlay, table, values in (
        ("reductions", REDUCTIONS, X), ("neural", NEURAL, IMAGES),
        ("convolution", CONVOLUTION, IMAGES), ("movement", MOVEMENT, TABLE),
    ):  # fmt: skip
        for name, (function, bound) in table.items():
            case(overlay, name, bound, function, values)
    return cases


def assert_close(found: torch.Tensor, expected: torch.Tensor, ulps: float, what: str) -> None:
    """Compare with a bound in units of the last place of the largest expected value."""
    assert found.device.type == "pynq", what
    values = found.cpu()
    assert values.dtype is expected.dtype and values.shape == expected.shape, what
    if not ulps:
        assert torch.equal(values, expected), what
        return
    unit = torch.finfo(expected.dtype).eps * expected.abs().max()
    assert (values - expected).abs().max() <= ulps * unit, what


@pytest.mark.parametrize(("overlay", "name", "bound", "function", "arguments"), _cases())
def test_operator(
    overlay: str, name: str, bound: float, function: Any, arguments: tuple[torch.Tensor, ...]
) -> None:
    loaded(overlay)
    expected = function(*arguments)
    there = [a.to("pynq") for a in arguments]
    with watched() as calls:
        found = function(*there)
    pairs = (
        zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    )
    for mine, theirs in pairs:
        assert_close(mine, theirs, bound, name)
    on_pl = [c.op for c in calls if c.where == "PL"]
    assert on_pl and all(c.kernels for c in calls if c.where == "PL"), (
        f"{name}: nothing ran on the PL: {[(c.name, c.reason) for c in calls]}"
    )


def test_lenet_trains_with_its_operators_on_the_pl() -> None:
    """One step forward and backward: each operator named for training is on the PL."""
    loaded("lenet")
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 4, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 10)
    )
    images, labels = _values(6, 1, 8, 8), torch.tensor([0, 3, 9, 1, 1, 7])

    def step(device: str) -> dict[str, torch.Tensor]:
        copied = copy.deepcopy(network).to(device)
        loss = F.cross_entropy(copied(images.to(device)), labels.to(device))
        loss.backward()
        return {name: p.grad.cpu().clone() for name, p in copied.named_parameters()}

    expected = step("cpu")
    with watched() as calls:
        found = step("pynq")
    for name, gradient in expected.items():
        assert torch.allclose(found[name], gradient, rtol=1e-4, atol=1e-6), name
    on_pl = {c.op.removeprefix("aten::") for c in calls if c.where == "PL"}
    wanted = {
        "relu", "threshold_backward", "max_pool2d_with_indices",
        "max_pool2d_with_indices_backward", "convolution_backward", "addmm", "mm", "_log_softmax",
        "_log_softmax_backward_data", "nll_loss_forward", "nll_loss_backward",
    }  # fmt: skip
    assert not wanted - on_pl, [(c.name, c.where, c.reason) for c in calls]
    assert on_pl & {"convolution", "convolution_overrideable", "_convolution"}


def test_embedding_backward_is_on_the_pl() -> None:
    loaded("movement")
    there = TABLE.to("pynq").requires_grad_()
    with watched() as calls:
        F.embedding(ROWS.to("pynq"), there).sum().backward()
    here = TABLE.clone().requires_grad_()
    F.embedding(ROWS, here).sum().backward()
    assert torch.equal(there.grad.cpu(), here.grad)
    assert "PL" in {c.where for c in calls if c.op == "aten::embedding_dense_backward"}


def test_the_first_lesson_s_kernel_adds_tensors_of_the_device() -> None:
    loaded("vadd")
    x, y = X.to("pynq"), Y.to("pynq")
    with watched() as calls:
        assert torch.equal((x + y).cpu(), X + Y)
    assert [(c.where, c.kernels[0].cu) for c in calls if c.op == "aten::add"] == [("PL", "vadd_0")]


@pytest.mark.parametrize("overlay", ["vadd", "gemm", "reductions", "sparse", "pointwise_int"])
def test_the_device_names_the_units_that_serve_it(overlay: str) -> None:
    units = loaded(overlay).kernels
    assert torch.pynq.kernels() == {name: units[name].kernel_name for name in torch.pynq.kernels()}
    assert len(torch.pynq.kernels()) == len({u.cu for u in units.values()})
