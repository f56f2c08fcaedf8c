"""Words of m_axi that follow one another, and those that do not; PIPELINE rewind."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

MOVE = """
void k(const int *from, int to[4096]) {
#pragma HLS INTERFACE m_axi port=from
    each: for (int i = 0; i < 1024; ++i) {
#pragma HLS PIPELINE
        to[i] = INDEX;
    }
}
"""


@pytest.mark.parametrize(
    ("index", "depth"),
    [
        ("from[i]", 3),
        ("from[2 * i]", 8),
        ("from[1023 - i]", 9),
        ("from[2 * i] + from[2 * i + 1]", 4),
    ],
)
def test_a_word_that_does_not_follow_the_last_is_asked_for_alone(
    tmp_path: Path, index: str, depth: int
) -> None:
    loop = loop_of(estimate_of(tmp_path, MOVE.replace("INDEX", index), "vitis-2020.2"), "each")
    assert loop.iteration_latency == (depth, depth)


@pytest.mark.parametrize(
    ("tool", "depth"),
    [("vivado-2019.1", 8), ("vitis-2022.2", 8), ("vitis-2023.1", 9), ("vitis-2024.1", 11)],
)
def test_a_word_alone_takes_as_long_as_the_release_has_it(
    tmp_path: Path, tool: str, depth: int
) -> None:
    loop = loop_of(estimate_of(tmp_path, MOVE.replace("INDEX", "from[2 * i]"), tool), "each")
    assert loop.iteration_latency == (depth, depth)


ROWS = """
void k(const int *from, int to[16][16]) {
#pragma HLS INTERFACE m_axi port=from
    row: for (int i = 0; i < 16; ++i) {
        word: for (int j = 0; j < 16; ++j) {
#pragma HLS PIPELINE
            to[i][j] = from[i * PITCH + j];
        }
    }
}
"""


@pytest.mark.parametrize(("pitch", "depth"), [(16, 3), (64, 9), (0, 9)])
def test_rows_of_a_tile_are_no_burst_where_the_nest_became_one_loop(
    tmp_path: Path, pitch: int, depth: int
) -> None:
    found = estimate_of(tmp_path, ROWS.replace("PITCH", str(pitch)), "vitis-2020.2")
    assert loop_of(found, "row_word").iteration_latency == (depth, depth)


REWIND = """
void k(const int a[64], int b[64]) {
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE REWIND
        b[i] = a[i] * 3;
    }
    MORE
}
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_rewind_starts_again_behind_the_last_iteration(tmp_path: Path, tool: str) -> None:
    text = REWIND.replace("MORE", "")
    plain = estimate_of(tmp_path, text.replace("REWIND", ""), tool)
    found = estimate_of(tmp_path, text.replace("REWIND", "rewind"), tool)
    assert (plain.latency, plain.interval) == ((67, 67), (68, 68))
    assert (found.latency, found.interval) == ((66, 66), (64, 64))
    assert not found.warnings


def test_rewind_says_where_it_has_no_effect(tmp_path: Path) -> None:
    text = REWIND.replace("REWIND", "rewind").replace("MORE", "b[0] += a[7];")
    found = estimate_of(tmp_path, text, "vitis")
    assert ["PIPELINE rewind has no effect: k does more" in one for one in found.warnings] == [True]


def test_a_process_is_rewound(tmp_path: Path) -> None:
    text = """
void k(const int a[64], int b[64]) {
#pragma HLS DATAFLOW
    int c[64];
    one: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE rewind
        c[i] = a[i] * 3;
    }
    two: for (int i = 0; i < 64; ++i) b[i] = c[i] + 1;
}
"""
    assert not [one for one in estimate_of(tmp_path, text, "vitis").warnings if "rewind" in one]


def test_vivado_says_that_a_choice_misses_the_clock(tmp_path: Path) -> None:
    text = """
#include <ap_fixed.h>
typedef ap_fixed<27, 4> T;
int k(T cr, T ci) {
    T x = 0, y = 0;
    int i = 0;
    each: for (i = 0; i < 255; ++i) {
#pragma HLS PIPELINE
        T x2 = x * x, y2 = y * y;
        if (x2 + y2 > 4) break;
        y = 2 * x * y + ci;
        x = x2 - y2 + cr;
    }
    return i;
}
"""
    assert "misses the clock" in " ".join(estimate_of(tmp_path, text, "vivado-2019.1").warnings)


def test_bundles_begin_their_bursts_side_by_side(tmp_path: Path) -> None:
    """Two reports of Vitis HLS 2025 have 117 cycles, 14 of them for the bursts."""
    text = """
void k(int a[100], int b[100], int sum[100]) {
#pragma HLS INTERFACE m_axi port=a bundle=a
#pragma HLS INTERFACE m_axi port=b bundle=b
#pragma HLS INTERFACE m_axi port=sum bundle=sum
    for (int i = 0; i < 100; i++) sum[i] = a[i] * b[i];
}
"""
    part = "xczu3eg-sbva484-1-e"
    assert estimate_of(tmp_path, text, "vitis-2025.1", part=part).latency == (117, 117)
    far = text.replace("port=a", "port=a latency=30").replace("port=b", "port=b latency=30")
    assert estimate_of(tmp_path, far, "vitis-2025.1", part=part).latency == (146, 146)


def test_vitis_hls_reads_a_burst_behind_the_end_of_the_loop(tmp_path: Path) -> None:
    """Whether the loop goes on, the word, and what is written: three cycles, and one more turn."""
    found = estimate_of(tmp_path, MOVE.replace("INDEX", "from[i]"), "vitis-2022.1")
    loop = loop_of(found, "each")
    assert (loop.ii, loop.iteration_latency, loop.latency) == (1, (3, 3), (1025, 1025))
