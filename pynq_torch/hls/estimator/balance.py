"""Long sums of integers as trees (UG1399, "pragma HLS expression_balance")."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from .scev import Expression

if TYPE_CHECKING:
    from .region import Node, Region

__all__ = ["balance"]

_LEAST = 3


def balance(region: Region) -> None:
    """Pair the summands of each chain of additions.

    A value that comes from the iteration before, also as an element of an array that the sum may
    be written to, is added last. Many of them are no sum that goes on, but a line that moves on:
    a tree as any other (four reports of FIR filters and of a sum of a matrix).
    """
    place = {id(node): at for at, node in enumerate(region.nodes)}
    accesses = [node.access for node in region.nodes if node.access is not None]
    written = {(id(one.array), one.address) for one in accesses if one.write}
    inside: set[int] = set()
    rebuilt: dict[int, list[Node]] = {}
    for root in reversed(region.nodes):
        if root.item.op != "add" or id(root) in inside:
            continue
        chain, leaves = _chain(region, root)
        inside |= {id(node) for node in chain}
        if len(leaves) > _LEAST:
            last = [leaf for leaf in leaves if _is_carried(region, leaf, written)]
            last = last if len(last) <= _LEAST else []
            first = [leaf for leaf in leaves if leaf not in last]
            first.sort(key=lambda leaf: -1 if leaf is None else place[id(leaf)])
            _pair(chain, deque(first), deque(last))
            rebuilt |= {id(node): [] for node in chain} | {id(root): chain}
    region.nodes[:] = [one for node in region.nodes for one in rebuilt.get(id(node), [node])]


def _is_carried(region: Region, leaf: Node | None, written: set[tuple[int, Expression]]) -> bool:
    """Whether a summand comes from the iteration before; `written` are arrays, and where."""
    if leaf is None:
        return False
    leaf = leaf.through_wires()[-1]
    if leaf.access is None:
        return region.is_carried(leaf)
    moves = any(region.header in name for name, _ in leaf.access.address.terms)
    return not moves and (id(leaf.access.array), leaf.access.address) in written


def _chain(region: Region, root: Node) -> tuple[list[Node], list[Node | None]]:
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
            if other is not None and other.item.op == "add" and region.function.uses[name] == 1:
                waiting.append(other)
            else:
                leaves.append(other)
    return chain[::-1], leaves


def _pair(chain: list[Node], leaves: deque[Node | None], carried: deque[Node | None]) -> None:
    """Let each addition of a chain take two summands, pairs of pairs; what is carried is last."""
    for node in chain:
        pair = [(leaves or carried).popleft() for _ in range(2)]
        node.before = [(one, 0) for one in pair if one is not None]
        leaves.append(node)
