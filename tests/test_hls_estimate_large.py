"""``hls estimate``: bodies of thousands of operations."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.errors import KernelBuildError
from pynq_torch.hls.estimator import compiler, effort, trees
from pynq_torch.hls.estimator.region import Region
from pynq_torch.hls.estimator.trees import without_large_trees

MISSING = compiler.tools()
pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(MISSING is not None, reason=MISSING or ""),
]

#: Reads 1,100 words twice, and writes another array in between; LLVM sees of 500 that they stay.
TWICE = """
void k(const int x[1100], int y[2]) {
#pragma HLS PIPELINE
    r: for (int r = 0; r < 2; ++r) {
        int s = r;
        w: for (int i = 0; i < 1100; ++i) s ^= x[i];
        y[r] = s;
    }
}
"""
ONES = """
void k(const unsigned x[4], int *y) {
#pragma HLS PIPELINE
    int s = 0;
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 32; ++j) s += x[i] >> j & 1;
    *y = s;
}
"""
#: Each word of the line comes from the call before.
LINE = """
int k(int x) {
#pragma HLS PIPELINE
    static int line[64];
#pragma HLS ARRAY_PARTITION variable=line complete
    int s = 0;
    for (int i = 63; i > 0; --i) line[i] = line[i - 1];
    line[0] = x;
    for (int i = 0; i < 64; ++i) s += line[i];
    return s;
}
"""
SQUARE = """
void k(const int a[8][8], const int b[8][8], int c[8][8]) {
    rows: for (int i = 0; i < 8; ++i) {
#pragma HLS PIPELINE
        for (int j = 0; j < 8; ++j) {
            int s = 0;
            for (int n = 0; n < 8; ++n) s += a[i][n] * b[n][j];
            c[i][j] = s;
        }
    }
}
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_a_pipeline_reads_an_element_once_however_far_apart(tmp_path: Path, tool: str) -> None:
    assert estimate_of(tmp_path, TWICE, tool).interval == (550, 550)


def test_a_port_that_is_full_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work grows with the accesses, not with their square."""
    asked, beside = [0], Region.beside

    def counted(*words: object) -> bool:
        asked[0] += 1
        return beside(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(Region, "beside", counted)
    estimate_of(tmp_path, TWICE, "vitis")
    assert 1100 <= asked[0] <= 4 * 1100


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_a_line_that_moves_on_is_summed_as_a_tree(tmp_path: Path, tool: str) -> None:
    """Of 64 words six sums stand one after another, not 63."""
    latency = estimate_of(tmp_path, LINE, tool).latency[1]
    assert latency is not None
    assert latency <= 3


def test_a_body_that_is_too_much_work_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the loops that were unrolled, whoever's PC it is."""
    most = 8 * 8 * 2 * effort.EACH
    monkeypatch.setattr(effort, "_MOST", 10 * most)
    assert estimate_of(tmp_path, SQUARE, "vitis").loops[0].ii == 4
    monkeypatch.setattr(effort, "_MOST", most // 2)
    with pytest.raises(KernelBuildError, match=r"k\.cpp:5, .*k\.cpp:7: unrolling makes .* factor$"):
        estimate_of(tmp_path, SQUARE, "vitis")


def test_a_large_tree_keeps_the_range_that_it_may_be_in() -> None:
    ones = "".join(f"  %b{n} = zext i1 %x{n} to i32\n" for n in range(4))
    sums = "".join(f"  %s{n + 1} = add nsw i32 %s{n}, %b{n}\n" for n in range(1, 4))
    text = f"define i32 @k() {{\n{ones}  %s1 = add i32 0, %b0\n{sums}}}\n"
    made = without_large_trees(text, most=5)
    assert "%s2 = load i32, ptr null, !range !{i32 0, i32 3}" in made
    assert "%s3 = add nsw i32 %s2, %b2" in made
    assert "%s4 = load i32, ptr null, !range !{i32 0, i32 5}" in made


@pytest.mark.parametrize(
    ("last", "low", "high"),
    [
        ("sub nsw i32 %b, %s", -132, 126), ("mul nsw i32 %b, %s", -512, 508),
        ("and i32 %b, 7", 0, 7), ("shl nsw i32 %b, 2", -512, 508), ("lshr i32 %s, 1", 0, 2),
    ],
)  # fmt: skip
def test_the_range_of_a_tree_is_that_of_its_parts(last: str, low: int, high: int) -> None:
    """Of a byte from -128 to 127 and a number from 1 to 4."""
    parts = "  %b = sext i8 %x to i32\n  %h = and i32 %y, 3\n  %s = add nsw i32 %h, 1\n"
    made = without_large_trees(f"define i32 @k() {{\n{parts}  %r = {last}\n}}\n", most=1)
    assert f"%r = load i32, ptr null, !range !{{i32 {low}, i32 {high + 1}}}" in made


def test_what_is_printed_of_a_sum_of_bits_does_not_grow_with_its_square(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sums are as wide as when all of them is printed."""
    whole = estimate_of(tmp_path, ONES, "vitis").resources
    lengths = []

    def noted(words: list[str], seconds: int) -> tuple[str, str]:
        made = run(words, seconds)
        lengths.append(len(made[1]))
        return made

    run = compiler.opt
    monkeypatch.setattr(compiler, "opt", noted)
    compiler._analysed.cache_clear()
    estimate_of(tmp_path, ONES, "vitis")
    before = max(lengths)
    lengths.clear()
    monkeypatch.setattr(trees, "_MUCH", 1000)
    monkeypatch.setattr(trees, "_SMALL", 20)
    compiler._analysed.cache_clear()
    assert estimate_of(tmp_path, ONES, "vitis").resources == whole
    assert max(lengths) < before / 2


def test_a_kernel_without_sums_is_analysed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vivado HLS has sums in memory or in registers: here both are the same code."""
    asked = []

    def noted(words: list[str], seconds: int) -> tuple[str, str]:
        asked.append("-disable-output" in words)
        return run(words, seconds)

    run = compiler.opt
    monkeypatch.setattr(compiler, "opt", noted)
    estimate_of(tmp_path, SQUARE, "vivado")
    assert sum(asked) == 1


def test_an_assert_bounds_a_loop_in_a_long_module_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long modules are analysed for addresses, branches and what is assumed."""
    text = """
#include <cassert>
struct Size { int rows, cols; };
void k(const Size &size, int y[64]) {
    assert(size.rows <= 40);
    const int rows = size.rows;
    each: for (int i = 0; i < rows; ++i) y[i] = i;
}
"""
    monkeypatch.setattr(compiler, "_LONG", 0)
    compiler._analysed.cache_clear()
    assert loop_of(estimate_of(tmp_path, text, "vivado"), "each").trip_count == (0, 40)
