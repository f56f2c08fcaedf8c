"""What Vitis HLS makes of loops: trip counts, accumulations.

Only syntax is looked at: types in templates and values that a caller passes are not known.
"""

from __future__ import annotations

from collections.abc import Iterator

from pynq_torch.errors import needs

from .cursors import operator_kind
from .lint_tree import (
    ADD,
    ASSIGN,
    COMMA,
    SUBTRACT,
    Directive,
    Problem,
    Program,
    Scope,
    is_constant,
    is_step,
    names,
    plain,
    problem_at,
    root_of,
)

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, CursorKind, TypeKind

__all__ = ["accumulations", "changes", "tripcounts"]

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
                own, values = _start(parts[0])
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


def _start(begin: Cursor | None) -> tuple[frozenset[int], list[Cursor]]:
    """Return what a ``for`` sets, and the value of the first: ``int i = 0`` or ``i = 0``."""
    if begin is None or begin.kind == CursorKind.DECL_STMT:
        made = list(begin.get_children()) if begin is not None else []
        values = [child for node in made[:1] for child in node.get_children()]
        return frozenset(node.hash for node in made), values
    parts = [list(part.get_children()) for part in _steps(begin)]
    roots = [root for part in parts if (root := root_of(part[0])) is not None]
    return frozenset(root.hash for root in roots), parts[0][1:]


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


def changes(scope: Scope) -> dict[int, list[Cursor]]:
    """Return the variables that a loop steps, and the expressions they are stepped by."""
    found: dict[int, list[Cursor]] = {}
    for node in scope.node.walk_preorder():
        if is_step(node):
            parts = list(node.get_children())
            element = plain(parts[0]).kind == CursorKind.ARRAY_SUBSCRIPT_EXPR
            root = None if element else root_of(parts[0])
            by = parts[1:] if root is None else _addends(node, root, parts[1:])
            if root is not None and by is not None:
                found.setdefault(root.hash, []).extend(by)
    for node in scope.node.walk_preorder():
        if node.kind == CursorKind.VAR_DECL and not names(node).isdisjoint(found):
            found.setdefault(node.hash, [])
    return found


def _addends(step: Cursor, root: Cursor, values: list[Cursor]) -> list[Cursor] | None:
    """Return what ``i += s`` or ``i = i + s`` adds; None where a variable gets another value."""
    if step.kind != CursorKind.BINARY_OPERATOR:
        return values
    value = plain(values[0])
    is_sum = value.kind == CursorKind.BINARY_OPERATOR and operator_kind(value, unary=False) in (
        ADD,
        SUBTRACT,
    )
    if operator_kind(step, unary=False) != ASSIGN or not is_sum or root.hash not in names(value):
        return None
    return [part for part in value.get_children() if root.hash not in names(part)]


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
        value = plain(parts[1])
        fused = value.kind == CursorKind.CALL_EXPR and value.spelling in ("fma", "fmaf")
        if not (fused or value.kind == CursorKind.BINARY_OPERATOR) or not any(
            _same(part, parts[0]) for part in value.walk_preorder()
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
    moving = changes(scope).keys() - _unrolled(scope)
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
