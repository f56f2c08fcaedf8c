"""Scheduling: when each operation of a region starts, in cycles and ns.

Operations chain within a cycle as long as its budget lasts. A pipeline is modulo-scheduled: an
interval (II) is tried from the least that memory ports and recurrences allow.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Mapping

from .array import Array
from .bounds import (
    Carried,
    Limit,
    carried,
    full_limit,
    kept,
    late_limit,
    port_limit,
    recurrence_limit,
)
from .branches import Branches
from .fifos import words_wait
from .forwarded import forward
from .region import AFTER_READ, Node, Region, Slot
from .spread import divide
from .three import sum_of_three

__all__ = ["pipeline", "place_all"]

_TRIES = 24


class _FullError(Exception):
    """No cycle of the interval has a port left for an operation."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self.node = node


def pipeline(
    region: Region, asked: int, distances: Mapping[str, int], shared: Collection[Array] = (),
    *, by_itself: bool = False,
) -> tuple[int, int, Limit]:  # fmt: skip
    """Return II, cycles of one iteration (depth) and what limits II.

    `shared` are arrays that the function takes in several calls: the tool does not divide them. It
    divides less in what it makes a pipeline `by_itself`.
    """
    region.predicate()
    forward(region)
    pairs = carried(region, distances)
    values = recurrence_limit(region, pairs)
    divide(region, shared, max(asked, values.interval), by_itself=by_itself)
    ports = port_limit(region, asked)
    limit = values if values.interval >= ports.interval else ports
    interval = max(asked, limit.interval, 1)
    for _ in range(200):
        try:
            depth, late = _fit(region, interval, pairs)
        except _FullError as error:
            interval += 1
            limit = full_limit(region, interval, error.node, asked)
            continue
        if late is None:
            return interval, depth, limit
        interval += 1
        limit = late_limit(region, interval, late)
    return interval, place_all(region, None), limit


def _fit(
    region: Region, interval: int, pairs: list[Carried]
) -> tuple[int, tuple[Node, Node] | Carried | None]:
    """Schedule at an interval; return the depth, and a carried value that comes too late."""
    first = 1 if words_wait(region.target) else 0
    for node in region.nodes:
        node.least = (first if node.stream else 0, 0.0)
    users, values = _users(region), region.carried_values()
    for _ in range(_TRIES):
        depth = place_all(region, interval)
        late: tuple[Node, Node] | Carried | None = None
        for phi, last in values:
            # What is made late in a cycle can still be used in it: there is a bypass.
            for user in users.get(id(phi), ()):
                end = kept(region, last, last.end, user)
                due = end[0] - interval, end[1]
                if user.start < due and user.least < due:
                    user.least, late = due, (phi, last)
        for pair in pairs:
            load, due = pair.load, (pair.store.end[0] + pair.gap - interval * pair.distance, 0.0)
            if load.start < due and load.least < due:
                load.least, late = due, pair
        if late is None:
            break
    return depth, late


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
    branches = Branches(region) if interval is None else None
    for node in region.nodes:
        if branches is not None:
            node.least = max(node.least, (branches.begin(node.item.block), 0.0))
        _place(region, node, taken, interval)
        if branches is not None:
            branches.note(node)
    return max((node.end[0] for node in region.nodes), default=0) + 1


def _ready(node: Node, inner: Node | None = None) -> Slot:
    """Return when all is there that an operation waits for, but for a sum in its adder."""
    cycle, time = node.least
    for other, gap in node.before:
        if other is inner:
            continue
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
    three = _three(region, node) if node.inner else None
    if three is not None:
        (cycle, time), _ = three
    begin = cycle, time
    ports = region.ports(node)
    if ports:
        last = cycle + interval if interval else sys.maxsize
        while True:
            at = cycle % interval if interval else cycle
            if all(region.beside(node, taken[key, at], most) for key, most in ports):
                break
            cycle, time = cycle + 1, 0.0
            if cycle == last:
                raise _FullError(node)
        at = cycle % interval if interval else cycle
        for key, _ in ports:
            taken[key, at].append(node)
    node.start = (cycle, time)
    end = three[1] if three is not None and node.start == begin else None
    node.takes_three, node.end = end is not None, end or region.ends(node, node.start)


def _three(region: Region, node: Node) -> tuple[Slot, Slot | None] | None:
    """Return when a sum begins and ends that shares its cycle with one before it."""
    ready = {id(inner): _ready(node, inner) for inner in node.inner}
    begun = {id(inner): inner.start for inner in node.inner if not inner.takes_three}
    return sum_of_three(region, node, ready, begun)
