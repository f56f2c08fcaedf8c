"""The plan of a kernel: what its directives ask of each function that is compiled.

What is written once may be compiled several times: each instance of a template has numbers of its
own in its pragmas, loops that run as often as it says, and calls of its own. The source has calls
in branches that are never taken, too, and templates of which there is no instance: what directives
ask of those is asked of nothing. Functions and calls therefore come from the compiler's raw module,
and libclang says what stands in them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from pynq_torch.errors import KernelBuildError, needs

from ..constants import Constants
from ..cursors import is_pointer
from ..lint_dataflow import is_stream
from ..lint_pragmas import is_behind_merge, is_placed, is_settled
from ..lint_tree import Directive, Program, Scope, walk
from .asked import LOOP_NAMES, FunctionPlan, LoopPlan, MergePlan, of_function, of_loop
from .bindings import lines_of
from .instances import original_of
from .marks import functions_of
from .not_modelled import is_of_part
from .place import Key, Place, apart, real_path
from .plan import Plan
from .written import (
    breaks,
    dimensions_of,
    has_plain_elements,
    home_of,
    is_fixed,
    is_open_array,
    is_perfect,
    is_sized_by_template,
    members_of,
)

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, CursorKind, StorageClass, Type

__all__ = ["make_plan"]

_METHODS = (CursorKind.CONSTRUCTOR, CursorKind.CXX_METHOD)


def make_plan(
    programs: Iterable[tuple[Program, Constants]], text: str, top: str, entry: str, tool: str, *,
    automatic: bool = True, buses: bool = False, channels: tuple[str, int, int] | None = None,
) -> Plan:  # fmt: skip
    """Return what the directives in the scopes of programs ask for.

    Parameters
    ----------
    programs : iterable of (Program, Constants)
        One a source file; the first holds the top function.
    text : str
        The raw module of all of them.
    top, entry : str
        The top function's name, and LLVM's where that is known: of a template's instance.
    tool : {"vitis", "vivado"}
        Whose defaults count.
    automatic, buses : bool
        Whether Vitis HLS pipelines loops by itself; whether arguments that are arrays or pointers
        are ports of m_axi unless INTERFACE speaks of them, as in Vitis's flow (UG1399).
    channels : tuple of str, int and int, optional
        File, line and depth of what makes arrays between processes FIFOs unasked.

    Raises
    ------
    KernelBuildError
        No code was made for the top function.
    """
    plans = _Plans(programs, text, tool)
    name = entry or plans.named(re.sub(r"<.*", "", top).split("::")[-1])
    plan = Plan(plans.of(name, top), name, plans.all(), tool)
    plan.automatic = automatic and tool == "vitis"
    if buses and tool == "vitis":
        plan.default_to_buses()
    for made in plans.made.values():
        made.plan.channels = channels
        for variable, file, line in lines_of(made.scope.node, made.plan.bindings):
            known = plan.bindings.setdefault((file, line), [])
            known += [one for one in made.plan.bindings[variable] if one not in known]
    return plan


@dataclass
class _Made:
    """A function's plan, the scope that it is written in, and the scopes of its loops."""

    plan: FunctionPlan
    scope: Scope
    tool: str
    loops: list[tuple[Scope, LoopPlan]] = field(default_factory=list)
    #: Scopes in which INLINE region or recursive speaks of calls, and what it says.
    regions: list[tuple[Scope, Directive]] = field(default_factory=list)
    #: How many loops are at a place.
    seen: Counter[Key] = field(default_factory=Counter)


class _Plans:
    """The plans of the functions of a raw module."""

    def __init__(self, programs: Iterable[tuple[Program, Constants]], text: str, tool: str) -> None:
        self._tool = tool
        self._written: dict[tuple[str, int], list[tuple[Scope, Constants]]] = defaultdict(list)
        self._first: tuple[Scope, Constants] | None = None
        for program, constants in programs:
            for scope in program.scopes:
                at = scope.node.location
                self._written[real_path(at.file.name), at.line].append((scope, constants))
                self._first = self._first or (scope, constants)
        self._calls: dict[str, list[tuple[str, Place | None]]] = {}
        self._places: dict[str, Place] = {}
        #: By LLVM's name; functions of one name and place in several files have one plan.
        self.made: dict[str, _Made] = {}
        for name, place, calls in functions_of(text):
            self._calls[name] = [*calls]
            if place is not None:
                self._places[name] = place
                if written := self._written_at(name, place):
                    self.made[name] = self._plan_of(place, *written)
        for name, made in self.made.items():
            self._link(name, made)
            if made.scope.node.kind in _METHODS:
                at = made.scope.node.semantic_parent.location
                for objects in self.all():
                    made.plan.reach(objects, (real_path(at.file.name), at.line))
        for name, made in self.made.items():
            self._inline(name, made)

    def all(self) -> list[FunctionPlan]:
        """Return every plan once."""
        return [*dict.fromkeys(made.plan for made in self.made.values())]

    def named(self, wanted: str) -> str:
        """Return LLVM's name of a function; ``""`` where no code was made of it."""
        exact = (name for name, made in self.made.items() if made.plan.name == wanted)
        pattern = re.compile(rf"\b{re.escape(wanted)}\b|\d{re.escape(wanted)}")
        return next(exact, None) or next(filter(pattern.search, self._calls), "")

    def of(self, name: str, top: str) -> FunctionPlan:
        """Return the plan of the top function, wherever a macro puts the function."""
        if name not in self.made and name in self._calls and self._first is not None:
            place = self._places.get(name, Place("", 0, 0, name))
            self.made[name] = self._plan_of(place, *self._first)
            self._link(name, self.made[name])
        if name not in self.made:
            raise KernelBuildError(f"no code was made for {top!r}", top)
        return self.made[name].plan

    def _written_at(self, name: str, place: Place) -> tuple[Scope, Constants] | None:
        """Return the scope of a function that is compiled; operators have other names there."""
        fits: list[tuple[int, Scope, Constants]] = []
        for scope, constants in self._written.get((place.path, place.line), ()):
            spelled = str(scope.node.spelling).partition("<")[0]
            if not spelled.isidentifier() or spelled in name:
                fits.append((len(spelled), scope, constants))
        best = max(fits, key=lambda one: one[0], default=None)
        return best and best[1:]

    def _plan_of(self, place: Place, scope: Scope, constants: Constants) -> _Made:
        for made in self.made.values():
            if made.scope is scope and made.plan.place.key == place.key:
                return made
        made = _Made(_function(scope, place), scope, self._tool)
        made.plan.cuts_structs = self._tool == "vitis"
        _fill(scope, made, None, _labels(scope.node), constants)
        return made

    def _link(self, name: str, made: _Made) -> None:
        """Note what a function calls, and which of its loops call it."""
        for callee, places in self._called(name, (), {name}):
            if callee is made.plan:
                continue
            holding: list[LoopPlan] = []
            for at in places:
                holding = holding or [loop for scope, loop in made.loops if _holds(scope, at)]
            for into in (made.plan.callees, *(loop.callees for loop in holding)):
                if callee not in into:
                    into.append(callee)

    def _inline(self, name: str, made: _Made) -> None:
        """Inline what INLINE region asks, and all that this calls where it is recursive."""
        for scope, item in made.regions:
            for callee, places in self._called(name, (), {name}):
                held = scope.parent is None or any(_holds(scope, at) for at in places)
                called = callee.called() if "recursive" in item.words else [callee]
                for one in called if held else ():
                    if one.inline is None and one is not made.plan:
                        one.inline = "off" not in item.words

    def _called(
        self, name: str, outer: tuple[Place, ...], seen: set[str]
    ) -> Iterator[tuple[FunctionPlan, tuple[Place, ...]]]:
        """Yield the plans of what a function calls, and where, from the innermost place.

        What has no plan, as lambdas and functions of headers, hands its calls on.
        """
        for callee, at in self._calls.get(name, ()):
            places = (at, *outer) if at is not None else outer
            if callee in self.made:
                yield self.made[callee].plan, places
            elif callee not in seen:
                seen.add(callee)
                yield from self._called(callee, places, seen)


def _holds(scope: Scope, place: Place) -> bool:
    """Whether a place is in a loop's body."""
    begin, end = scope.body.extent.start, scope.body.extent.end
    within = (begin.line, begin.column) <= (place.line, place.column) <= (end.line, end.column)
    return within and begin.file is not None and real_path(begin.file.name) == place.path


def _function(scope: Scope, place: Place) -> FunctionPlan:
    """Return the plan of a function, with its variables."""
    node = scope.node
    function = FunctionPlan(node.spelling, place)
    arguments = [child for child in node.get_children() if child.kind == CursorKind.PARM_DECL]
    function.arguments = tuple(child.spelling for child in arguments)
    function.pointers = tuple(
        one.spelling for one in arguments if is_pointer(one.type.get_canonical())
    )
    function.plain = frozenset(one.spelling for one in arguments if has_plain_elements(one.type))
    declared = [
        one for one in walk(node) if one.kind in (CursorKind.VAR_DECL, CursorKind.PARM_DECL)
    ]
    function.streams = frozenset(one.spelling for one in declared if is_stream(one.type))
    function.static = frozenset(
        one.spelling for one in declared if one.storage_class == StorageClass.STATIC
    )
    for child in declared:
        _note_members(function, child.spelling, child.type, child.kind == CursorKind.PARM_DECL)
        dimensions, size, bits = dimensions_of(child)
        if dimensions or is_sized_by_template(child):
            function.dimensions.setdefault(child.spelling, dimensions)
        is_open = is_open_array(child.type.get_canonical())
        if size > 0 and (dimensions or is_open or child.type.get_pointee().get_size() > 0):
            function.words.setdefault(child.spelling, (size, bits))
    for named in (one.referenced for one in walk(node) if one.kind == CursorKind.DECL_REF_EXPR):
        if named is not None and named.kind == CursorKind.VAR_DECL and _is_outside(named):
            dimensions, size, bits = dimensions_of(named)
            if dimensions and size > 0:
                function.outside[named.spelling] = size, bits
    if node.kind in _METHODS:
        _note_members(function, "this", node.semantic_parent.type, False)
    return function


def _is_outside(variable: Cursor) -> bool:
    """Whether a variable is of a file or a namespace."""
    kind = variable.semantic_parent.kind
    return kind in (CursorKind.TRANSLATION_UNIT, CursorKind.NAMESPACE)


def _note_members(function: FunctionPlan, variable: str, kind: Type, is_argument: bool) -> None:
    """Note the members of a variable that is a struct with arrays in it, or an argument's."""
    pointee = kind.get_canonical().get_pointee() if is_argument else kind
    for struct, name, at, sizes, size, bits in members_of(variable, pointee):
        function.members.setdefault(struct, {}).setdefault(at, name)
        if not is_argument:
            function.classes.setdefault(variable, home_of(kind))
        if sizes:
            function.dimensions.setdefault(f"{struct}.{name}", sizes)
            function.words.setdefault(f"{struct}.{name}", (size, bits))


def _labels(node: Cursor) -> dict[tuple[int, int], str]:
    """Return the labels in a function by line and column of what they are on."""
    return {
        (part.location.line, part.location.column): child.spelling
        for child in walk(node)
        if child.kind == CursorKind.LABEL_STMT
        for part in child.get_children()
    }


def _fill(
    scope: Scope, made: _Made, loop: LoopPlan | None, labels: dict[tuple[int, int], str],
    constants: Constants,
) -> None:  # fmt: skip
    """Put the directives and loops of a scope into a plan."""
    function = made.plan
    name = original_of(function.place.function)
    for item in scope.pragmas:
        asked = item.within(name) if is_placed(item, scope) else None
        if asked is None or is_of_part(item, scope):
            continue
        if made.tool == "vitis" and is_behind_merge(item, scope):
            continue
        if made.tool == "vitis" and item.name == "dependence":
            asked = _denied(asked)
        if asked.name == "inline" and {"region", "recursive"} & {*asked.words}:
            made.regions.append((scope, asked))
            if "region" in asked.words:
                continue
        if loop is not None and item.name in LOOP_NAMES:
            of_loop(loop, asked, constants)
        else:
            of_function(function, asked, constants)
    for inner in scope.inner:
        held = loop
        if inner.is_loop:
            at = inner.node.location
            place = Place(at.file.name, at.line, at.column, function.place.function)
            place = apart(place, made.seen)
            held = LoopPlan(place, labels.get((at.line, at.column), ""), function, loop)
            held.perfect, held.fixed = is_perfect(inner), is_fixed(inner.node)
            held.breaks = breaks(inner.body)
            (function.loops if loop is None else loop.inner).append(held)
            made.loops.append((inner, held))
        elif inner.kind == "if" and not is_settled(inner):
            ends = inner.node.extent.start, inner.node.extent.end
            begin, end = ((at.line, at.column) for at in ends)
            (loop or function).branches.append((begin, end))
        _fill(inner, made, held, labels, constants)
    (loop or function).merges.extend(_merges(scope, made))


def _denied(item: Directive) -> Directive:
    """Return a DEPENDENCE that is false where it does not say which it is.

    So Vitis HLS takes it (UG1399, "set_directive_dependence": a warning says so), and a distance
    does not matter then; Vivado HLS has `true` by default.
    """
    says = item.options.get("dependent", "").lower() in ("true", "false")
    if says or {"true", "false"} & {*item.words}:
        return item
    return replace(item, words=(*item.words, "false"))


def _merges(scope: Scope, made: _Made) -> Iterator[MergePlan]:
    """Yield what LOOP_MERGE asks for in a scope; in one half of an ``if`` it is of that half."""
    items = [item for item in scope.pragmas if item.name == "loop_merge"]
    if not items:
        return
    loops = [plan for inner, plan in made.loops if inner.parent is scope]
    if scope.kind == "if":
        parts = [(one.extent.start.line, one.extent.end.line) for one in scope.node.get_children()]
        at = items[0].pragma.line
        begin, end = next((part for part in parts if part[0] <= at <= part[1]), (at, at))
        loops = [one for one in loops if begin <= one.place.line <= end]
    forced, whole = any("force" in item.words for item in items), scope.kind not in ("block", "if")
    yield MergePlan(forced, loops, whole)
