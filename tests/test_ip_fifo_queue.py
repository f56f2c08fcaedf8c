"""The queues of an AXI4-Stream FIFO, where the test is the engine at their other end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pynq_torch.board.engine import NO_OFFSET, EngineProcess, State
from pynq_torch.board.ip import fifo_queue
from pynq_torch.board.ip.fifo_queue import Beat, BeatQueue, FifoEngine
from pynq_torch.board.memory import PhysicalMemory
from pynq_torch.board.streams import Ring

PORTS = ("TXD", "RXD")


class Rig:
    """An engine of two queues of 4 beats; `did` says how often it was started or rung."""

    def __init__(self, memory: PhysicalMemory) -> None:
        self.rings = [Ring(None, None, nbytes, 20) for nbytes in (4, 9)]
        self.sends, self.takes = (BeatQueue(ring, 4) for ring in self.rings)
        self.memory = memory
        self.engine = FifoEngine("fifo", memory, self.sends, self.takes, PORTS)
        self.engine.words[3] = State.RUNNING

    def rung(self) -> int:
        """Say how often the engine was rung since the last look."""
        try:
            return os.eventfd_read(self.engine.start_fd)
        except BlockingIOError:
            return 0

    def occupy(self, index: int, beats: int, read: int = 0) -> None:
        """Put so many beats into a ring, after `read` others that have left it."""
        ring = self.rings[index]
        ring._map[16:24] = (beats + read).to_bytes(8, "little")
        ring._map[24:32] = read.to_bytes(8, "little")


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(fifo_queue, "compile_engine", lambda source: Path("none"))
    memory = PhysicalMemory()
    rig = Rig(memory)
    os.set_blocking(rig.engine.start_fd, False)
    yield rig
    rig.engine.close()
    memory.close()


def test_the_layout_that_the_engine_knows(rig: Rig) -> None:
    assert (rig.sends.stride, rig.takes.stride) == (40, 48)  # eight bytes, or a multiple
    assert rig.engine.ports == ("fifo.TXD", "fifo.RXD")
    words = rig.engine.user.cast("I")
    assert [words[16 * i + 6 : 16 * i + 10].tolist() for i in (0, 1)] == [
        [0, 0, 4, 40],
        [0, 1, 4, 48],
    ]
    counts = rig.engine.user.cast("Q")
    assert [counts[5], counts[13]] == [0, 160]
    alone = FifoEngine("fifo", rig.memory, None, BeatQueue(rig.rings[1], 200), PORTS)
    words = alone.user.cast("I")
    assert words[7] == NO_OFFSET and words[16 + 7 : 16 + 10].tolist() == [0, 200, 48]
    assert alone.user.cast("Q")[13] == 0 and len(alone.registers) == 12288
    alone.close()


def test_slots_go_round(rig: Rig) -> None:
    beats = [Beat(bytes([i]), 1 + i, 2 + i, 3 + i, 4 + i, i % 2 == 0) for i in range(4)]
    for i, beat in enumerate(beats):
        rig.takes.put(4 + i, beat)
    for i, beat in enumerate(beats):
        got = rig.takes.get(8 + i)
        assert got.data == beat.data.ljust(9, b"\0")
        assert vars(got) == vars(beat) | {"data": got.data}
    rig.sends.put(1, Beat(b"abcd", 15, 0x1_0000_0001))
    assert bytes(rig.engine.registers[40:48]) == bytes([15, 0, 0, 0, 0, 0, 0, 0])
    assert bytes(rig.engine.registers[48:56]) == bytes([1, 0, 0, 0, 1, 0, 0, 0])
    assert bytes(rig.engine.registers[72:76]) == b"abcd"


def test_when_the_engine_is_rung(rig: Rig) -> None:
    rig.sends.give(3)
    assert (rig.sends.given, rig.sends.taken, rig.rung()) == (3, 0, 1)
    rig.takes._q[0] = 4
    rig.takes.take(1)
    assert (rig.takes.taken, rig.rung()) == (1, 1)  # there was no room before
    rig.takes.take(2)
    assert (rig.takes.taken, rig.rung()) == (3, 0)
    rig.takes._q[2] = 9
    assert rig.takes.packets == 9


def test_when_a_beat_can_go_on(rig: Rig) -> None:
    engine, sends, takes = rig.engine, rig.sends, rig.takes
    assert not engine.can_move
    for state, moves in ((State.BOOTING, True), (State.FAULT, False)):
        engine.words[3] = state
        assert engine.can_move is moves
    engine.words[3] = State.RUNNING
    sends._q[0] = 2
    assert engine.can_move
    rig.occupy(0, 20)
    assert engine.can_move
    rig.occupy(0, 21)  # as many as wait where the receiver does not take them
    assert not engine.can_move
    rig.occupy(1, 1)
    assert engine.can_move
    takes._q[0], takes._q[1] = 7, 4
    assert engine.can_move
    takes._q[0] = 8  # it is full
    assert not engine.can_move
    sends._q[1] = 2
    takes._q[1] = 5
    rig.occupy(0, 0)
    assert engine.can_move
    rig.occupy(1, 0)
    assert not engine.can_move
    engine.receives = None
    assert not engine.can_move
    engine.sends = None
    assert not engine.can_move
    engine.receives = takes
    rig.occupy(1, 3)
    assert engine.can_move


def test_a_ring_without_a_slot_takes_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.sends._q[0] = 1
    monkeypatch.setattr(Ring, "full", True)
    assert not rig.engine.can_move


@pytest.mark.parametrize("ends", ["at once", "late", "never", "dead"])
def test_a_queue_is_emptied(rig: Rig, ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spawned: list[object] = []
    slept: list[float] = []
    queue = rig.sends

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if ends == "at once" or (ends == "late" and len(slept) == 19_000):
            queue._i[6], queue._q[1] = 0, 5

    clock = SimpleNamespace(monotonic=lambda: sum(slept[:1]) * len(slept), sleep=sleep)
    monkeypatch.setattr(fifo_queue, "time", clock)
    monkeypatch.setattr(EngineProcess, "spawn", lambda engine: spawned.append(engine))
    if ends == "dead":
        rig.engine.words[3] = State.FAULT
    queue._q[0] = 9
    queue.empty()
    assert queue._i[6] == 0 and rig.rung() == 1
    started: Any = [rig.engine] if ends in ("never", "dead") else []
    assert (spawned, queue.taken) == (started, 9 if started else 5)
    if ends == "never":  # two seconds
        assert 20_000 <= len(slept) <= 20_002
