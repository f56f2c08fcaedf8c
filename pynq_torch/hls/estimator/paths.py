"""Along what waits for one operation: when the rest can be there at the earliest."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from .region import AFTER_READ, Node, Region, Slot
from .three import sum_of_three

__all__ = ["ends_of", "path", "time_of"]


def path(region: Region, first: Node, last: Node, time: float = 0.0) -> Slot | None:
    """When `last` ends at the earliest, if `first` starts at `time` and all else is ready."""
    return ends_of(region, first, time).get(id(last))


def time_of(region: Region, first: Node, last: Node) -> float:
    """Return the ns from one operation to the end of another; 0 where cycles lie between them."""
    target = region.target
    try:
        region.target = replace(target, budget=inf)  # all of it in one cycle
        cycle, time = path(region, first, last) or (1, 0.0)
    finally:
        region.target = target
    return 0.0 if cycle else time


def ends_of(region: Region, first: Node, time: float = 0.0) -> dict[int, Slot]:
    """When what waits for `first` ends at the earliest, if `first` starts at `time`."""
    region.effort.add(len(region.nodes) // 4)
    ends: dict[int, Slot] = {id(first): region.ends(first, (0, time))}
    begun: dict[int, Slot] = {}  # sums of two numbers

    def ready(node: Node, inner: Node | None = None) -> Slot | None:
        found: Slot | None = None
        for other, gap in node.before:
            end = ends.get(id(other))
            if end is None or gap == AFTER_READ or other is inner:
                continue
            slot = (end[0] + gap, 0.0) if gap else end
            found = slot if found is None or slot > found else found
        return found

    for node in region.nodes[region.nodes.index(first) + 1 :]:
        slot = ready(node)
        if slot is None:
            continue
        start, end = region.begins(node, slot), None
        if node.inner:
            others = {id(inner): ready(node, inner) or (0, 0.0) for inner in node.inner}
            three = sum_of_three(region, node, others, begun)
            start, end = three or (start, None)
        ends[id(node)] = end or region.ends(node, start)
        if end is None:
            begun[id(node)] = start
    return ends
