"""What of pragmas only the compiler knows: a template's parameter, a branch that is never taken.

clang reads the sources again, with a call in place of each such pragma; the calls' arguments in
its code are the values, in each instance of a template its own.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pynq_torch.errors import needs
from pynq_torch.paths import shown

from ..constants import Constants
from ..lint_pragmas import home_of, is_placed, is_settled
from ..lint_tree import Directive, Program, Scope, walk
from . import compiler
from .marks import DEFINED
from .place import written_in

with needs("clang", "Reading HLS C++"):
    from clang.cindex import CursorKind

__all__ = ["settle_values"]

#: Options whose value is a number, but for those of INTERFACE.
_NUMBERS = ("ii", "factor", "depth", "dim", "distance", "limit", "min", "max", "avg", "latency")
_TRIES = 4
_MARK = "__hls_value"
_HEADER = f"""
#ifdef __cplusplus
template <long long N> struct {_MARK}_of {{ enum : long long {{ number = N }}; }};
#define {_MARK}_in(...) {_MARK}_of<(__VA_ARGS__)>::number
extern "C"
#else
#define {_MARK}_in(...) (__VA_ARGS__)
#endif
int {_MARK}(int, long long);
"""
_CALL = re.compile(rf"call [^@]*@{_MARK}\(i32 [a-z ]*(\d+), i64 [a-z ]*(\S+)\)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_AT = re.compile(r"^(.+?):(\d+):\d+: (?:fatal )?error:", re.MULTILINE)
#: A directive's scope, the directive, and which of its options it is; "" for whether it is there.
_Open = tuple[Scope, Directive, str]
#: By the number of an open one its value in each function, by LLVM's name.
_Values = dict[int, dict[str, int]]


def _left_out(item: Directive, option: str) -> str:
    return (
        f"{item.name.upper()} has {option.upper()}={item.options[option]}, whose value is not "
        "known here; the estimate leaves the directive out"
    )


def _unknown(item: Directive, constants: Constants, function: Scope) -> Iterator[str]:
    """Yield the options whose number only the compiler knows: with names of the function's own."""
    for option in _NUMBERS:
        text = item.options.get(option)
        if text is None or item.name == "interface":
            continue
        words = _WORD.findall(text)
        if constants.number(text) is None or (words and not _own(function).isdisjoint(words)):
            yield option


def _own(function: Scope) -> set[str]:
    """Return the variables and the template's parameters that hide globals of the same name."""
    kinds = (CursorKind.VAR_DECL, CursorKind.TEMPLATE_NON_TYPE_PARAMETER)
    parts = (*function.function.get_children(), *walk(function.body))
    return {part.spelling for part in parts if part.kind in kinds}


def settle_values(
    programs: Iterable[tuple[Program, Constants]],
    sources: Sequence[Path],
    include_dirs: Sequence[Path],
    defines: Sequence[str],
    folder: Path,
    tool: str,
) -> list[str]:
    """Put numbers in place of names in pragmas; return a warning for each that has none.

    A pragma whose number is not known is taken out of its scope, and so is one in a branch that is
    never taken. In Vivado HLS those of a branch that is always taken belong to what is around it,
    and PIPELINE of any other.

    Parameters
    ----------
    programs : iterable of (Program, Constants)
        One a source file; their directives are changed.
    sources, include_dirs, defines, folder
        How the sources are compiled, and where to put files that the compiler takes.
    tool : {"vitis", "vivado"}
        Whose rules count.
    """
    every = [*programs]
    if tool == "vivado":
        functions = [one for program, _ in every for one in program.scopes]
        _take_home([scope for one in functions for scope in one.walk()])
    waiting = [one for program, constants in every for one in _waiting(program, constants)]
    if not waiting:
        return []
    found = _values(waiting, sources, include_dirs, defines, folder)
    said = _settle_numbers(waiting, found)
    _settle_branches(waiting, found, tool)
    return said


def _settle_numbers(waiting: Sequence[_Open], found: _Values) -> list[str]:
    said = []
    for number, (scope, item, option) in enumerate(waiting):
        if not option:
            continue
        values = found.get(number)
        for instance, value in (values or {}).items():
            item.instances.setdefault(instance, {})[option] = str(value)
        if values is None and item in scope.pragmas:
            scope.pragmas.remove(item)
            where = f"{shown(Path(item.pragma.file))}:{item.pragma.line}: "
            said.append(where + _left_out(item, option))
    return said


def _take_home(scopes: Sequence[Scope]) -> None:
    """Take PIPELINE of branches of which the data decide for what is around these."""
    for scope in scopes:
        if scope.kind != "if" or is_settled(scope):
            continue
        for item in [one for one in scope.pragmas if not is_placed(one, scope)]:
            if is_placed(item, home := home_of(item, scope)):
                scope.pragmas.remove(item)
                home.pragmas.append(item)


def _settle_branches(waiting: Sequence[_Open], found: _Values, tool: str) -> None:
    """Drop the pragmas of branches that are never taken; Vivado HLS takes out those of others."""
    for number, (scope, item, option) in enumerate(waiting):
        taken = found.get(number)
        if option or taken is None or item not in scope.pragmas:
            continue
        for instance in taken:
            item.instances.setdefault(instance, {})
        if not taken or tool == "vivado":
            scope.pragmas.remove(item)
        if taken and tool == "vivado":
            home_of(item, scope).pragmas.append(item)


def _waiting(program: Program, constants: Constants) -> Iterator[tuple[Scope, Directive, str]]:
    """Yield each option whose number is a name: its scope, its directive, its key."""
    for function in program.scopes:
        for scope in function.walk():
            for item in scope.pragmas:
                for option in _unknown(item, constants, function):
                    yield scope, item, option
                if is_settled(scope):
                    yield scope, item, ""


def _values(
    waiting: Sequence[_Open],
    sources: Sequence[Path],
    include_dirs: Sequence[Path],
    defines: Sequence[str],
    folder: Path,
) -> _Values:
    """Return the values of each number, none where no instance has it, nothing if not known."""
    instance = folder / compiler.INSTANCE
    if instance.exists():  # it includes the first source
        sources = [instance, *sources[1:]]
    left = {number: one for number, one in enumerate(waiting) if _is_line(one[1])}
    header = folder / "value.h"
    header.write_text(_HEADER, encoding="utf-8")
    more = False
    for _ in range(_TRIES):
        overlay = _overlay(left, folder)
        code, refused = "", set()
        for source in sources:
            command = compiler.command_of(source, include_dirs, defines)
            command += ["-ivfsoverlay", str(overlay), "-include", str(header)]
            command += [*compiler.RAW, *(compiler.more_headers(command) if more else ())]
            command += ["-ferror-limit=0", "-o", "-", str(source)]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
            code += done.stdout
            refused |= {(Path(file).name, int(line)) for file, line in _AT.findall(done.stderr)}
        if not refused:
            return _read(code, left)
        kept = {
            number: one
            for number, one in left.items()
            if (Path(one[1].pragma.file).name, one[1].pragma.line) not in refused
        }
        if len(kept) == len(left):
            if more:
                return {}
            more = True  # as where the source itself is compiled
        left = kept
    return {}


def _read(code: str, asked: Iterable[int]) -> _Values:
    """Return the numbers that the calls have; nothing for one that is no constant."""
    found: dict[int, dict[str, str]] = {number: {} for number in asked}
    names = [name.strip('"') for name in DEFINED.findall(code)]
    for name, chunk in zip(names, DEFINED.split(code)[2::2], strict=True):
        for number, value in _CALL.findall(chunk):
            found[int(number)][written_in(name, names)] = value
    return {
        number: {name: int(value) for name, value in values.items()}
        for number, values in found.items()
        if all(re.fullmatch(r"-?\d+", value) for value in values.values())
    }


def _is_line(item: Directive) -> bool:
    """Whether a pragma is a line of its own, not one of a macro."""
    lines = Path(item.pragma.file).read_text(encoding="utf-8", errors="replace").split("\n")
    at = item.pragma.line - 1
    return at < len(lines) and re.match(r"\s*#\s*pragma\b", lines[at]) is not None


def _overlay(waiting: dict[int, _Open], folder: Path) -> Path:
    """Write the files with calls in place of pragmas, and what maps the sources to them."""
    by_file: dict[str, dict[int, list[tuple[int, _Open]]]] = defaultdict(lambda: defaultdict(list))
    for number, one in waiting.items():
        by_file[one[1].pragma.file][one[1].pragma.line].append((number, one))
    roots = []
    for at, (file, lines) in enumerate(by_file.items()):
        text = Path(file).read_text(encoding="utf-8", errors="replace").split("\n")
        for line, group in lines.items():
            end = line - 1
            while text[end].endswith("\\") and end + 1 < len(text):
                text[end], end = "", end + 1
            text[end] = ""
            text[line - 1] = _statement(group)
        made = folder / f"values{at}"
        made.write_text("\n".join(text), encoding="utf-8")
        entry = {"name": Path(file).name, "type": "file", "external-contents": str(made)}
        roots.append({"name": str(Path(file).parent), "type": "directory", "contents": [entry]})
    path = folder / "overlay.yaml"
    path.write_text(json.dumps({"version": 0, "use-external-names": False, "roots": roots}))
    return path


def _statement(group: Sequence[tuple[int, _Open]]) -> str:
    calls = ", ".join(
        f"{_MARK}({number}, {_MARK}_in({one[1].options.get(one[2], '1')}))" for number, one in group
    )
    scope, item, _ = group[0][1]
    body = scope.body
    above = scope.is_loop and item.pragma.line < body.extent.start.line
    if above or (scope.is_loop and body.kind != CursorKind.COMPOUND_STMT):
        return f"if ({calls}, 1)"  # between a loop's head and its body
    return f"{calls};"
