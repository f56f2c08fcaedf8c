"""Regions: the operations that are scheduled together, and what each waits for.

A region is the code of a pipelined loop or function, or what stands between the loops of another
body. Branches are predicated, as HLS does it.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .accesses import choice_behind, cost_of_access, in_turn, remainders
from .array import LUT_BITS, Access, fitting, may_meet, meet_in_registers
from .asked import FunctionPlan
from .balance import balance
from .bindings import Bindings, bound
from .cost import Cost
from .decided import Decided, decided, is_with, together_with
from .effort import EACH, Effort
from .fifos import Fifos
from .flat import select_counters
from .ir import Block, Function, Instruction, Loop
from .luts import join_logic
from .macs import join_products
from .memory import Arrays
from .operators import cost_of
from .order import may_skip
from .place import Place, own_place
from .rows import compute_rows
from .target import Target
from .three import join_sums
from .words import rewritten, same_word

__all__ = ["AFTER_READ", "MOST_PAIRS", "Node", "Region", "Slot"]

#: A cycle, and ns within it.
Slot = tuple[int, float]
_SKIPPED = frozenset(("br", "ret", "switch", "unreachable", "alloca"))
#: Of so many accesses of an array each is compared with the last ones.
MOST_PAIRS = 400
#: Instead of a gap: a write that may share the cycle of a read before it.
AFTER_READ = -9


@dataclass(eq=False)
class Node:
    """One operation and what it waits for."""

    item: Instruction
    cost: Cost
    before: list[tuple[Node, int]] = field(default_factory=list)
    access: Access | None = None
    stream: str = ""
    #: Whether another access of the same word, of a field or lane beside, brings it along; of
    #: logic, whether it is in the LUT of what takes it.
    joined: bool = False
    #: Of a sum, those before it that may share its adder, and whether one does.
    inner: list[Node] = field(default_factory=list)
    takes_three: bool = False
    start: Slot = (0, 0.0)
    end: Slot = (0, 0.0)
    least: Slot = (0, 0.0)

    @property
    def place(self) -> Place | None:
        """Where it is in the kernel's own files."""
        return own_place(self.item.chain)

    @property
    def unit(self) -> str:
        """Which operator with DSP blocks does it, by core, widths and blocks; ``""`` for none."""
        cost = self.cost
        return f"{cost.core} {cost.widths} {cost.dsp}" if cost.dsp else ""

    def through_wires(self) -> list[Node]:
        """Return it and what is behind it, as long as a value is only extended or cut off."""
        found = [self]
        while found[-1].item.op in ("sext", "zext", "trunc") and found[-1].before:
            found.append(found[-1].before[0][0])
        return found


class Region:
    """The operations of some blocks, or of a `nest` that became one loop, each behind its needs."""

    def __init__(
        self, function: Function, arrays: Arrays, target: Target, plan: FunctionPlan | None,
        items: list[Instruction], header: str = "", *, bursts: bool = False,
        unordered: frozenset[str] = frozenset(), bindings: Bindings | None = None,
        nest: Sequence[Loop] = (),
    ) -> None:  # fmt: skip
        self.function, self.arrays, self.target, self.plan = function, arrays, target, plan
        self.header, self.is_pipeline, self._unordered = header, bursts, unordered
        self.blocks, self.bindings = {item.block for item in items}, bindings or {}
        self.nodes, self.by_value, self.nest = list[Node](), dict[str, Node](), nest
        self.accesses: dict[int, list[Node]] = defaultdict(list)
        #: Arrays (by id) that the tool divides by itself: how much of a bank can be read in a
        #: cycle, 0 where no element waits for another.
        self.spread: dict[int, int] = {}
        #: Of a flattened nest the loops around the innermost, and what runs in a turn of each.
        self.outer: list[tuple[str, int]] = []
        #: Loads (by id) of what the iteration before has written, and what makes that.
        self.handed_on: dict[int, list[Node]] = {}
        #: Of operations of a recurrence that stay in one cycle, the ns that they may take.
        self.unbroken: Mapping[int, float] = {}
        self.remainders: dict[object, Node] = {}  # what computes which bank an index is of
        self._writes: dict[int, list[Node]] = defaultdict(list)
        #: Of each element, and of it in a block where there are branches, the last load, and how
        #: many writes of its array were before it.
        self._loads: dict[object, tuple[Node, int]] = {}
        #: How many operators of a core, by its unit, there are for what a pipeline does with it.
        self.shared: dict[str, int] = {}
        #: What DEPENDENCE says of variables: after how many iterations, 0 for never.
        self.distances: Mapping[str, int] = {}
        self.fifos, self.effort = Fifos(), Effort()
        self._find_branches(items)
        for item in (one for one in items if one.op not in _SKIPPED):
            self._add(item)
        if plan is None or plan.balanced:
            balance(self)
        for step in (join_products, join_logic, join_sums, compute_rows, select_counters):
            step(self)
        self.fifos.after_reads(self)
        self.rewritten = rewritten(self)

    @property
    def loop(self) -> Loop | None:
        """The loop whose iteration it is; None where it is none."""
        return next((one for one in self.function.loops if one.header == self.header), None)

    def is_carried(self, node: Node) -> bool:
        """Whether a value comes from the iteration before."""
        item = node.item
        return item.op == "phi" and item.block is not None and item.block.name == self.header

    def computes(self, symbol: str) -> bool:
        """Whether a value, or the count of a ``loop NAME``, changes in it."""
        if symbol.startswith("loop "):
            return symbol[5:] in (self.header, *(loop.header for loop in self.nest))
        return symbol in self.by_value

    @property
    def begins_anew(self) -> bool:
        """Whether it is a nest, in whose inner loop each value begins anew in each outer turn."""
        before = self.function.predecessors.get(self.header, [])
        return sum(one in self.numbers for one in before) > 1

    def _add(self, item: Instruction) -> None:
        node = Node(item, Cost())
        carried = self.is_carried(node)
        if not carried:
            for name in item.operands:
                other = self.by_value.get(name)
                if other is not None:
                    node.before.append((other, 0))
        if item.op in ("load", "store"):
            node.access = self.arrays.access(item)
        if node.access is not None and node.access.array.kind == "stream":
            if node.access.array.of_elements:
                self.fifos.element(self, node, node.access)
            node.access = None  # the word of an hls::stream: its call is what counts
        elif node.access is not None:
            self._memory(node, node.access)
        elif item.op == "call" and item.callee.startswith("__hls_stream") and item.operands:
            self.fifos.word(self, node)
        else:
            node.cost = self._costs(item, carried)
        self.nodes.append(node)
        self.effort.add(EACH + 2 * len(node.before))
        if (chosen := choice_behind(self, node)) is not None:
            self.nodes.append(chosen)
        if item.name:
            self.by_value[item.name] = chosen or node

    def _costs(self, item: Instruction, carried: bool) -> Cost:
        if item.op == "phi":
            return Cost(0, 0.0 if carried else 0.5 * self.target.speed)
        cost = cost_of(item, self.function, self.target, pipelined=self.is_pipeline)
        return bound(cost, item, self.bindings, self.target) if self.bindings else cost

    def _memory(self, node: Node, access: Access) -> None:
        array = access.array
        if access.write and array.constant:
            node.access = None
            return
        node.cost = cost_of_access(self, node, access)
        if node.item.name and array.element_bits < node.item.bits:
            self.function.loaded[node.item.name] = array.element_bits
        key = id(array)
        previous = self.accesses[key]
        wrote = self._writes[key]
        base = self.arrays.base_of(node.item.operands[-1])
        word = same_word(node, previous[-MOST_PAIRS:], base)
        word = word or self._same_element(node)
        if word is None:
            self.nodes += remainders(self, node, access)
        else:
            node.joined = True
            node.cost = Cost(0, node.cost.delay if access.write else 0.0)
            node.before += [] if access.write else [(word, 0)]
        for other in (previous if access.write else wrote)[-MOST_PAIRS:]:
            assert other.access is not None
            if word is not None and other.access.write == access.write:
                continue
            if array.kind == "m_axi" and access.write != other.access.write:
                continue
            if other.access.write and not access.write and array.name in self._unordered:
                continue
            if self.branches and self._exclusive(node.item.block, other.item.block):
                continue
            chosen = meet_in_registers(access, other.access, self.target.tool)
            if chosen or may_meet(access, other.access):
                is_slow = array.kind not in ("scalar", "register") or in_turn(self, node)
                later = 1 if chosen or is_slow else 0
                node.before.append((other, later if other.access.write else AFTER_READ))
        if access.write:
            wrote.append(node)
        previous.append(node)

    def _same_element(self, node: Node) -> Node | None:
        """Return the load before, sure to be done, of what this one loads, if nothing wrote it."""
        access = node.access
        assert access is not None
        if access.write or access.array.kind != "memory" or "volatile" in node.item.text:
            return None
        element = id(access.array), access.address, node.item.bits
        key = *element, self.branches and together_with(self._decided, node.item.block)
        wrote = self._writes[id(access.array)]
        other, before = self._loads.get(key) or self._in_branch(element, node) or (node, 0)
        meet = (one.access is not None and may_meet(access, one.access) for one in wrote[before:])
        other = node if any(meet) else other
        self._loads[key] = self._loads[element] = other, len(wrote)
        return other if other is not node else None

    def _in_branch(self, element: object, node: Node) -> tuple[Node, int] | None:
        """Return the load in a branch of what all iterations with it load behind it, too."""
        found = self._loads.get(element)
        if found is None or not self.header:
            return None
        block = node.item.block
        if is_with(self._decided, block, found[0].item.block):
            return found
        return None if may_skip(self.function, self.header, [block]) else found

    @functools.cached_property
    def _decided(self) -> Mapping[str, Decided]:
        """What decides whether a block of an iteration of a pipeline runs."""
        known = self.is_pipeline and self.branches
        return decided(self.function, self.numbers, self.header) if known else {}

    def _find_branches(self, items: list[Instruction]) -> None:
        """Note which blocks can follow which, to see what never runs together."""
        blocks = list(
            {item.block.name: item.block for item in items if item.block is not None}.values()
        )
        self.numbers = {block.name: number for number, block in enumerate(blocks)}
        self.branches = any(
            len([s for s in b.successors if s in self.numbers and s != self.header]) > 1
            for b in blocks
        )
        self._reach: dict[str, int] = {}
        for block in reversed(blocks):
            bits = 1 << self.numbers[block.name]
            for name in block.successors:
                if name in self.numbers and name != self.header:
                    bits |= self._reach.get(name, 0)
            self._reach[block.name] = bits

    def _exclusive(self, one: Block | None, other: Block | None) -> bool:
        if one is None or other is None or one is other:
            return False
        first, second = self._reach.get(one.name, 0), self._reach.get(other.name, 0)
        numbers = self.numbers
        return not (first >> numbers[other.name] & 1 or second >> numbers[one.name] & 1)

    def beside(self, node: Node, others: list[Node], most: int) -> bool:
        """Whether an operation may run with others, `most` of them all; other branches' do not."""
        if len(others) < most:
            return True
        if not self.branches:
            return False
        block = node.item.block
        along = [other for other in others if not self._exclusive(block, other.item.block)]
        return len(along) < most or self.together(along) < most

    def together(self, nodes: list[Node]) -> int:
        """Return how many of some operations an iteration does at most, along one path."""
        if not self.branches:
            return len(nodes)
        here = Counter(node.item.block.name for node in nodes if node.item.block is not None)
        if len(here) ** 2 < len(self.numbers):
            return self._longest(here)
        self.effort.add(len(self.numbers) // 4)
        most: dict[str, int] = {}
        for name, following in self._backwards:
            after = 0
            for one in following:
                after = max(after, most[one])
            most[name] = here.get(name, 0) + after
        return max(most.values())

    def _longest(self, here: Mapping[str, int]) -> int:
        """Return the most operations along one path, of so many in each of a few blocks."""
        behind: list[tuple[int, int]] = []  # the number of a block, the most from it on
        for number, name in sorted(((self.numbers[name], name) for name in here), reverse=True):
            reach = self._reach[name]
            after = max((most for other, most in behind if reach >> other & 1), default=0)
            behind.append((number, here[name] + after))
        return max((most for _, most in behind), default=0)

    @functools.cached_property
    def _backwards(self) -> list[tuple[str, list[str]]]:
        """The blocks from the last on, each with those that may follow it in an iteration."""
        found: dict[str, list[str]] = {}
        for name in reversed(list(self.numbers)):
            following = self.function.blocks[name].successors
            found[name] = [one for one in following if one in found and one != self.header]
        return [*found.items()]

    def ports(self, node: Node) -> list[tuple[object, int]]:
        """Return the ports that an operation takes, each with how many accesses it has a cycle.

        What ALLOCATION limits is a port too.
        """
        access = node.access
        most = self.plan.limits.get(node.item.op) if self.plan is not None else None
        if self.shared and (units := self.shared.get(node.unit)):
            return [(("core", node.unit), units)]
        shifted = node.item.op == "mul" and not node.cost.core  # and added: no multiplier
        if most and (node.cost.delay or node.cost.latency) and access is None and not shifted:
            return [(("operation", node.item.op), most)]
        if node.stream:
            return [] if node.item.callee.endswith(("empty", "full")) else [(node.stream, 1)]
        if access is None or node.joined or access.array.kind in ("scalar", "register"):
            return in_turn(self, node)
        if access.array.constant and self._is_copied(access):
            return []
        if "1wnr" in access.array.plan.kind and not access.write:
            return []  # as many copies as reads
        if access.array.kind == "m_axi":
            return [((access.array.bundle, access.write), 1)]
        array = access.array
        ports = self.spread.get(id(array), array.ports())
        if not ports:
            return [((id(array), access.address), array.ports())]
        if "s2p" in array.plan.kind:  # one port reads, the other one writes
            return [((id(array), bank, access.write), 1) for bank in self._banks(access)]
        return [((id(array), bank), ports) for bank in self._banks(access)]

    def _is_copied(self, access: Access) -> bool:
        """Whether there are as many copies of a table as are read at a time.

        So it is in a pipeline, and of one that is kept in LUTs, unless a directive says `ROM_1P`.
        """
        if "1p" in access.array.plan.kind:
            return False
        bits = access.array.words * access.array.element_bits
        return self.is_pipeline or (bool(self.header) and bits < LUT_BITS)

    def _banks(self, access: Access) -> list[tuple[int | None, ...]]:
        """The banks that an access takes; one whose bank is not known takes all that are met."""
        if None not in access.banks:
            return [access.banks]
        met = {
            other.access.banks
            for other in self.accesses[id(access.array)]
            if other.access is not None and None not in other.access.banks
        }
        return [*fitting(access.banks, met), access.banks]

    def begins(self, node: Node, ready: Slot) -> Slot:
        """Return when an operation begins: in the next cycle where this one has no room for it."""
        cycle, time = ready
        needed = node.cost.entry if node.cost.latency else node.cost.delay
        if needed and time and time + needed > self.target.budget + 1e-9:
            before = (one.end for one, _ in node.before if id(one) in self.unbroken)
            longest = self.unbroken.get(id(node), 0.0)
            if time + needed > longest or max(before, default=(0, 0.0)) < ready:
                return cycle + 1, 0.0
        return ready

    def ends(self, node: Node, start: Slot) -> Slot:
        """Return when an operation ends that begins at a slot."""
        (cycle, time), cost = start, node.cost
        return (cycle + cost.latency, cost.delay) if cost.latency else (cycle, time + cost.delay)

    def carried_values(self) -> list[tuple[Node, Node]]:
        """Return each value of the iteration before, with the operation that makes it."""
        return [
            (node, self.by_value[name])
            for node in self.nodes
            if self.is_carried(node)
            for name in node.item.incoming.values()
            if name in self.by_value and self.by_value[name] is not node
        ]
