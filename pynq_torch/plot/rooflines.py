"""The roofline: what a kernel reaches, below what arithmetic and memory allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pynq_torch.models.pynq_z2 import Roof, attainable, memory_roofs
from pynq_torch.tables import Table
from pynq_torch.timing import Duration

from .charts import MARKER, Chart, ProvenanceError, axes, colour, foot, note, nothing_to_draw

__all__ = ["Point", "roofline"]

#: Points closer than this share of a decade on both axes share a label.
_CLOSE = 0.03


@dataclass(frozen=True)
class Point:
    """What a design reaches.

    Parameters
    ----------
    duration : Duration
        Of one run; its label names the point, its kind is drawn.
    operations : float
        Arithmetic operations of the run; a multiply-accumulate is 2.
    nbytes : float
        Bytes that it moves to and from DDR.
    """

    duration: Duration
    operations: float
    nbytes: float

    def __post_init__(self) -> None:
        if not (self.operations > 0 and self.nbytes > 0 and self.duration.seconds > 0):
            raise ValueError(
                f"point {self.duration.label!r} has {self.operations} operations, "
                f"{self.nbytes} bytes and {self.duration.seconds} s; expected all above 0"
            )

    @property
    def intensity(self) -> float:
        """Operations for each byte."""
        return self.operations / self.nbytes

    @property
    def performance(self) -> float:
        """Operations a second."""
        return self.operations / self.duration.seconds

    @property
    def bytes_per_second(self) -> float:
        """Bytes a second."""
        return self.nbytes / self.duration.seconds


def roofline(
    points: Sequence[Point],
    roofs: Sequence[Roof] | None = None,
    *,
    title: str = "",
    ax: Any = None,
) -> Chart:
    """Draw points below the roofs of the board, both axes logarithmic.

    Parameters
    ----------
    points : sequence of Point
        The kind of each is drawn as its marker: model a circle, estimate a diamond, cycles a
        square, measured a triangle; the legend says so.
    roofs : sequence of Roof, optional
        Default: the DDR of the PYNQ-Z2, see `pynq_torch.models.pynq_z2.memory_roofs`. The hard
        ones bound every point and make the thick line; the others are thin.
    title : str
        Title of the chart.
    ax : matplotlib Axes, optional
        Axes to draw on; default: those of a new figure.

    Returns
    -------
    Chart
        The table has each point with what the roofs allow it, and each roof with its source.

    Raises
    ------
    ProvenanceError
        A point is this PC's wall clock: the roofs are the board's.
    """
    roofs = memory_roofs() if roofs is None else tuple(roofs)
    hard = [roof for roof in roofs if roof.hard]
    _check(points, hard)
    ax = axes(ax, height=5.5)
    low, high = min(p.intensity for p in points) / 8, max(p.intensity for p in points) * 8
    _draw_roofs(ax, roofs, low, high)
    _draw_points(ax, points)
    ax.set(xscale="log", yscale="log")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_formatter("")  # numbers between powers of ten would run into each other
    ax.set_xlim(low, high)
    ax.set_ylim(top=4 * max(attainable(high, *hard), *(p.performance for p in points)))
    _name_points(ax, points)
    ax.set(xlabel="operations / byte of DDR traffic", ylabel="operations / s", title=title)
    foot(ax, [p.duration for p in points], *(f"{r.label}: {r.provenance}" for r in roofs))
    return Chart(ax, _table(points, roofs, hard))


def _check(points: Sequence[Point], hard: Sequence[Roof]) -> None:
    if not points or not hard:
        raise nothing_to_draw("at least one point and a hard roof")
    for duration in (point.duration for point in points):
        if duration.where.endswith("this PC"):
            raise ProvenanceError(
                f"{duration.label!r} is {duration.provenance}; the roofs are the board's. "
                "Draw its model, its cycles in RTL, or a measurement on the board."
            )


def _draw_points(ax: Any, points: Sequence[Point]) -> None:
    """Draw points, and the legend of their kinds."""
    from matplotlib.lines import Line2D

    for index, point in enumerate(points):
        look = {"markersize": 12, "markeredgecolor": "black", "color": colour(index), "zorder": 3}
        ax.plot(point.intensity, point.performance, MARKER[point.duration.kind], **look)
    style: dict[str, Any] = {"linestyle": "", "color": "white", "markeredgecolor": "black"}
    kinds = dict.fromkeys(p.duration.kind for p in points)
    handles = [Line2D([], [], marker=MARKER[k], label=k, markersize=11, **style) for k in kinds]
    ax.legend(handles=handles, loc="lower right")


def _name_points(ax: Any, points: Sequence[Point]) -> None:
    """Label points where there is room: to the right, else to the left, above or below."""
    groups = _close(points)
    places = [(group[0].intensity, group[0].performance) for group in groups]
    # In typographic points, from the middle of a marker or a label.
    taken = [tuple(ax.transData.transform(at) * 72 / ax.figure.dpi) for at in places]
    for group, at, (x, y) in zip(groups, places, tuple(taken), strict=True):
        label = ", ".join(p.duration.label for p in group)
        half = 3.5 * len(label)  # of its width, at 12 points
        room = {
            (dx, dy): min(max(abs(x + dx - a) - half - 8, abs(y + dy - b) - 13) for a, b in taken)
            for dx, dy in ((12 + half, 0), (-12 - half, 0), (0, 17), (0, -17))
        }
        dx, dy = max(room, key=lambda side: min(room[side], 0))  # the first that has room
        taken.append((x + dx, y + dy))
        note(ax, label, at, (round(dx), round(dy)), fontsize=12, ha="center", va="center")


def _draw_roofs(ax: Any, roofs: Sequence[Roof], low: float, high: float) -> None:
    """Draw each roof as a thin line, and their lower envelope as a thick one."""
    for roof in roofs:
        heights = [roof.at(low), roof.at(high)]
        ax.plot([low, high], heights, "--", color="0.45", linewidth=1.3)
        slope = roof.bytes_per_second is not None
        at = low * 1.15 if slope else high / 1.15
        # On its line, which it hides: beside it, the line would cross the text.
        style = {"ha": "left" if slope else "right", "va": "center", "fontsize": 12}
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        ax.annotate(roof.label, (at, roof.at(at)), color="0.2", bbox=box, zorder=4, **style)
    steps = [low * (high / low) ** (i / 200) for i in range(201)]
    envelope = [attainable(x, *(r for r in roofs if r.hard)) for x in steps]
    ax.plot(steps, envelope, color="black", linewidth=2.5)


def _close(points: Sequence[Point]) -> list[list[Point]]:
    """Group points that would cover each other, so that their labels do not."""

    def close(a: Point, b: Point) -> bool:
        ratios = (a.intensity / b.intensity, a.performance / b.performance)
        return max(abs(math.log10(ratio)) for ratio in ratios) < _CLOSE

    groups: list[list[Point]] = []
    for point in points:
        group = next((g for g in groups if close(point, g[0])), None)
        if group is None:
            groups.append([point])
        else:
            group.append(point)
    return groups


def _table(points: Sequence[Point], roofs: Sequence[Roof], hard: Sequence[Roof]) -> Table:
    header = ["name", "operations / byte", "operations / s", "roof", "share", "kind", "provenance"]
    rows: list[list[Any]] = []
    for p in points:
        allowed = attainable(p.intensity, *hard)
        numbers = (f"{number:.4g}" for number in (p.intensity, p.performance, allowed))
        share, timed = f"{p.performance / allowed:.1%}", p.duration
        rows.append([timed.label, *numbers, share, timed.kind, timed.provenance])
    for roof in roofs:
        slope = roof.bytes_per_second
        value = f"{slope:.4g} bytes / s" if slope is not None else f"{roof.at(1):.4g}"
        rows.append([roof.label, "", value, "", "", "roof", roof.provenance])
    return Table(header, rows)
