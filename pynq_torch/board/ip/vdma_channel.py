"""The registers of one AXI VDMA channel (PG020, "Register Space")."""

from __future__ import annotations

from dataclasses import dataclass

from .dma_channel import DLY, ERR, HALTED, IOC, RS, ChannelParameters, DmaChannel
from .dma_slot import Fault

# VDMACR.
CIRCULAR, GENLOCK, COUNT_FRAMES = 1 << 1, 1 << 3, 1 << 4
_CR_WRITABLE = 0xFFFFFF9B & ~RS | 0xFFFF0000  # all but Reset and the reserved bits 5 and 6
#: Errors that halt the channel; the others are write-1-to-clear, and the channel goes on.
_HALTING = 0x70
LINE_ERRORS = {
    1 << 7: "SOFEarlyErr",
    1 << 8: "EOLEarlyErr",
    1 << 11: "SOFLateErr",
    1 << 15: "EOLLateErr",
}
_FATAL = {1 << 4: "VDMAIntErr", 1 << 5: "VDMASlvErr", 1 << 6: "VDMADecErr"}
#: The bits of S2MM_VDMA_IRQ_MASK, by the errors that they keep from interrupting.
_MASKS = {1 << 7: 1, 1 << 8: 2, 1 << 11: 4, 1 << 15: 8}


@dataclass(frozen=True)
class Picture:
    """What counts from a write of VSIZE on: a frame's size, and the frames' addresses."""

    lines: int
    width: int
    stride: int
    addresses: tuple[int, ...]


class VdmaChannel(DmaChannel):
    """Register state of one channel. The owner, ``AxiVdma``, holds the lock and the engine."""

    def __init__(self, parameters: ChannelParameters, frames: int) -> None:
        self.addresses = [0] * 32
        self.frames = frames
        super().__init__(parameters)

    def reset(self) -> None:
        """Return to the state after configuration; the current frame must be gone."""
        super().reset()
        self.control |= CIRCULAR
        self.width = self.stride = self.delay_frames = self.mask = self.bank = 0
        self.addresses[:] = [0] * 32
        self.picture: Picture | None = None
        self.index = self.park = 0  # the frame being moved, and the one to park on
        self.began_s = 0.0
        self.first = True  # no frame since RS was set
        self.given_up = False  # the engine ends the frame because it was told to
        self.stopping = False  # RS is 0, and the frame being moved goes on to its end

    def status(self) -> int:
        """Return VDMASR."""
        halted = not self.running and not self.busy
        return self.errors | self.pending | (HALTED if halted else 0) | self.countdown << 16

    def control_value(self) -> int:
        """Return VDMACR."""
        return self.control

    def set_control(self, value: int) -> None:
        """Take the bits of VDMACR but RS and Reset, which are the owner's."""
        before, running = self.threshold, self.control & RS
        threshold = value >> 16 & 0xFF or 1  # zero sets it to one
        self.control = value & _CR_WRITABLE & ~0x00FF0000 | threshold << 16 | running
        if threshold != before:
            self.countdown = threshold

    def run(self) -> None:
        """RS goes to 1."""
        super().run()
        self.first, self.idle, self.stopping = True, False, False

    def latch(self, lines: int) -> None:
        """VSIZE was written: size and addresses count from the next frame on."""
        count = tuple(self.addresses[: self.frames])
        self.picture = Picture(lines, self.width, self.stride, count)

    def clear(self, value: int) -> None:
        """Take a write of VDMASR: interrupts and errors of lines are write-1-to-clear."""
        self.pending &= ~value
        self.errors &= ~(value & sum(LINE_ERRORS))

    def update(self) -> bool:
        """Take note of the engine's progress; True if a frame has ended."""
        slot = self.slot
        if slot is None or not self.busy or slot.busy:
            return False
        self.busy = False
        if self.given_up:
            return False
        error = slot.error
        self.errors |= error
        if any(
            error & bit and not self.mask & _MASKS.get(bit, 0) for bit in (*LINE_ERRORS, *_FATAL)
        ):
            self.pending |= ERR
        if error & _HALTING:
            self.halt()
            if slot.fault[0] is not Fault.NONE:
                self.stopped = slot.fault
            return True
        self.seen_events += 1
        self.countdown -= 1
        if self.countdown == 0:
            self.pending |= IOC
            self.countdown = self.threshold
            if self.control & COUNT_FRAMES:
                self.halt()
        return True

    def why_at_rest(self) -> str:
        """Say why the status of a channel without a frame cannot change."""
        name = self.parameters.name
        ignored = "".join(f" {text}." for text in self.ignored[-1:])
        if self.errors & _HALTING:
            return f"{self.error_text()} holds channel {name} halted.{ignored} Reset it."
        if not self.running:
            return f"channel {name} is halted (VDMACR.RS is 0).{ignored} Start it before the wait."
        return (
            f"channel {name} moves no frame: VSIZE was not written since VDMACR.RS was set."
            f"{ignored} Write HSIZE, STRIDE and the start addresses, then VSIZE."
        )

    def _errors(self) -> list[str]:
        return [name for bit, name in (_FATAL | LINE_ERRORS).items() if self.errors & bit]


__all__ = ["CIRCULAR", "DLY", "GENLOCK", "VdmaChannel"]
