"""From a source to its estimate: compile, plan, schedule each region, add up."""

from __future__ import annotations

import functools
import math
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from pynq_torch.errors import InterfaceError, KernelBuildError
from pynq_torch.paths import shown

from ..constants import Constants
from ..directive_files import (
    added,
    default_fifo,
    divides_arrays,
    misspelt_settings,
    not_followed,
)
from ..lint_pragmas import pragma_problems
from ..lint_tree import Problem, Program
from ..parse import (
    WARNING,
    constants_of,
    find_top,
    instantiated,
    interface_words,
    probe,
    read_interface,
)
from ..source import SourceUnit, check_macros, folders, read_source, read_text
from . import compiler, forbidden, left_out
from .around import nests, rows_of
from .asked import LoopPlan
from .effort import TooMuchError
from .inlining import factor_at, inlined, is_inlined_at, is_module, let_go, not_unrolled
from .ir import Module, read_module
from .latency import Kernel
from .marks import with_one_bus
from .nests import steady_loops
from .not_modelled import not_modelled, of_other_tool
from .passed import hand_up
from .passes import too_much
from .place import Place
from .plan import Plan, Trips
from .planned import make_plan
from .ports import shared_buses
from .result import Estimate
from .tables import with_arguments
from .target import Target, target_of
from .tool import (
    DEFAULT_PART,
    bus_latency_of,
    defaults_of,
    guess_release,
    guess_tool,
    margin_of,
    named,
    other_clock,
    with_top_first,
)
from .turns import as_written
from .values import settle_values

__all__ = ["estimate"]

_INCLUDED = frozenset(
    (".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".tpp", ".txt", ".dat", ".csv", ".coe", ".mem")
)
#: A device, or a family as older reports name it.
_PART = re.compile(r"(?i)(x[acq][a-z]*\d|zynq|artix|kintex|virtex|spartan|versal)")


def estimate(
    source: Path | str,
    top: str,
    *,
    clock: float = 10.0,
    part: str = DEFAULT_PART,
    directives: Path | str | None = None,
    tool: str | None = None,
    sources: Sequence[Path | str] = (),
    include_dirs: Sequence[Path | str] = (),
    defines: Sequence[str] = (),
    arguments: Mapping[str, int] | None = None,
    exact: bool = False,
) -> Estimate:
    """Estimate what HLS would make of a kernel: II, latency, DSP blocks, block RAM.

    Nothing of a vendor's is run; docs/estimate.md says how far it agrees with published reports.

    Parameters
    ----------
    source, top : path, str
        The C++ file with the top function, and its name, or ``name<4>`` for a template.
    clock, part : float, str
        Period in ns; device, whose family and speed grade scale the delays.
    directives : path, optional
        ``set_directive_...`` (Tcl) or ``syn.directive...`` lines, which count besides the pragmas,
        and ``config_array_partition -throughput_driven``.
    tool : str, optional
        ``"vitis"`` or ``"vivado"``, with its release as in ``"vitis-2024.2"`` or without: whose
        defaults count; guessed from the source's directives and the scripts around it.
    sources, include_dirs, defines : sequence of path, of path, of str
        Further source files (headers among them count where they are included), further include
        folders, macros (``NAME`` or ``NAME=VALUE``).
    arguments : mapping of str to int, optional
        Values of scalar arguments, for the latency of a run; the hardware is that for any values.
    exact : bool
        Estimate this run: no LOOP_TRIPCOUNT, branches are a range, unknown `arguments` left out.

    Raises
    ------
    InterfaceError
        The file or the function is not there.
    KernelError
        An argument is none of the top function's.
    ValueError
        `tool` is none.
    KernelBuildError
        It does not compile, holds what HLS forbids, or clang is not installed.
    """
    _check(clock, part, defines, top)
    sources, include_dirs = folders(sources, "sources"), folders(include_dirs)
    name, release = named(tool) if tool is not None else (None, 0.0)
    paths = with_top_first([*_read(source, *sources)], top)
    with ExitStack() as kept, tempfile.TemporaryDirectory(prefix="pynq_torch_estimate_") as at:
        plan, raw, make = _plan(kept, paths, top, name, part, directives, include_dirs, defines, at)
        target = _target(clock, part, plan.tool, release, paths[0], directives)
        plan.warn_of_ultra_ram(part, target.has_ultra_ram)
        plan.warnings += other_clock(directives, clock)
        kernel = _scheduled(raw, plan, make, Path(at), arguments or {}, exact, target)
    return _result(kernel, top, clock, part, is_a_run=bool(arguments))


def _result(kernel: Kernel, top: str, clock: float, part: str, *, is_a_run: bool) -> Estimate:
    """Return the estimate; of a body that is too much, say which loops made it so large."""
    try:
        return kernel.result(top, clock, part, kernel.plan.warnings, is_a_run=is_a_run)
    except TooMuchError as error:
        loops = (loop for one in kernel.plan.functions for loop in one.all_loops())
        unrolled = [loop.place for loop in loops if loop.unroll != 1]
        raise too_much(unrolled, "can be scheduled in reasonable time") from error


def _read(source: Path | str, *more: Path | str) -> Iterator[Path]:
    """Yield the files that are compiled: not headers and tables that a project lists with them."""
    for number, one in enumerate((source, *more)):
        path = Path(os.path.realpath(one))
        read_text(path)
        if number == 0 or path.suffix.lower() not in _INCLUDED:
            yield path


def _target(
    clock: float, part: str, tool: str, release: float, source: Path, directives: Path | str | None
) -> Target:
    """Return part and clock, with what the scripts around a source say of margin, tool and bus."""
    release = release or guess_release(source, directives, tool)
    margin = margin_of(source, directives, clock)
    target = target_of(clock, part, tool, margin, release)
    if tool == "vivado":
        return target
    divides, _ = divides_arrays(directives)
    latency = bus_latency_of(source, directives, part)
    return replace(target, bus_latency=latency, divides=divides)


def _check(clock: float, part: str, defines: Sequence[str], top: str) -> None:
    if not 0 < clock < math.inf:
        raise KernelBuildError(f"clock {clock!r} is no period; expected ns above 0", top)
    if not _PART.match(part):
        raise KernelBuildError(
            f"{part!r} is no part of AMD's: expected a name such as {DEFAULT_PART}", top
        )
    check_macros(defines)


def _scheduled(
    text: str,
    plan: Plan,
    planned: Callable[[str], Plan],
    folder: Path,
    arguments: Mapping[str, int],
    exact: bool,
    target: Target,
) -> Kernel:
    """Check a raw module, let LLVM's passes run, and return what schedules it."""
    forbidden.check(text, plan, plan.top.name, folder, bodies=exact)
    text, plan = inlined(text, plan, planned, folder)
    if exact:
        plan.forget_trips()
    is_kernel = plan.entry == plan.top.name and not plan.top.place.file.endswith(".c")
    if target.bus_latency and is_kernel:
        plan.default_to_buses()
    module = _optimised(text, plan, folder, arguments, exact, target.release)
    return Kernel(module, plan, target, plan.entry, exact=exact)


def _plan(
    stack: ExitStack,
    paths: Sequence[Path],
    top: str,
    tool: str | None,
    part: str,
    directives: Path | str | None,
    include_dirs: Sequence[Path],
    defines: Sequence[str],
    at: str,
) -> tuple[Plan, str, Callable[[str], Plan]]:
    """Read the sources with libclang while clang compiles them.

    Return plan and raw module, and what makes the plan of a module, as long as the stack is open.
    """
    folder, top = Path(at), instantiated(paths[0], top)
    with compiler.compiling(paths, folder, include_dirs, defines, top) as found:
        programs, problems = _programs(stack, paths, top, directives, include_dirs, defines)
        items = [item for program, _ in programs for item in program.directives]
        whose = tool or guess_tool(paths[0], items, directives, part)
        for program, _ in programs:
            problems += [*of_other_tool(program, whose), *not_modelled(program)]
        said = [
            f"{shown(Path(file))}:{line}: {text}" for file, line, _, text in dict.fromkeys(problems)
        ]
        said += settle_values(programs, paths, include_dirs, defines, folder, whose)
    text = compiler.linked(folder, len(paths))
    entry, words = compiler.instance_in(text), defaults_of(paths[0], directives)
    channels = default_fifo(directives)

    def planned(module: str) -> Plan:
        return make_plan(programs, module, top, entry, whose, channels=channels, **words)

    plan = planned(text)
    plan.warnings += [*found, *said]
    return plan, text, planned


def _programs(
    stack: ExitStack,
    paths: Sequence[Path],
    top: str,
    directives: Path | str | None,
    include_dirs: Sequence[Path],
    defines: Sequence[str],
) -> tuple[list[tuple[Program, Constants]], list[Problem]]:
    """Return what the sources have, with their directives, and what is wrong with these."""
    synthesis = (*compiler.SYNTHESIS, *defines)  # as clang has them
    programs: list[tuple[Program, Constants]] = []
    problems: list[Problem] = []
    for number, path in enumerate(paths):
        appendix = probe(top) if number == 0 else ""
        unit = stack.enter_context(
            read_source(path, include_dirs, synthesis, appendix, [compiler.HEADERS])
        )
        function, body = find_top(unit, top) if number == 0 else (None, None)
        if function is not None:
            forbidden.check_top(function, top)
            problems += _of_the_interface(unit, top, directives, include_dirs, defines)
        values = functools.cache(functools.partial(constants_of, unit))
        program = Program(unit.unit.cursor, body, unit.pragmas, unit.others)
        programs.append((program, Constants(values, unit.mentions)))
    files = [program for program, _ in programs]
    problems += [*added(files, directives), *divides_arrays(directives)[1]]
    problems += [*misspelt_settings(directives), *not_followed(directives)]
    for program, constants in programs:
        problems += pragma_problems(program, constants.mentions)
    return programs, problems


def _of_the_interface(
    unit: SourceUnit, top: str, directives: Path | str | None, include_dirs: Sequence[Path],
    defines: Sequence[str],
) -> Iterator[Problem]:  # fmt: skip
    """Yield what is wrong with INTERFACE."""
    said = interface_words(unit, top, None if directives is None else Path(directives))
    if any(re.search(r"\boffset\s*=\s*\d", pragma.text) for pragma in unit.pragmas):
        try:  # where registers are is told by the arguments' types, as the tools' headers have them
            read_interface(unit.path, top, include_dirs=include_dirs, defines=defines)
        except (InterfaceError, KernelBuildError) as error:  # or it is no C++ for g++
            said.append(str(error))
    for match in filter(None, map(WARNING.match, dict.fromkeys(said))):
        yield match["file"], int(match["line"]), "pragma", match["text"]


def _optimised(
    text: str, plan: Plan, folder: Path, arguments: Mapping[str, int], lenient: bool,
    release: float,
) -> Module:  # fmt: skip
    """Run LLVM's passes: once for the trip counts as written, then with the plan."""
    stuck: list[LoopPlan] = []  # what cannot be unrolled, as its bound is no constant

    def unrolled(place: Place) -> int:
        return 1 if plan.loop_at(place) in stuck else factor_at(plan, place)

    plan.settle(*_as_written(text, plan, folder))
    hand_up(text, plan, lambda one: one is not plan.top and not is_module(one))
    plan.warn_of_latencies(lambda one: one is not plan.top and not is_module(one))
    if arguments:
        text = with_arguments(text, plan.entry, arguments, lenient=lenient)
    for names in shared_buses(plan):
        text = with_one_bus(text, plan.entry, names)
    at = functools.partial(is_inlined_at, plan)
    made = functools.partial(compiler.optimise, text, plan.entry, at, unrolled, folder)
    made = functools.partial(made, tool=plan.tool, release=release, members=plan.members())
    made = functools.partial(made, in_turn=plan.calls_in_turn(), shared=plan.is_shared)
    made, module = _unrolled_again(made, _both_ways(made, plan), plan)
    left = plan.left(_trips(module, plan))
    stuck += [loop for loop in left if not (loop.breaks and loop.fixed)]
    last = made
    if len(stuck) < len(left):
        last = functools.partial(made, early=True)
        module = _both_ways(last, plan)
    pipelines = [one for one in plan.functions if one.interval is not None]
    trips = _trips(module, plan)
    left = plan.left(trips)
    plan.give_up(trips, steady_loops(module, plan))
    if plan.tool == "vivado" and let_go([one for one in pipelines if one.interval is None], left):
        module = _both_ways(last, plan)
    left_out.check(text, made, module, plan)
    return module


def _unrolled_again(
    made: functools.partial[tuple[str, str]], module: Module, plan: Plan
) -> tuple[functools.partial[tuple[str, str]], Module]:
    """Unroll twice where that leaves fewer loops, and return how, and the module.

    A loop whose bound is the counter of an unrolled one around it has a constant bound only then.
    """
    trips = _trips(module, plan)
    left = plan.left(trips)
    if made.keywords["in_turn"] or not any(trips[loop] is not None for loop in left):
        return made, module
    again = functools.partial(made, in_turn=True)
    try:
        other = _both_ways(again, plan)
    except KernelBuildError:  # that is too much code
        return made, module
    return (again, other) if len(plan.left(_trips(other, plan))) < len(left) else (made, module)


def _as_written(text: str, plan: Plan, folder: Path) -> tuple[Trips, dict[LoopPlan, bool]]:
    """Return how often the loops run that nothing unrolls, where that decides anything.

    Of those that are unrolled in part the plan takes the range: LLVM loses it on the way.

    And for loops that hold another one whether that is all the work in them.
    """
    decides = plan.needs_trips()
    if not decides and not plan.unrolls_in_part():
        return {}, {}
    module = not_unrolled(text, plan, folder)
    for function in module.functions.values():
        plan.note_turns({loop.place: as_written(loop) for loop in function.loops})
    if not decides:
        return {}, {}
    buses = {f"%{name}" for name in plan.buses()}
    made = nests(module, plan.entry, buses, rows_of(plan))
    found = ((plan.loop_at(place), alone) for place, alone in made)
    return _trips(module, plan), {loop: alone for loop, alone in found if loop is not None}


def _both_ways(made: Callable[..., tuple[str, str]], plan: Plan) -> Module:
    """Return a module with sums in memory, and beside it with those in registers."""
    in_registers = made(promote=True)
    forbidden.check_optimised(in_registers[0], plan.top.name)
    module = read_module(*in_registers)
    asked = [loop for one in plan.functions for loop in one.all_loops()]
    both = plan.tool == "vivado" or any(loop.by_itself for loop in asked)
    if any(loop.inner or both for one in module.functions.values() for loop in one.loops):
        in_memory = made(promote=False)
        if in_memory[0] != in_registers[0]:
            promoted, module = module.functions, read_module(*in_memory)
            module.promoted = promoted
    return module


def _trips(module: Module, plan: Plan) -> Trips:
    """Return the iterations of each loop that is left; of several instances of it, the most."""
    trips: Trips = {}
    for loop in (loop for function in module.functions.values() for loop in function.loops):
        if (asked := plan.loop_at(loop.place)) is not None:
            count = loop.taken.constant + 1 if loop.taken and not loop.taken.terms else None
            other = trips.get(asked, 0)
            trips[asked] = None if count is None or other is None else max(count, other)
    return trips
