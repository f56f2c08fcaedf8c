"""Words of a memory that a later iteration writes over: its write waits until they are read.

A read that comes behind a write in an iteration holds up the write of the next one, as logs of
Vivado HLS 2017 and 2018 and of Vitis HLS say ("Unable to enforce a carried dependence constraint
(II = 1, distance = 1, offset = 1) between 'load' operation ... and 'store' operation"): a word that
is cleared, and another one that is then read, are a pipeline of two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .bounds import Limit, counter
from .distances import distance_of, told_of
from .effort import EACH
from .region import MOST_PAIRS, Node, Region

__all__ = ["Overwritten", "overwritten"]


@dataclass(frozen=True)
class Overwritten:
    """A store that may write what a load of an earlier iteration reads."""

    load: Node
    store: Node
    #: So many iterations before.
    distance: int

    def least(self, interval: int) -> int:
        """Return the first cycle in which the store may be: the one after the load."""
        return self.load.start[0] + 1 - interval * self.distance

    def limit(self, interval: int) -> Limit:
        """Return why a schedule needs an interval."""
        assert self.load.access is not None
        name = self.load.access.array.name
        said = (
            f"`{name}` is read after it was written, and the next iteration may not write it "
            "before; say DEPENDENCE false where addresses never meet"
        )
        return Limit(interval, said, self.store.place)


def overwritten(region: Region, distances: Mapping[str, int]) -> list[Overwritten]:
    """Return the loads behind a store that may write their word in a later iteration."""
    found = []
    for nodes in region.accesses.values():
        array = nodes[0].access.array if nodes[0].access is not None else None
        if array is None or array.kind != "memory":
            continue
        told = told_of(distances, array)
        if told == 0:
            continue
        for load, stores in _behind(region, nodes):
            region.effort.add(EACH * len(stores))
            for store in stores:
                assert load.access is not None and store.access is not None
                symbol = counter(region, load, store)
                if distance := distance_of(store.access, load.access, symbol):
                    found.append(Overwritten(load, store, max(distance, told or 0)))
    return found


def _behind(region: Region, nodes: list[Node]) -> Iterator[tuple[Node, list[Node]]]:
    """Yield each load of an array that takes a port, with the last stores before it."""
    stores: list[Node] = []
    for node in nodes:
        assert node.access is not None
        if node.access.write:
            stores.append(node)
        elif not node.joined and id(node) not in region.handed_on:
            yield node, stores[-MOST_PAIRS:]
