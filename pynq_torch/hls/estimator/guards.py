"""Branches in a pipeline are conditions: of what can be seen outside, and of what they choose."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .region import Node, Region

__all__ = ["predicate"]

#: The values that decide whether a block runs, from the outermost branch on, each with where the
#: branch leads to.
_Guards = list[tuple[str, str]]


def predicate(region: Region) -> None:
    """Let what a branch guards and can be seen outside wait for the branch's condition.

    What branches choose waits for the conditions by which its values differ.
    """
    alone: dict[str, _Guards] = {}
    guards: dict[str, _Guards] = {}
    for name in region.numbers:
        before = _before(region, name)
        guards[name] = _common([_edge(region, one, name, guards) for one in before])
        alone[name] = _edge(region, before[0], name, alone) if len(before) == 1 else []
    for node in region.nodes:
        for value in _waits_for(region, node, alone, guards):
            other = region.by_value.get(value)
            if other is not None and other is not node:
                node.before.append((other, 0))


def _waits_for(
    region: Region, node: Node, alone: dict[str, _Guards], guards: dict[str, _Guards]
) -> Iterator[str]:
    item = node.item
    if item.block is None:
        return
    if item.op == "store" or node.stream:
        yield from (value for value, _ in alone[item.block.name])
    elif item.op == "phi" and not region.is_carried(node):
        before = _before(region, item.block.name)
        edges = [_edge(region, one, item.block.name, guards) for one in before]
        shared = len(_common(edges))
        yield from dict.fromkeys(value for edge in edges for value, _ in edge[shared:])


def _before(region: Region, name: str) -> list[str]:
    """The blocks of an iteration that lead to one; none to the start of a loop of a nest."""
    numbers, before = region.numbers, region.function.predecessors[name]
    inside = [one for one in before if one in numbers]
    return inside if all(numbers[one] < numbers[name] for one in inside) else []


def _edge(region: Region, before: str, name: str, guards: dict[str, _Guards]) -> _Guards:
    block = region.function.blocks[before]
    own = block.instructions[-1].operands[:1] if len(block.successors) > 1 else []
    return guards.get(before, []) + [(value, name) for value in own]


def _common(edges: list[_Guards]) -> _Guards:
    shared = takewhile(lambda ones: len(set(ones)) == 1, zip(*edges, strict=False))
    return [ones[0] for ones in shared]
