"""Block RAM in the adapters of m_axi, which hold a burst, and behind s_axilite."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .array import Array
from .buffers import Buffers
from .calls import given
from .ir import Instruction, Module
from .memory import Arrays
from .resources import blocks_behind_lite, stacked
from .target import Target

__all__ = ["Directions", "of_adapters"]

#: Bits of the narrowest bus.
_NARROWEST = 32
#: The first release of Vivado HLS that reports block RAM of adapters, and those of Vitis HLS that
#: report none.
_FIRST_WITH_MEMORY, _REPORTS_NONE = 2016.0, 2022
#: The first release whose words of more than 18 bits are in several blocks, the one that leaves out
#: what a kernel does not do, and the one whose reads are never narrower than the bus.
_HALVES, _BY_USE, _WIDE_READS = 2021.0, 2024.0, 2024.2
#: Since when one burst of what is written is kept, and how many words of it need no block.
_ONE_BURST, _SHIFTED = 2025.0, 32


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

    buffers: Buffers
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
            bus = buses.setdefault(array.bundle, _Bus(array.buffers))
            bus.bits = max(bus.bits, array.element_bits)
        elif array.shared and array.kind == "memory" and not array.local:
            total += blocks_behind_lite(array, target)
    reads, writes = ({arrays.array(base).bundle for base in bases} for bases in uses)
    for name, bus in buses.items():
        bus.reads, bus.writes = name in reads, name in writes
    return total + sum(_blocks(bus, target) for bus in buses.values())


def _blocks(bus: _Bus, target: Target) -> int:
    """Return the blocks of one adapter: a memory for what is read, and one for what is written.

    Each holds all bursts that may be under way. What it is made of differs from release to release,
    as the adapters of 130 reports say. A word of more than 18 bits takes both ports of a block
    until 2020, and in Virtex UltraScale+, Alveo and Versal. Since 2024 there is only what the
    kernel does with the bus; since 2024.2 a read has the width of the bus. Where the release is
    not known a bus counts as half of the oldest in a 7-series part.
    """
    release = target.release
    if target.tool == "vivado":
        if 0 < release < _FIRST_WITH_MEMORY:
            return 0
    elif int(release) == _REPORTS_NONE:
        return 0
    is_new = target.tool == "vitis" and release >= _HALVES
    is_dual = is_new and (not target.has_ultra_ram or target.is_small)
    asked, by_use = bus.buffers, target.tool == "vitis" and release >= _BY_USE
    wide = max(bus.bits, _NARROWEST) if by_use and release >= _WIDE_READS else bus.bits
    total = 0
    if bus.reads or not by_use:
        total += stacked(asked.read_burst * asked.reads, wide, is_dual=is_dual)
    if by_use and release >= _ONE_BURST:
        is_kept = bus.writes and asked.write_burst > _SHIFTED
        return total + is_kept * stacked(asked.write_burst, bus.bits, is_dual=is_dual)
    if bus.writes or not by_use:
        total += stacked(asked.write_burst * asked.writes, bus.bits, is_dual=is_dual)
    is_half = target.tool == "vitis" and not release and not target.has_ultra_ram
    return total // 2 if is_half else total
