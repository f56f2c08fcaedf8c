"""``hls estimate``: flip-flops and multiplexers of arrays that are registers."""

from __future__ import annotations

from pathlib import Path

import pytest

from pynq_torch.hls import estimate
from pynq_torch.hls.estimator import compiler

MISSING = compiler.tools()
pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(MISSING is not None, reason=MISSING or ""),
]

SCATTER = """
void k(const int x[1024], const short p[1024], int y[1024]) {
    int t[512];
#pragma HLS ARRAY_PARTITION variable=t complete
    l: for (int i = 0; i < 1024; ++i) t[p[i] & 511] = x[i];
    m: for (int i = 0; i < 1024; ++i) y[i] = t[p[i] & 511];
}
"""
TWO_FUNCTIONS = """
static int t[64];
void put(const int x[64]) {
#pragma HLS INLINE off
#pragma HLS ARRAY_PARTITION variable=t complete
    l: for (int i = 0; i < 64; ++i) t[i] = x[i];
}
void get(int y[64]) {
#pragma HLS INLINE off
#pragma HLS ARRAY_PARTITION variable=t complete
    m: for (int i = 0; i < 64; ++i) y[i] = t[i];
}
void k(const int x[64], int y[64]) { put(x); get(y); }
"""
TABLE = """
void k(const short p[1024], int y[1024]) {
    static const int t[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
#pragma HLS ARRAY_PARTITION variable=t complete
    l: for (int i = 0; i < 1024; ++i) y[i] = t[p[i] & 15];
}
"""
DISSOLVED = """
void k(const int x[1024], int y[1024]) {
    l: for (int i = 0; i < 1024; ++i) {
#pragma HLS PIPELINE
        int t[8];
#pragma HLS ARRAY_PARTITION variable=t complete
        for (int j = 0; j < 8; ++j) t[j] = x[i] + j;
        y[i] = t[0] ^ t[7];
    }
}
"""
ROWS = """
void k(const int a[32][32], int y[32]) {
#pragma HLS ARRAY_PARTITION variable=a complete dim=DIM
    l: for (int i = 0; i < 32; ++i) {
#pragma HLS PIPELINE
        int s = 0;
        for (int j = 0; j < 32; ++j) s += a[i][j];
        y[i] = s;
    }
}
"""
LINES = """
void k(const unsigned char in[4096], unsigned char out[4096]) {
    static unsigned char lines[2][64];
#pragma HLS ARRAY_PARTITION variable=lines complete dim=2
    r: for (int y = 0; y < 64; ++y) {
        c: for (int x = 0; x < 64; ++x) {
#pragma HLS PIPELINE
            out[64 * y + x] = lines[0][x] ^ lines[1][x];
            lines[0][x] = lines[1][x];
            lines[1][x] = in[64 * y + x];
        }
    }
}
"""


def _logic(tmp_path: Path, text: str, tool: str = "vitis") -> tuple[int, int]:
    """Return the LUTs and flip-flops of a kernel."""
    source = tmp_path / "k.cpp"
    source.write_text(text, encoding="utf-8")
    found = estimate(source, "k", tool=tool).resources
    assert found["LUT"] is not None
    assert found["FF"] is not None
    return found["LUT"], found["FF"]


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_an_array_in_registers_has_a_flip_flop_for_each_bit(tmp_path: Path, tool: str) -> None:
    _, flip_flops = _logic(tmp_path, SCATTER, tool)
    _, of_memory = _logic(tmp_path, SCATTER.replace("ARRAY_PARTITION", "unknown"), tool)
    assert 512 * 32 <= flip_flops - of_memory + 200 <= 512 * 32 + 400


def test_registers_that_two_functions_share_are_there_once(tmp_path: Path) -> None:
    _, flip_flops = _logic(tmp_path, TWO_FUNCTIONS)
    assert 64 * 32 <= flip_flops <= 64 * 32 + 500


@pytest.mark.parametrize("text", [TABLE, DISSOLVED])
def test_what_is_no_array_of_registers_has_none(tmp_path: Path, text: str) -> None:
    """A table of constants is logic; what unrolling makes values of is counted as those."""
    assert _logic(tmp_path, text)[1] < 100


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_an_index_chooses_only_where_it_varies(tmp_path: Path, tool: str) -> None:
    """Each of 32 reads has its own column: it takes one of 32 registers, not of 1,024."""
    whole, _ = _logic(tmp_path, ROWS.replace("DIM", "0"), tool)
    columns, _ = _logic(tmp_path, ROWS.replace("DIM", "2"), tool)
    inputs = 32 * 32 * 32
    assert 0.2 * inputs <= whole - columns <= 0.4 * inputs


def test_both_tools_choose_among_the_same_registers(tmp_path: Path) -> None:
    """Two rows of 64 registers each, though a directive cuts the columns alone."""
    vitis, vivado = (_logic(tmp_path, LINES, tool)[0] for tool in ("vitis", "vivado"))
    assert abs(vitis - vivado) <= 50
    assert vitis >= 0.25 * 4 * 64 * 8
