"""Addresses of arrays with rows, as Vitis HLS computes them: an index times the words of a row.

It goes from index to index. Rows of a power of two are wires, and their sum an adder; of two such
powers (3, 5, 6, 7, ...) product and sum are one adder of three numbers (2,684 addresses in public
schedules of Vivado HLS 2018 and Vitis HLS 2020 to 2025, against 1,133 with two adders); other
rows are a product, which a DSP block takes with the sum behind it (1,684) unless several columns
of a row are read. Vivado HLS adds to a register where a loop counts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from math import ceil, prod
from typing import TYPE_CHECKING

from .accesses import INDEX
from .array import along
from .cost import Cost
from .delays import adder
from .dsp import LEAST_CONSTANT, multiplier, signed_digits
from .macs import in_block, sum_in_block
from .operators import width_of
from .three import delay_of

if TYPE_CHECKING:
    from .array import Access
    from .region import Node, Region

__all__ = ["compute_rows"]

#: Bits of an index of which nothing is known.
_ANY_BITS = 32

#: The indices up to a row, and its words.
_Row = tuple[tuple[object, ...], int]


@dataclass(frozen=True)
class _Index:
    """An index of an address: its name or number, what it is of, and the words it counts in."""

    name: str
    key: object
    words: int
    #: Whether it changes in the region.
    varies: bool

    @property
    def is_added(self) -> bool:
        """Whether a row needs an addition for it; bits that the row has not are wires."""
        return not self.name.isdigit() or int(self.name) >= (self.words & -self.words)


@dataclass
class _Address:
    """An address that a region computes."""

    node: Node
    indices: list[_Index]
    bits: int

    def rows(self) -> dict[int, _Row]:
        """Return before which index it is multiplied, and what of it by what."""
        keys = tuple(one.key for one in self.indices)
        varies = [at for at, one in enumerate(self.indices) if one.varies]
        return {
            at: (keys[:at], one.words)
            for at, one in enumerate(self.indices)
            if signed_digits(one.words) > 2 and varies and varies[0] < at
        }


def compute_rows(region: Region) -> None:
    """Give the addresses of a region's accesses the time and the DSP blocks of their products."""
    if region.target.tool != "vitis":
        return
    found = {id(one.node): one for one in _addresses(region)}
    columns: dict[_Row, set[object]] = defaultdict(set)
    for one in found.values():
        keys = tuple(index.key for index in one.indices)
        for at, row in one.rows().items():
            columns[row].add(keys[at:])
    made: list[Node] = []
    products: dict[_Row, Node] = {}
    for node in region.nodes:
        if (address := found.get(id(node))) is not None:
            made += _computed(region, address, columns, products)
        made.append(node)
    region.nodes = made


def _addresses(region: Region) -> list[_Address]:
    found = []
    for node in region.nodes:
        if node.access is None or node.joined or not node.item.operands:
            continue
        gep = region.by_value.get(node.item.operands[-1])
        waits = gep is not None and any(other is gep for other, _ in node.before)
        if gep is None or gep.item.op != "getelementptr" or not waits:
            continue
        indices = _indices(region, gep, node.access)
        if len(indices) > 1:
            bits = max(node.access.array.words - 1, 1).bit_length()
            found.append(_Address(gep, indices, bits))
    return found


def _indices(region: Region, gep: Node, access: Access) -> list[_Index]:
    """Return the indices of an address within its memory; none where it is of a struct's member."""
    names, sizes = INDEX.findall(gep.item.text), access.array.dimensions
    arrays = gep.item.text.partition(", ptr ")[0].count("[")
    if len(sizes) < 2 or len(names) < len(sizes) or len(names) != arrays + 1:
        return []
    cuts, parts = access.array.cuts(), along(access.address, access.array)
    found = []
    for at, (name, size) in enumerate(zip(names[-len(sizes) :], sizes, strict=True)):
        kind, factor = cuts.get(at, ("", 1))
        constant, steps, is_odd = parts[at]
        if kind == "complete":
            continue  # it chooses the memory
        key: object = name
        if not is_odd and kind in ("", "cyclic") and not any(n % factor for n in steps.values()):
            key = constant // factor, tuple(sorted(steps.items()))
        found.append(_Index(name, key, ceil(size / factor), name in region.by_value))
    return found


def _computed(
    region: Region, address: _Address, columns: dict[_Row, set[object]], products: dict[_Row, Node]
) -> list[Node]:
    """Let an address wait for its last sum; return what it needs before, less what is there."""
    rows, gep = address.rows(), address.node
    made: list[Node] = []
    before: Node | None = None
    sums = False
    for at, index in enumerate(address.indices):
        own = region.by_value.get(index.name)
        if (row := rows.get(at)) is not None:
            if row not in products:
                alone = len(columns[row]) == 1
                products[row] = _product(region, address, at, before, alone=alone)
                made.append(products[row])
            before = products[row]
        cost = _sum(region, address, at, before, sums=sums)
        if cost is not None:
            before = _step(gep, "add", cost, before, own)
            made.append(before)
        before, sums = before or own, sums or index.name != "0"
    indices = [region.by_value.get(index.name) for index in address.indices]
    gep.before = [(one, gap) for one, gap in gep.before if one not in indices]
    gep.before += [(before, 0)] if before is not None else []
    gep.cost = Cost()
    return made


def _step(gep: Node, op: str, cost: Cost, *before: Node | None) -> Node:
    node = type(gep)(replace(gep.item, op=op, text="", operands=[]), cost)
    node.before = [(one, 0) for one in before if one is not None]
    return node


def _product(
    region: Region, address: _Address, at: int, before: Node | None, *, alone: bool
) -> Node:
    """Return what multiplies the indices before one, in a block with the sum if it is `alone`."""
    names = [one.name for one in address.indices[:at] if one.name[0] == "%"]
    bits = sum(width_of(name, region.function, f"i{_ANY_BITS}") for name in names)
    if rows := prod(one.words for one in address.indices[:at]):
        bits = min(bits, max(rows - 1, 1).bit_length())
    own = address.indices[at].words.bit_length() + 1  # as of every constant, with its sign
    cost = multiplier(min(bits, own), max(bits, own), region.target, bits + own)
    adds = address.indices[at].is_added
    if alone and adds and (cost.dsp == 1 or (not cost.dsp and bits * own >= LEAST_CONSTANT)):
        cost = in_block(Cost(dsp=1, core="mul"))
    return _step(address.node, "mul", replace(cost, mac=False, widths=f"{own}x{bits}"), before)


def _sum(
    region: Region, address: _Address, at: int, before: Node | None, *, sums: bool
) -> Cost | None:
    """Return what it costs to add an index to those before it; None where nothing is done.

    `before` is what makes these in the region, and `sums` says whether there are any.
    """
    target, index = region.target, address.indices[at]
    plain = target.speed * adder(address.bits)
    if before is not None and before.item.op == "mul" and before.cost.dsp and index.is_added:
        joined = before.cost.latency == 2 and not before.cost.delay
        return sum_in_block(Cost(), target) if joined else Cost(0, plain)
    if before is not None and signed_digits(index.words) == 2:
        both = delay_of(address.bits, target)
        return Cost(0, both if index.is_added else plain)
    if before is None:  # a constant row is wires if it has a power of two of words
        adds = index.varies and signed_digits(index.words) > 1
    else:
        adds = index.name[0] == "%" or before.item.op == "mul"
    return Cost(0, plain) if sums and adds and index.is_added else None
