"""Comparing designs of one function: their sources, the table instructors ask for, the best one.

A design is a kernel with as many compute units as an overlay gives it. The optimisation ladder has
four for each of its functions (`ladder`).
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from pynq_torch.errors import KernelError
from pynq_torch.kernels.ladder import parts
from pynq_torch.models import evidence
from pynq_torch.models.hls_resources import Resources
from pynq_torch.models.pynq_z2 import DDR_BYTES_PER_SECOND, FCLK_HZ
from pynq_torch.paths import HW
from pynq_torch.plot.rooflines import Point
from pynq_torch.tables import Table
from pynq_torch.timing import Duration, seconds_text

__all__ = [
    "Design",
    "Diff",
    "best",
    "compare",
    "interface",
    "ladder",
    "overlay_diff",
    "source_diff",
]

#: Operations an element, bytes an element that go through DDR.
_COSTS = {"vadd": (1, 12), "dot": (2, 8)}
#: Designs this close in throughput are equally fast; then the smaller is the better.
_AS_FAST = 0.99


@dataclass(frozen=True)
class Design:
    """A kernel, with the compute units that an overlay has of it.

    Parameters
    ----------
    kernel : str
        Its name, e.g. ``"vadd_3"``.
    overlay : str
        Where it is.
    units : int
        Compute units, each with a part of the elements.
    """

    kernel: str
    overlay: str
    units: int = 1

    @property
    def function(self) -> str:
        """What it computes: the kernel's name without the rung."""
        return self.kernel.rpartition("_")[0]

    @property
    def label(self) -> str:
        """The kernel, with the number of units where there are several."""
        return self.kernel if self.units == 1 else f"{self.kernel} x{self.units}"

    @property
    def ii(self) -> int:
        """Initiation interval of the loop that does the work, in cycles."""
        return evidence.initiation_interval(self.kernel)

    @property
    def resources(self) -> Resources:
        """What all units take of the PL together."""
        one = evidence.resources(self.kernel)
        if one is None:
            raise KernelError(f"{self.kernel} states no resources in its description", self.kernel)
        return one.times(self.units) if self.units > 1 else one

    def operations(self, n: int) -> int:
        """Return the arithmetic operations on vectors of n elements."""
        return _COSTS[self.function][0] * n

    def nbytes(self, n: int) -> int:
        """Return the bytes that go through DDR for vectors of n elements."""
        return _COSTS[self.function][1] * n

    def duration(self, n: int, clock_hz: float = FCLK_HZ) -> Duration:
        """Return the time for vectors of n elements, by the best evidence but an estimate.

        Not every design has one (`estimated`), and a model is not divided by an estimate. Modelled
        units that work at the same time share DDR: together they are no faster than it.

        Parameters
        ----------
        n : int
            Elements, at least 1.
        clock_hz : float
            Clock of the PL.
        """
        longest = max(count for _, count in parts(n, self.units))
        found = evidence.latency(
            self.kernel, clock_hz, label=self.label, estimated=False, n=longest
        )
        if found.kind != "model" or self.units == 1:
            return found
        start = evidence.latency(self.kernel, clock_hz, estimated=False, n=1).seconds
        together = start + self.nbytes(n) / DDR_BYTES_PER_SECOND
        return replace(found, seconds=max(found.seconds, together))

    def estimated(self, n: int, clock_hz: float = FCLK_HZ) -> Duration | None:
        """Return the estimate of the C++ for vectors of n elements, as if memory never waited.

        ``None`` where the length alone does not decide it, or clang is not installed
        (`pynq_torch.models.evidence.schedule` says which).
        """
        longest = max(count for _, count in parts(n, self.units))
        found = evidence.latencies(self.kernel, clock_hz, label=self.label, n=longest)
        return found.get("estimate")

    def point(self, n: int, clock_hz: float = FCLK_HZ) -> Point:
        """Return the design as a point of a roofline, see `pynq_torch.plot.roofline`."""
        return Point(self.duration(n, clock_hz), self.operations(n), self.nbytes(n))

    def bandwidth_share(self, n: int, clock_hz: float = FCLK_HZ) -> float:
        """Return which share of what DDR delivers it moves, 0 to 1."""
        return self.nbytes(n) / self.duration(n, clock_hz).seconds / DDR_BYTES_PER_SECOND


def ladder(function: str = "vadd") -> tuple[Design, ...]:
    """Return the four rungs of a function as their overlays hold them.

    Parameters
    ----------
    function : {"vadd", "dot"}
        What the kernels compute.
    """
    from pynq_torch.kernels.library import overlays_with

    if function not in _COSTS:
        raise KernelError(
            f"there is no ladder of {function!r}; there are {', '.join(_COSTS)}", function
        )
    units = overlays_with()
    rungs = ((f"{function}_{rung}", f"ladder_{rung}") for rung in (1, 2, 3, 4))
    return tuple(Design(kernel, overlay, units[kernel][overlay]) for kernel, overlay in rungs)


def best(designs: Sequence[Design], n: int) -> Design:
    """Return the best design for vectors of n elements: the fastest; of those, the smallest.

    Smaller is what takes fewer LUTs, which run out first on the xc7z020.
    """
    times = {design: design.duration(n).seconds for design in designs}
    fastest = min(times.values())
    fast = [design for design, seconds in times.items() if fastest / seconds >= _AS_FAST]
    return min(fast, key=lambda design: design.resources.lut)


def compare(designs: Sequence[Design], n: int) -> Table:
    """Return the table that instructors ask for.

    Parameters
    ----------
    designs : sequence of Design
        A row each.
    n : int
        Elements of the vectors.

    Returns
    -------
    Table
        II, latency in cycles, the estimate of the C++ in cycles, time, BRAM, DSP, LUT, FF,
        throughput = 1 / (clock x cycles) in runs a second, share of the memory bandwidth, what the
        numbers are (but for the estimate), and the best.
    """
    parts_of_pl = ("BRAM_18K", "DSP", "LUT", "FF")
    rows = []
    winner = best(designs, n)
    for design in designs:
        time, used = design.duration(n), design.resources
        kinds = time.kind if time.kind == used.kind else f"{time.kind}, area {used.kind}"
        cycles = round(time.seconds * (time.clock_hz or FCLK_HZ))
        rates = [f"{1 / time.seconds:.0f} / s", f"{design.bandwidth_share(n):.0%}"]
        guess = design.estimated(n)
        estimate = "-" if guess is None else round(guess.seconds * (guess.clock_hz or FCLK_HZ))
        row = [design.label, design.ii, cycles, estimate, seconds_text(time.seconds)]
        row += [used.used[name] for name in parts_of_pl]
        rows.append([*row, *rates, kinds, "best" if design == winner else ""])
    header = ["design", "II", "latency / cycles", "estimate / cycles", "time", *parts_of_pl]
    return Table([*header, "throughput", "of DDR", "kind", ""], rows)


# ---- sources -------------------------------------------------------------------------------------


class Diff:
    """What differs between two texts; coloured in a notebook, plain in a terminal.

    Parameters
    ----------
    lines : sequence of str
        Lines of a unified diff, without its file names.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        # Colours and signs: neither alone reaches everybody.
        colours = {"+": "#009E7322", "-": "#D55E0022", "@": "#0072B222"}
        rows = (
            f'<div style="background:{colours.get(line[:1], "none")}">{escape(line) or " "}</div>'
            for line in self.lines
        )
        style = "font-family:monospace;white-space:pre;line-height:1.35"
        return f'<div style="{style}">{"".join(rows)}</div>'


def _diff(old: str, new: str, context: int) -> Diff:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=context)
    # The files are called what the caller called them.
    return Diff([line for line in lines if not line.startswith(("---", "+++"))])


def source_diff(old: str, new: str, *, context: int = 1) -> Diff:
    """Return what changes in the C++ from one kernel to the other.

    Their names, which differ everywhere, are left out of it.

    Parameters
    ----------
    old, new : str
        Kernels on the kernel path.
    context : int
        Unchanged lines around each change.
    """
    texts = []
    for name in (old, new):
        text = (evidence.kernel(name).folder / f"{name}.cpp").read_text(encoding="utf-8")
        texts.append(text.replace(name, name.rpartition("_")[0] or name))
    return _diff(texts[0], texts[1], context)


def overlay_diff(old: str, new: str, *, context: int = 1) -> Diff:
    """Return what changes in the description from one overlay to the other.

    Parameters
    ----------
    old, new : str
        Folders of ``hw/overlays``.
    context : int
        Unchanged lines around each change.
    """
    paths = [HW / "overlays" / name / "overlay.toml" for name in (old, new)]
    for path in paths:
        if not path.is_file():
            raise KernelError(f"{path.parent.name} is no overlay: there is no {path}")
    texts = [path.read_text(encoding="utf-8") for path in paths]
    return _diff(texts[0], texts[1], context)


def interface(kernel: str) -> str:
    """Return the registers and ports of a kernel, as derived from its C++."""
    from pynq_torch.hls.parse import read_interface
    from pynq_torch.hls.reading import format_interface

    source = evidence.kernel(kernel).folder / f"{kernel}.cpp"
    return format_interface(read_interface(source, kernel))
