"""The XADC of the Zynq-7000 (UG480): its registers, the PS's way to them, and Linux's files.

All channels have constant values, those of a board at rest: 45 degrees and nominal voltages.
"""

from __future__ import annotations

import errno
from collections import deque

from .bus import IpModel
from .handoff import IpInstance
from .services import BoardServices
from .sysfs import MemoryFile

XADC_BASE, XADC_BYTES = 0xF8007100, 0x20
_BITS = 12
#: Of the sensor: degrees Celsius = code * 503.975 / 4096 - 273.15 (UG480, equation 2-10).
_KELVIN, _ZERO = 503.975, 273.15
#: Channels by the name that Linux gives them (xilinx-xadc-core.c), with address and value.
_CHANNELS = {
    "temp0": (0x00, 45.0),
    "voltage0_vccint": (0x01, 1.0),
    "voltage1_vccaux": (0x02, 1.8),
    "voltage2_vccbram": (0x06, 1.0),
    "voltage3_vccpint": (0x0D, 1.0),
    "voltage4_vccpaux": (0x0E, 1.8),
    "voltage5_vccoddr": (0x0F, 1.5),  # DDR3
    "voltage6_vrefp": (0x04, 1.25),
    "voltage7_vrefn": (0x05, 0.0),
}
#: Registers of the highest and lowest value so far, by the channel's address (UG480, table 3-1).
_EXTREMES = {0x00: (0x20, 0x24), 0x01: (0x21, 0x25), 0x02: (0x22, 0x26), 0x06: (0x23, 0x27)} | {
    0x0D: (0x28, 0x2C), 0x0E: (0x29, 0x2D), 0x0F: (0x2A, 0x2E),
}  # fmt: skip
_WRITABLE = range(0x40, 0x60)


def code(name: str) -> int:
    """Return the 12-bit code of a channel."""
    value = _CHANNELS[name][1]
    if name.startswith("temp"):
        return round((value + _ZERO) * (1 << _BITS) / _KELVIN)
    return round(value / 3 * (1 << _BITS))


class Xadc:
    """The 16-bit registers of the XADC; a code is in the upper 12 bits."""

    def __init__(self) -> None:
        self._values: dict[int, int] = {}
        for name, (address, _) in _CHANNELS.items():
            for each in (address, *_EXTREMES.get(address, ())):
                self._values[each] = code(name) << 16 - _BITS

    def read(self, address: int) -> int:
        """Read a register; the analog inputs and those that do not exist read 0."""
        return self._values.get(address, 0)

    def write(self, address: int, value: int) -> None:
        """Write a register of the configuration, the sequencer or the alarms; it has no effect."""
        if address in _WRITABLE:
            self._values[address] = value & 0xFFFF


_CFG, _INT_STS, _INT_MASK, _MSTS, _CMD, _DATA, _MCTL = range(0x00, 0x1C, 4)
_ENABLE, _RESET = 1 << 31, 1 << 4
_DEPTH = 15
_READ, _WRITE = 1, 2


class PsXadc(IpModel):
    """The PS's interface to the XADC (UG585, chapter 30): a FIFO of commands, one of answers.

    The answer to a command is the register that the command before it has read.
    """

    def __init__(self, board: BoardServices, ip: IpInstance) -> None:
        super().__init__(board, ip)
        self._xadc = Xadc()
        self._plain = {_CFG: 0x1114, _INT_MASK: 0xFFFFFFFF, _MCTL: _RESET}
        self._commands: deque[int] = deque()
        self._answers: deque[int] = deque()
        self._next = 0  # what the next command gives back

    def read(self, offset: int, slave: str = "") -> int:
        """Read a register."""
        if offset == _MSTS:
            sent, come = len(self._commands), len(self._answers)
            full = (sent == _DEPTH) << 11 | (come == _DEPTH) << 9
            return sent << 16 | come << 12 | full | (not sent) << 10 | (not come) << 8
        if offset == _INT_STS:  # a level: fewer commands than CFG asks for
            return 0x200
        if offset == _DATA:
            self._run()
            answer = self._answers.popleft() if self._answers else 0
            self._run()
            return answer
        return self._plain.get(offset, 0)

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Write a register."""
        if offset in self._plain:
            self._plain[offset] = value
            if offset == _MCTL and value & _RESET:
                self._commands.clear()
                self._answers.clear()
        elif offset == _CMD and len(self._commands) < _DEPTH:
            self._commands.append(value)
        self._run()

    def _run(self) -> None:
        if not self._plain[_CFG] & _ENABLE or self._plain[_MCTL] & _RESET:
            return
        while self._commands and len(self._answers) < _DEPTH:
            word = self._commands.popleft()
            self._answers.append(self._next)
            command, address = word >> 26 & 0xF, word >> 16 & 0x3FF
            if command == _WRITE:
                self._xadc.write(address, word)
            self._next = self._xadc.read(address) if command == _READ else 0


# ---- Linux's files -------------------------------------------------------------------------------

FOLDER = "/sys/bus/iio/devices/iio:device0"


def _files() -> dict[str, str]:
    files = {"name": "xadc", "sampling_frequency": "961538"}
    for name in _CHANNELS:
        files[f"in_{name}_raw"] = str(code(name))
        scale = _KELVIN * 1000 if name.startswith("temp") else 3000.0  # to millidegrees, millivolts
        files[f"in_{name}_scale"] = f"{int(scale * 1e9 / (1 << _BITS)) / 1e9:.9f}"
    files["in_temp0_offset"] = str(-int(_ZERO * (1 << _BITS) / _KELVIN))
    return files


def open_file(path: str, mode: str) -> MemoryFile:
    """Open a file of Linux's XADC driver to read it."""
    name = path.removeprefix(FOLDER).strip("/")
    text = _files().get(name)
    if text is None:
        raise FileNotFoundError(errno.ENOENT, "the board's XADC has no such file", path)
    if "r" not in mode or "+" in mode:
        raise PermissionError(errno.EACCES, "the board's XADC files can be read only", path)
    return MemoryFile(f"{text}\n")
