"""A chart of designs: cycles against what they take of the PL, with those that none other beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pynq_torch.tables import Table

from .charts import COLOURS, Chart, axes, foot

if TYPE_CHECKING:
    from pynq_torch.lessons.design_space import Result

__all__ = ["designs", "pareto"]

_LOOK = {64: ("s", "blue"), 32: ("o", "orange")}


def designs(
    found: Sequence[Result],
    size: int = 256,
    *,
    budget: float | None = None,
    memory: str = "pynq-z2",
    title: str = "",
    ax: Any = None,
) -> Chart:
    """Draw the cycles of a product against the share of the part's scarcest resource.

    Parameters
    ----------
    found : sequence of Result
        From `pynq_torch.lessons.design_space.results`.
    size : int
        m = n = k of the product.
    budget : float, optional
        A share of the part, 0 to 1, drawn as a limit.
    memory : str
        The model of the memory that the cycles were counted with.
    title : str
        Of the chart.
    ax : matplotlib Axes, optional
        Drawn into.

    Returns
    -------
    Chart
        The table says of each design whether another is both smaller and faster.
    """
    if not found:
        raise ValueError("there is nothing to draw: expected the result of a design at least")
    ax = axes(ax, height=5.0)
    front = pareto(found, size)
    ax.plot(
        [r.share for r in front], [r.cycles[size] for r in front],
        "--", color=COLOURS["black"], label="none is smaller and faster", zorder=1,
    )  # fmt: skip
    for bits, (marker, colour) in _LOOK.items():
        some = [r for r in found if r.design.port_bits == bits]
        if some:
            ax.plot(
                [r.share for r in some], [r.cycles[size] for r in some], marker, markersize=12,
                color=COLOURS[colour], markeredgecolor="black", label=f"ports of {bits} bit",
            )  # fmt: skip
    for r in found:
        up = r.design.port_bits == 64
        ax.annotate(
            f"{r.design.rows} x {r.design.cols}", (r.share, r.cycles[size]),
            (-8, -16) if up else (8, 8), textcoords="offset points",
            ha="right" if up else "left", fontsize=11,
        )  # fmt: skip
    if budget is not None:
        ax.axvline(budget, color=COLOURS["green"], linewidth=2, label=f"{budget:.0%} of the part")
    ax.axvline(1.0, color=COLOURS["vermillion"], linewidth=2, label="all of the part")
    ax.set_yscale("log")
    ax.set_xlim(0, 1.05)
    low, high = min(r.cycles[size] for r in found), max(r.cycles[size] for r in found)
    ax.set_ylim(low / 2, high * 2)
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.set_xlabel("share of the scarcest resource of the xc7z020")
    ax.set_ylabel(f"cycles of {size} x {size} x {size}")
    ax.set_title(title or "Every array of the gemm: cycles against area")
    ax.legend(fontsize=10)
    tool = found[0].resources.source.partition(",")[0]
    foot(ax, [], f"cycles: counted in RTL, memory {memory}; area: {tool}")
    rows = [
        [
            str(r.design), r.design.macs, r.cycles[size], f"{r.macs_per_cycle(size):.1f}",
            *r.resources.used.values(), f"{r.share:.1%}", "yes" if r in front else "no",
        ]
        for r in found
    ]  # fmt: skip
    header = ["design", "MAC/cycle, peak", "cycles (RTL)", "MAC/cycle", "BRAM_18K", "DSP", "FF"]
    return Chart(ax, Table([*header, "LUT", "share", "best"], rows))


def pareto(found: Sequence[Result], size: int) -> tuple[Result, ...]:
    """Return the results that no other beats in both: cycles, and share of the part.

    Parameters
    ----------
    found : sequence of Result
        From `pynq_torch.lessons.design_space.results`.
    size : int
        Of the product whose cycles count.

    Returns
    -------
    tuple of Result
        From the smallest to the fastest.
    """
    best: list[Result] = []
    for one in sorted(found, key=lambda r: (r.share, r.cycles[size])):
        if not best or one.cycles[size] < best[-1].cycles[size]:
            best.append(one)
    return tuple(best)
