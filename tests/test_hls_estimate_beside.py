"""``hls estimate``: modules side by side, loops that run once, and memory that is far away."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of

from pynq_torch.hls import estimate
from pynq_torch.hls.estimator import compiler
from pynq_torch.hls.estimator.result import Estimate

MISSING = compiler.tools()
pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(MISSING is not None, reason=MISSING or ""),
]

PAIRS = """
void pairs(const int a[256], const int b[256], int x[256], int y[256]) {
    first: for (int i = 0; i < 256; ++i) {
#pragma HLS PIPELINE
        x[i] = a[i] + 1;
    }
    second: for (int i = 0; i < 256; ++i) {
#pragma HLS PIPELINE
        y[i] = b[i] + 2;
    }
    third: for (int i = 0; i < 256; ++i) {
#pragma HLS PIPELINE
        MORE;
    }
}
"""
COPIES = """
#include <string.h>
void copies(const int *a, const int *b, int *c) {
#pragma HLS INTERFACE m_axi port=a bundle=one
#pragma HLS INTERFACE m_axi port=b bundle=two
#pragma HLS INTERFACE m_axi port=c bundle=one OPTION
    int x[1024], y[1024], z[1024];
    memcpy(x, a, sizeof(x));
    memcpy(y, b, sizeof(y));
    sum: for (int i = 0; i < 1024; ++i) z[i] = x[i] + y[i];
    memcpy(c, z, sizeof(z));
}
"""
GUARDED = """
void sums(const int *a, int *sum, int least) {
#pragma HLS INTERFACE m_axi port=a
    int all = 0;
    each: for (int i = 0; i < 64; ++i) { GUARDED }
    *sum = all;
}
"""
ONCE = """
const int ONE = 1;
void scale(const int x[784], int y[784]) {
    outer: for (int i = 0; i < 28; ++i)
        row: for (int j = 0; j < 27; ++j)
            once: for (int k = BEGIN; k < END; ++k) y[28 * i + k] = 3 * x[28 * i + k];
}
"""


def estimated(
    folder: Path, text: str, tool: str = "vitis", part: str = "xc7z020clg400-1"
) -> Estimate:
    source = folder / "kernel.cpp"
    source.write_text(text)
    return estimate(source, text.split("void ")[1].split("(")[0], tool=tool, part=part)


@pytest.mark.parametrize(
    ("more", "tool", "rounds"),
    [
        ("y[i] += x[i]", "vitis", 2),
        ("x[i] += i", "vitis", 2),
        ("y[i] = a[i]", "vitis", 2),
        ("y[i] += x[i]", "vivado", 3),
    ],
)
def test_loops_that_meet_in_nothing_run_side_by_side(
    tmp_path: Path, more: str, tool: str, rounds: int
) -> None:
    """The third loop writes what one before it writes or reads, or reads the same memory."""
    most = estimated(tmp_path, PAIRS.replace("MORE", more), tool).latency[1] or 0
    assert round(most / 256) == rounds


def test_copies_from_two_buses_run_side_by_side(tmp_path: Path) -> None:
    apart = estimated(tmp_path, COPIES.replace("OPTION", "")).latency[1] or 0
    shared = COPIES.replace("OPTION", "").replace("=two", "=one")
    assert (
        round(apart / 1024) == 3
        and round((estimated(tmp_path, shared).latency[1] or 0) / 1024) == 4
    )


def test_a_bus_may_be_far_away(tmp_path: Path) -> None:
    """INTERFACE says so, or a script; kernels for cards are made in Vitis's flow."""
    near = estimated(tmp_path, COPIES.replace("OPTION", "")).latency[1] or 0
    told = estimated(tmp_path, COPIES.replace("OPTION", "latency=33")).latency[1]
    assert told == near + 32
    part = "xcu250-figd2104-2L-e"
    card = estimated(tmp_path, COPIES.replace("OPTION", ""), part=part).latency[1] or 0
    (tmp_path / "run.tcl").write_text("open_solution -flow_target vitis solution\n")
    flow = estimated(tmp_path, COPIES.replace("OPTION", ""))
    assert flow.latency[1] == near + 2 * 63 and card > near + 100
    (tmp_path / "script.tcl").write_text("config_interface -m_axi_latency 11\n")
    assert estimated(tmp_path, COPIES.replace("OPTION", "")).latency[1] == near + 2 * 10


@pytest.mark.parametrize(
    ("begin", "end", "interval"), [("0", "1", 1), ("0", "ONE", 1), ("j", "j + 1", None)]
)
def test_a_loop_that_runs_once_is_none(
    tmp_path: Path, begin: str, end: str, interval: int | None
) -> None:
    """What is around it is the innermost loop, which Vitis HLS pipelines by itself."""
    text = ONCE.replace("BEGIN", begin).replace("END", end)
    loop = estimated(tmp_path, text).loops[-1]
    assert loop.ii == interval


@pytest.mark.parametrize(
    ("guard", "alone"),
    [
        ("if (least < i) all += a[i];", True),
        ("if (i > 2) all += a[i];", False),
        ("if (least < i) all += a[i]; else all -= a[i];", False),
    ],
)
def test_a_read_that_the_data_may_leave_out_is_no_burst(
    tmp_path: Path, guard: str, alone: bool
) -> None:
    """It waits for its own request: a state for the word of a burst, eight for one alone."""
    depths = [
        estimated(tmp_path, GUARDED.replace("GUARDED", one)).loops[0].iteration_latency[1] or 0
        for one in ("all += a[i];", guard)
    ]
    assert (depths[1] - depths[0] == 5) == alone


@pytest.mark.parametrize(
    ("line", "interval"),
    [
        ("config_compile -name_max_length 80 -pipeline_loops 0", None),
        ("# config_compile -pipeline_loops 0", 1),
        ("config_compile -pipeline_loops 64", 1),
    ],
)
def test_a_script_may_forbid_pipelines_unasked(
    tmp_path: Path, line: str, interval: int | None
) -> None:
    """Only the loops with PIPELINE are pipelines then, and short ones are not unrolled."""
    (tmp_path / "script.tcl").write_text(f"open_project k\n{line}\ncsynth_design\n")
    text = PAIRS.replace("#pragma HLS PIPELINE\n        y[i]", "y[i]").replace("MORE", "y[i] = 1")
    assert [loop.ii for loop in estimated(tmp_path, text).loops] == [1, interval, 1]


@pytest.mark.parametrize(
    ("line", "mode", "buses"),
    [
        ("open_solution -flow_target vitis s", "", True),
        (
            "open_solution -flow_target vitis s",
            "#pragma HLS INTERFACE ap_memory port=a storage_type=ram_2p",
            False,
        ),
        ("open_solution -flow_target vivado s", "", False),
    ],
)
def test_arguments_are_buses_in_the_flow_of_vitis(
    tmp_path: Path, line: str, mode: str, buses: bool
) -> None:
    """Unless INTERFACE says something else; a bus of its own bundle has one read in a cycle."""
    (tmp_path / "script.tcl").write_text(line)
    text = f"""
void sums(const int a[64], int *all, int n) {{
{mode}
    for (int i = 0; i < 62; ++i) {{
#pragma HLS PIPELINE
        all[i] = a[i] + a[i + 1] + n;
    }}
}}
"""
    assert estimated(tmp_path, text).loops[0].ii == (2 if buses else 1)


TWO = """
void k(const int a[64], const int b[64], int c[64], int d[64]) {
    one: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        c[i] = a[i] + 1;
    }
    two: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        d[i] = b[i] + 1;
    }
}
"""


@pytest.mark.parametrize(("tool", "beside"), [("vitis-2020.2", False), ("vitis-2021.1", True)])
def test_vitis_hls_makes_modules_of_loops_since_2021(
    tmp_path: Path, tool: str, beside: bool
) -> None:
    """Before, pipelines stand one behind another in the states of what is around them."""
    latency = estimate_of(tmp_path, TWO, tool).latency[1]
    assert latency is not None and (latency < 80 if beside else 130 < latency < 136)
