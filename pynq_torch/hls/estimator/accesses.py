"""What a load or a store costs, and what finds the bank that it goes to."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from . import large
from .array import Access, along, span
from .bursts import alone, is_in_place, is_one_of_many, is_single
from .cost import Cost
from .luts import choice_of
from .operators import divider, width_of

if TYPE_CHECKING:
    from .ir import Instruction
    from .region import Node, Region

__all__ = ["INDEX", "choice_behind", "cost_of_access", "in_turn", "reads_on", "remainders"]

#: Of a block RAM, and of a memory in LUTs: from the address, and to the data.
_MEMORY_NS, _LUT_NS = 3.25, 2.32
#: Bits of an index of which no more is known.
_WIDEST = 32
#: The indices of an address.
INDEX = re.compile(r", i\d+ (%[^ ,]+|-?\d+)")


def cost_of_access(region: Region, node: Node, access: Access) -> Cost:
    """Return the cycles and ns of a load or a store."""
    array, target = access.array, region.target
    delay = (_LUT_NS if array.in_luts else _MEMORY_NS) * target.speed
    chosen = 0.0 if access.write else choice_of(access.choices, target)
    if array.kind in ("scalar", "register"):
        return Cost(0, chosen)
    if array.kind == "m_axi":
        return _bus(region, node, access)
    slow = large.is_large(region, node, access)
    if access.write:
        return Cost(large.WRITE, delay, delay) if slow else Cost(0, delay)
    late = delay + chosen > target.budget  # in the cycle behind the one with the words
    cycles = (large.READ if slow else array.latency) + late
    return Cost(cycles, chosen if late else delay + chosen, delay)


def in_turn(region: Region, node: Node) -> list[tuple[object, int]]:
    """Return the port by which a volatile variable of a function is read, [] of what is no such.

    Each read has a state of its own in Vivado HLS, behind what was written (II=3 of three loops
    that read one three times, in a schedule of 2015.2). Of Vitis HLS no schedule is known.
    """
    access = node.access
    if access is None or access.write or "volatile" not in node.item.text:
        return []
    if region.target.tool == "vitis":
        return []
    is_own = access.array.local and access.array.kind == "scalar"
    return [((id(access.array), "volatile"), 1)] if is_own else []


def _bus(region: Region, node: Node, access: Access) -> Cost:
    full = 0.85 * region.target.budget
    if region.is_pipeline and not is_single(region, node.item, access):
        address = region.by_value.get(node.item.operands[-1])  # that of the first word, before it
        node.before = [(other, gap) for other, gap in node.before if other is not address]
        return Cost(0 if access.write else 1, full if access.write else 0.0, full)
    if is_one_of_many(region, node.item, access):
        node.before.clear()  # its address is that of the first word, before the loop
        return Cost(1, 0.0, full)
    wait = access.array.wait(region.target.bus_latency)
    # Where the address is known before the value, the request is made before it, too.
    early = access.write and is_in_place(region, node.item)
    return Cost(alone(region.target, write=access.write) - early + wait, 0.0, full)


def reads_on(region: Region, node: Node) -> bool:
    """Whether a loop reads a word of a burst: Vitis HLS does so a cycle after it is to go on.

    It fills its cycle, and what it has brought cannot be given back.
    """
    access, target = node.access, region.target
    if access is None or access.write or access.array.kind != "m_axi" or target.tool != "vitis":
        return False
    return bool(region.header) and not node.joined and node.cost.latency == 1


def choice_behind(region: Region, node: Node) -> Node | None:
    """Return the choice among the memories that a read takes, where it is apart from the read.

    Of a dimension that is cut completely the index is no part of the address: all memories are
    read while it is made, as in `tb[t][state]`, where each state comes from the one before.
    """
    access = node.access
    if access is None or access.write or access.array.kind != "memory" or node.joined:
        return None
    delay = choice_of(access.choices, region.target)
    pointer = region.function.values.get(node.item.operands[-1])
    names = _of_banks(pointer, access) if delay and pointer is not None else set()
    banks = [region.by_value[name] for name in names if name in region.by_value]
    gep = region.by_value.get(node.item.operands[-1])
    if pointer is None or gep is None or not banks:
        return None
    others = [region.by_value[one] for one in pointer.operands if one in region.by_value]
    waits = [(other, 0) for other in others if other not in banks]
    node.before = [*waits, *((other, gap) for other, gap in node.before if other is not gep)]
    late = node.cost.delay <= delay  # the choice was a cycle of its own
    node.cost = replace(
        node.cost, latency=node.cost.latency - late, delay=node.cost.entry or node.cost.delay
    )
    chosen = type(node)(replace(node.item, op="select", text="", operands=[]), Cost(0, delay))
    chosen.before = [(node, 0), *((bank, 0) for bank in banks)]
    return chosen


def _of_banks(pointer: Instruction, access: Access) -> set[str]:
    """Return the values that choose the bank alone, of those that an address is computed of."""
    cuts, size = access.array.cuts(), len(access.array.dimensions)
    indices = INDEX.findall(pointer.text) if pointer.op == "getelementptr" else []
    last = dict(zip(range(size - 1, -1, -1), reversed(indices), strict=False))
    return {
        name
        for dimension, name in last.items()
        if cuts.get(dimension, ("", 0))[0] == "complete" and name[0] == "%"
    }


def remainders(region: Region, node: Node, access: Access) -> list[Node]:
    """Return what computes the bank of an access, if no bits of its index are the bank.

    Of an array cut in turn (cyclic) by no power of two the bank is the remainder of a division.
    Schedules of Vitis HLS 2022.1 have it for each index ("urem i7 ..., i7 20", 11 states, which is
    a divider of 7 bits); the place in the bank is a product with the inverse, so that only a write,
    and the choice behind a read, wait for it. Vivado HLS has a second divider for the place.
    A plain counter has none: the remainder counts beside it (`phi_urem` in 30 schedules of 2017 to
    2023), but not where the loop is flattened with one around it.
    """
    found: list[Node] = []
    for bits, key in _odd_banks(region, access):
        divided = region.remainders.get(key)
        if divided is None:
            item = replace(node.item, op="urem", name="", text="", operands=[], incoming={})
            divided = type(node)(item, divider(bits, region.target))
            pointer = region.by_value.get(node.item.operands[-1])
            divided.before = [*pointer.before] if pointer is not None else []
            region.remainders[key] = divided
            found.append(divided)
        is_late = access.write or region.target.tool == "vivado"
        node.before.append((divided, 0 if is_late else -access.array.latency))
    return found


def _counts(name: str) -> bool:
    """Whether what moves an address is a loop's counter."""
    return name.startswith("loop ")


def _odd_banks(region: Region, access: Access) -> list[tuple[int, object]]:
    """Return the bits of each index whose bank a remainder is, with what the remainder is of."""
    array, known = access.array, region.function.known
    if array.kind != "memory":
        return []
    found: list[tuple[int, object]] = []
    parts = along(access.address, array)
    for dimension, (kind, factor) in array.cuts().items():
        if kind != "cyclic" or not factor & (factor - 1) or dimension >= len(parts):
            continue
        whole, terms, _ = parts[dimension]
        steps = {name: step % factor for name, step in terms.items() if step % factor}
        if not any(map(region.computes, steps)):
            continue  # before the loop, once
        if whole == 0 and [*steps.values()] == [1] and len(region.nest) < 2 and _counts(*steps):
            continue
        ends = span(whole, terms, known)
        bits = max((end.bit_length() for end in ends), default=0) or max(
            width_of(name, region.function, f"i{_WIDEST}") for name in steps
        )
        found.append((bits, (factor, whole % factor, *sorted(steps.items()))))
    return found
