"""Functions that are inlined have loops of their own at each call, and so does their plan.

The rounds of a cipher call the same functions as its last round. Those in the loop are unrolled
where that becomes a pipeline; behind it they stay loops (a log of Vitis HLS 2021.1 has a pipeline
for each call of one function, and a loop that unrolls those of other calls). Calls that stand in
one loop share their fate, and one function.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Collection, Iterator

from .marks import CALL, LOOP, bodies_of
from .place import Locations

__all__ = ["original_of", "with_own_loops"]

#: What stands between a function's name and the number of its copy.
_COPY = ".copy."
#: The first number of the nodes of copies. More copies than that would be slow.
_ADDED, _MOST = 7_000_000, 60
_NODE = re.compile(r"!\d+\b")
_SCOPED = re.compile(
    r"(?m)^(!\d+) = (?:distinct )?!DI(?:Location|LexicalBlock(?:File)?|LocalVariable|Label)"
    r"\(.*\bscope: (!\d+)\b.*$"
)
#: Where a loop begins and where it ends, each by line and column.
_Extent = tuple[tuple[int, int], tuple[int, int]]


def original_of(name: str) -> str:
    """Return the name of the function that one is a copy of, or its own."""
    return name.partition(_COPY)[0]


def with_own_loops(text: str, entry: str, names: Collection[str]) -> str:
    """Return a raw module in which calls in different loops have functions of their own.

    Parameters
    ----------
    text, entry : str
        The raw module and its top function.
    names : collection of str
        The functions that are inlined and have loops.
    """
    if not names:
        return text
    apart = _Copies(text, names, each=True).made(entry)
    if apart is None:
        apart = _Copies(text, names).made(entry)
    return text if apart is None else apart


class _Copies:
    """The functions of a module, and copies of some of them."""

    def __init__(self, text: str, names: Collection[str], *, each: bool = False) -> None:
        self._text = text
        self._each = each
        self._names = names
        self._places = Locations(text)
        bodies = [*bodies_of(text)]
        self._bodies = {match[1].strip('"'): lines for match, lines in bodies}
        self._nodes = {match[1].strip('"'): match[4] for match, _ in bodies}
        #: Of each function and loop around a call, which copy of the callee it has.
        self._taken: dict[tuple[str, str, str], str] = {}
        self._counts = dict.fromkeys(names, 0)
        self._added = 0

    def made(self, entry: str) -> str | None:
        """Return the module with the copies, which may be none; None where there are too many."""
        changed: dict[str, list[str]] = {}
        waiting = [entry]
        for name in waiting:
            if name not in changed and original_of(name) in self._bodies:
                changed[name] = self._with_copies(name, waiting)
            if len(self._taken) > _MOST:
                return None
        copies = [name for name in changed if _COPY in name]
        if not copies:
            return self._text
        for name in changed.keys() - copies:
            old, new = ("\n".join(lines[name]) for lines in (self._bodies, changed))
            self._text = self._text.replace(old, new, 1) if old != new else self._text
        return self._text + "".join(self._copied(changed[name], name) for name in copies)

    def _with_copies(self, name: str, waiting: list[str]) -> list[str]:
        """Return a function's lines with calls of copies; note all that it calls."""
        lines = [*self._bodies[original_of(name)]]
        loops = [*self._loops(lines)]
        for number, line in enumerate(lines):
            if (call := CALL.match(line)) is None:
                continue
            callee = call[1].strip('"')
            if callee in self._names and call[2]:
                around = self._loop_around(call[2], loops)
                around = around or (str(number) if self._each else "")
                callee = self._copy_for(callee, name, around)
                lines[number] = line.replace(f"@{call[1]}(", f"@{callee}(", 1)
            waiting.append(callee)
        return lines

    def _copy_for(self, callee: str, caller: str, loop: str) -> str:
        """Return the name of the copy that calls in a loop of a caller have."""
        key = callee, caller, loop
        if key not in self._taken:
            count = self._counts[callee]
            self._counts[callee] += 1
            self._taken[key] = f"{callee}{_COPY}{count}" if count else callee
        return self._taken[key]

    def _loops(self, lines: Collection[str]) -> Iterator[tuple[str, _Extent]]:
        """Yield the nodes of the loops in some lines, and where each begins and ends."""
        for node in _loop_nodes(lines):
            ends = [self._places.of(one) for one in self._places.ends_of(node)]
            if len(ends) > 1 and ends[0] is not None and ends[1] is not None:
                first, last = ((at.line, at.column) for at in ends[:2] if at is not None)
                yield node, (first, last)

    def _loop_around(self, location: str, loops: Collection[tuple[str, _Extent]]) -> str:
        """Return the innermost of some loops around a location, ``""`` for none."""
        at = self._places.of(location)
        if at is None:
            return ""
        around = [
            (begin, node) for node, (begin, end) in loops if begin < (at.line, at.column) <= end
        ]
        return max(around, default=((0, 0), ""))[1]

    def _copied(self, lines: Collection[str], name: str) -> str:
        """Return a function under the name of its copy, with places of its own."""
        original = original_of(name)
        own = self._own_nodes(self._nodes[original], lines)
        begin = _ADDED + self._added
        self._added += len(own)
        numbers = {node: f"!{begin + at}" for at, node in enumerate(own)}
        known = re.compile(rf'@"?{re.escape(original)}"?\(')
        begun, *rest = lines
        begun = re.sub(r"\) (.*?) comdat\b(?:\([^)]*\))?", r") \1", known.sub(f"@{name}(", begun))
        text = "\n".join((begun, *rest))
        places = [f"{node} = {self._places.text_of(node)}" for node in own]
        places[0] = _renamed(places[0], name)
        text = "\n".join((text, "}", *places, ""))
        return _NODE.sub(lambda node: numbers.get(node[0], node[0]), text)

    def _own_nodes(self, subprogram: str, lines: Collection[str]) -> list[str]:
        """Return the nodes that a function has for itself: its own first, then places and loops."""
        own = [subprogram]
        for node in own:
            own += self._in_scope.get(node, ())
        return [*own, *_loop_nodes(lines)]

    @functools.cached_property
    def _in_scope(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for node, scope in _SCOPED.findall(self._text):
            found[scope].append(node)
        return found


def _loop_nodes(lines: Collection[str]) -> list[str]:
    """Return the nodes of the loops in some lines."""
    return [*dict.fromkeys(found[1] for found in map(LOOP.search, lines) if found)]


def _renamed(subprogram: str, name: str) -> str:
    """Return what describes a function with another name of LLVM's."""
    plain = re.sub(r' linkageName: "[^"]*",', "", subprogram)
    return re.sub(r'(name: "[^"]*",)', rf'\1 linkageName: "{name}",', plain, count=1)
