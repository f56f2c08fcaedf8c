"""The processor's address map, as a hardware handoff has it."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from dataclasses import dataclass

from pynq_torch.errors import HandoffError

#: Where the processor reaches the PL: M_AXI_GP0 and M_AXI_GP1 (UG585, table 4-1).
_PL_FIRST, _PL_LAST = 0x4000_0000, 0xBFFF_FFFF
_PAGE = 4096


@dataclass(frozen=True)
class Slave:
    """One AXI-Lite (or AXI4) slave interface of an IP in the processor's address map."""

    interface: str
    base: int
    nbytes: int
    block: str  #: the address block's name
    memory: bool  #: MEMTYPE="MEMORY"

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.base + self.nbytes


def ranges_of(
    file: str, modules: list[ET.Element], names: dict[str, str]
) -> dict[str, list[Slave]]:
    """Return the address ranges of each IP by its full name.

    `names` are the full names by instance; `file` is for messages.

    Raises
    ------
    HandoffError
        A range is none that Vivado gives to an IP in the PL, or two IPs answer at one address.
    """
    processor = {m.get("INSTANCE", "") for m in modules if _is_processor(m)}
    found: dict[str, list[Slave]] = {}
    for module in filter(_is_processor, modules):
        for item in module.findall("./MEMORYMAP/MEMRANGE"):
            instance = item.get("INSTANCE", "")
            if instance in processor:
                continue  # its own DDR and on-chip memory
            target = names.get(instance, instance)
            slave = _slave(file, target, item)
            if slave not in found.setdefault(target, []):
                found[target].append(slave)
    _check_apart(file, found)
    return found


def _is_processor(module: ET.Element) -> bool:
    return module.get("MODTYPE") == "processing_system7"


def _slave(file: str, target: str, item: ET.Element) -> Slave:
    interface = item.get("SLAVEBUSINTERFACE", "")
    shown = {name: item.get(name, "") for name in ("BASEVALUE", "HIGHVALUE")}
    try:
        base, high = (int(text, 16) for text in shown.values())
    except ValueError:
        problem = "expected two hexadecimal numbers"
    else:
        problem = _problem(base, high)
    if problem:
        raise HandoffError(
            f"{file} is damaged: {_label(target, interface)} has the address range "
            f"{shown['BASEVALUE'] or 'nothing'} to {shown['HIGHVALUE'] or 'nothing'}; {problem}. "
            "Copy the .hwh of the Vivado run again."
        )
    return Slave(
        interface,
        base,
        high - base + 1,
        item.get("ADDRESSBLOCK", ""),
        item.get("MEMTYPE") == "MEMORY",
    )


def _problem(base: int, high: int) -> str:
    """Say what is wrong with a range; "" where nothing is."""
    nbytes = high - base + 1
    if nbytes <= 0:
        return "expected an end behind the start"
    if base < _PL_FIRST or high > _PL_LAST:
        return (
            f"expected a range within 0x{_PL_FIRST:08x} to 0x{_PL_LAST:08x}, where the processor "
            "reaches the PL (UG585, table 4-1)"
        )
    # A range smaller than a page begins on a multiple of its own size, as Vivado places it.
    step = min(1 << (nbytes - 1).bit_length(), _PAGE)
    if nbytes % 4 or base % max(step, 4):
        return f"expected whole 32-bit words that begin on a multiple of {max(step, 4)} bytes"
    return ""


def _check_apart(file: str, found: dict[str, list[Slave]]) -> None:
    """Raise where two interfaces answer at one address: only one of them can."""
    every = sorted(
        ((slave, target) for target, slaves in found.items() for slave in slaves),
        key=lambda item: item[0].base,
    )
    reaching: tuple[Slave, str] | None = None
    for before, after in itertools.pairwise(every):
        if reaching is None or before[0].end > reaching[0].end:
            reaching = before
        same = (reaching[1], reaching[0].interface) == (after[1], after[0].interface)
        if after[0].base >= reaching[0].end or same:
            continue  # one interface may have several address blocks
        raise HandoffError(
            f"{file}: two IPs answer at 0x{after[0].base:08x}: "
            f"{_described(*reaching)} and {_described(*after)}. Give each a range of its own in "
            "Vivado's Address Editor and export the .hwh again."
        )


def _described(slave: Slave, target: str) -> str:
    return f"{_label(target, slave.interface)} (0x{slave.base:08x}-0x{slave.end - 1:08x})"


def _label(target: str, interface: str) -> str:
    return f"{target}.{interface}" if interface else target or "an IP without a name"
