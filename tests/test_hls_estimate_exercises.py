"""Exercises of a first course: one pragma is put into a small loop, and the schedule moves.

What is expected is what schedules of Vivado HLS 2020.1 say of such loops.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.hls.estimator import Estimate, compiler

pytestmark = pytest.mark.skipif(compiler.tools() is not None, reason="clang-16 is not installed")

SCALED = """
void k(const int x[60], short a, int b, int y[60]) {
#pragma HLS ARRAY_PARTITION variable=x KIND_OF_X
#pragma HLS ARRAY_PARTITION variable=y KIND_OF_Y
    scale: for (int i = 0; i < 60; i++) {
        LOOP
        y[i] = x[i] * a + b;
    }
}
"""


def _scaled(folder: Path, x: str = "block factor=1", y: str = "block factor=1", loop: str = "",
            tool: str = "vivado-2020.1") -> int:  # fmt: skip
    text = SCALED.replace("KIND_OF_X", x).replace("KIND_OF_Y", y).replace("LOOP", loop)
    found = estimate_of(folder, text, tool, part="xc7k160tfbg484-2")
    depth = loop_of(found, "scale").iteration_latency
    assert depth is not None and depth[0] == depth[1] is not None
    return depth[1]


@pytest.mark.parametrize("tool", ["vivado-2020.1", "vitis-2023.1"])
def test_latency_asks_for_cycles_between_the_first_state_and_the_last(
    tmp_path: Path, tool: str
) -> None:
    off = "" if tool.startswith("vivado") else "\n#pragma HLS PIPELINE off"
    assert _scaled(tmp_path, loop=off, tool=tool) <= 4
    assert _scaled(tmp_path, loop=f"#pragma HLS LATENCY min=4{off}", tool=tool) == 5
    asked = "#pragma HLS LATENCY min=11\n#pragma HLS PIPELINE"
    assert _scaled(tmp_path, loop=asked, tool=tool) == 12


def test_two_banks_cost_a_selection_and_three_a_counter_of_remainders(tmp_path: Path) -> None:
    """No division: the bank of the element `i` is counted beside `i`."""
    whole = _scaled(tmp_path)
    assert _scaled(tmp_path, x="cyclic factor=2") == whole
    assert _scaled(tmp_path, y="cyclic factor=3") == whole
    # In a nest that is one loop the counter of the inner loop is selected first: a division.
    assert _scaled(tmp_path, y="cyclic factor=3", loop="y[(i + 1) % 60] = 0;") > whole + 5


SUMS = """
void k(const signed char a[6][6], const signed char b[6], short c[6]) {
    short sum = 0;
    outer: for (int i = 0; i < 6; i++)
        inner: for (int j = 0; j < 6; j++) {
            FLATTEN
            sum += a[i][j] * b[j];
            if (j == 5) {
                c[i] = sum;
                sum = 0;
            }
        }
}
"""


def _sums(folder: Path, flatten: str) -> Estimate:
    return estimate_of(folder, SUMS.replace("FLATTEN", flatten), "vivado-2020.1")


def test_loops_that_are_no_pipelines_are_flattened_where_it_is_asked_for(tmp_path: Path) -> None:
    apart, one = _sums(tmp_path, ""), _sums(tmp_path, "#pragma HLS LOOP_FLATTEN")
    assert [loop.name for loop in apart.loops] == ["outer", "inner"]
    assert [loop.name for loop in one.loops] == ["outer_inner"]
    depth = loop_of(one, "outer_inner").iteration_latency
    assert depth == loop_of(apart, "inner").iteration_latency and depth is not None
    assert one.latency == (36 * (depth[0] or 0) + 1, 36 * (depth[1] or 0) + 1)


BLURRED = """
void k(const int x[30], int y[30]) {
    blur: for (int i = 1; i < 29; i++) y[i] = (x[i - 1] + x[i] + x[i + 1]) OPERATOR 3;
}
"""


@pytest.mark.parametrize("tool", ["vivado-2020.1", "vitis-2023.1"])
def test_a_division_by_a_constant_is_a_product_and_a_remainder_none(
    tmp_path: Path, tool: str
) -> None:
    """Of 600 divisions by constants in schedules of both tools all are remainders."""
    divided, rest = (
        estimate_of(tmp_path, BLURRED.replace("OPERATOR", operator), tool) for operator in "/%"
    )
    assert divided.resources["DSP"] and not rest.resources["DSP"]
    ends = [loop_of(one, "blur").iteration_latency for one in (divided, rest)]
    assert ends[0] is not None and ends[1] is not None
    assert (ends[0][1] or 0) < 10 < 30 < (ends[1][1] or 0)
