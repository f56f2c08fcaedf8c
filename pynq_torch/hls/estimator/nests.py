"""Which loops of a nest the tools make one loop of: LOOP_FLATTEN, asked for or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .asked import LoopPlan
from .copies import copied_in
from .ir import Function, Instruction, Loop, Module, names_in
from .operators import knows_call

if TYPE_CHECKING:
    from .latency import Body
    from .plan import Plan

__all__ = ["flattened", "outer_nest", "steady_loops"]

_FREE = ("br", "phi", "getelementptr", "icmp", "sext", "zext", "trunc")
_ADDITIONS = ("add", "sub", "select")


def flattened(body: Body, loop: Loop) -> tuple[list[Loop], list[LoopPlan]] | None:
    """Return a perfect nest whose innermost loop is pipelined, outer to inner.

    Vitis HLS has code around an innermost loop in it under a condition, not code around a nest: of
    a convolution with its bias in logs of 2021 and 2022 the three inner loops become one, the one
    around them "is not a perfect loop because there is nontrivial logic in the loop latch".
    """
    vitis, loops, plans = body.target.tool == "vitis", [loop], []
    while True:
        plan = body.kernel.plan.loop_at(loops[-1].place)
        if plan is None or plan.flatten is False:
            return None
        if len(loops) > 1 and (plan.breaks or _may_end_in_the_middle(plan, loops[-1])):
            return None
        plans.append(plan)
        if plan.interval is not None and not loops[-1].inner:
            return (loops, plans) if len(loops) > 1 else None
        if len(plan.inner) > 1:
            return None  # the other ones may be unrolled, but are work of their own
        if len(loops[-1].inner) != 1 or plan.interval is not None or plan.off or plan.breaks:
            return None
        inner = loops[-1].inner[0]
        if not _is_perfect(body, loops[-1], inner, plan) or not _is_steady(body.function, inner):
            return None
        if vitis and inner.inner and not plan.perfect and _has_work(body, loops[-1], inner):
            return None
        loops.append(inner)


def outer_nest(body: Body, loop: Loop) -> tuple[list[Loop], list[LoopPlan | None]]:
    """Return loops that become one around a body with pipelines; the loop alone where none do.

    Vitis HLS flattens what is around its pipelines too, where there is nothing but loops, and
    Vivado HLS where LOOP_FLATTEN asks for it. Asked for, it also joins loops that are no pipelines.
    """
    loops, plans = [loop], [body.kernel.plan.loop_at(loop.place)]
    while len(loops[-1].inner) == 1:
        inner = loops[-1].inner[0]
        plan = body.kernel.plan.loop_at(inner.place)
        asked = plan is not None and plan.flatten
        if not (body.target.tool == "vitis" or asked):
            break
        if not all(one is not None and _may_join(one) for one in (plans[-1], plan)):
            break
        holds = _has_pipeline(body, inner) if inner.inner else asked
        if not (holds and _is_steady(body.function, inner)):
            break
        if flattened(body, inner) or not _is_nothing(body, loops[-1], inner):
            break  # the first: it is the outermost of a pipeline's nest already
        loops.append(inner)
        plans.append(plan)
    return loops, plans


def _may_end_in_the_middle(plan: LoopPlan, loop: Loop) -> bool:
    """Whether only the data say in which copy of its body a partly unrolled loop ends."""
    return plan.unroll > 1 and (loop.taken is None or bool(loop.taken.terms))


def _may_join(plan: LoopPlan) -> bool:
    """Whether no directive and no `break` keeps a loop from becoming one with another."""
    asked = plan.interval is not None or plan.off or plan.dataflow or bool(plan.merges)
    return not asked and plan.flatten is not False and not plan.breaks


def _has_pipeline(body: Body, loop: Loop) -> bool:
    """Whether a loop in another is to be a pipeline."""
    plans = [body.kernel.plan.loop_at(inner.place) for inner in loop.inner]
    here = any(plan is not None and plan.interval is not None for plan in plans)
    return here or any(_has_pipeline(body, inner) for inner in loop.inner)


def _is_nothing(body: Body, outer: Loop, inner: Loop) -> bool:
    """Whether there is no more between two loops than what counts, and additions for addresses."""
    plan = body.kernel.plan.loop_at(outer.place)
    work = [item.op for item in _between(body, outer, inner) if item.op not in _FREE]
    if plan is not None and plan.perfect:
        return all(op in _ADDITIONS for op in work)
    return work == ["add"]


def _has_work(body: Body, outer: Loop, inner: Loop) -> bool:
    """Whether something is read or written between two loops."""
    work = {item.op for item in _between(body, outer, inner)}
    return not work.isdisjoint(("load", "store"))


def _is_steady(function: Function, loop: Loop) -> bool:
    """Whether a loop runs as often in each turn of those around it."""
    if loop.taken is None or loop.taken.counts:
        return False
    text = " ".join(term for term, _ in loop.taken.terms)
    around = [one for one in loop.above() if one is not loop]
    return "{" not in text and not any(_varies(function, n, around) for n in names_in(text))


def _varies(function: Function, name: str, around: Sequence[Loop]) -> bool:
    """Whether a value is another one in each turn of some loops."""
    names = [name]
    for one in names:
        item = function.values.get(one)
        if item is None or item.block is None or item.block.loop not in around:
            continue
        if item.op == "phi":
            return True
        names += [other for other in item.operands if other not in names]
    return False


def steady_loops(module: Module, plan: Plan) -> set[LoopPlan]:
    """Return the loops that run as often in each turn of those around them."""
    every = ((one, loop) for one in module.functions.values() for loop in one.loops)
    found = (plan.loop_at(loop.place) for one, loop in every if _is_steady(one, loop))
    return {asked for asked in found if asked is not None}


def _between(body: Body, outer: Loop, inner: Loop) -> list[Instruction]:
    blocks = [block for block in body.blocks(outer) if block.name not in inner.blocks]
    return [item for block in blocks for item in block.instructions]


def _is_perfect(body: Body, outer: Loop, inner: Loop, plan: LoopPlan) -> bool:
    """Whether two loops become one: Vitis puts code between them under a condition.

    That needs an iteration of the inner loop, which one without a constant bound may not have.
    Neither a stream nor a burst that goes on from turn to turn of the outer loop can wait for it,
    nor what the inner loop begins with, if that is read from memory; nor, before 2023.2, the sum
    that LLVM has moved out of it ("the outer loop is not a perfect loop" in logs of 2022.1).
    """
    vitis = body.target.tool == "vitis"
    if _is_chosen(body, outer, inner):
        return False
    entered = inner.taken is not None and not inner.taken.terms
    for item in _between(body, outer, inner):
        if copied_in(body, item) != (0, 0):
            return False  # it is a loop beside the inner one
        moved = item.moved and not body.target.unrolls_late
        if vitis and item.op == "load" and not moved and _begins(body, inner, item):
            return False
        if vitis and _is_transfer(body, outer, item) and not _is_moved(body, item):
            return False
        if item.op == "store" and body.arrays.is_any_bank(item):
            return False  # which memory it goes to is a branch of its own
        if plan.perfect:
            continue
        is_call = item.op == "call" and not knows_call(item.callee)
        if is_call or (not vitis and item.op in ("store", "load", "call", "fadd", "fmul", "fdiv")):
            return False
        if item.op == "store" and not entered:
            return False
    return True


def _is_chosen(body: Body, outer: Loop, inner: Loop) -> bool:
    """Whether what is done in the outer loop decides if the inner one runs at all."""
    work = _between(body, outer, inner)
    made = {item.name for item in work if item.name}
    for item in work:
        if item.op == "br" and item.operands and item.operands[0] in made:
            after = body.function.blocks[item.block.name].successors if item.block else ()
            if len(after) > 1 and all(name in outer.blocks for name in after):
                return True
    return False


def _begins(body: Body, inner: Loop, item: Instruction) -> bool:
    """Whether a value that the inner loop carries begins with what is read."""
    header = body.function.blocks[inner.header]
    return any(i.op == "phi" and item.name in i.operands for i in header.instructions)


def _is_moved(body: Body, item: Instruction) -> bool:
    """Whether LLVM has moved it here out of a loop, so that it is in no line, and Vitis has not.

    What a function that is called is handed may all be the same: nothing of it is moved.
    """
    return item.moved and body.function.name != body.kernel.entry


def _is_transfer(body: Body, outer: Loop, item: Instruction) -> bool:
    """Whether something is an access of a stream, or of a burst over the turns of a loop."""
    if item.op == "call":
        return item.callee.startswith("__hls_stream")
    access = body.arrays.access(item) if item.op in ("load", "store") else None
    if access is None:
        return False
    is_burst = access.address.factor("loop " + outer.header) != 0
    return access.array.kind == "stream" or (access.array.kind == "m_axi" and is_burst)
