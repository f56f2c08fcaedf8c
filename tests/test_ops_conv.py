"""Convolutions of device "pynq": lowered onto the units tile by tile, exact in int8."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from device_helpers import closing, int8, loaded, of, watched, wrapped
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from pynq_torch.kernels import epilogue
from pynq_torch.ops import conv, quantise
from pynq_torch.ops.conv import Geometry, fill_columns, tiles
from pynq_torch.torch_device import memory

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("closing")]
__all__ = ["closing"]


def flags(*, allow_int8: bool) -> Any:
    return torch.backends.pynq.flags(allow_int8=allow_int8)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Case:
    """Sizes of a convolution that has at least one output pixel."""

    batch: int
    per_group: int
    out_per_group: int
    groups: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    more: tuple[int, int]

    @property
    def options(self) -> dict[str, Any]:
        return {
            "stride": self.stride,
            "padding": self.padding,
            "dilation": self.dilation,
            "groups": self.groups,
        }

    @property
    def shape(self) -> tuple[int, ...]:
        least = (
            max(1, d * (k - 1) + 1 - 2 * p)
            for d, k, p in zip(self.dilation, self.kernel, self.padding, strict=True)
        )
        size = (n + more for n, more in zip(least, self.more, strict=True))
        return (self.batch, self.groups * self.per_group, *size)

    @property
    def weight_shape(self) -> tuple[int, ...]:
        return (self.groups * self.out_per_group, self.per_group, *self.kernel)


def pairs(low: int, high: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(low, high), st.integers(low, high))


cases = st.builds(
    Case,
    batch=st.integers(1, 3),
    per_group=st.integers(1, 4),
    out_per_group=st.integers(1, 5),
    groups=st.integers(1, 4),
    kernel=pairs(1, 4),
    stride=pairs(1, 3),
    padding=pairs(0, 3),
    dilation=pairs(1, 3),
    more=pairs(0, 8),
)


def plain(x: torch.Tensor) -> torch.Tensor:
    return x.to("pynq")


def channels_last(x: torch.Tensor) -> torch.Tensor:
    return x.to("pynq").contiguous(memory_format=torch.channels_last)


def part_of_more(x: torch.Tensor) -> torch.Tensor:
    n, c, h, w = x.shape
    base = torch.full((n, c + 1, 2 * h, w + 3), 9, dtype=x.dtype, device="pynq")
    base[:, 1:, ::2, 2 : 2 + w] = x.to("pynq")
    return base[:, 1:, ::2, 2 : 2 + w]


def later_images(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([torch.full_like(x[:1], 9), x]).to("pynq")[1:]


LAYOUTS = (plain, channels_last, part_of_more, later_images)


@settings(max_examples=80)
@given(case=cases, bias=st.booleans(), layout=st.sampled_from(LAYOUTS), seed=st.integers(0, 2**31))
def test_int8_is_exact(case: Case, bias: bool, layout: Any, seed: int) -> None:
    loaded("gemm_dual")
    x, w = int8(*case.shape, seed=seed), int8(*case.weight_shape, seed=seed + 1)
    offset = int8(w.shape[0], seed=seed + 2) if bias else None
    exact = functional.conv2d(x.double(), w.double(), None, **case.options).long()
    if offset is not None:
        exact += offset.long()[:, None, None]
    y, v = layout(x), plain(w) if seed % 2 else channels_last(w)
    with watched() as calls:
        found = functional.conv2d(
            y, v, offset.to("pynq") if offset is not None else None, **case.options
        )
    assert found.dtype is torch.int8 and torch.equal(found.cpu(), wrapped(exact))
    (call,) = of(calls, "convolution")
    assert (call.where, call.reason) == ("PL", "") and call.kernels
    assert torch.equal(y.cpu(), x) and torch.equal(v.cpu(), w)


def reference(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, options: dict[str, Any]
) -> torch.Tensor:
    """Return the convolution in int8, in the words of the documentation."""
    top, tops = float(x.abs().max()), w.abs().amax((1, 2, 3))
    steps = (x * (127 / top) if top else x).round()
    factors = torch.where(tops > 0, 127 / tops, 0.0)[:, None, None, None]
    weights = (w * factors).round()
    # Sums of integers are exact in float64.
    sums = functional.conv2d(steps.double(), weights.double(), None, **options).float()
    scales = torch.where(tops > 0, tops / 127, 1.0) * (top / 127 if top else 1.0)
    result = sums * scales[:, None, None]
    return result if bias is None else result + bias[:, None, None]


def bound(x: torch.Tensor, w: torch.Tensor, options: dict[str, Any]) -> torch.Tensor:
    """Return `quantise.error_bound` of the matrix products that the convolution is made of.

    The step is that of the whole input: a row of its largest value stands in for the rest of it.
    """
    groups = options["groups"]
    rest = {k: v for k, v in options.items() if k != "groups"}
    found = []
    for part, weight in zip(x.chunk(groups, 1), w.chunk(groups), strict=True):
        columns = functional.unfold(part.double(), w.shape[2:], **_unfolding(rest))
        images = []
        for image in columns:
            rows = torch.cat([image.t(), torch.full_like(image.t()[:1], float(x.abs().max()))])
            images.append(quantise.error_bound(rows, weight.reshape(len(weight), -1).t())[:-1].t())
        found.append(torch.stack(images))
    return torch.cat(found, 1)


def _unfolding(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("dilation", "padding", "stride")}


@settings(max_examples=60)
@given(case=cases, bias=st.booleans(), layout=st.sampled_from(LAYOUTS), seed=st.integers(0, 2**31))
def test_floats_have_the_bits_of_the_formula_and_are_within_the_bound(
    case: Case, bias: bool, layout: Any, seed: int
) -> None:
    loaded("gemm_dual")
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(case.shape, generator=generator)
    w = torch.randn(case.weight_shape, generator=generator)
    offset = torch.randn(w.shape[0], generator=generator) if bias else None
    given = (layout(x), plain(w), offset.to("pynq") if offset is not None else None)
    with flags(allow_int8=True), watched() as calls:
        found = functional.conv2d(*given, **case.options)
    assert torch.equal(found.cpu(), reference(x, w, offset, case.options))
    assert [c.where for c in of(calls, "convolution")] == ["PL"]
    with watched() as calls:
        exact = functional.conv2d(*given, **case.options)
    (call,) = of(calls, "convolution")
    assert call.where == "CPU" and "allow_int8 = True" in call.reason
    torch.testing.assert_close(
        exact.cpu(), functional.conv2d(x, w, offset, **case.options), rtol=1e-5, atol=1e-5
    )
    double = offset.double() if offset is not None else None
    true = functional.conv2d(x.double(), w.double(), double, **case.options)
    error = (found.cpu().double() - true).abs().flatten(2)
    slack = 2.0**-22 * found.cpu().abs().double().flatten(2)  # adding the bias
    assert bool((error <= bound(x, w, case.options) + slack).all())


@pytest.mark.parametrize("name", ["gemm", "matrix_mult", "matrix_mult_dual"])
def test_other_units_give_the_same_bits(name: str) -> None:
    loaded(name)
    x, w, bias = torch.randn(2, 4, 12, 11), torch.randn(6, 2, 3, 3), torch.randn(6)
    options = {"stride": 1, "padding": 1, "dilation": 1, "groups": 2}
    with flags(allow_int8=True):
        found = functional.conv2d(x.to("pynq"), w.to("pynq"), bias.to("pynq"), **options)
    assert torch.equal(found.cpu(), reference(x, w, bias, options))
    a, b = int8(2, 4, 12, 11), int8(6, 2, 3, 3)
    exact = functional.conv2d(a.double(), b.double(), None, **options).long()
    found = functional.conv2d(a.to("pynq"), b.to("pynq"), None, **options)
    assert torch.equal(found.cpu(), wrapped(exact))


# ---- shapes and layouts as torch has them --------------------------------------------------------

FORMS: dict[str, tuple[Callable[..., torch.Tensor], tuple[tuple[int, ...], ...]]] = {
    "conv1d": (functional.conv1d, ((2, 3, 9), (4, 3, 3), (4,))),
    "conv1d, no batch": (functional.conv1d, ((3, 9), (4, 3, 3))),
    "conv2d, no batch": (functional.conv2d, ((3, 8, 9), (4, 3, 3, 2))),
    "same": (lambda x, w: functional.conv2d(x, w, padding="same"), ((2, 3, 8, 9), (4, 3, 3, 3))),
    "valid": (lambda x, w: functional.conv2d(x, w, padding="valid"), ((2, 3, 8, 9), (4, 3, 3, 3))),
    "1x1": (functional.conv2d, ((2, 3, 8, 9), (4, 3, 1, 1))),
    "depthwise": (lambda x, w: functional.conv2d(x, w, groups=3), ((2, 3, 8, 9), (6, 1, 3, 3))),
    "one pixel": (functional.conv2d, ((1, 1, 1, 1), (1, 1, 1, 1))),
}


@pytest.mark.parametrize("form", FORMS)
def test_results_look_as_the_cpus_do(form: str) -> None:
    loaded("gemm_dual")
    function, shapes = FORMS[form]
    on_cpu = [int8(*shape, seed=i) for i, shape in enumerate(shapes)]
    for layout in (torch.contiguous_format, torch.channels_last):
        if layout is torch.channels_last and on_cpu[0].dim() != 4:
            continue
        first = on_cpu[0].contiguous(memory_format=layout)
        with watched() as calls:
            found = function(*(t.to("pynq") for t in (first, *on_cpu[1:])))
        expected = function(first, *on_cpu[1:])
        assert torch.equal(found.cpu(), expected)
        assert [c.where for c in of(calls, "convolution")] == ["PL"]
        assert found.is_contiguous() == expected.is_contiguous()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_int8_is_convolved_where_it_lies(layout: Any) -> None:
    loaded("gemm_dual")
    x, w = int8(2, 4, 7, 6), int8(6, 2, 3, 2)
    found = functional.conv2d(layout(x), w.to("pynq"), groups=2)
    exact = functional.conv2d(x.double(), w.double(), groups=2).long()
    assert torch.equal(found.cpu(), wrapped(exact))
    assert found.is_contiguous() == (layout is not channels_last)


def test_conv1d_with_every_option() -> None:
    loaded("gemm_dual")
    x, w, b = int8(2, 4, 30), int8(6, 2, 3), int8(6)
    options = {"stride": 2, "padding": 3, "dilation": 2, "groups": 2}
    exact = functional.conv1d(x.double(), w.double(), b.double(), **options).long()  # type: ignore[arg-type]
    found = functional.conv1d(x.to("pynq"), w.to("pynq"), b.to("pynq"), **options)  # type: ignore[arg-type]
    assert torch.equal(found.cpu(), wrapped(exact))


@pytest.mark.parametrize("sizes", [([2], [1], [1]), ([1], [2], [2]), ([2, 1], [0], [1, 2])])
def test_one_size_is_that_of_both_directions(sizes: Any) -> None:
    loaded("gemm_dual")
    x, w = int8(2, 3, 9, 8), int8(4, 3, 3, 2)
    options = (None, *sizes, False, [0], 1)
    exact = torch.ops.aten.convolution(x.double(), w.double(), *options).long()
    with watched() as calls:
        found = torch.ops.aten.convolution(x.to("pynq"), w.to("pynq"), *options)
    assert torch.equal(found.cpu(), wrapped(exact))
    assert [c.where for c in of(calls, "convolution")] == ["PL"]


def test_sums_that_could_leave_int32_and_overlays_without_a_unit_run_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded("gemm_dual")
    deep = conv.MAX_EXACT_K + 1
    x, w = torch.ones(1, deep, 1, 1), torch.ones(1, deep, 1, 1)
    for reason in (f"a sum of {deep} products could leave int32", "has a unit that multiplies"):
        with flags(allow_int8=True), watched() as calls:
            found = functional.conv2d(x.to("pynq"), w.to("pynq"))
        assert float(found.cpu()) == deep
        (call,) = of(calls, "convolution")
        assert call.where == "CPU" and reason in call.reason
        monkeypatch.setattr(conv, "units", list)  # an overlay with kernels of another kind


def test_the_deepest_sum_runs_on_the_pl(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded("gemm_dual")
    monkeypatch.setattr(conv, "MAX_EXACT_K", 12)
    for channels, where in ((3, "PL"), (4, "CPU")):
        x, w = torch.ones(1, channels, 2, 2).to("pynq"), torch.ones(1, channels, 2, 2).to("pynq")
        with flags(allow_int8=True), watched() as calls:
            assert float(functional.conv2d(x, w).cpu()) == 4 * channels
        assert [c.where for c in of(calls, "convolution")] == [where]


@pytest.mark.parametrize(
    ("function", "shapes", "reason"),
    [
        (functional.conv3d, ((1, 2, 4, 4, 4), (3, 2, 2, 2, 2)), "one or two dimensions"),
        (functional.conv_transpose2d, ((1, 2, 4, 4), (2, 3, 2, 2)), "not transposed"),
        (functional.conv2d, ((0, 2, 4, 4), (3, 2, 2, 2)), "nothing to convolve"),
        (functional.conv2d, ((1, 2, 4, 4), (3, 2, 2, 2)), "no unit convolves float64"),
    ],
)
def test_the_cpu_does_the_rest_and_says_why(function: Any, shapes: Any, reason: str) -> None:
    loaded("gemm_dual")
    kind = torch.float64 if "float64" in reason else torch.float32
    on_cpu = [torch.randn(shape, dtype=kind) for shape in shapes]
    with flags(allow_int8=True), watched() as calls:
        found = function(*(t.to("pynq") for t in on_cpu))
    torch.testing.assert_close(found.cpu(), function(*on_cpu))
    (call,) = of(calls, "convolution")
    assert call.where == "CPU" and reason in call.reason


@pytest.mark.parametrize(
    ("shapes", "options"),
    [
        (((2, 3, 2, 2), (4, 3, 3, 2)), {}),
        (((2, 3, 8, 8), (4, 2, 3, 2)), {}),
        (((2, 4, 8, 8), (3, 2, 3, 2)), {"groups": 2}),
        (((2, 3, 8, 8), (4, 3, 3, 2), (5,)), {}),
        (((2, 3, 8, 8), (4, 3, 3, 2)), {"padding": -1}),
        (((2, 3, 8, 8), (4, 3, 3, 2)), {"stride": 0}),
        (((2, 3, 8, 8), (4, 3, 3, 2)), {"dilation": 0}),
        (((2, 3, 8, 8), (4, 3, 3, 2)), {"stride": (1, 0)}),
        (((2, 3, 8, 8), (4, 3, 3, 2)), {"dilation": (0, 1)}),
        (((2, 3, 8, 8), (4, 3, 3, 2)), {"padding": (0, -1)}),
        (((2, 3, 8), (4, 3, 3, 2)), {}),
        (((2, 0, 8, 8), (4, 0, 3, 2)), {"stride": -1}),
    ],
)
def test_wrong_sizes_are_refused_in_the_cpus_words(
    shapes: tuple[tuple[int, ...], ...], options: dict[str, Any]
) -> None:
    loaded("gemm_dual")
    on_cpu = [torch.randn(shape) for shape in shapes]
    with pytest.raises((RuntimeError, ValueError)) as theirs:
        functional.conv2d(*on_cpu, **options)  # type: ignore[arg-type]
    for allow in (False, True):
        with flags(allow_int8=allow), pytest.raises(type(theirs.value)) as ours:
            functional.conv2d(*(t.to("pynq") for t in on_cpu), **options)  # type: ignore[arg-type]
        assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize(("stride", "output_padding"), [([1, 1, 1], [0, 0]), ([1, 1], [-1, 0])])
def test_other_options_are_refused_in_the_cpus_words(stride: Any, output_padding: Any) -> None:
    loaded("gemm_dual")
    x, weight = int8(2, 3, 8, 8), int8(4, 3, 3, 2)
    options = (None, stride, [0], [1], False, output_padding, 1)
    with pytest.raises(RuntimeError) as theirs:
        torch.ops.aten.convolution(x, weight, *options)
    with pytest.raises(RuntimeError) as ours:
        torch.ops.aten.convolution(x.to("pynq"), weight.to("pynq"), *options)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_result_has_the_dtype_of_its_input(dtype: torch.dtype) -> None:
    loaded("gemm_dual")
    on_cpu = [torch.randn(2, 2, 6, 5), torch.randn(3, 2, 3, 3), torch.randn(3)]
    on_cpu = [t.to(dtype) for t in on_cpu]
    with flags(allow_int8=True), watched() as calls:
        found = functional.conv2d(*(t.to("pynq") for t in on_cpu))
    x, w, bias = (t.float() for t in on_cpu)
    options = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
    assert found.dtype is dtype
    assert torch.equal(found.cpu(), reference(x, w, bias, options).to(dtype))
    assert [c.where for c in of(calls, "convolution")] == ["PL"]


@pytest.mark.parametrize("odd", [1, 2])
def test_operands_of_two_dtypes_are_refused_in_the_cpus_words(odd: int) -> None:
    loaded("gemm_dual")
    on_cpu = [torch.randn(1, 2, 5, 5), torch.randn(3, 2, 3, 3), torch.randn(3)]
    on_cpu[odd] = on_cpu[odd].half()
    with pytest.raises(RuntimeError) as theirs:
        functional.conv2d(*on_cpu)
    with flags(allow_int8=True), pytest.raises(RuntimeError) as ours:
        functional.conv2d(*(t.to("pynq") for t in on_cpu))
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 3e38])
def test_values_that_int8_cannot_hold_run_on_the_cpu(bad: float) -> None:
    loaded("gemm_dual")
    for place in (0, 1):
        on_cpu = [torch.randn(1, 2, 6, 6), torch.randn(4, 1, 3, 3)]
        on_cpu[place].view(-1)[7] = bad  # of the weight: in one of its two groups
        with flags(allow_int8=True), watched() as calls:
            found = functional.conv2d(*(t.to("pynq") for t in on_cpu), groups=2)
        expected = functional.conv2d(*on_cpu, groups=2)
        torch.testing.assert_close(found.cpu(), expected, equal_nan=True)
        assert [c.where for c in of(calls, "convolution")] == ["CPU"]


# ---- lowering ------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(case=cases, tile_bytes=st.integers(1, 3000), seed=st.integers(0, 2**31))
def test_tiles_cover_each_output_pixel_once(case: Case, tile_bytes: int, seed: int) -> None:
    geometry = Geometry(
        *case.shape,
        case.weight_shape[0],
        *(case.kernel, case.stride, case.padding, case.dilation, case.groups),
    )
    rows, columns = geometry.out_size
    x = int8(*case.shape, seed=seed)
    padded = functional.pad(
        x, (case.padding[1], case.padding[1], case.padding[0], case.padding[0])
    ).contiguous()
    expected = functional.unfold(
        x.double(), case.kernel, **_unfolding(case.options)
    )  # [N, C * kh * kw, pixels]
    seen = torch.zeros(case.batch, rows)
    for tile in tiles(geometry, tile_bytes):
        seen[tile.image : tile.image_end, tile.first : tile.last] += 1
        count = (tile.image_end - tile.image) * (tile.last - tile.first) * columns
        least = tile.last - tile.first == 1 and tile.image_end - tile.image == 1
        assert least or count * geometry.depth <= tile_bytes
        for group in range(case.groups):
            buffer = torch.zeros(count + 1, geometry.depth, dtype=torch.int8)
            found = fill_columns(buffer, padded, geometry, tile, group)
            part = expected.view(case.batch, case.groups, geometry.depth, rows, columns)
            part = part[tile.image : tile.image_end, group, :, tile.first : tile.last]
            part = part.permute(0, 2, 3, 1).reshape(count, geometry.depth)
            assert torch.equal(found.double(), part)
    assert bool((seen == 1).all())


@pytest.mark.parametrize(
    ("mode", "pixel"), [(epilogue.INT8, 8), (epilogue.INT32, 8), (epilogue.FLOAT32, 7)]
)
def test_pixels_of_int8_begin_with_a_word(mode: int, pixel: int) -> None:
    loaded("gemm")  # which stores int8 in whole words, four channels each
    x, w = int8(2, 3, 5, 4), int8(7, 3, 2, 2)
    geometry = Geometry(2, 3, 5, 4, 7, (2, 2), (1, 1), (0, 0), (1, 1), 1)
    matrix = quantise.Packed(w.reshape(7, 12).t().contiguous().to("pynq"), 1.0)
    factor = torch.full((7,), 2.0**-8).to("pynq")
    found = conv.convolve(
        quantise.Packed(x.to("pynq"), 1.0),
        [matrix],
        geometry,
        mode=mode,
        factors=None if mode == epilogue.INT32 else [factor],
    )
    sums = functional.conv2d(x.double(), w.double())
    if mode != epilogue.INT32:
        sums *= 2.0**-8
    if mode == epilogue.INT8:
        sums = sums.round().clamp(-128, 127)
    assert torch.equal(found.cpu().double(), sums)
    assert found.stride() == (4 * 3 * pixel, 1, 3 * pixel, pixel)


def test_no_more_than_a_tile_of_columns_is_in_memory() -> None:
    loaded("gemm_dual")
    x, w = torch.randn(1, 16, 96, 96).to("pynq"), torch.randn(4, 16, 3, 3).to("pynq")
    columns = 96 * 96 * 16 * 9
    torch.pynq.reset_peak_memory_stats()  # type: ignore[attr-defined]
    before = torch.pynq.memory_allocated()  # type: ignore[attr-defined]
    with flags(allow_int8=True), watched() as calls:
        found = functional.conv2d(x, w, padding=1)
    more = torch.pynq.max_memory_allocated() - before  # type: ignore[attr-defined]
    assert len({run.start for run in calls[-1].kernels}) >= columns // conv.TILE_BYTES
    assert conv.TILE_BYTES == (512 << 10) // 2  # half the L2 cache
    options = {"stride": 1, "padding": 1, "dilation": 1, "groups": 1}
    assert torch.equal(found.cpu(), reference(x.cpu(), w.cpu(), None, options))
    # Besides: the result in its two layouts, and the input in int8.
    assert more < conv.TILE_BYTES + 2 * 96 * 96 * 4 * 4 + 96 * 96 * 16 + 100_000 < columns


@pytest.mark.parametrize("shape", [(3, 16, 40, 40), (5, 16, 25, 24), (2, 16, 70, 65)])
def test_results_of_several_tiles(shape: tuple[int, ...]) -> None:
    """Tiles of one image, of two, and of rows; the last one is smaller."""
    loaded("gemm_dual")
    x, w, b = int8(*shape), int8(6, 8, 3, 3), int8(6)
    options = {"stride": 1, "padding": (2, 1), "dilation": 1, "groups": 2}
    exact = functional.conv2d(x.double(), w.double(), b.double(), **options).long()  # type: ignore[arg-type]
    found = functional.conv2d(*(t.to("pynq") for t in (x, w, b)), **options)  # type: ignore[arg-type]
    assert torch.equal(found.cpu(), wrapped(exact))


# ---- training ------------------------------------------------------------------------------------


def test_autograd_goes_forward_in_int8_and_backward_exactly() -> None:
    loaded("gemm_dual")
    options = {"stride": 2, "padding": 1, "dilation": 1, "groups": 2}
    on_cpu = [torch.randn(2, 4, 9, 9), torch.randn(6, 2, 3, 3), torch.randn(6)]
    given = [t.to("pynq").requires_grad_() for t in on_cpu]
    with flags(allow_int8=True):
        found = functional.conv2d(*given, **options)  # type: ignore[arg-type]
    assert torch.equal(found.detach().cpu(), reference(*on_cpu, options))
    with watched() as calls:
        (found * 2).sum().backward()
    theirs = [t.requires_grad_() for t in on_cpu]
    (functional.conv2d(*theirs, **options) * 2).sum().backward()  # type: ignore[arg-type]
    for mine, other in zip(given, theirs, strict=True):
        assert mine.grad is not None and other.grad is not None
        torch.testing.assert_close(mine.grad.cpu(), other.grad, rtol=1e-5, atol=1e-5)
    assert not any(call.kernels for call in calls)


def test_weights_are_packed_once_until_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded("gemm_dual")
    packed = []
    original = quantise.write_columns

    def counting(*args: Any) -> Any:
        packed.append(1)
        return original(*args)

    monkeypatch.setattr(quantise, "write_columns", counting)
    module = torch.nn.Conv2d(4, 6, 3, groups=2, device="pynq")
    x = torch.randn(2, 4, 8, 8)
    options = {"stride": 1, "padding": 0, "dilation": 1, "groups": 2}
    with torch.no_grad(), flags(allow_int8=True):
        for _ in range(3):
            module(x.to("pynq"))
        assert len(packed) == 2  # one for each group
        module.weight[0].mul_(-3)
        found = module(x.to("pynq"))
        assert len(packed) == 4
    expected = reference(x, module.weight.detach().cpu(), module.bias.detach().cpu(), options)  # type: ignore[union-attr]
    assert torch.equal(found.cpu(), expected)


def test_int8_weights_that_change() -> None:
    loaded("gemm_dual")
    x, w = int8(1, 2, 6, 6).to("pynq"), int8(3, 2, 3, 3).to("pynq")
    for _ in range(2):
        exact = functional.conv2d(x.cpu().double(), w.cpu().double()).long()
        assert torch.equal(functional.conv2d(x, w).cpu(), wrapped(exact))
        memory.alias(w)  # reading is no write
        w[1].fill_(-7)


@pytest.mark.parametrize("overlay", ["gemm_dual", "convolution"])
@pytest.mark.parametrize("exact", [False, True])
def test_one_memory_read_as_several_weights(overlay: str, exact: bool) -> None:
    """What is packed belongs to groups, layout and place, not to the memory alone."""
    loaded(overlay)
    base = int8(9, 2, 3, 3, seed=4) if exact else torch.randn(9, 2, 3, 3)
    x = int8(1, 4, 6, 6, seed=5) if exact else torch.randn(1, 4, 6, 6)
    views: tuple[tuple[Callable[[torch.Tensor], torch.Tensor], int, int], ...] = (
        (lambda w: w[:8], 1, 2),
        (lambda w: w[:8], 2, 4),
        (lambda w: w[:8].transpose(2, 3), 1, 2),
        (lambda w: w[:8].transpose(2, 3), 2, 4),
        (lambda w: w[1:], 2, 4),
        (lambda w: w[:4], 1, 2),
        (lambda w: w.view(-1)[:144].view(4, 4, 3, 3), 1, 4),
    )
    w = base.to("pynq")
    with torch.no_grad(), flags(allow_int8=not exact):
        for view, groups, channels in views * 2:
            given = x[:, :channels]
            with watched() as calls:
                found = functional.conv2d(given.to("pynq"), view(w), groups=groups).cpu()
            assert of(calls, "convolution")[0].where == "PL"
            wide = functional.conv2d(given.double(), view(base).double(), groups=groups)
            if exact:
                assert torch.equal(found, wrapped(wide.long()))
            else:
                torch.testing.assert_close(found.double(), wide, rtol=0, atol=0.3)
