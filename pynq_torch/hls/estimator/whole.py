"""Numbers of 65 to 127 bits that functions are handed: LLVM keeps them in registers if widened.

clang hands them over as two words, through a variable on the stack, which LLVM's ``sroa`` takes
apart only where whole bytes are written. Left there it would count as a memory.
"""

from __future__ import annotations

import re
from itertools import count

__all__ = ["node_of", "with_copied_elements", "with_names", "with_whole_words"]

_WIDE = r"i(?P<bits>6[5-9]|[7-9]\d|1[01]\d|12[0-7])"
_PLACE = r"(?P<pointer>ptr \S+, align \d+)(?P<rest>.*)$"
_STORE = re.compile(rf"(?m)^  store {_WIDE} (?P<value>\S+), {_PLACE}")
_LOAD = re.compile(rf"(?m)^  (?P<name>\S+) = load {_WIDE}, {_PLACE}")
_NODE = re.compile(r", !dbg !\d+")

_ATTRIBUTES = re.compile(
    r"\b(?:noundef|nonnull|noalias|nocapture|readonly|writeonly|align \d+|"
    r"dereferenceable(?:_or_null)?\(\d+\)) "
)
#: A copy of one struct by another; ``memcpy`` of the source stays a call, a loop for HLS.
_ELEMENT = re.compile(
    r"(?m)^  call void @llvm\.mem(?:cpy|move)\.p0\.p0\.i64\(ptr (?P<ends>.*), i64 (?P<bytes>\d+), "
    r"i1 false\)(?P<rest>.*)$"
)
#: Bytes of a struct that still is one element.
_MOST = 128
#: clang's own variables, for what it hands to functions: they are wires.
_OWN = re.compile(r"%(?:indirect-arg-temp|byval-temp|coerce|agg\.tmp|ref\.tmp)")


def with_copied_elements(text: str) -> str:
    """Return a module in which a struct that is copied is read and written as one number.

    What LLVM has left of such copies goes from memory to memory, and takes ports there.
    """
    numbers = count()

    def moved(match: re.Match[str]) -> str:
        size = int(match["bytes"])
        if size > _MOST or _OWN.search(match[0]):
            return match[0]
        name, node = f"%element.{next(numbers)}", node_of(match)
        to, source = _both(_ATTRIBUTES.sub("", match["ends"]))
        return (
            f"  {name} = load i{8 * size}, ptr {source}, align 1{node}\n"
            f"  store i{8 * size} {name}, ptr {to}, align 1{node}"
        )

    return _ELEMENT.sub(moved, text)


def _both(ends: str) -> tuple[str, str]:
    """Return two pointers of which the second is behind ``ptr``; either may be an expression."""
    depth = 0
    for at, letter in enumerate(ends):
        depth += (letter in "([") - (letter in ")]")
        if not depth and ends.startswith(", ptr ", at):
            return ends[:at], ends[at + len(", ptr ") :]
    raise AssertionError(f"a copy has two pointers, found {ends}")


def with_whole_words(text: str) -> str:
    """Return a raw module that writes and reads such numbers as the 16 bytes that they take."""
    numbers = count()

    def stored(match: re.Match[str]) -> str:
        name, node = f"%whole.{next(numbers)}", node_of(match)
        return (
            f"  {name} = zext i{match['bits']} {match['value']} to i128{node}\n"
            f"  store i128 {name}, {match['pointer']}{node}"
        )

    def loaded(match: re.Match[str]) -> str:
        name, node = f"%whole.{next(numbers)}", node_of(match)
        return (
            f"  {name} = load i128, {match['pointer']}{node}\n"
            f"  {match['name']} = trunc i128 {name} to i{match['bits']}{node}"
        )

    return _LOAD.sub(loaded, _STORE.sub(stored, text))


def node_of(match: re.Match[str]) -> str:
    """Return where in the source an instruction comes from, as its text has it behind a comma."""
    found = _NODE.search(match["rest"])
    return found[0] if found else ""


def with_names(text: str) -> str:
    """Return a module with names for numbers, so that instructions can be left out."""
    letter = "v"
    while re.search(rf"%{letter}\d", text):  # a variable of the kernel's
        letter += "v"
    rows = (  # a table's text stays as it is
        row if row.startswith("@") else re.sub(r"%(\d+)\b", rf"%{letter}\1", row)
        for row in re.sub(r"(?m)^(\d+):", rf"{letter}\1:", text).split("\n")
    )
    return "\n".join(rows)
