"""AXI interrupt controller (PG099): up to 32 interrupt inputs onto one output."""

from __future__ import annotations

from typing import Any, ClassVar

from pynq_torch.board.bus import IpModel
from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.services import BoardServices

from .parameters import integer

# PG099, table 2-4.
_ISR, _IPR, _IER, _IAR, _SIE, _CIE, _IVR, _MER, _IMR, _ILR = range(0x00, 0x28, 4)
_NONE = 0xFFFFFFFF


class AxiIntc(IpModel):
    """AXI INTC v4.1 without the fast interrupt mode (a MicroBlaze feature)."""

    vlnv_names: ClassVar[tuple[str, ...]] = ("axi_intc",)

    def __init__(self, board: BoardServices, ip: IpInstance) -> None:
        super().__init__(board, ip)
        self.ninputs = integer(ip, "C_NUM_INTR_INPUTS", 1)
        self._mask = (1 << self.ninputs) - 1
        self._edge = integer(ip, "C_KIND_OF_INTR", 0)  # bit set: edge, clear: level
        self._rising = integer(ip, "C_KIND_OF_EDGE", _NONE)
        self._high = integer(ip, "C_KIND_OF_LVL", _NONE)
        self._inputs = 0
        self._captured = 0  # seen by the input stage, whether or not HIE lets it through
        self._isr = 0
        self._ier = 0
        self._ilr = _NONE
        self._master = False
        self._hardware = False  # HIE: once set, it stays until reset

    def set_input(self, index: int, level: bool) -> None:
        """Drive interrupt input ``index``; the board does, from the nets of the handoff."""
        bit = 1 << index
        if not bit & self._mask:
            raise ValueError(
                f"{self.ip.name} has {self.ninputs} interrupt inputs; there is no input {index}"
            )
        with self.lock:
            before = bool(self._inputs & bit)
            self._inputs = self._inputs | bit if level else self._inputs & ~bit
            if self._edge & bit:
                if before != level and level == bool(self._rising & bit):
                    self._captured |= bit
            elif level == bool(self._high & bit):
                self._captured |= bit
            was = self.irq("irq")
            self._capture()
            changed = was != self.irq("irq")
        if changed:
            self.board.raise_irq(self)

    def _capture(self) -> None:
        if self._hardware:
            self._isr |= self._captured
            self._captured = 0

    @property
    def _active_levels(self) -> int:
        return ~(self._inputs ^ self._high) & ~self._edge & self._mask

    @property
    def pending(self) -> int:
        """IPR: interrupts that are active and enabled."""
        return self._isr & self._ier

    def _lowest(self) -> int:
        # Input 0 has the highest priority (PG099, "Interrupt Vector Register").
        return (self.pending & -self.pending).bit_length() - 1 if self.pending else _NONE

    def irq(self, pin: str) -> bool:
        """Return whether the output is asserted, whatever its polarity (C_IRQ_ACTIVE)."""
        # ILR lets through only inputs of higher priority than its value (PG099, "ILR").
        blocked = self._ilr != _NONE and self._lowest() >= self._ilr
        return self._master and self.pending != 0 and not blocked

    def read(self, offset: int, slave: str = "") -> int:
        """Read a register; write-only ones and holes read as zero."""
        values = {
            _ISR: self._isr,
            _IPR: self.pending,
            _IER: self._ier,
            _IVR: self._lowest(),
            _MER: int(self._master) | int(self._hardware) << 1,
            _ILR: self._ilr,
        }
        return values.get(offset, 0)

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Write a register."""
        if offset == _ISR:
            if self._hardware:
                return  # software may raise interrupts only before HIE is set (PG099, "ISR")
            self._isr = value & self._mask
        elif offset == _IER:
            self._ier = value & self._mask
        elif offset == _IAR:
            # A level that is still active is captured again at once (PG099, "IAR").
            self._isr &= ~value
            self._captured |= self._active_levels
            self._capture()
        elif offset == _SIE:
            self._ier |= value & self._mask
        elif offset == _CIE:
            self._ier &= ~value
        elif offset == _MER:
            self._master = bool(value & 1)
            self._hardware = self._hardware or bool(value & 2)
            self._captured |= self._active_levels
            self._capture()
        elif offset == _ILR:
            self._ilr = value
        else:
            return
        self.board.raise_irq(self)

    def describe(self) -> dict[str, Any]:
        """Return the state, for diagnosis."""
        return {
            "inputs": self._inputs,
            "active": self._isr,
            "enabled": self._ier,
            "pending": self.pending,
            "master_enable": self._master,
            "hardware_enable": self._hardware,
            "irq": self.irq("irq"),
        }
