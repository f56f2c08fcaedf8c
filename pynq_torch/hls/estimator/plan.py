"""What the directives ask of each loop, function and array, and what the tool does unasked.

Pragmas stand in the source, directives in a Tcl or configuration file; both end in one plan. The
rules are those of UG1399, "HLS Pragmas" and "config_compile", and of UG902 for Vivado HLS.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pynq_torch.errors import needs
from pynq_torch.paths import shown

from ..constants import Constants
from ..cursors import is_pointer
from ..lint_pragmas import is_placed
from ..lint_tree import Program, Scope, calls, walk
from .asked import LOOP_NAMES, FunctionPlan, LoopPlan, of_function, of_loop
from .bindings import Bindings, lines_of
from .ir import Instruction
from .place import Place, plain_name
from .written import breaks, dimensions_of, is_fixed, is_perfect, is_sized_by_template

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, CursorKind

__all__ = ["Plan", "Trips", "key_of", "make_plan"]

#: Vitis pipelines a loop of at least this many iterations by itself (config_compile).
_PIPELINE_LOOPS = 64
#: Iterations of loops by file, line and column; None where LLVM does not know them.
Trips = dict[tuple[str, int, int], int | None]


@dataclass
class Plan:
    """Everything the directives say of a kernel."""

    top: FunctionPlan
    functions: list[FunctionPlan]
    tool: str
    warnings: list[str] = field(default_factory=list)
    #: Whether the tool pipelines loops by itself: Vitis HLS, unless a script forbids it.
    automatic: bool = True
    bindings: Bindings = field(default_factory=dict)

    def needs_trips(self) -> bool:
        """Whether trip counts decide what the tool does by itself."""
        loops = [loop for function in self.functions for loop in function.all_loops()]
        decides = self.tool == "vitis" and self.automatic
        return decides and any(loop.inner and loop.interval is None for loop in loops)

    def calls_in_turn(self) -> bool:
        """Whether a loop of DATAFLOW that is unrolled calls processes."""
        loops = [loop for one in self.functions if one.dataflow for loop in one.all_loops()]
        return any(loop.callees and loop.unroll != 1 for loop in loops)

    def forget_trips(self) -> None:
        """Leave out what LOOP_TRIPCOUNT says: it is of no run in particular."""
        for function in self.functions:
            for loop in function.all_loops():
                loop.trips = None

    def warn_of_choices(self, chosen: Mapping[Instruction, str]) -> None:
        """Say which pointers the data choose: the estimate takes one of their arrays for all."""
        for item, base in chosen.items():
            at = f"{shown(Path(item.place.file))}:{item.place.line}: " if item.place else ""
            self.warnings.append(
                f"{at}the data choose between pointers into several arrays; the estimate takes all "
                f"their accesses as those of {plain_name(base)!r}"
            )

    def left(self, trips: Trips) -> list[LoopPlan]:
        """Return the loops that are to be unrolled and still are there: `trips` has them."""
        loops = (loop for function in self.functions for loop in function.all_loops())
        return [loop for loop in loops if loop.unroll == 0 and key_of(loop.place) in trips]

    def give_up(self, trips: Trips) -> None:
        """Say which loops could not be unrolled though a directive asks for it.

        `trips` has the iterations of the loops that are left. A function with one is no pipeline.
        """
        kept = self.left(trips)
        for loop in kept:
            constant = trips[key_of(loop.place)] is not None
            self.warnings.append(_why_kept(loop, constant=constant))
        for function in self.functions:
            if any(loop.function in function.called() for loop in kept):
                function.interval = None

    def default_to_buses(self) -> None:
        """Make pointers of the top function m_axi where no directive says what they are.

        Vitis's flow does so (UG1399, "Vitis Kernel Flow").
        """
        for name in self.top.arguments:
            if name in self.top.pointers or self.top.dimensions.get(name):
                self.top.ports.setdefault(name, {"mode": "m_axi"})

    def warn_of_ultra_ram(self, part: str, has_it: bool) -> None:
        """Say which arrays are to be in UltraRAM, where the part has none."""
        for function in self.functions:
            for name, array in function.arrays.items():
                if "uram" in array.implementation and not has_it:
                    at = f"{shown(Path(function.place.file))}:{function.place.line}"
                    self.warnings.append(
                        f"{at}: {part} has no UltraRAM; {name} counts as block RAM: write impl=bram"
                    )

    def loop_at(self, place: Place | None) -> LoopPlan | None:
        """Return the loop whose keyword is at a place; None where the place is not known."""
        return self._loops.get(key_of(place)) if place else None

    def function_at(self, place: Place, name: str) -> FunctionPlan | None:
        """Return the function whose name is on a line."""
        for function in self.functions:
            at = function.place
            if at.line == place.line and function.name in name and at.path == place.path:
                return function
        return None

    @functools.cached_property
    def _loops(self) -> dict[tuple[str, int, int], LoopPlan]:
        loops = (loop for function in self.functions for loop in function.all_loops())
        return {key_of(loop.place): loop for loop in loops}

    def settle(self, trips: Trips, nests: Mapping[tuple[str, int, int], bool]) -> None:
        """Decide what the tool pipelines and unrolls by itself.

        Parameters
        ----------
        trips : dict
            The iterations of each loop, by file, line and column, as LLVM found them; None where
            they are not known.
        nests : dict
            For loops that hold another one only, whether that is all the work in them.
        """
        self._swallow_all()
        if self.tool == "vitis" and self.automatic:
            for function in self.functions:
                if function.interval is None and not (function.off or function.swallowed):
                    for loop in function.loops:
                        _pipeline_by_itself(loop, trips, nests)
            self._swallow_all()
        self._warn_of_limits()

    def _swallow_all(self) -> None:
        """Unroll and take in what is in pipelines: a function does so for all its calls."""
        for function in self.functions:
            if function.interval is not None:
                by = f"PIPELINE of {function.name}"
                for loop in function.loops:
                    _swallow(loop, by)
                for other in function.callees:
                    _swallow_function(other, by)
            for loop in function.all_loops():
                if loop.interval is not None:
                    loop.floor = max(loop.called(), key=lambda one: one.interval or 0, default=None)
                    by = f"PIPELINE of the loop in line {loop.place.line}"
                    for inner in loop.inner:
                        _swallow(inner, by)
                    for other in loop.callees:
                        _swallow_function(other, by)

    def _warn_of_limits(self) -> None:
        """Say which ALLOCATION of a function has no effect, since pipelines take it in."""
        for function in self.functions:
            at = f"{shown(Path(function.place.file))}:{function.place.line}"
            for other in self.functions:
                if other.swallowed and other.name.lower() in function.limits:
                    self.warnings.append(
                        f"{at}: {function.name} has ALLOCATION of {other.name}, which has no "
                        "effect in this estimate: a pipeline takes that function in"
                    )


def _why_kept(loop: LoopPlan, *, constant: bool) -> str:
    """Say why a loop that is to be unrolled is not."""
    why = "it is too large" if constant else "how often it runs is no constant"
    mend = "give UNROLL a factor" if constant else "give it a constant bound and an `if` in it"
    return (
        f"{shown(Path(loop.place.file))}:{loop.place.line}: {loop.unrolled_by} has no effect: this "
        f"loop cannot be unrolled, {why}; {mend}"
    )


def key_of(place: Place) -> tuple[str, int, int]:
    """Return a place as loops are looked up by it."""
    return place.path, place.line, place.column


def _pipeline_by_itself(
    loop: LoopPlan, trips: Trips, nests: Mapping[tuple[str, int, int], bool]
) -> None:
    """Pipeline a nest as Vitis does: short inner loops are unrolled, what is around pipelined.

    A loop that holds nothing but another one is flattened with it instead, unless the compiler has
    moved an access of memory out of that one: a sum's element, or one that stays the same.
    """
    if loop.interval is not None:
        return
    gone = [_is_unrolled(inner, trips) for inner in loop.inner]
    short = all(map(lambda inner, out: out or _is_short(inner, trips), loop.inner, gone))
    calls_loops = any(map(_has_loops, loop.called()))
    free = loop.inner and loop.unroll and not (loop.off or loop.dataflow or calls_loops)
    alone = nests.get(key_of(loop.place), loop.perfect)
    if free and short and (all(gone) or not alone):
        loop.interval, loop.automatic = 0, True
        return
    for inner in loop.inner:
        _pipeline_by_itself(inner, trips, nests)
    if loop.unroll and not (loop.inner or loop.off or loop.dataflow or calls_loops):
        loop.interval, loop.automatic = 0, True


def _has_loops(function: FunctionPlan) -> bool:
    """Whether a call runs loops; those of a function that a pipeline calls are unrolled."""
    return any(loop.unroll != 0 for loop in function.all_loops())


def _is_unrolled(loop: LoopPlan, trips: Trips) -> bool:
    """Whether nothing is left of a loop: UNROLL takes it, or LLVM did, since it runs once."""
    if key_of(loop.place) not in trips:
        return bool(trips) and loop.fixed
    count = trips[key_of(loop.place)]
    return count is not None and (loop.unroll == 0 or 1 < count <= loop.unroll)


def _is_short(loop: LoopPlan, trips: Trips, around: int = 1) -> bool:
    """Whether a loop, with those in it and `around` it, is short and no directive speaks of it.

    Unrolled together they become as many copies as their iterations multiplied.
    """
    count = trips.get(key_of(loop.place))
    asked = loop.interval is not None or loop.unroll != 1 or loop.off or loop.dataflow
    if asked or count is None or any(map(_has_loops, loop.callees)):
        return False
    copies = count * around
    return copies <= _PIPELINE_LOOPS and all(_is_short(one, trips, copies) for one in loop.inner)


def _swallow(loop: LoopPlan, by: str) -> None:
    """Unroll a loop completely, since what is around it is a pipeline, named `by`."""
    for one in loop.walk():
        if one.unroll != 0:
            one.unroll, one.unrolled_by = 0, by
        one.interval = None
        for other in one.callees:
            _swallow_function(other, by)


def _swallow_function(function: FunctionPlan, by: str) -> None:
    if function.swallowed:
        return
    function.swallowed = True
    for loop in function.loops:
        _swallow(loop, by)
    for other in function.callees:
        _swallow_function(other, by)


def make_plan(
    programs: Iterable[tuple[Program, Constants]], top: str, tool: str, *,
    automatic: bool = True, buses: bool = False,
) -> Plan:  # fmt: skip
    """Return what the directives in the scopes of programs ask for.

    Parameters
    ----------
    programs : iterable of (Program, Constants)
        One a source file; the first holds the top function.
    top : str
        Its name.
    tool : {"vitis", "vivado"}
        Whose defaults count.
    automatic, buses : bool
        Whether Vitis HLS pipelines loops by itself; whether arguments that are arrays or pointers
        are ports of m_axi unless INTERFACE speaks of them, as in Vitis's flow (UG1399).
    """
    functions: dict[Cursor, FunctionPlan] = {}
    links: list[tuple[FunctionPlan, LoopPlan | None, Scope, Program]] = []
    found: list[FunctionPlan] = []
    for program, constants in programs:
        for scope in program.scopes:
            function = _function(scope, constants, links, program)
            functions[scope.node.hash] = function
            found.append(function)
    for function, loop, scope, program in links:
        _link(function, loop, scope, program, functions, found)
    wanted = re.sub(r"<.*", "", top).split("::")[-1]
    first = next((item for item in found if item.name == wanted), found[0])
    plan = Plan(first, found, tool, automatic=automatic)
    if buses and tool == "vitis":
        plan.default_to_buses()
    for function, loop, scope, _ in links:
        if loop is None and function.bindings:
            _note_bindings(plan, function, scope)
    return plan


def _note_bindings(plan: Plan, function: FunctionPlan, scope: Scope) -> None:
    """Note at which lines the variables get their values whose operators are asked for."""
    for name, file, line in lines_of(scope.node, function.bindings):
        plan.bindings.setdefault((file, line), []).extend(function.bindings[name])


def _function(
    scope: Scope,
    constants: Constants,
    links: list[tuple[FunctionPlan, LoopPlan | None, Scope, Program]],
    program: Program,
) -> FunctionPlan:
    node = scope.node
    place = Place(node.location.file.name, node.location.line, node.location.column)
    function = FunctionPlan(node.spelling, place)
    arguments = [child for child in node.get_children() if child.kind == CursorKind.PARM_DECL]
    function.arguments = tuple(child.spelling for child in arguments)
    function.pointers = tuple(
        one.spelling for one in arguments if is_pointer(one.type.get_canonical())
    )
    for child in walk(node):
        if child.kind in (CursorKind.VAR_DECL, CursorKind.PARM_DECL):
            dimensions, size, bits = dimensions_of(child)
            if dimensions or is_sized_by_template(child):
                function.dimensions.setdefault(child.spelling, dimensions)
            if size > 0 and (dimensions or child.type.get_pointee().get_size() > 0):
                function.words.setdefault(child.spelling, (size, bits))
    labels = {
        (part.location.line, part.location.column): child.spelling
        for child in walk(node)
        if child.kind == CursorKind.LABEL_STMT
        for part in child.get_children()
    }
    links.append((function, None, scope, program))
    _scopes(scope, function, None, labels, constants, links, program)
    return function


def _scopes(
    scope: Scope,
    function: FunctionPlan,
    loop: LoopPlan | None,
    labels: dict[tuple[int, int], str],
    constants: Constants,
    links: list[tuple[FunctionPlan, LoopPlan | None, Scope, Program]],
    program: Program,
) -> None:
    for item in scope.pragmas:
        if not is_placed(item, scope):
            continue
        if loop is not None and item.name in LOOP_NAMES:
            of_loop(loop, item, constants)
        else:
            of_function(function, item, constants)
    for inner in scope.inner:
        made = loop
        if inner.is_loop:
            at = inner.node.location
            label = labels.get((at.line, at.column), "")
            made = LoopPlan(Place(at.file.name, at.line, at.column), label, function, loop)
            made.perfect, made.fixed = is_perfect(inner), is_fixed(inner.node)
            made.breaks = breaks(inner.body)
            (function.loops if loop is None else loop.inner).append(made)
            links.append((function, made, inner, program))
        _scopes(inner, function, made, labels, constants, links, program)


def _link(
    function: FunctionPlan,
    loop: LoopPlan | None,
    scope: Scope,
    program: Program,
    functions: dict[Cursor, FunctionPlan],
    found: list[FunctionPlan],
) -> None:
    """Note which functions a scope calls."""
    into = function.callees if loop is None else loop.callees
    for call in calls(scope.body):
        plans = [functions.get(callee.hash) for callee in program.callees(call)]
        if not any(plans):
            plans = [one for one in found if one.name == call.spelling]
        into += [
            one for one in plans if one is not None and one not in into and one is not function
        ]
