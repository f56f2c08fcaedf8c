"""Which of the functions that are written are compiled, and what each of them then calls.

The source has calls in branches that are never taken, and templates of which there is no instance:
what their directives ask of the functions that they name is asked of nothing.
"""

from __future__ import annotations

from collections import defaultdict

from .asked import FunctionPlan
from .marks import functions_of
from .plan import Plan

__all__ = ["keep_compiled"]


def keep_compiled(plan: Plan, text: str) -> None:
    """Leave out of a plan the functions and the calls that a raw module has not.

    Operators and a template's constructors have other names there: they stay.
    """
    known: dict[str, FunctionPlan] = {}
    calls: dict[str, set[str]] = {}
    for name, place, calls[name] in functions_of(text):
        if place is not None and (function := plan.function_at(place, name)) is not None:
            known[name] = function
    called: dict[FunctionPlan, set[FunctionPlan]] = defaultdict(set)
    for name, function in known.items():
        called[function].update(known[one] for one in calls[name] & known.keys())
    kept = {one for one in plan.functions if one in called or not one.name.isidentifier()}
    plan.functions = [one for one in plan.functions if one in kept or one is plan.top]
    for function in called:
        left = called[function] | (kept - called.keys())
        function.callees = [one for one in function.callees if one in left]
        for loop in function.all_loops():
            loop.callees = [one for one in loop.callees if one in left]
