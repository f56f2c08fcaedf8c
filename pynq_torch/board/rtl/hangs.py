"""Whether the PL process hangs: it computes and no cycle ends, or it does nothing at all."""

from __future__ import annotations

from typing import NamedTuple

from pynq_torch.board.engine import is_stopped

from .layout import FaultKind

#: A process that computes uses nearly all of a processor, one whose clock is halted hardly any.
BUSY_SHARE = 0.1
#: Looks that are further apart do not say what the process did between them.
_LOOKS_APART_S = 5.0
#: The most that one look says about a process that does nothing, and that it counts of a wait: the
#: PC may have had no processor for the program, or for the PL.
LOOK_S = 0.2


class Progress(NamedTuple):
    """How far a process has come, and when."""

    spawns: int
    cycle: int
    wall_s: float
    cpu_s: float


class HangWatch:
    """What looks at the PL process have shown, one after the other."""

    def __init__(self) -> None:
        self._moved = Progress(0, 0, 0.0, 0.0)
        self._looked = self._cpu_seen = 0.0
        self.silent_s = 0.0

    def look(
        self, now: Progress, limit_s: float, pid: int | None, unanswered: bool
    ) -> FaultKind | None:
        """Return how the process hangs, for longer than `limit_s`; None where it does not."""
        moved, looked, self._looked = self._moved, self._looked, now.wall_s
        if now.cpu_s != self._cpu_seen or not (unanswered or is_stopped(pid)):
            self.silent_s = 0.0
        else:  # at most LOOK_S: this program may have been stopped itself
            self.silent_s += min(now.wall_s - looked, LOOK_S)
        self._cpu_seen = now.cpu_s
        if self.silent_s > limit_s:
            return FaultKind.SILENT
        if now[:2] != moved[:2] or now.wall_s - looked > _LOOKS_APART_S:
            self._moved = now
            return None
        wall_s, cpu_s = now.wall_s - moved.wall_s, now.cpu_s - moved.cpu_s
        stuck = min(wall_s, cpu_s) > limit_s and cpu_s > BUSY_SHARE * wall_s
        return FaultKind.STUCK if stuck else None
