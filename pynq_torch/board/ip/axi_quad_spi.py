"""AXI Quad SPI (PG153) as a master in standard mode, with its own loopback."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import ClassVar

from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.services import BoardServices
from pynq_torch.errors import NotModelledWarning

from .parameters import integer
from .serial import RESET_AT, RESET_KEY, Interrupts, SerialIp

_CR, _SR, _DTR, _DRR, _SSR, _TX_COUNT, _RX_COUNT = 0x60, 0x64, 0x68, 0x6C, 0x70, 0x74, 0x78
_LOOP, _ENABLE, _MASTER, _INHIBIT = 1 << 0, 1 << 1, 1 << 2, 1 << 8
_RESET_TX, _RESET_RX, _CR_BITS, _CR_RESET = 1 << 5, 1 << 6, 0x3FF, 0x180
# IPISR.
_DTR_EMPTY, _DRR_FULL, _DRR_OVERRUN, _HALF_EMPTY, _DRR_NOT_EMPTY = (
    1 << 2,
    1 << 4,
    1 << 5,
    1 << 6,
    1 << 8,
)
#: Of SPISR: Slave_Mode_Select, and bit 7, which a reset sets (PG153: 0x0A5).
_SR_ALWAYS = 0xA0


class AxiQuadSpi(SerialIp):
    """AXI Quad SPI.

    A word takes no time. `device` is what is at the pins: it is given each word sent and the slave
    select register, and returns the word that comes back.
    """

    vlnv_names: ClassVar[tuple[str, ...]] = ("axi_quad_spi",)

    def __init__(self, board: BoardServices, ip: IpInstance) -> None:
        super().__init__(board, ip)
        self.device: Callable[[int, int], int] | None = None
        outputs, inputs = (ip.ports.get(name) for name in ("io0_o", "io1_i"))
        if outputs is not None and inputs is not None and outputs.net and outputs.net == inputs.net:
            self.device = lambda word, select: word  # MOSI and MISO are tied
        self._mask = (1 << integer(ip, "C_NUM_TRANSFER_BITS", 8)) - 1
        self._depth = integer(ip, "C_FIFO_DEPTH", 16) or 1
        self._selects = (1 << integer(ip, "C_NUM_SS_BITS", 1)) - 1
        self._reset()

    def _reset(self) -> None:
        self._control, self._select = _CR_RESET, self._selects
        self._sent: deque[int] = deque()
        self._received: deque[int] = deque()
        self._interrupts = Interrupts(0x3FFF if self._depth > 1 else 0xBF)

    def read(self, offset: int, slave: str = "") -> int:
        """Read a register; holes and write-only registers read as zero."""
        found = self._interrupts.read(offset)
        if found is not None:
            return found
        if offset == _SR:
            return self._status()
        if offset == _DRR:
            return self._take()
        values = {_CR: self._control, _SSR: self._select}
        if self._depth > 1:  # the occupancy, less one
            values[_TX_COUNT] = max(len(self._sent) - 1, 0)
            values[_RX_COUNT] = max(len(self._received) - 1, 0)
        return values.get(offset, 0)

    def _status(self) -> int:
        self._note_poll(self._why_idle())
        sent, received = len(self._sent), len(self._received)
        bits = (not received, received == self._depth, not sent, sent == self._depth)
        return _SR_ALWAYS | sum(bit << i for i, bit in enumerate(bits))

    def _why_idle(self) -> str:
        if not self._sent:
            return "no word waits in SPIDTR, so that none is sent or comes. Write it first."
        wanted = ((_ENABLE, 1, "SPE"), (_MASTER, 1, "Master"), (_INHIBIT, 0, "Master_Inhibit"))
        wrong = [
            f"{name} has to be {on}" for bit, on, name in wanted if bool(self._control & bit) != on
        ]
        return f"{len(self._sent)} words wait in SPIDTR: in SPICR, {', '.join(wrong)}."

    def _take(self) -> int:
        if not self._received:
            self._misuse(
                "SPIDRR was read while it is empty, and gives 0: on a board this is a bus error. "
                "Read it only while SPISR bit 0 (Rx_Empty) is 0."
            )
            return 0
        return self._received.popleft()

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Write a register."""
        if offset == RESET_AT and value == RESET_KEY:
            self._reset()
        elif offset == _CR:
            self._control = value & _CR_BITS & ~(_RESET_TX | _RESET_RX)
            if value & _RESET_TX:
                self._sent.clear()
            if value & _RESET_RX:
                self._received.clear()
        elif offset == _SSR:
            self._select = value & self._selects
        elif offset == _DTR:
            if len(self._sent) == self._depth:
                self._misuse(
                    f"a word was written to SPIDTR while its {self._depth} words are full, and is "
                    "lost. Write it only while SPISR bit 3 (Tx_Full) is 0."
                )
            else:
                self._sent.append(value & self._mask)
        elif not self._interrupts.write(offset, value):
            return
        self._transfer()
        self.board.raise_irq(self)

    def _transfer(self) -> None:
        if self._control & (_ENABLE | _MASTER | _INHIBIT) != _ENABLE | _MASTER or not self._sent:
            return
        status = _DTR_EMPTY | _DRR_NOT_EMPTY
        if len(self._sent) > self._depth // 2:
            status |= _HALF_EMPTY
        while self._sent:
            word = self._exchange(self._sent.popleft())
            if len(self._received) == self._depth:
                status |= _DRR_OVERRUN
            else:
                self._received.append(word & self._mask)
        if len(self._received) == self._depth:
            status |= _DRR_FULL
        self._interrupts.status |= status if self._depth > 1 else status & 0xBF & ~_HALF_EMPTY

    def _exchange(self, word: int) -> int:
        if self._control & _LOOP:
            return word
        if self.device is not None:
            return self.device(word, self._select)
        self.warn_once(
            NotModelledWarning,
            "nothing is at its SPI pins, and the words that come back are 0. Set SPICR.LOOP (bit "
            f'0), or give board.ip["{self.ip.name}"].device a function of word and slave select.',
        )
        return 0

    def irq(self, pin: str) -> bool:
        """Return the level of ``ip2intc_irpt``."""
        return self._interrupts.level
