"""Words of several elements, as ARRAY_RESHAPE makes them, or of several fields.

To write one of them Vivado HLS reads the word, changes a part of it and writes it back. The next
iteration, whose element may be in the same word, waits for that: II=2 (its schedules of AMD's DCT
and of a network of single bits, 2016.1 and 2019.2). All elements of a word together are one write.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .array import may_meet

if TYPE_CHECKING:
    from .region import Node, Region

__all__ = ["rewritten", "same_word"]


def rewritten(region: Region) -> list[Node]:
    """Return the writes of parts of words, each of which takes the cycle of a read more."""
    found: list[Node] = []
    if region.target.tool != "vivado":
        return found
    for nodes in region.accesses.values():
        stores = [node for node in nodes if node.access is not None and node.access.write]
        if not stores or stores[0].access is None or stores[0].access.array.kind != "memory":
            continue
        _, elements = stores[0].access.array.banks()
        places = {node.access.address for node in stores if node.access is not None}
        if elements > 1 and len(places) < elements:
            found += [node for node in stores if not node.joined]
    for node in found:
        node.cost = replace(node.cost, latency=node.cost.latency + 1)
    return found


def same_word(node: Node, previous: list[Node], base: str) -> Node | None:
    """Return the access that takes the word of which this one is another field or lane.

    Structs and vectors are words of a memory or a bus (UG1399, "Aggregate Memory Mapped
    Interface"); fields that are apart have a memory each.
    """
    access = node.access
    assert access is not None
    array = access.array
    if array.kind not in ("memory", "m_axi") or node.item.bits >= 8 * array.element_bytes:
        return None
    steps = [step for name, step in access.address.terms if name != base and name[:5] != "loop "]
    if array.kind == "m_axi" and any(step % array.element_bytes for step in steps):
        return None  # where the words of the bus begin is not known
    for other in reversed(previous):
        assert other.access is not None
        same = other.access.address.terms == access.address.terms and (
            other.access.address.constant // array.element_bytes
            == access.address.constant // array.element_bytes
        )
        if other.access.write != access.write:
            if may_meet(access, other.access):
                return None
        elif same and not other.joined:
            return other
    return None
