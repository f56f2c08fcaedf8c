"""Elements side by side that a pipeline takes as one word of m_axi.

In Vitis's flow words have up to 512 bits, elsewhere as many as ``max_widen_bitwidth`` says (UG1399,
"Automatic Port Width Resizing").
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from .array import Array

if TYPE_CHECKING:
    from .region import Node, Region
    from .target import Target

__all__ = ["widen"]

#: Bytes of the widest word, and the first release that widens ports.
_WIDEST, _SINCE = 64, 2020.2


def widen(region: Region) -> None:
    """Join the reads, and the writes, of each aligned word that is taken whole.

    Words begin at multiples of their size from the port's address, in all iterations.
    """
    groups: dict[object, list[Node]] = defaultdict(list)
    for node in region.nodes:
        access = node.access
        if access is not None and access.array.kind == "m_axi" and not node.joined:
            block = id(node.item.block)
            groups[id(access.array), access.write, access.address.terms, block].append(node)
    for nodes in groups.values():
        for word in _words(region, nodes):
            _join(word)


def _words(region: Region, nodes: list[Node]) -> list[list[Node]]:
    """Return the accesses of each word that a port can hold; none where a part is missing."""
    offsets = {node.access.address.constant: node for node in nodes if node.access is not None}
    access = nodes[0].access
    assert access is not None, "only accesses are grouped"
    size = access.array.element_bytes
    width = min(size * len(nodes), _widest(access.array, region.target))
    if width <= size or width & (width - 1) or len(offsets) < len(nodes):
        return []
    base = region.arrays.base_of(nodes[0].item.operands[-1])
    if any(step % width for name, step in access.address.terms if name != base):
        return []
    words: dict[int, list[Node]] = defaultdict(list)
    for offset, node in offsets.items():
        words[offset // width].append(node)
    whole = all(len(word) * size == width for word in words.values())
    return [*words.values()] if whole else []


def _widest(array: Array, target: Target) -> int:
    if 0 < target.release < _SINCE or target.tool != "vitis":
        return 0
    if array.widest is not None:
        return array.widest // 8
    return _WIDEST if target.bus_latency else 0


def _join(word: list[Node]) -> None:
    """Let one access bring the word: the first of reads, the last of writes."""
    first = word[0].access
    assert first is not None, "only accesses are grouped"
    carrier = word[-1] if first.write else word[0]
    for node in word:
        if node is carrier:
            continue
        node.joined, node.cost = True, replace(node.cost, latency=0, delay=0.0)
        if first.write:
            carrier.before += node.before
        else:
            node.before = [(carrier, 0)]
