"""What a flattened nest computes before its work: which turn it is, and addresses in rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.hls.estimator import compiler

pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(compiler.tools() is not None, reason=compiler.tools() or ""),
]

PRODUCT = """
void k(char p[3][3], char q[3][3], short out[3][3]) {
#pragma HLS ARRAY_RESHAPE variable=p complete dim=2
#pragma HLS ARRAY_RESHAPE variable=q complete dim=1
    line: for (int r = 0; r < 3; ++r)
        place: for (int c = 0; c < 3; ++c) {
#pragma HLS PIPELINE
            short sum = 0;
            for (int n = 0; n < 3; ++n) sum += p[r][n] * q[n][c];
            out[r][c] = sum;
        }
}
"""

ZEROS = """
void k(int seed) {
    static short m[100][COLUMNS];
#pragma HLS ARRAY_PARTITION variable=m cyclic factor=20 dim=1
    line: for (int r = 0; r < 100; ++r)
        place: for (int c = 0; c < COLUMNS; ++c) {
#pragma HLS PIPELINE
            m[r][c] = seed;
        }
    last: for (int c = 0; c < COLUMNS; ++c) m[3][c] += m[77][c] + seed;
}
"""

ROWS = """
void k(const short x[64][COLUMNS], short y[64][COLUMNS]) {
    line: for (int r = 0; r < 64; ++r)
        place: for (int c = 1; c < COLUMNS; ++c) {
#pragma HLS PIPELINE
            y[r][c] = x[r][c] WITH;
        }
}
"""

CUBE = """
void k(const short *x, short y[32][32][5]) {
#pragma HLS INTERFACE m_axi port=x depth=5120
    plane: for (int p = 0; p < 32; ++p)
        line: for (int r = 0; r < 32; ++r)
            place: for (int c = 0; c < 5; ++c) {
#pragma HLS PIPELINE
                y[p][r][c] = x[160 * p + 5 * r + c];
            }
}
"""


def test_sums_behind_products_take_a_block_each_and_chain(tmp_path: Path) -> None:
    """A report of Vitis HLS 2021.2 has 6 cycles and two blocks: each sum begins a cycle later."""
    found = estimate_of(tmp_path, PRODUCT, "vitis-2021.2")
    assert loop_of(found, "line_place").iteration_latency == (6, 6)
    assert found.resources["DSP"] == 2


def test_an_outer_index_is_there_behind_its_addition_and_a_selection(tmp_path: Path) -> None:
    """A divider for the bank begins in the first cycle: 1.87, 0.99, 4.21 ns (Vitis HLS 2022.1)."""
    found = estimate_of(tmp_path, ZEROS.replace("COLUMNS", "200"), "vitis-2022.1")
    assert loop_of(found, "line_place").iteration_latency == (12, 12)
    assert found.resources["DSP"] == 1  # the row in its bank, of 3 bits, times 200


@pytest.mark.parametrize(
    ("columns", "more", "blocks", "cycles"),
    [
        (128, "", 0, 3),  # wires, and an addition
        (96, "", 0, 3),  # 128 - 32: one adder of three numbers
        (100, "", 1, 5),  # 64 + 32 + 4: a product, and the sum in its block
        (100, " + x[r][c - 1]", 0, 4),  # two columns: the product of 6 by 7 bits is in logic
    ],
)
def test_rows_of_an_array_are_multiplied_if_they_are_no_sum_of_two_powers(
    tmp_path: Path, columns: int, more: str, blocks: int, cycles: int
) -> None:
    text = ROWS.replace("COLUMNS", str(columns)).replace("WITH", more)
    found = estimate_of(tmp_path, text, "vitis-2022.1")
    assert found.resources["DSP"] == blocks
    assert loop_of(found, "line_place").iteration_latency == (cycles, cycles)


def test_vivado_adds_to_a_register_where_a_loop_counts(tmp_path: Path) -> None:
    text = ROWS.replace("COLUMNS", "100").replace("WITH", "")
    assert estimate_of(tmp_path, text, "vivado-2019.1").resources["DSP"] == 0


def test_a_burst_needs_no_address_in_the_loop(tmp_path: Path) -> None:
    """A report of Vitis HLS 2022.1 has three cycles: it goes on, reads a word, and keeps it."""
    found = estimate_of(tmp_path, CUBE, "vitis-2022.1")
    assert loop_of(found, "plane_line_place").iteration_latency == (3, 3)


DIVIDER = """
void k(const TYPE x[64], TYPE y[64], TYPE by) {
    for (int n = 0; n < 64; ++n) {
#pragma HLS PIPELINE
        y[n] = (x[n] WITH) / by;
    }
}
"""


@pytest.mark.parametrize(("more", "cycles"), [("", 37), ("+ 3", 37), ("* by + 3", 39)])
def test_a_divider_begins_in_the_cycle_of_what_it_divides(
    tmp_path: Path, more: str, cycles: int
) -> None:
    """Its first stage takes 4.13 ns at any clock (sdiv of 32 bits in 60 schedules)."""
    text = DIVIDER.replace("TYPE", "int").replace("WITH", more)
    (loop,) = estimate_of(tmp_path, text, "vitis-2022.1", clock=15).loops
    assert loop.iteration_latency == (cycles, cycles)


@pytest.mark.parametrize(("bits", "cycles"), [(5, 3), (10, 4)])
def test_a_product_in_logic_takes_as_long_as_its_wider_factor_says(
    tmp_path: Path, bits: int, cycles: int
) -> None:
    """3.49 ns for 5 bits and 4.52 ns for 10, whatever the other has (schedules since 2020)."""
    text = f"""#include "ap_int.h"
    void k(const ap_int<{bits}> x[64], const ap_int<4> w[64], ap_int<{bits + 4}> y[64]) {{
        for (int n = 0; n < 64; ++n) {{
    #pragma HLS PIPELINE
            y[n] = x[n] * w[n];
        }}
    }}"""
    (loop,) = estimate_of(tmp_path, text, "vitis-2022.1", clock=9).loops
    assert loop.iteration_latency == (cycles, cycles)


GRAY = """#include "ap_int.h"
void k(const unsigned char in[3][64], unsigned char out[64]) {
#pragma HLS ARRAY_PARTITION variable=in complete dim=1
    for (int n = 0; n < 64; ++n) {
#pragma HLS PIPELINE
        out[n] = (in[0][n] * 77 + in[1][n] * 150 + in[2][n] * 29) >> 8;
    }
}
"""


def test_sums_take_products_by_constants_into_their_blocks(tmp_path: Path) -> None:
    """Of 8 bits by 7, 35 of 42 do in schedules of Vitis HLS; the other one of a pair does not."""
    found = estimate_of(tmp_path, GRAY, "vitis-2022.1")
    assert found.resources["DSP"] == 2
    assert found.loops[0].iteration_latency == (6, 6)
