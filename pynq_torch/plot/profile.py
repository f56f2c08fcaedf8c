"""Charts of a profile: operators of device "pynq", and what their time was spent on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pynq_torch.timing import seconds_text

from .charts import COLOURS
from .charts import HATCH as _HATCH
from .charts import PART_COLOUR as _PART_COLOUR
from .charts import axes as _axes
from .charts import unit as _unit

if TYPE_CHECKING:
    from pynq_torch.profiler import Profile

__all__ = ["operators"]

#: A column of the profile -> what it is called, and the part whose colour it has.
_PARTS = {
    "host_s": ("host", "host"),
    "transfer_s": ("transfer", "transfer"),
    "pl_s": ("PL", "compute"),
}


def operators(
    profiles: Mapping[str, Profile], *, most: int = 5, title: str = "", ax: Any = None
) -> Any:
    """Draw what operators took in a region of interest, divided into host, transfer and PL.

    Parameters
    ----------
    profiles : mapping of str to Profile
        Name -> what ``torch.pynq.profiler.profile()`` returned; a bar each for every operator.
        Where a profile has several regions, the bar is their mean.
    most : int
        Operators that are drawn, those that take longest; the others are added up.
    title : str
        Of the chart.
    ax : matplotlib Axes, optional
        Drawn into; default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The number beside a bar is the whole time. Where a transfer ran beside a compute unit, both
        have that time, and the bar is longer than the number says.

    Raises
    ------
    ValueError
        There is no profile, or no operator was called in one of them.
    """
    found = {name: json.loads(p.stats("ExecTime-Raw")) for name, p in profiles.items()}
    empty = [name for name, data in found.items() if not data["operators"]]
    if empty or not found:
        what = f"profile {empty[0]!r} has" if empty else "there is no profile with"
        raise ValueError(f"{what} no operators on device 'pynq': expected at least one call")
    times = {name: _times(data) for name, data in found.items()}
    longest: dict[str, float] = {}
    for rows in times.values():
        for operator, row in rows.items():
            longest[operator] = max(longest.get(operator, 0.0), row["total_s"])
    ranked = sorted(longest, key=lambda operator: -longest[operator])
    groups = {_short(operator): [operator] for operator in ranked[:most]}
    if ranked[most:]:
        groups["others"] = ranked[most:]
    bars = [
        (f"{label}\n{name}" if len(times) > 1 else label, name, _sum(times[name], group))
        for label, group in groups.items()
        for name in times
    ]
    return _draw(bars, found, title, ax)


def _times(data: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return operator -> seconds by column in one region."""
    rois = max(1, data["rois"])
    columns = ("total_s", *_PARTS)
    return {row["name"]: {c: row[c] / rois for c in columns} for row in data["operators"]}


def _sum(rows: dict[str, dict[str, float]], group: list[str]) -> dict[str, float]:
    columns = ("total_s", *_PARTS)
    return {c: sum(rows[name][c] for name in group if name in rows) for c in columns}


def _short(name: str) -> str:
    return name.removeprefix("aten::")


def _draw(
    bars: list[tuple[str, str, dict[str, float]]], found: dict[str, Any], title: str, ax: Any
) -> Any:
    from matplotlib.patches import Patch

    kinds = {name: _kind(data) for name, data in found.items()}
    scale, unit = _unit(max(row["total_s"] for _, _, row in bars))
    longest = 0.0
    ax = _axes(ax, height=1.6 + 0.45 * len(bars))
    for y, (_, name, row) in enumerate(bars):
        left = 0.0
        for column, (_, part) in _PARTS.items():
            hatch = _HATCH[kinds[name]] if column == "pl_s" else ""
            width = row[column] * scale
            colour = COLOURS[_PART_COLOUR[part]]
            ax.barh(y, width, 0.7, left, color=colour, hatch=hatch, edgecolor="white")
            left += width
        text = seconds_text(row["total_s"]) if row["total_s"] else "not called"
        end = max(left, row["total_s"] * scale)
        longest = max(longest, end)
        ax.annotate(text, (end, y), (5, 0), textcoords="offset points", va="center")
    if len(found) > 1:
        for line in range(len(found), len(bars), len(found)):
            ax.axhline(line - 0.5, color="0.8", linewidth=1)
    ax.set_yticks(range(len(bars)), [label for label, _, _ in bars])
    ax.set_ylim(len(bars) - 0.4, -0.6)
    ax.set_xlim(0, 1.2 * longest)
    ax.grid(False, axis="y")
    ax.set_title(title)
    ax.legend(
        handles=[
            Patch(facecolor=COLOURS[_PART_COLOUR[part]], label=label)
            for column, (label, part) in _PARTS.items()
            if any(row[column] for _, _, row in bars)
        ],
        loc="lower right",
    )
    places = dict.fromkeys(line for data in found.values() for line in _provenance(data))
    ax.set_xlabel(f"time / {unit}\n{'; '.join(places)}", fontsize=11)
    return ax


def _kind(data: dict[str, Any]) -> str:
    """Return where a profile's times of the PL come from; measured where it was not used."""
    kinds: set[str] = {place["kind"] for place in data["kinds"]["pl_s"]} or {"measured"}
    # Several in one bar: the least sure of them.
    return max(kinds, key=list(_HATCH).index)


def _provenance(data: dict[str, Any]) -> list[str]:
    lines = []
    for label, column in (("host and transfer", "total_s"), ("PL", "pl_s")):
        places = [f"{place['kind']} ({place['where']})" for place in data["kinds"][column]]
        if places:
            lines.append(f"{label}: {' + '.join(places)}")
    return lines
