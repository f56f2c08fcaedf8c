"""What the PL process is told when it starts: its units, their ports and streams, its options."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pynq_torch.board.streams import Ring

from .records import PortRow

if TYPE_CHECKING:
    from .build import BuiltModel

#: A row of the setup file, which ``main.cpp`` reads.
Row = Sequence[object]


@dataclass(frozen=True)
class StreamPlan:
    """A stream of a unit: its ring, and what is at the other end."""

    name: str
    out: bool
    ring: Ring
    local: bool  #: the other end is in the same process
    hp: int = -1  #: the memory port of the DMA behind it; -1 where there is none
    peer_fd: int = -1  #: the mailbox of the process at the other end; -1 where there is none


@dataclass
class UnitPlan:
    """What the process has to know of one unit."""

    name: str
    model: BuiltModel
    memory_ports: dict[str, int] = field(default_factory=dict)  #: AXI4 manager -> HP port
    streams: list[StreamPlan] = field(default_factory=list)
    ties: dict[str, int] = field(default_factory=dict)  #: inputs that the design's wires drive
    control: int = -1  #: index of the AXI4-Lite interface with AP_CTRL; -1 where there is none

    @property
    def rows(self) -> list[PortRow]:
        """Its AXI ports, in the order of the process's table."""
        ports = self.model.interfaces.ports
        return [PortRow(self.name, port.name, port.data_width) for port in ports]

    def setup(self, events: Row, rings: Sequence[Ring]) -> list[Row]:
        """Return the unit's part of the setup file; `events` are its descriptors.

        Its ports come in the order of `rows`, by which the process numbers them.
        """
        found = self.model.interfaces
        rows: list[Row] = [("unit", self.name, self.model.library, *events)]
        for port in found.ports:
            signals = ((f"{port.name}_{name}", actual) for name, actual in port.signals.items())
            rows += [("alias", name, actual) for name, actual in signals if actual != name]
        tied = {**found.constants, **self.ties}
        rows += [("constant", name, value) for name, value in tied.items()]
        rows += [("clock", name) for name in found.clocks]
        rows += [("reset", name, int(not low)) for name, low in found.resets]
        rows += [("interrupt", found.interrupt)] if found.interrupt else []
        rows += [("control", self.control)] if self.control >= 0 else []
        rows += [("lite", slave.name) for slave in found.slaves]
        for master in found.masters:
            rows.append(("axi", master.name, self.memory_ports.get(master.name, 0)))
        for s in self.streams:
            where = ("out" if s.out else "in", rings.index(s.ring), int(s.local), s.hp)
            rows.append(("stream", s.name, *where, s.peer_fd))
        return rows


@dataclass(frozen=True)
class PlOptions:
    """What the whole PL is simulated with."""

    memory: str = "pynq-z2"  #: memory model: ``"pynq-z2"`` or ``"ideal"``
    stalls: float = 0.0  #: share of cycles in which a channel pauses at random, below 1
    seed: int = 0  #: of the pauses, and of the registers' initial values
    clock_hz: float = 100e6
    timeout_cycles: int = 0  #: a run that takes longer ends with an error; 0: none does
    fill: int = 0  #: what registers hold that are not reset: 0 zeros, 1 ones, 2 random values
    history: int = 0  #: cycles before their trigger that waves can show
    #: How long the process may compute without the end of a cycle, or leave a request unanswered.
    hang_timeout_s: float = 30.0


def text_of(rows: Iterable[Row]) -> str:
    """Return the setup file of its rows."""
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)
