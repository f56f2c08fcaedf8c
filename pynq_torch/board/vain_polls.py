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
