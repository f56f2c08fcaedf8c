"""``memcpy`` and ``memset``: loops of words, which stand between others or in a pipeline."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from math import ceil, prod
from pathlib import Path
from typing import TYPE_CHECKING

from .bounds import Limit
from .ir import Instruction
from .named import loop_name
from .order import child
from .place import own_place
from .result import Cycles, LoopEstimate

if TYPE_CHECKING:
    from .array import Array
    from .latency import Body

__all__ = ["copied_in", "copies_limit", "copy_loops", "leave_copies"]

_COPY = re.compile(
    r"@(?:llvm\.)?mem(?P<how>cpy|set|move)[\w.]*\(.*, i64 (?:noundef )?(?P<bytes>\d+|%[-\w.$]+)"
)
#: File, line and lines of a loop, and its function.
_Where = tuple[str, int, tuple[int, ...], str]
#: Structs are copied side by side, if they come from no bus; bytes.
_SMALL_COPY = 64


def copies_limit(body: Body, items: Sequence[Instruction]) -> tuple[Limit, int]:
    """Return the interval that copies in a pipeline allow, and the most cycles of one.

    Each is a loop that PIPELINE unrolls: its words pass one by one by a bus, else by two ports.
    """
    limit, most = Limit(1), 0
    for item in items:
        for array in _copied(body, item):
            words = _words(item, [array]) or 0
            most = max(most, copied_in(body, item)[1] or 0)
            interval = words if array.kind == "m_axi" else ceil(words / array.ports())
            if interval > limit.interval:
                what = "memset" if "memset" in item.callee else "memcpy"
                reason = f"`{what}` moves {words} words of `{array.name}` in each iteration; "
                advice = "write it as a loop, and PIPELINE that one alone"
                limit = Limit(interval, reason + advice, own_place(item.chain))
    return limit, most


def leave_copies(body: Body) -> None:
    """Leave loops as they are that hold a copy: it is a loop, so that they are not innermost.

    Vitis HLS makes a module of it and no pipeline of what is around. None can be asked for where
    only a variable says how much is copied.
    """
    plan = body.kernel.plan
    for loop in body.function.loops:
        asked = plan.loop_at(loop.place) if not loop.inner else None
        if asked is None or asked.interval is None:
            continue
        copies = [one for one in map(partial(copied_in, body), body.items(loop)) if one != (0, 0)]
        if (None, None) in copies and not asked.automatic:
            plan.warn(
                f"{asked.place.shown}: PIPELINE has no effect: a variable says how much is copied "
                "in this loop; write the copy as a loop, and PIPELINE that one"
            )
        if (None, None) in copies or (copies and asked.automatic and not asked.inner):
            asked.interval = None


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
    ``memcpy.port.local.gep`` for what goes there, which are pipelines. Vitis HLS of 2020 numbers
    those. Later ones have a module for each, whose loop has no name; here one is shown whose trips
    nobody knows.
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
    if body.target.makes_modules:
        return
    if any(array.kind == "m_axi" for array in arrays):
        if arrays[0].kind == "m_axi":
            names[-1] += ".gep"
        name, depth = ".".join(["memcpy", *names]), 1
        if body.target.tool == "vitis":
            name, depth = _numbered(body, item)
        yield LoopEstimate(
            name, *where, depth, (words, words), 1, 1, (3, 3), (words + 1, words + 1), "", False
        )
        return
    if body.target.tool == "vivado":
        sizes = arrays[0].dimensions if prod(arrays[0].dimensions) == words else (words,)
        kind = "memcpy_" if names[1:] else "memset_"
        yield from _nest(kind + names[0], where, sizes, 1 + len(names[1:]))


def _nest(
    name: str, where: tuple[str, int, tuple[int, ...], str], sizes: Sequence[int], inside: int
) -> Iterator[LoopEstimate]:
    """Yield the loops of a copy on the chip; a turn of the innermost takes `inside` cycles."""
    made: list[LoopEstimate] = []
    for depth in range(len(sizes), 0, -1):
        trips = sizes[depth - 1]
        total = trips * inside - 1
        made.append(LoopEstimate(
            name, *where, depth, (trips, trips), None, None, (inside, inside), (total, total), "",
            False,
        ))  # fmt: skip
        inside = total + 2
    yield from reversed(made)


def _numbered(body: Body, item: Instruction) -> tuple[str, int]:
    """Return the name and depth of a loop without a name: its number among those around it.

    Such as ``rows.2`` for the second of what is in the loop ``rows``, ``Loop 2`` in none.
    """
    around = item.block.loop if item.block else None
    before: list[str] = []
    for block in body.blocks(around):
        inner = child(block.loop, around)
        if inner is not None:
            before += [inner.header] if inner.header not in before else []
            continue
        copies = [one for one in block.instructions if one is item or _copied(body, one)]
        if item in copies:
            before += ["copy"] * copies.index(item)
            break
        before += ["copy"] * len(copies)
    number = len(before) + 1
    if around is None:
        return f"Loop {number}", 1
    outer = loop_name(body, [around], [body.kernel.plan.loop_at(around.place)])
    return f"{outer}.{number}", around.depth + 1


def _unknown(name: str, where: _Where) -> LoopEstimate:
    """Return the loop of a copy whose length a variable says."""
    unknown: Cycles = (None, None)
    why = (
        f"{name}: a variable says how much it takes, so that its latency is not known; give it "
        f"a constant, or write a loop with LOOP_TRIPCOUNT ({Path(where[0]).name}:{where[1]})"
    )
    return LoopEstimate(name, *where, 1, unknown, 1, 1, (3, 3), unknown, why, False)
