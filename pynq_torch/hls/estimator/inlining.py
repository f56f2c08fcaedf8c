"""Which functions are inlined, and the plan of what their calls have for themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from . import compiler
from .asked import FunctionPlan, LoopPlan
from .instances import with_own_loops
from .ir import Module, read_module
from .place import Place, header_folders
from .plan import Plan, has_loops
from .roms import tables_in
from .small import small_functions

__all__ = ["factor_at", "inlined", "is_inlined_at", "is_module", "let_go", "not_unrolled"]


def inlined(
    text: str, plan: Plan, planned: Callable[[str], Plan], folder: Path
) -> tuple[str, Plan]:
    """Decide which functions are inlined; return module and plan with loops of their own for calls.

    `planned` makes the plan of a module.
    """
    plan.swallow_all()
    small = _small(text, plan, folder) if plan.tool == "vitis" else set()
    plan.take_in(small)
    names = {
        one.place.function
        for one in plan.functions
        if (one.inline or one.instantiated) and any(any(each.all_loops()) for each in one.called())
    }
    apart = with_own_loops(text, plan.entry, names)
    if apart == text:
        return text, plan
    other = planned(apart)
    other.warnings, other.unreturned = plan.warnings, plan.unreturned
    other.swallow_all()
    other.take_in(small)
    return apart, other


def _small(text: str, plan: Plan, folder: Path) -> set[str]:
    """Return the names of the functions that Vitis HLS inlines since they are small."""
    at = functools.partial(is_inlined_at, plan)
    factor = functools.partial(factor_at, plan)
    small = small_functions(text, plan.entry, plan.is_open, at, factor, folder)
    kept = _tables(text, plan, folder) if small else set()
    return {one.function for one in small if one not in kept}


def _tables(text: str, plan: Plan, folder: Path) -> set[Place | None]:
    """Return where the functions are that only compute a table: they are no code to inline."""
    if " float" not in text and " double" not in text:
        return set()
    return tables_in(not_unrolled(text, plan, folder))


def not_unrolled(text: str, plan: Plan, folder: Path) -> Module:
    """Return the module with the loops as they are written."""

    def unrolled(place: Place) -> int:
        return 1 if plan.loop_at(place) else factor_at(plan, place)

    at = functools.partial(is_inlined_at, plan)
    made = compiler.optimise(
        text, plan.entry, at, unrolled, folder, promote=True, shared=plan.is_shared
    )
    return read_module(*made)


def is_inlined_at(plan: Plan, place: Place) -> bool:
    """Whether the function at a place is inlined, as all are that the plan does not know."""
    function = plan.function_at(place)
    return function is None or (function is not plan.top and not is_module(function))


def factor_at(plan: Plan, place: Place) -> int:
    """Return by how much the loop at a place is unrolled: 1 not at all, 0 completely."""
    loop = plan.loop_at(place)
    if loop is None:  # those of HLS headers count bits and the lanes of vectors
        return 0 if place.file.startswith(header_folders()) else 1
    return loop.unroll


def is_module(function: FunctionPlan) -> bool:
    """Whether a function stays one of its own: it has loops, or a directive says so."""
    if function.swallowed or function.inline or function.instantiated:
        return False
    if function.inline is False or function.interval is not None or function.dataflow:
        return True
    # Loops of what is inlined in it are its own.
    loops = any(has_loops(one) for one in function.called() if not one.swallowed)
    return loops or any(is_module(other) for other in function.callees)


def let_go(functions: Iterable[FunctionPlan], left: Sequence[LoopPlan]) -> bool:
    """Make pipelines of what functions call that cannot be pipelines; return whether there is any.

    Such a function has loops that are `left`. Vivado HLS keeps what it calls as pipelines of their
    own, with II=1 as the target, in its log of 2019.1; where those have such loops, none is one.
    """
    found = False
    for function in functions:
        loops = [one for each in function.all_loops() for one in each.callees]
        for other in dict.fromkeys([*function.callees, *loops]):
            stays = any(loop.function in other.called() for loop in left)
            if other.swallowed and not stays and any(map(_is_large, other.called())):
                other.swallowed, other.interval, found = False, 0, True
    return found


def _is_large(function: FunctionPlan) -> bool:
    """Whether a function is inlined for a pipeline alone: its loops keep it apart elsewhere."""
    return not function.inline and any(function.all_loops())
