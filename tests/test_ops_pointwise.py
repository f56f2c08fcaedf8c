"""Pointwise operators of device "pynq" on the PL: results, variants, gradients, refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from device_helpers import closing, loaded, of, watched

import pynq_torch
from pynq_torch.kernels.tables.pointwise import FUNCTIONS
from pynq_torch.ops.pointwise_core import is_served

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("closing")]
__all__ = ["closing"]


def some(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        return torch.randn(*shape, generator=generator, dtype=dtype) * 2
    return torch.randint(-100, 100, shape, generator=generator, dtype=dtype)


def near(result: torch.Tensor, expected: torch.Tensor, ulp: float) -> None:
    """Same shape, strides and dtype; values within so many units at the size of the operands."""
    found = result.cpu()
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    strides = zip(result.stride(), expected.stride(), expected.shape, strict=True)
    assert all(here == there for here, there, size in strides if size > 1)
    if not ulp:
        assert torch.equal(found.nan_to_num(77), expected.nan_to_num(77))
    torch.testing.assert_close(
        found, expected, rtol=ulp * 2.0**-23, atol=ulp * 2.0**-22, equal_nan=True
    )


def on_pl(name: str, call: Callable[[], Any]) -> Any:
    """Return what a call gives; it has to run one operator, on the PL."""
    with watched() as calls:
        result = call()
    assert [(c.op, c.where) for c in of(calls, name)] == [(f"aten::{name}", "PL")]
    return result


#: Operator, the expression, and how far it may be off.
SERVED: list[tuple[str, Callable[..., Any], float]] = [
    *(
        (name, getattr(torch, name), FUNCTIONS["unary"][name].ulp)
        for name in ("abs", "neg", "relu", "sigmoid", "tanh", "exp", "floor", "ceil", "round")
    ),
    *((n, lambda x, y, n=n: getattr(x.abs(), n)(), 2) for n in ("log", "sqrt", "rsqrt")),
    ("sign", lambda x, y: x.sign(), 0),
    ("reciprocal", lambda x, y: x.reciprocal(), 1),
    ("clamp", lambda x, y: x.clamp(-0.5, 0.75), 0),
    ("clamp", lambda x, y: x.clamp(min=0.5), 0),
    ("clamp_min", lambda x, y: torch.clamp_min(x, 0.5), 0),
    ("clamp_max", lambda x, y: torch.clamp_max(x, 0.5), 0),
    ("clamp", lambda x, y: x.clamp(y, y + 1), 0),
    ("clamp", lambda x, y: x.clamp(max=y), 0),
    ("threshold", lambda x, y: F.threshold(x, 0.1, -7.0), 0),
    ("gelu", lambda x, y: F.gelu(x), 6),
    ("gelu", lambda x, y: F.gelu(x, approximate="tanh"), 6),
    ("silu", lambda x, y: F.silu(x), 4),
    ("hardtanh", lambda x, y: F.hardtanh(x, -0.3, 0.4), 0),
    ("hardtanh", lambda x, y: F.relu6(x), 0),
    ("leaky_relu", lambda x, y: F.leaky_relu(x, 0.2), 0),
    ("add", lambda x, y: x + y, 0),
    ("add", lambda x, y: torch.add(x, y, alpha=0.3), 1),
    ("add", lambda x, y: x + 2, 0),
    ("add", lambda x, y: torch.tensor(2.5) + y, 0),
    ("sub", lambda x, y: x - y, 0),
    ("sub", lambda x, y: torch.sub(x, y, alpha=3), 1),
    ("sub", lambda x, y: x - 0.1, 0),
    ("rsub", lambda x, y: 2 - y, 0),
    ("rsub", lambda x, y: torch.rsub(x, y, alpha=2), 1),
    ("mul", lambda x, y: x * y, 0),
    ("mul", lambda x, y: 3 * x, 0),
    ("div", lambda x, y: x / y, 0),
    ("div", lambda x, y: x / 3, 0),
    ("div", lambda x, y: torch.div(x, y, rounding_mode="floor"), 0),
    ("div", lambda x, y: torch.div(x, 0.3, rounding_mode="trunc"), 0),
    ("floor_divide", lambda x, y: x // y, 0),
    ("remainder", lambda x, y: x % y, 0),
    ("remainder", lambda x, y: x % 0.7, 0),
    ("remainder", lambda x, y: 5 % y, 0),
    ("maximum", lambda x, y: torch.maximum(x, y), 0),
    ("minimum", lambda x, y: torch.minimum(x, y), 0),
    ("pow", lambda x, y: x.abs() ** y, 4),
    *(("pow", lambda x, y, e=e: x**e, 2) for e in (2, 3, -1, -2, 0)),
    *(("pow", lambda x, y, e=e: x.abs() ** e, 2) for e in (0.5, -0.5, 1.7)),
    ("pow", lambda x, y: 1.5**y, 2),
    ("addcmul", lambda x, y: torch.addcmul(x, y, x, value=0.5), 2),
    ("addcdiv", lambda x, y: torch.addcdiv(x, x, y.abs() + 1, value=2), 2),
    ("where", lambda x, y: torch.where(x > y, x, y), 0),
    ("where", lambda x, y: torch.where(x > 0, x, 0.0), 0),
    ("lerp", lambda x, y: torch.lerp(x, y, 0.25), 3),
    ("lerp", lambda x, y: torch.lerp(x, y, y.abs()), 6),
]


@pytest.mark.parametrize(("name", "call", "ulp"), SERVED)
def test_an_operator_runs_on_the_pl(name: str, call: Callable[..., Any], ulp: float) -> None:
    loaded("pointwise")
    for x, y in (
        (some(7, 5), some(7, 5, seed=1)),
        (some(5, 7).T, some(5, seed=1)),
        (some(4, 1, 6)[:, :, ::2], some(3, 1, seed=1).T.unsqueeze(1)),
    ):
        arguments = (x,) if call in (getattr(torch, name, None),) else (x, y)
        on_device = [a.pynq() for a in arguments]
        for own, here in zip(arguments, on_device, strict=True):
            assert here.stride() == own.stride() or not own.is_contiguous()
        same = [a.cpu() for a in on_device]  # strides as on the device
        with watched() as calls:
            result = call(*on_device)
        done = of(calls, name)
        assert done and all(c.where == "PL" for c in done), [c.reason for c in done]
        near(result, call(*same), ulp)


INTEGERS: list[tuple[str, Callable[..., Any]]] = [
    *((name, getattr(torch, name)) for name in ("abs", "neg", "relu", "sign")),
    ("add", lambda x, y: torch.add(x, y, alpha=3)),
    ("add", lambda x, y: x + 100),
    ("sub", lambda x, y: torch.sub(x, y, alpha=-2)),
    ("rsub", lambda x, y: 3 - y),
    ("mul", lambda x, y: x * y),
    ("div", lambda x, y: torch.div(x, y, rounding_mode="trunc")),
    ("div", lambda x, y: torch.div(x, -7, rounding_mode="floor")),
    ("floor_divide", lambda x, y: x // y),
    ("remainder", lambda x, y: x % y),
    ("remainder", lambda x, y: x % -7),
    ("maximum", lambda x, y: torch.maximum(x, y)),
    ("minimum", lambda x, y: torch.minimum(x, y)),
    ("pow", lambda x, y: x**2),
    ("pow", lambda x, y: x**5),
    ("pow", lambda x, y: x ** y.abs()),
    ("pow", lambda x, y: 3 ** y.abs()),
    ("clamp", lambda x, y: x.clamp(-5, 9)),
    ("clamp", lambda x, y: x.clamp(max=9)),
    ("clamp", lambda x, y: x.clamp(y, y.abs())),
    ("threshold", lambda x, y: F.threshold(x, 3, 20)),
    ("hardtanh", lambda x, y: F.hardtanh(x, -3, 20)),
    ("addcmul", lambda x, y: torch.addcmul(x, y, x, value=2)),
    ("where", lambda x, y: torch.where(x > y, x, y)),
]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int8])
@pytest.mark.parametrize(("name", "call"), INTEGERS)
def test_integers(name: str, call: Callable[..., Any], dtype: torch.dtype) -> None:
    loaded("pointwise_int")
    x, y = some(6, 5, dtype=dtype), some(5, seed=1, dtype=dtype)
    y[y == 0] = 9
    arguments = (x,) if call in (getattr(torch, name, None),) else (x, y)
    with watched() as calls:
        result = call(*(a.pynq() for a in arguments))
    done = of(calls, name)
    assert done and all(c.where == "PL" for c in done), [c.reason for c in done]
    near(result, call(*arguments), 0)


# ---- variants ------------------------------------------------------------------------------------


def test_in_place_and_out() -> None:
    loaded("pointwise")
    x, y = some(4, 6), some(6, seed=1)
    a, b = x.pynq(), y.pynq()
    address = a.data_ptr()
    on_pl("add_", lambda: a.add_(b, alpha=2))
    on_pl("mul_", lambda: a.mul_(0.5))
    on_pl("relu_", lambda: F.relu(a, inplace=True))
    on_pl("clamp_", lambda: a.clamp_(max=1.5))
    near(a, x.add_(y, alpha=2).mul_(0.5).relu_().clamp_(max=1.5), 1)
    assert a.data_ptr() == address
    out = torch.empty(4, 6, device="pynq")
    on_pl("exp", lambda: torch.exp(a, out=out))
    near(out, x.exp(), 2)
    on_pl("where", lambda: torch.where(a > 1, a, b, out=out))
    near(out, torch.where(x > 1, x, y), 0)
    turned = torch.empty(6, 4, device="pynq").T
    on_pl("add", lambda: torch.add(a, b, out=turned))
    near(turned, torch.empty(6, 4).T.copy_(x + y), 0)
    # Views are written where they lie, and what is around them stays.
    on_pl("sub_", lambda: a[1:3, ::2].sub_(1))
    x[1:3, ::2].sub_(1)
    near(a, x, 1)


def test_what_out_cannot_take() -> None:
    loaded("pointwise")
    x = some(3, 4)
    wide = torch.empty(3, 4, dtype=torch.float64, device="pynq")
    torch.exp(x.pynq(), out=wide)  # the CPU converts
    torch.testing.assert_close(wide.cpu(), torch.exp(x, out=torch.empty(3, 4).double()))
    empty = torch.empty(0, device="pynq")
    torch.add(x.pynq(), 1, out=empty)  # the CPU resizes
    assert torch.equal(empty.cpu(), x + 1)
    with pytest.raises(RuntimeError, match="broadcast|shape"):
        some(3).pynq().add_(some(4, 3).pynq())


#: A written tensor that shares memory with an operand: torch's own rule, whatever is loaded.
OVERLAPPING: dict[str, Callable[[torch.Tensor], Any]] = {
    "in place": lambda x: x[1:].add_(x[:-1]),
    "out": lambda x: torch.add(x[:-1], 1, out=x[1:]),
    "transposed": lambda x: x[:16].view(4, 4).mul_(x[:16].view(4, 4).T),
    "part": lambda x: x.sub_(x[3:4]),
    "ternary": lambda x: torch.addcmul(x[2:], x[1:-1], x[:-2], out=x[1:-1]),
    "expanded": lambda x: x[:1].expand(5).mul_(2),
    "expanded out": lambda x: torch.exp(x[:5], out=x[6:7].expand(5)),
    "windows": lambda x: x.unfold(0, 2, 1).add_(1),
    # These are fine.
    "itself": lambda x: x.mul_(x),
    "a view like it": lambda x: x.view(4, 5).mul_(x.reshape(4, 5)),
    "out is an operand": lambda x: torch.sub(1, x, out=x),
    "beside": lambda x: x[:7].add_(x[7:14]),
    "between": lambda x: x[::2].add_(x[1::2]),
    "columns": lambda x: x.view(4, 5)[:, :2].copy_(x.view(4, 5)[:, 2:4]).relu_(),
    # Without a rule, what the CPU makes of it depends on the order of the elements.
    "no rule": lambda x: x[2::2].add_(x[:-2:2]),
}


def outcome(call: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
    """Return what a call gives, or what it says, and its arguments afterwards."""
    try:
        result = call(*arguments)
    except (RuntimeError, NotImplementedError) as error:
        return type(error), str(error)
    found = [t for t in (result, *arguments) if isinstance(t, torch.Tensor)]
    return tuple((t.dtype, t.shape, t.cpu().tolist()) for t in found)


@pytest.mark.parametrize("case", OVERLAPPING)
@pytest.mark.parametrize("overlay", ["pointwise", "vadd"])
def test_a_written_tensor_that_overlaps_an_operand(overlay: str, case: str) -> None:
    loaded(overlay)
    x, call = torch.arange(20.0) - 7, OVERLAPPING[case]
    assert outcome(call, x.pynq()) == outcome(call, x.clone())


def test_what_is_beside_in_one_storage_stays_on_the_pl() -> None:
    loaded("pointwise")
    x = some(20).pynq()
    on_pl("add_", lambda: x[:7].add_(x[7:14]))
    on_pl("mul_", lambda: x.view(4, 5).mul_(x.reshape(4, 5)))


@pytest.mark.parametrize("overlay", ["pointwise", "vadd"])
@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: torch.sub(a, b, out=b),
        lambda a, b: torch.add(b, a, out=b),
        lambda a, b: torch.atan2(a, b, out=b),
        lambda a, b: torch.lerp(a, a, b, out=b),
        lambda a, b: torch.where(a > 2, a, b, out=b),
    ],
)
def test_an_out_that_is_an_input_is_not_resized(overlay: str, call: Callable[..., Any]) -> None:
    loaded(overlay)
    a, b = torch.arange(6.0).view(2, 3), torch.tensor(1.0)
    here = b.pynq()
    found = outcome(call, a.pynq(), here)
    assert found == outcome(call, a, b)
    assert "doesn't match the broadcast shape" in found[1]
    assert here.shape == () and here.item() == 1.0


def test_an_out_that_is_an_input_and_has_to_grow() -> None:
    loaded("vadd")
    a = torch.ones(2, 3).pynq()
    with pytest.warns(UserWarning, match="was resized"):
        torch.mm(a, torch.ones(3, 5).pynq(), out=a)
    assert torch.equal(a.cpu(), torch.full((2, 5), 3.0))


#: What torch refuses, or gives another dtype: numbers, bools and factors.
ODD: dict[str, Callable[[torch.Tensor], Any]] = {
    "whole alpha": lambda x: torch.add(x, 1, alpha=1.0),
    "alpha": lambda x: torch.sub(x, x, alpha=2.5),
    "bool alpha": lambda x: torch.add(x, x, alpha=True),
    "complex alpha": lambda x: torch.add(x, x, alpha=1j),
    "number, whole alpha": lambda x: torch.ops.aten.add.Scalar(x, 1, alpha=1.0),
    "number, bool alpha": lambda x: torch.ops.aten.add_.Scalar(x, 1, alpha=True),
    "less True": lambda x: x - True,
    "True less": lambda x: True - x,
    "less True, in place": lambda x: x.sub_(True),
    "less two True": lambda x: torch.sub(x, True, alpha=2),
    "less a bool scalar": lambda x: x - torch.tensor(True),
    "rsub": lambda x: torch.rsub(x, True),
    "plus True": lambda x: x + True,
    "clamp bools": lambda x: (x > 0).clamp(max=2),
    "clamp bools, in place": lambda x: (x > 0).clamp_(max=2),
    "clamp complex": lambda x: x.to(torch.complex64).clamp(0, 1),
    "mode": lambda x: torch.div(x, 2, rounding_mode="up"),
    "complex power": lambda x: x**1j,
    "end of another dtype": lambda x: torch.lerp(x, torch.tensor(1.0, dtype=torch.float64), 0.5),
    "complex slope": lambda x: F.leaky_relu(x, 1j),
    "complex threshold": lambda x: torch.ops.aten.threshold_backward(x, x, 1j),
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.int8])
@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_odd_arguments_are_refused_in_the_cpus_words(dtype: torch.dtype, case: str) -> None:
    loaded("pointwise" if dtype.is_floating_point else "pointwise_int")
    x, call = torch.arange(1, 7).view(2, 3).to(dtype), ODD[case]
    assert outcome(call, x.pynq()) == outcome(call, x.clone())


# ---- gradients -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backward", "call"),
    [
        ("threshold_backward", lambda x: x.relu()),
        ("threshold_backward", lambda x: F.threshold(x, 0.3, -1.0)),
        ("sigmoid_backward", lambda x: x.sigmoid()),
        ("tanh_backward", lambda x: x.tanh()),
        ("leaky_relu_backward", lambda x: F.leaky_relu(x, 0.2)),
        ("hardtanh_backward", lambda x: F.hardtanh(x)),
        ("silu_backward", lambda x: F.silu(x)),
        ("gelu_backward", lambda x: F.gelu(x)),
        ("gelu_backward", lambda x: F.gelu(x, approximate="tanh")),
        ("mul", lambda x: x.exp() * x),
        ("div", lambda x: (x.abs() + 1).log()),
        ("where", lambda x: x.clamp(-0.5, 0.5)),
    ],
)
def test_a_gradient_runs_on_the_pl(backward: str, call: Callable[..., Any]) -> None:
    loaded("pointwise")
    x = some(5, 8).requires_grad_()
    a = x.detach().pynq().requires_grad_()
    weights = some(5, 8, seed=2)
    call(x).backward(weights)
    result = call(a)
    with watched() as calls:
        result.backward(weights.pynq())
    done = of(calls, backward)
    assert done and all(c.where == "PL" for c in done), [c.reason for c in calls]
    near(a.grad, x.grad, 8)


def test_a_gradient_that_the_result_does_not_tell() -> None:
    """Of a result below 0, a negative slope does not tell whether the input was."""
    loaded("pointwise")
    x = torch.tensor([-1.0, 2.0, -3.0], device="pynq", requires_grad=True)
    with pytest.raises(RuntimeError, match="In-place leakyReLu backward .* negative slope"):
        F.leaky_relu_(x.clone(), -0.5).sum().backward()
    with watched() as calls:
        F.leaky_relu_(x.clone(), 0.5).sum().backward()
    assert [c.where for c in of(calls, "leaky_relu_backward")] == ["PL"]
    assert x.grad is not None and x.grad.tolist() == [0.5, 1.0, 0.5]


# ---- several units, many loops -------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(100_003,), (3, 70_000), (400, 300)])
def test_two_units_share_large_tensors(shape: tuple[int, ...]) -> None:
    loaded("pointwise")
    x, y = some(*shape), some(*shape, seed=1)
    if len(shape) == 2:
        y = y.T.contiguous().T
    a, b = x.pynq(), y.pynq()
    log = torch.pynq.kernel_logger
    log.clear()
    log.enable()
    try:
        result = a * b
    finally:
        log.disable()
    assert {entry["cu"] for entry in log.entries()} == {"binary_f32_0", "binary_f32_1"}
    assert all(entry["operator"] == "aten::mul.Tensor" for entry in log.entries())
    assert torch.equal(result.cpu(), x * y)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: torch.where(x.T > 0, y, y),
        lambda x, y: torch.where(y > 0, x.T, 0.0),
        lambda x, y: torch.where(torch.ones(4, 1, dtype=torch.bool, device=x.device), y, x.T),
        lambda x, y: y - x.T,
        lambda x, y: 1 - x.T,
        lambda x, y: 1.5**x.T,
        lambda x, y: 1 ** (x.T + 1),
        lambda x, y: x.T.abs() ** 1.5,
        lambda x, y: 5 % x.T,
        lambda x, y: torch.lerp(y, x.T, x.T),
        lambda x, y: torch.ops.aten.leaky_relu_backward(x.T, y, 0.1, False),
        lambda x, y: torch.ops.aten.threshold_backward(x.T, y, 0.0),
        lambda x, y: torch.ops.aten.threshold_backward(y, x.T, 0.0),
        lambda x, y: torch.ops.aten.tanh_backward(x.T, y),
        lambda x, y: torch.ops.aten.hardtanh_backward(x.T, y, -1.0, 1.0),
    ],
)
def test_results_lie_as_the_cpus_do(call: Callable[..., Any]) -> None:
    loaded("pointwise")
    x, y = some(5, 4), some(4, 5, seed=1)
    with watched() as calls:
        found = call(x.pynq(), y.pynq())
    assert calls[-1].where == "PL"
    near(found, call(x, y), 4)


def test_broadcasting_copies_nothing() -> None:
    loaded("pointwise")
    a, row = some(64, 32).pynq(), some(32, seed=1).pynq()
    log = torch.pynq.kernel_logger
    log.clear()
    log.enable()
    try:
        result = a + row
    finally:
        log.disable()
    (entry,) = log.entries()
    address = f"0x{torch.pynq.physical_address(row):08x}"
    assert entry["arguments"]["b"]["address"] == address
    assert [entry["arguments"][f"b{d}"] for d in range(4)] == [0, 0, 0, 1]
    assert torch.equal(result.cpu(), a.cpu() + row.cpu())


def test_more_loops_than_the_kernel_has() -> None:
    loaded("pointwise")
    x, y = some(2, 3, 2, 3, 2, 3), some(3, 2, 3, 2, 3, 2, seed=1)
    a, b = x.pynq()[..., ::2], y.pynq().permute(1, 0, 3, 2, 5, 4)[..., ::2]
    near(a + b, a.cpu() + b.cpu(), 0)


def test_a_lazily_negated_operand() -> None:
    loaded("pointwise")
    x = some(6)
    a = torch._neg_view(x.pynq())
    assert torch.equal((a + 1).cpu(), 1 - x)


# ---- what is declined ----------------------------------------------------------------------------

DECLINED: list[tuple[str, str, Callable[..., Any]]] = [
    ("add", "take float32, int32 and int8|float32, int32, int8", lambda x, i: x.double() + 1),
    ("add", "differ in dtype", lambda x, i: x + i),
    ("add", "no elements", lambda x, i: x[:0] + 1),
    ("add", "does not fit", lambda x, i: x + (1 << 30)),
    ("add", "is not on device", lambda x, i: x + torch.ones(1)),
    ("add", "no kernel binary_i32 is loaded: .*'pointwise_int'", lambda x, i: i + i),
    ("mul", "no kernel binary_i32", lambda x, i: i * 2.5),
    ("mul", "does not fit", lambda x, i: x * 2j),
    ("clamp", "a limit is NaN", lambda x, i: x.clamp(min=float("nan"))),
    ("remainder", "divided by 0", lambda x, i: i % 0),
    ("round", "no kernel serves", lambda x, i: x.round(decimals=1)),
    ("pow", "negative power", lambda x, i: i**-1),
    ("gelu", "no such approximation", lambda x, i: F.gelu(x, approximate="erf")),
]


@pytest.mark.parametrize(("name", "reason", "call"), DECLINED)
def test_the_cpu_does_the_rest(name: str, reason: str, call: Callable[..., Any]) -> None:
    loaded("pointwise")
    x, i = some(3, 4), some(3, 4, dtype=torch.int32)

    def outcome(*arguments: torch.Tensor) -> Any:
        try:
            return call(*arguments)
        except (RuntimeError, ZeroDivisionError) as error:
            return type(error)

    with watched() as calls:
        result = outcome(x.pynq(), i.pynq())
    (done,) = of(calls, name)
    assert done.where == "CPU"
    assert re.search(reason, done.reason), done.reason
    expected = outcome(x, i)
    if "not on device" in reason:
        assert result is RuntimeError  # two devices do not mix, whatever the CPU could do
    elif isinstance(expected, type):
        assert issubclass(result, expected) or issubclass(expected, result)
    else:
        torch.testing.assert_close(result.cpu(), expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("div", lambda i: i / 2),
        ("exp", lambda i: i.exp()),
        ("floor_divide", lambda i: i // (i * 0)),
        ("add", lambda i: i + 1.5),
        ("add", lambda i: i.to(torch.int8) + 300),
    ],
)
def test_integers_that_the_cpu_does(name: str, call: Callable[..., Any]) -> None:
    loaded("pointwise_int")
    i = some(3, 4, dtype=torch.int32)
    with watched() as calls:
        try:
            result = call(i.pynq()).cpu()
        except RuntimeError as error:
            result = str(error)
    assert [c.where for c in of(calls, name)] == ["CPU"]
    try:
        assert torch.equal(result, call(i))
    except RuntimeError as error:
        assert str(error) in result


def test_samples_of_pytorch_s_own_table() -> None:
    """What is exact is the CPU's bit for bit, also in op_db's corner cases."""
    from opdb import table
    from opdb.pool import Pool

    names = ("clamp", "where")
    committed = table.committed()
    pool = Pool(names, overlay="pointwise")
    try:
        for name in names:
            cases = pool.cases(name)
            assert not [case.failures for case in cases if case.failed], name
            assert table.row(cases) == committed[name]
    finally:
        pool.close()


def test_nothing_changes_without_the_overlay() -> None:
    loaded("vadd")
    assert not is_served("unary", torch.float32)
    x = some(3, 4)
    with watched() as calls:
        result = x.pynq().relu() * 2
    assert [c.where for c in of(calls, "relu", "mul")] == ["CPU", "CPU"]
    assert torch.equal(result.cpu(), x.relu() * 2)
    pynq_torch.load("pointwise")
    assert is_served("unary", torch.float32)
    assert torch.equal(on_pl("relu", lambda: x.pynq().relu()).cpu(), x.relu())
