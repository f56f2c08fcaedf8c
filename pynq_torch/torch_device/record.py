"""The record of what runs where: written where operators are dispatched, read by all tools.

Off, it costs one test of a flag a call. On, every operator call makes one `Call`, given to each
watcher when the call has ended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from pynq_torch.kernels import calls
from pynq_torch.kernels.calls import KernelCall

__all__ = [
    "Call",
    "KernelCall",
    "State",
    "counted",
    "covered",
    "current",
    "inputs_of",
    "state",
    "switches",
    "transfer",
    "unwatch",
    "watch",
]


@dataclass(slots=True)
class Call:
    """One call of an operator on device "pynq".

    Attributes
    ----------
    name : str
        The overload, e.g. ``"aten::add.Tensor"``.
    inputs : tuple of str
        Tensor arguments, e.g. ``"float32[8x8]"``, in order.
    where : str
        ``"PL"`` or ``"CPU"``.
    reason : str
        Why the PL did not do it; empty where it did, and where nothing is computed (copies).
    start : float
        ``time.perf_counter()``.
    seconds : float
        The whole call.
    kernels : list of KernelCall
        Starts of compute units, in order.
    transfers : list of tuple of float
        Begin and end of each stretch in which operands were moved or the CPU's cache was kept up.
    thread : str
        Name of the thread.
    error : str
        Type of the exception that ended it; empty if none did.
    pl_s : float
        The part of `seconds` in which at least one compute unit was at work.
    transfer_s : float
        The part in `transfers`, and what drivers report for theirs. Where a transfer runs beside a
        compute unit, both have that time.
    host_s : float
        The part in which there was neither.
    """

    name: str
    inputs: tuple[str, ...]
    where: str = "CPU"
    reason: str = ""
    start: float = 0.0
    seconds: float = 0.0
    kernels: list[KernelCall] = field(default_factory=list)
    transfers: list[tuple[float, float]] = field(default_factory=list)
    thread: str = ""
    error: str = ""
    pl_s: float = 0.0
    transfer_s: float = 0.0
    host_s: float = 0.0

    @property
    def op(self) -> str:
        """The operator without its overload, e.g. ``"aten::add"``."""
        return self.name.partition(".")[0]

    def begin(self) -> None:
        """Make this the call that the thread is recording."""
        state.call = self
        self.start = time.perf_counter()

    def finish(self) -> None:
        """Work out what the time was spent on, and give the call to the watchers."""
        end = time.perf_counter()
        state.call = None
        self._settle(end)
        for watcher in tuple(switches.watchers):
            watcher(self)

    def _settle(self, end: float) -> None:
        self.seconds = end - self.start
        if not self.kernels and not self.transfers:
            self.host_s = self.seconds
            return
        runs = [(k.start, end if k.seconds is None else k.start + k.seconds) for k in self.kernels]
        by_drivers = sum(k.transfer_s for k in self.kernels)
        self.pl_s = covered(runs)
        self.transfer_s = covered(self.transfers) + by_drivers
        self.host_s = max(0.0, self.seconds - covered(runs + self.transfers) - by_drivers)


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return the length of the union of spans (begin, end).

    Examples
    --------
    >>> covered([(0, 2), (1, 3), (5, 6)])
    4.0
    """
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        if end > reached:
            total += end - max(begin, reached)
            reached = end
    return total


class State(threading.local):
    """The call that this thread is recording."""

    call: Call | None = None


class Switches:
    """What the dispatcher looks at; `active` is true when any of it matters.

    Attributes
    ----------
    watchers : list of callable
        Given each `Call`.
    route : callable or None
        ``route(name, inputs) -> bool | None``: whether this call goes to the PL; ``None`` where the
        route says nothing. Called once for every operator call, in order.
    fallback : bool
        ``False``: an operator without a kernel is an error.
    """

    def __init__(self) -> None:
        self.active = False
        self.watchers: list[Callable[[Call], None]] = []
        self.route: Callable[[str, tuple[str, ...]], bool | None] | None = None
        self.fallback = True

    def settle(self) -> None:
        """Work out `active` after a change."""
        self.active = bool(self.watchers) or self.route is not None or not self.fallback
        if self.watchers:
            calls.observe(_note_run)
        else:
            calls.unobserve(_note_run)


switches = Switches()
state = State()


def watch(watcher: Callable[[Call], None]) -> None:
    """Give every later call to `watcher`."""
    if watcher not in switches.watchers:
        switches.watchers.append(watcher)
    switches.settle()


def unwatch(watcher: Callable[[Call], None]) -> None:
    """Stop that."""
    if watcher in switches.watchers:
        switches.watchers.remove(watcher)
    switches.settle()


def current() -> Call | None:
    """Return the call that is being recorded in this thread, or ``None``."""
    return state.call


def inputs_of(args: Iterable[Any], kwargs: dict[str, Any]) -> tuple[str, ...]:
    """Return the tensors among an operator's arguments, e.g. ``"float32[8x8]"``, in order."""
    found: list[str] = []
    for value in (*args, *kwargs.values()):
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, torch.Tensor):
                sizes = "x".join(map(str, item.shape))
                found.append(f"{str(item.dtype).removeprefix('torch.')}[{sizes}]")
    return tuple(found)


def counted(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel about memory itself with its calls recorded; they cannot be steered.

    Parameters
    ----------
    name : str
        The overload. Between devices its time is a transfer.
    kernel : callable
        What does it.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        if not switches.watchers or state.call is not None:
            return kernel(*args, **kwargs)
        call = Call(name, inputs_of(args, kwargs), thread=threading.current_thread().name)
        devices = {v.device.type for v in args if isinstance(v, torch.Tensor)}
        call.begin()
        try:
            if len(devices) == 1:
                return kernel(*args, **kwargs)
            with transfer():
                return kernel(*args, **kwargs)
        except BaseException as error:
            call.error = type(error).__name__
            raise
        finally:
            call.finish()

    return run


@contextmanager
def transfer() -> Iterator[None]:
    """Count the time inside as transfer, where a call is recorded."""
    call = state.call
    if call is None:
        yield
        return
    begin = time.perf_counter()
    try:
        yield
    finally:
        call.transfers.append((begin, time.perf_counter()))


def _note_run(run: KernelCall) -> None:
    """Add the start of a compute unit to the call that this thread is recording."""
    if state.call is not None and run.seconds is None:
        state.call.kernels.append(run)


def _address(tensor: torch.Tensor) -> int | None:
    """Return the physical address of a tensor on device "pynq", ``None`` for any other."""
    from . import memory

    if tensor.device.type != "pynq" or memory.block_of(tensor).memory is None:
        return None
    return memory.physical_address(tensor)


calls.address_of = _address
