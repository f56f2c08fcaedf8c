"""What the models of serial ports share: polls in vain, and the registers of their interrupts."""

from __future__ import annotations

from pynq_torch.board.bus import IpModel
from pynq_torch.errors import RegisterMisuse

_GLOBAL, _STATUS, _ENABLE = 0x1C, 0x20, 0x28
_GLOBAL_ON = 1 << 31
#: Written to the register at 0x40, it resets the core.
RESET_AT, RESET_KEY = 0x40, 0xA


class SerialIp(IpModel):
    """A serial port; nothing but what a program attaches is at its pins."""

    def _note_poll(self, why: str) -> None:
        """Note that a program reads a status which nothing but the program can change."""
        self.board.vain_polls.note(lambda: f"{self.ip.name}: {why}")

    def _misuse(self, text: str) -> None:
        self.warn_once(RegisterMisuse, text)


class Interrupts:
    """Global enable (0x1C), status (0x20, toggle-on-write) and enable (0x28); `bits` exist."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self.status = self._enabled = self._global = 0

    @property
    def level(self) -> bool:
        """The level of the interrupt output."""
        return bool(self._global and self.status & self._enabled)

    def read(self, offset: int) -> int | None:
        """Read one of the three registers; None for every other offset."""
        return {_GLOBAL: self._global, _STATUS: self.status, _ENABLE: self._enabled}.get(offset)

    def write(self, offset: int, value: int) -> bool:
        """Write one of the three registers; False for every other offset."""
        if offset == _GLOBAL:
            self._global = value & _GLOBAL_ON
        elif offset == _STATUS:
            self.status ^= value & self._bits
        elif offset == _ENABLE:
            self._enabled = value & self._bits
        return offset in (_GLOBAL, _STATUS, _ENABLE)
