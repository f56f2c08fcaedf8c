"""What moved through each port of board "rtl" and what it waited for, as a table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, overload

from pynq_torch.board.rtl.records import PortCounters
from pynq_torch.tables import Table

from .bus_trace import about, simulated

if TYPE_CHECKING:
    from pynq_torch.board.device import VirtualBoard

__all__ = ["Counters"]

HEADER = [
    "unit",
    "port",
    "direction",
    "bytes",
    "beats",
    "transactions",
    "stalls(memory)",
    "stalls(design)",
    "latency",
    "utilisation",
]


class Counters(Sequence[PortCounters]):
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
        self._rows = list(rows)
        self.cycles = cycles
        self.clock_hz = clock_hz
        self.about = about

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

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> PortCounters: ...

    @overload
    def __getitem__(self, index: slice) -> Counters: ...

    def __getitem__(self, index: int | slice) -> PortCounters | Counters:
        return self._like(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __iter__(self) -> Iterator[PortCounters]:
        return iter(self._rows)

    def _like(self, rows: Iterable[PortCounters]) -> Counters:
        return Counters(rows, self.cycles, self.clock_hz, self.about)

    def filter(
        self, *, unit: str | None = None, port: str | None = None, direction: str | None = None
    ) -> Counters:
        """Return the rows that fit all that is given."""
        return self._like(
            row
            for row in self._rows
            if (unit is None or row.unit == unit)
            and (port is None or row.port in (port, f"m_axi_{port}", f"s_axi_{port}"))
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

    def csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the table as comma-separated values, and write them to a file if one is given."""
        text = self.table.csv()
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def __str__(self) -> str:
        return f"{self.table}\n{self.summary()}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape

        return f"{self.table._repr_html_()}<p>{escape(self.summary())}</p>"
