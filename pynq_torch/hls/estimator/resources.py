"""Block RAM of arrays (UG473: 18 Kbit blocks of 1 to 36 bits a word), DSP blocks of operators."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from math import ceil

from .addresses import address_blocks
from .array import LUT_BITS, Array
from .ir import Function, Loop
from .multipliers import unmixed
from .ports import Ports
from .region import Node, Region
from .scev import Expression
from .target import Target
from .turns import blocks_of_turns

__all__ = ["DspBlocks", "block_rams", "blocks_behind_lite", "stacked"]

_SHAPES = ((16384, 1), (8192, 2), (4096, 4), (2048, 9), (1024, 18), (512, 36))
#: The first release that reports one half of what two processes of DATAFLOW use in turn.
_ONE_HALF = 2017.0
#: Of a sine or cosine of double.
_SINE_TABLES = 8


def block_rams(
    arrays: Iterable[Array], ports: Ports, channels: Container[Array], target: Target
) -> int:
    """Return the 18 Kbit blocks that arrays take; small ones are kept in LUTs.

    LUTs have one port to write: Vivado HLS takes a block for what is written twice in a cycle.
    `channels` are the arrays that one process of DATAFLOW hands to another.
    """
    total = 0
    for array in arrays:
        is_fifo = array in channels and array.plan.kind == "fifo"
        total += sum(_inner(*one, array, is_fifo=is_fifo) for one in array.inner)
        words = array.plan.depth or 2 if array.kind == "stream" else array.words
        if array.kind not in ("memory", "stream") or not array.local or not words:
            continue
        if array.constant and not ports.of(array):  # another function reads it
            continue
        core = array.plan.kind + "_" + array.plan.implementation
        if "lutram" in core or ("lut" in core and "bram" not in core) or "srl" in core:
            continue
        if "uram" in core and target.has_ultra_ram:
            continue
        memories, elements = array.banks()
        depth, width = ceil(words / (memories * elements)), elements * array.element_bits
        if array.kind == "stream":
            total += memories * _fifo(depth, width)
            continue
        if is_fifo:  # as deep as STREAM says, or whole
            total += memories * _fifo(array.plan.depth or depth, width)
            continue
        doubled = array in channels and target.tool == "vitis"
        asked = "bram" in core or (target.tool == "vivado" and ports.writes_twice(array))
        is_dual = ports.is_dual(array)
        one = _memory(depth, width, is_dual=is_dual, doubled=doubled, asked=asked)
        both = array in channels and 0 < target.release < _ONE_HALF
        total += memories * one * ports.copies(array) * (2 if both else 1)
    return total


def _inner(depth: int, width: int, array: Array, *, is_fifo: bool) -> int:
    """Return the blocks of an array in a struct that is handed over as a whole."""
    if is_fifo:
        return _fifo(array.plan.depth or depth, width)
    return _memory(depth, width, is_dual=False, doubled=False, asked=False)


def _memory(depth: int, width: int, *, is_dual: bool, doubled: bool, asked: bool) -> int:
    """Return the blocks of one memory.

    Words of more than 18 bits leave a block one port to write and one to read (UG473): where both
    read or both write, it takes narrower ones. The depth is a power of two. The halves that two
    processes of DATAFLOW use in turn are one memory where each takes one port; Vivado HLS reports
    one of the halves since 2017.
    """
    if doubled and not is_dual:
        depth, doubled = 2 * depth, False
    if not asked and depth * width < LUT_BITS:
        return 0
    return stacked(depth, width, is_dual=is_dual) * (2 if doubled else 1)


def stacked(depth: int, width: int, *, is_dual: bool) -> int:
    """Return the blocks side by side and one above the other that hold so many words.

    A word of more than 18 bits takes both ports of a block: `is_dual` says that both are taken.
    """
    shapes = _SHAPES[:-1] if is_dual else _SHAPES
    depth = 1 << (depth - 1).bit_length()
    return min(ceil(depth / rows) * ceil(width / bits) for rows, bits in shapes)


def _fifo(depth: int, width: int) -> int:
    """Return the blocks of a FIFO; those of up to 1,024 bits are shift registers."""
    return stacked(depth, width, is_dual=True) if depth * width > LUT_BITS else 0


def blocks_behind_lite(array: Array, target: Target) -> int:
    """Return the blocks of an array behind s_axilite.

    It is in words of 32 bits; Vivado HLS gives both sides a port to write, and takes blocks for
    all that is more than a word.
    """
    memories, elements = array.banks()
    bits = max(1 << (elements * array.element_bits - 1).bit_length(), 8)
    words = ceil(ceil(array.words / (memories * elements)) * bits / 32)
    is_small = 32 * words < LUT_BITS if target.tool == "vitis" else array.words <= memories
    return 0 if is_small else memories * stacked(words, 32, is_dual=target.tool == "vivado")


#: DSP blocks of an integer multiplier from which it is used for several products.
_LEAST_SHARED = 2
#: Operators that a function shares with those it calls; "mul" in Vitis HLS alone.
_HANDED_UP = frozenset(("fadd", "dadd", "hadd", "fmul", "dmul", "hmul", "mul"))


class DspBlocks:
    """The DSP blocks of one function's operators; ``ALLOCATION`` limits those of a core."""

    def __init__(self, function: Function, tool: str, limits: Mapping[str, int]) -> None:
        self._function, self._tool, self._limits = function, tool, limits
        self._shared: Counter[str] = Counter()
        self._multipliers: list[int] = []
        self._bounds: list[list[Expression | None]] = []
        #: By the header of its loop, what a region needs of the operators that others may use too.
        self._needed: dict[str, Counter[str]] = {}
        #: Cores that do another operation too, as that of `fadd` does `fsub`, which has no limit.
        self._mixed: set[str] = set()
        #: Of operators that nothing else uses, and of the functions that are called.
        self.own = 0

    @property
    def total(self) -> int:
        """The blocks of all regions counted; regions take turns with what they share."""
        return self.own + _dsps(self._shared) + sum(self._multipliers)

    @property
    def handed_up(self) -> Counter[str]:
        """How many operators of each core a caller may use while this function does not run."""
        return Counter({c: n for c, n in self._shared.items() if c.split()[0] in _HANDED_UP})

    @property
    def block_rams(self) -> int:
        """The 18 Kbit blocks in these operators: tables that reduce the argument of a sine."""
        return sum(_SINE_TABLES * n for core, n in self._shared.items() if "dsin" in core)

    def instance(self, blocks: int, handed_up: Counter[str]) -> None:
        """Count a function that is called, less what it shares with its caller."""
        self.own += blocks - _dsps(handed_up)

    def take_turns(self, used: Counter[str]) -> None:
        """Count operators that are used while no other region and no other call runs."""
        self._shared |= used

    def count_together(self, headers: Iterable[str]) -> None:
        """Count what pipelines need that run at one time; ALLOCATION is for all of them."""
        needed = sum((self._needed.get(one, Counter()) for one in headers), Counter[str]())
        self.take_turns(self._allowed(needed))

    def _allowed(self, needed: Counter[str]) -> Counter[str]:
        """Return what is left of needed operators where ALLOCATION limits their cores."""
        limits = {core: self._limits.get(core.split()[0]) for core in {*needed} - self._mixed}
        return Counter({core: min(n, limits.get(core) or n) for core, n in needed.items()})

    def count(self, region: Region, interval: int | None, asked: int = 1) -> None:
        """Count the operators that a region needs.

        An integer multiplier does several products of a pipeline where its directive asks for an
        interval above 1. Where ports or a recurrence make it longer, `unmixed` says of which.
        """
        self.own += address_blocks(region)
        products: dict[tuple[int, bool], list[Node]] = defaultdict(list)
        hosted = _hosted(region, every=asked > 1)
        used: dict[str, list[Node]] = defaultdict(list)
        for node in region.nodes:
            cost = node.cost
            if cost.core == "mul" and (self._tool == "vivado" or cost.dsp < _LEAST_SHARED):
                size = cost.dsp or int(id(node) in hosted)
                products[size, bool(cost.dsp)].append(node)
            elif cost.dsp:
                used[node.unit].append(node)
        turns = interval if asked > 1 else None
        sizes = [
            size
            for (size, _), nodes in products.items()
            for _ in range(_products(region, nodes, turns, interval))
        ]
        allowed = self._limits.get("mul")
        if allowed:  # all regions use the same ones
            self._multipliers = sorted([*self._multipliers, *sizes])[-allowed:]
        else:
            self.own += sum(sizes)
        needed: Counter[str] = Counter()
        for core, nodes in used.items():
            if {node.item.op for node in nodes} == {"fadd", "fsub"}:
                self._mixed.add(core)
            known = region.shared.get(core) if interval else None
            if interval and not turns and core.startswith("mul"):
                needed[core] = unmixed(region, nodes, interval)
            else:
                needed[core] = known or _units(region, nodes, interval)
        needed = self._allowed(needed)
        self._needed[region.header] = needed
        self.take_turns(needed)

    def count_turns(self, loops: Sequence[Loop], target: Target) -> None:
        """Count the products that say how many turns a flattened nest takes: once for each nest."""
        bounds = [loop.taken for loop in loops]
        if len(loops) > 1 and bounds not in self._bounds:
            self._bounds.append(bounds)
            self.own += sum(blocks_of_turns(loops, target))


def _hosted(region: Region, *, every: bool) -> set[int]:
    """Return the small products (by id) that a sum takes into its DSP block: one, or `every` one.

    Of the two of a pair the other one is in logic: 63 products of 8 bits take 32 blocks, nine five.
    Where an interval above 1 is asked for all are in blocks, which they share (a network's 512 at
    II=2 take 256).
    """
    found: set[int] = set()
    for node in region.nodes:
        if node.item.op not in ("add", "sub"):
            continue
        for other, _ in node.before:
            between = other.through_wires()
            once = all(region.function.uses[one.item.name] == 1 for one in between)
            if once and between[-1].cost.mac and id(between[-1]) not in found:
                found.add(id(between[-1]))
                if not every:
                    break
    return found


def _dsps(operators: Counter[str]) -> int:
    """The DSP blocks of operators, whose names end in how many each has."""
    return sum(n * int(core.split()[-1]) for core, n in operators.items())


def _products(
    region: Region, nodes: Sequence[Node], turns: int | None, interval: int | None
) -> int:
    """Return how many multipliers some products need; with `turns` they share them."""
    if not turns:
        large = nodes[0].cost.dsp >= _LEAST_SHARED
        return unmixed(region, nodes, interval) if large else len(nodes)
    if not nodes[0].cost.dsp:  # of a sum, spread over the interval
        return ceil(len(nodes) / turns)
    return _units(region, nodes, turns)


def _units(region: Region, nodes: Sequence[Node], interval: int | None) -> int:
    """Return how many units the operations of a core need; those of two branches share one.

    Those of a pipeline are spread over its interval.
    """
    if interval:
        return ceil(region.together(list(nodes)) / interval)
    found = _most(region, nodes, [node.start[0] for node in nodes])
    cut = any(node.access is not None and node.access.array.cuts() for node in region.nodes)
    apart = region.branches and len({node.item.block for node in nodes}) > 1
    if apart or cut or found == 1 or region.target.tool == "vitis":
        return found
    block = nodes[0].item.block if region.branches else None
    late = _latest([one for one in region.nodes if block in (None, one.item.block)])
    return min(found, _most(region, nodes, [late[id(node)] for node in nodes]))


def _most(region: Region, nodes: Sequence[Node], begins: Iterable[int]) -> int:
    """Return how many operations begin in the same cycle at most."""
    cycles: dict[int, list[Node]] = defaultdict(list)
    for node, cycle in zip(nodes, begins, strict=True):
        cycles[cycle].append(node)
    return max(map(region.together, cycles.values()))


def _latest(nodes: Sequence[Node]) -> dict[int, int]:
    """Return in which cycle each operation of a region, or of one branch, may begin at the latest.

    Outside of pipelines Vivado HLS reads a memory through one port where nothing waits for more, so
    that fewer operators do the rest. Arrays that are cut give several elements at once.
    """
    depth = max(node.end[0] for node in nodes)
    slack: dict[int, int] = {}
    for node in reversed(nodes):
        own = slack.setdefault(id(node), depth - node.end[0])
        for other, gap in node.before:
            wait = node.start[0] - other.end[0] - max(gap, 0)
            slack[id(other)] = min(slack.get(id(other), depth), own + max(wait, 0))
    return {id(node): node.start[0] + slack[id(node)] for node in nodes}
