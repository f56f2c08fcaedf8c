"""DSP blocks of the products in addresses: an index times the words of a row.

Schedules of Vivado HLS 2018.2 have `mul i11 %results_load, 50` and an addition of the column, both
in one DSP block, for each row that is read from memory (`sums[results[i]][4]`: 48 of 50; columns 0
and 1 need no addition there). Counts of loops are not multiplied: a register is added to.
"""

from __future__ import annotations

from collections import defaultdict
from math import ceil

from .dsp import multiplier, signed_digits
from .operators import width_of
from .region import Region

__all__ = ["address_blocks"]

#: Bits of an index of which nothing is known.
_WIDEST = 32
#: A column, in words, up to which there is no addition that a block could take.
_NEAR = 1


def address_blocks(region: Region) -> int:
    """Return the DSP blocks that find rows by values which a region computes."""
    if region.target.tool != "vivado":
        return 0
    columns: dict[tuple[str, int, int], set[object]] = defaultdict(set)
    for node in region.nodes:
        access = node.access
        if access is None or access.array.kind != "memory" or access.array.cuts():
            continue
        size, address = access.array.element_bytes, access.address
        rows = [
            (name, factor // size)
            for name, factor in address.terms
            if not name.startswith("loop ") and region.computes(name) and factor % size == 0
        ]
        rows = [(name, words) for name, words in rows if signed_digits(words) > 2]
        if len(rows) != 1:
            continue
        ((name, words),) = rows
        rest = tuple(term for term in address.terms if term[0] != name)
        bits = max(ceil(access.array.words / abs(words)) - 1, 1).bit_length()
        columns[name, words, bits].add((address.constant // size, rest))
    return sum(_blocks(region, *row, found) for row, found in columns.items())


def _blocks(region: Region, name: str, words: int, bits: int, columns: set[object]) -> int:
    """Return the blocks of a product; a sum takes it where nothing else does."""
    bits = min(bits, width_of(name, region.function, f"i{_WIDEST}")) + 1
    own = abs(words).bit_length() + 1
    cost = multiplier(min(bits, own), max(bits, own), region.target, bits + own)
    (column, *more) = columns
    constant, rest = column if isinstance(column, tuple) else (0, ())
    is_added = not more and (rest or constant > _NEAR)
    return max(cost.dsp, int(cost.mac and bool(is_added)))
