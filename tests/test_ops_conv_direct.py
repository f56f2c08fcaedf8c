"""Direct convolutions in int8, and depthwise ones: to the bits of gemm's epilogue, on the PL."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from device_helpers import closing, int8, loaded, of, watched, wrapped
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

import pynq_torch
from pynq_torch import buffers
from pynq_torch.errors import ArgumentError
from pynq_torch.kernels.epilogue import mode_of
from pynq_torch.models.tiling import depthwise_tiling
from pynq_torch.ops.units import finish

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("closing")]
__all__ = ["closing"]

KINDS = (torch.int32, torch.int8, torch.float32)


@pytest.fixture
def overlay() -> Any:
    return loaded("convolution")


@st.composite
def problems(draw: st.DrawFn, each: bool = False) -> tuple[Any, ...]:
    """Shapes of an image and a weight, and how the one moves; `each`: a channel a group."""
    groups = draw(st.integers(2, 5)) if each else draw(st.sampled_from([1, 1, 2, 3]))
    inner, outs = 1 if each else draw(st.integers(1, 4)), draw(st.integers(1, 3))
    two = st.tuples(st.integers(1, 3), st.integers(1, 3))
    kernel, stride, dilation = (draw(st.tuples(st.integers(1, 6), st.integers(1, 4))), draw(two),
                                draw(two))  # fmt: skip
    padding = draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    sizes = []
    for k, pad, step in zip(kernel, padding, dilation, strict=True):
        least = max(1, step * (k - 1) + 1 - 2 * pad)
        sizes.append(draw(st.integers(least, least + 20)))
    shape = (draw(st.integers(1, 2)), groups * inner, *sizes)
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return shape, (groups * outs, inner, *kernel), options


def sums_of(x: torch.Tensor, w: torch.Tensor, options: Any) -> torch.Tensor:
    return functional.conv2d(x.double(), w.double(), **options).to(torch.int32)


def columns(count: int, kind: torch.dtype, seed: int) -> tuple[Any, Any]:
    """Return a bias and factors, extreme ones among them."""
    generator = torch.Generator().manual_seed(seed)
    scale = torch.rand(count, generator=generator) * 0.01
    odd = torch.tensor([0.0, 0.5, 1e30, 1e-30, 0.25])
    where = torch.randint(0, 3, (count,), generator=generator) == 0
    scale = torch.where(where, odd[torch.randint(0, 5, (count,), generator=generator)], scale)
    bias = torch.randint(-(2**20), 2**20, (count,), generator=generator, dtype=torch.int32)
    return bias.float() * 0.3 if kind is torch.float32 else bias, scale


@settings(max_examples=40)
@given(
    problem=problems() | problems(each=True),
    kind=st.sampled_from(KINDS),
    relu=st.booleans(),
    with_bias=st.booleans(),
    last=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_results_are_those_of_the_epilogue_to_the_bit(
    problem: tuple[Any, ...], kind: Any, relu: bool, with_bias: bool, last: bool, seed: int
) -> None:
    overlay = loaded("convolution")
    shape, kernel, options = problem
    x, w = int8(*shape, seed=seed), int8(*kernel, seed=seed + 1)
    bias, scale = columns(kernel[0], kind, seed)
    bias, scale = bias if with_bias else None, None if kind is torch.int32 else scale
    mode = mode_of(kind, bias=with_bias, relu=relu)
    expected = finish(sums_of(x, w, options).permute(0, 2, 3, 1), mode, scale, bias)
    if last:
        x = buffers.as_tensor(buffers.to_buffer(x.permute(0, 2, 3, 1).contiguous()))
        x = x.permute(0, 3, 1, 2)
    units = [overlay.conv2d_i8] if kernel[1] > 1 else [overlay.conv2d_i8, overlay.depthwise_i8]
    for unit in units:
        found = unit(x, w, bias=bias, scale=scale, relu=relu, dtype=kind, **options)
        assert found.dtype is kind
        assert torch.equal(found.permute(0, 2, 3, 1), expected), unit.cu


@settings(max_examples=25)
@given(problem=problems() | problems(each=True), seed=st.integers(0, 2**31))
def test_int8_tensors_convolve_as_torch_says(problem: tuple[Any, ...], seed: int) -> None:
    loaded("convolution")
    shape, kernel, options = problem
    x, w, bias = int8(*shape, seed=seed), int8(*kernel, seed=seed + 1), int8(kernel[0], seed=seed)
    exact = functional.conv2d(x.double(), w.double(), bias.double(), **options).long()
    with watched() as calls:
        found = functional.conv2d(x.to("pynq"), w.to("pynq"), bias.to("pynq"), **options)
    assert torch.equal(found.cpu(), wrapped(exact))
    (call,) = of(calls, "convolution")
    each = kernel[1] == 1 and options["groups"] > 1
    assert call.where == "PL"
    assert {run.cu for run in call.kernels} == {"depthwise_i8_0" if each else "conv2d_i8_0"}


@settings(max_examples=25)
@given(problem=problems(each=True), seed=st.integers(0, 2**31))
def test_each_channel_by_itself_in_float32(problem: tuple[Any, ...], seed: int) -> None:
    loaded("convolution")
    shape, kernel, options = problem
    generator = torch.Generator().manual_seed(seed)
    x, w = torch.randn(shape, generator=generator), torch.randn(kernel, generator=generator)
    bias = torch.randn(kernel[0], generator=generator)
    exact = functional.conv2d(x.double(), w.double(), bias.double(), **options)
    size = functional.conv2d(x.abs().double(), w.abs().double(), bias.abs().double(), **options)
    with watched() as calls:
        found = functional.conv2d(x.to("pynq"), w.to("pynq"), bias.to("pynq"), **options)
    bound = (kernel[2] * kernel[3] + 3) * 2.0**-23 * size
    assert bool(((found.cpu().double() - exact).abs() <= bound).all())
    (call,) = of(calls, "convolution")
    assert call.where == "PL" and {run.cu for run in call.kernels} == {"depthwise_f32_0"}


def test_infinities_and_nan_of_a_channel(overlay: Any) -> None:
    x, w = torch.ones(1, 2, 6, 6), torch.ones(2, 1, 3, 3)
    x[0, 0, 0, 0], w[1, 0, 0, 0] = float("nan"), float("inf")
    found = overlay.depthwise_f32(x, w, padding=1, groups=2)
    assert bool(found[0, 0, :2, :2].isnan().all()) and int(found.isnan().sum()) == 4
    assert torch.equal(found[0, 1, 0], torch.tensor([4.0, 6, 6, 6, 6, 4]))
    assert bool(found[0, 1, 1:, 1:].isinf().all())


def test_floating_values_in_int8_are_those_of_the_lowering(
    overlay: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.pynq.matmul, "allow_int8", True)
    x, w, bias = torch.randn(2, 4, 9, 8), torch.randn(6, 2, 3, 3), torch.randn(6)
    results = []
    for name in ("convolution", "gemm"):
        loaded(name)
        with watched() as calls:
            found = functional.conv2d(
                x.to("pynq"), w.to("pynq"), bias.to("pynq"), stride=2, padding=1, groups=2
            )
            line = functional.conv1d(x[:, :, 0].to("pynq"), w[:, :, 0].to("pynq"), groups=2)
        assert {c.where for c in of(calls, "convolution")} == {"PL"}
        results.append((found.cpu(), line.cpu()))
    assert torch.equal(results[0][0], results[1][0]) and torch.equal(results[0][1], results[1][1])


@pytest.mark.parametrize("groups", [1, 2, 8])
def test_the_int8_layer_uses_the_direct_kernel(overlay: Any, groups: int) -> None:
    torch.manual_seed(groups)
    layer = pynq_torch.nn.Conv2d(8, 16, 3, stride=2, padding=1, groups=groups, relu=True)
    x = torch.randn(2, 8, 13, 12)
    with torch.no_grad():
        expected, whole = layer(x), layer(x, out_scale=0.05)
        layer.to("pynq")
        with watched() as calls:
            found, steps = layer(x.to("pynq")), layer(x.to("pynq"), out_scale=0.05)
            alone = layer(x[0].to("pynq"))
    assert torch.equal(found.cpu(), expected) and steps.dtype is torch.int8
    assert torch.equal(steps.cpu(), whole) and alone.shape == expected[0].shape
    used = {run.cu for c in calls if c.op == "pynq_torch::conv2d" for run in c.kernels}
    assert used == {"depthwise_i8_0" if groups == 8 else "conv2d_i8_0"}


# ---- the drivers ---------------------------------------------------------------------------------


def test_the_depthwise_drivers_refuse_what_is_not_theirs(overlay: Any) -> None:
    x, w = torch.zeros(1, 4, 9, 9), torch.zeros(4, 4, 3, 3)
    for kernel, dtype in (
        (overlay.depthwise_f32, torch.float32),
        (overlay.depthwise_i8, torch.int8),
    ):
        with pytest.raises(ArgumentError, match="for conv2d"):
            kernel(x.to(dtype), w.to(dtype))
        large = torch.zeros(4, 1, 3, 3, dtype=dtype)
        with pytest.raises(ArgumentError, match="128 taps within 64 x 128 cells"):
            kernel(torch.zeros(1, 4, 90, 90, dtype=dtype), large, groups=4, dilation=40)
    with pytest.raises(ArgumentError, match="conv2d_f32"):
        overlay.depthwise_f32.grad_input(x, w, (9, 9))
    # The operator takes the other kernel instead.
    wide = torch.randn(1, 2, 90, 90), torch.randn(2, 1, 3, 3)
    with watched() as calls:
        found = functional.conv2d(*(t.to("pynq") for t in wide), dilation=40, groups=2)
    exact = functional.conv2d(*wide, dilation=40, groups=2)
    assert torch.allclose(found.cpu(), exact, atol=1e-5)
    assert {r.cu for r in of(calls, "convolution")[0].kernels} == {"conv2d_f32_0"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scale": torch.ones(3)}, "takes no scale"),
        ({"dtype": torch.int8}, "takes scale="),
        ({"bias": torch.zeros(3)}, "expected torch.int32"),
        ({"dtype": torch.float64}, "expected torch.int32, torch.int8 or torch.float32"),
        ({"padding": -1}, "padding of 0 or more"),
        ({"groups": 2}, "C / groups"),
    ],
)
def test_the_int8_driver_refuses_with_a_sentence(overlay: Any, options: Any, said: str) -> None:
    x, w = torch.zeros(1, 3, 5, 5, dtype=torch.int8), torch.zeros(3, 3, 3, 3, dtype=torch.int8)
    with pytest.raises(ArgumentError, match=said):
        overlay.conv2d_i8(x, w, **options)


@settings(max_examples=50)
@given(*(st.tuples(st.integers(1, m), st.integers(1, m)) for m in (300, 12, 9, 40)))
def test_depthwise_tiles_fit_the_patch(result: Any, kernel: Any, stride: Any, step: Any) -> None:
    found = depthwise_tiling(result, kernel, stride, step)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, step, strict=True)]
    if found is None:
        assert reach[0] > 64 or reach[1] > 128 or kernel[0] * kernel[1] > 128
        return
    assert found[2:] == kernel and min(found) >= 1 and found[0] * found[1] <= 1024
    assert (found[0] - 1) * stride[0] + reach[0] <= 64
    assert (found[1] - 1) * stride[1] + reach[1] <= 128
