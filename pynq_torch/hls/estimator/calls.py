"""Calls: what each argument is given, and which of them run side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .ir import Function, Instruction, Loop, names_in, split_types
from .marks import within

if TYPE_CHECKING:
    from .array import Array
    from .latency import Body, Kernel
    from .memory import Arrays

__all__ = ["Batch", "accessed", "calls_of", "given", "handed_on", "used", "used_by"]

#: Calls that write what their first argument points to.
_FIRST_IS_WRITTEN = ("__hls_stream", "llvm.mem")


def given(item: Instruction, callee: Function) -> dict[str, str]:
    """Return the value of each argument of a call that is given a name, not a number."""
    text = item.text[item.text.index("(", item.text.index(item.callee)) :]
    values = split_types(within(text))
    names = list(callee.arguments)
    found = {}
    for argument, value in zip(names, values, strict=False):
        if used := names_in(value):
            found[argument] = used[0]
    return found


@dataclass
class Batch:
    """Calls that run side by side: the arrays they use, and what depends on their results."""

    reads: set[str]
    writes: set[str]
    results: set[str]
    #: How often each function is called, which needs as many instances of it.
    calls: Counter[str] = field(default_factory=Counter)
    #: Of the functions called, the operators that others may use at other times.
    operators: Counter[str] = field(default_factory=Counter)

    def takes(self, body: Body, item: Instruction, reads: set[str], writes: set[str]) -> bool:
        """Whether a call meets none of these in an array and waits for no result; it joins then.

        What it writes into registers are values of its own.
        """
        again, instances = writes & (self.reads | self.writes), body.allowed(item.callee)
        meets = any(not _is_renamed(body.arrays, one) for one in again) or reads & self.writes
        if meets or self.results & set(item.operands):
            return False
        if self.calls[item.callee] and any(_is_shared(body, one) for one in reads & self.reads):
            return False
        if instances and self.calls[item.callee] >= instances:
            return False
        self.reads |= reads
        self.writes |= writes
        return True

    def follow(self, item: Instruction, arrays: Arrays) -> None:
        """Take what is made of a result for a result: of a value, or of what a call has written."""
        base = ""
        if item.op in ("load", "store") and item.operands:
            base = arrays.base_of(item.operands[-1])
        if self.results & set(item.operands) or (item.op == "load" and base in self.writes):
            self.results.add(item.name)
            if item.op == "store":
                self.writes.add(base)


def _is_shared(body: Body, base: str) -> bool:
    """Whether calls of one function take turns at what they read: a memory, in Vivado HLS."""
    return body.target.tool == "vivado" and body.arrays.array(base).kind == "memory"


def _is_renamed(arrays: Arrays, base: str) -> bool:
    """Whether an array is registers of the function's own, each write of which is a new value."""
    if base.startswith("@"):
        return False
    array = arrays.array(base)
    return array.local and array.kind in ("register", "scalar")


def calls_of(function: Function, callee: str) -> int:
    """Return at how many places a function calls another."""
    items = (item for block in function.blocks.values() for item in block.instructions)
    return sum(item.op == "call" and item.callee == callee for item in items)


def handed_on(body: Body) -> Iterator[Array]:
    """Yield the arrays that a function hands to one that is called at several places.

    That is one piece of hardware for all its calls, with the same ports to each of their arrays.
    """
    kernel, blocks = body.kernel, body.function.blocks.values()
    items = (item for block in blocks for item in block.instructions if item.op == "call")
    for item in items:
        callee = kernel.module.functions.get(item.callee)
        if callee is not None and kernel.calls[item.callee] > 1:
            taken = set().union(*kernel.uses(item.callee))
            bases = (
                body.arrays.base_of(v) for name, v in given(item, callee).items() if name in taken
            )
            yield from map(body.arrays.array, bases)


def used(kernel: Kernel, arrays: Arrays, function: Function) -> tuple[set[str], set[str]]:
    """Return what a function reads and what it writes: arguments and variables."""
    reads: set[str] = set()
    writes: set[str] = set()
    for item in (item for block in function.blocks.values() for item in block.instructions):
        if item.op in ("load", "store") and item.operands:
            (reads if item.op == "load" else writes).add(arrays.base_of(item.operands[-1]))
        elif item.op == "call" and item.callee in kernel.module.functions:
            below = kernel.uses(item.callee)
            values = given(item, kernel.module.functions[item.callee])
            for found, names in zip((reads, writes), below, strict=True):
                found |= {one for one in names if one.startswith("@")}
                found |= {arrays.base_of(at) for name, at in values.items() if name in names}
        elif item.op == "call":
            copies = item.callee.startswith("llvm.mem")
            writes |= {arrays.base_of(one) for one in item.operands[: 1 if copies else None]}
            reads |= {arrays.base_of(one) for one in item.operands[1:] if copies}
    return reads, writes


def used_by(body: Body, what: Instruction | Loop) -> tuple[set[str], set[str]]:
    """The arrays that a process reads, and those that it writes."""
    if isinstance(what, Instruction):
        return body.used(what)
    reads, writes = accessed(body, body.items(what))
    return reads, writes | accessed(body, _kept_by(body, what))[1]


def _kept_by(body: Body, loop: Loop) -> list[Instruction]:
    """Return the stores of elements that were in registers while a loop ran."""
    names, stores = {item.name for item in body.items(loop)}, []
    blocks = (block for block in body.blocks(None) if block.loop is None)
    for item in (item for block in blocks for item in block.instructions):
        if item.op == "phi" and names & {*item.operands}:
            names.add(item.name)
        elif item.op == "store" and names & {*item.operands[:-1]}:
            stores.append(item)
    return stores


def accessed(body: Body, items: Sequence[Instruction]) -> tuple[set[str], set[str]]:
    """The arrays that some instructions read, and those that they write."""
    reads: set[str] = set()
    writes: set[str] = set()
    for item in items:
        if item.op == "store" and item.operands:
            writes.add(body.arrays.base_of(item.operands[-1]))
        elif item.op == "load" and item.operands:
            reads.add(body.arrays.base_of(item.operands[-1]))
        elif item.op == "call" and item.callee in body.kernel.module.functions:
            inner = body.used(item)
            reads |= inner[0]
            writes |= inner[1]
        elif item.op == "call" and item.callee.startswith(_FIRST_IS_WRITTEN) and item.operands:
            writes.add(body.arrays.base_of(item.operands[0]))
    return reads, writes
