"""Scheduling: when each operation of a region starts, in cycles and ns.

Operations chain within a cycle as long as its budget lasts. A pipeline is modulo-scheduled: an
interval (II) is tried from the least that memory ports and recurrences allow.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from math import ceil

from .accesses import reads_on
from .array import Array
from .bounds import (
    Carried,
    Limit,
    carried,
    full_limit,
    is_staged_product,
    kept,
    late_limit,
    port_limit,
    recurrence_limit,
)
from .branches import Branches
from .exits import Exits
from .fifos import words_wait
from .forwarded import forward
from .guards import predicate
from .overwritten import Overwritten, overwritten
from .region import AFTER_READ, Node, Region, Slot
from .spread import divide
from .three import sum_of_three
from .unbroken import unbroken
from .wide import widen

__all__ = ["pipeline", "place_all"]

#: How often a value that comes too late moves what takes it, and operations placed for that.
_TRIES, _PLACED = 24, 2_000_000
#: Of so many operations of one core it is tried how few operators do them.
_SHARED = 16


class _FullError(Exception):
    """No cycle of the interval has a port left for an operation."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self.node = node


def pipeline(
    region: Region, asked: int, distances: Mapping[str, int], shared: Collection[Array] = (),
    *, by_itself: bool = False, by_name: bool = False,
) -> tuple[int, int, Limit]:  # fmt: skip
    """Return II, cycles of one iteration (depth) and what limits II.

    `shared` are arrays that the function takes in several calls: the tool does not divide them, and
    less in what it makes a pipeline `by_itself`. A directive may ask for II=1 `by_name`.
    """
    predicate(region)
    forward(region)
    widen(region)
    pairs = carried(region, distances)
    region.unbroken = unbroken(region, pairs, asked, by_name=by_name)
    over = overwritten(region, distances)
    values = recurrence_limit(region, pairs)
    divide(region, shared, max(asked, values.interval), by_itself=by_itself)
    ports = port_limit(region, asked)
    limit = values if values.interval >= ports.interval else ports
    interval = max(asked, limit.interval, 1)
    exits = Exits(region)
    for _ in range(200):
        try:
            depth, late = _fit(region, interval, pairs, over)
        except _FullError as error:
            interval += 1
            limit = full_limit(region, interval, error.node, asked)
            continue
        if late is not None:
            interval += 1
            if isinstance(late, Overwritten):
                limit = late.limit(interval)
            else:
                limit = late_limit(region, interval, late)
        elif (waits := exits.limit(interval)) is not None:
            interval, limit = waits.interval, waits
        else:
            _share(region, interval, pairs, over)
            return interval, depth, limit
    return interval, place_all(region, None), limit


def _share(region: Region, interval: int, pairs: list[Carried], over: list[Overwritten]) -> None:
    """Note how few operators do the floating-point operations if the interval stays as it is.

    Two that a recurrence needs in the same cycle take one each (both products of a CORDIC), those
    that may wait share one (the sums of a DFT), though an iteration takes longer then.
    """
    cores: dict[str, list[Node]] = defaultdict(list)
    for node in region.nodes:
        if node.cost.dsp and node.cost.core not in ("mul", "mac"):
            cores[node.unit].append(node)
    for core, nodes in cores.items():
        most = len(nodes)
        least = ceil(region.together(nodes) / interval)
        if not least < most <= _SHARED:
            continue
        for region.shared[core] in range(least, most):
            try:
                _, late = _fit(region, interval, pairs, over)
            except _FullError:
                continue
            if late is None:
                break
        else:
            region.shared[core] = most
    if region.shared:
        shared, region.shared = region.shared, {}
        _fit(region, interval, pairs, over)
        region.shared = shared


def _fit(
    region: Region, interval: int, pairs: list[Carried], over: list[Overwritten]
) -> tuple[int, tuple[Node, Node] | Carried | Overwritten | None]:
    """Schedule at an interval; return the depth, and a carried value that comes too late."""
    first = 1 if words_wait(region.target) else 0
    for node in region.nodes:
        node.least = (first if node.stream else int(reads_on(region, node)), 0.0)
    users, values = _users(region), region.carried_values()
    raised: Counter[int] = Counter()
    most = min(len(values) + len(pairs) + 2, _PLACED // len(region.nodes) if region.nodes else 0)
    for _ in range(max(most, _TRIES)):
        depth = place_all(region, interval)
        late: tuple[Node, Node] | Carried | Overwritten | None = None
        for phi, last in values:
            # What is made late in a cycle can still be used in it: there is a bypass.
            for user in users.get(id(phi), ()):
                end = kept(region, last, last.end, user)
                due = end[0] - interval, end[1]
                if user.start < due and user.least < due:
                    user.least, late = due, (phi, last)
                    raised[id(user)] += 1
        for pair in pairs:
            load, end = pair.load, (pair.store.end[0] + pair.gap, 0.0)
            if not pair.gap:
                end = kept(region, pair.store, pair.store.end, load)
            due = end[0] - interval * pair.distance, end[1]
            if load.start < due and load.least < due:
                load.least, late = due, pair
                raised[id(load)] += 1
        for one in over:
            begin = one.least(interval), 0.0
            if one.store.start < begin and one.store.least < begin:
                one.store.least, late = begin, one
                raised[id(one.store)] += 1
        # A line of registers makes all of its loads late, one after the other; a recurrence that
        # is too long the same ones again and again.
        if late is None or max(raised.values()) >= _TRIES:
            break
    return depth, late


def _users(region: Region) -> dict[int, list[Node]]:
    found: dict[int, list[Node]] = defaultdict(list)
    for node in region.nodes:
        for other, gap in node.before:
            source = other.through_wires()[-1] if is_staged_product(node) else other
            if source.item.op == "phi" and gap == 0:
                found[id(source)].append(node)
    return found


def place_all(region: Region, interval: int | None) -> int:
    """Give each operation its cycle; return how many cycles the region spans, at least 1."""
    region.effort.add(sum(1 + len(node.before) for node in region.nodes))
    taken = _Taken(region, interval)
    branches = Branches(region) if interval is None else None
    for node in region.nodes:
        if branches is not None:
            node.least = max(node.least, (branches.begin(node.item.block), 0.0))
        _place(region, node, taken)
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


class _Taken:
    """What is in each cycle that takes a port, while the operations of a region are placed."""

    def __init__(self, region: Region, interval: int | None) -> None:
        self._region, self._interval = region, interval
        self._at: dict[tuple[object, int], list[Node]] = defaultdict(list)
        #: Of a port, cycles one behind the other in which it is full: the first, and the one after.
        self._full: dict[object, tuple[int, int]] = {}

    def first(self, node: Node, ports: list[tuple[object, int]], ready: int) -> int:
        """Take the first cycle, from one on, in which ports are left for an operation."""
        # Of two branches only one runs, so that a port is never full for all operations.
        key = ports[0][0] if len(ports) == 1 and not self._region.branches else None
        begin, end = self._full.get(key, (ready, ready))
        begin, cycle = (begin, end) if begin <= ready <= end else (ready, ready)
        while not all(
            self._region.beside(node, self._at[one, self._slot(cycle)], most) for one, most in ports
        ):
            cycle += 1
            if self._interval and cycle >= ready + self._interval:
                raise _FullError(node)
        for one, _ in ports:
            self._at[one, self._slot(cycle)].append(node)
        if key is not None:
            self._full[key] = begin, cycle
        return cycle

    def _slot(self, cycle: int) -> int:
        return cycle % self._interval if self._interval else cycle


def _place(
    region: Region,
    node: Node,
    taken: _Taken,
) -> None:
    cycle, time = region.begins(node, _ready(node))
    three = _three(region, node) if node.inner else None
    if three is not None:
        (cycle, time), _ = three
    begin = cycle, time
    ports = region.ports(node)
    if ports:
        free = taken.first(node, ports, cycle)
        cycle, time = (cycle, time) if free == cycle else (free, 0.0)
    node.start = (cycle, time)
    end = three[1] if three is not None and node.start == begin else None
    node.takes_three, node.end = end is not None, end or region.ends(node, node.start)


def _three(region: Region, node: Node) -> tuple[Slot, Slot | None] | None:
    """Return when a sum begins and ends that shares its cycle with one before it."""
    ready = {id(inner): _ready(node, inner) for inner in node.inner}
    begun = {id(inner): inner.start for inner in node.inner if not inner.takes_three}
    return sum_of_three(region, node, ready, begun)
