"""What calls hand over to a function that is one piece of hardware for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pynq_torch import hls
from pynq_torch.hls.estimator.result import Estimate, LoopEstimate


def estimate(folder: Path, text: str, **options: object) -> Estimate:
    source = folder / "k.cpp"
    source.write_text(text)
    return hls.estimate(source, "k", **options)  # type: ignore[arg-type]


def loop(found: Estimate, name: str) -> LoopEstimate:
    return next(one for one in found.loops if one.name.endswith(name))


SCALE = """
static void scale(const float in[64], float out[64], int n) {
#pragma HLS INLINE off
    each: for (int i = 0; i < n; ++i) out[i] = in[i] * 3 + n;
}
void k(const float x[64], float y[64], float z[64]) {
PRAGMA
    scale(x, y, 16);
    scale(y, z, 64);
}
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_calls_with_several_numbers_share_one_piece_of_hardware(tmp_path: Path, tool: str) -> None:
    found = estimate(tmp_path, SCALE.replace("PRAGMA", ""), tool=tool)
    assert found.resources["DSP"] == 5  # one product, one sum
    assert [one.trip_count for one in found.loops] == [(0, 64)]


def test_each_process_is_made_for_its_numbers(tmp_path: Path) -> None:
    found = estimate(tmp_path, SCALE.replace("PRAGMA", "#pragma HLS DATAFLOW"), tool="vitis")
    assert found.resources["DSP"] == 10
    assert [one.trip_count for one in found.loops] == [(16, 16), (64, 64)]


def test_a_number_that_all_calls_name_is_a_constant(tmp_path: Path) -> None:
    found = estimate(tmp_path, SCALE.replace("PRAGMA", "").replace("y, 16", "y, 64"), tool="vitis")
    assert [one.trip_count for one in found.loops] == [(64, 64)]


def test_a_number_of_another_call_leaves_the_length_unknown(tmp_path: Path) -> None:
    text = SCALE.replace("PRAGMA", "").replace("float z[64]", "float z[64], int n")
    found = estimate(tmp_path, text.replace("y, 16", "y, n"), tool="vitis")
    assert [one.trip_count for one in found.loops] == [(None, None)]


RELU = """
static void relu(const int in[1][32], int out[1][32], int least) {
#pragma HLS INLINE off
    each: for (int i = 0; i < 32; ++i) {
#pragma HLS UNROLL factor=2
        out[0][i] = in[0][i] < least ? least : in[0][i] + least;
    }
}
static void layer(int a[1][32], int b[1][32]) {
#pragma HLS INLINE off
    relu(a, OUTSIDE, 3);
    relu(a, OUTSIDE, 4);
}
void k(const int x[32], int y[32]) {
    int u[1][32], v[1][32];
    for (int i = 0; i < 32; ++i) u[0][i] = x[i] + i;
    layer(u, OTHER);
    for (int i = 0; i < 32; ++i) u[0][i] *= x[i];
    layer(u, OTHER);
    for (int i = 0; i < 32; ++i) y[i] = u[0][i] + v[0][i];
}
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_an_array_that_is_handed_over_twice_is_one_memory(tmp_path: Path, tool: str) -> None:
    def interval(outside: str, other: str) -> int | None:
        text = RELU.replace("OUTSIDE", outside).replace("OTHER", other)
        text = text.replace("factor=2", "factor=2\n#pragma HLS PIPELINE")
        return loop(estimate(tmp_path, text, tool=tool), "each").ii

    assert interval("b", "v") == 1  # two reads of one memory, two writes of the other
    assert interval("b", "u") == 2  # four accesses of one, through two functions
    assert interval("a", "v") == 2
