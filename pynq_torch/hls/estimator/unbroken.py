"""Recurrences of logic alone, which a tool does not spread over cycles.

For Vitis HLS an interval that the clock does not allow is too short, but not where PIPELINE says
II=1: of 491 pipelines with an II in its schedules 49 have a cycle that is longer than the clock
allows, whatever the cause, of 1,535 without one 2. Three loops of two reports have a recurrence of
logic there (rounds of SHA-256: 15.7 ns where 7.3 are left of 10), and II=1.

Vivado HLS keeps any interval and says that it misses the clock: five of its reports have II=1 (or
that of their ports) and an estimated clock above the one asked for, none a longer interval for
logic. Three that read a word of memory, add to it and write it back do so in II=2, with estimated
clocks above what the uncertainty leaves (7.7 ns where 5 were asked for): ports that need more
cycles than that leave time to spread it. The coordinates of a CORDIC, which turn into each other,
have II=1 too (10.2 ns where 10 were asked).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

from .bounds import is_too_long, ports_needed
from .paths import After, time_of, waiting
from .place import Place

if TYPE_CHECKING:
    from .bounds import Carried
    from .region import Node, Region

__all__ = ["missed", "unbroken"]

#: Of recurrences times operations: where there are more, each is spread over cycles.
_MOST = 2_000_000


def unbroken(
    region: Region, pairs: Iterable[Carried], asked: int, *, by_name: bool = False
) -> Mapping[int, float]:
    """Return the operations, by identity, of recurrences that stay in one cycle.

    Each with the ns that they may take. `pairs` are those through memories and registers, `asked`
    is the interval that a directive asks for, `by_name` if it says that number.
    """
    is_vitis = region.target.tool == "vitis"
    if is_vitis and not (by_name and asked == 1):
        return {}
    through = [(pair.load, pair.store) for pair in pairs if pair.distance == 1]
    values = region.carried_values()
    ways = values + through
    if len(ways) * len(region.nodes) > _MOST:
        return {}
    after, least = waiting(region), max(asked, ports_needed(region)[0])
    if len(values) ** 2 * len(region.nodes) <= _MOST:
        ways += _crossing(values, after)
    found: dict[int, float] = {}
    for first, last in ways:
        if is_vitis and not is_too_long(region, first, last, after):
            continue
        between = _between(region.nodes, first, last, after)
        if all(map(_is_logic, between)):
            found |= dict.fromkeys(map(id, between), inf)
        elif not is_vitis and (time := _passed(region, between, least, after)):
            found = dict.fromkeys(map(id, between), max(time, region.target.clock)) | found
    return found


def _crossing(values: Sequence[tuple[Node, Node]], after: After) -> Iterator[tuple[Node, Node]]:
    """Yield the ways from one carried value to another from which a way leads back to it.

    The coordinates of a CORDIC turn into each other: that is a recurrence of two iterations.
    """
    places, following, _ = after
    ends = [places.get(id(last)) for _, last in values]
    leads: list[set[int]] = []
    for first, _ in values:
        reached = {places[id(first)]} if id(first) in places else set[int]()
        for at in range(min(reached, default=0), len(following)):
            if at in reached:
                reached.update(following[at])
        leads.append({one for one, end in enumerate(ends) if end in reached})
    for one, others in enumerate(leads):
        for other in others - {one}:
            if one in _all(leads, other):
                yield values[one][0], values[other][1]


def _all(leads: Sequence[set[int]], begin: int) -> set[int]:
    """Return the values that one leads to, in however many iterations."""
    found, left = set[int](), [begin]
    while left:
        new = leads[left.pop()] - found
        found |= new
        left += new
    return found


def _passed(region: Region, between: Sequence[Node], least: int, after: After) -> float:
    """Return the ns in which a word is read, changed by logic and written back in one cycle.

    They are 0 where that is spread over cycles: there the ports leave time, and the clock does not.
    """
    load, store = between[0], between[-1]
    if not (_is_of_memory(load) and _is_of_memory(store) and all(map(_is_logic, between[1:-1]))):
        return 0.0
    time = time_of(region, load, store, after)
    return time if time <= region.target.clock or least <= load.cost.latency + 1 else 0.0


def _is_of_memory(node: Node) -> bool:
    return node.access is not None and node.access.array.kind == "memory"


def missed(region: Region, interval: int) -> str:
    """Return that a pipeline misses the clock; ``""`` where it does not."""
    logic = [node for node in region.nodes if id(node) in region.unbroken]
    last = max(logic, key=lambda node: node.end[1], default=None)
    if last is None or last.end[1] <= region.target.budget:
        return ""
    places = [last.place, *(node.place for node in logic)]
    place = next(one for one in [*places, Place("", 0)] if one is not None)  # choices have none
    return (
        f"{place.shown}: what an iteration hands on to the next one takes {last.end[1]:.1f} "
        f"ns, a cycle has {region.target.budget:.1f}: {region.target.tool.title()} HLS keeps "
        f"II={interval} and misses the clock; use a slower one, or less logic"
    )


def _is_logic(node: Node) -> bool:
    is_register = node.access is None or node.access.array.kind == "register"
    return not node.cost.latency and is_register and not node.stream


def _between(nodes: Sequence[Node], first: Node, last: Node, after: After) -> list[Node]:
    """Return what is on the ways from one operation to another, with both; none without a way."""
    places, following, _ = after
    if id(first) not in places or id(last) not in places:
        return []
    begin, end = places[id(first)], places[id(last)]
    reached = {begin}
    for at in range(begin, end):
        if at in reached:
            reached.update(following[at])
    leading = {end} & reached
    for at in range(end - 1, begin - 1, -1):
        if at in reached and not leading.isdisjoint(following[at]):
            leading.add(at)
    return [nodes[at] for at in sorted(leading)]
