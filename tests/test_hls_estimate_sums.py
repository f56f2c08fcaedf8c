"""Sums and words in nests: what Vitis HLS keeps in registers, copies, unrolls or passes on.

The figures are those of schedules that Vitis HLS 2021.2 to 2025.2 published for such loops.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pynq_torch.hls import Estimate, estimate
from pynq_torch.hls.estimator import compiler
from pynq_torch.hls.estimator.result import LoopEstimate

MISSING = compiler.tools()
pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(MISSING is not None, reason=MISSING or ""),
]

SMALL, LARGE = "xc7z020clg400-1", "xczu9eg-ffvb1156-2-i"


def _of(
    folder: Path, text: str, *, part: str = SMALL, clock: float = 10, tool: str = "vitis-2023.2",
    **words: str | int,
) -> Estimate:  # fmt: skip
    for name, value in words.items():
        text = text.replace(name, str(value))
    source = folder / "k.cpp"
    source.write_text(text)
    return estimate(source, "k", part=part, clock=clock, tool=tool)


def _loops(found: Estimate) -> dict[str, LoopEstimate]:
    return {loop.name: loop for loop in found.loops}


#: A matrix times a vector: HOW says how the inner loop is asked for.
ROWS = """
void k(const float x[SIZE], const float m[SIZE][SIZE], float y[SIZE]) {
    float a[SIZE][SIZE], b[SIZE], sum[SIZE];
CUT
    fill: for (int i = 0; i < SIZE; ++i)
        words: for (int j = 0; j < SIZE; ++j) {
#pragma HLS PIPELINE
            a[i][j] = m[i][j];
            b[j] = x[j];
            sum[i] = x[i];
        }
    rows: for (int i = 0; i < SIZE; ++i) {
OUTER
        columns: for (int j = 0; j < SIZE; ++j) {
INNER
            sum[i] += a[i][j] * b[j];
        }
    }
    last: for (int i = 0; i < SIZE; ++i) y[i] = sum[i];
}
"""
PIPELINE = "#pragma HLS PIPELINE"


@pytest.mark.parametrize(
    ("part", "clock", "factor", "interval"),
    [
        (LARGE, 10, 1, 4),  # four stages, and room to choose between sum and element
        (LARGE, 10, 4, 16),
        (SMALL, 10, 1, 6),  # five that fill their cycles: the choice takes one more
        (LARGE, 5, 1, 8),
    ],
)
def test_a_sum_of_a_local_array_is_in_a_register_though_the_nest_is_flattened(
    tmp_path: Path, part: str, clock: float, factor: int, interval: int
) -> None:
    inner = f"{PIPELINE}\n#pragma HLS UNROLL factor={factor}"
    found = _loops(
        _of(tmp_path, ROWS, part=part, clock=clock, SIZE=128, CUT="", OUTER="", INNER=inner)
    )["rows_columns"]
    assert found.ii == interval
    assert "floating-point addition" in found.why and "is read after" not in found.why


def test_the_element_of_a_cut_array_is_a_branch_that_keeps_two_loops(tmp_path: Path) -> None:
    cut = "#pragma HLS ARRAY_PARTITION variable=sum cyclic factor=2"
    whole, halves = (
        _loops(_of(tmp_path, ROWS, part=LARGE, SIZE=128, CUT=one, OUTER="", INNER=PIPELINE))
        for one in ("", cut)
    )
    assert "rows_columns" in whole
    assert halves["rows"].ii is None and halves["columns"].ii == 3


def test_more_than_sixteen_words_of_a_copied_memory_take_more_cycles(tmp_path: Path) -> None:
    """Each half of `a` is read at 32 places: a memory and its copies have 16 ports to read."""
    cut = "#pragma HLS ARRAY_PARTITION variable=a cyclic factor=2 dim=2"
    found = _of(tmp_path, ROWS, part=LARGE, SIZE=64, CUT=cut, OUTER=PIPELINE, INNER="")
    rows = _loops(found)["rows"]
    assert (
        rows.ii == 2
        and "32 accesses of one bank of `a` in an iteration, its copies take 16" in rows.why
    )
    assert found.resources["DSP"] == (64 * 3 + 64 * 2) // 2
    # Of 64 x 32 words of 32 bits, 4 blocks, there are 15 in each half.
    assert 2 * 15 * 4 <= (found.resources["BRAM_18K"] or 0) < 2 * 15 * 4 + 16


#: Each turn adds to all the elements.
COLUMNS = ROWS.replace("sum[i] += a[i][j] * b[j]", "sum[j] += a[i][j] * b[i]")


def test_only_a_pipeline_that_is_asked_for_has_all_its_sums_in_registers(tmp_path: Path) -> None:
    """For a pipeline of its own it unrolled when arrays were cut, and sums placed, until 2023.1."""
    text = COLUMNS.replace("SIZE", "64").replace("CUT", "").replace("INNER", "")
    asked, own, early = (
        _loops(_of(tmp_path, text, part=LARGE, tool=tool, OUTER=outer))["rows"]
        for outer, tool in (
            (PIPELINE, "vitis-2023.1"),
            ("", "vitis-2023.1"),
            ("", "vitis-2023.2"),
        )
    )
    assert asked.ii == early.ii == 3 and "floating-point addition" in asked.why
    assert (own.ii or 0) >= 64 and "`sum`" in own.why


@pytest.mark.parametrize(
    ("body", "size", "name"),
    [
        ("sum[i] += a[i][j] * b[j]", 64, "rows"),  # a sum's element leaves the inner loop
        ("sum[i] += a[i][j] * b[j]", 65, "rows_columns"),
        ("sum[j] = a[i][j] * b[j]", 64, "rows_columns"),  # nothing does
    ],
)
def test_a_short_loop_is_unrolled_where_work_is_left_around_it(
    tmp_path: Path, body: str, size: int, name: str
) -> None:
    text = ROWS.replace("sum[i] += a[i][j] * b[j]", body)
    found = _of(tmp_path, text, part=LARGE, SIZE=size, CUT="", OUTER="", INNER="")
    assert name in _loops(found)


RUNNING = """
void k(const int x[512], int y[512]) {
    y[0] = x[0];
    each: for (int i = 1; i < 512; ++i) {
#pragma HLS PIPELINE
        y[i] = y[i - WAY] + x[i];
    }
}
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_the_tools_hand_on_what_the_next_iteration_reads(tmp_path: Path, tool: str) -> None:
    handed = _loops(_of(tmp_path, RUNNING, WAY="1", tool=tool))["each"]
    assert (handed.ii, handed.why) == (1, "")
    unknown = _loops(_of(tmp_path, RUNNING, WAY="(x[i] & 1)", tool=tool))["each"]
    assert (unknown.ii or 0) > 1 and "`y` is read after" in unknown.why


WORDS = """
struct Pixel { short red, green, blue; };
void k(const Pixel x[64], TYPE y[64]) {
#pragma HLS INTERFACE MODE port=y
CUT
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
#pragma HLS UNROLL factor=FACTOR
        BODY
    }
}
"""
ONE, ALL = "y[i] = x[i].red;", "y[i].red = x[i].blue; y[i].green = 1; y[i].blue = x[i].red;"


@pytest.mark.parametrize(
    ("mode", "kind", "body", "factor", "cut", "interval"),
    [
        ("ap_fifo", "short", ONE, 2, "", 2),
        ("axis", "short", ONE, 2, "", 2),
        ("ap_memory storage_type=ram_2p", "short", ONE, 2, "", 1),
        ("ap_fifo", "short", ONE, 2, "y cyclic factor=2", 1),  # two FIFOs
        ("ap_fifo", "Pixel", ALL, 1, "", 1),  # the fields pass together
    ],
)
def test_a_fifo_of_an_array_passes_a_word_a_cycle(
    tmp_path: Path, mode: str, kind: str, body: str, factor: int, cut: str, interval: int
) -> None:
    cut = cut and f"#pragma HLS ARRAY_PARTITION variable={cut}"
    found = _of(tmp_path, WORDS, MODE=mode, TYPE=kind, BODY=body, FACTOR=factor, CUT=cut)
    each = _loops(found)["each"]
    assert each.ii == interval
    assert ("2 accesses of stream `y` in an iteration" in each.why) == (interval == 2)


CHAIN = """
void k(const float x[64], const float y[64], const float z[64], float w[64]) {
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        w[i] = x[i] * y[i] + z[i];
    }
}
"""


@pytest.mark.parametrize(
    ("part", "clock", "depth"),
    [
        (LARGE, 10, 2 + 3 + 4 + 1),  # load, product, sum, store
        (LARGE, 5, 2 + 4 + 8 + 1),
        (LARGE, 10 / 3, 2 + 7 + 11 + 1),
        ("xczu5eg-sfvc784-1-e", 10, 1 + 4 + 5 + 1),  # the word is multiplied where it is read
        ("xczu3eg-sbva484-1-i", 20 / 3, 2 + 4 + 8 + 1),
        ("xcvu11p-flga2577-1-e", 10, 2 + 2 + 3 + 1),
        ("xcu55c-fsvh2892-2L-e", 5, 1 + 4 + 5 + 1),
        ("xcu280-fsvh2892-2L-e", 10 / 3, 2 + 4 + 7 + 1),
    ],
)
def test_the_floating_point_cores_of_ultrascale_plus(
    tmp_path: Path, part: str, clock: float, depth: int
) -> None:
    # Zynq and Kria are slower than Virtex, and grade -1 is slower: as public schedules have them.
    found = _loops(_of(tmp_path, CHAIN, part=part, clock=clock))["each"].iteration_latency
    assert found == (depth, depth)
