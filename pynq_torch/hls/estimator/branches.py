"""Code that is not pipelined: a block begins in the state in which those before it end.

In a pipeline a branch becomes a condition of each operation. Elsewhere both tools leave it a
branch of the state machine, but for branches of so little work that it is done either way.
"""

from __future__ import annotations

from .ir import Block
from .region import Node, Region

__all__ = ["Branches"]


class Branches:
    """The cycles in which the blocks of a region begin, while its operations are placed."""

    def __init__(self, region: Region) -> None:
        self._region = region
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._heads: dict[str, str] = {}
        self._working = {
            node.item.block.name
            for node in region.nodes
            if node.item.block is not None and _is_work(node)
        }
        for name in region.numbers:
            self._heads[name] = self._head(name)

    def begin(self, block: Block | None) -> int:
        """Return the first cycle in which an operation of a block may be."""
        if block is None:
            return 0
        return self._begin(self._heads[block.name])

    def note(self, node: Node) -> None:
        """Take into account when an operation ends."""
        if node.item.block is not None:
            head = self._heads[node.item.block.name]
            self._last[head] = max(self._last.get(head, 0), node.end[0])

    def _begin(self, head: str) -> int:
        if head not in self._first:
            ends = (self._last.get(one, self._begin(one)) for one in self._before(head))
            self._first[head] = max(ends, default=0)
        return self._first[head]

    def _before(self, name: str) -> list[str]:
        """The blocks that lead to one, but for the ends of iterations."""
        region = self._region
        if name == region.header:
            return []
        before = region.function.predecessors[name]
        return list(dict.fromkeys(self._heads[one] for one in before if one in self._heads))

    def _head(self, name: str) -> str:
        """Return the block with which one is done: what needs no branch joins the one before."""
        heads = self._before(name)
        alone = len(self._region.function.predecessors[name]) == 1
        if len(heads) != 1 or (alone and name in self._working):
            return name
        return heads[0]


def _is_work(node: Node) -> bool:
    """Whether an operation is done only where its branch is taken."""
    return bool(node.stream) or (node.access is not None and node.access.write)
