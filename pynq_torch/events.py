"""The event bus: drivers, transfers and the dispatcher publish what they do, tools subscribe.

While a topic has no subscriber its publisher makes no event, so watching costs one test of a flag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

__all__ = [
    "Array",
    "KernelCall",
    "OperatorCall",
    "Topic",
    "Transfer",
    "covered",
    "operators",
    "runs",
    "transfers",
]

Event = TypeVar("Event")


class Topic(Generic[Event]):
    """Events of one kind.

    Parameters
    ----------
    changed : callable, optional
        Called when a subscriber has come or gone.

    Attributes
    ----------
    subscribers : tuple of callable
        Called with each event, in the thread that publishes it and in the order they subscribed.
    """

    def __init__(self, changed: Callable[[], None] | None = None) -> None:
        self.subscribers: tuple[Callable[[Event], object], ...] = ()
        self.changed = changed
        self._gates: tuple[Callable[[], bool], ...] = ()
        self._attached: tuple[Callable[[Event], object], ...] = ()

    def __bool__(self) -> bool:
        """Whether an event would interest anybody now."""
        return bool(self.subscribers) or any(gate() for gate in self._gates)

    def subscribe(self, subscriber: Callable[[Event], object]) -> None:
        """Call `subscriber` with every event from now on; a second time changes nothing."""
        if subscriber not in self.subscribers:
            self.subscribers = (*self.subscribers, subscriber)
            self._changed()

    def unsubscribe(self, subscriber: Callable[[Event], object]) -> None:
        """Stop that."""
        left = tuple(other for other in self.subscribers if other != subscriber)
        if len(left) != len(self.subscribers):
            self.subscribers = left
            self._changed()

    @contextmanager
    def collected(self) -> Iterator[list[Event]]:
        """Yield a list that is filled with the events of the block as they are published."""
        found: list[Event] = []
        self.subscribe(found.append)
        try:
            yield found
        finally:
            self.unsubscribe(found.append)

    def attach(self, gate: Callable[[], bool], subscriber: Callable[[Event], object]) -> None:
        """Subscribe for good, for the times when `gate` returns true.

        Parameters
        ----------
        gate : callable
            Asked before each event is made.
        subscriber : callable
            Called with each event that is made, also for others.
        """
        self._gates = (*self._gates, gate)
        self._attached = (*self._attached, subscriber)

    def publish(self, event: Event) -> None:
        """Give an event to all subscribers."""
        for subscriber in self.subscribers + self._attached:
            subscriber(event)

    def _changed(self) -> None:
        if self.changed is not None:
            self.changed()


class Array(NamedTuple):
    """A buffer that was given to a kernel.

    Parameters
    ----------
    dtype : str
        numpy's name.
    shape : tuple of int
        Its shape.
    address : int
        Physical address of the first element.
    skipped : int
        Bytes from there to where the kernel begins: its share of a larger product.
    """

    dtype: str
    shape: tuple[int, ...]
    address: int
    skipped: int = 0

    def __str__(self) -> str:
        more = f" + {self.skipped}" if self.skipped else ""
        return f"{self.dtype}[{'x'.join(map(str, self.shape))}] at 0x{self.address:08x}{more}"


@dataclass(slots=True, eq=False)
class KernelCall:
    """One start of a compute unit.

    Attributes
    ----------
    cu, kernel : str
        The compute unit and the kernel it is an instance of.
    arguments : dict
        Argument name -> number, or `Array` for a buffer; and the words of a job by their names.
    registers : dict of str to int
        Register name, as the hardware handoff has it -> 32-bit value.
    thread : str
        Name of the thread that started it.
    start : float
        ``time.perf_counter()`` at AP_START.
    seconds : float or None
        From AP_START to the end as the host saw it; ``None`` while the unit is running.
    kind : {"measured", "cycles", "model"}
        Where `seconds` comes from; see `pynq_torch.timing`.
    where : str
        Whose wall clock, where measured: ``"csim on this PC"``, ``"PL of the board"``.
    cycles : int or None
        Of the PL's clock, where the board counted them (board ``rtl``); set once it is over.
    transfer_s : float
        What the driver spent on the CPU's cache for this run, before it and after it.
    error : str
        How it ended if not well: type of the exception, or words.
    traced : bool
        Whether it is in a trace of ``torch.profiler``.
    """

    cu: str
    kernel: str
    arguments: dict[str, int | float | str | Array]
    registers: dict[str, int]
    thread: str = ""
    start: float = 0.0
    seconds: float | None = None
    kind: str = "measured"
    where: str = ""
    cycles: int | None = None
    transfer_s: float = 0.0
    error: str = ""
    traced: bool = False


@dataclass(slots=True)
class OperatorCall:
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
        The part of `seconds` in which at least one compute unit was running.
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

    def settle(self, end: float) -> None:
        """Work out what the time until `end` was spent on."""
        self.seconds = end - self.start
        if not self.kernels and not self.transfers:
            self.host_s = self.seconds
            return
        runs = [(k.start, end if k.seconds is None else k.start + k.seconds) for k in self.kernels]
        by_drivers = sum(k.transfer_s for k in self.kernels)
        self.pl_s = covered(runs)
        self.transfer_s = covered(self.transfers) + by_drivers
        self.host_s = max(0.0, self.seconds - covered(runs + self.transfers) - by_drivers)


class Transfer(NamedTuple):
    """One direction of a DMA transfer that has ended.

    Parameters
    ----------
    channel : str
        E.g. ``"axi_dma_0.send"``.
    begin, end : float
        ``time.perf_counter()``; both directions end when the program sees that both have.
    """

    channel: str
    begin: float
    end: float


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


#: Published twice a run: at AP_START, and when it has ended and `KernelCall.seconds` is set.
runs: Topic[KernelCall] = Topic()
#: Published when the call has ended.
operators: Topic[OperatorCall] = Topic()
transfers: Topic[Transfer] = Topic()
