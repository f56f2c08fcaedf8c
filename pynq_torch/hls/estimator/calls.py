"""Calls: what each argument is given, and which of them run side by side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from .ir import Function, Instruction, Loop, names_in, split_types
from .marks import within
from .place import own_place
from .result import Cycles, LoopEstimate

if TYPE_CHECKING:
    from .array import Array
    from .latency import Body, Kernel
    from .memory import Arrays

__all__ = [
    "Batch", "accessed", "calls_of", "copied_in", "copy_loops", "given", "handed_on", "used",
    "used_by",
]  # fmt: skip

_COPY = re.compile(
    r"@(?:llvm\.)?mem(?P<how>cpy|set|move)[\w.]*\(.*, i64 (?:noundef )?(?P<bytes>\d+|%[-\w.$]+)"
)
#: File, line and lines of a loop, and its function.
_Where = tuple[str, int, tuple[int, ...], str]
#: Calls that write what their first argument points to.
_FIRST_IS_WRITTEN = ("__hls_stream", "llvm.mem")
#: Structs are copied side by side, if they come from no bus; bytes.
_SMALL_COPY = 64


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


def copied_in(body: Body, item: Instruction) -> Cycles:
    """Cycles of a ``memcpy`` or ``memset`` of an array, which HLS makes a loop.

    They are unknown where a variable says how much is copied.
    """
    arrays = _copied(body, item)
    if not arrays:
        return 0, 0
    if (words := _words(item, arrays)) is None:
        return None, None
    far = body.target.bus_latency
    bus = max((8 + one.wait(far) for one in arrays if one.kind == "m_axi"), default=0)
    return words + 2 + bus, words + 2 + bus


def _copied(body: Body, item: Instruction) -> list[Array]:
    """Return the arrays that a copy writes and reads; none for no copy, or where none is made."""
    match = _COPY.search(item.text) if item.op == "call" else None
    if match is None or not item.operands:
        return []
    ends = [one for one in item.operands if one != match["bytes"]][: 1 + (match["how"] != "set")]
    arrays = [body.arrays.array(body.arrays.base_of(one)) for one in ends]
    words = _words(item, arrays)
    many = any(array.kind == "m_axi" for array in arrays) and words != 1
    if not many and words is not None and int(match["bytes"]) <= _SMALL_COPY:
        return []
    return [] if any(array.constant for array in arrays) else arrays


def _words(item: Instruction, arrays: list[Array]) -> int | None:
    """Return how many words a copy has; None where a variable says it."""
    match = _COPY.search(item.text)
    assert match is not None, "only copies have words"
    known, size = match["bytes"], max(min(array.element_bytes for array in arrays), 1)
    return int(known) // size if known.isdigit() else None


def copy_loops(body: Body, item: Instruction) -> Iterator[LoopEstimate]:
    """Yield the loops that Vivado HLS reports for a copy, one for each dimension of an array.

    It names them after the arrays: ``memset_sum``; ``memcpy.local.port`` for what comes from a bus,
    ``memcpy.port.local.gep`` for what goes there, which are pipelines. Vitis HLS has a module for
    each, whose loop has no name; here one is shown whose trips nobody knows.
    """
    arrays = _copied(body, item)
    if not arrays:
        return
    words, names = _words(item, arrays), [array.name for array in arrays]
    place = own_place(item.chain)
    file, line = (place.file, place.line) if place else ("", 0)
    where = file, line, (line,), body.plan.name if body.plan is not None else ""
    if words is None:
        yield _unknown(".".join(["memcpy" if names[1:] else "memset", *names]), where)
        return
    if body.target.tool != "vivado":
        return
    if any(array.kind == "m_axi" for array in arrays):
        if arrays[0].kind == "m_axi":
            names[-1] += ".gep"
        yield LoopEstimate(
            ".".join(["memcpy", *names]), *where, 1, (words, words), 1, 1, (3, 3),
            (words + 1, words + 1), "", False,
        )  # fmt: skip
        return
    copies = len(arrays) > 1
    sizes = arrays[0].dimensions if prod(arrays[0].dimensions) == words else (words,)
    made: list[LoopEstimate] = []
    inside = 1 + copies
    for depth in range(len(sizes), 0, -1):
        trips = sizes[depth - 1]
        total = trips * inside - 1
        made.append(LoopEstimate(
            ("memcpy_" if copies else "memset_") + names[0], *where, depth, (trips, trips), None,
            None, (inside, inside), (total, total), "", False,
        ))  # fmt: skip
        inside = total + 2
    yield from reversed(made)


def _unknown(name: str, where: _Where) -> LoopEstimate:
    """Return the loop of a copy whose length a variable says."""
    unknown: Cycles = (None, None)
    why = (
        f"{name}: a variable says how much it takes, so that its latency is not known; give it "
        f"a constant, or write a loop with LOOP_TRIPCOUNT ({Path(where[0]).name}:{where[1]})"
    )
    return LoopEstimate(name, *where, 1, unknown, 1, 1, (3, 3), unknown, why, False)
