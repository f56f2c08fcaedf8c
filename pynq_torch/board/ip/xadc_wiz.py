"""XADC wizard with an AXI4-Lite interface (PG091): the registers of the XADC, with its values."""

from __future__ import annotations

from typing import ClassVar

from pynq_torch.board.bus import IpModel
from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.services import BoardServices
from pynq_torch.board.xadc import Xadc

_RESET, _STATUS, _RESET_KEY = 0x00, 0x04, 0xA
#: EOC and EOS in the status register: conversions are over whenever a program looks.
_DONE = 0x60
_GLOBAL, _ENABLED = 0x5C, 0x68
_XADC, _END = 0x200, 0x400


class XadcWiz(IpModel):
    """XADC wizard. Alarms and interrupts never come, since the values stay as they are."""

    vlnv_names: ClassVar[tuple[str, ...]] = ("xadc_wiz",)

    def __init__(self, board: BoardServices, ip: IpInstance) -> None:
        super().__init__(board, ip)
        self._reset()

    def _reset(self) -> None:
        self._xadc = Xadc()
        self._plain = {_GLOBAL: 0, _ENABLED: 0}

    def read(self, offset: int, slave: str = "") -> int:
        """Read a register."""
        if _XADC <= offset < _END:
            return self._xadc.read(offset - _XADC >> 2)
        return _DONE if offset == _STATUS else self._plain.get(offset, 0)

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Write a register."""
        if _XADC <= offset < _END:
            self._xadc.write(offset - _XADC >> 2, value)
        elif offset == _RESET and value == _RESET_KEY:
            self._reset()
        elif offset in self._plain:
            self._plain[offset] = value & (1 << 31 if offset == _GLOBAL else 0x3FFFF)
