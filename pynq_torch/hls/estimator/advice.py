"""How to cut an array so that a pipeline gets the ports it needs: what helps is tried first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import ceil, prod

from .array import Array, banks_of, fitting
from .distances import told_of
from .ir import ANY
from .region import Node, Region

__all__ = ["as_short", "partition", "taking"]

#: How a dimension (from 1, 0 for all) is cut, as a plan has it.
_Part = tuple[int, str, int]
#: Parts of a dimension that are tried, the most of one that is cut completely, the most of all.
_FACTORS, _COMPLETE, _MOST = (2, 3, 4, 5, 6, 8, 16, 32, 64), 64, 1024
#: Of several dimensions only small parts are tried; so many accesses are looked at in all.
_SMALL, _PATIENCE = 9, 40_000


def partition(region: Region, array: Array, asked: int, by_itself: int = ANY) -> str:
    """Return which ARRAY_PARTITION of an array lets a pipeline reach the II asked for.

    Each is tried as the estimate would count it, from few parts to many. Where none is enough, the
    one that helps most is named with what it reaches, if that is less than the interval that the
    tool gets `by_itself`.
    """
    nodes = taking(region, array)
    kind = array.plan.kind
    better = kind.replace("_1p", "_2p").replace("_s2p", "_t2p")
    if better == kind:
        return _cut(region, nodes, array, asked, by_itself)
    two = replace(array, plan=replace(array.plan, kind=better))
    said = f"ask for {two.plan.kind.upper()}, not {kind.upper()}"
    if region.target.tool == "vitis" and not array.local:  # which has one port if nothing is said
        said = f"write storage_type={two.plan.kind} in its INTERFACE"
    reached = _interval(region, nodes, two, two.plan.parts)
    return said if reached <= asked else f"{said}, and {_cut(region, nodes, two, asked, reached)}"


def _cut(region: Region, nodes: list[Node], array: Array, asked: int, by_itself: int) -> str:
    """Return which ARRAY_PARTITION lets some accesses of an array be in the II asked for."""
    now = min(_interval(region, nodes, array, array.plan.parts), by_itself)
    least = ceil(now / max(asked, 1))
    if not array.dimensions:  # nothing can be tried on a pointer
        return f"make it an array of a known size and partition it by {least}"
    best: tuple[int, list[_Part]] = (now, [])
    candidates = sorted(_candidates(array, least), key=lambda parts: _order(array, parts))
    for more in candidates[: max(_PATIENCE // max(len(nodes), 1), 1)]:
        reached = _interval(region, nodes, array, _kept(array, more) + more)
        if reached < best[0]:
            best = reached, more
        if reached <= asked:
            break
    if best[0] > asked and 0 < prod(array.dimensions) <= _MOST:
        best = 1, [(0 if len(array.dimensions) > 1 else 1, "complete", 0)]
        chosen = all(_is_chosen(nodes, write=write) for write in (True, False))
        told = told_of(region.distances, array)
        if chosen and told != 0:
            return (
                f"partition it{_said(best[1][0], array)}, and say DEPENDENCE inter false if no "
                "iteration reads what one before it wrote"
            )
    reached, parts = best
    if not parts:
        return "no ARRAY_PARTITION gives it more; read it less often"
    said = " and".join(_said(part, array) for part in parts)
    if {kind for _, kind, _ in array.plan.parts} == {"block"} and parts[0][1] == "cyclic":
        said = said.replace(" by ", " cyclic, not in blocks, by ", 1)
    left = f", for II={reached}" if reached > asked else ""
    return f"partition it{said}{left}"


def as_short(region: Region, array: Array) -> list[Array]:
    """Return the other arrays whose ports keep a pipeline as long as those of one do."""
    needed: dict[Array, int] = {}
    for nodes in region.accesses.values():
        assert nodes[0].access is not None
        other = nodes[0].access.array
        if other.kind == "memory":
            needed[other] = _interval(region, taking(region, other), other, other.plan.parts)
    now = needed.pop(array, 0)
    return [other for other, interval in needed.items() if now <= interval > 1]


def taking(region: Region, array: Array) -> list[Node]:
    """Return the accesses of an array that take a port."""
    return [
        node
        for node in region.accesses[id(array)]
        if node.access is not None and not node.joined and region.ports(node)
    ]


def _is_chosen(nodes: list[Node], *, write: bool) -> bool:
    """Whether an index that is no constant chooses what is written, or read."""
    found = [node.access for node in nodes if node.access is not None]
    return any(access.address.terms for access in found if access.write == write)


def _said(part: _Part, array: Array) -> str:
    dimension, kind, factor = part
    where = f" in dimension {dimension}" if len(array.dimensions) > 1 else ""
    if not dimension:
        return " completely in every dimension (dim=0)"
    if kind == "complete":
        return f" completely{where}"
    return f" in {factor} blocks{where}" if kind == "block" else f" by {factor}{where}"


def _candidates(array: Array, least: int) -> Iterator[list[_Part]]:
    """Yield cuts of one dimension, and of several, into so many parts at least."""
    sizes = dict(enumerate(array.dimensions, 1))
    single: list[_Part] = []
    for number, size in sizes.items():
        for factor in {least, *_FACTORS}:
            if not size or factor < size:
                single += [(number, "cyclic", factor), (number, "block", factor)]
        if len(sizes) > 1 and 0 < size <= _COMPLETE:
            single.append((number, "complete", 0))
    yield from ([part] for part in single if _parts(array, part) >= least)
    few = [part for part in single if part[1] != "block" and _parts(array, part) <= _SMALL]
    for several in range(2, min(len(sizes), 3) + 1):
        for parts in combinations(few, several):
            dimensions = {part[0] for part in parts}
            if len(dimensions) == several and prod(_parts(array, one) for one in parts) >= least:
                yield [*parts]


def _kept(array: Array, more: list[_Part]) -> list[_Part]:
    """Return the cuts of an array that stay beside others, which are of dimensions of theirs."""
    changed = {part[0] for part in more}
    return [part for part in array.plan.parts if part[0] not in changed and 0 not in changed]


def _parts(array: Array, part: _Part) -> int:
    dimension, kind, factor = part
    if not dimension:
        return prod(array.dimensions) if kind == "complete" else factor ** len(array.dimensions)
    if dimension > len(array.dimensions):  # a warning is for it
        return 1
    return array.dimensions[dimension - 1] if kind == "complete" else factor


def _order(array: Array, parts: list[_Part]) -> tuple[int, int, bool, int]:
    """Few parts first, of few dimensions; then cyclic ones, of the last dimension."""
    count = prod(_parts(array, part) for part in _kept(array, parts) + parts)
    odd = [part for part in parts if part[2] & (part[2] - 1)]  # to find the bank is a division
    return 2 * count if odd else count, len(parts), parts[0][1] != "cyclic", -parts[0][0]


def _interval(region: Region, nodes: list[Node], array: Array, parts: list[_Part]) -> int:
    """Return the interval that the ports of an array allow if it is cut so."""
    trial = replace(array, plan=replace(array.plan, parts=parts), divisions=[])
    if trial.is_registers:
        return 1
    taken: list[tuple[Node, tuple[int | None, ...]]] = []
    for node in nodes:
        assert node.access is not None
        known, write = region.function.known, node.access.write
        banks = banks_of(trial, node.access.address, known, write=write)
        taken.append((node, banks))
    met = {banks for _, banks in taken}
    users: dict[tuple[int | None, ...], list[Node]] = defaultdict(list)
    for node, banks in taken:
        for one in fitting(banks, met) if None in banks else [banks]:
            users[one].append(node)
    ports = trial.ports()
    return max((ceil(region.together(found) / ports) for found in users.values()), default=1)
