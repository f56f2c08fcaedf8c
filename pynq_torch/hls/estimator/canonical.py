"""Which processes of DATAFLOW the tools do not let overlap, though a directive asks for it.

UG1399, "Limitations of Control-Driven Task-Level Parallelism", lists them: an array with several
writers or readers, feedback, processes in a branch, loops with several exits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .calls import given, used_by
from .ir import Instruction, Loop
from .place import Place, own_place

if TYPE_CHECKING:
    from .asked import FunctionPlan, LoopPlan
    from .latency import Body
    from .processes import Process

__all__ = ["in_turn"]

_APART = "the tool reports this and runs them one after another"
_ALONE = "the tool reports this, and it overlaps with no process that it shares an array with"


@dataclass
class _Users:
    """Which processes read an array, and which write it, in their order."""

    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)

    @property
    def all(self) -> set[int]:
        return {*self.reads, *self.writes}


def in_turn(
    body: Body,
    processes: Sequence[Process],
    links: Sequence[Mapping[int, bool]],
    plan: FunctionPlan | LoopPlan,
) -> list[set[int]]:
    """Return groups of processes that run one after another; each process is in one.

    Each group of several has a warning.
    """
    groups = [{number} for number in range(len(processes))]
    for (base, _), users in _users(body, processes).items():
        at, wrong = _violation(users, [process.name for process in processes])
        if wrong:
            name = body.arrays.array(base).name
            _warn(body, processes[at], f"{name!r} {wrong}")
            _join(groups, users.all)
    for number, process in enumerate(processes):
        if wrong := _alone(body, process, plan):
            _warn(body, process, f"{process.name} {wrong}")
            with_it = {other for other in range(len(processes)) if number in links[other]}
            _join(groups, {number, *links[number], *with_it})
    return [group for number, group in enumerate(groups) if min(group) == number]


def _join(groups: list[set[int]], members: set[int]) -> None:
    """Make one group of those that hold some processes."""
    whole = set().union(*(groups[number] for number in members))
    for number in whole:
        groups[number] = whole


def _users(body: Body, processes: Sequence[Process]) -> dict[tuple[str, int], _Users]:
    """Return the users of each memory, by the array and where in it they begin.

    What comes from outside of the region may have several readers.
    """
    found: dict[tuple[str, int], _Users] = defaultdict(_Users)
    for number, process in enumerate(processes):
        reads, writes = used_by(body, process.what)
        begins = _begins(body, process.what)
        for base in reads | writes:
            array = body.arrays.array(base)
            cut = any(kind == "complete" for kind, _ in array.cuts().values())
            if array.kind not in ("memory", "m_axi") or array.constant or cut:
                continue
            users = found[base, begins.get(base, 0)]
            users.reads += [number] if base in reads and array.local else []
            users.writes += [number] if base in writes else []
    return found


def _begins(body: Body, what: Instruction | Loop) -> dict[str, int]:
    """Return at which byte of each array begins what a call is handed of it."""
    if isinstance(what, Loop):
        return {}
    found = {}
    for value in given(what, body.kernel.module.functions[what.callee]).values():
        known = body.function.known.get(value)
        found[body.arrays.base_of(value)] = known.expression.constant if known else 0
    return found


def _violation(users: _Users, names: Sequence[str]) -> tuple[int, str]:
    """Return what is wrong with the processes that use an array, and which of them shows it."""
    writes = users.writes
    readers = [number for number in users.reads if number not in writes]
    if len(writes) > 1:
        who = _list(names, writes)
        return writes[1], f"is written by {who}: {_APART}; give each an array of its own"
    if writes and len(readers) > 1:
        who = _list(names, readers)
        mend = "let one process copy it into an array for each reader"
        return readers[1], f"is read by {who}: {_APART}; {mend}"
    if writes and readers and readers[0] < writes[0]:
        first, last = names[readers[0]], names[writes[0]]
        return readers[0], (
            f"is read by {first} and written by {last} behind it, which is feedback: {_APART}; "
            "keep the array in one process"
        )
    return 0, ""


def _list(names: Sequence[str], numbers: Sequence[int]) -> str:
    """Name some processes: ``f and g``; of one function ``2 calls of f``."""
    found = [names[number] for number in numbers]
    if len({*found}) == 1:
        return f"{len(found)} calls of {found[0]}"
    return f"{', '.join(found[:-1])} and {found[-1]}"


def _alone(body: Body, process: Process, plan: FunctionPlan | LoopPlan) -> str:
    """Return why a process overlaps with none, for what it is."""
    what = process.what
    place = _place(process)
    at = (place.line, place.column) if place is not None else (0, 0)
    if any(first <= at <= last for first, last in plan.branches):
        return (
            f"is in a branch: {_ALONE}; call it always, and let it look at the condition by itself"
        )
    asked = body.kernel.plan.loop_at(what.place) if isinstance(what, Loop) else None
    if asked is not None and asked.breaks:
        return (
            f"is a loop that a `break` may end: {_ALONE}; let it count to a fixed bound, with an "
            "`if` around what it does"
        )
    return ""


def _place(process: Process) -> Place | None:
    """Return where a process is called, or its loop begins, in the function with the region."""
    return own_place(process.what.chain[::-1])


def _warn(body: Body, process: Process, text: str) -> None:
    place = _place(process)
    at = f"{place.shown}: " if place is not None else ""
    body.kernel.plan.warn(f"{at}DATAFLOW: {text}")
