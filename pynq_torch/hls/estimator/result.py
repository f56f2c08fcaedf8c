"""What an estimate says."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Estimate", "LoopEstimate"]

Cycles = tuple[int | None, int | None]


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
        ``DSP`` and ``BRAM_18K``; ``LUT`` and ``FF`` are None: they are not estimated.
    stages : tuple of (str, int or None)
        Processes of a DATAFLOW region and their cycles.
    warnings : tuple of str
        With file and line.
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
    warnings: tuple[str, ...] = field(default=())
    kind: str = "estimate"

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
