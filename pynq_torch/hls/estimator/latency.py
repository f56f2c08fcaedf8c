"""Latency of loops and functions from the schedules of their regions."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from .adapters import Directions, of_adapters
from .array import Array
from .asked import FunctionPlan
from .axis import with_ports
from .beside import Times, place_groups, run_side_by_side
from .calls import Batch, calls_of, given, handed_on, used
from .copies import copied_in, copy_loops, leave_copies
from .cycles import add, at_least, greater, plus
from .ir import Block, Function, Instruction, Loop, Module
from .logic import Logic, join, of_arrays, of_region, totals
from .loops import keeps_sums, loop_states
from .memory import Arrays
from .merge import merge
from .order import child, is_last, joined, passing_by, reverse_postorder
from .outside import warn_of_indices
from .place import plain_name
from .plan import Plan
from .ports import Ports, Use
from .processes import Process, channels, in_states
from .region import Region
from .resources import DspBlocks, block_rams
from .result import Cycles, Estimate, LoopEstimate
from .roms import synthesised
from .schedule import pipeline
from .sequential import warn_of_ports
from .shared import Shared
from .target import Target
from .wires import narrow_sums

__all__ = ["Kernel"]


@dataclass
class Done:
    """A function that is scheduled."""

    cycles: Cycles
    interval: int | None
    dsp: int
    brams: int
    stages: tuple[tuple[str, Cycles], ...] = ()
    #: Of the processes of DATAFLOW, the cycle in which each begins.
    begins: tuple[int, ...] = ()
    logic: Logic = field(default_factory=Counter)
    #: How the arrays that are handed over are used.
    ports: dict[str, set[Use]] = field(default_factory=dict)
    #: Of its operators, those that a caller may use too.
    handed_up: Counter[str] = field(default_factory=Counter)


class Kernel:
    """A kernel's functions, scheduled bottom up."""

    def __init__(
        self, module: Module, plan: Plan, target: Target, entry: str, *, exact: bool = False
    ) -> None:
        self.module, self.plan, self.target, self.entry = module, plan, target, entry
        #: Whether the least is that of the shortest way, past a loop or a branch too.
        self.exact = exact
        self.loops: list[LoopEstimate] = []
        self.reasons: list[str] = []
        self._done: dict[str, Done] = {}
        self._uses: dict[str, tuple[set[str], set[str]]] = {}
        self.shared, self.directions = Shared(self), Directions(module)

    def result(
        self, top: str, clock: float, part: str, warnings: list[str], *, is_a_run: bool = False
    ) -> Estimate:
        """Return the whole estimate; the arguments of a run have simplified the code."""
        done = self.function(self.entry, {})
        interval = done.interval
        least, most = done.cycles
        between: Cycles = (interval, interval) if interval is not None else (
            least + 1 if least is not None else None, most + 1 if most is not None else None
        )  # fmt: skip
        brams = done.brams + self.shared.blocks(self.target)
        resources: dict[str, int | None] = {"DSP": done.dsp, "BRAM_18K": brams}
        resources |= totals(None if is_a_run else done.logic, len(self.loops), self.plan.top)
        return Estimate(
            top,
            self.plan.tool,
            clock,
            part,
            done.cycles,
            between,
            tuple(self.loops),
            resources,
            tuple((name, most) for name, (_, most) in done.stages)
            if self.plan.top.dataflow
            else (),
            done.begins,
            tuple(dict.fromkeys(warnings)),
            reasons=tuple(self.reasons),
        )

    def uses(self, name: str) -> tuple[set[str], set[str]]:
        """What a function and those it calls read and write: variables and arguments.

        LLVM gives a function a global array itself where all calls hand it the same.
        """
        if name not in self._uses:
            function = self.module.functions[name]
            self._uses[name] = used(self, Arrays(self.module, function, None, [], {}), function)
        return self._uses[name]

    @functools.cached_property
    def calls(self) -> Counter[str]:
        """At how many places each function is called."""
        blocks = (one for item in self.module.functions.values() for one in item.blocks.values())
        return Counter(
            item.callee for block in blocks for item in block.instructions if item.op == "call"
        )

    # -- functions -----------------------------------------------------------------------------

    def planned(self, name: str) -> FunctionPlan | None:
        """Return what is asked of a function."""
        place = self.module.functions[name].place
        return self.plan.function_at(place) if place else None

    def function(self, name: str, handed: dict[str, Array]) -> Done:
        """Schedule a function; what it was handed are its caller's arrays, by argument."""
        if name in self._done:
            return self._done[name]
        function, plan = self.module.functions[name], self.planned(name)
        arrays = Arrays(self.module, function, plan, self.plan.functions, handed, self.target)
        body = Body(self, function, plan, arrays)
        kept = self.module.promoted.get(name)
        if kept is not None and keeps_sums(body, kept):
            arrays = Arrays(self.module, kept, plan, self.plan.functions, handed, self.target)
            body = Body(self, kept, plan, arrays)
        done = self._done[name] = body.schedule()
        self.plan.warn_of_choices(arrays.chosen)
        warn_of_indices(body)
        return done


class Body:
    """One function while it is scheduled."""

    def __init__(
        self, kernel: Kernel, function: Function, plan: FunctionPlan | None, arrays: Arrays
    ) -> None:
        self.kernel, self.function, self.plan, self.arrays = kernel, function, plan, arrays
        self.target = kernel.target
        narrow_sums(function)
        self.order = reverse_postorder(function)
        limits = plan.limits if plan is not None else {}
        self.blocks_used = DspBlocks(function, kernel.target.tool, limits)
        self.brams = 0
        self.ports = Ports(kernel.target.tool)
        self.channels: set[Array] = set()
        self.logic: Logic = Counter({"function": 1})
        self.callees: Counter[tuple[str, str]] = Counter()
        self.stages: list[Process] = []
        #: Cycles between starts where the function is one loop that PIPELINE rewinds.
        self.rewound: int | None = None

    def schedule(self) -> Done:
        """Schedule the whole function."""
        if self.function.name == self.kernel.entry:
            warn_of_ports(self)
        leave_copies(self)
        pipelined = self.plan is not None and self.plan.interval is not None
        interval: int | None = None
        begins: tuple[int, ...] = ()
        if pipelined and self.plan is not None:
            items = self.items(None)
            region = self.region(items, bursts=False)
            asked = self.plan.interval or 1
            interval, depth, limit = pipeline(
                region, asked, self.plan.distances, by_name=bool(self.plan.interval)
            )
            if interval > asked:
                said = f"{self.plan.name}: II={interval}: {limit.reason}{limit.where}"
                self.kernel.reasons.append(said)
            self.count(region, interval, asked)
            cycles: Cycles = (depth - 1, depth - 1)
        else:
            cycles, interval, begins = in_states(self)
        if self.plan is not None and self.plan.least is not None:
            cycles = at_least(cycles, self.plan.least)
        dsp = self.blocks_used.total
        if self.plan is not None and self.plan.dataflow:
            self.channels |= channels(self, self.stages)
        shared = self.kernel.shared.note(self)
        mine = [array for array in self.arrays.all().values() if array not in shared]
        brams = self.brams + block_rams(mine, self.ports, self.channels, self.target)
        uses = self.kernel.directions.of(self.function.name)
        brams += of_adapters(self.arrays, uses, mine, self.target) + self.blocks_used.block_rams
        stages = tuple((process.name, process.cycles) for process in self.stages)
        join(self.logic, of_arrays(self.arrays.all()))
        handed = {name: self.ports.of(array) for name, array in self.arrays.handed.items()}
        up = self.blocks_used.handed_up if not self.callees else Counter()
        return Done(cycles, interval, dsp, brams, stages, begins, self.logic, handed, up)

    # -- bodies --------------------------------------------------------------------------------

    def blocks(self, loop: Loop | None) -> list[Block]:
        """The blocks of a loop or the function, each after what leads to it."""
        names = set(loop.blocks) if loop is not None else None
        return [self.function.blocks[n] for n in self.order if names is None or n in names]

    def items(self, loop: Loop | None) -> list[Instruction]:
        """The instructions of a loop or the function, in that order."""
        return [item for block in self.blocks(loop) for item in block.instructions]

    def region(
        self, items: list[Instruction], header: str = "", *, bursts: bool,
        unordered: Iterable[str] = (), nest: Sequence[Loop] = (),
    ) -> Region:  # fmt: skip
        """Return the operations of some instructions; `unordered` are the arrays of a loop."""
        free = frozenset(unordered) | (self.plan.unordered if self.plan is not None else set())
        return with_ports(self, Region(
            self.function, self.arrays, self.target, self.plan, items, header,
            bursts=bursts, unordered=free, bindings=self.kernel.plan.bindings,
            nest=nest,
        ), pipelined=bursts)  # fmt: skip

    def states(self, loop: Loop | None) -> Cycles:
        """Return the states of a body along its longest path: code, loops and calls."""
        inside = self.blocks(loop)
        header = loop.header if loop is not None else ""
        times, group = Times(), 0
        children: list[tuple[Loop, LoopEstimate]] = []
        calls_around: set[int] = set()
        for block in inside:
            inner = child(block.loop, loop)
            if inner is not None:
                if inner.header not in times.loops:
                    before = len(self.kernel.loops)
                    times.loops[inner.header] = loop_states(self, inner)
                    children += [(inner, one) for one in self.kernel.loops[before : before + 1]]
                    group += 1
                times.spans[block.name] = []
                continue
            spans: list[tuple[int, Cycles]] = [(group, (0, 0))]
            batch: Batch | None = None
            for item in synthesised(block, self.kernel.module, self.arrays):
                if item.op == "call" and item.callee in self.kernel.module.functions:
                    reads, writes = self.used(item)
                    cycles = self._call(item)
                    if batch and batch.takes(self, item, reads, writes):
                        spans[-1] = (group, greater(spans[-1][1], cycles))
                    else:
                        calls_around |= {group, group + 1}
                        group += 1
                        spans.append((group, cycles))
                        batch = Batch(reads, writes, set())
                    times.modules[block.name, len(spans) - 1].append(item)
                    batch.results.add(item.name)
                    batch.calls[item.callee] += 1
                    self._instances(item.callee, batch, loop)
                else:
                    if (copied := copied_in(self, item)) != (0, 0):
                        self.kernel.loops += copy_loops(self, item)
                        times.modules[block.name, len(spans)] = [item]
                        spans += [(group + 1, copied), (group + 2, (0, 0))]
                        group += 2
                    if batch is not None:
                        batch.follow(item, self.arrays)
                    times.groups[group].append(item)
            times.spans[block.name] = spans
        merge(self, loop, children, times.loops)
        place_groups(self, times, header, calls_around)
        if self.target.makes_modules:
            times.pipelines = {inner.header for inner, made in children if made.ii is not None}
            run_side_by_side(self, inside, loop, times)
        return self._longest(inside, loop, times, calls_around)

    def _longest(
        self, inside: list[Block], loop: Loop | None, times: Times, calls: set[int]
    ) -> Cycles:
        before = self.function.predecessors
        names = {block.name for block in inside}
        best: dict[str, tuple[Cycles, int]] = {}
        children = [one for one in self.function.loops if one.parent is loop]
        end: Cycles = (0, 0)
        for block in inside:
            inner = child(block.loop, loop)
            first = inner.header if inner is not None else block.name
            if inner is not None and block.name != inner.header:
                best[block.name] = best.get(first, ((0, 0), -1))
                continue
            back = set(loop.blocks) if loop is not None and block.name == loop.header else set()
            inner_blocks = set(inner.blocks) if inner is not None else set()
            if not self.kernel.exact:  # LOOP_TRIPCOUNT speaks of loops that are entered
                back |= passing_by(self.function, block.name, children)
            preds = [
                best[p]
                for p in before[block.name]
                if p in names and p in best and p not in back and p not in inner_blocks
            ]
            at, seen = joined(preds)
            if inner is not None:
                at = plus(at, int(seen == -1))  # nothing before it is still a state
                best[block.name] = (add(at, times.loops[inner.header]), -2)
            else:
                for number, extra in times.spans[block.name]:
                    at = add(at, extra)
                    if number != seen:
                        missing = 0 if number in calls else 1
                        at = plus(at, times.states.get(number, missing))
                        seen = number
                best[block.name] = (at, seen)
            end = greater(end, best[block.name][0])
        last = [best[block.name] for block in inside if is_last(block, loop)]
        return (joined(last)[0][0], end[1]) if last else end

    def used(self, item: Instruction) -> tuple[set[str], set[str]]:
        """The arrays that a call reads and those that it writes."""
        uses = self.kernel.uses(item.callee)
        reads, writes = ({one for one in names if one.startswith("@")} for names in uses)
        for argument, value in given(item, self.kernel.module.functions[item.callee]).items():
            if argument in uses[1]:
                writes.add(self.arrays.base_of(value))
            if argument in uses[0] or argument not in uses[1]:
                reads.add(self.arrays.base_of(value))
        return reads, writes

    def _call(self, item: Instruction) -> Cycles:
        callee, plan = self.kernel.module.functions[item.callee], self.kernel.planned(item.callee)
        handed, written = {}, plan.dimensions if plan is not None else {}
        for argument, value in given(item, callee).items():
            array = self.arrays.pointed_at(value, len(written.get(plain_name(argument), ())))
            if array.dimensions or array.kind in ("stream", "m_axi"):
                handed[argument] = array
        done = self.kernel.function(item.callee, handed)
        for argument in handed.keys() & done.ports.keys():
            self.ports.add(handed[argument], done.ports[argument])
        self.stages.append(Process(plan.name if plan else item.callee, done.cycles, item))
        return plus(done.cycles, 1)

    def allowed(self, callee: str) -> int | None:
        """How many instances of a function ALLOCATION allows."""
        plan = self.kernel.planned(callee)
        if plan is None or self.plan is None:
            return None
        return self.plan.limits.get(plan.name.lower())

    @functools.cached_property
    def shared_arrays(self) -> Collection[Array]:
        """Return the arrays that a function which is called at several places is handed."""
        own = self.arrays.handed.values() if self.kernel.calls[self.function.name] > 1 else ()
        return {*own, *handed_on(self)}

    def _takes_in(self, callee: str) -> bool:
        """Whether the tools make a function part of this one: it is called here, and once."""
        plan = self.kernel.planned(callee)
        kept = plan is not None and plan.inline is False
        return not kept and calls_of(self.function, callee) == 1

    def _instances(self, callee: str, batch: Batch, loop: Loop | None) -> None:
        """Count the instances of a function: one for each call at a time, or each process."""
        plan = self.plan if loop is None else self.kernel.plan.loop_at(loop.place)
        done, together = self.kernel.function(callee, {}), batch.calls[callee]
        up, one = done.handed_up, (self._process(loop), callee)
        if plan is not None and plan.dataflow:
            together, up = self.callees[one] + 1, Counter()
        elif not self._takes_in(callee):
            up = Counter()
        batch.operators += up
        self.blocks_used.take_turns(batch.operators if self.target.tool == "vitis" else up)
        for _ in range(together - self.callees[one]):
            self.callees[one] += 1
            self.blocks_used.instance(done.dsp, up)
            self.brams += done.brams
            join(self.logic, done.logic)

    def _process(self, loop: Loop | None) -> str:
        """Return which process of a DATAFLOW function a loop is in; "" where there is one body."""
        if loop is None or self.plan is None or not self.plan.dataflow:
            return ""
        return [*loop.above()][-1].header

    def count(self, region: Region, interval: int | None, asked: int = 1) -> None:
        """Count the operators that a region needs; a directive asks for an interval."""
        self.blocks_used.count(region, interval, asked)
        self.ports.count(region, interval)
        join(self.logic, of_region(region, interval))
