"""What Vitis HLS makes of loops: trip counts, bursts, accumulations.

Only syntax is looked at: types in templates and values that a caller passes are not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pynq_torch.errors import needs

from .cursors import operator_kind, parameters_of
from .lint_tree import (
    ASSIGN,
    COMMA,
    EQUAL,
    MULTIPLY,
    UNEQUAL,
    Directive,
    Problem,
    Program,
    Scope,
    calls,
    is_constant,
    is_step,
    names,
    plain,
    problem_at,
    root_of,
)

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, CursorKind, TypeKind

__all__ = ["accumulations", "bursts", "tripcounts"]

#: Cycles of an addition at 10 ns on a Zynq-7000: II of a loop around `sum += x`.
_ADDER = {TypeKind.FLOAT: 5, TypeKind.DOUBLE: 8}


def tripcounts(program: Program) -> Iterator[Problem]:
    """Yield loops whose bounds are not constant and that have no LOOP_TRIPCOUNT."""
    for function in program.scopes:
        for scope in function.walk():
            if not scope.is_loop or scope.kind == "range" or scope.pragma("loop_tripcount"):
                continue
            if scope.kind == "for":
                parts = scope.header()
                begin = list(parts[0].get_children()) if parts[0] is not None else []
                own = frozenset(node.hash for node in begin)
                values = [child for node in begin[:1] for child in node.get_children()]
                steps = [step for step in _steps(parts[2]) if _counts(step, parts[1])]
                if parts[1] is not None and is_constant([*values, parts[1], *steps], own):
                    continue
            elif is_constant(scope.node.get_children()):
                continue
            yield problem_at(
                scope.node,
                "tripcount",
                "how often the loop runs is not known at compile time, so reports have no "
                "latency; write #pragma HLS LOOP_TRIPCOUNT min=... max=... in it",
            )


def _steps(node: Cursor | None) -> list[Cursor]:
    """Return the parts of ``++i, at += step``."""
    if node is None:
        return []
    if node.kind != CursorKind.BINARY_OPERATOR or operator_kind(node, unary=False) != COMMA:
        return [node]
    return [part for child in node.get_children() for part in _steps(child)]


def _counts(step: Cursor, condition: Cursor | None) -> bool:
    """Whether a step changes what the condition looks at."""
    root = root_of(next(iter(step.get_children())))
    return root is None or condition is None or root.hash in names(condition)


def bursts(program: Program, masters: set[str]) -> Iterator[Problem]:
    """Yield accesses of m_axi arguments whose stride is a variable, without a branch for 1."""
    pointers = _followed(program, masters)
    for function in program.scopes:
        for scope in function.walk():
            if not _is_pipelined(scope) or _is_told(scope):
                continue
            seen: set[int] = set()
            for node in scope.node.walk_preorder():
                if node.kind != CursorKind.ARRAY_SUBSCRIPT_EXPR:
                    continue
                root = root_of(node)
                if root is None or root.hash not in pointers or node.location.line in seen:
                    continue
                if _strides(program, scope, list(node.get_children())[1]):
                    seen.add(node.location.line)
                    yield problem_at(
                        node,
                        "burst",
                        f"{root.spelling!r} is read or written with a stride known only at run "
                        "time, a single access each; branch to a loop over [first + i] where it "
                        "is 1, or comment 'single accesses' above the loop",
                    )


def _followed(program: Program, masters: set[str]) -> set[int]:
    """Return the hashes of m_axi arguments, of the top function and of those they are passed to."""
    top = program.scopes[0].function
    waiting = [item for item in parameters_of(top) if item.spelling in masters]
    found = {item.hash for item in waiting}
    called = [call for function in program.functions for call in calls(function)]
    while waiting:
        waiting = []
        for call in called:
            for position, argument in enumerate(call.get_arguments()):
                root = root_of(argument)
                if root is None or root.hash not in found:
                    continue
                for function in program.callees(call):
                    given = parameters_of(function)[position : position + 1]
                    waiting += [item for item in given if item.hash not in found]
                    found |= {item.hash for item in given}
    return found


def _is_pipelined(scope: Scope) -> bool:
    """Whether it is the loop that the tool pipelines: with the pragma, or the innermost one."""
    if not scope.is_loop or any(outer.pragma("pipeline") for outer in scope.above()):
        return False
    return bool(scope.pragma("pipeline")) or not any(
        inner.is_loop for inner in scope.walk() if inner is not scope
    )


def _is_told(scope: Scope) -> bool:
    """Whether a branch or a comment says that the stride is not 1."""
    for outer in scope.above():
        if outer.kind == "if":
            condition = next(iter(outer.node.get_children()))
            if any(_compares_with_one(node) for node in condition.walk_preorder()):
                return True
    line = scope.node.location.line
    lines = Path(scope.node.location.file.name).read_text(errors="replace").splitlines()
    return "single accesses" in " ".join(lines[max(line - 4, 0) : line])


def _compares_with_one(node: Cursor) -> bool:
    if node.kind != CursorKind.BINARY_OPERATOR:
        return False
    spelt = [token.spelling for token in node.get_tokens()]
    return operator_kind(node, unary=False) in (EQUAL, UNEQUAL) and spelt[-1] == "1"


def _changes(scope: Scope) -> dict[int, list[Cursor]]:
    """Return the variables that a loop steps, and the expressions they are stepped by."""
    found: dict[int, list[Cursor]] = {}
    for node in scope.node.walk_preorder():
        if node.kind in (CursorKind.UNARY_OPERATOR, CursorKind.COMPOUND_ASSIGNMENT_OPERATOR):
            parts = list(node.get_children())
            root = root_of(parts[0]) if is_step(node) else None
            if root is not None:
                found.setdefault(root.hash, []).extend(parts[1:])
    for node in scope.node.walk_preorder():
        if node.kind == CursorKind.VAR_DECL and not names(node).isdisjoint(found):
            found.setdefault(node.hash, [])
    return found


def _strides(program: Program, scope: Scope, index: Cursor) -> bool:
    """Whether an index moves by a variable from iteration to iteration; not for gathers."""
    moving = _changes(scope)
    nodes = list(_expanded(scope, index))
    if any(node.kind == CursorKind.ARRAY_SUBSCRIPT_EXPR and _moves(node, moving) for node in nodes):
        return False
    for node in nodes:
        if node.kind == CursorKind.DECL_REF_EXPR and node.referenced is not None:
            if not is_constant(moving.get(node.referenced.hash, [])):
                return True
        elif node.kind == CursorKind.BINARY_OPERATOR and _is_product(node, moving):
            return True
        elif node.kind == CursorKind.CALL_EXPR and _moves(node, moving):
            inner = (f.walk_preorder() for f in program.callees(node))
            if any(_is_product(part, None) for body in inner for part in body):
                return True
        elif node.kind == CursorKind.MEMBER_REF_EXPR and _walks(program, scope, node):
            return True
    return False


def _expanded(scope: Scope, node: Cursor) -> Iterator[Cursor]:
    """Yield the nodes of an expression, and of the constants of the loop that it uses."""
    for item in node.walk_preorder():
        yield item
        target = item.referenced if item.kind == CursorKind.DECL_REF_EXPR else None
        if target is not None and target.kind == CursorKind.VAR_DECL:
            begin, end = scope.body.extent.start.offset, scope.body.extent.end.offset
            if begin < target.location.offset < end and target.type.is_const_qualified():
                for child in target.get_children():
                    yield from _expanded(scope, child)


def _moves(node: Cursor, moving: dict[int, list[Cursor]]) -> bool:
    return not names(node).isdisjoint(moving)


def _is_product(node: Cursor, moving: dict[int, list[Cursor]] | None) -> bool:
    """Whether something that moves (all, for None) is multiplied by a variable."""
    if node.kind != CursorKind.BINARY_OPERATOR or operator_kind(node, unary=False) != MULTIPLY:
        return False
    left, right = node.get_children()
    if moving is None:
        return not is_constant([left]) and not is_constant([right])
    return any(
        _moves(one, moving) and not is_constant([other])
        for one, other in ((left, right), (right, left))
    )


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


def accumulations(program: Program) -> Iterator[Problem]:
    """Yield sums that are not ready when the next iteration of a pipelined loop needs them."""
    for function in program.scopes:
        banks = _banks(function)
        for scope in function.walk():
            pipeline = scope.pragma("pipeline") if scope.is_loop else None
            interval = pipeline.options.get("ii", "1") if pipeline else ""
            if pipeline is None or "off" in pipeline.words or not interval.isdigit():
                continue
            for node in scope.node.walk_preorder():
                problem = _sum(scope, node, int(interval), banks)
                if problem:
                    yield problem_at(node, "accumulate", problem)


def _banks(function: Scope) -> dict[str, int]:
    """Return the arrays that are partitioned completely, and in which dimension; 0 is all."""
    items = [item for scope in function.walk() for item in scope.pragmas]
    return {
        item.variable: int(dim) if (dim := item.options.get("dim", "1")).isdigit() else 0
        for item in items
        if item.name == "array_partition"
        and "complete" in (*item.words, item.options.get("type", "").lower())
    }


def _sum(scope: Scope, node: Cursor, interval: int, banks: dict[str, int]) -> str:
    parts = list(node.get_children())
    if node.kind == CursorKind.BINARY_OPERATOR and operator_kind(node, unary=False) == ASSIGN:
        if plain(parts[1]).kind != CursorKind.BINARY_OPERATOR or not any(
            _same(part, parts[0]) for part in parts[1].walk_preorder()
        ):
            return ""
    elif node.kind != CursorKind.COMPOUND_ASSIGNMENT_OPERATOR:
        return ""
    target, root = plain(parts[0]), root_of(parts[0])
    cycles = _ADDER.get(target.type.get_canonical().kind, 0)
    if root is None or interval >= cycles:
        return ""
    indices = _indices(target)
    if root.spelling in banks and indices:
        dim = banks[root.spelling]
        if not is_constant(indices[dim - 1 : dim] if dim else indices, _unrolled(scope)):
            return (
                f"{root.spelling!r} is partitioned completely and indexed at run time: every "
                f"element has a multiplexer, and a sum of {cycles} cycles no known distance; keep "
                "the array whole, with DEPENDENCE distance=... true"
            )
    moving = _changes(scope).keys() - _unrolled(scope)
    if any(item.variable == root.spelling for item in _dependences(scope)):
        return ""
    if any(not names(index).isdisjoint(moving) for index in indices):
        return ""
    if not indices and (target.kind != CursorKind.DECL_REF_EXPR or _is_within(scope, root)):
        return ""
    return (
        f"{root.spelling!r} is added to in every iteration, and an addition takes {cycles} cycles, "
        f"so II={interval} is not reached; deal the sums to {cycles} or more lanes, or ask for "
        f"II={cycles}"
    )


def _indices(target: Cursor) -> list[Cursor]:
    """Return the indices of ``a[i][j]``, the outermost dimension first."""
    found: list[Cursor] = []
    while target.kind == CursorKind.ARRAY_SUBSCRIPT_EXPR:
        base, index = target.get_children()
        found.insert(0, index)
        target = plain(base)
    return found


def _same(one: Cursor, other: Cursor) -> bool:
    words = [[token.spelling for token in node.get_tokens()] for node in (one, other)]
    return one.kind == other.kind and words[0] == words[1]


def _dependences(scope: Scope) -> Iterator[Directive]:
    for part in (scope, *scope.above()):
        yield from (item for item in part.pragmas if item.name == "dependence")


def _unrolled(scope: Scope) -> frozenset[int]:
    """Return the variables of the loops within a pipelined one, which are all unrolled."""
    inner = [part for part in scope.walk() if part.kind == "for" and part is not scope]
    starts = [begin for part in inner if (begin := part.header()[0]) is not None]
    return frozenset(node.hash for begin in starts for node in begin.get_children())


def _is_within(scope: Scope, variable: Cursor) -> bool:
    begin, end = scope.body.extent.start.offset, scope.body.extent.end.offset
    return bool(begin < variable.location.offset < end)
