"""AXI DMA v7.1 (PG021): direct register mode and scatter-gather.

The registers are here; the bytes are moved by ``engines/axi_dma.cpp``, in a process of its own that
starts with the first transfer.
"""

from __future__ import annotations

import threading
from typing import Any, ClassVar

from pynq_torch.board.bus import IpModel
from pynq_torch.board.engine import EngineProcess
from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.services import BoardServices
from pynq_torch.errors import KernelFault

from .dma_channel import CYCLIC, DLY, ERR, IOC, RESET, RS, ChannelParameters, DmaChannel
from .dma_faults import stopped_text
from .dma_mover import DataMover
from .parameters import flag, integer, within

# Offsets within a channel; S2MM starts at 0x30 (PG021, tables 2-5 and 2-6).
_CR, _SR, _CURDESC, _CURDESC_MSB, _TAILDESC, _TAILDESC_MSB = 0x00, 0x04, 0x08, 0x0C, 0x10, 0x14
_ADDRESS, _ADDRESS_MSB, _LENGTH = 0x18, 0x1C, 0x28
_S2MM = 0x30
_LOW = 0xFFFFFFFF


def _channel_parameters(ip: IpInstance, name: str) -> ChannelParameters | None:
    if not flag(ip, f"C_INCLUDE_{name}", True):
        return None
    return ChannelParameters(
        name=name,
        scatter_gather=flag(ip, "C_INCLUDE_SG", True),
        length_width=within(ip, "C_SG_LENGTH_WIDTH", 14, 8, 26),
        address_width=integer(ip, "C_ADDR_WIDTH", 32),
        memory_bytes=integer(ip, f"C_M_AXI_{name}_DATA_WIDTH", 32) // 8,
        realign=flag(ip, f"C_INCLUDE_{name}_DRE", False),
    )


def _with_half(address: int, value: int, high: bool) -> int:
    """Return an address with its upper or lower 32 bits replaced."""
    return address & _LOW | value << 32 if high else address & ~_LOW | value


class AxiDma(IpModel):
    """AXI DMA, one MM2S and one S2MM channel.

    A transfer that leaves its buffer, or starts at an address the hardware cannot realign, does on
    the board whatever it likes. Here it stops, DMASR shows DMASlvErr, and the next read of DMASR
    raises :class:`~pynq_torch.errors.KernelFault` with the physical address and the nearest buffer.
    """

    vlnv_names: ClassVar[tuple[str, ...]] = ("axi_dma",)

    def __init__(self, board: BoardServices, ip: IpInstance) -> None:
        super().__init__(board, ip)
        parameters = {name: _channel_parameters(ip, name) for name in ("MM2S", "S2MM")}
        channels = {name: DmaChannel(p) for name, p in parameters.items() if p is not None}
        rings = board.stream_rings(ip.name)
        for name, channel in channels.items():
            channel.ring = rings.get("M_AXIS_MM2S" if name == "MM2S" else "S_AXIS_S2MM")
        #: By the offset of their registers.
        self.channels = {_S2MM if name == "S2MM" else 0: c for name, c in channels.items()}
        self._mover = DataMover(board, ip.name, channels)
        self._watched = False
        self._closed = False  # an interrupt may still be under way then, of an overlay that is gone
        self._delay_timer: threading.Timer | None = None

    @classmethod
    def prepare(cls) -> None:
        """Compile the data mover, so that the first transfer does not wait for the compiler."""
        DataMover.compile()

    @property
    def engine(self) -> EngineProcess | None:
        """The data mover's process, from the first transfer on."""
        return self._mover.engine

    def start_engine(self) -> None:
        """Start the data mover if it is not running."""
        self._mover.start()
        self._watch()

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
        if register == _SR:
            return self._status(channel)
        if register == _CR:
            return channel.control_value()
        p = channel.parameters
        pointers = {_ADDRESS: channel.address}
        if p.scatter_gather:
            slot = channel.slot if channel.busy else None
            current = channel.current if slot is None else slot.descriptor
            pointers = {_CURDESC: current & ~0x3F, _TAILDESC: channel.tail & ~0x3F}
        elif register == _LENGTH:
            return channel.length
        if register in pointers:
            return pointers[register] & _LOW
        return pointers.get(register - 4, 0) >> 32 if p.address_width > 32 else 0

    def _status(self, channel: DmaChannel) -> int:
        if channel.stopped is not None:
            self._raise_stopped(channel)
        if channel.busy:
            channel.polls += 1
            if channel.polls % 64 == 0:
                self._mover.check()
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
        elif register == _LENGTH:
            self._start_transfer(channel, value)
        elif register == _ADDRESS or (register == _ADDRESS_MSB and wide):
            channel.address = _with_half(channel.address, value, register == _ADDRESS_MSB)
        self.board.raise_irq(self)

    def _write_control(self, channel: DmaChannel, value: int) -> None:
        if value & RESET:
            # Either channel's Reset resets the whole core (PG021, DMACR.Reset).
            self._mover.run_on()
            for each in self.channels.values():
                self._mover.abort(each)
                each.reset()
            self._mover.withdraw()
            return
        if channel.running and not value & RS:
            # What has not gone out is flushed (PG021, DMACR.RS); a transfer that is over went out.
            flushed = channel.busy and channel.sends
            if flushed:
                self._mover.run_on()
            self._mover.abort(channel)
            channel.halt()
            if flushed:
                self._mover.withdraw()
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
            self._mover.begin(channel).post_transfer(channel.address, length)
            self.board.settle()

    def _write_pointer(self, channel: DmaChannel, register: int, value: int, wide: bool) -> None:
        high = register in (_CURDESC_MSB, _TAILDESC_MSB)
        value = value if high else value & ~0x3F
        if register in (_CURDESC, _CURDESC_MSB):
            if channel.running:  # read-only then (PG021, "MM2S_CURDESC")
                channel.ignore("CURDESC was written while the channel was running")
            elif wide or not high:
                channel.current = _with_half(channel.current, value, high)
        elif register in (_TAILDESC, _TAILDESC_MSB) and (wide or not high):
            channel.tail = _with_half(channel.tail, value, high)
            # The upper half, where addresses have one, is written last and starts the chain.
            if high == wide:
                self._start_chain(channel)

    def _start_chain(self, channel: DmaChannel) -> None:
        if not channel.running:
            channel.ignore("TAILDESC was written while the channel was halted (DMACR.RS = 0)")
            return
        self.start_engine()
        cyclic = bool(channel.control & CYCLIC)
        current = channel.current if channel.fresh else None
        channel.fresh = False
        self._mover.begin(channel).post_chain(channel.tail, current, cyclic)
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
        """Return the condition of both channels for a diagnosis, by name: ``MM2S``, ``S2MM``.

        Besides `DmaChannel.describe`: the ``peer`` at the other end of the stream, the beats
        ``waiting`` in it, and those of earlier transfers that a reset has ``left`` beyond itself.
        """
        with self.lock:
            found: dict[str, Any] = {"ip": self.ip.name}
            for channel in self.channels.values():
                channel.update()
                said: dict[str, Any] = {"peer": None, "waiting": 0, "fifo_depth": 0, "left": 0}
                ring = channel.ring
                if ring is not None:
                    peer = ring.sink if channel.sends else ring.source
                    said = {
                        "peer": str(peer) if peer is not None else None,
                        "waiting": ring.occupancy,
                        "fifo_depth": ring.depth,
                        "left": self._mover.left.count(ring) if channel.sends else 0,
                    }
                found[channel.parameters.name] = channel.describe() | said
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
