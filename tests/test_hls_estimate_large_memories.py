"""``hls estimate``: memories of so many blocks that Vivado HLS takes more cycles for a word."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.hls.estimator import compiler

MISSING = compiler.tools()
pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(MISSING is not None, reason=MISSING or ""),
]

COPY = """
#define ROWS {rows}
void k(const int x[ROWS][1024], int y[ROWS][1024], int n) {{
    each: for (int i = 0; i < n; ++i) y[i][7] = x[i][5];
}}
"""
IN_A_STRUCT = """
struct Pair { char first[2000][1200], second[16]; };
void k(const struct Pair *x, struct Pair *y, int n) {
    each: for (int i = 0; i < n; ++i) y->MEMBER[i]AT = x->MEMBER[i]AT;
}
"""


@pytest.mark.parametrize(
    ("tool", "rows", "cycles"), [("vivado", 1024, 5), ("vivado", 512, 2), ("vitis", 1024, 2)]
)
def test_words_of_a_large_memory_take_more_cycles(
    tmp_path: Path, tool: str, rows: int, cycles: int
) -> None:
    """A read of four states and a write of two; 16 Mbit are not large, nor are any in Vitis HLS."""
    found = loop_of(estimate_of(tmp_path, COPY.format(rows=rows), tool), "each")
    assert found.iteration_latency == (cycles, cycles)


@pytest.mark.parametrize(("member", "at", "cycles"), [("first", "[3]", 5), ("second", "", 2)])
def test_an_array_in_a_struct_is_a_memory_of_its_own_size(
    tmp_path: Path, member: str, at: str, cycles: int
) -> None:
    """Words beside a large array in a struct take no longer."""
    text = IN_A_STRUCT.replace("MEMBER", member).replace("AT", at)
    found = loop_of(estimate_of(tmp_path, text, "vivado"), "each")
    assert found.iteration_latency == (cycles, cycles)
