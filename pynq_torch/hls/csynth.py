"""Reading the synthesis report that Vivado HLS and Vitis HLS write (``csynth.xml``)."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pynq_torch.errors import KernelError

__all__ = ["Loop", "SynthesisReport", "find_report", "read_report"]

_RESOURCES = {"BRAM_18K", "DSP", "FF", "LUT", "URAM"}
_LOOP_FACTS = {
    "Name", "Slack", "TripCount", "Latency", "AbsoluteTimeLatency", "IterationLatency",
    "PipelineII", "PipelineDepth", "PipelineType", "InstanceList",
}  # fmt: skip


@dataclass(frozen=True)
class Loop:
    """One loop of a synthesised function. Cycles are None where the tool could not bound them.

    Parameters
    ----------
    function : str
        The module it is in.
    name : str
        Its label; nested loops as ``outer/inner``.
    trip_count : int or None
        Iterations, at most.
    latency : int or None
        Cycles, at most.
    iteration_latency : int or None
        Cycles of one iteration, at most.
    ii : int or None
        Initiation interval achieved; None for a loop that is not pipelined.
    depth : int or None
        Stages of the pipeline.
    """

    function: str
    name: str
    trip_count: int | None
    latency: int | None
    iteration_latency: int | None
    ii: int | None
    depth: int | None


@dataclass(frozen=True)
class SynthesisReport:
    """What a vendor tool estimated for a kernel. These are estimates, not measurements.

    Parameters
    ----------
    top : str
        The top function.
    part : str
        The device, ``xc7z020-clg400-1``.
    tool_version : str
        ``2024.1``.
    clock_target_ns, clock_estimate_ns, clock_uncertainty_ns : float
        The requested clock period, the estimated one, and the safety margin.
    latency_best, latency_average, latency_worst : int or None
        Cycles from start to done; None where a loop has no bound.
    interval_min, interval_max : int or None
        Cycles from one start to the next (initiation interval of the kernel).
    used, available : dict of str to int
        By resource: ``BRAM_18K``, ``DSP``, ``FF``, ``LUT``, ``URAM``.
    loops : tuple of Loop
        Every loop of every module.
    """

    top: str
    part: str
    tool_version: str
    clock_target_ns: float
    clock_estimate_ns: float
    clock_uncertainty_ns: float
    latency_best: int | None
    latency_average: int | None
    latency_worst: int | None
    interval_min: int | None
    interval_max: int | None
    used: dict[str, int]
    available: dict[str, int]
    loops: tuple[Loop, ...]

    def utilisation(self) -> dict[str, float]:
        """Return the share of each resource of the part that the kernel takes, 0 to 1 and more."""
        return {
            name: count / self.available[name]
            for name, count in self.used.items()
            if self.available.get(name)
        }


def find_report(folder: Path, top: str) -> Path | None:
    """Return the newest report for `top` below `folder`, or None where no tool has run.

    Where none is for it, that may be one that is no report: `read_report` says what is wrong.
    """
    found = [*folder.rglob(f"{top}_csynth.xml"), *folder.rglob("csynth.xml")]
    tops = {path: _top_of(path) for path in found}
    matching = [path for path in found if tops[path] == top]
    broken = [path for path in found if tops[path] is None]
    return max(matching or broken, key=lambda path: path.stat().st_mtime, default=None)


def _top_of(path: Path) -> str | None:
    try:
        root = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, LookupError, ValueError):  # the latter two: of its encoding
        return None
    return root.findtext("UserAssignments/TopModelName")


def read_report(path: Path | str) -> SynthesisReport:
    """Read a ``csynth.xml``.

    Parameters
    ----------
    path : path
        ``<solution>/syn/report/csynth.xml`` or ``<top>_csynth.xml``.

    Raises
    ------
    KernelError
        The file is missing, is not XML, or is no synthesis report.
    """
    root, top = _profile(Path(path))
    latency = root.find("PerformanceEstimates/SummaryOfOverallLatency")
    timing = root.find("PerformanceEstimates/SummaryOfTimingAnalysis")
    user = root.find("UserAssignments")
    return SynthesisReport(
        top=top,
        part=_text(user, "Part"),
        tool_version=root.findtext("ReportVersion/Version", ""),
        clock_target_ns=_number(user, "TargetClockPeriod"),
        clock_estimate_ns=_number(timing, "EstimatedClockPeriod"),
        clock_uncertainty_ns=_number(user, "ClockUncertainty"),
        latency_best=_cycles(latency, "Best-caseLatency"),
        latency_average=_cycles(latency, "Average-caseLatency"),
        latency_worst=_cycles(latency, "Worst-caseLatency"),
        interval_min=_cycles(latency, "Interval-min"),
        interval_max=_cycles(latency, "Interval-max"),
        used=_resources(root.find("AreaEstimates/Resources")),
        available=_resources(root.find("AreaEstimates/AvailableResources")),
        loops=tuple(_all_loops(root, top)),
    )


def _profile(path: Path) -> tuple[ElementTree.Element, str]:
    """Return the root of a report and the name of its top function."""
    try:
        root = ElementTree.parse(path).getroot()
    except OSError as error:
        raise KernelError(f"{path}: cannot be read ({error.strerror})") from error
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise KernelError(f"{path}: not XML ({error}); expected a csynth.xml") from error
    top = root.findtext("UserAssignments/TopModelName")
    if root.tag != "profile" or top is None:
        raise KernelError(
            f"{path}: found <{root.tag}>, expected the <profile> of a csynth.xml with its top model"
        )
    return root, top


def _text(node: ElementTree.Element | None, name: str) -> str:
    return "" if node is None else (node.findtext(name) or "").strip()


def _number(node: ElementTree.Element | None, name: str) -> float:
    try:
        return float(_text(node, name))
    except ValueError:
        return float("nan")


def _cycles(node: ElementTree.Element | None, name: str) -> int | None:
    """Return a count, the greater end of a range; None for ``undef``, ``?`` and overflows."""
    text = _text(node, f"{name}/range/max") or _text(node, name)
    # Old releases print an overflow as a small negative number.
    return int(text) if text.isdecimal() else None


def _resources(node: ElementTree.Element | None) -> dict[str, int]:
    found: dict[str, int] = {}
    for item in node if node is not None else ():
        name = "DSP" if item.tag == "DSP48E" else item.tag  # of Vivado HLS
        if name in _RESOURCES and (item.text or "").strip().isdigit():
            found[name] = int((item.text or "0").strip())
    return found


def _all_loops(root: ElementTree.Element, top: str) -> Iterator[Loop]:
    modules = root.findall("ModuleInformation/Module")
    if not modules:
        summary = root.find("PerformanceEstimates/SummaryOfLoopLatency")
        yield from _loops(summary, top, "")
    for module in modules:
        summary = module.find("PerformanceEstimates/SummaryOfLoopLatency")
        yield from _loops(summary, _text(module, "Name") or top, "")


def _loops(node: ElementTree.Element | None, function: str, prefix: str) -> Iterator[Loop]:
    for item in node if node is not None else ():
        if item.tag in _LOOP_FACTS:
            continue
        name = prefix + (_text(item, "Name") or item.tag)
        yield Loop(
            function=function,
            name=name,
            trip_count=_cycles(item, "TripCount"),
            latency=_cycles(item, "Latency"),
            iteration_latency=_cycles(item, "IterationLatency"),
            ii=_cycles(item, "PipelineII"),
            depth=_cycles(item, "PipelineDepth"),
        )
        yield from _loops(item, function, name + "/")
