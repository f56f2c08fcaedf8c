"""Elements that an iteration reads and the one before has written: they stay in a register.

LLVM, from which both tools are made, hands what a loop stores on to the load of the next iteration
where constants tell that it is the same element, whatever the data: `sum[i] = sum[i - 1] + x[i]`
reads no memory but before the loop, and II is that of the addition. Reports of both tools have it.

An element that stays the same while a loop runs is a register of it in LLVM's own code, if each
iteration writes it. Vitis HLS has a register for one that only some of them read and write, too:
five loops of two reports have II=1, or that of the addition, at `if (c) sum[k] += x[i]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .cost import Cost
from .order import may_skip

if TYPE_CHECKING:
    from .region import Node, Region

__all__ = ["forward"]


def forward(region: Region) -> None:
    """Let loads of what the iteration before has written take neither a port nor time."""
    vivado = region.target.tool == "vivado"
    if region.outer and vivado:
        return
    for nodes in region.accesses.values():
        stores = [node for node in nodes if node.access is not None and node.access.write]
        first = nodes[0].access
        if first is None or first.array.kind not in ("memory", "register") or not stores:
            continue
        if vivado and _are_copies(nodes):
            continue
        if not vivado and _stays(region, nodes):
            made = [_made(region, store) for store in stores]
            for node in nodes:
                node.joined, node.cost = True, Cost()
                if node not in stores:
                    region.handed_on[id(node)] = made
            continue
        for node in nodes:
            writers = _writers(region, node, nodes, stores) if node not in stores else []
            if writers:
                region.handed_on[id(node)] = [_made(region, one) for one in writers]
                node.joined, node.cost = True, Cost()


def _stays(region: Region, nodes: Sequence[Node]) -> bool:
    """Whether a loop takes one element of an array, in some iterations only, and no other."""
    first, loop = nodes[0].access, region.loop
    if first is None or first.array.kind != "memory" or not first.array.local:
        return False
    address, symbol = first.address, "loop " + region.header
    terms = [name for name, _ in address.terms]
    if loop is None or loop.inner or any(one == symbol or one in region.by_value for one in terms):
        return False
    loads = [one for one in nodes if one.access and not one.access.write]
    same = all(one.access and one.access.address == address and _is_whole(one) for one in nodes)
    return same and bool(loads) and not _is_certain(region, loads)


def _are_copies(nodes: Sequence[Node]) -> bool:
    """Whether unrolling has made some accesses of others: Vivado HLS hands on before it unrolls."""
    return len({(node.item.op, *node.item.chain) for node in nodes}) < len(nodes)


def _made(region: Region, store: Node) -> Node:
    """Return what makes the value of a store; the store, where that is a constant."""
    value = store.item.operands[0] if len(store.item.operands) > 1 else ""
    return region.by_value.get(value, store)


def _writers(region: Region, load: Node, nodes: list[Node], stores: list[Node]) -> list[Node]:
    """Return the stores, one in each branch, that surely wrote an element an iteration before.

    Each iteration has to read it, too, in one branch or the other.
    """
    assert load.access is not None
    symbol = "loop " + region.header
    step = load.access.address.factor(symbol)
    if not step or not _is_whole(load) or _is_narrowed(region, load):
        return []
    writers = []
    for store in stores:
        assert store.access is not None
        apart = store.access.address.plus(load.access.address, -1)
        if apart.terms or not _is_whole(store):
            return []  # it may be any element
        if apart.constant == step:
            writers.append(store)
        elif abs(apart.constant - step) < load.access.array.element_bytes:
            return []
    if len(writers) != len({one.item.block for one in writers}) or not writers:
        return []
    same = all(one.item.type == load.item.type for one in writers)
    if not same or not _is_certain(region, writers):
        return []
    alike = [one for one in nodes if one.access and one.access.address == load.access.address]
    return writers if _is_certain(region, alike) else []


def _is_narrowed(region: Region, load: Node) -> bool:
    """Whether bits are cut off an index: the compiler does not see that it is that of a write.

    ``uint8_t k = 4 * (i - 1)`` in the key of AES is read through the ports (II=6 in a report).
    """
    waiting, seen = [load.item.operands[-1]], set[str]()
    for name in waiting:
        item = region.function.values.get(name)
        if item is None or name in seen or item.op in ("phi", "load"):
            continue
        seen.add(name)
        if item.op in ("and", "trunc"):
            return True
        waiting += item.operands
    return False


def _is_certain(region: Region, nodes: Sequence[Node]) -> bool:
    """Whether each iteration has one of some accesses."""
    return not may_skip(region.function, region.header, [node.item.block for node in nodes])


def _is_whole(node: Node) -> bool:
    """Whether an access is of a whole element."""
    access = node.access
    assert access is not None
    whole = node.item.bits >= min(8 * access.array.element_bytes, access.array.element_bits)
    return whole and not node.joined and "volatile" not in node.item.text
