"""The registers of one AXI DMA channel (PG021, "Register Space")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pynq_torch.board.streams import Ring

from .dma_slot import DmaSlot, Fault, Phase

# DMACR.
RS, RESET, CYCLIC = 1 << 0, 1 << 2, 1 << 4
_KEYHOLE, _CR_ONE = 1 << 3, 1 << 1  # bit 1 always reads as one
IOC, DLY, ERR = 1 << 12, 1 << 13, 1 << 14  # enabled in DMACR, shown in DMASR
_IRQ = IOC | DLY | ERR
_IRQS = {"IOC": IOC, "Dly": DLY, "Err": ERR}
_CR_WRITABLE = RS | _KEYHOLE | CYCLIC | _IRQ | 0xFFFF0000
# DMASR.
HALTED, IDLE, SG_INCLUDED = 1 << 0, 1 << 1, 1 << 3
ERROR_NAMES = {
    1 << 4: "DMAIntErr",
    1 << 5: "DMASlvErr",
    1 << 6: "DMADecErr",
    1 << 8: "SGIntErr",
    1 << 9: "SGSlvErr",
    1 << 10: "SGDecErr",
}


@dataclass(frozen=True)
class ChannelParameters:
    """How one channel was built."""

    name: str  #: "MM2S" or "S2MM"
    scatter_gather: bool
    length_width: int
    address_width: int
    memory_bytes: int
    realign: bool

    @property
    def length_mask(self) -> int:
        """The bits the length register has."""
        return (1 << self.length_width) - 1


class DmaChannel:
    """Register state of one channel. The owner, ``AxiDma``, holds the lock and the engine."""

    def __init__(self, parameters: ChannelParameters) -> None:
        self.parameters = parameters
        self.slot: DmaSlot | None = None
        self.ring: Ring | None = None
        self.ignored: list[str] = []  # writes that had no effect, for a diagnosis
        self.reset()

    def reset(self) -> None:
        """Return to the state after configuration; the current job must be gone."""
        self.control = 1 << 16  # IRQThreshold = 1
        self.errors = 0
        self.pending = 0  # IOC, DLY, ERR bits of DMASR
        self.idle = self.busy = False
        self.address = self.length = 0
        self.current = self.tail = 0
        self.fresh = True  # the next tail starts at CURDESC instead of going on
        self.countdown = 1
        self.polls = 0
        self.seen_events = self.slot.events if self.slot is not None else 0
        self.stopped: tuple[Fault, int] | None = None
        self.ignored.clear()

    @property
    def sends(self) -> bool:
        """True for MM2S, which sends beats to the stream."""
        return self.parameters.name == "MM2S"

    @property
    def can_move(self) -> bool:
        """Whether a transfer is under way, or about to begin, that waits for nothing."""
        if self.slot is None or not self.slot.busy:
            return False
        phase = self.slot.phase
        if phase in (Phase.AT_REST, Phase.MOVING):
            return True
        if self.ring is None:
            return False
        goes_on = self.ring.lets_go_on(for_data=phase != Phase.NO_SPACE)
        return goes_on or self.slot.phase != phase  # it may have taken the beat in between

    @property
    def running(self) -> bool:
        """DMACR.RS; DMASR.Halted is its complement (halting takes no time here)."""
        return bool(self.control & RS)

    @property
    def threshold(self) -> int:
        """DMACR.IRQThreshold: packets to an interrupt."""
        return self.control >> 16 & 0xFF

    @property
    def delay(self) -> int:
        """DMACR.IRQDelay, in units of 125 clocks."""
        return self.control >> 24

    @property
    def irq(self) -> bool:
        """Level of the channel's introut."""
        # A transfer that the guard stopped wakes a waiting program, which then reads the exception.
        return bool(self.pending & self.control & _IRQ) or self.stopped is not None

    def status(self) -> int:
        """Return DMASR."""
        value = self.errors | self.pending
        if not self.running:
            value |= HALTED
        elif self.idle:
            value |= IDLE
        if self.parameters.scatter_gather:
            return value | SG_INCLUDED | self.countdown << 16
        return value | 1 << 16

    def control_value(self) -> int:
        """Return DMACR."""
        return self.control | _CR_ONE

    def set_control(self, value: int) -> None:
        """Take the plain bits of DMACR; the owner deals with RS and Reset."""
        before, running = self.threshold, self.control & RS
        threshold = value >> 16 & 0xFF or before  # zero is not taken (PG021, "IRQThreshold")
        self.control = value & _CR_WRITABLE & ~RS & ~0x00FF0000 | threshold << 16 | running
        if threshold != before:
            self.countdown = threshold

    def run(self) -> None:
        """RS goes to 1."""
        if self.errors:
            # The error holds the engine halted until a reset (PG021, "Errors").
            self.ignore(
                f"RS was set while {self.error_text()} holds the channel halted; it needs a reset"
            )
            return
        self.control |= RS
        self.fresh = True
        # With scatter-gather nothing is queued, so the channel is idle; in direct register mode
        # Idle stays 0 until the first transfer is over (PG021, DMASR.Idle).
        self.idle = self.parameters.scatter_gather

    def halt(self) -> None:
        """RS goes to 0, by software or by an error."""
        self.control &= ~RS
        self.idle = False

    def ignore(self, text: str) -> None:
        """Remember a write without effect."""
        if text not in self.ignored:
            self.ignored.append(text)

    def update(self) -> bool:
        """Take note of the engine's progress; True if something that shows in DMASR changed."""
        slot = self.slot
        if slot is None or not self.busy:
            return False
        over = not slot.busy  # before the events: the engine counts those first
        new = slot.events - self.seen_events
        if new:
            self.seen_events += new
            self._count(new)
        if not over:
            return new > 0
        self.busy = False
        self.errors = slot.error
        if self.errors:
            self.pending |= ERR
            self.halt()
            fault = slot.fault
            if fault[0] is not Fault.NONE:
                self.stopped = fault
        else:
            self.idle = True
        if self.parameters.name == "S2MM" and not self.parameters.scatter_gather:
            self.length = slot.nbytes  # bytes that really came (PG021, "S2MM_LENGTH")
        return True

    def _count(self, events: int) -> None:
        if not self.parameters.scatter_gather:
            self.pending |= IOC
            return
        for _ in range(min(events, 1 << 16)):
            self.countdown -= 1
            if self.countdown == 0:
                self.pending |= IOC
                self.countdown = self.threshold

    def why_at_rest(self) -> str:
        """Say why the status of a channel without a transfer cannot change."""
        name, advice = self.parameters.name, "Start a transfer before the wait."
        register = "TAILDESC" if self.parameters.scatter_gather else "LENGTH"
        ignored = "".join(f" {text}." for text in self.ignored[-1:])
        if self.errors:
            return f"{self.error_text()} holds channel {name} halted.{ignored} Reset it."
        if not self.running:
            return f"channel {name} is halted (DMACR.RS is 0).{ignored} {advice}"
        if self.slot is not None and self.seen_events:
            return f"no transfer is under way on channel {name}: the last one is over. {advice}"
        return (
            f"no transfer was started on channel {name}: nothing was written to {register}."
            f"{ignored} {advice}"
        )

    def error_text(self) -> str:
        """Name the error bits that are set."""
        return ", ".join(self._errors()) or "no error"

    def _errors(self) -> list[str]:
        return [name for bit, name in ERROR_NAMES.items() if self.errors & bit]

    def describe(self) -> dict[str, Any]:
        """Return the channel's condition for a diagnosis."""
        slot = self.slot
        return {
            "running": self.running,
            "halted": not self.running,
            "idle": self.running and self.idle,
            "armed": self.busy,
            "errors": self._errors(),
            "interrupts": [name for name, bit in _IRQS.items() if self.pending & bit],
            "interrupts_enabled": [name for name, bit in _IRQS.items() if self.control & bit],
            "scatter_gather": self.parameters.scatter_gather,
            "cyclic": bool(self.control & CYCLIC),
            "address": self.address,
            "length": self.length,
            "length_bits": self.parameters.length_width,
            "current_descriptor": slot.descriptor if slot is not None else self.current,
            "tail_descriptor": self.tail,
            "phase": (slot.phase if slot is not None and self.busy else Phase.AT_REST).name,
            "bytes": slot.nbytes if slot is not None else 0,
            "beats": slot.beats if slot is not None else 0,
            "tlast": slot.tlast if slot is not None else False,
            "packets": slot.packets if slot is not None else 0,
            "total_bytes": slot.total_nbytes if slot is not None else 0,
            "ignored": list(self.ignored),
        }
