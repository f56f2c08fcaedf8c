"""Taking compute units for an operator, and giving them back: one way for all kernels."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pynq_torch.errors import KernelBusy

__all__ = ["BASE_TIMEOUT_S", "LOOK_S", "Slot", "give_back", "take", "try_take"]

#: Seconds that a run may take beyond what its size asks for, and that an operator waits for a unit
#: which a program has started by hand.
BASE_TIMEOUT_S = 10.0
#: Seconds between two looks at units that are started by hand: nobody tells when such a run ends.
LOOK_S = 1e-3

_given_back = threading.Condition()
_waiting = 0


@dataclass(eq=False)
class Slot:
    """A compute unit as operators share it.

    Attributes
    ----------
    driver : Kernel
        Its driver.
    lock : threading.Lock
        Held by the operator that has it.
    """

    driver: Any
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def cu(self) -> str:
        """Its name in the overlay."""
        return str(self.driver.cu)


AnySlot = TypeVar("AnySlot", bound=Slot)


def try_take(slots: Sequence[AnySlot], most: int = 1) -> list[AnySlot]:
    """Lock up to `most` units that stand still; empty where none does."""
    taken: list[AnySlot] = []
    for slot in slots:
        if not slot.driver.is_claimed() and slot.lock.acquire(blocking=False):
            taken.append(slot)
            if len(taken) == most:
                break
    return taken


def take(slots: Sequence[AnySlot], most: int = 1) -> list[AnySlot]:
    """Lock up to `most` units that stand still; wait for one where none does.

    Returns
    -------
    list of Slot
        At least one, for `give_back`.

    Raises
    ------
    KernelBusy
        A program has started all of them by hand, and they did not become free in
        `BASE_TIMEOUT_S`; at once, where it is this thread that has to wait for them.
    """
    return try_take(slots, most) or _wait(slots, most)


def _wait(slots: Sequence[AnySlot], most: int) -> list[AnySlot]:
    global _waiting
    begin = time.perf_counter()
    with _given_back:
        _waiting += 1
        try:
            while not (taken := try_take(slots, most)):
                # Runs of operators end for certain; one that was started by hand may not.
                by_hand = [s for s in slots if not s.lock.locked()]
                late = time.perf_counter() - begin > BASE_TIMEOUT_S
                mine = all(s.driver.is_mine() for s in slots)
                if len(by_hand) == len(slots) and (late or mine):
                    raise _started_by_hand(slots)
                _given_back.wait(LOOK_S if by_hand else None)
            return taken
        finally:
            _waiting -= 1


def give_back(taken: Sequence[Slot]) -> None:
    """Let other operators have units again."""
    for slot in taken:
        slot.lock.release()
    if _waiting:
        with _given_back:
            _given_back.notify_all()


def _started_by_hand(slots: Sequence[Slot]) -> KernelBusy:
    names = ", ".join(s.cu for s in slots)
    return KernelBusy(
        f"an operator of device 'pynq' needs one of {names}, which all have a run that was started "
        "by this program and not waited for, or that was given up after a timeout. Call wait() on "
        "what start() returned; where a kernel hangs, load the overlay again",
        slots[0].cu,
    )
