"""Bounded polling: the loop beneath every wait."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from pynq_torch import board
from pynq_torch.diagnosis import Diagnosis
from pynq_torch.errors import BoardHang

__all__ = ["attach", "check_timeout", "ends", "polls", "wait_clock"]

#: Polls without sleeping for so long: most runs of small kernels end within it.
SPIN_S = 100e-6
#: The longest sleep between two polls: what a wait may add to a long run.
LONGEST_SLEEP_S = 2e-3


def check_timeout(timeout_s: float) -> float:
    """Return `timeout_s` if it is a bound, raise ``ValueError`` otherwise."""
    if not isinstance(timeout_s, (int, float)) or not 0 < timeout_s < math.inf:
        raise ValueError(
            f"timeout_s is {timeout_s!r}; expected a number of seconds greater than 0 and finite: "
            "every wait here ends"
        )
    return float(timeout_s)


def wait_clock() -> float:
    """Return the seconds that waits are bounded by, from some point in the past.

    Wall clock, but for board ``rtl``: there a run of 10 ms takes seconds of this PC, and what
    counts is the board's own time while its clock goes on.
    """
    return board.wait_clock()


def polls(timeout_s: float) -> Iterator[float]:
    """Yield the time waited until it exceeds `timeout_s`, sleeping a little longer each time.

    The pause is a tenth of the time waited so far: short runs are seen at once, long ones leave
    the processor to others.
    """
    start, began = wait_clock(), time.perf_counter()
    waited = 0.0
    while True:
        yield waited
        waited = wait_clock() - start
        if waited > timeout_s:
            return
        passed = time.perf_counter() - began
        if passed > SPIN_S:
            time.sleep(min(passed / 10, LONGEST_SLEEP_S, max(timeout_s - waited, 1e-5)))


def ends(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Poll `condition` until it holds; return whether it did in time."""
    try:
        # At once, since most runs of small kernels are over; and once more at the end, since a busy
        # PC may have put this program to sleep meanwhile.
        return condition() or any(condition() for _ in polls(timeout_s)) or condition()
    except BoardHang:
        return False  # the board knows that it cannot end any more: no need to wait longer


_E = TypeVar("_E", bound=Exception)


def attach(error: _E, diagnosis: Diagnosis) -> _E:
    """Give an exception its ``diagnosis`` attribute."""
    error.__dict__["diagnosis"] = diagnosis
    return error
