"""Elements that an iteration reads and the one before has written: they stay in a register.

LLVM, from which both tools are made, hands what a loop stores on to the load of the next iteration
where constants tell that it is the same element, whatever the data: `sum[i] = sum[i - 1] + x[i]`
reads no memory but before the loop, and II is that of the addition. Reports of both tools have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .operators import Cost
from .order import may_skip

if TYPE_CHECKING:
    from .region import Node, Region

__all__ = ["forward"]


def forward(region: Region) -> None:
    """Let loads of what the iteration before has written take neither a port nor time."""
    for nodes in region.accesses.values():
        stores = [node for node in nodes if node.access is not None and node.access.write]
        first = nodes[0].access
        if first is None or first.array.kind not in ("memory", "register") or not stores:
            continue
        for node in nodes:
            writer = _writer(region, node, stores) if node not in stores else None
            if writer is not None:
                value = writer.item.operands[0] if len(writer.item.operands) > 1 else ""
                region.handed_on[id(node)] = region.by_value.get(value, writer)
                node.joined, node.cost = True, Cost()


def _writer(region: Region, load: Node, stores: list[Node]) -> Node | None:
    """Return the one store that surely wrote an element an iteration before, and no other did."""
    assert load.access is not None
    symbol = "loop " + region.header
    step = load.access.address.factor(symbol)
    if not step or not _is_certain(region, load):
        return None
    writers = []
    for store in stores:
        assert store.access is not None
        apart = store.access.address.plus(load.access.address, -1)
        if apart.terms or not _is_certain(region, store):
            return None  # it may be any element
        if apart.constant == step:
            writers.append(store)
        elif abs(apart.constant - step) < load.access.array.element_bytes:
            return None
    is_one = len(writers) == 1 and writers[0].item.type == load.item.type
    return writers[0] if is_one else None


def _is_certain(region: Region, node: Node) -> bool:
    """Whether each iteration has an access, of a whole element."""
    access = node.access
    assert access is not None
    whole = node.item.bits >= min(8 * access.array.element_bytes, access.array.element_bits)
    return (
        whole
        and not node.joined
        and "volatile" not in node.item.text
        and not may_skip(region.function, region.header, [node.item.block])
    )
