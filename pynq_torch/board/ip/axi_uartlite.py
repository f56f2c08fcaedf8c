"""AXI UART Lite (PG142): what is sent comes back, as with a wire between its pins."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import ClassVar

from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.services import BoardServices

from .parameters import integer
from .serial import SerialIp

_RX, _TX, _STAT, _CTRL = 0x0, 0x4, 0x8, 0xC
_VALID, _FULL, _TX_EMPTY, _ENABLED, _OVERRUN = 1 << 0, 1 << 1, 1 << 2, 1 << 4, 1 << 5
_RESET_TX, _RESET_RX = 1 << 0, 1 << 1
_DEPTH = 16


class AxiUartLite(SerialIp):
    """AXI UART Lite.

    A byte takes no time, so that the transmit FIFO is always empty. `device` is what is at the
    pins: it is given each byte sent, and returns the bytes that come back.
    """

    vlnv_names: ClassVar[tuple[str, ...]] = ("axi_uartlite",)

    def __init__(self, board: BoardServices, ip: IpInstance) -> None:
        super().__init__(board, ip)
        self.device: Callable[[int], Iterable[int]] = lambda byte: (byte,)
        self._mask = (1 << integer(ip, "C_DATA_BITS", 8)) - 1
        self._received: deque[int] = deque()
        self._enabled = self._overrun = self._pulse = False

    def read(self, offset: int, slave: str = "") -> int:
        """Read a register; the others are write-only."""
        if offset == _STAT:
            return self._status()
        if offset != _RX:
            return 0
        if not self._received:
            self._misuse(
                "RX_FIFO was read while it is empty, and gives 0: on a board this is a bus error, "
                "which ends the program. Read it only while STAT_REG bit 0 is set."
            )
            return 0
        return self._received.popleft()

    def _status(self) -> int:
        if not self._received:
            self._note_poll("no byte waits in RX_FIFO, and none comes before one is sent.")
        full = len(self._received) == _DEPTH
        bits = ((_VALID, self._received), (_FULL, full), (_ENABLED, self._enabled))
        value = _TX_EMPTY | sum(bit for bit, holds in bits if holds)
        value |= _OVERRUN if self._overrun else 0
        self._overrun = False  # cleared by the read
        return value

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Send a byte, or write the control register."""
        if offset == _TX:
            self.receive(self.device(value & self._mask))
            self._interrupt()  # the transmit FIFO has become empty
        elif offset == _CTRL:
            self._enabled = bool(value & _ENABLED)
            if value & _RESET_RX:
                self._received.clear()

    def receive(self, data: Iterable[int]) -> None:
        """Let bytes come in at the pin ``rx``; those that find the FIFO full are lost."""
        with self.lock:
            was_empty = not self._received
            for byte in data:
                if len(self._received) < _DEPTH:
                    self._received.append(byte & self._mask)
                else:
                    self._overrun = True
            if was_empty and self._received:
                self._interrupt()

    def _interrupt(self) -> None:
        """Pulse the interrupt output."""
        self._pulse = self._enabled
        self.board.raise_irq(self)
        self._pulse = False
        self.board.raise_irq(self)

    def irq(self, pin: str) -> bool:
        """Return the level of ``interrupt``."""
        return self._pulse
