"""Whether accesses of m_axi arguments can become bursts.

UG1399, "Preconditions and Limitations of Burst Transfer": consecutive in memory, forwards, without
gaps, of a length that is known before, and either reads or writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pynq_torch.errors import needs

from .cursors import operator_kind, parameters_of
from .lint_indices import (
    Moving,
    backwards,
    expanded,
    has_gaps,
    is_binary,
    is_uneven,
    moves,
    strides,
)
from .lint_loops import changes
from .lint_tree import (
    AND,
    ASSIGN,
    EQUAL,
    LOOPS,
    OR,
    UNEQUAL,
    Problem,
    Program,
    Scope,
    calls,
    names,
    plain,
    problem_at,
)

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, CursorKind, TypeKind

__all__ = ["bursts"]

_DEREFERENCE = 6
_TOLD = re.compile(r"\w.*: single accesses\.")
_STRIDE = (
    "is read or written with a stride known only at run time, a single access each; branch to a "
    "loop over [first + i] where it is 1, or say why in a comment above the loop that ends in "
    "': single accesses.'"
)
_BACK = "is read or written backwards, a single access each; count upwards, turn the order on chip"
_GAPS = "is read or written with gaps, a single access each; copy all of it, or widen the port"
_UNEVEN = (
    "is read or written where a division or a mask of the counter says, a single access each; copy "
    "it in order and choose on chip"
)
_BRANCH = (
    "is read or written in a branch or behind one that leaves the loop, so no burst is known "
    "before; copy it in a loop of its own, or write a value in every iteration"
)
_BOTH = "is read and written in one loop, and no burst is both; read a copy on chip"


@dataclass(frozen=True)
class _Access:
    node: Cursor
    pointer: Cursor
    parts: tuple[Cursor, ...]
    moving: Moving
    branch: bool


def bursts(program: Program, masters: set[str]) -> Iterator[Problem]:
    """Yield accesses of m_axi arguments that the tool would not join."""
    pointers = _followed(program, masters)
    for function in program.scopes:
        for scope in function.walk():
            if not _is_pipelined(program, scope) or _is_told(scope):
                continue
            ends = _leaves(scope.body, CursorKind.BREAK_STMT)
            found = list(_accesses(program, scope.body, changes(scope), pointers, (), ends))
            seen: set[tuple[int, int]] = set()
            for one in found:
                key = one.node.location.line, one.pointer.hash
                text = "" if key in seen else _wrong(program, scope, one, found)
                if text:
                    seen.add(key)
                    yield problem_at(one.node, "burst", f"{one.pointer.spelling!r} {text}")


def _wrong(program: Program, scope: Scope, one: _Access, found: list[_Access]) -> str:
    """Return what keeps an access from a burst, ``""`` for nothing."""
    same = [other for other in found if other.pointer == one.pointer]
    if any(strides(program, scope, part, one.moving) for part in one.parts):
        return _STRIDE
    if _is_gather(program, scope, one):
        return ""
    if one is same[0] and _is_both(scope, same):
        return _BOTH
    if one.branch:
        return _BRANCH
    inner = {n.hash for s in scope.walk() if s is not scope and s.is_loop for n in _counters(s)}
    alone = len({other.node.hash for other in same}) == 1 and not any(
        names(part) & inner for part in one.parts
    )
    if not alone:
        return ""
    if any(is_uneven(scope, part, one.moving) for part in one.parts):
        return _UNEVEN
    if any(backwards(scope, part, one.moving) for part in one.parts):
        return _BACK
    rows = any(moves(part, one.moving) for part in one.parts[1:-1])
    if rows or any(has_gaps(scope, part, one.moving) for part in one.parts):
        return _GAPS
    return ""


def _followed(program: Program, masters: set[str]) -> set[int]:
    """Return the hashes of m_axi arguments, and of what is made of them or given them."""
    top = program.scopes[0].function
    found = {item.hash for item in parameters_of(top) if item.spelling in masters}
    nodes = [node for function in program.functions for node in function.walk_preorder()]
    made = [n for n in nodes if n.kind == CursorKind.VAR_DECL]
    called = [n for n in nodes if n.kind == CursorKind.CALL_EXPR]
    before = -1
    while before != len(found):
        before = len(found)
        for variable in made:
            found |= set(_aliases(variable, found))
        for call in called:
            for position, argument in enumerate(call.get_arguments()):
                if _is_one(argument, found):
                    for function in program.callees(call):
                        given = parameters_of(function)[position : position + 1]
                        found |= {item.hash for item in given}
    return found


def _aliases(variable: Cursor, found: set[int]) -> Iterator[int]:
    """Yield a pointer made of an m_axi argument, or the members of a struct that are."""
    values = [child for child in variable.get_children() if child.kind.is_expression()]
    if not values:
        return
    if variable.type.get_canonical().kind in (TypeKind.POINTER, TypeKind.LVALUEREFERENCE):
        if _is_one(values[-1], found):
            yield variable.hash
    elif plain(values[-1]).kind == CursorKind.INIT_LIST_EXPR:
        declared = variable.type.get_canonical().get_declaration()
        fields = [item for item in declared.get_children() if item.kind == CursorKind.FIELD_DECL]
        for member, value in zip(fields, plain(values[-1]).get_children(), strict=False):
            if _is_one(value, found):
                yield member.hash


def _is_one(value: Cursor, found: set[int]) -> bool:
    pointer = _pointer(value)
    return pointer is not None and pointer.hash in found


def _pointer(node: Cursor) -> Cursor | None:
    """Return the variable, or the member that is a pointer, whose memory is meant."""
    while (node := plain(node)).kind != CursorKind.DECL_REF_EXPR:
        children = list(node.get_children())
        is_pointer = node.type.get_canonical().kind == TypeKind.POINTER
        if node.kind == CursorKind.MEMBER_REF_EXPR and is_pointer:
            return node.referenced
        if not children or node.kind == CursorKind.CALL_EXPR:
            return None
        node = children[0]
    return node.referenced


def _is_pipelined(program: Program, scope: Scope) -> bool:
    """Whether it is the loop that the tool pipelines: with the pragma, or the innermost one."""
    if not scope.is_loop or any(outer.pragma("pipeline") for outer in scope.above()):
        return False
    if scope.pragma("pipeline"):
        return True
    inner = any(part.is_loop for part in scope.walk() if part is not scope)
    return not inner and not _reaches_a_loop(program, scope.node, ())


def _reaches_a_loop(program: Program, node: Cursor, inside: tuple[int, ...]) -> bool:
    """Whether a function that is called, or one that it calls, has loops."""
    for call in calls(node):
        for function in program.callees(call)[:1]:
            scope = next((one for one in program.scopes if one.node == function), None)
            if scope is None or function.hash in inside:
                continue
            if any(part.is_loop for part in scope.walk()):
                return True
            if _reaches_a_loop(program, scope.body, (*inside, function.hash)):
                return True
    return False


def _is_told(scope: Scope) -> bool:
    """Whether a branch or a comment says that the stride is not 1."""
    inside = _words(scope.node)
    for outer in scope.above():
        if outer.kind == "if":
            condition = next(iter(outer.node.get_children()))
            for node in condition.walk_preorder():
                if _compares_with_one(node) and _words(node) & inside:
                    return True
    line = scope.node.location.line
    lines = Path(scope.node.location.file.name).read_text(errors="replace").splitlines()
    return any(_TOLD.search(text) for text in lines[max(line - 4, 0) : line - 1])


def _words(node: Cursor) -> set[str]:
    return {part.spelling for part in node.walk_preorder() if part.spelling}


def _compares_with_one(node: Cursor) -> bool:
    if node.kind != CursorKind.BINARY_OPERATOR:
        return False
    spelt = [token.spelling for token in node.get_tokens()]
    return operator_kind(node, unary=False) in (EQUAL, UNEQUAL) and spelt[-1] == "1"


def _accesses(
    program: Program, node: Cursor, moving: Moving, pointers: set[int], inside: tuple[int, ...],
    branch: bool = False,
) -> Iterator[_Access]:  # fmt: skip
    """Yield the accesses of m_axi arguments in a loop, and in the functions it calls."""
    children = list(node.get_children())
    parts: tuple[Cursor, ...] = ()
    if node.kind == CursorKind.ARRAY_SUBSCRIPT_EXPR:
        base, *parts_of = children
        while (row := plain(base)).kind == CursorKind.ARRAY_SUBSCRIPT_EXPR:  # a[i][j]
            base, index = row.get_children()
            parts_of.insert(0, index)
        children = [base, *parts_of]
        parts = tuple(children)
    elif node.kind == CursorKind.UNARY_OPERATOR:
        parts = tuple(children) if operator_kind(node, unary=True) == _DEREFERENCE else ()
    pointer = _pointer(parts[0]) if parts else None
    if pointer is not None and pointer.hash in pointers:
        yield _Access(node, pointer, parts, moving, branch)
    if node.kind == CursorKind.CALL_EXPR:
        for function in program.callees(node)[:1]:
            scope = next((s for s in program.scopes if s.node == function), None)
            if scope is None or function.hash in inside or any(s.is_loop for s in scope.walk()):
                continue
            given = dict(moving)
            for argument, item in zip(node.get_arguments(), parameters_of(function), strict=False):
                if not names(argument).isdisjoint(moving):
                    given[item.hash] = []
            within = (*inside, function.hash)
            yield from _accesses(program, scope.body, given, pointers, within, branch)
    ways = {CursorKind.IF_STMT: 1, CursorKind.CONDITIONAL_OPERATOR: 1, CursorKind.SWITCH_STMT: 1}
    either = is_binary(node, AND) or is_binary(node, OR)
    first = 1 if either else ways.get(node.kind, len(children))
    for position, child in enumerate(children):
        under = branch or position >= first
        yield from _accesses(program, child, moving, pointers, inside, under)
        branch = branch or _leaves(child, CursorKind.CONTINUE_STMT)


def _leaves(node: Cursor, kind: CursorKind) -> bool:
    """Whether a branch ends an iteration, or with BREAK_STMT the loop around it."""
    ends = kind == CursorKind.BREAK_STMT and node.kind == CursorKind.SWITCH_STMT
    if ends or node.kind in LOOPS:
        return False
    return node.kind == kind or any(_leaves(child, kind) for child in node.get_children())


def _is_both(scope: Scope, same: list[_Access]) -> bool:
    """Whether the accesses of a pointer are reads as well as writes."""
    reads, writes = {one.node.hash for one in same}, set()
    for node in scope.node.walk_preorder():
        compound = node.kind == CursorKind.COMPOUND_ASSIGNMENT_OPERATOR
        binary = node.kind == CursorKind.BINARY_OPERATOR
        if compound or (binary and operator_kind(node, unary=False) == ASSIGN):
            target = plain(next(iter(node.get_children()))).hash
            if any(one.node.hash == target for one in same):
                writes.add(target)
                reads -= set() if compound else {target}
    return bool(reads and writes)


def _counters(scope: Scope) -> list[Cursor]:
    begin = scope.header()[0] if scope.kind == "for" else None
    return list(begin.get_children()) if begin is not None else []


def _is_gather(program: Program, scope: Scope, one: _Access) -> bool:
    """Whether data chooses the address: what lies there is read alone, and that is no slip."""
    nodes = [node for part in one.parts for node in expanded(scope, part)]
    return any(
        (
            node.kind == CursorKind.ARRAY_SUBSCRIPT_EXPR
            and node != one.node
            and moves(node, one.moving)
        )
        or (node.kind == CursorKind.CALL_EXPR and not program.callees(node))
        for node in nodes
    )
