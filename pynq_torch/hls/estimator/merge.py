"""LOOP_MERGE: loops that follow one another become one (UG1399, "pragma HLS loop_merge").

Loops with constant bounds run as often as the longest of them; variable bounds must be the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from .cycles import add, greater, multiply, pipeline_latency, plus
from .ir import Loop
from .result import Cycles, LoopEstimate

if TYPE_CHECKING:
    from .latency import Body
    from .region import Region

__all__ = ["merge"]


def merge(body: Body, loops: Sequence[tuple[Loop, LoopEstimate]], done: dict[str, Cycles]) -> None:
    """Make one loop of several; `done` has the states of each, by its header."""
    if len(loops) < 2:
        return
    first, made = loops[0]
    if reason := _obstacle(loops):
        text = f"LOOP_MERGE has no effect in this estimate: {reason}"
        body.kernel.plan.warnings.append(f"{Path(made.file).name}:{made.line}: {text}")
        return
    parts = [estimate for _, estimate in loops]
    regions = [
        body.region(
            [i for b in body.blocks(loop) for i in b.instructions], loop.header, bursts=True
        )
        for loop, _ in loops
    ]
    trips: Cycles = made.trip_count
    iteration: Cycles = (0, 0)
    for part in parts:
        trips = greater(trips, part.trip_count)
        # What waits for another loop's array comes behind it, the rest beside it.
        join = add if _meet(regions) else greater
        iteration = join(iteration, part.iteration_latency)
    interval = None
    if made.ii is not None and iteration[1] is not None:
        interval = max(_ports(regions), *(part.ii or 1 for part in parts))
        total = pipeline_latency(trips, interval, iteration[1])
    else:
        total = multiply(trips, iteration)
    around = (done[first.header][1] or 0) - (made.latency[1] or 0)
    done[first.header] = plus(total, around)
    for loop, part in loops[1:]:
        done[loop.header] = (0, 0)
        body.kernel.loops.remove(part)
    body.kernel.loops[body.kernel.loops.index(made)] = replace(
        _named(parts, interval), trip_count=trips, iteration_latency=iteration, latency=total
    )


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
