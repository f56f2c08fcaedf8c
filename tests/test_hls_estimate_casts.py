"""Conversions, floating-point cores and the widths of logic, as published schedules have them."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of

from pynq_torch.hls.estimator import compiler
from pynq_torch.hls.estimator.delays import adder, comparison, selection, shifter

pytestmark = pytest.mark.skipif(compiler.tools() is not None, reason="clang-16 is not installed")
VIVADO, VITIS = "vivado-2019.1", "vitis-2021.2"

EACH = """
#include "ap_fixed.h"
typedef ap_fixed<15, 6> fixed;
void k(const {of} x[64], const {of} w[64], {to} y[64]) {{
    for (int i = 0; i < 64; ++i) {{
#pragma HLS PIPELINE off
        y[i] = {what};
    }}
}}
"""


def _states(folder: Path, of: str, to: str, what: str, tool: str) -> int:
    """How many states an iteration has, with those of the read and the write."""
    found = estimate_of(folder, EACH.format(of=of, to=to, what=what), tool)
    states = found.loops[0].iteration_latency
    assert states[1] is not None
    return states[1]


@pytest.mark.parametrize(
    ("of", "to", "tool", "states"),
    [
        # Exponent | shift, sign | write; without a sign the write is behind the shift.
        ("float", "int", VIVADO, 4), ("float", "unsigned char", VIVADO, 3),
        ("double", "int", VIVADO, 4), ("float", "int", VITIS, 4),
        # A float becomes a double first; back it is counted, shifted, rounded and put together.
        ("float", "fixed", VIVADO, 5), ("double", "fixed", VIVADO, 3),
        ("fixed", "float", VIVADO, 5), ("fixed", "float", "vivado-2018.2", 8),
        ("int", "float", VIVADO, 9), ("int", "float", VITIS, 9),
    ],
)  # fmt: skip
def test_a_conversion_takes_the_states_of_its_operations(
    tmp_path: Path, of: str, to: str, tool: str, states: int
) -> None:
    assert _states(tmp_path, of, to, f"({to})x[i]", tool) == states


def test_only_numbers_that_meet_are_converted_so(tmp_path: Path) -> None:
    """Names are of one function: another's number of the same name is not taken for it."""
    text = EACH.replace("void k", "static fixed to(float a) {{\n#pragma HLS INLINE off\n"
                        "    return (fixed)a;\n}}\nvoid k")  # fmt: skip
    text = text.format(of="float", to="int", what="to(x[i]).to_int() + (int)w[i]")
    found = estimate_of(tmp_path, text, VITIS)
    assert found.latency[1] is not None and found.resources["DSP"] == 0


@pytest.mark.parametrize("tool", [VIVADO, "vitis-2020.2", "vitis-2022.2"])
def test_a_quotient_has_16_states_at_10_ns_in_both_tools(tmp_path: Path, tool: str) -> None:
    product = _states(tmp_path, "float", "float", "x[i] * w[i]", tool)
    assert _states(tmp_path, "float", "float", "x[i] / w[i]", tool) - product == 16 - 4


@pytest.mark.parametrize(
    ("of", "to", "what", "early", "late"),
    [
        # In two stages the first fits behind the read of a memory; 6.8 and 6.4 ns in one do not.
        ("float", "bool", "x[i] > w[i]", 4, 3),
        ("float", "double", "(double)x[i]", 3, 3), ("double", "float", "(float)x[i]", 4, 3),
    ],
)  # fmt: skip
def test_comparisons_and_other_floats_were_done_at_once_before_2019(
    tmp_path: Path, of: str, to: str, what: str, early: int, late: int
) -> None:
    states = [_states(tmp_path, of, to, what, f"vivado-{year}") for year in (2018.3, 2019.2)]
    assert states == [early, late]


def test_logic_takes_what_the_schedules_say_of_its_width() -> None:
    sums = {2: 1.56, 8: 1.91, 10: 1.73, 12: 1.54, 16: 2.07, 24: 2.31, 32: 2.55, 48: 3.04, 64: 3.52}
    assert {bits: round(adder(bits), 2) for bits in sums} == sums
    compared = {3: 1.13, 8: 1.55, 11: 1.88, 23: 2.44, 64: 2.77}
    assert {bits: round(comparison(bits), 2) for bits in compared} == compared
    assert selection(32) == 0.69 and shifter(32) == 4.42
    assert adder(1) == adder(2) and comparison(1) > 0
    for ns in (adder, comparison, selection, shifter):
        assert ns(256) > ns(128) > 0, "wider than what was seen: it goes on as it was"


MASKED = """
#include "ap_int.h"
void k(ap_uint<{bits}> bins[32], const unsigned short x[64]) {{
    for (int i = 0; i < 64; ++i) {{
#pragma HLS PIPELINE
#pragma HLS DEPENDENCE variable=bins inter false
        bins[x[i] & 31] = bins[x[i] & 31] + 1;
    }}
}}
"""


def test_a_sum_is_as_wide_as_what_is_used_of_it(tmp_path: Path) -> None:
    """At 5 ns a sum of 9 bits fits behind the read of a memory, one of 16 does not."""
    depths = []
    for bits in (9, 16):
        found = estimate_of(tmp_path, MASKED.format(bits=bits), VIVADO, clock=5)
        depths.append(found.loops[0].iteration_latency)
    assert depths == [(5, 5), (6, 6)]


@pytest.mark.parametrize(("mask", "states"), [("& 0xfff", 2), ("& -4", 3), ("", 3)])
def test_a_mask_of_the_upper_bits_narrows_no_sum(tmp_path: Path, mask: str, states: int) -> None:
    """At 6.4 ns a sum of 12 bits fits between a read and a write of 2.3 ns each."""
    text = f"""
void k(const int x[16], int y[16]) {{
    for (int i = 0; i < 16; ++i) {{
#pragma HLS PIPELINE off
        y[i] = (x[i] + 12345) {mask};
    }}
}}
"""
    found = estimate_of(tmp_path, text, VIVADO, clock=7.3)
    assert found.loops[0].iteration_latency == (states, states)


SORT = """
#include <hls_stream.h>
void k(hls::stream<int> &in, hls::stream<int> &out) {
    int x[10];
    for (int i = 0; i < 10; ++i) x[i] = in.read();
    for (int i = 0; i < 10; ++i)
        for (int j = i + 1; j < 10; ++j) {
            const int a = x[i], b = x[j];
            if (a > b) { FIRST; SECOND; }
        }
    for (int i = 0; i < 10; ++i) out.write(x[i]);
}
"""


@pytest.mark.parametrize(
    ("first", "second", "tool", "blocks"),
    [
        ("x[i] = b", "x[j] = a", VIVADO, 2),  # each by the port that reads it
        ("x[i] = b", "x[i] = b", VIVADO, 0), ("x[i] = b", "x[j] = a", VITIS, 0),
    ],
)  # fmt: skip
def test_elements_that_are_swapped_are_written_by_two_ports(
    tmp_path: Path, first: str, second: str, tool: str, blocks: int
) -> None:
    text = SORT.replace("FIRST", first).replace("SECOND", second)
    assert estimate_of(tmp_path, text, tool).resources["BRAM_18K"] == blocks


COMPLEX = """
#include <complex>
void k(const std::complex<TYPE> a[64], const std::complex<TYPE> b[64], std::complex<TYPE> y[64]) {
    for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        y[i] = a[i] * b[i];
    }
}
"""


@pytest.mark.parametrize(("kind", "blocks"), [("float", 4 * 3 + 2 * 2), ("double", 4 * 11 + 2 * 3)])
def test_a_product_of_complex_numbers_is_four_products_and_two_sums(
    tmp_path: Path, kind: str, blocks: int
) -> None:
    """The compiler's own looks once more at what is no number, by a function without a body."""
    found = estimate_of(tmp_path, COMPLEX.replace("TYPE", kind), VITIS)
    assert found.warnings == () and found.resources["DSP"] == blocks
    one = EACH.replace(" off", "").format(of=kind, to=kind, what="x[i] * w[i] + x[i]")
    sums = estimate_of(tmp_path, one, VITIS)
    assert found.loops[0].iteration_latency == sums.loops[0].iteration_latency


BUILT = """
#include <complex>
typedef std::complex<float> number;
struct Pair { int a, b; Pair(int x = 0, int y = 0) : a(x), b(y) {} };
void k(const float x[32], float y[32]) {
    number buf[32];
    Pair pairs[32];
    a: for (int i = 0; i < 32; ++i) {
        buf[i] = number(x[i], x[31 - i]);
        pairs[i] = Pair(i, 3 * i);
    }
    b: for (int i = 0; i < 32; ++i) y[i] = buf[31 - i].real() + pairs[31 - i].a * pairs[i].b;
}
"""


@pytest.mark.parametrize("tool", ["vivado-2019.1", "vitis-2022.2"])
def test_constructors_of_an_array_are_a_loop(tmp_path: Path, tool: str) -> None:
    found = estimate_of(tmp_path, BUILT, tool)
    assert [one.name for one in found.loops] == ["Loop_6", "Loop_7", "a", "b"]
    assert [one.latency for one in found.loops[:2]] == [(32, 32)] * 2
    plain = BUILT.replace("(int x = 0, int y = 0) : a(x), b(y) {}", "() {} Pair(int, int) {}")
    found = estimate_of(tmp_path, plain, tool)  # nothing is written
    assert [one.name for one in found.loops] == ["Loop_6", "a", "b"]


RATIO = """
#include <complex>
void k(const std::complex<TYPE> a[64], const std::complex<TYPE> b[64], std::complex<TYPE> y[64]) {
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        y[i] = a[i] / b[i];
    }
}
"""


@pytest.mark.parametrize(("number", "blocks"), [("float", 24), ("double", 75)])
def test_a_quotient_of_complex_numbers(tmp_path: Path, number: str, blocks: int) -> None:
    # LS_estimation of a report of Vivado HLS 2019.1: 24 blocks, 28 cycles of an iteration.
    found = estimate_of(tmp_path, RATIO.replace("TYPE", number), "vivado-2019.1")
    assert (found.resources["DSP"], found.loops[0].ii) == (blocks, 1)
    assert not found.warnings
    if number == "float":
        assert found.loops[0].iteration_latency == (28, 28)


def test_the_core_is_not_there_whose_place_the_operations_take(tmp_path: Path) -> None:
    """It would end behind them, as it has five cycles."""
    text = """
    #include "ap_fixed.h"
    float k(ap_fixed<30, 6> x) { return x; }
    """
    found = estimate_of(tmp_path, text, "vitis-2021.2")
    assert found.latency == (3, 3)
    assert found.resources["LUT"] is not None and found.resources["LUT"] < 1000
