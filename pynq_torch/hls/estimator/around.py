"""What stands around the inner loop of a nest before anything is unrolled.

Vitis HLS decides by it whether a short inner loop is unrolled in a pipeline of the outer one, or
flattened with it. LLVM moves out of the inner loop what stays the same in it, as Vitis HLS does,
and the element of an array that a sum goes to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import takewhile
from math import prod
from typing import TYPE_CHECKING

from .calls import given
from .ir import Function, Instruction, Loop, Module
from .place import Place, plain_name

if TYPE_CHECKING:
    from .plan import Plan

__all__ = ["nests", "rows_of"]

_FLOATS = frozenset(("fadd", "fsub", "fmul", "fdiv", "fcmp", "sitofp", "uitofp", "fptosi"))


def nests(
    module: Module, entry: str, buses: Collection[str], rows: Mapping[str, int]
) -> Iterator[tuple[Place, bool]]:
    """Yield where each loop is that holds another one only, and whether that is all its work.

    Parameters
    ----------
    module, entry : Module, str
        The functions, and the top one.
    buses : collection of str
        Its m_axi arguments. Vitis HLS leaves their accesses where they are.
    rows : mapping of str to int
        The elements in a word of each array of whose rows ARRAY_RESHAPE makes one.
    """
    handed = _handed(module, entry, buses)
    for function in module.functions.values():
        fixed = handed.get(function.name, set())
        for loop in function.loops:
            if loop.place is None or len(loop.inner) != 1:
                continue
            around = [function.blocks[n] for n in loop.blocks if n not in loop.inner[0].blocks]
            items = [item for block in around for item in block.instructions]
            is_work = any(_is_work(function, item, fixed) for item in items)
            yield loop.place, not (is_work or _reads_a_row(function, loop.inner[0], rows))


def rows_of(plan: Plan) -> dict[str, int]:
    """Return the elements in a word of each array of whose rows ARRAY_RESHAPE makes one."""
    found: dict[str, int] = {}
    for function in plan.functions:
        for name, array in function.arrays.items():
            sizes = function.dimensions.get(name, ())
            whole = {n for n, kind, _ in array.parts if kind == "complete" and n in array.reshaped}
            last = takewhile(whole.__contains__, range(len(sizes), 0, -1))
            found[name] = prod(sizes[n - 1] for n in last)
    return {name: words for name, words in found.items() if words > 1}


def _reads_a_row(function: Function, loop: Loop, rows: Mapping[str, int]) -> bool:
    """Whether a loop takes the parts of one word one by one: that is read before it, once.

    "Pipelining loop 'writeoutput' automatically", with the loop in it unrolled, a log of 2022.1
    has where the row is reshaped; where it is not the two loops become one.
    """
    blocks = [function.blocks[name] for name in loop.blocks] if rows else []
    items = (item for block in blocks for item in block.instructions if item.op == "load")
    return any(_is_of_one_word(function, loop, item, rows) for item in items)


def _is_of_one_word(
    function: Function, loop: Loop, item: Instruction, rows: Mapping[str, int]
) -> bool:
    """Whether what a load takes in all iterations of a loop is one word of such an array."""
    known = function.known.get(item.operands[-1])
    if known is None or loop.taken is None or loop.taken.terms:
        return False
    place, own = known.expression, f"loop {loop.header}"
    base = next((name for name, _ in place.terms if name[0] in "%@"), "")
    word = rows.get(plain_name(base), 0) << max(item.bits - 1, 7).bit_length() - 3
    begins = [place.constant, *(n for name, n in place.terms if name not in (base, own))]
    covered = abs(place.factor(own)) * loop.taken.constant
    return 0 < covered < word and not any(number % word for number in begins)


def _handed(module: Module, entry: str, buses: Collection[str]) -> dict[str, set[str]]:
    """Return the arguments of each function that are buses of the kernel."""
    found = {entry: set(buses)}
    queue = [entry]
    for name in queue:
        function = module.functions[name]
        for block in function.blocks.values():
            for item in block.instructions:
                callee = module.functions.get(item.callee) if item.op == "call" else None
                if callee is None:
                    continue
                pairs = given(item, callee).items()
                made = {own for own, value in pairs if _roots(function, value) & found[name]}
                known = found.setdefault(callee.name, set())
                if not made <= known:
                    known |= made
                    queue.append(callee.name)
    return found


def _is_work(function: Function, item: Instruction, fixed: Collection[str]) -> bool:
    """Whether an operation is a call, a floating-point one, or reads or writes memory.

    What LLVM has moved is in no line; it does not count if it is of one of the `fixed` pointers.
    """
    if item.op in ("load", "store"):
        return not item.moved or not _roots(function, item.operands[-1]) & set(fixed)
    return item.op in _FLOATS or (item.op == "call" and not item.callee.startswith("llvm."))


def _roots(function: Function, pointer: str) -> set[str]:
    """Return what an address may begin with."""
    found, queue = set(), [pointer]
    for one in queue:
        item = function.values.get(one)
        if item is None or item.op not in ("getelementptr", "bitcast", "phi", "select"):
            found.add(one)
            continue
        behind = item.operands if item.op in ("phi", "select") else item.operands[:1]
        queue += [other for other in behind if other not in queue]
    return found
