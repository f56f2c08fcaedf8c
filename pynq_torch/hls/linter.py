"""What would keep an HLS kernel from the schedule that its pragmas ask for.

Neither synthesis nor a vendor's tool is needed: the rules are those of UG1399, held against the
source's syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pynq_torch.errors import InterfaceError, KernelBuildError
from pynq_torch.paths import shown

from . import depends, toolchain
from .directive_files import added
from .estimator import Estimate, estimate
from .headers import not_read
from .interface import Interface
from .lint_bursts import bursts
from .lint_dataflow import dataflow
from .lint_intervals import intervals
from .lint_loops import accumulations, tripcounts
from .lint_pragmas import pragma_problems
from .lint_promises import dependences
from .lint_tree import Problem, Program
from .parse import WARNING, find_top, interface_of, interface_words, probe
from .source import SourceUnit, folders, read_source

__all__ = ["Finding", "lint"]

#: The chapter of the manual behind each rule.
_CHAPTERS = {
    "dataflow": 'UG1399, "Canonical Body"',
    "void": 'UG1399, "Canonical Body"',
    "burst": 'UG1399, "Preconditions and Limitations of Burst Transfer"',
    "accumulate": 'UG1399, "Array Accesses and Performance"',
    "interval": 'UG1399, "pragma HLS pipeline"',
    "dependence": 'UG1399, "pragma HLS dependence"',
    "tripcount": 'UG1399, "pragma HLS loop_tripcount"',
    "pragma": 'UG1399, "HLS Pragmas"',
    "element": 'UG1399, "Arrays"',
}
#: Directives whose warnings in an estimate are findings: they need addresses and trip counts.
_SCHEDULED = ("dataflow", "dependence", "element", "interface", "latency", "loop_merge", "stream")
_ERROR = re.compile(r"^(?P<where>.+?:\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)


@dataclass(frozen=True, order=True)
class Finding:
    """One thing that the tool would not schedule as written.

    Parameters
    ----------
    file : str
        The source or header.
    line : int
        From 1.
    rule : str
        Which rule it breaks: dataflow, void, burst, accumulate, interval, dependence, tripcount,
        element or pragma.
    text : str
        What is wrong and what to write.
    chapter : str
        The manual and its chapter.
    """

    file: str
    line: int
    rule: str
    text: str
    chapter: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}: {self.text} ({self.chapter})"


def lint(
    source: Path | str,
    top: str,
    *,
    include_dirs: Sequence[Path | str] = (),
    defines: Sequence[str] = (),
    directives: Path | str | None = None,
    schedule: bool | Estimate = True,
) -> list[Finding]:
    """Return what Vitis HLS would not schedule as a kernel's source says.

    Parameters
    ----------
    source : path
        The C++ file with the top function; its own headers are read with it.
    top : str
        The top function: ``name``, ``space::name`` or ``name<4, float>``. Functions that it does
        not reach are not looked at.
    include_dirs : sequence of path
        Further include folders.
    defines : sequence of str
        Macros, ``NAME`` or ``NAME=VALUE``; ``__SYNTHESIS__`` is not defined without it.
    directives : path, optional
        A Tcl file with ``set_directive_...``, or a cfg file with ``syn.directive...``, which count
        besides the pragmas.
    schedule : bool or Estimate
        Estimate the schedule too, for rule ``interval``; it needs clang-16 and llvm-16. False looks
        at the syntax only; an estimate of the source that is there already is taken.

    Returns
    -------
    list of Finding
        In order of file and line; empty for a clean kernel.

    Raises
    ------
    InterfaceError
        The file or the function is not there.
    KernelBuildError
        The source does not compile, the message is the compiler's first; or there is no schedule.

    Examples
    --------
    >>> lint("hw/kernels/vadd/vadd.cpp", "vadd")  # doctest: +SKIP
    []
    """
    include_dirs = folders(include_dirs)
    with read_source(depends.real(Path(source)), include_dirs, defines, probe(top)) as unit:
        _check(unit, top)
        given = None if directives is None else Path(directives)
        refused, body, interface = _interface(unit, top, given)
        program = Program(unit.unit.cursor, body, unit.pragmas, unit.others)
        problems = {*added([program], directives), *_problems(program, unit, refused, interface)}
        if schedule is True and interface is not None:
            schedule = estimate(
                source, top, directives=directives, include_dirs=include_dirs, defines=defines
            )
        if isinstance(schedule, Estimate):
            problems |= _late(program, schedule, problems)
    return sorted(_findings(problems, schedule))


def _findings(problems: set[Problem], schedule: bool | Estimate) -> set[Finding]:
    """Return each finding in the kernel's own files once."""
    found = {_finding(*one) for one in problems if not toolchain.in_library(one[0])}
    return found | {*_warned(schedule, found)}


def _finding(file: str, line: int, rule: str, text: str) -> Finding:
    return Finding(shown(Path(file).resolve()), line, rule, text, _CHAPTERS[rule])


def _interface(
    unit: SourceUnit, top: str, directives: Path | None
) -> tuple[list[str], Any, Interface | None]:
    """Return what is wrong with pragmas, the function, and the interface if one can be made."""
    try:
        interface, body = interface_of(unit, top, "vitis", directives)
    except InterfaceError as error:
        if not WARNING.match(str(error)):
            raise
        said = re.split(r"\n(?=\S+:\d+: )", str(error))
        return [*said, *interface_words(unit, top, directives)], find_top(unit, top)[1], None
    return list(interface.warnings), body, interface


def _late(program: Program, schedule: Estimate, problems: set[Problem]) -> set[Problem]:
    """Return the loops whose II is above what was asked for, where nothing has said why yet."""
    said = {problem[:2] for problem in problems if problem[2] == "accumulate"}
    return {problem for problem in intervals(program, schedule) if problem[:2] not in said}


def _warned(schedule: bool | Estimate, found: set[Finding]) -> Iterator[Finding]:
    """Yield what an estimate says of directives that no syntax tells of.

    Where the syntax has shown that a region is not canonical, nothing more is said of that line.
    """
    said = {(one.file, one.line) for one in found if one.rule == "dataflow"}
    told = {(one.file, one.line, one.text) for one in found}
    for warning in schedule.warnings if isinstance(schedule, Estimate) else ():
        match = WARNING.match(warning)
        name = match["text"].partition(" ")[0].rstrip(":").lower() if match else ""
        if match is None or name not in _SCHEDULED:
            continue
        if name == "dependence" and " is not true" not in match["text"]:
            continue  # of its words, which the syntax tells
        rule = name if name in ("dataflow", "dependence", "element") else "pragma"
        one = _finding(match["file"], int(match["line"]), rule, match["text"])
        again = (one.file, one.line, one.text) in told
        if not again and (rule != "dataflow" or (one.file, one.line) not in said):
            yield one


def _problems(
    program: Program, unit: SourceUnit, warnings: Sequence[str], interface: Interface | None
) -> Iterator[Problem]:
    arguments = interface.arguments if interface is not None else ()
    masters = {item.name for item in arguments if item.kind == "m_axi"}
    problems = pragma_problems(program, unit.mentions)  # with the directives of files
    yield from problems
    said = {problem[:2] for problem in problems}
    for match in filter(None, map(WARNING.match, warnings)):
        file, line, text = match["file"], int(match["line"]), match["text"]
        if (file, line) not in said or not text.startswith("m_axi of "):  # once is enough
            yield file, line, "pragma", text
    yield from dependences(program)
    yield from dataflow(program)
    yield from tripcounts(program)
    yield from bursts(program, masters)
    yield from accumulations(program)


def _check(unit: SourceUnit, top: str) -> None:
    """Refuse a source that does not compile: half a syntax tree has findings of its own."""
    if unit.missing:
        said = not_read(unit.missing[0]) or f"header not found: {unit.missing[0]}; add -I"
        raise KernelBuildError(f"{unit.path}:1: {said}", top)
    code, said = unit.complaints() if unit.errors else (0, "")
    if code:
        first = _ERROR.search(said)
        reason = f"{first['where']}: {first['text']}" if first else unit.errors[0]
        raise KernelBuildError(f"{reason}; lint reads C++ that compiles", top)
