"""Places in a source."""

from __future__ import annotations

import functools
import os
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pynq_torch.paths import shown

from .. import toolchain

if TYPE_CHECKING:
    from .ir import Function

__all__ = [
    "Key", "Locations", "Place", "apart", "give_places", "header_folders", "own_place",
    "plain_name", "real_path", "written_in",
]  # fmt: skip


_ESCAPED = re.compile(rb"\\([0-9A-F]{2})")


#: A place's file without links, line, column and function.
Key = tuple[str, int, int, str]


@dataclass(frozen=True)
class Place:
    """Where something is in the source: file as the compiler names it, line and column from 1."""

    file: str
    line: int
    column: int = 0
    #: The function around it by LLVM's name, which tells the instances of a template apart.
    function: str = ""

    @property
    def key(self) -> Key:
        """What is the same of a place wherever it is named."""
        return self.path, self.line, self.column, self.function

    @property
    def path(self) -> str:
        """The file without links: one file has several names."""
        return real_path(self.file)

    @property
    def shown(self) -> str:
        """File and line, as a message names them."""
        return f"{shown(Path(self.file))}:{self.line}"


@functools.lru_cache(maxsize=1024)
def real_path(file: str) -> str:
    """Return a file's path without links."""
    return os.path.realpath(file)


def own_place(chain: Sequence[Place]) -> Place | None:
    """Return the innermost place in the kernel's own files; LLVM gives what it merges line 0."""
    return next((at for at in chain if at.line and not at.file.startswith(header_folders())), None)


#: Columns from one loop of a macro to the next: all are where the macro is used.
_APART = 1000


def apart(place: Place, seen: Counter[Key]) -> Place:
    """Return the place of a loop, another one for each at the same place, the outermost first."""
    found = seen[place.key]
    seen[place.key] += 1
    return replace(place, column=place.column + _APART * found)


@functools.cache
def header_folders() -> tuple[str, ...]:
    """Return the folders of HLS headers: what is in them is no kernel's."""
    return toolchain.header_dirs()


def _as_written(path: str) -> str:
    """Return a path of LLVM's, where two digits behind a backslash are a byte that is not ASCII."""
    plain = _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), path.encode())
    return plain.decode("utf-8", "surrogateescape")


class Locations:
    """The debug locations of a module: ``!12`` to a place in the source."""

    def __init__(self, text: str) -> None:
        self._nodes = dict(re.findall(r"^(!\d+) = (.*)$", text, re.MULTILINE))
        self._files: dict[str, str] = {}
        self._functions: dict[str, str] = {}

    def _field(self, node: str, name: str) -> str:
        match = re.search(rf"\b{name}: (\"[^\"]*\"|[^,)]+)", self._nodes.get(node, ""))
        return match[1].strip('"') if match else ""

    def _file(self, scope: str) -> str:
        if scope not in self._files:
            node = self._field(scope, "file")
            name, folder = self._field(node, "filename"), self._field(node, "directory")
            self._files[scope] = _as_written(name if name[:1] == "/" else f"{folder}/{name}")
        return self._files[scope]

    def _name(self, node: str) -> str:
        return self._field(node, "linkageName") or self._field(node, "name")

    def _function(self, scope: str) -> str:
        """Return the function around a scope; for a lambda the one that it is written in."""
        if scope not in self._functions:
            node = scope
            while self._nodes.get(node, "").startswith(("!DILex", "distinct !DILex")):
                node = self._field(node, "scope")
            self._functions[scope] = written_in(self._name(node), self._names)
        return self._functions[scope]

    @functools.cached_property
    def _names(self) -> set[str]:
        functions = (node for node, text in self._nodes.items() if "!DISubprogram(" in text)
        return {self._name(node) for node in functions}

    def of_function(self, node: str) -> Place:
        """Where a function's name is."""
        return Place(self._file(node), int(self._field(node, "line") or 0), 0, self._name(node))

    def text_of(self, node: str) -> str:
        """Return what a node is."""
        return str(self._nodes[node])

    def ends_of(self, node: str) -> list[str]:
        """Return the locations in a loop's metadata: where it begins, and where it ends."""
        parts = re.findall(r"!\d+", self._nodes.get(node, ""))[1:]
        return [part for part in parts if self._nodes.get(part, "").startswith("!DILocation")]

    def start_of(self, node: str) -> str:
        """Return the first location in a loop's metadata, ``""`` for none."""
        return next(iter(self.ends_of(node)), "")

    def of_loop(self, node: str) -> Place | None:
        """Where a loop's keyword is; None for a loop without a place."""
        start = self.start_of(node)
        return self.of(start) if start else None

    def of(self, node: str) -> Place | None:
        """Where an instruction is, as written, not where it was inlined."""
        line = self._field(node, "line")
        if not line:
            return None
        column, scope = int(self._field(node, "column") or 0), self._field(node, "scope")
        return Place(self._file(scope), int(line), column, self._function(scope))

    def moved(self, node: str, place: Place) -> str:
        """Return the text of a location with the column of another place."""
        return re.sub(r"\bcolumn: \d+", f"column: {place.column}", self._nodes[node])

    def chain(self, node: str) -> list[Place]:
        """Where an instruction is, then the calls that inlined it, innermost first."""
        found = []
        while node:
            place = self.of(node)
            if place is not None:
                found.append(place)
            node = self._field(node, "inlinedAt")
        return found


def written_in(name: str, names: Collection[str]) -> str:
    """Return which of the functions `names` holds the local class or lambda that `name` is of.

    The name itself where it is of none. Names are LLVM's: ``_ZZ3topPiENK3$_0clEv`` is of a lambda
    in ``_Z3topPi``, ``_ZZ3topENK3$_0clEv`` of one in ``top`` of C.
    """
    while name.startswith("_ZZ"):
        local = name[2:]
        homes = (
            one
            for one in names
            if local.startswith(f"{one[1:]}E" if one[:2] == "_Z" else f"Z{len(one)}{one}E")
        )
        home = max(homes, key=len, default=name)
        if home == name:
            break
        name = home
    return name


def plain_name(base: str) -> str:
    """Return the name in the source of ``%buf.i``, ``@top.buf`` or ``@_ZZ3topvE3buf``.

    Members of a struct have theirs behind it: ``%tab.i$v`` is ``tab.v``.
    """
    if "$" in base:
        base, *members = base.split("$")
        return ".".join([plain_name(base), *(re.split(r"\W", one)[0] for one in members)])
    name = base.lstrip("%@").strip('"')
    if match := re.match(r"^_ZZ.*E(\d+)(\D\w*)$", name):
        return match[2][: int(match[1])]
    if match := re.match(r"^_Z(?:N\w*?|L)?(\d+)(\D\w*)$", name):
        inner = match[2][int(match[1]) :]  # of a namespace or a class
        deeper = re.match(r"L?\d", inner) if name.startswith("_ZN") else None
        return plain_name(f"_ZN{inner}") if deeper else match[2][: int(match[1])]
    if base.startswith("@"):  # C writes FUNCTION.VARIABLE, and __const.FUNCTION.VARIABLE
        parts = [part for part in name.split(".") if part and not part.isdigit()]
        return parts[-1] if parts else name
    return re.sub(r"\.(?:addr|sroa)\b.*$", "", name).split(".")[0]


def give_places(function: Function) -> None:
    """Give what LLVM has moved, and left without a place, that of the first that uses it."""
    for block in reversed(function.blocks.values()):
        for item in reversed(block.instructions):
            moved = (function.values.get(name) for name in item.operands if item.chain)
            for made in (one for one in moved if one is not None and one.moved):
                made.chain = item.chain
