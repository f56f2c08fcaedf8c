"""Pooling on device "pynq": bit for bit the CPU's values, indices and gradients, done by the PL."""

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
from pynq_torch.kernels.pool2d import Window, plan, pooled
from pynq_torch.kernels.tables import pooling
from pynq_torch.paths import ROOT

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("closing")]
__all__ = ["closing"]

OPERATORS = (
    *("max_pool2d_with_indices", "max_pool2d_with_indices_backward"),
    *("avg_pool2d", "avg_pool2d_backward"),
    *("_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward"),
)
SPECIAL = (float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-45, 3.4e38, -3.4e38)


@pytest.fixture
def neural() -> Any:
    return loaded("neural")


def images(*shape: int, seed: int = 0, special: bool = False) -> torch.Tensor:
    """Return random pixels, with `special` one in eight infinite, NaN or at the ends of float32."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(shape, generator=generator)
    if special:
        chosen = torch.randint(0, 8 * len(SPECIAL), shape, generator=generator)
        for i, value in enumerate(SPECIAL):
            values[chosen == i] = value
    return values


def same(found: torch.Tensor, expected: torch.Tensor) -> None:
    """Assert equal bits (any NaN is one, and any zero) and equal strides."""
    assert found.device.type == "pynq" and found.dtype is expected.dtype
    assert found.stride() == expected.stride()
    assert torch.equal(found.cpu().isnan(), expected.isnan())
    kept = ~expected.isnan()
    assert torch.equal(found.cpu()[kept], expected[kept])


# ---- how images may lie in memory ----------------------------------------------------------------


def as_is(values: torch.Tensor) -> torch.Tensor:
    return values


def channels_last(values: torch.Tensor) -> torch.Tensor:
    if values.dim() == 3:
        return values.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    return values.contiguous(memory_format=torch.channels_last)


def transposed(values: torch.Tensor) -> torch.Tensor:
    return values.transpose(-1, -2).contiguous().transpose(-1, -2)


def every_other(values: torch.Tensor) -> torch.Tensor:
    base = torch.full((*values.shape[:-2], 2 * values.shape[-2], 3 * values.shape[-1]), 77.0)
    base[..., ::2, 1::3] = values
    return base[..., ::2, 1::3]


def expanded(values: torch.Tensor) -> torch.Tensor:
    return values[..., :1].expand(values.shape)


LAYOUTS = (as_is, channels_last, transposed, every_other, expanded)


def on_pynq(values: torch.Tensor) -> torch.Tensor:
    """Return the values on "pynq" with the same strides."""
    base = values.as_strided((values.untyped_storage().nbytes() // 4,), (1,), 0)
    return base.to("pynq").as_strided(values.shape, values.stride(), values.storage_offset())


def both(function: Callable[..., Any], values: torch.Tensor) -> None:
    """Assert that a pooling and its gradient are done by the PL, as the CPU does them."""
    mine, theirs = on_pynq(values).requires_grad_(), values.detach().requires_grad_()
    assert mine.stride() == theirs.stride()
    expected = function(theirs)
    with watched() as calls:
        found = function(mine)
    pairs = (
        list(zip(found, expected, strict=True)) if isinstance(found, tuple) else [(found, expected)]
    )
    for a, b in pairs:
        same(a.detach(), b.detach())
    gradient = images(*pairs[0][1].shape, seed=3)
    pairs[0][1].backward(gradient)
    with watched() as more:
        pairs[0][0].backward(gradient.to("pynq"))
    assert theirs.grad is not None and mine.grad is not None
    same(mine.grad, theirs.grad)
    places = [(c.where, c.reason, len(c.kernels)) for c in of(calls + more, *OPERATORS)]
    assert places == [("PL", "", 1)] * 2


# ---- properties ----------------------------------------------------------------------------------

shapes = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 13), st.integers(1, 13))


@st.composite
def windows(draw: Any, height: int, width: int, dilated: bool) -> dict[str, Any]:
    """Return arguments of a pooling that torch takes for images of this size."""
    kernel, stride, padding, dilation = [], [], [], []
    for size in (height, width):
        step = draw(st.integers(1, 3)) if dilated else 1
        kernel.append(draw(st.integers(1, max(1, min(5, (size - 1) // step + 1)))))
        stride.append(draw(st.integers(1, 4)))
        padding.append(draw(st.integers(0, kernel[-1] // 2)))
        dilation.append(step)
    found: dict[str, Any] = {"kernel_size": kernel, "stride": stride, "padding": padding}
    found["ceil_mode"] = draw(st.booleans())
    return {**found, "dilation": dilation} if dilated else found


@settings(max_examples=50)
@given(
    data=st.data(),
    shape=shapes,
    layout=st.sampled_from(LAYOUTS),
    flat=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_maxima(data: Any, shape: Any, layout: Any, flat: bool, seed: int) -> None:
    loaded("neural")
    values = images(*shape, seed=seed, special=True)
    arguments = data.draw(windows(*shape[2:], dilated=True))
    both(
        lambda x: functional.max_pool2d(x, **arguments, return_indices=True),
        layout(values[0] if flat else values),
    )


@settings(max_examples=50)
@given(
    data=st.data(),
    shape=shapes,
    layout=st.sampled_from(LAYOUTS),
    flat=st.booleans(),
    padded=st.booleans(),
    divisor=st.none() | st.integers(-7, 7).filter(bool),
    seed=st.integers(0, 2**31),
)
def test_averages(
    data: Any, shape: Any, layout: Any, flat: bool, padded: bool, divisor: int | None, seed: int
) -> None:
    loaded("neural")
    values = images(*shape, seed=seed, special=True)
    arguments = data.draw(windows(*shape[2:], dilated=False))
    both(
        lambda x: functional.avg_pool2d(
            x, **arguments, count_include_pad=padded, divisor_override=divisor
        ),
        layout(values[0] if flat else values),
    )


@settings(max_examples=40)
@given(
    shape=shapes,
    out=st.tuples(st.integers(1, 15), st.integers(2, 15)),
    layout=st.sampled_from(LAYOUTS),
    flat=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_adaptive_averages(shape: Any, out: Any, layout: Any, flat: bool, seed: int) -> None:
    loaded("neural")
    values = images(*shape, seed=seed, special=True)
    both(lambda x: functional.adaptive_avg_pool2d(x, out), layout(values[0] if flat else values))


@pytest.mark.parametrize("size", [(70, 90), (3, 1500), (130, 64)])
def test_images_larger_than_the_chip_has_room_for(neural: Any, size: tuple[int, int]) -> None:
    values = images(1, 2, *size)
    both(lambda x: functional.max_pool2d(x, 3, 2, 1, return_indices=True), values)
    both(lambda x: functional.avg_pool2d(x, 2, 1), values)
    both(lambda x: functional.adaptive_avg_pool2d(x, (2, 7)), values)


def test_the_table_is_what_the_source_says() -> None:
    text = (ROOT / "hw/include/pool2d.hpp").read_text()
    for name in ("BAND", "TILE"):
        assert f"constexpr int {name} = {getattr(pooling, name)};" in text
    codes = ("MAX", "AVERAGE", "ADAPTIVE", "BACKWARD", "COUNT_PAD")
    assert f"enum Op {{ {', '.join(f'{n} = {getattr(pooling, n)}' for n in codes)} }};" in text


# ---- variants ------------------------------------------------------------------------------------


def test_out(neural: Any) -> None:
    values = images(2, 3, 8, 8)
    x = values.to("pynq")
    average, best = torch.empty(2, 3, 4, 4, device="pynq"), torch.empty(2, 3, 4, 4, device="pynq")
    places = torch.empty(2, 3, 4, 4, dtype=torch.int64, device="pynq")
    with watched() as calls:
        torch._C._nn.avg_pool2d(x, 2, out=average)
        torch._C._nn.adaptive_avg_pool2d(x, 4, out=average)
        torch.ops.aten.max_pool2d_with_indices.out(x, [2, 2], out=best, indices=places)
    expected = functional.max_pool2d(values, 2, return_indices=True)
    assert torch.equal(average.cpu(), functional.adaptive_avg_pool2d(values, 4))
    assert torch.equal(best.cpu(), expected[0]) and torch.equal(places.cpu(), expected[1])
    assert [c.where for c in calls if "pool" in c.op] == ["PL"] * 3


def test_one_dimension_arrives_as_two(neural: Any) -> None:
    values = images(2, 3, 20)
    with watched() as calls:
        found = functional.max_pool1d(values.to("pynq").requires_grad_(), 3).detach()
        average = functional.avg_pool1d(values.to("pynq"), 4)
    assert torch.equal(found.cpu(), functional.max_pool1d(values, 3))
    assert torch.equal(average.cpu(), functional.avg_pool1d(values, 4))
    assert [c.where for c in of(calls, *OPERATORS)] == ["PL"] * 2


def test_modules_train(neural: Any) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.MaxPool2d(2), torch.nn.AvgPool2d(2), torch.nn.AdaptiveAvgPool2d(2)
    )
    x = images(2, 3, 16, 16)
    expected, found = x.clone().requires_grad_(), x.to("pynq").requires_grad_()
    model(expected).sum().backward()
    with watched() as calls:
        model(found).sum().backward()
    assert found.grad is not None and expected.grad is not None
    same(found.grad, expected.grad)
    assert sorted(c.op.removeprefix("aten::") for c in calls if c.where == "PL") == sorted(
        OPERATORS
    )


# ---- what the CPU does, and says -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "function", "reason"),
    [
        (images(1, 1, 4, 4).double(), lambda x: functional.avg_pool2d(x, 2), "float32"),
        (images(1, 1, 4, 4).half(), lambda x: functional.max_pool2d(x, 2), "float32"),
        (images(0, 1, 4, 4), lambda x: functional.max_pool2d(x, 2), "empty"),
        (images(1, 1, 99, 99), lambda x: functional.avg_pool2d(x, 80), "4096 pixels"),
    ],
)
def test_the_cpu_does_the_rest_and_says_why(
    neural: Any, values: torch.Tensor, function: Any, reason: str
) -> None:
    with watched() as calls:
        found = function(values.to("pynq"))
    assert torch.equal(found.cpu(), function(values))
    (call,) = of(calls, *OPERATORS)
    assert call.where == "CPU" and reason in call.reason and not call.kernels


@pytest.mark.parametrize(
    "function",
    [
        lambda x: functional.max_pool2d(x, 3, padding=2),
        lambda x: functional.max_pool2d(x, 3, padding=(0, 2), dilation=(1, 2)),
        lambda x: functional.max_pool2d(x, 9),
        lambda x: functional.max_pool2d(x, 0),
        lambda x: functional.avg_pool2d(x, 2, stride=0),
        lambda x: functional.avg_pool2d(x, 2, divisor_override=0),
        lambda x: functional.max_pool2d(x[0, 0], 2),
        lambda x: torch.ops.aten.max_pool2d_with_indices(x, [2, 2, 2]),
        lambda x: torch.ops.aten.max_pool2d_with_indices(x, [2], [1], [0], [1, 1, 1]),
        lambda x: torch.ops.aten.avg_pool2d(x, [2, 2, 2]),
        lambda x: torch.ops.aten.avg_pool2d(x, []),
        lambda x: torch.ops.aten.avg_pool2d(x, [2], [1, 1, 1]),
        lambda x: torch.ops.aten.avg_pool2d(x, [2], [1], [0, 0, 0]),
        lambda x: torch.ops.aten._adaptive_avg_pool2d(x, [2, 2, 2]),
        lambda x: torch.ops.aten._adaptive_avg_pool2d(x, [2]),
        lambda x: torch.ops.aten.avg_pool2d_backward(x, x, [2], [2], [0], False, True, None),
    ],
)
def test_errors_are_the_cpus(neural: Any, function: Any) -> None:
    values = images(1, 1, 4, 4)
    with pytest.raises(RuntimeError) as on_cpu:
        function(values)
    with pytest.raises(RuntimeError) as on_pl:
        function(values.to("pynq"))
    assert str(on_pl.value) == str(on_cpu.value)


def test_without_the_overlay(neural: Any) -> None:
    x = images(1, 1, 4, 4).to("pynq")
    try:
        pynq_torch.load("vadd")
        with watched() as calls:
            found = functional.max_pool2d(x, 2)
        (call,) = of(calls, "max_pool2d_with_indices")
        assert call.where == "CPU" and "load('neural')" in call.reason
        assert torch.equal(found.cpu(), functional.max_pool2d(x.cpu(), 2))
    finally:
        pynq_torch.load("neural")


# ---- the driver ----------------------------------------------------------------------------------


def test_the_driver(neural: Any) -> None:
    unit = neural.pool2d_f32_0
    values = images(3, 9, 11)
    best, places = unit(values, 3, 2, 1)
    expected = functional.max_pool2d(values, 3, 2, 1, return_indices=True)
    assert torch.equal(best, expected[0]) and torch.equal(places, expected[1])
    average = unit(values[None], (2, 3), average=True, ceil_mode=True)
    assert torch.equal(average, functional.avg_pool2d(values[None], (2, 3), ceil_mode=True))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((images(2, 2), 2), r"shape \(2, 2\); expected \[N, C, H, W\]"),
        ((images(1, 4, 4).double(), 2), "dtype torch.float64"),
        ((images(1, 4, 4), 0), "expected at least 1"),
        ((images(1, 4, 4), 2, 2, 2), "at most half"),
        ((images(1, 4, 4), 5), "give .* outputs"),
        ((images(1, 99, 99), 99), "4096 pixels"),
    ],
)
def test_the_driver_says_what_is_wrong(neural: Any, arguments: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        neural.pool2d_f32_0(*arguments)


@settings(max_examples=50)
@given(
    size=st.tuples(st.integers(1, 300), st.integers(1, 3000)),
    kernel=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    stride=st.tuples(st.integers(1, 5), st.integers(1, 90)),
)
def test_tiles_fit_the_chip(size: Any, kernel: Any, stride: Any) -> None:
    window = Window(kernel, stride)
    out = pooled(window, size)
    if min(out) < 1:
        return
    operand: Any = type("Places", (), {"address": 0, "strides": (1, 1, 1, 1)})
    source, result = operand(), operand()
    source.shape, result.shape = (1, 1, *size), (1, 1, *out)
    runs = plan(pooling.MAX, source, result, result, window)
    if not runs:
        assert min(kernel[0], size[0]) * min(kernel[1], size[1]) > pooling.BAND
        return
    names = ("source", "result", "indices", *pooling.SCALARS)
    given_ = dict(zip(names, runs[0], strict=True))
    rows, columns = given_["tile_rows"], given_["tile_cols"]
    seen = [
        min(n, (tile - 1) * s + k)
        for n, tile, s, k in zip(size, (rows, columns), stride, kernel, strict=True)
    ]
    assert 1 <= rows * columns <= pooling.TILE and seen[0] * seen[1] <= pooling.BAND
