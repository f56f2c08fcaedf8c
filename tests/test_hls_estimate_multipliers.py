"""Multipliers that do several products where nobody asks for that, and lines of registers."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.hls.estimator import compiler

pytestmark = pytest.mark.skipif(compiler.tools() is not None, reason="clang-16 is not installed")

WINDOWS = """
void k(int in[5][5], int w[3][3], int out[3][3]) {
#pragma HLS INTERFACE s_axilite port=return bundle=c
#pragma HLS INTERFACE s_axilite port=in bundle=c
#pragma HLS INTERFACE s_axilite port=w bundle=c
#pragma HLS INTERFACE s_axilite port=out bundle=c
#pragma HLS ARRAY_PARTITION variable=in block dim=2 factor=3
#pragma HLS ARRAY_PARTITION variable=w complete dim=0
    row: for (int i = 0; i < 3; i++) {
#pragma HLS PIPELINE
        for (int j = 0; j < 3; j++) {
            int sum = 0;
            for (int r = 0; r < 3; r++)
                for (int c = 0; c < 3; c++)
                    sum += in[i + r][j + c] * w[r][c];
            out[i][j] = sum;
        }
    }
}
"""
PRODUCT = """
void k(hls::stream<int> &in, hls::stream<int> &out) {
    int a[64][64], b[64][64];
#pragma HLS BIND_STORAGE variable=a type=ram_2p impl=bram
#pragma HLS BIND_STORAGE variable=b type=ram_2p impl=bram
#pragma HLS ARRAY_PARTITION variable=a type=block factor=8 dim=2
#pragma HLS ARRAY_PARTITION variable=b type=block factor=8 dim=1
    for (int i = 0; i < 64; i++)
        for (int j = 0; j < 64; j++) {
            a[i][j] = in.read();
            b[i][j] = in.read();
        }
    row: for (int i = 0; i < 64; i++)
        column: for (int j = 0; j < 64; j++) {
#pragma HLS PIPELINE
            int sum = 0;
            for (int n = 0; n < 64; n++) sum += a[i][n] * b[n][j];
            out.write(sum);
        }
}
"""
ONE = """
void k(int a[64], int b[64], int c[64]) {
    loop: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        c[i] = a[i] * b[i];
    }
}
"""
LINE = """
void k(short x[256], short y[256]) {
    static short line[SIZE];
#pragma HLS ARRAY_PARTITION variable=line complete
    loop: for (int n = 0; n < 256; n++) {
#pragma HLS PIPELINE
        for (int i = SIZE - 1; i > 0; i--) line[i] = line[i - 1];
        line[0] = x[n];
        y[n] = line[SIZE - 1] + line[3];
    }
}
"""
TRANSPOSED = """
void k(int x[256], int y[256], int c[64]) {
#pragma HLS ARRAY_PARTITION variable=c complete
    static int line[64];
#pragma HLS ARRAY_PARTITION variable=line complete
    loop: for (int n = 0; n < 256; n++) {
#pragma HLS PIPELINE
        int v = x[n];
        for (int i = 63; i > 0; i--) line[i] = line[i - 1] + v * c[i];
        line[0] = v * c[0];
        y[n] = line[63];
    }
}
"""


def test_products_of_the_same_port_and_weight_share_a_multiplier(tmp_path: Path) -> None:
    """27 products at II=6: a report of 2018.3 has nine multipliers for two, nine for one each."""
    found = estimate_of(tmp_path, WINDOWS, "vivado-2018.3")
    assert loop_of(found, "row").ii == 6
    assert found.resources["DSP"] == 18 * 3


@pytest.mark.parametrize(("tool", "multipliers"), [("vitis-2024.1", 16), ("vitis-2022.1", 64)])
def test_vitis_shares_them_since_2023(tmp_path: Path, tool: str, multipliers: int) -> None:
    """Eight memories of each matrix give two words a cycle: 64 products in four cycles."""
    found = estimate_of(tmp_path, "#include <hls_stream.h>\n" + PRODUCT, tool)
    assert loop_of(found, "row_column").ii == 4
    assert found.resources["DSP"] == 3 * multipliers


@pytest.mark.parametrize(("tool", "blocks"), [("vivado-2018.2", 4), ("vivado-2019.2", 3)])
def test_a_staged_product_has_three_blocks_since_2019(
    tmp_path: Path, tool: str, blocks: int
) -> None:
    assert estimate_of(tmp_path, ONE, tool, clock=5).resources["DSP"] == blocks


@pytest.mark.parametrize("size", [24, 25, 200])
def test_a_line_of_registers_moves_in_each_cycle(tmp_path: Path, size: int) -> None:
    found = estimate_of(tmp_path, LINE.replace("SIZE", str(size)), "vivado-2019.1")
    assert loop_of(found, "loop").ii == 1


@pytest.mark.parametrize("tool", ["vivado-2019.1", "vitis-2022.1"])
def test_a_line_of_sums_moves_in_each_cycle(tmp_path: Path, tool: str) -> None:
    assert loop_of(estimate_of(tmp_path, TRANSPOSED, tool), "loop").ii == 1


def test_alternatives_of_many_branches_are_scheduled(tmp_path: Path) -> None:
    """Floyd and Warshall's paths: each of 64 elements is written in a branch of its own."""
    text = """
void k(int d[64][64]) {
#pragma HLS ARRAY_PARTITION variable=d dim=2 cyclic factor=8
    for (int n = 0; n < 64; n++)
        for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
            for (int j = 0; j < 64; j++) {
                int t = d[i][n] + d[n][j];
                if (t < d[i][j]) d[i][j] = t;
            }
        }
}
"""
    (loop,) = estimate_of(tmp_path, text, "vitis").loops
    assert loop.ii is not None and loop.ii > 8


def test_a_product_of_stages_begins_a_cycle_after_the_sum_it_takes(tmp_path: Path) -> None:
    """Two CORDICs of Vitis HLS 2025.1 have II=3: two stages, and a sum with a choice."""
    text = """
#include <ap_fixed.h>
typedef ap_fixed<32, 4> T;
void k(T &x0, T &y0, const T f[20]) {
    T x = x0, y = y0;
    turn: for (int i = 0; i < 20; i++) {
#pragma HLS PIPELINE
        T t;
        if (y >= T(0)) { t = x + y * f[i]; y = y - x * f[i]; }
        else           { t = x - y * f[i]; y = y + x * f[i]; }
        x = t;
    }
    x0 = x;
    y0 = y;
}
"""
    assert loop_of(estimate_of(tmp_path, text, "vitis-2025.1"), "turn").ii == 3


ROWS = """
int sums[20][50];
void k(const int row[64], const int column[64], int y[64]) {
    for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        y[i] = sums[row[i]][COLUMN];
    }
}
"""


@pytest.mark.parametrize(
    ("tool", "column", "blocks"),
    [
        ("vivado-2018.2", "column[i]", 1), ("vivado-2018.2", "4", 1), ("vivado-2018.2", "1", 0),
        ("vitis-2022.1", "column[i]", 1), ("vitis-2022.1", "4", 1), ("vitis-2022.1", "1", 0),
    ],
)  # fmt: skip
def test_a_row_that_is_read_times_its_words_is_added_to_the_column_in_one_block(
    tmp_path: Path, tool: str, column: str, blocks: int
) -> None:
    found = estimate_of(tmp_path, ROWS.replace("COLUMN", column), tool)
    assert found.resources["DSP"] == blocks


def test_a_row_that_several_columns_need_is_multiplied_in_logic(tmp_path: Path) -> None:
    text = ROWS.replace("COLUMN", "4] + sums[row[i]][7")
    assert estimate_of(tmp_path, text, "vivado-2018.2").resources["DSP"] == 0
    counted = ROWS.replace("row[i]", "i & 15").replace("COLUMN", "column[i]")
    assert estimate_of(tmp_path, counted, "vivado-2018.2").resources["DSP"] == 0


PRODUCTS = """
void k(const int a[11], const int b[11], int y[11]) {
    loop: for (int i = 0; i < 11; i++) y[i] = a[i] * b[i];
}
"""
ZYNQ, ULTRASCALE = "xc7z020clg400-1", "xczu5ev-sfvc784-1-e"


@pytest.mark.parametrize(
    ("part", "clock", "cycles"),
    [
        *((ZYNQ, 10, 0), (ZYNQ, 9, 1), (ZYNQ, 7, 2), (ZYNQ, 5, 4), (ZYNQ, 3, 6)),
        *((ULTRASCALE, 5, 0), (ULTRASCALE, 4, 1), (ULTRASCALE, 3, 4), (ULTRASCALE, 2, 6)),
    ],
)
def test_a_product_of_several_blocks_has_as_many_stages_as_there_are_cores_for(
    tmp_path: Path, part: str, clock: float, cycles: int
) -> None:
    """There is none between one of two stages and one of five in UltraScale+ (schedules of 2020).

    Words are read in two cycles before it, and written in one behind it.
    """
    found = estimate_of(tmp_path, PRODUCTS, clock=clock, part=part, tool="vivado-2020.1")
    assert loop_of(found, "loop").iteration_latency == (cycles + 4, cycles + 4)


BACKWARDS = """
void k(int a[11], int x) {
    loop: for (int i = 10; i >= 0; i--) {
        if (i == 0) a[0] = x;
        else a[i] = a[i - 1];
    }
}
"""


def test_the_place_before_is_computed_in_the_bits_of_the_counter(tmp_path: Path) -> None:
    """LLVM widens `i - 1` to 64 bits: of 32 it would take a cycle of its own at 5 ns."""
    found = estimate_of(tmp_path, BACKWARDS, clock=5, part=ZYNQ, tool="vivado-2020.1")
    assert loop_of(found, "loop").iteration_latency == (3, 3)


TURNS = """
#include <ap_fixed.h>
typedef ap_fixed<16, 4> word;
void k(word angle, word *sine) {
    word x = 1.25, y = 0.125, left = angle, step = 0.5;
    l: for (int i = 0; i < 8; ++i) {
#pragma HLS PIPELINE
        int way = left < 0 ? WAYS;
        word next = x - ((way * y) >> i);
        y = y + ((way * x) >> i);
        x = next;
        left = left - way * step;
        step = step >> 1;
    }
    *sine = y;
}
"""


@pytest.mark.parametrize("tool", ["vivado-2016.2", "vivado-2019.1", "vitis-2022.1"])
def test_a_product_with_a_sign_is_a_choice(tmp_path: Path, tool: str) -> None:
    one = estimate_of(tmp_path, TURNS.replace("WAYS", "-1 : 1"), tool)
    other = estimate_of(tmp_path, TURNS.replace("WAYS", "-1171 : 1437"), tool)
    assert one.resources["DSP"] == 0 and (other.resources["DSP"] or 0) >= 3


@pytest.mark.parametrize(
    ("tool", "clock", "depth"),
    [("vivado-2016.1", 10, 3), ("vivado-2017.2", 10, 3), ("vivado-2020.1", 10, 2),
     ("vivado-2018.2", 5, 6)],
)  # fmt: skip
def test_wide_products_of_kintex_7_are_slower_than_its_logic(
    tmp_path: Path, tool: str, clock: int, depth: int
) -> None:
    text = """
void k(const int a[64], const int b[64], int *sum) {
    int s = 0;
    l: for (int i = 0; i < 64; ++i) s += a[i] * b[i];
    *sum = s;
}
"""
    found = estimate_of(tmp_path, text, tool, clock=clock, part="xc7k160tfbg484-2")
    assert loop_of(found, "l").iteration_latency == (depth, depth)


ALONE = """
void k(const TYPE a[64], const TYPE b[64], int c[64]) {
    loop: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        int p = a[i] * b[i];
MORE
        c[i] = p;
    }
}
"""


@pytest.mark.parametrize(
    ("kind", "tool", "more", "depth"),
    [
        ("short", "vitis-2022.2", "", 5), ("short", "vitis-2023.1", "", 4),
        ("short", "vitis", "", 4), ("short", "vivado-2019.1", "", 4),
        ("signed char", "vitis-2022.2", "", 3),  # in logic
        ("short", "vitis-2022.2", "#pragma HLS BIND_OP variable=p op=mul impl=dsp latency=0", 4),
    ],
)  # fmt: skip
def test_a_product_without_a_sum_has_all_registers_of_its_block_until_2022(
    tmp_path: Path, kind: str, tool: str, more: str, depth: int
) -> None:
    """`mul_mul_16s_16s_32_4_1` is in all reports of those releases, `mul_16s_16s_32_1_1` later."""
    text = ALONE.replace("TYPE", kind).replace("MORE", more)
    found = estimate_of(tmp_path, text, tool)
    assert found.loops[0].iteration_latency == (depth, depth)


@pytest.mark.parametrize(("clock", "depth"), [(10.0, 4), (6.6, 6), (5.0, 8)])
def test_a_product_of_two_blocks_has_two_three_or_five_stages(
    tmp_path: Path, clock: float, depth: int
) -> None:
    text = ALONE.replace("TYPE b", "short b").replace("TYPE", "int").replace("MORE", "")
    found = estimate_of(tmp_path, text, "vivado-2019.1", clock=clock)
    assert found.loops[0].iteration_latency == (depth, depth)
