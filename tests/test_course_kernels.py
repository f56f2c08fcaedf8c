"""The kernels of the course in overlays `filters` and `signal`, against torch and numpy."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
import torch
from device_helpers import closing, loaded
from hypothesis import given, settings
from hypothesis import strategies as st

from pynq_torch.errors import ArgumentError, KernelError
from pynq_torch.kernels import GenericKernel, driver_for
from pynq_torch.kernels.filters import MAX_WIDTH
from pynq_torch.overlay import ensure_event_loop
from pynq_torch.paths import ROOT

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("closing")]
__all__ = ["closing"]

SEEDS = st.integers(0, 2**31)
SMALL = settings(max_examples=15)
ENDS = [0, 1, -1, 2**31 - 1, -(2**31)]


@pytest.fixture(autouse=True)
def _event_loop() -> None:
    ensure_event_loop()


def int32s(n: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(-(2**31), 2**31, (n,), generator=generator)
    values[torch.rand(n, generator=generator) < 0.1] = ENDS[seed % len(ENDS)]
    return values.to(torch.int32)


def wrapped(values: Any) -> torch.Tensor:
    """Return Python or numpy integers modulo 2**32, signed."""
    exact = [((int(v) + 2**31) % 2**32) - 2**31 for v in values]
    return torch.tensor(exact, dtype=torch.int32)


def images(height: int, width: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    image = torch.randint(0, 256, (height, width), dtype=torch.uint8, generator=generator)
    return image if seed % 3 else (image > 127).to(torch.uint8) * 255


# ---- images --------------------------------------------------------------------------------------


def convolved(image: torch.Tensor, weights: list[list[int]]) -> torch.Tensor:
    padded = image.double()[None, None]
    kernel = torch.tensor(weights, dtype=torch.float64)[None, None]
    return torch.nn.functional.conv2d(padded, kernel, padding=1)[0, 0]


def gradient(image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    across = [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]
    down = [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]
    return convolved(image, across).abs(), convolved(image, down).abs()


def edges(image: torch.Tensor) -> torch.Tensor:
    across, down = gradient(image)
    return (across + down).clamp(max=255).to(torch.uint8)


def lengths(image: torch.Tensor) -> torch.Tensor:
    a, b = gradient(image)
    sums = 246 * torch.maximum(a, b) + 102 * torch.minimum(a, b)
    return ((sums + 128) // 256).clamp(max=255).to(torch.uint8)


def smooth(image: torch.Tensor) -> torch.Tensor:
    return ((convolved(image, [[1, 2, 1], [2, 4, 2], [1, 2, 1]]) + 8) // 16).to(torch.uint8)


def smooth_fixed(image: torch.Tensor) -> torch.Tensor:
    sums = convolved(image, [[19, 32, 19], [32, 52, 32], [19, 32, 19]])
    return ((sums + 128) // 256).to(torch.uint8)


FILTERS = {
    "sobel": edges, "gauss": smooth, "sobel_fixed": lengths, "gauss_fixed": smooth_fixed,
}  # fmt: skip


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize(
    ("height", "width"), [(1, 1), (1, 7), (7, 1), (2, 2), (37, 53), (3, MAX_WIDTH)]
)
def test_filters(name: str, height: int, width: int) -> None:
    kernel = getattr(loaded("filters"), name)
    for image in (
        images(height, width, 1),
        images(height, width, 3),
        torch.full((height, width), 255, dtype=torch.uint8),
    ):
        result = kernel(image)
        assert result.dtype == torch.uint8
        assert torch.equal(result, FILTERS[name](image))


@SMALL
@given(height=st.integers(1, 40), width=st.integers(1, 40), seed=SEEDS)
def test_filters_of_any_size(height: int, width: int, seed: int) -> None:
    overlay, image = loaded("filters"), images(height, width, seed)
    assert torch.equal(overlay.sobel(image), edges(image))
    assert torch.equal(overlay.gauss(image.T), smooth(image.T))


def test_filters_in_fixed_point_are_near_the_real_ones() -> None:
    overlay, image = loaded("filters"), images(40, 40, 1) // 4
    exact = torch.hypot(*gradient(image))
    wrong = (overlay.sobel_fixed(image) - exact).abs()
    assert bool(((wrong <= 0.041 * exact + 0.5) | (exact > 244)).all())
    line = torch.exp(-(torch.arange(-1.0, 2) ** 2) / 2)
    weights = (line.outer(line) / line.sum() ** 2).tolist()
    assert off(overlay.gauss_fixed(image), convolved(image, weights)) <= 0.5 + 63 * 2.4 / 256


def test_filters_have_each_their_own_dma() -> None:
    overlay = loaded("filters")
    for i, name in enumerate(FILTERS):
        assert getattr(overlay, name).dma is getattr(overlay, f"axi_dma_{i}")
    assert overlay.gauss(torch.empty((0, 5), dtype=torch.uint8)).shape == (0, 5)


def test_the_widest_row_is_that_of_the_line_buffers() -> None:
    text = (ROOT / "hw/include/lines3x3.hpp").read_text()
    assert re.search(rf"MAX_WIDTH = {MAX_WIDTH};", text)


@SMALL
@given(n=st.integers(1, 5000), top=st.sampled_from([1, 2, 3, 256]), seed=SEEDS)
def test_histogram(n: int, top: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(0, top, (n,), dtype=torch.uint8, generator=generator)
    expected = torch.bincount(values, minlength=256)
    assert loaded("filters").histogram(values).tolist() == expected.tolist()


def test_histogram_of_special_inputs() -> None:
    histogram = loaded("filters").histogram
    assert histogram(torch.empty(0, dtype=torch.uint8)).tolist() == [0] * 256
    assert histogram(torch.tensor(255, dtype=torch.uint8)).tolist() == [0] * 255 + [1]
    image = images(33, 65, 4)
    assert torch.equal(histogram(image.T), torch.bincount(image.flatten(), minlength=256).int())


# ---- integers ------------------------------------------------------------------------------------


@SMALL
@given(n=st.integers(1, 200), taps=st.integers(0, 16), seed=SEEDS)
def test_fir(n: int, taps: int, seed: int) -> None:
    x, coefficients = int32s(n, seed), int32s(taps, seed + 1)
    exact = np.convolve(x.numpy().astype(object), [*coefficients.tolist(), 0])[:n]
    assert torch.equal(loaded("signal").fir(x, coefficients), wrapped(exact))


def test_fir_forgets_the_packet_before() -> None:
    fir = loaded("signal").fir
    assert fir.taps == 16
    one = torch.tensor([1], dtype=torch.int32)
    taps = torch.arange(1, 17, dtype=torch.int32)
    for _ in range(2):
        assert fir(torch.ones(3, dtype=torch.int32), taps).tolist() == [1, 3, 6]
    assert fir(one, taps).tolist() == [1]
    assert fir(one[:0], taps).tolist() == []


@SMALL
@given(
    n=st.integers(1, 200),
    gain=st.sampled_from(ENDS) | st.integers(-50, 50),
    limit=st.sampled_from(ENDS) | st.integers(-(10**9), 10**9),
    seed=SEEDS,
)
def test_chain(n: int, gain: int, limit: int, seed: int) -> None:
    x = int32s(n, seed)
    scaled = wrapped(x.numpy().astype(object) * gain)
    kept = np.where(scaled.numpy() < limit, 0, scaled.numpy())
    assert torch.equal(loaded("signal").chain(x, gain, limit), wrapped(np.cumsum(kept, dtype="i8")))


@SMALL
@given(n=st.integers(1, 5000), seed=SEEDS)
def test_prefix_sum(n: int, seed: int) -> None:
    values = int32s(2 * n, seed)[::2]
    result = loaded("signal").prefix_sum(values)
    assert torch.equal(result, torch.cumsum(values, 0, dtype=torch.int32))


# ---- fixed point ---------------------------------------------------------------------------------


def off(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found - exact).abs().max())


@SMALL
@given(n=st.integers(1, 200), taps=st.integers(0, 16), large=st.booleans(), seed=SEEDS)
def test_fir_fixed_rounds_once_and_saturates(n: int, taps: int, large: bool, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x, coefficients = (torch.rand(size, generator=generator) * 2 - 1 for size in (n, taps))
    if not large:
        coefficients = coefficients / 16
    steps = [(v.double() * 2**15).round().clamp(max=2**15 - 1) for v in (x, coefficients)]
    exact = np.convolve(*(v.numpy() for v in (steps[0], torch.cat([steps[1], torch.zeros(1)]))))[:n]
    expected = np.clip(np.floor(exact / 2**15 + 0.5), -(2**15), 2**15 - 1) / 2**15
    result = loaded("signal").fir_fixed(x, coefficients)
    assert result.dtype == torch.float32 and result.double().tolist() == expected.tolist()


@SMALL
@given(st.lists(st.floats(-4, 4, exclude_max=True), min_size=1, max_size=50))
def test_cordic_is_within_its_bound(angles: list[float]) -> None:
    x = torch.tensor(angles, dtype=torch.float64)
    sine, cosine = loaded("signal").cordic(x)
    assert off(sine, x.sin()) <= 3 * 2.0**-29
    assert off(cosine, x.cos()) <= 3 * 2.0**-29


def test_cordic_of_special_angles() -> None:
    cordic = loaded("signal").cordic
    last = math.nextafter(4.0, 0.0)
    x = torch.tensor([[0.0, -0.0, 5e-324], [math.pi, -4.0, last]], dtype=torch.float64)
    sine, cosine = cordic(x)
    assert sine.shape == x.shape and off(sine, x.sin()) <= 3 * 2.0**-29
    assert off(cosine, x.cos()) <= 3 * 2.0**-29
    single = torch.linspace(-4, 3.99, 1001)
    sine, cosine = cordic(single)
    assert sine.dtype == cosine.dtype == torch.float32
    assert off(sine, single.sin()) <= 2.0**-24 + 3 * 2.0**-29
    assert cordic(single[:0])[0].numel() == 0


@SMALL
@given(frames=st.integers(1, 4), kind=st.sampled_from(["noise", "signs", "wave"]), seed=SEEDS)
def test_fft_is_within_its_bound(frames: int, kind: str, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    parts = torch.rand((frames, 256, 2), generator=generator, dtype=torch.float64) * 2 - 1
    if kind == "signs":
        parts = parts.sign()
    x = torch.view_as_complex(parts)
    if kind == "wave":
        x = torch.exp(2j * math.pi * (seed % 256) * torch.arange(256, dtype=torch.float64) / 256)
    result, exact = loaded("signal").fft(x), torch.fft.fft(x, norm="forward")
    assert off(torch.view_as_real(result), torch.view_as_real(exact)) <= 2.0**-25


def test_fft_of_special_frames() -> None:
    fft = loaded("signal").fft
    impulse = torch.zeros(256, dtype=torch.complex64)
    impulse[0] = 1
    assert torch.equal(fft(impulse), torch.full((256,), 1 / 256, dtype=torch.complex64))
    x = torch.rand(2, 3, 256).to(torch.complex64)
    assert fft(x).dtype == torch.complex64 and fft(x).shape == x.shape
    assert off(torch.view_as_real(fft(x.conj())), torch.view_as_real(fft(x))) <= 2.0**-22
    assert fft(x[:0]).shape == (0, 3, 256)


# ---- refusals ------------------------------------------------------------------------------------

U8, I32 = torch.zeros((4, 4), dtype=torch.uint8), torch.zeros(4, dtype=torch.int32)
F32 = torch.zeros(4)
CASES: list[tuple[str, str, tuple[Any, ...], str]] = [
    ("filters", "sobel", (U8.int(),), r"image has dtype torch.int32; expected torch.uint8"),
    ("filters", "gauss", (U8[0],), r"image has shape \(4,\); expected 2 dimensions"),
    ("filters", "gauss", (U8.repeat(1, 481),), "rows of 1924 pixels; expected at most 1920"),
    ("filters", "sobel", (U8[:1, :1].expand(8400, 1000),), "8400000 bytes; expected at most"),
    ("filters", "histogram", (U8.float(),), "expected torch.uint8; quantise it first"),
    ("filters", "histogram", (U8.numpy(),), "values is ndarray; expected a torch.Tensor"),
    ("signal", "fir", (I32.long(), I32), r"x has dtype torch.int64; .*x.to\(torch.int32\)"),
    ("signal", "fir", (I32, I32.repeat(5)), "coefficients has 20 elements; expected at most 16"),
    ("signal", "fir", (I32.reshape(2, 2), I32), "expected 1 dimensions"),
    ("signal", "fir_fixed", (I32, I32), "x has dtype torch.int32; .*float32"),
    ("signal", "fir_fixed", (F32 + 1.1, F32), "x has values that are not from -1 to 1"),
    ("signal", "fir_fixed", (F32, F32.repeat(5)), "coefficients has 20 elements"),
    ("signal", "chain", (I32, 2.5), "gain is 2.5; expected an int of 32 bits"),
    ("signal", "chain", (I32, 1, 2**31), "limit is 2147483648; expected an int of 32 bits"),
    ("signal", "prefix_sum", (I32.float(),), "expected torch.int32"),
    ("signal", "cordic", (I32,), "expected torch.float32"),
    ("signal", "cordic", (torch.tensor([4.0]),), "not from -4 to 4"),
    ("signal", "cordic", (torch.tensor([math.nan]),), "not from -4 to 4"),
    ("signal", "fft", (torch.zeros(256),), "expected torch.complex64"),
    ("signal", "fft", (torch.zeros(255, dtype=torch.complex64),), r"expected \(..., 256\)"),
    ("signal", "fft", (torch.full((256,), 1.1j),), "not from -1 to 1"),
]


@pytest.mark.parametrize(("overlay", "name", "given", "text"), CASES)
def test_refusals(overlay: str, name: str, given: tuple[Any, ...], text: str) -> None:
    kernel = getattr(loaded(overlay), name)
    with pytest.raises(ArgumentError, match=f"{name}_0: .*{text}"):
        kernel(*given)


def test_a_stream_without_a_dma_is_refused() -> None:
    chain = loaded("signal").chain
    dma, chain.dma = chain.dma, None
    try:
        with pytest.raises(KernelError, match=r"chain_0 has no DMA: set overlay.chain_0.dma"):
            chain(I32)
    finally:
        chain.dma = dma
    assert chain(I32 + 1, 2, 2).tolist() == [2, 4, 6, 8]  # what is at the limit counts
    assert chain(I32 + 1, 2, 3).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "name", ["fir", "sobel", "histogram", "chain", "prefix_sum", "fft", "vadd"]
)
def test_a_kernel_of_another_with_the_name_has_the_plain_driver(name: str) -> None:
    control = {"address_offset": 0, "size": 32, "fields": {"AP_START": {}}}
    entry = {
        "type": f"xilinx.com:hls:{name}:1.0",
        "registers": {"CTRL": control, "in1": {"address_offset": 16, "size": 32, "fields": {}}},
    }
    assert driver_for(entry) is GenericKernel
