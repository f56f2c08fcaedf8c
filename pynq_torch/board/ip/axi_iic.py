"""AXI IIC (PG090) as a master, in standard and dynamic mode; memories can be put on its bus."""

from __future__ import annotations

import threading
from collections import deque
from typing import ClassVar

from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.services import BoardServices

from .serial import RESET_AT, RESET_KEY, Interrupts, SerialIp

_CR, _SR, _TX, _RX, _ADR, _TX_COUNT, _RX_COUNT = 0x100, 0x104, 0x108, 0x10C, 0x110, 0x114, 0x118
_TEN_ADR, _RX_LIMIT, _GPO, _TIMES = 0x11C, 0x120, 0x124, range(0x128, 0x148, 4)
_PLAIN = {_ADR: 0xFE, _TEN_ADR: 0x7, _RX_LIMIT: 0xF, _GPO: 0xFF} | dict.fromkeys(_TIMES, 0xFFFFFFFF)
# CR.
_ENABLE, _RESET_TX, _MASTER, _SEND, _NACK, _AGAIN = (1 << i for i in range(6))
# SR.
_BUSY, _TX_FULL, _RX_FULL, _RX_EMPTY, _TX_EMPTY = 1 << 2, 1 << 4, 1 << 5, 1 << 6, 1 << 7
# ISR; 0xD0 after a reset.
_ERROR, _SENT, _RECEIVED, _NOT_BUSY, _NOT_ADDRESSED, _HALF_EMPTY = (
    1 << i for i in (1, 2, 3, 4, 6, 7)
)
_START, _STOP = 1 << 8, 1 << 9  # of a word in TX_FIFO (dynamic mode)
_DEPTH = 16
_BYTE_S = 90e-6  # nine clocks of 100 kHz


class AxiIic(SerialIp):
    """AXI IIC.

    `devices` are the memories on the bus, by their 7-bit address: the first byte that is written
    says where, the others follow, and reads go on from there. Every other address is not
    acknowledged, and sets ISR bit 1. Bytes pass when a program looks, or after the time they take
    where an interrupt is enabled. Being addressed as a slave is not modelled.
    """

    vlnv_names: ClassVar[tuple[str, ...]] = ("axi_iic",)

    def __init__(self, board: BoardServices, ip: IpInstance) -> None:
        super().__init__(board, ip)
        self.devices: dict[int, bytearray] = {}
        self._timer: threading.Timer | None = None
        self._closed = False
        self._reset()

    def _reset(self) -> None:
        self._control = 0
        self._plain = dict.fromkeys(_PLAIN, 0)
        self._sent: deque[int] = deque()
        self._received: deque[int] = deque()
        self._interrupts = Interrupts(0xFF)
        self._interrupts.status = _NOT_BUSY | _NOT_ADDRESSED | _HALF_EMPTY
        self._open = self._used = False  # between START and STOP; a START since the reset
        self._expects_address = False
        self._device: bytearray | None = None
        self._at: int | None = None  # where in the device; None until it was told
        self._left = 0  # bytes that dynamic mode still has to read; -1: as many as are taken
        self._counts = False  # the next word says how many

    # ---- registers ---------------------------------------------------------------------------

    def read(self, offset: int, slave: str = "") -> int:
        """Read a register; holes and write-only registers read as zero."""
        self._run()
        # Levels: what a program clears is set again while it holds.
        if self._used and not self._sent:
            self._interrupts.status |= _SENT
        if len(self._received) > self._plain[_RX_LIMIT]:
            self._interrupts.status |= _RECEIVED
        found = self._interrupts.read(offset)
        if offset in (_SR, 0x20):
            self._note_poll(self._why_idle())
        if found is not None:
            return found
        if offset == _SR:
            sent, received = len(self._sent), len(self._received)
            bits = {
                _BUSY: self._open, _TX_FULL: sent == _DEPTH, _RX_FULL: received == _DEPTH,
                _RX_EMPTY: not received, _TX_EMPTY: not sent,
            }  # fmt: skip
            return sum(bit for bit, holds in bits.items() if holds)
        if offset == _RX:
            return self._take()
        if offset in (_TX_COUNT, _RX_COUNT):  # less one
            return max(len(self._sent if offset == _TX_COUNT else self._received) - 1, 0)
        return self._control if offset == _CR else self._plain.get(offset, 0)

    def _take(self) -> int:
        if not self._received:
            self._misuse(
                "RX_FIFO was read while it is empty, and gives 0. Read it only while SR bit 6 "
                "(RX_FIFO_Empty) is 0."
            )
            return 0
        return self._received.popleft()

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Write a register."""
        if offset == RESET_AT and value == RESET_KEY:
            self._reset()
        elif offset == _CR:
            self._write_control(value & 0x7F)
        elif offset == _TX:
            if len(self._sent) == _DEPTH:
                self._run()
            if len(self._sent) < _DEPTH:
                self._sent.append(value & 0x3FF)
            else:
                self._misuse(f"TX_FIFO was written while its {_DEPTH} bytes are full: one is lost.")
        elif offset in _PLAIN:
            self._plain[offset] = value & _PLAIN[offset]
        else:
            self._interrupts.write(offset, value)
        self.board.raise_irq(self)
        self._later()

    def _write_control(self, value: int) -> None:
        began = value & _MASTER and not self._control & _MASTER
        ended = self._control & _MASTER and not value & _MASTER
        self._run()
        self._control = value & ~(_RESET_TX | _AGAIN)
        if value & _RESET_TX:
            self._sent.clear()
        if began or value & _AGAIN:  # START: what is sent next is an address
            self._open = self._expects_address = True
        elif ended:
            # The last byte of a message is written after this (PG090, "Programming Sequence").
            self._end()

    # ---- the bus -----------------------------------------------------------------------------

    def _run(self) -> None:
        """Let the bytes pass that can."""
        if not self._control & _ENABLE:
            return
        before = self._interrupts.status
        while self._sent and not (self._left and self._receive()):
            self._send(self._sent.popleft())
            if not self._sent:
                self._interrupts.status |= _SENT | _HALF_EMPTY
        self._receive()
        if self._interrupts.status != before:
            self.board.raise_irq(self)

    def _send(self, word: int) -> None:
        if word & _START or self._expects_address:
            self._open = self._used = True
            self._expects_address = False
            self._address(word & 0xFF, dynamic=bool(word & _START))
        elif self._counts:
            self._counts, self._left = False, word & 0xFF
            return  # STOP comes after the bytes that are read
        elif self._device is not None:
            if self._at is None:
                self._at = word & 0xFF
            elif self._device:
                self._device[self._at % len(self._device)] = word & 0xFF
                self._at += 1
        if word & _STOP:
            self._end()

    def _address(self, byte: int, *, dynamic: bool) -> None:
        self._device = self.devices.get(byte >> 1)
        self._left = 0
        if self._device is None:
            self._sent.clear()
            self._interrupts.status |= _ERROR | _SENT
            if dynamic:
                self._end()
        elif byte & 1:
            self._counts, self._left = dynamic, 0 if dynamic else -1
            self._at = self._at or 0
        else:
            self._at = None

    def _receive(self) -> bool:
        """Read bytes while there is room; True while some are left."""
        limit = self._plain[_RX_LIMIT] + 1
        while self._left and self._device is not None and len(self._received) < limit:
            at, self._at = self._at or 0, (self._at or 0) + 1
            self._received.append(self._device[at % len(self._device)] if self._device else 0xFF)
            self._left -= self._left > 0
            if len(self._received) == limit:
                self._interrupts.status |= _RECEIVED
            if self._left == 0:
                self._end()
        return bool(self._left)

    def _end(self) -> None:
        """STOP: the bus is free."""
        self._open, self._left = False, 0
        self._interrupts.status |= _NOT_BUSY

    def _why_idle(self) -> str:
        if not self._control & _ENABLE:
            return "the IIC core is disabled. Set CR bit 0 (EN)."
        if self._open and not self._sent:
            return (
                "a transfer is open, and TX_FIFO is empty: write the next byte, or end it (MSMS)."
            )
        return "nothing is under way on the IIC bus."

    # ---- interrupt ---------------------------------------------------------------------------

    def _later(self) -> None:
        """Let the bytes pass by themselves, for a program that waits for the interrupt."""
        waiting = self._interrupts.read(0x1C) and (self._sent or self._left)
        if waiting and self._timer is None and not self._closed:
            self._timer = threading.Timer(_BYTE_S * max(len(self._sent), 1), self._passed)
            self._timer.daemon = True
            self._timer.start()

    def _passed(self) -> None:
        with self.lock:
            self._timer = None
            if not self._closed:
                self._run()
                self.board.raise_irq(self)

    def irq(self, pin: str) -> bool:
        """Return the level of ``iic2intc_irpt``."""
        return self._interrupts.level

    def close(self) -> None:
        """Stop the timer."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
