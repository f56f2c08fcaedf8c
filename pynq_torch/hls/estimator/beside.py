"""Modules that run side by side: Vitis HLS makes one of each pipelined loop, copy and call.

A body's states start a module as soon as those have ended whose arrays or results it needs, in
whatever order they are written; a state ends when the last module that it started has. Vivado HLS
keeps its loops in the body's own states, one after another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .cycles import greater
from .guards import predicate
from .ir import Block, Instruction, Loop
from .lite import READ
from .order import child
from .result import Cycles
from .schedule import place_all

if TYPE_CHECKING:
    from .latency import Body
    from .region import Region

__all__ = ["Times", "place_groups", "run_side_by_side"]

#: The release since when a write waits for its branch's condition where nothing is pipelined too:
#: 261 of 272 do in schedules since then, and one of 2017 does not.
_WAITS = 2018.0
_COPIES = ("llvm.mem", "memcpy", "memmove", "memset")


@dataclass
class Times:
    """What a body takes: its blocks' groups of operations with the cycles between, and its loops.

    Attributes
    ----------
    spans : dict
        Of each block, its groups with the cycles of the calls or the copy in front of each.
    loops : dict
        States of each loop, by its header.
    groups : dict
        Instructions of each group.
    states : dict
        States of each group; a group that is not there takes one, but beside a call.
    working : set
        Groups that do more than to hand values on.
    late : dict
        Of each group, results of operators with several stages that are there in its last state.
    modules : dict
        Instructions of the calls or the copy in front of a span, by block and number.
    pipelines : set
        Headers of the loops that are pipelines.
    """

    spans: dict[str, list[tuple[int, Cycles]]] = field(default_factory=dict)
    loops: dict[str, Cycles] = field(default_factory=dict)
    groups: dict[int, list[Instruction]] = field(default_factory=lambda: defaultdict(list))
    states: dict[int, int] = field(default_factory=dict)
    working: set[int] = field(default_factory=set)
    late: dict[int, set[str]] = field(default_factory=dict)
    modules: dict[tuple[str, int], list[Instruction]] = field(
        default_factory=lambda: defaultdict(list)
    )
    pipelines: set[str] = field(default_factory=set)


@dataclass
class _Module:
    """One module: a loop's header, or a block and the number of a span; or a group that works."""

    where: str | tuple[str, int] | int
    items: list[Instruction]
    #: The group of operations in front of it.
    group: int
    level: int = 0


class _Run:
    """Modules that follow one another without a branch, and what works between them."""

    def __init__(self, body: Body, times: Times) -> None:
        self._body, self._times = body, times
        self._modules: list[_Module] = []
        self._used: list[tuple[set[str], set[str], set[str]]] = []

    def work(self, group: int, items: list[Instruction], header: str) -> None:
        """Take a group of operations behind a module; what is before all of them is done first.

        What waits for no module and fits into the states in front of the first is done there.
        """
        if not self._modules:
            return
        front = self._modules[0].group
        free, rest = self._split(items)
        early = self._region([*self._times.groups.get(front, ()), *free], header)
        if free and place_all(early, None) <= self._times.states.get(front, 1):
            if not _works(self._region(rest, header)):
                self._times.states[group] = 0
                self.passes_on(rest)
                return
            items = rest
        self.add(_Module(group, items, group))

    def _split(self, items: list[Instruction]) -> tuple[list[Instruction], list[Instruction]]:
        """Return what waits for no module, and what may."""
        free: list[Instruction] = []
        rest: list[Instruction] = []
        given = {name for _, _, names in self._used for name in names}
        for item in items:
            bound = item.op in ("load", "store", "call") or not given.isdisjoint(item.operands)
            (rest if bound else free).append(item)
            if bound and item.name:
                given.add(item.name)
        return free, rest

    def _region(self, items: list[Instruction], header: str) -> Region:
        return self._body.region(items, header, bursts=False)

    def add(self, module: _Module) -> None:
        """Find the level of a module: behind those that it waits for."""
        reads, writes = _arrays_of(self._body, module.items)
        takes = {name for item in module.items for name in item.operands}
        gives = {item.name for item in module.items if item.name}
        for other, (read, written, given) in zip(self._modules, self._used, strict=True):
            if writes & (read | written) or reads & written or takes & given:
                module.level = max(module.level, other.level + 1)
        self._modules.append(module)
        self._used.append((reads, writes, gives))

    def starts(self, items: list[Instruction], group: int) -> None:
        """Let the module of a loop start a state later where it takes an operator's last result.

        Of its arguments sums, choices and words come in the state in which it starts, in schedules
        of Vitis HLS; products and results of float operators, in all of 24, in the one before.
        """
        late = self._times.late.get(group)
        if late and any(not late.isdisjoint(item.operands) for item in items):
            self._times.states[group] += 1
            self._times.late[group] = set()

    def passes_on(self, items: Sequence[Instruction]) -> None:
        """Let what is computed from a module's result without work count as its result."""
        for item in items:
            for _, _, given in self._used:
                if item.name and given & set(item.operands):
                    given.add(item.name)

    def end(self) -> None:
        """Let the modules of a level take the time of the longest of them."""
        levels: dict[int, list[_Module]] = defaultdict(list)
        for module in self._modules:
            levels[module.level].append(module)
        for together in levels.values():
            loops = [one.where for one in together if isinstance(one.where, str)]
            self._body.blocks_used.count_together(loops)
            leader, *others = sorted(together, key=lambda one: isinstance(one.where, int))
            for module in others:
                self._set(leader, greater(self._cycles(leader), self._cycles(module)))
                self._set(module, (0, 0))
                if isinstance(module.where, int):
                    continue
                if module.group not in self._times.working:
                    self._times.states[module.group] = 0
                if isinstance(module.where, tuple):
                    self._skip(*module.where)
        self._modules, self._used = [], []

    def _skip(self, block: str, number: int) -> None:
        """Let the group behind a copy, where nothing is done, take no state of its own."""
        group = self._times.spans[block][number][0]
        if group not in self._times.groups:
            self._times.states[group] = 0

    def _cycles(self, module: _Module) -> Cycles:
        if isinstance(module.where, str):
            return self._times.loops[module.where]
        if isinstance(module.where, int):
            return self._times.states[module.where], self._times.states[module.where]
        block, number = module.where
        return self._times.spans[block][number][1]

    def _set(self, module: _Module, cycles: Cycles) -> None:
        if isinstance(module.where, str):
            self._times.loops[module.where] = cycles
        elif isinstance(module.where, int):
            self._times.states[module.where] = cycles[1] or 0
        else:
            block, number = module.where
            self._times.spans[block][number] = self._times.spans[block][number][0], cycles


def place_groups(body: Body, times: Times, header: str, calls: set[int]) -> None:
    """Find the states of each group of operations; beside a call those that hand on take none."""
    for number, items in times.groups.items():
        region = body.region(items, header, bursts=False)
        if not 0 < body.target.release < _WAITS:
            predicate(region)
        works = _works(region)
        times.states[number] = place_all(region, None) if works or number not in calls else 0
        body.count(region, None)
        if works:
            times.working.add(number)
            times.late[number] = _late(region, times.states[number])


def _works(region: Region) -> bool:
    """Whether operations take time or a port."""
    return any(
        node.cost.latency or node.cost.delay or node.access or node.stream
        for node in region.nodes
        if node.item.op != READ
    )


def _late(region: Region, states: int) -> set[str]:
    """Return what operators with several stages make in the last state, and what is only named so.

    The words of memories are not among them.
    """
    found: set[str] = set()
    for node in region.nodes:
        if node.access is not None or node.stream or node.end[0] != states - 1:
            continue
        named = not (node.cost.latency or node.cost.delay)
        if node.cost.latency or (named and any(one.item.name in found for one, _ in node.before)):
            found.add(node.item.name)
    return found


def run_side_by_side(
    body: Body, inside: Sequence[Block], around: Loop | None, times: Times
) -> None:
    """Change the times of the modules of a body to those of modules that run side by side."""
    run = _Run(body, times)
    before: Block | Loop | None = None
    group = -1
    for node in _nodes(inside, around):
        if before is None or not _follows(body, before, node):
            run.end()
        before = node
        if isinstance(node, Loop):
            if node.header in times.pipelines:
                items = body.items(node)
                run.starts(items, group)
                run.add(_Module(node.header, items, group))
            else:
                run.end()
            continue
        for number, (behind, _) in enumerate(times.spans[node.name]):
            if (node.name, number) in times.modules:
                where = node.name, number
                run.add(_Module(where, times.modules[where], group))
            group = behind
            mine = [item for item in times.groups.get(group, ()) if item.block is node]
            if group in times.working:
                run.work(group, mine, around.header if around is not None else "")
            else:
                run.passes_on(mine)
    run.end()


def _nodes(inside: Sequence[Block], around: Loop | None) -> Iterator[Block | Loop]:
    """Yield a body's own blocks and the loops in it, each in its place."""
    seen: set[str] = set()
    for block in inside:
        inner = child(block.loop, around)
        if inner is None:
            yield block
        elif inner.header not in seen:
            seen.add(inner.header)
            yield inner


def _follows(body: Body, before: Block | Loop, node: Block | Loop) -> bool:
    """Whether a block or loop is the only one behind another, and has only that one before it."""
    blocks = body.function.blocks
    mine = set(before.blocks) if isinstance(before, Loop) else {before.name}
    own = set(node.blocks) if isinstance(node, Loop) else {node.name}
    after = {one for name in mine for one in blocks[name].successors} - mine
    first = node.header if isinstance(node, Loop) else node.name
    into = set(body.function.predecessors[first]) - own
    return after == {first} and into <= mine


def _arrays_of(body: Body, items: Iterable[Instruction]) -> tuple[set[str], set[str]]:
    """Return the arrays that instructions read and write, or keep others from.

    A memory's ports are those of one module at a time, a bus has one reader and one writer.
    """
    reads: set[str] = set()
    writes: set[str] = set()
    base_of = body.arrays.base_of
    for item in items:
        if item.op in ("load", "store") and item.operands:
            (reads if item.op == "load" else writes).add(base_of(item.operands[-1]))
        elif item.op == "call" and item.callee in body.kernel.module.functions:
            for found, more in zip((reads, writes), body.used(item), strict=True):
                found |= more
            if body.allowed(item.callee):  # its instances are those of one run of calls at a time
                writes.add(f"instances of {item.callee}")
        elif item.op == "call":
            given = [base_of(one) for one in item.operands]
            copies = item.callee.startswith(_COPIES)
            writes.update(given[:1] if copies else given)
            reads.update(given[1:2] if copies else ())
    for name in reads | writes:
        array = body.arrays.met(name)
        if array is not None and array.kind == "memory" and not array.constant:
            writes.add(name)
        elif array is not None and array.kind == "m_axi":
            ways = ("read", reads), ("write", writes)
            writes |= {f"{way} {array.bundle}" for way, found in ways if name in found}
    return reads, writes
