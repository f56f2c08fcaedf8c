"""AXI VDMA v6.3 (PG020): frames between memory and the streams of a design.

The registers are here; the lines are moved by ``engines/axi_dma.cpp``, as those of an AXI DMA.
"""

from __future__ import annotations

import threading
import time
from typing import Any, ClassVar

from pynq_torch.board.bus import IpModel
from pynq_torch.board.engine import EngineProcess
from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.services import BoardServices
from pynq_torch.errors import KernelFault, NotModelledWarning

from .dma_channel import RESET, RS, ChannelParameters
from .dma_faults import stopped_text
from .dma_mover import DataMover
from .dma_slot import Phase
from .parameters import flag, integer
from .vdma_channel import CIRCULAR, DLY, GENLOCK, VdmaChannel

_PARK_PTR, _VERSION, _VERSION_VALUE, _FLIP = 0x28, 0x2C, 0x62000000, 0xEC
# Offsets within a channel's two parts, which start at 0x00 and 0x50, for S2MM at 0x30 and 0xA0.
_CR, _SR, _MASK, _REG_INDEX = 0x00, 0x04, 0x0C, 0x14
_VSIZE, _HSIZE, _STRIDE, _ADDRESS, _END = 0x00, 0x04, 0x08, 0x0C, 0x4C
_PARTS = {"MM2S": (0x00, 0x50), "S2MM": (0x30, 0xA0)}
#: A channel that reads sends no more frames a second than a display shows, and rests as long as a
#: frame takes, so that a picture sent over and over leaves the program a processor.
_FRAME_S, _REST = 1 / 60, 2.0
#: C_USE_S2MM_FSYNC: frames start at TUSER[0].
_TUSER = 2


class AxiVdma(IpModel):
    """AXI VDMA, one MM2S and one S2MM channel, in register direct mode.

    Frames follow each other as fast as the stream takes or gives them; MM2S sends at most 60 a
    second. Frame sync inputs, genlock with another VDMA, the delay interrupt and the vertical flip
    are not modelled.
    """

    vlnv_names: ClassVar[tuple[str, ...]] = ("axi_vdma",)

    def __init__(self, board: BoardServices, ip: IpInstance) -> None:
        super().__init__(board, ip)
        frames = integer(ip, "C_NUM_FSTORES", 3)
        rings = board.stream_rings(ip.name)
        self.channels: dict[str, VdmaChannel] = {}
        for name, port in (("MM2S", "M_AXIS_MM2S"), ("S2MM", "S_AXIS_S2MM")):
            if not flag(ip, f"C_INCLUDE_{name}", True):
                continue
            width = integer(ip, f"C_M_AXI_{name}_DATA_WIDTH", 32) // 8
            dre = flag(ip, f"C_INCLUDE_{name}_DRE", False)
            parameters = ChannelParameters(name, False, 32, 32, width, dre)
            self.channels[name] = VdmaChannel(parameters, frames)
            self.channels[name].ring = rings.get(port)
        self._mover = DataMover(board, ip.name, self.channels)
        self._sync = integer(ip, "C_USE_S2MM_FSYNC", _TUSER) == _TUSER
        self._watched = self._closed = False
        self._timer: threading.Timer | None = None

    @classmethod
    def prepare(cls) -> None:
        """Compile the data mover."""
        DataMover.compile()

    @property
    def engine(self) -> EngineProcess | None:
        """The data mover's process, from the first frame on."""
        return self._mover.engine

    def start_engine(self) -> None:
        """Start the data mover if it is not running."""
        engine = self._mover.start()
        if not self._watched:
            self._watched = True
            self.board.watch(engine.done_fd, self._go_on)

    # ---- registers ---------------------------------------------------------------------------

    def _find(self, offset: int) -> tuple[VdmaChannel | None, int, bool]:
        """Return a channel, the offset in one of its parts, and whether that is the second."""
        for name, starts in _PARTS.items():
            for second, start in enumerate(starts):
                if start <= offset < start + (_END if second else 0x28):
                    return self.channels.get(name), offset - start, bool(second)
        return None, 0, False

    def read(self, offset: int, slave: str = "") -> int:
        """Read a register; holes and the registers of a channel left out read as zero."""
        self._update()
        if offset == _VERSION:
            return _VERSION_VALUE
        if offset == _PARK_PTR:
            mm2s, s2mm = (self.channels.get(name) for name in _PARTS)
            read = mm2s.index << 16 | mm2s.park if mm2s is not None else 0
            return read | (s2mm.index << 24 | s2mm.park << 8 if s2mm is not None else 0)
        channel, register, second = self._find(offset)
        if channel is None:
            return 0
        if not second:
            if register == _SR:
                return self._status(channel)
            others = {_CR: channel.control_value(), _REG_INDEX: channel.bank}
            return others.get(register, channel.mask if register == _MASK else 0)
        if register >= _ADDRESS:
            return channel.addresses[(register - _ADDRESS >> 2) + 16 * channel.bank]
        lines = channel.picture.lines if channel.picture is not None else 0
        stride = channel.delay_frames << 24 | channel.stride
        return {_VSIZE: lines, _HSIZE: channel.width, _STRIDE: stride}[register]

    def _status(self, channel: VdmaChannel) -> int:
        if channel.stopping and channel.slot is not None and channel.slot.phase > Phase.MOVING:
            self._give_up(channel)  # the frame would wait for the stream
        if channel.stopped is None and channel.busy:
            channel.polls += 1
            if channel.polls % 64 == 0:
                self._mover.check()
            self.board.polled(self, channel.polls)
            self._update()
        elif channel.stopped is None and not (channel.running and channel.picture):
            self.board.vain_polls.note(lambda: f"{self.ip.name}: {channel.why_at_rest()}")
        if channel.stopped is not None:
            (kind, address), channel.stopped = channel.stopped, None
            self.board.raise_irq(self)
            place = self.board.memory.describe(address)
            text = stopped_text(self.ip.name, channel, kind, address, place)
            raise KernelFault(text, self.ip.name, address)
        return channel.status()

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Write a register."""
        self._update()
        if offset == _PARK_PTR:
            for name, shift in (("MM2S", 0), ("S2MM", 8)):
                if name in self.channels:
                    self.channels[name].park = value >> shift & 0x1F
            return
        if offset == _FLIP and value & 1:
            self._not_modelled("the vertical flip (ENABLE_VERTICAL_FLIP)")
        channel, register, second = self._find(offset)
        if channel is None:
            return
        if second:
            self._write_size(channel, register, value)
        elif register == _CR:
            self._write_control(channel, value)
        elif register == _SR:
            channel.clear(value)
        elif register == _REG_INDEX:
            channel.bank = value & 1
        elif register == _MASK and not channel.sends:
            channel.mask = value & 0xF
        self.board.raise_irq(self)

    def _write_size(self, channel: VdmaChannel, register: int, value: int) -> None:
        if register >= _ADDRESS:
            channel.addresses[(register - _ADDRESS >> 2) + 16 * channel.bank] = value
        elif register == _HSIZE:
            channel.width = value & 0xFFFF
        elif register == _STRIDE:
            channel.stride, channel.delay_frames = value & 0xFFFF, value >> 24 & 0x1F
        elif not channel.running:
            channel.ignore(f"VSIZE = {value} was written while VDMACR.RS was 0")
        elif not value & 0x1FFF or not channel.width:
            channel.ignore(f"VSIZE = {value} was written with HSIZE = {channel.width}")
        else:
            channel.latch(value & 0x1FFF)
            if not channel.busy:
                self._next_frame(channel)
                self.board.settle()

    def _write_control(self, channel: VdmaChannel, value: int) -> None:
        if value & RESET:
            self._give_up(channel)
            channel.reset()
            if channel.sends:
                self._mover.withdraw()
            return
        if value & DLY and value >> 24:
            self._not_modelled("the delay interrupt (IRQDelayCount)")
        use = integer(self.ip, f"C_USE_{channel.parameters.name}_FSYNC", 0)
        if value & RS and use == 1:
            self._not_modelled(f"the input {channel.parameters.name.lower()}_fsync")
        channel.set_control(value)
        if value & RS and not channel.running:
            self._give_up(channel)
            channel.picture = None
            channel.run()
        elif channel.running and not value & RS:
            channel.halt()
            channel.stopping = True

    def _not_modelled(self, what: str) -> None:
        self.warn_once(
            NotModelledWarning, f"{what} is not modelled, and has no effect on this board."
        )

    # ---- frames ------------------------------------------------------------------------------

    def _update(self) -> None:
        """Take note of frames that have ended, and let the next ones begin."""
        for channel in self.channels.values():
            if channel.update():
                self.board.raise_irq(self)
                if channel.running and channel.sends:
                    self._later(channel)
                elif channel.running:
                    self._next_frame(channel)

    def _go_on(self) -> None:
        with self.lock:
            if not self._closed:
                self._update()

    def _later(self, channel: VdmaChannel) -> None:
        now = time.monotonic()
        due = channel.began_s + max(_FRAME_S, _REST * (now - channel.began_s))
        self._timer = threading.Timer(max(due - now, 0.0), self._due, [channel])
        self._timer.daemon = True
        self._timer.start()

    def _due(self, channel: VdmaChannel) -> None:
        with self.lock:
            if not self._closed and channel.running and channel.picture and not channel.busy:
                self._next_frame(channel)

    def _next_frame(self, channel: VdmaChannel) -> None:
        picture = channel.picture
        assert picture is not None
        count = len(picture.addresses)
        source = self.channels.get("S2MM")
        if not channel.control & CIRCULAR:
            channel.index = channel.park % count
        elif channel.sends and channel.control & GENLOCK and source is not None:
            # A genlock slave stays so many frames behind the channel that writes (PG020).
            channel.index = (source.index - channel.delay_frames) % count
        else:
            channel.index = 0 if channel.first else (channel.index + 1) % count
        self.start_engine()
        channel.address = picture.addresses[channel.index]
        channel.began_s = time.monotonic()
        sync = self._sync and not channel.sends
        size = (picture.width, picture.stride, picture.lines)
        slot = self._mover.begin(channel)
        slot.post_frame(channel.address, *size, sync=sync, fresh=channel.first)
        channel.first = False

    def _give_up(self, channel: VdmaChannel) -> None:
        channel.given_up = True
        self._mover.abort(channel)
        channel.given_up = channel.stopping = False

    def irq(self, pin: str) -> bool:
        """Return the level of ``mm2s_introut`` or ``s2mm_introut``."""
        channel = self.channels.get("S2MM" if pin.startswith("s2mm") else "MM2S")
        return channel is not None and channel.irq

    def describe(self) -> dict[str, Any]:
        """Return the condition of both channels for a diagnosis, by name: ``MM2S``, ``S2MM``."""
        with self.lock:
            self._update()
            return {"ip": self.ip.name} | {n: c.describe() for n, c in self.channels.items()}

    def close(self) -> None:
        """End the engine."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self.engine is not None:
            if self._watched:
                self.board.unwatch(self.engine.done_fd)
            self.engine.close()
