"""Which unit was at work when: what a chart of compute units side by side is drawn from."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from .timing import Duration, where_measured

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
    def modelled(cls, work: Mapping[str, Sequence[Duration]]) -> Timeline:
        """Return a timeline in which each lane does its work without a pause, from 0 on.

        Parameters
        ----------
        work : mapping of str to sequence of Duration
            By lane; of kind ``"model"`` or ``"cycles"``, all with the same provenance.

        Raises
        ------
        ValueError
            There is nothing, or a duration is measured or differs in provenance from the first.
        """
        sources = {d.provenance for durations in work.values() for d in durations}
        kinds = {d.kind for durations in work.values() for d in durations}
        if len(sources) != 1 or "measured" in kinds:
            found = ", ".join(sorted(sources)) or "nothing"
            raise ValueError(
                f"a modelled timeline was given {found}; expected durations of one model at one "
                "clock"
            )
        made = cls()
        (made.provenance,) = sources
        for lane, durations in work.items():
            begin = 0.0
            for duration in durations:
                made._spans.append(Span(lane, duration.label, begin, begin + duration.seconds))
                begin += duration.seconds
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
