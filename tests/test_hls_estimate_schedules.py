"""Nanoseconds that the tools' schedules list: of adders of three, multiplexers, words, parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.hls.estimator import compiler
from pynq_torch.hls.estimator.luts import choice_of
from pynq_torch.hls.estimator.target import target_of
from pynq_torch.hls.estimator.three import delay_of

pytestmark = pytest.mark.skipif(compiler.tools() is not None, reason="clang-16 is not installed")
ZYNQ, KINTEX, ULTRASCALE = (
    target_of(10, part, "vivado")
    for part in ("xc7z020clg400-1", "xc7k160tfbg484-2", "xczu7ev-ffvc1156-2-e")
)

SUM = """
void k(const int a[64], const int b[64], const int c[64], int y[64]) {
    sum: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        y[i] = (a[i] + b[i]) + c[i];
    }
}
"""


@pytest.mark.parametrize(("bits", "ns"), [(2, 2.07), (8, 3.66), (13, 3.81), (32, 4.37), (64, 5.3)])
def test_an_adder_of_three_takes_what_the_schedules_list(bits: int, ns: float) -> None:
    assert delay_of(bits, ZYNQ) == pytest.approx(ns, abs=0.05)
    assert delay_of(bits, ULTRASCALE) < 1.2  # no more than an adder of two


def test_two_sums_of_one_width_share_an_adder(tmp_path: Path) -> None:
    """It takes 4.4 ns of a cycle of 4.8, where two adders of 2.5 ns would take two cycles."""
    found = loop_of(estimate_of(tmp_path, SUM, "vivado-2019.2", clock=5.5), "sum")
    assert found.iteration_latency[1] == 4


LATE = """
void k(int y[64], int n, int m) {
    sum: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        y[i] = (i + n) + ((n ^ i) - m) > 5 ? n : m;
    }
}
"""


def test_a_sum_that_gets_its_last_number_late_waits_alone(tmp_path: Path) -> None:
    """In the cycle of the first sum no room is left for an adder of three."""
    found = loop_of(estimate_of(tmp_path, LATE, "vivado-2019.2", clock=7.5), "sum")
    assert found.iteration_latency[1] == 3


MOVES = """
void k(int w[64], const int a[64], const int b[64], const int c[64]) {
#pragma HLS ARRAY_PARTITION variable=w complete
    sum: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        w[INDEX] = w[INDEX] + a[i] + b[i] + c[i];
    }
}
"""


@pytest.mark.parametrize(("index", "depth"), [("i", 4), ("0", 5)])
def test_only_an_element_that_stays_is_added_last(tmp_path: Path, index: str, depth: int) -> None:
    text = MOVES.replace("INDEX", index)
    found = loop_of(estimate_of(tmp_path, text, "vivado-2019.2", clock=5), "sum")
    assert found.iteration_latency[1] == depth


def test_a_choice_takes_what_the_schedules_list() -> None:
    """Of 16 words it is faster than of 12: it fills its LUTs."""
    assert choice_of(2, ZYNQ) == pytest.approx(0.82)  # a selection, no multiplexer
    assert choice_of(2, target_of(10, "xc7z020clg400-1", "vitis")) == pytest.approx(1.58)
    listed = {4: 1.95, 8: 2.47, 12: 2.78, 16: 2.06, 32: 3.2, 64: 3.13, 128: 4.23}
    assert {n: choice_of(n, ZYNQ) for n in listed} == pytest.approx(listed)
    assert choice_of(1, ZYNQ) == 0
    assert choice_of(12, ZYNQ) > choice_of(14, ZYNQ) > choice_of(16, ZYNQ)
    assert choice_of(5000, ZYNQ) == choice_of(512, ZYNQ)
    assert choice_of(8, ULTRASCALE) == pytest.approx(0.72, abs=0.05)


BANKS = """
void k(const int x[16][64], int y[64], const int which[64]) {
#pragma HLS ARRAY_PARTITION variable=x complete dim=1
    read: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        y[i] = x[WHICH][i];
    }
}
"""


@pytest.mark.parametrize(("clock", "cycles"), [(6, 1), (9, 1), (12, 0)])
def test_data_that_choose_a_bank_choose_among_words(
    tmp_path: Path, clock: float, cycles: int
) -> None:
    """Behind the memories: at 6 ns in a cycle of its own, at 9 ns with no room left to write."""
    fixed, data = (
        loop_of(
            estimate_of(tmp_path, BANKS.replace("WHICH", one), "vivado-2019.2", clock=clock), "read"
        )
        for one in ("3", "i & 15")
    )
    assert data.iteration_latency[1] == fixed.iteration_latency[1] + cycles


def test_a_faster_kintex_7_is_faster() -> None:
    """A sum of 32 bits takes 1.51 ns in grade -2 (schedules of four repositories)."""
    assert KINTEX.speed * 2.55 == pytest.approx(1.51, abs=0.05)
    assert KINTEX.speed < target_of(10, "xc7k160tfbg484-1", "vivado").speed
    assert not KINTEX.has_ultra_ram


WORDS = """
#include <hls_stream.h>
static void half(hls::stream<int>& in, hls::stream<int>& out) {
    half: for (int i = 0; i < 64; i++) out.write(in.read() MORE);
}
void k(hls::stream<int>& from, hls::stream<int>& to) {
#pragma HLS INTERFACE ap_fifo port=from
#pragma HLS INTERFACE ap_fifo port=to
#pragma HLS DATAFLOW
    hls::stream<int> between;
    half(from, between);
    half(between, to);
}
"""


@pytest.mark.parametrize(
    ("more", "clock", "states"),
    [
        ("", 5, 1),  # at a fast clock each word takes half a cycle
        ("+ 3", 10, 2),  # 3.63 ns, 2.55 ns and 3.63 ns
        ("+ 3", 14, 1),
    ],
)
def test_words_of_fifos_take_what_the_schedules_list(
    tmp_path: Path, more: str, clock: float, states: int
) -> None:
    text = WORDS.replace("MORE", more)
    found = loop_of(estimate_of(tmp_path, text, "vivado-2019.2", clock=clock), "half")
    assert found.iteration_latency[1] == states


PRODUCT = """
void k(const int x[64], int y[64], int n) {
    scale: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        y[i] = x[i] * n;
    }
}
"""


@pytest.mark.parametrize(
    ("tool", "depth", "blocks"), [("vivado-2015.4", 9, 4), ("vivado-2016.4", 4, 3)]
)
def test_old_releases_have_stages_in_each_wide_product(
    tmp_path: Path, tool: str, depth: int, blocks: int
) -> None:
    """Reports of 2015 have five cycles more than those since 2016 (three of three)."""
    found = estimate_of(tmp_path, PRODUCT, tool)
    assert loop_of(found, "scale").iteration_latency[1] == depth
    assert found.resources["DSP"] == blocks


COUNTED = """
void k(const short x[64], long long y[64], int n, short m) {
    for (int i = 0; i < 64; i++) y[i] = FACTOR * i;
}
"""


@pytest.mark.parametrize(
    ("tool", "factor", "blocks"),
    [("vivado-2019.2", "n", 0), ("vitis-2022.2", "n", 1), ("vivado-2019.2", "x[i] * m", 3)],
)
def test_vivado_adds_up_what_a_count_is_multiplied_by(
    tmp_path: Path, tool: str, factor: str, blocks: int
) -> None:
    """Its schedules call it `phi_mul`. In the last one x[i] changes: one block, and two for all."""
    found = estimate_of(tmp_path, COUNTED.replace("FACTOR", factor), tool)
    assert found.resources["DSP"] == blocks


WIDE = """
void k(const unsigned short c[64], unsigned long long y[64], unsigned short n, unsigned short w) {
    for (unsigned long long i = 0; i < n; i++) y[i & 63] = i * w * c[i & 63];
}
"""


def test_a_product_is_no_wider_than_its_factors_together(tmp_path: Path) -> None:
    """The one of i and w has 32 bits, though its type has 64: two DSP blocks for that and c."""
    assert estimate_of(tmp_path, WIDE, "vivado-2019.2").resources["DSP"] == 2
