"""What moved on the buses of board "rtl": a table of AXI transactions, cycle by cycle."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pynq_torch import views
from pynq_torch.board.rtl.records import Transaction
from pynq_torch.hls.ap_ctrl import AP_CTRL, AP_START
from pynq_torch.tables import Table

from .rows import Rows, about, is_port, simulated

if TYPE_CHECKING:
    from pynq_torch.board.device import VirtualBoard

__all__ = ["Trace"]

#: Names that mean several kinds.
_KINDS = {
    "memory": ("read", "write"),
    "register": ("register read", "register write"),
    "stream": ("stream in", "stream out"),
}
HEADER = (
    "cycle", "unit", "port", "kind", "address", "beats", "bytes", "value", "latency", "stalls",
    "resp",
)  # fmt: skip


class Trace(Rows[Transaction]):
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
        super().__init__(sorted(transactions, key=_when), clock_hz, about)
        self.dropped = dropped

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

    def _like(self, rows: Iterable[Transaction]) -> Trace:
        return super()._like(sorted(rows, key=_when))

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
                and (port is None or is_port(t.port, port))
                and (kind is None or _is_kind(t.kind, kind))
                and (resp is None or t.resp == resp)
                and (cycles is None or (t.cycle < cycles[1] and t.done >= cycles[0]))
                and (address is None or address[0] <= t.address < address[1])
                and (where is None or where(t))
            )

        self._known("unit", unit, str.__eq__)
        self._known("port", port, is_port)
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
            if t.kind == "register write" and t.address == AP_CTRL and t.value & AP_START
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

    def _shown(self, limit: int | None) -> Table:
        return self.table(limit)

    def summary(self) -> str:
        """Return how many there are, and where the numbers come from."""
        lost = f", {self.dropped:,} older ones no longer there" if self.dropped else ""
        return (
            f"{len(self):,} transactions, {self.nbytes:,} bytes{lost}; {self.about} at "
            f"{self.clock_hz / 1e6:g} MHz"
        )

    def plot(self, cycles: tuple[int, int] | None = None, **options: Any) -> Any:
        """Draw who moved data when; see `pynq_torch.plot.bus.bus_timeline`."""
        return views.draw("bus", self, cycles, **options)

    def __str__(self) -> str:
        return super().__str__() if self._rows else self.summary()


def _when(t: Transaction) -> tuple[int, int]:
    return t.cycle, t.done


def _is_kind(full: str, name: str) -> bool:
    return full == name or full in _KINDS.get(name, ())


def _row(t: Transaction) -> list[Any]:
    value = f"0x{t.value:x}" if t.kind.startswith("register") else ""
    where = "" if t.kind.startswith("stream") else f"0x{t.address:08x}"
    latency = "never ended" if t.cut else t.latency
    fields = [t.cycle, t.unit, t.port, t.kind, where, t.beats, t.bytes]
    return [*fields, value, latency, t.stalls, t.resp]
