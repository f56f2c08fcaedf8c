"""Scheduling: when each operation of a region starts, in cycles and ns.

Operations chain within a cycle as long as its budget lasts. A pipeline is modulo-scheduled: an
interval (II) is tried from the least that memory ports and recurrences allow.
"""

from __future__ import annotations

from collections import defaultdict

from .bounds import Limit, carried, port_limit, recurrence_limit
from .region import AFTER_READ, Node, Region, Slot

__all__ = ["pipeline", "place_all"]

_TRIES = 24


def pipeline(region: Region, asked: int, independent: set[str]) -> tuple[int, int, Limit]:
    """Return II, cycles of one iteration (depth) and what limits II."""
    pairs = carried(region, independent)
    ports, values = port_limit(region), recurrence_limit(region, pairs)
    limit = values if values.interval >= ports.interval else ports
    interval = max(asked, limit.interval, 1)
    for _ in range(200):
        depth = _fit(region, interval, pairs)
        if depth is not None:
            return interval, depth, limit
        interval += 1
        limit = Limit(interval, limit.reason or "no schedule fits its ports", limit.place)
    return interval, place_all(region, interval), limit


def _fit(region: Region, interval: int, pairs: list[tuple[Node, Node, int]]) -> int | None:
    """Schedule at an interval; None where carried values come too late."""
    for node in region.nodes:
        node.least = 0
    users, values = _users(region), region.carried_values()
    for _ in range(_TRIES):
        depth = place_all(region, interval)
        late = False
        for phi, last in values:
            due = last.end[0] + 1 - interval
            for user in users.get(id(phi), ()):
                if user.start[0] < due and user.least < due:
                    user.least, late = due, True
        for load, store, distance in pairs:
            due = store.end[0] + 1 - interval * distance
            if load.start[0] < due and load.least < due:
                load.least, late = due, True
        if not late:
            return depth
    return None


def _users(region: Region) -> dict[int, list[Node]]:
    found: dict[int, list[Node]] = defaultdict(list)
    for node in region.nodes:
        for other, gap in node.before:
            if other.item.op == "phi" and gap == 0:
                found[id(other)].append(node)
    return found


def place_all(region: Region, interval: int | None) -> int:
    """Give each operation its cycle; return how many cycles the region spans, at least 1."""
    taken: dict[tuple[object, int], list[Node]] = defaultdict(list)
    for node in region.nodes:
        _place(region, node, taken, interval)
    return max((node.end[0] for node in region.nodes), default=0) + 1


def _ready(node: Node) -> Slot:
    cycle, time = node.least, 0.0
    for other, gap in node.before:
        end = other.end
        if gap == AFTER_READ:  # a write may share the cycle of a read before it
            if other.start[0] > cycle:
                cycle, time = other.start[0], 0.0
        elif gap:
            if end[0] + gap > cycle:
                cycle, time = end[0] + gap, 0.0
        elif end[0] > cycle:
            cycle, time = end
        elif end[0] == cycle and end[1] > time:
            time = end[1]
    return cycle, time


def _place(
    region: Region,
    node: Node,
    taken: dict[tuple[object, int], list[Node]],
    interval: int | None,
) -> None:
    cycle, time = region.begins(node, _ready(node))
    ports = region.ports(node)
    if ports:
        for _ in range(100_000):
            at = cycle % interval if interval else cycle
            if all(region.beside(node, taken[key, at]) < most for key, most in ports):
                break
            cycle, time = cycle + 1, 0.0
        at = cycle % interval if interval else cycle
        for key, _ in ports:
            taken[key, at].append(node)
    node.start = (cycle, time)
    node.end = region.ends(node, node.start)
