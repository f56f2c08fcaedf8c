"""``hls estimate``: which operations share a DSP block, and how many blocks a product takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.hls import Estimate, estimate
from pynq_torch.hls.estimator import compiler
from pynq_torch.hls.estimator.dsp import multiplier
from pynq_torch.hls.estimator.target import target_of

MISSING = compiler.tools()
pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(MISSING is not None, reason=MISSING or ""),
]

#: x has two ports: its eight words of an iteration take four cycles.
DENSE = """
int k(const int x[64], const int w[8]) {
#pragma HLS ARRAY_PARTITION variable=w complete
    int sum = 0;
    for (int i = 0; i < 8; ++i) {
#pragma HLS PIPELINE II=ASKED
        for (int j = 0; j < 8; ++j) {
#pragma HLS UNROLL
            sum += x[8 * i + j] * w[j];
        }
    }
    return sum;
}
"""
BRANCHES = """
void k(const float x[64], float y[64], float z[64], float a) {
    for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE off
        if (x[i] > 0)
            y[i] = x[i] * a;
        else
            z[i] = x[i] * x[i];
    }
}
"""
STEPS = """
void f(const float x[64], float y[64]) {
#pragma HLS INLINE WAY
    for (int i = 0; i < 64; ++i) y[i] = x[i] * x[i] + 1;
}
void g(const float y[64], float z[64]) {
#pragma HLS INLINE WAY
    for (int i = 0; i < 64; ++i) z[i] = y[i] * y[i] + 2;
}
static float kept[64];
void k(const float x[64], float z[64]) {
    f(x, kept);
    g(kept, z);
}
"""
TABLE = """
float k(const float x[8], const unsigned char at[8]) {
#pragma HLS ARRAY_PARTITION variable=x complete
#pragma HLS ARRAY_PARTITION variable=at complete
    static const float table[256] = {NUMBERS};
    float y = 0;
    for (int i = 0; i < 8; i += 8) {
#pragma HLS PIPELINE off
        for (int j = 0; j < 8; ++j) {
#pragma HLS UNROLL
            y += x[i + j] * table[at[i + j]];
        }
    }
    return y;
}
"""


def _of(folder: Path, text: str, tool: str = "vitis", **words: str) -> Estimate:
    for word, value in words.items():
        text = text.replace(word, value)
    source = folder / "k.cpp"
    source.write_text(text)
    return estimate(source, "k", tool=tool)


def test_a_pipeline_shares_multipliers_where_its_directive_asks_for_the_interval(
    tmp_path: Path,
) -> None:
    found = [_of(tmp_path, DENSE, ASKED=str(interval)) for interval in (1, 4)]
    assert [(one.loops[0].ii, one.resources["DSP"]) for one in found] == [(4, 24), (4, 6)]


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_branches_share_an_operator(tmp_path: Path, tool: str) -> None:
    assert _of(tmp_path, BRANCHES, tool).resources["DSP"] == 3


@pytest.mark.parametrize(("way", "blocks"), [("", 5), ("off", 10)])
def test_functions_called_in_turn_share_what_is_made_part_of_the_caller(
    tmp_path: Path, way: str, blocks: int
) -> None:
    text = STEPS if way else STEPS.replace("#pragma HLS INLINE WAY\n", "")
    made = _of(tmp_path, text, WAY=way)
    assert made.resources["DSP"] == blocks
    assert made.latency[1] is not None
    assert made.latency[1] > 2 * 64  # g waits for the array that f writes


def test_a_table_has_two_ports_outside_of_a_pipeline(tmp_path: Path) -> None:
    numbers = ", ".join(f"{n}.5f" for n in range(256))
    assert _of(tmp_path, TABLE, NUMBERS=numbers).resources["DSP"] == 2 * 3 + 2


@pytest.mark.parametrize(
    ("small", "large", "vitis", "vivado"),
    [
        (4, 32, 0, 0), (9, 9, 0, 0), (10, 10, 0, 0), (11, 11, 1, 1), (5, 16, 1, 1),
        (7, 32, 1, 2), (9, 32, 2, 2), (18, 32, 2, 2), (21, 32, 2, 2), (25, 35, 2, 2),
        (32, 32, 3, 3), (33, 42, 4, 4),
    ],
)  # fmt: skip
def test_blocks_of_a_product(small: int, large: int, vitis: int, vivado: int) -> None:
    """As reports of both tools list them."""
    targets = [target_of(20, "xc7z020clg400-1", tool) for tool in ("vitis", "vivado")]
    assert [multiplier(small, large, one, 32).dsp for one in targets] == [vitis, vivado]


@pytest.mark.parametrize(
    ("small", "large", "bits", "blocks"),
    [
        (32, 32, 32, [3, 3]), (31, 32, 63, [3, 4]), (32, 34, 65, [3, 4]), (5, 32, 32, [1, 2]),
        (32, 64, 64, [7, 7]), (31, 62, 93, [6, 8]), (64, 66, 129, [9, 16]),
    ],
)  # fmt: skip
def test_blocks_of_a_product_by_release(
    small: int, large: int, bits: int, blocks: list[int]
) -> None:
    """As reports of 2021 to 2022, and of 2023 to 2025, list them."""
    targets = [target_of(10, "xc7z020clg400-1", "vitis", None, year) for year in (2022.1, 2024.2)]
    assert [multiplier(small, large, one, bits).dsp for one in targets] == blocks


@pytest.mark.parametrize(("small", "large", "blocks"), [(16, 16, 1), (32, 32, 0)])
def test_one_release_is_silent_about_wide_products(small: int, large: int, blocks: int) -> None:
    target = target_of(10, "xc7z020clg400-1", "vitis", None, 2020.2)
    assert multiplier(small, large, target, 64).dsp == blocks


@pytest.mark.parametrize(("kind", "blocks"), [("int", 3), ("ap_int<28>", 6)])
def test_products_of_other_widths_have_a_multiplier_of_their_own(
    tmp_path: Path, kind: str, blocks: int
) -> None:
    text = """
#include <ap_int.h>
int k(int a, int b, KIND c) {
    int first = a * b;
    return (first + 5) * c;
}
"""
    (tmp_path / "k.cpp").write_text(text.replace("KIND", kind))
    assert estimate(tmp_path / "k.cpp", "k", tool="vitis").resources["DSP"] == blocks


@pytest.mark.parametrize(
    ("small", "large", "blocks"),
    [(18, 27, 1), (9, 32, 1), (11, 32, 2), (26, 30, 2), (24, 39, 3), (24, 80, 5), (14, 62, 4)],
)
def test_ultra_scale_has_wider_blocks(small: int, large: int, blocks: int) -> None:
    """As reports list them."""
    target = target_of(10, "xczu7ev-ffvc1156-2-e", "vitis", None, 2022.2)
    assert multiplier(small, large, target, small + large).dsp == blocks


NEST = """
void k(const int x[64], int y[64], KIND n, KIND m) {
    a: for (int i = 0; i < n; ++i)
        b: for (int j = 0; j < TURNS; ++j) {
#pragma HLS PIPELINE
            y[(i + j) & 63] = x[(i ^ j) & 63];
        }
}
"""


@pytest.mark.parametrize(
    ("kind", "turns", "blocks"),
    [("unsigned short", "m", 1), ("int", "m", 4), ("int", "8", 0), ("int", "6", 0)],
)
def test_the_turns_of_a_flattened_nest_are_a_product(
    tmp_path: Path, kind: str, turns: str, blocks: int
) -> None:
    text = NEST.replace("KIND", kind).replace("TURNS", turns)
    (tmp_path / "k.cpp").write_text(text)
    made = estimate(tmp_path / "k.cpp", "k", tool="vitis-2024.2")
    assert made.resources["DSP"] == blocks


def test_a_division_by_a_number_is_a_product(tmp_path: Path) -> None:
    text = """
unsigned k(unsigned x) { return x / DIVISOR; }
"""
    found = [_of(tmp_path, text, DIVISOR=one) for one in ("8", "10", "(x | 3)")]
    assert [one.resources["DSP"] for one in found] == [0, 4, 0]
    assert (found[1].latency[1] or 0) < (found[2].latency[1] or 0)


CHAIN = """
float k(const float x[64], const float w[64]) {
CUT
    float sum = 0;
    for (int i = 0; i < 64; ++i) {
#pragma HLS UNROLL factor=8
        sum += x[i] * w[i];
    }
    return sum;
}
"""


def test_products_that_a_chain_of_sums_waits_for_share_one_operator(tmp_path: Path) -> None:
    cut = "#pragma HLS ARRAY_PARTITION variable=x cyclic factor=8"
    found = [_of(tmp_path, CHAIN, "vivado", CUT=one) for one in ("", cut)]
    assert [one.resources["DSP"] for one in found] == [3 + 2, 2 * 3 + 2]


SUMS = """
short k(const short x[WORDS], const short w[WORDS]) {
    short sum = 0;
    for (int i = 0; i < WORDS; ++i) {
#pragma HLS PIPELINE
        sum += x[i] * w[i];
    }
    return sum;
}
"""


@pytest.mark.parametrize(("part", "interval"), [("xc7k160tfbg676-2", 1), ("xc7z020clg400-1", 2)])
def test_a_sum_in_a_dsp_block_takes_the_one_before_it(
    tmp_path: Path, part: str, interval: int
) -> None:
    """The variable that keeps it is written in the cycle in which the sum is there, if it can be.

    A fast part does both within the 2.9 ns that Vitis HLS uses of 4.
    """
    source = tmp_path / "k.cpp"
    source.write_text(SUMS.replace("WORDS", "64"))
    made = estimate(source, "k", tool="vitis", clock=4, part=part)
    assert made.loops[0].ii == interval


@pytest.mark.parametrize(
    ("tool", "clock", "part"), [("vitis", 4, "xc7k160tfbg676-2"), ("vivado", 10, "xc7z020clg400-1")]
)
def test_a_memory_of_less_than_1024_bits_is_fast(
    tmp_path: Path, tool: str, clock: float, part: str
) -> None:
    """It is made of LUTs, so that the product still fits into the cycle of the read."""
    depths = []
    for words in ("32", "64"):
        source = tmp_path / "k.cpp"
        source.write_text(SUMS.replace("WORDS", words))
        made = estimate(source, "k", tool=tool, clock=clock, part=part)
        depths.append(made.loops[0].iteration_latency[1] or 0)
    assert depths[0] == depths[1] - 1


WEIGHTS = """
#include "ap_fixed.h"
typedef ap_fixed<14, 6> number;
number weights[4] = {0.5, 0.0, 0.3, 2.0};
void k(number x[4], number *y) {
#pragma HLS PIPELINE
    number sum = 0;
    for (int i = 0; i < 4; ++i) sum += weights[i] * x[i];
    MORE
    *y = sum;
}
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_a_table_of_hls_numbers_that_nothing_writes_is_known(tmp_path: Path, tool: str) -> None:
    """One of its four numbers is nothing, two are powers of two: one product is left."""
    found = [_of(tmp_path, WEIGHTS, tool, MORE=one) for one in ("", "weights[2] = sum;")]
    known, written = (one.resources["DSP"] or 0 for one in found)
    assert known == 1 < written


TURNED = """
void k(const float by[16], float x, float y, float out[2]) {
    turn: for (int i = 0; i < 16; ++i) {
#pragma HLS PIPELINE
        const float was = x;
        x = x - y * by[i];
        y = y + was * by[i];
    }
    out[0] = x;
    out[1] = y;
}
"""
SUMMED = """
void k(const float x[64], const float by[64], float out[2]) {
    float real = 0, imaginary = 0;
    turn: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        real += x[i] * by[i];
        imaginary += x[i] * by[63 - i];
    }
    out[0] = real;
    out[1] = imaginary;
}
"""


@pytest.mark.parametrize("tool", ["vivado-2019.2", "vitis-2022.1"])
def test_operators_are_shared_where_the_interval_stays(tmp_path: Path, tool: str) -> None:
    """A product takes three DSP blocks, a sum two: a CORDIC needs two of each, a DFT one."""
    turned, summed = (_of(tmp_path, text, tool) for text in (TURNED, SUMMED))
    assert turned.loops[0].ii is not None and turned.loops[0].ii > 4
    assert (turned.resources["DSP"], summed.resources["DSP"]) == (10, 5)


def test_a_limit_of_additions_is_none_of_differences(tmp_path: Path) -> None:
    """Both are done by one core, and each iteration has one of each."""
    text = """
void k(const float a[64], float r[64]) {
#pragma HLS ALLOCATION operation instances=fadd limit=1
    turn: for (int i = 0; i < 64; i += 2) {
#pragma HLS PIPELINE
        r[i] = a[i] + a[i + 1];
        r[i + 1] = a[i] - a[i + 1];
    }
}
"""
    found = _of(tmp_path, text)
    assert (found.loops[0].ii, found.resources["DSP"]) == (1, 4)


@pytest.mark.parametrize(
    "number",
    ["sqrt(2.0)", "sqrtf(2)", "pow(2, 16) - 1", "std::sin(0.5f)", "log2(8)", "atan(1.0) * 4",
     "floor(2.5) + ceil(0.5)", "std::exp(1.0) / 3", "fmod(7.0, 4.0)"],
)  # fmt: skip
def test_functions_of_numbers_are_numbers(tmp_path: Path, number: str) -> None:
    def costs(value: str) -> tuple[object, ...]:
        source = tmp_path / "k.cpp"
        source.write_text(
            "#include <cmath>\n"
            "static float of(double x) { return x; }\n"
            "void k(const float x[16], float y[16]) {\n"
            f"    for (int i = 0; i < 16; ++i) y[i] = x[i] * of({value});\n}}\n"
        )
        found = estimate(source, "k")
        return found.latency, found.resources, found.warnings

    assert costs(number) == costs("1.7")


def test_functions_of_counters_that_unrolling_makes_numbers_are_numbers(tmp_path: Path) -> None:
    """The factors of a filter, as fixed point: exponentials, their sum, quotients by it."""
    text = """
#include <ap_fixed.h>
#include <cmath>
void k(const unsigned char x[64], unsigned char y[60]) {
#pragma HLS ARRAY_PARTITION variable=x cyclic factor=8
    turn: for (int i = 0; i < 60; ++i) {
#pragma HLS PIPELINE
        double part[5], sum = 0;
        for (int j = 0; j < 5; ++j) sum += part[j] = std::exp(-0.5 * (j - 2) * (j - 2));
        ap_fixed<26, 12> made = 0;
        for (int j = 0; j < 5; ++j) made += x[i + j] * ap_fixed<16, 2>(part[j] / sum);
        y[i] = made.to_int();
    }
}
"""
    for tool in ("vitis", "vivado"):
        found = estimate_of(tmp_path, text, tool)
        assert loop_of(found, "turn").ii == 1
        assert 0 < (found.resources["DSP"] or 0) <= 5  # products by constants, and no exponential


def test_a_function_of_what_is_not_known_is_none(tmp_path: Path) -> None:
    source = tmp_path / "k.cpp"
    source.write_text("#include <cmath>\nvoid k(float x, float *y) { *y = pow(x, 2); }\n")
    assert (estimate(source, "k").resources["DSP"] or 0) > 50


@pytest.mark.parametrize("header", ["cmath", "math.h", "hls_math.h"])
def test_numbers_are_told_from_what_is_none_with_any_header(tmp_path: Path, header: str) -> None:
    source = tmp_path / "k.cpp"
    source.write_text(
        f"#include <{header}>\nvoid k(float x, int *y) {{ *y = isnan(x) || isinf(x) || x > 2; }}\n"
    )
    assert estimate(source, "k").latency[1] is not None
