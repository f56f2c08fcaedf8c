"""Numbers in registers: the kind that the kernel's C++ takes, or an error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import write_overlay

import pynq_torch
from pynq_torch.errors import ArgumentError

SCALARS = """
#include <ap_fixed.h>
#include <ap_int.h>
#include <hls_half.h>
enum Mode { ADD, SUBTRACT };
void scalars(float *out, int gain, float scale, double wide, half narrow, ap_fixed<16, 8> step,
             ap_int<12> odd, bool on, unsigned &by_reference, Mode mode) {
#pragma HLS INTERFACE m_axi port=out bundle=gmem offset=slave
#pragma HLS INTERFACE s_axilite port=gain
#pragma HLS INTERFACE s_axilite port=scale
#pragma HLS INTERFACE s_axilite port=wide
#pragma HLS INTERFACE s_axilite port=narrow
#pragma HLS INTERFACE s_axilite port=step
#pragma HLS INTERFACE s_axilite port=odd
#pragma HLS INTERFACE s_axilite port=on
#pragma HLS INTERFACE s_axilite port=by_reference
#pragma HLS INTERFACE s_axilite port=mode
#pragma HLS INTERFACE s_axilite port=return
    out[0] = gain;
    out[1] = scale;
    out[2] = wide;
    out[3] = narrow;
    out[4] = step.to_float();
    out[5] = odd.to_int();
    out[6] = on;
    out[7] = by_reference;
    out[8] = mode;
}
"""
GIVEN = {
    "gain": -3,
    "scale": 1.5,
    "wide": 0.1,
    "narrow": np.float16(2.5),
    "step": -384,
    "odd": -7,
    "on": True,
    "by_reference": 9,
    "mode": 1,
}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("scalars")
    kernels: Path = folder / "k"
    (kernels / "scalars").mkdir(parents=True)
    (kernels / "scalars" / "scalars.cpp").write_text(SCALARS)
    bit = write_overlay(folder, {"scalars_0": "scalars"}, kernels=kernels)
    board = pynq_torch.use_board("csim", kernels=[kernels])
    yield pynq_torch.load(bit).scalars
    board.close()


def run(kernel: Any, **given: Any) -> list[float]:
    out = torch.zeros(9)
    kernel(out, **{**GIVEN, **given})
    found: list[float] = out.tolist()
    return found


def test_each_kind_of_number_arrives(kernel):
    expected = [-3, 1.5, np.float32(0.1), 2.5, -1.5, -7, 1, 9, 1]
    assert run(kernel) == pytest.approx(expected, abs=0)


@pytest.mark.parametrize(
    ("name", "value", "at", "expected"),
    [
        ("gain", np.int64(5), 0, 5),
        ("gain", 0.0, 0, 0),
        ("scale", 0, 1, 0),
        ("scale", np.float64(2.5), 1, 2.5),
        ("scale", np.float32(2.5), 1, 2.5),
        ("scale", np.float16(2.5), 1, 2.5),
        ("gain", np.uint8(5), 0, 5),
        ("scale", np.uint32(0x40200000), 1, 2.5),
        ("scale", torch.tensor(2.5), 1, 2.5),
        ("wide", np.float32(0.25), 2, 0.25),
        ("mode", 0, 8, 0),
    ],
)
def test_other_spellings_of_a_number_arrive(kernel, name, value, at, expected):
    assert run(kernel, **{name: value})[at] == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("gain", 3.0, r"argument gain is 3\.0, a float; .* takes int, .* other bits\. Pass 3$"),
        ("gain", -0.0, "takes int"),
        ("gain", float("nan"), "Pass an int"),
        ("gain", np.float32(2), "takes int"),
        ("gain", torch.tensor(2.0), "takes int"),
        ("odd", 1.0, "takes ap_int<12>"),
        ("on", 1.0, "takes bool"),
        ("by_reference", 1.0, "takes unsigned int"),
        ("step", 1.5, r"takes ap_fixed<16, 8>, .* steps of 2\*\*-8: round\(x \* 2\*\*8\)"),
        (
            "scale",
            2,
            r"is 2, a whole number; .* takes float, .* Pass 2\.0, or np\.uint32\(2\) if these",
        ),
        ("scale", np.int64(2), "takes float"),
        ("scale", np.uint8(2), "takes float"),
        ("scale", np.array([2.5], "f4"), r"is an array; .* takes one float\. Pass value\.item\(\)"),
        ("wide", 2, r"takes double, .* np\.uint64"),
        ("narrow", 2.5, r"takes (half|_Float16), .* Pass np\.float16\(2\.5\)"),
        ("narrow", 2, r"takes (half|_Float16), .* Pass np\.float16\(2\)"),
        ("scale", 10**400, "takes float"),
    ],
)
def test_the_bits_of_another_kind_are_refused(kernel, name, value, expected):
    with pytest.raises(ArgumentError, match=expected) as caught:
        run(kernel, **{name: value})
    assert caught.value.cu == "scalars_0"
    assert run(kernel)[0] == -3  # nothing was started, and nothing is held


def test_nothing_is_checked_where_the_source_is_not_known(kernel, monkeypatch):
    """As on the hardware, and behind RTL: a handoff has no types."""
    monkeypatch.setattr(kernel, "numbers", {})
    assert run(kernel, scale=np.float64(2.5), gain=np.float64(1))[:2] == [0x3F800000, 2.5]
    with pytest.raises(OverflowError, match="argument scale has 32 bits; found a complex128"):
        run(kernel, scale=np.complex128(1))
