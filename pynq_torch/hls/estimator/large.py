"""Memories of so many block RAMs that Vivado HLS has registers between them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import ceil, prod
from typing import TYPE_CHECKING

from .ir import bits_of, split_types

if TYPE_CHECKING:
    from .array import Access
    from .region import Node, Region

__all__ = ["READ", "WRITE", "is_large"]

#: Of how many bits a memory is a large one, and the cycles that it then takes.
_BITS, READ, WRITE = 1 << 24, 3, 1
_ELEMENT = re.compile(r"getelementptr (?:inbounds )?(.+?), ptr [^ ,]+, i\d+ 0((?:, i\d+ [^ ,]+)+)")
_ARRAY = re.compile(r"\[(\d+) x (.*)\]$")


def is_large(region: Region, node: Node, access: Access) -> bool:
    """Whether a word is in a memory that takes more cycles, in a struct too.

    In the schedules of six repositories memories of 19 million bits or more are read in four
    states, and written in two (in two of them). With 16.8 million (2 to the 24th) or fewer it is
    two and one, in all others. Vitis HLS has no such memories: it reads four million words in two.
    """
    array = access.array
    if region.target.tool != "vivado" or array.plan.latency is not None:
        return False
    memories, elements = array.banks()
    depth = ceil(array.words / (memories * elements))
    if array.words:
        return depth * elements * array.element_bits > _BITS
    pointer = region.function.values.get(node.item.operands[-1])
    return pointer is not None and _bits_around(pointer.text, region.arrays.structs) > _BITS


def _bits_around(text: str, structs: Mapping[str, str]) -> int:
    """Return the bits of the array in a struct that an address is in; 0 where it is in none."""
    found = _ELEMENT.search(text)
    if found is None:
        return 0
    kind, sizes = found[1], list[int]()
    for index in re.findall(r" (\S+?)(?=,|$)", re.sub(r"i\d+ ", "", found[2])):
        if match := _ARRAY.match(kind):
            sizes.append(int(match[1]))
            kind = match[2]
        elif index.isdigit():
            parts = split_types(structs.get(kind, kind).strip("<>").strip()[1:-1])
            kind = parts[int(index)] if int(index) < len(parts) else ""
    return prod(sizes) * bits_of(kind) if sizes else 0
