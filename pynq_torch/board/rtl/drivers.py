"""Nets and variables that two places of the RTL drive.

Verilator reports some of them and resolves the others without a message (the last assign wins), so
they are looked for in the tree that it writes. What hardware can do passes: different bits of one
signal, a memory with two ports, and nets that all their drivers can release to Z.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from .drivers_loops import ALL_BITS, Values, bits_of, loop_of
from .lint import Message

__all__ = ["conflicts"]

Node = dict[str, Any]
# Nets that combine what their drivers say (IEEE 1800, 6.6.3).
_RESOLVED = {"WAND", "WOR", "TRIAND", "TRIOR"}
_THREE_STATE_GATES = {"BUFIF0", "BUFIF1", "NOTIF0", "NOTIF1"}
_SELECTS = {"SEL", "ARRAYSEL", "STRUCTSEL"}
_Z = re.compile(r"\d*'s?[bho][0-9a-fx_]*z")
_PROCESSES = ("always_comb", "always_ff", "always_latch")


@dataclass(frozen=True)
class _Driver:
    """One place that drives a signal, or a part of it."""

    process: int  # tells blocks and instances apart
    what: str
    loc: str
    path: tuple[str | None, ...]  # of an element of an array or structure; None: known at run time
    bits: int  # a mask; 0 where which bits are driven cannot be said
    releases: bool  # it can let go of the net

    def meets(self, other: _Driver) -> bool:
        """Say whether both drive the same bit at once."""
        if self.process == other.process or (self.releases and other.releases):
            return False
        # Two always blocks that write a memory at addresses of their own are its two ports.
        same = all(a == b and a is not None for a, b in zip(self.path, other.path, strict=False))
        return same and bool(self.bits & other.bits)


@dataclass
class _Signals:
    """The drivers of every signal, by its declaration and, in another instance, its path."""

    variables: dict[str, Node]
    routines: dict[str, Node]
    modules: dict[str, str] = field(default_factory=dict)  # of a variable
    drivers: dict[tuple[str, str], list[_Driver]] = field(default_factory=lambda: defaultdict(list))
    readers: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    processes: int = 0
    module: str = ""  # the one that is looked at

    def is_counter(self, variable: str) -> bool:
        """Say whether a variable is an integer that only the blocks that set it read.

        Each block then counts with it for itself, as loops do that share ``integer i``.
        """
        drivers = self.drivers.get((variable, ""), ())
        kind = self.variables[variable].get("dtypeName")
        readers = self.readers.get(variable, set())
        return kind in ("integer", "int") and readers <= {d.process for d in drivers}


def conflicts(tree: Node, files: Mapping[str, str]) -> list[Message]:
    """Return an error for every signal with two drivers; it names both, with file and line.

    `tree` is what Verilator wrote with ``--json-only``; `files` has the path of each file by its
    number there.
    """
    modules = [m for m in tree["modulesp"] if m["type"] in ("MODULE", "IFACE")]
    nodes = [node for module in modules for node in _nodes(module)]
    signals = _Signals(
        {node["addr"]: node for node in nodes if node["type"] == "VAR"},
        {node["addr"]: node for node in nodes if node["type"] in ("TASK", "FUNC")},
    )
    for module in reversed(modules):  # Verilator lists a module before those that it instantiates
        signals.module = module["addr"]
        _module(signals, module, module.get("stmtsp", ()))
    found: dict[tuple[str, ...], Message] = {}
    for (variable, path), drivers in signals.drivers.items():
        if signals.is_counter(variable):
            continue
        others = signals.drivers.get((variable, ""), []) if path else []
        for one, two in combinations([*others, *drivers], 2):
            if one.meets(two) and not (one in others and two in others):
                places = [_place(files, driver.loc) for driver in (one, two)]
                message = _message(signals, variable, (one, two), places)
                found.setdefault((message.text, *map(str, places)), message)
                break
    return list(found.values())


def _nodes(node: Node) -> Iterator[Node]:
    waiting = [node]
    while waiting:
        item = waiting.pop()
        yield item
        for value in item.values():
            if type(value) is list:
                waiting.extend(child for child in value if type(child) is dict)


def _place(files: Mapping[str, str], loc: str) -> tuple[str, int]:
    file, at, _ = loc.split(",")
    return files[file], int(at.partition(":")[0])


def _message(
    signals: _Signals, variable: str, drivers: Sequence[_Driver], places: Sequence[tuple[str, int]]
) -> Message:
    (file, line), (other_file, other_line) = places
    name = signals.variables[variable]["verilogName"]
    one, two = (driver.what for driver in drivers)
    text = (
        f"{name} of module {signals.modules.get(variable, '?')} has two drivers: {one} here, and "
        f"{two} at {other_file}:{other_line}"
    )
    shown = []
    for path, number in places:
        try:
            lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []  # `line may name a file that is not there
        shown += [f"{number:5} | {text}" for text in lines[number - 1 : number]]
    return Message("Error", "MULTIDRIVEN", file, line, text, "\n".join(shown))


# ---- from modules to drivers ---------------------------------------------------------------------


def _module(signals: _Signals, module: Node, statements: Sequence[Node]) -> None:
    """Collect the drivers in a module, or in one of its generate blocks."""
    for node in statements:
        kind = node["type"]
        if kind == "VAR":
            signals.modules[node["addr"]] = module["origName"]
        elif kind == "GENBLOCK":
            _module(signals, module, node.get("itemsp", ()))
        elif kind == "CELL":
            _instance(signals, node)
        elif kind == "ALWAYS" and node["keyword"] != "cont_assign":
            word = node["keyword"] if node["keyword"] in _PROCESSES else "always"
            _Writes(signals, f"the {word} block").block(node)
        elif kind in ("ALWAYS", "ASSIGNW") or _is_constant(node):
            # assign {a, b} = ... is one for each; older versions have them outside of a block.
            for each in node["stmtsp"] if kind != "ASSIGNW" else [node]:
                _Writes(signals, "the assign").look(each)


def _is_constant(node: Node) -> bool:
    """Say whether this is an assign of a constant, of which Verilator makes an initial block."""
    return node["type"] == "INITIAL" and any(s["loc"] == node["loc"] for s in node["stmtsp"])


def _instance(signals: _Signals, cell: Node) -> None:
    what = f"the output of instance {cell['verilogName']}"
    for pin in cell["pinsp"]:
        port = signals.variables.get(pin["modVarp"])
        times, releases = 1, False
        if port is not None and port["direction"] in ("OUTPUT", "INOUT"):
            drivers = signals.drivers.get((pin["modVarp"], ""))
            if not drivers and port["direction"] == "INOUT":
                continue
            releases = bool(drivers) and all(driver.releases for driver in drivers or ())
            # Of an array of instances, a pin as wide as the port is common to all of them.
            same = any(e.get("dtypep") == port["dtypep"] for e in pin["exprp"])
            times = 2 if cell.get("rangep") and same else 1
        for _ in range(times):
            writes = _Writes(signals, what, releases=releases)
            for expression in pin["exprp"]:
                writes.look(expression)


class _Writes:
    """What one process writes."""

    def __init__(self, signals: _Signals, what: str, *, releases: bool = False) -> None:
        signals.processes += 1
        self._signals = signals
        self._what = what
        self._releases = releases
        self._known: Values = {}
        self._called: set[str] = set()
        self._own: set[str] = set()

    def block(self, node: Node) -> None:
        """Take an always block, or the body of a task."""
        self._own.update(each["addr"] for each in _nodes(node) if each["type"] == "VAR")
        self._list(node.get("stmtsp", ()))

    def _list(self, statements: Sequence[Node]) -> None:
        """Take statements in a row; a loop's counter is nobody's signal."""
        at = 0
        while at < len(statements):
            loop = loop_of(statements, at)
            if loop is None:
                self.look(statements[at])
                at += 1
                continue
            before = self._known
            others = dict.fromkeys(_assigned(statements[at + 1]))
            self._known = {**before, **others, loop.counter: loop.values}
            self._list(loop.body)
            self._known = before
            at += 2

    def look(self, node: Node, selects: tuple[Node, ...] = ()) -> None:
        """Find what `node` writes, below the selects of elements and bits around it."""
        kind = node["type"]
        if kind in ("VARREF", "VARXREF"):
            if node["access"] in ("WR", "RW"):
                self._write(node, selects)
            elif node["varp"] not in self._known:
                self._signals.readers[node["varp"]].add(self._signals.processes)
            return
        if kind in ("INITIALSTATICSTMT", "INITIALAUTOMATICSTMT"):
            return
        if kind in ("TASKREF", "FUNCREF") and node.get("taskp") not in self._called:
            self._called.add(node.get("taskp", ""))
            routine = self._signals.routines.get(node.get("taskp", ""))
            if routine is not None:
                self.block(routine)
        releases, known = self._releases, self._known
        if kind in ("LOOP", "WHILE"):  # one that loop_of cannot follow
            self._known = {**known, **dict.fromkeys(_assigned(node))}
        if kind.startswith("ASSIGN"):
            self._releases = bool(node.get("strengthSpecp")) or _can_release(node["rhsp"])
        inner = (*selects, node) if kind in _SELECTS else ()
        for name, value in node.items():
            if type(value) is not list or name == "sentreep":
                continue
            if name in ("stmtsp", "thensp", "elsesp"):
                self._list(value)
                continue
            for child in value:
                self.look(child, inner if name == "fromp" else ())
        self._releases, self._known = releases, known

    def _write(self, reference: Node, selects: tuple[Node, ...]) -> None:
        signals, variable = self._signals, reference["varp"]
        declared = signals.variables.get(variable)
        if declared is None or variable in self._own or declared["varType"] in _RESOLVED:
            return
        path: list[str | None] = []
        bits: int | None = ALL_BITS
        for select in reversed(selects):
            if select["type"] == "SEL":
                bits = bits_of(select, self._known, bits)
            elif select["type"] == "STRUCTSEL":
                path.append(select["name"])
            else:
                (index,) = select["bitp"]
                path.append(index["name"] if index["type"] == "CONST" else None)
        driver = _Driver(
            signals.processes, self._what, reference["loc"], tuple(path), bits or 0, self._releases
        )
        dotted = reference.get("dotted", "")
        signals.drivers[variable, f"{signals.module} {dotted}" if dotted else ""].append(driver)


def _assigned(loop: Node) -> list[str]:
    """Return the variables that a loop assigns as a whole: its counters are among them."""
    targets = [n["lhsp"][0] for n in _nodes(loop) if n["type"] == "ASSIGN"]
    return [target["varp"] for target in targets if target["type"] == "VARREF"]


def _can_release(values: Sequence[Node]) -> bool:
    """Say whether an assigned value can be Z."""
    return any(
        node["type"] in _THREE_STATE_GATES or (node["type"] == "CONST" and _Z.match(node["name"]))
        for value in values
        for node in _nodes(value)
    )
