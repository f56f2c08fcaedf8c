"""A chart of what kernels take of the PL, against what the xc7z020 has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pynq_torch.models.hls_resources import AVAILABLE, Resources
from pynq_torch.tables import Table

from .charts import COLOURS, Chart, axes, foot, note, nothing_to_draw, patch, rows_of_bars

__all__ = ["resources"]

_COLOUR = {"LUT": "blue", "FF": "sky", "DSP": "orange", "BRAM_18K": "green"}
#: As the other charts: what is modelled is dotted, what a tool counted is hatched.
_HATCH = {"model": "..", "yosys": "//", "csynth": ""}
_KINDS = {"model": "model", "yosys": "yosys (RTL)", "csynth": "csynth (HLS)"}
_HEIGHT = 0.18


def resources(
    used: Mapping[str, Resources], *, title: str = "Share of the xc7z020", ax: Any = None
) -> Chart:
    """Draw what kernels take as shares of the part, with its limit.

    Parameters
    ----------
    used : mapping of str to Resources
        Label -> what it takes, drawn from top to bottom; see
        `pynq_torch.models.evidence.resources`.
    title : str
        Title of the chart.
    ax : matplotlib Axes, optional
        Axes to draw on; default: those of a new figure.

    Returns
    -------
    Chart
        The table has the counts, the shares, and the kind of each.

    Raises
    ------
    ValueError
        There is nothing to draw.
    """
    if not used:
        raise nothing_to_draw("the resources of a kernel at least")
    ax = axes(ax, height=2.0 + 0.8 * len(used))
    rows: list[list[Any]] = []
    for place, (label, one) in enumerate(used.items()):
        rows += _bars(ax, place, label, one)
    rows_of_bars(ax, list(used))
    ax.grid(False, axis="y")
    ax.axvline(1.0, color=COLOURS["vermillion"], linewidth=2)
    widest = max(max(one.utilisation().values()) for one in used.values())
    ax.set_xlim(0, max(1.05, 1.15 * widest))
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.set_title(title, pad=50)  # room for two rows of the legend
    _legend(ax, used)
    return Chart(ax, Table(["kernel", "resource", "used", "of", "share", "kind", "source"], rows))


def _legend(ax: Any, used: Mapping[str, Resources]) -> None:
    """Explain colours and hatching above the chart, and name the sources of counts below it."""
    sources: dict[str, set[str]] = {
        kind: {one.source for one in used.values() if one.kind == kind} for kind in _KINDS
    }
    kinds = [kind for kind in _KINDS if sources[kind]]
    handles = [patch(f"{n} of {AVAILABLE[n]:,}", COLOURS[c]) for n, c in _COLOUR.items()]
    handles += [patch(_KINDS[k], "lightgrey", hatch=_HATCH[k]) for k in kinds]
    above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "frameon": False}
    ax.legend(handles=handles, fontsize=10, ncols=4, **above)
    foot(ax, [], *(f"{k}: {'; '.join(sorted(sources[k]))}" for k in kinds if k != "model"))


def _bars(ax: Any, place: int, label: str, one: Resources) -> list[list[Any]]:
    """Draw a bar for each resource of a kernel, and return their rows of the table."""
    rows: list[list[Any]] = []
    box = {"pad": 1, "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
    for index, (name, share) in enumerate((name, one.utilisation()[name]) for name in _COLOUR):
        level = place + (index - 1.5) * _HEIGHT
        look = {"hatch": _HATCH[one.kind], "edgecolor": "white", "linewidth": 0.5}
        ax.barh(level, share, _HEIGHT, color=COLOURS[_COLOUR[name]], **look)
        note(ax, f"{one.used[name]:,}", (share, level), (4, 0), fontsize=9, va="center", bbox=box)
        counts = [one.used[name], AVAILABLE[name], f"{share:.1%}"]
        rows.append([label, name, *counts, one.kind, one.source])
    return rows
