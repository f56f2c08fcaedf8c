"""What calls hand over to a function that is one piece of hardware for all of them.

- Arguments that get one array at every call, as in ``relu(layer, layer)``, are one memory: the
  array has no more ports in the function than outside (a report of a network with three).
- A number is between those that the calls name: a loop up to `n` runs 0 to 64 times where they say
  16 and 64 (a report of SHA-256).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .ir import split_types
from .marks import bodies_of

__all__ = ["BETWEEN", "between", "of_several_sizes", "with_handed_over"]

#: How the names of values begin that only say between which numbers an argument is.
BETWEEN = "hls.between"
#: What stands before these numbers in the name of such an argument.
_BETWEEN = ".between."
_FIRST = re.compile(
    r"^  (%\S+) = (?:getelementptr inbounds \[.*?\], ptr ([%@][-\w.$]+)(?:, i(?:32|64) 0)+"
    r"|load ptr, ptr (%[-\w.$]+)(?:, align \d+)?)(?:, !|$)"
)
_KEPT = re.compile(r"^  store ptr (%[-\w.$]+), ptr (%[-\w.$]+)[,\s]")
_CALL = re.compile(r"^  .*\bcall [^@]*@(\"[^\"]+\"|[-\w.$]+)\((.*)\)")
_DEFINE = re.compile(r"^define [^@]*@(\"[^\"]+\"|[-\w.$]+)\((.*)\)")
_SIZED = re.compile(
    r"(?m)^(?:  )?([%@][-\w.$]+) = (?:alloca|(?:[a-z_]+ )*(?:global|constant)) (\[.+\])[ ,]"
)
_VALUE = re.compile(r"^(ptr|i(?:8|16|32|64))\b.*?([%@][-\w.$]+|-?\d+)$")


@dataclass
class _Function:
    """A function: where it begins, its arguments by type and name, and its lines."""

    begin: str
    arguments: list[tuple[str, str]]
    lines: list[str]
    renames: dict[str, str] = field(default_factory=dict)


def of_several_sizes(text: str) -> dict[str, set[str]]:
    """Return, by function, the arguments for which one caller has arrays of several sizes."""
    functions = _functions(text)
    globals_ = dict(_SIZED.findall(text.partition("\ndefine ")[0]))
    found: dict[str, set[str]] = defaultdict(set)
    for name, function in functions.items():
        sizes = globals_ | dict(_SIZED.findall("\n".join(function.lines)))
        sizes |= {argument: "ptr" for kind, argument in function.arguments if kind == "ptr"}
        handed: dict[tuple[str, int], set[str]] = defaultdict(set)
        for callee, values in _made_in(name, function, {}):
            for at, (_, value) in enumerate(values):
                handed[callee, at] |= {sizes[value]} if value in sizes else set()
        for (callee, at), kinds in handed.items():
            own = functions[callee].arguments[at : at + 1] if callee in functions else []
            found[callee] |= {one[1:] for _, one in own if len(kinds) > 1}
    return found


def with_handed_over(text: str) -> str:
    """Return a raw module whose functions know what all their calls hand over."""
    functions = _functions(text)
    known: Mapping[tuple[str, str], str] = {}
    calls = _calls(functions, known)
    for _ in functions:  # what a function is handed it may hand on
        if (found := _same(functions, calls)) == known:
            break
        known, calls = found, _calls(functions, found)
    for (name, argument), other in known.items():
        text = _stored(text, functions[name], argument, "", other)
    for name, argument, type_, least, most in _between(functions, calls):
        given, made = f"{argument}{_BETWEEN}{least}.{most}", f"%{BETWEEN}.{argument[1:]}"
        code = ""
        for rule, value, of, limit in (
            ("smax", f"{made}.least", given, least), ("smin", made, f"{made}.least", most),
        ):  # fmt: skip
            callee = f"{type_} @llvm.{rule}.{type_}"
            code += f"  {value} = call {callee}({type_} {of}, {type_} {limit})\n"
            if f"declare {callee}(" not in text:
                text += f"\ndeclare {callee}({type_}, {type_})\n"
        text = _stored(text, functions[name], argument, code, made)
        functions[name].renames[argument] = given
    for function in functions.values():
        begin = function.begin
        for argument, given in function.renames.items():
            begin = re.sub(re.escape(argument) + r"(?![-\w.$])", given, begin)
        text = text.replace(function.begin, begin, 1) if function.renames else text
    return text


def between(name: str) -> range | None:
    """Return the numbers between which an argument is, by the name that it got here."""
    match = re.search(rf"{re.escape(_BETWEEN)}(-?\d+)\.(-?\d+)$", name)
    return range(int(match[1]), int(match[2]) + 1) if match else None


def _functions(text: str) -> dict[str, _Function]:
    return {
        match[1].strip('"'): _Function(lines[0], _values(lines[0]), lines)
        for match, lines in bodies_of(text)
    }


def _stored(text: str, function: _Function, argument: str, code: str, value: str) -> str:
    """Let a function keep another value for an argument, behind the code that makes it."""
    head, begin, body = text.partition(function.begin)
    kept = re.compile(rf"(?m)^  store (\S+) {re.escape(argument)}, ")
    return head + begin + kept.sub(lambda old: f"{code}  store {old[1]} {value}, ", body, count=1)


def _values(line: str) -> list[tuple[str, str]]:
    """Return the arguments of a call or a definition, by type and value; "" for any other."""
    match = (_CALL if line.startswith(" ") else _DEFINE).match(line)
    found = [_VALUE.match(one) for one in split_types(match[2])] if match else []
    return [(one[1], one[2]) if one else ("", "") for one in found]


def _calls(
    functions: Mapping[str, _Function], known: Mapping[tuple[str, str], str]
) -> dict[str, list[list[tuple[str, str]]]]:
    """Return what each call hands over, by the function that is called."""
    calls: dict[str, list[list[tuple[str, str]]]] = defaultdict(list)
    for name, function in functions.items():
        for callee, values in _made_in(name, function, known):
            calls[callee].append(values)
    return calls


def _made_in(
    name: str, function: _Function, known: Mapping[tuple[str, str], str]
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    kept: dict[str, str] = {}
    arrays: dict[str, str] = {}
    for line in function.lines[1:]:
        if match := _KEPT.match(line):
            kept[match[2]] = "" if match[2] in kept else known.get((name, match[1]), match[1])
        elif match := _FIRST.match(line):
            base = match[2] or kept.get(match[3], "")
            arrays[match[1]] = arrays.get(base, base)
        elif match := _CALL.match(line):
            values = [(kind, arrays.get(value, value)) for kind, value in _values(line)]
            yield match[1].strip('"'), values


def _same(
    functions: Mapping[str, _Function], calls: Mapping[str, list[list[tuple[str, str]]]]
) -> dict[tuple[str, str], str]:
    """Return, by function and argument, an argument before it that is the same array."""
    same: dict[tuple[str, str], str] = {}
    for name, handed in _fitting(functions, calls):
        arguments = functions[name].arguments
        for at, (kind, argument) in enumerate(arguments):
            first = next(
                (
                    other
                    for before, (_, other) in enumerate(arguments[:at])
                    if all(values[before] == values[at] and values[at][1] for values in handed)
                ),
                None,
            )
            if kind == "ptr" and first is not None:
                same[name, argument] = first
    return same


def _between(
    functions: Mapping[str, _Function], calls: Mapping[str, list[list[tuple[str, str]]]]
) -> Iterator[tuple[str, str, str, int, int]]:
    """Yield functions and arguments with their types, and the least and greatest number handed."""
    for name, handed in _fitting(functions, calls):
        for at, (kind, argument) in enumerate(functions[name].arguments):
            given = [values[at][1] for values in handed]
            if argument[1:].isdigit():  # it has no name, so it cannot get another
                continue
            if kind[:1] == "i" and len({*given}) > 1 and all(map(_NUMBER, given)):
                yield name, argument, kind, min(map(int, given)), max(map(int, given))


_NUMBER = re.compile(r"-?\d+$").match


def _fitting(
    functions: Mapping[str, _Function], calls: Mapping[str, list[list[tuple[str, str]]]]
) -> Iterator[tuple[str, list[list[tuple[str, str]]]]]:
    """Yield the functions that are called with as many arguments as they have."""
    for name, handed in calls.items():
        if name in functions:
            count = len(functions[name].arguments)
            if all(len(values) == count for values in handed):
                yield name, handed
