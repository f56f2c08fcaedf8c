"""Charts with provenance: every number says whether it was measured, counted or modelled.

Each returns a `Chart`: the axes it drew on, and its data as a table. Colours are Okabe and Ito's,
which the colour-blind tell apart; kinds also differ in hatching and markers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pynq_torch.tables import Table
from pynq_torch.timing import Duration, seconds_text

from .charts import COLOURS, Chart, ProvenanceError, save
from .charts import HATCH as _HATCH
from .charts import ORDER as _ORDER
from .charts import PART_COLOUR as _PART_COLOUR
from .charts import axes as _axes
from .charts import foot as _foot
from .charts import unit as _unit
from .errors import error, error_table
from .rooflines import Point, roofline

if TYPE_CHECKING:
    from pynq_torch.profiler.timeline import Timeline

__all__ = [
    "COLOURS",
    "Chart",
    "Point",
    "ProvenanceError",
    "Table",
    "error",
    "error_table",
    "roofline",
    "save",
    "speedup",
    "sweep",
    "timeline",
    "times",
]


#: Charts of one topic each: ``plot.quantisation.histograms(...)``.
_MODULES = (
    "bus",
    "conv",
    "design",
    "profile",
    "quantisation",
    "resources",
    "training",
)


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
        Of the chart.
    log : bool
        Logarithmic axis (for bars that are not stacked).
    ax : matplotlib Axes, optional
        Drawn into; default: a new figure.

    Returns
    -------
    Chart
        The axes, and a table of what is drawn.
    """
    from matplotlib.patches import Patch

    bars = [[d] if isinstance(d, Duration) else list(d) for d in durations]
    if not bars or not all(bars):
        raise ValueError("there is nothing to draw: expected at least one duration a bar")
    for stack in bars:
        if len({d.kind for d in stack}) > 1:
            raise ProvenanceError(
                f"the bar {stack[0].label!r} stacks "
                f"{' and '.join(sorted({d.kind for d in stack}))}; "
                "expected one kind in a stack"
            )
    everything = [d for stack in bars for d in stack]
    scale, unit = _unit(max(sum(d.seconds for d in stack) for stack in bars))
    ax = _axes(ax)
    for x, stack in enumerate(bars):
        bottom = 0.0
        for d in stack:
            height = d.seconds * scale
            errors = None
            if len(stack) == 1 and d.low is not None and d.high is not None:
                errors = [[(d.seconds - d.low) * scale], [(d.high - d.seconds) * scale]]
            ax.bar(
                x,
                height,
                0.6,
                bottom,
                color=COLOURS[_PART_COLOUR[d.part]],
                hatch=_HATCH[d.kind],
                edgecolor="white",
                yerr=errors,
                capsize=4,
            )
            bottom += height
        total = seconds_text(sum(d.seconds for d in stack))
        # Above the whisker, which would strike the number through.
        top = max(bottom, (stack[0].high or 0.0) * scale) if len(stack) == 1 else bottom
        ax.annotate(total, (x, top), (0, 5), textcoords="offset points", ha="center")
    mixed = len({d.kind for d in everything}) > 1
    ticks = [f"{s[0].label}\n({s[0].kind})" if mixed else s[0].label for s in bars]
    ax.set_xticks(range(len(bars)), ticks)
    ax.set_ylabel(f"time / {unit}")
    ax.set_title(title)
    ax.margins(y=0.15)
    if log:
        ax.set_yscale("log")
    handles = [
        Patch(facecolor=COLOURS[_PART_COLOUR[p]], label=p)
        for p in dict.fromkeys(d.part for d in everything)
    ]
    if mixed:
        handles += [
            Patch(facecolor="0.8", hatch=_HATCH[k], edgecolor="0.3", label=k)
            for k in dict.fromkeys(d.kind for d in everything)
        ]
    if len(handles) > 1:
        ax.legend(handles=handles)
    _foot(ax, everything)
    header = ["bar", "label", "part", "seconds", "kind", "provenance"]
    rows = [
        [x, d.label, d.part, d.seconds, d.kind, d.provenance]
        for x, stack in enumerate(bars)
        for d in stack
    ]
    return Chart(ax, Table(header, rows))


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
        The 1.
    durations : sequence of Duration
        A bar each.
    title : str
        Of the chart.
    allow_mixed : bool
        Divide durations of different provenance (a model by a measurement, or the clocks of two
        machines); the chart then says so in its title.
    ax : matplotlib Axes, optional
        Drawn into.

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
        raise ValueError("there is nothing to draw: expected at least one duration")
    other = next((d for d in durations if not _comparable(baseline, d)), None)
    if other is not None and not allow_mixed:
        raise ProvenanceError(
            f"{baseline.label!r} is {baseline.provenance}, {other.label!r} is {other.provenance}: "
            "their ratio is no measurement. Pass allow_mixed=True to draw it labelled as mixed."
        )
    ax = _axes(ax)
    for x, d in enumerate(durations):
        ratio = baseline.seconds / d.seconds if d.seconds else float("inf")
        ax.bar(x, ratio, 0.6, color=COLOURS["green"], hatch=_HATCH[d.kind], edgecolor="white")
        ax.annotate(f"{ratio:.3g}x", (x, ratio), (0, 5), textcoords="offset points", ha="center")
    ax.axhline(1, color=COLOURS["vermillion"], linewidth=1.5)
    ax.set_xticks(range(len(durations)), [d.label for d in durations])
    ax.set_ylabel(f"speed-up over {baseline.label or 'the baseline'}")
    note = f"mixed: {' / '.join(dict.fromkeys([baseline.kind, *(d.kind for d in durations)]))}"
    ax.set_title(f"{title} ({note})".strip() if other is not None else title)
    ax.margins(y=0.15)
    _foot(ax, [baseline, *durations])
    rows = [
        [d.label, d.seconds, baseline.seconds / d.seconds if d.seconds else "inf", d.provenance]
        for d in (baseline, *durations)
    ]
    return Chart(ax, Table(["label", "seconds", "speed-up", "provenance"], rows))


def _comparable(a: Duration, b: Duration) -> bool:
    def machine(d: Duration) -> str:
        return "PC" if d.where.endswith("this PC") else "board"

    return a.kind == b.kind and (a.kind != "measured" or machine(a) == machine(b))


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
        Drawn into.

    Returns
    -------
    Chart
        The axes, and a table of what is drawn.
    """
    ax = _axes(ax)
    dashes = {"measured": "-", "cycles": "--", "model": ":"}
    for index, (name, durations) in enumerate(series.items()):
        if len(durations) != len(sizes):
            raise ValueError(f"series {name!r} has {len(durations)} values; expected {len(sizes)}")
        kinds = {d.kind for d in durations}
        if len(kinds) != 1:
            raise ProvenanceError(f"series {name!r} mixes {' and '.join(sorted(kinds))}")
        ax.plot(
            sizes,
            [d.seconds for d in durations],
            dashes[durations[0].kind],
            marker="os^Dv"[index % 5],
            color=COLOURS[_ORDER[index % len(_ORDER)]],
            label=f"{name} ({durations[0].kind})",
        )
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlabel(xlabel)
    ax.set_ylabel("time / s")
    ax.set_title(title)
    ax.legend()
    _foot(ax, [d for durations in series.values() for d in durations])
    rows = [
        [name, size, d.seconds, d.kind, d.provenance]
        for name, durations in series.items()
        for size, d in zip(sizes, durations, strict=True)
    ]
    return Chart(ax, Table(["series", xlabel, "seconds", "kind", "provenance"], rows))


def timeline(work: Timeline, *, title: str = "", ax: Any = None) -> Chart:
    """Draw which unit ran when, a lane each (a Gantt chart).

    Parameters
    ----------
    work : Timeline
        Measured or modelled; the chart says which.
    title : str
        Of the chart.
    ax : matplotlib Axes, optional
        Drawn into; default: a new figure.

    Returns
    -------
    Chart
        The axes, and a table of what is drawn.
    """
    lanes = work.lanes
    if not lanes:
        raise ValueError("there is nothing to draw: expected at least one span")
    scale, unit = _unit(work.seconds)
    ax = _axes(ax, height=1.6 + 0.7 * len(lanes))
    colours = {lane: COLOURS[_ORDER[i % len(_ORDER)]] for i, lane in enumerate(lanes)}
    for span in work.spans:
        ax.barh(
            lanes.index(span.lane),
            span.seconds * scale,
            0.6,
            span.begin_s * scale,
            color=colours[span.lane],
            hatch="" if work.provenance.startswith("measured") else _HATCH["model"],
            edgecolor="white",
        )
        # A label that does not fit would cover its neighbours.
        if span.seconds > 0.012 * len(span.label) * work.seconds:
            middle = (span.begin_s + span.end_s) / 2 * scale
            style = {"ha": "center", "va": "center", "fontsize": 11, "color": "white"}
            box = {"facecolor": colours[span.lane], "edgecolor": "none", "pad": 1}
            ax.text(middle, lanes.index(span.lane), span.label, style, bbox=box)
    ax.set_yticks(range(len(lanes)), lanes)
    ax.set_ylim(len(lanes) - 0.5, -0.5)
    ax.set_title(title)
    ax.set_xlabel(f"time / {unit}\n{work.provenance}", fontsize=11)
    rows = [[s.lane, s.label, s.begin_s, s.end_s, work.provenance] for s in work.spans]
    return Chart(ax, Table(["lane", "label", "begin / s", "end / s", "provenance"], rows))


def __getattr__(name: str) -> Any:
    if name in _MODULES:  # imported when they are first used
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
