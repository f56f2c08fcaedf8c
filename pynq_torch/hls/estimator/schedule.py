"""Scheduling: when each operation of a region starts, in cycles and ns, and what limits it.

A region is the code of a pipelined loop or function, or what stands between the loops of another
body. Branches are predicated, as HLS does it. Operations chain within a cycle as long as its budget
lasts. A pipeline is modulo-scheduled: an interval (II) is tried from the least that memory ports and
recurrences allow.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from math import ceil, log2

from .ir import Block, Function, Instruction
from .memory import Access, Array, Arrays
from .operators import Cost, Target, constant_in, cost_of
from .plan import FunctionPlan

__all__ = ["Limit", "Node", "Region", "Slot"]

Slot = tuple[int, float]
_SKIPPED = frozenset(("br", "ret", "switch", "unreachable", "alloca"))
_MOST_PAIRS = 400
_TRIES = 24


@dataclass(eq=False)
class Node:
    """One operation and what it waits for."""

    item: Instruction
    cost: Cost
    before: list[tuple[Node, int]] = field(default_factory=list)
    access: Access | None = None
    stream: str = ""
    start: Slot = (0, 0.0)
    end: Slot = (0, 0.0)
    least: int = 0


@dataclass(frozen=True)
class Limit:
    """A lower bound of II, and the reason."""

    interval: int
    reason: str = ""
    place: object = None


class Region:
    """The operations of some blocks, in an order in which each follows what it needs."""

    def __init__(
        self, function: Function, arrays: Arrays, target: Target, plan: FunctionPlan | None,
        items: list[Instruction], header: str = "", *, bursts: bool = False,
    ) -> None:  # fmt: skip
        self.function, self.arrays, self.target, self.plan = function, arrays, target, plan
        self.header, self._bursts = header, bursts
        self.nodes: list[Node] = []
        self.by_value: dict[str, Node] = {}
        self._accesses: dict[int, list[Node]] = defaultdict(list)
        self._streams: dict[str, list[Node]] = defaultdict(list)
        for item in items:
            if item.op not in _SKIPPED:
                self._add(item)
        self._find_branches(items)
        self._predicates(items)

    # -- building ------------------------------------------------------------------------------

    def _add(self, item: Instruction) -> None:
        node = Node(item, Cost())
        carried = item.op == "phi" and item.block is not None and item.block.name == self.header
        if not carried:
            for name in item.operands:
                other = self.by_value.get(name)
                if other is not None:
                    node.before.append((other, 0))
        if item.op in ("load", "store"):
            node.access = self.arrays.access(item)
        if node.access is not None and node.access.array.kind == "stream":
            node.access = None  # the word of a stream: its call is what counts
        elif node.access is not None:
            self._memory(node, node.access)
        elif item.op == "call" and item.callee.startswith("__hls_stream") and item.operands:
            self._stream(node)
        else:
            node.cost = self._costs(item, carried)
        self.nodes.append(node)
        if item.name:
            self.by_value[item.name] = node

    def _costs(self, item: Instruction, carried: bool) -> Cost:
        if item.op == "phi":
            return Cost(0, 0.0 if carried else 0.5 * self.target.speed)
        cost = cost_of(item, self.function, self.target)
        if self.plan is not None and cost.core and cost.latency:
            wanted = self.plan.operators.get(item.name.lstrip("%"), -1)
            if wanted >= 0:
                return Cost(wanted, cost.delay, cost.entry, cost.dsp, cost.core)
        return cost

    def _memory(self, node: Node, access: Access) -> None:
        array, speed = access.array, self.target.speed
        if array.kind in ("scalar", "register"):
            variable = None in access.banks
            delay = 0.7 * log2(max(array.words, 2)) * speed if variable and not access.write else 0.0
            node.cost = Cost(0, delay)
        elif array.kind == "m_axi":
            node.cost = self._bus(access)
        elif access.write:
            node.cost = Cost(0, self._memory_delay() * speed)
        else:
            delay = self._memory_delay() * speed
            node.cost = Cost(array.latency, delay, delay)
        key = id(array)
        previous = self._accesses[key]
        for other in previous[-_MOST_PAIRS:]:
            assert other.access is not None
            if not (access.write or other.access.write):
                continue
            if array.kind in ("m_axi",) and access.write != other.access.write:
                continue
            if not may_meet(access, other.access):
                continue
            gap = 1 if other.access.write and array.kind not in ("scalar", "register") else 0
            node.before.append((other, gap if other.access.write else -9))
        previous.append(node)

    def _memory_delay(self) -> float:
        return 2.32 if self.target.tool == "vivado_old" else 3.25

    def _bus(self, access: Access) -> Cost:
        full = 0.85 * self.target.budget
        if self._bursts:
            return Cost(0 if access.write else 1, full if access.write else 0.0, full)
        return Cost(7, 0.0, full) if not access.write else Cost(6, 0.0, full)

    def _stream(self, node: Node) -> None:
        node.stream = self.arrays.base_of(node.item.operands[0])
        self.arrays.array(node.stream)
        asks = node.item.callee.endswith(("empty", "full"))
        node.cost = Cost(0, (0.5 if asks else 2.2) * self.target.speed)
        previous = self._streams[node.stream]
        if previous and not asks:
            node.before.append((previous[-1], 1))
        if not asks:
            previous.append(node)
        if node.item.callee.endswith("write"):
            for other in reversed(self.nodes):
                item = other.item
                if item.op == "store" and self.arrays.base_of(item.operands[-1]) == node.stream:
                    node.before.append((other, 0))
                    continue
                break
        if node.item.callee.endswith("read"):
            self.by_value["read " + node.stream] = node

    def _predicates(self, items: list[Instruction]) -> None:
        """Whatever a branch guards and can be seen outside waits for the branch's condition."""
        conditions: dict[str, list[str]] = {}
        blocks = {item.block.name: item.block for item in items if item.block is not None}
        before = self.function.predecessors()
        for name, block in blocks.items():
            preds = [one for one in before[name] if one in blocks] if name != self.header else []
            if len(preds) == 1:
                last = blocks[preds[0]].instructions[-1]
                guard = last.operands[:1] if len(blocks[preds[0]].successors) > 1 else []
                conditions[name] = conditions.get(preds[0], []) + guard
        for node in self.nodes:
            item = node.item
            seen = item.op == "store" or node.stream
            if not seen or item.block is None:
                continue
            for value in conditions.get(item.block.name, ()):
                other = self.by_value.get(value)
                if other is not None and other is not node:
                    node.before.append((other, 0))
        for node in self.nodes:  # the word that a stream's read brings
            item = node.item
            if item.op == "load" and node.access is None and item.operands:
                other = self.by_value.get("read " + self.arrays.base_of(item.operands[-1]))
                if other is not None and other.item.order <= item.order:
                    node.before.append((other, 0))

    # -- scheduling ----------------------------------------------------------------------------

    def place_all(self, interval: int | None) -> int:
        """Give each operation its cycle; return how many cycles the region spans, at least 1."""
        taken: dict[tuple[object, int], list[Node]] = defaultdict(list)
        for node in self.nodes:
            self._place(node, taken, interval)
        return max((node.end[0] for node in self.nodes), default=0) + 1

    def _ready(self, node: Node) -> Slot:
        cycle, time = node.least, 0.0
        for other, gap in node.before:
            end = other.end
            if gap == -9:  # a write may share the cycle of a read before it
                if other.start[0] > cycle:
                    cycle, time = other.start[0], 0.0
            elif gap:
                if end[0] + gap > cycle:
                    cycle, time = end[0] + gap, 0.0
            elif end[0] > cycle:
                cycle, time = end
            elif end[0] == cycle and end[1] > time:
                time = end[1]
        return cycle, time

    def _place(self, node: Node, taken: dict[tuple[object, int], list[Node]], interval: int | None) -> None:
        cycle, time = self._ready(node)
        cost, budget = node.cost, self.target.budget
        needed = cost.entry if cost.latency else cost.delay
        if needed and time and time + needed > budget + 1e-9:
            cycle, time = cycle + 1, 0.0
        ports = self._ports(node)
        if ports:
            for _ in range(100_000):
                at = cycle % interval if interval else cycle
                if all(self._beside(node, taken[key, at]) < most for key, most in ports):
                    break
                cycle, time = cycle + 1, 0.0
            at = cycle % interval if interval else cycle
            for key, _ in ports:
                taken[key, at].append(node)
        node.start = (cycle, time)
        node.end = (cycle + cost.latency, cost.delay) if cost.latency else (cycle, time + cost.delay)

    def _beside(self, node: Node, others: list[Node]) -> int:
        """How many of `others` may run with a node; those of the other branch do not."""
        if len(others) < 1 or not self._branches:
            return len(others)
        block = node.item.block
        return sum(1 for other in others if not self._exclusive(block, other.item.block))

    def _exclusive(self, one: Block | None, other: Block | None) -> bool:
        if one is None or other is None or one is other:
            return False
        first, second = self._reach.get(one.name, 0), self._reach.get(other.name, 0)
        numbers = self._numbers
        return not (first >> numbers[other.name] & 1 or second >> numbers[one.name] & 1)

    def _find_branches(self, items: list[Instruction]) -> None:
        """Note which blocks can follow which, to see what never runs together."""
        blocks = list({item.block.name: item.block for item in items if item.block is not None}.values())
        self._numbers = {block.name: number for number, block in enumerate(blocks)}
        self._branches = any(len([s for s in b.successors if s in self._numbers and s != self.header]) > 1 for b in blocks)
        self._reach: dict[str, int] = {}
        for block in reversed(blocks):
            bits = 1 << self._numbers[block.name]
            for name in block.successors:
                if name in self._numbers and name != self.header:
                    bits |= self._reach.get(name, 0)
            self._reach[block.name] = bits

    def _ports(self, node: Node) -> list[tuple[object, int]]:
        access = node.access
        if node.stream:
            return [] if node.item.callee.endswith(("empty", "full")) else [(node.stream, 1)]
        if access is None or access.array.kind in ("scalar", "register"):
            return []
        if access.array.kind == "m_axi":
            return [((access.array.bundle, access.write), 1)]
        return [((id(access.array), bank), access.array.ports()) for bank in self._banks(access)]

    def _banks(self, access: Access) -> list[tuple[int | None, ...]]:
        """The banks that an access takes; one whose bank is not known takes all that are met."""
        if None not in access.banks:
            return [access.banks]
        met = {
            other.access.banks
            for other in self._accesses[id(access.array)]
            if other.access is not None and None not in other.access.banks
        }
        fits = [b for b in met if all(x is None or x == y for x, y in zip(access.banks, b, strict=True))]
        return [*fits, access.banks]

    # -- bounds of II --------------------------------------------------------------------------

    def port_limit(self) -> Limit:
        """The interval that memory and stream ports allow."""
        counts: dict[object, list[Node]] = defaultdict(list)
        limits: dict[object, int] = {}
        for node in self.nodes:
            for key, most in self._ports(node):
                counts[key].append(node)
                limits[key] = most
        best = Limit(1)
        for key, nodes in counts.items():
            node, most, count = nodes[-1], limits[key], self._together(nodes)
            interval = ceil(count / most)
            if interval > best.interval:
                best = Limit(interval, self._port_reason(node, count, most), node.item.place)
        return best

    def _together(self, nodes: list[Node]) -> int:
        """How many of some accesses an iteration makes at most, along one path."""
        if not self._branches:
            return len(nodes)
        here = Counter(node.item.block.name for node in nodes if node.item.block is not None)
        most: dict[str, int] = {}
        for name in reversed(list(self._numbers)):
            after = [most[n] for n in self.function.blocks[name].successors if n in most and n != self.header]
            most[name] = here[name] + max(after, default=0)
        return max(most.values())

    def _port_reason(self, node: Node, count: int, most: int) -> str:
        if node.stream:
            from .memory import plain_name

            return f"{count} accesses of stream `{plain_name(node.stream)}` in an iteration, it takes one a cycle"
        assert node.access is not None
        array = node.access.array
        if array.kind == "m_axi":
            way = "writes" if node.access.write else "reads"
            return (
                f"{count} {way} through m_axi bundle `{array.bundle}` in an iteration, it has one a "
                "cycle; give the arguments bundles of their own, or read a copy"
            )
        factor = ceil(count / most)
        ports = "a dual-port RAM takes two" if most == 2 else "its memory takes one"
        return (
            f"{count} accesses of `{array.name}` in an iteration, {ports} a cycle; partition it by "
            f"{max(factor, 2)}"
        )

    def recurrence_limit(self, independent: set[str]) -> Limit:
        """The interval that values carried from one iteration to the next allow."""
        best = Limit(1)
        for node in self.nodes:
            item = node.item
            if item.op != "phi" or item.block is None or item.block.name != self.header:
                continue
            for value in item.incoming.values():
                last = self.by_value.get(value)
                if last is None or last is node:
                    continue
                end = self._path(node, last)
                if end is not None and end[0] + 1 > best.interval:
                    best = Limit(end[0] + 1, self._carried_reason(node, last), last.item.place)
        for first, last, distance in self._carried(independent):
            end = self._path(first, last)
            if end is not None:
                interval = ceil((end[0] + self._visible(last)) / distance)
                if interval > best.interval:
                    best = Limit(interval, self._memory_reason(first, last, distance), last.item.place)
        return best

    @staticmethod
    def _visible(store: Node) -> int:
        return 1

    def _carried(self, independent: set[str]) -> list[tuple[Node, Node, int]]:
        """Loads that read what a store of an earlier iteration wrote: load, store, iterations."""
        if "" in independent:
            return []
        found = []
        symbol = "loop " + self.header
        for nodes in self._accesses.values():
            first = nodes[0].access
            assert first is not None
            if first.array.name in independent or first.array.kind == "m_axi":
                continue
            stores = [node for node in nodes if node.access is not None and node.access.write]
            loads = [node for node in nodes if node.access is not None and not node.access.write]
            for store in stores[-_MOST_PAIRS:]:
                for load in loads[-_MOST_PAIRS:]:
                    assert load.access is not None and store.access is not None
                    distance = distance_of(load.access, store.access, symbol)
                    if distance and not self._passed(load, store, symbol):
                        found.append((load, store, distance))
        return found

    def _passed(self, load: Node, store: Node, symbol: str) -> bool:
        """Whether a store that runs in one iteration only comes after the load of its element."""
        assert load.access is not None and store.access is not None
        when = self._only(store, symbol)
        difference = store.access.address.plus(load.access.address, -1)
        step = load.access.address.factor(symbol)
        if when is None or not step or any(name != symbol for name, _ in difference.terms):
            return False
        return store.access.address.factor(symbol) == 0 and difference.constant / step <= when

    def _only(self, store: Node, symbol: str) -> int | None:
        """The one iteration in which a store runs, if its branch compares the loop's counter."""
        block = store.item.block
        if block is None:
            return None
        before = self.function.predecessors()[block.name]
        if len(before) != 1:
            return None
        last = self.function.blocks[before[0]].instructions[-1]
        guard = self.function.values.get(last.operands[0]) if last.operands else None
        targets = self.function.blocks[before[0]].successors
        if guard is None or guard.op != "icmp" or len(targets) != 2 or targets[0] != block.name:
            return None
        value = constant_in(guard)
        known = self.function.known.get(guard.operands[0]) if guard.operands else None
        if " eq " not in f" {guard.text} " or value is None or known is None:
            return None
        step = known.expression.factor(symbol)
        if not step or len(known.expression.terms) != 1:
            return None
        return (value - known.expression.constant) // step

    def _path(self, first: Node, last: Node) -> Slot | None:
        """When `last` ends at the earliest, if `first` starts a cycle and all else is ready."""
        ends: dict[int, Slot] = {id(first): self._after(first, (0, 0.0))}
        begun = False
        for node in self.nodes:
            if node is first:
                begun = True
                continue
            if not begun:
                continue
            ready: Slot | None = None
            for other, gap in node.before:
                end = ends.get(id(other))
                if end is None or gap == -9:
                    continue
                slot = (end[0] + gap, 0.0) if gap else end
                ready = slot if ready is None or slot > ready else ready
            if ready is not None:
                ends[id(node)] = self._after(node, ready)
                if node is last:
                    break
        return ends.get(id(last))

    def _after(self, node: Node, ready: Slot) -> Slot:
        cycle, time = ready
        cost = node.cost
        needed = cost.entry if cost.latency else cost.delay
        if needed and time and time + needed > self.target.budget + 1e-9:
            cycle, time = cycle + 1, 0.0
        return (cycle + cost.latency, cost.delay) if cost.latency else (cycle, time + cost.delay)

    def _slowest(self, first: Node, last: Node) -> Node:
        """The operation of a recurrence that takes longest."""
        reach = {id(first)}
        on_way = []
        for node in self.nodes[self.nodes.index(first) :]:
            if any(id(other) in reach for other, gap in node.before if gap != -9) or node is first:
                reach.add(id(node))
                on_way.append(node)
            if node is last:
                break
        return max(on_way, key=lambda node: (node.cost.latency, node.cost.delay))

    def _carried_reason(self, first: Node, last: Node) -> str:
        slow = self._slowest(first, last)
        what = words_for(slow.item)
        cycles = slow.cost.latency
        took = f" ({cycles + 1} cycles at {self.target.clock:g} ns)" if cycles else ""
        hint = "; use several accumulators" if what.startswith("the floating-point add") else ""
        return f"each iteration waits for {what} of the one before it{took}{hint}"

    def _memory_reason(self, first: Node, last: Node, distance: int) -> str:
        assert first.access is not None
        name = first.access.array.name
        before = "the iteration before" if distance == 1 else f"{distance} iterations before"
        slow = self._slowest(first, last)
        through = f", through {words_for(slow.item)}" if slow.cost.latency > 1 else ""
        return (
            f"`{name}` is read after {before} has written it (load to store{through}); keep the value "
            "in a variable, or say DEPENDENCE false where addresses never meet"
        )

    # -- the pipeline --------------------------------------------------------------------------

    def pipeline(self, asked: int, independent: set[str]) -> tuple[int, int, Limit]:
        """Return II, cycles of one iteration (depth) and what limits II."""
        ports, carried = self.port_limit(), self.recurrence_limit(independent)
        limit = carried if carried.interval >= ports.interval else ports
        interval = max(asked, limit.interval, 1)
        pairs = self._carried(independent)
        for _ in range(200):
            depth = self._fit(interval, pairs)
            if depth is not None:
                return interval, depth, limit
            interval += 1
            limit = Limit(interval, limit.reason or "no schedule fits its ports", limit.place)
        return interval, self.place_all(interval), limit

    def _fit(self, interval: int, pairs: list[tuple[Node, Node, int]]) -> int | None:
        """Schedule at an interval; None where carried values come too late."""
        for node in self.nodes:
            node.least = 0
        users = self._users()
        for _ in range(_TRIES):
            depth = self.place_all(interval)
            late = False
            for phi, last in self._phis():
                due = last.end[0] + 1 - interval
                for user in users.get(id(phi), ()):
                    if user.start[0] < due and user.least < due:
                        user.least, late = due, True
            for load, store, distance in pairs:
                due = store.end[0] + 1 - interval * distance
                if load.start[0] < due and load.least < due:
                    load.least, late = due, True
            if not late:
                return depth
        return None

    def _users(self) -> dict[int, list[Node]]:
        found: dict[int, list[Node]] = defaultdict(list)
        for node in self.nodes:
            for other, gap in node.before:
                if other.item.op == "phi" and gap == 0:
                    found[id(other)].append(node)
        return found

    def _phis(self) -> list[tuple[Node, Node]]:
        found = []
        for node in self.nodes:
            item = node.item
            if item.op == "phi" and item.block is not None and item.block.name == self.header:
                lasts = [self.by_value[v] for v in item.incoming.values() if v in self.by_value]
                found += [(node, last) for last in lasts if last is not node]
        return found


def may_meet(one: Access, other: Access) -> bool:
    """Whether two accesses of an iteration may be of one element."""
    difference = one.address.plus(other.address, -1)
    if not difference.terms:
        return abs(difference.constant) < one.array.element_bytes
    pairs = zip(one.banks, other.banks, strict=False)
    return not any(a is not None and b is not None and a != b for a, b in pairs)


def distance_of(load: Access, store: Access, symbol: str) -> int:
    """After how many iterations a load meets what a store wrote; 0 for never."""
    if any(a is not None and b is not None and a != b for a, b in zip(load.banks, store.banks, strict=False)):
        stride = store.address.factor(symbol)
        if not stride:
            return 0
    difference = store.address.plus(load.address, -1)
    step = store.address.factor(symbol)
    size = store.array.element_bytes
    if difference.terms:
        return 1
    if step == 0:
        return 1 if abs(difference.constant) < size else 0
    iterations, rest = divmod(difference.constant, step)
    if rest and abs(rest) >= size and abs(rest - step) >= size:
        return 0
    return iterations if iterations >= 1 else 0


_WORDS = {
    "fadd": "the floating-point addition", "fsub": "the floating-point addition",
    "fmul": "the floating-point product", "fdiv": "the division", "sdiv": "the division",
    "udiv": "the division", "srem": "the division", "urem": "the division", "mul": "the product",
    "load": "the read of memory", "add": "the addition", "store": "the write", "fcmp": "the comparison",
}  # fmt: skip


def words_for(item: Instruction) -> str:
    """Name an operation for a reader."""
    if item.op == "call":
        return f"`{item.callee.removeprefix('__hls_').split('_f')[0]}`"
    return _WORDS.get(item.op, f"`{item.op}`")
