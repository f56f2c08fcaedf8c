"""Programs that poll a register which cannot change: nothing was started that could end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from pynq_torch.errors import BoardHang

if TYPE_CHECKING:
    from .bus import Bus

#: A loop that waits polls at least so often, with no longer pause between two polls.
FEWEST_POLLS, _LONGEST_PAUSE_S = 20, 2.5
#: Where another thread may start what is waited for: so many times as long, if the polls are as
#: dense as those of a wait.
_PATIENCE, _DENSE_HZ = 10, 20.0


class VainPolls:
    """Counts polls of one thread, with nothing else on the bus, of registers that stay as they are.

    A program may poll so for `limit_s`; the accesses of `bus` tell whether it did anything else.
    """

    def __init__(self, bus: Bus, limit_s: float) -> None:
        self._bus = bus
        self._limit_s = limit_s
        self._accesses = self._thread = self._count = 0
        self._began = self._last = 0.0

    def note(self, why: Callable[[], str]) -> int:
        """Note a poll in vain, or raise `BoardHang` if the program has done nothing else for long.

        `why` says what cannot happen, and what the program is to do. Return the number of polls in
        a row.
        """
        now, accesses, thread = time.monotonic(), self._bus.accesses, threading.get_ident()
        follows = accesses == self._accesses + 1 and thread == self._thread
        if not follows or now - self._last > _LONGEST_PAUSE_S:
            self._count, self._began = 0, now
        self._accesses, self._thread, self._last = accesses, thread, now
        self._count += 1
        waited = now - self._began
        if waited <= self._limit_s or self._count < FEWEST_POLLS:
            return self._count
        if _others() and (waited <= _PATIENCE * self._limit_s or self._count < _DENSE_HZ * waited):
            return self._count
        self._count, self._began = 0, now
        raise BoardHang(f"the program has done nothing but poll for {waited:.3g} s, and {why()}")


def _others() -> bool:
    """Say whether another thread of the program lives; Jupyter's own are daemons."""
    me = threading.current_thread()
    return any(t is not me and not t.daemon for t in threading.enumerate())


def why_idle(name: str, starts: int, was_reset: bool = False) -> str:
    """Say why no AP_DONE can come from an idle unit, and what the program is to do.

    `starts` are those since the overlay was loaded, or since the reset (`was_reset`).
    """
    if starts:
        return (
            f"{name} is idle: its last run has ended, and reading AP_CTRL (register 0x00) has "
            "cleared AP_DONE already. Keep the value of the read that has AP_DONE, or wait for "
            "AP_IDLE (bit 2)."
        )
    since = "since it was reset" if was_reset else "since the overlay was loaded"
    return (
        f"{name} was never started: AP_START was not written to AP_CTRL (register 0x00) {since}, "
        f"so that AP_DONE cannot come. Write it before the wait: {name}.write(0x00, 1), or "
        "register_map.CTRL.AP_START = 1."
    )
