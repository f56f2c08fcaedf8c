"""Charts of quantisation: values on their grid, what it costs, and how that compares with time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pynq_torch.timing import Duration

from . import charts
from .charts import COLOURS, ProvenanceError
from .grid import Grid, peak

if TYPE_CHECKING:
    import torch

__all__ = [
    "bound",
    "channels",
    "error_against_time",
    "growth",
    "histogram",
    "histograms",
    "trade_off",
]

#: Finer steps than these would be thinner than a pixel.
_MOST_BINS = 600
#: Shares of the peak that the last step is tried on.
_CLIPS = [n / 40 for n in range(2, 41)]


def histogram(values: torch.Tensor, grid: Grid, *, title: str = "", ax: Any = None) -> Any:
    """Draw how many values each step of a grid gets.

    Parameters
    ----------
    values : torch.Tensor
        Floating, any shape, not all 0.
    grid : Grid
        A bar is as wide as one of its steps; what it cuts off is drawn in another colour.
    title : str
        Title of the chart.
    ax : matplotlib Axes, optional
        Axes to draw on; default: those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The counts are logarithmic: the tails matter, and they are thin.
    """
    ax = charts.axes(ax)
    data = values.detach().cpu().double().flatten().numpy()
    end = peak(values)
    wide = max(1, round(2 * end / grid.scale / _MOST_BINS))
    last = int(end / grid.scale / wide + 0.5)
    edges = (np.arange(-last, last + 2) - 0.5) * grid.scale * wide
    counts, _ = np.histogram(data, edges)
    inside = (grid.used + 0.5) * grid.scale
    within = np.abs(edges[:-1] + edges[1:]) / 2 < inside
    ax.stairs(np.where(within, counts, 0), edges, fill=True, color=COLOURS["blue"], label="kept")
    if not within.all():
        cut = np.where(within, 0, counts)
        ax.stairs(cut, edges, fill=True, color=COLOURS["vermillion"], label="cut off")
        ax.legend()
    for side in (-1, 1):
        ax.axvline(side * inside, color=COLOURS["black"], linewidth=1.5, linestyle="--")
    ax.set(yscale="log", ylim=(0.5, max(2, counts.max() * 2)))
    right = 1.03 * max(float(edges[-1]), inside)
    ax.set(xlim=(-right, right), xlabel="value", ylabel="how many", title=title)
    _axis_of_steps(ax, grid)
    return ax


def _axis_of_steps(ax: Any, grid: Grid) -> None:
    there_and_back = (lambda value: value / grid.scale, lambda step: step * grid.scale)
    steps = ax.secondary_xaxis("top", functions=there_and_back)
    steps.set_xlabel(f"step (int8), {grid.used} used on each side")


def histograms(values: Mapping[str, torch.Tensor]) -> Any:
    """Draw several tensors side by side, each with its peak on step 127.

    Parameters
    ----------
    values : mapping of str to tensor
        Title -> values, see `histogram`.

    Returns
    -------
    sequence of matplotlib.axes.Axes
    """
    row = row_of_axes([1.0] * len(values))
    for ax, (name, tensor) in zip(row, values.items(), strict=True):
        histogram(tensor, Grid.over(tensor), title=name, ax=ax)
    return row


def row_of_axes(widths: Sequence[float]) -> Any:
    """Return axes of these relative widths side by side."""
    return charts.grid_of_axes((12, 4.5), len(widths), widths=widths, **{"font.size": 12})[0]


def trade_off(
    values: torch.Tensor, steps: int, now: float | None = None, *, title: str = "", ax: Any = None
) -> Any:
    """Draw what rounding and cutting off cost, over the position of the last step.

    Parameters
    ----------
    values : torch.Tensor
        Floating, any shape, not all 0.
    steps : int
        On each side of zero, 1 to 127; the fewer there are, the more it pays to cut off.
    now : float, optional
        A share of the peak to be marked.
    title, ax
        See `histogram`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = charts.axes(ax)
    end = peak(values)
    found = [Grid(clip * end / steps, clip * end).errors(values) for clip in _CLIPS]
    ax.plot(_CLIPS, [e.rounding for e in found], "--", color=COLOURS["blue"], label="rounding")
    # Zero has no place on a logarithmic axis.
    cut = [e.cut_off or float("nan") for e in found]
    ax.plot(_CLIPS, cut, ":", color=COLOURS["vermillion"], label="cut off")
    ax.plot(_CLIPS, [e.both for e in found], color=COLOURS["black"], label="both")
    if now is not None:
        ax.axvline(now, color=COLOURS["green"], linewidth=2, label="now")
    ax.set(yscale="log", xlabel="last step at this share of the peak", ylabel="error (RMS)")
    ax.set_title(title or f"with {steps} steps on each side")
    ax.legend()
    return ax


def channels(weight: torch.Tensor, *, title: str = "", ax: Any = None) -> Any:
    """Draw the rounding error of each output channel with one scale for all, and one for each.

    Parameters
    ----------
    weight : torch.Tensor
        Floating [out_features, ...], as a ``Linear`` or ``Conv2d`` has it; no channel is all 0.
    title, ax
        See `histogram`.

    Returns
    -------
    matplotlib.axes.Axes
        Channels in the order of their peaks.
    """
    ax = charts.axes(ax)
    rows = sorted(weight.detach().flatten(1), key=peak)
    whole = Grid.over(weight)
    marks = {
        "one scale for the tensor": ("o", "vermillion", [whole.errors(r).both for r in rows]),
        "one for each channel": ("s", "blue", [Grid.over(r).errors(r).both for r in rows]),
    }
    for name, (form, colour_name, errors) in marks.items():
        ax.plot(errors, form, color=COLOURS[colour_name], markersize=4, label=name)
    ax.set_ylim(0)
    ax.set_xlabel("output channel, in order of its largest weight")
    ax.set(ylabel="error of a weight (RMS)", title=title)
    ax.legend()
    return ax


def bound(errors: Mapping[str, tuple[Any, Any]], *, title: str = "", ax: Any = None) -> Any:
    """Draw errors against what they may be at most, element by element.

    Parameters
    ----------
    errors : mapping of str to (tensor, tensor)
        Name -> (error, bound), of the same shape; an error of 0 is not drawn.
    title, ax
        See `histogram`.

    Returns
    -------
    matplotlib.axes.Axes
        A point above the line would be a broken promise.
    """
    ax = charts.axes(ax)
    low, high = float("inf"), 0.0
    for index, (name, (error, limit)) in enumerate(errors.items()):
        found, most = (charts.as_array(t).astype(float).ravel() for t in (error, limit))
        found = abs(found)
        style = {"marker": charts.marker(index), "color": charts.colour(index)}
        ax.scatter(most, found, 8, alpha=0.3, **style)
        ax.scatter([], [], 30, label=name, **style)  # what is nearly transparent explains nothing
        low, high = min(low, float(most.min())), max(high, float(most.max()))
    ends = (low / 1.5, high * 1.5)
    ax.plot(ends, ends, color=COLOURS["black"], label="error = bound")
    ax.set(xscale="log", yscale="log", xlabel="bound", ylabel="error", title=title)
    ax.legend()
    return ax


def growth(
    sizes: Sequence[float],
    series: Mapping[str, Sequence[float]],
    *,
    xlabel: str = "K",
    ylabel: str = "error",
    title: str = "",
    ax: Any = None,
) -> Any:
    """Draw errors over a size, both axes logarithmic.

    Parameters
    ----------
    sizes : sequence of float
        The x axis.
    series : mapping of str to sequence of float
        A line each, as long as `sizes`.
    xlabel, ylabel : str
        What the size and the errors are.
    title, ax
        See `histogram`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = charts.axes(ax)
    for index, (name, values) in enumerate(series.items()):
        charts.check_length(name, values, sizes)
        ax.plot(sizes, values, marker=charts.marker(index), color=charts.colour(index), label=name)
    ax.set_xscale("log", base=2)
    ax.set(yscale="log", xlabel=xlabel, ylabel=ylabel, title=title)
    ax.legend()
    return ax


def error_against_time(
    series: Mapping[str, Sequence[tuple[Duration, float]]],
    labels: Sequence[Any],
    *,
    title: str = "",
    ax: Any = None,
) -> Any:
    """Draw errors against times: to the left is faster, below is better.

    Parameters
    ----------
    series : mapping of str to sequence of (Duration, float)
        A line each, of one kind, which the legend says; a point for each of `labels`.
    labels : sequence
        What the points are, e.g. sizes.
    title, ax
        See `histogram`.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ProvenanceError
        A line mixes durations of different provenance.
    """
    ax = charts.axes(ax)
    for index, (name, points) in enumerate(series.items()):
        _points(ax, index, name, points, labels)
    ax.set(xscale="log", yscale="log")
    ax.margins(y=0.15)
    ax.set(xlabel="time / s", ylabel="error, relative (RMS)", title=title)
    ax.legend()
    charts.foot(ax, [duration for points in series.values() for duration, _ in points])
    return ax


def _points(
    ax: Any,
    index: int,
    name: str,
    points: Sequence[tuple[Duration, float]],
    labels: Sequence[Any],
) -> None:
    charts.check_length(name, points, labels, "points")
    sources = {duration.provenance for duration, _ in points}
    if len(sources) != 1:
        raise ProvenanceError(f"series {name!r} mixes {' and '.join(sorted(sources))}")
    kind = points[0][0].kind
    x, y = [duration.seconds for duration, _ in points], [error for _, error in points]
    look = {"marker": charts.marker(index), "markersize": 8, "color": charts.colour(index)}
    if kind == "model":
        look["markerfacecolor"] = "white"
    ax.plot(x, y, charts.DASH[kind], label=f"{name} ({kind})", **look)
    for label, *at in zip(labels, x, y, strict=True):
        # Above and below in turn: lines of the same error cover each other.
        charts.note(ax, str(label), at, (0, -16 if index % 2 else 8), fontsize=10)
