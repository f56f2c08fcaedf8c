"""Charts with provenance: every number says whether it was measured, counted or modelled.

Colours are Okabe and Ito's, which the colour-blind tell apart; kinds also differ in hatching.
matplotlib is imported when a chart is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .timeline import Timeline
from .timing import Duration, seconds_text

__all__ = [
    "COLOURS",
    "ProvenanceError",
    "Table",
    "error_table",
    "speedup",
    "sweep",
    "timeline",
    "times",
]

#: Okabe and Ito, "Color Universal Design" (2008).
COLOURS = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "vermillion": "#D55E00",
    "sky": "#56B4E9",
    "purple": "#CC79A7",
    "yellow": "#F0E442",
    "black": "#000000",
}
_ORDER = tuple(COLOURS)
_HATCH = {"measured": "", "cycles": "//", "model": ".."}
_PART_COLOUR = {"total": "purple", "compute": "blue", "transfer": "orange", "host": "sky"}
#: Readable from the last row of a lecture room.
_STYLE: dict[Any, Any] = {
    "font.size": 13,
    "axes.titlesize": 14,
    "axes.grid": True,
    "grid.alpha": 0.3,
}


class ProvenanceError(ValueError):
    """Numbers of different kinds would be divided by each other without a word about it."""


def _axes(ax: Any, height: float = 4.5) -> Any:
    import matplotlib.pyplot as plt

    if ax is not None:
        return ax
    with plt.rc_context(_STYLE):
        return plt.subplots(figsize=(8, height), layout="constrained")[1]


def _foot(ax: Any, durations: Sequence[Duration]) -> None:
    """Print the provenance of everything in the chart below it."""
    sources = list(dict.fromkeys(d.provenance for d in durations))
    ax.set_xlabel("\n".join(filter(None, [ax.get_xlabel(), "; ".join(sources)])), fontsize=11)


def times(
    durations: Sequence[Duration | Sequence[Duration]],
    *,
    title: str = "",
    log: bool = False,
    ax: Any = None,
) -> Any:
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
    matplotlib.axes.Axes
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
    return ax


def speedup(
    baseline: Duration,
    durations: Sequence[Duration],
    *,
    title: str = "",
    allow_mixed: bool = False,
    ax: Any = None,
) -> Any:
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
    matplotlib.axes.Axes

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
    return ax


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
) -> Any:
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
    matplotlib.axes.Axes
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
    return ax


def timeline(work: Timeline, *, title: str = "", ax: Any = None) -> Any:
    """Draw who was at work when, a lane each (a Gantt chart).

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
    matplotlib.axes.Axes
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
    return ax


def _unit(seconds: float) -> tuple[float, str]:
    for limit, scale, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return scale, unit
    return 1.0, "s"


class Table:
    """Rows and columns that show as HTML in a notebook and as text elsewhere.

    Parameters
    ----------
    header : sequence of str
        Column names.
    rows : sequence of sequences
        Shown with ``str``.
    """

    def __init__(self, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self.header = list(header)
        self.rows = [[str(cell) for cell in row] for row in rows]
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"a row has {len(row)} cells; expected {len(self.header)}: {row}")

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows, strict=True)]
        lines = [self.header, ["-" * w for w in widths], *self.rows]
        return "\n".join(
            "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape

        def row(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(c)}</{tag}>" for c in cells) + "</tr>"

        body = "".join(row(r, "td") for r in self.rows)
        return f"<table><thead>{row(self.header, 'th')}</thead><tbody>{body}</tbody></table>"


def error_table(results: Mapping[str, Any], reference: Any) -> Table:
    """Compare several results with one reference.

    Parameters
    ----------
    results : mapping of str to tensor
        E.g. by dtype.
    reference : tensor
        Of the same shape.

    Returns
    -------
    Table
        Largest, mean and relative error (root mean square over that of the reference), and how
        many values are exact.
    """
    import numpy as np

    from .verify import _array

    truth = _array(reference).astype(np.float64)
    power = float(np.sqrt(np.mean(truth**2))) if truth.size else 0.0
    rows = []
    for name, result in results.items():
        values = _array(result).astype(np.float64)
        if values.shape != truth.shape:
            raise ValueError(f"{name!r} has shape {values.shape}; expected {truth.shape}")
        error = np.abs(values - truth) if truth.size else np.zeros(1)
        relative = float(np.sqrt(np.mean(error**2))) / power if power else 0.0
        exact = int(np.count_nonzero(error == 0)) if truth.size else 0
        rows.append(
            [
                name,
                f"{error.max():.3g}",
                f"{error.mean():.3g}",
                f"{relative:.3g}",
                f"{exact} of {truth.size}",
            ]
        )
    return Table(["result", "max error", "mean error", "relative (RMS)", "exact"], rows)
