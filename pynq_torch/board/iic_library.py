"""What ``libiic.so`` of the board's image does for ``pynq.lib.iic``, through the registers."""

from __future__ import annotations

from typing import Any

from .register_array import RegisterArray

_ISR, _CR, _SR, _TX, _RX, _LIMIT = (
    offset >> 2 for offset in (0x20, 0x100, 0x104, 0x108, 0x10C, 0x120)
)
_ERROR, _ENABLE, _RESET_TX = 1 << 1, 1 << 0, 1 << 1
_BUSY, _RX_EMPTY = 1 << 2, 1 << 6
_START, _STOP, _MOST = 1 << 8, 1 << 9, 255


class IicLibrary:
    """The functions that pynq's driver calls, with the names and arguments they have there.

    `registers` of an AXI IIC are found by the address that the driver was given of them.
    """

    def XIic_Send(self, at: int, address: int, data: Any, length: int, option: int) -> int:
        """Send bytes in dynamic mode; return how many, 0 where nobody acknowledges."""
        registers = self._begin(at)
        registers[_TX] = _START | address << 1
        for i in range(length):
            stop = _STOP if i == length - 1 and not option else 0
            registers[_TX] = int(data[i]) | stop
        return 0 if int(registers[_ISR]) & _ERROR else length

    def XIic_Recv(self, at: int, address: int, data: Any, length: int, option: int) -> int:
        """Receive bytes in dynamic mode; return how many, 0 where nobody acknowledges."""
        registers = self._begin(at)
        registers[_LIMIT] = 0xF
        registers[_TX] = _START | address << 1 | 1
        registers[_TX] = _STOP | min(length, _MOST)
        count = 0
        while count < length and not int(registers[_SR]) & _RX_EMPTY:
            data[count] = int(registers[_RX])
            count += 1
        return count

    def XIic_CheckIsBusBusy(self, at: int) -> int:
        """Return whether the bus is busy."""
        return int(bool(int(RegisterArray.at(at)[_SR]) & _BUSY))

    XIic_WaitBusFree = XIic_CheckIsBusBusy  # nothing that is busy here becomes free by itself

    @staticmethod
    def _begin(at: int) -> Any:
        registers = RegisterArray.at(at)
        registers[_CR] = _RESET_TX | _ENABLE
        registers[_ISR] = int(registers[_ISR]) & _ERROR  # toggles
        return registers
