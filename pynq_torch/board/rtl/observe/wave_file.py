"""Reading waves back: the signals of an FST or VCD file, cycle by cycle."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cached_property
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from pynq_torch import views
from pynq_torch.errors import WaveError, needs

__all__ = ["Value", "WaveFile", "WaveSignal"]

#: What a signal holds: a number, or its bits as text where one of them is unknown.
Value = int | str
_CLOCKS = ("ap_clk", "clk", "aclk", "clock")


class WaveSignal:
    """One signal of a file.

    Parameters
    ----------
    name : str
        Its path in the hierarchy, e.g. ``"TOP.vadd.ap_start"``.
    width : int
        Bits.
    changes : sequence of (int, int or str)
        Time and value of each change, in order of time.
    """

    def __init__(self, name: str, width: int, changes: Sequence[tuple[int, Value]]) -> None:
        self.name = name
        self.width = width
        self.times = [time for time, _ in changes]
        self._values = [value for _, value in changes]

    def before(self, time: int) -> Value:
        """Return what the signal held just before a time: what a register takes at an edge."""
        at = bisect_left(self.times, time) - 1
        return self._values[at] if at >= 0 else "x" * self.width

    def rising(self) -> list[int]:
        """Return the times at which it became 1."""
        pairs = zip(self.times, [None, *self._values], self._values, strict=False)
        return [time for time, last, value in pairs if value == 1 and last != 1]


class WaveFile:
    """The waves of one unit, from a file that GTKWave reads as well.

    Values are those of a cycle: what the signal holds when the clock rises at its end.

    Parameters
    ----------
    path : path
        An ``.fst`` or ``.vcd`` file, of this board or of any simulator.
    clock : str, optional
        The clock's name. Default: ``ap_clk``, ``clk``, ``aclk`` or ``clock``.

    Raises
    ------
    WaveError
        The file is not there, is damaged, or has no such clock.
    """

    def __init__(self, path: str | os.PathLike[str], clock: str | None = None) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise WaveError(f"{self.path.name}: no such file of waves in '{self.path.parent}'")
        self._waveform = _open(self.path)
        self._variables: dict[str, Any] = {}
        for variable in self._waveform.all_vars():
            self._variables.setdefault(variable.full_name, variable)
        self._read: dict[str, WaveSignal] = {}
        self._clock = clock

    # ---- signals -------------------------------------------------------------------------------

    @cached_property
    def signals(self) -> tuple[str, ...]:
        """The names, as short as they are clear: without the scopes around the whole design."""
        scopes = [name.split(".")[:-1] for name in self._inner]
        levels = takewhile(lambda level: len(set(level)) == 1, zip(*scopes, strict=False))
        common = len(list(levels))
        return tuple(".".join(name.split(".")[common:]) for name in self._inner)

    @cached_property
    def _inner(self) -> list[str]:
        # Verilator shows the ports twice: around the top ("$rootio", "TOP") and in it.
        names = [name for name in self._variables if not name.startswith("$rootio.")]
        names = names or list(self._variables)
        depth = min((name.count(".") for name in names), default=0)
        deeper = [name for name in names if name.count(".") > depth]
        tops = {name.split(".")[depth] for name in deeper}
        return deeper if len(tops) == 1 else names

    def full_name(self, name: str) -> str:
        """Return the path of a signal; of several that end in `name` the least deep one.

        Raises
        ------
        WaveError
            No signal ends in it, or several at the same depth do.
        """
        if name in self._variables:
            return name
        found = [full for full in self._inner if full.endswith("." + name)]
        if not found:
            near = get_close_matches(name, self.signals, n=3, cutoff=0.5)
            hint = f"did you mean {', '.join(near)}?" if near else "see .signals"
            raise WaveError(f"{self.path.name} has no signal {name!r}; {hint}")
        depth = min(full.count(".") for full in found)
        least = [full for full in found if full.count(".") == depth]
        if len(least) > 1:
            raise WaveError(
                f"{self.path.name} has several signals {name!r}: {', '.join(least)}; expected a "
                "longer part of the name"
            )
        return least[0]

    def signal(self, name: str) -> WaveSignal:
        """Return a signal by its name, or by the end of it that makes it the only one."""
        full = self.full_name(name)
        if full not in self._read:
            variable = self._variables[full]
            changes = [(int(time), value) for time, value in variable.signal]
            self._read[full] = WaveSignal(full, variable.bitwidth or 1, changes)
        return self._read[full]

    # ---- cycles --------------------------------------------------------------------------------

    @property
    def clock(self) -> WaveSignal:
        """The clock."""
        if self._clock is not None:
            return self.signal(self._clock)
        names = {full.rpartition(".")[2] for full in self._inner}
        for name in _CLOCKS:
            if name in names:
                return self.signal(name)
        raise WaveError(
            f"{self.path.name} has no clock called {', '.join(_CLOCKS)}; pass clock= with its name"
        )

    @cached_property
    def _edges(self) -> tuple[int, int, list[int]]:
        """The first cycle's number, the clock's period, and the times of its rising edges."""
        edges = self.clock.rising()
        if not edges:
            raise WaveError(f"{self.path.name}: its clock {self.clock.name} never rises")
        period = min((b - a for a, b in pairwise(edges)), default=0)
        # Times of this board are cycles of its clock since the overlay was loaded.
        return (edges[0] // period if period else 0), period, edges

    @property
    def cycles(self) -> range:
        """The numbers of the cycles in the file."""
        first, _, edges = self._edges
        return range(first, first + len(edges))

    def values(self, name: str, cycles: tuple[int, int] | None = None) -> list[Value]:
        """Return what a signal holds in each cycle.

        Parameters
        ----------
        name : str
            See `signal`.
        cycles : (int, int), optional
            The first cycle, and the one after the last. Default: all.
        """
        signal = self.signal(name)
        first, _, edges = self._edges
        return [signal.before(edges[cycle - first]) for cycle in self.window(cycles)]

    def window(self, cycles: tuple[int, int] | None) -> range:
        """Return the cycles of a window that are in the file.

        Raises
        ------
        WaveError
            None of them is.
        """
        there = self.cycles
        if cycles is None:
            return there
        chosen = range(max(cycles[0], there.start), min(cycles[1], there.stop))
        if not chosen:
            raise WaveError(
                f"{self.path.name} has the cycles {there.start} to {there.stop - 1}; found "
                f"{cycles[0]} to {cycles[1] - 1}"
            )
        return chosen

    def find(self, name: str, value: Value = 1, after: int | None = None) -> int:
        """Return the first cycle in which a signal holds a value.

        Parameters
        ----------
        name : str
            See `signal`.
        value : int
            Looked for.
        after : int, optional
            Cycles up to this one do not count.

        Raises
        ------
        WaveError
            It never does.
        """
        begin = self.cycles.start if after is None else after + 1
        window = self.window((begin, self.cycles.stop))
        found = self.values(name, (begin, self.cycles.stop))
        if value in found:
            return window[found.index(value)]
        raise WaveError(
            f"{self.path.name}: {name} is never {value} in the cycles {window.start} to "
            f"{window.stop - 1}"
        )

    # ---- for people ----------------------------------------------------------------------------

    def show(
        self, signals: Any = None, cycles: tuple[int, int] | None = None, **options: Any
    ) -> Any:
        """Show a window of signals; see `pynq_torch.widgets.wave_view.show`."""
        return views.draw("waves", self, signals, cycles, **options)

    def __repr__(self) -> str:
        there = self.cycles
        return (
            f"<WaveFile {self.path.name}: {len(self._inner)} signals, cycles {there.start} to "
            f"{there.stop - 1}>"
        )


def _open(path: Path) -> Any:
    with needs("pywellen", "Reading waves here (GTKWave reads the file as it is)", WaveError):
        import pywellen
    try:
        return pywellen.Waveform(str(path))
    except BaseException as error:
        # A file that was cut off makes the Rust library panic, which is no Exception.
        if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
            raise
        raise WaveError(
            f"{path.name} ({path.stat().st_size} bytes) is no whole file of waves: {error}; record "
            "it again"
        ) from None
