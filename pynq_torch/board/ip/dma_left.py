"""The beats of a transfer that was given up, where a reset of the DMA does not reach."""

from __future__ import annotations

from pynq_torch.board.engine import State
from pynq_torch.board.services import BoardServices
from pynq_torch.board.streams import Ring


class BeatsLeft:
    """What a reset leaves before the unit at the other end of MM2S, or in it.

    A reset empties the DMA's own FIFOs and no others (PG021, "MM2S_DMACR.Reset"). A FIFO on the way
    keeps what it holds. A unit that has not run since the transfer began keeps what its input
    registers took, and gets what the FIFO holds as soon as it starts; of a unit that was running
    nobody can say what it still needs.
    """

    def __init__(self, board: BoardServices) -> None:
        self._board = board
        self._kept = 0  # for a unit that was idle: all of it comes out of its next run
        # The runs that the unit had ended, and the beats it had taken, when a transfer began; None
        # where it was running.
        self._standing: tuple[int, int] | None = None

    def transfer_begins(self, ring: Ring) -> None:
        """Remember whether a unit is running that takes it."""
        now = self._stands(ring)
        if self._standing is None or now is None or now[0] != self._standing[0]:
            self._standing = now  # else since an earlier transfer nobody has been

    def was_reset(self, ring: Ring, withdrawn_before: int) -> None:
        """Count what stays, once the sender has taken back what it could.

        `withdrawn_before` is that of the ring as it was before this reset.
        """
        was, now = self._standing, self._stands(ring)
        if was is None or now is None or was[0] != now[0]:
            return
        taken = max(now[1] - max(was[1], withdrawn_before), 0)
        self._kept = max(self._kept, taken + ring.left_over)

    def count(self, ring: Ring) -> int:
        """Return how many beats of earlier transfers come before those of the next."""
        return max(self._kept, ring.left_over)

    def _stands(self, ring: Ring) -> tuple[int, int] | None:
        unit = self._board.cus.get(ring.sink.ip) if ring.sink is not None else None
        if unit is None:
            return None
        engine = unit.engine
        ended = engine.completed  # before the starts: one in between then shows as a run
        if engine.state is not State.IDLE or engine.started > ended:
            return None
        return ended, ring.beats_read
