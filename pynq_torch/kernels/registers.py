"""The arguments of a kernel, from the registers that the hardware handoff lists."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Layout", "Parameter", "blocks", "parameters_of"]

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


class Layout:
    """A run of registers as one piece of memory, so that one slice writes all of them.

    Parameters
    ----------
    run : sequence of Parameter
        From :func:`blocks`.
    cu : str
        The compute unit, for messages.

    Attributes
    ----------
    names : tuple of str
        The arguments in order.
    span : slice
        Where they are in ``mmio.array``, in words.
    """

    def __init__(self, run: Sequence[Parameter], cu: str = "kernel") -> None:
        self._cu = cu
        self.names = tuple(parameter.name for parameter in run)
        self._sizes = tuple(parameter.nbytes for parameter in run)
        first, end = run[0].offset, run[0].offset
        gaps = []
        for parameter in run:
            gaps.append(f"{parameter.offset - end}x")
            end = parameter.offset + parameter.nbytes
        self.span = slice(first >> 2, end >> 2)
        kinds = {4: "I", 8: "Q"}
        self._bytes = struct.Struct(
            "<" + "".join(f"{gap}{n}s" for gap, n in zip(gaps, self._sizes, strict=True))
        )
        self._integers = (
            struct.Struct(
                "<" + "".join(gap + kinds[n] for gap, n in zip(gaps, self._sizes, strict=True))
            )
            if kinds.keys() >= set(self._sizes)
            else None
        )

    def of_bytes(self, values: Sequence[bytes]) -> np.ndarray[Any, Any]:
        """Return the words for arguments that are encoded already."""
        return np.frombuffer(self._bytes.pack(*values), np.uint32)

    def of_integers(self, values: Sequence[int]) -> np.ndarray[Any, Any]:
        """Return the words for arguments as integers: scalars, and addresses for pointers.

        Raises
        ------
        OverflowError
            One of them is negative or has too many bits.
        TypeError
            There are more or fewer than arguments, or one is no integer.
        """
        if self._integers is None:
            raise TypeError(
                f"{self._cu}: {', '.join(self.names)} are not all integers of 32 or 64 bits"
            )
        try:
            return np.frombuffer(self._integers.pack(*values), np.uint32)
        except struct.error:
            self._explain(values)
            raise

    def _explain(self, values: Sequence[int]) -> None:
        """Raise what is wrong with `values`, by the argument's name."""
        if len(values) != len(self.names):
            names = ", ".join(self.names)
            raise TypeError(
                f"{self._cu}: found {len(values)} values; expected {len(self.names)}: {names}"
            )
        for name, nbytes, value in zip(self.names, self._sizes, values, strict=True):
            what = f"{self._cu}: argument {name}"
            if not isinstance(value, (int, np.integer)):
                raise TypeError(f"{what} is {type(value).__name__}; expected an int")
            if not 0 <= value < 1 << 8 * nbytes:
                raise OverflowError(f"{what} has {8 * nbytes} bits, unsigned; found {value}")
