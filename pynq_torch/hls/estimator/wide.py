"""Elements side by side that a pipeline takes as one word of m_axi.

In Vitis's flow words have up to 512 bits, elsewhere as many as ``max_widen_bitwidth`` says (UG1399,
"Automatic Port Width Resizing").
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..spelling import is_width

if TYPE_CHECKING:
    from .region import Node, Region
    from .target import Target

__all__ = ["bits_for", "widen", "widest_of"]

#: Bytes of the widest word, and the first release that widens ports.
_WIDEST, _SINCE = 64, 2020.2


def widen(region: Region) -> None:
    """Join the reads, and the writes, of each aligned word that is taken whole.

    Words begin at multiples of their size from the port's address, in all iterations.
    """
    groups: dict[object, list[Node]] = defaultdict(list)
    for node in region.nodes:
        access = node.access
        if access is None or "volatile" in node.item.text:  # each of which is asked for by itself
            continue
        if access.array.kind == "m_axi" and not node.joined:
            block = id(node.item.block)
            groups[id(access.array), access.write, access.address.terms, block].append(node)
    for nodes in groups.values():
        for word in _words(region, nodes, _widest(nodes[0], region.target)):
            _join(word)


def bits_for(region: Region, nodes: Sequence[Node]) -> int:
    """Return the bits of ``max_widen_bitwidth`` that make one word of accesses; 0 for none."""
    found = [node.access for node in nodes if node.access is not None]
    rows = {(id(access.array), access.address.terms) for access in found}
    volatile = any("volatile" in node.item.text for node in nodes)
    if len(rows) > 1 or volatile or not _may_widen(region.target) or found[0].array.widest == 0:
        return 0
    words = _words(region, nodes, _WIDEST)
    return 8 * found[0].array.element_bytes * len(nodes) if len(words) == 1 else 0


def widest_of(ports: Mapping[str, Mapping[str, str]], bundle: str) -> int | None:
    """Return the bits to which a bundle's words may be widened; None where INTERFACE does not say.

    A bundle has one width, the largest that its arguments ask for.
    """
    here = (port for port in ports.values() if port.get("bundle", "gmem") == bundle)
    asked = (port.get("max_widen_bitwidth", "") for port in here)
    return max(
        (int(bits) for bits in asked if bits.isdigit() and is_width(int(bits))), default=None
    )


def _words(region: Region, nodes: Sequence[Node], widest: int) -> list[list[Node]]:
    """Return the accesses of each word that a port can hold; none where a part is missing."""
    offsets = {node.access.address.constant: node for node in nodes if node.access is not None}
    access = nodes[0].access
    assert access is not None, "only accesses are grouped"
    size = access.array.element_bytes
    width = min(size * len(nodes), widest)
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


def _widest(node: Node, target: Target) -> int:
    """Return the bytes of the widest word that the array of an access may have."""
    assert node.access is not None, "only accesses are grouped"
    if not _may_widen(target):
        return 0
    if node.access.array.widest is not None:
        return node.access.array.widest // 8
    return _WIDEST if target.bus_latency else 0


def _may_widen(target: Target) -> bool:
    return target.tool == "vitis" and not 0 < target.release < _SINCE


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
