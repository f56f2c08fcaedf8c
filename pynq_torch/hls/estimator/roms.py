"""Functions that compute a table, for which the tools make a ROM and no hardware.

UG902, "Implementing ROMs": an array that a function of its own fills, from nothing that is known at
run time only, and that nothing else writes, is computed when the kernel is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .calls import given
from .ir import Block, Function, Instruction, Module
from .operators import knows_call
from .place import Place

if TYPE_CHECKING:
    from .memory import Arrays

__all__ = ["synthesised", "table_of", "tables_in"]

_COPIES = ("llvm.memcpy", "llvm.memmove", "memcpy", "memmove", "__hls_stream")


def synthesised(block: Block, module: Module, arrays: Arrays) -> Iterator[Instruction]:
    """Yield the instructions of a block, but no call that only makes a ROM."""
    for item in block.instructions:
        argument = table_of(item, module) if item.op == "call" else ""
        value = given(item, module.functions[item.callee])[argument] if argument else ""
        if not value or not arrays.array(arrays.base_of(value)).constant:
            yield item


def tables_in(module: Module) -> set[Place | None]:
    """Return where the functions are of which a call only makes a ROM."""
    blocks = (block for one in module.functions.values() for block in one.blocks.values())
    items = (item for block in blocks for item in block.instructions if item.op == "call")
    return {module.functions[item.callee].place for item in items if table_of(item, module)}


def table_of(item: Instruction, module: Module) -> str:
    """Return the argument into which a call writes a table of constants; ``""`` for none.

    What is computed has fractions in it, as sines have: integers may be a counter's, up to the
    argument of a run.
    """
    function = module.functions.get(item.callee)
    if function is None or not function.loops or item.name or not _has_fractions(function):
        return ""
    written: set[str] = set()
    for block in function.blocks.values():
        for one in block.instructions:
            if not _is_constant(one, function, module):
                return ""
            if one.op == "store":
                written.add(_base_of(one.operands[-1] if one.operands else "", function))
    outside = {name for name in written if function.values.get(name) is None}
    return outside.pop() if len(outside) == 1 and outside <= {*function.arguments} else ""


def _has_fractions(function: Function) -> bool:
    return any(item.type in ("float", "double") for item in function.values.values())


def _is_constant(item: Instruction, function: Function, module: Module) -> bool:
    """Whether an instruction needs nothing that is known at run time only."""
    if item.op == "load":
        base = _base_of(item.operands[-1] if item.operands else "", function)
        return base in function.values or base in module.tables
    if item.op == "call":
        known = knows_call(item.callee) and not item.callee.startswith(_COPIES)
        return known and not {*item.operands} & {*function.arguments}
    used = item.operands[:-1] if item.op == "store" else item.operands
    return item.op == "getelementptr" or not {*used} & {*function.arguments}


def _base_of(pointer: str, function: Function) -> str:
    """Return what a pointer is computed from: an argument, a variable, an ``alloca``."""
    while (item := function.values.get(pointer)) is not None and item.op == "getelementptr":
        pointer = item.operands[0]
    return pointer
