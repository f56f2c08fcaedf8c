"""AP_CTRL, the control register that HLS puts at offset 0x00 of a kernel.

UG1399, "S_AXILITE Control Register Map". The masks are plain numbers: drivers use them in loops.
"""

from __future__ import annotations

__all__ = [
    "AP_CONTINUE",
    "AP_CTRL",
    "AP_CTRL_BITS",
    "AP_DONE",
    "AP_IDLE",
    "AP_READY",
    "AP_START",
    "AUTO_RESTART",
    "INTERRUPT",
    "has_ended",
    "is_idle",
]

#: Its offset.
AP_CTRL = 0x00
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


def is_idle(control: int) -> bool:
    """Whether AP_CTRL reads as that of a kernel that has nothing to do."""
    return control & (AP_START | AP_IDLE) == AP_IDLE


def has_ended(control: int) -> bool:
    """Whether AP_CTRL says that a run has ended.

    A read of AP_DONE clears it, so that the next one finds an idle kernel. With auto-restart
    AP_START stays high: the end of one run counts.
    """
    return bool(control & AP_DONE) or is_idle(control)
