"""The registers of an IP, as a hardware handoff lists them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_CONTROL = {"CTRL", "GIER", "IP_IER", "IP_ISR", "AP_CTRL", "GIE", "IER", "ISR"}
#: Registers that Vitis HLS adds to the arguments (UG1399, "S_AXILITE Interface").
_ADDED = ("AUTO_RESTART", "MAILBOX")
_WINDOW = "Memory_"


@dataclass(frozen=True)
class HandoffRegister:
    """One register as Vivado has it."""

    name: str
    offset: int
    size: int | None  #: bits; of the window of an array, bytes
    read_only: bool
    bits: int | None  #: bits that mean something; None where the handoff does not say


@dataclass(frozen=True)
class HandoffValue:
    """The registers of one argument: words that follow each other, or the window of an array."""

    name: str  #: without ``Memory_`` and the numbers of the words
    offset: int
    nwords: int
    read_only: bool
    bits: int | None
    window: bool = False
    nbytes: int | None = None  #: of a window; None where the handoff does not say

    @property
    def end(self) -> int:
        """The first byte behind it."""
        return self.offset + (self.nbytes or 4 if self.window else 4 * self.nwords)


def registers_of(block: ET.Element) -> Iterator[HandoffRegister]:
    """Yield the registers of an ADDRESSBLOCK that have an offset."""
    for register in block.findall("./REGISTERS/REGISTER"):
        said = _properties(register)
        if "ADDRESS_OFFSET" not in said:
            continue
        widths = [
            _properties(field).get("BIT_WIDTH", "")
            for field in register.findall("./FIELDS/FIELD")
            if not field.get("NAME", "").startswith("RESERVED")
        ]
        known = bool(widths) and all(width.isdigit() for width in widths)
        size = said.get("SIZE", "")
        yield HandoffRegister(
            register.get("NAME", ""),
            int(said["ADDRESS_OFFSET"], 0),
            int(size) if size.isdigit() else None,
            said.get("ACCESS") == "read-only",
            sum(map(int, widths)) if known else None,
        )


def values_of(registers: Iterable[HandoffRegister]) -> tuple[HandoffValue, ...]:
    """Put the words of an argument together (``in1_1`` and ``in1_2`` are ``in1``).

    Words of one value are 4 bytes apart; HLS puts two values at least 8 bytes apart.
    """
    runs: list[list[HandoffRegister]] = []
    for register in sorted(registers, key=lambda r: r.offset):
        if register.name in _CONTROL or register.name.startswith(_ADDED):
            continue
        if runs and _continues(runs[-1], register):
            runs[-1].append(register)
        else:
            runs.append([register])
    return tuple(_value(run) for run in runs)


def _continues(run: list[HandoffRegister], register: HandoffRegister) -> bool:
    stem, _, number = run[0].name.rpartition("_")
    return (
        bool(stem)
        and number == "1"
        and register.name == f"{stem}_{len(run) + 1}"
        and register.offset == run[-1].offset + 4
    )


def _value(run: list[HandoffRegister]) -> HandoffValue:
    first = run[0]
    if first.name.startswith(_WINDOW):
        name = first.name.removeprefix(_WINDOW)
        return HandoffValue(name, first.offset, 0, first.read_only, None, True, first.size)
    name = first.name.rpartition("_")[0] if len(run) > 1 else first.name
    bits = [register.bits for register in run if register.bits is not None]
    return HandoffValue(
        name,
        first.offset,
        max(len(run), -(-(first.size or 32) // 32)),
        first.read_only,
        sum(bits) if len(bits) == len(run) else None,
    )


def _properties(element: ET.Element) -> dict[str, str]:
    return {item.get("NAME", ""): item.get("VALUE", "") for item in element.findall("PROPERTY")}
