"""How to cut an array so that a pipeline gets the ports it needs: what helps is tried first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import ceil, prod

from .array import Array, banks_of
from .region import Node, Region

__all__ = ["partition"]

#: How a dimension (from 1, 0 for all) is cut, as a plan has it.
_Part = tuple[int, str, int]
#: Accesses above which cuts of two dimensions are not tried, and the most parts of one.
_MANY, _MOST_PARTS = 400, 64
#: Elements up to which an array is cut into registers.
_REGISTERS = 1024


def partition(region: Region, array: Array, asked: int) -> str:
    """Return which ARRAY_PARTITION of an array lets a pipeline reach the II asked for.

    Each is tried as the estimate would count it; the one with the fewest parts is named. Where
    none is enough, the one that helps most is named with what it reaches.
    """
    nodes = [
        node
        for node in region.accesses[id(array)]
        if node.access is not None and not node.joined and region.ports(node)
    ]
    now = _interval(region, nodes, array, array.plan.parts)
    if not array.dimensions:  # nothing can be tried on a pointer
        return f"make it an array of a known size and partition it by {ceil(now / max(asked, 1))}"
    best: tuple[int, list[_Part]] = (now, [])
    for more in _candidates(array, len(nodes), now, asked):
        changed = {part[0] for part in more}
        kept = [part for part in array.plan.parts if part[0] not in changed and 0 not in changed]
        reached = _interval(region, nodes, array, kept + more)
        if reached < best[0]:
            best = reached, more
        if reached <= asked:
            break
    reached, parts = best
    if not parts:
        return "no ARRAY_PARTITION gives it more; read it less often"
    said = " and ".join(_said(part, array) for part in parts)
    if {kind for _, kind, _ in array.plan.parts} == {"block"} and parts[0][1] == "cyclic":
        said = said.replace(" by ", " cyclic, not in blocks, by ", 1)
    left = f", for II={reached}" if reached > asked else ""
    return f"partition it{said}{left}"


def _said(part: _Part, array: Array) -> str:
    dimension, kind, factor = part
    where = f" in dimension {dimension}" if len(array.dimensions) > 1 else ""
    if not dimension:
        return " completely in every dimension (dim=0)"
    if kind == "complete":
        return f" completely{where}"
    return f" in {factor} blocks{where}" if kind == "block" else f" by {factor}{where}"


def _candidates(array: Array, count: int, now: int, asked: int) -> Iterator[list[_Part]]:
    """Yield cuts: of one dimension into more and more parts, of two, into registers."""
    sizes = array.dimensions
    least = ceil(now / max(asked, 1))
    factors = sorted({least, *(1 << bit for bit in range(1, 7) if 1 << bit > least)})
    single: list[_Part] = []
    for factor in factors:
        for number, size in reversed([*enumerate(sizes, 1)]):
            if (not size or factor < size) and factor <= _MOST_PARTS:
                single += [(number, "cyclic", factor), (number, "block", factor)]
    complete: list[_Part] = [(n, "complete", 0) for n, _ in sorted(enumerate(sizes, 1), key=_size)]
    if len(sizes) > 1:
        single += complete
    yield from ([part] for part in single)
    if len(sizes) > 1 and count <= _MANY:
        few = [part for part in single if part[1] != "block" and part[2] <= 2 * least]
        for one, other in combinations(few, 2):
            if one[0] != other[0]:
                yield [one, other]
    if 0 < prod(sizes) <= _REGISTERS:
        yield [(0 if len(sizes) > 1 else 1, "complete", 0)]


def _size(numbered: tuple[int, int]) -> int:
    return numbered[1]


def _interval(region: Region, nodes: list[Node], array: Array, parts: list[_Part]) -> int:
    """Return the interval that the ports of an array allow if it is cut so."""
    trial = replace(array, plan=replace(array.plan, parts=parts), divisions=[])
    if trial.is_registers:
        return 1
    taken: list[tuple[Node, tuple[int | None, ...]]] = []
    for node in nodes:
        assert node.access is not None
        banks = banks_of(trial, node.access.address, write=node.access.write)
        taken.append((node, banks))
    met = {banks for _, banks in taken}
    users: dict[tuple[int | None, ...], list[Node]] = defaultdict(list)
    for node, banks in taken:
        fits = [one for one in met if _is_in(one, banks)] if None in banks else [banks]
        for one in fits:
            users[one].append(node)
    ports = trial.ports()
    return max((ceil(region.together(found) / ports) for found in users.values()), default=1)


def _is_in(one: tuple[int | None, ...], banks: tuple[int | None, ...]) -> bool:
    return all(b is None or a == b for a, b in zip(one, banks, strict=True))
