"""Logic that shares a LUT, and choices among words."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .region import Node, Region
    from .target import Target

__all__ = ["choice_of", "join_logic"]

_LOGIC = frozenset(("and", "or", "xor", "select"))
#: Inputs of a LUT, by what comes out of it (UG474); a sum needs one for the carry.
_INPUTS = {"and": 6, "or": 6, "xor": 6, "select": 6, "icmp": 6, "add": 5, "sub": 5}
#: ns of a multiplexer of so many words, as the schedules of both tools list them.
_CHOICES = (
    (1, 0.0), (2, 1.58), (3, 1.77), (4, 1.95), (5, 2.14), (8, 2.47), (12, 2.78), (16, 2.06),
    (25, 3.2), (32, 3.2), (64, 3.13), (100, 4.1), (128, 4.23), (256, 4.77), (512, 5.34),
)  # fmt: skip
#: ns of the selection of Vivado HLS between the words of two memories.
_TWO = 0.82
#: The share of it in the faster families, whose LUTs are the same.
_FAST_CHOICE = 0.68


def choice_of(words: int, target: Target) -> float:
    """Return the ns of a choice among so many words; between two Vivado HLS selects one."""
    if words == 2 and target.tool == "vivado":
        return target.speed * _TWO
    at = min(bisect_left(_CHOICES, (words, 0.0)), len(_CHOICES) - 1)
    (less, before), (more, behind) = _CHOICES[max(at - 1, 0)], _CHOICES[at]
    part = min((words - less) / (more - less), 1.0) if words > 1 else 0.0
    fast = _FAST_CHOICE if target.has_ultra_ram else 1.0
    return target.speed * fast * (before + (behind - before) * part)


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
