"""Offsets and names of AXI4-Lite registers, as the HLS tools give them.

The tools document only that offsets are listed in the generated driver header (UG1399, "S_AXILITE
Interface"); the rules here were inferred from published pairs of source and header.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pynq_torch.errors import InterfaceError

from .interface import Register

__all__ = ["Placement", "Slot", "check_overlaps", "is_renamed", "lay_out", "window_bytes"]

# Words that Verilog, VHDL or the generated drivers reserve; HLS appends _r to a port so called.
_HDL_WORDS = """
    abs access after alias all and architecture array assert attribute begin block body buffer bus
    component configuration constant disconnect downto elsif end entity exit file function generate
    generic group guarded impure in inertial inout is label library linkage literal loop map mod
    nand new next nor not null of on open or others out package port postponed procedure process
    pure range record reject rem report rol ror select severity shared signal sla sll sra srl
    subtype then to transport type unaffected units until use variable wait when with xnor xor
    always assign buf casex casez cmos deassign defparam edge endcase endfunction endmodule
    endtask event force forever fork initial input integer join macromodule medium module
    negedge nmos notif0 notif1 output parameter pmos posedge primitive pulldown pullup rcmos real
    realtime reg release repeat rnmos rpmos rtran scalared small specify specparam strong0 strong1
    supply0 supply1 table task time tran tri tri0 tri1 triand trior trireg vectored wand weak0
    weak1 wire wor length value
"""
_RESERVED = frozenset(_HDL_WORDS.split())
_RESERVED_IN_VITIS = frozenset({"start"})


def is_renamed(name: str, tool: str) -> bool:
    """Return whether `tool` appends ``_r`` to a port called `name`."""
    lower = name.lower()
    return lower in _RESERVED or (tool == "vitis" and lower in _RESERVED_IN_VITIS)


@dataclass(frozen=True)
class Slot:
    """One value that needs registers in a bundle.

    Parameters
    ----------
    name : str
        Register name, ``"ap_return"`` for the return value.
    argument : str
        The C argument, ``"return"`` for the return value.
    shape : {"in", "out", "inout", "memory"}
        What the registers look like.
    bits : int
        Width of the value; of an element, for a memory.
    valid : bool
        Whether an output has an ap_vld word.
    offset : int or None
        Fixed by ``offset=`` in the pragma.
    storage_bits, length : int
        Memory only: the lane an element takes, and how many there are.
    direction : str
        Memory only: what the kernel does with it.
    """

    name: str
    argument: str
    shape: str
    bits: int
    valid: bool = True
    offset: int | None = None
    storage_bits: int = 32
    length: int = 1
    direction: str = "in"


@dataclass(frozen=True)
class Placement:
    """The offsets of a slot's registers."""

    offset: int | None = None
    offset_out: int | None = None
    offset_valid: int | None = None


def window_bytes(length: int, storage_bits: int) -> int:
    """Return the span of a memory of `length` elements that take `storage_bits` each."""
    words = max(2, -(-length * storage_bits // 32))
    return 4 << (words - 1).bit_length()


class _Map:
    """The occupied ranges of one AXI4-Lite slave."""

    def __init__(self, start: int, first_fit: bool) -> None:
        self.start = start
        self.first_fit = first_fit
        self.cursor = start
        self.taken: list[tuple[int, int]] = []

    def reserve(self, offset: int, nbytes: int) -> int:
        self.taken.append((offset, offset + nbytes))
        self.taken.sort()
        self.cursor = max(self.cursor, offset + nbytes)
        return offset

    def place(self, nbytes: int, align: int) -> int:
        candidate = self.start if self.first_fit else self.cursor
        candidate = -(-candidate // align) * align
        for begin, end in self.taken:
            if candidate + nbytes <= begin:
                break
            if candidate < end:
                candidate = -(-end // align) * align
        return self.reserve(candidate, nbytes)


def lay_out(
    slots: Sequence[Slot],
    *,
    tool: str,
    control: bool,
    data64: bool = False,
    auto_restart: bool = False,
) -> tuple[tuple[Register, ...], dict[str, Placement]]:
    """Give the slots of one bundle their registers.

    Parameters
    ----------
    slots : sequence of Slot
        ``ap_return`` first, then in order of C arguments.
    tool : {"vitis", "vivado"}
        Vitis HLS gives an output of 32 bits 16 bytes and fills holes first-fit; Vivado HLS
        gives it 8 and never goes back.
    control : bool
        Whether AP_CTRL and the interrupt registers are in this bundle.
    data64 : bool
        A 64-bit AXI4-Lite data bus (``s_axilite_data64``).
    auto_restart : bool
        The auto-restart counter of Vitis HLS 2024.1 and later is at 0x10.

    Returns
    -------
    registers : tuple of Register
        In order of offset.
    placements : dict of str to Placement
        By slot name.
    """
    word = 8 if data64 else 4
    registers = _control(word, auto_restart) if control else []
    space = _Map(max(4, len(registers)) * word, first_fit=tool == "vitis")
    placements: dict[str, Placement] = {}
    for slot in sorted(slots, key=lambda slot: slot.offset is None):
        found, placement = _place(slot, space, word, tool)
        registers += found
        placements[slot.name] = placement
    return tuple(sorted(registers, key=lambda register: register.offset)), placements


def _control(word: int, auto_restart: bool) -> list[Register]:
    names = ("AP_CTRL", "GIE", "IER", "ISR")
    registers = [
        Register(name, index * word, 32, "inout", "control", word)
        for index, name in enumerate(names)
    ]
    if auto_restart:
        registers.append(Register("AUTO_RESTART_COUNTER", 4 * word, 32, "in", "control", word))
    return registers


def check_overlaps(
    bundle: str, registers: Sequence[Register], offset_at: Mapping[str, str]
) -> None:
    """Refuse registers of one slave that share an address: a directive put one over another.

    Parameters
    ----------
    bundle : str
        The AXI4-Lite slave.
    registers : sequence of Register
        In order of offset.
    offset_at : mapping of str to str
        File and line of the directive that gave an argument its offset, by argument.

    Raises
    ------
    InterfaceError
        Two of them overlap.
    """
    for one, other in itertools.combinations(registers, 2):
        if other.offset >= one.offset + one.nbytes:
            continue
        # The later directive is the one to mend; AP_CTRL and its kin have none.
        first, second = sorted((one, other), key=lambda item: item.role != "control")
        if not offset_at.get(second.argument or ""):
            first, second = second, first
        where = offset_at.get(second.argument or "", "")
        raise InterfaceError(
            f"{where}: argument {second.argument!r} has offset={second.offset:#x} in s_axi_{bundle}"
            f", where {_owner(first)} is at {first.offset:#x} to "
            f"{first.offset + first.nbytes - 1:#x}. Give it another offset, or none"
        )


def _owner(register: Register) -> str:
    return register.name if register.role == "control" else f"argument {register.argument!r}"


def _place(slot: Slot, space: _Map, word: int, tool: str) -> tuple[list[Register], Placement]:
    data = word * -(-max(slot.bits, 1) // (8 * word))

    def put(nbytes: int, align: int = word) -> int:
        if slot.offset is not None:
            return space.reserve(slot.offset, nbytes)
        return space.place(nbytes, align)

    if slot.shape == "memory":
        nbytes = max(window_bytes(slot.length, slot.storage_bits), 2 * word)
        offset = put(nbytes, nbytes)
        register = Register(
            slot.name, offset, slot.bits, slot.direction, "memory", nbytes, slot.argument
        )
        return [register], Placement(offset)
    # A value, and the word that is its ap_vld if it is an output.
    one = data + word
    split, output = slot.shape == "inout", slot.shape != "in"
    result = slot.name == "ap_return"
    # Vitis HLS gives an output the room of an inout, with and without ap_vld; not so ap_return.
    double = split or (output and not result and tool == "vitis")
    offset = put(2 * one if double else one)
    last = offset + one if split else offset
    name = slot.name + "_o" if split else slot.name
    direction = "out" if output else "in"
    registers = [Register(name, last, slot.bits, direction, "data", data, slot.argument)]
    if split:
        read = Register(slot.name + "_i", offset, slot.bits, "in", "data", data, slot.argument)
        registers.insert(0, read)
    valid = last + data if output and slot.valid and not result else None
    if valid is not None:
        registers.append(Register(f"{name}_ctrl", valid, 1, "out", "valid", word, slot.argument))
    return registers, Placement(offset, last if split else None, valid)
