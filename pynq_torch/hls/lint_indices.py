"""What an index does from one iteration of a loop to the next: steps of 1, gaps, a stride."""

from __future__ import annotations

from collections.abc import Iterator

from pynq_torch.errors import needs

from .cursors import operator_kind
from .lint_tree import (
    MULTIPLY,
    SHIFT,
    SUBTRACT,
    Program,
    Scope,
    calls,
    is_constant,
    names,
    root_of,
)

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, CursorKind

__all__ = [
    "Moving",
    "backwards",
    "expanded",
    "has_gaps",
    "is_binary",
    "is_uneven",
    "moves",
    "strides",
]

#: The variables that a loop changes, and the expressions they are stepped by.
Moving = dict[int, list[Cursor]]
#: / % >> & ^ | of clang-c/Index.h
_MASKS = (4, 5, 9, 17, 18, 19)


def strides(program: Program, scope: Scope, index: Cursor, moving: Moving) -> bool:
    """Whether an index moves by a variable from iteration to iteration; not for gathers."""
    nodes = list(expanded(scope, index))
    if any(node.kind == CursorKind.ARRAY_SUBSCRIPT_EXPR and moves(node, moving) for node in nodes):
        return False
    for node in nodes:
        if node.kind == CursorKind.DECL_REF_EXPR and node.referenced is not None:
            if not is_constant(moving.get(node.referenced.hash, [])):
                return True
        elif node.kind == CursorKind.BINARY_OPERATOR and _is_product(node, moving):
            return True
        elif node.kind == CursorKind.CALL_EXPR and moves(node, moving):
            inner = (f.walk_preorder() for f in program.callees(node))
            if any(_is_product(part, None) for body in inner for part in body):
                return True
        elif node.kind == CursorKind.MEMBER_REF_EXPR and _walks(program, scope, node):
            return True
    return False


def expanded(scope: Scope, node: Cursor) -> Iterator[Cursor]:
    """Yield the nodes of an expression, and of the constants of the loop that it uses."""
    for item in node.walk_preorder():
        yield item
        target = item.referenced if item.kind == CursorKind.DECL_REF_EXPR else None
        if target is not None and target.kind == CursorKind.VAR_DECL:
            begin, end = scope.body.extent.start.offset, scope.body.extent.end.offset
            if begin < target.location.offset < end and target.type.is_const_qualified():
                for child in target.get_children():
                    yield from expanded(scope, child)


def moves(node: Cursor, moving: Moving) -> bool:
    """Whether an expression mentions a variable that the loop changes."""
    return not names(node).isdisjoint(moving)


def _is_product(node: Cursor, moving: Moving | None) -> bool:
    """Whether something that moves (all, for None) is multiplied by, or shifted by, a variable."""
    if node.kind != CursorKind.BINARY_OPERATOR:
        return False
    kind = operator_kind(node, unary=False)
    if kind not in (MULTIPLY, SHIFT):
        return False
    left, right = node.get_children()
    if moving is None:
        return not is_constant([left]) and not is_constant([right])
    pairs = ((left, right), (right, left))[: 1 if kind == SHIFT else 2]
    return any(moves(one, moving) and not is_constant([other]) for one, other in pairs)


def _walks(program: Program, scope: Scope, member: Cursor) -> bool:
    """Whether a method that the loop calls moves a member by a variable (``walk.step()``)."""
    owner = root_of(member)
    for call in calls(scope.node):
        first = next(iter(call.get_children()), None)
        if owner is None or first is None or root_of(first) != owner:
            continue
        for node in (part for method in program.callees(call) for part in method.walk_preorder()):
            if node.kind == CursorKind.COMPOUND_ASSIGNMENT_OPERATOR:
                moved, by = node.get_children()
                if moved.spelling == member.spelling and not is_constant([by]):
                    return True
    return False


def backwards(scope: Scope, part: Cursor, moving: Moving) -> bool:
    """Whether an index falls: it is subtracted, or counted down."""
    down = {
        root.hash
        for node in scope.node.walk_preorder()
        if _is_down(node) and (root := root_of(next(iter(node.get_children())))) is not None
    }
    falls = False
    for node in expanded(scope, part):
        if is_binary(node, SUBTRACT):
            falls = falls or moves(list(node.get_children())[1], moving)
    return falls != (not names(part).isdisjoint(down))


def _is_down(node: Cursor) -> bool:
    """Whether an expression is ``--i`` or ``i -= 2``."""
    if node.kind == CursorKind.UNARY_OPERATOR:
        return operator_kind(node, unary=True) in (2, 4)
    is_compound = node.kind == CursorKind.COMPOUND_ASSIGNMENT_OPERATOR
    return is_compound and "-=" in {token.spelling for token in node.get_tokens()}


def has_gaps(scope: Scope, part: Cursor, moving: Moving) -> bool:
    """Whether an index moves by a constant that is not 1."""
    for node in expanded(scope, part):
        if node.kind == CursorKind.DECL_REF_EXPR and node.referenced is not None:
            if any(_number(step) != "1" for step in moving.get(node.referenced.hash, [])):
                return True
        elif is_binary(node, MULTIPLY):
            left, right = node.get_children()
            ways = ((left, right), (right, left))
            if any(moves(a, moving) and _number(b) != "1" for a, b in ways):
                return True
    return False


def is_uneven(scope: Scope, part: Cursor, moving: Moving) -> bool:
    """Whether an index is what a division or a mask makes of something that moves."""
    return any(
        node.kind == CursorKind.BINARY_OPERATOR
        and operator_kind(node, unary=False) in _MASKS
        and moves(node, moving)
        for node in expanded(scope, part)
    )


def is_binary(node: Cursor, kind: int) -> bool:
    """Whether an expression has this operator between two others."""
    return node.kind == CursorKind.BINARY_OPERATOR and operator_kind(node, unary=False) == kind


def _number(node: Cursor) -> str:
    return "".join(token.spelling for token in node.get_tokens())
