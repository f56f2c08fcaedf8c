"""What stands around the inner loop of a nest before anything is unrolled.

Vitis HLS decides by it whether a short inner loop is unrolled in a pipeline of the outer one, or
flattened with it. LLVM moves out of the inner loop what stays the same in it, as Vitis HLS does,
and the element of an array that a sum goes to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .calls import given
from .ir import Function, Instruction, Module
from .place import Place

__all__ = ["nests"]

_FLOATS = frozenset(("fadd", "fsub", "fmul", "fdiv", "fcmp", "sitofp", "uitofp", "fptosi"))


def nests(module: Module, entry: str, buses: Collection[str]) -> Iterator[tuple[Place, bool]]:
    """Yield where each loop is that holds another one only, and whether that is all its work.

    Parameters
    ----------
    module, entry : Module, str
        The functions, and the top one.
    buses : collection of str
        Its m_axi arguments. Vitis HLS leaves their accesses where they are.
    """
    handed = _handed(module, entry, buses)
    for function in module.functions.values():
        fixed = handed.get(function.name, set())
        for loop in function.loops:
            if loop.place is None or len(loop.inner) != 1:
                continue
            around = [function.blocks[n] for n in loop.blocks if n not in loop.inner[0].blocks]
            items = [item for block in around for item in block.instructions]
            yield loop.place, not any(_is_work(function, item, fixed) for item in items)


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
