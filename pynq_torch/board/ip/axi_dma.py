"""AXI DMA v7.1 (PG021): direct register mode and scatter-gather.

The registers are here; the bytes are moved by ``engines/axi_dma.cpp``, in a process of its own that
starts with the first transfer.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pynq_torch.board.bus import IpModel
from pynq_torch.board.engine import EngineProcess
from pynq_torch.board.streams import Endpoint, Ring
from pynq_torch.errors import BoardError, KernelFault

from .dma_channel import CYCLIC, DLY, ERR, IOC, RESET, RS, ChannelParameters, DmaChannel
from .dma_faults import stopped_text
from .dma_left import BeatsLeft
from .dma_slot import NO_PORT, DmaSlot
from .parameters import flag, integer

if TYPE_CHECKING:
    from pynq_torch.board.device import VirtualBoard
    from pynq_torch.board.handoff import IpInstance

# Offsets within a channel; S2MM starts at 0x30 (PG021, tables 2-5 and 2-6).
_CR, _SR, _CURDESC, _CURDESC_MSB, _TAILDESC, _TAILDESC_MSB = 0x00, 0x04, 0x08, 0x0C, 0x10, 0x14
_ADDRESS, _ADDRESS_MSB, _LENGTH = 0x18, 0x1C, 0x28
_S2MM = 0x30
#: What an IP may need on this PC to take the beats that it has room for, in seconds.
_TAKE_LIMIT_S = 2.0
_SOURCE = Path(__file__).parents[1] / "engines" / "axi_dma.cpp"


def _channel_parameters(ip: IpInstance, name: str) -> ChannelParameters | None:
    if not flag(ip, f"C_INCLUDE_{name}", True):
        return None
    return ChannelParameters(
        name=name,
        scatter_gather=flag(ip, "C_INCLUDE_SG", True),
        length_width=integer(ip, "C_SG_LENGTH_WIDTH", 14),
        address_width=integer(ip, "C_ADDR_WIDTH", 32),
        memory_bytes=integer(ip, f"C_M_AXI_{name}_DATA_WIDTH", 32) // 8,
        realign=flag(ip, f"C_INCLUDE_{name}_DRE", False),
    )


class AxiDma(IpModel):
    """AXI DMA, one MM2S and one S2MM channel.

    A transfer that leaves its buffer, or starts at an address the hardware cannot realign, does on
    the board whatever it likes. Here it stops, DMASR shows DMASlvErr, and the next read of DMASR
    raises :class:`~pynq_torch.errors.KernelFault` with the physical address and the nearest buffer.
    """

    vlnv_names: ClassVar[tuple[str, ...]] = ("axi_dma",)

    def __init__(self, board: VirtualBoard, ip: IpInstance) -> None:
        super().__init__(board, ip)
        self.engine: EngineProcess | None = None
        self._watched = False
        self._closed = False  # an interrupt may still be under way then, of an overlay that is gone
        self._delay_timer: threading.Timer | None = None
        self._left = BeatsLeft(board)
        parameters = {
            _S2MM if name == "S2MM" else 0: _channel_parameters(ip, name)
            for name in ("MM2S", "S2MM")
        }
        self.channels = {base: DmaChannel(p) for base, p in parameters.items() if p is not None}

    @classmethod
    def prepare(cls) -> None:
        """Compile the data mover, so that the first transfer does not wait for the compiler."""
        from pynq_torch.hls.build import compile_engine

        compile_engine(_SOURCE)

    # ---- the streams -------------------------------------------------------------------------

    def _ring(self, channel: DmaChannel) -> Ring | None:
        suffix = channel.parameters.name
        rings = self.board.stream_rings(self.ip.name)
        return rings.get("M_AXIS_MM2S" if suffix == "MM2S" else "S_AXIS_S2MM")

    def _peer(self, channel: DmaChannel) -> Endpoint | None:
        ring = self._ring(channel)
        if ring is None:
            return None
        return ring.sink if channel.parameters.name == "MM2S" else ring.source

    # ---- the engine --------------------------------------------------------------------------

    def start_engine(self) -> EngineProcess:
        """Return the engine, started if it is not running."""
        if self.engine is None:
            from pynq_torch.hls import compile_engine

            rings = {
                base: ring
                for base, c in self.channels.items()
                if (ring := self._ring(c)) is not None
            }
            names = [f"{self.ip.name}.{self.channels[base].parameters.name}" for base in rings]
            self.engine = EngineProcess(
                compile_engine(_SOURCE),
                self.ip.name,
                self.board.memory,
                4096,
                list(rings.values()),
                names,
            )
            order = list(rings)
            for index, base in enumerate((0, _S2MM)):
                slot = DmaSlot(self.engine, index)
                channel = self.channels.get(base)
                port = order.index(base) if base in order else NO_PORT
                if channel is None:
                    slot.configure(port=NO_PORT, memory_bytes=4, realign=False, length_mask=0)
                    continue
                p = channel.parameters
                slot.configure(
                    port=port,
                    memory_bytes=p.memory_bytes,
                    realign=p.realign,
                    length_mask=p.length_mask,
                )
                channel.slot = slot
            self.engine.spawn()
        elif self.engine.faulted:
            self._respawn()
        self._watch()
        return self.engine

    def _watch(self) -> None:
        """Have the engine's notifications followed once the program relies on interrupts."""
        wanted = any(c.control & (IOC | DLY | ERR) for c in self.channels.values())
        if wanted and not self._watched and self.engine is not None:
            self._watched = True
            self.board.watch(self.engine.done_fd, self._on_done)

    def _on_done(self) -> None:
        with self.lock:
            if self._closed:
                return
            changed = [c.update() for c in self.channels.values()]
            self._delay_interrupts()
            if any(changed):
                self.board.raise_irq(self)

    def _respawn(self) -> None:
        assert self.engine is not None
        for channel in self.channels.values():
            if channel.slot is not None:
                channel.slot.forget()
            if channel.busy:
                channel.busy = False
                channel.halt()
        self.engine.spawn()

    def _check_engine(self) -> None:
        """Raise what happened if the engine's process died."""
        if self.engine is not None and self.engine.faulted:
            error = self.engine.fault()
            self._respawn()
            raise error

    def _abort(self, channel: DmaChannel) -> None:
        """Give up the current job, as RS = 0 and Reset do."""
        slot = channel.slot
        if slot is None or self.engine is None:
            return
        if slot.busy and not slot.abort(self.engine.start_fd):
            self._respawn()
        channel.update()
        channel.busy = False

    # ---- what a reset takes back ---------------------------------------------------------------

    def _withdraw(self) -> None:
        """Drop the beats that were sent and not taken, as the reset of the DMA's FIFOs does.

        What a FIFO on the way or the IP has taken stays there (PG021 resets nothing but the DMA).

        Raises
        ------
        BoardError
            The data mover does not answer, so that they may still come before the next transfer.
        """
        channel = self.channels.get(0)
        ring = self._ring(channel) if channel is not None else None
        if channel is None or ring is None or channel.slot is None or self.engine is None:
            return
        # On the board a running IP has taken what it can long before a program's statement ends.
        deadline = time.monotonic() + _TAKE_LIMIT_S
        while ring.occupancy and any(engine.can_move for engine in self.board.engines()):
            if time.monotonic() > deadline:
                break
            time.sleep(2e-4)
        before = ring.withdrawn_before
        if ring.occupancy:
            if self.engine.faulted:
                self._respawn()
            if not channel.slot.withdraw(self.engine.start_fd):
                self._respawn()
                if not channel.slot.withdraw(self.engine.start_fd):
                    raise BoardError(
                        f"{self.ip.name}: its data mover was started again and still does not take "
                        f"back the {ring.occupancy} beats that were sent and not taken; load the "
                        "overlay again"
                    )
        self._left.was_reset(ring, before)

    def _begins(self, channel: DmaChannel) -> None:
        ring = self._ring(channel)
        if channel is self.channels.get(0) and ring is not None:
            self._left.transfer_begins(ring)

    # ---- registers ---------------------------------------------------------------------------

    def _find(self, offset: int) -> tuple[DmaChannel | None, int]:
        base = _S2MM if offset >= _S2MM else 0
        return self.channels.get(base), offset - base

    def read(self, offset: int, slave: str = "") -> int:
        """Read a register; holes and the registers of a channel left out read as zero."""
        channel, register = self._find(offset)
        if channel is None:
            return 0
        if channel.update():
            self.board.raise_irq(self)
        p = channel.parameters
        if register == _SR:
            return self._status(channel)
        if register == _CR:
            return channel.control_value()
        wide = p.address_width > 32
        if p.scatter_gather:
            current = (
                channel.slot.descriptor
                if channel.slot is not None and channel.busy
                else channel.current
            )
            pointers = {_CURDESC: current, _TAILDESC: channel.tail}
            if register in pointers:
                return pointers[register] & 0xFFFFFFC0
            if wide and register - 4 in pointers:
                return pointers[register - 4] >> 32
            return 0
        if register == _LENGTH:
            return channel.length
        if register == _ADDRESS:
            return channel.address & 0xFFFFFFFF
        return channel.address >> 32 if register == _ADDRESS_MSB and wide else 0

    def _status(self, channel: DmaChannel) -> int:
        if channel.stopped is not None:
            self._raise_stopped(channel)
        if channel.busy:
            channel.polls += 1
            if channel.polls % 64 == 0:
                self._check_engine()
            self.board.polled(self, channel.polls)
            if channel.update():
                self.board.raise_irq(self)
                if channel.stopped is not None:
                    self._raise_stopped(channel)
        else:
            self.board.vain_polls.note(lambda: f"{self.ip.name}: {channel.why_at_rest()}")
        return channel.status()

    def _raise_stopped(self, channel: DmaChannel) -> None:
        assert channel.stopped is not None
        kind, address = channel.stopped
        channel.stopped = None
        self.board.raise_irq(self)
        place = self.board.memory.describe(address)
        raise KernelFault(
            stopped_text(self.ip.name, channel, kind, address, place), self.ip.name, address
        )

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Write a register."""
        channel, register = self._find(offset)
        if channel is None:
            return
        channel.update()
        p = channel.parameters
        wide = p.address_width > 32
        if register == _CR:
            self._write_control(channel, value)
        elif register == _SR:
            channel.pending &= ~value  # IOC, Dly and Err are write-1-to-clear
        elif p.scatter_gather:
            self._write_pointer(channel, register, value, wide)
        elif register == _ADDRESS:
            channel.address = channel.address & ~0xFFFFFFFF | value
        elif register == _ADDRESS_MSB and wide:
            channel.address = channel.address & 0xFFFFFFFF | value << 32
        elif register == _LENGTH:
            self._start_transfer(channel, value)
        self.board.raise_irq(self)

    def _write_control(self, channel: DmaChannel, value: int) -> None:
        if value & RESET:
            # Either channel's Reset resets the whole core (PG021, DMACR.Reset).
            for each in self.channels.values():
                self._abort(each)
                each.reset()
            self._withdraw()
            return
        if channel.running and not value & RS:
            # What has not gone out is flushed (PG021, DMACR.RS); a transfer that is over went out.
            flushed = channel.busy and channel is self.channels.get(0)
            self._abort(channel)
            channel.halt()
            if flushed:
                self._withdraw()
        channel.set_control(value)
        if value & RS and not channel.running:
            channel.run()
        self._watch()

    def _start_transfer(self, channel: DmaChannel, value: int) -> None:
        p = channel.parameters
        length = value & p.length_mask
        if channel.busy:
            channel.ignore(f"LENGTH = {value} was written while a transfer was running")
            return
        channel.length = length
        if not channel.running:
            channel.ignore(
                f"LENGTH = {value} was written while the channel was halted (DMACR.RS = 0)"
            )
        elif length == 0:
            # Only a non-zero length starts a transfer (PG021, "MM2S_LENGTH"); a wait never ends.
            cut = f", of which the register's {p.length_width} bits keep {length}" if value else ""
            channel.ignore(
                f"LENGTH = {value} was written{cut}; a transfer of no bytes does not start"
            )
        else:
            self.start_engine()
            assert channel.slot is not None
            self._begins(channel)
            channel.busy, channel.idle, channel.polls = True, False, 0
            channel.slot.post_transfer(channel.address, length)
            self.board.settle()

    def _write_pointer(self, channel: DmaChannel, register: int, value: int, wide: bool) -> None:
        if register in (_CURDESC, _CURDESC_MSB):
            if channel.running:  # read-only then (PG021, "MM2S_CURDESC")
                channel.ignore("CURDESC was written while the channel was running")
            elif register == _CURDESC:
                channel.current = channel.current & ~0xFFFFFFFF | value & ~0x3F
            elif wide:
                channel.current = channel.current & 0xFFFFFFFF | value << 32
            return
        if register == _TAILDESC:
            channel.tail = channel.tail & ~0xFFFFFFFF | value & ~0x3F
        elif register == _TAILDESC_MSB and wide:
            channel.tail = channel.tail & 0xFFFFFFFF | value << 32
        else:
            return
        # The upper half, where addresses have one, is written last and starts the chain.
        if wide == (register == _TAILDESC_MSB):
            self._start_chain(channel)

    def _start_chain(self, channel: DmaChannel) -> None:
        if not channel.running:
            channel.ignore("TAILDESC was written while the channel was halted (DMACR.RS = 0)")
            return
        self.start_engine()
        assert channel.slot is not None
        cyclic = bool(channel.control & CYCLIC)
        current = channel.current if channel.fresh else None
        self._begins(channel)
        channel.busy, channel.idle, channel.polls = True, False, 0
        channel.fresh = False
        channel.slot.post_chain(channel.tail, current, cyclic)
        self.board.settle()

    # ---- interrupts --------------------------------------------------------------------------

    def irq(self, pin: str) -> bool:
        """Return the level of ``mm2s_introut`` or ``s2mm_introut``."""
        channel = self.channels.get(_S2MM if pin.startswith("s2mm") else 0)
        return channel is not None and channel.irq

    def _delay_interrupts(self) -> None:
        """Arm Dly_Irq where packets came that do not reach the threshold (PG021, "IRQDelay")."""
        waiting = [c for c in self.channels.values() if c.delay and c.countdown != c.threshold]
        if not waiting:
            return
        if self._delay_timer is not None:
            self._delay_timer.cancel()
        # One interval is 125 clocks of the scatter-gather engine.
        seconds = max(c.delay for c in waiting) * 125 / (self.board.clock_hz(self.ip) or 100e6)
        self._delay_timer = threading.Timer(seconds, self._delayed, [waiting])
        self._delay_timer.daemon = True
        self._delay_timer.start()

    def _delayed(self, waiting: list[DmaChannel]) -> None:
        with self.lock:
            if self._closed:
                return
            for channel in waiting:
                if channel.countdown != channel.threshold:
                    channel.pending |= DLY
                    channel.countdown = channel.threshold
            self.board.raise_irq(self)

    # ---- for people --------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """Return the condition of both channels for a diagnosis.

        Returns
        -------
        dict
            ``ip``, and per channel (``MM2S``, ``S2MM``) what `DmaChannel.describe` says, the
            ``peer`` at the other end of the stream, the beats ``waiting`` in it, and how many beats
            of earlier transfers a reset has ``left`` where it does not reach.
        """
        with self.lock:
            found: dict[str, Any] = {"ip": self.ip.name}
            for channel in self.channels.values():
                channel.update()
                ring, peer = self._ring(channel), self._peer(channel)
                sends = channel is self.channels.get(0)
                found[channel.parameters.name] = channel.describe() | {
                    "peer": str(peer) if peer is not None else None,
                    "waiting": ring.occupancy if ring is not None else 0,
                    "fifo_depth": ring.depth if ring is not None else 0,
                    "left": self._left.count(ring) if sends and ring is not None else 0,
                }
            return found

    def close(self) -> None:
        """End the engine."""
        self._closed = True
        if self._delay_timer is not None:
            self._delay_timer.cancel()
        if self.engine is not None:
            if self._watched:
                self.board.unwatch(self.engine.done_fd)
            self.engine.close()
