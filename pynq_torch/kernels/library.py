"""The kernel library as a whole: what there is, what it serves and takes, and building it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from pynq_torch.errors import KernelError, PynqTorchError
from pynq_torch.models import evidence
from pynq_torch.models.hls_resources import Resources
from pynq_torch.paths import KERNELS
from pynq_torch.timing import Duration

__all__ = [
    "Built",
    "Entry",
    "build_library",
    "entries",
    "entry",
    "overlay_resources",
    "overlays_with",
]


@dataclass(frozen=True)
class Entry:
    """A kernel of the library.

    Parameters
    ----------
    name, summary, reference : str
        See `pynq_torch.descriptions.KernelDescription`.
    operators : tuple of str
        The ATen operators it serves.
    resources : Resources or None
        What it takes of the PL, by the best evidence; ``None`` where nothing is stated.
    latency : Duration
        Of a run at `sizes`, by the best evidence, at 100 MHz.
    sizes : dict of str to int
        A value for each symbol of the latency model.
    overlays : dict of str to int
        Overlay -> number of its compute units.
    """

    name: str
    summary: str
    reference: str
    operators: tuple[str, ...]
    resources: Resources | None
    latency: Duration
    sizes: dict[str, int]
    overlays: dict[str, int]

    @property
    def cycles(self) -> int:
        """`latency` in cycles of the PL."""
        return round(self.latency.seconds * (self.latency.clock_hz or 0.0))

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "name": self.name,
            "summary": self.summary,
            "reference": self.reference,
            "operators": list(self.operators),
            "resources": self.resources and {**self.resources.used, "kind": self.resources.kind},
            "latency": {
                "seconds": self.latency.seconds,
                "cycles": self.cycles,
                "clock_hz": self.latency.clock_hz,
                "kind": self.latency.kind,
                "provenance": self.latency.provenance,
                "at": self.sizes,
            },
            "overlays": self.overlays,
        }


def overlays_with() -> dict[str, dict[str, int]]:
    """Return kernel -> overlay -> number of compute units, by ``hw/overlays``."""
    from pynq_torch.hls.design.build import overlay_names
    from pynq_torch.hls.design.description import read_description
    from pynq_torch.paths import ROOT

    found: dict[str, dict[str, int]] = {}
    for overlay in overlay_names():
        for item in read_description(ROOT / "hw" / "overlays" / overlay).instances:
            if item.kernel:
                units = found.setdefault(item.kernel, {})
                units[overlay] = units.get(overlay, 0) + 1
    return found


def overlay_resources(overlay: str) -> Resources:
    """Return what the kernels of an overlay take together, without interconnect and Xilinx IP.

    Parameters
    ----------
    overlay : str
        A folder of ``hw/overlays``.

    Returns
    -------
    Resources
        Of kind ``"csynth"`` or ``"yosys"`` where that is true of each kernel, else ``"model"``.

    Raises
    ------
    KernelError
        There is no such overlay with kernels, or a kernel of it states no resources.
    """
    total = [0, 0, 0, 0]
    kinds = set()
    for name, overlays in overlays_with().items():
        if overlay not in overlays:
            continue
        one = evidence.resources(name)
        if one is None:
            raise KernelError(f"{overlay}: {name} states no resources in its description", name)
        kinds.add(one.kind)
        for index, count in enumerate(one.used.values()):
            total[index] += count * overlays[overlay]
    if not kinds:
        raise KernelError(f"there is no overlay {overlay!r} with kernels in hw/overlays")
    kind = kinds.pop() if len(kinds) == 1 else "model"
    bram, dsp, ff, lut = total
    return Resources(bram, dsp, ff, lut, kind, f"kernels of overlay {overlay}")


def entry(name: str, overlays: dict[str, int] | None = None, *, estimated: bool = True) -> Entry:
    """Return what is known of a kernel.

    Parameters
    ----------
    name : str
        On the kernel path.
    overlays : dict, optional
        From `overlays_with`, where it is there already.
    estimated : bool
        See `pynq_torch.models.evidence.latency`.

    Raises
    ------
    KernelError
        There is no such kernel.
    """
    from pynq_torch.models.pynq_z2 import FCLK_HZ

    description = evidence.kernel(name).description
    sizes = dict(description.latency.example)
    return Entry(
        name,
        description.summary,
        description.reference,
        description.operators,
        evidence.resources(name),
        evidence.latency(name, FCLK_HZ, label=name, estimated=estimated, **sizes),
        sizes,
        overlays_with().get(name, {}) if overlays is None else overlays,
    )


def entries() -> tuple[Entry, ...]:
    """Return all kernels of the kernel path, in alphabetical order.

    Their latencies leave estimates out, which would take half a second a kernel.
    """
    overlays = overlays_with()
    names = evidence.kernel_names()
    return tuple(entry(name, overlays.get(name, {}), estimated=False) for name in names)


# ---- building ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Built:
    """How the build of a kernel's engine ended.

    Parameters
    ----------
    name : str
        The kernel.
    cached : bool
        Nothing had changed.
    seconds : float
        Wall clock.
    error : str
        Why it failed; empty where it did not.
    """

    name: str
    cached: bool
    seconds: float
    error: str = ""


def _named(names: Sequence[str]) -> tuple[str, ...]:
    """Return the kernels of these names, each once; without names all of the kernel path."""
    known = evidence.kernel_names()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise KernelError(f"no kernel {unknown[0]!r}; there are {', '.join(known)}", unknown[0])
    return tuple(dict.fromkeys(names)) or known


def build_library(
    names: Sequence[str] = (),
    *,
    jobs: int | None = None,
    each: Callable[[Built], None] | None = None,
) -> tuple[Built, ...]:
    """Build the csim engines of kernels, with their interfaces, several at a time.

    What has not changed since the last build is found in the cache by its content.

    Parameters
    ----------
    names : sequence of str
        Default: all of the kernel path.
    jobs : int, optional
        Processes; default: one a core.
    each : callable, optional
        Called with each result as it comes.

    Returns
    -------
    tuple of Built
        In order of `names`.

    Raises
    ------
    KernelError
        A name is no kernel; nothing was built.
    """
    wanted = _named(names)
    jobs = jobs or os.cpu_count() or 1
    if jobs < 1:
        raise KernelError(f"jobs is {jobs}; expected at least 1")
    results = {}
    for result in _each_built(wanted, jobs):
        results[result.name] = result
        if each is not None:
            each(result)
    return tuple(results[name] for name in wanted)


def _each_built(names: Sequence[str], jobs: int) -> Iterator[Built]:
    if jobs == 1 or len(names) == 1:
        yield from map(_build_one, names)
        return
    # Spawned, not forked: the parent may hold a board, with its threads and its shared memory.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(_build_one, name) for name in names]):
            yield future.result()


def _build_one(name: str) -> Built:
    from pynq_torch.hls.build import build
    from pynq_torch.hls.kernels import find_kernel

    begin = time.perf_counter()
    try:
        source = find_kernel(name, [evidence.kernel(name).folder.parent])
        if source is None:
            raise KernelError(f"{name}: no source below {KERNELS} defines it", name)
        made = build(source)
    except PynqTorchError as error:
        return Built(name, False, time.perf_counter() - begin, str(error))
    return Built(name, made.cached, time.perf_counter() - begin)
