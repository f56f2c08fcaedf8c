"""LOOP_MERGE: loops that follow one another become one (UG1399, "pragma HLS loop_merge").

Loops with constant bounds run as often as the longest of them; variable bounds must be the same.
Loops that depend on each other, or on code between them, stay apart unless ``force`` is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from pynq_torch.paths import shown

from .asked import FunctionPlan, MergePlan
from .cycles import add, greater, multiply, pipeline_latency, plus
from .ir import Loop
from .result import Cycles, LoopEstimate
from .together import clash, reads_words, side_effect

if TYPE_CHECKING:
    from .latency import Body
    from .region import Region

__all__ = ["merge"]


def merge(
    body: Body,
    around: Loop | None,
    loops: Sequence[tuple[Loop, LoopEstimate]],
    done: dict[str, Cycles],
) -> None:
    """Make one loop of several where LOOP_MERGE asks for it `around` them, or in a block there.

    `done` has the states of each, by its header.
    """
    plan = body.plan if around is None else body.kernel.plan.loop_at(around.place)
    if plan is None:
        return
    own = plan.loops if isinstance(plan, FunctionPlan) else plan.inner
    plans = [body.kernel.plan.loop_at(loop.place) for loop, _ in loops]
    for asked in plan.merges:
        chosen = [
            loop for loop, one in zip(loops, plans, strict=True)
            if one in asked.loops or (asked.whole and one not in own)
        ]  # fmt: skip
        if len(chosen) > 1:
            _merge(body, around, chosen, done, asked)


def _merge(
    body: Body,
    around: Loop | None,
    loops: Sequence[tuple[Loop, LoopEstimate]],
    done: dict[str, Cycles],
    asked: MergePlan,
) -> None:
    """Make one loop of several, or say why they stay apart."""
    first, made = loops[0]
    regions = [_region(body, loop) for loop, _ in loops]
    if reason := _obstacle(loops) or _danger(body, around, loops, regions, asked):
        at = f"{shown(Path(made.file))}:{made.line}"
        body.kernel.plan.warn(f"{at}: LOOP_MERGE has no effect: {reason}")
        return
    parts = [estimate for _, estimate in loops]
    trips, iteration = made.trip_count, made.iteration_latency
    # What waits for another loop's array comes behind it, the rest beside it.
    join = add if _meet(regions) else greater
    for part in parts[1:]:
        trips = greater(trips, part.trip_count)
        iteration = join(iteration, part.iteration_latency)
    interval = None
    if made.ii is not None and iteration[1] is not None:
        interval = max(_ports(regions), *(part.ii or 1 for part in parts))
        total = pipeline_latency(trips, interval, iteration[1])
    else:
        total = multiply(trips, iteration)
    beside = (done[first.header][1] or 0) - (made.latency[1] or 0)
    done[first.header] = plus(total, beside)
    for loop, part in loops[1:]:
        done[loop.header] = (0, 0)
        body.kernel.loops.remove(part)
    body.kernel.loops[body.kernel.loops.index(made)] = replace(
        _named(parts, interval), trip_count=trips, iteration_latency=iteration, latency=total
    )


def _danger(
    body: Body,
    around: Loop | None,
    loops: Sequence[tuple[Loop, LoopEstimate]],
    regions: Sequence[Region],
    asked: MergePlan,
) -> str:
    """Return why merged loops would compute something else; empty where they would not.

    UG1399, "pragma HLS loop_merge", has these rules; ``force`` leaves them out.
    """
    if asked.forced:
        return ""
    names = [f"loop {estimate.name} (line {estimate.line})" for _, estimate in loops]
    headers = [loop.header for loop, _ in loops]
    inside = {block.name for loop, _ in loops for block in body.blocks(loop)}
    blocks = body.blocks(around)
    order = [block.name for block in blocks]
    begin, end = order.index(headers[0]), order.index(headers[-1])
    between = [
        item for block in blocks[begin:end] if block.name not in inside
        for item in block.instructions
    ]  # fmt: skip
    why = ""
    for number, later in enumerate(loops):
        if reads_words(regions[number]):
            why = f"{names[number]} reads a FIFO, whose words must be read in their order"
        for other, earlier in enumerate(loops[:number]):
            if found := clash(body, (earlier[0], regions[other]), (later[0], regions[number])):
                why = f"{names[number]} depends on {names[other]}: {found}"
    if not why and (found := side_effect(body, between, regions)):
        why = f"code between {names[0]} and {names[-1]} has side effects: {found}"
    mend = "write `LOOP_MERGE force` only if the merged loop is right all the same"
    return f"{why}; {mend}" if why else ""


def _region(body: Body, loop: Loop) -> Region:
    """Return the operations of a loop."""
    return body.region(body.items(loop), loop.header, bursts=True)


def _named(parts: Sequence[LoopEstimate], interval: int | None) -> LoopEstimate:
    """Return the first of some loops under the names of all, with what limits their II."""
    why = next((part.why for part in parts if part.ii == interval and part.why), "")
    if interval is not None and all(interval != part.ii for part in parts):
        why = f"II={interval}: the merged loops use the same memory ports"
    lines = tuple(line for part in parts for line in part.lines)
    name = "_".join(part.name for part in parts)
    return replace(parts[0], name=name, lines=lines, ii=interval, why=why)


def _obstacle(loops: Sequence[tuple[Loop, LoopEstimate]]) -> str:
    """Return why loops stay apart; empty where they do not."""
    if len({estimate.ii is None for _, estimate in loops}) > 1:
        return "one of the loops is pipelined, and another is not"
    if any(loop.inner and estimate.ii is None for loop, estimate in loops):
        return "loops that hold others are not merged"
    counts = [estimate.trip_count for _, estimate in loops]
    constant = [low is not None and low == high for low, high in counts]
    if all(constant) or len({str(loop.taken) for loop, _ in loops}) == 1:
        return ""
    if any(constant):
        return "a constant and a variable bound cannot be merged"
    return "the loops' bounds are not the same"


def _meet(regions: Sequence[Region]) -> bool:
    """Whether a loop uses an array that one before it writes."""
    wrote: set[int] = set()
    for region in regions:
        used = [node.access for node in region.nodes if node.access is not None]
        if any(id(access.array) in wrote for access in used):
            return True
        wrote |= {id(access.array) for access in used if access.write}
    return False


def _ports(regions: Sequence[Region]) -> int:
    """Return the least II that the memory ports of all loops together allow."""
    uses: Counter[tuple[object, int]] = Counter()
    for region in regions:
        uses.update(port for node in region.nodes for port in region.ports(node))
    return max((ceil(count / most) for (_, most), count in uses.items()), default=1)
