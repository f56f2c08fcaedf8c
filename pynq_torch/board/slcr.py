"""The part of the Zynq-7000 SLCR that clocks the PL (UG585, appendix B.28)."""

from __future__ import annotations

from .bus import IpModel
from .handoff import IpInstance
from .services import BoardServices

SLCR_BASE = 0xF8000000
SLCR_BYTES = 0x1000
#: The crystal of a PYNQ-Z2 at PS_CLK (board schematic; pynq.ps assumes the same).
PS_CLK_MHZ = 50.0
_LOCK, _UNLOCK, _LOCKSTA = 0x004, 0x008, 0x00C
_LOCK_KEY, _UNLOCK_KEY = 0x767B, 0xDF0D
_ARM_PLL, _DDR_PLL, _IO_PLL = 0x100, 0x104, 0x108
_PLL_STATUS = 0x10C
_FPGA_CLK = (0x170, 0x180, 0x190, 0x1A0)


class Slcr(IpModel):
    """Clock registers with what the first stage boot loader of a PYNQ-Z2 leaves in them.

    ARM PLL 1300 MHz (CPU 650 MHz), DDR PLL 1050 MHz, IO PLL 1000 MHz. The registers accept writes
    unlocked, as they are when Linux runs.
    """

    def __init__(self, board: BoardServices, ip: IpInstance) -> None:
        super().__init__(board, ip)
        self._words: dict[int, int] = {
            _LOCKSTA: 0,
            _ARM_PLL: 26 << 12 | 0x8,
            _DDR_PLL: 21 << 12 | 0x8,
            _IO_PLL: 20 << 12 | 0x8,
            _PLL_STATUS: 0x3F,
            0x120: 0x1F << 24 | 2 << 8,  # ARM_CLK_CTRL: ARM PLL / 2
            0x170: 1 << 20 | 10 << 8,  # FCLK0 of the base overlay's boot: 100 MHz
            0x180: 1 << 20 | 7 << 8,
            0x190: 1 << 20 | 5 << 8,
            0x1A0: 1 << 20 | 20 << 8,
        }

    def read(self, offset: int, slave: str = "") -> int:
        """Read a register; those that are not modelled read 0 until written."""
        return self._words.get(offset, 0)

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Write a register, unless the SLCR is locked."""
        if offset == _LOCK:
            if value & 0xFFFF == _LOCK_KEY:
                self._words[_LOCKSTA] = 1
        elif offset == _UNLOCK:
            if value & 0xFFFF == _UNLOCK_KEY:
                self._words[_LOCKSTA] = 0
        elif offset not in (_LOCKSTA, _PLL_STATUS) and not self._words[_LOCKSTA]:
            self._words[offset] = value

    def fclk_hz(self, index: int) -> float:
        """Return the frequency of FCLK_CLK ``index`` in Hz."""
        control = self._words[_FPGA_CLK[index]]
        pll = {2: _ARM_PLL, 3: _DDR_PLL}.get(control >> 4 & 3, _IO_PLL)
        source = PS_CLK_MHZ * 1e6 * (self._words[pll] >> 12 & 0x7F)
        divisor = (control >> 8 & 0x3F) * (control >> 20 & 0x3F)
        return source / divisor if divisor else 0.0
