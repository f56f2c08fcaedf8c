"""Whether arrays that are FIFOs, by STREAM or INTERFACE, are used in order.

"FIFO accesses must be sequential" (UG1399, "pragma HLS stream"): the tool refuses others, as far as
it knows where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from pynq_torch.paths import shown

from .array import Array
from .calls import given, used, used_by
from .chosen import WAY
from .ir import Block, Function, Instruction, Loop
from .order import ends_without, may_skip, reverse_postorder
from .scev import Expression
from .together import places

if TYPE_CHECKING:
    from .latency import Body
    from .processes import Process

__all__ = ["keep_order", "warn_of_ports"]


def keep_order(body: Body, processes: Sequence[Process]) -> None:
    """Leave arrays memories that are to be FIFOs and that none can be, with a warning."""
    default = _follow_default(body, processes)
    for base, array in body.arrays.streamed():
        using = [p for p in processes if base in set().union(*used_by(body, p.what))]
        if len(using) != 2:
            continue
        passed = [_passed(body, process.what, base, array) for process in using]
        if why := _disorder(passed, [process.name for process in using]):
            file, line = array.plan.streamed
            mend = "leave STREAM out" if array.plan.streamed != default else "write STREAM off"
            body.kernel.plan.warn(
                f"{shown(Path(file))}:{line}: STREAM of {array.name} is refused: {why}, and a FIFO "
                f"is read in the order of its writes; {mend}, so that it stays a ping-pong memory"
            )
            array.plan = replace(array.plan, kind="", depth=None)


def _follow_default(body: Body, processes: Sequence[Process]) -> tuple[str, int] | None:
    """Make what one process writes and one behind it reads a FIFO where that is the default.

    Return where that is said: STREAM need not name these arrays.
    """
    if body.plan is None or body.plan.channels is None:
        return None
    file, line, depth = body.plan.channels
    users = [used_by(body, process.what) for process in processes]
    for base in sorted(set().union(*(writes for _, writes in users))):
        array, plan = body.arrays.array(base), body.arrays.array(base).plan
        writers = [n for n, (_, writes) in enumerate(users) if base in writes]
        readers = [n for n, (reads, _) in enumerate(users) if base in reads and n not in writers]
        goes_on = len(writers) == len(readers) == 1 and writers < readers
        is_memory = array.local and (array.kind == "memory" or bool(array.inner))
        if goes_on and is_memory and not (plan.kind or plan.pingpong):
            array.plan = replace(plan, kind="fifo", depth=depth or None, streamed=(file, line))
    return file, line


def warn_of_ports(body: Body) -> None:
    """Warn of arguments that INTERFACE makes FIFOs and the kernel uses as memories."""
    reads, writes = used(body.kernel, body.arrays, body.function)
    for base in sorted(reads | writes):
        array = body.arrays.array(base)
        port = body.plan.ports.get(array.name, {}) if body.plan is not None else {}
        mode = port.get("mode", "").lower()
        if mode not in ("axis", "ap_fifo") or not array.of_elements or array.element_bytes <= 0:
            continue
        why = "it is read and written, and a FIFO goes one way" if base in reads & writes else ""
        for op, does in (("load", "read"), ("store", "written")):
            order = None if why else _order(body.function, op, base, array)
            if order is not None and len({*order}) < len(order):
                why = f"an element is {does} several times, and a FIFO passes each word once"
            elif order is not None and order != [*range(len(order))]:
                why = (
                    f"it is {does} in another order than 0, 1, 2, ..., and a FIFO has no addresses"
                )
        if why:
            body.kernel.plan.warn(
                f"{port['written at']}: INTERFACE {mode} of {array.name} cannot work: {why}; "
                "copy it into a local array first, or make the port ap_memory or m_axi"
            )


def _order(function: Function, op: str, base: str, array: Array) -> list[int] | None:
    """Return the elements that a function takes itself; fields of a struct are one after another.

    None where they are not known.
    """
    blocks = [function.blocks[name] for name in reverse_postorder(function)]
    items = (item for block in blocks for item in block.instructions if item.op == "call")
    if any(base in item.operands for item in items):
        return None
    if any(_may_be_left_out(function, block, op, base) for block in blocks):
        return None
    return _elements(function, blocks, op, base, array.element_bytes)


#: The elements that a process reads, and those that it writes; None where they are not known.
_Passed = tuple[list[int] | None, list[int] | None]


def _disorder(passed: Sequence[_Passed], names: Sequence[str]) -> str:
    """Return why the words of a process are not those of the one that reads them, in order."""
    (again, written), (read, _) = passed
    if again:
        return f"{names[0]} reads back what it writes"
    if not written or not read:
        return ""
    for number, words in enumerate((written, read)):
        if len({*words}) < len(words):
            does = "reads" if number else "writes"
            return f"{names[number]} {does} an element several times"
    if read != written[: len(read)]:
        return f"{names[1]} reads in another order than {names[0]} writes"
    return ""


def _passed(body: Body, what: Instruction | Loop, base: str, array: Array) -> _Passed:
    """Return which elements of an array a process reads, and which it writes, one by one."""
    function, blocks, name = body.function, None, base
    if isinstance(what, Loop):
        blocks = {*what.blocks}
    else:
        function = body.kernel.module.functions[what.callee]
        values = given(what, function).items()
        name = next((one for one, value in values if body.arrays.base_of(value) == base), "")
    names = [one for one in reverse_postorder(function) if blocks is None or one in blocks]
    inside = [function.blocks[one] for one in names]
    if any(item.op == "call" and name in item.operands for b in inside for item in b.instructions):
        return None, None
    size = max(array.element_bytes, 1)
    reads, writes = (_elements(function, inside, op, name, size) for op in ("load", "store"))
    return reads, writes


def _elements(
    function: Function, blocks: Sequence[Block], op: str, name: str, size: int
) -> list[int] | None:
    """Return the elements that are taken one by one: fields one after another are of one."""
    words = _words(function, blocks, op, name, size)
    taken = [item for block in blocks for item in block.instructions
             if item.op == op and _base(function, item) == name]  # fmt: skip
    has_fields = any(item.bits < 8 * size for item in taken)
    return [word for word, _ in groupby(words)] if words and has_fields else words


def _words(
    function: Function, blocks: Sequence[Block], op: str, name: str, size: int
) -> list[int] | None:
    """Return the elements that loads or stores take, in their order; None where it is not known."""
    found: list[int] = []
    seen: set[Loop] = set()
    for block in blocks:
        items = [i for i in block.instructions if i.op == op and _base(function, i) == name]
        if not items:
            continue
        nest = [*block.loop.above()][::-1] if block.loop is not None else []
        chosen = any(item.name.startswith(WAY) for item in items)  # whether it is, data decide
        if chosen or seen.intersection(nest) or not _is_always(function, nest, block):
            return None
        seen |= {*nest}
        ways = []
        for item in items:
            known = function.known.get(pointer := item.operands[-1])
            address = known.expression if known else Expression(0, ((pointer, 1),))
            way = places(nest, address.plus(Expression(0, ((name, 1),)), -1))
            if way is None:
                return None
            ways.append(way)
        found += [at // size for turn in zip(*ways, strict=True) for at in turn]
    return found


def _may_be_left_out(function: Function, block: Block, op: str, name: str) -> bool:
    """Whether a block that uses an array is on one way through a function and not on another."""
    if not any(item.op == op and _base(function, item) == name for item in block.instructions):
        return False
    around = [*block.loop.above()][-1].blocks if block.loop is not None else [block.name]
    return ends_without(function, None, {*around})


def _base(function: Function, item: Instruction) -> str:
    """Return the variable or argument that a load or a store goes into."""
    pointer = item.operands[-1] if item.operands else ""
    while (made := function.values.get(pointer)) is not None and made.op == "getelementptr":
        pointer = made.operands[0]
    return pointer


def _is_always(function: Function, nest: Sequence[Loop], block: Block) -> bool:
    """Whether a block runs in each turn of the loops around it."""
    inside = [block]
    for loop in reversed(nest):
        if may_skip(function, loop.header, inside):
            return False
        before = function.predecessors[loop.header]
        inside = [function.blocks[name] for name in before if name not in loop.blocks]
    return True
