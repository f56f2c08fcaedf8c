"""What a compute unit is doing in the PL process, read from its box."""

from __future__ import annotations

from collections.abc import Sequence

from pynq_torch.board.engine import State, is_stopped
from pynq_torch.board.streams import Ring

from . import layout as at
from .process import Pl

__all__ = ["RtlEngine"]


class RtlEngine:
    """What a unit is doing in the PL process; the counterpart of an `EngineProcess`."""

    def __init__(self, pl: Pl, index: int, rings: Sequence[Ring], ports: Sequence[str]) -> None:
        self.pl = pl
        self.name = pl.units[index]
        self.index = index
        self.rings = tuple(rings)
        self.ports = tuple(ports)
        self._raw, self._words, self._quads = pl.box(index)
        self.done_fd = pl.done_fds[index]

    @property
    def state(self) -> State:
        """What the unit does at this moment."""
        return State.FAULT if self.faulted else State(self._words[at.B_STATE])

    @property
    def started(self) -> int:
        """Runs that began."""
        return self._quads[at.B_STARTED]

    @property
    def completed(self) -> int:
        """Runs that ended since the process started."""
        return self._quads[at.B_COMPLETED]

    @property
    def can_move(self) -> bool:
        """Whether a clock brings the unit on, without anything from outside."""
        state = self._words[at.B_STATE]
        if state in (State.WAIT_READ, State.WAIT_WRITE):
            index = self._words[at.B_BLOCKED]
            if index >= len(self.rings):
                return False
            ring = self.rings[index]
            return ring.occupancy > 0 if state == State.WAIT_READ else ring.occupancy < ring.depth
        return state in (State.RUNNING, State.BOOTING) and not self.faulted

    @property
    def pid(self) -> int | None:
        """The PL process."""
        return self.pl.pid

    @property
    def blocked_on(self) -> str | None:
        """The stream port the unit waits for, if it does."""
        if self._words[at.B_STATE] not in (State.WAIT_READ, State.WAIT_WRITE):
            return None
        index = self._words[at.B_BLOCKED]
        return self.ports[index] if index < len(self.ports) else f"stream {index}"

    @property
    def stopped(self) -> bool:
        """Whether the PL process is held by a signal (SIGSTOP) or a debugger."""
        return is_stopped(self.pid)

    @property
    def faulted(self) -> bool:
        """True when the PL process is gone."""
        return self.pl.faulted

    def take_read_ahead(self) -> int:
        """Return the address of a read just outside a buffer since the last look; 0: none."""
        address, self._quads[at.B_READ_AHEAD] = self._quads[at.B_READ_AHEAD], 0
        return address

    @property
    def dropped(self) -> tuple[int, str] | None:
        """Bursts that the last reset found on their way, and the first port that had one."""
        count, port = self._words[at.B_DROPPED], self._words[at.B_DROPPED_PORT]
        return (count, self.pl.plans[self.index].rows[port].port) if count else None

    @property
    def irq(self) -> bool:
        """Level of the interrupt output."""
        return bool(self._words[at.B_IRQ])

    @property
    def watched(self) -> bool:
        """Whether the ends of runs are seen inside the model."""
        return bool(self._words[at.B_WATCHED])

    def run(self, number: int) -> tuple[int, ...] | None:
        """Return the record of a run (`layout.RUN`), while it is kept."""
        begin = at.B_RUNS + number % at.RUNS_KEPT * at.RECORD_BYTES
        record = at.RUN.unpack_from(self._raw, begin)
        return record if number and record[0] == number else None

    def phase_names(self) -> list[str]:
        """Return the names of the phases that the model counts."""
        end = at.B_NAMES + self._words[at.B_NPHASES] * at.B_NAME_BYTES
        names = bytes(self._raw[at.B_NAMES : end])
        starts = range(0, len(names), at.B_NAME_BYTES)
        return [names[i : i + at.B_NAME_BYTES].split(b"\0", 1)[0].decode() for i in starts]

    @property
    def last_activity(self) -> str:
        """Say when something last moved on the unit's buses."""
        moved, port = self._quads[at.B_MOVED], self._words[at.B_MOVED_PORT]
        rows = self.pl.plans[self.index].rows
        where = f" on {rows[port].port}" if port < len(rows) else ""
        ago = max(self.pl.cycle - moved, 0)
        return f"last bus activity in cycle {moved}{where}, {ago} cycles ago"
