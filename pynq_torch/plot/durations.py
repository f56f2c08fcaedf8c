"""Charts of durations: bars, speed-ups, sweeps over a size, and timelines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pynq_torch.tables import Table
from pynq_torch.timing import Duration, seconds_text

from . import charts
from .charts import COLOURS, Chart, ProvenanceError

if TYPE_CHECKING:
    from pynq_torch.profiler.timeline import Timeline

__all__ = ["speedup", "sweep", "timeline", "times"]


def times(
    durations: Sequence[Duration | Sequence[Duration]],
    *,
    title: str = "",
    log: bool = False,
    ax: Any = None,
) -> Chart:
    """Draw durations as bars.

    Parameters
    ----------
    durations : sequence
        A bar each. An item that is itself a sequence is stacked: compute and transfer of one run,
        of the same kind and with the label of the first.
    title : str
        Title of the chart.
    log : bool
        Logarithmic axis (for bars that are not stacked), from a power of ten on.
    ax : matplotlib Axes, optional
        Axes to draw on; default: those of a new figure.

    Returns
    -------
    Chart
        The axes, and a table of what is drawn.
    """
    bars = _bars(durations)
    everything = [d for stack in bars for d in stack]
    scale, name = charts.unit(max(sum(d.seconds for d in stack) for stack in bars))
    ax = charts.axes(ax)
    for x, stack in enumerate(bars):
        _stack(ax, x, stack, scale)
    mixed = len({d.kind for d in everything}) > 1
    ticks = [f"{s[0].label}\n({s[0].kind})" if mixed else s[0].label for s in bars]
    ax.set_xticks(range(len(bars)), ticks)
    ax.set(ylabel=f"time / {name}", title=title)
    ax.margins(y=0.15)
    if log:
        _logarithmic(ax, everything, scale)
    _legend(ax, everything)
    charts.foot(ax, everything)
    header = ["bar", "label", "part", "seconds", "kind", "provenance"]
    rows = [
        [x, d.label, d.part, d.seconds, d.kind, d.provenance]
        for x, stack in enumerate(bars)
        for d in stack
    ]
    return Chart(ax, Table(header, rows))


def _legend(ax: Any, durations: Sequence[Duration]) -> None:
    """Name the parts by colour and, where there are several, the kinds by hatch."""
    handles = [
        charts.patch(part, charts.PART_COLOUR[part])
        for part in dict.fromkeys(d.part for d in durations)
    ]
    kinds = dict.fromkeys(d.kind for d in durations)
    if len(kinds) > 1:
        handles += [
            charts.patch(kind, "0.8", hatch=charts.HATCH[kind], edgecolor="0.3") for kind in kinds
        ]
    if len(handles) > 1:
        ax.legend(handles=handles)


def _bars(durations: Sequence[Duration | Sequence[Duration]]) -> list[list[Duration]]:
    """Return the durations of each bar, which are of one kind."""
    bars = [[d] if isinstance(d, Duration) else list(d) for d in durations]
    if not bars or not all(bars):
        raise charts.nothing_to_draw("at least one duration a bar")
    for stack in bars:
        if len(kinds := sorted({d.kind for d in stack})) > 1:
            raise ProvenanceError(
                f"the bar {stack[0].label!r} stacks {' and '.join(kinds)}; "
                "expected one kind in a stack"
            )
    return bars


def _logarithmic(ax: Any, durations: Sequence[Duration], scale: float) -> None:
    """Make the axis logarithmic, from a power of ten well below the shortest, so that all show."""
    shortest = min(d.seconds if d.low is None else d.low for d in durations)
    if shortest <= 0:
        raise ValueError(
            f"a bar of {shortest:g} s has no place on a logarithmic axis; use log=False"
        )
    bottom = math.floor(math.log10(shortest * scale / 2))
    top = math.log10(scale * max(d.seconds if d.high is None else d.high for d in durations))
    ax.set_yscale("log")
    ax.set_ylim(10**bottom, 10 ** (top + 0.15 * (top - bottom)))  # with room for the number above


def _stack(ax: Any, x: int, stack: Sequence[Duration], scale: float) -> None:
    """Draw a bar of durations on each other, with their sum above it."""
    bottom = 0.0
    for d in stack:
        height, errors = d.seconds * scale, None
        if len(stack) == 1 and d.low is not None and d.high is not None:
            errors = [[(d.seconds - d.low) * scale], [(d.high - d.seconds) * scale]]
        look = {"color": charts.PART_COLOUR[d.part], "hatch": charts.HATCH[d.kind]}
        ax.bar(x, height, 0.6, bottom, edgecolor="white", yerr=errors, capsize=4, **look)
        bottom += height
    # Above the whisker, which would strike the number through.
    top = max(bottom, (stack[0].high or 0.0) * scale) if len(stack) == 1 else bottom
    charts.note(ax, seconds_text(sum(d.seconds for d in stack)), (x, top), (0, 5), ha="center")


def speedup(
    baseline: Duration,
    durations: Sequence[Duration],
    *,
    title: str = "",
    allow_mixed: bool = False,
    ax: Any = None,
) -> Chart:
    """Draw how many times faster than `baseline` each duration is.

    Parameters
    ----------
    baseline : Duration
        The duration that others are compared with.
    durations : sequence of Duration
        A bar each.
    title : str
        Title of the chart.
    allow_mixed : bool
        Divide durations of different provenance (a model by a measurement, or the clocks of two
        machines); the chart then says so in its title.
    ax : matplotlib Axes, optional
        Axes to draw on; default: those of a new figure.

    Returns
    -------
    Chart
        The axes, and a table of what is drawn.

    Raises
    ------
    ProvenanceError
        The durations differ in provenance and `allow_mixed` is false.
    """
    if not durations:
        raise charts.nothing_to_draw("at least one duration")
    other = next((d for d in durations if not _comparable(baseline, d)), None)
    if other is not None and not allow_mixed:
        raise ProvenanceError(
            f"{baseline.label!r} is {baseline.provenance}, {other.label!r} is {other.provenance}: "
            "their ratio is no measurement. Pass allow_mixed=True to draw it labelled as mixed."
        )
    everything = [baseline, *durations]
    ratios = [baseline.seconds / d.seconds if d.seconds else float("inf") for d in everything]
    ax = charts.axes(ax)
    for x, (d, ratio) in enumerate(zip(durations, ratios[1:], strict=True)):
        ax.bar(x, ratio, 0.6, color=COLOURS["green"], hatch=charts.HATCH[d.kind], edgecolor="white")
        charts.note(ax, f"{ratio:.3g}x", (x, ratio), (0, 5), ha="center")
    ax.axhline(1, color=COLOURS["vermillion"], linewidth=1.5)
    ax.set_xticks(range(len(durations)), [d.label for d in durations])
    if other is not None:
        title = f"{title} (mixed: {' / '.join(dict.fromkeys(d.kind for d in everything))})".strip()
    ax.set(ylabel=f"speed-up over {baseline.label or 'the baseline'}", title=title)
    ax.margins(y=0.15)
    charts.foot(ax, everything)
    rows = [[d.label, d.seconds, r, d.provenance] for d, r in zip(everything, ratios, strict=True)]
    return Chart(ax, Table(["label", "seconds", "speed-up", "provenance"], rows))


def _comparable(a: Duration, b: Duration) -> bool:
    """Whether both are of one kind and, where measured, of one machine."""
    on_pc = [d.where.endswith("this PC") for d in (a, b)]
    return a.kind == b.kind and (a.kind != "measured" or on_pc[0] == on_pc[1])


def sweep(
    sizes: Sequence[float],
    series: Mapping[str, Sequence[Duration]],
    *,
    xlabel: str = "size",
    title: str = "",
    ax: Any = None,
) -> Chart:
    """Draw durations over a size, both axes logarithmic.

    Parameters
    ----------
    sizes : sequence of float
        The x axis.
    series : mapping of str to sequence of Duration
        A line each, as long as `sizes`; its kind and place go into the legend.
    xlabel, title : str
        Texts.
    ax : matplotlib Axes, optional
        Axes to draw on; default: those of a new figure.

    Returns
    -------
    Chart
        The axes, and a table of what is drawn.
    """
    ax = charts.axes(ax)
    rows: list[list[Any]] = []
    for index, (name, durations) in enumerate(series.items()):
        rows += _line(ax, index, name, sizes, durations)
    ax.set_xscale("log", base=2)
    ax.set(yscale="log", xlabel=xlabel, ylabel="time / s", title=title)
    ax.legend()
    charts.foot(ax, [d for durations in series.values() for d in durations])
    return Chart(ax, Table(["series", xlabel, "seconds", "kind", "provenance"], rows))


def _line(
    ax: Any, index: int, name: str, sizes: Sequence[float], durations: Sequence[Duration]
) -> list[list[Any]]:
    """Draw one series of a sweep, and return its rows of the table."""
    charts.check_length(name, durations, sizes)
    kinds = sorted({d.kind for d in durations})
    if len(kinds) != 1:
        raise ProvenanceError(f"series {name!r} mixes {' and '.join(kinds)}")
    look = {"marker": charts.marker(index), "color": charts.colour(index)}
    seconds = [d.seconds for d in durations]
    ax.plot(sizes, seconds, charts.DASH[kinds[0]], label=f"{name} ({kinds[0]})", **look)
    pairs = zip(sizes, durations, strict=True)
    return [[name, size, d.seconds, d.kind, d.provenance] for size, d in pairs]


def timeline(work: Timeline, *, title: str = "", ax: Any = None) -> Chart:
    """Draw which unit ran when, a lane each (a Gantt chart).

    Parameters
    ----------
    work : Timeline
        Measured or modelled; the chart says which.
    title : str
        Title of the chart.
    ax : matplotlib Axes, optional
        Axes to draw on; default: those of a new figure.

    Returns
    -------
    Chart
        The axes, and a table of what is drawn.
    """
    lanes = work.lanes
    if not lanes:
        raise charts.nothing_to_draw("at least one span")
    scale, name = charts.unit(work.seconds)
    ax = charts.axes(ax, height=1.6 + 0.7 * len(lanes))
    hatch = "" if work.provenance.startswith("measured") else charts.HATCH["model"]
    for span in work.spans:
        lane = lanes.index(span.lane)
        look = {"color": charts.colour(lane), "hatch": hatch, "edgecolor": "white"}
        ax.barh(lane, span.seconds * scale, 0.6, span.begin_s * scale, **look)
        # A label that does not fit would cover its neighbours.
        if span.seconds > 0.012 * len(span.label) * work.seconds:
            middle = (span.begin_s + span.end_s) / 2 * scale
            style = {"ha": "center", "va": "center", "fontsize": 11, "color": "white"}
            box = {"facecolor": charts.colour(lane), "edgecolor": "none", "pad": 1}
            ax.text(middle, lane, span.label, style, bbox=box)
    charts.rows_of_bars(ax, lanes)
    ax.set_title(title)
    ax.set_xlabel(f"time / {name}\n{work.provenance}", fontsize=11)
    rows = [[s.lane, s.label, s.begin_s, s.end_s, work.provenance] for s in work.spans]
    return Chart(ax, Table(["lane", "label", "begin / s", "end / s", "provenance"], rows))
