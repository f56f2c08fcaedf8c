"""What directives ask of loops, functions and arrays: their words, put into plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pynq_torch.paths import shown

from ..constants import Constants
from ..directives import port_name
from ..lint_effects import is_core
from ..lint_pragmas import has_wrong_word
from ..lint_tree import Directive
from ..spelling import MODES
from .bindings import Binding, core_binding, op_binding
from .place import Place

__all__ = [
    "LOOP_NAMES",
    "ArrayPlan",
    "FunctionPlan",
    "LoopPlan",
    "MergePlan",
    "of_function",
    "of_loop",
]

#: A line and a column.
At = tuple[int, int]


@dataclass
class MergePlan:
    """A LOOP_MERGE: whether it is forced, and the loops directly in its scope, which become one."""

    forced: bool
    loops: list[LoopPlan]
    #: Whether it is of a whole body: then loops of functions that are inlined there join.
    whole: bool


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
    #: What its own directive asks for, where it is to be unrolled for a pipeline around it.
    own_interval: int | None = None
    automatic: bool = False
    off: bool = False
    rewinds: bool = False
    #: 1: not unrolled; 0: completely; else the factor.
    unroll: int = 1
    #: The directive that asks for it.
    unrolled_by: str = "UNROLL"
    #: Whether that leaves out the checks between copies whether the loop ends there.
    unchecked: bool = False
    flatten: bool | None = None
    merges: list[MergePlan] = field(default_factory=list)
    trips: tuple[int, int] | None = None
    dataflow: bool = False
    least: int | None = None
    #: Whether another loop is all that is in it.
    perfect: bool = False
    #: Whether it begins and ends at constants.
    fixed: bool = False
    #: Whether a `break` may end it.
    breaks: bool = False
    #: Where each branch in it begins and ends (line, column); those of loops in it are theirs.
    branches: list[tuple[At, At]] = field(default_factory=list)
    #: Variables ("" for all) -> after how many iterations a read meets a write, 0 for never; and
    #: those of which a read need not wait for a write of its own iteration.
    distances: dict[str, int] = field(default_factory=dict)
    unordered: set[str] = field(default_factory=set)

    #: Of the functions that a pipeline calls, the one whose PIPELINE asks for the greatest II.
    floor: FunctionPlan | None = None

    @property
    def by_itself(self) -> bool:
        """Whether the tool makes it a pipeline, and unrolls a loop in it for that, unasked.

        It does so late, when arrays are cut already.
        """
        called = (one for callee in self.called() for one in callee.called())
        loops = [*self.inner, *(one for function in called for one in function.all_loops())]
        return self.automatic and any(one.unrolled_by != "UNROLL" for one in loops)

    def called(self) -> Iterator[FunctionPlan]:
        """Yield the functions that are called in this loop and those in it."""
        for loop in self.walk():
            yield from loop.callees

    def walk(self) -> Iterator[LoopPlan]:
        """Yield this loop and those in it."""
        yield self
        for loop in self.inner:
            yield from loop.walk()


@dataclass
class ArrayPlan:
    """How an array is kept and cut: dimension (from 1, 0 for all), kind and factor of each cut.

    What is cut in the `reshaped` dimensions is side by side in the words of one memory.
    """

    parts: list[tuple[int, str, int]] = field(default_factory=list)
    reshaped: set[int] = field(default_factory=set)
    kind: str = ""
    implementation: str = ""
    latency: int | None = None
    depth: int | None = None
    #: File and line of the STREAM that makes it a FIFO.
    streamed: tuple[str, int] = ("", 0)
    #: Whether STREAM says that it stays a memory.
    pingpong: bool = False


@dataclass(eq=False)
class FunctionPlan:
    """A function as written, with what is asked of it."""

    name: str
    place: Place
    loops: list[LoopPlan] = field(default_factory=list)
    callees: list[FunctionPlan] = field(default_factory=list)
    inline: bool | None = None
    interval: int | None = None
    #: Whether PIPELINE off keeps the tool from pipelining its loops unasked.
    off: bool = False
    #: Whether what cuts a struct cuts the arrays in it.
    cuts_structs: bool = False
    #: Whether long sums become trees.
    balanced: bool = True
    dataflow: bool = False
    merges: list[MergePlan] = field(default_factory=list)
    branches: list[tuple[At, At]] = field(default_factory=list)
    #: Each call has hardware of its own for its constants: the calls are inlined.
    instantiated: bool = False
    arrays: dict[str, ArrayPlan] = field(default_factory=dict)
    dimensions: dict[str, tuple[int, ...]] = field(default_factory=dict)
    #: Bytes of an element of each array, and the bits that are used of them.
    words: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: The same of arrays outside of functions that it names.
    outside: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: Of each struct that is taken apart, and those in it, the byte where a member is -> its name;
    #: and the file and line where its type is.
    members: dict[str, dict[int, str]] = field(default_factory=dict)
    classes: dict[str, tuple[str, int]] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    #: Variable -> how the operations that it gets its value from are built.
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    ports: dict[str, dict[str, str]] = field(default_factory=dict)
    distances: dict[str, int] = field(default_factory=dict)
    unordered: set[str] = field(default_factory=set)
    least: int | None = None
    arguments: tuple[str, ...] = ()
    #: Those of them that are arrays or pointers.
    pointers: tuple[str, ...] = ()
    #: Arguments and variables that are streams, or arrays of them.
    streams: frozenset[str] = frozenset()
    #: Those whose elements are of a type of C's own, no class.
    plain: frozenset[str] = frozenset()
    #: Variables that are there before the first call.
    static: frozenset[str] = frozenset()
    #: File, line and depth of what makes its channels FIFOs where no STREAM names them.
    channels: tuple[str, int, int] | None = None
    #: Inlined because a pipeline calls it.
    swallowed: bool = False

    def array(self, name: str) -> ArrayPlan:
        """Return the plan of an array, made where there is none."""
        return self.arrays.setdefault(name, ArrayPlan())

    def reach(self, objects: FunctionPlan, home: tuple[str, int]) -> None:
        """Let what a method says of its class's arrays count for the objects of a function."""
        for name, kind in objects.classes.items():
            for one in objects.members.get(name, {}).values() if kind == home else ():
                self._reach_array(objects, one, f"{name}.{one}")

    def _reach_array(self, objects: FunctionPlan, name: str, variable: str) -> None:
        own = self.arrays.get(name)
        if own is not None and name not in self.dimensions:
            known = objects.arrays.setdefault(variable, own)
            known.parts += [cut for cut in own.parts if cut not in known.parts]
        if name in self.distances:
            objects.distances.setdefault(variable, self.distances[name])
        for loop in self.all_loops():
            if name in loop.distances:
                loop.distances.setdefault(variable, loop.distances[name])

    def called(self) -> list[FunctionPlan]:
        """Return this function and those that it calls, directly or not."""
        found = [self]
        for one in found:
            found += [other for other in one.callees if other not in found]
        return found

    def all_loops(self) -> Iterator[LoopPlan]:
        """Yield every loop written in the function."""
        for loop in self.loops:
            yield from loop.walk()


LOOP_NAMES = {
    "pipeline", "unroll", "loop_flatten", "loop_tripcount", "dependence", "dataflow", "latency",
    "loop_merge",
}  # fmt: skip


def of_loop(loop: LoopPlan, item: Directive, constants: Constants) -> None:
    """Note what a directive asks of a loop."""
    number = constants.number
    if _is_refused(item):
        return
    if item.name == "pipeline":
        if "off" in item.words:
            loop.off, loop.interval = True, None
        else:
            loop.interval = max(number(item.options.get("ii")) or 0, 0)
            loop.rewinds = "rewind" in item.words
    elif item.name == "unroll":
        factor = number(item.options.get("factor"))
        loop.unroll = 1 if _is_off(item) else max(factor, 1) if factor is not None else 0
        loop.unchecked = "skip_exit_check" in item.words
    elif item.name == "loop_flatten":
        loop.flatten = "off" not in item.words
    elif item.name == "loop_tripcount":
        most = number(item.options.get("max")) or number(item.options.get("avg"))
        least = number(item.options.get("min"))
        if most is not None or least is not None:
            low = least if least is not None else most or 0
            loop.trips = (low, max(low, most if most is not None else 0))
    elif item.name == "dependence":
        _dependence(loop, item, constants, _named(loop.function, item))
    elif item.name == "dataflow":
        loop.dataflow = True
    elif item.name == "latency":
        loop.least = number(item.options.get("min"))
    else:
        of_function(loop.function, item, constants)


def _is_refused(item: Directive) -> bool:
    """Whether a directive has a word that the tool does not know: it ignores the whole line."""
    return has_wrong_word(item) or (item.name in _WORDS and not {*item.words} <= _WORDS[item.name])


def _is_off(item: Directive) -> bool:
    return "off" in item.words or item.options.get("off", "").lower() == "true"


def _named(function: FunctionPlan, item: Directive) -> list[str]:
    """Return the arrays that a directive names: a member, or a struct with its members.

    What cuts or binds a struct does so to its members only where it is an array of structs; in
    Vitis HLS what cuts one cuts the arrays in it (`buffer.array` in a log of 2020.2).
    """
    if item.variable not in function.members:
        return [item.member if item.variable == "this" else item.variable]
    found, name = [item.member], item.member
    cuts = function.cuts_structs and item.name in ("array_partition", "array_reshape")
    if cuts or function.dimensions.get(name) or item.name == "dependence":
        found += [f"{name}.{one}" for one in function.members.get(name, {}).values()]
    return found


def _dependence(
    plan: LoopPlan | FunctionPlan, item: Directive, constants: Constants, variables: list[str]
) -> None:
    """Note what a DEPENDENCE says; its type is ``inter`` by default (UG1399).

    Schedules here wait for reads after writes alone: what it says of the two other directions
    changes none.
    """
    given = [item.options.get(name, "") for name in ("type", "direction")]
    kinds = {word.lower() for word in (*given, *item.words)}
    if kinds & {"war", "waw"}:
        return
    if "intra" in kinds:
        if item.is_false:
            plan.unordered.update(variables)
        return
    distance = 0 if item.is_false else constants.number(item.options.get("distance"))
    if distance is not None:
        plan.distances.update(dict.fromkeys(variables, distance))


def of_function(function: FunctionPlan, item: Directive, constants: Constants) -> None:
    """Note what a directive asks of a function or of its variables."""
    number = constants.number
    name, options = item.name, item.options
    if _is_refused(item):
        return
    if name == "pipeline":
        function.off = "off" in item.words
        function.interval = None if function.off else max(number(options.get("ii")) or 0, 0)
    elif name == "inline":
        function.inline = "off" not in item.words
    elif name == "function_instantiate":
        function.instantiated = True
    elif name == "dataflow":
        function.dataflow = True
    elif name == "expression_balance":
        function.balanced = "off" not in item.words
    elif binding := _binding(item, constants):
        function.bindings.setdefault(item.variable, []).append(binding)
    elif name in ("aggregate", "data_pack"):
        function.members.pop(item.variable, None)
    elif name in _OF_VARIABLES:
        for variable in _named(function, item) if item.variable else ():
            _of_variable(function.array(variable), item, constants)
    elif name == "allocation":
        limit = number(options.get("limit"))
        kind = options.get("instances") or next((w for w in item.words if w not in _ALLOCATES), "")
        if limit and kind:
            function.limits[kind.lower()] = limit
    elif name == "dependence":
        _dependence(function, item, constants, _named(function, item))
    elif name == "interface":
        _interface(function, item, number)
    elif name == "latency":
        function.least = number(options.get("min"))


def _binding(item: Directive, constants: Constants) -> Binding | None:
    options, latency = item.options, constants.number(item.options.get("latency"))
    if not item.variable:
        return None
    if item.name == "bind_op":
        return op_binding(options.get("op", "").lower(), options.get("impl", "").lower(), latency)
    if item.name == "resource":
        return core_binding(options.get("core", "").lower(), latency)
    return None


def _of_variable(plan: ArrayPlan, item: Directive, constants: Constants) -> None:
    number, options = constants.number, item.options
    if item.name == "stream":
        if _is_off(item) or options.get("type", "fifo").lower() != "fifo":
            plan.pingpong = True
            return
        plan.depth, plan.kind = number(options.get("depth")), "fifo"
        plan.streamed = item.pragma.file, item.pragma.line
    elif item.name in ("array_partition", "array_reshape"):
        if _is_off(item):
            return
        kind = options.get("type") or next((w for w in item.words if w in _CUTS), "complete")
        dimension, factor = number(options.get("dim")), max(number(options.get("factor")) or 0, 0)
        if kind.lower() != "complete" and not factor:
            return  # a warning is for it
        cut = (1 if dimension is None else dimension, kind.lower(), factor)
        plan.parts.append(cut)
        if item.name == "array_reshape":
            plan.reshaped.add(cut[0])
    elif not is_core(options.get("core", "")):
        return  # a warning is for it
    elif core := (options.get("core") or options.get("type") or "").lower():
        plan.kind, plan.implementation = core, options.get("impl", "").lower()
        plan.latency = number(options.get("latency"))


def _interface(
    function: FunctionPlan, item: Directive, number: Callable[[str | None], int | None]
) -> None:
    mode = item.options.get("mode") or (item.words[0] if item.words else "")
    values = {name: number(item.options.get(name)) for name in _NUMBERS}
    options = item.options | {name: str(n) for name, n in values.items() if n is not None}
    options["written at"] = f"{shown(Path(item.pragma.file))}:{item.pragma.line}"
    for port in map(port_name, (item.options.get("port") or "").split(",")):
        known = function.ports.get(port, {"mode": ""})
        if port and mode.lower() not in MODES:  # none, or one that a warning is for
            function.ports[port] = known if mode else {**known, **options}
        elif port and mode != "s_axilite":
            function.ports[port] = {"mode": mode, **options}
        elif port:
            function.ports.setdefault(port, {"mode": mode, **options})


#: Options of INTERFACE that count, and may be macros.
_NUMBERS = ("latency", "max_widen_bitwidth")
_CUTS = ("cyclic", "block", "complete")
_WORDS = {
    "pipeline": {"off", "rewind", "enable_flush", "flush", "frp"},
    "array_partition": {"off", *_CUTS},
    "array_reshape": {"off", "object", *_CUTS},
}
#: Directives of a variable.
_OF_VARIABLES = ("array_partition", "array_reshape", "bind_storage", "resource", "stream")
_ALLOCATES = ("function", "operation", "core", "instances")
