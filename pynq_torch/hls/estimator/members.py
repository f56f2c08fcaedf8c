"""Structs that hold arrays, taken apart into a variable for each member, as HLS does.

UG1399, "Structs": local and static structs are disaggregated by default. Each array in one is a
memory with ports of its own, as one that stands alone; in an array of structs it has the
dimensions of both. LLVM's own pass leaves a struct whole whose array has an index that varies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .ir import NAME, Module
from .objects import Handed, defines, misfits, with_members_handed
from .place import plain_name

if TYPE_CHECKING:
    from .asked import FunctionPlan

__all__ = ["Members", "has_members", "only_member", "with_members"]

#: Of structs by their name in the source: the byte where a member begins -> the member's name; of
#: each struct of that name, as functions have their own.
Members = Mapping[str, Sequence[Mapping[int, str]]]
_LOCAL = re.compile(r"(?m)^  (%[-\w.$]+) = alloca (.+?)(, align .*)?$")
_STATIC = re.compile(r"(?m)^(@[-\w.$]+) = internal global (.+) zeroinitializer(, align .*)?$")
_ARRAY = re.compile(r"^\[(\d+) x (.*)\]$")
_PADDING = re.compile(r"^\[\d+ x i8\]$")
_INDEX = r"(?:, i\d+ [^\s,()]+)*"
#: The bytes that a function of <string.h> takes.
_PART = re.compile(r"@mem(?:set|cpy|move)\(.*, i64 (?:noundef )?(\d+)\)")
_SET = re.compile(r", i8 0, i64 (\d+), i1 ")


@dataclass
class _Struct:
    """A variable that is a struct or an array of some, and what becomes of it."""

    name: str
    kind: str
    dimensions: tuple[str, ...]
    members: list[tuple[str, str]]

    def around(self, kind: str, level: int = 0) -> str:
        """Return the type of a member in as many arrays as its struct is, less those left out."""
        for size in reversed(self.dimensions[level:]):
            kind = f"[{size} x {kind}]"
        return kind

    def level(self, level: int) -> str:
        """Return its own type, less so many of the arrays around it."""
        kind = self.kind
        for _ in range(level):
            kind = kind.split(" x ", 1)[1].removesuffix("]")
        return kind


def has_members(text: str, names: Members) -> bool:
    """Whether a module has a struct of which the members' names are known."""
    return any(plain_name(name) in names for name, _ in _found(text))


def with_members(text: str, names: Members) -> str:
    """Return a module in which the structs are taken apart that are used by their members alone."""
    types = dict(re.findall(rf"(?m)^(%{NAME}) = type (.*)$", text))
    layout = Module({}, {}, types, {})
    chunks = re.split(r"(?m)^(?=define )", text)
    handed = Handed(chunks, layout.structs)
    handed.keep(lambda one: _struct(one.name, one.kind, names, layout) is not None, layout.bytes_of)
    while True:
        made = list(chunks)
        wrong = _take_handed(made, handed, names, layout)
        if not wrong:
            _take_variables(made, handed, names, layout)
            wrong = misfits(made, handed)
        if not wrong:
            return "".join(made)
        handed.drop(wrong)


def _take_handed(chunks: list[str], handed: Handed, names: Members, layout: Module) -> set[str]:
    """Take apart what functions are handed; return the functions in which that does not go."""
    wrong = set()
    for one in handed.arguments.values():
        at = next(n for n, chunk in enumerate(chunks) if defines(chunk, one.function))
        struct, body = _struct(one.name, one.kind, names, layout), None
        if struct is not None:
            body = _taken_apart(_in_one_step(chunks[at], struct), struct, layout, handed)
        if body is None:
            wrong.add(one.function)
        else:
            chunks[at] = body
    return wrong


def _take_variables(chunks: list[str], handed: Handed, names: Members, layout: Module) -> None:
    for number, chunk in enumerate(chunks):
        left = [*_found(chunk)]
        for name, kind in left:  # which grows by the structs in a struct
            struct = _struct(name, kind, names, layout)
            where = range(len(chunks)) if name[0] == "@" else (number,)
            made = {
                at: _taken_apart(_in_one_step(chunks[at], struct), struct, layout, handed)
                for at in where
                if struct
            }
            for at, body in made.items() if None not in made.values() else ():
                chunks[at] = body or ""
            if struct and None not in made.values():
                left += [(f"{name}${one}", struct.around(part)) for one, part in struct.members]


def _found(text: str) -> Iterator[tuple[str, str]]:
    """Yield the variables of a text that may be structs, each with its type."""
    for pattern in (_LOCAL, _STATIC):
        for match in pattern.finditer(text):
            if "%" in match[2] and ", i" not in match[2]:
                yield match[1], match[2]


def _struct(name: str, kind: str, names: Members, layout: Module) -> _Struct | None:
    """Return a struct's members by name and type; None where it is none, or a name is not known."""
    whole, sizes = kind, []
    while (match := _ARRAY.match(kind)) is not None:
        sizes.append(match[1])
        kind = match[2]
    if kind not in layout.structs:
        return None
    parts = [*layout.members(layout.structs[kind])]
    places = {at for at, part in parts if not _PADDING.match(part)}
    fits = (one for one in names.get(plain_name(name), ()) if places <= {*one} <= {*dict(parts)})
    known = next(fits, None)
    if known is None:
        return None
    return _Struct(name, whole, tuple(sizes), [(known.get(at, f"pad{at}"), p) for at, p in parts])


def _in_one_step(chunk: str, struct: _Struct) -> str:
    """Return a function in which the address of a member is made from that of all, not of one."""
    first = [*_leading(struct)][:-1]
    kinds = {kind: ", i32 0" + ", i64 0" * level for level, kind in enumerate(first)}
    kinds[struct.level(len(struct.dimensions))] = ""
    begin = rf"getelementptr inbounds \[[^()\n]*\], ptr {re.escape(struct.name)}{_INDEX}"
    elements = {
        name: whole
        for name, whole in re.findall(rf"(?m)^  (%\S+) = ({begin})(?=, !|$)", chunk)
        if whole.count(", i") <= len(struct.dimensions) + 1
    }
    known = "|".join(map(re.escape, kinds))
    return re.sub(
        rf"getelementptr inbounds ({known}), ptr ([^\s,()]+), i64 0(?=, i)",
        lambda at: elements[at[2]] + kinds[at[1]] if at[2] in elements else at[0],
        chunk,
    )


def _taken_apart(chunk: str, struct: _Struct, layout: Module, handed: Handed) -> str | None:
    """Return a function with the members in place of their struct; None where it is used whole."""
    name = re.compile(re.escape(struct.name) + r"(?![-\w.$])")
    rows = []
    for line in chunk.split("\n"):
        uses = len(name.findall(line)) if struct.name in line and line[:1] != "!" else 0
        made = _rewritten(line, uses, struct, layout, handed) if uses else line
        if made is None or (uses and _points_at_whole(line, struct, chunk)):
            return None
        rows.append(made)
    return "\n".join(rows)


def _rewritten(line: str, uses: int, struct: _Struct, layout: Module, handed: Handed) -> str | None:
    """Return a line that uses a struct with its members instead; None where it uses all of it."""
    name, first = struct.name, struct.members[0][0]
    own = [one for one, _ in struct.members]
    if (made := with_members_handed(line, handed, name, own)) is not None:
        return made
    if (size := _PART.search(line)) and int(size[1]) <= layout.bytes_of(struct.members[0][1]):
        return re.sub(re.escape(name) + r"(?![-\w.$])", f"{name}${first}", line)
    if line.startswith((f"  {name} = alloca ", f"{name} = ")):
        return "\n".join(
            line.replace(name, f"{name}${one}", 1).replace(struct.kind, struct.around(part), 1)
            for one, part in struct.members
        )
    if "@llvm.lifetime" in line:
        return ""
    if (size := _SET.search(line)) and "@llvm.memset" in line:
        if int(size[1]) != layout.bytes_of(struct.kind):
            return None
        plain = re.sub(r"dereferenceable\(\d+\) ", "", line)
        return "\n".join(
            plain.replace(name, f"{name}${one}").replace(
                size[0], f", i8 0, i64 {layout.bytes_of(struct.around(part))}, i1 "
            )
            for one, part in struct.members
        )
    address = re.compile(rf"getelementptr inbounds (\(?)([^()]+?), ptr {re.escape(name)}({_INDEX})")
    if len(found := address.findall(line)) == uses:
        parts = [_member(struct, kind, indices) for _, kind, indices in found]
        if None in parts:
            return None
        rest = iter(parts)
        return address.sub(lambda match: f"getelementptr inbounds {match[1]}{next(rest)}", line)
    kind = re.escape([*_leading(struct)][-1])
    value = rf"^  (?:%\S+ = load {kind}|store {kind} .*), ptr {re.escape(name)}(?=,|$)"
    if uses == 1 and (re.search(value, line) or (" call " in line and len(struct.members) == 1)):
        return re.sub(re.escape(name) + r"(?![-\w.$])", f"{name}${first}", line)
    return None


def _member(struct: _Struct, kind: str, indices: str) -> str | None:
    """Return type, variable and indices of a member's address; None where no member has it."""
    found = indices.split(", ")[1:]
    level = next((n for n in range(len(struct.dimensions) + 1) if struct.level(n) == kind), None)
    if level is None:  # it is the first member by its own type
        is_first = kind in _leading(struct)
        return f"{kind}, ptr {struct.name}${struct.members[0][0]}{indices}" if is_first else None
    at = len(struct.dimensions) - level + 1
    number = int(found.pop(at).split()[1]) if len(found) > at else 0
    name, part = struct.members[number]
    return ", ".join([struct.around(part, level), f"ptr {struct.name}${name}", *found])


def _points_at_whole(line: str, struct: _Struct, chunk: str) -> bool:
    """Whether a line makes an address of a whole struct, at which not its first member is read."""
    made = re.match(rf"^  (%\S+) = getelementptr inbounds (.+?), ptr .*?({_INDEX})(?:, !|$)", line)
    if made is None or struct.level(len(struct.dimensions)) not in made[2]:
        return False
    level = made[2].count("[")
    if len(made[3].split(", ")) - 1 > level + 1:
        return False
    pointer = re.escape(made[1])
    used = re.findall(rf"(?m)^(.*){pointer}(?![-\w.$])", chunk)
    kind = re.escape([*_leading(struct)][-1])  # what copies a struct takes all of it
    plain = re.compile(rf"^  (?:%\S+ = load {kind}|store {kind} .*), ptr $|^  $")
    return not all(map(plain.match, used))


def _leading(struct: _Struct) -> Iterator[str]:
    """Yield the types that begin where a struct does: its first member, and what is first in it."""
    kind = struct.members[0][1]
    yield kind
    while match := _ARRAY.match(kind):
        kind = match[2]
        yield kind


def only_member(owner: FunctionPlan, name: str) -> str | None:
    """Return the array that an argument which is a struct consists of: a port of its own.

    "Disaggregating variable", say logs of 2022; where it is a word of a bus or a stream it stays.
    """
    mode = owner.ports.get(name, {}).get("mode", "").lower()
    members = owner.members.get(name, {})
    if mode in ("m_axi", "axis", "ap_fifo") or [*members] != [0]:
        return None
    only = f"{name}.{members[0]}"
    return only if owner.dimensions.get(only) and only in owner.words else None
