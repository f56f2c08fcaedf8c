"""AXI4-Stream ports of the kernel: its own code waits for the register behind them.

The tools' schedules (64 modules of 45 repositories) have a write to such a port in two states where
it is in the top function itself, and in one where a function, a process or, in Vitis HLS, the
module of a loop writes. Vivado HLS did so with reads too, until 2018.2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .lite import with_registers

if TYPE_CHECKING:
    from .ir import Instruction, Loop
    from .latency import Body
    from .region import Region

__all__ = ["is_whole", "with_ports"]

#: ns to reach the register of a port.
_PORT_NS = 2.2
#: Releases before have no register there; of the first that reads at once only the year is known.
_WITH_REGISTERS, _READS_AT_ONCE = 2017.0, 2018.0


def with_ports(body: Body, region: Region, *, pipelined: bool) -> Region:
    """Return a region in which what the top function itself writes to AXI4-Stream takes longer."""
    if body.function.name != body.kernel.entry:
        return region
    with_registers(body, region)
    release = body.target.release or _READS_AT_ONCE
    if release < _WITH_REGISTERS or _is_of_a_module(body, region, pipelined):
        return region
    early = body.target.tool == "vivado" and release < _READS_AT_ONCE
    streams, waits = _streams(body), set[int]()
    for node in region.nodes:
        item = node.item
        word = item.op if item.op in ("load", "store") else item.callee if node.stream else ""
        # The next word may follow in the cycle after, though the one before it is still on its way.
        node.before = [
            (one, 0 if gap == 1 and id(one) in waits else gap) for one, gap in node.before
        ]
        if not word.endswith(("write", "store", *(("read", "load") if early else ()))):
            continue
        base = body.arrays.base_of(item.operands[-1 if item.op == "store" else 0])
        # What is stored in a stream's own variable is written by the call behind it.
        if (node.stream or base not in streams) and body.arrays.array(base).is_axis:
            entry = node.cost.delay or _PORT_NS * body.target.speed
            node.cost = replace(node.cost, latency=1, delay=0.0, entry=entry)
            waits.add(id(node))
    return region


def _streams(body: Body) -> set[str]:
    """Return the streams that a function reads or writes by calls."""
    items = (item for block in body.function.blocks.values() for item in block.instructions)
    calls = (item for item in items if item.callee.startswith("__hls_stream") and item.operands)
    return {body.arrays.base_of(item.operands[0]) for item in calls}


def _is_of_a_module(body: Body, region: Region, pipelined: bool) -> bool:
    """Whether a loop of the top function is a process or a module of its own."""
    loop = region.loop
    if loop is None:
        return False
    if body.plan is not None and body.plan.dataflow:
        return True
    outermost = [*loop.above()][-1]
    return pipelined and body.target.tool == "vitis" and not is_whole(body, outermost)


def is_whole(body: Body, loop: Loop, *, but_registers: bool = False) -> bool:
    """Whether a function is one loop; Vitis makes a module of its own of any other pipeline.

    What is kept in registers from run to run may be read before it and written behind it.
    """
    if loop.parent is not None or len(body.function.outer()) > 1:
        return False
    outside = [block for block in body.function.blocks.values() if block.loop is None]
    items = (item for block in outside for item in block.instructions)
    found = [item for item in items if item.op in ("load", "store", "call")]
    return not found or (but_registers and all(_is_register(body, item) for item in found))


def _is_register(body: Body, item: Instruction) -> bool:
    if item.op == "call":
        return False
    return body.arrays.array(body.arrays.base_of(item.operands[-1])).kind in ("register", "scalar")
