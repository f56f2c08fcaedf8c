"""The registers that an s_axilite argument asks for."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pynq_torch.errors import InterfaceError

from .cpptypes import CType
from .directives import Pragma
from .interface import Partition
from .registers import Slot, is_renamed

__all__ = ["Port", "array_slots", "member_slots", "partition_of", "pragmas_on", "register_name"]


@dataclass(frozen=True)
class Port:
    """An argument as the source declares and uses it; index -1 is the return value."""

    name: str
    index: int
    ctype: CType
    direction: str
    unknown: str = ""  # why the type is not known

    @property
    def by_value(self) -> bool:
        """Whether it is no pointer, reference or array."""
        return not (self.ctype.pointer or self.ctype.reference or self.ctype.dims)


def register_name(port: Port, tool: str) -> str:
    """Return the name of a port's register: HLS appends ``_V`` or ``_r`` to some."""
    name = port.name + ("_V" if tool == "vivado" and port.ctype.arbitrary else "")
    return name + "_r" if is_renamed(name, tool) else name


def member_slots(port: Port, tool: str, valid: bool) -> list[Slot]:
    """Return a slot for each member of a struct, and of the structs within it."""

    def walk(prefix: str, ctype: CType) -> Iterator[Slot]:
        for name, member in ctype.fields:
            full = f"{prefix}_{name}"
            if member.form == "struct":
                yield from walk(full, member)
                continue
            if tool == "vivado" and member.arbitrary:
                full += "_V"
            if member.dims:
                length, storage = math.prod(member.dims), member.storage_bits
                yield Slot(full, port.name, "memory", member.bits, storage_bits=storage,
                           length=length, direction=port.direction)  # fmt: skip
            else:
                yield Slot(full, port.name, port.direction, member.bits, valid)

    return list(walk(port.name, port.ctype))


def array_slots(port: Port, name: str, pieces: int, offset: int | None, valid: bool) -> list[Slot]:
    """Return the windows or registers of an array that is cut into `pieces`."""
    length, bits = math.prod(port.ctype.dims), port.ctype.bits
    names = [name] if pieces == 1 else [f"{name}_{bank}" for bank in range(pieces)]
    if 1 < pieces == length:
        return [Slot(item, port.name, port.direction, bits, valid) for item in names]
    window = -(-length // pieces)
    place, storage = offset if pieces == 1 else None, port.ctype.storage_bits
    return [
        Slot(item, port.name, "memory", bits, valid, place, storage, window, port.direction)
        for item in names
    ]


def partition_of(
    port: Port, pragmas: Sequence[Pragma], number: Callable[[str | None], int | None]
) -> Partition | None:
    """Return how ARRAY_PARTITION cuts the array into pieces, None where it stays whole.

    Raises
    ------
    InterfaceError
        Its dimension or factor is no number, or one that the array does not have.
    """
    dims = port.ctype.dims
    for pragma in pragmas_on(pragmas, "array_partition", port.name):
        written = re.findall(r"(\w+)\s*=\s*([^\s,;]+)", pragma.text)
        options = {key.lower(): value for key, value in written}
        dim = number(options.get("dim", "1"))
        if dim is None or not 0 <= dim <= len(dims):
            raise InterfaceError(
                f"{pragma.where}: dim={options['dim']} in ARRAY_PARTITION of {port.name!r}; "
                f"expected a number from 0 to {len(dims)}"
            )
        size = math.prod(dims) if dim == 0 else dims[dim - 1]
        kind = re.search(r"\b(cyclic|block)\b", pragma.text, re.IGNORECASE)
        if kind is None:
            return Partition("complete", size, pragma.where) if size > 1 else None
        factor = number(options.get("factor"))
        if factor is None or factor < 1:
            raise InterfaceError(
                f"{pragma.where}: factor={options.get('factor', '')} in ARRAY_PARTITION of "
                f"{port.name!r}; expected a number of at least 1"
            )
        pieces = min(factor, size)
        return Partition(kind[1].lower(), pieces, pragma.where) if pieces > 1 else None
    return None


def pragmas_on(pragmas: Sequence[Pragma], keyword: str, variable: str) -> list[Pragma]:
    """Return the pragmas `keyword` with ``variable=`` an argument."""
    pattern = re.compile(rf"\bvariable\s*=\s*[&*]?{re.escape(variable)}\b", re.IGNORECASE)
    return [
        pragma
        for pragma in pragmas
        if pragma.text.lower().startswith(keyword) and pattern.search(pragma.text)
    ]
