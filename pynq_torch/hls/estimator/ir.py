"""What ``opt`` wrote, taken apart: functions, blocks, instructions, loops and their bounds.

The text of LLVM 16 has one instruction a line. What LLVM's scalar evolution knows of an address or
of a loop's bound is read from what it prints, so that nothing of it is done again here.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import scev
from .marks import MARKER
from .place import Locations, Place, give_places

__all__ = [
    "ANY",
    "LABEL",
    "NAME",
    "TARGET",
    "Block",
    "Function",
    "Instruction",
    "Loop",
    "Module",
    "names_in",
    "read_module",
]

#: A name, a block's first line and the blocks that a branch goes to, as LLVM writes them.
NAME = r'(?:"[^"\n]+"|[-\w.$]+)'
LABEL = re.compile(rf"^({NAME}):")
TARGET = re.compile(rf"label %({NAME})")
_DEFINE = re.compile(rf"^define .*?@({NAME})\((.*)\)[^()]*\{{$")
_RESULT = re.compile(rf"^(%{NAME}) = (.*)$")
_OPERAND = re.compile(rf"(?<![\w%@])[%@]{NAME}")
_TYPES = re.compile(r'%"?(?:struct|class|union)\.')
_CALLEE = re.compile(rf"@({NAME})\(")
_PHI = re.compile(rf"\[ ([^,\]]+), %({NAME}) \]")
_INT = re.compile(r"^i(\d+)$")
_FLOATS = {"half": 16, "float": 32, "double": 64}
_LOOP_INFO = re.compile(r"^(\s*)(?:Parallel )?Loop at depth (\d+) containing: (.*)$")
_FLAGS = re.compile(
    r"\b(?:nuw|nsw|exact|inbounds|volatile|fast|nnan|ninf|nsz|arcp|contract|afn|reassoc|noundef|"
    r"signext|zeroext|fastcc|dso_local|freeze)\b ?"
)
#: An `int` may count so far: of such a bound nothing is known, but where it takes larger steps.
ANY = 1 << 30
_NO_HARDWARE = "lifetime", "dbg", "assume", "experimental.noalias", "stack"
_IGNORED = (MARKER, *(f"llvm.{name}" for name in _NO_HARDWARE))


@dataclass(eq=False)
class Instruction:
    """One instruction: its result, what it takes, where it is written."""

    name: str
    op: str
    type: str
    text: str
    operands: list[str]
    chain: list[Place]
    #: Of a phi: the value for each block that it may come from.
    incoming: dict[str, str] = field(default_factory=dict)
    callee: str = ""
    block: Block | None = None
    order: int = 0
    moved: bool = False  # by LLVM, which leaves it without a place

    @property
    def place(self) -> Place | None:
        """The innermost place."""
        return self.chain[0] if self.chain else None

    @property
    def bits(self) -> int:
        """Bits of the result, 0 for none."""
        return bits_of(self.type)


@dataclass(eq=False)
class Block:
    """Instructions without a branch between them, and the blocks that may follow."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    successors: list[str] = field(default_factory=list)
    #: Where loops begin whose marks are here, each with the calls that inlined it.
    marks: list[list[Place]] = field(default_factory=list)
    loop: Loop | None = None


@dataclass(eq=False)
class Loop:
    """A loop: its blocks, where it is, and how often it runs."""

    header: str
    depth: int
    blocks: list[str]
    parent: Loop | None = None
    inner: list[Loop] = field(default_factory=list)
    place: Place | None = None
    chain: list[Place] = field(default_factory=list)
    #: Iterations less one, as scalar evolution knows it; None where it does not.
    taken: scev.Expression | None = None
    #: The most that this can be, from the widths of what it depends on; None for any number.
    most: int | None = None
    #: Whether it is unrolled in part, and code behind it does its last iterations.
    has_rest: bool = False

    @property
    def is_rest(self) -> bool:
        """Whether LLVM made it for the last iterations of a loop that it unrolled in part.

        HLS ends the last iteration of the unrolled loop early instead (UG1399, "pragma HLS
        unroll").
        """
        return self.header.endswith(".epil")

    def above(self) -> Iterator[Loop]:
        """Yield this loop and those around it."""
        loop: Loop | None = self
        while loop is not None:
            yield loop
            loop = loop.parent


@dataclass(eq=False)
class Function:
    """A function with its blocks in the order of the text."""

    name: str
    arguments: list[str]
    place: Place | None
    blocks: dict[str, Block] = field(default_factory=dict)
    loops: list[Loop] = field(default_factory=list)
    values: dict[str, Instruction] = field(default_factory=dict)
    #: What scalar evolution says of a value: the expression and its unsigned and signed bounds.
    known: dict[str, scev.Known] = field(default_factory=dict)
    #: Bits of the elements that a value was loaded from, where its type has more.
    loaded: dict[str, int] = field(default_factory=dict)
    #: Masks of the bits that may be ones, of the values that were asked for.
    ones: dict[str, int] = field(default_factory=dict)

    def outer(self) -> list[Loop]:
        """The loops that are in no other."""
        return [loop for loop in self.loops if loop.parent is None]

    @functools.cached_property
    def uses(self) -> Counter[str]:
        """How often each value is used."""
        blocks = self.blocks.values()
        return Counter(name for b in blocks for item in b.instructions for name in item.operands)

    @functools.cached_property
    def predecessors(self) -> dict[str, list[str]]:
        """The blocks that lead to each block."""
        found: dict[str, list[str]] = {name: [] for name in self.blocks}
        for block in self.blocks.values():
            for name in block.successors:
                found[name].append(block.name)
        return found


@dataclass
class Module:
    """All functions that were not inlined, and the types of global variables."""

    functions: dict[str, Function]
    globals: dict[str, str]
    structs: dict[str, str]
    #: Of each constant table the least and the greatest number, None where it has no integers.
    tables: dict[str, tuple[int, int] | None]
    #: The functions as the tools have them where no loops are flattened: sums are in registers.
    promoted: dict[str, Function] = field(default_factory=dict)

    def bytes_of(self, kind: str) -> int:
        """Bytes that a type takes in an array."""
        return self._layout(kind)[0]

    def _layout(self, kind: str) -> tuple[int, int]:
        """Return size and alignment in bytes."""
        kind = kind.strip()
        if bits := bits_of(kind):
            whole = (bits + 7) // 8
            size = 1 << (whole - 1).bit_length() if whole < 8 else (whole + 7) // 8 * 8
            return size, min(size, 8)
        if match := re.match(r"^\[(\d+) x (.*)\]$", kind):
            size, align = self._layout(match[2])
            return int(match[1]) * size, align
        body = self.structs.get(kind, kind)
        return self._struct(body) if body.startswith(("{", "<{")) else (8, 8)

    def _struct(self, body: str) -> tuple[int, int]:
        parts = [(at, *self._layout(part)) for at, part in self.members(body)]
        most = 1 if body.startswith("<{") else max((align for *_, align in parts), default=1)
        end = sum(parts[-1][:2]) if parts else 0
        return end + -end % most, most

    def members(self, body: str) -> Iterator[tuple[int, str]]:
        """Yield at which byte each member of a struct begins, and its type."""
        at = 0
        for part in split_types(body.strip("<>").strip()[1:-1]):
            size, align = self._layout(part)
            at += 0 if body.startswith("<{") else -at % align
            yield at, part
            at += size


def bits_of(kind: str) -> int:
    """Bits of a number's type, 0 for any other; a pointer has none that hardware would keep."""
    match = _INT.match(kind)
    return int(match[1]) if match else _FLOATS.get(kind, 0)


def split_types(text: str) -> list[str]:
    """Return the members of a struct's body."""
    parts, level, begin = [], 0, 0
    for at, letter in enumerate(text):
        level += (letter in "[{<(") - (letter in "]}>)")
        if letter == "," and level == 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
    last = text[begin:].strip()
    return [*parts, last] if last else parts


def read_module(text: str, printed: str) -> Module:
    """Take a module and what the analyses printed of it apart."""
    reader = _Reader(Locations(text))
    functions: dict[str, Function] = {}
    for chunk in re.split(r"(?m)^(?=define )", text)[1:]:
        function = reader.function(chunk.split("\n}\n", 1)[0].split("\n"))
        functions[function.name] = function
    before, *chunks = printed.split("Printing analysis 'Scalar Evolution Analysis' for function '")
    for chunk in chunks:  # what print<loops> says of a function is before its scalar evolution
        name = chunk.split("'", 1)[0]
        if name in functions:
            scev.read_printed(chunk, functions[name])
            _loops(before, functions[name])
        before = chunk
    written = re.findall(rf"^(@{NAME}) = .*?\b(?:global|constant) (.+)$", text, re.MULTILINE)
    variables = {name: _leading_type(body) for name, body in written}
    structs = dict(re.findall(rf"^(%{NAME}) = type (.*)$", text, re.MULTILINE))
    constants = re.findall(rf"^(@{NAME}) = (.*?\bconstant .+)$", text, re.MULTILINE)
    tables = {name: _extremes(body) for name, body in constants}
    return Module(functions, variables, structs, tables)


def _extremes(body: str) -> tuple[int, int] | None:
    """Return a table's least and greatest integer; HLS numbers stay as wide as their type."""
    if re.search(r"\b(?:float|double|half|ptr|externally_initialized)\b", body):
        return None
    values = [int(number) for number in re.findall(r"\bi\d+ (-?\d+)\b", body)]
    for string in re.findall(r'\bc"([^"]*)"', body):
        for escaped, letter in re.findall(r"\\([0-9A-F]{2})|(.)", string):
            byte = int(escaped, 16) if escaped else ord(letter)
            values.append(byte - 256 * (byte > 127))
    values += [0] * ("zeroinitializer" in body)
    return (min(values), max(values)) if values else None


class _Reader:
    """The text of functions to their parts."""

    def __init__(self, places: Locations) -> None:
        self._places = places
        self._chains: dict[str, list[Place]] = {}

    def function(self, lines: list[str]) -> Function:
        match = _DEFINE.match(lines[0].split(" !dbg ")[0].rstrip(" {") + " {")
        name = re.search(rf"@({NAME})\(", lines[0])
        assert name is not None, "a definition has a name"
        found = re.search(r"!dbg (!\d+)", lines[0])
        place = self._places.of_function(found[1]) if found else None
        arguments = names_in(match[2] if match else "")
        function = Function(name[1].strip('"'), arguments, place)
        block = Block("")
        rows = iter(lines[1:])
        for row in rows:
            label = LABEL.match(row)
            if label:
                block = Block(label[1].strip('"'))
                function.blocks[block.name] = block
            elif row.startswith("  ") and row.strip():
                while row.count("[") > row.count("]"):  # a switch has a line for each case
                    row += next(rows)
                self._instruction(row.strip(), block, function)
        give_places(function)
        return function

    def _instruction(self, row: str, block: Block, function: Function) -> None:
        if not function.blocks:
            function.blocks[block.name] = block
        body, _, metadata = row.partition(", !")
        metadata = "!" + metadata
        result = _RESULT.match(body)
        name, body = (result[1], result[2]) if result else ("", body)
        op, _, rest = body.partition(" ")
        if op in ("tail", "notail", "musttail"):
            op, _, rest = rest.partition(" ")
        chain = self._chain(at[1]) if (at := re.search(r"!dbg (!\d+)", metadata)) else []
        if op in ("br", "switch", "ret", "unreachable"):
            block.successors = [item.strip('"') for item in TARGET.findall(rest)]
            rest = TARGET.sub("", rest)
        made = Instruction(name, op, _type_of(op, rest), body, [], chain, block=block)
        if op == "phi":
            made.incoming = {b.strip('"'): v for v, b in _PHI.findall(rest)}
            made.operands = [v for v in made.incoming.values() if v[0] in "%@"]
        elif op == "call":
            callee = _CALLEE.search(rest)
            made.callee = callee[1].strip('"') if callee else ""
            if made.callee == MARKER:
                block.marks.append(chain)
            if made.callee.startswith(_IGNORED):
                return
            rest = rest[callee.end() :] if callee else rest
            made.operands = names_in(rest)
        else:
            made.operands = names_in(rest)
        made.moved = not chain and op not in ("alloca", "phi")
        made.order = len(function.values) + len(block.instructions)
        block.instructions.append(made)
        if name:
            function.values[name] = made

    def _chain(self, node: str) -> list[Place]:
        if node not in self._chains:
            self._chains[node] = self._places.chain(node)
        return self._chains[node]


def names_in(text: str) -> list[str]:
    """Return the values in a text that have names."""
    return [item for item in _OPERAND.findall(text) if not _TYPES.match(item)]


def _type_of(op: str, rest: str) -> str:
    """Return the type of a result, of a compared or of a stored value."""
    if op in ("trunc", "zext", "sext", "fptosi", "fptoui", "sitofp", "uitofp", "fptrunc", "fpext",
              "bitcast", "ptrtoint", "inttoptr"):  # fmt: skip
        return rest.rsplit(" to ", 1)[-1].strip()
    words = _FLAGS.sub("", rest)
    if op in ("icmp", "fcmp"):
        words = words.split(" ", 1)[1]
    if op == "select":
        words = words.split(", ", 1)[1] if ", " in words else words
    return _leading_type(words.strip())


def _leading_type(text: str) -> str:
    """Return the type that a text begins with."""
    if text.startswith(("[", "{", "<")):
        level = 0
        for at, letter in enumerate(text):
            level += (letter in "[{<") - (letter in "]}>")
            if level == 0:
                return text[: at + 1]
    return re.split(r"[ ,]", text, maxsplit=1)[0]


def _loops(printed: str, function: Function) -> None:
    """Read what ``print<loops>`` said of a function."""
    stack: list[Loop] = []
    for line in printed.split("\n"):
        match = _LOOP_INFO.match(line)
        if match is None:
            continue
        words = re.findall(rf"%({NAME})((?:<\w+>)*)", match[3])
        marks = {name.strip('"'): mark for name, mark in words}
        depth = int(match[2])
        del stack[depth - 1 :]
        header = next(name for name, mark in marks.items() if "<header>" in mark)
        loop = Loop(header, depth, list(marks), stack[-1] if stack else None)
        known = function.known.get("loop " + header)
        loop.taken = known.expression if known is not None else None
        most = scev.most(known, function.known.get("most " + header))
        loop.most = most if most is not None and most < ANY else None
        for name in marks:
            function.blocks[name].loop = loop
        if loop.parent is not None:
            loop.parent.inner.append(loop)
        stack.append(loop)
        function.loops.append(loop)
    for loop in function.loops:
        own = [function.blocks[name] for name in loop.blocks]
        found = [chain for block in own if block.loop is loop for chain in block.marks if chain]
        # Marks of inner loops may be here too: the outermost is the one that begins first.
        loop.chain = min(found, key=_rank, default=[])
        loop.place = loop.chain[0] if loop.chain else None
    rests = [loop.chain for loop in function.loops if loop.is_rest]
    for loop in function.loops:
        loop.has_rest = loop.chain in rests and not loop.is_rest


def _rank(chain: list[Place]) -> tuple[int, int, int]:
    return len(chain), chain[0].line, chain[0].column
