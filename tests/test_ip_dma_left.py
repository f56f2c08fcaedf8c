"""The beats that a reset of an AXI DMA leaves beyond itself (PG021, "MM2S_DMACR.Reset")."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pynq_torch.board.engine import State
from pynq_torch.board.ip.dma_left import BeatsLeft
from pynq_torch.board.streams import Endpoint


class Rig:
    """A stream to a unit; `moved` beats have been taken, `fifo` are in FIFOs on the way."""

    def __init__(self) -> None:
        self.engine = SimpleNamespace(state=State.IDLE, started=2, completed=2)
        board: Any = SimpleNamespace(cus={"unit": SimpleNamespace(engine=self.engine)})
        self.left = BeatsLeft(board)
        self.ring: Any = SimpleNamespace(sink=Endpoint("unit", "S"), beats_read=10, left_over=0)

    def reset(self, taken: int, fifo: int = 0, before: int = 0) -> int:
        """Let so many beats be taken, then reset; return the beats that are left."""
        self.ring.beats_read, self.ring.left_over = taken, fifo
        self.left.was_reset(self.ring, before)
        return self.left.count(self.ring)


def test_an_idle_unit_keeps_what_it_took() -> None:
    rig = Rig()
    assert rig.left.count(rig.ring) == 0
    rig.left.transfer_begins(rig.ring)
    assert rig.reset(13, 4) == 7
    assert rig.reset(13, 2) == 7  # it gets all of that in its next run
    rig.ring.left_over = 9
    assert rig.left.count(rig.ring) == 9


def test_beats_from_before_an_earlier_reset_do_not_count_again() -> None:
    rig = Rig()
    rig.left.transfer_begins(rig.ring)
    for before, left in ((0, 3), (11, 2), (13, 0), (15, 0)):
        rig.left._kept = 0
        assert rig.reset(13, 0, before) == left


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("runs", [{"state": State.RUNNING}, {"started": 3}])
def test_of_a_unit_that_runs_nobody_can_say(when: str, runs: dict[str, Any]) -> None:
    rig = Rig()
    if when == "before":
        vars(rig.engine).update(runs)
    rig.left.transfer_begins(rig.ring)
    vars(rig.engine).update(runs if when == "after" else {"state": State.IDLE, "started": 2})
    assert rig.reset(13) == 0
    assert rig.reset(13, 4) == 4  # what a FIFO holds is there in any case


def test_a_run_in_between_takes_them() -> None:
    rig = Rig()
    rig.left.transfer_begins(rig.ring)
    rig.engine.started = rig.engine.completed = 3
    assert rig.reset(13) == 0
    rig.left.transfer_begins(rig.ring)
    rig.ring.beats_read = 15
    rig.left.transfer_begins(rig.ring)  # since the one before nobody has run
    assert rig.reset(16) == 3
    rig.engine.state = State.RUNNING
    rig.left.transfer_begins(rig.ring)
    rig.engine.state = State.IDLE
    rig.left.transfer_begins(rig.ring)
    assert rig.reset(21) == 5


def test_a_stream_to_nowhere_keeps_nothing() -> None:
    for sink in (None, Endpoint("other", "S")):
        rig = Rig()
        rig.ring.sink = sink
        rig.left.transfer_begins(rig.ring)
        assert rig.reset(13, 1) == 1
