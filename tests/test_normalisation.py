"""Normalisation on device "pynq": within the stated roundings of the exact values, on the PL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from device_helpers import closing, loaded, of, watched
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

import pynq_torch
from pynq_torch.errors import ArgumentError
from pynq_torch.kernels.tables import normalisation
from pynq_torch.ops.normalisation import ROUNDINGS
from pynq_torch.paths import ROOT

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("closing")]
__all__ = ["closing"]

OPERATORS = (
    *("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training"),
    "native_layer_norm",
)
HALF_ULP = 2.0**-24
#: Denormal results are rounded in steps of their own.
TINY = 2.0**-149


@pytest.fixture
def neural() -> Any:
    return loaded("neural")


def values(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def as_is(x: torch.Tensor) -> torch.Tensor:
    return x


def channels_last(x: torch.Tensor) -> torch.Tensor:
    return x.movedim(1, -1).contiguous().movedim(-1, 1) if x.dim() > 2 else x


def transposed(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(0, -1).contiguous().transpose(0, -1)


def every_other(x: torch.Tensor) -> torch.Tensor:
    base = torch.full([2 * n for n in x.shape], 77.0)
    chosen = base[tuple(slice(None, None, 2) for _ in x.shape)]
    chosen.copy_(x)
    return chosen


def expanded(x: torch.Tensor) -> torch.Tensor:
    return x[:1].expand(x.shape)


LAYOUTS = (as_is, channels_last, transposed, every_other, expanded)


def on_pynq(x: torch.Tensor) -> torch.Tensor:
    """Return the values on "pynq" with the same strides."""
    base = x.as_strided((x.untyped_storage().nbytes() // 4,), (1,), 0)
    return base.to("pynq").as_strided(x.shape, x.stride(), x.storage_offset())


def within(found: torch.Tensor, normal: torch.Tensor, exact: torch.Tensor) -> None:
    """Assert the bound that the kernel states; `normal` is the float64 result without the bias."""
    assert found.device.type == "pynq" and found.dtype is torch.float32
    error = (found.cpu().double() - exact).abs()
    bound = HALF_ULP * (ROUNDINGS * normal.abs() + exact.abs()) + TINY
    assert bool((error <= bound).all()), float((error / bound).max())


def ran(calls: Any) -> None:
    assert [(c.where, c.reason) for c in of(calls, *OPERATORS)] == [("PL", "")]
    # A row that is not in a row is made one by move_32 first.
    used = {run.cu for c in of(calls, *OPERATORS) for run in c.kernels}
    assert "norm_f32_0" in used <= {"norm_f32_0", "move_32_0"}


shapes = st.lists(st.integers(1, 7), min_size=2, max_size=5).map(tuple)


@settings(max_examples=50)
@given(
    shape=shapes,
    layout=st.sampled_from(LAYOUTS),
    weighted=st.booleans(),
    biased=st.booleans(),
    offset=st.sampled_from([0.0, 1000.0]),
    seed=st.integers(0, 2**31),
)
def test_batches(
    shape: Any, layout: Any, weighted: bool, biased: bool, offset: float, seed: int
) -> None:
    loaded("neural")
    x = layout(values(*shape, seed=seed) + offset)
    channels = shape[1]
    mean, variance = values(channels, seed=1) + offset, values(channels, seed=2).square() + 0.01
    weight = values(channels, seed=3) if weighted else None
    bias = values(channels, seed=4) if biased else None
    mine = [None if v is None else v.to("pynq") for v in (mean, variance, weight, bias)]
    with watched() as calls:
        found = functional.batch_norm(on_pynq(x), *mine, eps=1e-3)
    ran(calls)
    along = (1, channels) + (1,) * (len(shape) - 2)
    at, spread, scale, shift = (
        default if v is None else v.double().reshape(along)
        for v, default in ((mean, 0), (variance, 0), (weight, 1.0), (bias, 0.0))
    )
    # torch's own float64 takes the mean off after the product: too coarse where x is near it.
    normal = (x.double() - at) / (spread + float(torch.tensor(1e-3))).sqrt() * scale
    exact = normal + shift
    within(found, normal, exact)
    if layout in (as_is, channels_last) and len(shape) in (2, 3, 4):
        assert found.stride() == functional.batch_norm(x, mean, variance, weight, bias).stride()


@settings(max_examples=50)
@given(
    shape=shapes,
    data=st.data(),
    layout=st.sampled_from(LAYOUTS),
    weighted=st.booleans(),
    biased=st.booleans(),
    offset=st.sampled_from([0.0, 1000.0]),
    seed=st.integers(0, 2**31),
)
def test_layers(
    shape: Any, data: Any, layout: Any, weighted: bool, biased: bool, offset: float, seed: int
) -> None:
    loaded("neural")
    x = layout(values(*shape, seed=seed) + offset)
    row = shape[data.draw(st.integers(0, len(shape) - 1)) :]
    weight = values(*row, seed=3) if weighted else None
    bias = values(*row, seed=4) if biased else None
    mine = [None if v is None else v.to("pynq") for v in (weight, bias)]
    doubled = [None if v is None else v.double() for v in (weight, bias)]
    eps = 2.0**-10
    with watched() as calls:
        found, mean, factor = torch.native_layer_norm(on_pynq(x), row, *mine, eps)
    ran(calls)
    exact, mean64, factor64 = torch.native_layer_norm(x.double(), row, *doubled, eps)
    normal = torch.native_layer_norm(x.double(), row, doubled[0], None, eps)[0]
    # In float64 the mean is not exact either: as much as that is seen where it is a thousand.
    slack = 1e-12 * factor64 * (1 if weight is None else weight.double().abs())
    within(found, normal.abs() + slack / HALF_ULP, exact)
    assert mean.shape == mean64.shape and found.is_contiguous()
    within(mean, torch.zeros_like(mean64), mean64 * (1 + 1e-12))
    assert bool(((factor.cpu() - factor64).abs() <= 5 * HALF_ULP * factor64).all())


@pytest.mark.parametrize("shape", [(3, 5000), (2, 9001)])
def test_rows_longer_than_the_chip_has_room_for(neural: Any, shape: tuple[int, ...]) -> None:
    x = values(*shape) + 3
    with watched() as calls:
        found = functional.layer_norm(x.to("pynq"), shape[1:])
    ran(calls)
    exact = functional.layer_norm(x.double(), shape[1:])
    within(found, exact, exact)


def test_more_channels_than_the_chip_has_room_for(neural: Any) -> None:
    x, mean, variance = values(3, 2500), values(2500, seed=1), values(2500, seed=2).square()
    with watched() as calls:
        found = functional.batch_norm(*(v.to("pynq") for v in (x, mean, variance)))
    ran(calls)
    exact = functional.batch_norm(*(v.double() for v in (x, mean, variance)), eps=1e-5)
    within(found, exact, exact)


@pytest.mark.parametrize("special", [float("nan"), float("inf"), -float("inf")])
def test_special_values_spread_as_in_torch(neural: Any, special: float) -> None:
    x = values(4, 6, 5)
    x[1, 2, 3] = special
    mean, variance = values(6, seed=1), values(6, seed=2).square()
    variance[4] = -1.0
    variance[5] = float("inf")
    for function in (
        lambda x, m, v: functional.batch_norm(x, m, v),
        lambda x, m, v: functional.layer_norm(x, (6, 5)),
        lambda x, m, v: functional.layer_norm(x, (5,)),
    ):
        expected = function(x, mean, variance)
        found = function(*(v.to("pynq") for v in (x, mean, variance)))
        torch.testing.assert_close(found.cpu(), expected, equal_nan=True)


MODULES: dict[str, tuple[Callable[[], torch.nn.Module], tuple[int, ...]]] = {
    "BatchNorm1d": (lambda: torch.nn.BatchNorm1d(6), (4, 6)),
    "BatchNorm2d": (lambda: torch.nn.BatchNorm2d(6), (4, 6, 5, 3)),
    "BatchNorm3d": (lambda: torch.nn.BatchNorm3d(6, affine=False), (4, 6, 5, 3, 2)),
    "LayerNorm": (lambda: torch.nn.LayerNorm((5, 3)), (4, 6, 5, 3)),
    "InstanceNorm2d": (lambda: torch.nn.InstanceNorm2d(6, track_running_stats=True), (1, 6, 5, 3)),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_and_their_gradients(neural: Any, name: str) -> None:
    make, shape = MODULES[name]
    torch.manual_seed(0)
    module = make().train()
    module(values(*shape, seed=9))
    module.eval()
    x = values(*shape)
    grads = []
    with watched() as calls:
        for device in ("cpu", "pynq"):
            module.to(device).zero_grad()
            given_ = x.clone().to(device).requires_grad_()
            result = module(given_)
            result.square().sum().backward()
            assert given_.grad is not None
            grads.append([result.detach().cpu(), given_.grad.cpu()])
            grads[-1] += [p.grad.cpu() for p in module.parameters() if p.grad is not None]
    ran(calls)
    assert len(grads[0]) == len(grads[1])
    for theirs, mine in zip(*grads, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)


def test_the_other_names_of_the_operator(neural: Any) -> None:
    x, mean, variance = (v.to("pynq") for v in (values(2, 3, 4), values(3), values(3).square()))
    aten = torch.ops.aten
    with watched() as calls:
        first = aten._native_batch_norm_legit_no_training(x, None, None, mean, variance, 0.1, 1e-5)
        second = aten._native_batch_norm_legit(x, None, None, mean, variance, False, 0.1, 1e-5)
    assert [c.where for c in of(calls, *OPERATORS)] == ["PL"] * 2
    for found in (first, second):
        assert [tuple(t.shape) for t in found] == [(2, 3, 4), (0,), (0,)]
        assert torch.equal(found[0].cpu(), first[0].cpu())


# ---- what the CPU does, and says -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: functional.batch_norm(x, None, None, training=True), "statistics of the batch"),
        (lambda x: functional.layer_norm(x.double(), (4,)), "float32"),
        (lambda x: functional.layer_norm(x[:0], (4,)), "empty"),
    ],
)
def test_the_cpu_does_the_rest_and_says_why(neural: Any, function: Any, reason: str) -> None:
    x = values(2, 3, 4)
    with watched() as calls:
        found = function(x.to("pynq"))
    torch.testing.assert_close(found.cpu(), function(x))
    (call,) = of(calls, *OPERATORS)
    assert call.where == "CPU" and reason in call.reason and not call.kernels


@pytest.mark.parametrize(
    "function",
    [
        lambda x: functional.layer_norm(x, (3,)),
        lambda x: functional.layer_norm(x, (4,), x[0, 0, :3]),
        lambda x: functional.batch_norm(x, x[0, 0], x[0, 0]),
    ],
)
def test_errors_are_the_cpus(neural: Any, function: Any) -> None:
    x = values(2, 3, 4)
    with pytest.raises(RuntimeError) as on_cpu:
        function(x)
    with pytest.raises(RuntimeError) as on_pl:
        function(x.to("pynq"))
    assert str(on_pl.value) == str(on_cpu.value)


def test_without_the_overlay(neural: Any) -> None:
    x = values(2, 3, 4).to("pynq")
    try:
        pynq_torch.load("vadd")
        with watched() as calls:
            found = functional.layer_norm(x, (4,))
        (call,) = of(calls, *OPERATORS)
        assert call.where == "CPU" and "load('neural')" in call.reason
        assert torch.equal(found.cpu(), functional.layer_norm(x.cpu(), (4,)))
    finally:
        pynq_torch.load("neural")


# ---- the driver ----------------------------------------------------------------------------------


def test_the_driver(neural: Any) -> None:
    unit = neural.norm_f32_0
    x, weight, bias = values(4, 6, 5), values(6, seed=1), values(6, seed=2)
    mean, variance = values(6, seed=3), values(6, seed=4).square()
    found = unit(transposed(x), mean, variance, weight, bias)
    torch.testing.assert_close(found, functional.batch_norm(x, mean, variance, weight, bias))
    found = unit(every_other(x), weight=weight[:5], eps=0.1)
    torch.testing.assert_close(found, functional.layer_norm(x, (5,), weight[:5], eps=0.1))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((values(2, 3).double(),), "dtype torch.float64"),
        ((values(2, 3), values(3)), "expected both, or none"),
        ((values(3), values(3), values(3)), r"expected \[N, C, ...\]"),
        ((values(0, 3),), r"expected \[..., L\]"),
        ((values(2, 3), values(2), values(3)), r"mean has shape \(2,\); expected \(3,\)"),
    ],
)
def test_the_driver_says_what_is_wrong(neural: Any, arguments: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        neural.norm_f32_0(*arguments)


def test_the_table_is_what_the_source_says() -> None:
    text = (ROOT / "hw/include/norm.hpp").read_text()
    for kind, names in (("Op", ("BATCH", "LAYER")), ("Affine", ("WEIGHT", "BIAS"))):
        listed = ", ".join(f"{name} = {getattr(normalisation, name)}" for name in names)
        assert f"enum {kind} {{ {listed} }};" in text
    assert f"within {ROUNDINGS} roundings" in text
