"""Arrays that calls hand over, by their names in the source.

Of a function that is inlined nothing is left but its code: what its directives ask of an argument
is asked of the array that the caller hands over. LLVM gives a function a global array itself, where
all calls hand it the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from .asked import FunctionPlan, LoopPlan
from .ir import NAME, names_in, split_types
from .marks import bodies_of
from .place import plain_name
from .plan import Plan

__all__ = ["hand_up"]

_CALL = re.compile(rf"^  .*\bcall [^@(]*@({NAME})\((.*)\)")
_POINTER = re.compile(rf"^  (%{NAME}) = (?:load ptr, ptr|getelementptr .*?, ptr) ([%@]{NAME})")
#: A function, and an argument or a variable of it.
_Variable = tuple[FunctionPlan, str]
_HEAD = re.compile(r"\((.*)\)")


def hand_up(text: str, plan: Plan, inlined: Callable[[FunctionPlan], bool]) -> None:
    """Let directives on arguments speak of what callers hand over: of globals, and to inlined code.

    Parameters
    ----------
    text : str
        The raw module.
    plan : Plan
        What is asked of its functions.
    inlined : callable
        Whether a function is inlined.
    """
    known = {one.place.function: one for one in plan.functions}
    given: dict[_Variable, list[tuple[_Variable, bool]]] = {}
    for caller, callee, pairs in _calls(text):
        if caller in known and callee in known:
            for argument, variable in pairs.items():
                outer = known[caller], plain_name(variable)
                given.setdefault((known[callee], argument), []).append((outer, variable[0] == "@"))
    for own in given:
        for function, name in _behind(own, given, inlined):
            _take(function, name, *own)
            _rename(*own, name)


def _behind(
    own: _Variable,
    given: dict[_Variable, list[tuple[_Variable, bool]]],
    inlined: Callable[[FunctionPlan], bool],
) -> list[_Variable]:
    """Return what an argument is in the callers, through as many calls as hand an array on.

    Behind a function that is not inlined that is only a global array.
    """
    found: dict[_Variable, None] = {}
    waiting, seen = [(own, True)], set[tuple[_Variable, bool]]()
    while waiting:
        inner, near = waiting.pop(0)
        near = near and inlined(inner[0])
        for outer, is_global in given.get(inner, ()):
            if near or is_global:
                found[outer] = None
            if not is_global and (outer, near) not in seen:
                seen.add((outer, near))
                waiting.append((outer, near))
    return list(found)


def _take(caller: FunctionPlan, variable: str, callee: FunctionPlan, argument: str) -> None:
    """Cut an array as a function cuts what it is handed: it, or a row of it."""
    asked = callee.arrays.get(argument)
    outer, inner = (
        one.dimensions.get(n, ()) for one, n in ((caller, variable), (callee, argument))
    )
    more = len(outer) - len(inner) if outer and inner else 0
    if asked is None or not asked.parts or more < 0:
        return
    array = caller.array(variable)
    own = {dimension for dimension, _, _ in array.parts}
    for dimension, kind, factor in asked.parts:
        rows = range(1, len(inner) + 1) if dimension == 0 and more else [dimension]
        for one in (row + more for row in rows):
            if one not in own:
                array.parts.append((one, kind, factor))
                array.reshaped |= {one} if dimension in asked.reshaped else set()


def _rename(callee: FunctionPlan, argument: str, variable: str) -> None:
    """Let a function's DEPENDENCE of an argument be one of the array that it is handed."""
    plans: list[FunctionPlan | LoopPlan] = [callee, *callee.all_loops()]
    for one in plans:
        if argument in one.distances:
            one.distances.setdefault(variable, one.distances[argument])
        if argument in one.unordered:
            one.unordered.add(variable)


def _calls(text: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield caller, callee and, by argument, the variable that is handed over."""
    arguments: dict[str, list[str]] = {}
    for match, lines in bodies_of(text):
        head = _HEAD.search(lines[0].split(" #")[0])
        arguments[match[1].strip('"')] = names_in(head[1] if head else "")
    for match, lines in bodies_of(text):
        points: dict[str, str] = {}
        for line in lines:
            if pointer := _POINTER.match(line):
                points[pointer[1]] = pointer[2]
            elif (call := _CALL.match(line)) is not None:
                callee = call[1].strip('"')
                values = [names_in(one) for one in split_types(call[2])]
                pairs = zip(arguments.get(callee, ()), values, strict=False)
                yield (
                    match[1].strip('"'),
                    callee,
                    {
                        plain_name(argument): _root(value[0], points)
                        for argument, value in pairs
                        if value
                    },
                )


def _root(value: str, points: dict[str, str]) -> str:
    while value in points:
        value = points[value]
    return value
