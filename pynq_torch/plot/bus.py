"""Who moved data when: the buses of board "rtl" over cycles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pynq_torch.tables import Table

from .charts import Chart, axes, colour, nothing_to_draw, rows_of_bars

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
        Title of the chart.
    ax : matplotlib Axes, optional
        Axes to draw on; default: those of a new figure.

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
        raise nothing_to_draw("at least one transaction")
    lanes = _lanes(shown)
    ax = axes(ax, height=1.8 + 0.75 * len(lanes))
    _draw(ax, lanes, shown, shown.cycles if cycles is None else cycles)
    ax.set_title(title)
    rows = [
        [name.replace("\n", " "), len(ts), sum(t.bytes for t in ts), sum(t.beats for t in ts)]
        for name, ts in lanes.items()
    ]
    return Chart(ax, Table(["lane", "transactions", "bytes", "beats"], rows))


def _lanes(shown: Trace) -> dict[str, list[Transaction]]:
    """Return the transactions by unit, port and direction, the processor's accesses first."""
    lanes: dict[str, list[Transaction]] = {}
    for t in sorted(shown, key=lambda t: (t.unit, t.kind[:8] != "register", t.port, t.kind)):
        kind = t.kind.removeprefix("register ").removeprefix("stream ")
        port = t.port.removeprefix("m_axi_").removeprefix("s_axi_")
        lanes.setdefault(f"{t.unit}\n{port} {kind}", []).append(t)
    return lanes


def _draw(
    ax: Any, lanes: dict[str, list[Transaction]], shown: Trace, cycles: tuple[int, int]
) -> None:
    bars = len(shown) <= _BARS
    for row, transactions in enumerate(lanes.values()):
        (_bars if bars else _shares)(ax, row, transactions, cycles)
    rows_of_bars(ax, list(lanes))
    ax.set_xlim(*cycles)
    what = "dark: data moves" if bars else "height: beats a cycle"
    place = f"{shown.about}, at {shown.clock_hz / 1e6:g} MHz"
    ax.set_xlabel(f"cycle ({what})\n{place}", fontsize=11)


def _bars(ax: Any, row: int, transactions: Sequence[Transaction], _: tuple[int, int]) -> None:
    """Draw each transaction; those that overlap are drawn below each other in the lane."""
    tracks: list[int] = []
    placed = []
    for t in sorted(transactions, key=lambda t: t.cycle):
        free = next((i for i, end in enumerate(tracks) if end < t.cycle), len(tracks))
        tracks[free : free + 1] = [t.done]
        placed.append((t, free))
    height = 0.8 / max(len(tracks), 1)
    for t, track in placed:
        y = row - 0.4 + (track + 0.5) * height
        ax.barh(y, t.done - t.cycle + 1, 0.9 * height, t.cycle, color=colour(row), alpha=0.35)
        ax.barh(y, t.done - t.first + 1, 0.9 * height, t.first, color=colour(row))


def _shares(
    ax: Any, row: int, transactions: Sequence[Transaction], window: tuple[int, int]
) -> None:
    """Draw the beats a cycle, the beats of a transaction spread over its data phase."""
    edges = np.linspace(*window, _BINS + 1)
    beats = np.zeros(_BINS)
    for t in transactions:
        low, high = t.first, t.done + 1
        inside = np.minimum(high, edges[1:]) - np.maximum(low, edges[:-1])
        beats += t.beats * np.maximum(inside, 0) / (high - low)
    level = row + 0.4 - 0.8 * np.minimum(beats / np.diff(edges), 1)
    ax.stairs(level, edges, baseline=row + 0.4, fill=True, color=colour(row))
