"""What decides whether a block runs in an iteration: two branches on one value are one decision.

A load in a branch of what a branch on the same value has loaded before is done once, whatever is
between the two: unrolling makes ``i < rows ? a[i][k] : 0`` for each column, and the schedules of
Vitis HLS have one load for all of them, and II=1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from .ir import Block, Function

__all__ = ["Decided", "decided", "is_with", "together_with"]

#: The values that decide, from the outermost branch on, each with which way is taken of how many.
_Ways = tuple[tuple[str, int, int], ...]


class Decided:
    """What is sure of an iteration in which a block runs."""

    def __init__(self, ways: _Ways, *, is_all: bool) -> None:
        self.ways = frozenset(ways)
        #: Whether the block runs wherever these ways are taken.
        self.is_all = is_all


def is_with(found: Mapping[str, Decided], block: Block | None, other: Block | None) -> bool:
    """Whether another block runs in each iteration in which a block does."""
    if block is None or other is None or not {block.name, other.name} <= found.keys():
        return False
    return found[other.name].is_all and found[other.name].ways <= found[block.name].ways


def together_with(found: Mapping[str, Decided], block: Block | None) -> object:
    """Return what is the same for blocks that run in the same iterations, as far as is known."""
    own = found.get(block.name) if block is not None else None
    return own.ways if own is not None and own.is_all else id(block)


def decided(function: Function, numbers: Mapping[str, int], header: str) -> dict[str, Decided]:
    """Return for each block of an iteration, in their order, what decides whether it runs."""
    ways: dict[str, _Ways] = {}
    found: dict[str, Decided] = {}
    for name in numbers:
        before = [] if name == header else function.predecessors[name]
        inside = [one for one in before if one in ways]
        edges = [edge for one in inside for edge in _edges(function.blocks[one], name, ways[one])]
        ways[name] = _common(edges)
        rest = [edge[len(ways[name]) :] for edge in edges]
        is_all = all(one in found and found[one].is_all for one in before)
        found[name] = Decided(ways[name], is_all=is_all and (not edges or _is_any(rest)))
    return found


def _edges(block: Block, name: str, ways: _Ways) -> list[_Ways]:
    """Return the decisions with which a block leads to another one."""
    following = block.successors
    if len(following) < 2:
        return [ways]
    value = (block.instructions[-1].operands or [""])[0]
    return [(*ways, (value, at, len(following))) for at, one in enumerate(following) if one == name]


def _common(edges: Sequence[_Ways]) -> _Ways:
    """Return the decisions with which all ways to a block begin."""
    shared = 0
    for ones in zip(*edges, strict=False):
        if len(set(ones)) > 1:
            break
        shared += 1
    return edges[0][:shared] if edges else ()


def _is_any(rest: Sequence[_Ways]) -> bool:
    """Whether one of some ways is taken whatever their values are."""
    if not all(rest):
        return True
    groups: dict[tuple[str, int, int], list[_Ways]] = defaultdict(list)
    for first, *others in rest:
        groups[first].append(tuple(others))
    values = {(value, of) for value, _, of in groups}
    whole = len(values) == 1 and all(len(groups) == of for _, of in values)
    return whole and all(map(_is_any, groups.values()))
