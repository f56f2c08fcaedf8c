"""What all charts share: colours, style, provenance, the data behind them, and files of them.

matplotlib is imported when a chart is drawn.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pynq_torch.errors import needs
from pynq_torch.tables import Table
from pynq_torch.timing import Duration

__all__ = ["COLOURS", "Chart", "ProvenanceError", "as_array", "axes", "foot", "save", "unit"]

#: Okabe and Ito, "Color Universal Design" (2008): the colour-blind tell them apart.
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
#: Kinds differ in hatching and in markers too, since many print without colour.
HATCH = {"measured": "", "routed": "\\\\", "cycles": "//", "estimate": "xx", "model": ".."}
MARKER = {"measured": "^", "routed": "v", "cycles": "s", "estimate": "D", "model": "o"}
DASH = {"measured": "-", "routed": "--", "cycles": "--", "estimate": "-.", "model": ":"}
_PARTS = {"total": "purple", "compute": "blue", "transfer": "orange", "host": "sky"}
PART_COLOUR = {part: COLOURS[name] for part, name in _PARTS.items()}
#: Readable from the last row of a lecture room.
STYLE = {"font.size": 13, "axes.titlesize": 14, "axes.grid": True, "grid.alpha": 0.3}
#: Letters that fit below a chart of 8 inches at 11 points.
_FOOT_WIDTH = 95


class ProvenanceError(ValueError):
    """Numbers of different kinds would be divided by each other without a word about it."""


class Chart:
    """Axes that were drawn on, with the data behind them; whatever axes can do, it does too.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Drawn on; the first, where there are several.
    table : Table
        The numbers in the chart, each with its kind.

    Attributes
    ----------
    axes, table
        As given.
    """

    def __init__(self, axes: Any, table: Table) -> None:
        self.axes = axes
        self.table = table

    def __getattr__(self, name: str) -> Any:
        # Only what a Chart has not: `axes` is missing while one is being copied.
        if name in ("axes", "table"):
            raise AttributeError(name)
        return getattr(self.axes, name)

    def __repr__(self) -> str:
        return f"<chart of {len(self.table.rows)} rows: {self.axes.get_title() or 'no title'}>"

    def save(self, path: Path | str) -> tuple[Path, ...]:
        """Write the chart to files; see `save`."""
        return save(self, path)


def save(chart: Chart, path: Path | str) -> tuple[Path, ...]:
    """Write a chart as PNG and SVG, and its data as CSV.

    Parameters
    ----------
    chart : Chart
        From a function of `pynq_torch.plot`.
    path : path
        Without ending, e.g. ``"reports/vadd"``; the folder is made where it is missing.

    Returns
    -------
    tuple of pathlib.Path
        The three files. The same chart gives the same SVG and CSV, byte for byte.
    """
    stem = Path(path)
    stem.parent.mkdir(parents=True, exist_ok=True)
    png, svg, data = (stem.with_name(stem.name + ending) for ending in (".png", ".svg", ".csv"))
    # Text stays text in the SVG, for searching and for screen readers; names in it stay the same.
    with pyplot().rc_context({"svg.fonttype": "none", "svg.hashsalt": "pynq_torch"}):
        chart.figure.savefig(png, dpi=150)
        chart.figure.savefig(svg, metadata={"Date": None})
    data.write_text(chart.table.csv(), encoding="utf-8")
    return png, svg, data


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``."""
    with needs("matplotlib", "Drawing a chart"):
        import matplotlib.pyplot as plt
    return plt


def grid_of_axes(
    size: tuple[float, float],
    columns: int,
    rows: int = 1,
    widths: Sequence[float] | None = None,
    **style: Any,
) -> Any:
    """Return axes [rows, columns] of a new figure of some inches, in the charts' style."""
    # Not within rc_context: the first figure loads a notebook's backend, which makes matplotlib
    # interactive. Undone, that would leave every later figure unseen.
    figure = pyplot().figure(figsize=size, layout="constrained")
    with pyplot().rc_context({**STYLE, **style}):
        return figure.subplots(rows, columns, width_ratios=widths, squeeze=False)


def axes(ax: Any = None, height: float = 4.5, columns: int = 1) -> Any:
    """Return axes to draw on: those given, or new ones in the charts' style.

    Parameters
    ----------
    ax : matplotlib Axes or Chart, optional
        Returned as it is.
    height : float
        Inches, of a new figure.
    columns : int
        Axes side by side in a new figure; more than one give a sequence of them.
    """
    if ax is not None:
        return ax.axes if isinstance(ax, Chart) else ax
    made = grid_of_axes((8 if columns == 1 else 11, height), columns)[0]
    return made[0] if columns == 1 else made


def colour(index: int) -> str:
    """Return the colour of the line or lane of this number."""
    return list(COLOURS.values())[index % len(COLOURS)]


def marker(index: int) -> str:
    """Return the marker of the line of this number."""
    return "os^Dv"[index % 5]


def note(ax: Any, text: str, at: Sequence[float], offset: Sequence[int], **look: Any) -> None:
    """Write a text beside a point, `offset` points away from it."""
    ax.annotate(text, at, offset, textcoords="offset points", **look)


def rows_of_bars(ax: Any, names: Sequence[str]) -> None:
    """Name the horizontal bars, of which the first is at the top."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)


def patch(label: str, colour: str, **look: Any) -> Any:
    """Return a bar for a legend."""
    from matplotlib.patches import Patch

    return Patch(facecolor=colour, label=label, **look)


def nothing_to_draw(expected: str) -> ValueError:
    """Return the error of a chart that was given no data."""
    return ValueError(f"there is nothing to draw: expected {expected}")


def check_length(name: str, found: Sequence[Any], of: Sequence[Any], what: str = "values") -> None:
    """Raise ValueError where a series is not as long as its axis."""
    if len(found) != len(of):
        raise ValueError(f"series {name!r} has {len(found)} {what}; expected {len(of)}")


def foot(ax: Any, durations: Sequence[Duration], *notes: str) -> None:
    """Print the provenance of everything in the chart below it."""
    sources = list(dict.fromkeys((*(d.provenance for d in durations), *notes)))
    lines = textwrap.wrap("; ".join(sources), _FOOT_WIDTH, break_on_hyphens=False)
    ax.set_xlabel("\n".join(filter(None, [ax.get_xlabel(), *lines])), fontsize=11)


def unit(seconds: float) -> tuple[float, str]:
    """Return the factor and the name of a unit that suits a time."""
    for limit, scale, name in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return scale, name
    return 1.0, "s"


def as_array(data: Any) -> np.ndarray[Any, Any]:
    """Return `data` as a plain numpy array, without change where numpy has the dtype."""
    if hasattr(data, "detach"):
        data = data.detach().cpu().resolve_conj().resolve_neg()
        if any(name in str(data.dtype) for name in ("bfloat16", "float8")):
            data = data.float()  # exact: every value is a float32
        data = data.numpy()
    return np.asarray(data)
