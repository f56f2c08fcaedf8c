"""Counters of a nest that became one loop.

Each iteration begins with the question whether the inner loop has just ended: then its counter is
back at its start, and the one of the loop around it a step on. Schedules of both tools have a
comparison, an addition and a selection for that before what takes the counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .cost import Cost
from .delays import adder, comparison, selection

if TYPE_CHECKING:
    from .ir import Instruction, Loop
    from .region import Node, Region

__all__ = ["select_counters"]

#: Bits of a counter that may count up to any number.
_ANY_BITS = 32
#: ns of a LUT between comparisons and a selection, and of what keeps a counter.
_LUT_NS, _KEPT_NS = 0.97, 1.58


def select_counters(region: Region) -> None:
    """Put before what takes a counter of a nest how long it takes to know the counter."""
    if len(region.nest) < 2:
        return
    chosen: dict[int, tuple[Node, str]] = {}
    made: list[Node] = []
    for node in region.nodes:
        node.before = [
            (other if id(other) not in chosen else _taken_by(node, *chosen[id(other)], other), gap)
            for other, gap in node.before
        ]
        made.append(node)
        step_on = _step_of(node.item, region)
        depth = _depth(region, node) if step_on else None
        if depth is not None:
            node.cost = Cost()
            for delay in _steps(region, depth):
                cost = Cost(0, delay * region.target.speed) if delay else Cost(1)
                step = type(node)(_choice(node.item), cost)
                step.before = [(made[-1], 0)]
                made.append(step)
            chosen[id(node)] = made[-1], step_on
    region.nodes = made


def _taken_by(node: Node, selected: Node, step: str, counter: Node) -> Node:
    """Return what an operation takes: to count on, the tools need not wait for the selection."""
    return counter if node.item.name == step else selected


def _choice(counter: Instruction) -> Instruction:
    return replace(counter, op="select", text="", operands=[], incoming={})


def _depth(region: Region, node: Node) -> int | None:
    """Return how deep in the nest the loop is that begins with a value; None where none does."""
    item = node.item
    if item.op != "phi" or item.block is None or not item.bits:
        return None
    headers = [loop.header for loop in region.nest]
    return headers.index(item.block.name) if item.block.name in headers else None


def _step_of(counter: Instruction, region: Region) -> str:
    """Return the sum with a constant that a counter goes on with, "" for what is none."""
    for name in counter.incoming.values():
        item = region.function.values.get(name)
        if item is not None and item.op == "add" and item.operands == [counter.name]:
            return name
    return ""


def _steps(region: Region, depth: int) -> Sequence[float]:
    """Return the ns of what is done one after the other until a counter is known.

    0 is a cycle: where the counter of two inner loops ends first, if both do not fit into one.
    """
    nest = region.nest
    own = _bits(nest[depth])
    ended = comparison(_bits(*nest[depth + 1 :]) if depth + 1 < len(nest) else own)
    if depth == 0:
        return max(ended, adder(own)), selection(own)
    if depth + 1 < len(nest):
        return ended + selection(own), adder(own), selection(own)
    if len(nest) == 2:
        return ended, selection(own)
    both = comparison(_bits(*nest[depth - 1 :]))
    behind = _LUT_NS, _LUT_NS, selection(own)
    whole = region.target.speed * (both + sum(behind) + adder(own) + _KEPT_NS)
    return (0.0, ended, *behind) if whole > region.target.budget else (both, *behind)


def _bits(*loops: Loop) -> int:
    """Return the bits of a counter of the iterations of some loops."""
    turns = 1
    for loop in loops:
        if loop.taken is None or loop.taken.terms:
            return _ANY_BITS
        turns *= loop.taken.constant + 1
    return max(turns.bit_length(), 1)
