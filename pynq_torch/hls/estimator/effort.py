"""How much work it is to schedule some operations, and when it becomes too much.

Work is counted, not timed: the answer must be the same on a slow PC. A unit takes some 3 us on a
PC of 2026.
"""

from __future__ import annotations

__all__ = ["EACH", "Effort", "TooMuchError"]

#: About a quarter of a minute: a product of 32 x 32 x 32, unrolled as a whole, is half of it.
_MOST = 5_000_000
#: Of one operation, or of one pair of accesses, that is looked into.
EACH = 10


class TooMuchError(Exception):
    """A body has more operations than can be scheduled in reasonable time."""


class Effort:
    """The work that one region has taken."""

    def __init__(self) -> None:
        self.done = 0

    def add(self, units: int) -> None:
        """Count work; raise where it becomes too much."""
        self.done += units
        if self.done > _MOST:
            raise TooMuchError
