"""Charts of training: losses step by step, and what each layer costs in each direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pynq_torch.tables import Table

from .charts import COLOURS, HATCH, Chart, axes, colour, patch, unit

if TYPE_CHECKING:
    from pynq_torch.lessons.lenet import LayerCost

__all__ = ["layers", "losses"]

_STAGES = {"forward": COLOURS["blue"], "backward": COLOURS["orange"]}
_LINES = ("-", "--", ":", "-.")


def losses(curves: Mapping[str, Sequence[float]], *, title: str = "") -> Chart:
    """Draw losses over steps, a line for each run; equal ones are drawn on top of each other.

    Parameters
    ----------
    curves : mapping of str to sequence of float
        Name of the run -> loss of each step, all as long.
    title : str
        Title of the chart.

    Returns
    -------
    Chart
        The axes, and a table with a row for each step.
    """
    lengths = {len(curve) for curve in curves.values()}
    if len(lengths) != 1:
        raise ValueError(f"curves of {sorted(lengths)} steps; expected at least one, all as long")
    ax = axes()
    for i, (name, curve) in enumerate(curves.items()):
        # Each narrower than the one below, so that both are seen where they agree.
        width, style = 5 - 3.5 * i / max(1, len(curves) - 1), _LINES[i % len(_LINES)]
        ax.plot(range(len(curve)), curve, style, lw=width, color=colour(i), label=name)
    ax.set(xlabel="step", ylabel="loss", title=title)
    ax.legend()
    rows = [[i, *values] for i, values in enumerate(zip(*curves.values(), strict=True))]
    return Chart(ax, Table(["step", *curves], rows))


def layers(costs: Sequence[LayerCost], *, title: str = "") -> Chart:
    """Draw what each layer took: measured on the left, modelled on the right, never on one axis.

    Parameters
    ----------
    costs : sequence of LayerCost
        From `lenet.layer_costs`; layers in which no operator arrived are left out.
    title : str
        Title of the chart.

    Returns
    -------
    Chart
        The axes on the left, and a table with all numbers and their kinds.
    """
    names = list(dict.fromkeys(cost.name for cost in costs if cost.calls))
    if not names:
        raise ValueError("no operator of any layer arrived at the device: there is nothing to draw")
    left, right = axes(columns=2, height=5.5)
    for ax, which in ((left, "measured"), (right, "model")):
        durations = [getattr(cost, which) for cost in costs]
        scale, name = unit(max(d.seconds for d in durations))
        for cost, duration in zip(costs, durations, strict=True):
            if cost.calls:
                place = names.index(cost.name) + (0.2 if cost.stage == "backward" else -0.2)
                look = {"color": _STAGES[cost.stage], "hatch": HATCH[which]}
                ax.barh(place, duration.seconds * scale, 0.38, edgecolor="white", **look)
        ax.set_yticks(range(len(names)), names if ax is left else [""] * len(names))
        ax.invert_yaxis()
        ax.set_xlabel(f"time / {name}")
        ax.set_title(durations[0].provenance, fontsize=12)
    handles = [patch(*stage) for stage in _STAGES.items()]
    left.figure.legend(handles=handles, loc="outside lower center", ncols=2)
    left.figure.suptitle(title)
    pairs = [(cost, d) for cost in costs if cost.calls for d in (cost.measured, cost.model)]
    rows = [[cost.name, cost.stage, d.seconds, d.kind, d.provenance] for cost, d in pairs]
    return Chart(left, Table(["layer", "stage", "seconds", "kind", "provenance"], rows))
