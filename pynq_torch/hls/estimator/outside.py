"""Indices that leave their array: Vitis HLS warns of them ([HLS 214-167]), a PC may not notice."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
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
    last: dict[str, int] = {}
    inner: Block | None = item.block
    for loop in item.block.loop.above() if item.block.loop else ():
        steady = loop.taken is not None and not loop.taken.terms
        if inner is None or loop.taken is None or not steady or not is_always(function, inner):
            return None
        # Behind a `break`, or where it is unrolled, the last iteration does not come to it.
        ends = _leaves(function, loop.header, inner, loop.blocks)
        last[f"loop {loop.header}"] = loop.taken.constant - ends
        before = [function.blocks[one] for one in function.predecessors[loop.header]]
        inner = next((one for one in before if one.name not in loop.blocks), None)
    first = next(iter(function.blocks))
    if inner is None or _leaves(function, first, inner, function.blocks):
        return None
    low = high = known.expression.constant
    for name, factor in known.expression.terms:
        if name != base:
            if last.get(name, -1) < 0:
                return None
            ends_at = sorted((0, factor * last[name]))
            low, high = low + ends_at[0], high + ends_at[1]
    return low, high


def _leaves(function: Function, start: str, block: Block, within: Container[str]) -> bool:
    """Whether a way from a block leads out of some blocks, or ends, without coming to another."""
    ways = _followed(function, start, block, within)
    return any(not one or any(name not in within for name in one) for one in ways)


def is_always(function: Function, block: Block) -> bool:
    """Whether each iteration of the loop around a block comes to it."""
    loop = block.loop
    if loop is None:
        return False
    ways = _followed(function, loop.header, block, loop.blocks)
    return all(loop.header not in one for one in ways)


def _followed(
    function: Function, start: str, block: Block, within: Container[str]
) -> Iterator[Sequence[str]]:
    """Yield what follows each of some blocks that is come to from `start` without another."""
    seen = {block.name}
    waiting = [] if block.name == start else [start]
    while waiting:
        seen.add(name := waiting.pop())
        following = function.blocks[name].successors
        yield following
        waiting += [one for one in following if one in within and one not in seen]
