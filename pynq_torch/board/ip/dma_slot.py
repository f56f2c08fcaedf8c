"""One channel's part of the mailbox it shares with its engine (layout: ``engines/axi_dma.cpp``)."""

from __future__ import annotations

import enum
import os
import time
from collections.abc import Callable

from pynq_torch.board.engine import EngineProcess

#: The port index for "no stream is connected".
NO_PORT = 0xFFFFFFFF
_STRIDE = 256
# Indices of 64-bit and of 32-bit words.
_POSTED, _FINISHED, _ADDRESS, _LENGTH, _CURRENT, _TAIL = 0, 1, 3, 4, 5, 6
_BYTES, _BEATS, _PACKETS, _EVENTS, _DESCRIPTOR, _FAULT_ADDRESS, _TOTAL = 8, 9, 10, 11, 12, 15, 18
_MODE, _ABORT, _CYCLIC, _MASK = 4, 5, 14, 15
_PHASE, _ERROR, _FAULT, _TLAST = 26, 27, 28, 29
_PORT, _MEMORY_BYTES, _REALIGN, _WITHDRAW = 32, 33, 34, 35


class Mode(enum.IntEnum):
    """What a job is."""

    DIRECT = 0
    CHAIN_START = 1
    CHAIN_CONTINUE = 2
    FRAME = 3


class Phase(enum.IntEnum):
    """What a channel's engine is doing."""

    AT_REST = 0
    MOVING = 1
    NO_DATA = 2  #: the stream has no beat
    NO_SPACE = 3  #: the stream takes no beat
    NO_TLAST = 4  #: every byte has come, TLAST has not


class Fault(enum.IntEnum):
    """Why the guard stopped a transfer."""

    NONE = 0
    STRAY = 1
    OVERRUN = 2
    UNALIGNED = 3
    DESCRIPTOR = 4


def _word(view: str, index: int, text: str) -> int:
    return property(lambda slot: getattr(slot, view)[index], doc=text)  # type: ignore[return-value]


class DmaSlot:
    """Channel ``index`` (0: MM2S, 1: S2MM) of a DMA engine."""

    def __init__(self, engine: EngineProcess, index: int) -> None:
        self._engine = engine
        part = engine.user[index * _STRIDE : (index + 1) * _STRIDE]
        self._q = part.cast("Q")
        self._i = part.cast("I")

    def configure(self, *, port: int, memory_bytes: int, realign: bool, length_mask: int) -> None:
        """Tell what the hardware was built with; before the engine starts."""
        self._i[_PORT] = port
        self._i[_MEMORY_BYTES] = memory_bytes
        self._i[_REALIGN] = int(realign)
        self._i[_MASK] = length_mask

    def post_transfer(self, address: int, length: int) -> None:
        """Start a transfer in direct register mode."""
        self._q[_ADDRESS], self._q[_LENGTH] = address, length
        self._i[_MODE] = Mode.DIRECT
        self._post()

    def post_chain(self, tail: int, current: int | None, cyclic: bool) -> None:
        """Start a descriptor chain at ``current``, or go on with it (None), up to ``tail``."""
        if current is not None:
            self._q[_CURRENT] = current
            self._i[_CYCLIC] = int(cyclic)
            self._i[_MODE] = Mode.CHAIN_START  # the engine itself turns it into CHAIN_CONTINUE
        self._q[_TAIL] = tail
        self._post()

    def post_frame(
        self, address: int, width: int, stride: int, lines: int, *, sync: bool, fresh: bool
    ) -> None:
        """Move `lines` lines of `width` bytes, `stride` bytes from each other.

        With `sync` a frame that comes starts at TUSER[0]; `fresh` is the first one of a run.
        """
        self._q[_ADDRESS], self._q[_LENGTH] = address, width
        self._q[_CURRENT], self._q[_TAIL] = stride, lines
        self._i[_CYCLIC] = sync | fresh << 1
        self._i[_MODE] = Mode.FRAME
        self._post()

    def _post(self) -> None:
        self._q[_POSTED] += 1
        self._engine.start()

    @property
    def busy(self) -> bool:
        """True while a job is running or waits."""
        return self._q[_FINISHED] != self._q[_POSTED]

    def abort(self, doorbell: int, timeout_s: float = 2.0) -> bool:
        """Give the job up; False if the engine does not answer.

        `doorbell` is the engine's start descriptor, to wake it with.
        """
        self._i[_ABORT] = 1
        try:
            return self._answered(doorbell, lambda: not self.busy, timeout_s)
        finally:
            self._i[_ABORT] = 0

    def withdraw(self, doorbell: int, timeout_s: float = 2.0) -> bool:
        """Take back what was sent and not taken; False if the engine does not answer.

        No job may be running. `doorbell` is the engine's start descriptor.
        """
        self._i[_WITHDRAW] = 1
        try:
            return self._answered(doorbell, lambda: not self._i[_WITHDRAW], timeout_s)
        finally:
            self._i[_WITHDRAW] = 0

    @staticmethod
    def _answered(doorbell: int, answer: Callable[[], bool], timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        os.eventfd_write(doorbell, 1)
        while not answer():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.0002)
        return True

    def forget(self) -> None:
        """Drop whatever is posted; the engine is dead."""
        self._q[_FINISHED] = self._q[_POSTED]
        self._i[_PHASE] = Phase.AT_REST

    # ---- progress ----------------------------------------------------------------------------

    events = _word("_q", _EVENTS, "Interrupt-on-complete events since the engine started.")
    error = _word("_i", _ERROR, "Error bits of DMASR that the last job ended with.")
    nbytes = _word("_q", _BYTES, "Bytes moved in this transfer.")
    beats = _word("_q", _BEATS, "Beats moved in this transfer.")
    packets = _word("_q", _PACKETS, "TLASTs since the engine started.")
    total_nbytes = _word("_q", _TOTAL, "Bytes moved since the engine started.")
    descriptor = _word("_q", _DESCRIPTOR, "Physical address of the current descriptor.")

    @property
    def fault(self) -> tuple[Fault, int]:
        """Why the guard stopped the last job, and at which physical address."""
        return Fault(self._i[_FAULT]), self._q[_FAULT_ADDRESS]

    @property
    def phase(self) -> Phase:
        """What the channel is doing."""
        return Phase(self._i[_PHASE])

    @property
    def tlast(self) -> bool:
        """Whether this transfer has seen (S2MM) or sent (MM2S) TLAST."""
        return bool(self._i[_TLAST])
