"""Long sums of integers as trees (UG1399, "pragma HLS expression_balance")."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .region import Node, Region

__all__ = ["balance"]

_LEAST = 3


def balance(region: Region) -> None:
    """Pair the summands of each chain of additions; a value carried from before is added last."""
    uses = Counter(name for value in region.function.values.values() for name in value.operands)
    for block in region.function.blocks.values():
        uses.update(name for item in block.instructions if not item.name for name in item.operands)
    inside: set[int] = set()
    for root in reversed(region.nodes):
        if root.item.op != "add" or id(root) in inside:
            continue
        chain, leaves = _chain(region, root, uses)
        inside |= {id(node) for node in chain}
        if len(leaves) > _LEAST:
            _rebuild(region, chain, leaves)


def _chain(region: Region, root: Node, uses: Counter[str]) -> tuple[list[Node], list[Node | None]]:
    """Return the additions below a root, the root last, and what they add (None: a constant)."""
    chain: list[Node] = []
    leaves: list[Node | None] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        chain.append(node)
        names = node.item.operands
        leaves += [None] * (2 - len(names))
        for name in names:
            other = region.by_value.get(name)
            if other is not None and other.item.op == "add" and uses[name] == 1:
                waiting.append(other)
            else:
                leaves.append(other)
    return chain[::-1], leaves


def _rebuild(region: Region, chain: list[Node], leaves: list[Node | None]) -> None:
    root = chain[-1]
    place = {id(node): at for at, node in enumerate(region.nodes)}
    carried = [leaf for leaf in leaves if leaf is not None and region.is_carried(leaf)]
    queue = [leaf for leaf in leaves if leaf is None or not region.is_carried(leaf)]
    queue.sort(key=lambda leaf: -1 if leaf is None else place[id(leaf)])
    queue += carried
    for node in chain:
        node.before = [(one, 0) for one in queue[:2] if one is not None]
        # Pairs of pairs; what is carried waits until it is the last.
        queue = [
            *queue[2 : len(queue) - len(carried)],
            node,
            *queue[max(2, len(queue) - len(carried)) :],
        ]
    moved = {id(node) for node in chain}
    kept = [node for node in region.nodes if id(node) not in moved or node is root]
    at = kept.index(root)
    region.nodes[:] = [*kept[:at], *chain, *kept[at + 1 :]]
