"""Loads of one of two arrays, of which clang makes one load of a pointer that a choice makes.

``j < 32 ? x[j] : h[j - 32]`` reads both memories in hardware, and chooses behind them; a branch
reads its own. LLVM merges the two loads (InstCombine has no switch for that), so that behind its
passes they are parted again. A pointer that goes through data, a list's next element, stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

from .whole import node_of

__all__ = ["WAY", "with_own_loads"]

#: How the names of loads begin of which another one may be the one that counts.
WAY = "%__hls_way."

_SELECT = re.compile(
    r"^  (?P<name>%\S+) = select i1 (?P<condition>[^ ,]+), "
    r"ptr (?P<one>[%@][^ ,]+), ptr (?P<other>[%@][^ ,]+)"
)
_PHI = re.compile(r"^  (?P<name>%\S+) = phi ptr (?P<ways>\[.*\])")
_WAY = re.compile(r"\[ ([%@][^ ,]+), %([^ ,]+) \]")
_ENTRY = re.compile(r", %[^ ,]+ \]")
_PART = re.compile(
    r"^  (?P<name>%\S+) = getelementptr (?P<start>.*?)ptr (?P<base>[%@][^ ,]+)(?P<rest>,.*)$"
)
_LOAD = re.compile(
    r"^  (?P<name>%\S+) = load (?P<type>[^,]+), ptr (?P<pointer>%[^ ,]+)(?P<rest>.*)$"
)
#: A pointer that another one is made of.
_POINTER = re.compile(r"(?:ptr|\[) (%[^ ,]+)")
_LABEL = re.compile(r"^([-\w.$]+|\"[^\"]+\"):")
_ENDS = re.compile(r"^  (?:br|switch|ret|unreachable|indirectbr)\b")
_WRITES = re.compile(r"^  (?:store |.*\bcall (?!void @__hls_loop))")


def with_own_loads(text: str) -> str:
    """Return a module whose choices are among what two arrays hold, not among their addresses."""
    if not re.search(r" = (?:select i1 [^,]+, ptr |phi ptr )", text):
        return text
    numbers = count()
    head, *functions = re.split(r"(?m)^(?=define )", text)
    return head + "".join(_Function(one, numbers).parted() for one in functions)


class _Function:
    """The lines of one function, and which of them makes a pointer."""

    def __init__(self, text: str, numbers: Iterator[int]) -> None:
        self._lines, self._numbers = text.split("\n"), numbers
        self._made: dict[str, re.Match[str]] = {}
        self._ways: dict[str, tuple[int, list[tuple[str, str]]]] = {}
        self._ends: dict[str, int] = {}
        self._left: list[str] = []
        block = "entry"
        for number, line in enumerate(self._lines):
            if label := _LABEL.match(line):
                block = label[1].strip('"')
            elif _ENDS.match(line):
                self._ends[block] = number
            elif found := _SELECT.match(line) or _PART.match(line):
                self._made[found["name"]] = found
            elif found := _PHI.match(line):
                self._ways[found["name"]] = number, _WAY.findall(found["ways"])

    def parted(self) -> str:
        """Return the function with a load for each array."""
        before: dict[int, list[str]] = {}
        for number, line in enumerate(self._lines):
            load = _LOAD.match(line)
            if load is None or "volatile" in line:
                continue
            if load["pointer"] in self._ways:
                self._in_branches(number, load, before)
            elif (chosen := self._choice(load["pointer"])) is not None:
                self._lines[number] = "\n".join(self._both(load, chosen))
                self._left.append(load["pointer"])
        for number, lines in before.items():
            self._lines[number] = "\n".join([*lines, self._lines[number]])
        return self._without_idle("\n".join(self._lines))

    def _without_idle(self, text: str) -> str:
        """Leave out the pointers that no load takes any more."""
        while self._left:
            name = re.escape(self._left.pop())
            if len(re.findall(rf"{name}(?![-\w.$])", text)) == 1:
                own = re.search(rf"(?m)^  {name} = .*\n", text)
                text = text.replace(own[0], "", 1) if own else text
                self._left += _POINTER.findall(own[0]) if own else []
        return text

    def _choice(self, pointer: str) -> tuple[str, str, str, list[str]] | None:
        """Return what chooses among which two pointers of two arrays, and what computes them."""
        made = self._made.get(pointer)
        if made is None:
            return None
        if "condition" in made.groupdict():
            roots = {self._root(made["one"]), self._root(made["other"])}
            apart = len(roots) == 2 and None not in roots
            return (made["condition"], made["one"], made["other"], []) if apart else None
        below = self._choice(made["base"])
        if below is None:
            return None
        condition, *bases, lines = below
        names = [f"{WAY}{next(self._numbers)}" for _ in bases]
        for name, base in zip(names, bases, strict=True):
            line = f"  {name} = getelementptr {made['start']}ptr {base}{made['rest']}"
            found = _PART.match(line)
            assert found is not None
            self._made[name], lines = found, [*lines, line]
        return condition, names[0], names[1], lines

    def _root(self, pointer: str) -> object:
        """Return the array that a pointer is into; those of a choice together, None for data's."""
        made = self._made.get(pointer)
        if made is None:
            known = pointer[0] == "@" or pointer in self._ways or self._is_array(pointer)
            return pointer if known and pointer not in self._ways else None
        if "condition" in made.groupdict():
            roots = frozenset((self._root(made["one"]), self._root(made["other"])))
            return None if None in roots else roots
        return self._root(made["base"])

    def _is_array(self, pointer: str) -> bool:
        """Whether a pointer is an argument or a variable of the function's own."""
        start = f"  {pointer} = "
        own = next((line for line in self._lines if line.startswith(start)), "")
        return not own or own.startswith(f"{start}alloca ")

    def _both(self, load: re.Match[str], chosen: tuple[str, str, str, list[str]]) -> Iterator[str]:
        """Yield the two loads, and the choice behind them."""
        condition, one, other, lines = chosen
        yield from lines
        names = []
        for pointer in (one, other):
            names.append(f"{WAY}{next(self._numbers)}")
            line = f"  {names[-1]} = load {load['type']}, ptr {pointer}{load['rest']}"
            below = self._choice(pointer)
            again = _LOAD.match(line)
            yield from [line] if below is None or again is None else self._both(again, below)
        kind = load["type"]
        yield (
            f"  {load['name']} = select i1 {condition}, {kind} {names[0]}, {kind} {names[1]}"
            f"{node_of(load)}"
        )

    def _in_branches(self, number: int, load: re.Match[str], before: dict[int, list[str]]) -> None:
        """Put a load at the end of each branch that chooses its pointer."""
        phi, ways = self._ways[load["pointer"]]
        roots = {self._root(pointer) for pointer, _ in ways}
        between = self._lines[phi + 1 : number]
        if len(roots) < 2 or None in roots or any(map(_stops, between)):
            return
        ends = {block: self._ends.get(block, -1) for _, block in ways}
        if len(ways) < len(_ENTRY.findall(self._lines[phi])):  # one is a constant address
            return
        if any(not 0 <= end < phi for end in ends.values()):  # a loop's own
            return
        names: dict[str, str] = {}
        for pointer, block in ways:  # several cases of a `switch` may come from one block
            if block not in names:
                names[block] = f"{WAY}{next(self._numbers)}"
                line = f"  {names[block]} = load {load['type']}, ptr {pointer}{load['rest']}"
                before.setdefault(ends[block], []).append(line)
        pairs = ", ".join(f"[ {names[block]}, %{block} ]" for _, block in ways)
        self._lines[phi] += f"\n  {load['name']} = phi {load['type']} {pairs}{node_of(load)}"
        self._lines[number] = ""
        self._left.append(load["pointer"])


def _stops(line: str) -> bool:
    """Whether no load may move before a line: it writes, or another block begins."""
    return bool(_WRITES.match(line) or _LABEL.match(line))
