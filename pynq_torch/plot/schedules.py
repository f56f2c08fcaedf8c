"""A schedule as a picture: when the first iterations of a loop run, or the processes of DATAFLOW.

Drawn as SVG on white, so that it reads on a dark page too; its text form says the same.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from .charts import COLOURS, nothing_to_draw

if TYPE_CHECKING:
    from pynq_torch.hls.estimator import Estimate, LoopEstimate

__all__ = ["Bar", "SchedulePicture", "schedule"]

#: Pixels: the picture, a lane, what is above the lanes, a letter of a label.
_WIDTH, _LANE, _HEAD, _LETTER = 760, 30, 56, 8
#: Letters of the caption in a line, columns of the text form.
_LETTERS, _COLUMNS = 100, 66
#: Cycles of a picture that are still drawn one by one.
_CELLS = 60


@dataclass(frozen=True)
class Bar:
    """One bar, in cycles; what `follows` the first of its lane is paler."""

    lane: int
    begin: int
    end: int
    colour: str = "blue"
    follows: bool = False


@dataclass(frozen=True, repr=False)
class SchedulePicture:
    """A schedule, fixed: it shows as SVG in a notebook and as text elsewhere.

    Parameters
    ----------
    title : str
        What is drawn, with its kind.
    lanes : tuple of str
        Labels, from top to bottom.
    bars : tuple of Bar
        In cycles from 0.
    spans : tuple of (str, int, int)
        What is marked above the lanes: text, first cycle, the one after the last.
    caption : str
        What limits it.
    """

    title: str
    lanes: tuple[str, ...]
    bars: tuple[Bar, ...]
    spans: tuple[tuple[str, int, int], ...]
    caption: str = ""

    @property
    def cycles(self) -> int:
        """Cycles that are drawn."""
        return max(bar.end for bar in self.bars)

    @property
    def alt(self) -> str:
        """What the picture shows, in a sentence for those who do not see it."""
        spans = ", ".join(f"{text} from cycle {begin} to {end}" for text, begin, end in self.spans)
        return f"{self.title}. Marked: {spans}. {self.caption}".strip()

    # ---- text ----------------------------------------------------------------------------------

    def __str__(self) -> str:
        step = _round_number(-(-self.cycles // _COLUMNS))
        label = max(len(name) for name in ("cycle", *self.lanes))
        marks = [str(cycle).ljust(10) for cycle in range(0, self.cycles, 10 * step)]
        lines = [self.title, f"{'cycle':<{label}}  {''.join(marks)}".rstrip()]
        for number, name in enumerate(self.lanes):
            row = [" "] * (-(-self.cycles // step))
            for bar in (bar for bar in self.bars if bar.lane == number):
                first, last = bar.begin // step, -(-bar.end // step)
                row[first:last] = ("░" if bar.follows else "█") * (last - first)
            lines.append(f"{name:<{label}}  {''.join(row)}".rstrip())
        return "\n".join(
            [*lines, *(text for text, *_ in self.spans), *filter(None, [self.caption])]
        )

    __repr__ = __str__

    # ---- SVG -----------------------------------------------------------------------------------

    @property
    def svg(self) -> str:
        """The picture as SVG; the same schedule gives the same text."""
        caption = textwrap.wrap(self.caption, _LETTERS, break_on_hyphens=False)
        bottom = _HEAD + 16 * len(self.spans) + _LANE * len(self.lanes)
        height = bottom + 44 + 17 * len(caption)
        alt = escape(self.alt, quote=True)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            f'width="{_WIDTH}" height="{height}" role="img" aria-label="{alt}" '
            'font-family="sans-serif" font-size="13" fill="#222" '
            f'style="max-width:100%;height:auto;background:white"><title>{alt}</title>'
            f'<rect width="{_WIDTH}" height="{height}" fill="white"/>'
            + _text(12, 24, self.title, 'font-size="15" font-weight="bold"')
        )
        parts = [head, *self._axis(bottom), *self._bars(), *self._spans(bottom)]
        parts += [_text(12, bottom + 52 + 17 * n, line) for n, line in enumerate(caption)]
        return "".join([*parts, "</svg>"])

    @property
    def _labels(self) -> int:
        """Pixels that the labels take."""
        return 30 + _LETTER * max(len(name) for name in self.lanes)

    def _x(self, cycle: int) -> float:
        return round(self._labels + (_WIDTH - self._labels - 24) * cycle / self.cycles, 1)

    def _top(self, lane: int) -> int:
        return _HEAD + 16 * len(self.spans) + _LANE * lane

    def _axis(self, bottom: int) -> Iterator[str]:
        step = next(
            s for e in range(9) for s in (10**e, 2 * 10**e, 5 * 10**e) if 14 * s > self.cycles
        )
        for cycle in range(0, self.cycles + 1, step):
            x = self._x(cycle)
            yield f'<path d="M{x} {self._top(0)}V{bottom + 4}" stroke="#ccc"/>'
            yield _text(x, bottom + 18, f"{cycle:,}", 'text-anchor="middle" font-size="12"')
        yield _text(self._labels - 10, bottom + 18, "cycle", 'text-anchor="end" font-size="12"')

    def _bars(self) -> Iterator[str]:
        for number, name in enumerate(self.lanes):
            yield _text(self._labels - 10, self._top(number) + 19, name, 'text-anchor="end"')
        for bar in self.bars:
            x, top = self._x(bar.begin), self._top(bar.lane) + 4
            width = round(self._x(bar.end) - x, 1)
            pale = ' fill-opacity="0.45"' if bar.follows else ""
            yield (
                f'<rect x="{x}" y="{top}" width="{width}" height="{_LANE - 8}" rx="2" '
                f'fill="{COLOURS[bar.colour]}"{pale}/>'
            )
            if self.cycles <= _CELLS:
                inner = (self._x(cycle) for cycle in range(bar.begin + 1, bar.end))
                cells = "".join(f"M{x} {top}v{_LANE - 8}" for x in inner)
                yield f'<path d="{cells}" stroke="white" stroke-opacity="0.6"/>' if cells else ""

    def _spans(self, bottom: int) -> Iterator[str]:
        """Draw a line with two ends and its text for each span, and where it ends in the lanes."""
        for number, (text, begin, end) in enumerate(self.spans):
            y, left, right = _HEAD + 16 * number - 4, self._x(begin), self._x(end)
            yield (
                f'<path d="M{left} {y - 4}v8M{left} {y}H{right}M{right} {y - 4}v8" '
                f'stroke="{COLOURS["vermillion"]}" stroke-width="2" fill="none"/>'
                f'<path d="M{right} {y}V{bottom}" stroke="{COLOURS["vermillion"]}" '
                'stroke-dasharray="3 4"/>'
            )
            # Beside the line where there is room for it, else on its other side.
            if right + 8 * len(text) < _WIDTH:
                yield _text(right + 6, y + 4, text)
            else:
                yield _text(left - 6, y + 4, text, 'text-anchor="end"')

    def save(self, path: Path | str) -> None:
        """Write the SVG to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg


def _round_number(least: int) -> int:
    """Return the smallest 1, 2 or 5 times a power of ten that is not less."""
    power = 1
    while 10 * power < least:
        power *= 10
    return next(n * power for n in (1, 2, 5, 10) if n * power >= least)


def _text(x: float, y: float, text: str, look: str = "") -> str:
    return f'<text x="{x}" y="{y}" {look}>{escape(text)}</text>'


def schedule(
    estimate: Estimate, loop: str = "", *, iterations: int = 5, title: str = ""
) -> SchedulePicture:
    """Draw when the first iterations of a loop run, or which processes run side by side.

    Parameters
    ----------
    estimate : Estimate
        From `pynq_torch.hls.estimate`, or the ``schedule`` of a ``%%hls`` cell.
    loop : str
        Its label. Default: the processes of DATAFLOW, where the kernel has that; else the innermost
        loop in which most cycles go by.
    iterations : int
        How many are drawn at most.
    title : str
        Instead of the loop's name.

    Returns
    -------
    SchedulePicture
        Shows as SVG; ``str()`` of it as text.

    Raises
    ------
    ValueError
        There is no such loop, or how long it takes is not known.
    """
    if iterations < 1:
        raise ValueError(f"iterations={iterations}: expected at least 1")
    if not loop and estimate.stages:
        return _processes(estimate, title)
    return _iterations(_find(estimate, loop), iterations, title)


def _find(estimate: Estimate, name: str) -> LoopEstimate:
    if not estimate.loops:
        raise nothing_to_draw(f"a loop, and {estimate.top} has none that is not unrolled")
    if name:
        found = next((one for one in estimate.loops if one.name == name), None)
        if found is None:
            names = ", ".join(one.name for one in estimate.loops)
            raise ValueError(f"{estimate.top} has no loop {name!r}; it has {names}")
        return found
    loops = estimate.loops
    inner = [
        a for a, b in zip(loops, [*loops[1:], None], strict=True) if b is None or b.depth <= a.depth
    ]
    return max(inner, key=lambda one: one.latency[1] or 0)


def _iterations(loop: LoopEstimate, most: int, title: str) -> SchedulePicture:
    depth, trips = loop.iteration_latency[1], loop.trip_count[1]
    if not depth or trips == 0:
        raise ValueError(
            f"how long an iteration of {loop.name} takes is not known, so there is nothing to "
            "draw; give its loops constant bounds or LOOP_TRIPCOUNT"
        )
    count = most if trips is None else min(most, trips)
    step = depth if loop.ii is None else loop.ii
    spans = [(f"depth {depth:,}", 0, depth)]
    if loop.ii is None:
        reason = "No pipeline: an iteration begins when the one before it has ended."
    else:
        spans.insert(0, (f"II={loop.ii:,}", 0, loop.ii))
        reason = loop.why or f"Nothing limits it: an iteration begins every {_cycles(loop.ii)}."
    least, all_of_it = loop.trip_count[0], loop.latency[1]
    facts = f"{'up to ' if least != trips else ''}{trips:,} iterations" if trips is not None else ""
    if facts and all_of_it is not None:
        facts += f" in {_cycles(all_of_it)}"
    bars = tuple(Bar(n, n * step, n * step + depth, "blue", n > 0) for n in range(count))
    lanes = tuple(f"iteration {n}" for n in range(count))
    head = ", ".join(filter(None, [title or loop.name, facts, "estimate"]))
    return SchedulePicture(head, lanes, bars, tuple(spans), reason)


def _processes(estimate: Estimate, title: str) -> SchedulePicture:
    known = [(name, cycles) for name, cycles in estimate.stages if cycles]
    if len(known) < len(estimate.stages):
        unknown = ", ".join(name for name, cycles in estimate.stages if not cycles)
        raise ValueError(
            f"how long {unknown} takes is not known, so there is nothing to draw; "
            "give its loops constant bounds or LOOP_TRIPCOUNT"
        )
    slowest, length = max(known, key=lambda stage: stage[1])
    interval = estimate.interval[1] or length
    bars = []
    for lane, ((_, cycles), begin) in enumerate(zip(known, estimate.begins, strict=True)):
        colour = "vermillion" if cycles == length else "blue"
        bars += [
            Bar(lane, begin + later, begin + later + cycles, colour, later > 0)
            for later in (0, interval)
        ]  # two runs
    caption = (
        f"The slowest process, {slowest}, sets the interval. A process that reads a FIFO begins "
        "soon after its writer, one that reads an array when its writer has ended. Pale: the next "
        "run."
    )
    head = f"{title or estimate.top}: processes side by side, estimate"
    spans = ((f"interval {_cycles(interval)}", 0, interval),)
    return SchedulePicture(head, tuple(name for name, _ in known), tuple(bars), spans, caption)


def _cycles(number: int) -> str:
    return "cycle" if number == 1 else f"{number:,} cycles"
