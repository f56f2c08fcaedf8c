"""The order of blocks in a function, and the ways through them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from .ir import Block, Function, Loop
from .marks import MARKER
from .result import Cycles

__all__ = [
    "child", "ends_without", "is_last", "joined", "may_skip", "passing_by", "reverse_postorder",
]  # fmt: skip


def reverse_postorder(function: Function) -> list[str]:
    """Return the blocks of a function, each after what leads to it."""
    order: list[str] = []
    first = next(iter(function.blocks))
    seen, stack = {first}, [(first, 0)]
    while stack:
        name, at = stack.pop()
        block = function.blocks[name]
        # What leaves a loop comes last in the order, so that a loop's blocks stand together.
        following = sorted(block.successors, key=lambda other: _depth(function.blocks[other].loop))
        if at < len(following):
            stack.append((name, at + 1))
            if following[at] not in seen:
                seen.add(following[at])
                stack.append((following[at], 0))
        else:
            order.append(name)
    return order[::-1]


def _depth(loop: Loop | None) -> int:
    return loop.depth if loop is not None else 0


def child(loop: Loop | None, around: Loop | None) -> Loop | None:
    """The loop directly in `around` that holds a block of `loop`; None for the body's own code."""
    while loop is not None and loop is not around:
        if loop.parent is around:
            return loop
        loop = loop.parent
    return None


def is_last(block: Block, loop: Loop | None) -> bool:
    """Whether a function, or an iteration of a loop, ends with a block."""
    return not block.successors if loop is None else loop.header in block.successors


def may_skip(function: Function, header: str, blocks: Iterable[Block | None]) -> bool:
    """Whether an iteration of a loop may end without any of some of its blocks."""
    own = function.blocks[header].loop if header in function.blocks else None
    mine = {one.name for one in blocks if one is not None and own is not None and one.loop is own}
    return own is not None and bool(mine) and ends_without(function, own, mine)


def ends_without(function: Function, loop: Loop | None, names: set[str]) -> bool:
    """Whether an iteration of a loop, or a function for None, may end without some blocks."""
    inside = {*(function.blocks if loop is None else loop.blocks)} - names
    first = next(iter(function.blocks)) if loop is None else loop.header
    seen, left = {first}, [first] if first in inside else []
    while left:
        block = function.blocks[left.pop()]
        if is_last(block, loop):
            return True
        left += [one for one in block.successors if one in inside and one not in seen]
        seen.update(left)
    return False


def passing_by(function: Function, block: str, loops: Sequence[Loop]) -> set[str]:
    """Return what leads to a block past a loop that ends there: it asks whether it is entered.

    LLVM asks so of several loops of one bound at once. Nobody does of a loop whose count is a
    number: what leads past that is a branch of the source.
    """
    before, found = function.predecessors[block], set[str]()
    counted = [one for one in loops if one.taken is None or one.taken.terms]
    if len(before) < 2:
        return found
    for loop in (one for one in counted if block not in one.blocks):
        inside = {*loop.blocks}
        ends = inside.union(*(function.blocks[one].successors for one in inside))
        if ends.intersection(before):
            asking = _asking(function, loop, counted)
            found |= {one for one in before if one in asking or _hands_on(function, one, asking)}
            found -= ends
    return found


def _asking(function: Function, loop: Loop, others: Sequence[Loop]) -> set[str]:
    """Return the blocks that may ask whether a loop is entered, or those in front of it."""
    left = [one for one in others if one is not loop and one.taken == loop.taken]
    found, reached = set[str](), [loop]
    while reached:
        for one in reached:
            before = function.predecessors[one.header]
            entries = {block for block in before if block not in one.blocks}
            found |= entries.union(*(function.predecessors[block] for block in entries))
        reached = [one for one in left if not found.isdisjoint(one.blocks)]
        left = [one for one in left if one not in reached]
    return found


def _hands_on(function: Function, name: str, asking: Collection[str]) -> bool:
    """Whether a block does nothing but to lead on from one that asks."""
    items = function.blocks[name].instructions
    work = [item for item in items if item.op != "br" and item.callee != MARKER]
    before = function.predecessors[name]
    return not work and bool(before) and all(one in asking for one in before)


def joined(paths: list[tuple[Cycles, int]]) -> tuple[Cycles, int]:
    """The longest of several ways to a block."""
    if not paths:
        return (0, 0), -1
    at, seen = paths[0]
    least, most = at
    for (low, high), group in paths[1:]:
        least = None if least is None or low is None else min(least, low)
        if most is None or high is None:
            most = None
        elif high > most:
            most, seen = high, group
    return (least, most), seen
