"""What the directives ask of each loop, function and array, and what the tool does unasked.

Pragmas stand in the source, directives in a Tcl or configuration file; both end in one plan. The
rules are those of UG1399, "HLS Pragmas" and "config_compile", and of UG902 for Vivado HLS.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field

from .asked import FunctionPlan, LoopPlan
from .bindings import Bindings
from .instances import original_of
from .ir import Instruction
from .place import Key, Place, header_folders, plain_name
from .result import Cycles

__all__ = ["Plan", "Trips", "has_loops"]

#: Vitis pipelines a loop of at least this many iterations by itself (config_compile).
_PIPELINE_LOOPS = 64
#: Iterations of loops; None where LLVM does not know them.
Trips = dict[LoopPlan, int | None]


@dataclass
class Plan:
    """Everything the directives say of a kernel."""

    top: FunctionPlan
    #: The top function by LLVM's name.
    entry: str
    functions: list[FunctionPlan]
    tool: str
    warnings: list[str] = field(default_factory=list)
    #: Whether the tool pipelines loops by itself: Vitis HLS, unless a script forbids it.
    automatic: bool = False
    bindings: Bindings = field(default_factory=dict)
    #: Functions of which is said why they do not return: it is no loop without an end.
    unreturned: set[str] = field(default_factory=set)

    def needs_trips(self) -> bool:
        """Whether trip counts decide what the tool does by itself."""
        loops = [loop for function in self.functions for loop in function.all_loops()]
        free = (loop for loop in loops if loop.interval is None)
        return self.automatic and any(loop.inner or _calls_loops(loop) for loop in free)

    def members(self) -> dict[str, list[dict[int, str]]]:
        """Return the members of the structs that are taken apart, by the structs' names."""
        names = {name for one in self.functions for name in one.members}
        every = {name: [one.members.get(name, {}) for one in self.functions] for name in names}
        return {name: [one for one in found if one] for name, found in every.items()}

    def calls_in_turn(self) -> bool:
        """Whether a loop of DATAFLOW that is unrolled calls processes."""
        loops = [loop for one in self.functions if one.dataflow for loop in one.all_loops()]
        return any(loop.callees and loop.unroll != 1 for loop in loops)

    def unrolls_in_part(self) -> bool:
        """Whether a loop is unrolled by a factor."""
        return any(loop.unroll > 1 for one in self.functions for loop in one.all_loops())

    def note_turns(self, turns: Mapping[Place | None, Cycles]) -> None:
        """Take for loops that are unrolled in part how often they run as written, if it varies."""
        for place, (least, most) in turns.items():
            loop = self.loop_at(place)
            if loop is None or loop.unroll < 2 or least is None or most is None:
                continue
            if loop.unchecked and least == most and most % loop.unroll:
                self.warn(
                    f"{loop.place.shown}: skip_exit_check has no effect: {most:,} turns are no "
                    f"multiple of {loop.unroll}, so that the checks stay; leave it out"
                )
            elif least < most and loop.trips is None:
                loop.trips = least, most

    def forget_trips(self) -> None:
        """Leave out what LOOP_TRIPCOUNT says: it is of no run in particular."""
        for function in self.functions:
            for loop in function.all_loops():
                loop.trips = None

    def warn(self, text: str) -> None:
        """Take a warning, which instances of a template may have in common."""
        if text not in self.warnings:
            self.warnings.append(text)

    def warn_of_choices(self, chosen: Mapping[Instruction, str]) -> None:
        """Say which pointers the data choose: the estimate takes one of their arrays for all."""
        for item, base in chosen.items():
            at = f"{item.place.shown}: " if item.place else ""
            self.warn(
                f"{at}the data choose between pointers into several arrays; the estimate takes all "
                f"their accesses as those of {plain_name(base)!r}"
            )

    def left(self, trips: Trips) -> list[LoopPlan]:
        """Return the loops that are to be unrolled and still are there: `trips` has them."""
        loops = (loop for function in self.functions for loop in function.all_loops())
        return [loop for loop in loops if loop.unroll == 0 and loop in trips]

    def give_up(self, trips: Trips, steady: Container[LoopPlan]) -> None:
        """Say which loops could not be unrolled though a directive asks for it.

        `trips` has the iterations of the loops that are left. They are pipelines if their directive
        asks for it, or unasked (UG1399, "Automatic Loop Pipelining"); a function with one is none.
        Vivado HLS makes one pipeline of a loop and the only one in it that is `steady`.
        """
        kept = self.left(trips)
        for loop in kept:
            free = self.automatic and loop.own_interval is None
            loop.automatic = free and not (loop.off or loop.inner)
            loop.interval = 0 if loop.automatic else loop.own_interval
            alone = self.tool == "vivado" and loop in steady and not loop.inner
            outer = loop.parent if alone else None
            if outer is not None and outer.perfect and outer.interval is not None:
                loop.interval, outer.interval = outer.interval, None
            else:
                self.warn(_why_kept(loop, constant=trips[loop] is not None))
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

    def buses(self) -> list[str]:
        """Return the top function's arguments that are m_axi."""
        return [name for name, port in self.top.ports.items() if port.get("mode") == "m_axi"]

    def warn_of_ultra_ram(self, part: str, has_it: bool) -> None:
        """Say which arrays are to be in UltraRAM, where the part has none."""
        for function in self.functions:
            for name, array in function.arrays.items():
                if "uram" in array.implementation and not has_it:
                    at = function.place.shown
                    self.warn(
                        f"{at}: {part} has no UltraRAM; {name} counts as block RAM: write impl=bram"
                    )

    def loop_at(self, place: Place | None) -> LoopPlan | None:
        """Return the loop whose keyword is at a place; None where the place is not known."""
        return self._loops.get(place.key) if place else None

    def function_at(self, place: Place) -> FunctionPlan | None:
        """Return the function that is at a place."""
        return self._functions.get((place.path, place.function))

    def is_open(self, place: Place) -> bool:
        """Whether the tool decides by itself if it inlines a function that has loops."""
        one = self.function_at(place)
        if one is None or one is self.top or one.inline is not None or one.dataflow or one.off:
            return False
        if one.interval is not None or one.instantiated or one.swallowed:
            return False
        if one in self._processes() or not any(map(has_loops, one.called())):
            return False
        return not any(one.name.lower() in function.limits for function in self.functions)

    def _processes(self) -> list[FunctionPlan]:
        """Return the functions that DATAFLOW calls."""
        loops = (loop for function in self.functions for loop in function.all_loops())
        callers: list[FunctionPlan | LoopPlan] = [*self.functions, *loops]
        callers = [one for one in callers if one.dataflow]
        return [called for one in callers for called in one.callees]

    def is_shared(self, place: Place, several: Collection[str]) -> bool:
        """Whether a function is one piece of hardware for all its calls, with whatever constants.

        Each process of DATAFLOW is one of its own, with what it calls; where the tools' headers are
        told constants, they make a number (the twiddle factors of an unrolled FFT); and pointers of
        which calls hand over `several` sizes have no other size.
        """
        one = self.function_at(place)
        if one is None or place.file.startswith(header_folders()):
            return False
        if not all(map(one.dimensions.get, several)):
            return False
        return not any(one in process.called() for process in self._processes())

    def take_in(self, names: Container[str]) -> None:
        """Inline functions, and copies of them, at each of their calls."""
        for function in self.functions:
            if original_of(function.place.function) in names:
                function.inline = True

    @functools.cached_property
    def _functions(self) -> dict[tuple[str, str], FunctionPlan]:
        return {(one.place.path, one.place.function): one for one in self.functions}

    @functools.cached_property
    def _loops(self) -> dict[Key, LoopPlan]:
        loops = (loop for function in self.functions for loop in function.all_loops())
        return {loop.place.key: loop for loop in loops}

    def settle(self, trips: Trips, nests: Mapping[LoopPlan, bool]) -> None:
        """Decide what the tool pipelines and unrolls by itself, behind `swallow_all`.

        Parameters
        ----------
        trips : dict
            The iterations of each loop, as LLVM found them; None where they are not known.
        nests : dict
            For loops that hold another one only, whether that is all the work in them.
        """
        if self.automatic:
            off = [one for function in self.functions if function.off for one in function.called()]
            for function in self.functions:
                if function.interval is None and not (function in off or function.swallowed):
                    for loop in function.loops:
                        _pipeline_by_itself(loop, trips, nests)
            self.swallow_all()
        self._warn_of_limits()
        self._warn_of_merges()

    def swallow_all(self) -> None:
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
            at = function.place.shown
            for other in self.functions:
                if other.swallowed and other.name.lower() in function.limits:
                    self.warn(
                        f"{at}: {function.name} has ALLOCATION of {other.name}, which has no "
                        "effect in this estimate: a pipeline takes that function in"
                    )

    def warn_of_latencies(self, is_inlined: Callable[[FunctionPlan], bool]) -> None:
        """Say which LATENCY has no effect, since its loop is unrolled or its function dissolved."""
        for function in self.functions:
            asked = [(loop.place, loop.unrolled_by + " unrolls this loop")
                     for loop in function.all_loops()
                     if loop.least is not None and loop.unroll == 0]  # fmt: skip
            if function.least is not None and is_inlined(function):
                asked.append((function.place, f"{function.name} is inlined where it is called"))
            for place, why in asked:
                at = place.shown
                self.warn(f"{at}: LATENCY has no effect: {why}, and no state of its own is left")

    def _warn_of_merges(self) -> None:
        """Say which LOOP_MERGE has no loops left, since a pipeline unrolls them."""
        loops = (loop for function in self.functions for loop in function.all_loops())
        held: list[FunctionPlan | LoopPlan] = [*self.functions, *loops]
        for one, inner in ((each, asked.loops) for each in held for asked in each.merges):
            if len(inner) > 1 and all(loop.unroll == 0 for loop in inner):
                at = one.place.shown
                by = inner[0].unrolled_by
                self.warn(f"{at}: LOOP_MERGE has no effect: {by} unrolls the loops in there")


def _why_kept(loop: LoopPlan, *, constant: bool) -> str:
    """Say why a loop that is to be unrolled is not."""
    why = "it is too large" if constant else "how often it runs is no constant"
    mend = "give UNROLL a factor" if constant else "give it a constant bound and an `if` in it"
    return (
        f"{loop.place.shown}: {loop.unrolled_by} has no effect: this "
        f"loop cannot be unrolled, {why}; {mend}"
    )


def _pipeline_by_itself(loop: LoopPlan, trips: Trips, nests: Mapping[LoopPlan, bool]) -> None:
    """Pipeline a nest as Vitis does: short inner loops are unrolled, what is around pipelined.

    A loop that holds nothing but another one is flattened with it instead, unless the compiler has
    moved an access of memory out of that one: a sum's element, or one that stays the same. One that
    runs once is no loop.
    """
    if loop.interval is not None:
        return
    left, callees = _left_in(loop, trips), [*loop.callees]
    gone = [_is_unrolled(inner, trips) for inner in left]
    short = all(map(lambda inner, out: out or _is_short(inner, trips), left, gone))
    for inner, out in zip(left, gone, strict=True):
        callees += inner.called() if out else ()
    callees += [one for inner in loop.inner if inner not in left for one in inner.callees]
    calls_loops = _calls_long_loops(callees, trips)
    free = loop.inner and loop.unroll and not (loop.off or loop.dataflow or calls_loops)
    alone = nests.get(loop, loop.perfect)
    if free and short and not _runs_once(loop, trips) and (all(gone) or not alone):
        loop.interval, loop.automatic = 0, True
        return
    for inner in loop.inner:
        _pipeline_by_itself(inner, trips, nests)
    is_nest = _calls_loops(loop) and nests.get(loop, False)
    if loop.unroll and not (loop.inner or loop.off or loop.dataflow or calls_loops or is_nest):
        loop.interval, loop.automatic = 0, True


def _left_in(loop: LoopPlan, trips: Trips) -> list[LoopPlan]:
    """Return the loops in a loop; of one that runs once there are only those in it."""
    found: list[LoopPlan] = []
    for inner in loop.inner:
        found += _left_in(inner, trips) if _runs_once(inner, trips) else [inner]
    return found


def _calls_loops(loop: LoopPlan) -> bool:
    """Whether a loop calls what runs loops, or calls such a function in turn."""
    return any(has_loops(one) for called in loop.called() for one in called.called())


def _calls_long_loops(callees: Iterable[FunctionPlan], trips: Trips, around: int = 1) -> bool:
    """Whether loops are left in what a loop calls, if that is inlined in a pipeline.

    Those that are short are unrolled, as those in the loop itself are: a count of bits, hashes in
    two compressors, the rounds of a cipher.
    """
    called = dict.fromkeys(one for called in callees for one in called.called())
    if any(one.inline is False and has_loops(one) for one in called):
        return True
    return not all(_vanishes(one, trips, around) for function in called for one in function.loops)


def _vanishes(loop: LoopPlan, trips: Trips, around: int) -> bool:
    """Whether a loop and those in it are unrolled, or are where a pipeline is around them."""
    if loop.unroll == 0 or _is_unrolled(loop, trips):
        return all(_vanishes(one, trips, around) for one in loop.inner)
    return _is_short(loop, trips, around)


def has_loops(function: FunctionPlan) -> bool:
    """Whether a call runs loops; those of a function that a pipeline calls are unrolled."""
    return any(loop.unroll != 0 for loop in function.all_loops())


def _runs_once(loop: LoopPlan, trips: Trips) -> bool:
    """Whether LLVM has left nothing of a loop, since it runs once."""
    return bool(trips) and loop not in trips and loop.fixed


def _is_unrolled(loop: LoopPlan, trips: Trips) -> bool:
    """Whether nothing is left of a loop: UNROLL takes it, or it runs once."""
    if loop not in trips:
        return _runs_once(loop, trips)
    count = trips[loop]
    return count is not None and (loop.unroll == 0 or 1 < count <= loop.unroll)


def _is_short(loop: LoopPlan, trips: Trips, around: int = 1) -> bool:
    """Whether a loop, with those in it and `around` it, is short and no directive speaks of it.

    Unrolled together they become as many copies as their iterations multiplied.
    """
    count = trips.get(loop)
    is_pipeline = loop.interval is not None and not loop.automatic
    asked = is_pipeline or loop.unroll != 1 or loop.off or loop.dataflow
    if asked or count is None:
        return False
    copies = count * around
    if copies > _PIPELINE_LOOPS or _calls_long_loops(loop.callees, trips, copies):
        return False
    return all(_is_short(one, trips, copies) for one in loop.inner)


def _swallow(loop: LoopPlan, by: str) -> None:
    """Unroll a loop completely, since what is around it is a pipeline, named `by`."""
    for one in loop.walk():
        if one.unroll != 0:
            one.unroll, one.unrolled_by = 0, by
        asked = one.interval is not None and not one.automatic
        one.own_interval = one.interval if asked else one.own_interval
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
