"""Structs that functions are handed by their address: ``update(&ctx, ...)``, methods' ``this``.

HLS disaggregates a struct of the kernel's own wherever it goes (UG1399, "Structs"): the function
gets each member on its own, an array as a memory of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from .ir import NAME, split_types

__all__ = ["Handed", "defines", "misfits", "with_members_handed"]

_DEFINE = re.compile(rf"^define [^@]*@({NAME})\((.*)\)[^()]*\{{$")
_CALL = re.compile(rf"^  .*\bcall [^@(]*@({NAME})\((.*)\)[^()]*$")
_POINTER = re.compile(rf"^ptr\b.*?([%@]{NAME})$")
_VARIABLE = re.compile(
    r"(?m)^(?:  )?([%@][-\w.$]+) = (?:alloca|internal global) (?:\[\d+ x )*(%[^\s,\]]+)"
)


@dataclass(frozen=True)
class Argument:
    """An argument that is a struct's address: its place and name, and the struct's type."""

    function: str
    at: int
    name: str
    kind: str


@dataclass
class Handed:
    """What the functions of a module are handed by address."""

    chunks: Sequence[str]
    kinds: Collection[str]
    #: The structs.
    arguments: dict[tuple[str, int], Argument] = field(default_factory=dict)
    #: What is an array at some calls: the first member of a struct at others.
    arrays: set[tuple[str, int]] = field(default_factory=set)
    #: By caller: its name, the variables that it knows with their types, what it calls with what.
    _callers: list[tuple[str, dict[str, str], list[tuple[str, list[str]]]]] = field(
        default_factory=list
    )

    def __post_init__(self) -> None:
        names: dict[str, list[str]] = {}
        globals_ = dict(_VARIABLE.findall(self.chunks[0]))
        for chunk in self.chunks[1:]:
            head, _, body = chunk.partition("\n")
            if match := _DEFINE.match(head):
                names[match[1]] = _pointers(match[2])
            lines = (line for line in body.split("\n") if "call " in line)
            calls = [(one[1], _pointers(one[2])) for one in map(_CALL.match, lines) if one]
            known = globals_ | dict(_VARIABLE.findall(chunk))
            self._callers.append((match[1] if match else "", known, calls))
        self.arrays = {(name, at) for name, own in names.items() for at in range(len(own))}
        found = self.arguments
        while new := [
            Argument(name, at, names[name][at], kind)
            for name in names
            for at, kind in self._calls(name)
            if kind in self.kinds and (name, at) not in found and names[name][at : at + 1] > [""]
        ]:
            found.update({(one.function, one.at): one for one in new})
        while wrong := [key for key, one in found.items() if not self._always(one)]:
            for key in wrong:
                del found[key]
        self.arrays -= found.keys()

    def _calls(self, function: str) -> Iterator[tuple[int, str]]:
        """Yield the places of a function's arguments, with the types of the structs they are."""
        for caller, variables, calls in self._callers:
            own = {one.name: one.kind for one in self.arguments.values() if one.function == caller}
            for callee, values in calls:
                if callee == function:
                    for at, value in enumerate(values):
                        yield at, own.get(value) or variables.get(value, "")

    def _always(self, argument: Argument) -> bool:
        """Whether each call hands over a struct of one type."""
        kinds = {kind for at, kind in self._calls(argument.function) if at == argument.at}
        return kinds == {argument.kind}

    def keep(self, is_known: Callable[[Argument], bool], bytes_of: Callable[[str], int]) -> None:
        """Keep the structs whose members' names are known; what is no struct is an array."""
        others = {key: one for key, one in self.arguments.items() if not is_known(one)}
        self.arguments = {key: one for key, one in self.arguments.items() if key not in others}
        for key, one in others.items():
            chunk = next(chunk for chunk in self.chunks if defines(chunk, one.function))
            size = re.search(rf"dereferenceable\((\d+)\) {re.escape(one.name)}[,)]", chunk)
            whole = size is not None and int(size[1]) >= bytes_of(one.kind)
            if not whole and f" {one.kind}, ptr {one.name}," not in chunk:
                self.arrays.add(key)

    def drop(self, functions: Collection[str]) -> None:
        """Leave out functions that need a struct as a whole."""
        self.arguments = {
            key: one for key, one in self.arguments.items() if key[0] not in functions
        }


def defines(chunk: str, function: str) -> bool:
    """Whether a chunk of a module is a function."""
    match = _DEFINE.match(chunk.split("\n", 1)[0])
    return match is not None and match[1] == function


def misfits(chunks: Sequence[str], handed: Handed) -> set[str]:
    """Return the functions that a call does not hand as much as they take."""
    found = set()
    for name in {one.function for one in handed.arguments.values()}:
        own = next(chunk for chunk in chunks if defines(chunk, name)).split("\n", 1)[0]
        match = _DEFINE.match(own)
        count = len(split_types(match[2])) if match else 0
        if any(len(values) != count for chunk in chunks[1:] for values in _calls_of(chunk, name)):
            found.add(name)
    return found


def _calls_of(chunk: str, function: str) -> Iterator[list[str]]:
    """Yield what each call of a function hands over: its pointers, ``""`` for what is none."""
    for line in chunk.split("\n")[1:]:
        match = _CALL.match(line) if f"@{function}(" in line else None
        if match is not None and match[1] == function:
            yield _pointers(match[2])


def _pointers(arguments: str) -> list[str]:
    found = (_POINTER.match(one) for one in split_types(arguments))
    return [one[1] if one else "" for one in found]


def with_members_handed(line: str, handed: Handed, name: str, members: Sequence[str]) -> str | None:
    """Return a call, or a function's first line, with a struct's members in place of its address.

    None where it hands over the address to what wants all of the struct.
    """
    begins = line.startswith("define ")
    match = (_DEFINE if begins else _CALL).match(line)
    if match is None:
        return None
    made = []
    for at, one in enumerate(split_types(match[2])):
        if (pointer := _POINTER.match(one)) is None or pointer[1] != name:
            made.append(one)
        elif (match[1], at) in handed.arguments:
            made += [f"ptr {'noalias ' * begins}noundef {name}${member}" for member in members]
        elif (match[1], at) in handed.arrays:
            made.append(f"ptr noundef {name}${members[0]}")
        else:
            return None
    return line[: match.start(2)] + ", ".join(made) + line[match.end(2) :]
