"""Which ports of a memory read and which write: what block RAM it takes depends on it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from .array import Array
from .region import Node, Region
from .scev import Expression

if TYPE_CHECKING:
    from .plan import Plan

__all__ = ["Ports", "Use", "shared_buses"]


class Use(NamedTuple):
    """The most that is done in a cycle with a bank of an array."""

    reads: int = 0
    writes: int = 0
    #: Where it is read and written.
    both: int = 0
    #: Writes that are not of two branches, to places that vary.
    along: int = 0
    #: Those to any place.
    fixed: int = 0
    #: Whether an access is to a place that varies.
    varies: int = 0


class Ports:
    """How the regions of a function, and those it calls, use each array."""

    def __init__(self, tool: str) -> None:
        self._in_modules = tool == "vitis"
        self._uses: dict[Array, set[Use]] = defaultdict(set)
        #: Of each table the reads that pipelines have on average in a cycle, rounded up.
        self._tables: Counter[Array] = Counter()

    def of(self, array: Array) -> set[Use]:
        """Return the uses of an array."""
        return self._uses[array]

    def copies(self, array: Array) -> int:
        """Return how many memories a table is in, so that enough of it can be read at a time.

        Two ports read each of them in Vivado HLS. Vitis HLS takes one more for each further port.
        """
        if array.divisions:
            return max(division.copies for division in array.divisions)
        most = self._tables[array]
        return max(most - 1 if self._in_modules else ceil(most / 2), 1)

    def add(self, array: Array, uses: Iterable[Use]) -> None:
        """Note what a function that is called does with an array."""
        self._uses[array.whole or array] |= set(uses)

    def is_dual(self, array: Array) -> bool:
        """Whether both ports read, or both write, or Vivado HLS is asked for ports that do.

        In Vitis HLS each loop is a module of its own, that takes the first port if it needs one:
        where that reads, and another module reads through the second port while it writes, no
        port is left for writing alone.
        """
        uses = self._uses[array]
        if array.divisions:
            return any(division.is_dual for division in array.divisions)
        if array.constant:
            return self.copies(array) > 1
        if array.plan.kind and "t2p" not in array.plan.kind:
            return False
        if array.plan.kind and not self._in_modules:
            return True
        if any(max(use.reads, use.writes) > 1 for use in uses) or self._is_written_twice(array):
            return True
        both = any(use.both > 1 for use in uses)
        return self._in_modules and both and any(use.reads and use.both < 2 for use in uses)

    def writes_twice(self, array: Array) -> bool:
        """Whether an array is written at two places in a cycle, which no memory of LUTs does."""
        along = any(use.along > 1 for use in self._uses[array]) or self._is_written_twice(array)
        return along and self.is_dual(array)

    def _is_written_twice(self, array: Array) -> bool:
        """Whether code that is no pipeline writes two numbered elements of a memory in a cycle.

        Of an array that has no other places each element is a register (UG902,
        auto_promotion_threshold).
        """
        uses = self._uses[array]
        return any(use.varies for use in uses) and any(use.fixed > 1 for use in uses)

    def count(self, region: Region, interval: int | None) -> None:
        """Count the accesses of a region that is scheduled."""
        slots: dict[tuple[Array, object, int], list[Node]] = defaultdict(list)
        for node in region.nodes:
            access = node.access
            if access is not None and access.array.kind == "memory" and not node.joined:
                cycle = node.start[0] % interval if interval else node.start[0]
                slots[access.array, access.banks, cycle].append(node)
        written = {} if self._in_modules else _written(region)
        found: dict[Array, Use] = defaultdict(Use)
        for (array, _, _), nodes in slots.items():
            met = [(node, node.access) for node in nodes if node.access is not None]
            every = [node for node, access in met if access.write]
            stores = [node for node, access in met if access.write and access.address.terms]
            varies = any(access.address.terms for _, access in met)
            reads = len({access.address for _, access in met if not access.write})
            writes = len({access.address for _, access in met if access.write})
            along, fixed = (
                region.together(one) if len(one) > 1 else len(one) for one in (stores, every)
            )
            if reads > 1 and array in written:  # by the port that reads it, as what is swapped
                read = {one.address for _, one in met if not one.write}
                along = max(along, len(read & written[array]))
            both = reads + writes if reads and writes else 0
            one = writes if interval else max(along, min(writes, 1))
            now = Use(reads, one, both, along, 0 if interval else fixed, varies)
            found[array] = Use(*map(max, found[array], now))
        for array, use in found.items():
            self._uses[array].add(use)
        if interval:
            self._count_tables(region, interval)

    def _count_tables(self, region: Region, interval: int) -> None:
        """Note how many reads of each table a pipeline has at a time."""
        reads: Counter[tuple[Array, object]] = Counter()
        for node in region.nodes:
            if node.access is not None and node.access.array.constant and not node.joined:
                reads[node.access.array, node.access.banks] += 1
        for (array, _), number in reads.items():
            self._tables[array] = max(self._tables[array], ceil(number / interval))


def _written(region: Region) -> dict[Array, set[Expression]]:
    """Return where a region writes to each array, but for fixed places."""
    found: dict[Array, set[Expression]] = defaultdict(set)
    for node in region.nodes:
        access = node.access
        if access is not None and access.write and access.address.terms:
            found[access.array].add(access.address)
    return found


def shared_buses(plan: Plan) -> list[list[str]]:
    """Return which arguments are behind one m_axi port: in Vivado HLS count all as behind one.

    In Vitis HLS they are those of a bundle (three loops of a report of 2024.1).
    """
    if plan.tool == "vivado":
        return [plan.buses()]
    found: dict[str, list[str]] = {}
    for name in plan.buses():
        found.setdefault(plan.top.ports[name].get("bundle", ""), []).append(name)
    return [names for names in found.values() if len(names) > 1]
