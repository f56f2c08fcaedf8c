"""The words of FIFOs in a region: those of ``hls::stream``, and of arrays that are streams."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING

from .array import Access
from .cost import Cost

if TYPE_CHECKING:
    from .region import Node, Region
    from .target import Target

__all__ = ["Fifos", "words_wait"]

#: The first release of Vivado HLS with words in the second state of a pipeline.
_KNOWN_FIRST = 2018.0
#: ns of a word, in an UltraScale+ part against others, and of whether there is one.
_WORD_NS, _SLOWER, _STATE_NS = 3.63, 1.2, 0.5


def words_wait(target: Target) -> bool:
    """Whether the words of a pipeline pass a cycle after it is known that the loop goes on.

    In RTL of Vivado HLS 2018 to 2020 FIFOs are read in the second state, with the end of the loop
    from a register, in 147 of 156 places (33 of 36 modules), and written no earlier. AXI4-Streams
    may be read in the first one, and what they bring is used in the second.
    """
    return target.tool == "vivado" and (not target.release or target.release >= _KNOWN_FIRST)


class Fifos:
    """What a region has read from and written to each FIFO: a word a cycle, in order."""

    def __init__(self) -> None:
        self._passed: dict[str, list[Node]] = defaultdict(list)
        self._last: dict[str, object] = {}
        self._reads: dict[str, list[Node]] = defaultdict(list)

    def word(self, region: Region, node: Node) -> None:
        """Add a call of ``hls::stream``."""
        base = region.arrays.base_of(node.item.operands[0])
        node.stream = base + _element(region, node.item.operands[0], base)
        asks = node.item.callee.endswith(("empty", "full"))
        is_axis = region.arrays.array(base).is_axis
        node.cost = Cost(0, _STATE_NS * region.target.speed if asks else _word(region, is_axis))
        previous = self._passed[node.stream]
        last = previous[-1] if previous else None
        if last is not None and not asks:
            node.before.append((last, 1))
        if not asks:
            previous.append(node)
        if node.item.callee.endswith("write"):  # what was stored since the last word is this one
            for other in itertools.takewhile(lambda one: one is not last, reversed(region.nodes)):
                item = other.item
                if item.op == "store" and region.arrays.base_of(item.operands[-1]) == base:
                    node.before.append((other, 0))
        if node.item.callee.endswith("read"):
            self._reads[base].append(node)

    def element(self, region: Region, node: Node, access: Access) -> None:
        """Add a load or store of an array that is a FIFO; fields of a struct pass together.

        It takes no time of a cycle: axis ports have registers.
        """
        name = region.arrays.base_of(node.item.operands[-1])
        key = name + "".join(f"_{bank}" for bank in access.banks)
        word = access.address.terms, access.address.constant // max(access.array.element_bytes, 1)
        previous = self._passed[key]
        if self._last.get(key) == word:
            node.before.append((previous[-1], 0))
            return
        node.before += [(previous[-1], 1)] if previous else []
        self._last[key], node.stream = word, key
        previous.append(node)

    def after_reads(self, region: Region) -> None:
        """Let what takes the word of a stream wait for the read that brings it.

        What lies in front of a stream is another part of its object: the size of an hls::Mat.
        """
        for node in region.nodes:
            item = node.item
            if item.op == "load" and node.access is None and item.operands:
                base = region.arrays.base_of(item.operands[-1])
                earlier = [
                    read
                    for read in self._reads.get(base, ())
                    if read.item.order <= item.order
                    and _offset(region, read.item.operands[0], base)
                    <= _offset(region, item.operands[-1], base)
                ]
                if earlier:
                    node.before.append((earlier[-1], 0))


def _word(region: Region, is_axis: bool) -> float:
    """Return the ns of a word: at a fast clock half a cycle, as the schedules say; none of axis."""
    target = region.target
    ns = _WORD_NS * target.speed * (_SLOWER if target.has_ultra_ram else 1.0)
    return 0.0 if is_axis else min(ns, target.budget / 2)


def _element(region: Region, pointer: str, base: str) -> str:
    """Which stream of an array of them a pointer is to; ``""`` for the first or only one."""
    offset = _offset(region, pointer, base)
    return f"+{offset}" if offset else ""


def _offset(region: Region, pointer: str, base: str) -> int:
    """Return how many bytes a pointer is behind its object's begin, 0 where that is not known."""
    known = region.function.known.get(pointer)
    if pointer == base or known is None or known.expression.terms != ((base, 1),):
        return 0
    return known.expression.constant
