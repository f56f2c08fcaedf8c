"""Losses on device "pynq": the CPU's values and gradients, done by the PL."""

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
from pynq_torch.kernels.tables import loss
from pynq_torch.paths import ROOT

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("closing")]
__all__ = ["closing"]

OPERATORS = ("nll_loss_forward", "nll_loss_backward", "nll_loss2d_forward", "nll_loss2d_backward")
EPS = 2.0**-24
#: The least step of float32.
SMALLEST = 2.0**-149
SPECIAL = (float("nan"), -float("inf"), 0.0, -0.0, 1e-45, -1e36)


@pytest.fixture
def neural() -> Any:
    return loaded("neural")


def scores(*shape: int, seed: int = 0, special: bool = False) -> torch.Tensor:
    """Return log-probabilities, with `special` some that no softmax gives."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.log_softmax(3 * torch.randn(shape, generator=generator), -1)
    if special:
        chosen = torch.randint(0, 12 * len(SPECIAL), shape, generator=generator)
        for i, value in enumerate(SPECIAL):
            values[chosen == i] = value
    return values


def same(found: torch.Tensor, expected: torch.Tensor) -> None:
    """Assert equal values; any NaN is one."""
    assert found.device.type == "pynq" and found.dtype is expected.dtype
    assert found.shape == expected.shape and found.stride() == expected.stride()
    torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=0, equal_nan=True)


def near(found: torch.Tensor, exact: torch.Tensor, ulps: float, scale: torch.Tensor) -> None:
    """Assert a distance to float64 results of at most so many roundings of `scale`."""
    assert found.device.type == "pynq" and found.dtype is torch.float32
    found = found.cpu().double()
    assert torch.equal(found.isfinite(), exact.float().isfinite())
    error = (found - exact)[exact.isfinite()].abs()
    assert bool(
        (error <= 2 * ulps * EPS * scale.expand(exact.shape)[exact.isfinite()] + SMALLEST).all()
    )


@st.composite
def problems(draw: Any) -> tuple[torch.Tensor, torch.Tensor, dict[str, Any]]:
    """Return log-probabilities in some layout, targets, and the other arguments of a loss."""
    seed = draw(st.integers(0, 2**31))
    classes, batch = draw(st.integers(1, 12)), draw(st.integers(1, 9))
    pixels = draw(st.sampled_from([(), (3, 5), (1, 1), (2, 300)]))
    values = scores(batch, *pixels, classes, seed=seed, special=draw(st.booleans()))
    values = values.movedim(-1, 1)
    layout = draw(st.sampled_from(["classes last", "contiguous", "every other"]))
    if layout == "contiguous":
        values = values.contiguous()
    elif layout == "every other":
        base = torch.full((2 * batch, *values.shape[1:]), 9.0)
        base[1::2] = values
        values = base[1::2]
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(0, classes, (batch, *pixels), generator=generator)
    ignored = draw(st.sampled_from([-100, 0, 2**31 - 1]))
    if ignored:
        target[torch.rand(target.shape, generator=generator) < 0.2] = ignored
    weight = torch.rand(classes, generator=generator) if draw(st.booleans()) else None
    reduction = draw(st.sampled_from(["none", "mean", "sum"]))
    return values, target, {"weight": weight, "ignore_index": ignored, "reduction": reduction}


def to_pynq(arguments: dict[str, Any]) -> dict[str, Any]:
    return {k: v.to("pynq") if isinstance(v, torch.Tensor) else v for k, v in arguments.items()}


@settings(max_examples=50)
@given(problem=problems())
def test_losses_and_gradients(problem: Any) -> None:
    loaded("neural")
    values, target, arguments = problem
    mine = values.to("pynq").requires_grad_()
    # Contiguous, since torch's gradient of a loss of images refuses others.
    theirs = values.clone(memory_format=torch.contiguous_format).requires_grad_()
    expected = functional.nll_loss(theirs, target, **arguments)
    with watched() as calls:
        found = functional.nll_loss(mine, target.to("pynq"), **to_pynq(arguments))
    weight, rule = arguments["weight"], arguments["reduction"]
    gradient = torch.rand(expected.shape, generator=torch.Generator().manual_seed(1))
    expected.backward(gradient)
    with watched() as more:
        found.backward(gradient.to("pynq"))
    assert mine.grad is not None and theirs.grad is not None
    if rule == "none":
        same(found.detach(), expected.detach())
    else:
        doubled = {**arguments, "weight": None if weight is None else weight.double()}
        exact = functional.nll_loss(values.double(), target, **doubled)
        sizes = {**doubled, "reduction": rule}
        near(found.detach(), exact, 4, functional.nll_loss(-values.double().abs(), target, **sizes))
    if weight is not None and rule == "mean":
        # The total of the weights may differ by a rounding, and by how torch has added them up.
        torch.testing.assert_close(
            mine.grad.cpu(), theirs.grad, rtol=4e-7, atol=1e-45, equal_nan=True
        )
    else:
        torch.testing.assert_close(mine.grad.cpu(), theirs.grad, rtol=0, atol=0, equal_nan=True)
    places = [(c.where, c.reason, len(c.kernels)) for c in of(calls + more, *OPERATORS)]
    assert places == [("PL", "", 1)] * 2


def test_a_long_batch_is_summed_without_loss(neural: Any) -> None:
    values = scores(5000, 10)
    target = torch.arange(5000) % 10
    exact = functional.nll_loss(values.double(), target, reduction="sum")
    found = functional.nll_loss(values.to("pynq"), target.to("pynq"), reduction="sum")
    assert float(found) == float(exact.float())


def test_a_sample_without_a_batch(neural: Any) -> None:
    values, target = scores(7), torch.tensor(3)
    for reduction in ("none", "mean", "sum"):
        mine = values.to("pynq").requires_grad_()
        with watched() as calls:
            found = functional.nll_loss(mine, target.to("pynq"), reduction=reduction)
            found.backward()
        same(found.detach(), -values[3])
        assert mine.grad is not None and mine.grad.tolist() == [0, 0, 0, -1, 0, 0, 0]
        assert [c.where for c in of(calls, *OPERATORS)] == ["PL"] * 2


def test_the_total_of_the_weights(neural: Any) -> None:
    values, target, weight = scores(4, 3), torch.tensor([0, 2, 1, 2]), torch.tensor([0.5, 2.0, 4.0])
    forward = torch.ops.aten.nll_loss_forward
    for reduction in (loss.NONE, loss.MEAN, loss.SUM):
        for given_ in (None, weight):
            mine = None if given_ is None else given_.to("pynq")
            found = forward(values.to("pynq"), target.to("pynq"), mine, reduction, 2)
            expected = forward(values, target, given_, reduction, 2)
            assert float(found[1]) == float(expected[1])


def test_nothing_but_ignored_targets(neural: Any) -> None:
    values, target = scores(3, 4), torch.full((3,), -100)
    for reduction in ("mean", "sum"):
        mine = values.to("pynq").requires_grad_()
        theirs = values.clone().requires_grad_()
        found = functional.nll_loss(mine, target.to("pynq"), reduction=reduction)
        expected = functional.nll_loss(theirs, target, reduction=reduction)
        found.backward()
        expected.backward()
        same(found.detach(), expected.detach())
        assert mine.grad is not None and theirs.grad is not None
        same(mine.grad, theirs.grad)


def test_cross_entropy_is_composed(neural: Any) -> None:
    values = torch.randn(6, 5, generator=torch.Generator().manual_seed(2))
    target = torch.tensor([0, 1, 2, 3, 4, 0])
    mine, theirs = values.to("pynq").requires_grad_(), values.clone().requires_grad_()
    with watched() as calls:
        found = functional.cross_entropy(mine, target.to("pynq"), label_smoothing=0.1)
        found.backward()
    expected = functional.cross_entropy(theirs, target, label_smoothing=0.1)
    expected.backward()
    torch.testing.assert_close(found.cpu(), expected)
    assert mine.grad is not None
    torch.testing.assert_close(mine.grad.cpu(), theirs.grad)
    assert [c.where for c in of(calls, *OPERATORS)] == ["PL"] * 2
    shares = torch.softmax(values, 1)
    with watched() as calls:
        found = functional.cross_entropy(mine.detach(), shares.to("pynq"))
    torch.testing.assert_close(found.cpu(), functional.cross_entropy(values, shares))
    assert not of(calls, *OPERATORS)  # with probabilities it is no loss of classes


def test_out(neural: Any) -> None:
    values, target = scores(4, 3), torch.tensor([0, 2, 1, 2])
    x, y = values.to("pynq"), target.to("pynq")
    out, total = torch.empty((), device="pynq"), torch.empty((), device="pynq")
    gradient = torch.empty(4, 3, device="pynq")
    with watched() as calls:
        torch.ops.aten.nll_loss_forward.output(x, y, None, 1, -100, output=out, total_weight=total)
        torch.ops.aten.nll_loss_backward.grad_input(
            out, x, y, None, 1, -100, total, grad_input=gradient
        )
    expected = functional.nll_loss(values, target)
    assert abs(float(out) - float(expected)) <= 4 * EPS * float(expected)
    assert float(total) == 4 and float(gradient[0, 0]) == -float(out) / 4
    assert [c.where for c in calls if "nll" in c.op] == ["PL"] * 2


# ---- what the CPU does, and says -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "target", "weight", "ignored", "reason"),
    [
        (scores(2, 3).double(), torch.tensor([0, 1]), None, -100, "float32"),
        (scores(2, 3), torch.tensor([0, 1], dtype=torch.uint8), None, -100, "int64"),
        (scores(2, 3), torch.tensor([0, 1]), None, 2**40, "32 bits"),
        (scores(0, 3), torch.tensor([], dtype=torch.int64), None, -100, "empty"),
    ],
)
def test_the_cpu_does_the_rest_and_says_why(
    neural: Any, values: Any, target: Any, weight: Any, ignored: int, reason: str
) -> None:
    with watched() as calls:
        found = functional.nll_loss(values.to("pynq"), target.to("pynq"), ignore_index=ignored)
    expected = functional.nll_loss(values, target, ignore_index=ignored)
    assert torch.equal(found.cpu(), expected) or bool(expected.isnan())
    (call,) = of(calls, *OPERATORS)
    assert call.where == "CPU" and reason in call.reason and not call.kernels


@pytest.mark.parametrize(
    ("values", "target", "weight"),
    [
        (scores(2, 3), torch.tensor([0, 3]), None),
        (scores(2, 3), torch.tensor([-1, 0]), None),
        (scores(2, 3), torch.tensor([0, 1, 2]), None),
        (scores(2, 3), torch.tensor([0, 1]), torch.ones(4)),
        (scores(2, 4, 4).movedim(-1, 1)[None], torch.full((1, 2, 4), 7), None),
    ],
)
def test_errors_are_the_cpus(neural: Any, values: Any, target: Any, weight: Any) -> None:
    with pytest.raises((RuntimeError, IndexError, ValueError)) as on_cpu:
        functional.nll_loss(values, target, weight)
    mine = None if weight is None else weight.to("pynq")
    with pytest.raises(type(on_cpu.value)) as on_pl:
        functional.nll_loss(values.to("pynq"), target.to("pynq"), mine)
    assert str(on_pl.value) == str(on_cpu.value)


def test_without_the_overlay(neural: Any) -> None:
    values, target = scores(2, 3).to("pynq"), torch.tensor([0, 1]).to("pynq")
    try:
        pynq_torch.load("vadd")
        with watched() as calls:
            found = functional.nll_loss(values, target)
        (call,) = of(calls, *OPERATORS)
        assert call.where == "CPU" and "load('neural')" in call.reason
        assert torch.equal(found.cpu(), functional.nll_loss(values.cpu(), target.cpu()))
    finally:
        pynq_torch.load("neural")


# ---- the driver ----------------------------------------------------------------------------------


def test_the_driver(neural: Any) -> None:
    unit = neural.nll_f32_0
    values, target, weight = scores(6, 4), torch.tensor([0, 1, -9, 3, 2, 1]), torch.rand(4)
    found = unit(values, target, weight, ignore_index=-9, reduction="none")
    expected = functional.nll_loss(values, target, weight, ignore_index=-9, reduction="none")
    assert torch.equal(found, expected)
    pixels = scores(2, 7, 3).movedim(-1, 1)
    classes = torch.arange(14).reshape(2, 7) % 3
    torch.testing.assert_close(unit(pixels, classes), functional.nll_loss(pixels, classes))


@pytest.mark.parametrize(
    ("values", "target", "options", "said"),
    [
        (scores(3), torch.tensor([0, 1, 2]), {}, r"shape \(3,\); expected \[N, C\]"),
        (scores(2, 3).double(), torch.tensor([0, 1]), {}, "dtype torch.float64"),
        (scores(2, 3), torch.tensor([0, 1, 2]), {}, r"shape \(3,\); expected \(2,\)"),
        (scores(2, 3), torch.tensor([0, 3]), {}, "the class 3; expected 0 to 2"),
        (scores(2, 3), torch.tensor([0, 1]), {"reduction": "best"}, "'best'; expected one of none"),
        (scores(2, 3), torch.tensor([0, 1]), {"weight": torch.ones(2)}, r"expected \(3,\)"),
    ],
)
def test_the_driver_says_what_is_wrong(
    neural: Any, values: Any, target: Any, options: Any, said: str
) -> None:
    with pytest.raises(ArgumentError, match=said):
        neural.nll_f32_0(values, target, **options)


def test_the_table_is_what_the_source_says() -> None:
    text = (ROOT / "hw/include/nll.hpp").read_text()
    for kind, names in (("Op", ("FORWARD", "BACKWARD")), ("Reduction", ("NONE", "MEAN", "SUM"))):
        listed = ", ".join(f"{name} = {getattr(loss, name)}" for name in names)
        assert f"enum {kind} {{ {listed} }};" in text
