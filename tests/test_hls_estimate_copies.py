"""Structs that are copied as a whole: what LLVM leaves as copies of memory are accesses."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.hls.estimator import compiler

pytestmark = pytest.mark.skipif(compiler.tools() is not None, reason="clang-16 is not installed")

FOUR = """
#include <ap_int.h>
struct P { MEMBERS };
void k(P a[256], P b[64], P c[64], P d[64], P e[64]) {
    copy: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        b[i] = a[4 * i];
        c[i] = a[4 * i + 1];
        d[i] = a[4 * i + 2];
        e[i] = a[4 * i + 3];
    }
}
"""
SORT = """
struct P { float x, y, z; };
void k(P a[64]) {
    pass: for (int j = 0; j < 63; j++) {
#pragma HLS PIPELINE
        if (a[j].x > a[j + 1].x) { P t = a[j]; a[j] = a[j + 1]; a[j + 1] = t; }
    }
}
"""
LINES = """
struct P { unsigned char r, g, b; };
void k(P in[400], P out[400]) {
    P window[2], line[400];
    row: for (int i = 0; i < 400; i++) {
#pragma HLS PIPELINE
        window[0] = window[1];
        window[1] = (line[i] = in[i]);
        out[i].r = window[0].r + window[1].r;
        out[i].g = window[0].g + window[1].g;
        out[i].b = window[0].b + window[1].b;
    }
}
"""
PROCESSES = """
struct P { unsigned char r, g, b; };
void k(P in[64], P out[64]) {
#pragma HLS DATAFLOW
    P all[64];
    take: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        all[i] = in[i];
    }
    give: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        out[i] = all[63 - i];
    }
}
"""


@pytest.mark.parametrize("tool", ["vitis-2022.1", "vivado-2019.1"])
@pytest.mark.parametrize("members", ["int x, y;", "float x, y, z;", "ap_uint<8> r, g, b;"])
def test_each_copy_takes_a_port(tmp_path: Path, members: str, tool: str) -> None:
    found = loop_of(estimate_of(tmp_path, FOUR.replace("MEMBERS", members), tool), "copy")
    assert found.ii == 2 and found.iteration_latency == (3, 3)
    assert "4 accesses of `a`" in found.why


def test_an_exchange_reads_and_writes(tmp_path: Path) -> None:
    found = loop_of(estimate_of(tmp_path, SORT, "vitis-2022.1"), "pass")
    assert found.ii is not None and found.ii > 2 and "`a` is read after" in found.why


def test_what_was_just_written_is_not_read(tmp_path: Path) -> None:
    assert loop_of(estimate_of(tmp_path, LINES, "vitis-2022.1"), "row").ii == 1


def test_a_process_waits_for_structs(tmp_path: Path) -> None:
    latency = estimate_of(tmp_path, PROCESSES, "vitis-2022.1").latency[1]
    assert latency is not None and latency >= 128


CONSTANT = """
struct P { float x, y, z; };
STATIC
void k(P in[64], P out[64]) {
    LOCAL
    loop: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        old[3] = old[2];
        old[2] = old[1];
        old[1] = old[0];
        old[0] = in[i];
        out[i] = old[3];
    }
}
"""


@pytest.mark.parametrize("tool", ["vitis-2022.1", "vivado-2019.1"])
@pytest.mark.parametrize(("static", "local"), [("static P old[4];", ""), ("", "static P old[4];")])
def test_elements_of_variables_of_a_file_are_copied(
    tmp_path: Path, static: str, local: str, tool: str
) -> None:
    """LLVM writes their addresses as expressions of constants."""
    text = CONSTANT.replace("STATIC", static)
    text = text.replace("LOCAL", local + "\n#pragma HLS ARRAY_PARTITION variable=old complete")
    assert loop_of(estimate_of(tmp_path, text, tool), "loop").ii == 1


BLOCKS = """
#include <string.h>
void k(const int *a, int *b, int n) {
#pragma HLS INTERFACE m_axi port=a bundle=one depth=1024
#pragma HLS INTERFACE m_axi port=b bundle=two depth=1024
    int block[16][16];
    take: for (int i = 0; i < 16; i++) {
#pragma HLS HOW
        memcpy(block[i], a + 64 * i, LENGTH * sizeof(int));
    }
    give: for (int i = 0; i < 256; i++)
        b[i] = block[i / 16][i % 16];
}
"""


def test_a_copy_in_a_loop_is_a_loop(tmp_path: Path) -> None:
    """What is around it is not innermost, so that Vitis HLS makes no pipeline of it unasked."""
    text = BLOCKS.replace("LENGTH", "16")
    off = loop_of(estimate_of(tmp_path, text.replace("HOW", "PIPELINE off"), "vitis"), "take")
    free = loop_of(estimate_of(tmp_path, text.replace("#pragma HLS HOW", ""), "vitis"), "take")
    assert free.ii is None and free.latency == off.latency and (free.latency[0] or 0) > 256


@pytest.mark.parametrize("tool", ["vitis-2022.1", "vivado-2019.1"])
def test_a_copy_in_a_pipeline_moves_its_words(tmp_path: Path, tool: str) -> None:
    text = BLOCKS.replace("HOW", "PIPELINE")
    found = loop_of(estimate_of(tmp_path, text.replace("LENGTH", "16"), tool), "take")
    assert found.ii == 16 and "`memcpy` moves 16 words of `a`" in found.why
    made = estimate_of(tmp_path, text.replace("LENGTH", "n"), tool)
    assert loop_of(made, "take").ii is None and made.latency == (None, None)
    assert any("k.cpp:7: PIPELINE has no effect: a variable" in one for one in made.warnings)


TILES = """
#include <string.h>
void k(const int *in, int *out) {
#pragma HLS INTERFACE m_axi port=in bundle=one depth=1024
#pragma HLS INTERFACE m_axi port=out bundle=two depth=1024
    int given[64], made[64];
    tile: for (int t = 0; t < 16; t++) {
        memcpy(given, in + 64 * t, sizeof(given));
        work: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
            made[i] = given[63 - i] + t;
        }
        memcpy(out + 64 * t, made, sizeof(made));
    }
}
"""


@pytest.mark.parametrize("tool", ["vitis-2020.1", "vitis-2022.1", "vivado-2019.1"])
def test_a_copy_beside_a_loop_keeps_it_from_the_one_around(tmp_path: Path, tool: str) -> None:
    """It is a loop of its own, and a loop that holds two is not flattened."""
    made = estimate_of(tmp_path, TILES, tool)
    tile, work = loop_of(made, "tile"), loop_of(made, "work")
    assert tile.ii is None and tile.trip_count == (16, 16)
    assert work.ii == 1 and work.trip_count == (64, 64)


def test_the_first_vitis_hls_numbers_copies(tmp_path: Path) -> None:
    """Later ones make modules of copies, whose loops have no name."""
    made = estimate_of(tmp_path, TILES, "vitis-2020.1")
    first, last = loop_of(made, "tile.1"), loop_of(made, "tile.3")
    assert first.ii == last.ii == 1 and first.depth == last.depth == 2
    assert first.trip_count == (64, 64) and first.latency == last.latency == (65, 65)
    later = estimate_of(tmp_path, TILES, "vitis-2022.1")
    assert not [one for one in later.loops if "." in one.name]


PRODUCT = """
void k(float a[12][128], float b[48][128], float c[12][48]) {
    row: for (int i = 0; i < 12; i++)
        column: for (int j = 0; j < 48; j++)
            inner: for (int n = 0; n < 128; n++)
                c[i][j] += a[i][n] * b[j][n];
}
"""


@pytest.mark.parametrize(
    ("tool", "trips"), [("vitis-2022.1", 128), ("vitis-2025.1", 12 * 48 * 128)]
)
def test_a_sum_in_an_element_ends_a_nest_before_2023(tmp_path: Path, tool: str, trips: int) -> None:
    """It is read before the innermost loop and written behind it, in logs of 2022.1."""
    assert estimate_of(tmp_path, PRODUCT, tool).loops[-1].trip_count == (trips, trips)
