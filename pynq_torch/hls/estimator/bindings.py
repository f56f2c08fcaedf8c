"""How BIND_OP, or a core of RESOURCE, builds the operations whose result a variable takes.

The words are those of UG1399, "pragma HLS bind_op", and of UG902 for the cores of Vivado HLS.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..lint_bindings import assigned
from ..lint_tree import walk
from .cost import Cost
from .ir import Instruction
from .place import real_path
from .target import Target

if TYPE_CHECKING:
    from clang.cindex import Cursor

__all__ = ["Binding", "Bindings", "binding_of", "bound", "core_binding", "lines_of", "op_binding"]

_SUMS = frozenset(("add", "sub"))
#: Word of BIND_OP's `op` -> LLVM's names; a difference with a constant is LLVM's "add".
_OPERATIONS = {
    "mul": frozenset(("mul",)), "add": _SUMS, "sub": _SUMS,
    "fadd": frozenset(("fadd", "fsub")), "fsub": frozenset(("fadd", "fsub")),
    "fmul": frozenset(("fmul",)), "fdiv": frozenset(("fdiv",)),
}  # fmt: skip
_OPERATIONS |= {
    kind + name[1:]: _OPERATIONS[name] for name in ("fadd", "fsub", "fmul", "fdiv") for kind in "dh"
}
#: DSP blocks of a float product or sum, where `impl` says so (PG060).
_BLOCKS = {
    ("fmul", "meddsp"): 1, ("fmul", "fulldsp"): 2, ("fmul", "maxdsp"): 3,
    ("fadd", "fulldsp"): 2, ("fsub", "fulldsp"): 2,
}  # fmt: skip
_LOGIC = frozenset(("fabric", "lut", "nodsp"))
_CORE = re.compile(r"^(?P<kind>[fd]?)(?P<op>addsub|mul|div)(?P<stages>\d?|n)s?(?:_(?P<impl>\w+))?$")


@dataclass(frozen=True)
class Binding:
    """The operations meant (LLVM's names), how they are built, and their stages if it says."""

    operations: frozenset[str]
    implementation: str
    latency: int | None


def op_binding(operation: str, implementation: str, latency: int | None) -> Binding | None:
    """Return what the words of a BIND_OP ask for; None where the estimate does not know them."""
    operations = _OPERATIONS.get(operation)
    if operations is None:
        return None
    return Binding(operations, implementation, latency if latency != -1 else None)


def core_binding(core: str, latency: int | None) -> Binding | None:
    """Return what a core of RESOURCE asks for; None for memories and cores that are not known."""
    if core == "dsp48":
        return Binding(_SUMS | {"mul"}, "dsp", latency)
    match = _CORE.match(core)
    if match is None:
        return None
    operation = match["kind"] + {"addsub": "add"}.get(match["op"], match["op"])
    implementation = match["impl"] or ("fabric" if match["op"] == "addsub" else "")
    if latency is None and match["stages"].isdigit():
        latency = int(match["stages"]) - 1
    return op_binding(operation, implementation, latency)


#: By file and line, the bindings of what is computed there.
Bindings = dict[tuple[str, int], list[Binding]]


def binding_of(item: Instruction, bindings: Bindings) -> Binding | None:
    """Return what binds an operation: of several directives the last one counts."""
    found = [one for at in item.chain for one in bindings.get((at.path, at.line), ())]
    return next((one for one in reversed(found) if item.op in one.operations), None)


def bound(cost: Cost, item: Instruction, bindings: Bindings, target: Target) -> Cost:
    """Return the cost of an operation that directives bind."""
    if (binding := binding_of(item, bindings)) is None:
        return cost
    if binding.implementation in _LOGIC:
        cost = replace(cost, dsp=0, mac=False)
    elif binding.implementation == "dsp":
        cost = replace(cost, dsp=max(cost.dsp, 1), core=cost.core if cost.core != "add" else "sum")
    elif "double" not in item.text:
        blocks = _BLOCKS.get((item.op, binding.implementation), cost.dsp)
        cost = replace(cost, dsp=blocks)
    if binding.latency is not None and cost.core:
        part = 0.6 * target.budget
        ends = (part, part) if binding.latency else (cost.delay, 0.0)
        cost = replace(cost, latency=binding.latency, delay=ends[0], entry=ends[1])
    return cost


def lines_of(function: Cursor, variables: Container[str]) -> Iterator[tuple[str, str, int]]:
    """Yield variable, file and line of each expression that gives one of `variables` a value."""
    for node in walk(function):
        name = assigned(node)
        if name in variables:
            for line in range(node.extent.start.line, node.extent.end.line + 1):
                yield name, real_path(node.location.file.name), line
