"""Registers of a served board, as ``pynq.MMIO.array`` and the drivers use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pynq_torch.board.register_array import RegisterArray
from pynq_torch.hls.ap_ctrl import AP_IDLE, AP_START, AUTO_RESTART, has_ended

from .memory import Piece, RemoteMemory
from .steps import Ended, Steps
from .wire import AT_ONCE

__all__ = ["Registers", "RemoteArray"]

#: From here on registers are the processor's own (UG585, table 4-1), which start nothing here.
_PROCESSOR = 0xE0000000


class Registers:
    """A range of registers: the bus of its array.

    Parameters
    ----------
    board : RemoteBoard
        Whose.
    base, length : int
        The range.
    unit : bool
        Whether AP_CTRL is at its start.
    """

    def __init__(self, board: Any, base: int, length: int, unit: bool) -> None:
        self._board, self._base, self._length, self._unit = board, base, length, unit
        self._steps: Steps = board.steps
        self._memory: RemoteMemory = board.memory
        self._opened: tuple[int, str] = -1, ""

    @property
    def _handle(self) -> str:
        """What the server calls the range; opened again after a download."""
        if self._opened[0] != self._board.loads:
            self._opened = self._board.loads, self._steps.open(self._base, self._length)
        return self._opened[1]

    # ---- the bus ---------------------------------------------------------------------------------

    def read(self, address: int) -> int:
        """Read a register; AP_CTRL of a unit that stands still is known."""
        known = self._kept(address)
        return self._steps.read(self._handle, address - self._base) if known is None else known

    def _kept(self, address: int) -> int | None:
        """Return what an earlier message has found out already."""
        board = self._board
        if error := board.failed.pop(address, None):
            raise error
        first: int | None = board.first.pop(address, None)
        return board.noted.get(address) if first is None else first

    def write(self, address: int, value: int) -> None:
        """Write a register."""
        self._write(address, (value & 0xFFFFFFFF).to_bytes(4, "little"), later=False)

    def write_block(self, address: int, words: memoryview) -> None:
        """Write registers that follow each other: arguments, which a start comes after."""
        self._write(address, words.tobytes(), later=self._unit and address > self._base)

    def _write(self, address: int, data: bytes, *, later: bool) -> None:
        offset, handle = address - self._base, self._handle
        self._unnote()
        if self._base < _PROCESSOR and not self._is_quiet(offset, data):
            # A DMA, or a unit that is started behind its driver's back: who knows what it writes.
            self._board.noted.clear()
            self._memory.forget(busy=True)
        self._steps.write(handle, offset, data, later=later and not self._memory.busy)

    def _is_quiet(self, offset: int, data: bytes) -> bool:
        """Whether a write starts nothing."""
        starts = AP_START | AUTO_RESTART
        return self._unit and (offset > 0 or not data[0] & starts)

    # ---- runs --------------------------------------------------------------------------------

    def look(self, also: int | None, writes: Sequence[Piece], start: bytes = b"") -> int:
        """Return AP_CTRL, with `start` after it was written; take what the run has written."""
        board, memory, base = self._board, self._memory, self._base
        if start:
            self._unnote()
            board.first.pop(base, None)
            memory.written(writes)
        elif (known := self._kept(base)) is not None:
            return known
        fits = not memory.busy and sum(piece.nbytes for piece in writes) <= AT_ONCE
        wants = [(p.of.handle, p.start, p.nbytes) for p in writes] if fits else []
        found: Ended = self._steps.look(self._handle, also, wants, start)
        if found.error is not None:
            if not start:
                raise found.error
            board.failed[base] = found.error  # for who waits
            return AP_START
        if has_ended(found.control):
            memory.written(writes)  # other runs may have been seen since
            for piece, content in zip(writes, found.contents, strict=False):
                memory.put(piece, content)
            self._note(found, also)
            if start:
                board.first[base] = found.control
        return found.control

    def _unnote(self) -> None:
        for address in [a for a in self._board.noted if 0 <= a - self._base < self._length]:
            del self._board.noted[address]

    def _note(self, found: Ended, also: int | None) -> None:
        """Note what stays as it is until something is written: only this program does."""
        if not self._steps.owns:
            return
        if found.again == AP_IDLE:
            self._board.noted[self._base] = AP_IDLE
        if also is not None and found.also is not None:
            self._board.noted[self._base + also] = found.also


class RemoteArray(RegisterArray):
    """An array of registers through which a driver starts a unit, and waits, by one message."""

    def start(self, also: int | None, results: Sequence[Any]) -> None:
        """Start the unit: with the registers and buffers that were written before.

        Parameters
        ----------
        also : int, optional
            Offset of a register that is read when the run has ended.
        results : sequence of PynqBuffer
            What the run may write to.
        """
        registers, board = self._registers()
        pieces = _pieces(results)
        board.results[self._address] = also, pieces
        registers.look(also, pieces, AP_START.to_bytes(4, "little"))

    def look(self) -> int:
        """Return AP_CTRL, after a while where the unit is running."""
        registers, board = self._registers()
        return registers.look(*board.results.get(self._address, (None, ())))

    def _registers(self) -> tuple[Registers, Any]:
        bus: Any = self._bus
        return bus, bus._board


def _pieces(buffers: Sequence[Any]) -> list[Piece]:
    windows = (getattr(buffer, "window", buffer) for buffer in buffers)
    return [window.span for window in windows if window.bo is not None and window.size]
