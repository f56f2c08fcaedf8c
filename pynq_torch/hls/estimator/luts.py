"""Logic that shares a LUT."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .region import Node, Region

__all__ = ["join_logic"]

_LOGIC = frozenset(("and", "or", "xor", "select"))
#: Inputs of a LUT, by what comes out of it (UG474); a sum needs one for the carry.
_INPUTS = {"and": 6, "or": 6, "xor": 6, "select": 6, "icmp": 6, "add": 5, "sub": 5}


def join_logic(region: Region) -> None:
    """Let logic that only one operation takes cost no time, as long as one LUT holds both.

    The schedules of Vivado HLS and Vitis HLS call it "grouped into LUT": three operations of two
    inputs each are a LUT of four. What leaves the LUT, logic or a sum, has the time of all.
    """
    for node in reversed(region.nodes):
        most = _INPUTS.get(node.item.op)
        if most is None or node.joined or node.cost.latency or not node.cost.delay:
            continue
        waiting, inputs = [node], len(node.item.operands)
        while waiting:
            for other in _alone(region, waiting.pop()):
                more = inputs - 1 + len(other.item.operands)
                if more <= most:
                    inputs = more
                    other.cost, other.joined = replace(other.cost, delay=0.0), True
                    waiting.append(other)


def _alone(region: Region, node: Node) -> list[Node]:
    """The logic whose result a node alone takes."""
    found = []
    for other, gap in node.before:
        between = other.through_wires()
        uses = [region.function.uses[one.item.name] for one in between]
        if not gap and between[-1].item.op in _LOGIC and set(uses) == {1}:
            found.append(between[-1])
    return found
