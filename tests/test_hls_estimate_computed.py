"""What a kernel computes in ways that once cost nothing, or too much: all of it counts, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.errors import KernelBuildError
from pynq_torch.hls import estimate

SQUARES = """
SQUARE
void k(const float a[64], const float b[64], float y[64]) {
    LOCAL
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        y[i] = CALL(a[i], b[i]);
    }
}
"""
BODY = "{ return (u - v) * (u - v); }"
WAYS = {
    "function": (f"float d(float u, float v) {BODY}", "", "d"),
    "static": (f"static float d(float u, float v) {BODY}", "", "d"),
    "lambda": ("", f"auto d = [](float u, float v) {BODY};", "d"),
    "called at once": ("", "", f"[](float u, float v) {BODY}"),
    "method outside its class": (
        "struct D { float of(float u, float v) const; };\n"
        f"float D::of(float u, float v) const {BODY}",
        "D d;",
        "d.of",
    ),
    "class of this file alone": (
        f"namespace {{ struct D {{ float of(float u, float v) const {BODY} }}; }}",
        "D d;",
        "d.of",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_work_counts_wherever_it_is_written(tmp_path: Path, way: str) -> None:
    square, local, call = WAYS[way]
    text = SQUARES.replace("SQUARE", square).replace("LOCAL", local).replace("CALL", call)
    found = estimate_of(tmp_path, text, "vitis")
    assert found.resources["DSP"] == 5  # a difference and a product
    assert loop_of(found, "each").iteration_latency == (12, 12)


def test_a_lambda_with_streams_takes_their_words(tmp_path: Path) -> None:
    text = """
#include <hls_stream.h>
void k(hls::stream<int> &in, hls::stream<int> &out) {
    auto twice = [&]() { int v = in.read(); out.write(v * v); out.write(v); };
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        twice();
    }
}
"""
    assert loop_of(estimate_of(tmp_path, text, "vitis"), "each").ii == 2  # two words written


RESULT = """
#include <ap_int.h>
TYPE k(ap_uint<32> a, ap_uint<32> b) {
#pragma HLS PIPELINE
    ap_uint<32> sum = 0;
    for (int i = 0; i < 32; ++i) if (b[i]) sum ^= a << i;
    return sum;
}
"""


@pytest.mark.parametrize("kind", ["ap_uint<32>", "unsigned"])
def test_a_result_that_is_an_object_is_a_value(tmp_path: Path, kind: str) -> None:
    found = estimate_of(tmp_path, RESULT.replace("TYPE", kind), "vitis")
    assert found.interval == (1, 1)
    assert not found.reasons


COPY = """
#include <cstring>
void k(int *a, int n, int out[64]) {
#pragma HLS INTERFACE m_axi port=a
    int buffer[64];
    memcpy(buffer, a, SIZE);
    each: for (int i = 0; i < 64; ++i) out[i] = buffer[63 - i];
}
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_a_copy_as_long_as_a_variable_says_has_no_known_latency(tmp_path: Path, tool: str) -> None:
    known = estimate_of(tmp_path, COPY.replace("SIZE", "256"), tool)
    assert known.latency[1] is not None
    found = estimate_of(tmp_path, COPY.replace("SIZE", "n * sizeof(int)"), tool)
    assert found.latency == (None, None)
    copy = loop_of(found, "memcpy.buffer.a")
    assert (copy.line, copy.trip_count, copy.latency) == (6, (None, None), (None, None))
    assert "a variable says how much it takes" in str(found)
    assert "LOOP_TRIPCOUNT min=" not in str(found)  # that pragma has no place at a memcpy


def test_a_loop_that_does_nothing_is_left_out(tmp_path: Path) -> None:
    text = """
void k(const int a[8], int y[8]) {
    idle: for (int i = 0; i < 1000; ++i) { int t = i * i; (void)t; }
    each: for (int i = 0; i < 8; ++i) y[i] = a[i];
    int last = 0;
    count: for (int i = 0; i < a[0]; ++i) last += i;
    y[0] = last;
}
"""
    found = estimate_of(tmp_path, text, "vivado")
    assert "idle" not in [one.name for one in found.loops]
    assert loop_of(found, "each").trip_count == (8, 8)
    assert loop_of(found, "count").trip_count == (None, None)  # its sum is used


def test_a_shift_register_of_the_tools_moves_on_by_itself(tmp_path: Path) -> None:
    text = """
#include <ap_shift_reg.h>
void k(const int x[256], int y[256]) {
    static ap_shift_reg<int, 512> line;
    each: for (int i = 0; i < 256; ++i) {
#pragma HLS PIPELINE
        y[i] = line.shift(x[i]) + line.read(3);
    }
}
"""
    found = estimate_of(tmp_path, text, "vitis")
    assert loop_of(found, "each").ii == 1
    assert found.resources["BRAM_18K"] == 0
    assert not found.warnings


TABLE = """
TYPES
T w[8] = {2, -4, 8, 16, 32, 64, 1, 128};
static void inner(const T x[8], T *w, T *y) {
#pragma HLS INLINE off
    T s = 0;
    for (int i = 0; i < 8; ++i) {
#pragma HLS UNROLL
        s += x[i] * w[i];
    }
    *y = s;
    WRITE
}
static void outer(const T x[8], T *w, T *y) {
#pragma HLS INLINE off
    inner(x, w, y);
}
void k(const T x[8], T *y) { outer(x, w, y); }
"""


@pytest.mark.parametrize(
    "kind", ["typedef int T;", "#include <ap_fixed.h>\ntypedef ap_fixed<24, 16> T;"]
)
def test_a_table_that_functions_only_read_is_of_constants(tmp_path: Path, kind: str) -> None:
    text = TABLE.replace("TYPES", kind)
    read = estimate_of(tmp_path, text.replace("WRITE", ""), "vitis")
    written = estimate_of(tmp_path, text.replace("WRITE", "w[2] = s;"), "vitis")
    assert read.resources["DSP"] == 0  # sums and shifts
    assert (written.resources["DSP"] or 0) > 0


def test_sources_may_come_in_any_order(tmp_path: Path) -> None:
    part, top = tmp_path / "part.cpp", tmp_path / "top.cpp"
    part.write_text("int twice(int x) { return x * 2; }  // k(x) calls it\n")
    top.write_text("int twice(int x);\nvoid k(const int a[8], int y[8]) {\n"
                   "each: for (int i = 0; i < 8; ++i) y[i] = twice(a[i]) * a[i];\n}\n")  # fmt: skip
    one, other = (
        estimate(first, "k", sources=[second]) for first, second in ((part, top), (top, part))
    )
    assert one.latency == other.latency
    assert loop_of(one, "each").trip_count == (8, 8)


def test_numbers_that_are_volatile_become_others(tmp_path: Path) -> None:
    text = """
#include <ap_fixed.h>
#include <ap_int.h>
void k(volatile ap_uint<1> *flag, volatile ap_fixed<16, 8> *x, ap_int<8> *y) {
    ap_int<3> wide = *flag;
    ap_fixed<20, 9> more = *x;
    wide = *flag;
    *y = wide + more.to_int();
}
"""
    assert estimate_of(tmp_path, text, "vitis").latency[1] is not None


def test_the_greatest_of_two_numbers_takes_luts(tmp_path: Path) -> None:
    text = """
void k(int a, int b, int c, int d, int *y) {
    int p = a < b ? a : b, q = c < d ? d : c;
    *y = p < q ? q : p;
}
"""
    luts = estimate_of(tmp_path, text, "vitis").resources["LUT"]
    assert luts is not None
    assert luts > 100  # three comparisons and three choices of 32 bits


def test_what_recursion_forbids_is_still_said_of_a_lambda(tmp_path: Path) -> None:
    text = """
int again(int n) { return n ? n * again(n - 1) : 1; }
void k(int n, int *y) { auto f = [](int m) { return again(m); }; *y = f(n); }
"""
    with pytest.raises(KernelBuildError, match="recursion"):
        estimate_of(tmp_path, text, "vitis")
