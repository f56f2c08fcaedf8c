"""What the directives ask of each loop, function and array, and what the tool does unasked.

Pragmas stand in the source, directives in a Tcl or configuration file; both end in one plan. The
rules are those of UG1399, "Optimizing the Kernel" and "config_compile", and of UG902 for Vivado HLS.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pynq_torch.errors import needs

from ..constants import Constants
from ..directives import Pragma, config_lines, tcl_words
from ..lint_tree import Directive, Program, Scope, calls
from .compiler import Place

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, CursorKind

__all__ = ["ArrayPlan", "FunctionPlan", "LoopPlan", "Plan", "directives_of", "make_plan"]

#: Vitis pipelines a loop of at least this many iterations by itself (config_compile).
_PIPELINE_LOOPS = 64
#: Iterations of loops by file, line and column; None where LLVM does not know them.
Trips = dict[tuple[str, int, int], int | None]


@dataclass(eq=False)
class LoopPlan:
    """A loop as written, with what is asked of it."""

    place: Place
    label: str
    function: FunctionPlan
    parent: LoopPlan | None = None
    inner: list[LoopPlan] = field(default_factory=list)
    callees: list[FunctionPlan] = field(default_factory=list)
    #: None: not pipelined; 0: pipelined at the least interval; else the interval asked for.
    interval: int | None = None
    automatic: bool = False
    off: bool = False
    rewind: bool = False
    #: 1: not unrolled; 0: completely; else the factor.
    unroll: int = 1
    flatten: bool | None = None
    trips: tuple[int, int] | None = None
    dataflow: bool = False
    least: int | None = None
    #: Variables ("" for all) whose iterations are called independent.
    independent: set[str] = field(default_factory=set)

    def walk(self) -> Iterator[LoopPlan]:
        """Yield this loop and those in it, calls followed."""
        yield self
        for loop in self.inner:
            yield from loop.walk()


@dataclass
class ArrayPlan:
    """How an array is cut and kept: for each dimension (1 is the outermost, 0 all) kind and factor."""

    parts: list[tuple[int, str, int]] = field(default_factory=list)
    kind: str = ""
    implementation: str = ""
    latency: int | None = None
    depth: int | None = None


@dataclass(eq=False)
class FunctionPlan:
    """A function as written, with what is asked of it."""

    name: str
    place: Place
    loops: list[LoopPlan] = field(default_factory=list)
    callees: list[FunctionPlan] = field(default_factory=list)
    inline: bool | None = None
    interval: int | None = None
    dataflow: bool = False
    arrays: dict[str, ArrayPlan] = field(default_factory=dict)
    dimensions: dict[str, tuple[int, ...]] = field(default_factory=dict)
    operators: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    ports: dict[str, dict[str, str]] = field(default_factory=dict)
    independent: set[str] = field(default_factory=set)
    least: int | None = None
    arguments: tuple[str, ...] = ()
    #: Inlined because a pipeline calls it.
    swallowed: bool = False

    def array(self, name: str) -> ArrayPlan:
        """Return the plan of an array, made where there is none."""
        return self.arrays.setdefault(name, ArrayPlan())

    def all_loops(self) -> Iterator[LoopPlan]:
        """Yield every loop written in the function."""
        for loop in self.loops:
            yield from loop.walk()


@dataclass
class Plan:
    """Everything the directives say of a kernel."""

    top: FunctionPlan
    functions: list[FunctionPlan]
    tool: str
    warnings: list[str] = field(default_factory=list)

    def needs_trips(self) -> bool:
        """Whether trip counts decide what the tool does by itself."""
        loops = [loop for function in self.functions for loop in function.all_loops()]
        return self.tool == "vitis" and any(loop.inner and loop.interval is None for loop in loops)

    def loop_at(self, place: Place) -> LoopPlan | None:
        """Return the loop whose keyword is at a place."""
        return self._loops().get((_real(place.file), place.line, place.column))

    def function_at(self, place: Place, name: str) -> FunctionPlan | None:
        """Return the function whose name is on a line."""
        for function in self.functions:
            at = function.place
            if at.line == place.line and function.name in name and _real(at.file) == _real(place.file):
                return function
        return None

    def _loops(self) -> dict[tuple[str, int, int], LoopPlan]:
        return {
            (_real(loop.place.file), loop.place.line, loop.place.column): loop
            for function in self.functions
            for loop in function.all_loops()
        }

    def settle(self, trips: Trips) -> None:
        """Decide what the tool pipelines and unrolls by itself.

        Parameters
        ----------
        trips : dict
            The iterations of each loop, by file, line and column, as LLVM found them; None where
            they are not known.
        """
        if self.tool == "vitis":
            for function in self.functions:
                if function.interval is None:
                    for loop in function.loops:
                        _pipeline_by_itself(loop, trips)
        for function in self.functions:
            if function.interval is not None:
                for loop in function.loops:
                    _swallow(loop)
                for other in function.callees:
                    _swallow_function(other)
            for loop in function.all_loops():
                if loop.interval is not None:
                    for inner in loop.inner:
                        _swallow(inner)
                    for other in loop.callees:
                        _swallow_function(other)


def _real(file: str) -> str:
    return str(Path(file).resolve())


def _pipeline_by_itself(loop: LoopPlan, trips: Trips) -> None:
    """Pipeline a nest as Vitis does: short inner loops are unrolled, the loop around them pipelined."""
    if loop.interval is not None or loop.unroll == 0:
        return
    if loop.inner and all(_is_short(inner, trips) for inner in loop.inner) and not loop.off:
        loop.interval, loop.automatic = 0, True
        return
    for inner in loop.inner:
        _pipeline_by_itself(inner, trips)
    calls_loops = any(any(callee.all_loops()) for callee in loop.callees)
    if not (loop.inner or loop.off or loop.dataflow or calls_loops):
        loop.interval, loop.automatic = 0, True


def _is_short(loop: LoopPlan, trips: Trips) -> bool:
    """Whether a loop, and each in it, is short and no directive speaks of it."""
    count = trips.get((_real(loop.place.file), loop.place.line, loop.place.column))
    asked = loop.interval is not None or loop.unroll != 1 or loop.off or loop.dataflow
    if asked or count is None or count >= _PIPELINE_LOOPS or any(any(c.all_loops()) for c in loop.callees):
        return False
    return all(_is_short(inner, trips) for inner in loop.inner)


def _swallow(loop: LoopPlan) -> None:
    """Unroll a loop completely, since what is around it is a pipeline."""
    for one in loop.walk():
        one.unroll, one.interval = 0, None
        for other in one.callees:
            _swallow_function(other)


def _swallow_function(function: FunctionPlan) -> None:
    if function.swallowed:
        return
    function.swallowed = True
    for loop in function.loops:
        _swallow(loop)
    for other in function.callees:
        _swallow_function(other)


def directives_of(path: Path) -> Iterator[tuple[str, Directive]]:
    """Yield the location (``top/loop``) and the directive of each line of a Tcl or cfg file."""
    for where, line in config_lines(path):
        text = line.strip()
        file, _, number = where.rpartition(":")
        if text.startswith("set_directive_"):
            try:
                words = shlex.split(text, comments=True)
            except ValueError:
                continue
            options, positional = tcl_words(words[1:])
            name = words[0].removeprefix("set_directive_").lower()
        elif text.startswith("syn.directive."):
            key, _, value = text.partition("=")
            name = key.removeprefix("syn.directive.").strip().lower()
            first, *rest = shlex.split(value) or [""]
            pairs = [word.partition("=") for word in rest]
            options = {k.lower().lstrip("-"): v or "true" for k, e, v in pairs if e}
            flags = {k.lower(): "true" for k, e, _ in pairs if not e}
            positional = [first]
            if flags and name in _NAMES_VARIABLE and "variable" not in options:
                positional.append(next(iter(flags)))
                flags.pop(positional[-1])
            options |= flags
        else:
            continue
        if not positional:
            continue
        if len(positional) > 1 and name in _NAMES_VARIABLE:
            options.setdefault("variable", positional[1])
        if name == "interface" and len(positional) > 1:
            options.setdefault("port", positional[1])
        given = {key: value for key, value in options.items() if value != "true"}
        flags_only = tuple(key for key, value in options.items() if value == "true")
        pragma = Pragma(file, int(number), text)
        yield positional[0], Directive(pragma, name, flags_only, given)


_NAMES_VARIABLE = {
    "array_partition", "array_reshape", "bind_storage", "resource", "stream", "dependence", "bind_op",
}  # fmt: skip


def make_plan(
    programs: Iterable[tuple[Program, Constants]],
    top: str,
    tool: str,
    directives: Iterable[tuple[str, Directive]],
) -> Plan:
    """Put pragmas and directives together.

    Parameters
    ----------
    programs : iterable of (Program, Constants)
        One a source file; the first holds the top function.
    top : str
        Its name.
    tool : {"vitis", "vivado"}
        Whose defaults count.
    directives : iterable of (str, Directive)
        From :func:`directives_of`.
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
    plan = Plan(first, found, tool)
    for location, item in directives:
        _attach(plan, location, item)
    return plan


def _attach(plan: Plan, location: str, item: Directive) -> None:
    name, _, label = location.partition("/")
    function = next((one for one in plan.functions if one.name == name.split("::")[-1]), None)
    if function is None:
        plan.warnings.append(f"{item.pragma.where}: no function {name!r}; the directive is ignored")
        return
    numbers = Constants(dict, lambda name: False)
    label = label.split("/")[-1]
    if not label:
        _of_function(function, item, numbers)
        return
    loop = next((one for one in function.all_loops() if one.label == label), None)
    if loop is None:
        plan.warnings.append(
            f"{item.pragma.where}: {name} has no loop with the label {label!r}; the directive is "
            "ignored"
        )
        return
    _of_loop(loop, item, numbers)


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
    for child in node.walk_preorder():
        if child.kind in (CursorKind.VAR_DECL, CursorKind.PARM_DECL):
            dimensions = _dimensions(child)
            if dimensions:
                function.dimensions.setdefault(child.spelling, dimensions)
    labels = {
        (part.location.line, part.location.column): child.spelling
        for child in node.walk_preorder()
        if child.kind == CursorKind.LABEL_STMT
        for part in child.get_children()
    }
    links.append((function, None, scope, program))
    _scopes(scope, function, None, labels, constants, links, program)
    return function


def _dimensions(node: Cursor) -> tuple[int, ...]:
    kind, sizes = node.type.get_canonical(), []
    if node.kind == CursorKind.PARM_DECL and kind.get_pointee().get_array_size() > 0:
        sizes, kind = [0], kind.get_pointee()  # T a[][N]: the first one is not known here
    while kind.get_array_size() > 0 or (not sizes and "[" in kind.spelling and kind.get_array_size() == 0):
        sizes.append(kind.get_array_size())
        kind = kind.element_type.get_canonical()
    return tuple(sizes)


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
        if loop is not None and item.name in _LOOP_NAMES:
            _of_loop(loop, item, constants)
        else:
            _of_function(function, item, constants)
    for inner in scope.inner:
        made = loop
        if inner.is_loop:
            at = inner.node.location
            label = labels.get((at.line, at.column), "")
            made = LoopPlan(Place(at.file.name, at.line, at.column), label, function, loop)
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
        into += [one for one in plans if one is not None and one not in into and one is not function]


_LOOP_NAMES = {
    "pipeline", "unroll", "loop_flatten", "loop_tripcount", "dependence", "dataflow", "latency",
    "loop_merge",
}  # fmt: skip


def _of_loop(loop: LoopPlan, item: Directive, constants: Constants) -> None:
    number = constants.number
    if item.name == "pipeline":
        if "off" in item.words:
            loop.off, loop.interval = True, None
        else:
            loop.interval = number(item.options.get("ii")) or 0
            loop.rewind = "rewind" in item.words
    elif item.name == "unroll":
        factor = number(item.options.get("factor"))
        off = "off" in item.words or item.options.get("off", "").lower() == "true"
        loop.unroll = 1 if off else factor if factor is not None else 0
    elif item.name == "loop_flatten":
        loop.flatten = "off" not in item.words
    elif item.name == "loop_tripcount":
        most = number(item.options.get("max")) or number(item.options.get("avg"))
        least = number(item.options.get("min"))
        if most is not None or least is not None:
            loop.trips = (least if least is not None else most or 0, most if most is not None else least or 0)
    elif item.name == "dependence":
        if "false" in item.words or item.options.get("dependent", "").lower() == "false":
            loop.independent.add(item.variable)
    elif item.name == "dataflow":
        loop.dataflow = True
    elif item.name == "latency":
        loop.least = number(item.options.get("min"))
    else:
        _of_function(loop.function, item, constants)


def _of_function(function: FunctionPlan, item: Directive, constants: Constants) -> None:
    number = constants.number
    name, options = item.name, item.options
    variable = item.variable
    if name == "pipeline":
        function.interval = None if "off" in item.words else number(options.get("ii")) or 0
    elif name == "inline":
        function.inline = "off" not in item.words
    elif name == "dataflow":
        function.dataflow = True
    elif name in ("array_partition", "array_reshape"):
        kind = options.get("type") or next((w for w in item.words if w in _CUTS), "complete")
        dimension = number(options.get("dim"))
        factor = number(options.get("factor")) or 0
        cut = (1 if dimension is None else dimension, kind.lower(), factor)
        if variable:
            function.array(variable).parts.append(cut)
    elif name in ("bind_storage", "resource"):
        core = (options.get("core") or options.get("type") or "").lower()
        if variable and core:
            plan = function.array(variable)
            plan.kind, plan.implementation = core, options.get("impl", "").lower()
            plan.latency = number(options.get("latency"))
            function.operators.setdefault(variable, -1)
    elif name == "stream" and variable:
        function.array(variable).depth = number(options.get("depth"))
        function.array(variable).kind = "fifo"
    elif name == "allocation":
        limit = number(options.get("limit"))
        kind = options.get("instances") or next((w for w in item.words if w not in _ALLOCATES), "")
        if limit and kind:
            function.limits[kind.lower()] = limit
    elif name == "dependence":
        if "false" in item.words or options.get("dependent", "").lower() == "false":
            function.independent.add(variable)
    elif name == "interface":
        ports = (options.get("port") or "").split(",")
        mode = options.get("mode") or (item.words[0] if item.words else "")
        for port in ports:
            port = port.strip().strip("\"'").lstrip("&*").strip("()")
            if port and mode != "s_axilite":
                function.ports[port] = {"mode": mode, **options}
            elif port:
                function.ports.setdefault(port, {"mode": mode, **options})
    elif name == "latency":
        function.least = number(options.get("min"))


_CUTS = ("cyclic", "block", "complete")
_ALLOCATES = ("function", "operation", "core", "instances")
