"""Block RAM of arrays (UG473: 18 Kbit blocks of 1 to 36 bits a word), DSP blocks of operators."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import ceil

from .array import Array
from .ir import Function, Instruction
from .operators import Target
from .region import Region

__all__ = ["DspBlocks", "block_rams"]

_SHAPES = ((16384, 1), (8192, 2), (4096, 4), (2048, 9), (1024, 18), (512, 36))
_LUT_BITS = 1024
#: Of a sine or cosine of double.
_SINE_TABLES = 8


def block_rams(arrays: Sequence[Array], dataflow: bool, target: Target) -> int:
    """Return the 18 Kbit blocks that arrays take; small ones are kept in LUTs."""
    # The adapter of a bus has two in Vivado HLS and Vitis HLS 2021; in a 7-series part 2022 reports
    # none, 2024 one, 2023 four. Which release is meant is not known.
    of_a_bus = 1 if target.tool == "vitis" and not target.has_ultra_ram else 2
    total = 0
    bundles: dict[str, int] = {}
    for array in arrays:
        if array.kind == "m_axi":
            bundles[array.bundle] = max(bundles.get(array.bundle, 0), array.element_bits)
        if array.kind not in ("memory", "stream") or not array.local:
            continue
        core = array.plan.kind + "_" + array.plan.implementation
        if "lutram" in core or ("lut" in core and "bram" not in core) or "srl" in core:
            continue
        if "uram" in core and target.has_ultra_ram:
            continue
        words = array.plan.depth or 2 if array.kind == "stream" else array.words
        memories, elements = _banks(array)
        depth, width = ceil(words / (memories * elements)), elements * array.element_bits
        if not words or (depth * width < _LUT_BITS and "bram" not in core):
            continue
        shapes = _SHAPES[:-1] if array.static and not array.constant else _SHAPES
        one = min(ceil(depth / rows) * ceil(width / bits) for rows, bits in shapes)
        total += memories * one * array.copies * (2 if dataflow and array.kind == "memory" else 1)
    for bits in bundles.values():
        total += of_a_bus * max(ceil(bits / 32), 1)
    return total


def _banks(array: Array) -> tuple[int, int]:
    """Return into how many memories an array is cut, and the elements of a word."""
    sizes, memories, elements = array.dimensions, 1, 1
    for dimension, (kind, factor) in array.cuts().items():
        size = sizes[dimension] if dimension < len(sizes) else 1
        parts = max(size if kind == "complete" else factor, 1)
        if {0, dimension + 1} & array.plan.reshaped:
            elements *= parts
        else:
            memories *= parts
    return memories, elements


class DspBlocks:
    """The DSP blocks of one function's operators; ``ALLOCATION`` limits those of a core."""

    def __init__(self, function: Function, tool: str, limits: Mapping[str, int]) -> None:
        self._function, self._tool, self._limits = function, tool, limits
        self._shared: Counter[str] = Counter()
        self._sizes: dict[str, int] = {}
        self._multipliers: list[int] = []
        #: Of operators that nothing else uses, and of the functions that are called.
        self.own = 0

    @property
    def total(self) -> int:
        """The blocks of all regions counted; regions take turns with what they share."""
        shared = sum(n * self._sizes[core] for core, n in self._shared.items())
        return self.own + shared + sum(self._multipliers)

    @property
    def block_rams(self) -> int:
        """The 18 Kbit blocks in these operators: tables that reduce the argument of a sine."""
        return sum(_SINE_TABLES * n for core, n in self._shared.items() if "dsin" in core)

    def count(self, region: Region, interval: int | None) -> None:
        """Count the operators that a region needs: those of a pipeline start once an interval."""
        used: Counter[str] = Counter()
        starts: Counter[tuple[str, int]] = Counter()
        products: list[int] = []
        # Outside of a pipeline Vitis uses a large multiplier several times.
        own = 2 if self._tool == "vitis" and not interval else 1_000
        for node in region.nodes:
            cost = node.cost
            if cost.core == "mul" and cost.dsp < own:
                products.append(cost.dsp or int(cost.mac and self._is_added(node.item)))
            elif cost.dsp:
                core = f"{cost.core} {cost.dsp}"
                self._sizes[core] = cost.dsp
                starts[core, node.start[0]] += 1
                used[core] += 1
        allowed = self._limits.get("mul")
        if allowed:  # all regions use the same ones
            self._multipliers = sorted([*self._multipliers, *products])[-allowed:]
        else:
            self.own += ceil(sum(products) / (interval or 1))
        reads = Counter(
            (node.access.array, node.access.banks, node.start[0] % interval)
            for node in region.nodes
            if interval and node.access is not None and node.access.array.constant
        )
        for (array, _, _), most in reads.items():
            array.copies = max(array.copies, ceil(most / 2))
        for core, count in used.items():
            if interval:
                needed = ceil(count / interval)
            else:
                needed = max(n for (name, _), n in starts.items() if name == core)
            limit = self._limits.get(core.split()[0])
            needed = min(needed, limit) if limit else needed
            self._shared[core] = max(self._shared[core], needed)

    def _is_added(self, item: Instruction) -> bool:
        """Whether a product goes into one sum only, which is then in its DSP block."""
        users = self._users.get(item.name, [])
        while len(users) == 1 and users[0].op in ("sext", "zext", "trunc"):
            users = self._users.get(users[0].name, [])
        return len(users) == 1 and users[0].op in ("add", "sub")

    @functools.cached_property
    def _users(self) -> dict[str, list[Instruction]]:
        """The instructions that take each value."""
        found: dict[str, list[Instruction]] = defaultdict(list)
        for block in self._function.blocks.values():
            for item in block.instructions:
                for name in item.operands:
                    found[name].append(item)
        return found
