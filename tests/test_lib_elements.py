"""The element types of pointers: what the generic driver takes and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import write_overlay

import pynq_torch
from pynq_torch import buffers
from pynq_torch.errors import ArgumentError

pytestmark = pytest.mark.timeout(180)

KINDS = """
#include <ap_int.h>
#include <hls_burst_maxi.h>
#include <hls_vector.h>
struct point { float x; int tag; };
void kinds(const float *x, double *d, int *i, const signed char *b, const unsigned *u,
           ap_int<16> *s, ap_uint<512> *wide, const hls::vector<float, 2> *pair, point *points,
           hls::burst_maxi<int> burst, ap_int<24> *odd, float table[4], int n) {
#pragma HLS INTERFACE m_axi port=x bundle=gmem offset=slave
#pragma HLS INTERFACE m_axi port=d bundle=gmem offset=slave
#pragma HLS INTERFACE m_axi port=i bundle=gmem offset=slave
#pragma HLS INTERFACE m_axi port=b bundle=gmem offset=slave
#pragma HLS INTERFACE m_axi port=u bundle=gmem offset=slave
#pragma HLS INTERFACE m_axi port=s bundle=gmem offset=slave
#pragma HLS INTERFACE m_axi port=wide bundle=gmem offset=slave
#pragma HLS INTERFACE m_axi port=pair bundle=gmem offset=slave
#pragma HLS INTERFACE m_axi port=points bundle=gmem offset=slave
#pragma HLS INTERFACE m_axi port=burst bundle=gmem offset=slave
#pragma HLS INTERFACE m_axi port=odd bundle=gmem offset=slave
#pragma HLS INTERFACE s_axilite port=table
#pragma HLS INTERFACE s_axilite port=n
#pragma HLS INTERFACE s_axilite port=return
    for (int k = 0; k < n; ++k) i[k] = x[k] + b[k];
}
"""
#: An argument of its own size for each pointer; 16 bytes suffice, where n is at most 2.
FITTING = {
    "x": torch.float32,
    "d": torch.float64,
    "i": torch.int32,
    "b": torch.int8,
    "u": torch.int32,
    "s": torch.int16,
    "wide": torch.float32,
    "pair": torch.float32,
    "points": torch.float32,
    "burst": torch.int32,
    "odd": torch.int32,
}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("kinds")
    kernels: Path = folder / "k"
    (kernels / "kinds").mkdir(parents=True)
    (kernels / "kinds" / "kinds.cpp").write_text(KINDS)
    bit = write_overlay(folder, {"kinds_0": "kinds"}, kernels=kernels)
    board = pynq_torch.use_board("csim", kernels=[kernels])
    yield pynq_torch.load(bit).kinds
    board.close()


@pytest.fixture
def given() -> dict[str, Any]:
    tensors = {name: torch.ones(16, dtype=dtype) for name, dtype in FITTING.items()}
    return {**tensors, "table": torch.ones(4), "n": 2}


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("x", torch.float64, r"x has dtype float64, 64 bits an element; .* takes float, 32 bits"),
        ("x", torch.float16, "float, 32 bits"),
        ("x", torch.bfloat16, "float, 32 bits"),
        ("x", torch.int8, "float, 32 bits"),
        ("x", torch.complex128, "float, 32 bits"),
        ("d", torch.float32, "double, 64 bits"),
        ("i", torch.int64, "int, 32 bits"),
        ("i", torch.uint8, "int, 32 bits"),
        ("b", torch.float32, "signed char, 8 bits"),
        ("u", torch.int64, "unsigned int, 32 bits"),
        ("s", torch.float32, "ap_int<16>, 16 bits"),
        ("burst", torch.int64, "int, 32 bits"),
        ("table", torch.float64, "float, 32 bits"),
    ],
)
def test_elements_of_another_size_are_refused(
    kernel: Any, given: dict[str, Any], name: str, dtype: torch.dtype, expected: str
) -> None:
    count = 2 if name == "table" else 16
    wrong = {**given, name: torch.ones(count, dtype=dtype)}
    with pytest.raises(ArgumentError, match=expected) as caught:
        kernel(**wrong)
    assert caught.value.cu == "kinds_0"
    assert f"argument {name} " in str(caught.value)
    if name != "table":
        wrong = {k: buffers.to_buffer(v) for k, v in wrong.items() if k not in ("n", "table")}
        with pytest.raises(ArgumentError, match=expected):
            kernel.start(**wrong, table=given["table"], n=2)
    assert not given["i"].ne(1).any()  # nothing was started
    kernel(**given)
    assert given["i"][:2].tolist() == [2, 2]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("x", torch.int32),  # the bits of floats
        ("x", torch.complex64),  # pairs of them
        ("i", torch.float32),
        ("u", torch.int8),  # four in a word
        ("wide", torch.float64),
        ("wide", torch.int8),
        ("pair", torch.float64),
        ("pair", torch.float32),
        ("points", torch.int64),
        ("burst", torch.int8),
        ("odd", torch.int8),
    ],
)
def test_what_may_be_meant_is_taken(
    kernel: Any, given: dict[str, Any], name: str, dtype: torch.dtype
) -> None:
    kernel(**{**given, name: torch.ones(64, dtype=dtype), "n": 1})


def test_views_numbers_and_raw_starts_are_not_looked_at(kernel: Any, given: dict[str, Any]) -> None:
    placed = {k: buffers.to_buffer(v) for k, v in given.items() if k not in ("n", "table")}
    wide = torch.zeros(16, dtype=torch.float64)
    x = buffers.to_buffer(wide)
    placed["x"] = x.view(np.float32)
    kernel.start(**placed, table=given["table"], n=2).wait(timeout_s=5)
    placed["x"] = x.physical_address
    kernel.start(**placed, table=given["table"], n=2).wait(timeout_s=5)
    assert np.asarray(placed["i"])[:2].tolist() == [1, 1]


def test_a_board_that_knows_no_types_refuses_nothing(
    kernel: Any, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on the hardware, and behind RTL: a handoff has no types."""
    monkeypatch.setattr(kernel, "elements", {})
    kernel(**{**given, "x": torch.ones(16, dtype=torch.float64)})
