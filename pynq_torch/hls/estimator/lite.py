"""Scalars behind AXI4-Lite: to read or to write one takes a part of a cycle.

All 313 in the schedules of 58 modules, of 2018 to 2025, take 1 ns, in parts of every family. They
are read in the first state, and stay in registers behind it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .cost import Cost
from .ir import Instruction
from .place import plain_name

if TYPE_CHECKING:
    from .latency import Body
    from .region import Node, Region

__all__ = ["READ", "with_registers"]

#: The operation that reads a scalar.
READ = "read"
_LITE_NS = 1.0


def with_registers(body: Body, region: Region) -> None:
    """Let a region of the top function wait for the scalars that it reads or writes there."""
    ports = body.plan.ports if body.plan is not None else {}
    lite = {name for name, port in ports.items() if port.get("mode", "").lower() == "s_axilite"}
    if not lite:
        return
    for node in region.nodes:
        array = node.access.array if node.access is not None else None
        if array is not None and array.kind == "scalar" and not array.local and array.name in lite:
            node.cost = replace(node.cost, delay=node.cost.delay + _LITE_NS)
    if region.nodes and _is_first(body, region.nodes[0].item):
        mine = {name for name in body.function.arguments if plain_name(name) in lite}
        region.nodes[:0] = _reads(region, mine)


def _is_first(body: Body, item: Instruction) -> bool:
    """Whether an operation is in the first state: in no loop, and behind no call."""
    block = next(iter(body.function.blocks.values()))
    if item.block is not block:
        return False
    before = block.instructions[: block.instructions.index(item)]
    return not any(one.callee in body.kernel.module.functions for one in before)


def _reads(region: Region, arguments: set[str]) -> list[Node]:
    """Return the operations that read arguments, each before what takes it."""
    found: dict[str, Node] = {}
    make = type(region.nodes[0])
    for node in region.nodes:
        if node.item.op in ("load", "store") and node.access is not None:
            continue
        for name in arguments.intersection(node.item.operands):
            if name not in found:
                found[name] = make(Instruction(name, READ, "", "", [], []), Cost(0, _LITE_NS))
            node.before.append((found[name], 0))
    return [*found.values()]
