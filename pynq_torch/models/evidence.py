"""What is known of a kernel, the best evidence first: its resources and its latency.

A model comes with every kernel (``description.json``). What is better replaces it, and the result
says which it is:

- resources: a ``csynth.xml`` below the kernel's folder or where ``make -C hw kernels`` leaves it,
  then what yosys counted in its RTL (``rtl/resources.json``), then the model;
- latency: a board's wall clock, then a ``csynth.xml`` whose latency does not depend on arguments,
  then cycles counted in RTL, at the clock that a bitstream of the kernel was routed for where there
  is one (``routed`` in its manifest), then the estimate of `pynq_torch.hls.estimate` where the
  sizes alone decide it, then the model. Measurements and counts are in ``measurements.json`` in
  the kernel's folder (`record` writes it).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pynq_torch.descriptions import KernelDescription, read_kernel_description
from pynq_torch.errors import InterfaceError, KernelError
from pynq_torch.paths import BITSTREAMS, HW, find_kernel, kernel_path, to_read, to_write
from pynq_torch.timing import Duration

from .hls_resources import AVAILABLE, Resources, estimate, itemised

if TYPE_CHECKING:
    from pynq_torch.hls.csynth import SynthesisReport
    from pynq_torch.hls.estimator import Estimate

__all__ = [
    "Kernel",
    "initiation_interval",
    "kernel",
    "kernel_names",
    "latencies",
    "latency",
    "record",
    "resources",
    "resources_by_kind",
    "routed_clock",
    "schedule",
]

MEASUREMENTS = "measurements.json"


def kernel_names() -> tuple[str, ...]:
    """Return the kernels with a description on the kernel path, in alphabetical order."""
    found = (path for root in kernel_path() for path in root.glob("*/description.json"))
    return tuple(sorted({path.parent.name for path in found}))


@dataclass(frozen=True)
class Kernel:
    """A kernel's folder, and its ``description.json``."""

    folder: Path
    description: KernelDescription


def kernel(name: str) -> Kernel:
    """Return a kernel of the kernel path: ``PYNQ_TORCH_KERNELS``, then ``hw/kernels``.

    Raises
    ------
    KernelError
        There is none with a description.
    """
    folder = find_kernel(name)
    if folder is None:
        raise KernelError(
            f"no kernel {name!r} with a description.json on the kernel path (PYNQ_TORCH_KERNELS, "
            f"hw/kernels); there are {', '.join(kernel_names())}",
            name,
        )
    description = read_kernel_description(folder)
    try:
        itemised(description.resources)  # says what is wrong with them
    except InterfaceError as error:
        raise InterfaceError(f"{folder / 'description.json'}: {error}", cu=name) from error
    return Kernel(folder, description)


def _synthesis(found: Kernel) -> SynthesisReport | None:
    from pynq_torch.hls.csynth import find_report, read_report

    name = found.description.name
    for folder in (found.folder, to_write(HW / "build" / "hls" / name)):
        path = find_report(folder, name) if folder.is_dir() else None
        if path is not None:
            return read_report(path)
    return None


def resources_by_kind(name: str) -> dict[str, Resources]:
    """Return what a kernel takes of the PL by all there is, the best evidence first.

    Parameters
    ----------
    name : str
        See `kernel`.

    Returns
    -------
    dict of str to Resources
        ``"csynth"``: the vendor's synthesis has estimated it; ``"yosys"``: its RTL was counted;
        ``"model"``: by the components that its description states. Those that there are.
    """
    from .rtl_resources import committed

    own = kernel(name)
    found = {}
    report = _synthesis(own)
    if report is not None:
        bram, dsp, ff, lut = (report.used.get(part, 0) for part in AVAILABLE)
        source = f"csynth.xml, {report.tool_version}"
        found["csynth"] = Resources(bram, dsp, ff, lut, "csynth", source)
    counted = committed(own.folder)
    if counted is not None:
        found["yosys"] = counted
    if own.description.resources:
        found["model"] = estimate(own.description.resources)
    return found


def resources(name: str) -> Resources | None:
    """Return what a kernel takes of the PL, by the best evidence there is.

    Parameters
    ----------
    name : str
        See `kernel`.

    Returns
    -------
    Resources or None
        The first of `resources_by_kind`; ``None`` where its description states no components.
    """
    return next(iter(resources_by_kind(name).values()), None)


@dataclass(frozen=True)
class RoutedClock:
    """The clock that place and route has reached for a kernel's bitstream, derated."""

    hz: float
    by: str  #: overlay and tool


def routed_clock(name: str) -> RoutedClock | None:
    """Return the PL clock of the real bitstream that has a kernel's RTL in it, by its manifest.

    Of several it is the slowest. ``None`` where ``bitstreams`` has none: simulation images were not
    routed, and what Vitis HLS makes of the C++ is another design.
    """
    found = []
    for folder in dict.fromkeys((to_write(BITSTREAMS), BITSTREAMS)):
        for path in sorted(folder.glob("*/manifest.json")):
            manifest = json.loads(path.read_text(encoding="utf-8"))
            if name in manifest.get("rtl", ()):
                by = f"{manifest['overlay']} by {manifest['routed']['by']}"
                found.append(RoutedClock(1e6 * manifest["clock_mhz"], by))
    return min(found, key=lambda clock: clock.hz, default=None)


def initiation_interval(name: str) -> int:
    """Return the II of the loop that does the work: the greatest of a ``csynth.xml``, or the model.

    Parameters
    ----------
    name : str
        See `kernel`.

    Returns
    -------
    int
        Cycles; 0 where nothing states it.
    """
    found = kernel(name)
    report = _synthesis(found)
    achieved = [loop.ii for loop in report.loops if loop.ii] if report is not None else []
    return max(achieved, default=found.description.ii)


def _recorded(
    folder: Path, wanted: dict[str, int], clock_hz: float, made: Callable[..., Duration]
) -> dict[str, Duration]:
    """Return the first measurement and the first count of cycles at these sizes."""
    found: dict[str, Duration] = {}
    for entry in _measurements(folder):
        kind = entry["kind"]
        if entry["sizes"] != wanted or kind in found:
            continue
        if kind == "cycles":
            found[kind] = made(entry["cycles"] / clock_hz, kind)
        elif entry["clock_hz"] == clock_hz:
            found[kind] = made(entry["seconds"], kind, where=entry["where"], repeat=entry["repeat"])
    return found


def latencies(
    name: str, clock_hz: float, *, label: str = "", estimated: bool = True, **sizes: int
) -> dict[str, Duration]:
    """Return how long a run takes by all there is, the best evidence first.

    Parameters
    ----------
    name, clock_hz, label, estimated, **sizes
        See `latency`.

    Returns
    -------
    dict of str to Duration
        ``"measured"`` and ``"cycles"`` where they were recorded at these sizes, ``"routed"`` where
        cycles were and `routed_clock` knows a clock, whatever `clock_hz` is, ``"csynth"`` where
        the vendor's report has one number, ``"estimate"`` where there is one for these sizes, and
        ``"model"`` always: the description's formula.
    """
    own = kernel(name)
    model = own.description.latency
    wanted = {symbol: int(sizes[symbol]) for symbol in model.symbols if symbol in sizes}
    made = partial(Duration, clock_hz=clock_hz, part="compute")
    found = _recorded(own.folder, wanted, clock_hz, partial(made, label=label or name))
    if "cycles" in found and (clock := routed_clock(name)) is not None:
        cycles = found["cycles"].seconds * clock_hz
        found["routed"] = replace(
            found["cycles"], seconds=cycles / clock.hz, kind="routed", clock_hz=clock.hz,
            where=clock.by,
        )  # fmt: skip
    report = _synthesis(own)
    # A latency that is one number for all arguments is the schedule; a range is none for these.
    if report is not None and report.latency_worst == report.latency_best is not None:
        where = f"csynth.xml, {report.tool_version}"
        found["csynth"] = made(report.latency_best / clock_hz, "model", label or name, where)
    guess = _estimated(own, clock_hz, wanted) if estimated else None
    if guess is not None:
        found["estimate"] = made(guess / clock_hz, "estimate", label or name, "memory never waits")
    found["model"] = made(model.cycles(**wanted) / clock_hz, "model", label or name)
    order = ("measured", "csynth", "routed", "cycles", "estimate", "model")
    return {kind: found[kind] for kind in order if kind in found}


def schedule(name: str, clock_hz: float, **sizes: int) -> Estimate:
    """Return the estimate of a run: its loops with II, depth and latency, and what limits them.

    Parameters
    ----------
    name : str
        See `kernel`.
    clock_hz : float
        Of the PL.
    **sizes : int
        Scalar arguments; others are ignored.

    Raises
    ------
    KernelError
        There is none: clang is not installed, or the C++ cannot be scheduled.
    """
    from pynq_torch.hls.estimator import estimate_of_run
    from pynq_torch.hls.kernels import KernelSource

    folder = kernel(name).folder
    source = KernelSource(name, folder / f"{name}.cpp")
    return estimate_of_run(source, sizes, clock=round(1e9 / clock_hz, 3))


def _estimated(own: Kernel, clock_hz: float, sizes: dict[str, int]) -> int | None:
    """Return the estimated cycles of a run; None where the sizes alone do not decide them."""
    if not (own.folder / f"{own.folder.name}.cpp").is_file():
        return None
    try:
        least, most = schedule(own.folder.name, clock_hz, **sizes).latency
    except KernelError:
        return None  # `schedule` says why; the next evidence counts
    return most if least == most else None


def latency(
    name: str, clock_hz: float, *, label: str = "", estimated: bool = True, **sizes: int
) -> Duration:
    """Return how long a run takes, by the best evidence there is.

    Parameters
    ----------
    name : str
        See `kernel`.
    clock_hz : float
        Converts cycles; a measurement counts only where it was made at this clock.
    label : str
        For a chart; default: the kernel.
    estimated : bool
        Estimate it where nothing better is known: some tenths of a second where the build cache has
        no estimate for these sizes.
    **sizes : int
        The symbols of its latency model; others are ignored.

    Returns
    -------
    Duration
        The first of `latencies`.
    """
    found = latencies(name, clock_hz, label=label, estimated=estimated, **sizes)
    return next(iter(found.values()))


def _measurements(folder: Path) -> list[dict[str, Any]]:
    path = to_read(folder / MEASUREMENTS)
    if not path.is_file():
        return []
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        for entry in entries:
            value = "cycles" if entry["kind"] == "cycles" else "seconds"
            expected = {"kind", "sizes", "clock_hz", value}
            if missing := expected - entry.keys():
                raise KeyError(*sorted(missing))
    except (ValueError, KeyError, TypeError) as error:
        raise InterfaceError(
            f"{path}: {error!r}; expected a list of objects as "
            "pynq_torch.models.evidence.record writes them",
            cu=folder.name,
        ) from error
    return list(entries)


def record(name: str, duration: Duration, *, cycles: int | None = None, **sizes: int) -> Path:
    """Keep a measurement beside its kernel, where `latency` finds it.

    Parameters
    ----------
    name : str
        See `kernel`.
    duration : Duration
        Of kind ``"measured"`` on a board, or ``"cycles"``.
    cycles : int, optional
        Counted in RTL; default: from the duration and its clock.
    **sizes : int
        The symbols of the latency model.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ValueError
        It is a model, or this PC's wall clock, which says nothing about the kernel's; or it has no
        clock; or sizes are missing.
    """
    found = kernel(name)
    _check_evidence(found, duration, sizes)
    entry: dict[str, Any] = {"kind": duration.kind, "sizes": sizes}
    entry |= {"clock_hz": duration.clock_hz, "repeat": duration.repeat}
    if duration.kind == "cycles":
        counted = duration.seconds * (duration.clock_hz or 0.0)
        entry["cycles"] = round(counted) if cycles is None else cycles
    else:
        entry |= {"seconds": duration.seconds, "where": duration.where}
    same = ("kind", "sizes", "clock_hz")
    kept = [e for e in _measurements(found.folder) if any(e[key] != entry[key] for key in same)]
    path = to_write(found.folder / MEASUREMENTS)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([*kept, entry], indent=2) + "\n", encoding="utf-8")
    return path


def _check_evidence(found: Kernel, duration: Duration, sizes: dict[str, int]) -> None:
    name = found.description.name
    if duration.kind in ("model", "estimate", "routed") or duration.where.endswith("this PC"):
        raise ValueError(
            f"{duration.provenance} is no evidence about {name!r} on the board; "
            "expected a measurement on a board, or cycles counted in RTL"
        )
    symbols = set(found.description.latency.symbols)
    if set(sizes) != symbols or duration.clock_hz is None:
        raise ValueError(
            f"{name!r} needs clock_hz in the duration, and {', '.join(sorted(symbols))}; "
            f"found clock {duration.clock_hz} and {', '.join(sorted(sizes)) or 'no sizes'}"
        )
