"""When the words of streams pass in a schedule, and how functions that pass them are found."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.hls.estimator import compiler

pytestmark = pytest.mark.skipif(compiler.tools() is not None, reason="clang-16 is not installed")


PASSED = """
#include <hls_stream.h>
typedef hls::stream<int> Fifo;
static void put(const int in[100], Fifo& to) {
    put: for (int i = 0; i < 100; i++) {
#pragma HLS PIPELINE
        to.write(in[i]);
    }
}
static void pass(Fifo& from, Fifo& to) {
    pass: for (int i = 0; i < 100; i++) {
#pragma HLS PIPELINE
        to.write(from.read());
    }
}
static void get(Fifo& from, int out[100]) {
    get: for (int i = 0; i < 100; i++) {
#pragma HLS PIPELINE
        out[i] = from.read();
    }
}
void k(const int in[100], int out[100]) {
#pragma HLS DATAFLOW
    Fifo a, b;
    put(in, a);
    pass(a, b);
    get(b, out);
}
"""


@pytest.mark.parametrize(("tool", "first"), [("vivado-2019.2", 1), ("vivado-2016.4", 0)])
def test_vivado_passes_words_in_the_second_state(tmp_path: Path, tool: str, first: int) -> None:
    found = estimate_of(tmp_path, PASSED, tool)
    depths = [loop_of(found, name).iteration_latency[1] for name in ("put", "pass", "get")]
    assert depths == [2, 1 + first, 1 + first]


SEVERAL = """
#include <hls_stream.h>
void k(hls::stream<int>& in, int out[400]) {
#pragma HLS INTERFACE axis port=in
    four: for (int i = 0; i < 100; i++) {
#pragma HLS PIPELINE II=4
        for (int j = 0; j < 4; j++) out[4 * i + j] = in.read();
    }
}
"""


@pytest.mark.parametrize(("tool", "depth"), [("vivado-2019.2", 5), ("vitis-2022.2", 4)])
def test_each_word_is_used_when_its_own_read_has_brought_it(
    tmp_path: Path, tool: str, depth: int
) -> None:
    """Four reads take four cycles, and what they bring is not stored before."""
    loop = loop_of(estimate_of(tmp_path, SEVERAL, tool), "four")
    assert (loop.ii, loop.iteration_latency[1]) == (4, depth)


NAMED = """
template <int N> struct Plus;
template <> struct Plus<1> {
    template <class T> static void of(const T (&from)[8], T (&to)[8]) {
        for (int k = 0; k < 8; ++k) {
#pragma HLS UNROLL
            to[k] = from[k] + 1;
        }
    }
};
template <int N> void go(const int (&a)[8], int (&b)[8]) { Plus<N>::template of<int>(a, b); }
void k(const int in[800], int out[800]) {
    rows: for (int i = 0; i < 100; ++i) {
#pragma HLS PIPELINE
        int x[8], y[8];
        for (int j = 0; j < 8; ++j) x[j] = in[8 * i + j];
        go<1>(x, y);
        for (int j = 0; j < 8; ++j) out[8 * i + j] = y[j];
    }
}
"""


def test_a_function_that_only_an_instance_names_has_its_pragmas(tmp_path: Path) -> None:
    """`Plus<N>::of<int>` means nothing before N is known."""
    found = estimate_of(tmp_path, NAMED, "vivado-2019.2")
    assert [(one.name, one.ii) for one in found.loops] == [("rows", 4)]


INLINED = """
#include <hls_stream.h>
typedef hls::stream<int> Fifo;
static void each(Fifo& from, Fifo& to, int more) {
#pragma HLS INLINE
    each: for (int i = 0; i < 100; i++) {
#pragma HLS PIPELINE
        to.write(from.read() + more);
    }
}
static void first(Fifo& from, Fifo& to) { each(from, to, 1); }
static void second(Fifo& from, Fifo& to) { each(from, to, 2); }
void k(Fifo& in, Fifo& out) {
#pragma HLS DATAFLOW
    Fifo between;
    first(in, between);
    second(between, out);
}
"""


def test_a_function_with_the_loops_of_an_inlined_one_stays_a_process(tmp_path: Path) -> None:
    found = estimate_of(tmp_path, INLINED, "vivado-2019.2")
    assert [name for name, _ in found.stages] == ["first", "second"]


HELD = """
#include <hls_stream.h>
struct Picture { int rows; hls::stream<int> lines[2]; };
static void put(const int in[200], Picture& to) {
    for (int i = 0; i < 100; i++) {
#pragma HLS PIPELINE
        to.lines[0].write(in[i]);
        to.lines[1].write(i);
    }
}
static void get(Picture& from, int out[100]) {
    for (int i = 0; i < 100; i++) {
#pragma HLS PIPELINE
        out[i] = from.lines[0].read() + from.lines[1].read();
    }
}
void k(const int in[200], int out[100]) {
#pragma HLS DATAFLOW
    Picture between;
    put(in, between);
    get(between, out);
}
"""


def test_the_streams_of_a_struct_are_fifos(tmp_path: Path) -> None:
    """Its reader begins when the first word is there, not when the last one is."""
    most = estimate_of(tmp_path, HELD, "vivado-2019.2").latency[1]
    assert most is not None and most < 120


POINTERS = """
void k(const int *x, int *y) {
#pragma HLS INTERFACE axis port=x
#pragma HLS INTERFACE axis port=y
    four: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        int sum = 0;
        for (int j = 0; j < 4; ++j) sum ^= *x++;
        *y++ = sum;
    }
}
"""


def test_a_pointer_that_moves_along_a_stream_takes_a_word_a_cycle(tmp_path: Path) -> None:
    loop = loop_of(estimate_of(tmp_path, POINTERS, "vivado-2018.3"), "four")
    assert loop.ii == 4 and "4 accesses of stream `x`" in loop.why


SIZES = """
#include <hls_video.h>
typedef hls::Mat<64, 64, HLS_16UC1> Picture;
static void copy(Picture& in, Picture& out) {
    hls::LineBuffer<2, 64, unsigned short> lines;
    unsigned short now = 0, above = 0;
    for (HLS_SIZE_T i = 0; i < in.rows + 1; ++i) {
        columns: for (HLS_SIZE_T j = 0; j < in.cols + 1; ++j) {
#pragma HLS LOOP_FLATTEN off
#pragma HLS DEPENDENCE array inter false
#pragma HLS PIPELINE
            hls::Scalar<1, unsigned short> pixel;
            if (i < in.rows && j < in.cols) {
                in >> pixel;
                now = pixel.val[0];
            }
            if (j < in.cols) {
                above = lines.getval(0, j);
                lines.val[1][j] = above;
            }
            if (j < in.cols && i < in.rows) lines.insert_bottom(now, j);
            pixel.val[0] = i <= 1 || j <= 1 || i > in.rows - 1 ? 0 : now + above;
            if (j > 0 && i > 0) out << pixel;
        }
    }
}
void k(Picture& in, Picture& out) {
#pragma HLS DATAFLOW
    copy(in, out);
}
"""


def test_the_size_of_a_picture_does_not_wait_for_its_pixels(tmp_path: Path) -> None:
    """It lies in front of the streams in an hls::Mat."""
    found = estimate_of(tmp_path, SIZES, "vivado-2018.3", clock=6)
    assert loop_of(found, "columns").ii == 1


ADDRESS = """
#include <string.h>
void k(volatile int *base_addr, int out[64]) {
#pragma HLS INTERFACE m_axi depth=64 port=base_addr
    memcpy(out, (int *)base_addr, 256);
}
"""


def test_an_argument_whose_name_ends_in_addr_keeps_its_directives(tmp_path: Path) -> None:
    """clang calls the variable of an argument ``x`` ``x.addr``."""
    found = estimate_of(tmp_path, ADDRESS, "vivado-2018.3")
    assert [loop.name for loop in found.loops] == ["memcpy.out.base_addr"]


PAIR = """
#include <hls_stream.h>
struct Pair { int quotient; FIELD };
void k(const int x[64], int n, hls::stream<Pair>& out) {
#pragma HLS INTERFACE axis port=out
    loop: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        Pair made;
        made.quotient = x[i] / n;
        STORE
        out.write(made);
    }
}
"""


@pytest.mark.parametrize("tool", ["vivado-2019.1", "vitis-2022.2"])
def test_a_word_is_written_when_all_of_it_is_there(tmp_path: Path, tool: str) -> None:
    """Its fields are stored one by one; the first is ready last."""
    alone = PAIR.replace("FIELD", "").replace("STORE", "")
    both = PAIR.replace("FIELD", "int index;").replace("STORE", "made.index = i;")
    depths = [
        loop_of(estimate_of(tmp_path, text, tool), "loop").iteration_latency
        for text in (alone, both)
    ]
    assert depths[0] == depths[1]


IN_TURN = """
#include <hls_stream.h>
void split(hls::stream<short> &in, short a[64], short b[64]) {
    for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        short v = in.read();
        a[i] = v;
        b[i] = v + 1;
    }
}
void mux(short a[64], short b[64], short out[128]) {
    mux: for (int i = 0; i < 128; i++) {
#pragma HLS UNROLL factor=2
#pragma HLS PIPELINE
        out[i] = i < 64 ? a[i] : b[i % 64];
    }
}
void last(short out[128], hls::stream<short> &o) {
    for (int i = 0; i < 128; i++) {
#pragma HLS PIPELINE
        o.write(out[i]);
    }
}
void k(hls::stream<short> &in, hls::stream<short> &o) {
#pragma HLS DATAFLOW
    short a[64], b[64], out[128];
#pragma HLS ARRAY_PARTITION variable=out cyclic factor=2
#pragma HLS STREAM variable=a depth=64
#pragma HLS STREAM variable=b depth=64
    split(in, a, b);
    mux(a, b, out);
    last(out, o);
}
"""


def test_a_fifo_of_an_array_passes_one_word_a_cycle(tmp_path: Path) -> None:
    """AMD's sliding window of a transform has II=2 so; which FIFO it is, the count decides."""
    found = estimate_of(tmp_path, IN_TURN, "vitis-2021.2")
    loop = loop_of(found, "mux")
    assert loop.ii == 2 and "a FIFO passes one word a cycle; partition it by 2" in loop.why
    assert not any("refused" in warning for warning in found.warnings)
