"""``hls estimate``: states outside of pipelines, counters of few bits, constants of processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pynq_torch.hls import estimate
from pynq_torch.hls.estimator import compiler
from pynq_torch.hls.estimator.result import Estimate

MISSING = compiler.tools()
pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(MISSING is not None, reason=MISSING or ""),
]

FIR = """
void fir(int *y, int x) {
    static const int c[64] = {3, 7, 9, 1, 5, 77, 13, 2, 3, 4, 5, 6, 7, 8, 9, 11};
    static int kept[64];
    int sum = 0, data;
    taps: for (int i = 63; i >= 0; --i) {
        if (i == 0) { kept[0] = x; data = x; }
        else { kept[i] = kept[i - 1]; data = kept[i]; }
        sum += data * c[i];
    }
    *y = sum;
}
"""
SORT = """
void sort(int a[100]) {
    swap: for (int j = 0; j < 99; ++j) {
        if (a[j] > a[j + 1]) { int low = a[j + 1]; a[j + 1] = a[j]; a[j] = low; }
    }
}
"""
COUNTER = """
#include "ap_int.h"
void shift(int a[128]) {
    down: for (ap_uint<7> i = 127; i > 0; i--) {
#pragma HLS PIPELINE off
        a[i] = a[i - 1];
    }
}
"""
STAGES = """
void stage(int in[64], int out[64], int shift) {
#pragma HLS INLINE off
    outer: for (int k = 0; k < 64; k += 1 << shift)
        inner: for (int n = 0; n < 1 << shift; n++) {
#pragma HLS PIPELINE
            out[k + n] = in[k + n] + shift;
        }
}
void stages(int in[64], int out[64]) {
DATAFLOW
    int one[64], two[64];
    stage(in, one, 1);
    stage(one, two, 2);
    stage(two, out, 3);
}
"""
SUM = """
#include <stdint.h>
TYPE mac(TYPE a, TYPE b, TYPE c) { return a * b + c; }
"""
TAPS = """
void taps(int *y, int x) {
    static int kept[WORDS];
    int sum = x;
    for (int i = WORDS - 1; i > 0; --i) {
#pragma HLS UNROLL
        kept[i] = kept[i - 1];
        sum += kept[i];
    }
    kept[0] = x;
    *y = sum;
}
"""
ADDED = """
void added(const float a[64], float sums[64], float squares[64]) {
    rows: for (int i = 0; i < 64; ++i) {
        sums[i] = 0; squares[i] = 0;
        columns: for (int j = 0; j < 64; ++j) {
HOW
            sums[i] += a[j];
            MORE
        }
    }
}
"""
BYTES = """
#include "ap_cint.h"
void words(const uint8 bytes[16], uint32 words[16]) {
    each: for (uint16 i = 0; i < 16; i++) words[i] = bytes[i] << 24;
}
"""
RELU = """
void relu(const float x[64], float y[64]) {
    each: for (int i = 0; i < 64; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
"""


def estimated(folder: Path, text: str, top: str, tool: str, clock: float = 10) -> Estimate:
    source = folder / "kernel.cpp"
    source.write_text(text)
    return estimate(source, top, tool=tool, clock=clock)


@pytest.mark.parametrize(("clock", "cycles"), [(10, 5), (8, 6), (7, 8)])
def test_what_follows_a_branch_begins_when_the_branch_has_ended(
    tmp_path: Path, clock: float, cycles: int
) -> None:
    """The coefficient is read only after the shift register's element is written."""
    loop = estimated(tmp_path, FIR, "fir", "vivado", clock).loops[0]
    assert loop.iteration_latency == (cycles, cycles)


def test_a_branch_of_the_state_machine_takes_no_time_of_what_it_guards(tmp_path: Path) -> None:
    """Read, compare and write are longer than a cycle together, but the write is not behind it."""
    assert estimated(tmp_path, SORT, "sort", "vivado-2017.4").loops[0].iteration_latency == (2, 2)


def test_a_counter_of_few_bits_is_counted(tmp_path: Path) -> None:
    assert estimated(tmp_path, COUNTER, "shift", "vitis").loops[0].trip_count == (127, 127)


def test_a_quotient_bounds_a_loop(tmp_path: Path) -> None:
    """Both tools give the range of a loop that runs once for several of something."""
    text = "void scale(int x[64], int n) { for (int i = 0; i < n / 8; ++i) x[i & 63] *= 3; }"
    loop = estimated(tmp_path, text, "scale", "vitis").loops[0]
    assert loop.trip_count == (0, (2**31 - 1) // 8)


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
@pytest.mark.parametrize("word", ["#pragma HLS DATAFLOW", ""])
def test_each_call_is_made_for_the_constants_that_it_is_handed(
    tmp_path: Path, word: str, tool: str
) -> None:
    """Processes of DATAFLOW; modules that run one after another are one for all of them."""
    known = estimated(tmp_path, STAGES.replace("DATAFLOW", word), "stages", tool)
    trips = [loop.trip_count for loop in known.loops]
    assert trips == ([(64, 64)] * 3 if word else [(16, 256)])
    assert known.latency[1] is not None


@pytest.mark.parametrize(
    ("kind", "tool", "cycles"),
    [("uint16_t", "vitis", 3), ("int", "vitis", 2), ("short", "vivado", 0)],
)
def test_a_product_and_its_sum_are_one_dsp_block(
    tmp_path: Path, kind: str, tool: str, cycles: int
) -> None:
    """Vitis HLS uses the block's four stages; a product of several blocks is not joined."""
    made = estimated(tmp_path, SUM.replace("TYPE", kind), "mac", tool)
    assert made.latency == (cycles, cycles)


def test_a_comparison_of_floats_leaves_no_time_for_a_write(tmp_path: Path) -> None:
    assert estimated(tmp_path, RELU, "relu", "vivado").loops[0].iteration_latency == (4, 4)


def test_vivado_keeps_elements_in_memory_where_no_loop_is_pipelined(tmp_path: Path) -> None:
    """Two sums are written in each iteration, in a state of its own behind those of five stages."""

    def depth(how: str, more: str) -> int | None:
        text = ADDED.replace("HOW", how).replace("MORE", more)
        loop = estimated(tmp_path, text, "added", "vivado").loops[1]
        assert loop.ii == (5 if how else None), "a register: no read and write between two sums"
        return loop.iteration_latency[1]

    assert depth("", "") == 2 + 5, "a loop that writes nothing else keeps the sum in a register"
    assert depth("", "squares[i] += a[j] * a[j];") == 2 + 4 + 5 + 1
    depth("#pragma HLS PIPELINE", "squares[i] += a[j] * a[j];")


def test_c_types_of_its_own_widths_are_promoted_before_a_shift(tmp_path: Path) -> None:
    """A shift of eight bits by 24 has no value, and what has none is not written."""
    source = tmp_path / "kernel.c"
    source.write_text(BYTES)
    loop = estimate(source, "words", tool="vivado").loops[0]
    assert (loop.trip_count, loop.iteration_latency) == ((16, 16), (2, 2))


def test_a_small_static_array_at_fixed_places_is_registers(tmp_path: Path) -> None:
    """LLVM's pass takes arrays of up to 16 words apart; Vivado HLS has its rule."""
    most = [
        estimated(tmp_path, TAPS.replace("WORDS", str(words)), "taps", "vivado").latency[1] or 0
        for words in (16, 32)
    ]
    assert most[0] < 4 and most[1] >= 31


#: Each stage reads one row and writes the next; the last has one turn only in its inner loop.
UNROLLED = """
static void stage(int number, int x[64], int y[64]) {
    const int half = 1 << number >> 1, groups = 64 >> number;
    each: for (int j = 0; j < half; ++j) {
        pair: for (int t = 0; t < groups; ++t) {
#pragma HLS PIPELINE
            const int i = j + (t << number);
            const int a = x[i], b = x[i + half];
            y[i] = a + b, y[i + half] = a - b;
        }
    }
}
void stages(int x[64], int y[64]) {
#pragma HLS DATAFLOW
    int rows[6][64];
#pragma HLS ARRAY_PARTITION variable=rows complete dim=1
    stage(1, x, rows[0]);
    for (int i = 2; i < 6; ++i) {
#pragma HLS UNROLL
        stage(i, rows[i - 2], rows[i - 1]);
    }
    stage(6, rows[4], y);
}
"""


def test_processes_that_a_loop_calls_have_rows_and_constants_of_their_own(tmp_path: Path) -> None:
    loops = estimated(tmp_path, UNROLLED, "stages", "vivado").loops
    pipelines = [loop for loop in loops if loop.ii is not None]
    assert [(loop.ii, loop.trip_count) for loop in pipelines] == [(1, (32, 32))] * 6


def test_pipeline_of_a_loop_that_runs_once_speaks_of_the_loop_around_it(tmp_path: Path) -> None:
    text = UNROLLED.replace(
        "void stages(int x[64], int y[64]) {",
        "void stages(int x[64], int y[64]) { stage(6, x, y); }\nvoid more(int x[64], int y[64]) {",
    )
    loops = estimated(tmp_path, text, "stages", "vivado").loops
    assert [(loop.name, loop.ii) for loop in loops] == [("each", 1)]


def test_headers_take_what_the_tools_take(tmp_path: Path) -> None:
    """Numbers as texts, C's functions of fixed-point numbers, and floats by their width."""
    text = """
    #include <ap_fixed.h>
    #include <ap_float.h>
    #include <math.h>
    void k(ap_fixed<16, 4> x[64], ap_float<32, 8> y) {
        const ap_uint<6> count = "0b10110";
        for (int i = 0; i < (int)count; ++i) x[i] = cos(x[i] * x[i]) + y;
    }
    """
    assert estimated(tmp_path, text, "k", "vivado").loops[0].trip_count == (22, 22)


#: Words from one AXI4-Stream port to the other, in the top function or in one that it calls.
PORTS = """
#include <hls_stream.h>
void copy(hls::stream<int> &from, hls::stream<int> &to) {
#pragma HLS INLINE off
    a: for (int i = 0; i < 20; ++i) {
#pragma HLS PIPELINE off
        to.write(from.read() + 5);
    }
}
void k(hls::stream<int> &from, hls::stream<int> &to, hls::stream<int> &more) {
#pragma HLS INTERFACE axis port=from
#pragma HLS INTERFACE axis port=to
    copy(from, to);
    b: for (int i = 0; i < 20; ++i) {
#pragma HLS PIPELINE off
        to.write(from.read() + 5);
    }
    c: for (int i = 0; i < 20; ++i) {
#pragma HLS PIPELINE off
        more.write(i);
    }
}
"""


@pytest.mark.parametrize("tool", ["vivado", "vitis"])
def test_the_top_function_waits_for_the_register_of_its_axi_stream(tmp_path, tool):
    (tmp_path / "k.cpp").write_text(PORTS)
    found = estimate(tmp_path / "k.cpp", "k", tool=tool)
    assert {loop.name: loop.iteration_latency[1] for loop in found.loops} == {
        "a": 1,
        "b": 2,
        "c": 1,
    }


def test_old_releases_wait_where_the_top_function_reads_too(tmp_path):
    (tmp_path / "k.cpp").write_text(PORTS)
    found = estimate(tmp_path / "k.cpp", "k", tool="vivado-2017.4")
    assert {loop.name: loop.iteration_latency[1] for loop in found.loops} == {
        "a": 1,
        "b": 3,
        "c": 1,
    }


def test_an_array_on_an_axi_stream_waits_as_a_stream_does(tmp_path):
    (tmp_path / "k.cpp").write_text("""
void k(int a[64], int b[64]) {
#pragma HLS INTERFACE axis port=a
#pragma HLS INTERFACE axis port=b
    for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE II=2
        b[i] = a[i] + 1;
    }
}
""")
    # Read in the second state of a pipeline, written in two: four reports of 2018 to 2020.
    found = estimate(tmp_path / "k.cpp", "k", tool="vivado").loops[0]
    assert (found.ii, found.iteration_latency) == (2, (3, 3))


def test_words_follow_each_other_into_an_axi_stream(tmp_path):
    (tmp_path / "k.cpp").write_text("""
#include <hls_stream.h>
void k(const int in[2], hls::stream<int> &to) {
#pragma HLS INTERFACE axis port=to
    const int x = in[0], y = in[1];
    to.write(x); to.write(y); to.write(x); to.write(y);
}
""")
    assert estimate(tmp_path / "k.cpp", "k", tool="vivado").latency == (5, 5)


KEPT = """
void kept(const char a[64], const char b[64], short x[SHAPE], int n) {
    rows: for (int i = 0; i < 64; ++i) {
        x[i]COLUMN = 0;
        sums: for (int j = 0; j < BOUND; ++j) x[i]COLUMN += a[j] * b[j];
    }
}
"""


@pytest.mark.parametrize(
    ("tool", "shape", "column", "bound", "cycles"),
    [
        ("vivado", "64", "", "64", 2), ("vivado-2017.2", "64][64", "[3]", "64", 3),
        ("vivado", "64", "", "n", 3), ("vivado-2018.2", "64][64", "[3]", "64", 2),
    ],
)  # fmt: skip
def test_vivado_keeps_sums_of_a_matrix_in_memory(
    tmp_path: Path, tool: str, shape: str, column: str, bound: str, cycles: int
) -> None:
    """A turn reads the element and writes it; so it does where the loop may not run at all.

    Since 2018 it goes on with the 0 that was written right before the loop.
    """
    text = KEPT.replace("SHAPE", shape).replace("COLUMN", column).replace("BOUND", bound)
    inner = estimated(tmp_path, text, "kept", tool, 12).loops[1]
    assert inner.iteration_latency == (cycles, cycles)


def test_vivado_reads_a_sum_of_a_matrix_that_began_before_another_loop(tmp_path: Path) -> None:
    """What is in memory when an outer loop begins is no register of the inner one."""
    text = KEPT.replace("SHAPE", "64][64").replace("COLUMN", "[3]").replace("BOUND", "64")
    text = text.replace("sums:", "more: for (int m = 0; m < 4; ++m) sums:")
    inner = estimated(tmp_path, text, "kept", "vivado", 12).loops[2]
    assert inner.iteration_latency == (3, 3)


BITS = """
#include <ap_cint.h>
#define SAME(A, B) _Static_assert((A) == (B), "")
SAME(apint_get_range((uint12)0xabc, 7, 4), 0xb);
SAME(apint_get_range((uint12)0xabc, 11, 0), 0xabc);
SAME(apint_set_range((uint12)0xabc, 7, 4, 0x3), 0xa3c);
SAME(apint_get_bit((int9)-256, 8), 1);
SAME(apint_set_bit((uint7)0, 6, 1), 64);
SAME(apint_or_reduce((uint5)8), 1);
SAME(apint_and_reduce((uint5)31), 1);
SAME(apint_nand_reduce((uint5)30), 1);
SAME(apint_nor_reduce((uint5)0), 1);
void k(const uint256 x[8], int y[64]) {
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) y[8 * i + j] = apint_get_range(x[i], 32 * j + 31, 32 * j);
}
"""


def test_bits_of_c_numbers_of_any_width(tmp_path: Path) -> None:
    """UG902, "C Arbitrary Precision Bit-Level Operations"; the first assertions are clang's."""
    source = tmp_path / "k.c"
    source.write_text(BITS)
    found = estimate(source, "k", tool="vivado")
    assert [loop.trip_count for loop in found.loops] == [(8, 8), (8, 8)]
