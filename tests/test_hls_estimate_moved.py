"""What leaves a loop unasked, scalars behind AXI4-Lite, and in which state modules begin."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.hls.estimator import compiler, estimate

pytestmark = pytest.mark.skipif(compiler.tools() is not None, reason="clang-16 is not installed")
VITIS = "vitis-2022.2"

PRODUCT = """
void k(int a, int b, int *y) {{
{ports}
    *y = a * b;
}}
"""
LITE = "\n".join(f"#pragma HLS INTERFACE s_axilite port={name}" for name in "aby")


def test_to_read_and_to_write_a_register_takes_a_part_of_a_cycle(tmp_path: Path) -> None:
    """Published: two registers are read, two stages multiply, and the result is written."""
    assert estimate_of(tmp_path, PRODUCT.format(ports=LITE), VITIS).latency == (3, 3)
    assert estimate_of(tmp_path, PRODUCT.format(ports=""), VITIS).latency == (1, 1)


LITE_LATE = """
static int next(int a) {
#pragma HLS INLINE off
    return a + 1;
}
void k(int a, int *y) {
#pragma HLS INTERFACE s_axilite port=a
    int b = next(3);
    *y = b * a;
}
"""


def test_registers_are_read_in_the_first_state(tmp_path: Path) -> None:
    """What follows a call finds them in registers."""
    plain = LITE_LATE.replace("#pragma HLS INTERFACE s_axilite port=a\n", "")
    late = estimate_of(tmp_path, LITE_LATE, VITIS).latency
    assert late == estimate_of(tmp_path, plain, VITIS).latency


#: Of the shape of three published reports: 21 cycles.
FIR = """
void k(int *y, int x) {
#pragma HLS INTERFACE s_axilite port=return
#pragma HLS INTERFACE s_axilite port=x
#pragma HLS INTERFACE s_axilite port=y
    int c[11] = {53, 0, -91, 0, 313, 500, 313, 0, -91, 0, 53};
    static int delay[11];
    int sum = 0;
    fir: for (int i = 10; i >= 0; i--) {
        if (i == 0) {
            sum += x * c[0];
            delay[0] = x;
        } else {
            delay[i] = delay[i - 1];
            sum += delay[i] * c[i];
        }
    }
    *y = sum;
}
"""


def test_a_product_of_one_branch_leaves_the_loop(tmp_path: Path) -> None:
    """It is there two states after the register, and the loop's module starts in the next."""
    found = estimate_of(tmp_path, FIR, VITIS)
    assert loop_of(found, "fir").latency == (14, 14)
    assert found.latency == (21, 21)


def test_a_sum_is_there_in_the_state_in_which_a_loop_starts(tmp_path: Path) -> None:
    """A product of several stages is there in the state before."""
    assert estimate_of(tmp_path, FIR.replace("x * c[0]", "(x + 77)"), VITIS).latency == (18, 18)


BESIDE = """
static void fir(const float c[32], const float z[32], float *y, float x) {
    float sum = 0;
    for (int i = 31; i >= 0; i--) {
        if (i == 0)
            sum += x * -1.0f;
        else
            sum += z[i] * c[i];
    }
    *y = sum;
}
void k(const float c[32], const float d[32], const float z[32], const float w[32],
       float a, float b, float *y) {
    float one, other;
    fir(c, z, &one, a);
    fir(d, w, &other, b);
    *y = one + other;
}
"""


def test_what_waits_for_no_loop_keeps_none_from_running_beside_another(tmp_path: Path) -> None:
    """The sign of `b` is changed in the first state, not behind the first loop."""
    found = estimate_of(tmp_path, BESIDE, VITIS)
    longest = max(loop.latency[1] or 0 for loop in found.loops)
    assert longest < (found.latency[1] or 0) < 1.2 * longest


def test_tables_that_a_project_lists_are_not_compiled(tmp_path: Path) -> None:
    """`add_files` takes what a source includes, too."""
    table = tmp_path / "table.txt"
    table.write_text("1, 2, 3, 4\n", encoding="utf-8")
    source = tmp_path / "k.cpp"
    source.write_text(
        'static const int c[] = {\n#include "table.txt"\n};\n'
        "void k(const int x[4], int y[4]) {\n"
        "    copy: for (int i = 0; i < 4; i++) y[i] = x[i] + c[i];\n}\n",
        encoding="utf-8",
    )
    assert loop_of(estimate(source, "k", sources=[table]), "copy").trip_count == (4, 4)


SWAP = """
void k(int a[64]) {
    swap: for (int i = 0; i < 63; i++) {
#pragma HLS PIPELINE off
        int one = a[i], other = a[i + 1];
        if (one > other) {
            a[i] = other;
            a[i + 1] = one;
        }
    }
}
"""


@pytest.mark.parametrize(
    ("tool", "states"), [(VITIS, 3), ("vivado-2019.1", 3), ("vivado-2017.4", 2)]
)
def test_a_write_waits_for_the_condition_of_its_branch(
    tmp_path: Path, tool: str, states: int
) -> None:
    """A pipeline of it is no slower than the states one after another; 2017.4 is published."""
    found = loop_of(estimate_of(tmp_path, SWAP, tool), "swap")
    assert found.iteration_latency[1] == states
    piped = loop_of(estimate_of(tmp_path, SWAP.replace(" off", ""), tool), "swap")
    assert (piped.ii or 0) <= 3


TRIANGLE = """
void k(const int x[64], int y[64]) {
    row: for (int i = 0; i < 64; i++) {
        int sum = 0;
        part: for (int j = 0; j <= i; j++) {
#pragma HLS UNROLL factor=4
            sum += x[j];
        }
        y[i] = sum;
    }
}
"""


@pytest.mark.parametrize("tool", [VITIS, "vivado-2019.1"])
def test_a_factor_divides_the_range_of_a_loop_that_depends_on_another(
    tmp_path: Path, tool: str
) -> None:
    found = estimate_of(tmp_path, TRIANGLE, tool)
    assert loop_of(found, "part").trip_count == (1, 16)
    assert None not in found.latency
    plain = estimate_of(tmp_path, TRIANGLE.replace("#pragma HLS UNROLL factor=4\n", ""), tool)
    assert loop_of(plain, "part").trip_count == (1, 64)
    asked = TRIANGLE.replace("factor=4", "factor=4\n#pragma HLS LOOP_TRIPCOUNT min=2 max=9")
    assert loop_of(estimate_of(tmp_path, asked, tool), "part").trip_count == (1, 3)
