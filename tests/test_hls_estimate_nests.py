"""Which loops of a nest become one, which are unrolled, and how often they run."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of

from pynq_torch.errors import KernelBuildError
from pynq_torch.hls.estimator import Estimate, compiler, estimate

pytestmark = pytest.mark.skipif(compiler.tools() is not None, reason="clang-16 is not installed")


def _of(tmp_path: Path, text: str, tool: str = "vitis", **words: object) -> Estimate:
    for name, value in words.items():
        text = text.replace(name, str(value))
    source = tmp_path / "k.cpp"
    source.write_text(text)
    return estimate(source, "k", tool=tool)


def _names(found: Estimate) -> list[tuple[str, bool]]:
    return [(loop.name, loop.ii is not None) for loop in found.loops]


WINDOW = """
void k(const int a[64][CH][3][3], const int w[CH][3][3], int y[64]) {
    row: for (int i = 0; i < 64; ++i) {
        int sum = 1;
        channel: for (int c = 0; c < CH; ++c)
            down: for (int p = 0; p < 3; ++p)
                across: for (int q = 0; q < 3; ++q)
                    sum += a[i][c][p][q] * w[c][p][q];
        y[i] = sum;
    }
}
"""


def test_short_loops_are_unrolled_only_if_all_their_iterations_are_few(tmp_path: Path) -> None:
    assert _names(_of(tmp_path, WINDOW, CH=7)) == [("row", True)]
    rows, flat = _of(tmp_path, WINDOW, CH=8).loops
    assert (flat.name, flat.trip_count) == ("channel_down_across", (72, 72))
    # "Cannot flatten loop ... nontrivial logic in the loop latch" (logs of two networks)
    assert (rows.name, rows.ii) == ("row", None)


def test_a_pipeline_in_a_loop_that_runs_once_keeps_what_is_around_from_being_one(
    tmp_path: Path,
) -> None:
    """Nothing is left of the loop in between, but what is in it stays a loop."""
    text = """
void k(const int x[8][75], int a[1][75], int y[8], int n) {
    turn: for (int t = 0; t < n; ++t) {
        for (int i = 0; i < 1; ++i)
            fill: for (int j = 0; j < 75; ++j) {
#pragma HLS PIPELINE
                a[i][j] = x[t & 7][j];
            }
        for (int i = 0; i < 1; ++i) {
            int s = 0;
            add: for (int j = 0; j < 75; ++j) s += a[i][j];
            y[t & 7] = s;
        }
    }
}
"""
    found = _of(tmp_path, text)
    assert _names(found) == [("turn", False), ("fill", True), ("add", True)]
    assert not found.warnings


BIAS = """
void k(const int x[80], BUS int bias[16], int y[16][80]) {
#pragma HLS INTERFACE m_axi port=bias
    channel: for (int c = 0; c < 16; ++c)
        column: for (int i = 0; i < 80; ++i)
            y[c][i] = x[i] + bias[INDEX];
}
"""


@pytest.mark.parametrize(
    ("index", "names"),
    [("c", ["channel", "column"]), ("3", ["channel_column"])],
)
def test_a_burst_over_the_outer_loop_keeps_two_loops(
    tmp_path: Path, index: str, names: list[str]
) -> None:
    found = _of(tmp_path, BIAS, BUS="const", INDEX=index)
    assert [loop.name for loop in found.loops] == names


STREAM = """
#include <hls_stream.h>
void k(const int x[16][80], hls::stream<int> &out) {
    rows: for (int r = 0; r < 16; ++r) {
        int sum = 0;
        columns: for (int i = 0; i < 80; ++i)
            sum += x[r][i];
        out.write(sum);
    }
}
"""


def test_a_stream_between_two_loops_keeps_them_two(tmp_path: Path) -> None:
    assert _names(_of(tmp_path, STREAM)) == [("rows", False), ("columns", True)]
    written = STREAM.replace("hls::stream<int> &out", "int out[16]").replace(
        "out.write(sum)", "out[r] = sum"
    )
    assert _names(_of(tmp_path, written)) == [("rows_columns", True)]


BREAK = """
void k(const int x[16][80], int y[16][80], int n) {
    rows: for (int r = 0; r < 16; ++r) {
        STOP
        columns: for (int i = 0; i < 80; ++i)
            y[r][i] = x[r][i] + 1;
    }
}
"""


def test_a_loop_with_a_break_is_flattened_with_no_other(tmp_path: Path) -> None:
    found = _of(tmp_path, BREAK, STOP="if (r >= n) break;")
    assert _names(found) == [("rows", False), ("columns", True)]
    case = "int t = 0; switch (n) { case 1: t = 1; break; }"
    assert _names(_of(tmp_path, BREAK, STOP=case)) == [("rows_columns", True)]


AROUND = """
void k(const int x[8][9][64], int y[8][9][64], int z[8][9]) {
    planes: for (int p = 0; p < 8; ++p) {
        BEFORE
        rows: for (int r = 0; r < 9; ++r) {
            int sum = 0;
            add: for (int i = 0; i < 64; ++i) {
PRAGMA
                sum += x[p][r][i];
            }
            put: for (int i = 0; i < 64; ++i) {
PRAGMA
                y[p][r][i] = sum;
            }
        }
    }
}
"""


def test_loops_around_pipelines_become_one(tmp_path: Path) -> None:
    pipeline = "#pragma HLS PIPELINE"
    found = _of(tmp_path, AROUND, BEFORE="", PRAGMA=pipeline)
    around, *inner = found.loops
    assert (around.name, around.ii, around.trip_count) == ("planes_rows", None, (72, 72))
    assert [loop.name for loop in inner] == ["add", "put"]
    assert around.latency[1] == 72 * (around.iteration_latency[1] or 0)
    for before, pragma, tool in (
        ("z[p][0] = 1;", pipeline, "vitis"),
        ("", "#pragma HLS PIPELINE off", "vitis"),
        ("", pipeline, "vivado"),
    ):
        found = _of(tmp_path, AROUND, tool, BEFORE=before, PRAGMA=pragma)
        assert [loop.name for loop in found.loops] == ["planes", "rows", "add", "put"], before


SORT = """
void k(int a[16]) {
    outer: for (FIRST)
        inner: for (SECOND)
            if (a[j] > a[j + 1]) {
                int t = a[j];
                a[j] = a[j + 1];
                a[j + 1] = t;
            }
}
"""


@pytest.mark.parametrize(
    ("first", "second", "trips"),
    [
        ("short i = 15; i >= 0; i = i - 1", "short j = 0; j < i; j = j + 1", (0, 15)),
        ("short i = 1; i < 16; i++", "short j = i - 1; j >= 0; j--", (1, 15)),
        ("unsigned char i = 0; i < 15; ++i", "unsigned char j = i; j < 15; j += 1", (1, 15)),
    ],
)
def test_short_counters_are_counted(
    tmp_path: Path, first: str, second: str, trips: tuple[int, int]
) -> None:
    _, inner = _of(tmp_path, SORT, "vivado", FIRST=first, SECOND=second).loops
    assert inner.trip_count == trips


RING = """
#include <ap_int.h>
void k(const int x[64], int y[64], NUMBER rows, NUMBER columns) {
#pragma HLS INTERFACE m_axi port=y
    outer: for (NUMBER r = 0; r < rows; ++r)
        inner: for (NUMBER c = 0; c < columns; ++c)
            y[r * 8 + c] = x[c];
}
"""


def test_counters_of_any_width_are_counted(tmp_path: Path) -> None:
    (flat,) = _of(tmp_path, RING, NUMBER="ap_uint<3>").loops
    assert (flat.name, flat.trip_count) == ("outer_inner", (0, 49))


STATIC = """
#include <hls_stream.h>
static int i, kept;
int k(const int x[50], hls::stream<int> &y) {
    FIRST
    all: for (i = 0; i < 50; i++)
        y.write(x[i] + kept);
    kept = kept + 1;
    return kept;
}
"""


def test_a_static_counter_is_a_register(tmp_path: Path) -> None:
    assert _of(tmp_path, STATIC, FIRST="").loops[0].trip_count == (50, 50)
    found = _of(tmp_path, STATIC, FIRST="if (i > 3) return 0;")  # what another call has left
    assert found.loops[0].trip_count == (None, None)


EARLY = """
void k(const int x[16][4], int y[16][4], int n) {
    rows: for (int r = 0; r < 16; ++r) {
#pragma HLS PIPELINE
        columns: for (int c = 0; c < BOUND; ++c) {
            STOP
            y[r][c] = x[r][c] + 1;
        }
    }
}
"""


def test_a_pipeline_unrolls_a_loop_that_a_break_may_end(tmp_path: Path) -> None:
    (rows,) = _of(tmp_path, EARLY, BOUND="4", STOP="if (c >= n) break;").loops
    assert (rows.name, rows.ii) == ("rows", 2)
    found = _of(tmp_path, EARLY, BOUND="(n < 4 ? n : 4)", STOP="")
    assert _names(found) == [("rows", False), ("columns", True)]  # by itself
    assert "cannot be unrolled" in found.warnings[0]


MADE = """
template <int N> struct line {
    int cells[N];
    line();
};
template <int N> line<N>::line() {
    clear: for (int i = 0; i < N; ++i)
        cells[i] = 7;
}
void k(const int x[80], int y[80]) {
    line<80> held;
    put: for (int i = 0; i < 80; ++i)
        held.cells[x[i]] += i;
    get: for (int i = 0; i < 80; ++i)
        y[i] = held.cells[i];
}
"""


def test_the_loops_of_a_template_s_constructor_are_pipelined(tmp_path: Path) -> None:
    found = _of(tmp_path, MADE)
    assert _names(found) == [("clear", True), ("put", True), ("get", True)]


CALLED = """
static int total(const int a[96]) {
#pragma HLS INLINE off
    int sum = 0;
    add: for (int i = 0; i < 96; ++i)
        sum += a[i] * a[i];
    return sum;
}
void k(const int x[96], int y[96]) {
    rows: for (int r = 0; r < 96; ++r)
        for (int t = 90; t < LAST; ++t)
            y[r] = total(x) + t;
}
"""


@pytest.mark.parametrize("last", [80, 91])
def test_a_loop_around_a_call_with_loops_is_no_pipeline(tmp_path: Path, last: int) -> None:
    found = {loop.name: loop.ii for loop in _of(tmp_path, CALLED, LAST=last).loops}
    assert found.get("rows") is None and found.get("add", 1) == 1
    assert ("rows" in found) is (last > 90)  # else it does nothing, and is left out


SAID = """
#include <assert.h>
#include <hls_stream.h>
void k(hls::stream<int> &x, hls::stream<int> &y, int rows, int columns) {
    int held[80];
    assert(rows < 60);
    assert(columns < 80);
    first: for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c)
            held[c] = x.read();
    second: for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c)
            y.write(held[c] + r);
    third: for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c)
            y.write(held[c] - r);
}
"""


def test_assert_bounds_every_loop_behind_it(tmp_path: Path) -> None:
    found = _of(tmp_path, SAID)
    assert [loop.trip_count for loop in found.loops] == [(0, 59 * 79)] * 3


HALVES = """
void k(const int x[64], int y[64][64], int n) {
    rows: for (int r = 0; r < 64; ++r)
        columns: for (int c = 0; c < BOUND; ++c) {
#pragma HLS UNROLL factor=2
#pragma HLS PIPELINE
            y[r][c] = x[c] + r;
        }
}
"""


def test_a_loop_that_may_end_in_the_middle_is_flattened_with_no_other(tmp_path: Path) -> None:
    assert _names(_of(tmp_path, HALVES, BOUND=64)) == [("rows_columns", True)]
    assert _names(_of(tmp_path, HALVES, BOUND="n")) == [("rows", False), ("columns", True)]


def test_a_counter_of_seven_bits_counts_down(tmp_path: Path) -> None:
    text = """
    #include <ap_int.h>
    void k(const int x[128], int y[128]) {
        all: for (ap_uint<7> i = 127; i > 0; i--)
            y[i] = x[i - 1];
    }
    """
    assert _of(tmp_path, text).loops[0].trip_count == (127, 127)


def test_directives_count_in_folders_of_any_alphabet(tmp_path: Path) -> None:
    folder = tmp_path / "过滤器 é"
    folder.mkdir()
    (loop,) = _of(folder, HALVES.replace("UNROLL factor=2", "UNROLL off"), "vivado", BOUND=64).loops
    assert (loop.name, loop.ii) == ("rows_columns", 1)


NEVER_COMPILED = """
template <class T> void helper(const T x[64], T y[64]) {
    body: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        y[i] = 3 * x[i];
    }
}
template <class T> void unused(const T x[64], T y[64]) {
#pragma HLS PIPELINE
    helper<T>(x, y);
}
template <class T, bool FAST> void choose(const T x[64], T y[64]) {
    if (FAST)
        unused<T>(x, y);
    else
        helper<T>(x, y);
}
void k(const int x[64], int y[64]) { choose<int, false>(x, y); }
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_a_pipeline_that_is_never_compiled_unrolls_nothing(tmp_path: Path, tool: str) -> None:
    assert _names(_of(tmp_path, NEVER_COMPILED, tool)) == [("body", True)]


ASSIGNED = """
#include "hls_stream.h"
struct lanes {
    int part[8];
    lanes &operator=(const lanes &other) {
        copy: for (int i = 0; i < 8; ++i) {
#pragma HLS UNROLL
            part[i] = other.part[i];
        }
        return *this;
    }
};
void k(hls::stream<lanes> &from, hls::stream<lanes> &to) {
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        lanes now;
        now = from.read();
        to.write(now);
    }
}
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_the_pragmas_of_an_assignment_within_a_stream_count(tmp_path: Path, tool: str) -> None:
    assert _names(_of(tmp_path, ASSIGNED, tool)) == [("each", True)]
    source = ASSIGNED.replace("now = from.read();", "from.read(now);").replace(
        "#pragma HLS PIPELINE", ""
    )
    assert [name for name, _ in _names(_of(tmp_path, source, "vivado"))] == ["each"]


#: The inner loop begins where an unrolled one around it is.
STAIRS = """
void k(const int x[64][8], int y[64]) {
    rows: for (int r = 0; r < 64; ++r) {
#pragma HLS PIPELINE
        int place[8];
        for (int i = 0; i < 8; ++i) place[i] = x[r][i];
        for (char i = 7; i > 0; --i)
            for (char j = i - 1; j >= 0; --j) place[i] += place[j] <= place[i];
        y[r] = place[7];
    }
}
"""


@pytest.mark.parametrize("tool", ["vivado", "vitis"])
def test_a_loop_that_begins_at_the_counter_of_another_is_unrolled(tmp_path, tool):
    (tmp_path / "k.cpp").write_text(STAIRS)
    found = estimate(tmp_path / "k.cpp", "k", tool=tool)
    assert [(loop.name, loop.ii) for loop in found.loops] == [("rows", 4)]


def test_what_is_too_much_to_unroll_again_is_left_as_it_is(tmp_path, monkeypatch):
    optimise = compiler.optimise

    def limited(*arguments, **how):
        if how.get("in_turn"):
            raise KernelBuildError("unrolling makes more code than opt can take", "k")
        return optimise(*arguments, **how)

    monkeypatch.setattr(compiler, "optimise", limited)
    (tmp_path / "k.cpp").write_text(STAIRS)
    found = estimate(tmp_path / "k.cpp", "k", tool="vivado")
    assert any("cannot be unrolled" in said for said in found.warnings)


ASKED = """
void k(const int x[8][8][32], int y[8][8]) {
    rows: for (int i = 0; i < 8; ++i) {
        columns: for (int j = 0; j < 8; ++j) {
FLATTEN
            int sum = 0;
            add: for (int n = 0; n < 32; ++n) {
#pragma HLS PIPELINE
                sum += x[i][j][n];
            }
            y[i][j] = sum;
        }
    }
}
"""


@pytest.mark.parametrize(
    ("asked", "loops"),
    [("", ["rows", "columns", "add"]), ("#pragma HLS LOOP_FLATTEN", ["rows_columns", "add"])],
)
def test_vivado_flattens_a_nest_around_a_pipeline_where_it_is_asked(
    tmp_path: Path, asked: str, loops: list[str]
) -> None:
    source = tmp_path / "k.cpp"
    source.write_text(ASKED.replace("FLATTEN", asked))
    found = estimate(source, "k", tool="vivado-2019.2")
    assert [loop.name for loop in found.loops] == loops
    assert found.loops[0].trip_count == (64 if asked else 8,) * 2


BETWEEN = """
void k(const int x[64][64], int y[64][64]) {
    rows: for (int i = 0; i < 64; ++i) {
        int sum = 0;
        add: for (int j = 0; j < 64; ++j) {
#pragma HLS PIPELINE
            sum += x[i][j];
        }
        REST
    }
}
"""


@pytest.mark.parametrize(
    ("rest", "loops"),
    [
        ("y[i][0] = sum;", ["rows_add"]),
        (
            "for (int j = 0; j < 4; ++j) {\n#pragma HLS UNROLL\n y[i][j] = sum + j; }",
            ["rows", "add"],
        ),
    ],
)
def test_a_loop_beside_the_pipeline_keeps_the_nest_though_it_is_unrolled(
    tmp_path: Path, rest: str, loops: list[str]
) -> None:
    found = estimate_of(tmp_path, BETWEEN.replace("REST", rest), "vitis")
    assert [loop.name for loop in found.loops] == loops


def test_what_is_in_a_loop_that_runs_once_keeps_its_pipeline(tmp_path: Path) -> None:
    """Nothing is left of the loop itself; the loop around it is no pipeline for that."""
    text = """
void k(const int in[75], const int b[20][75], int out[20], int turns, int rows) {
    int a[1][75];
    turn: for (int t = 0; t < turns; t++) {
        for (int i = 0; i < 1; i++)
            fill: for (int j = 0; j < 75; j++) {
#pragma HLS PIPELINE II=1
                a[i][j] = in[j] + t;
            }
        for (int i = 0; i < 1; i++)
            row: for (int r = 0; r < rows; r++) {
                int sum = 0;
                add: for (int j = 0; j < 75; j++) {
#pragma HLS PIPELINE II=1
                    sum += a[i][j] * b[r][j];
                }
                out[r] = sum;
            }
    }
}
"""
    found = estimate_of(tmp_path, text, "vitis-2023.2")
    assert [(one.name, one.ii) for one in found.loops] == [
        ("turn", None), ("fill", 1), ("row_add", 1),
    ]  # fmt: skip
    assert not found.warnings


def test_a_nest_around_pipelines_ends_at_the_product_of_its_bounds(tmp_path: Path) -> None:
    """That product is a multiplier of 32 bits by 32 where no bound is a number."""
    text = """
void k(const int in[64], int out[64], unsigned rows, unsigned columns) {
    int a[32];
    for (unsigned y = 0; y < rows; y++)
        for (unsigned x = 0; x < columns; x++) {
            fill: for (int i = 0; i < 32; i++) {
#pragma HLS PIPELINE
                a[i] = in[i] + x;
            }
            drain: for (int i = 0; i < 32; i++) {
#pragma HLS PIPELINE
                out[i] = a[i] + y;
            }
        }
}
"""
    assert estimate_of(tmp_path, text, "vitis-2023.2").resources["DSP"] == 4
    assert estimate_of(tmp_path, text, "vivado-2018.3").resources["DSP"] == 0


def test_a_stream_leaves_static_variables_as_they_are(tmp_path: Path) -> None:
    """A static bound is the same in each turn of a nest that reads a stream: one pipeline."""
    text = """
#include <ap_int.h>
#include <hls_stream.h>
struct beat { ap_int<32> data; ap_uint<1> last; };
void k(hls::stream<beat>& in, hls::stream<beat>& out, unsigned rows) {
    static unsigned columns;
    beat first = in.read();
    if (first.data) {
        columns = in.read().data;
    } else {
        row: for (unsigned y = 0; y < rows; y++)
            column: for (unsigned x = 0; x < columns; x++) {
#pragma HLS PIPELINE
                beat one = in.read();
                one.last = y == rows - 1;
                out.write(one);
            }
    }
}
"""
    found = estimate_of(tmp_path, text, "vitis-2023.2")
    assert [one.name for one in found.loops] == ["row_column"]


BY_ROWS = """
void k(const int x[256], int y[16][16]) {
    int rows[16][16];
RESHAPE
    fill: for (int i = 0; i < 16; ++i) {
        for (int j = 0; j < 16; ++j) rows[i][j] = x[i * 16 + j];
    }
    write: for (int i = 0; i < 16; ++i) {
        for (int j = 0; j < 16; ++j) y[i][j] = rows[i][j];
    }
}
"""


@pytest.mark.parametrize(
    ("reshape", "trips", "interval"),
    [
        ("", 256, 1),
        ("#pragma HLS ARRAY_RESHAPE variable=rows complete dim=2", 16, 8),
        ("#pragma HLS ARRAY_RESHAPE variable=rows complete dim=1", 256, 1),
    ],
)
def test_a_row_that_is_one_word_is_read_before_the_inner_loop(
    tmp_path: Path, reshape: str, trips: int, interval: int
) -> None:
    """So the nest is not perfect: its outer loop is the pipeline, with two writes in a cycle."""
    found = estimate_of(tmp_path, BY_ROWS.replace("RESHAPE", reshape), "vitis-2022.1")
    loop = next(one for one in found.loops if one.name.startswith("write"))
    assert (loop.trip_count, loop.ii) == ((trips, trips), interval)
