"""A compute unit of the RTL board by itself: what it says it is doing, and what it counts.

The cases are those of ``rtl_cpp/pl_cases.hpp``, on a model that they drive cycle by cycle, and of
``rtl_cpp/logic_cases.hpp``, where the PL's own clock does.
"""

from __future__ import annotations

import pytest
from rtl_cpp_bench import build, run


@pytest.fixture(scope="session")
def bench(tmp_path_factory):
    return build(tmp_path_factory.getbasetemp().parent, "pl_bench")


UNIT = "made reset requests runs unseen rest streams time"
CLOCK = "clock waits slices computes gives_up restarts wakes late alone busy"


@pytest.mark.parametrize("case", [*UNIT.split(), *CLOCK.split()])
def test_a_unit(bench, case):
    assert run(bench, case) == ""
