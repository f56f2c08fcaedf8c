"""``hls estimate``: what keeps processes of DATAFLOW from running side by side."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of

from pynq_torch import hls
from pynq_torch.hls.estimator import Estimate, compiler

MISSING = compiler.tools()
pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(MISSING is not None, reason=MISSING or ""),
]

CALLS = """
static void fill(const int a[64], int t[64]) { l: for (int i = 0; i < 64; ++i) t[i] = a[i]; }
static void take(const int t[64], int b[64]) {
#pragma HLS INLINE off
    l: for (int i = 0; i < 64; ++i) b[i] = 3 * t[i];
}
static void sums(int t[64]) { l: for (int i = 1; i < 64; ++i) t[i] += t[i - 1]; }
static void both(const int t[64], int b[64], int s[64]) {
    l: for (int i = 0; i < 64; ++i) { b[i] = 3 * t[i]; s[i] = t[i]; }
}
static void from(const int a[64], const int s[64], int t[64]) {
    l: for (int i = 0; i < 64; ++i) t[i] = a[i] + s[i];
}
static void inner(const int t[64], int b[64]) {
#pragma HLS INLINE off
    take(t, b);
}
void k(const int a[64], int b[64], int c[64], int n) {
#pragma HLS DATAFLOW
    int t[64], u[64];
    static int s[64];
    fill(a, t);
    REST
}
"""
LOOPS = """
void k(const int a[64], int b[64], int c[64], int n) {
#pragma HLS DATAFLOW
    int t[64];
    fill: for (int i = 0; i < 64; ++i) t[i] = a[i];
    take: for (int i = 0; i < 64; ++i) { STOP b[i] = 3 * t[i]; }
    MORE
}
"""


def _calls(folder: Path, rest: str) -> Estimate:
    return estimate_of(folder, CALLS.replace("REST", rest), "vitis")


def _in_turn(found: Estimate) -> bool:
    """Whether no process begins before the one in front of it has ended, in any call."""
    assert found.latency[1] is not None
    assert found.interval[1] is not None
    times = [one for _, one in found.stages]
    ends = [begin + (time or 0) for begin, time in zip(found.begins, times, strict=True)]
    apart = all(end < begin for end, begin in zip(ends, found.begins[1:], strict=False))
    return apart and found.interval[1] > found.latency[1]


@pytest.mark.parametrize(
    "rest",
    [
        "take(t, b);",
        "take(t, u); take(u, b);",
        "inner(t, b);",  # what hands an array on reads it, and writes it not
        "take(t, b); take(a, c);",  # an argument may have several readers
        "both(t, u, c); take(u, b);",
    ],
)
def test_canonical_processes_overlap(tmp_path: Path, rest: str) -> None:
    found = _calls(tmp_path, rest)
    assert not found.warnings and not _in_turn(found)
    assert (found.interval[1] or 0) < 80


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("take(t, b); take(t, c);", "'t' is read by 2 calls of take: the tool reports this"),
        ("take(t, b); inner(t, c);", "'t' is read by take and inner: the tool reports this"),
        ("sums(t); take(t, b);", "'t' is written by fill and sums: the tool reports this"),
        ("if (n > 3) take(t, b);", "take is in a branch: the tool reports this"),
        ("if (n > 3) take(t, b); else fill(a, b);", "take is in a branch: the tool reports this"),
    ],
)
def test_processes_that_share_an_array_wrongly_run_one_after_another(
    tmp_path: Path, rest: str, said: str
) -> None:
    found = _calls(tmp_path, rest)
    assert any(f"k.cpp:23: DATAFLOW: {said}" in warning for warning in found.warnings)
    if "else" not in rest:
        assert len(found.warnings) == 1 and _in_turn(found)


def test_feedback_between_processes_is_said(tmp_path: Path) -> None:
    text = CALLS.replace("    fill(a, t);\n", "").replace("REST", "from(a, s, t); both(t, b, s);")
    found = estimate_of(tmp_path, text, "vitis")
    (said,) = found.warnings
    assert "k.cpp:22: DATAFLOW: 's' is read by from and written by both behind it" in said
    assert "which is feedback" in said and _in_turn(found)


@pytest.mark.parametrize(
    ("stop", "more", "said"),
    [
        ("", "", ""),
        ("if (t[i] > n) break;", "", "6: DATAFLOW: take is a loop that a `break` may end"),
        ("", "more: for (int i = 0; i < 64; ++i) c[i] = t[i];",
         "7: DATAFLOW: 't' is read by take and more"),
        ("", "more: for (int i = 0; i < 64; ++i) b[i] = a[i];",
         "7: DATAFLOW: 'b' is written by take and more"),
    ],
)  # fmt: skip
def test_loops_are_processes_too(tmp_path: Path, stop: str, more: str, said: str) -> None:
    found = estimate_of(tmp_path, LOOPS.replace("STOP", stop).replace("MORE", more), "vitis")
    assert len(found.warnings) == bool(said)
    assert all(f"k.cpp:{said}" in warning for warning in found.warnings)
    assert ((found.interval[1] or 0) < 80) == (not said)


def test_a_loop_of_dataflow_takes_as_long_as_its_processes_in_turn(tmp_path: Path) -> None:
    region = "#pragma HLS DATAFLOW\n    int t[64], u[64];\n"
    text = CALLS.replace(region, "").replace("    fill(a, t);\n", "")
    loop = f"flow: for (int j = 0; j < 8; ++j) {{\n{region} fill(a, t); take(t, b); LAST }}"
    text = text.replace("REST", loop)
    fine = estimate_of(tmp_path, text.replace("LAST", ""), "vitis")
    wrong = estimate_of(tmp_path, text.replace("LAST", "take(t, c);"), "vitis")
    assert not fine.warnings and (fine.latency[1] or 0) < 10 * 70
    assert "'t' is read by 2 calls of take" in wrong.warnings[0]
    assert (wrong.latency[1] or 0) > 8 * 3 * 64


# ---- arrays that are to be FIFOs ---------------------------------------------------------------

ORDER = """
static void fill(const int a[64], int t[64]) { l: for (int i = 0; i < 64; ++i) WRITE; }
static void take(const int t[64], int b[64]) { l: for (int i = 0; i < 64; ++i) READ; }
void k(const int a[64], int b[64]) {
#pragma HLS DATAFLOW
    int t[64];
#pragma HLS STREAM variable=t depth=2
    fill(a, t);
    take(t, b);
}
"""


@pytest.mark.parametrize(
    ("write", "read", "why"),
    [
        ("t[i] = a[i]", "b[i] = t[i]", ""),
        ("t[63 - i] = a[i]", "b[i] = t[63 - i]", ""),
        ("t[i] = a[i]", "b[i] = t[i ^ b[0]]", ""),  # the tool cannot know, and goes on
        ("t[i] = a[i]", "b[i] = t[i] * t[i]", ""),
        ("t[i] = a[i]", "b[i] = t[63 - i]", "take reads in another order than fill writes"),
        ("t[i / 8 + i % 8 * 8] = a[i]", "b[i] = t[i]", ""),
        ("t[i] = a[i]", "b[i] = t[i] + t[5]", "take reads an element several times"),
        ("t[i] = a[i] + t[0]", "b[i] = t[i]", "fill reads back what it writes"),
    ],
)
def test_a_fifo_is_read_in_the_order_of_its_writes(
    tmp_path: Path, write: str, read: str, why: str
) -> None:
    text = ORDER.replace("WRITE", write).replace("READ", read)
    found = estimate_of(tmp_path, text, "vitis")
    assert (found.begins[1] == 3) == (not why)
    assert len(found.warnings) == bool(why)
    for warning in found.warnings:
        assert f"k.cpp:7: STREAM of t is refused: {why}" in warning
        assert "ping-pong memory" in warning


@pytest.mark.parametrize("off", ["off", "off=true", "type=pipo", "type=shared"])
def test_stream_off_leaves_an_array_a_memory(tmp_path: Path, off: str) -> None:
    text = ORDER.replace("WRITE", "t[i] = a[i]").replace("READ", "b[i] = t[i]")
    assert estimate_of(tmp_path, text, "vitis").begins[1] == 3
    found = estimate_of(tmp_path, text.replace("depth=2", off), "vitis")
    assert found.begins[1] > 64 and not found.warnings


def test_lint_takes_what_an_estimate_says_of_directives(tmp_path: Path) -> None:
    """Once for each line of a region, and nothing of what the estimate itself leaves out."""
    source = tmp_path / "k.cpp"
    source.write_text(ORDER.replace("WRITE", "t[i] = a[i]").replace("READ", "b[i] = t[63 - i]"))
    assert [(one.line, one.rule) for one in hls.lint(source, "k")] == [(7, "pragma")]
    assert hls.lint(source, "k", schedule=False) == []
    source.write_text(CALLS.replace("REST", "take(t, b); take(t, c);"))
    found = [(one.line, one.rule) for one in hls.lint(source, "k") if one.line == 23]
    assert found == [(23, "dataflow")]
    source.write_text(LOOPS.replace("STOP", "if (t[i] > n) break;").replace("MORE", ""))
    assert "dataflow" in {one.rule for one in hls.lint(source, "k") if one.line == 6}


LARGE = """
static void fill(const int a[2048], int t[2048]) {
    l: for (int i = 0; i < 2048; ++i) t[i] = a[i];
}
static void take(const int t[2048], int b[2048]) {
    l: for (int i = 0; i < 2048; ++i) b[i] = t[WHERE];
}
void k(const int a[2048], int b[2048]) {
#pragma HLS DATAFLOW
    int t[2048];
STREAM
    fill(a, t);
    take(t, b);
}
"""
STRUCT = """
struct Picture { int red[2048], blue[2048]; };
void fill(const int a[2048], Picture *t) {
#pragma HLS INLINE off
    l: for (int i = 0; i < 2048; ++i) { t->red[i] = a[i]; t->blue[i] = 2 * a[i]; }
}
void take(Picture *t, int b[2048]) {
#pragma HLS INLINE off
    l: for (int i = 0; i < 2048; ++i) b[i] = t->red[i] + t->blue[i];
}
void k(const int a[2048], int b[2048]) {
#pragma HLS DATAFLOW
    Picture t;
    fill(a, &t);
    take(&t, b);
}
"""
FIFO, PLAIN = "config_dataflow -default_channel fifo -fifo_depth 2", LARGE.replace("WHERE", "i")


@pytest.mark.parametrize(
    ("text", "said", "is_fifo", "blocks"),
    [
        (PLAIN.replace("STREAM", ""), "config_dataflow -fifo_depth 2", False, 4),
        (PLAIN.replace("STREAM", ""), "config_dataflow -default_channel pingpong", False, 4),
        (PLAIN.replace("STREAM", ""), FIFO, True, 0),
        (PLAIN.replace("STREAM", ""), "config_dataflow -default_channel fifo", True, 4),
        (PLAIN.replace("STREAM", "#pragma HLS STREAM variable=t off"), FIFO, False, 4),
        (LARGE.replace("WHERE", "2047 - i").replace("STREAM", ""), FIFO, False, 4),
        (STRUCT, "", False, 8),
        (STRUCT, FIFO, True, 0),
    ],
)
@pytest.mark.parametrize("file", ["script.tcl", "directives.tcl"])
def test_arrays_between_processes_are_fifos_where_a_script_says_so(
    tmp_path: Path, text: str, said: str, is_fifo: bool, blocks: int, file: str
) -> None:
    source, folder = tmp_path / "k.cpp", tmp_path / "solution1"
    folder.mkdir()
    source.write_text(text)
    (folder / "directives.tcl").write_text("set_directive_pipeline fill/l\n")
    (folder / file).write_text(f"set_directive_pipeline fill/l\n{said}\n")
    found = hls.estimate(source, "k", directives=folder / "directives.tcl", tool="vivado-2018.1")
    assert (found.begins[1] == 3) == is_fifo and found.resources["BRAM_18K"] == blocks
    refused = [one for one in found.warnings if "write STREAM off" in one]
    assert len(refused) == ("2047" in text and "- i" in text)
    assert all(f"{file}:2: STREAM of t is refused" in one for one in refused)


# ---- scalars that one process hands to the next ------------------------------------------------

SCALAR = """
#include <hls_stream.h>
static void most(const int a[64], int t[64], int& m) {
    int b = 0;
    l: for (int i = 0; i < 64; ++i) { t[i] = a[i]; if (a[i] > b) b = a[i]; }
    m = b;
}
static int sum(const int a[64], int t[64]) {
    int s = 0;
    l: for (int i = 0; i < 64; ++i) { t[i] = a[i]; s += a[i]; }
    return s;
}
static void late(const int a[64], int t[64], hls::stream<int>& m) {
    int b = 0;
    l: for (int i = 0; i < 64; ++i) { t[i] = a[i]; if (a[i] > b) b = a[i]; }
    m.write(b);
}
static void early(const int a[64], int t[64], hls::stream<int>& m) {
    m.write(a[0]);
    l: for (int i = 0; i < 64; ++i) t[i] = a[i];
}
static void less(const int t[64], int m, int b[64]) {
    l: for (int i = 0; i < 64; ++i) b[i] = t[i] - m;
}
static void first(const int t[64], hls::stream<int>& s, int b[64]) {
    int m = s.read();
    l: for (int i = 0; i < 64; ++i) b[i] = t[i] - m;
}
static void last(const int t[64], hls::stream<int>& s, int b[65]) {
    l: for (int i = 0; i < 64; ++i) b[i] = t[i];
    b[64] = s.read();
}
void k(const int a[64], const int c[64], int b[65], int d[64], int n) {
#pragma HLS DATAFLOW
    int t[64], m;
    hls::stream<int> q;
#pragma HLS STREAM variable=t depth=64
    REST
}
"""


@pytest.mark.parametrize(
    ("rest", "waits"),
    [
        ("most(a, d, m); less(c, m, b);", True),  # the scalar is all that they share
        ("most(a, t, m); less(t, m, b);", True),  # as late as it is, the FIFO is no help
        ("less(c, sum(a, d), b);", True),
        ("int s = sum(a, t); less(t, 3 * s + n, b);", True),  # what is computed from it, too
        ("l: for (int i = 0; i < 64; ++i) { t[i] = a[i]; n += a[i]; } less(t, n, b);", True),
        ("sum(a, d); less(c, n, b);", False),
        ("most(a, t, m); less(t, n, b);", False),
        ("late(a, t, q); first(t, q, b);", True),
        ("late(a, t, q); last(t, q, b);", False),
        ("early(a, t, q); first(t, q, b);", False),
    ],
)
def test_a_process_waits_for_the_scalar_of_another_one(
    tmp_path: Path, rest: str, waits: bool
) -> None:
    found = estimate_of(tmp_path, SCALAR.replace("REST", rest), "vitis")
    (_, time), _ = found.stages
    assert time is not None and len(found.begins) == 2
    assert (found.begins[1] == time + 1) == waits
    assert waits or found.begins[1] in (0, 3)
    assert found.interval[1] is not None and found.interval[1] < 75  # runs overlap all the same


KEPT = """
void k(const int x[32], int y[64]) {
#pragma HLS DATAFLOW
    int p[4];
    pack: for (int i = 0; i < 32; ++i) {
PIPELINE
        for (int j = 0; j < 4; ++j) {
#pragma HLS UNROLL
            p[j] = (i == 0 ? 0 : p[j]) | (x[i] & (1 << j)) << i;
        }
    }
    use: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        y[i] = p[i % 4];
    }
}
"""


@pytest.mark.parametrize("pragma", ["#pragma HLS PIPELINE", "#pragma HLS PIPELINE off"])
def test_a_process_waits_for_what_another_kept_in_registers(tmp_path: Path, pragma: str) -> None:
    """Its elements are written behind the loop, in code between the processes."""
    found = estimate_of(tmp_path, KEPT.replace("PIPELINE", pragma, 1), "vitis")
    (_, time), _ = found.stages
    assert time is not None and found.begins == (0, time + 1)
