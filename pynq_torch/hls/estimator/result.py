"""What an estimate says."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from pynq_torch.tables import Table

__all__ = ["Cycles", "Estimate", "LoopEstimate", "span"]

Cycles = tuple[int | None, int | None]


def span(cycles: Cycles) -> str:
    """Return a range as text; what is not known is ``?``."""
    least, most = ("?" if number is None else f"{number:,}" for number in cycles)
    return least if least == most else f"{least} to {most}"


@dataclass(frozen=True)
class LoopEstimate:
    """One loop; cycles are None where they cannot be known.

    Parameters
    ----------
    name : str
        Its label, or ``VITIS_LOOP_line_n``; those of flattened loops joined by ``_``.
    file : str
        Source file.
    line : int
        From 1, of the innermost where several are flattened.
    lines : tuple of int
        Outer to inner.
    function : str
        Where it is.
    depth : int
        1 is outermost.
    trip_count : (int or None, int or None)
        Least and most.
    ii : int or None
        Initiation interval reached; None for a loop that is not pipelined.
    asked : int or None
        Interval asked for; 1 where none was named.
    iteration_latency : (int or None, int or None)
        Cycles of one iteration.
    latency : (int or None, int or None)
        Cycles of all.
    why : str
        What limits II, ``""`` where nothing does.
    automatic : bool
        Pipelined by the tool, without a directive.
    """

    name: str
    file: str
    line: int
    lines: tuple[int, ...]
    function: str
    depth: int
    trip_count: Cycles
    ii: int | None
    asked: int | None
    iteration_latency: Cycles
    latency: Cycles
    why: str = ""
    automatic: bool = False


@dataclass(frozen=True)
class Estimate:
    """What an HLS scheduler would most likely do with a kernel; every number is an ``estimate``.

    Parameters
    ----------
    top : str
        The function.
    tool : {"vitis", "vivado"}
        Whose defaults were taken.
    clock : float
        Period in ns.
    part : str
        The device.
    latency : (int or None, int or None)
        Cycles from start to done, least and most.
    interval : (int or None, int or None)
        Cycles from one start to the next.
    loops : tuple of LoopEstimate
        Outer loops first, in order of the source.
    resources : dict
        ``DSP``, ``BRAM_18K``, and roughly ``LUT`` and ``FF``: half of the reports in
        docs/estimate.md are a third and more off in LUTs, half and more in flip-flops. They are
        None in the estimate of a run with `arguments`.
    stages : tuple of (str, int or None)
        Processes of a DATAFLOW region and their cycles.
    begins : tuple of int
        The cycle in which each of them begins: behind a FIFO soon after the writer, behind an array
        when the writer has ended. Empty where that is not known.
    warnings : tuple of str
        With file and line.
    reasons : tuple of str
        What limits the interval of pipelined functions.
    """

    top: str
    tool: str
    clock: float
    part: str
    latency: Cycles
    interval: Cycles
    loops: tuple[LoopEstimate, ...]
    resources: dict[str, int | None]
    stages: tuple[tuple[str, int | None], ...] = ()
    begins: tuple[int, ...] = ()
    warnings: tuple[str, ...] = field(default=())
    kind: str = "estimate"
    reasons: tuple[str, ...] = ()

    def table(self) -> Table:
        """Return the loops as a table."""
        header = ["loop", "line", "trips", "II", "depth", "latency"]
        rows = [
            [
                "  " * (loop.depth - 1) + loop.name, loop.line, span(loop.trip_count),
                "" if loop.ii is None else loop.ii, span(loop.iteration_latency),
                span(loop.latency),
            ]
            for loop in self.loops
        ]  # fmt: skip
        return Table(header, rows)

    def __str__(self) -> str:
        tool = {"vitis": "Vitis HLS", "vivado": "Vivado HLS"}[self.tool]
        dsp, brams = self.resources["DSP"], self.resources["BRAM_18K"]
        lines = [
            f"{self.top}: estimate for {self.part} at {self.clock:g} ns, as {tool} would do it",
            f"latency {span(self.latency)} cycles, interval {span(self.interval)}; DSP {dsp}, "
            f"BRAM_18K {brams}{self._logic()}",
        ]
        if self.stages:
            begins = self.begins or (0,) * len(self.stages)
            stages = (
                f"{name} {'?' if n is None else f'{n:,}'}" + (f" from {begin:,}" if begin else "")
                for (name, n), begin in zip(self.stages, begins, strict=True)
            )
            lines.append("processes side by side: " + ", ".join(stages))
        if self.loops:
            lines += ["", str(self.table())]
        reasons = self._reasons()
        lines += ["", *reasons] if reasons else []
        lines += [f"warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)

    def _logic(self) -> str:
        lut, ff = self.resources["LUT"], self.resources["FF"]
        return "" if lut is None or ff is None else f", LUT about {_rough(lut)}, FF {_rough(ff)}"

    def _reasons(self) -> list[str]:
        """Return what limits loops, and why the latency of some is not known; each once."""
        said = [*self.reasons, *(loop.why for loop in self.loops if loop.why)]
        said += [
            f"{loop.name}: how often it runs is not known, and so its latency; write "
            f"LOOP_TRIPCOUNT min= max= for the report ({Path(loop.file).name}:{loop.line})"
            for loop in self.loops
            if loop.trip_count[1] is None and not loop.why.startswith(loop.name)
        ]
        return list(dict.fromkeys(said))

    def _repr_html_(self) -> str:
        said = self._reasons() + [f"warning: {warning}" for warning in self.warnings]
        reasons = "".join(f"<li>{escape(text)}</li>" for text in said)
        head = escape(str(self).split("\n\n", 1)[0]).replace("\n", "<br>")
        return f"<p>{head}</p>{self.table()._repr_html_()}<ul>{reasons}</ul>"

    def as_json(self) -> dict[str, Any]:
        """Return plain values; ranges become ``{"min", "max"}``, single numbers stay numbers."""
        data = asdict(self)
        data["latency"] = {"min": self.latency[0], "max": self.latency[1]}
        data["interval"] = {"min": self.interval[0], "max": self.interval[1]}
        for loop in data["loops"]:
            for key in ("trip_count", "iteration_latency", "latency"):
                least, most = loop[key]
                loop[key] = most if least == most else {"min": least, "max": most}
        data["stages"] = [{"name": name, "latency": cycles} for name, cycles in self.stages]
        return data


def _rough(count: int) -> str:
    """Return a number with the two digits that mean something."""
    unit = 10 ** max(len(str(count)) - 2, 0)
    return f"{round(count / unit) * unit:,}"
