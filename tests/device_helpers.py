"""What tests of device "pynq" need: the record of what ran where, and int8 values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import pynq_torch
from pynq_torch import events
from pynq_torch.board import current_board
from pynq_torch.events import OperatorCall
from pynq_torch.overlay import current_overlay


def loaded(name: str) -> Any:
    """Return an overlay on board csim; the one that is there, where it is that one."""
    board, overlay = current_board(), current_overlay()
    if board is not None and board.closed:
        board = None
    if board is None or overlay is None or overlay.device is not board or overlay.name != name:
        pynq_torch.use_board("csim")
        overlay = pynq_torch.load(name)
    return overlay


@pytest.fixture(scope="module")
def closing() -> Iterator[None]:
    """Close the board in use when the module's tests are done."""
    yield
    board = current_board()
    if board is not None:
        board.close()


#: The list of operator calls, filled as they end: ``with watched() as calls``.
watched = events.operators.collected


def of(calls: list[OperatorCall], *names: str) -> list[OperatorCall]:
    """Return the calls of operators, e.g. ``of(calls, "mm", "addmm")``."""
    return [c for c in calls if c.op.removeprefix("aten::") in names]


def int8(*shape: int, seed: int = 0) -> torch.Tensor:
    """Return every kind of int8: mostly random, some at the ends of the range."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(-128, 128, shape, dtype=torch.int8, generator=generator)
    ends = torch.randint(0, 8, shape, generator=generator)
    values[ends == 0] = -128
    values[ends == 1] = 127
    return values


def wrapped(values: torch.Tensor, dtype: torch.dtype = torch.int8) -> torch.Tensor:
    """Return int64 sums as a narrower integer holds them: modulo its range."""
    bits = 8 * dtype.itemsize
    return ((values + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)).to(dtype)


# ---- a gemm that misbehaves on request -----------------------------------------------------------

#: Kernels ``gemm`` and ``gemm_lut`` for ``use_board("csim", kernels=[MOODY])``.
MOODY = Path(__file__).parent / "moody"
#: First two elements of a row of `a` that make those do something else. `DAWDLE` takes 0.7 s more,
#: and with `PACED` a multiplication takes ``gemm`` 40 ns and ``gemm_lut`` 10 ns.
CRASH, HANG, DAWDLE, STRAY, PACED = ((mood, -77) for mood in (101, 102, 103, 104, 105))


def in_mood(a: torch.Tensor, mood: tuple[int, int], row: Any = 0) -> torch.Tensor:
    """Return a copy of a left operand with a mood in a row, or in several."""
    a = a.clone()
    a[row, :2] = torch.tensor(mood, dtype=torch.int8)
    return a
