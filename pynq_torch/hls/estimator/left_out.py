"""What LLVM's passes leave out of a kernel and HLS would not; its raw module has it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator

from .forbidden import BODY, NO_SIZE, calls_of, refuse
from .ir import Module
from .marks import DEFINED
from .place import Locations
from .plan import Plan

__all__ = ["check"]

#: An array whose size is no constant yet, and what keeps that size to the end of the passes.
_SIZED = re.compile(r"^(.* = alloca [^,]+, (i\d+) (%[^,]+),.*(, !dbg !\d+))$", re.MULTILINE)
_KEEPS = "__hls_sized"
#: What ``assert`` says.
_SAID = re.compile(r"^.* call void @llvm\.assume\(.*!dbg (!\d+).*$", re.MULTILINE)
_MOST_SAID = 8
#: Where a function returns.
_RETURN = re.compile(r"(?m)^  ret .*!dbg (!\d+)$")


def check(text: str, made: functools.partial[tuple[str, str]], module: Module, plan: Plan) -> None:
    """Refuse arrays of no known size that nothing uses; say why a function never returns.

    And which loops are no pipelines any more, since they are unrolled.

    Parameters
    ----------
    text : str
        The raw module.
    made : functools.partial
        What makes the optimised module of it.
    module : Module
        The optimised one.
    plan : Plan
        Takes the warnings.

    Raises
    ------
    KernelBuildError
        With file and line of the array.
    """

    def optimised(changed: str) -> str:
        return made.func(changed, *made.args[1:], **made.keywords)[0]

    _check_sizes(text, plan, optimised)
    _check_results(text, plan)
    _check_pipelines(module, plan)
    for name, function in module.functions.items():
        items = (block.instructions[-1:] for block in function.blocks.values())
        if all(item.op != "ret" for last in items for item in last):
            for said in _stops(text, name, plan, optimised):
                plan.warn(said)
                plan.unreturned.add(name)


def _check_sizes(text: str, plan: Plan, optimised: Callable[[str], str]) -> None:
    kept = _SIZED.sub(rf"\1\n  call void @{_KEEPS}_\2(\2 \3)\4", text)
    if kept == text:
        return
    for kind in dict.fromkeys(match[2] for match in _SIZED.finditer(text)):
        kept += f"\ndeclare void @{_KEEPS}_{kind}({kind}) memory(inaccessiblemem: write)\n"
    left = re.compile(rf"call void @{_KEEPS}_i\d+\(i\d+ (?:\w+ )*%.*!dbg (!\d+)")
    refuse(left, optimised(kept), NO_SIZE, plan.top.name)


def _check_pipelines(module: Module, plan: Plan) -> None:
    left = {plan.loop_at(loop.place) for one in module.functions.values() for loop in one.loops}
    for loop in (loop for function in plan.functions for loop in function.all_loops()):
        asked = loop.own_interval is not None or (loop.interval is not None and not loop.automatic)
        if asked and loop.unroll == 0 and loop not in left:
            by = f"{loop.unrolled_by} unrolls this loop"
            plan.warn(f"{loop.place.shown}: PIPELINE has no effect: {by}; leave one of them out")


def _check_results(text: str, plan: Plan) -> None:
    """Warn of each function that has a result and no ``return``; as in HLS it is any value."""
    places = Locations(text)
    for one in _reached(text, plan.entry):
        uses = [line for line in one.split("\n") if re.search(r"%retval\b", line)]
        is_set = any(" = alloca " not in line and " = load " not in line for line in uses)
        ends = None if is_set or not uses else _RETURN.search(one)
        if ends and (where := places.of(ends[1])):
            plan.warn(
                f"{where.shown}: a result is missing behind this, and may be any value; "
                "write a return"
            )


def _stops(text: str, name: str, plan: Plan, optimised: Callable[[str], str]) -> Iterator[str]:
    """Yield why a function does not return, other than by a loop that has no end.

    The compiler takes what is undefined for what never happens, and with it the end of the loop
    that leads there.
    """
    places, never = Locations(text), f"so that {plan.top.name} never returns"
    said = [*_SAID.finditer(text)]
    if not said or not _returns(optimised(_SAID.sub("", text)), name):
        return
    for one in said[:_MOST_SAID]:
        alone = text[: one.start()] + text[one.end() :]
        where = places.of(one[1])
        if where and (len(said) == 1 or _returns(optimised(alone), name)):
            yield f"{where.shown}: what assert says here fails in every run, {never}; correct it"
            return


def _reached(text: str, entry: str) -> list[str]:
    """Return the functions of a raw module that its top function calls, directly or not."""
    calls, names = calls_of(text), [entry]
    for name in names:
        names += {one for one, _ in calls.get(name, ()) if one in calls}.difference(names)
    found = (one[0] for one in BODY.finditer(text))
    named = ((match[1].strip('"'), one) for one in found if (match := DEFINED.match(one)))
    return [one for name, one in named if name in names]


def _returns(text: str, name: str) -> bool:
    """Whether a function of an optimised module returns."""
    bodies = (one[0] for one in BODY.finditer(text))
    heads = (f"@{name}(", f'@"{name}"(')
    return any("\n  ret " in one for one in bodies if any(h in one.split("\n")[0] for h in heads))
