"""DATAFLOW: when each process begins, and when the last one ends.

The reader of a FIFO begins a few cycles after its writer; the reader of an array when its writer
has ended (UG1399, "Data-driven and Control-driven Task-level Parallelism").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .array import Array
from .ir import Instruction, Loop
from .result import Cycles

if TYPE_CHECKING:
    from .latency import Body

__all__ = ["Process", "channels", "side_by_side"]

#: Calls that write what their first argument points to.
_FIRST_IS_WRITTEN = ("__hls_stream", "llvm.mem")
#: Cycles until a FIFO's reader sees what its writer wrote.
_FIFO = 3


@dataclass(frozen=True)
class Process:
    """A call or a loop of a DATAFLOW region, and how long it takes."""

    name: str
    cycles: Cycles
    what: Instruction | Loop


def side_by_side(body: Body, processes: Sequence[Process]) -> tuple[Cycles, tuple[int, ...]]:
    """Return the cycles until the last process has ended, and the cycle in which each begins.

    The first is least and most; the second is empty where it is not known.
    """
    links = _links(body, processes)
    (_, least), (begins, most) = (_run(processes, links, end) for end in (0, 1))
    ends = [None if one is None else max(one, default=0) for one in (least, most)]
    return (ends[0], ends[1]), begins or ()


def _run(
    processes: Sequence[Process], links: Sequence[dict[int, bool]], end: int
) -> tuple[tuple[int, ...] | None, list[int] | None]:
    begins: list[int] = []
    ends: list[int] = []
    for process, before in zip(processes, links, strict=True):
        cycles = process.cycles[end]
        if cycles is None:
            return None, None
        waits = [begins[n] + _FIFO if fifo else ends[n] + 1 for n, fifo in before.items()]
        begins.append(max(waits, default=0))
        last = [ends[n] + _FIFO for n, fifo in before.items() if fifo]
        ends.append(max([begins[-1] + cycles, *last]))
    return tuple(begins), ends


def _links(body: Body, processes: Sequence[Process]) -> list[dict[int, bool]]:
    """Of each process those before it that it reads from, and whether through FIFOs only."""
    used = [_used(body, process.what) for process in processes]
    links: list[dict[int, bool]] = []
    for number, (reads, writes) in enumerate(used):
        links.append({})
        for other in range(number):
            shared = [body.arrays.array(one) for one in used[other][1] & (reads | writes)]
            fifos = [one.kind == "stream" or one.plan.kind == "fifo" for one in shared]
            if any(fifos) or any(one.local for one in shared):
                links[-1][other] = all(fifos)
    return links


def channels(body: Body, processes: Sequence[Process]) -> set[Array]:
    """Return the arrays that one process writes and another one uses.

    Code between the loops and calls is a process too, and so is what copies arrays.
    """
    plain = [
        item for block in body.blocks(None) if block.loop is None for item in block.instructions
    ]
    called = [process.what for process in processes]
    used = [_used(body, what) for what in called]
    used.append(_accessed(body, [item for item in plain if item not in called]))
    return {
        body.arrays.array(base)
        for number, (_, writes) in enumerate(used)
        for base in writes
        if any(base in one | two for one, two in used[:number] + used[number + 1 :])
    }


def _used(body: Body, what: Instruction | Loop) -> tuple[set[str], set[str]]:
    """The arrays that a process reads, and those that it writes."""
    if isinstance(what, Instruction):
        return body.used(what)
    return _accessed(body, [item for block in body.blocks(what) for item in block.instructions])


def _accessed(body: Body, items: Sequence[Instruction]) -> tuple[set[str], set[str]]:
    """The arrays that some instructions read, and those that they write."""
    reads: set[str] = set()
    writes: set[str] = set()
    for item in items:
        if item.op == "store" and item.operands:
            writes.add(body.arrays.base_of(item.operands[-1]))
        elif item.op == "load" and item.operands:
            reads.add(body.arrays.base_of(item.operands[-1]))
        elif item.op == "call" and item.callee in body.kernel.module.functions:
            inner = body.used(item)
            reads |= inner[0]
            writes |= inner[1]
        elif item.op == "call" and item.callee.startswith(_FIRST_IS_WRITTEN) and item.operands:
            writes.add(body.arrays.base_of(item.operands[0]))
    return reads, writes
