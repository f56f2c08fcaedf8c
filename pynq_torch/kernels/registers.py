"""The arguments of a kernel, from the registers that the hardware handoff lists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

__all__ = ["Parameter", "blocks", "parameters_of"]

#: Block control, never arguments (names as in the hwh).
CONTROL = frozenset({"CTRL", "GIER", "IP_IER", "IP_ISR"})
_BITS = re.compile(r"Bit (\d+) to (\d+) of (\w+)")


@dataclass(frozen=True)
class Parameter:
    """One argument as it is seen from outside.

    Parameters
    ----------
    name : str
        The hwh's name, without the suffixes of the words of a wide argument (``in1`` for
        ``in1_1`` and ``in1_2``).
    offset : int
        Of its first register, in bytes.
    nwords : int
        32-bit registers.
    kind : {"in", "out", "memory"}
        Written by the program, read by it, or a window of an array.
    nbytes : int
        Of the window of an array; otherwise ``4 * nwords``.
    """

    name: str
    offset: int
    nwords: int
    kind: str
    nbytes: int

    @property
    def names(self) -> tuple[str, ...]:
        """What a program may call it: HLS adds ``_r`` to names that are words of Verilog."""
        short = self.name.removesuffix("_r")
        return (self.name,) if short == self.name else (self.name, short)


def parameters_of(registers: dict[str, Any]) -> tuple[Parameter, ...]:
    """Return the arguments behind the registers of an ``ip_dict`` entry, in order of offset.

    Parameters
    ----------
    registers : dict
        ``ip_dict[name]["registers"]``.
    """
    listed = {name: entry for name, entry in registers.items() if name not in CONTROL}
    first: dict[str, list[tuple[str, int]]] = {}
    for name, entry in sorted(listed.items(), key=lambda item: item[1]["address_offset"]):
        first.setdefault(_argument(name, entry, listed), []).append((name, entry["address_offset"]))
    found = []
    for argument, words in first.items():
        offset = words[0][1]
        entry = listed[words[0][0]]
        size = int(entry.get("size", 32))
        if argument.startswith("Memory_"):
            # The size of a window is in bytes, that of a register in bits.
            found.append(Parameter(argument.removeprefix("Memory_"), offset, 0, "memory", size))
            continue
        kind = "out" if entry.get("access") == "read-only" else "in"
        nwords = max(len(words), -(-size // 32))
        found.append(Parameter(argument, offset, nwords, kind, 4 * nwords))
    return tuple(found)


def _argument(name: str, entry: dict[str, Any], listed: dict[str, Any]) -> str:
    """Return the argument that a register is a word of."""
    stem, _, digit = name.rpartition("_")
    if not stem or not digit.isdigit() or digit == "0":
        return name
    for field in (entry.get("fields") or {}).values():
        match = _BITS.match(field.get("description", ""))
        if match:
            return stem if int(match[2]) or f"{stem}_2" in listed else name
    partner = f"{stem}_2" if digit == "1" else f"{stem}_1"
    near = listed.get(partner, {}).get("address_offset", -100)
    return stem if abs(near - entry["address_offset"]) == 4 else name


def blocks(parameters: tuple[Parameter, ...]) -> tuple[tuple[Parameter, ...], ...]:
    """Group the inputs into runs that one slice can write.

    A run ends where a register of another kind lies between: a write there could acknowledge an
    output or change an array. The unused words between two inputs are reserved, and take a zero.
    """
    runs: list[list[Parameter]] = [[]]
    for parameter in sorted(parameters, key=lambda p: p.offset):
        if parameter.kind == "in":
            runs[-1].append(parameter)
        elif runs[-1]:
            runs.append([])
    return tuple(tuple(run) for run in runs if run)
