"""How many multipliers the products of a pipeline need where nobody asks for an interval.

Ports or a recurrence make II longer than 1, and a multiplier is free in the other cycles. The tools
then give it another product only where no multiplexer is needed for that: both operands come from
the same place (every group of two bindings that Vivado HLS 2018.3 wrote is so, of 27 and of 81
products; Vitis HLS 2024.1 agrees in how many multipliers there are, releases until 2022.1 give each
product its own in four reports). A place is a value, or what holds the words of a port of a memory:
the port itself in the cycle in which it gives one, a register from then on. One that is not needed
any longer takes the next word of its port.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

from .region import Node, Region

__all__ = ["unmixed"]

#: The first releases of Vitis HLS that do so.
_SHARES = 2023.0


def unmixed(region: Region, nodes: Sequence[Node], interval: int | None) -> int:
    """Return how many multipliers do some products, none of them with a multiplexer before it."""
    target = region.target
    if not interval or interval == 1 or (target.tool == "vitis" and 0 < target.release < _SHARES):
        return len(nodes)
    places = _places(region, interval)
    at: dict[tuple[Hashable, int], list[Node]] = defaultdict(list)
    for node in nodes:
        ends = frozenset(_place(region, name, node, places) for name in _operands(node))
        at[ends, node.start[0] % interval].append(node)
    most: Counter[Hashable] = Counter()
    for (source, _), some in at.items():
        most[source] = max(most[source], region.together(some))
    return most.total()


def _operands(node: Node) -> list[str]:
    """Return both operands of a product as its text has them: values, or numbers."""
    first, second = node.item.text.split(", ")[:2]
    return [first.split()[-1], second]


def _place(
    region: Region, name: str, user: Node, places: dict[int, tuple[Hashable, int]]
) -> Hashable:
    """Return where an operand comes from."""
    node = region.by_value.get(name)
    if node is None:
        return name
    source = _source(node)
    if id(source) not in places:
        return source.item.name
    port, register = places[id(source)]
    return port if source.end[0] == user.start[0] else (port, register)


def _places(region: Region, interval: int) -> dict[int, tuple[Hashable, int]]:
    """Return by which port of its memory each word comes, and the register that holds it then."""
    last = _last_uses(region)
    taken: Counter[Hashable] = Counter()
    held: dict[Hashable, list[set[int]]] = defaultdict(list)
    found: dict[int, tuple[Hashable, int]] = {}
    for node in sorted(region.nodes, key=lambda one: one.start[0]):
        ports = region.ports(node) if node.item.op == "load" else []
        if not ports:
            continue
        (memory, _), *_ = ports
        slot = memory, node.start[0] % interval
        port = memory, taken[slot]
        taken[slot] += 1
        needed = {at % interval for at in range(node.end[0] + 1, last[id(node)] + 1)}
        registers = held[port]
        free = (n for n, busy in enumerate(registers) if not busy & needed)
        number = next(free, len(registers))
        if number == len(registers):
            registers.append(set())
        registers[number] |= needed
        found[id(node)] = port, number
    return found


def _last_uses(region: Region) -> Counter[int]:
    """Return, by operation, the last cycle in which something begins that takes its value."""
    last: Counter[int] = Counter()
    for node in region.nodes:
        for other, gap in node.before:
            if not gap:
                source = _source(other)
                last[id(source)] = max(last[id(source)], node.start[0])
    return last


def _source(node: Node) -> Node:
    """Return what gives a value, behind wires and further reads of an element that is there."""
    while True:
        node = node.through_wires()[-1]
        if node.item.op != "load" or not node.joined:
            return node
        words = [other for other, _ in node.before if other.item.op == "load"]
        if not words:
            return node
        node = words[-1]
