"""The PYNQ-Z2 as a design sees it: part, memory ports, address space and PL clock."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from pynq_torch.errors import HandoffError

__all__ = [
    "BOARD_PART",
    "DDR_BYTES",
    "IO_PLL_MHZ",
    "MEMORY_PORTS",
    "PART",
    "ClockDividers",
    "MemoryPort",
    "clock_dividers",
    "highest_clock",
]

PART = "xc7z020clg400-1"
DEVICE, PACKAGE, SPEEDGRADE = "7z020", "clg400", "-1"
#: The vendor's board file. Vivado needs none: a PYNQ-Z2 boots its PS from its own image.
BOARD_PART = "tul.com.tw:pynq-z2:part0:1.0"
DDR_BYTES = 512 << 20
#: The 64-bit memory ports of the PS (UG585, AXI_HP interfaces).
MemoryPort = Literal["HP0", "HP1", "HP2", "HP3"]
MEMORY_PORTS: tuple[MemoryPort, ...] = get_args(MemoryPort)
MEMORY_PORT_BITS = 64
#: What M_AXI_GP0 decodes (UG585, table 4-1: system-level address map).
GP0_BASE, GP0_END = 0x4000_0000, 0x8000_0000
#: Crystal at PS_CLK (board schematic) and the IO PLL that the board's image derives from it.
CRYSTAL_MHZ = 50
IO_PLL_MULTIPLIER = 20
IO_PLL_MHZ = CRYSTAL_MHZ * IO_PLL_MULTIPLIER
#: Both dividers of FCLK have 6 bits (UG585, FPGA0_CLK_CTRL).
_DIVIDER_MAX = 63


@dataclass(frozen=True)
class ClockDividers:
    """How FCLK is made from the IO PLL.

    Parameters
    ----------
    divisor0, divisor1 : int
        The two dividers, 1 to 63 each.
    mhz : float
        What comes out, in MHz.
    """

    divisor0: int
    divisor1: int

    @property
    def mhz(self) -> float:
        """The clock that results, in MHz."""
        return IO_PLL_MHZ / (self.divisor0 * self.divisor1)


def _pairs() -> list[ClockDividers]:
    return [
        ClockDividers(first, second)
        for first in range(1, _DIVIDER_MAX + 1)
        for second in range(1, first + 1)
    ]


def highest_clock(limit_mhz: float) -> float:
    """Return the highest clock that a PYNQ-Z2 makes and that is no higher than `limit_mhz`.

    Raises
    ------
    HandoffError
        The limit is below the lowest clock.
    """
    possible = [pair.mhz for pair in _pairs() if pair.mhz <= limit_mhz]
    if not possible:
        raise HandoffError(
            f"a PYNQ-Z2 makes no clock of at most {limit_mhz:g} MHz; its lowest is "
            f"{min(pair.mhz for pair in _pairs()):.3f} MHz"
        )
    return max(possible)


def clock_dividers(clock_mhz: float) -> ClockDividers:
    """Return the dividers that give `clock_mhz` on a PYNQ-Z2.

    Raises
    ------
    HandoffError
        No pair of dividers gives this clock to 0.1 %; the message names the nearest.
    """
    nearest = sorted(_pairs(), key=lambda pair: (abs(pair.mhz - clock_mhz), pair.divisor0))
    best = nearest[0]
    if not math.isfinite(clock_mhz) or abs(best.mhz - clock_mhz) > 1e-3 * clock_mhz:
        # Many pairs give the same clock: name the two nearest clocks, not pairs.
        choices = list(dict.fromkeys(round(pair.mhz, 3) for pair in nearest))[:2]
        raise HandoffError(
            f"a PYNQ-Z2 cannot make {clock_mhz:g} MHz: its {IO_PLL_MHZ} MHz IO PLL is divided by "
            f"whole numbers. Nearest: {', '.join(f'{mhz:g}' for mhz in choices)} MHz"
        )
    return best
