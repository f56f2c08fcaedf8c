"""What moved on the buses of board "rtl": a table of AXI transactions, cycle by cycle."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from pynq_torch import views
from pynq_torch.board.rtl.records import Transaction
from pynq_torch.errors import BoardError
from pynq_torch.tables import Table

if TYPE_CHECKING:
    from pynq_torch.board.device import VirtualBoard

__all__ = ["Trace"]

#: Rows that are shown at once, half from the beginning and half from the end; csv() has all.
SHOWN = 40
#: What stands for several kinds.
_KINDS = {
    "memory": ("read", "write"),
    "register": ("register read", "register write"),
    "stream": ("stream in", "stream out"),
}
_AP_CTRL, _AP_START = 0, 1
HEADER = [
    "cycle",
    "unit",
    "port",
    "kind",
    "address",
    "beats",
    "bytes",
    "value",
    "latency",
    "stalls",
    "resp",
]


class Trace(Sequence[Transaction]):
    """Transactions in order of their address, as a table that can be filtered and saved.

    Parameters
    ----------
    transactions : iterable of Transaction
        In any order.
    clock_hz : float
        Of the PL.
    dropped : int
        Older ones that are no longer there: the board keeps the last ones only.
    about : str
        Where the cycles come from, e.g. ``"cycles counted in RTL, memory pynq-z2"``.

    Examples
    --------
    ::

        board.trace().filter(unit="vadd_0", kind="read")
    """

    def __init__(
        self,
        transactions: Iterable[Transaction],
        clock_hz: float = 100e6,
        dropped: int = 0,
        about: str = "cycles counted in RTL",
    ) -> None:
        self._rows = sorted(transactions, key=lambda t: (t.cycle, t.done))
        self.clock_hz = clock_hz
        self.dropped = dropped
        self.about = about

    @classmethod
    def of(cls, board: VirtualBoard) -> Trace:
        """Return what the buses of a board's overlay have carried, the last transactions of it.

        Raises
        ------
        BoardError
            The board simulates no RTL.
        """
        pl = simulated(board)
        window = pl.trace_window()
        return cls(window.transactions, pl.clock_hz, window.dropped, about(board))

    # ---- a sequence ----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Transaction: ...

    @overload
    def __getitem__(self, index: slice) -> Trace: ...

    def __getitem__(self, index: int | slice) -> Transaction | Trace:
        return self._like(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __iter__(self) -> Iterator[Transaction]:
        return iter(self._rows)

    def _like(self, rows: Iterable[Transaction]) -> Trace:
        return Trace(rows, self.clock_hz, self.dropped, self.about)

    # ---- choosing ------------------------------------------------------------------------------

    def filter(
        self,
        *,
        unit: str | None = None,
        port: str | None = None,
        kind: str | None = None,
        cycles: tuple[int, int] | None = None,
        address: tuple[int, int] | None = None,
        resp: str | None = None,
        where: Callable[[Transaction], bool] | None = None,
    ) -> Trace:
        """Return the transactions that fit all that is given.

        Parameters
        ----------
        unit, port, kind, resp : str
            Equal to these; of a port its name without ``m_axi_`` or ``s_axi_`` will do, and a
            `kind` of ``"memory"``, ``"register"`` or ``"stream"`` stands for both directions.
        cycles : (int, int)
            Active in at least one cycle from the first on and before the second.
        address : (int, int)
            Within the bytes from the first on and before the second.
        where : callable
            Called with each `Transaction`.

        Raises
        ------
        ValueError
            A name fits nothing in the whole trace, while there are others.
        """

        def fits(t: Transaction) -> bool:
            return (
                (unit is None or t.unit == unit)
                and (port is None or _is_port(t.port, port))
                and (kind is None or _is_kind(t.kind, kind))
                and (resp is None or t.resp == resp)
                and (cycles is None or (t.cycle < cycles[1] and t.done >= cycles[0]))
                and (address is None or address[0] <= t.address < address[1])
                and (where is None or where(t))
            )

        self._known("unit", unit, str.__eq__)
        self._known("port", port, _is_port)
        self._known("kind", kind, _is_kind)
        return self._like(t for t in self._rows if fits(t))

    def _known(self, field: str, name: str | None, fits: Callable[[str, str], bool]) -> None:
        there = dict.fromkeys(getattr(t, field) for t in self._rows)
        if name is not None and there and not any(fits(value, name) for value in there):
            raise ValueError(
                f"no transaction has the {field} {name!r}; there are {', '.join(there)}"
            )

    def since(self, cycle: int) -> Trace:
        """Return the same transactions with cycles counted from one of them, which becomes 0."""
        return self._like(
            replace(t, cycle=t.cycle - cycle, first=t.first - cycle, done=t.done - cycle)
            for t in self._rows
        )

    def since_start(self, unit: str | None = None) -> Trace:
        """Return the same transactions with cycles counted from the last write of AP_START.

        Parameters
        ----------
        unit : str, optional
            Of this unit, and its transactions only. Default: of whichever was started last.

        Raises
        ------
        ValueError
            There is no such write in the trace.
        """
        own = self if unit is None else self.filter(unit=unit)
        starts = [
            t.done
            for t in own
            if t.kind == "register write" and t.address == _AP_CTRL and t.value & _AP_START
        ]
        if not starts:
            raise ValueError(f"no write of AP_START in the trace of {unit or 'the board'}")
        return own.since(starts[-1])

    @property
    def cycles(self) -> tuple[int, int]:
        """The first cycle of all, and the one after the last."""
        begin = min((t.cycle for t in self._rows), default=0)
        return begin, max((t.done for t in self._rows), default=begin - 1) + 1

    @property
    def nbytes(self) -> int:
        """Bytes of all of them."""
        return sum(t.bytes for t in self._rows)

    # ---- for people ----------------------------------------------------------------------------

    def table(self, limit: int | None = None) -> Table:
        """Return the transactions as a table; of more than `limit` the first and the last ones."""
        rows = [_row(t) for t in self._rows]
        if limit is not None and len(rows) > limit:
            left_out = f"{len(rows) - limit} more"
            gap = ["...", left_out, *[""] * (len(HEADER) - 2)]
            rows = [*rows[: (limit + 1) // 2], gap, *rows[len(rows) - limit // 2 :]]
        return Table(HEADER, rows)

    def summary(self) -> str:
        """Return how many there are, and where the numbers come from."""
        lost = f", {self.dropped:,} older ones no longer there" if self.dropped else ""
        return (
            f"{len(self):,} transactions, {self.nbytes:,} bytes{lost}; {self.about} at "
            f"{self.clock_hz / 1e6:g} MHz"
        )

    def csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return all as comma-separated values, and write them to a file where one is given."""
        text = self.table().csv()
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def plot(self, cycles: tuple[int, int] | None = None, **options: Any) -> Any:
        """Draw who moved data when; see `pynq_torch.plot.bus.bus_timeline`."""
        return views.draw("bus", self, cycles, **options)

    def __str__(self) -> str:
        return f"{self.table(SHOWN)}\n{self.summary()}" if self._rows else self.summary()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape

        return f"{self.table(SHOWN)._repr_html_()}<p>{escape(self.summary())}</p>"


def simulated(board: Any) -> Any:
    """Return the PL of a board that simulates RTL.

    Raises
    ------
    BoardError
        It simulates none, so there is nothing to see on its buses.
    """
    pl = getattr(board, "pl", None)
    if pl is None:
        raise BoardError(
            f"board '{board.board_name}' simulates no RTL now, so nothing is known of its buses: "
            "choose board 'rtl' and load an overlay whose kernels have RTL"
        )
    return pl


def about(board: Any) -> str:
    """Return where the cycles of a board come from."""
    return f"cycles counted in RTL, memory model {board.memory_model}"


def _is_port(full: str, name: str) -> bool:
    return full == name or full.removeprefix("m_axi_").removeprefix("s_axi_") == name


def _is_kind(full: str, name: str) -> bool:
    return full == name or full in _KINDS.get(name, ())


def _row(t: Transaction) -> list[Any]:
    value = f"0x{t.value:x}" if t.kind.startswith("register") else ""
    where = "" if t.kind.startswith("stream") else f"0x{t.address:08x}"
    latency = "never ended" if t.cut else t.latency
    fields = [t.cycle, t.unit, t.port, t.kind, where, t.beats, t.bytes]
    return [*fields, value, latency, t.stalls, t.resp]
