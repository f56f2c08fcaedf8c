"""One counter of an AXI timer: its value as a function of time, and when it rolls over next."""

from __future__ import annotations


class Counter:
    """A counter of ``width`` bits that is computed from the clock cycle it is looked at.

    Nothing runs between two looks: :meth:`advance` is told the cycle and returns how many times the
    counter rolled over since the last call. Periods are those of PG079, "Generate Mode":
    ``max - load + 2`` cycles counting up, ``load + 2`` counting down.
    """

    def __init__(self, width: int) -> None:
        self.max = (1 << width) - 1
        self.load = 0
        self.down = False
        self.reload = False  # ARHT: load again after a rollover and go on; else hold the last value
        self.free = False  # capture mode: wrap around, never load
        self.running = False
        self.frozen = 0  # the value while it is stopped
        self._held = False
        self._start = 0  # cycle at which it had `frozen`

    def _first_period(self, value: int) -> int:
        ticks = value if self.down else self.max - value
        return ticks + (1 if self.free else 2)

    @property
    def _period(self) -> int:
        if self.free:
            return self.max + 1
        return self._first_period(self.load)

    def _restart_value(self) -> int:
        if self.free:
            return self.max if self.down else 0
        return self.load

    def value(self, cycle: int) -> int:
        """Return the count at ``cycle``; call :meth:`advance` first."""
        if not self.running or self._held:
            return self.frozen
        elapsed = cycle - self._start
        # The extra cycle of a reload shows the terminal value once more.
        return max(self.frozen - elapsed, 0) if self.down else min(self.frozen + elapsed, self.max)

    def advance(self, cycle: int) -> int:
        """Go to ``cycle`` and return the number of rollovers on the way."""
        if not self.running or self._held:
            return 0
        first = self._first_period(self.frozen)
        elapsed = cycle - self._start
        if elapsed < first:
            return 0
        if not (self.reload or self.free):
            self.frozen = 0 if self.down else self.max
            self._held = True
            return 1
        extra, rest = divmod(elapsed - first, self._period)
        self.frozen = self._restart_value()
        self._start = cycle - rest
        return 1 + extra

    def next_rollover(self) -> int | None:
        """Return the cycle of the next rollover; None if there will be none."""
        if not self.running or self._held:
            return None
        return self._start + self._first_period(self.frozen)

    def set(self, cycle: int, value: int) -> None:
        """Put ``value`` into the counter (LOAD)."""
        self.frozen = value & self.max
        self._start = cycle
        self._held = False

    def run(self, cycle: int, on: bool) -> None:
        """Start or stop counting (ENT)."""
        if on == self.running:
            return
        if not on:
            self.frozen = self.value(cycle)
        self.running = on
        self._start = cycle

    def configure(self, cycle: int, *, down: bool, reload: bool, free: bool) -> None:
        """Change how it counts, from its present value."""
        if (down, reload, free) == (self.down, self.reload, self.free):
            return
        self.frozen = self.value(cycle)
        self._start = cycle
        self._held = self._held and not reload
        self.down, self.reload, self.free = down, reload, free
