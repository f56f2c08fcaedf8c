"""AP_CTRL, the control register that HLS puts at offset 0x00 of a kernel.

UG1399, "S_AXILITE Control Register Map". The masks are plain numbers: drivers use them in loops.
"""

from __future__ import annotations

__all__ = [
    "AP_CONTINUE",
    "AP_CTRL_BITS",
    "AP_DONE",
    "AP_IDLE",
    "AP_READY",
    "AP_START",
    "AUTO_RESTART",
    "INTERRUPT",
]

#: The number of each bit by its name.
AP_CTRL_BITS = {
    "AP_START": 0,
    "AP_DONE": 1,
    "AP_IDLE": 2,
    "AP_READY": 3,
    "AP_CONTINUE": 4,
    "AUTO_RESTART": 7,
    "INTERRUPT": 9,
}
(
    AP_START,
    AP_DONE,
    AP_IDLE,
    AP_READY,
    AP_CONTINUE,
    AUTO_RESTART,
    INTERRUPT,
) = (1 << bit for bit in AP_CTRL_BITS.values())
