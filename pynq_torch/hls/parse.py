"""Deriving a kernel's interface from its C++ source."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pynq_torch.errors import InterfaceError, KernelBuildError, needs

from . import depends
from .compile import message
from .constants import Constants
from .cpptypes import describe
from .direction import argument_access, stream_direction
from .directives import Pragma, from_files, from_pragmas
from .headers import not_read
from .interface import Interface
from .lint_pragmas import pragma_problems
from .lint_tree import Program
from .ports import Ports
from .slots import Port
from .source import SourceUnit, folders, read_source, read_text

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, CursorKind, TypeKind, conf

__all__ = [
    "PROBE",
    "WARNING",
    "constants_of",
    "find_top",
    "instantiated",
    "interface_of",
    "interface_words",
    "probe",
    "read_interface",
]

_TOOLS = ("vitis", "vivado")
_SCOPES = {CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC, CursorKind.UNEXPOSED_DECL}
#: What g++ and libclang say of #error, of a brace or semicolon too few or many, of an open #if.
_SYNTAX = re.compile(
    r"#error|\bexpected\b|extraneous closing|unterminated|at end of input|#e(lse|ndif)"
)
_ERROR = re.compile(r"^(?P<where>.+?:\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)
#: A warning or an error about a line.
WARNING = re.compile(r"(?P<file>[^\s:]+):(?P<line>\d+): (?P<text>.*)", re.DOTALL)
PROBE = "pynq_torch_probe"


def read_interface(
    source: Path | str,
    top: str,
    *,
    tool: str = "vitis",
    include_dirs: Sequence[Path | str] = (),
    defines: Sequence[str] = (),
) -> Interface:
    """Derive the interface of the top function `top` in `source`.

    Parameters
    ----------
    source : path
        The C++ file with the top function and its INTERFACE pragmas. Directive files beside it
        (``hls_config.cfg``, ``directives.tcl``) count too.
    top : str
        The top function: ``name``, ``space::name`` or ``name<4, float>``.
    tool : {"vitis", "vivado"}
        Vitis HLS (2020.2 and later) or Vivado HLS (up to 2020.1): their offsets and names differ.
    include_dirs, defines : sequence of path, sequence of str
        Include folders besides the source's own, and macros: ``NAME`` or ``NAME=VALUE``.

    Raises
    ------
    InterfaceError
        The file or the function is not there, an argument's type depends on a header that was not
        found, or a directive has a mode or an offset that cannot be.
    KernelBuildError
        The source has an ``#error``, or is no C++; the message is the compiler's.

    Examples
    --------
    >>> read_interface("vadd.cpp", "vadd").argument("a").offset  # doctest: +SKIP
    16
    """
    if tool not in _TOOLS:
        raise InterfaceError(f"tool {tool!r} is unknown; expected one of {', '.join(_TOOLS)}")
    path = depends.real(Path(source))
    with read_source(path, folders(include_dirs), defines, probe(top)) as unit:
        return interface_of(unit, top, tool)[0]


def probe(top: str) -> str:
    """Return C++ that makes the compiler instantiate a template: ``name<4>``."""
    return f"auto* {PROBE} = &{top};" if "<" in top else ""


def instantiated(path: Path, top: str) -> str:
    """Return the one instance of a template that a source asks for: ``template void f<4>(...);``.

    It is what the tools synthesise where they are told the template's name; of any other name the
    name itself.
    """
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", read_text(path), flags=re.DOTALL)
    name = rf"\b{re.escape(top)}\s*(<[^;(){{}}]*>)\s*\("
    asked = re.findall(rf"\btemplate\s+[^<;{{}}\s][^;{{}}]*?{name}", text)
    found = {" ".join(one.split()) for one in asked}
    return top + found.pop() if len(found) == 1 and "<" not in top else top


def interface_of(
    unit: SourceUnit, top: str, tool: str, directives: Path | None = None
) -> tuple[Interface, Cursor]:
    """Return the interface of the top function in a parsed source, and the cursor with its body.

    `directives` is the one file of directives that counts, if not those beside the source do.
    """
    broken = _broken(unit, top)
    function, body = find_top(unit, top)
    builder = _ports(unit, top, body, tool, directives)
    interface = builder.interface(function.spelling, unit.path, _read_ports(function, body, unit))
    missing = [not_read(n) or f"header not found, read as empty: {n}" for n in unit.missing]
    notes = (*interface.notes, *missing)
    warnings = (*interface.warnings, *broken, *_pragmas(unit, body))
    warnings += tuple(_unusable(interface, f"{unit.path}:{body.location.line}"))
    qualified = "::".join(_scope(function)) + "".join(re.findall(r"<.*", top))
    return replace(interface, qualified=qualified, notes=notes, warnings=warnings), body


def _ports(unit: SourceUnit, top: str, body: Cursor, tool: str, given: Path | None = None) -> Ports:
    settings = from_files(unit.path, _names(top)[-1], given)
    pragmas = _pragmas_in(unit, body)
    return Ports(
        directives=[*settings.directives, *from_pragmas(pragmas)],
        settings=settings,
        pragmas=pragmas,
        constants=Constants(functools.cache(lambda: constants_of(unit)), unit.mentions),
        tool=tool,
    )


def interface_words(unit: SourceUnit, top: str, directives: Path | None = None) -> list[str]:
    """Return what is wrong with the words of INTERFACE, whatever the arguments' types are.

    Those of pragmas and of a file of directives; without one, of the files beside the source.
    """
    function, body = find_top(unit, top)
    names = {argument.spelling for argument in function.get_arguments()}
    ports = _ports(unit, top, body, "vitis", directives)
    ports.check(function.spelling, names | {"return"})
    return [*ports.settings.warnings, *ports.warnings, *ports.refused]


def _unusable(interface: Interface, where: str) -> Iterator[str]:
    """Yield what keeps pynq's ``register_map`` from an IP: a field hides an attribute of its own.

    Seen with pynq 3.1.2: ``pynq.registers.Register`` sets these and reads them for every access.
    """
    names = {register.name for bundle in interface.bundles.values() for register in bundle}
    for name in sorted(names & {"address", "debug", "width"}):
        yield (
            f"{where}: a register called {name!r} breaks register_map in pynq 3.1, which has an "
            f"attribute of that name; give the argument of {interface.top} another name"
        )


def _names(top: str) -> list[str]:
    """Return the namespaces and the name of a function, without template arguments."""
    return re.sub(r"<.*", "", top).split("::")


def _broken(unit: SourceUnit, top: str) -> tuple[str, ...]:
    """Return a warning where the source does not compile; raise where it is no C++ at all.

    What libclang alone refuses does not count, since g++ builds the kernel.
    """
    if not unit.errors:
        return ()
    if unit.missing:  # every other error may be a consequence
        grave = [error for error in unit.errors if _is_grave(error, unit)]
        return tuple(f"{error} (headers are missing)" for error in grave[:1])
    code, said = unit.complaints()
    if code == 0:
        return ()
    errors = list(_ERROR.finditer(said))
    if not errors or any(_SYNTAX.search(error["text"]) for error in errors):
        raise KernelBuildError(message(top, said, code), top)
    return (f"{errors[0]['where']}: {errors[0]['text']}",)


def _is_grave(error: str, unit: SourceUnit) -> bool:
    """Tell an ``#error`` and a missing brace from a name that a missing header declares."""
    match = re.match(r"(.*?):(\d+): (.*)", error)
    if match is None:
        return False
    directive = re.compile(rf"^{re.escape(match[1])}:{match[2]}:.*error: #error", re.MULTILINE)
    return bool(_SYNTAX.search(match[3]) or directive.search(unit.said))


def find_top(unit: SourceUnit, top: str) -> tuple[Cursor, Cursor]:
    """Return the top function and the cursor that holds its body."""
    wanted = _names(top)
    functions: list[Cursor] = []
    templates: list[Cursor] = []
    probe: Cursor | None = None
    for cursor in _declarations(unit.unit.cursor):
        if cursor.spelling == PROBE:
            probe = _referenced_function(cursor)
        if cursor.spelling != wanted[-1] or _scope(cursor)[-len(wanted) :] != wanted:
            continue
        if cursor.kind == CursorKind.FUNCTION_DECL and cursor.is_definition():
            functions.append(cursor)
        elif cursor.kind == CursorKind.FUNCTION_TEMPLATE:
            templates.append(cursor)
    if "<" in top and probe is not None and templates:
        bodies = [item for item in templates if item.is_definition()] or templates
        return probe, bodies[0]
    # A helper of the same name in a namespace is another function.
    functions = [item for item in functions if _scope(item) == wanted] or functions
    if len(functions) > 1:
        lines = ", ".join(f"{item.location.file}:{item.location.line}" for item in functions)
        raise InterfaceError(
            f"{unit.path}:{functions[0].location.line}: the top function {top!r} is defined more "
            f"than once: {lines}. Name its namespace, as in space::{wanted[-1]}, or rename one"
        )
    if functions and "<" in top and not templates:
        where, given = f"{unit.path}:{functions[0].location.line}", top[top.find("<") :]
        raise InterfaceError(f"{where}: {wanted[-1]} is no template; leave {given} out")
    if functions:
        return functions[0], functions[0]
    raise InterfaceError(_not_found(unit, top, templates))


def _not_found(unit: SourceUnit, top: str, templates: list[Cursor]) -> str:
    if templates:
        return (
            f"{unit.path}: {top!r} is a template; name the instance that is synthesised, "
            f"for example {top}<4>"
        )
    others = sorted(
        {
            cursor.spelling
            for cursor in _declarations(unit.unit.cursor)
            if cursor.kind == CursorKind.FUNCTION_DECL
            and cursor.is_definition()
            and cursor.location.file is not None
            and cursor.location.file.name == str(unit.path)
        }
    )
    message = f"{unit.path}: no definition of the top function {top!r}"
    message += f"; it defines {', '.join(others)}" if others else "; it defines no function"
    if unit.errors:
        message += f". The first error in it: {unit.errors[0]}"
    return message


def _declarations(cursor: Cursor) -> list[Cursor]:
    found: list[Cursor] = []
    for child in cursor.get_children():
        if child.kind in _SCOPES:
            # The standard library's namespaces hold nothing of a kernel's, and thousands of names.
            if not conf.lib.clang_Location_isInSystemHeader(child.location):
                found += _declarations(child)
        else:
            found.append(child)
    return found


def _scope(cursor: Cursor) -> list[str]:
    """Return the namespaces around a function, and its name."""
    names = [cursor.spelling]
    parent = cursor.semantic_parent
    while parent is not None and parent.kind == CursorKind.NAMESPACE:
        names.insert(0, parent.spelling)
        parent = parent.semantic_parent
    return [name for name in names if name]


def _referenced_function(cursor: Cursor) -> Cursor | None:
    for child in cursor.walk_preorder():
        target = child.referenced if child.kind == CursorKind.DECL_REF_EXPR else None
        if target is not None and target.kind == CursorKind.FUNCTION_DECL:
            return target
    return None


def _pragmas_in(unit: SourceUnit, body: Cursor) -> list[Pragma]:
    """Return the active pragmas within the lines of the function `body`."""
    begin, end = body.extent.start, body.extent.end
    file = Path(begin.file.name).resolve()
    return [
        pragma
        for pragma in unit.pragmas
        if begin.line <= pragma.line <= end.line and Path(pragma.file).resolve() == file
    ]


def _pragmas(unit: SourceUnit, body: Cursor) -> list[str]:
    """Return a warning for each pragma that the tool would ignore."""
    program = Program(unit.unit.cursor, body, unit.pragmas, unit.others)
    problems = pragma_problems(program, unit.mentions, whole=not (unit.missing or unit.errors))
    return [f"{file}:{line}: {text}" for file, line, _, text in problems]


def constants_of(unit: SourceUnit) -> dict[str, str]:
    """Return macros and global constants by name: pragmas may say ``depth=SIZE``."""
    constants = unit.macros()
    for cursor in _declarations(unit.unit.cursor):
        if cursor.kind == CursorKind.VAR_DECL and cursor.type.is_const_qualified():
            tokens = [token.spelling for token in cursor.get_tokens()]
            # Of `const int M = 2, N = 4` the second's tokens begin with the first's.
            pairs = list(itertools.pairwise(tokens))
            if (cursor.spelling, "=") in pairs and len(tokens) < 20:
                value = tokens[pairs.index((cursor.spelling, "=")) + 2 :]
                constants[cursor.spelling] = " ".join(value)
    return constants


#: Of the standard library, what no register can hold.
_DYNAMIC = re.compile(
    r"std::(?:__\w+::)?((?:basic_)?string|vector|deque|list|forward_list|map|set|unordered_\w+|"
    r"multi\w+|function|unique_ptr|shared_ptr|any)\b"
)


def _read_ports(function: Cursor, body: Cursor, unit: SourceUnit) -> list[Port]:
    result = describe(function.result_type)
    if function.result_type.get_canonical().kind in (TypeKind.POINTER, TypeKind.LVALUEREFERENCE):
        raise InterfaceError(
            f"{function.location.file}:{function.location.line}: {function.spelling} returns an "
            "address, which HLS makes no port of; write through a pointer argument"
        )
    ports = [] if result.form == "void" else [Port("return", -1, result, "out")]
    for index, parameter in enumerate(function.get_arguments()):
        ctype = describe(parameter.type)
        name = parameter.spelling or f"arg{index}"
        full = parameter.type.get_canonical()
        if TypeKind.POINTER in (full.get_pointee().kind, full.get_array_element_type().kind):
            where = f"{parameter.location.file}:{parameter.location.line}"
            raise InterfaceError(
                f"{where}: argument {name!r} points to pointers, which HLS makes no port of; "
                "hand over an array, or a pointer for each"
            )
        named = full if full.get_pointee().kind == TypeKind.INVALID else full.get_pointee()
        if held := _DYNAMIC.match(named.get_declaration().type.spelling):
            raise InterfaceError(
                f"{parameter.location.file}:{parameter.location.line}: argument {name!r} is a "
                f"std::{held[1]}, which takes memory while it runs; HLS needs an array"
            )
        wrong = full.kind == TypeKind.INVALID or ctype.form == "unknown"
        port = Port(name, index, ctype, "in", _unknown(parameter, wrong, unit))
        if ctype.form in ("stream", "burst_maxi"):  # by value as well: a copy is the same port
            port = replace(port, direction=stream_direction(body, index))
        elif not port.by_value and (ctype.volatile or not ctype.const):
            port = replace(port, direction=argument_access(body, index).direction)
        ports.append(port)
    return ports


def _unknown(parameter: Cursor, wrong: bool, unit: SourceUnit) -> str:
    """Return why an argument's type is not known, ``""`` if it is."""
    # Of a type it does not know, clang says int and reports the line.
    start = parameter.extent.start
    prefix = f"{start.file}:{start.line}: " if start.file is not None else "?"
    written = " ".join(token.spelling for token in parameter.get_tokens())
    named = [
        error
        for error in unit.errors
        if error.startswith(prefix)
        and re.search(r"unknown type name|no template named|no type named|undeclared", error)
        and (name := re.search(r"'([^']+)'", error)) is not None
        and name[1] in written
    ]
    if not wrong and not named:
        return ""
    reason = named[0] if named else f"its type {parameter.type.spelling!r} has no known size"
    if unit.missing:
        reason += f"; headers that were not found: {', '.join(unit.missing)}"
    return reason
