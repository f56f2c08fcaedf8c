"""Block RAM in the adapters of m_axi, which hold a burst, and behind s_axilite."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from .array import Array
from .calls import given
from .ir import Instruction, Module
from .memory import Arrays
from .resources import blocks_behind_lite
from .target import Target

__all__ = ["Directions", "of_adapters"]

#: Bits of the narrowest bus.
_NARROWEST = 32


class Directions:
    """Which of its arguments and variables each function reads, and which it writes."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._found: dict[str, tuple[set[str], set[str]]] = {}

    def of(self, name: str) -> tuple[set[str], set[str]]:
        """Return what a function reads and writes, itself or in those that it calls."""
        if name not in self._found:
            reads: set[str] = set()
            writes: set[str] = set()
            self._found[name] = reads, writes
            function = self._module.functions[name]
            arrays = Arrays(self._module, function, None, [], {})
            for block in function.blocks.values():
                for item in block.instructions:
                    read, written = self._of_item(item)
                    reads |= {arrays.base_of(one) for one in read}
                    writes |= {arrays.base_of(one) for one in written}
        return self._found[name]

    def _of_item(self, item: Instruction) -> tuple[list[str], list[str]]:
        """Return the pointers that an instruction reads at, and those that it writes at."""
        if item.op in ("load", "store"):
            last = item.operands[-1:]
            return (last, []) if item.op == "load" else ([], last)
        if item.op != "call" or not item.operands:
            return [], []
        if item.callee.startswith(("llvm.memcpy", "llvm.memmove")):
            return item.operands[1:2], item.operands[:1]
        callee = self._module.functions.get(item.callee)
        if callee is None:
            return [], item.operands[:1] if item.callee.startswith("llvm.memset") else []
        reads, writes = self.of(item.callee)
        values = given(item, callee)
        read = [values[one] for one in reads & values.keys()]
        return read, [values[one] for one in writes & values.keys()]


@dataclass
class _Bus:
    """The port of a bundle: the bits of its widest element, and what it is used for."""

    bits: int = 0
    reads: bool = False
    writes: bool = False


def of_adapters(
    arrays: Arrays, uses: tuple[set[str], set[str]], met: Iterable[Array], target: Target
) -> int:
    """Return the blocks in the adapters of m_axi, and those of arrays behind s_axilite.

    `uses` is what the function reads and what it writes, `met` are its arrays.
    """
    buses: dict[str, _Bus] = {}
    total = 0
    for array in met:
        if array.kind == "m_axi":
            bus = buses.setdefault(array.bundle, _Bus())
            bus.bits = max(bus.bits, array.element_bits)
        elif array.shared and array.kind == "memory" and not array.local:
            total += blocks_behind_lite(array, target)
    reads, writes = ({arrays.array(base).bundle for base in bases} for bases in uses)
    for name, bus in buses.items():
        bus.reads, bus.writes = name in reads, name in writes
    return total + sum(_blocks(bus, target) for bus in buses.values())


def _blocks(bus: _Bus, target: Target) -> int:
    """Return the blocks of one adapter: a memory for what is read, and one for what is written.

    What they are made of differs from release to release, as the reports say: 36 bits a block in
    Vivado HLS and Vitis HLS to 2021.1, and 18 for a 7-series part in 2021.2; none in 2022; 18 bits
    from 2023 on, and from 2024 on only for what the kernel does with the bus. Where the release is
    not known it counts as half of the oldest in a 7-series part.
    """
    release, ultra = target.release, target.has_ultra_ram
    narrow, wide = ceil(bus.bits / 18), ceil(max(bus.bits, _NARROWEST) / 18)
    if target.tool == "vitis" and release >= 2024:
        return bus.reads * wide + bus.writes * narrow
    if target.tool == "vitis" and release >= 2022:
        return 2 * wide if release >= 2023 else 0
    if target.tool == "vitis" and release > 2021.1 and not ultra:
        return 2 * narrow
    half = target.tool == "vitis" and not release and not ultra
    return (1 if half else 2) * max(ceil(bus.bits / 36), 1)
