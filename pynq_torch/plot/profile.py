"""Charts of a profile: operators of device "pynq", and what their time was spent on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pynq_torch.timing import seconds_text

from .charts import HATCH, PART_COLOUR, axes, note, patch, unit

if TYPE_CHECKING:
    from pynq_torch.profiler import Profile

__all__ = ["operators"]

#: A column of the profile -> what it is called, and its colour.
_PARTS = {
    "host_s": ("host", PART_COLOUR["host"]),
    "transfer_s": ("transfer", PART_COLOUR["transfer"]),
    "pl_s": ("PL", PART_COLOUR["compute"]),
}
_COLUMNS = ("total_s", *_PARTS)
#: Operator -> seconds by column in one region.
_Times = dict[str, dict[str, float]]


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
        Title of the chart.
    ax : matplotlib Axes, optional
        Axes to draw on; default: those of a new figure.

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
    return _draw(
        _bars({name: _times(data) for name, data in found.items()}, most), found, title, ax
    )


def _bars(times: dict[str, _Times], most: int) -> list[tuple[str, str, dict[str, float]]]:
    """Return label, profile and times of each bar: the longest operators, and the others."""
    names = dict.fromkeys(operator for rows in times.values() for operator in rows)
    ranked = sorted(
        names,
        key=lambda name: -max(rows[name]["total_s"] for rows in times.values() if name in rows),
    )
    groups = {name.removeprefix("aten::"): [name] for name in ranked[:most]}
    if ranked[most:]:
        groups["others"] = ranked[most:]
    return [
        (f"{label}\n{name}" if len(times) > 1 else label, name, _sum(times[name], group))
        for label, group in groups.items()
        for name in times
    ]


def _times(data: dict[str, Any]) -> _Times:
    rois = max(1, data["rois"])
    return {row["name"]: {c: row[c] / rois for c in _COLUMNS} for row in data["operators"]}


def _sum(rows: _Times, group: list[str]) -> dict[str, float]:
    return {c: sum(rows[name][c] for name in group if name in rows) for c in _COLUMNS}


def _draw(
    bars: list[tuple[str, str, dict[str, float]]], found: dict[str, Any], title: str, ax: Any
) -> Any:
    kinds = {name: _kind(data) for name, data in found.items()}
    scale, unit_name = unit(max(row["total_s"] for _, _, row in bars))
    longest = 0.0
    ax = axes(ax, height=1.6 + 0.45 * len(bars))
    for y, (_, name, row) in enumerate(bars):
        end = 0.0
        for column, (_, colour) in _PARTS.items():
            hatch = HATCH[kinds[name]] if column == "pl_s" else ""
            width = row[column] * scale
            ax.barh(y, width, 0.7, end, color=colour, hatch=hatch, edgecolor="white")
            end += width
        text = seconds_text(row["total_s"]) if row["total_s"] else "not called"
        end = max(end, row["total_s"] * scale)
        longest = max(longest, end)
        note(ax, text, (end, y), (5, 0), va="center")
    if len(found) > 1:
        for line in range(len(found), len(bars), len(found)):
            ax.axhline(line - 0.5, color="0.8", linewidth=1)
    ax.set_yticks(range(len(bars)), [label for label, _, _ in bars])
    ax.set(ylim=(len(bars) - 0.4, -0.6), xlim=(0, 1.2 * longest), title=title)
    ax.grid(False, axis="y")
    used = [part for column, part in _PARTS.items() if any(row[column] for _, _, row in bars)]
    ax.legend(handles=[patch(*part) for part in used], loc="lower right")
    places = dict.fromkeys(line for data in found.values() for line in _provenance(data))
    ax.set_xlabel(f"time / {unit_name}\n{'; '.join(places)}", fontsize=11)
    return ax


def _kind(data: dict[str, Any]) -> str:
    """Return where a profile's times of the PL come from; measured where it was not used."""
    kinds: set[str] = {place["kind"] for place in data["kinds"]["pl_s"]} or {"measured"}
    # Several in one bar: the least sure of them.
    return max(kinds, key=list(HATCH).index)


def _provenance(data: dict[str, Any]) -> list[str]:
    places = {
        label: [f"{place['kind']} ({place['where']})" for place in data["kinds"][column]]
        for label, column in (("host and transfer", "total_s"), ("PL", "pl_s"))
    }
    return [f"{label}: {' + '.join(found)}" for label, found in places.items() if found]
