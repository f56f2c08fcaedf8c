"""The ends of a stream's ring, and what drives a unit's registers and streams, each by itself.

The cases are those of ``rtl_cpp/ring_cases.hpp``, ``stream_cases.hpp`` and others: what is in the
ring, who is woken, which signals are set, cycle by cycle.
"""

from __future__ import annotations

import pytest
from rtl_cpp_bench import build, run


@pytest.fixture(scope="session")
def bench(tmp_path_factory):
    return build(tmp_path_factory.getbasetemp().parent)


RINGS = [
    "port",
    "waits",
    "withdrawn",
    "burst",
    "reader",
    "writer",
    "sleepers",
    "repeats",
    "grants",
    "pins",
]


@pytest.mark.parametrize("case", RINGS)
def test_an_end_of_a_ring(bench, case):
    assert run(bench, "ring", case) == ""


@pytest.mark.parametrize(
    "case",
    [
        "lite",
        "source",
        "sink",
        "flow of a DMA",
        "source of a DMA",
        "sink to a DMA",
        "meter",
        "early data",
        "few pins",
    ],
)
def test_a_port_of_a_unit(bench, case):
    assert run(bench, "unit", case) == ""
