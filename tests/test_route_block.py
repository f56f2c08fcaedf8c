"""`torch.pynq.profiler.route.routed`: a route for a block, and the earlier one behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import pynq_torch
from pynq_torch.errors import RouteError

CPU = [{"signature": "aten::_int_mm", "offload": False}]
PL = [{"signature": "aten::_int_mm", "offload": True}]


@pytest.fixture
def a() -> Iterator[torch.Tensor]:
    """An int8 matrix on the device, with gemm in the PL."""
    board: Any = pynq_torch.use_board("csim")
    pynq_torch.load("gemm")
    yield torch.ones(4, 4, dtype=torch.int8).pynq()
    torch.pynq.profiler.route.clear()
    board.close()


def where(a: torch.Tensor) -> str:
    with torch.pynq.profiler.profile() as profile:
        torch._int_mm(a, a)
    return "PL" if profile.rows()[0].on_pl else "CPU"


def test_a_route_ends_with_its_block(a: torch.Tensor) -> None:
    route = torch.pynq.profiler.route
    with route.routed(CPU):
        assert where(a) == "CPU"
        with route.routed(PL):
            assert where(a) == "PL"
        assert where(a) == "CPU"
    assert not route.is_set() and where(a) == "PL"


def test_also_if_the_block_fails_or_the_route_is_none(a: torch.Tensor) -> None:
    route = torch.pynq.profiler.route
    with pytest.raises(RouteError), route.routed(CPU, at_end="error"):
        where(a), where(a)
    assert not route.is_set()
    with pytest.raises(ValueError, match="no entries"), route.routed([]):
        pass
    assert not route.is_set()
