"""A chart of designs: cycles against what they take of the PL, with those that none other beats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pynq_torch.tables import Table

from .charts import COLOURS, Chart, axes, foot, note, nothing_to_draw

if TYPE_CHECKING:
    from pynq_torch.hls.estimator import Estimate
    from pynq_torch.lessons.design_space import Result

__all__ = ["designs", "estimates", "pareto", "variants"]

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
        Title of the chart.
    ax : matplotlib Axes, optional
        Axes to draw on; default: those of a new figure.

    Returns
    -------
    Chart
        The table says of each design whether another is both smaller and faster.
    """
    if not found:
        raise nothing_to_draw("the result of a design at least")
    ax = axes(ax, height=5.0)
    front = pareto(found, size)
    _draw(ax, found, front, size)
    _limits(ax, budget)
    ax.set_title(title or "Every array of the gemm: cycles against area")
    _label(ax, found[0], memory)
    return Chart(ax, _table(found, front, size))


def _draw(ax: Any, found: Sequence[Result], front: Sequence[Result], size: int) -> None:
    """Draw a point for each design, and a line through those that no other beats."""
    _points(ax, front, size, "--", color="black", label="none is smaller and faster", zorder=1)
    for bits, (marker, colour) in _LOOK.items():
        some = [r for r in found if r.design.port_bits == bits]
        if some:
            look = {"markersize": 12, "markeredgecolor": "black", "label": f"ports of {bits} bit"}
            _points(ax, some, size, marker, color=COLOURS[colour], **look)
    for r in found:
        offset, side = ((-8, -16), "right") if r.design.port_bits == 64 else ((8, 8), "left")
        text, at = f"{r.design.rows} x {r.design.cols}", (r.share, r.cycles[size])
        note(ax, text, at, offset, ha=side, fontsize=11)
    cycles = [r.cycles[size] for r in found]
    ax.set(yscale="log", xlim=(0, 1.05), ylim=(min(cycles) / 2, max(cycles) * 2))
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.set_xlabel("share of the scarcest resource of the xc7z020")
    ax.set_ylabel(f"cycles of {size} x {size} x {size}")


def _limits(ax: Any, budget: float | None) -> None:
    """Draw the share of the part that a design may take, and all of it."""
    if budget is not None:
        ax.axvline(budget, color=COLOURS["green"], linewidth=2, label=f"{budget:.0%} of the part")
    ax.axvline(1.0, color=COLOURS["vermillion"], linewidth=2, label="all of the part")


def _label(ax: Any, result: Result, memory: str) -> None:
    """Add the legend, and where cycles and area come from."""
    ax.legend(fontsize=10)
    tool = result.resources.source.partition(",")[0]
    foot(ax, [], f"cycles: counted in RTL, memory {memory}; area: {tool}")


def _points(ax: Any, found: Sequence[Result], size: int, form: str, **look: Any) -> None:
    ax.plot([r.share for r in found], [r.cycles[size] for r in found], form, **look)


def _table(found: Sequence[Result], front: Sequence[Result], size: int) -> Table:
    rows = [
        [
            str(r.design), r.design.macs, r.cycles[size], f"{r.macs_per_cycle(size):.1f}",
            *r.resources.used.values(), f"{r.share:.1%}", "yes" if r in front else "no",
        ]
        for r in found
    ]  # fmt: skip
    header = ["design", "MAC/cycle, peak", "cycles (RTL)", "MAC/cycle", "BRAM_18K", "DSP", "FF"]
    return Table([*header, "LUT", "share", "best"], rows)


def pareto(found: Sequence[Result], size: int) -> tuple[Result, ...]:
    """Return the results that no other beats in both: cycles, and share of the part.

    Parameters
    ----------
    found : sequence of Result
        From `pynq_torch.lessons.design_space.results`.
    size : int
        Size of the product whose cycles count.

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


def estimates(found: Mapping[str, Estimate], *, title: str = "", ax: Any = None) -> Chart:
    """Draw the cycles of variants of a kernel against their DSP blocks, as HLS would make them.

    Parameters
    ----------
    found : mapping of str to Estimate
        Label -> from `pynq_torch.hls.estimate`; the chart numbers them from 1.
    title : str
        Title of the chart.
    ax : matplotlib Axes, optional
        Axes to draw on; default: those of a new figure.

    Returns
    -------
    Chart
        The table has II of the innermost loops, cycles, DSP, BRAM_18K and time at the clock, and
        says which variants no other beats in both cycles and DSP.

    Raises
    ------
    ValueError
        There is nothing to draw, or a latency or the DSP blocks are not known.
    """
    if not found:
        raise nothing_to_draw("the estimate of a kernel at least")
    points: dict[tuple[int, int], list[int]] = {}
    for number, (label, one) in enumerate(found.items(), 1):
        dsp, cycles = one.resources["DSP"], one.latency[1]
        if dsp is None or cycles is None:
            raise ValueError(f"the cycles or DSP blocks of {label!r} are not known")
        points.setdefault((dsp, cycles), []).append(number)
    best = [at for at in points if not any(_beats(other, at) for other in points)]
    ax = axes(ax, height=5.0)
    look = {"color": "black", "label": "none is smaller and faster", "zorder": 1}
    ax.plot(*zip(*sorted(best), strict=True), "--", **look)
    for at in points:
        colour = COLOURS["vermillion" if at in best else "blue"]
        ax.plot(*at, "o", markersize=12, markeredgecolor="black", color=colour)
    for at, numbers in _labels(points).items():
        note(ax, ", ".join(map(str, numbers)), at, (9, 7), fontsize=12)
    ax.set(yscale="log", ylabel="cycles of a run", xlabel="DSP blocks")
    ax.margins(0.12)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_title(title or "Variants: cycles against DSP blocks")
    ax.legend(fontsize=10)
    one = next(iter(found.values()))
    foot(ax, [], f"numbers: rows of the table; estimate for {one.part} at {one.clock:g} ns")
    return Chart(ax, _variants(found, {number for at in best for number in points[at]}))


def _labels(points: Mapping[tuple[int, int], Sequence[int]]) -> dict[tuple[int, int], list[int]]:
    """Return the numbers at each place; points that nearly cover each other share one."""
    found: dict[tuple[int, int], list[int]] = {}
    for at, numbers in points.items():
        near = (one for one in found if one[0] == at[0] and 0.9 < one[1] / at[1] < 1.1)
        found.setdefault(next(near, at), []).extend(numbers)
    return found


def _beats(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether a point is not worse in both, and not the same."""
    return one != other and one[0] <= other[0] and one[1] <= other[1]


def variants(found: Mapping[str, Estimate]) -> Table:
    """Return the table of `estimates` without its chart, and without saying which are best.

    Parameters
    ----------
    found : mapping of str to Estimate
        Label -> from `pynq_torch.hls.estimate`.
    """
    table = _variants(found, set())
    at = table.header.index("best")
    drop = [[cell for n, cell in enumerate(row) if n != at] for row in [table.header, *table.rows]]
    return Table(drop[0], drop[1:])


def _variants(found: Mapping[str, Estimate], best: set[int]) -> Table:
    rows = []
    for number, (label, one) in enumerate(found.items(), 1):
        cycles = one.latency[1] or 0
        intervals = ", ".join(str(loop.ii) for loop in one.loops if loop.ii is not None)
        time = f"{cycles * one.clock / 1000:,.1f}"
        used = [one.resources["DSP"], one.resources["BRAM_18K"]]
        row = [number, label, intervals or "-", f"{cycles:,}", time, *used]
        rows.append([*row, "yes" if number in best else "", one.kind])
    header = ["", "design", "II", "cycles", "µs", "DSP", "BRAM_18K", "best", "kind"]
    return Table(header, rows)
