"""Latency of loops and functions from the schedules of their regions."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from .ir import Block, Function, Instruction, Loop, Module
from .memory import Array, Arrays
from .operators import Target
from .plan import FunctionPlan, LoopPlan, Plan
from .resources import block_rams
from .result import Cycles, Estimate, LoopEstimate
from .schedule import Region
from .scev import Expression

__all__ = ["Kernel"]


@dataclass
class Part:
    """What a function or a loop's body costs."""

    cycles: Cycles
    cores: Counter[str] = field(default_factory=Counter)
    dsp: int = 0


@dataclass
class Done:
    """A function that is scheduled."""

    cycles: Cycles
    interval: int | None
    dsp: int
    brams: int
    stages: tuple[tuple[str, int | None], ...] = ()


class Kernel:
    """A kernel's functions, scheduled bottom up."""

    def __init__(self, module: Module, plan: Plan, target: Target, entry: str) -> None:
        self.module, self.plan, self.target, self.entry = module, plan, target, entry
        self.loops: list[LoopEstimate] = []
        self._done: dict[str, Done] = {}
        self._rank: dict[int, int] = {}

    def result(self, top: str, clock: float, part: str, warnings: list[str]) -> Estimate:
        """Return the whole estimate."""
        done = self.function(self.entry, {})
        interval = done.interval
        least, most = done.cycles
        between: Cycles = (interval, interval) if interval is not None else (
            least + 1 if least is not None else None, most + 1 if most is not None else None
        )  # fmt: skip
        resources: dict[str, int | None] = {
            "DSP": done.dsp, "BRAM_18K": done.brams, "LUT": None, "FF": None,
        }  # fmt: skip
        loops = tuple(self.loops)
        return Estimate(top, self.plan.tool, clock, part, done.cycles, between, loops, resources, done.stages, tuple(dict.fromkeys(warnings)))

    # -- functions -----------------------------------------------------------------------------

    def function(self, name: str, handed: dict[str, Array]) -> Done:
        """Schedule a function; what it was handed are its caller's arrays, by argument."""
        if name in self._done:
            return self._done[name]
        function = self.module.functions[name]
        plan = self.plan.function_at(function.place, name) if function.place else None
        arrays = Arrays(self.module, function, plan, self.plan.functions, handed, self.plan.tool)
        body = Body(self, function, plan, arrays)
        done = body.schedule()
        self._done[name] = done
        return done


class Body:
    """One function while it is scheduled."""

    def __init__(self, kernel: Kernel, function: Function, plan: FunctionPlan | None, arrays: Arrays) -> None:
        self.kernel, self.function, self.plan, self.arrays = kernel, function, plan, arrays
        self.target = kernel.target
        self.order = _reverse_postorder(function)
        self.shared: Counter[str] = Counter()
        self.sizes: dict[str, int] = {}
        self.own = 0
        self.brams = 0
        self.callees: set[str] = set()
        self.stages: list[tuple[str, int | None]] = []

    def schedule(self) -> Done:
        """Schedule the whole function."""
        pipelined = self.plan is not None and self.plan.interval is not None
        interval: int | None = None
        if pipelined and self.plan is not None:
            items = [i for block in self._blocks(None) for i in block.instructions]
            region = self._region(items, bursts=False)
            interval, depth, _ = region.pipeline(self.plan.interval or 1, self.plan.independent)
            self._count(region, interval)
            cycles: Cycles = (depth - 1, depth - 1)
        else:
            states = self._states(None, [])
            if self.plan is not None and self.plan.dataflow and self.stages:
                cycles, interval = self._dataflow()
            else:
                cycles = _plus(states, -1)
        if self.plan is not None and self.plan.least is not None:
            cycles = _at_least(cycles, self.plan.least)
        dsp = self.own + sum(count * self.sizes.get(core, 0) for core, count in self.shared.items())
        brams = block_rams(self.arrays.all(), self.plan is not None and self.plan.dataflow) + self.brams
        return Done(cycles, interval, dsp, brams, tuple(self.stages))

    def _dataflow(self) -> tuple[Cycles, int | None]:
        """Processes run side by side: the slowest counts, and what the others need to begin and end."""
        known = [cycles for _, cycles in self.stages]
        if any(cycles is None for cycles in known):
            return (None, None), None
        numbers = [cycles for cycles in known if cycles is not None]
        streams = any(array.kind == "stream" for array in self.arrays.all())
        total = max(numbers) + 3 * (len(numbers) - 1) if streams else sum(numbers) + len(numbers)
        return (total, total), max(numbers) + 1

    # -- bodies --------------------------------------------------------------------------------

    def _blocks(self, loop: Loop | None) -> list[Block]:
        """The blocks of a loop or the function, in an order in which each follows what leads to it."""
        names = set(loop.blocks) if loop is not None else None
        return [self.function.blocks[n] for n in self.order if names is None or n in names]

    def _region(self, items: list[Instruction], header: str = "", *, bursts: bool) -> Region:
        return Region(self.function, self.arrays, self.target, self.plan, items, header, bursts=bursts)

    def _states(self, loop: Loop | None, dataflow: list[str]) -> Cycles:
        """Return the states of a body: its code, its loops and its calls, along the longest path."""
        inside = [b for b in self._blocks(loop) if b.loop is loop or (b.loop is not None and loop in b.loop.above()) or loop is None]
        header = loop.header if loop is not None else ""
        costs: dict[str, list[tuple[int, Cycles]]] = {}
        groups: dict[int, list[Instruction]] = defaultdict(list)
        group, loops_done = 0, {}
        calls_around: set[int] = set()
        for block in inside:
            inner = _child(block.loop, loop)
            if inner is not None:
                if inner.header not in loops_done:
                    loops_done[inner.header] = self._loop(inner)
                    group += 1
                costs[block.name] = []
                continue
            spans: list[tuple[int, Cycles]] = [(group, (0, 0))]
            for item in block.instructions:
                if item.op == "call" and item.callee in self.kernel.module.functions:
                    calls_around.add(group)
                    group += 1
                    calls_around.add(group)
                    spans.append((group, self._call(item)))
                else:
                    groups[group].append(item)
            costs[block.name] = spans
        depth: dict[int, int] = {}
        for number, items in groups.items():
            region = self._region(items, header, bursts=False)
            work = any(node.cost.latency or node.cost.delay or node.access or node.stream for node in region.nodes)
            depth[number] = region.place_all(None) if work or number not in calls_around else 0
            self._count(region, None)
        return self._longest(inside, loop, costs, depth, loops_done, calls_around)

    def _longest(
        self, inside: list[Block], loop: Loop | None, costs: dict[str, list[tuple[int, Cycles]]],
        depth: dict[int, int], loops: dict[str, Cycles], calls: set[int],
    ) -> Cycles:  # fmt: skip
        before = self.function.predecessors()
        names = {block.name for block in inside}
        best: dict[str, tuple[Cycles, int]] = {}
        end: Cycles = (0, 0)
        for block in inside:
            inner = _child(block.loop, loop)
            first = inner.header if inner is not None else block.name
            if inner is not None and block.name != inner.header:
                best[block.name] = best.get(first, ((0, 0), -1))
                continue
            back = set(loop.blocks) if loop is not None and block.name == loop.header else set()
            inner_blocks = set(inner.blocks) if inner is not None else set()
            preds = [best[p] for p in before[block.name] if p in names and p in best and p not in back and p not in inner_blocks]
            at, seen = _joined(preds)
            if inner is not None:
                if seen == -1:  # nothing before it, still a state
                    at = _plus(at, 1)
                best[block.name] = (_sum(at, loops[inner.header]), -2)
            else:
                for number, extra in costs[block.name]:
                    at = _sum(at, extra)
                    if number != seen:
                        missing = 0 if number in calls else 1
                        at = _plus(at, depth.get(number, missing))
                        seen = number
                best[block.name] = (at, seen)
            end = _most(end, best[block.name][0])
        return end

    def _call(self, item: Instruction) -> Cycles:
        callee = self.kernel.module.functions[item.callee]
        handed = {}
        for argument, value in zip(callee.arguments, item.operands, strict=False):
            if value[0] in "%@":
                array = self.arrays.array(self.arrays.base_of(value))
                if array.dimensions or array.kind in ("stream", "m_axi"):
                    handed[argument] = array
        done = self.kernel.function(item.callee, handed)
        if item.callee not in self.callees:
            self.callees.add(item.callee)
            self.own += done.dsp
            self.brams += done.brams
        plan = self.kernel.plan.function_at(callee.place, callee.name) if callee.place else None
        self.stages.append((plan.name if plan else item.callee, done.cycles[1]))
        return _plus(done.cycles, 1)

    # -- loops ---------------------------------------------------------------------------------

    def _loop(self, loop: Loop) -> Cycles:
        """Schedule a loop; return what it adds to the states around it."""
        place = len(self.kernel.loops)
        plan = self.kernel.plan.loop_at(loop.place) if loop.place else None
        if plan is not None and plan.interval is not None and not loop.inner:
            return self._pipelined(loop, plan, [loop], [plan])
        nest = self._flattened(loop)
        if nest is not None:
            return self._pipelined(nest[0][-1], nest[1][-1], *nest)
        trips = self._trips(loop, plan)
        states = self._states(loop, [])
        if plan is not None and plan.least is not None:
            states = _at_least(states, plan.least)
        total = _times(trips, states)
        self._record(place, [loop], [plan], trips, None, None, states, total, "", False)
        self.stages.append((self._name([loop], [plan]), total[1]))
        return total

    def _flattened(self, loop: Loop) -> tuple[list[Loop], list[LoopPlan]] | None:
        """Return a perfect nest whose innermost loop is pipelined, outer to inner."""
        loops, plans = [loop], []
        while True:
            plan = self.kernel.plan.loop_at(loops[-1].place) if loops[-1].place else None
            if plan is None or plan.flatten is False:
                return None
            plans.append(plan)
            if plan.interval is not None and not loops[-1].inner:
                return (loops, plans) if len(loops) > 1 else None
            if len(loops[-1].inner) != 1 or plan.interval is not None or plan.off:
                return None
            inner = loops[-1].inner[0]
            if not self._is_perfect(loops[-1], inner) or not self._is_constant(inner):
                return None
            loops.append(inner)

    def _is_constant(self, loop: Loop) -> bool:
        return loop.taken is not None and not any(n.startswith("loop ") for n, _ in loop.taken.terms)

    def _is_perfect(self, outer: Loop, inner: Loop) -> bool:
        """Whether nothing but counting stands between two loops."""
        for block in self._blocks(outer):
            if block.name in inner.blocks:
                continue
            for item in block.instructions:
                if item.op in ("store", "load") or item.op == "call":
                    return False
                if item.op in ("fadd", "fmul", "fdiv", "fsub", "mul", "sdiv", "udiv", "srem", "urem") and item.op[0] in "fsu" :
                    return False
                if item.op == "phi" and item.block is not None and item.block.name == outer.header:
                    continue
        return True

    def _pipelined(self, loop: Loop, plan: LoopPlan, loops: list[Loop], plans: list[LoopPlan]) -> Cycles:
        items = [i for block in self._blocks(loop) for i in block.instructions]
        region = self._region(items, loop.header, bursts=True)
        independent = set().union(*(one.independent for one in plans))
        if self.plan is not None:
            independent |= self.plan.independent
        interval, depth, limit = region.pipeline(plan.interval or 1, independent)
        self._count(region, interval)
        trips: Cycles = (1, 1)
        for one, its in zip(loops, plans, strict=True):
            trips = _times(trips, self._trips(one, its))
        total = _pipeline_latency(trips, interval, depth)
        why = ""
        if interval > max(plan.interval or 1, 1):
            where = limit.place
            line = f" ({Path(where.file).name}:{where.line})" if isinstance(where, object) and where is not None else ""  # type: ignore[attr-defined]
            why = f"II={interval}: {limit.reason}{line}"
        self._record(len(self.kernel.loops), loops, list(plans), trips, interval, plan.interval or 1, (depth, depth), total, why, plan.automatic)
        self.stages.append((self._name(loops, list(plans)), total[1]))
        extra = 1
        for array in {id(n.access.array): n.access for n in region.nodes if n.access and n.access.array.kind == "m_axi"}.values():
            extra += 6 if array.write else 8
        return _plus(total, extra)

    def _trips(self, loop: Loop, plan: LoopPlan | None) -> Cycles:
        if loop.taken is not None:
            least, most = self._range(loop.taken, loop)
            if least is not None and most is not None:
                return max(least + 1, 0), max(most + 1, 0)
        return plan.trips if plan is not None and plan.trips is not None else (None, None)

    def _range(self, taken: Expression, loop: Loop) -> Cycles:
        """Bounds of a count that depends on the loops around it."""
        least = most = taken.constant
        around = {"loop " + one.header: one for one in loop.above()}
        for name, factor in taken.terms:
            outer = around.get(name)
            if outer is None or outer is loop:
                return None, None
            plan = self.kernel.plan.loop_at(outer.place) if outer.place else None
            top = self._trips(outer, plan)[1]
            if top is None:
                return None, None
            ends = (0, factor * (top - 1))
            least, most = least + min(ends), most + max(ends)
        return least, most

    def _name(self, loops: list[Loop], plans: list[LoopPlan | None] | list[LoopPlan]) -> str:
        names = []
        for loop, plan in zip(loops, plans, strict=True):
            line = loop.place.line if loop.place else 0
            names.append(plan.label if plan is not None and plan.label else f"VITIS_LOOP_{line}_{_number(plan, line)}")
        return "_".join(names)

    def _record(
        self, at: int, loops: list[Loop], plans: list[LoopPlan | None] | list[LoopPlan], trips: Cycles, interval: int | None,
        asked: int | None, iteration: Cycles, total: Cycles, why: str, automatic: bool,
    ) -> None:  # fmt: skip
        last = loops[-1].place
        name = self._name(loops, plans)
        owner = plans[-1].function.name if plans[-1] is not None else ""
        lines = tuple(loop.place.line for loop in loops if loop.place)
        made = LoopEstimate(
            name, last.file if last else "", last.line if last else 0, lines, owner, loops[0].depth,
            trips, interval, asked, iteration, total, why, automatic,
        )  # fmt: skip
        self.kernel.loops.insert(at, made)

    def _count(self, region: Region, interval: int | None) -> None:
        """Count the operators that a region needs: those of a pipeline start once an interval."""
        used: Counter[str] = Counter()
        starts: Counter[tuple[str, int]] = Counter()
        for node in region.nodes:
            cost = node.cost
            if not cost.dsp:
                continue
            if cost.core[:1] in "fd" and cost.core not in ("mul", "div"):
                self.sizes[cost.core] = cost.dsp
                starts[cost.core, node.start[0]] += 1
                used[cost.core] += 1
            else:
                self.own += cost.dsp
        for core, count in used.items():
            if interval:
                needed = ceil(count / interval)
            else:
                needed = max(n for (name, _), n in starts.items() if name == core)
            limit = self.plan.limits.get(core) if self.plan is not None else None
            needed = min(needed, limit) if limit else needed
            self.shared[core] = max(self.shared[core], needed)


def _number(plan: LoopPlan | None, line: int) -> int:
    """The n-th loop of its function, as Vitis numbers loops without a label."""
    if plan is None:
        return 1
    return next((n for n, loop in enumerate(plan.function.all_loops(), 1) if loop is plan), 1)


def _reverse_postorder(function: Function) -> list[str]:
    seen: set[str] = set()
    order: list[str] = []
    first = next(iter(function.blocks))
    stack: list[tuple[str, int]] = [(first, 0)]
    seen.add(first)
    while stack:
        name, at = stack.pop()
        block = function.blocks[name]
        # What leaves a loop comes last in the order, so that a loop's blocks stand together.
        following = sorted(block.successors, key=lambda other: _depth(function.blocks[other].loop))
        if at < len(following):
            stack.append((name, at + 1))
            if following[at] not in seen:
                seen.add(following[at])
                stack.append((following[at], 0))
        else:
            order.append(name)
    return order[::-1]


def _depth(loop: Loop | None) -> int:
    return loop.depth if loop is not None else 0


def _child(loop: Loop | None, around: Loop | None) -> Loop | None:
    """The loop directly in `around` that holds a block of `loop`; None for the body's own code."""
    while loop is not None and loop is not around:
        if loop.parent is around:
            return loop
        loop = loop.parent
    return None


def _plus(cycles: Cycles, number: int) -> Cycles:
    least, most = cycles
    return (
        None if least is None else max(least + number, 0),
        None if most is None else max(most + number, 0),
    )


def _sum(one: Cycles, other: Cycles) -> Cycles:
    return (
        None if one[0] is None or other[0] is None else one[0] + other[0],
        None if one[1] is None or other[1] is None else one[1] + other[1],
    )


def _times(one: Cycles, other: Cycles) -> Cycles:
    return (
        None if one[0] is None or other[0] is None else one[0] * other[0],
        None if one[1] is None or other[1] is None else one[1] * other[1],
    )


def _most(one: Cycles, other: Cycles) -> Cycles:
    least = None if one[0] is None or other[0] is None else max(one[0], other[0])
    most = None if one[1] is None or other[1] is None else max(one[1], other[1])
    return least, most


def _joined(paths: list[tuple[Cycles, int]]) -> tuple[Cycles, int]:
    """The longest of several ways to a block."""
    if not paths:
        return (0, 0), -1
    at, seen = paths[0]
    least, most = at
    for (low, high), group in paths[1:]:
        least = None if least is None or low is None else min(least, low)
        if most is None or high is None:
            most = None
        elif high > most:
            most, seen = high, group
    return (least, most), seen


def _at_least(cycles: Cycles, number: int) -> Cycles:
    least, most = cycles
    return (None if least is None else max(least, number), None if most is None else max(most, number))


def _pipeline_latency(trips: Cycles, interval: int, depth: int) -> Cycles:
    """(T - 1) II + depth - 1, as both tools report it."""
    ends = [None if n is None else max((n - 1) * interval + depth - 1, 0) if n else 0 for n in trips]
    return ends[0], ends[1]
