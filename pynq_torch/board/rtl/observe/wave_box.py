"""What the board and the recorder of a unit's waves share (layout: ``engines/rtl/waves.hpp``)."""

from __future__ import annotations

import enum

__all__ = ["NEVER", "NO_LIMIT", "WaveBox", "WaveState"]

NEVER = NO_LIMIT = 0xFFFF_FFFF_FFFF_FFFF
_TEXTS = {"start": (96, 256), "stop": (352, 256), "path": (608, 2048), "error": (2656, 512)}
_WORDS = ("request", "answer", "command", "each", "before", "after", "state", "files")
_LONGS: tuple[str, ...] = ("from_cycle", "to_cycle", "limit_bytes", "period_ps")
_LONGS += ("first_cycle", "last_cycle", "nbytes", "trigger_cycle")
#: Byte offset and size of each number.
_PLACES = {name: (4 * index, 4) for index, name in enumerate(_WORDS)}
_PLACES |= {name: (32 + 8 * index, 8) for index, name in enumerate(_LONGS)}


class WaveState(enum.IntEnum):
    """How far a recording has come."""

    OFF = 0
    ARMED = 1  #: waits for its trigger
    RECORDING = 2
    FINISHED = 3
    LIMIT = 4  #: the file reached its limit
    FAILED = 5  #: the file could not be written


class WaveBox:
    """The fields of a recorder's box, in memory that is shared with the process of the clock."""

    NBYTES = 3168
    OPEN, CLOSE = 1, 2

    def __init__(self, memory: memoryview) -> None:
        if memory.nbytes < self.NBYTES:
            raise ValueError(f"the box has {memory.nbytes} bytes; expected {self.NBYTES}")
        self._memory = memory.cast("B")

    def get(self, name: str) -> int:
        """Return a number, e.g. ``"last_cycle"``."""
        at, nbytes = _PLACES[name]
        return int.from_bytes(self._memory[at : at + nbytes], "little")

    def set(self, **fields: int) -> None:
        """Write numbers."""
        for name, value in fields.items():
            at, nbytes = _PLACES[name]
            self._memory[at : at + nbytes] = value.to_bytes(nbytes, "little")

    def text(self, name: str) -> str:
        """Return a text, e.g. ``"error"``."""
        at, nbytes = _TEXTS[name]
        return bytes(self._memory[at : at + nbytes]).split(b"\0", 1)[0].decode(errors="replace")

    def set_text(self, **fields: str) -> None:
        """Write texts; one that is too long is a ValueError."""
        for name, value in fields.items():
            at, nbytes = _TEXTS[name]
            raw = value.encode()
            if len(raw) >= nbytes:
                raise ValueError(f"{name} is {len(raw)} bytes long; expected at most {nbytes - 1}")
            self._memory[at : at + nbytes] = raw + bytes(nbytes - len(raw))

    @property
    def state(self) -> WaveState:
        """How far the recording has come."""
        return WaveState(self.get("state"))

    def ask(self, command: int) -> int:
        """Put a request, whose fields were written before; return its number."""
        number = (self.get("request") + 1) & 0xFFFF_FFFF
        self.set(command=command)
        self.set(request=number)
        return number

    def answered(self, number: int) -> bool:
        """Whether the process has dealt with a request."""
        return self.get("answer") == number
