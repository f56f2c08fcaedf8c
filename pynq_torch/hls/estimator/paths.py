"""Along what waits for one operation: when the rest can be there at the earliest."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from .region import AFTER_READ, Node, Region, Slot
from .three import sum_of_three

__all__ = ["After", "ends_of", "path", "time_of", "waiting"]

#: What an operation waits for, by identity, and so many cycles behind it.
_Needs = list[tuple[int, int]]
#: Where each operation of a region is, where those are that wait for it, and what each waits for.
After = tuple[dict[int, int], list[list[int]], list[_Needs]]


def waiting(region: Region) -> After:
    """Return what waits for each operation, for many calls while a region stays as it is."""
    places = {id(node): at for at, node in enumerate(region.nodes)}
    after: list[list[int]] = [[] for _ in region.nodes]
    needs = [_needs_of(node) for node in region.nodes]
    for at, before in enumerate(needs):
        for other, _ in before:
            if other in places:
                after[places[other]].append(at)
    return places, after, needs


def _needs_of(node: Node) -> _Needs:
    return [(id(other), gap) for other, gap in node.before if gap != AFTER_READ]


def path(
    region: Region, first: Node, last: Node, time: float = 0.0, after: After | None = None
) -> Slot | None:
    """When `last` ends at the earliest, if `first` starts at `time` and all else is ready."""
    return ends_of(region, first, time, after).get(id(last))


def time_of(region: Region, first: Node, last: Node, after: After) -> float:
    """Return the ns from one operation to the end of another; 0 where cycles lie between them.

    What takes cycles itself, as a load does, counts from the last one on.
    """
    target = region.target
    try:
        region.target = replace(target, budget=inf)  # all of it in one cycle
        cycle, time = path(region, first, last, 0.0, after) or (-1, 0.0)
    finally:
        region.target = target
    return time if cycle == first.cost.latency else 0.0


def ends_of(
    region: Region, first: Node, time: float = 0.0, after: After | None = None
) -> dict[int, Slot]:
    """When what waits for `first` ends at the earliest, if `first` starts at `time`."""
    left = _behind(region, first, after)
    region.effort.add(len(left) // 4)
    ends: dict[int, Slot] = {id(first): region.ends(first, (0, time))}
    begun: dict[int, Slot] = {}  # sums of two numbers

    def ready(node: Node, inner: Node | None = None) -> Slot | None:
        found: Slot | None = None
        needs = _needs_of(node) if after is None else after[2][after[0][id(node)]]
        for other, gap in needs:
            end = ends.get(other)
            if end is None or (inner is not None and other == id(inner)):
                continue
            slot = (end[0] + gap, 0.0) if gap else end
            found = slot if found is None or slot > found else found
        return found

    for node in left:
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


def _behind(region: Region, first: Node, after: After | None) -> list[Node]:
    """Return, in their order, the operations that may wait for one; all behind it if not told."""
    if after is None:
        return region.nodes[region.nodes.index(first) + 1 :]
    places, users, _ = after
    begin = places[id(first)]
    found, open_ = {begin}, [begin]
    while open_:
        more = [at for at in users[open_.pop()] if at not in found]
        found.update(more)
        open_ += more
    return [region.nodes[at] for at in sorted(found) if at > begin]
