"""What moved through each port of board "rtl" and what it waited for, as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from pynq_torch.board.rtl.records import PortCounters
from pynq_torch.tables import Table

from .rows import Rows, about, is_port, simulated

if TYPE_CHECKING:
    from pynq_torch.board.device import VirtualBoard

__all__ = ["Counters"]

HEADER = (
    "unit", "port", "direction", "bytes", "beats", "transactions", "stalls(memory)",
    "stalls(design)", "latency", "utilisation",
)  # fmt: skip


class Counters(Rows[PortCounters]):
    """Counters of every port and direction.

    Parameters
    ----------
    rows : iterable of PortCounters
        A `PortCounters` for each.
    cycles : int
        Cycles of the clock in which they were counted.
    clock_hz : float
        Of the PL.
    about : str
        Where the cycles come from.
    """

    def __init__(
        self,
        rows: Iterable[PortCounters],
        cycles: int,
        clock_hz: float = 100e6,
        about: str = "cycles counted in RTL",
    ) -> None:
        super().__init__(rows, clock_hz, about)
        self.cycles = cycles

    @classmethod
    def of(cls, board: VirtualBoard) -> Counters:
        """Return what the ports of a board's overlay counted since it was loaded.

        Raises
        ------
        BoardError
            The board simulates no RTL.
        """
        pl = simulated(board)
        return cls(pl.port_counters(), pl.cycle, pl.clock_hz, about(board))

    def filter(
        self, *, unit: str | None = None, port: str | None = None, direction: str | None = None
    ) -> Counters:
        """Return the rows that fit all that is given."""
        return self._like(
            row
            for row in self._rows
            if (unit is None or row.unit == unit)
            and (port is None or is_port(row.port, port))
            and (direction is None or row.direction == direction)
        )

    def __sub__(self, earlier: Counters) -> Counters:
        """Return what was counted since `earlier`, an older look at the same ports."""
        before = {(row.unit, row.port, row.direction): row for row in earlier}
        rows = []
        for row in self._rows:
            old = before.get((row.unit, row.port, row.direction))
            rows.append(
                replace(row, cycles=row.cycles - earlier.cycles) if old is None else row.since(old)
            )
        return Counters(rows, self.cycles - earlier.cycles, self.clock_hz, self.about)

    @property
    def nbytes(self) -> int:
        """Bytes through all ports to memory."""
        return sum(row.bytes for row in self._rows if row.port.startswith("m_axi"))

    @property
    def table(self) -> Table:
        """The rows as text."""
        return Table(HEADER, [self._cells(row) for row in self._rows])

    def _shown(self, limit: int | None) -> Table:
        return self.table

    def _cells(self, row: PortCounters) -> list[str]:
        latency = f"{row.latency_mean:.1f}" if row.transactions else ""
        counts = (row.bytes, row.beats, row.transactions, row.stall_memory, row.stall_design)
        names = [row.unit, row.port, row.direction]
        return [*names, *(f"{n:,}" for n in counts), latency, f"{row.utilisation:.1%}"]

    def summary(self) -> str:
        """Return in how many cycles it was counted, and where the numbers come from."""
        return (
            f"{self.cycles:,} {self.about} at {self.clock_hz / 1e6:g} MHz; latency: mean, from the "
            "address to the end"
        )
