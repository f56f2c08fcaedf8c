"""Whether loops that LOOP_MERGE makes one would compute the same as one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .array import Access
from .ir import Instruction, Loop
from .scev import Expression

if TYPE_CHECKING:
    from .latency import Body
    from .region import Region

__all__ = ["clash", "places", "reads_words", "side_effect"]

#: Iterations of a nest that are looked at one after another; beyond them only steps are compared.
_MOST = 1 << 14


def reads_words(region: Region) -> bool:
    """Whether a loop takes words out of a FIFO."""
    nodes = [node for node in region.nodes if node.stream]
    return any(node.item.op == "load" or node.item.callee.endswith("read") for node in nodes)


def clash(body: Body, earlier: tuple[Loop, Region], later: tuple[Loop, Region]) -> str:
    """Return what of the later loop waits for a later iteration of the earlier one; or empty."""
    (first, before), (second, after) = earlier, later
    made = {node.item.name for node in before.nodes if node.item.name}
    made = _follow(body, made, first, second)
    if any(made.intersection(node.item.operands) for node in after.nodes):
        return "it uses a value that is known only when that loop has ended"
    for one in _accesses(before):
        for other in _accesses(after):
            if one.array is not other.array or not (one.write or other.write):
                continue
            if (order := _in_order((first, one), (second, other))) is not True:
                does = "writes" if other.write else "reads"
                did = ("may " if order is None else "") + ("write" if one.write else "read")
                ending = "s" if order is False else ""
                return (
                    f"it {does} elements of {one.array.name!r} that a later iteration there "
                    f"{did}{ending}"
                )
    both = [{node.stream for node in region.nodes if node.stream} for region in (before, after)]
    if both[0] & both[1]:
        return "both pass words through one FIFO"
    called = [[body.used(i) for i in _calls(body, region)] for region in (before, after)]
    used = [
        {name for pair in found for name in pair[0] | pair[1]} | _bases(region)
        for found, region in zip(called, (before, after), strict=True)
    ]
    wrote = {name for found in called for pair in found for name in pair[1]}
    if shared := wrote & used[0] & used[1]:
        return f"functions that they call use {body.arrays.array(min(shared)).name!r}"
    return ""


def side_effect(body: Body, between: Sequence[Instruction], regions: Sequence[Region]) -> str:
    """Return what code between loops would do again in each iteration; or empty.

    ``a=b`` is allowed, ``a=a+1`` is not (UG1399).
    """
    loaded = {body.arrays.base_of(i.operands[-1]) for i in between if i.op == "load" and i.operands}
    used = {name for region in regions for name in _bases(region)}
    for item in between:
        if item.op == "call" and item.callee in body.kernel.module.functions:
            return f"it calls {item.callee}"
        if item.op != "store" or not item.operands:
            continue
        base = body.arrays.base_of(item.operands[-1])
        if base in used | loaded:
            name = body.arrays.array(base).name
            line = f" in line {item.place.line}" if item.place else ""
            return f"{name!r}, which it writes{line}, is used by the loops or by that code"
    return ""


def _follow(body: Body, made: set[str], first: Loop, second: Loop) -> set[str]:
    """Return what is computed from values of a loop before another one begins."""
    wrote = {
        body.arrays.base_of(item.operands[-1])
        for block in body.blocks(first)
        for item in block.instructions
        if item.op == "store" and item.operands
    }
    inside = {block.name for loop in (first, second) for block in body.blocks(loop)}
    names = [block.name for block in body.blocks(None)]
    for name in names[names.index(first.header) : names.index(second.header)]:
        for item in body.function.blocks[name].instructions if name not in inside else ():
            stale = item.op == "load" and body.arrays.base_of(item.operands[-1]) in wrote
            if item.name and (stale or made.intersection(item.operands)):
                made = made | {item.name}
    return made


def _accesses(region: Region) -> Iterator[Access]:
    return (node.access for node in region.nodes if node.access is not None)


def _calls(body: Body, region: Region) -> list[Instruction]:
    functions = body.kernel.module.functions
    return [n.item for n in region.nodes if n.item.op == "call" and n.item.callee in functions]


def _bases(region: Region) -> set[str]:
    items = [node.item for node in region.nodes if node.item.op in ("load", "store")]
    return {region.arrays.base_of(item.operands[-1]) for item in items if item.operands}


def _in_order(earlier: tuple[Loop, Access], later: tuple[Loop, Access]) -> bool | None:
    """Whether each element is done with in an iteration no later than the other loop needs it.

    None where that is not known.
    """
    (first, one), (second, other) = earlier, later
    known = [elements(loop, access) for loop, access in (earlier, later)]
    if known[0] is not None and known[1] is not None:
        last = {element: number for number, element in enumerate(known[0])}
        return all(last.get(element, -1) <= n for n, element in enumerate(known[1]))
    alike = _same_steps(first, one.address, second, other.address, one.array.element_bytes)
    return alike or None


def elements(loop: Loop, access: Access) -> list[int] | None:
    """Return which element of its array an access takes in each turn of a loop; None if unknown."""
    nest = [loop]
    while nest[-1].inner:
        if len(nest[-1].inner) > 1:
            return None
        nest.append(nest[-1].inner[0])
    found = places(nest, access.address)
    return found and [at // max(access.array.element_bytes, 1) for at in found]


def places(nest: Sequence[Loop], address: Expression) -> list[int] | None:
    """Return an address in each turn of a nest, from the outermost loop; None if not known."""
    found, left = [address.constant], dict(address.terms)
    for one in nest:
        if one.taken is None or one.taken.terms or len(found) * (one.taken.constant + 1) > _MOST:
            return None
        step = left.pop("loop " + one.header, 0)
        found = [at + step * turn for at in found for turn in range(one.taken.constant + 1)]
    return None if left else found


def _same_steps(first: Loop, one: Expression, second: Loop, other: Expression, size: int) -> bool:
    """Whether two loops step alike, and the later one is never ahead of the earlier one."""
    steps = one.factor("loop " + first.header), other.factor("loop " + second.header)
    rests = [
        tuple(term for term in address.terms if term[0] != "loop " + loop.header)
        for loop, address in ((first, one), (second, other))
    ]
    ahead = other.constant - one.constant
    apart = bool(steps[0]) and min(ahead % abs(steps[0]), -ahead % abs(steps[0])) >= size
    alike = steps[0] == steps[1] != 0 and rests[0] == rests[1]
    counts = any(name.startswith("loop ") or first.header in name for name, _ in rests[0])
    return alike and not counts and (apart or ahead * steps[0] <= 0)
