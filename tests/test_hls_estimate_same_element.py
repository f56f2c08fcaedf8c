"""Reads of one element, addresses that never meet, and what sources take from the headers."""

from __future__ import annotations

from pathlib import Path

import pytest

from pynq_torch.hls.estimator import Estimate, compiler, estimate

pytestmark = pytest.mark.skipif(compiler.tools() is not None, reason="clang-16 is not installed")


def _of(folder: Path, text: str, tool: str = "vivado", name: str = "k.cpp") -> Estimate:
    source = folder / name
    source.write_text(text, encoding="utf-8")
    return estimate(source, "k", tool=tool)


WINDOW = """
void k(const int x[40], int y[32]) {
    const int *from;
    loop: for (int i = 0; i < 8; ++i) {
#pragma HLS PIPELINE
        int sum = 0;
        for (int f = 0; f < 4; ++f) {
            from = &x[i * 4 + f];
            for (int j = 0; j < 3; ++j) sum += *from++;
            BETWEEN
        }
        y[i] = sum;
    }
}
"""


@pytest.mark.parametrize("between", ["", "const_cast<int *>(x)[f] = sum;"])
def test_an_element_is_read_once(tmp_path: Path, between: str) -> None:
    """Windows that overlap read their six elements once, unless a write may be of one."""
    found = _of(tmp_path, WINDOW.replace("BETWEEN", between)).loops[0].ii
    assert found is not None and (found > 3 if between else found == 3)


WALK = """
void k(int a[SIZE], int h, int n) {
    loop: for (int j = 0; j < 10; ++j) {
#pragma HLS PIPELINE
        a[n * 10 + j] = a[h * 10 + j + SHIFT] * 3;
    }
}
"""


def test_rows_that_are_apart_never_meet_between_their_elements(tmp_path: Path) -> None:
    """Rows of ten elements: an element's neighbour is written one iteration later, or never."""
    one = _of(tmp_path, WALK.replace("SHIFT", "0").replace("SIZE", "100")).loops[0]
    two = _of(tmp_path, WALK.replace("SHIFT", "9").replace("SIZE", "100")).loops[0]
    assert one.ii == 1
    assert two.ii is not None and two.ii > 1


PARTS = """
#include <ap_int.h>
void k(ap_uint<16> a, ap_uint<16> b, ap_int<18> *sum, ap_uint<16> *joined, bool *all) {
    *sum = a.range(7, 0) + b[15];
    *joined = (a.range(15, 8), b.range(7, 0));
    *all = a.range(3, 0).and_reduce() ^ b.range(3, 0).xor_reduce();
}
"""


def test_parts_of_numbers_are_added_joined_and_reduced(tmp_path: Path) -> None:
    assert _of(tmp_path, PARTS).latency == (0, 0)


def test_the_bits_of_a_number_the_other_way_round_are_a_value(tmp_path: Path) -> None:
    """As in the tools' own header; it was a statement."""
    text = """
#include <ap_int.h>
void k(ap_uint<16> a, ap_int<16> *out) {
    ap_uint<16> turned;
    turned = a.reverse();
    *out = turned + a.range(3, 0);
}
"""
    assert _of(tmp_path, text).latency == (0, 0)


VIDEO = """
#include <hls_video.h>
void k(hls::stream<ap_axiu<8, 1, 1, 1> > &in, hls::stream<ap_axiu<8, 1, 1, 1> > &out) {
    hls::LineBuffer<3, 64, unsigned char> lines;
    hls::Window<3, 3, unsigned char> window;
    rows: for (int r = 0; r < 48; ++r)
        columns: for (int c = 0; c < 64; ++c) {
#pragma HLS PIPELINE II=1
            ap_axiu<8, 1, 1, 1> pixel = in.read();
            lines.shift_pixels_up(c);
            lines.insert_bottom_row(pixel.data, c);
            window.shift_pixels_left();
            for (int i = 0; i < 3; ++i) window.insert_pixel(lines.getval(i, c), i, 2);
            int sum = 0;
            for (int i = 0; i < 3; ++i)
                for (int j = 0; j < 3; ++j) sum += window.getval(i, j);
            pixel.data = sum / 8;
            out.write(pixel);
        }
}
"""


def test_windows_and_line_buffers_of_the_video_library(tmp_path: Path) -> None:
    loop = _of(tmp_path, VIDEO).loops[0]
    assert (loop.trip_count, loop.ii) == ((48 * 64, 48 * 64), 1)


def test_files_of_c_may_share_a_variable_that_each_declares(tmp_path: Path) -> None:
    """As the tools' compilers of C take it: neither says that it is the other's."""
    more = tmp_path / "more.c"
    more.write_text("int held[8];\nint last(int i) { return held[i & 7]; }\n")
    source = tmp_path / "k.c"
    source.write_text(
        "int held[8];\nint last(int i);\nint k(int i) { held[0] = i; return last(i); }"
    )
    assert estimate(source, "k", tool="vivado", sources=[more]).latency[1] is not None


COPIES = """
void k(const int *port, int y[64]) {
#pragma HLS INTERFACE m_axi port=port depth=64
    int held[64], table[4][16] = {0};
    memcpy(held, port, 64 * sizeof(int));
    loop: for (int i = 0; i < 64; ++i) {
        table[i & 3][i >> 2] += held[i];
        y[i] = table[i & 3][held[i] & 15];
    }
}
"""


def test_copies_are_loops_of_vivado_hls(tmp_path: Path) -> None:
    """Named after the arrays; one for each dimension of what is set to zero."""
    text = "#include <cstring>\n" + COPIES
    found = [(one.name, one.trip_count[1], one.ii) for one in _of(tmp_path, text).loops]
    assert ("memcpy.held.port", 64, 1) in found
    assert {one.function for one in _of(tmp_path, text).loops} == {"k"}
    rows, elements = [one for one in _of(tmp_path, text).loops if one.name == "memset_table"]
    assert (elements.trip_count[1], elements.latency[1]) == (16, 15)
    assert (rows.trip_count[1], rows.iteration_latency[1], rows.latency[1]) == (4, 17, 67)
    assert [one.name for one in _of(tmp_path, text, "vitis").loops if "mem" in one.name] == []


def test_short_copies_from_and_to_a_bus_are_loops_too(tmp_path: Path) -> None:
    """Of six words; a structure of as many bytes in memory here is copied side by side."""
    text = """
    #include <cstring>
    struct Six { float of[6]; };
    void k(const float *from, float *to, int n) {
    #pragma HLS INTERFACE m_axi port=from depth=64
    #pragma HLS INTERFACE m_axi port=to depth=64
        float bias[6];
        memcpy(bias, from + 150, 6 * sizeof(float));
        for (int i = 0; i < n; ++i) bias[i] = bias[5 - i] * 2;
        memcpy(to, bias, 6 * sizeof(float));
        Six near[4];
        for (int i = 0; i < 4; ++i) near[i].of[i] = bias[i];
        for (int i = 0; i < n; ++i) near[i & 3] = near[(i + 1) & 3];
        for (int i = 0; i < 4; ++i) to[i + 6] = near[i].of[i + 2];
    }
    """
    found = [(one.name, one.trip_count[1]) for one in _of(tmp_path, text).loops]
    copies = [one for one in found if one[0].startswith("mem")]
    assert copies == [("memcpy.bias.from", 6), ("memcpy.to.bias.gep", 6)]


@pytest.mark.parametrize("columns", [128, 100])
def test_row_and_column_of_one_counter_are_that_counter(tmp_path: Path, columns: int) -> None:
    text = """
void k(const int x[12800], int a[100][COLUMNS]) {
    loop: for (int s = 0; s < 100 * COLUMNS; ++s) {
#pragma HLS PIPELINE
        int i = s / COLUMNS, j = s % COLUMNS;
        a[i][j] += x[s];
    }
}
"""
    assert _of(tmp_path, text.replace("COLUMNS", str(columns)), "vitis").loops[0].ii == 1


@pytest.mark.parametrize("columns", [64, 60])
def test_one_counter_through_all_rows_leaves_them_in_one_memory(
    tmp_path: Path, columns: int
) -> None:
    """Of Vivado HLS, which cuts along a dimension that is met at constants only."""
    text = """
void k(const int x[COLUMNS], int y[COLUMNS]) {
    int a[16][COLUMNS];
    fill: for (int i = 0; i < 16 * COLUMNS; ++i) a[i / COLUMNS][i % COLUMNS] = x[i % COLUMNS];
    use: for (int i = 0; i < COLUMNS; ++i) {
#pragma HLS PIPELINE
        int sum = 0;
        for (int j = 0; j < 16; ++j) sum += a[j][i];
        y[i] = sum;
    }
}
"""
    found = _of(tmp_path, text.replace("COLUMNS", str(columns)))
    assert [loop.ii for loop in found.loops if loop.name == "use"] == [8]


RESHAPED = """
void k(const short x[64], short y[64]) {
    short a[8][8];
#pragma HLS ARRAY_RESHAPE variable=a complete dim=2
    rows: for (int r = 0; r < 8; ++r)
        columns: for (int c = 0; c < 8; c += STEP) {
#pragma HLS PIPELINE
            for (int i = 0; i < STEP; ++i) a[r][c + i] = x[8 * r + c + i];
        }
    all: for (int r = 0; r < 8; ++r) {
#pragma HLS PIPELINE
        short sum = 0;
        for (int c = 0; c < 8; ++c) sum += a[r][c];
        y[r] = sum;
    }
}
"""


@pytest.mark.parametrize(
    ("tool", "step", "cycles"), [("vivado", 1, 2), ("vitis", 1, 1), ("vivado", 8, 4)]
)
def test_one_element_of_a_word_is_changed_in_two_cycles(
    tmp_path: Path, tool: str, step: int, cycles: int
) -> None:
    """As published schedules of a DCT have it; the whole word is one write, behind eight reads."""
    found = _of(tmp_path, RESHAPED.replace("STEP", str(step)), tool)
    first = found.loops[0]
    assert first.ii == cycles
    assert ("read, changed and written" in first.why) == (cycles == 2)
    assert next(loop for loop in found.loops if loop.name == "all").ii == 1


CLEARED = """
void k(const unsigned char clear[64], const unsigned char look[64], int out[64]) {
    int seen[256];
    for (int i = 0; i < 256; ++i) seen[i] = i;
    loop: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        MORE
    }
}
"""


@pytest.mark.parametrize(
    ("more", "ii"),
    [
        ("seen[clear[i]] = 0; out[i] = seen[look[i]];", 2),
        ("out[i] = seen[look[i]]; seen[clear[i]] = 0;", 1),
        ("seen[i] = 0; out[i] = seen[i + 128];", 1),
        (
            "\n#pragma HLS DEPENDENCE variable=seen inter false\n"
            "seen[clear[i]] = 0; out[i] = seen[look[i]];",
            1,
        ),
    ],
)
@pytest.mark.parametrize("tool", ["vivado", "vitis"])
def test_a_word_is_not_written_again_before_it_is_read(
    tmp_path: Path, tool: str, more: str, ii: int
) -> None:
    """A read behind a write is in the next cycle, the next iteration's write behind that one."""
    loop = _of(tmp_path, CLEARED.replace("MORE", more), tool).loops[-1]
    assert loop.ii == ii
    assert ("may not write it before" in loop.why) is (ii == 2)


KEYS = """
void k(unsigned char a[176]) {
    loop: for (int i = 4; i < 44; ++i) {
#pragma HLS PIPELINE
        INDEX = (i - 1) * 4;
        a[i * 4] = a[at] * 3;
        a[i * 4 + 1] = a[at + 1] + 7;
    }
}
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_bits_cut_off_an_index_hide_that_it_is_of_what_was_written(
    tmp_path: Path, tool: str
) -> None:
    """Of an `int` the iteration before hands the words on, and no port is needed to read them."""
    handed = _of(tmp_path, KEYS.replace("INDEX", "int at"), tool).loops[0].ii
    read = _of(tmp_path, KEYS.replace("INDEX", "unsigned char at"), tool).loops[0].ii
    assert handed == 1 and read is not None and read > 1


PADDED = """
void k(const int from[8][8], int rows, int columns, int to[8]) {
    int a[8][8], b[8][8], sums[8];
#pragma HLS ARRAY_PARTITION variable=a complete dim=1
#pragma HLS ARRAY_PARTITION variable=sums complete
    for (int i = 0; i < 8; ++i) {
        sums[i] = 0;
        for (int j = 0; j < 8; ++j) a[i][j] = from[i][j];
    }
    turns: for (int t = 0; t < 8; ++t) {
#pragma HLS PIPELINE
        for (int j = 0; j < 8; ++j) {
            int x = GUARD ? a[0][t] : 0;
            int y = j < columns ? sums[j] * j : j;
            sums[j] = x ^ y;
            BETWEEN
        }
    }
    for (int i = 0; i < 8; ++i) to[i] = sums[i];
}
"""


@pytest.mark.parametrize(
    ("guard", "between", "once"),
    [
        ("0 < rows", "", True),
        ("(0 < rows && columns > 3)", "", True),
        ("j < rows", "", False),
        ("0 < rows", "if (columns > j) a[0][j] = y;", False),
    ],
)
def test_branches_on_one_value_read_an_element_once(
    tmp_path: Path, guard: str, between: str, once: bool
) -> None:
    """Unrolling makes eight branches with a read each: as one they take one of two ports."""
    text = PADDED.replace("GUARD", guard).replace("BETWEEN", between)
    found = next(one for one in _of(tmp_path, text, "vitis").loops if one.name == "turns")
    assert found.ii is not None
    assert (found.ii == 1) is once


def test_vitis_hls_makes_bursts_of_what_is_volatile(tmp_path: Path) -> None:
    text = """
void k(volatile int *bus, int n, int out[1024]) {
#pragma HLS INTERFACE m_axi port=bus depth=1024
    copy: for (int i = 0; i < n; ++i) {
#pragma HLS PIPELINE
        out[i] = bus[i];
    }
}
"""
    vitis = _of(tmp_path, text, "vitis").loops[0].iteration_latency
    plain = _of(tmp_path, text.replace("volatile ", ""), "vitis").loops[0].iteration_latency
    assert vitis == plain


SHIFTED = """
#include <ap_int.h>
typedef ap_int<12> place;
void k(const ap_int<4> in[64], ap_int<8> out[64], int size, int margin) {
    static ap_int<4> lines[2][64];
#pragma HLS ARRAY_PARTITION variable=lines complete dim=1
    place n = size, before = margin, wide = n + 2 * before;
    columns: for (place c = 0; c < wide; c++) {
#pragma HLS PIPELINE
        place x = c - before;
        bool inside = x >= 0 && x < n;
        ap_int<4> old[2], pixel = 0;
#pragma HLS ARRAY_PARTITION variable=old complete
        if (inside) pixel = in[c];
        for (int i = 0; i < 2; ++i) old[i] = inside ? lines[i][x] : ap_int<4>(0);
        if (inside) {
            for (int i = 1; i > 0; --i) lines[i][x] = lines[i - 1][OFFSET];
            lines[0][x] = pixel;
        }
        out[c] = old[0] + old[1];
    }
}
"""


@pytest.mark.parametrize(("offset", "once"), [("x", True), ("63 - x", False)])
def test_an_index_that_a_branch_keeps_from_being_negative_is_the_same(
    tmp_path: Path, offset: str, once: bool
) -> None:
    """A buffer of lines is read and moved on under one condition: II=1 in a report of 2024.2."""
    loop = _of(tmp_path, SHIFTED.replace("OFFSET", offset), "vitis").loops[0]
    assert loop.ii is not None and (loop.ii == 1) is once
