"""Recurrences that a tool keeps in one cycle, though they miss the clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from pynq_torch.hls import Estimate, estimate
from pynq_torch.hls.estimator import compiler

pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(compiler.tools() is not None, reason=compiler.tools() or ""),
]

TURNS = """
#include <ap_fixed.h>
typedef ap_fixed<12, 2> number;
void k(number angle, number &right, number &up) {
    number x = 0.5, y = 0, scale = 1;
    turns: for (int i = 0; i < 10; ++i) {
#pragma HLS PIPELINE
        number across = y * scale, along = x * scale;
        if (angle < 0) {
            x = x + across;
            y = y - along;
            angle = angle + scale;
        } else {
            x = x - across;
            y = y + along;
            angle = angle - scale;
        }
        scale = scale >> 1;
    }
    right = x;
    up = y;
}
"""
SUMS = """
void k(const char a[64], const char b[64], const unsigned char at[64], short sums[256]) {
    adds: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        sums[at[i]] += a[i] * b[i];
    }
}
"""


def _of(folder: Path, text: str, tool: str, clock: float) -> Estimate:
    source = folder / "k.cpp"
    source.write_text(text)
    return estimate(source, "k", tool=tool, clock=clock)


def test_values_that_turn_into_each_other_are_one_recurrence(tmp_path: Path) -> None:
    """A product and a sum take more than a cycle of 10 ns; Vivado HLS has II=1 all the same."""
    found = _of(tmp_path, TURNS, "vivado-2019.2", 8)
    assert found.loops[-1].ii == 1
    assert any("misses the clock" in one for one in found.warnings)
    assert _of(tmp_path, TURNS, "vitis-2022.1", 8).loops[-1].ii != 1


def test_a_word_is_read_changed_and_written_back_at_any_clock(tmp_path: Path) -> None:
    for clock in (10, 5, 4):
        found = _of(tmp_path, SUMS, "vivado-2017.4", clock)
        assert found.loops[-1].ii == 2
    assert any("misses the clock" in one for one in found.warnings)


def test_the_interval_that_is_kept_is_the_loop_s(tmp_path: Path) -> None:
    """It is no longer than an iteration, in the warning as in the table."""
    source = tmp_path / "k.cpp"
    source.write_text("""
void k(int a[32], int j, int k) {
    pass: for (int i = 0; i < 32; ++i) {
#pragma HLS PIPELINE
        int l = i ^ j;
        if (l > i) {
            bool up = (i & k) == 0;
            int x = a[i], y = a[l];
            if ((x > y) == up) { a[i] = y; a[l] = x; }
        }
    }
}
""")
    found = estimate(source, "k", tool="vivado-2019.1")
    assert any(f"keeps II={found.loops[0].ii} and misses" in one for one in found.warnings)


ROUNDS = """
void k(const unsigned words[64], unsigned state[4]) {
    unsigned a = state[0], b = state[1], c = state[2], d = state[3];
    rounds: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE ASKED
        unsigned sum = d + (b ^ (b >> 6) ^ (b >> 11)) + ((b & c) ^ (~b & d)) + words[i];
        d = c;
        c = b;
        b = a + sum;
        a = sum + (a ^ (a >> 2)) + (b & c);
    }
    state[0] = a;
    state[1] = b;
    state[2] = c;
    state[3] = d;
}
"""


@pytest.mark.parametrize(("asked", "interval"), [("II=1", 1), ("", 2)])
def test_vitis_hls_keeps_an_interval_of_1_that_is_asked_for(
    tmp_path: Path, asked: str, interval: int
) -> None:
    """Rounds of sums: with II=1 by name they are in one cycle and miss the clock."""
    found = _of(tmp_path, ROUNDS.replace("ASKED", asked), "vitis-2022.1", 7)
    [loop] = [one for one in found.loops if one.name == "rounds"]
    assert loop.ii == interval
    assert (loop.iteration_latency == (2, 2)) is (interval == 1)
    assert any("Vitis HLS keeps II=1" in one for one in found.warnings) is (interval == 1)
