"""Which unit ran when: what a chart of compute units side by side is drawn from."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pynq_torch import events
from pynq_torch.timing import Duration, where_measured

if TYPE_CHECKING:
    from pynq_torch.events import OperatorCall

__all__ = ["Span", "Timeline"]


@dataclass(frozen=True)
class Span:
    """A stretch of work on one lane.

    Parameters
    ----------
    lane : str
        Who worked, e.g. a compute unit.
    label : str
        On what.
    begin_s, end_s : float
        Seconds since the first span of the timeline began.
    """

    lane: str
    label: str
    begin_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        """How long it took, in seconds."""
        return self.end_s - self.begin_s


class Timeline:
    """Spans of work on several lanes, and where their times come from.

    A new timeline is empty, and measures: its spans are taken by :meth:`span` as the program runs,
    from any thread. :meth:`modelled` makes one of modelled durations instead.

    Parameters
    ----------
    on : {"pl", "cpu"}
        What is timed; see `pynq_torch.timing.where_measured`.

    Examples
    --------
    >>> timeline = Timeline(on="cpu")
    >>> with timeline.span("me", "nothing"):
    ...     pass
    >>> [span.lane for span in timeline.spans]
    ['me']
    """

    def __init__(self, on: str = "pl") -> None:
        self.provenance = f"measured ({where_measured(on)}, as the program sees it)"
        self._lock = threading.Lock()
        self._spans: list[Span] = []

    @classmethod
    def modelled(
        cls, work: Mapping[str, Sequence[Duration]], begins_s: Mapping[str, float] | None = None
    ) -> Timeline:
        """Return a timeline in which each lane does its work without a pause.

        Parameters
        ----------
        work : mapping of str to sequence of Duration
            By lane; of kind ``"model"`` or ``"cycles"``, all with the same provenance.
        begins_s : mapping of str to float, optional
            By lane, when its work begins, in seconds; 0 for every lane that is not named.

        Raises
        ------
        ValueError
            There is nothing, or a duration is measured or differs in provenance from the first;
            or `begins_s` names a lane without work.
        """
        begins = dict(begins_s or {})
        if unknown := sorted(set(begins) - set(work)):
            raise ValueError(
                f"begins_s names {', '.join(unknown)}; expected lanes of work: {', '.join(work)}"
            )
        sources = {d.provenance for durations in work.values() for d in durations}
        kinds = {d.kind for durations in work.values() for d in durations}
        if len(sources) != 1 or "measured" in kinds:
            found = ", ".join(sorted(sources)) or "nothing"
            raise ValueError(
                f"a modelled timeline was given {found}; "
                "expected durations of one model at one clock"
            )
        made = cls()
        (made.provenance,) = sources
        for lane, durations in work.items():
            begin = begins.get(lane, 0.0)
            for duration in durations:
                made._spans.append(Span(lane, duration.label, begin, begin + duration.seconds))
                begin += duration.seconds
        return made

    @classmethod
    def recorded(cls, function: Callable[[], object]) -> Timeline:
        """Run a function, and return what its operators on device "pynq" were spent on.

        Parameters
        ----------
        function : callable
            Called once, without arguments.

        Returns
        -------
        Timeline
            A lane for each operator, one for transfers, and one for each compute unit.

        Raises
        ------
        ValueError
            It called no operator of the device.
        """
        with events.operators.collected() as calls:
            function()
        if not calls:
            raise ValueError("the function called no operator on device 'pynq'; expected one")
        made, parts = cls(), [cls.of_call(call) for call in calls]
        made.provenance = " + ".join(dict.fromkeys(part.provenance for part in parts))
        made._spans = [span for part in parts for span in part._spans]
        return made

    @classmethod
    def observed(cls, function: Callable[[], object]) -> Timeline:
        """Run a function, and return when the host, compute units and DMA channels were running.

        Parameters
        ----------
        function : callable
            Called once, without arguments. Its runs are those of drivers and of operators, its
            transfers those of `pynq_torch.transfer`.

        Returns
        -------
        Timeline
            A lane for each compute unit and DMA channel, and ``"host"`` for the time in which
            nothing else was running.
        """
        spans: list[Span] = []

        def run(call: events.KernelCall) -> None:
            if call.seconds is not None:
                spans.append(Span(call.cu, call.kernel, call.start, call.start + call.seconds))

        def moved(transfer: events.Transfer) -> None:
            lane, begin, end = transfer
            spans.append(Span(lane, lane.rpartition(".")[2], begin, end))

        events.runs.subscribe(run)
        events.transfers.subscribe(moved)
        begin = time.perf_counter()
        try:
            function()
        finally:
            end = time.perf_counter()
            events.runs.unsubscribe(run)
            events.transfers.unsubscribe(moved)
        made = cls()
        made._spans = spans + _gaps(spans, begin, end)
        return made

    @classmethod
    def of_call(cls, call: OperatorCall) -> Timeline:
        """Return what a call of an operator on device "pynq" was spent on.

        Parameters
        ----------
        call : pynq_torch.events.OperatorCall
            It has ended, e.g. one from `pynq_torch.events.operators`.

        Returns
        -------
        Timeline
            A lane for the operator, one for its transfers, and one for each compute unit.
        """
        made = cls(on="pl" if call.kernels else "cpu")
        places = dict.fromkeys(
            f"{r.kind} ({r.where}, as the program sees it)" for r in call.kernels
        )
        made.provenance = " + ".join(places) or made.provenance
        end = call.start + call.seconds
        made._spans.append(Span(call.op, call.op, call.start, end))
        for number, (begin, until) in enumerate(call.transfers):
            made._spans.append(Span("transfer", str(number), begin, until))
        for number, run in enumerate(call.kernels):
            until = end if run.seconds is None else run.start + run.seconds
            made._spans.append(Span(run.cu, str(number), run.start, until))
        return made

    @contextmanager
    def span(self, lane: str, label: str = "") -> Iterator[None]:
        """Take the time of a ``with`` block, also when it ends in an error.

        Parameters
        ----------
        lane : str
            Who works.
        label : str
            On what.
        """
        begin = time.perf_counter()
        try:
            yield
        finally:
            end = time.perf_counter()
            with self._lock:
                self._spans.append(Span(lane, label, begin, end))

    @property
    def spans(self) -> tuple[Span, ...]:
        """All spans in order of their begin, the first at 0."""
        with self._lock:
            spans = sorted(self._spans, key=lambda span: span.begin_s)
        zero = spans[0].begin_s if spans else 0.0
        return tuple(Span(s.lane, s.label, s.begin_s - zero, s.end_s - zero) for s in spans)

    @property
    def lanes(self) -> tuple[str, ...]:
        """The lanes in order of name."""
        return tuple(sorted({span.lane for span in self.spans}))

    @property
    def seconds(self) -> float:
        """From the first begin to the last end, in seconds."""
        return max((span.end_s for span in self.spans), default=0.0)

    def busy(self, lane: str) -> float:
        """Return the seconds that a lane worked; spans of one lane do not overlap."""
        return sum(span.seconds for span in self.spans if span.lane == lane)


def _gaps(spans: Sequence[Span], begin: float, end: float) -> list[Span]:
    """Return the times between `begin` and `end` in which only the host was running."""
    gaps: list[Span] = []
    reached = begin
    for until, next_s in (*sorted((s.begin_s, s.end_s) for s in spans), (end, end)):
        if until > reached:
            gaps.append(Span("host", "host", reached, until))
        reached = max(reached, next_s)
    return gaps
