"""The small faults that `make mutate` plants: Python by its syntax tree, C++ by its tokens."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutation:
    """One fault: bytes `start` to `end` of a file become `new`.

    Parameters
    ----------
    path : pathlib.Path
        Relative to the project's root.
    line, changed : int, str
        Where it is, counted from 1, and how that line reads afterwards.
    was : str
        How the line reads now.
    lines : range
        The statement's lines: a test that runs one of them can notice.
    """

    path: Path
    start: int
    end: int
    new: bytes
    line: int
    was: str
    changed: str
    lines: range

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.new + source[self.end :]

    @property
    def key(self) -> tuple[str, str]:
        return self.was, self.changed


def mutations_of(path: Path, root: Path) -> list[Mutation]:
    """Return every mutation of a file, in the order of the text and none twice."""
    source = (root / path).read_bytes()
    make = _python if path.suffix == ".py" else _cpp
    found: dict[bytes, Mutation] = {}
    for start, end, new, lines in make(source):
        text = source[:start] + new + source[end:]
        before, after = source.splitlines(), text.splitlines()
        if text == source or text in found or len(after) == 0:
            continue
        pairs = enumerate(zip(before, after, strict=False))
        at = next((i for i, (old, now) in pairs if old != now), len(after) - 1)
        shown = [lines_[at].decode().strip() for lines_ in (before, after)]
        found[text] = Mutation(path, start, end, new, at + 1, shown[0], shown[1], lines)
    return sorted(found.values(), key=lambda m: (m.start, m.end, m.new))


_Change = tuple[int, int, bytes, range]

# ---- Python --------------------------------------------------------------------------------------

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),  # codespell:ignore
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult, ast.Mod: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd,
}  # fmt: skip
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


def _python(source: bytes) -> Iterator[_Change]:
    begins = [0]
    for text in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(text))
    for node, lines in _nodes(ast.parse(source)):
        start = begins[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        end = begins[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        for new in _python_variants(node):
            yield start, end, new.encode(), lines


def _nodes(tree: ast.AST) -> Iterator[tuple[ast.AST, range]]:
    """Yield what can be mutated, with the lines of its statement (of a block: of its head)."""
    todo: list[tuple[ast.AST, range]] = [(tree, range(0))]
    while todo:
        node, lines = todo.pop()
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            lines = range(node.lineno, max(last, node.lineno) + 1)
        if isinstance(node, (ast.stmt, ast.expr)):
            yield node, lines
        for name, value in ast.iter_fields(node):
            # What only a reader or mypy sees; in an f-string the positions are not to be had.
            if name in ("annotation", "returns", "decorator_list") or isinstance(
                value, ast.JoinedStr
            ):
                continue
            children = value if isinstance(value, list) else [value]
            todo += [
                (child, lines)
                for child in children
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr)
            ]


def _python_variants(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Compare):
        for i, old in enumerate(node.ops):
            for operator in _COMPARISONS[type(old)]:
                operators = [*node.ops[:i], operator(), *node.ops[i + 1 :]]
                yield f"({ast.unparse(ast.Compare(node.left, operators, node.comparators))})"
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield f"({ast.unparse(ast.BoolOp(other, node.values))})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"bool({ast.unparse(node.operand)})"
    elif isinstance(node, ast.BinOp) and not _is_text(node):
        if type(node.op) in _OPERATORS:
            changed_op = ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right)
            yield f"({ast.unparse(changed_op)})"
    elif isinstance(node, ast.IfExp):
        yield f"({ast.unparse(node.orelse)} if {ast.unparse(node.test)} else {_body(node)})"
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield str(not node.value)
        elif isinstance(node.value, int):
            yield str(node.value + 1)
            if node.value > 0:
                yield str(node.value - 1)
    elif isinstance(node, ast.Name) and node.id in _NAMES:
        yield _NAMES[node.id]
    elif isinstance(node, ast.stmt):
        yield from _statement_variants(node)


def _body(node: ast.IfExp) -> str:
    return ast.unparse(node.body)


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(s, ast.JoinedStr) or (isinstance(s, ast.Constant) and isinstance(s.value, str))
        for s in sides
    )


def _statement_variants(node: ast.stmt) -> Iterator[str]:
    """Drop what a statement does, where the program still has all its names."""
    if isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await)):
        yield "pass"
    elif isinstance(node, ast.Assign):
        if all(isinstance(t, (ast.Attribute, ast.Subscript)) for t in node.targets):
            yield "pass"
    elif isinstance(node, ast.AugAssign):
        yield "pass"
        if type(node.op) in _OPERATORS:
            other = _OPERATORS[type(node.op)]()
            yield ast.unparse(ast.AugAssign(node.target, other, node.value))
    elif isinstance(node, (ast.Raise, ast.Delete, ast.Break, ast.Continue)):
        yield "pass"
    elif isinstance(node, ast.Return):
        # No caller tells None from False by anything but `is`.
        empty = isinstance(node.value, ast.Constant) and not node.value.value
        if node.value is not None and not empty:
            yield "return None"


# ---- C++ -----------------------------------------------------------------------------------------

_HIDDEN = re.compile(
    rb"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)+'|^[ \t]*#(?:[^\n\\]|\\.)*"
    rb"|\bstatic_assert\([^;]*;|\balignas\([^)]*\)"
    # What only directives of HLS read: C++ computes the same without them.
    rb"|\bconstexpr int (?:OUTSTANDING|BURST|FIFO|MIN_SUMS|PORT_BITS|COSIM_\w+) = [^;]*;"
    rb"|\b(?:UNARY|BINARY|TERNARY)\(\w+, \d+,|(?:, 0){3}>"  # an interval; side channels of a stream
    # How long a wait spins or sleeps: no test may depend on the PC's clock.
    rb"|\bk\w*Ns = [\d']+|\btimespec \w+\{[^;]*;"
    rb"|\b(?:relax|sched_yield|usleep|nanosleep|wait_bell)\([^;{}]*;",
    re.DOTALL | re.MULTILINE,
)
#: Spaces tell a comparison from the bracket of a template, a product from a pointer.
_TOKENS: tuple[tuple[bytes, tuple[bytes, ...]], ...] = (
    (rb"(?<= )<(?= )", (b"<=", b">=")), (rb"(?<= )<=(?= )", (b"<", b">")),
    (rb"(?<= )>(?= )", (b">=", b"<=")), (rb"(?<= )>=(?= )", (b">", b"<")),
    (rb"==", (b"!=",)), (rb"!=", (b"==",)), (rb"(?<= )&&(?= )", (b"||",)), (rb"\|\|", (b"&&",)),
    (rb"(?<= )\+(?= )", (b"-",)), (rb"(?<= )-(?= )", (b"+",)), (rb"(?<= )/(?= )", (b"*",)),
    (rb"(?<=[\w)\]] )\*(?= [\w(])", (b"/",)), (rb"(?<= )%(?= )", (b"*",)),
    (rb"(?<= )<<(?= )", (b">>",)), (rb"(?<= )>>(?= )", (b"<<",)),
    (rb"(?<= )&(?= )", (b"|",)), (rb"(?<= )\|(?= )", (b"&",)), (rb"(?<= )\^(?= )", (b"&",)),
    (rb"\+=", (b"-=",)), (rb"-=", (b"+=",)), (rb"!(?=[\w(])", (b"",)),
    (rb"\btrue\b", (b"false",)), (rb"\bfalse\b", (b"true",)),
    (rb"\bstd::min\b", (b"std::max",)), (rb"\bstd::max\b", (b"std::min",)),
)  # fmt: skip
#: The smaller or the larger of two: with or without equality it is the same.
_EXTREME = re.compile(
    rb"(?P<x>(?:[\w.\[\]+\-* ]|::)+?) (?P<sign>[<>]=?) (?P<y>(?:[\w.\[\]+\-* ]|::)+?) \? "
    rb"(?:(?P=x) : (?P=y)|(?P=y) : (?P=x))(?=[;,)])"
)
_NUMBER = re.compile(rb"(?<![\w.])(0x[0-9a-fA-F]+|\d+)([uUlL]*)(?![\w.])")
#: A line that is one call, one assignment to something that is there already, or a jump.
_EFFECT = re.compile(
    rb"^[ \t]*((?!return\b|else\b|using\b|throw\b)[\w.:>\-]+(?:\[[^\n;=]*\])?"
    rb"(?:\([^\n;{}]*\)|[ ]?[-+|&^*]?=[ ][^\n;{}]+|\+\+|--);|(?:break|continue);)[ \t]*$",
    re.MULTILINE,
)


def _cpp(source: bytes) -> Iterator[_Change]:
    # Same length, so that every position is one of the source.
    code = _HIDDEN.sub(lambda m: re.sub(rb"[^\n]", b" ", m[0]), source)
    extremes = {match.start("sign") for match in _EXTREME.finditer(code)}
    for pattern, replacements in _TOKENS:
        for match in re.finditer(pattern, code):
            for new in replacements:
                if match.start() in extremes and new[:1] == match[0][:1]:
                    continue
                yield match.start(), match.end(), new, range(0)
    for match in _NUMBER.finditer(code):
        value = int(match[1], 0) if match[1][:1] != b"0" or match[1][1:2] == b"x" else 0
        for other in (value + 1, value - 1) if value else (1,):
            yield match.start(), match.end(), b"%d" % other + match[2], range(0)
    for match in _EFFECT.finditer(code):
        yield match.start(1), match.end(1), b";", range(0)
