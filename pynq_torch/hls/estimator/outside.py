"""Indices that leave their array: Vitis HLS warns of them ([HLS 214-167]), a PC may not notice."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from .chosen import WAY
from .place import own_place, plain_name

if TYPE_CHECKING:
    from .ir import Block, Function, Instruction
    from .latency import Body

__all__ = ["is_always", "warn_of_indices"]


def warn_of_indices(body: Body) -> None:
    """Warn of the first access of each array that certainly leaves it in some iteration."""
    is_top, told = body.function.name == body.kernel.entry, set[str]()
    for block in body.function.blocks.values():
        for item in block.instructions:
            base = body.arrays.base_of(item.operands[-1]) if item.op in ("load", "store") else ""
            array = body.arrays.met(base) if base not in told else None
            own = array is not None and (array.local or (is_top and array.kind == "memory"))
            if array is None or not own or not array.dimensions or array.element_bytes <= 0:
                continue
            count, size = prod(array.dimensions), array.element_bytes
            reached = _reached(body.function, item, base) if count else None
            wrong = [at for at in reached or () if not 0 <= at < count * size]
            if wrong and (place := own_place(item.chain)) is not None:
                told.add(base)
                does = "read" if item.op == "load" else "written"
                body.kernel.plan.warn(
                    f"{place.shown}: element {wrong[0] // size} of {plain_name(array.name)!r} is "
                    f"{does} here, and there are 0 to {count - 1}; the index goes too far"
                )


def _reached(function: Function, item: Instruction, base: str) -> tuple[int, int] | None:
    """Return the first and the last byte of an array that loops come to; None if not certain."""
    known = function.known.get(item.operands[-1])
    if item.name.startswith(WAY):  # only where it is chosen
        return None
    if known is None or item.block is None or dict(known.expression.terms).get(base) != 1:
        return None
    low = high = known.expression.constant
    around = item.block.loop.above() if item.block.loop else ()
    loops = {f"loop {loop.header}": loop for loop in around}
    for name, factor in known.expression.terms:
        if name == base:
            continue
        loop = loops.get(name)
        if loop is None or loop.taken is None or loop.taken.terms:
            return None
        ends = sorted((0, factor * loop.taken.constant))
        low, high = low + ends[0], high + ends[1]
    inner: Block | None = item.block
    for loop in loops.values():
        if inner is None or not is_always(function, inner):
            return None
        before = [function.blocks[one] for one in function.predecessors[loop.header]]
        inner = next((one for one in before if one.name not in loop.blocks), None)
    return low, high


def is_always(function: Function, block: Block) -> bool:
    """Whether each iteration of the loop around a block comes to it."""
    loop = block.loop
    if loop is None:
        return False
    seen = {block.name}
    waiting = [] if block.name == loop.header else [loop.header]
    while waiting:
        seen.add(name := waiting.pop())
        following = function.blocks[name].successors
        if loop.header in following:
            return False
        waiting += [one for one in following if one in loop.blocks and one not in seen]
    return True
