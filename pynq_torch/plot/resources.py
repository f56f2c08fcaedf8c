"""A chart of what kernels take of the PL, against what the xc7z020 has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pynq_torch.models.hls_resources import AVAILABLE, Resources
from pynq_torch.tables import Table

from .charts import COLOURS, Chart, axes, foot

__all__ = ["resources"]

_COLOUR = {"LUT": "blue", "FF": "sky", "DSP": "orange", "BRAM_18K": "green"}
#: As the other charts: what is modelled is dotted, what a tool counted is hatched.
_HATCH = {"model": "..", "yosys": "//", "csynth": ""}
_KINDS = {
    "model": "model",
    "yosys": "yosys (RTL)",
    "csynth": "csynth (HLS)",
}
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
        Of the chart.
    ax : matplotlib Axes, optional
        Drawn into.

    Returns
    -------
    Chart
        The table has the counts, the shares, and the kind of each.

    Raises
    ------
    ValueError
        There is nothing to draw.
    """
    from matplotlib.patches import Patch

    if not used:
        raise ValueError("there is nothing to draw: expected the resources of a kernel at least")
    ax = axes(ax, height=2.0 + 0.8 * len(used))
    rows = []
    for place, (label, one) in enumerate(used.items()):
        shares = one.utilisation()
        for index, name in enumerate(_COLOUR):
            level = place + (index - 1.5) * _HEIGHT
            ax.barh(
                level, shares[name], _HEIGHT, color=COLOURS[_COLOUR[name]],
                hatch=_HATCH[one.kind], edgecolor="white", linewidth=0.5,
            )  # fmt: skip
            ax.annotate(
                f"{one.used[name]:,}", (shares[name], level), (4, 0), fontsize=9,
                textcoords="offset points", va="center",
                bbox={"pad": 1, "facecolor": "white", "edgecolor": "none", "alpha": 0.8},
            )  # fmt: skip
            share = f"{shares[name]:.1%}"
            rows.append([label, name, one.used[name], AVAILABLE[name], share, one.kind, one.source])
    ax.set_yticks(range(len(used)), list(used))
    ax.set_ylim(len(used) - 0.5, -0.5)
    ax.grid(False, axis="y")
    ax.axvline(1.0, color=COLOURS["vermillion"], linewidth=2)
    widest = max(max(one.utilisation().values()) for one in used.values())
    ax.set_xlim(0, max(1.05, 1.15 * widest))
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.set_title(title, pad=50)  # room for two rows of the legend
    limits = [Patch(facecolor=COLOURS[c], label=f"{n} of {AVAILABLE[n]:,}")
              for n, c in _COLOUR.items()]  # fmt: skip
    kinds = [k for k in _KINDS if any(one.kind == k for one in used.values())]
    marks = [Patch(facecolor="lightgrey", hatch=_HATCH[k], label=_KINDS[k]) for k in kinds]
    ax.legend(
        handles=[*limits, *marks], fontsize=10, ncols=4, loc="lower center",
        bbox_to_anchor=(0.5, 1.0), frameon=False,
    )  # fmt: skip
    foot(ax, [], *(f"{k}: {'; '.join(sorted(_sources(used, k)))}" for k in kinds if k != "model"))
    return Chart(ax, Table(["kernel", "resource", "used", "of", "share", "kind", "source"], rows))


def _sources(used: Mapping[str, Resources], kind: str) -> set[str]:
    return {one.source for one in used.values() if one.kind == kind}
