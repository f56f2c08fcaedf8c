"""Which words of an m_axi port a burst brings along (UG1399, "Preconditions and Limitations")."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from .array import Access
from .ir import Function, Instruction, names_in
from .operators import constant_in
from .order import may_skip

if TYPE_CHECKING:
    from .ir import Loop
    from .latency import Body
    from .region import Region
    from .target import Target

__all__ = ["alone", "asked_for", "is_in_place", "is_one_of_many", "is_single"]

#: Cycles in which a burst is asked for, before its first word.
_REQUEST = 7


def alone(target: Target, *, write: bool) -> int:
    """Return the cycles of a word that is read, or written, without a burst.

    Vitis HLS takes one more since 2023, and for a read three more since 2024 (seven reports).
    """
    release = target.release if target.tool == "vitis" else 0
    return 6 + (release >= 2023) + (not write) * (1 + 2 * (release >= 2024))


def is_single(region: Region, item: Instruction, access: Access) -> bool:
    """Whether a word of a bus is asked for alone, in the body of a pipeline.

    Its address is computed in each iteration, the data leave it out of some, it does not follow
    the one of the iteration before, or the same array is both read and written (`a[i] *= 2`: no
    burst may pass the other one). Of a loop that ends at the first of two bounds
    (`i < n && i < 64`), Vitis HLS says "Could not analyze the loop bounds" (2025.1). It makes
    bursts of what is volatile, too: "Inferring multiple bus burst read" (logs of 2020.2, 2022.1).
    """
    if is_in_place(region, item) or _is_left_out(region, item):
        return True
    if "volatile" in item.text and region.target.tool == "vivado":
        return True
    if _jumps(region, item, access):
        return True
    if region.target.tool == "vitis" and _has_two_bounds(region):
        return True
    symbols = [name for name, _ in access.address.terms if not name.startswith("loop ")]
    values = [region.function.values.get(name) for s in symbols for name in names_in(s)]
    return any(value is not None and value.block in region.blocks for value in values)


def _jumps(region: Region, item: Instruction, access: Access) -> bool:
    """Whether the words of one iteration do not begin behind those of the one before.

    So it is backwards, with a stride, or where a nest that became one loop goes on to another row.
    """
    loop, address = region.loop, access.address
    step = address.factor("loop " + loop.header) if loop is not None else 0
    if loop is None or not step:
        return False
    beside = [region.arrays.access(one) for one in _alike(region, item, item.op)]
    words = {one.address.constant for one in beside if one and one.address.terms == address.terms}
    if step < 0 or step > access.array.element_bytes * len(words):
        return True
    if may_skip(region.function, region.header, [item.block]):
        return False  # by a count: rows are as long as the iterations that do not
    for outer in region.nest[-2::-1]:
        taken, row = loop.taken, address.factor("loop " + outer.header)
        if taken is None or any(f"<%{outer.header}>" in name for name, _ in address.terms):
            return False  # a row as long as a variable says
        step *= taken.constant + 1
        if row != step or (row and taken.terms):
            return True
        loop = outer
    return False


def _has_two_bounds(region: Region) -> bool:
    loop = region.loop
    terms = loop.taken.terms if loop is not None and loop.taken is not None else ()
    return any(re.search(r" [us]min ", name) for name, _ in terms)


def is_one_of_many(region: Region, item: Instruction, access: Access) -> bool:
    """Whether a loop that is no pipeline reads its words one after another: Vivado HLS asks once.

    Its reports have two cycles for each of a constant number of them, and seven before the loop.
    """
    loop = region.loop
    if region.target.tool != "vivado" or access.write or loop is None or loop.inner:
        return False
    if loop.taken is None or loop.taken.terms:
        return False
    step = access.address.factor("loop " + loop.header)
    return step == access.array.element_bytes and not is_single(region, item, access)


def asked_for(body: Body, loop: Loop) -> int:
    """Return the cycles before a loop that is no pipeline in which it asks for a burst."""
    items = body.items(loop)
    loads = [item for item in items if item.op == "load"]
    if body.target.tool != "vivado" or loop.inner or not any(map(_of_bus(body), loads)):
        return 0
    region = body.region(items, loop.header, bursts=False)
    found = (node for node in region.nodes if node.access and node.access.array.kind == "m_axi")
    asks = any(node.access and is_one_of_many(region, node.item, node.access) for node in found)
    return _REQUEST if asks else 0


def _of_bus(body: Body) -> Callable[[Instruction], bool]:
    def is_of_bus(item: Instruction) -> bool:
        access = body.arrays.access(item)
        return access is not None and access.array.kind == "m_axi"

    return is_of_bus


def _alike(region: Region, item: Instruction, op: str) -> list[Instruction]:
    """Return the loads, or the stores, of the array that an instruction reads or writes."""
    base_of = region.arrays.base_of
    base = base_of(item.operands[-1])
    others = (one for block in region.blocks if block is not None for one in block.instructions)
    return [
        one for one in others if one.op == op and one.operands and base_of(one.operands[-1]) == base
    ]


def is_in_place(region: Region, item: Instruction) -> bool:
    """Whether the array that an instruction reads or writes is written or read beside it, too."""
    return bool(_alike(region, item, "load" if item.op == "store" else "store"))


def _is_left_out(region: Region, item: Instruction) -> bool:
    """Whether an iteration may do without any such access of an array, and not for its count."""
    same = [one.block for one in _alike(region, item, item.op)]
    if not may_skip(region.function, region.header, same):
        return False
    return not all(_counts(region.function, guard) for guard in _guards(region, item))


def _guards(region: Region, item: Instruction) -> list[Instruction | None]:
    """Return the conditions of the branches that lead to an instruction in its loop."""
    found: list[Instruction | None] = []
    function, block = region.function, item.block
    while block is not None and may_skip(function, region.header, [block]):
        before = function.predecessors[block.name]
        if len(before) != 1:
            return [*found, None]
        block = function.blocks[before[0]]
        last = block.instructions[-1]
        if len(block.successors) > 1:
            found.append(function.values.get(last.operands[0]) if last.operands else None)
    return found


def _counts(function: Function, guard: Instruction | None) -> bool:
    """Whether a condition compares loops' counters with a constant."""
    if guard is None or guard.op != "icmp" or constant_in(guard) is None or not guard.operands:
        return False
    known = function.known.get(guard.operands[0])
    return known is not None and known.expression.only_counts
