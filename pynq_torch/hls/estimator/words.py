"""Words that ARRAY_RESHAPE makes of several elements.

To write one of them Vivado HLS reads the word, changes a part of it and writes it back. The next
iteration, whose element may be in the same word, waits for that: II=2 (its schedules of AMD's DCT
and of a network of single bits, 2016.1 and 2019.2). All elements of a word together are one write.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .region import Node, Region

__all__ = ["rewritten"]


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
