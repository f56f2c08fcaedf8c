"""The queues between an AXI4-Stream FIFO's registers and its engine (``engines/axi_fifo.cpp``)."""

from __future__ import annotations

import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from pynq_torch.board.engine import NO_OFFSET, EngineProcess, State
from pynq_torch.board.memory import PhysicalMemory
from pynq_torch.board.streams import Endpoint, Ring
from pynq_torch.hls import compile_engine

_SOURCE = Path(__file__).parents[1] / "engines" / "axi_fifo.cpp"
_SLOT = struct.Struct("<QQIIII")
_STRIDE = 64
_GIVEN, _TAKEN, _PACKETS, _AT = 0, 1, 2, 5  # 64-bit words
_RESET, _PORT, _DEPTH, _SLOT_BYTES = 6, 7, 8, 9  # 32-bit words
_RESET_LIMIT_S = 2.0


@dataclass
class Beat:
    """A beat of the stream in a slot of a queue."""

    data: bytes
    keep: int
    user: int = 0
    id: int = 0
    dest: int = 0
    last: bool = False


class BeatQueue:
    """One direction's queue, of `depth` beats of `ring`."""

    def __init__(self, ring: Ring, depth: int) -> None:
        self.ring = ring
        self.depth = depth
        self.data_bytes = ring.data_bytes
        self.stride = (_SLOT.size + self.data_bytes + 7) & ~7

    def attach(self, engine: FifoEngine, index: int, port: int, at: int) -> None:
        """Lay the queue into an engine's memory; before the engine starts."""
        self._engine, self._at = engine, at
        part = engine.user[index * _STRIDE : (index + 1) * _STRIDE]
        self._q, self._i = part.cast("Q"), part.cast("I")
        self._i[_PORT], self._i[_DEPTH], self._i[_SLOT_BYTES] = port, self.depth, self.stride
        self._q[_AT] = at

    @property
    def given(self) -> int:
        """Slots filled since the start."""
        return self._q[_GIVEN]

    @property
    def taken(self) -> int:
        """Slots emptied since the start."""
        return self._q[_TAKEN]

    @property
    def packets(self) -> int:
        """Packets that have passed the engine whole."""
        return self._q[_PACKETS]

    def put(self, position: int, beat: Beat) -> None:
        """Fill the slot of a position, without giving it."""
        at = self._at + position % self.depth * self.stride
        side = _SLOT.pack(beat.keep, beat.user, beat.id, beat.dest, beat.last, 0)
        slot = side + beat.data.ljust(self.data_bytes, b"\0")
        self._engine.registers[at : at + len(slot)] = slot

    def get(self, position: int) -> Beat:
        """Return the beat at a position."""
        at = self._at + position % self.depth * self.stride
        keep, user, number, dest, last, _ = _SLOT.unpack_from(self._engine.registers, at)
        begin = at + _SLOT.size
        data = bytes(self._engine.registers[begin : begin + self.data_bytes])
        return Beat(data, keep, user, number, dest, bool(last))

    def give(self, position: int) -> None:
        """Let the engine send everything before a position."""
        self._q[_GIVEN] = position
        self._engine.ring()

    def take(self, count: int) -> None:
        """Give the engine the room of the next `count` beats."""
        was_full = self.given - self.taken >= self.depth
        self._q[_TAKEN] += count
        if was_full:
            self._engine.ring()

    def empty(self) -> None:
        """Drop what is in the queue; a beat that the engine is about to pass, too."""
        self._i[_RESET] = 1
        self._engine.ring()
        deadline = time.monotonic() + _RESET_LIMIT_S
        while self._i[_RESET]:
            if time.monotonic() > deadline or self._engine.faulted:
                self._i[_RESET], self._q[_TAKEN] = 0, self.given
                self._engine.spawn()
                return
            time.sleep(1e-4)


class FifoEngine(EngineProcess):
    """The process that carries beats between two queues and two streams; it has no runs."""

    def __init__(
        self,
        name: str,
        memory: PhysicalMemory,
        sends: BeatQueue | None,
        receives: BeatQueue | None,
        ports: tuple[str, str],
    ) -> None:
        self.sends, self.receives = sends, receives
        used = [(q, port) for q, port in zip((sends, receives), ports, strict=True) if q]
        nbytes = sum(q.depth * q.stride for q, _ in used)
        rings = [q.ring for q, _ in used]
        ends = [Endpoint(name, port) for _, port in used]
        super().__init__(compile_engine(_SOURCE), name, memory, max(nbytes, 1), rings, ends)
        at = 0
        for index, queue in enumerate((sends, receives)):
            if queue is None:
                self.user[index * _STRIDE :][:_STRIDE].cast("I")[_PORT] = NO_OFFSET
                continue
            queue.attach(self, index, rings.index(queue.ring), at)
            at += queue.depth * queue.stride

    @staticmethod
    def compile() -> Path:
        """Return the engine's program, compiled where it is not in the cache."""
        return compile_engine(_SOURCE)

    def ring(self) -> None:
        """Let the engine look at its queues."""
        os.eventfd_write(self.start_fd, 1)

    def _goes_on(self, state: State) -> bool:
        """Whether a beat waits that can go on."""
        out, into = self.sends, self.receives
        if out is not None and out.given > out.taken and out.ring.occupancy <= out.ring.depth:
            return not out.ring.full
        if into is None:
            return False
        return into.ring.occupancy > 0 and into.given - into.taken < into.depth
