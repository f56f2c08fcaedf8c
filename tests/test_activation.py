"""ReLU and its gradient on ``activation_f32``: torch's values, done by the PL, in any layout."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from device_helpers import closing, loaded, of, watched
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

import pynq_torch
from pynq_torch.errors import ArgumentError

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("closing")]
__all__ = ["closing"]

OPERATORS = ("relu", "relu_", "threshold_backward")
SPECIAL = (float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-45, -1e-45, 1.5)


@pytest.fixture
def lenet() -> Any:
    return loaded("lenet")


def values(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    found = torch.randn(shape, generator=generator)
    chosen = torch.randint(0, 4 * len(SPECIAL), shape, generator=generator)
    for i, value in enumerate(SPECIAL):
        found[chosen == i] = value
    return found


def as_is(x: torch.Tensor) -> torch.Tensor:
    return x


def channels_last(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x


def transposed(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(0, -1).contiguous().transpose(0, -1)


def every_other(x: torch.Tensor) -> torch.Tensor:
    base = torch.full([2 * n for n in x.shape], 77.0)
    chosen = base[tuple(slice(None, None, 2) for _ in x.shape)]
    chosen.copy_(x)
    return chosen


def expanded(x: torch.Tensor) -> torch.Tensor:
    return x[:1].expand(x.shape)


def permuted(x: torch.Tensor) -> torch.Tensor:
    """Without gaps, in an order of its own."""
    order = [*range(1, x.dim()), 0]
    return x.permute(order).contiguous().permute([x.dim() - 1, *range(x.dim() - 1)])


LAYOUTS = (as_is, channels_last, transposed, permuted, every_other, expanded)
shapes = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)


def on_pynq(x: torch.Tensor) -> torch.Tensor:
    """Return the values on "pynq" with the same strides."""
    base = x.as_strided((x.untyped_storage().nbytes() // 4,), (1,), 0)
    return base.to("pynq").as_strided(x.shape, x.stride(), x.storage_offset())


def same(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert found.device.type == "pynq" and found.shape == expected.shape
    torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=0, equal_nan=True)


@settings(max_examples=50)
@given(
    shape=shapes,
    layout=st.sampled_from(LAYOUTS),
    other=st.sampled_from(LAYOUTS),
    threshold=st.sampled_from([0, 1.5, -0.25]),
    seed=st.integers(0, 2**31),
)
def test_values_and_gradients(
    shape: Any, layout: Any, other: Any, threshold: float, seed: int
) -> None:
    loaded("lenet")
    x, gradient = layout(values(*shape, seed=seed)), other(values(*shape, seed=seed + 1))
    with watched() as calls:
        found = torch.relu(on_pynq(x))
        slope = torch.ops.aten.threshold_backward(on_pynq(gradient), on_pynq(x), threshold)
    same(found, torch.relu(x))
    same(slope, torch.ops.aten.threshold_backward(gradient, x, threshold))
    if layout in (as_is, channels_last):
        assert found.stride() == torch.relu(x).stride()
    for mine, theirs in (
        (found, torch.relu(x)),
        (slope, torch.ops.aten.threshold_backward(gradient, x, threshold)),
    ):
        strides = zip(shape, mine.stride(), theirs.stride(), strict=True)
        assert all(n == 1 or s == t for n, s, t in strides)
    ran = [(c.where, c.kernels[-1].cu) for c in of(calls, *OPERATORS)]
    assert ran == [("PL", "activation_f32_0")] * 2


@pytest.mark.parametrize("n", [511, 512, 513, 5000])
def test_lengths_around_the_tile(lenet: Any, n: int) -> None:
    x = values(n)
    mine, theirs = x.to("pynq").requires_grad_(), x.clone().requires_grad_()
    with watched() as calls:
        functional.relu(mine).sum().backward()
    functional.relu(theirs).sum().backward()
    assert mine.grad is not None and theirs.grad is not None
    same(mine.grad, theirs.grad)
    assert [c.where for c in of(calls, *OPERATORS)] == ["PL"] * 2


def test_in_place_and_out(lenet: Any) -> None:
    x = values(3, 5)
    y, out, slope = x.to("pynq"), torch.empty(3, 5).to("pynq"), torch.empty(3, 5).to("pynq")
    with watched() as calls:
        torch.ops.aten.relu.out(y, out=out)
        torch.ops.aten.threshold_backward.grad_input(y, y, 0, grad_input=slope)
        assert functional.relu(y, inplace=True) is y
    for found in (y, out, slope):
        same(found, torch.relu(x))
    assert [c.where for c in of(calls, *OPERATORS)] == ["PL"] * 3


@pytest.mark.parametrize(
    ("x", "reason"), [(values(4).double(), "float32"), (values(0), "nothing to compute")]
)
def test_the_cpu_does_the_rest_and_says_why(lenet: Any, x: torch.Tensor, reason: str) -> None:
    with watched() as calls:
        found = torch.relu(x.to("pynq"))
    same(found, torch.relu(x))
    (call,) = of(calls, *OPERATORS)
    assert call.where == "CPU" and reason in call.reason


def test_gradients_that_do_not_fit_are_the_cpus(lenet: Any) -> None:
    x, gradient = values(4, 3), values(3)
    backward = torch.ops.aten.threshold_backward
    same(backward(gradient.to("pynq"), x.to("pynq"), 0), backward(gradient, x, 0))
    with watched() as calls:
        backward(gradient.double().to("pynq"), gradient.to("pynq"), 0)
    assert [c.reason for c in of(calls, *OPERATORS)] == ["the operands differ in dtype"]


def test_the_driver(lenet: Any) -> None:
    unit = lenet.activation_f32_0
    x, gradient = values(6, 7), values(6, 7, seed=1)
    torch.testing.assert_close(unit(x.t()), torch.relu(x.t()), rtol=0, atol=0, equal_nan=True)
    expected = torch.ops.aten.threshold_backward(gradient, x, 0.5)
    found = unit(x, gradient, threshold=0.5)
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    assert unit(x[:0]).shape == (0, 7)
    with pytest.raises(ArgumentError, match="dtype torch.float64"):
        unit(x.double())
    with pytest.raises(ArgumentError, match=r"gradient has shape \(3,\)"):
        unit(x, gradient[0, :3])


def test_without_the_overlay(lenet: Any) -> None:
    x = values(4).to("pynq")
    try:
        pynq_torch.load("vadd")
        with watched() as calls:
            found = torch.relu(x)
        assert [c.where for c in of(calls, *OPERATORS)] == ["CPU"]
        same(found, torch.relu(x.cpu()))
    finally:
        pynq_torch.load("lenet")
