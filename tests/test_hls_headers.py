"""The small HLS headers, compiled and run: half against numpy, the rest by assertions in C++."""

from __future__ import annotations

import ctypes
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pynq_torch.hls import compile_command

HALF = r"""
#include "hls_half.h"
#include <cstdint>
extern "C" {
uint16_t from_double(double value) { return half(value).get_bits(); }
float to_float(uint16_t bits) { return float(half::from_bits(bits)); }
uint16_t binary(char op, uint16_t left, uint16_t right) {
    const half a = half::from_bits(left), b = half::from_bits(right);
    switch (op) {
    case '+': return half(a + b).get_bits();
    case '-': return half(a - b).get_bits();
    case '*': return half(a * b).get_bits();
    default: return half(a / b).get_bits();
    }
}
int less(uint16_t left, uint16_t right) { return half::from_bits(left) < half::from_bits(right); }
}
"""


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    folder = tmp_path_factory.mktemp("half")
    source, library = folder / "half.cpp", folder / "half.so"
    source.write_text(HALF)
    command = compile_command(source, library, cflags=["-shared", "-fPIC", "-Wall", "-Werror"])
    subprocess.run(command, check=True, timeout=300)
    found = ctypes.CDLL(str(library))
    found.from_double.argtypes = [ctypes.c_double]
    found.from_double.restype = ctypes.c_uint16
    found.to_float.restype = ctypes.c_float
    found.to_float.argtypes = [ctypes.c_uint16]
    found.binary.argtypes = [ctypes.c_char, ctypes.c_uint16, ctypes.c_uint16]
    found.binary.restype = ctypes.c_uint16
    return found


def bits_of(value):
    return int(np.asarray(value, "f2").view("u2"))


def same(left, right):
    """Equal bits, or both NaN: numpy and IEEE leave a NaN's payload open."""
    if left == right:
        return True
    return bool(np.isnan(np.array([left, right], "u2").view("f2")).all())


def test_every_half_becomes_the_float_it_is(half):
    bits = np.arange(1 << 16, dtype="u2")
    found = np.array([half.to_float(int(b)) for b in bits], "f4")
    np.testing.assert_array_equal(found, bits.view("f2").astype("f4"))


def test_every_half_survives_the_way_there_and_back(half):
    for bits in range(1 << 16):
        assert same(half.from_double(half.to_float(bits)), bits)


@given(st.floats())
def test_rounding_from_double(half, value):
    with np.errstate(over="ignore"):
        assert same(half.from_double(value), bits_of(np.float64(value)))


@given(st.integers(0, 0x7BFE), st.sampled_from([-1, 0, 1]))
def test_ties_go_to_even(half, bits, nudge):
    # Half way between two neighbours, and the doubles just beside it.
    low, high = (float(np.array(b, "u2").view("f2")) for b in (bits, bits + 1))
    middle = (low + high) / 2
    value = middle if nudge == 0 else float(np.nextafter(middle, nudge * np.inf))
    assert half.from_double(value) == bits_of(np.float64(value))


def test_overflow_and_underflow(half):
    cases = [65504.0, 65519.999, 65520.0, 2.0**-24, 2.0**-25, np.nextafter(2.0**-25, 1), -0.0]
    with np.errstate(over="ignore"):
        for value in cases:
            assert half.from_double(value) == bits_of(np.float64(value)), value


patterns = st.integers(0, 0xFFFF)


@given(st.sampled_from("+-*/"), patterns, patterns)
def test_arithmetic_is_correctly_rounded(half, operator, left, right):
    a, b = np.array([left, right], "u2").view("f2")
    with np.errstate(all="ignore"):
        expected = {"+": a + b, "-": a - b, "*": a * b, "/": a / b}[operator]
    assert same(half.binary(operator.encode(), left, right), bits_of(expected))


@given(patterns, patterns)
def test_comparison(half, left, right):
    a, b = np.array([left, right], "u2").view("f2")
    assert bool(half.less(left, right)) == bool(a < b)


PROGRAM = r"""
// What an engine includes before the kernel.
#include "engine.hpp"
#include <array>
#include <functional>
#include <thread>
// Macros that published kernels define before they include the headers.
#define N 200
#define S 3
#define W 8
#define U 2
#define DEPTH 16
#include <ap_int.h>
#include <ap_fixed.h>
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min(a, b) ((a) < (b) ? (a) : (b))
#include <hls_stream.h>
#include <ap_axi_sdata.h>
#include <ap_utils.h>
#include <hls_burst_maxi.h>
#include <hls_fence.h>
#include <hls_math.h>
#include <hls_print.h>
#include <hls_streamofblocks.h>
#include <hls_task.h>
#include <hls_vector.h>
#include <hls_video.h>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#define CHECK(...) \
    if (!(__VA_ARGS__)) { std::printf("line %d: %s\n", __LINE__, #__VA_ARGS__); std::exit(1); }

struct Packet { float data; bool last; };
struct Plain { int a; short b; };

// One value as a beat of a port, and back.
template <class Value> struct Trip {
    unsigned char bytes[64] = {};
    pynq_torch::Beat beat;
    Value back{};
    Trip(const Value& value, size_t room) {
        beat.data = bytes;
        pynq_torch::BeatOf<Value>::pack(value, room, beat);
        pynq_torch::BeatOf<Value>::unpack(beat, room, back);
    }
};

void pictures() {
    hls::LineBuffer<3, 4, int> lines;
    hls::Window<3, 2, int> window;
    for (int row = 0; row < 3; ++row)
        for (int col = 0; col < 4; ++col) {
            lines.shift_pixels_up(col);
            lines.insert_bottom_row(10 * row + col, col);
        }
    hls::LineBuffer<2, 1, int> rising, falling;  // by the names of older releases
    for (int row = 0; row < 2; ++row) {
        rising.shift_up(0);
        rising.insert_top(row + 1, 0);
        falling.shift_down(0);
        falling.insert_bottom(row + 1, 0);
    }
    CHECK(rising.getval(0, 0) == 1 && rising.getval(1, 0) == 2);
    CHECK(falling.getval(0, 0) == 2 && falling.getval(1, 0) == 1);
    for (int col = 2; col < 4; ++col) {
        int column[3];
        lines.get_col(column, col);
        window.shift_pixels_left();
        window.insert_right_col(column);
    }
    CHECK(window.getval(0, 0) == 2 && window(2, 1) == 23 && lines.getval(1, 3) == 13);
    window.shift_pixels_down();
    CHECK(window(1, 0) == 2 && window(2, 1) == 13);
    ap_uint<32> word = 0;
    unsigned char field = 0;
    hls::AXISetBitFields(word, 8, 8, (unsigned char)0xa5);
    hls::AXIGetBitFields(word, 8, 8, field);
    CHECK(word == 0xa500 && field == 0xa5 && (hls::Scalar<3, int>(1, 2, 3)).val[2] == 3);
}

void beats() {
    Trip<ap_int<17>> negative(ap_int<17>(-3), 3);
    CHECK(negative.back == -3 && negative.bytes[2] == 1);  // bits beyond W are zero
    Trip<ap_uint<100>> wide(~ap_uint<100>(0), 13);
    CHECK(wide.back == ~ap_uint<100>(0) && wide.bytes[12] == 15 && wide.bytes[13] == 0);
    Trip<ap_fixed<16, 6>> fixed(ap_fixed<16, 6>(-1.5), 2);
    CHECK(fixed.back == ap_fixed<16, 6>(-1.5) && fixed.bytes[1] == 0xfa);
    Trip<hls::vector<short, 4>> vector(hls::vector<short, 4>(7), 8);
    CHECK(vector.back[3] == 7 && !vector.beat.last);
    Trip<Plain> plain(Plain{1, 2}, sizeof(Plain));
    CHECK(plain.back.b == 2);
    // A struct named like the signals: side channels on a narrow port, data on a wide one.
    Trip<Packet> narrow(Packet{1.5f, true}, 4);
    CHECK(narrow.beat.last && narrow.back.data == 1.5f && narrow.back.last);
    Trip<Packet> whole(Packet{2.5f, true}, sizeof(Packet));
    CHECK(!whole.beat.last && whole.back.data == 2.5f && whole.back.last);
    ap_axiu<32, 3, 5, 6> word;
    word.data = 0x80000001u; word.keep = 3; word.user = 5;
    word.last = 1; word.id = 17; word.dest = 33;
    Trip<ap_axiu<32, 3, 5, 6>> side(word, 4);
    CHECK(side.beat.last && side.beat.keep[0] == 3 && side.beat.user == 5 && side.beat.id == 17);
    CHECK(side.back.data == word.data && side.back.keep == 3 && side.back.dest == 33);
    CHECK(pynq_torch::BeatOf<qdma_axis<64>>::min_bytes == 8);
}

void streams() {
    hls::stream<int, 4> deep("deep");
    hls::stream<int>& plain = deep;
    CHECK(plain.capacity() == 4 && plain.empty() && !plain.full());
    for (int i = 0; i < 1000; ++i) plain << i;
    CHECK(plain.size() == 1000);
    int value;
    plain >> value;
    CHECK(value == 0 && plain.read() == 1 && plain.read_nb(value) && value == 2);
    while (plain.read_nb(value)) {}
    CHECK(value == 999 && plain.empty());
    hls::stream<bool> flags;
    flags.write(true);
    CHECK(flags.write_nb(false) && flags.read() && !flags.read());
    try {
        plain.read();
        CHECK(false);
    } catch (const std::runtime_error& error) {
        CHECK(std::string(error.what()).find("deep") != std::string::npos);
    }
    hls::stream<ap_axis<8>> several[3];
    several[2].write(ap_axis<8>());
    CHECK(several[2].read().last == 0);
}

void twice(hls::stream<int>& in, hls::stream<int>& out) { out.write(2 * in.read()); }
void tasks(hls::stream<int>& in, hls::stream<int>& out) {
    hls_thread_local hls::stream<int> middle;
    hls_thread_local hls::task first(twice, in, middle);
    hls_thread_local hls::task second(twice, middle, out);
}

void others() {
    int memory[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    hls::burst_maxi<int> port(memory);
    port.read_request(2, 2);
    hls::burst_maxi<int> copy = port;  // a copy shares the requests
    CHECK(copy.read() == 2 && port.read() == 3);
    port.write_request(0, 2);
    port.write(9);
    port.write(-1, ap_uint<4>(1));
    port.write_response();
    CHECK(memory[0] == 9 && memory[1] == 0xff);
    for (int fault = 0; fault < 2; ++fault) {
        try {
            if (fault == 0) port.read();
            else port.read_request(0, 0);  // AXI has no burst of no beats
            CHECK(false);
        } catch (const std::runtime_error&) {
        }
    }

    hls::vector<float, 3> v = {1, 2, 3};
    v += v * 2.0f;
    CHECK(v.reduce_add() == 18 && v[2] == 9 && sizeof(v) == 12);
    CHECK(alignof(hls::vector<int, 4>) == 16 && (hls::vector<int, 4>(3) == 3)[1]);
    hls::vector<ap_int<4>, 2> small(7);
    CHECK((small + small)[0] == -2);

    typedef int Tile[4];
    hls::stream_of_blocks<Tile> tiles;
    {
        hls::write_lock<Tile> lock(tiles);
        lock[1] = 5;
    }
    {
        hls::read_lock<Tile> lock(tiles);
        CHECK(lock[1] == 5);
    }
    CHECK(tiles.empty());

    const ap_fixed<16, 6> two = 2;
    CHECK(hls::sqrt(two) == ap_fixed<16, 6>(1.4142135) && hls::exp(0.0f) == 1.0f);
    CHECK(hls::pow(two, 3) == 8 && hls::abs(ap_int<8>(-5)) == 5 && hls::fabs(-2.5) == 2.5);
    CHECK(float(hls::sqrt(half(2))) == float(half(1.4142135)) && (hls::max)(3, 4) == 4);
    float whole;
    CHECK(hls::modf(2.25f, &whole) == 0.25f && whole == 2);
    CHECK(half(1.5f) * 2 == 3 && half(1.5f) * 2.0f == 3.0f && hls::isnan(half(0) / half(0)));
    const ap_fixed<16, 6> from_half(half(0.75f));
    CHECK(from_half == 0.75 && half(from_half) == 0.75f);
    hls::fence(v, tiles);
    ap_wait();
    ap_wait_n(3);
    hls::print("%d\n", 42);
}

int main() {
    pictures();
    beats();
    streams();
    others();
    hls::stream<int> in, out;
    for (int i = 0; i < 200; ++i) {
        in.write(i);
        tasks(in, out);
        CHECK(out.read() == 4 * i);
    }
}
"""


@pytest.mark.slow
def test_headers_do_what_the_manual_says(tmp_path):
    source, program = tmp_path / "program.cpp", tmp_path / "program"
    source.write_text(PROGRAM)
    command = compile_command(source, program, cflags=["-O1"])
    built = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert built.returncode == 0, built.stderr[:3000]
    # Again and again: tasks must be at rest before the streams that they wait for are destroyed.
    for _ in range(40):
        ran = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
        assert (ran.returncode, ran.stdout) == (0, "42\n"), ran.stdout + ran.stderr
