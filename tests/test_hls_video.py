"""Pictures as streams (`hls_video.h`): against numpy, on the board, and as estimates."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pynq_torch.hls import compile_command, estimate, lint

Picture = NDArray[np.generic]
ROWS, COLS = 9, 11
FUNCTIONS = r"""
#include <hls_video.h>
template <int T> using Mat = hls::Mat<16, 16, T>;
template <int T> using Pixel = typename Mat<T>::pixel;
template <int T> void put(Mat<T>& picture, const void* values) {
    const auto* next = static_cast<const Pixel<T>*>(values);
    for (int i = 0; i < picture.rows * picture.cols; ++i)
        for (auto& channel : picture.data_stream) channel.write(*next++);
}
template <int T> int take(Mat<T>& picture, void* values) {
    auto* next = static_cast<Pixel<T>*>(values);
    for (int i = 0; i < picture.rows * picture.cols; ++i)
        for (auto& channel : picture.data_stream) {
            if (channel.empty()) return 1;
            *next++ = channel.read();
        }
    return picture.empty() ? 0 : 2;
}
#define ONE(name, S, D, ...)                                                     \
    int name(const void* in, void* out, int rows, int cols) {                    \
        Mat<S> a(rows, cols);                                                    \
        Mat<D> to(rows, cols);                                                   \
        put(a, in);                                                              \
        __VA_ARGS__;                                                             \
        return a.empty() ? take(to, out) : 3;                                    \
    }
#define TWO(name, S, D, ...)                                                     \
    int name(const void* in, const void* other, void* out, int rows, int cols) { \
        Mat<S> a(rows, cols), b(rows, cols);                                     \
        Mat<D> to(rows, cols);                                                   \
        put(a, in);                                                              \
        put(b, other);                                                           \
        __VA_ARGS__;                                                             \
        return a.empty() && b.empty() ? take(to, out) : 3;                       \
    }
extern "C" {
ONE(sobel_x, HLS_8UC1, HLS_16SC1, (hls::Sobel<1, 0, 3>(a, to)))
ONE(sobel_y5, HLS_8UC1, HLS_16S, (hls::Sobel<0, 1, 5>(a, to)))
ONE(sobel_small, HLS_8UC1, HLS_8UC1, (hls::Sobel<1, 0, 3>(a, to)))
ONE(blur, HLS_8UC3, HLS_8UC3, (hls::GaussianBlur<5, 3>(a, to)))
ONE(blur_nine, HLS_8UC1, HLS_8UC1, (hls::GaussianBlur<9, 9>(a, to, 3, 1.5)))
ONE(blur_sigma, HLS_8UC1, HLS_8UC1, (hls::GaussianBlur<3, 3>(a, to, 1.5)))
ONE(filter, HLS_8UC1, HLS_16SC1,
    hls::Window<3, 3, int> kernel; for (int i = 0; i < 9; ++i) kernel.val[i / 3][i % 3] = i - 3;
    hls::Filter2D(a, to, kernel, hls::Point_<int>(-1, -1)))
ONE(filter_edge, HLS_8UC1, HLS_32SC1,
    hls::Window<3, 3, int> kernel; for (int i = 0; i < 9; ++i) kernel.val[i / 3][i % 3] = i - 3;
    hls::Filter2D<hls::BORDER_REPLICATE>(a, to, kernel))
ONE(filter_zero, HLS_8UC1, HLS_32SC1,
    hls::Window<3, 3, int> kernel; for (int i = 0; i < 9; ++i) kernel.val[i / 3][i % 3] = i - 3;
    hls::Filter2D<hls::BORDER_CONSTANT>(a, to, kernel))
ONE(erode, HLS_8UC1, HLS_8UC1, hls::Erode(a, to))
ONE(dilate, HLS_8UC3, HLS_8UC3, hls::Dilate(a, to))
ONE(erode_cross, HLS_8UC1, HLS_8UC1,
    hls::Window<3, 3, char> cross; for (int i = 0; i < 9; ++i) cross.val[i / 3][i % 3] = i % 2;
    (hls::Erode<0, 1>(a, to, cross)))
ONE(dilate_line, HLS_8UC1, HLS_8UC1,
    hls::Window<3, 5, int> line; for (int i = 0; i < 15; ++i) line.val[i / 5][i % 5] = i / 5 == 1;
    (hls::Dilate<0, 1>(a, to, line)))
ONE(extremes, HLS_16SC1, HLS_32SC1,
    short low; short high; hls::Point_<int> at; hls::Point_<int> other;
    hls::MinMaxLoc(a, &low, &high, at, other);
    hls::Set(hls::Scalar<1, int>(low + 1000 * (at.y * cols + at.x)), to);
    if (high != 599 || other.y * cols + other.x != 7) return 4)
ONE(rgb_to_gray, HLS_8UC3, HLS_8UC1, (hls::CvtColor<HLS_RGB2GRAY>(a, to)))
ONE(gray_of_three, HLS_8UC3, HLS_8UC1,
    Mat<HLS_8UC3> x(rows, cols), y(rows, cols);
    Mat<HLS_8UC1> u(rows, cols), v(rows, cols);
    (hls::CvtColor<HLS_RGB2GRAY>(a, x)); (hls::CvtColor<HLS_GRAY2RGB>(x, y));
    hls::Split(y, to, u, v);
    while (!u.empty()) if (u.read().val[0] != v.read().val[0]) return 5)
ONE(bgr_to_gray, HLS_8UC3, HLS_8UC1, (hls::CvtColor<HLS_BGR2GRAY, HLS_8UC3, HLS_8UC1>(a, to)))
ONE(gray_to_rgb, HLS_8UC1, HLS_8UC3, (hls::CvtColor<HLS_GRAY2RGB>(a, to)))
ONE(rgb_to_bgr, HLS_8UC3, HLS_8UC3, (hls::CvtColor<HLS_RGB2BGR>(a, to)))
ONE(rgb_to_ycrcb, HLS_8UC3, HLS_8UC3, (hls::CvtColor<HLS_RGB2YCrCb>(a, to)))
ONE(bgr_to_ycrcb, HLS_8UC3, HLS_8UC3, (hls::CvtColor<HLS_BGR2YCrCb>(a, to)))
ONE(ycrcb_to_rgb, HLS_8UC3, HLS_8UC3, (hls::CvtColor<HLS_YCrCb2RGB>(a, to)))
ONE(below, HLS_8UC1, HLS_8UC1, hls::CmpS(a, 100, to, HLS_CMP_LT))
ONE(at_least, HLS_8UC3, HLS_8UC3, hls::CmpS(a, 100, to, HLS_CMP_GE))
ONE(scale_abs, HLS_16SC1, HLS_8UC1, hls::ConvertScaleAbs(a, to, 0.5, -3.25))
ONE(scale, HLS_8UC1, HLS_16SC1, hls::Scale(a, to, -1.5, 10.0))
ONE(binary, HLS_8UC1, HLS_8UC1, hls::Threshold(a, to, 100, 200, HLS_THRESH_BINARY))
ONE(binary_inv, HLS_8UC1, HLS_8UC1, hls::Threshold(a, to, 100, 200, HLS_THRESH_BINARY_INV))
ONE(truncated, HLS_8UC1, HLS_8UC1, hls::Threshold(a, to, 100, 200, HLS_THRESH_TRUNC))
ONE(to_zero, HLS_8UC1, HLS_8UC1, hls::Threshold(a, to, 100, 200, HLS_THRESH_TOZERO))
ONE(to_zero_inv, HLS_8UC1, HLS_8UC1, hls::Threshold(a, to, 100, 200, HLS_THRESH_TOZERO_INV))
ONE(inverted, HLS_8UC3, HLS_8UC3, hls::Not(a, to))
ONE(add_s, HLS_8UC3, HLS_8UC3, (hls::AddS(a, hls::Scalar<3, unsigned char>(100, 20, 3), to)))
ONE(sub_s, HLS_8UC1, HLS_8UC1, (hls::SubS(a, hls::Scalar<1, int>(100), to)))
ONE(sub_rs, HLS_8UC1, HLS_8UC1, (hls::SubRS(a, hls::Scalar<1, int>(100), to)))
ONE(split_and_merged, HLS_8UC3, HLS_8UC3,
    Mat<HLS_8UC1> x(rows, cols), y(rows, cols), z(rows, cols);
    hls::Split(a, x, y, z); hls::Merge(z, x, y, to))
ONE(twice, HLS_8UC1, HLS_8UC1,
    Mat<HLS_8UC1> x(rows, cols), y(rows, cols); hls::Duplicate(a, x, y); hls::Max(x, y, to))
ONE(filled, HLS_8UC1, HLS_8UC3,
    while (!a.empty()) a.read(); hls::Set(hls::Scalar<3, unsigned char>(7, 8, 9), to))
ONE(zero, HLS_8UC1, HLS_8UC1, while (!a.empty()) a.read(); hls::Zero(to))
ONE(corners, HLS_8UC1, HLS_8UC1, hls::FASTX(a, to, 20, false))
ONE(lone_corners, HLS_8UC1, HLS_8UC1, hls::FASTX(a, to, 20, true))
int painted(const void* in, const void* other, void* out, int rows, int cols) {
    Mat<HLS_8UC3> a(rows, cols), to(rows, cols);
    Mat<HLS_8UC1> mask(rows, cols);
    put(a, in);
    put(mask, other);
    hls::PaintMask(a, mask, to, hls::Scalar<3, unsigned char>(255, 7, 0));
    return a.empty() && mask.empty() ? take(to, out) : 3;
}
TWO(difference, HLS_8UC3, HLS_8UC3, hls::AbsDiff(a, b, to))
TWO(weighted, HLS_8UC1, HLS_8UC1, hls::AddWeighted(a, 0.75, b, 0.5, -10.0, to))
TWO(both, HLS_8UC1, HLS_8UC1, hls::And(a, b, to))
TWO(either, HLS_8UC1, HLS_8UC1, hls::Or(a, b, to))
TWO(one_of, HLS_8UC1, HLS_8UC1, hls::Xor(a, b, to))
TWO(unequal, HLS_8UC1, HLS_8UC1, hls::Cmp(a, b, to, HLS_CMP_NE))
TWO(at_most, HLS_8UC1, HLS_8UC1, hls::Cmp(a, b, to, HLS_CMP_LE))
TWO(smaller, HLS_8UC1, HLS_8UC1, hls::Min(a, b, to))
}
"""
SOBEL = """
#include <hls_video.h>
typedef hls::stream<ap_axiu<24, 1, 1, 1> > Video;
typedef hls::Mat<480, 640, HLS_8UC3> Colour;
typedef hls::Mat<480, 640, HLS_8UC1> Gray;
void edges(Video& from, Video& to, int rows, int cols) {
#pragma HLS INTERFACE axis port=from
#pragma HLS INTERFACE axis port=to
#pragma HLS INTERFACE s_axilite port=rows
#pragma HLS INTERFACE s_axilite port=cols
#pragma HLS INTERFACE s_axilite port=return
#pragma HLS DATAFLOW
    Colour in(rows, cols), out(rows, cols);
    Gray gray(rows, cols), found(rows, cols);
    hls::AXIvideo2Mat(from, in);
    hls::CvtColor<HLS_RGB2GRAY>(in, gray);
    hls::Sobel<1, 0, 3>(gray, found);
    hls::CvtColor<HLS_GRAY2RGB>(found, out);
    hls::Mat2AXIvideo(out, to);
}
"""


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("video")
    source, library = folder / "video.cpp", folder / "video.so"
    source.write_text(FUNCTIONS)
    command = compile_command(source, library, cflags=["-shared", "-fPIC"])
    subprocess.run(command, check=True, timeout=300)
    return ctypes.CDLL(str(library))


def pixels(channels: int = 1, low: int = 0, high: int = 256, dtype: str = "u1") -> Picture:
    shape = (ROWS, COLS) if channels == 1 else (ROWS, COLS, channels)
    return np.random.default_rng(channels).integers(low, high, shape).astype(dtype)


def around(
    picture: Picture, kernel: Callable[[Picture], Picture], size: tuple[int, int], mode: str
) -> Picture:
    """Apply `kernel` to the `size` pixels around each, as [rows, columns, height, width]."""
    high, wide = size
    edges = ((high // 2, high // 2), (wide // 2, wide // 2), (0, 0))[: picture.ndim]
    padded = np.pad(picture.astype("i8"), edges, mode=mode)  # type: ignore[call-overload]
    return kernel(np.lib.stride_tricks.sliding_window_view(padded, size, axis=(0, 1)))


def convolved(picture: Picture, rows: Picture, columns: Picture, mode: str = "reflect") -> Picture:
    factors = np.outer(rows, columns)
    size = factors.shape
    return around(picture, lambda seen: (seen * factors).sum((-2, -1)), size, mode)


def saturated(values: Picture, dtype: str) -> Picture:
    limits = np.iinfo(dtype)
    return np.clip(np.floor(values + 0.5), limits.min, limits.max).astype(dtype)


SLOPE, SMOOTH = np.array([-1, 0, 1]), np.array([1, 2, 1])
SLOPE5, SMOOTH5 = np.array([-1, -2, 0, 2, 1]), np.array([1, 4, 6, 4, 1])
FACTORS = np.arange(9).reshape(3, 3) - 3


def bell(size: int, sigma: float) -> Picture:
    row = np.exp(-0.5 * (np.arange(size) - size // 2) ** 2 / sigma**2)
    return row / row.sum()


def blurred(picture: Picture, rows: Picture, columns: Picture) -> Picture:
    """Return a picture that is made soft; factors have 14 bits behind the point."""
    factors = np.floor(np.outer(rows, columns) * 2**14)
    seen = around(picture, lambda s: (s * factors).sum((-2, -1)), factors.shape, "reflect")
    return saturated(seen / 2**14, "u1")


def filtered(picture: Picture, mode: str) -> Picture:
    return around(picture, lambda seen: (seen * FACTORS).sum((-2, -1)), (3, 3), mode)


def extreme(picture: Picture, which: Callable[..., Picture]) -> Picture:
    found = around(picture, lambda seen: which(seen, axis=(-2, -1)), (3, 3), "edge")
    return found.astype("u1")


def gray(picture: Picture, weights: tuple[float, float, float]) -> Picture:
    return saturated(picture @ np.array(weights), "u1")


def spread_out() -> Picture:
    """Return a picture whose greatest pixel is the seventh, and whose least is there twice."""
    picture = pixels(1, -500, 500, "i2")
    picture.flat[7], picture.flat[[40, 50]] = 599, -600
    return picture


def blocks() -> Picture:
    """Return a picture with edges, corners and a little noise."""
    picture = np.full((ROWS, COLS), 40)
    picture[4:, 5:] = 200
    picture[:3, 8:] = 5
    return (picture + np.random.default_rng(5).integers(0, 6, picture.shape)).astype("u1")


def corners(picture: Picture, *, alone: bool, threshold: int = 20) -> Picture:
    """Return 255 where nine of the sixteen pixels around are brighter, or darker, in a row."""
    rows, columns = picture.shape
    circle = [(0, -3), (1, -3), (2, -2), (3, -1), (3, 0), (3, 1), (2, 2), (1, 3)]
    circle += [(-x, -y) for x, y in circle]
    scores = np.zeros(picture.shape, int)
    for row in range(3, rows - 3):
        for column in range(3, columns - 3):
            ring = np.array([picture[row + y, column + x] for x, y in circle], int)
            arcs = [np.roll(ring - int(picture[row, column]), -k)[:9] for k in range(16)]
            score = max(max(arc.min(), (-arc).min()) for arc in arcs)
            scores[row, column] = score if score > threshold else 0
    found = scores > 0
    if alone:
        padded = np.pad(scores, 1)
        for row, column in np.argwhere(found):
            near = padded[row : row + 3, column : column + 3].copy()
            near[1, 1] = -1
            found[row, column] = scores[row, column] > near.max()
    return np.where(found, 255, 0).astype("u1")


ONE: dict[str, tuple[Picture, Callable[[Picture], Picture]]] = {
    "sobel_x": (pixels(), lambda a: convolved(a, SMOOTH, SLOPE).astype("i2")),
    "sobel_y5": (pixels(), lambda a: convolved(a, SLOPE5, SMOOTH5).astype("i2")),
    "sobel_small": (pixels(), lambda a: saturated(convolved(a, SMOOTH, SLOPE), "u1")),
    "blur": (pixels(3), lambda a: blurred(a, bell(5, 1.1), bell(3, 0.8))),
    "blur_sigma": (pixels(), lambda a: blurred(a, bell(3, 1.5), bell(3, 1.5))),
    "blur_nine": (pixels(), lambda a: blurred(a, bell(9, 1.5), bell(9, 3))),
    "filter": (pixels(), lambda a: saturated(filtered(a, "reflect"), "i2")),
    "filter_edge": (pixels(), lambda a: filtered(a, "edge").astype("i4")),
    "filter_zero": (pixels(), lambda a: filtered(a, "constant").astype("i4")),
    "erode": (
        pixels(),
        lambda a: around(a, lambda s: s.min((-2, -1)), (3, 3), "edge").astype("u1"),
    ),
    "dilate": (
        pixels(3),
        lambda a: around(a, lambda s: s.max((-2, -1)), (3, 3), "edge").astype("u1"),
    ),
    "erode_cross": (
        pixels(),
        lambda a: around(
            a, lambda s: s[..., [0, 1, 1, 2], [1, 0, 2, 1]].min(-1), (3, 3), "edge"
        ).astype("u1"),
    ),
    "dilate_line": (
        pixels(),
        lambda a: around(a, lambda s: s[..., 1, :].max(-1), (3, 5), "edge").astype("u1"),
    ),
    "extremes": (
        spread_out(),
        lambda a: np.full(a.shape, a.min() + 1000 * int(a.argmin()), "i4"),
    ),
    "gray_to_rgb": (pixels(), lambda a: np.stack([a] * 3, axis=-1)),
    "rgb_to_bgr": (pixels(3), lambda a: a[..., ::-1]),
    "below": (pixels(), lambda a: np.where(a < 100, 255, 0).astype("u1")),
    "at_least": (pixels(3), lambda a: np.where(a >= 100, 255, 0).astype("u1")),
    "scale_abs": (pixels(1, -600, 600, "i2"), lambda a: saturated(abs(a * 0.5 - 3.25), "u1")),
    "scale": (pixels(), lambda a: saturated(a * -1.5 + 10, "i2")),
    "binary": (pixels(), lambda a: np.where(a > 100, 200, 0).astype("u1")),
    "binary_inv": (pixels(), lambda a: np.where(a > 100, 0, 200).astype("u1")),
    "truncated": (pixels(), lambda a: np.minimum(a, 100)),
    "to_zero": (pixels(), lambda a: np.where(a > 100, a, 0).astype("u1")),
    "to_zero_inv": (pixels(), lambda a: np.where(a > 100, 0, a).astype("u1")),
    "inverted": (pixels(3), lambda a: 255 - a),
    "add_s": (pixels(3), lambda a: saturated(a + np.array([100, 20, 3]), "u1")),
    "sub_s": (pixels(), lambda a: saturated(a.astype("i4") - 100, "u1")),
    "sub_rs": (pixels(), lambda a: saturated(100 - a.astype("i4"), "u1")),
    "split_and_merged": (pixels(3), lambda a: a[..., [2, 0, 1]]),
    "twice": (pixels(), lambda a: a),
    "filled": (pixels(), lambda a: np.full((*a.shape, 3), (7, 8, 9), "u1")),
    "zero": (pixels(), np.zeros_like),
    "corners": (blocks(), lambda a: corners(a, alone=False)),
    "lone_corners": (blocks(), lambda a: corners(a, alone=True)),
}
TWO: dict[str, tuple[int, Callable[[Picture, Picture], Picture]]] = {
    "difference": (3, lambda a, b: abs(a.astype("i4") - b).astype("u1")),
    "weighted": (1, lambda a, b: saturated(a * 0.75 + b * 0.5 - 10, "u1")),
    "both": (1, lambda a, b: a & b),
    "either": (1, lambda a, b: a | b),
    "one_of": (1, lambda a, b: a ^ b),
    "unequal": (1, lambda a, b: np.where(a != b, 255, 0).astype("u1")),
    "at_most": (1, lambda a, b: np.where(a <= b, 255, 0).astype("u1")),
    "smaller": (1, np.minimum),
}


def apply(functions: ctypes.CDLL, name: str, like: Picture, *pictures: Picture) -> Picture:
    out = np.full_like(np.ascontiguousarray(like), 77)
    places = [np.ascontiguousarray(one).ctypes.data_as(ctypes.c_void_p) for one in pictures]
    said = getattr(functions, name)(*places, out.ctypes.data_as(ctypes.c_void_p), ROWS, COLS)
    assert said == 0, "not every pixel was read and written once"
    return out


@pytest.mark.parametrize("name", ONE)
def test_a_function_of_a_picture(functions: ctypes.CDLL, name: str) -> None:
    given, wanted = ONE[name]
    want = wanted(given)
    np.testing.assert_array_equal(apply(functions, name, want, given), want)


def test_a_mask_paints_a_picture(functions: ctypes.CDLL) -> None:
    picture, mask = pixels(3), np.where(pixels() > 128, pixels(), 0).astype("u1")
    painted = apply(functions, "painted", picture, picture, mask)
    assert 0 < np.count_nonzero(mask) < mask.size
    assert (painted == np.where(mask[..., None], np.array([255, 7, 0]), picture)).all()


@pytest.mark.parametrize("name", TWO)
def test_a_function_of_two_pictures(functions: ctypes.CDLL, name: str) -> None:
    channels, wanted = TWO[name]
    a, b = pixels(channels), pixels(channels)[::-1]
    want = wanted(a, b)
    np.testing.assert_array_equal(apply(functions, name, want, a, b), want)


def luminance(picture: Picture) -> Picture:
    """Return brightness and the differences of red and blue, by ITU-R BT.601 with 128 for none."""
    red, _, blue = np.moveaxis(picture.astype(float), -1, 0)
    bright = gray(picture, (0.299, 0.587, 0.114)).astype(float)
    parts = bright, (red - bright) * 0.713 + 128, (blue - bright) * 0.564 + 128
    return saturated(np.stack(parts, axis=-1), "u1")


def coloured(picture: Picture) -> Picture:
    bright, red, blue = np.moveaxis(picture.astype(float) - [0, 128, 128], -1, 0)
    parts = bright + 1.403 * red, bright - 0.714 * red - 0.344 * blue, bright + 1.773 * blue
    return saturated(np.stack(parts, axis=-1), "u1")


MANY = {
    "rgb_to_ycrcb": luminance,
    "bgr_to_ycrcb": lambda a: luminance(a[..., ::-1]),
    "ycrcb_to_rgb": coloured,
}


@pytest.mark.parametrize("name", MANY)
def test_colours_are_at_most_one_off(functions: ctypes.CDLL, name: str) -> None:
    given = pixels(3)
    want = MANY[name](given)
    off = abs(apply(functions, name, want, given).astype("i4") - want)
    assert off.max() <= 1 and off.mean() < 0.02


@pytest.mark.parametrize("name", ["rgb_to_gray", "gray_of_three", "bgr_to_gray"])
def test_factors_of_few_bits_are_at_most_one_off(functions: ctypes.CDLL, name: str) -> None:
    weights = (0.299, 0.587, 0.114)
    given = pixels(3)
    want = gray(given, weights[::-1] if name == "bgr_to_gray" else weights)
    found = apply(functions, name, want, given)
    off = abs(found.astype("i4") - want)
    assert off.max() <= 1 and off.mean() < 0.02


def test_a_picture_through_a_kernel_of_video(tmp_path: Path) -> None:
    bench = (
        SOBEL
        + r"""
#include <cstdio>
int main() {
    const int rows = 20, cols = 30;
    Video from, to;
    ap_axiu<24, 1, 1, 1> beat;
    beat.user = 0, beat.last = 0, beat.data = 1;
    for (int before = 0; before < 5; ++before) from.write(beat);
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < cols + (i == 3); ++j) {  // a line with a pixel too much
            beat.user = i == 0 && j == 0;
            beat.last = j == cols - 1 + (i == 3);
            beat.data = j < cols / 2 ? 0x000000 : 0x404040;
            from.write(beat);
        }
    edges(from, to, rows, cols);
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < cols; ++j) {
            beat = to.read();
            const int want = j == cols / 2 || j == cols / 2 - 1 ? 0xffffff : 0;
            const bool marks = beat.last == (j == cols - 1) && beat.user == (i + j == 0);
            if (beat.data.to_int() != want || !marks) {
                std::printf("%d %d: %x\n", i, j, beat.data.to_int());
                return 1;
            }
        }
    return from.empty() && to.empty() ? 0 : 2;
}
"""
    )
    source, program = tmp_path / "bench.cpp", tmp_path / "bench"
    source.write_text(bench)
    subprocess.run(compile_command(source, program), check=True, timeout=300)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_its_loops_are_estimated_as_vivado_hls_reports_them(tmp_path: Path) -> None:
    # Of 1080 x 1920 in Vivado HLS 2019.2: 7 public reports have these loops, all with II=1.
    source = tmp_path / "edges.cpp"
    source.write_text(SOBEL)
    made = estimate(source, "edges", tool="vivado-2019.2")
    loops = [(one.name, one.trip_count, one.ii) for one in made.loops]
    height, width = ("loop_height", (0, 480), None), ("loop_width", (0, 640), 1)
    edge = [("loop_height", (0, 482), None), ("loop_width", (0, 642), 1)]
    waits = [("loop_wait_for_start", (0, 0), 1), ("loop_wait_for_eol", (0, 0), 1)]
    assert loops == [
        waits[0],
        height,
        width,
        waits[1],
        *[height, width],
        *edge,
        *[height, width] * 2,
    ]
    assert (made.resources["DSP"], made.resources["BRAM_18K"]) == (3, 3)
    # All at once: a process begins when the one before it has written its first pixel.
    assert made.latency[1] < 1.02 * 482 * 645
    assert not lint(source, "edges")


def test_a_picture_is_made_soft_with_constants(tmp_path: Path) -> None:
    # As a report of 2019 has it: 483 rows, 19 DSP blocks, since 283, for one, is sums of shifts.
    source = tmp_path / "edges.cpp"
    gray = SOBEL.replace("hls::Sobel<1, 0, 3>(gray", "hls::GaussianBlur<5, 5>(gray")
    source.write_text(gray)
    made = estimate(source, "edges", tool="vivado-2019.2")
    assert [one.trip_count for one in made.loops if one.name == "loop_height"][2] == (0, 483)
    assert made.resources["DSP"] == 22  # three are of the gray
