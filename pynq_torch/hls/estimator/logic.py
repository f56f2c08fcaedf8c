"""LUTs and flip-flops: how much a schedule needs of each kind, times what one of it takes.

The factors are fitted to the published reports of docs/estimate.md, which has the errors: this
tells 1,000 LUTs from 2,000, and not from 1,200.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from .array import Array
from .asked import FunctionPlan
from .ir import Function, bits_of
from .operators import constant_in, width_of
from .region import Node, Region

__all__ = ["Logic", "join", "of_arrays", "of_region", "totals"]

#: How much there is of each kind: bits of sums, floating-point cores, buses, ...
Logic = Counter[str]
#: Of the kinds, LUTs and flip-flops of one. A bit of a sum is the unit of "bits"; that of an array
#: in registers is a flip-flop, whatever a fit would say. Of a product without DSP blocks and of a
#: divider it is the square of the bits of its larger number (929 products and 285 dividers that
#: reports list), of a divider outside of pipelines the bits themselves.
_LUTS = {
    "bits": 1.09, "multiplexer": 0.29, "dsp": 4.0, "access": 5.2, "burst": 41.0, "word": 15.4,
    "float": 545.0, "loop": 99.0, "function": 5.0, "lite": 85.0, "bus": 765.0,
    "product": 1.05, "divider": 1.7, "slow divider": 7.3,
}  # fmt: skip
_FLIP_FLOPS = {
    "held": 0.4, "register": 1.0, "dsp": 19.5, "burst": 22.0,
    "float": 328.0, "loop": 65.0, "lite": 53.0, "bus": 837.0,
    "divider": 2.2, "slow divider": 12.2,
}  # fmt: skip
#: Bits of a sum that a bit of an operation is worth.
_BITS = {
    "add": 1.0, "sub": 1.0, "icmp": 0.6, "select": 0.6, "phi": 0.6, "and": 0.5, "or": 0.5,
    "xor": 0.5,
}  # fmt: skip
#: Likewise of LLVM's functions: a comparison and a choice, a difference and a choice.
_OF_CALLS = {"max": 1.2, "min": 1.2, "abs": 1.6}
#: Single sums that a floating-point core is worth; half is half of it (113 LUTs in each report).
#: Double is taken as twice: too few reports.
_CORES = {"add": 1.0, "mul": 0.5, "div": 2.0, "exp": 2.5, "log": 2.5, "sqrt": 1.3}
_OTHER_CORE = 0.4
_SIZES = {"h": 0.5, "f": 1.0, "d": 2.0}
#: Bits that a product of two floating-point numbers multiplies.
_MANTISSA = {"h": 11, "f": 24, "d": 53}
_FREE = frozenset(("zext", "sext", "trunc", "bitcast", "getelementptr", "ptrtoint", "alloca"))


def totals(logic: Logic | None, loops: int, top: FunctionPlan) -> dict[str, int | None]:
    """Return the LUTs and flip-flops of all that was counted, and of the top's registers."""
    if logic is None:
        return {"LUT": None, "FF": None}
    lite = sum(port.get("mode") == "s_axilite" for port in top.ports.values())
    counts: dict[str, float] = {**logic, "loop": loops, "lite": lite, "bus": 0, "float": 0.0}
    counts.setdefault("register", 0)
    for name, count in logic.items():
        if name.startswith("bus "):
            counts["bus"] += 1
        elif name.startswith("static "):
            counts["register"] += count
        elif name.startswith("core "):
            _, kind, core = name.split()
            counts["float"] += count * _CORES.get(core, _OTHER_CORE) * _SIZES[kind]
    return {
        "LUT": round(sum(counts.get(name, 0) * each for name, each in _LUTS.items())),
        "FF": round(sum(counts.get(name, 0) * each for name, each in _FLIP_FLOPS.items())),
    }


def join(whole: Logic, part: Logic) -> None:
    """Add a part; what all have is counted once: cores, the ports of a bus, static variables."""
    for name, count in part.items():
        shared = name.startswith(("core ", "bus ", "static "))
        whole[name] = max(whole[name], count) if shared else whole[name] + count


def of_region(region: Region, interval: int | None) -> Logic:
    """Return what the operations of a region, which is scheduled, are made of."""
    found: Logic = Counter()
    cores: Counter[str] = Counter()
    for node in region.nodes:
        _operation(node, region.function, found, cores, pipelined=interval is not None)
    for core, count in cores.items():
        found[core] = -(-count // (interval or 1))
    found["held"] = _held(region)
    return found


def _operation(
    node: Node, function: Function, found: Logic, cores: Counter[str], *, pipelined: bool
) -> None:
    item, cost = node.item, node.cost
    if node.stream:
        found["word"] += 1
    elif node.access is not None:
        array = node.access.array
        if array.kind == "m_axi":
            found["burst"] += 1
        elif array.kind == "register" and node.access.choices > 1:
            found["multiplexer"] += array.element_bits * node.access.choices
        else:
            found["access"] += 1
    elif cost.core[:1] in _SIZES and cost.core != "div":
        cores[f"core {cost.core[0]} {cost.core[1:]}"] += 1
        if cost.core[1:] == "mul" and not cost.dsp:
            found["product"] += _MANTISSA[cost.core[0]] ** 2
    elif cost.dsp:
        found["dsp"] += cost.dsp
    elif cost.core == "div":
        bits = _larger(node)
        kind, size = ("divider", bits * bits) if pipelined else ("slow divider", bits)
        found[kind] += size
    elif cost.core == "mul" and not cost.mac:  # else a DSP block takes it with its sum
        found["product"] += _larger(node) ** 2
    elif item.op == "phi" or cost.delay or node.joined:
        _bits(node, function, found)


def _larger(node: Node) -> int:
    """Return the bits of the larger number that a product or a divider takes."""
    return int(node.cost.widths.partition("x")[2] or node.item.bits)


def _bits(node: Node, function: Function, found: Logic) -> None:
    item = node.item
    if item.op == "icmp":
        bits = max([width_of(o, function, item.type) for o in item.operands] or [0])
        bits = bits or bits_of(item.type)
    else:
        bits = width_of(item.name, function, item.type) if item.name else item.bits
    if item.op == "phi":
        bits *= max(len(item.incoming) - 1, 0)
    if item.op in ("and", "or", "xor") and constant_in(item) is not None:
        return
    worth = _BITS.get(item.op, 0.0)
    if item.op == "call" and item.callee.startswith("llvm."):
        worth = _OF_CALLS.get(item.callee.split(".")[1][-3:], 0.0)
    found["bits"] += round(bits * worth)


def _held(region: Region) -> int:
    """Return the bits of values that an operation in a later cycle, or iteration, still needs."""
    last: dict[int, int] = defaultdict(int)
    for node in region.nodes:
        for other, _ in node.before:
            last[id(other)] = max(last[id(other)], node.start[0])
    return sum(
        width_of(node.item.name, region.function, node.item.type)
        for node in region.nodes
        if node.item.name
        and node.item.op not in _FREE
        and (node.item.op == "phi" or last[id(node)] > node.end[0])
    )


def of_arrays(arrays: Mapping[str, Array]) -> Logic:
    """Return what the buses and registers among some arrays take.

    A table of constants has no register, and the compiler's own temporaries are values.
    """
    found: Logic = Counter()
    for base, array in arrays.items():
        if array.kind == "m_axi":
            found["bus " + array.bundle] = 1
        elif array.kind != "register" or not array.local or array.constant:
            continue
        elif array.static:  # it is there once for all functions
            found["static " + base] = array.words * array.element_bits
        elif array.is_registers or array.is_tiny:
            found["register"] += array.words * array.element_bits
    return found
