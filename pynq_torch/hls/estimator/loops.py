"""Latency of a loop: pipelined, flattened with those around it, of processes, or plain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from .asked import LoopPlan
from .axis import is_whole
from .bursts import asked_for
from .copies import copies_limit
from .cores import as_core
from .cycles import add, at_least, in_32_bits, multiply, pipeline_latency, plus
from .idle import costs_nothing
from .ir import ANY, Function, Instruction, Loop, names_in
from .named import loop_name, somewhere
from .nests import flattened, outer_nest
from .operators import constant_in
from .processes import Process, channels, side_by_side
from .promises import broken
from .result import Cycles, LoopEstimate
from .scev import Expression
from .schedule import pipeline
from .tiles import counted
from .turns import between
from .unbroken import missed

if TYPE_CHECKING:
    from .bounds import Limit
    from .latency import Body
    from .region import Region

__all__ = ["keeps_sums", "loop_states"]

#: The first releases of Vivado HLS in which a loop begins with what was written before it.
_PASSES_ON = 2018.0


def loop_states(body: Body, loop: Loop) -> Cycles:
    """Schedule a loop; return what it adds to the states around it."""
    if costs_nothing(body, loop):
        return (0, 0)
    place = len(body.kernel.loops)
    plan = _asked(body, loop)
    if plan is not None and plan.interval is not None and not loop.inner:
        return _pipelined(body, loop, plan, [loop], [plan])
    nest = flattened(body, loop)
    if nest is not None:
        return _pipelined(body, nest[0][-1], nest[1][-1], *nest)
    loops, plans = outer_nest(body, loop)
    body.blocks_used.count_turns(loops, body.target)
    trips = _product(body, loops, plans)
    begun = len(body.stages)
    states = body.states(loops[-1])
    inner = body.stages[begun:]
    if plan is not None and plan.dataflow and len(inner) > 1:
        return _dataflow_loop(body, loop, plan, trips, place, inner)
    states = at_least(states, _least_states(plans))
    total = multiply(trips, states)
    _record(body, place, loops, plans, trips, None, None, states, total, "", False)
    body.stages[begun:] = [Process(loop_name(body, loops, plans), total, loop)]
    return plus(total, asked_for(body, loop))


def _least_states(plans: Sequence[LoopPlan | None]) -> int:
    """Return the states that LATENCY asks of an iteration: 5 for ``min=4`` (Vivado HLS 2020.1)."""
    return max((one.least + 1 for one in plans if one is not None and one.least), default=0)


def _asked(body: Body, loop: Loop) -> LoopPlan | None:
    """Return what is asked of a loop.

    Where the loop in it, which alone it holds, runs once and is gone, PIPELINE there speaks of it.
    """
    plan = body.kernel.plan.loop_at(loop.place)
    if plan is None or plan.interval is not None or plan.off or loop.inner or not plan.perfect:
        return plan
    inner = plan.inner[0]
    gone = inner.interval is not None and not inner.automatic and inner.unroll == 1
    return replace(plan, interval=inner.interval) if gone else plan


def _product(body: Body, loops: Sequence[Loop], plans: Sequence[LoopPlan | None]) -> Cycles:
    """Return how often the innermost of several loops runs."""
    trips: Cycles = (1, 1)
    for loop, plan in zip(loops, plans, strict=True):
        trips = multiply(trips, _trips(body, loop, plan))
    return in_32_bits(trips)


def _dataflow_loop(
    body: Body, loop: Loop, plan: LoopPlan, trips: Cycles, place: int, inner: list[Process]
) -> Cycles:
    """Iterations overlap: one begins when the slowest process of the one before has ended."""
    cycles, _, slowest = side_by_side(body, inner, plan)
    iteration = plus(cycles, 1)
    body.channels |= channels(body, inner)
    total = add(multiply(plus(trips, -1), plus(slowest, 1)), iteration)
    _record(body, place, [loop], [plan], trips, None, None, iteration, total, "", False)
    body.stages.append(Process(loop_name(body, [loop], [plan]), total, loop))
    return total


def keeps_sums(body: Body, kept: Function) -> bool:
    """Whether a function is `kept`, where sums in arrays' elements are registers while loops run.

    Outside of pipelines Vivado HLS writes an element in each iteration where the loop writes
    another array too. In a nest that it flattens the element is another one in each turn.
    """
    if body.target.tool == "vitis":
        return not _unrolls_sums(body, kept)
    pipelines = any(_is_asked(body, loop) for loop in kept.loops)
    if _sums_in_matrix(body, kept, pipelines):
        return False
    if not pipelines and _writes_beside_sums(body, kept):
        return False
    return not _adds_in_flattened(body, kept)


def _unrolls_sums(body: Body, kept: Function) -> bool:
    """Whether `kept` has sums in registers that were several turns of a loop in a pipeline.

    Where no directive asks for the pipeline, the tool unrolls what is in it when sums have their
    registers already: all the elements stay in memory.
    """
    for loop, stores, left in _moved(body, kept):
        plan = body.kernel.plan.loop_at(loop.place)
        late = plan is not None and plan.by_itself and body.target.unrolls_late
        if late and left + 1 < len(stores):
            return True
    return False


def _sums_in_matrix(body: Body, kept: Function, pipelines: bool) -> bool:
    """Whether `kept` has a sum in a register that Vivado HLS reads and writes in each iteration.

    It does so with an element of a matrix (the product of UG871), and where the loop may not run at
    all, since its bound is no constant. Since 2018 it writes the element, and does not read it,
    where no loop is a pipeline and the element gets its first value right before the loop.
    """
    passes_on = not pipelines and not 0 < body.target.release < _PASSES_ON
    for loop, stores, _ in _moved(body, kept):
        found = [one for one in map(body.arrays.access, stores) if one is not None]
        sums = [one for one in found if not one.address.factor("loop " + loop.header)]
        sure = loop.taken is not None and not loop.taken.terms
        begun = _written_before(body, loop) if passes_on else []
        if any(
            one.array.kind == "memory"
            and (not sure or (len(one.array.dimensions) > 1 and one.address not in begun))
            for one in sums
        ):
            return True
    return False


def _written_before(body: Body, loop: Loop) -> list[Expression]:
    """Return the addresses that are written right before a loop, as in `r[i][j] = 0`."""
    before = body.function.predecessors.get(loop.header, [])
    blocks = [body.function.blocks[name] for name in before if name not in loop.blocks]
    items = [one for block in blocks for one in block.instructions if one.op == "store"]
    found = map(body.arrays.access, items)
    return [one.address for one in found if one is not None]


def _is_asked(body: Body, loop: Loop) -> bool:
    """Whether a loop is to be a pipeline."""
    plan = body.kernel.plan.loop_at(loop.place)
    return plan is not None and plan.interval is not None


def _writes_beside_sums(body: Body, kept: Function) -> bool:
    """Whether a loop writes several arrays, of which `kept` has at least one in a register."""
    for _, stores, _ in _moved(body, kept):
        if len({body.arrays.base_of(item.operands[-1]) for item in stores}) > 1:
            return True
    return False


def _moved(body: Body, kept: Function) -> Iterator[tuple[Loop, list[Instruction], int]]:
    """Yield the innermost loops of which `kept` has fewer stores: the loop, all, and how many."""
    left = {loop.header: len(_stores(kept, loop)) for loop in kept.loops}
    for loop in body.function.loops:
        stores, few = _stores(body.function, loop), left.get(loop.header, 0)
        if not loop.inner and few < len(stores):
            yield loop, stores, few


def _stores(function: Function, loop: Loop) -> list[Instruction]:
    items = (item for name in loop.blocks for item in function.blocks[name].instructions)
    return [item for item in items if item.op == "store" and item.operands]


def _adds_in_flattened(body: Body, kept: Function) -> bool:
    """Whether `kept` stores a sum between loops that become one."""
    headers = {loop.header for loop in body.function.loops if loop.inner and flattened(body, loop)}
    for loop in kept.loops:
        if loop.header in headers:
            last = loop
            while last.inner:
                last = last.inner[0]
            between = [kept.blocks[name] for name in loop.blocks if name not in last.blocks]
            if any(item.op == "store" for block in between for item in block.instructions):
                return True
    return False


def _why(plan: LoopPlan, loop: Loop, interval: int, limit: Limit) -> str:
    """Return the sentence that says what keeps a loop from the interval that was asked for."""
    if interval <= max(plan.interval or 1, 1):
        return ""
    limit = limit if limit.place else replace(limit, place=loop.place)
    if plan.floor is not None and interval == (plan.floor.interval or 1):
        called = f"{plan.floor.name}, whose PIPELINE asks for II={interval}"
        return f"II={interval}: it calls {called}{limit.where}"
    return f"II={interval}: {limit.reason}{limit.where}"


def _pipelined(
    body: Body, loop: Loop, plan: LoopPlan, loops: list[Loop], plans: list[LoopPlan]
) -> Cycles:
    items = body.items(loops[0])
    unordered = set().union(*(one.unordered | one.function.unordered for one in plans))
    floor = plan.floor.interval or 1 if plan.floor is not None else 1
    region = body.region(items, loop.header, bursts=True, unordered=unordered, nest=loops)
    region.outer = _outer(body, loops, plans)
    distances = dict(body.plan.distances) if body.plan is not None else {}
    for nested in plans:
        distances |= nested.function.distances | nested.distances
    copies, longest = copies_limit(body, items)
    interval, depth, limit = pipeline(
        region, max(plan.interval or 1, floor, copies.interval), distances, body.shared_arrays,
        by_itself=plan.by_itself and body.target.unrolls_late, by_name=bool(plan.interval),
    )  # fmt: skip
    depth, limit = depth + longest, copies if interval == copies.interval else limit
    depth = max(depth, _least_states([plan]))
    interval = min(interval, depth)  # the next iteration need not wait when one has ended
    if why := missed(region, interval):
        body.kernel.plan.warn(why)
    trips = _product(body, loops, plans)
    for said in broken(region, distances, interval, trips[1]):
        body.kernel.plan.warn(said)
    body.count(region, interval, plan.interval or 1)
    body.blocks_used.count_turns(loops, body.target)
    total = pipeline_latency(trips, interval, depth)
    _record(
        body, len(body.kernel.loops), loops, list(plans), trips, interval, plan.interval or 1,
        (depth, depth), total, _why(plan, loop, interval, limit), plan.automatic,
    )  # fmt: skip
    body.stages.append(Process(loop_name(body, loops, list(plans)), total, loops[0]))
    is_process = body.plan is not None and body.plan.dataflow  # a function of its own
    rewound = plan.rewinds and not is_process and _is_rewound(body, plan, loops[0])
    if rewound and trips[1] is not None:
        body.rewound = trips[1] * interval
    return plus(total, _around(body, region, whole=rewound or is_whole(body, loops[0])))


def _around(body: Body, region: Region, *, whole: bool) -> int:
    """Return the cycles before and behind a pipeline, which may be the `whole` function."""
    cycles = 3 if body.target.makes_modules and not whole else 1
    buses = _to_buses(body, region)
    if buses and whole and body.function.name == body.kernel.entry:
        buses -= 1  # the request is in the first iteration (three reports)
    return cycles + buses


def _is_rewound(body: Body, plan: LoopPlan, loop: Loop) -> bool:
    """Whether a function starts again when its loop begins the last iteration (UG1399, "PIPELINE").

    That is one cycle less of latency, too (five reports).
    """
    if is_whole(body, loop, but_registers=True):
        return True
    if any(item.op == "call" for item in body.items(None) if item.block and not item.block.loop):
        return False  # it may fill a table of constants, which is nothing
    body.kernel.plan.warn(
        f"{plan.place.shown}: PIPELINE rewind has no effect: {plan.function.name} does more "
        "than this loop; make the loop a function of its own"
    )
    return False


def _outer(body: Body, loops: Sequence[Loop], plans: Sequence[LoopPlan]) -> list[tuple[str, int]]:
    """Return the loops around the innermost of a nest, with what runs in one turn of each."""
    found = []
    for at in range(1, len(loops)):
        _, turns = _product(body, loops[at:], plans[at:])
        if turns is not None:
            found.append(("loop " + loops[at - 1].header, turns))
    return found


def _to_buses(body: Body, region: Region) -> int:
    """Return the cycles that a pipeline takes to begin and end the bursts on its buses.

    Bundles do so side by side: `sum[i] = a[i] * b[i]` takes 117 cycles for 100 words in two reports
    of 2025, 14 of them for this; processes of two inputs or outputs agree in one of 2022.
    """
    buses = {
        id(node.access.array): node.access
        for node in region.nodes
        if node.access and node.access.array.kind == "m_axi"
    }
    far, cycles = body.target.bus_latency, Counter[tuple[bool, str]]()
    for one in buses.values():
        cycles[one.write, one.array.bundle] += (6 if one.write else 8) + one.array.wait(far)
    reads, writes = (
        max((n for (write, _), n in cycles.items() if write == way), default=0)
        for way in (False, True)
    )
    return reads + writes


def _trips(body: Body, loop: Loop, plan: LoopPlan | None) -> Cycles:
    plan_of = body.kernel.plan.loop_at
    found = between(loop, lambda outer: _trips(body, outer, plan_of(outer.place))[1])
    if found[1] is not None:
        return found
    factor = max(plan.unroll, 1) if plan is not None else 1
    if plan is not None and plan.trips is not None:  # of the loop as written
        least, greatest = ceil(plan.trips[0] / factor), ceil(plan.trips[1] / factor)
        if loop.most is not None and loop.most >= 0:  # "Updating loop upper bound", say the logs
            greatest = min(greatest, loop.most + 1 + loop.has_rest)
        return min(least, greatest), greatest
    around = counted(body.function, loop, lambda one: _trips(body, one, plan_of(one.place))[1])
    if around is not None:
        return around
    # A bound of a few bits, or a `break` out of a loop with a constant bound.
    most = loop.most if loop.most is not None else _most_of(body, loop)
    if most is None or (most + 1) * factor >= ANY or body.kernel.exact:
        return (None, None)
    return 0, most + 1 + loop.has_rest


def _most_of(body: Body, loop: Loop) -> int | None:
    """Return the most that a loop's count less one can be: that of the quotient that bounds it."""
    if loop.taken is None or len(loop.taken.terms) != 1 or loop.taken.terms[0][1] != 1:
        return None
    names = names_in(loop.taken.terms[0][0])
    item = body.function.values.get(names[0]) if len(names) == 1 else None
    number = constant_in(item) if item is not None else None
    if item is None or not number or number < 2:
        return None
    signed = item.op in ("sdiv", "ashr")
    parts = {"sdiv": number, "udiv": number, "ashr": 1 << number, "lshr": 1 << number}
    greatest = (1 << item.bits - signed) - 1
    return greatest // parts[item.op] + loop.taken.constant if item.op in parts else None


def _record(body: Body, at: int, loops: list[Loop], plans: Sequence[LoopPlan | None], trips: Cycles,
    interval: int | None, asked: int | None, iteration: Cycles, total: Cycles, why: str,
    automatic: bool,
) -> None:  # fmt: skip
    last = loops[-1].place or somewhere(body, loops[-1])
    name = loop_name(body, loops, plans)
    inside = {*loops[0].blocks}
    is_told = body.function.name in body.kernel.plan.unreturned
    blocks = body.blocks(loops[0])
    if last and not is_told and all({*block.successors} <= inside for block in blocks):
        body.kernel.plan.warnings.append(
            f"{last.shown}: the loop has no end, so "
            f"{body.kernel.plan.top.name} never returns; give it a condition"
        )
    owner = plans[-1].function.name if plans[-1] is not None else ""
    lines = tuple(loop.place.line for loop in loops if loop.place)
    made = LoopEstimate(
        name, last.file if last else "", last.line if last else 0, lines, owner, loops[0].depth,
        trips, interval, asked, iteration, total, why, automatic,
    )  # fmt: skip
    body.kernel.loops.insert(at, as_core(body, loops[-1], made))
