"""AXI4-Stream FIFO (PG080): packets written and read word by word through registers.

The words wait in queues (`fifo_queue`), from which ``engines/axi_fifo.cpp`` sends and receives.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

from pynq_torch.board.bus import IpModel
from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.services import BoardServices
from pynq_torch.board.streams import Endpoint
from pynq_torch.errors import RegisterMisuse

from .fifo_queue import Beat, BeatQueue, FifoEngine
from .parameters import flag, integer

_ISR, _IER, _TDFR, _TDFV, _TDFD, _TLR, _RDFR = 0x00, 0x04, 0x08, 0x0C, 0x10, 0x14, 0x18
_RDFO, _RDFD, _RLR, _SRR, _TDR, _RDR = 0x1C, 0x20, 0x24, 0x28, 0x2C, 0x30
_TID, _TUSER, _RID, _RUSER = 0x34, 0x38, 0x3C, 0x40
_RPURE, _RPORE, _RPUE, _TPOE = 1 << 31, 1 << 30, 1 << 29, 1 << 28
_TC, _RC, _TSE, _TRC, _RRC = 1 << 27, 1 << 26, 1 << 25, 1 << 24, 1 << 23
_TFPF, _TFPE, _RFPF, _RFPE = 1 << 22, 1 << 21, 1 << 20, 1 << 19
_ALL, _AT_RESET, _KEY, _PARTIAL = 0xFFF80000, 0x01D00000, 0xA5, 1 << 31
_LENGTH = 0x7FFFFF
#: Locations that the core keeps for itself: TDFV of an empty FIFO of 512 is 508.
_RESERVED = 4
#: Where the receive data are on the AXI4 port; the transmit data are at 0.
_FULL_RDFD = 0x1000
_SENDS, _TAKES = "AXI_STR_TXD", "AXI_STR_RXD"


class AxiFifo(IpModel):
    """AXI4-Stream FIFO, with its data behind AXI4-Lite or an AXI4 port of its own.

    RDFO counts all words of whole packets that wait. A packet whose TLR does not fit the words
    written (TSE) is not sent, and its words stay until TDFR or SRR. The control stream is not
    modelled.
    """

    vlnv_names: ClassVar[tuple[str, ...]] = ("axi_fifo_mm_s",)

    def __init__(self, board: BoardServices, ip: IpInstance) -> None:
        super().__init__(board, ip)
        self._sends = self._queue(_SENDS, "TX")
        self._takes = self._queue(_TAKES, "RX")
        self.engine = FifoEngine(ip.name, board.memory, self._sends, self._takes, (_SENDS, _TAKES))
        self._cut_through = {
            side: flag(ip, f"C_USE_{side}_CUT_THROUGH", False) for side in ("TX", "RX")
        }
        self._thresholds = {
            bit: integer(ip, f"C_{side}_FIFO_{kind}_THRESHOLD", default)
            for bit, side, kind, default in (
                (_TFPF, "TX", "PF", 507), (_TFPE, "TX", "PE", 5),
                (_RFPF, "RX", "PF", 507), (_RFPE, "RX", "PE", 5),
            )
        }  # fmt: skip
        self._full_port = flag(ip, "C_DATA_INTERFACE_TYPE", False)
        self._polls = 0
        self._closed = self._watched = False
        self._status, self._enabled = _AT_RESET, 0
        self._marks = {_TDR: 0, _TID: 0, _TUSER: 0}
        self._sent = 0  # packets that TC has told of
        self._forget(sent=True, received=True)
        self._levels = self._look_at_levels()

    def _queue(self, port: str, side: str) -> BeatQueue | None:
        if not flag(self.ip, f"C_USE_{side}_DATA", True):
            return None
        ring = self.board.stream_rings(self.ip.name).get(port)
        if ring is None:
            width = self.ip.stream_ports.get(port, (True, 4))[1] or 4
            direction = "out" if side == "TX" else "in"
            ring = self.board.open_ring(Endpoint(self.ip.name, port), direction, width)
        return BeatQueue(ring, integer(self.ip, f"C_{side}_FIFO_DEPTH", 512))

    @classmethod
    def prepare(cls) -> None:
        """Compile the engine."""
        FifoEngine.compile()

    def connect(self) -> None:
        """Start the engine: a FIFO takes beats as soon as the overlay is loaded."""
        self.engine.spawn()

    def _forget(self, *, sent: bool = False, received: bool = False) -> None:
        if sent:
            self._pending: list[bytes] = []  # beats of the packet that is being written
            self._gathered = b""  # less than a beat, of a data port with wide beats
            self._early = 0  # beats of this packet that went out before TLR (cut-through)
        if received:
            self._scanned = self._whole = self._takes.given if self._takes is not None else 0
            self._arriving = 0  # bytes of the packet that is arriving
            self._packets: deque[tuple[int, int, Beat]] = deque()  # bytes, beats, its last beat
            self._current: tuple[int, Beat] | None = None  # beats left of the one RLR told of
            self._words: list[int] = []  # rest of a beat that is being read

    # ---- what the engine has done ------------------------------------------------------------

    def _update(self) -> bool:
        """Take note of what passed; True if ISR changed."""
        before = self._status
        if self._sends is not None and self._sends.packets != self._sent:
            self._sent = self._sends.packets
            self._status |= _TC
        queue = self._takes
        for position in range(self._scanned, queue.given if queue is not None else 0):
            assert queue is not None
            beat = queue.get(position)
            self._arriving += bin(beat.keep & (1 << queue.data_bytes) - 1).count("1")
            self._scanned = position + 1
            if beat.last:
                beats, self._whole = self._scanned - self._whole, self._scanned
                self._packets.append((self._arriving, beats, beat))
                self._arriving = 0
                self._status |= _RC
        levels = self._look_at_levels()
        self._status |= levels & ~self._levels
        self._levels = levels
        return self._status != before

    def _look_at_levels(self) -> int:
        """Return the programmable full and empty bits as the queues stand."""
        sent = len(self._pending)
        sent += self._sends.given - self._sends.taken if self._sends is not None else 0
        waiting = self._takes.given - self._takes.taken if self._takes is not None else 0
        limits = self._thresholds
        levels = {
            _TFPF: sent >= limits[_TFPF], _TFPE: sent <= limits[_TFPE],
            _RFPF: waiting >= limits[_RFPF], _RFPE: waiting <= limits[_RFPE],
        }  # fmt: skip
        return sum(bit for bit, holds in levels.items() if holds)

    def _on_packet(self) -> None:
        with self.lock:
            if not self._closed and self._update():
                self.board.raise_irq(self)

    def _misuse(self, bit: int, text: str) -> None:
        self._status |= bit
        self.warn_once(RegisterMisuse, text, bit)

    # ---- registers ---------------------------------------------------------------------------

    def read(self, offset: int, slave: str = "") -> int:
        """Read a register, or a word of the AXI4 data port."""
        if self._update():
            self.board.raise_irq(self)
            self._polls = 0
        value = self._data_port_read(offset) if _is_full(slave) else self._read(offset)
        if self._update():
            self.board.raise_irq(self)
        return value

    def _data_port_read(self, offset: int) -> int:
        return self._read_data() if offset >= _FULL_RDFD else 0

    def _read(self, offset: int) -> int:
        if offset in (_ISR, _RDFO, _TDFV, _RLR):
            self._note_poll(offset)
        if offset == _ISR:
            return self._status
        if offset == _IER:
            return self._enabled
        if offset == _TDFV:
            return self._vacancy()
        if offset == _RDFO:
            return self._occupancy()
        if offset == _RLR:
            return self._read_length()
        if offset == _RDFD and not self._full_port:
            return self._read_data()
        if offset in (_RDR, _RID, _RUSER):
            last = self._current[1] if self._current is not None else None
            last = self._packets[0][2] if last is None and self._packets else last
            return {_RDR: last.dest, _RID: last.id, _RUSER: last.user}[offset] if last else 0
        return 0  # the others are write-only

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Write a register, or a word of the AXI4 data port."""
        self._polls = 0
        self._update()
        if _is_full(slave):
            if offset < _FULL_RDFD:
                self._write_data(value)
        elif offset == _ISR:
            self._status &= ~value  # write-1-to-clear
        elif offset == _IER:
            self._enabled = value & _ALL
            if self._enabled and not self._watched:
                self._watched = True
                self.board.watch(self.engine.done_fd, self._on_packet)
        elif offset == _TDFD and not self._full_port:
            self._write_data(value)
        elif offset == _TLR:
            self._write_length(value & _LENGTH)
        elif offset in (_TDFR, _RDFR, _SRR) and value & 0xFF == _KEY:
            self._reset(sent=offset != _RDFR, received=offset != _TDFR)
        elif offset in self._marks:
            self._marks[offset] = value
        self._update()
        self.board.raise_irq(self)

    def _reset(self, *, sent: bool, received: bool) -> None:
        for wanted, queue, bit in ((sent, self._sends, _TRC), (received, self._takes, _RRC)):
            if wanted:
                if queue is not None:
                    queue.empty()
                self._status |= bit
        self._forget(sent=sent, received=received)

    # ---- transmit ----------------------------------------------------------------------------

    def _vacancy(self) -> int:
        if self._sends is None:
            return 0
        used = self._sends.given - self._sends.taken + len(self._pending)
        return max(self._sends.depth - _RESERVED - used, 0)

    def _write_data(self, word: int) -> None:
        if self._sends is None or self._vacancy() == 0:
            depth = self._sends.depth - _RESERVED if self._sends is not None else 0
            self._misuse(
                _TPOE,
                f"0x{word:08x} was written to TDFD while its transmit FIFO of {depth} words is "
                "full, and is lost (ISR.TPOE). Read TDFV first: it counts the free words.",
            )
            return
        self._gathered += word.to_bytes(4, "little")
        if len(self._gathered) < self._sends.data_bytes:
            return
        self._pending.append(self._gathered)
        self._gathered = b""
        if self._cut_through["TX"]:
            self._early += len(self._pending) - 1
            self._post(self._pending[:-1])
            del self._pending[:-1]

    def _write_length(self, nbytes: int) -> None:
        width = self._sends.data_bytes if self._sends is not None else 4
        written = self._early + len(self._pending)
        if nbytes == 0 or written != -(-nbytes // width):
            self._misuse(
                _TSE,
                f"TLR = {nbytes} bytes does not fit the {written} words of {width} bytes written "
                "to TDFD since the last packet, and nothing is sent (ISR.TSE). Write 0xA5 to TDFR, "
                "then the words, then TLR.",
            )
            return
        self._post(self._pending, (1 << (nbytes - 1) % width + 1) - 1)
        self._forget(sent=True)
        self.board.settle()

    def _post(self, beats: list[bytes], last_keep: int = 0) -> None:
        """Let the engine send beats; with `last_keep`, the last of them ends the packet."""
        queue = self._sends
        assert queue is not None
        position = queue.given
        for data in beats:
            beat = Beat(data, (1 << queue.data_bytes) - 1)
            beat.dest, beat.id, beat.user = (self._marks[r] for r in (_TDR, _TID, _TUSER))
            position += 1
            if last_keep and position == queue.given + len(beats):
                beat.keep, beat.last = last_keep, True
            queue.put(position - 1, beat)
        if beats:
            queue.give(position)

    # ---- receive -----------------------------------------------------------------------------

    def _occupancy(self) -> int:
        if self._takes is None:
            return 0
        end = self._scanned if self._cut_through["RX"] else self._whole
        return max(end - self._takes.taken, 0)

    def _read_length(self) -> int:
        if self._packets:
            nbytes, beats, last = self._packets.popleft()
            self._current = (beats, last)
            return nbytes
        if self._cut_through["RX"] and self._arriving:
            return self._arriving | _PARTIAL
        self._misuse(
            _RPURE,
            "RLR was read while no whole packet is in its receive FIFO, and gives 0 (ISR.RPURE). "
            "Wait until RDFO is not 0, or for ISR.RC.",
        )
        return 0

    def _read_data(self) -> int:
        queue = self._takes
        if queue is None or (not self._words and self._occupancy() == 0):
            self._misuse(
                _RPUE,
                "RDFD was read while its receive FIFO is empty, and gives 0 (ISR.RPUE). Read RDFO "
                "first: it counts the words of whole packets.",
            )
            return 0
        if not self._words:
            if self._current is not None:
                left, last = self._current
                if left == 0:
                    self._misuse(
                        _RPORE,
                        "RDFD was read beyond the packet that RLR told of, into the next one "
                        "(ISR.RPORE). Read RLR before the words of each packet.",
                    )
                self._current = (max(left - 1, 0), last)
            data = queue.get(queue.taken).data
            self._words = [
                int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)
            ]
            queue.take(1)
        return self._words.pop(0)

    # ---- waits -------------------------------------------------------------------------------

    def _note_poll(self, register: int) -> None:
        if self.engine.faulted:
            error = self.engine.fault()
            self.engine.spawn()
            raise error
        if any(engine.can_move for engine in self.board.engines()):
            self._polls += 1
            self.board.polled(self, self._polls)
            self._update()
        elif register != _RLR:
            self._polls = 0
            self.board.vain_polls.note(self._why_idle)

    def _why_idle(self) -> str:
        name, takes, sends = self.ip.name, self._takes, self._sends
        waiting = takes.given - takes.taken if takes is not None else 0
        if takes is not None and waiting >= takes.depth and not self._packets:
            return (
                f"{name}: its receive FIFO of {takes.depth} words is full and TLAST has not come, "
                "so that no packet ends. Send shorter packets, or build it with a deeper FIFO."
            )
        if waiting and not self._packets:
            return (
                f"{name}: {waiting} words have come to {_TAKES} without TLAST, so that RDFO stays "
                "0 and RC does not come. The sender has to set TLAST with the last word."
            )
        if sends is not None and sends.given > sends.taken:
            return f"{name}: {sends.ring.sink or 'nothing'} does not take the words of {_SENDS}."
        if self._pending:
            return (
                f"{name}: {len(self._pending)} words were written to TDFD, and nothing is sent "
                "before TLR is written. Write the packet's length in bytes to TLR."
            )
        source = takes.ring.source if takes is not None else None
        return f"{name}: no word comes to {_TAKES} from {source or 'anything in the design'}."

    # ---- interrupt ---------------------------------------------------------------------------

    def irq(self, pin: str) -> bool:
        """Return the level of ``interrupt``."""
        return bool(self._status & self._enabled)

    def describe(self) -> dict[str, Any]:
        """Return the state, for diagnosis."""
        with self.lock:
            self._update()
            return {
                "status": self._status,
                "enabled": self._enabled,
                "vacancy": self._vacancy(),
                "occupancy": self._occupancy(),
                "packets": [nbytes for nbytes, _, _ in self._packets],
            }

    def close(self) -> None:
        """End the engine."""
        with self.lock:
            self._closed = True
        if self._watched:
            self.board.unwatch(self.engine.done_fd)
        self.engine.close()


def _is_full(slave: str) -> bool:
    return slave.upper().endswith("FULL")
