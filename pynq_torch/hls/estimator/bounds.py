"""The least II that memory ports and recurrences allow, and the reason in a sentence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from pathlib import Path

from .array import Access, may_meet, meet_in_registers
from .distances import changes_bank, distance_of, told_of
from .effort import EACH
from .ir import names_in
from .operators import constant_in
from .paths import After, ends_of, path, time_of, waiting
from .place import Place
from .reasons import carried_reason, memory_reason, port_reason
from .region import MOST_PAIRS, Node, Region, Slot
from .target import Target

__all__ = [
    "Carried",
    "Limit",
    "carried",
    "counter",
    "full_limit",
    "is_staged_product",
    "is_too_long",
    "kept",
    "late_limit",
    "port_limit",
    "ports_needed",
    "recurrence_limit",
]

#: ns to write a variable in which Vitis HLS keeps what a loop carries.
_WRITE_NS, _FAST_WRITE_NS = 1.58, 0.42
#: How much of a cycle's ns a recurrence of II=1 takes at most, that passes by its variable.
_MOST_PASSED = 1.36
#: ns to choose between two values; of a cycle in which a 7-series sum has room for that as well.
_CHOICE_NS, _SLOW_NS = 0.7, 19.5
#: ns that a choice in UltraScale+ needs to be left: 0.45 were too few in grade -2, 0.87 enough.
_FAST_CHOICE_NS = 0.6


#: The release since when Vitis HLS looks at which element of an m_axi port is read and written.
_COMPARES = 2023.0
#: The release since when what was chosen among floats is taken from that variable.
_VARIABLES = 2022.0
#: The first release that keeps what an iteration hands on in a variable.
_KEEPS = 2021.0


@dataclass(frozen=True)
class Limit:
    """A lower bound of II, and the reason."""

    interval: int
    reason: str = ""
    place: Place | None = None

    @property
    def where(self) -> str:
        """File and line in parentheses, if they are known."""
        return f" ({Path(self.place.file).name}:{self.place.line})" if self.place else ""


@dataclass(frozen=True)
class Carried:
    """A load that reads what a store of an earlier iteration wrote."""

    load: Node
    store: Node
    #: So many iterations before.
    distance: int
    #: From the cycle in which the store ends to the first in which the load may begin.
    gap: int = 1


def port_limit(region: Region, asked: int) -> Limit:
    """The interval that memory and stream ports allow, and how to reach the one asked for."""
    interval, nodes, most = ports_needed(region)
    if not nodes:
        return Limit(interval)
    return Limit(interval, port_reason(region, nodes, most, asked), nodes[-1].place)


def ports_needed(region: Region) -> tuple[int, list[Node], int]:
    """Return the interval that ports allow, who shares the short one, and what it takes a cycle."""
    counts: dict[object, list[Node]] = defaultdict(list)
    limits: dict[object, int] = {}
    for node in region.nodes:
        for key, most in region.ports(node):
            counts[key].append(node)
            limits[key] = most
    best: tuple[int, list[Node], int] = 1, [], 1
    for key, nodes in counts.items():
        interval = ceil(region.together(nodes) / limits[key])
        if interval > best[0]:
            best = interval, nodes, limits[key]
    return best


def recurrence_limit(region: Region, pairs: Sequence[Carried]) -> Limit:
    """The interval that values carried from one iteration to the next allow; `pairs` of memory."""
    best, after = Limit(1), waiting(region)
    for node, last in region.carried_values():
        if region.unbroken.get(id(last)) == inf:
            continue
        end = path(region, node, last, 0.0, after)
        if end is None:
            continue
        interval, time = kept(region, last, end)
        if time > 0:
            # Where there is time left in its last cycle, the next iteration begins in that one.
            again = path(region, node, last, time, after)
            interval += again is None or again[0] > interval
        elif interval == 1:
            interval += is_too_long(region, node, last, after)
        if interval > best.interval:
            best = Limit(interval, *carried_reason(region, node, last, interval))
    by_load: dict[int, list[Carried]] = defaultdict(list)
    for pair in pairs:
        if region.unbroken.get(id(pair.store)) != inf:
            by_load[id(pair.load)].append(pair)
    for group in by_load.values():
        ends = ends_of(region, group[0].load, 0.0, after)
        for pair in group:
            end = ends.get(id(pair.store))
            if id(pair.store) in region.unbroken:
                end = pair.load.cost.latency, 0.0
            interval = ceil((end[0] + pair.gap) / pair.distance) if end is not None else 0
            if interval > best.interval:
                best = Limit(interval, *_memory_reason(region, pair, interval))
    return best


def is_too_long(region: Region, first: Node, last: Node, after: After) -> bool:
    """Whether what an iteration hands on takes Vitis HLS more than the next one can pass by.

    Of 197 recurrences in its schedules that take an interval of 1 none has more than 1.354 times
    the ns of a cycle in all, with the write of the variable, and of those with 2 none less than
    1.364 if it is they that need it.
    """
    target = region.target
    if target.tool != "vitis":
        return False
    return time_of(region, first, last, after) + _write(target) > _MOST_PASSED * target.budget


def _write(target: Target) -> float:
    """Return the ns in which Vitis HLS writes a variable."""
    return _FAST_WRITE_NS if target.has_ultra_ram else _WRITE_NS * target.speed


def kept(region: Region, node: Node, end: Slot, user: Node | None = None) -> Slot:
    """Return when the next iteration's `user` can take a value that is there at `end`.

    Vitis HLS keeps it in a variable: to write that takes time, to read it none (its schedules, of
    2020.2 to 2025.2). What logic makes in a later cycle is passed by in that one, and its time does
    not count there: five schedules have more in both than a cycle holds. So it is with a
    floating-point sum that takes itself; another operation, or the one that begins a sum anew in
    each turn of a nest, waits for the next cycle.
    """
    target = region.target
    if target.tool != "vitis":
        return end
    if id(node) in region.unbroken or 0 < target.release < _KEEPS:
        return end[0], 0.0
    # A sum in logic, or in a DSP block, is none of the cores that take several cycles.
    multiple = node.cost.latency > 0 and node.cost.core not in ("add", "mac")
    is_float = node.item.type in ("half", "float", "double")
    if user is not None and is_staged_product(user) and not multiple:
        return end[0] + (end[1] + user.cost.entry > target.budget), 0.0
    is_passed = user is node and target.has_ultra_ram
    if is_passed and end[1] + _FAST_CHOICE_NS + _write(target) <= target.budget:
        return end[0], 0.0  # there is time to choose, as in four loops
    if multiple and user is not None and (user is not node or region.begins_anew):
        return end[0] + 1 + (region.begins_anew and not _has_room(user, target)), 0.0
    if is_float and not multiple and user is not None and user.cost.latency:
        if end[1] + _write(target) + user.cost.entry <= target.budget:
            return end[0], 0.0  # the core begins behind the choice: the least of some numbers
        # Else a number that was chosen waits in the variable, too, in three reports of 2022 to
        # 2024; in one of 2021 it does not.
        return end[0] + (not 0 < target.release < _VARIABLES), 0.0
    if (multiple or is_float) and not (is_float and target.has_ultra_ram):
        return end  # the time that these have left in their last cycle is not known so well
    if end[1] + _write(target) > target.budget:
        return end[0] + 1, 0.0
    return end[0], 0.0


def _has_room(user: Node, target: Target) -> bool:
    """Whether a floating-point core begins in the cycle in which its sum is chosen: 0 or the last.

    Those of the 7 series fill their cycles but at slow clocks.
    """
    if target.has_ultra_ram:
        return user.cost.entry + _CHOICE_NS * target.speed <= target.budget
    return target.budget > _SLOW_NS


def is_staged_product(node: Node) -> bool:
    """Whether it is a product of several stages, each of which fills its cycle."""
    return node.cost.core in ("mul", "mac") and node.cost.latency > 0


def late_limit(region: Region, interval: int, late: tuple[Node, Node] | Carried) -> Limit:
    """Return why a schedule needs an interval: which value, or element, comes too late."""
    if isinstance(late, Carried):
        return Limit(interval, *_memory_reason(region, late, interval))
    return Limit(interval, *carried_reason(region, *late, interval))


def _memory_reason(region: Region, pair: Carried, interval: int) -> tuple[str, Place | None]:
    load, store = pair.load, pair.store
    in_registers = load.access is not None and load.access.array.kind == "register"
    again = compared(region, load, store) if in_registers and store.access else pair.distance
    return memory_reason(region, load, store, pair.distance, interval, again)


def full_limit(region: Region, interval: int, node: Node, asked: int) -> Limit:
    """Return why a schedule needs an interval: what finds no cycle with a port left."""
    key, most = region.ports(node)[0]
    nodes = [one for one in region.nodes if any(key == other for other, _ in region.ports(one))]
    return Limit(interval, port_reason(region, nodes, most, asked), node.place)


def carried(region: Region, distances: Mapping[str, int]) -> list[Carried]:
    """Loads that read what a store of an earlier iteration wrote."""
    region.distances = distances
    nodes_of = {id(node): node for node in region.nodes}
    found = [
        Carried(nodes_of[one], made, 1)
        for one, values in region.handed_on.items()
        for made in values
    ]
    found += [Carried(node, node, 1) for node in region.rewritten]
    own, vitis = "loop " + region.header, region.target.tool == "vitis"
    for nodes in region.accesses.values():
        first = nodes[0].access
        assert first is not None
        told = told_of(distances, first.array)
        if told == 0:
            continue
        stores = [node for node in nodes if node.access is not None and node.access.write]
        loads = [node for node in nodes if node.access is not None and not node.access.write]
        if vitis and first.array.kind == "m_axi" and region.target.release < _COMPARES:
            found += _answered(loads, stores, told or 1)
            continue
        for store in stores[-MOST_PAIRS:]:
            region.effort.add(EACH * len(loads[-MOST_PAIRS:]))
            for load in loads[-MOST_PAIRS:]:
                if id(load) in region.handed_on:
                    continue
                distance = _distance(region, load, store)
                if not distance or _passed(region, load, store, own):
                    continue
                if vitis and not told and len(stores) == 1 and _is_kept(region, load, store):
                    found.append(Carried(load, store, 1, -load.cost.latency))
                    found.append(Carried(load, store, 2))
                else:
                    # A register is passed by, as a variable is.
                    gap = 0 if vitis and first.array.kind == "register" else 1
                    found.append(Carried(load, store, max(distance, told or 0), gap))
    return found


def _distance(region: Region, load: Node, store: Node) -> int:
    """After how many iterations a load may meet what a store wrote; 0 for never."""
    assert load.access is not None and store.access is not None
    tool, kind = region.target.tool, load.access.array.kind
    if meet_in_registers(load.access, store.access, tool):
        return 1
    if tool == "vitis" and kind == "register" and None in load.access.banks:
        # Behind multiplexers addresses are not compared.
        met = may_meet(load.access, store.access)
        return 1 if met else _around(region, load.access, store.access)
    if tool == "vitis" and kind == "memory" and load.access.choices > 1:
        # Of each bank it may be the same word: which bank it is, is not compared.
        changes = changes_bank(load.access, counter(region, load, store))
        if changes and may_meet(load.access, store.access):
            return 1
    return compared(region, load, store)


def compared(region: Region, load: Node, store: Node) -> int:
    """After how many iterations a load may meet a store by their addresses; 0 for never."""
    assert load.access is not None and store.access is not None
    distance = distance_of(load.access, store.access, counter(region, load, store))
    return distance or _around(region, load.access, store.access)


def _answered(loads: Sequence[Node], stores: Sequence[Node], distance: int) -> list[Carried]:
    """Return what of an m_axi port waits for what: a read for the answers to writes before it.

    Elements are not compared there until Vitis HLS 2022: its three published loops that read and
    write one argument (`c[j] *= beta`) have the II of a whole iteration but one cycle; one of 2023
    (`c[i] += a[i] * b[i]`) and one of Vivado HLS have that of their ports and sums.
    """
    return [Carried(loads[0], store, distance) for store in stores[-MOST_PAIRS:] if loads]


def _around(region: Region, load: Access, store: Access) -> int:
    """After how many iterations of a flattened nest an outer loop comes to an element again."""
    ways = (distance_of(load, store, symbol) * turns for symbol, turns in region.outer)
    return min(filter(None, ways), default=0)


def _is_kept(region: Region, load: Node, store: Node) -> bool:
    """Whether Vitis HLS keeps the element that was written last in a register beside a memory.

    It does so (`reuse_reg` in its reports) for an element that is read and written again, and
    which one that is, only data tells: the count of a histogram. Then memory only has to be up to
    date for the iteration after the next; the next one takes the register, whose value has to be
    there when memory's would be.
    """
    assert load.access is not None and store.access is not None
    address = load.access.address
    return (
        load.access.array.kind == "memory"
        and address == store.access.address
        and any(name in region.by_value for term, _ in address.terms for name in names_in(term))
    )


def counter(region: Region, load: Node, store: Node) -> str:
    """The loop whose iterations lie between two accesses: an outer one, where one is outside."""
    blocks = [node.item.block for node in (load, store)]
    loops = [block.loop for block in blocks if block is not None and block.loop is not None]
    outer = min(loops, key=lambda loop: loop.depth, default=None)
    return "loop " + (outer.header if outer is not None else region.header)


def _passed(region: Region, load: Node, store: Node, symbol: str) -> bool:
    """Whether a store that runs in one iteration only comes after the load of its element."""
    assert load.access is not None and store.access is not None
    when = _only(region, store, symbol)
    difference = store.access.address.plus(load.access.address, -1)
    step = load.access.address.factor(symbol)
    if when is None or not step or any(name != symbol for name, _ in difference.terms):
        return False
    return store.access.address.factor(symbol) == 0 and difference.constant / step <= when


def _only(region: Region, store: Node, symbol: str) -> int | None:
    """The one iteration in which a store runs, if its branch compares the loop's counter."""
    block = store.item.block
    if block is None:
        return None
    before = region.function.predecessors[block.name]
    if len(before) != 1:
        return None
    last = region.function.blocks[before[0]].instructions[-1]
    guard = region.function.values.get(last.operands[0]) if last.operands else None
    targets = region.function.blocks[before[0]].successors
    if guard is None or guard.op != "icmp" or len(targets) != 2 or targets[0] != block.name:
        return None
    value = constant_in(guard)
    known = region.function.known.get(guard.operands[0]) if guard.operands else None
    if " eq " not in f" {guard.text} " or value is None or known is None:
        return None
    step = known.expression.factor(symbol)
    if not step or len(known.expression.terms) != 1:
        return None
    return (value - known.expression.constant) // step
