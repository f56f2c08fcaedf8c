"""Snapshots of DMA channels and kernels, decoded: what a diagnosis is made from.

Register bits are those of the AXI DMA (PG021, tables 2-6 to 2-25) and of the block control that
HLS generates (UG1399, "S_AXILITE Control Register Map").
"""

from __future__ import annotations

from dataclasses import dataclass

from pynq_torch.hls.ap_ctrl import AP_CTRL_BITS, AP_DONE, AP_IDLE, AUTO_RESTART, is_idle

__all__ = ["ERROR_MASK", "ChannelState", "Facts", "KernelState", "control_bits", "status_bits"]

#: DMASR from bit 0 (PG021, table 2-8), the same in both channels; "-" is reserved.
STATUS_BITS = (
    *("Halted", "Idle", "-", "SGIncld", "DMAIntErr", "DMASlvErr", "DMADecErr", "-"),
    *("SGIntErr", "SGSlvErr", "SGDecErr", "-", "IOC_Irq", "Dly_Irq", "Err_Irq"),
)
ERROR_MASK = 0x770


def status_bits(status: int) -> tuple[str, ...]:
    """Return the names of the bits that are set in a DMASR value."""
    return tuple(name for bit, name in enumerate(STATUS_BITS) if status >> bit & 1 and name != "-")


def control_bits(control: int) -> tuple[str, ...]:
    """Return the names of the bits that are set in an AP_CTRL value."""
    return tuple(name for name, bit in AP_CTRL_BITS.items() if control >> bit & 1)


@dataclass(frozen=True)
class ChannelState:
    """One channel of an AXI DMA at one moment.

    Parameters
    ----------
    side : {"send", "recv"}
        MM2S or S2MM.
    status : int
        DMASR.
    length_register : int
        What the LENGTH register reads.
    address : int
        The physical address programmed.
    requested : int or None
        Bytes the program asked for; ``None`` where the channel was never armed.
    moved : int or None
        Bytes that went through; ``None`` where the hardware does not tell.
    moved_exact : bool
        False where `moved` is only a lower bound.
    max_bytes : int
        What the LENGTH register can hold.
    width_bytes : int
        Bytes of the memory side's data bus.
    realigns : bool
        Whether the data realignment engine (DRE) is built in.
    """

    side: str
    status: int
    length_register: int = 0
    address: int = 0
    requested: int | None = None
    moved: int | None = None
    moved_exact: bool = True
    max_bytes: int = (1 << 26) - 1
    width_bytes: int = 4
    realigns: bool = False

    @property
    def halted(self) -> bool:
        """Whether the channel is stopped."""
        return bool(self.status & 1)

    @property
    def idle(self) -> bool:
        """Whether the last transfer has ended."""
        return bool(self.status & 2)

    @property
    def failed(self) -> bool:
        """Whether an error bit is set."""
        return bool(self.status & ERROR_MASK)

    @property
    def armed(self) -> bool:
        """Whether a transfer was asked for."""
        return self.requested is not None

    @property
    def complete(self) -> bool:
        """Whether the transfer asked for has ended without an error."""
        return self.armed and self.idle and not self.failed

    @property
    def pending(self) -> bool:
        """Whether the channel is running on a transfer."""
        return self.armed and not (self.idle or self.failed or self.halted)

    @property
    def lost_length(self) -> bool:
        """Whether an address was programmed and no length stuck: nothing was started."""
        return bool(
            self.address and not self.length_register and not self.status & 1 and not self.armed
        )

    @property
    def short(self) -> bool:
        """Whether the transfer ended with fewer bytes than asked for."""
        return (
            self.complete
            and self.moved is not None
            and self.moved_exact
            and self.moved < (self.requested or 0)
        )

    @property
    def unaligned(self) -> bool:
        """Whether the address needs a realignment engine that is not there."""
        return not self.realigns and self.address % max(self.width_bytes, 1) != 0

    def __str__(self) -> str:
        label = "send (MM2S)" if self.side == "send" else "recv (S2MM)"
        bits = ", ".join(status_bits(self.status)) or "running"
        if not self.armed:
            return f"{label}: DMASR 0x{self.status:08x} [{bits}], never armed"
        if self.moved is None:
            moved = "bytes moved unknown until it ends"
        else:
            moved = f"{'' if self.moved_exact else 'at least '}{self.moved} moved"
        return (
            f"{label}: DMASR 0x{self.status:08x} [{bits}], {self.requested} bytes asked for at "
            f"0x{self.address:08x}, {moved}"
        )


@dataclass(frozen=True)
class KernelState:
    """The block control of an HLS IP at one moment.

    Parameters
    ----------
    name : str
        The instance in the overlay.
    control : int or None
        AP_CTRL; ``None`` for an IP without control registers (ap_ctrl_none), which always runs.
    note : str
        What the board adds, where it can say more.
    """

    name: str
    control: int | None
    note: str = ""

    @property
    def idle(self) -> bool:
        """Whether it is idle and would need a start."""
        if self.control is None or self.control & (AP_DONE | AUTO_RESTART):
            return False
        return is_idle(self.control)

    @property
    def done(self) -> bool:
        """Whether it has finished a run that no program has read yet."""
        return self.control is not None and bool(self.control & AP_DONE)

    @property
    def running(self) -> bool:
        """Whether it is running."""
        return self.control is None or not self.control & (AP_DONE | AP_IDLE)

    def __str__(self) -> str:
        if self.control is None:
            state = f"{self.name}: no control register (ap_ctrl_none), always runs"
        else:
            bits = ", ".join(control_bits(self.control)) or "running"
            state = f"{self.name}: AP_CTRL 0x{self.control:02x} [{bits}]"
        return f"{state}; {self.note}" if self.note else state


@dataclass(frozen=True)
class Facts:
    """Everything that is known when a wait gives up.

    Parameters
    ----------
    target : str
        What was waited for, e.g. ``"axi_dma_0"``.
    waited_s : float
        How long.
    send, recv : ChannelState or None
        The channels of the DMA; ``None`` where it has none, or where they are not concerned.
    kernels : tuple of KernelState
        The HLS IP on the stream, or the one waited for.
    stale : bool
        Whether another overlay has been loaded since the object was made.
    tlast : bool or None
        Whether a TLAST has arrived; ``None`` where the board cannot tell.
    notes : tuple of str
        Sentences from the board, where it can say more.
    left : int
        Beats of earlier transfers that a reset of the DMA left before the IP; 0 where the board
        cannot tell.
    """

    target: str
    waited_s: float = 0.0
    send: ChannelState | None = None
    recv: ChannelState | None = None
    kernels: tuple[KernelState, ...] = ()
    stale: bool = False
    tlast: bool | None = None
    notes: tuple[str, ...] = ()
    left: int = 0

    @property
    def channels(self) -> tuple[ChannelState, ...]:
        """The channels there are, send first."""
        return tuple(c for c in (self.send, self.recv) if c is not None)

    @property
    def idle_kernels(self) -> tuple[KernelState, ...]:
        """The kernels that are idle and show no finished run."""
        return tuple(k for k in self.kernels if k.idle)
