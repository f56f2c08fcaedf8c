"""Pragmas in branches, and what is left where a function that is to be a pipeline cannot be one."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

CHOSEN = """
void k(const int a[64], int b[64], int n) {
    if (n > 3) {
#pragma HLS PIPELINE II=2
        first: for (int i = 0; i < 8; ++i) b[i] = a[i] * 3;
    } else {
        second: for (int i = 0; i < 8; ++i) b[i] = a[i] + n;
    }
}
"""


@pytest.mark.parametrize(("tool", "loops"), [("vivado", 0), ("vitis", 2)])
def test_pipeline_in_a_branch_is_of_the_function_in_vivado_hls(
    tmp_path: Path, tool: str, loops: int
) -> None:
    """ "Unrolling all loops for pipelining in function", says the log of such a function."""
    found = estimate_of(tmp_path, CHOSEN, tool)
    assert len(found.loops) == loops
    said = [one for one in found.warnings if "PIPELINE in a branch" in one]
    assert len(said) == 1
    assert "has no effect in Vitis HLS" in said[0]


def test_pipeline_in_a_branch_of_a_loop_is_of_the_loop_in_vivado_hls(tmp_path: Path) -> None:
    text = """
void k(const int a[64], int b[64], int n) {
    each: for (int i = 0; i < 64; ++i) {
        if (a[i] > n) {
#pragma HLS PIPELINE
            b[i] = a[i];
        }
    }
}
"""
    assert loop_of(estimate_of(tmp_path, text, "vivado"), "each").ii == 1


UNEVEN = """
static void sums(const int in[64], int out[8]) {
    for (int r = 0; r < 8; ++r) {
        int s = 0;
        for (int i = 0; i < 8; ++i) s += in[8 * r + i];
        out[r] = s;
    }
}
static void last(const int in[64], int out[8], int n) {
#pragma HLS PIPELINE
    open: for (int i = n; i < 60; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=0 max=60
        out[i & 7] = in[i];
    }
    sums(in, out);
}
void k(const int in[64], int out[8], int n) {
    turns: for (int i = 0; i < 4; ++i) {
        if (in[i] > n) sums(in, out);
    }
    last(in, out, n);
}
"""


def test_what_a_function_calls_that_cannot_be_a_pipeline_is_one_itself(tmp_path: Path) -> None:
    found = estimate_of(tmp_path, UNEVEN, "vivado")
    assert {one.name for one in found.loops} == {"turns", "open"}
    least, most = loop_of(found, "turns").iteration_latency
    assert least is not None
    assert most is not None
    assert least <= 3  # the call is in a branch, and no part of the loop
    assert 33 < most < 45  # 64 reads through two ports


def test_a_bound_that_is_known_is_the_most_that_loop_tripcount_says(tmp_path: Path) -> None:
    text = """
void k(const int a[64], int b[64], unsigned n) {
    if (n < 64) {
        each: for (unsigned i = 0; i < n; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=12 max=100
            b[i] = a[i];
        }
    }
}
"""
    assert loop_of(estimate_of(tmp_path, text, "vivado"), "each").trip_count == (12, 63)


def test_an_array_of_the_top_is_not_cut_as_an_argument_of_the_same_name(tmp_path: Path) -> None:
    text = """
static void inner(const int data[64], int &sum) {
#pragma HLS INLINE off
#pragma HLS ARRAY_PARTITION variable=data cyclic factor=4
    cut: for (int i = 0; i < 64; i += 4) {
#pragma HLS PIPELINE
        sum += data[i] + data[i + 1] + data[i + 2] + data[i + 3];
    }
}
void k(const int data[64], int &sum) {
    int copy[64];
    whole: for (int i = 0; i < 64; i += 4) {
#pragma HLS PIPELINE
        copy[i] = data[i] ^ data[i + 1] ^ data[i + 2] ^ data[i + 3];
    }
    inner(copy, sum);
}
"""
    found = estimate_of(tmp_path, text, "vivado")
    assert loop_of(found, "cut").ii == 1
    assert loop_of(found, "whole").ii == 2


def test_a_struct_and_its_first_member_may_go_to_one_function(tmp_path: Path) -> None:
    text = """
struct state { unsigned char data[256]; unsigned length; unsigned sum[8]; };
static void mix(state *s, const unsigned char data[]) {
#pragma HLS INLINE off
#pragma HLS ARRAY_PARTITION variable=data cyclic factor=4
    four: for (int i = 0; i < 256; i += 4) {
#pragma HLS PIPELINE
        s->sum[(i >> 2) & 7] = data[i] * 3 + data[i + 1] + data[i + 2] + data[i + 3];
    }
    s->length = 0;
}
void k(const unsigned char in[256], unsigned out[8]) {
    state s;
    for (int i = 0; i < 256; ++i) s.data[i] = in[i];
    mix(&s, s.data);
    for (int i = 0; i < 8; ++i) out[i] = s.sum[i] + s.length;
}
"""
    assert loop_of(estimate_of(tmp_path, text, "vivado"), "four").ii == 1


def test_a_small_memory_that_is_written_twice_in_a_cycle_is_a_block(tmp_path: Path) -> None:
    """LUTs have one port to write: 117 of 135 such memories of Vivado HLS are blocks."""
    text = """
void k(const unsigned char a[64], unsigned char out[64]) {
    unsigned char b[64];
    for (int i = 0; i < 64; ++i) b[i] = a[i];
    for (int i = 0; i < COUNT; ++i) {
#pragma HLS UNROLL
        b[i] = 0;
    }
    for (int i = 0; i < 64; ++i) out[i] = b[i];
}
"""
    for number, blocks in (("8", 1), ("1", 0)):
        found = estimate_of(tmp_path, text.replace("COUNT", number), "vivado")
        assert found.resources["BRAM_18K"] == blocks


def test_what_can_wait_in_a_branch_shares_an_operator(tmp_path: Path) -> None:
    text = """
void k(unsigned char r, unsigned char g, unsigned char b, unsigned char *out) {
    if (r > 20 && g < 90) *out = 62;
    else *out = (0.257 * r) + (0.504 * g) + (0.098 * b) + 16;
}
"""
    assert estimate_of(tmp_path, text, "vivado").resources["DSP"] == 25  # two products, one sum


def test_other_pragmas_of_a_branch_that_data_choose_have_no_effect(tmp_path: Path) -> None:
    text = """
void k(const int a[64], int b[64], int n) {
    each: for (int i = 0; i < 64; ++i) {
        if (a[i] > n) {
#pragma HLS UNROLL factor=4
            b[i] = a[i];
        } else {
#pragma HLS PIPELINE
            b[i] = n;
        }
    }
}
"""
    found = estimate_of(tmp_path, text, "vivado")
    assert (loop_of(found, "each").ii, loop_of(found, "each").trip_count) == (1, (64, 64))
    said = "\n".join(found.warnings)
    assert "UNROLL in a branch has no effect; it belongs" in said
    assert "PIPELINE in a branch has no effect in Vitis HLS; it belongs" in said
