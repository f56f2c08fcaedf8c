"""DEPENDENCE that is not true: with it the tools make hardware that reads an element too early."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .bounds import Carried, carried, compared
from .distances import sure_distance, told_of
from .ir import names_in
from .outside import is_always
from .paths import path
from .region import Region

__all__ = ["broken"]


def broken(
    region: Region, distances: Mapping[str, int], interval: int, most: int | None
) -> Iterator[str]:
    """Yield each promise about an array that a pipeline breaks, where all addresses are known.

    Parameters
    ----------
    region : Region
        With its schedule.
    distances : mapping of str to int
        What DEPENDENCE says: array ("" for all) -> after how many iterations, 0 for never.
    interval, most : int, int or None
        Its II; how often the loop runs at most.
    """
    if not distances:
        return
    kept, pairs = region.distances, carried(region, {})
    region.distances = kept
    for pair in pairs:
        array = pair.store.access.array if pair.store.access is not None else None
        if array is None or array.kind not in ("memory", "register"):
            continue
        told, sure = told_of(distances, array), _sure(region, pair)
        if told is None or not sure or 0 < told <= sure or (most is not None and sure >= most):
            continue
        end = path(region, pair.load, pair.store)
        if end is not None and end[0] + pair.gap > sure * interval:
            where = f"{pair.load.place.shown}: " if pair.load.place else ""
            ago = "one iteration" if sure == 1 else f"{sure} iterations"
            yield (
                f"{where}DEPENDENCE of {array.name!r} is not true: the element read here was "
                f"written {ago} before, and with II={interval} that write is not done yet; write "
                f"distance={sure}, or leave the promise out"
            )


def _sure(region: Region, pair: Carried) -> int:
    """After how many iterations the load certainly takes what that store wrote; 0 if unknown."""
    load, store = pair.load.access, pair.store.access
    if load is None or store is None or load.write:
        return 0
    terms = {term for one in (load, store) for term, _ in one.address.terms}
    names = {name for term in terms for name in names_in(term)}
    again = (
        node
        for node in region.accesses[id(store.array)]
        if node.access is not None
        and node.access.write
        and node.item.order < pair.load.item.order
        and node.access.address == load.address
    )
    blocks = [node.item.block for node in (pair.load, pair.store)]
    always = all(one is not None and is_always(region.function, one) for one in blocks)
    if not always or not names.isdisjoint(region.by_value) or next(again, None):
        return 0
    # The tools take any element of registers for the next one's; a promise is about the element.
    own = store.array.kind == "register"
    distance = compared(region, pair.load, pair.store) if own else pair.distance
    return sure_distance(load, store, region.header, distance)
