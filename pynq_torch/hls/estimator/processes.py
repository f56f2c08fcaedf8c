"""DATAFLOW: when each process begins, and when the last one ends.

The reader of a FIFO begins a few cycles after its writer; the reader of an array when its writer
has ended (UG1399, "Data-driven and Control-driven Task-level Parallelism"). A scalar is written
once, when the process that computes it ends, and so is a FIFO whose words come behind its loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .array import Array
from .calls import accessed, given, used_by
from .canonical import in_turn
from .cycles import add, at_least, greater, plus
from .ir import Instruction, Loop
from .order import reverse_postorder
from .result import Cycles
from .sequential import keep_order

if TYPE_CHECKING:
    from .asked import FunctionPlan, LoopPlan
    from .latency import Body

__all__ = ["Process", "channels", "in_states", "side_by_side"]

#: Cycles until a FIFO's reader sees what its writer wrote.
_FIFO = 3


@dataclass(frozen=True)
class Process:
    """A call or a loop of a DATAFLOW region, and how long it takes."""

    name: str
    cycles: Cycles
    what: Instruction | Loop


def in_states(body: Body) -> tuple[Cycles, int | None, tuple[int, ...]]:
    """Return cycles and interval of a function that is no pipeline, and when its processes begin.

    Past all its loops, a machine of states has two.
    """
    states = body.states(None)
    begins: tuple[int, ...] = ()
    if body.plan is not None and body.plan.dataflow and body.stages:
        cycles, begins, (_, most) = side_by_side(body, body.stages, body.plan)
        interval = (most or 0) + 1 if cycles[1] is not None else None
    else:
        interval = body.rewound
        cycles = plus(states, -1 if interval is None else -2)
    return at_least(cycles, 1) if body.stages else cycles, interval, begins


def side_by_side(
    body: Body, processes: Sequence[Process], plan: FunctionPlan | LoopPlan
) -> tuple[Cycles, tuple[int, ...], Cycles]:
    """Return the cycles until the last process has ended, and the cycle in which each begins.

    The first is least and most; the second is empty where it is not known. The third is how long
    the slowest process takes, or the slowest group that the tool does not let overlap.
    """
    keep_order(body, processes)
    links = _links(body, processes)
    slowest: Cycles = (0, 0)
    for group in in_turn(body, processes, links, plan):
        total: Cycles = (-1, -1)
        for number in sorted(group):
            links[number] |= {other: False for other in group if other < number}
            total = add(total, plus(processes[number].cycles, 1))
        slowest = greater(slowest, total)
    (_, least), (begins, most) = (_run(processes, links, end) for end in (0, 1))
    ends = [None if one is None else max(one, default=0) for one in (least, most)]
    return (ends[0], ends[1]), begins or (), slowest


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
    """Of each process those before it that it waits for, and whether for words of FIFOs only."""
    used = [used_by(body, process.what) for process in processes]
    scalars = _scalars(body, processes, [writes for _, writes in used])
    links: list[dict[int, bool]] = []
    for number, (reads, writes) in enumerate(used):
        links.append(dict.fromkeys(scalars[number], False))
        for other in range(number):
            bases = used[other][1] & (reads | writes)
            shared = [body.arrays.array(one) for one in bases]
            fifos = [one.kind == "stream" or one.plan.kind == "fifo" for one in shared]
            if any(fifos) or any(one.local for one in shared):
                ends = (processes[other].what, processes[number].what)
                late = other in scalars[number] or any(_is_late(body, *ends, one) for one in bases)
                links[-1][other] = all(fifos) and not late
    return links


def _scalars(
    body: Body, processes: Sequence[Process], writes: Sequence[set[str]]
) -> list[set[int]]:
    """Of each process those before it that compute a scalar for it.

    They return it, or write it through a reference: then code between the calls loads it.
    """
    parts = [process.what for process in processes]
    inside = [[one] if isinstance(one, Instruction) else body.items(one) for one in parts]
    maker = {item.name: number for number, items in enumerate(inside) for item in items}
    made = {item.name: item for block in body.blocks(None) for item in block.instructions}
    found: list[set[int]] = []
    for number, items in enumerate(inside):
        found.append(set())
        left, seen = [name for item in items for name in item.operands], set[str]()
        while left:
            name = left.pop()
            item = made.get(name)
            if item is None or name in seen or maker.get(name) == number:
                continue
            seen.add(name)
            if name in maker:
                found[-1].add(maker[name])
                continue
            base = body.arrays.base_of(item.operands[-1]) if item.op == "load" else ""
            found[-1] |= {other for other, bases in enumerate(writes) if base in bases}
            left += item.operands
        found[-1] = {other for other in found[-1] if other < number}
    return found


def _is_late(body: Body, writer: Instruction | Loop, reader: Instruction | Loop, base: str) -> bool:
    """Whether one call writes a FIFO behind its loops only, and another reads it before its own."""
    written, read = _passes(body, writer, base), _passes(body, reader, base)
    return bool(written and read) and written == {"behind"} and read == {"before"}


def _passes(body: Body, what: Instruction | Loop, base: str) -> set[str]:
    """Return where a call passes the words of ``hls::stream``: before, in or behind its loops."""
    module, found = body.kernel.module, set[str]()
    if isinstance(what, Loop):
        return found
    function = module.functions[what.callee]
    names = {one for one, at in given(what, function).items() if body.arrays.base_of(at) == base}
    seen = False
    for block in map(function.blocks.__getitem__, reverse_postorder(function)):
        seen = seen or block.loop is not None
        where = "in" if block.loop is not None else "behind" if seen else "before"
        calls = (item for item in block.instructions if item.op == "call")
        found |= {where for item in calls if names & {*item.operands}}
    return found


def channels(body: Body, processes: Sequence[Process]) -> set[Array]:
    """Return the arrays that one process writes and another one uses.

    Code between the loops and calls is a process too, and so is what copies arrays.
    """
    plain = [
        item for block in body.blocks(None) if block.loop is None for item in block.instructions
    ]
    called = [process.what for process in processes]
    used = [used_by(body, what) for what in called]
    used.append(accessed(body, [item for item in plain if item not in called]))
    return {
        body.arrays.array(base)
        for number, (_, writes) in enumerate(used)
        for base in writes
        if any(base in one | two for one, two in used[:number] + used[number + 1 :])
    }
