"""Durations that say where they come from."""

from __future__ import annotations

import statistics
import sys
import time
import timeit
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .descriptions import read_kernel_description
from .paths import find_kernel

__all__ = ["Duration", "measure", "model", "model_cycles", "where_measured"]

KINDS = ("measured", "routed", "cycles", "estimate", "model")
PARTS = ("total", "host", "transfer", "compute")


@dataclass(frozen=True)
class Duration:
    """A duration with its provenance.

    Parameters
    ----------
    seconds : float
        The value; the median, where measured repeatedly.
    kind : {"measured", "routed", "cycles", "estimate", "model"}
        Wall clock; counted in RTL, at the clock that place and route has reached; counted in RTL at
        the overlay's clock, which is an assumption; scheduled from a kernel's C++ without a
        vendor's tool; computed from its ``description.json``.
    label : str
        What took so long; a chart's tick.
    where : str
        Whose wall clock, e.g. ``"csim on this PC"``; of a model, whose it is where it is not the
        one of a ``description.json``; of an estimate, what it leaves out.
    repeat : int
        Repetitions.
    clock_hz : float or None
        The PL clock that cycles were converted with.
    low, high : float or None
        Where the middle half of the repetitions begins and ends, in seconds.
    part : {"total", "host", "transfer", "compute"}
        What it covers: transfers are charted apart from compute, and both apart from the host's
        own work (checks, registers, waiting).
    """

    seconds: float
    kind: str
    label: str = ""
    where: str = ""
    repeat: int = 1
    clock_hz: float | None = None
    low: float | None = None
    high: float | None = None
    part: str = "total"

    def __post_init__(self) -> None:
        for name, known in (("kind", KINDS), ("part", PARTS)):
            if (value := getattr(self, name)) not in known:
                raise ValueError(f"{name} is {value!r}; expected one of {', '.join(known)}")
        if not self.seconds >= 0:
            raise ValueError(f"seconds is {self.seconds}; expected a number of at least 0")
        if self.kind == "measured" and not self.where:
            raise ValueError("a measured duration needs where=: whose wall clock it is")
        if self.kind != "measured" and self.clock_hz is None:
            raise ValueError(f"a duration of kind {self.kind!r} needs clock_hz=")

    @property
    def provenance(self) -> str:
        """Where the number comes from, as a chart prints it."""
        if self.kind == "measured":
            times = f", median of {self.repeat}" if self.repeat > 1 else ""
            return f"measured ({self.where}{times})"
        clock = (self.clock_hz or 0.0) / 1e6
        counted = {"cycles": "cycles counted in RTL", "routed": "routed: cycles counted in RTL"}
        word = counted.get(self.kind, self.kind)
        whose = f"{self.where}, " if self.where else ""
        return f"{word} ({whose}at {clock:g} MHz)"

    def named(self, label: str) -> Duration:
        """Return the same duration under another label."""
        return replace(self, label=label)

    def less(self, other: Duration) -> Duration:
        """Return what is left of this duration without `other`, which is a part of it.

        Parameters
        ----------
        other : Duration
            Of the same provenance. Where it is the longer one, the difference is lost in the noise
            of both: 0 is left, and ``where`` says so.

        Raises
        ------
        ValueError
            The two come from different sources: their difference means nothing.
        """
        if other.provenance != self.provenance:
            raise ValueError(
                f"{other.provenance} cannot be taken off {self.provenance}; expected the same "
                "provenance for both"
            )
        seconds, where = self.seconds - other.seconds, self.where
        if seconds < 0:
            seconds, where = 0.0, f"{where}, a difference lost in noise"
        return replace(self, seconds=seconds, where=where, low=None, high=None)

    def __str__(self) -> str:
        name = f"{self.label}: " if self.label else ""
        return f"{name}{seconds_text(self.seconds)}, {self.provenance}"


def seconds_text(seconds: float) -> str:
    """Return a duration with a fitting unit and three digits."""
    for limit, unit, scale in ((1e-6, "ns", 1e9), (1e-3, "µs", 1e6), (1.0, "ms", 1e3)):
        if seconds < limit:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def where_measured(on: str = "pl", device: Any = None) -> str:
    """Say whose wall clock a measurement on the active board is.

    Parameters
    ----------
    on : {"pl", "cpu"}
        What is timed: a kernel, or a function of the CPU.
    device : pynq.Device, optional
        Default: the active one.
    """
    if on not in ("pl", "cpu"):
        raise ValueError(f"on is {on!r}; expected 'pl' or 'cpu'")
    if device is None:
        import pynq

        with warnings.catch_warnings():
            # pynq says so where it finds no board; that is what we ask.
            warnings.filterwarnings("ignore", message="No devices found")
            device = pynq.Device.active_device if pynq.Device.devices else None
    # A virtual board has a name of its own; what it times is this PC, never the board.
    virtual = getattr(device, "board_name", None)
    if on == "cpu":
        local = not virtual and device is not None and not hasattr(device, "address")
        return "CPU of the board" if local else "CPU of this PC"
    if on_other := getattr(device, "address", ""):
        return f"{virtual or 'PL'} at {on_other}, seen from this PC"
    return f"{virtual} on this PC" if virtual else "PL of the board"


@contextmanager
def _one_thread(on: str) -> Iterator[str]:
    """Give torch's CPU operators one thread for a while; the value says so, for `where`."""
    torch = sys.modules.get("torch")  # if it is not imported there is nothing to limit
    if torch is None or on != "cpu":
        yield ""
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield ", one thread"
    finally:
        torch.set_num_threads(before)


def measure(
    function: Callable[[], Any],
    repeat: int = 7,
    *,
    label: str = "",
    on: str = "pl",
    warmup: int = 1,
    part: str = "total",
    device: Any = None,
) -> Duration:
    """Time a function by wall clock.

    Parameters
    ----------
    function : callable
        Called without arguments.
    repeat : int
        Repetitions; the median counts, and the middle half of them is the whisker of a chart.
    label : str
        For the chart.
    on : {"pl", "cpu"}
        Whether it runs a kernel or the CPU alone; see :func:`where_measured`. The CPU alone gets
        one thread of torch: in jobs of microseconds several can wait for each other much longer.
    warmup : int
        Calls before, not timed.
    part : {"total", "host", "transfer", "compute"}
        What it covers.
    device : pynq.Device, optional
        Default: the active one.
    """
    if repeat < 1:
        raise ValueError(f"repeat is {repeat}; expected at least 1")
    with _one_thread(on) as threads:
        for _ in range(warmup):
            function()
        times = timeit.repeat(function, timer=time.perf_counter, number=1, repeat=repeat)
    where, median = where_measured(on, device) + threads, statistics.median(times)
    # Not the longest: one run that something else delayed would flatten every bar of a chart.
    low, high = map(float, np.quantile(times, (0.25, 0.75)))
    return Duration(median, "measured", label, where, repeat, None, low, high, part)


def model_cycles(kernel: str, **sizes: int) -> int | None:
    """Return the cycles that a kernel's description.json models for these arguments.

    Parameters
    ----------
    kernel : str
        Its name: a folder below ``PYNQ_TORCH_KERNELS`` or ``hw/kernels``.
    **sizes : int
        The scalar arguments that the model uses, e.g. ``m=64, n=64, k=64``.

    Returns
    -------
    int or None
        ``None`` where the kernel has no description.
    """
    folder = find_kernel(kernel)
    if folder is None:
        return None
    latency = read_kernel_description(folder).latency
    return latency.cycles(**{name: sizes[name] for name in latency.symbols if name in sizes})


def model(kernel: str, clock_hz: float, *, label: str = "", **sizes: int) -> Duration:
    """Return the modelled duration of a kernel at a clock.

    Parameters
    ----------
    kernel : str
        See :func:`model_cycles`.
    clock_hz : float
        E.g. ``overlay.clock_hz``.
    label : str
        For the chart.
    **sizes : int
        The scalar arguments that the model uses.

    Raises
    ------
    ValueError
        The kernel has no description.
    """
    cycles = model_cycles(kernel, **sizes)
    if cycles is None:
        raise ValueError(
            f"kernel {kernel!r} has no description.json on the kernel path (PYNQ_TORCH_KERNELS, "
            "hw/kernels): there is no latency model to compute from"
        )
    return Duration(cycles / clock_hz, "model", label or kernel, clock_hz=clock_hz, part="compute")
