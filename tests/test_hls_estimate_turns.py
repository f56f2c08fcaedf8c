"""How often loops run: tiles, counters of a few bits, the loops of a macro."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of

from pynq_torch.hls.estimator.result import Estimate


def trips(found: Estimate) -> list[tuple[str, tuple[int | None, int | None]]]:
    return [(one.name, one.trip_count) for one in found.loops]


TILES = {
    "size": "int size = h + 32 <= 250 ? 32 : 250 - h;\n"
    "    each: for (int t = 0; t < (size < 32 ? size : 32); ++t) y[h + t] += x[h + t];",
    "end": "int end = h + 32 < 250 ? h + 32 : 250;\n"
    "    each: for (int t = h; t < end; ++t) y[t] += x[t];",
    "min": "each: for (int t = h; t < std::min(h + 32, 250); ++t) y[t] += x[t];",
    "step": "each: for (int t = 0; t < (h == 224 ? 26 : 32); t += 2) y[h + t] += x[h + t];",
    "count": "int n = 250 - h;\n    if (n > 32) n = 32;\n"
    "    each: while (n--) y[h + n] += x[h + n];",
}


@pytest.mark.parametrize("name", TILES)
def test_the_last_tile_may_be_smaller(tmp_path: Path, name: str) -> None:
    text = f"""
#include <algorithm>
void k(const int x[250], int y[250]) {{
    tiles: for (int h = 0; h < 250; h += 32) {{
        {TILES[name]}
    }}
}}
"""
    each = (13, 16) if name == "step" else (26, 32)
    assert trips(estimate_of(tmp_path, text, "vitis")) == [("tiles", (8, 8)), ("each", each)]


def test_a_tile_of_two_dimensions_has_the_bounds_of_both(tmp_path: Path) -> None:
    text = """
#include <algorithm>
void k(const int x[100][90], int y[100][90]) {
    rows: for (int r = 0; r < 100; r += 16)
        columns: for (int c = 0; c < 90; c += 32)
            down: for (int i = r; i < std::min(r + 16, 100); ++i)
                along: for (int j = c; j < std::min(c + 32, 90); ++j) y[i][j] += x[i][j];
}
"""
    assert trips(estimate_of(tmp_path, text, "vitis")) == [
        ("rows", (7, 7)), ("columns", (3, 3)), ("down", (4, 16)), ("along", (26, 32)),
    ]  # fmt: skip


def test_a_bound_that_an_argument_decides_stays_unknown(tmp_path: Path) -> None:
    text = """
void k(const int x[250], int y[250], int n) {
    tiles: for (int h = 0; h < 250; h += 32) {
        int size = h + 32 <= n ? 32 : n - h;
        each: for (int t = 0; t < size + n; ++t) y[h + t] += x[h + t];
    }
}
"""
    assert dict(trips(estimate_of(tmp_path, text, "vitis")))["each"] == (None, None)


@pytest.mark.parametrize(
    ("written", "count"),
    [("unsigned char i = 16; each: while (i--)", 16),
     ("unsigned short i = 300; each: while (i--)", 300),
     ("unsigned char i; each: for (i = 14; --i;)", 13),
     ("signed char i; each: for (i = 14; i >= 0; --i)", 15),
     ("unsigned char i; each: for (i = 0; i < 200; ++i)", 200)],
)  # fmt: skip
def test_a_counter_of_a_few_bits_counts_down_too(tmp_path: Path, written: str, count: int) -> None:
    text = f"void k(const int x[300], int y[300]) {{ {written} y[i] += x[i]; }}"
    assert trips(estimate_of(tmp_path, text, "vitis")) == [("each", (count, count))]


MACROS = """
#define ADD(to, of, count) \\
    { \\
        for (int r = 0; r < count; ++r) to[r] = 0; \\
        for (int r = 0; r < count; ++r) \\
            for (int c = 0; c < 100; ++c) to[r] += of[r][c]; \\
    }
#define TWICE(x, n) for (int i = 0; i < n; ++i) x[i] *= 3; for (int i = 0; i < 2 * n; ++i) x[i] += 1
void k(const int m[50][100], int x[50], int y[50]) {
    ADD(x, m, 50)
    ADD(y, m, 30)
    TWICE(x, 20); TWICE(y, 25);
}
"""


def test_each_loop_of_a_macro_is_one_of_its_own(tmp_path: Path) -> None:
    found = estimate_of(tmp_path, MACROS, "vitis")
    assert trips(found) == [
        ("VITIS_LOOP_10_1", (50, 50)), ("VITIS_LOOP_10_2_VITIS_LOOP_10_3", (5000, 5000)),
        ("VITIS_LOOP_11_4", (30, 30)), ("VITIS_LOOP_11_5_VITIS_LOOP_11_6", (3000, 3000)),
        ("VITIS_LOOP_12_7", (20, 20)), ("VITIS_LOOP_12_8", (40, 40)),
        ("VITIS_LOOP_12_9", (25, 25)), ("VITIS_LOOP_12_10", (50, 50)),
    ]  # fmt: skip
    assert {one.line for one in found.loops} == {10, 11, 12}


def test_pipeline_off_of_a_function_holds_for_what_is_called_in_it(tmp_path: Path) -> None:
    text = """
static void add(const int x[100], int y[100]) {
    each: for (int i = 0; i < 100; ++i) y[i] += x[i];
}
void k(const int x[100], int y[100]) {
PRAGMA
    add(x, y);
}
"""
    intervals = [
        estimate_of(tmp_path, text.replace("PRAGMA", one), "vitis").loops[0].ii
        for one in ("", "#pragma HLS PIPELINE off")
    ]
    assert intervals == [1, None]


ESCAPES = """
void k(float x0, float dx, unsigned char y[64]) {
    points: for (int c = 0; c < 64; ++c) {
        float cx = x0 + c * dx, x = 0, y0 = 0;
        int n = 0;
        each: LOOP {
            float a = x * x, b = y0 * y0;
            if (a + b > 4.0f) break;
            y0 = 2 * x * y0 + cx;
            x = a - b + cx;
            STEP
        }
        y[c] = n;
    }
}
"""


@pytest.mark.parametrize("step", [("while (n < 255)", "n++;"), ("for (n = 0; n < 255; ++n)", "")])
def test_a_break_is_of_the_innermost_loop_alone(tmp_path: Path, step: tuple[str, str]) -> None:
    """Variables of a body end where its `break` goes, which was a way out of all loops."""
    text = ESCAPES.replace("LOOP", step[0]).replace("STEP", step[1])
    found = estimate_of(tmp_path, text, "vitis")
    assert trips(found) == [("points", (64, 64)), ("each", (0, 255))]
    assert "product" in found.loops[1].why and "2 floating-point additions" in found.loops[1].why


AGAIN = """
void k(const int x[256], int y[256], int n) {
    int i = 0, j = 0;
    each: while (i < n) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=256
        ++i;
        if (x[i] < 0) continue;
        ++j;
        if (x[j] > 7) continue;
        y[j] = x[i];
    }
}
"""


def test_a_while_that_goes_on_early_is_one_loop(tmp_path: Path) -> None:
    found = estimate_of(tmp_path, AGAIN, "vitis")
    assert trips(found) == [("each", (1, 256))]
    assert found.latency[1] is not None and not found.warnings


LATER = """
void k(const int a[64], int b[64], int c[64], int n, bool on) {
    BRANCH {
        for (int i = 0; i < LAST; ++i) b[i] = a[i] + 1;
        for (int i = 0; i < LAST; ++i) c[i] = b[i] + 1;
    }
    for (int i = 0; i < LAST; ++i) b[i] = c[i] + 1;
}
""".replace("LAST; ++i) ", "LAST; ++i) {\n#pragma HLS LOOP_TRIPCOUNT min=64 max=64\n").replace(
    "+ 1;", "+ 1; }"
)


@pytest.mark.parametrize(
    ("branch", "count", "passed"), [("", "n", 0), ("if (on)", "64", 2), ("", "64", 0)]
)
def test_loops_of_a_known_count_are_passed_by_in_a_branch_alone(
    tmp_path: Path, branch: str, count: str, passed: int
) -> None:
    """LLVM asks once whether loops up to one bound are entered; LOOP_TRIPCOUNT says that they are.

    What an `if` is around need not run, so that the least is less.
    """
    text = LATER.replace("BRANCH", branch).replace("LAST", count)
    least, most = estimate_of(tmp_path, text, "vitis-2023.2").latency
    assert least is not None and most is not None
    assert (most - least) // 64 == passed
