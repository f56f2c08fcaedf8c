"""BIND_OP of a variable that no such operation makes, or of operators that are not built so.

The rules are those of UG1399, "pragma HLS bind_op".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pynq_torch.errors import needs

from .lint_effects import problem
from .lint_tree import Directive, Problem, Scope, is_step, root_of, walk

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, CursorKind

__all__ = ["assigned", "unbound"]

#: What an expression has in it that does an operation, and how a sentence calls that.
_SIGNS = {"mul": "*", "div": "/", "add": "+-", "sub": "+-"}
_WORDS = {"mul": "product", "div": "quotient", "add": "sum", "sub": "difference"}
#: How only floating-point operators are built, and the cycles that those of integers may take.
_OF_FLOATS, _MOST = ("fulldsp", "maxdsp", "meddsp", "primitivedsp"), 4
_INTEGERS = ("add", "sub", "mul")
#: Types of floating-point numbers, and of C's integers.
_REAL = re.compile(r"float|double|half|_Float16")
_WHOLE = re.compile(r"(?:(?:un)?signed )?(?:char|short|int|long|long long)")
_ASSIGNS = re.compile(r"^operator[-+*]?=$")


def unbound(item: Directive, function: Scope) -> Iterator[Problem]:
    """Yield why a BIND_OP has no effect, or not the one that it names."""
    operation = item.options.get("op", "")
    name = operation if operation in _INTEGERS else operation[1:]
    if item.name != "bind_op" or not item.variable or name not in _SIGNS:
        return
    if operation in _INTEGERS:
        yield from _of_integers(item)
    found = list(walk(function.node))
    declared = [node for node in found if node.spelling == item.variable and _is_declared(node)]
    types = {_type(node) for node in declared}
    others = _REAL if operation in _INTEGERS else _WHOLE
    if types and all(map(others.fullmatch, types)):
        right = f"f{name}" if operation in _INTEGERS else name
        text = f"has OP={operation}, but {item.variable} is of type {types.pop()}; write op={right}"
        yield problem(item, text)
        return
    if any(_is_handed_over(node, item.variable) for node in found):
        return
    values = [_text(node) for node in found if assigned(node) == item.variable]
    texts = [one for one in values if re.search(r"[={(]", one)]  # not `int p;`
    texts += ["=+" for node in found if _counts(node, item.variable)]
    # What a function or a macro does is not looked at.
    if texts and not any(re.search(r"\w\(", one) or _has(one, _SIGNS[name]) for one in texts):
        yield problem(
            item,
            f"has no effect: {item.variable} gets its value from no {_WORDS[name]}; name the "
            "variable that does, or keep it apart from the rest of its expression",
        )


def _of_integers(item: Directive) -> Iterator[Problem]:
    built, latency = item.options.get("impl", "").lower(), item.options.get("latency", "")
    if built in _OF_FLOATS:
        yield problem(item, f"has IMPL={built}, which integers have not; expected dsp or fabric")
    if latency.isdigit() and int(latency) > _MOST:
        yield problem(item, f"has LATENCY={latency}; expected at most {_MOST} for integers")


def _is_declared(node: Cursor) -> bool:
    return node.kind in (CursorKind.VAR_DECL, CursorKind.PARM_DECL)


def _type(node: Cursor) -> str:
    """Return the type of a variable, or of what it is an array of."""
    return re.sub(r"[\[*&].*|\bconst\b", "", node.type.get_canonical().spelling).strip()


def _text(node: Cursor) -> str:
    return "".join(token.spelling for token in node.get_tokens())


def _has(text: str, signs: str) -> bool:
    """Whether an assignment has one of some operators, in itself (`+=`) or behind it."""
    before, _, behind = text.partition("=")
    return any(sign in (before[-1:] + behind if behind else before) for sign in signs)


def _counts(node: Cursor, variable: str) -> bool:
    """Whether an expression is `++variable` or the like."""
    root = root_of(node) if node.kind == CursorKind.UNARY_OPERATOR and is_step(node) else None
    return root is not None and root.spelling == variable


def _is_handed_over(node: Cursor, variable: str) -> bool:
    """Whether a call takes a variable, which it may give a value."""
    if node.kind != CursorKind.CALL_EXPR or node.spelling.startswith("operator"):
        return False
    roots = (root_of(one) for one in node.get_arguments() if one is not None)
    return any(one is not None and one.spelling == variable for one in roots)


def assigned(node: Cursor) -> str:
    """Return the variable, or the array, that a declaration or an assignment gives a value."""
    if node.kind == CursorKind.VAR_DECL:
        return str(node.spelling)
    if node.kind not in (CursorKind.BINARY_OPERATOR, CursorKind.COMPOUND_ASSIGNMENT_OPERATOR):
        # `x = y` of a class, as ap_int, is the call of an operator.
        if node.kind != CursorKind.CALL_EXPR or not _ASSIGNS.match(node.spelling):
            return ""
    elif node.kind == CursorKind.BINARY_OPERATOR:
        left = next(node.get_children())
        after = (t for t in node.get_tokens() if t.extent.start.offset >= left.extent.end.offset)
        if next((token.spelling for token in after), "") != "=":
            return ""
    left = next(node.get_children(), node)
    while left.kind != CursorKind.DECL_REF_EXPR:
        inner = next(left.get_children(), None)
        if inner is None:
            return ""
        left = inner
    return str(left.spelling)
