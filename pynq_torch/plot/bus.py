"""Who moved data when: the buses of board "rtl" over cycles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pynq_torch.tables import Table

from .charts import COLOURS, ORDER, Chart, axes

if TYPE_CHECKING:
    from pynq_torch.board.rtl.observe.bus_trace import Trace
    from pynq_torch.board.rtl.records import Transaction

__all__ = ["bus_timeline"]

#: More bars than these would melt into one; then the share of busy cycles is drawn instead.
_BARS = 400
_BINS = 120


def bus_timeline(
    trace: Trace, cycles: tuple[int, int] | None = None, *, title: str = "", ax: Any = None
) -> Chart:
    """Draw the transactions of a trace over cycles, a lane for each port and direction.

    Parameters
    ----------
    trace : Trace
        E.g. ``board.trace().filter(unit="vadd_0")``.
    cycles : (int, int), optional
        The first cycle drawn and the one after the last. Default: all of the trace.
    title : str
        Of the chart.
    ax : matplotlib Axes, optional
        Drawn into.

    Returns
    -------
    Chart
        Up to some hundred transactions are bars from the address to the end, those under way at a
        time side by side; the dark part is where data moved. Of more the beats a cycle are drawn.
        The table has the lanes with transactions, bytes and beats.

    Raises
    ------
    ValueError
        There is no transaction in these cycles.
    """
    shown = trace if cycles is None else trace.filter(cycles=cycles)
    if not len(shown):
        raise ValueError("there is nothing to draw: expected at least one transaction")
    begin, end = shown.cycles if cycles is None else cycles
    lanes: dict[str, list[Transaction]] = {}
    for t in sorted(shown, key=lambda t: (t.unit, _order(t), t.port, t.kind)):
        kind = t.kind.removeprefix("register ").removeprefix("stream ")
        lanes.setdefault(f"{t.unit}\n{_short(t.port)} {kind}", []).append(t)
    ax = axes(ax, height=1.8 + 0.75 * len(lanes))
    bars = len(shown) <= _BARS
    for row, transactions in enumerate(lanes.values()):
        colour = COLOURS[ORDER[row % len(ORDER)]]
        (_bars if bars else _shares)(ax, row, transactions, colour, (begin, end))
    ax.set_yticks(range(len(lanes)), list(lanes))
    ax.set_ylim(len(lanes) - 0.5, -0.5)
    ax.set_xlim(begin, end)
    ax.set_title(title)
    what = "dark: data moves" if bars else "height: beats a cycle"
    clock = trace.clock_hz / 1e6
    ax.set_xlabel(f"cycle ({what})\n{trace.about}, at {clock:g} MHz", fontsize=11)
    rows = [
        [name.replace("\n", " "), len(ts), sum(t.bytes for t in ts), sum(t.beats for t in ts)]
        for name, ts in lanes.items()
    ]
    return Chart(ax, Table(["lane", "transactions", "bytes", "beats"], rows))


def _order(t: Transaction) -> int:
    """Return where a port stands: the processor's accesses first, then the design's."""
    return 0 if t.kind.startswith("register") else 1


def _short(port: str) -> str:
    return port.removeprefix("m_axi_").removeprefix("s_axi_")


def _bars(
    ax: Any, row: int, transactions: Sequence[Transaction], colour: str, _: tuple[int, int]
) -> None:
    """Draw each transaction; those that overlap lie below each other in the lane."""
    tracks: list[int] = []
    placed = []
    for t in sorted(transactions, key=lambda t: t.cycle):
        free = next((i for i, end in enumerate(tracks) if end < t.cycle), len(tracks))
        if free == len(tracks):
            tracks.append(t.done)
        tracks[free] = t.done
        placed.append((t, free))
    height = 0.8 / max(len(tracks), 1)
    for t, track in placed:
        y = row - 0.4 + (track + 0.5) * height
        ax.barh(y, t.done - t.cycle + 1, 0.9 * height, t.cycle, color=colour, alpha=0.35)
        ax.barh(y, t.done - t.first + 1, 0.9 * height, t.first, color=colour)


def _shares(
    ax: Any, row: int, transactions: Sequence[Transaction], colour: str, window: tuple[int, int]
) -> None:
    """Draw the beats a cycle, the beats of a transaction spread over its data phase."""
    import numpy as np

    begin, end = window
    edges = np.linspace(begin, end, _BINS + 1)
    beats = np.zeros(_BINS)
    for t in transactions:
        low, high = t.first, t.done + 1
        first = max(0, int((low - begin) * _BINS // (end - begin)))
        last = min(_BINS - 1, int((high - begin) * _BINS // (end - begin)))
        for index in range(first, last + 1):
            part = min(high, edges[index + 1]) - max(low, edges[index])
            beats[index] += t.beats * max(part, 0) / (high - low)
    share = beats / np.diff(edges)
    ax.stairs(row + 0.4 - 0.8 * np.minimum(share, 1), edges, baseline=row + 0.4, fill=True,
              color=colour)  # fmt: skip
