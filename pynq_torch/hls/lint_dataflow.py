"""Whether DATAFLOW regions have the canonical form (UG1399, "Canonical Body")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pynq_torch.errors import needs

from . import toolchain
from .cursors import is_read_only, operator_kind, parameters_of
from .direction import argument_access, stream_direction
from .lint_tree import (
    Problem,
    Program,
    Scope,
    calls,
    is_constant,
    names,
    plain,
    problem_at,
    root_of,
    walk,
)

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, CursorKind, StorageClass, Type, TypeKind

__all__ = ["dataflow", "is_stream", "touches", "unrolled"]

_OUTSIDE = (CursorKind.TRANSLATION_UNIT, CursorKind.NAMESPACE)
_STEP = (
    "a DATAFLOW loop counts one variable from 0 with ++; count steps and let the processes compute"
)
_STATIC = (
    "a static variable keeps its value, so iterations and calls wait for each other; drop static"
)
_BOUND = (
    "the bound of a DATAFLOW loop is computed here; put the loop into a function of its own and "
    "pass the bound as an argument"
)
_WITHIN = "a DATAFLOW loop is within another loop or branch; put it into a function of its own"
_ALONE = "a DATAFLOW loop is alone in its function; move this statement to the caller"
_CALLS = "a DATAFLOW region has declarations and calls only; move this statement into a process"
_WHILE = (
    "DATAFLOW in a loop that does not count is not canonical; write for (int i = 0; i < n; ++i) "
    "with n a constant or an argument"
)


@dataclass(frozen=True)
class _Use:
    variable: Cursor
    reads: bool
    writes: bool
    call: Cursor


def dataflow(program: Program) -> Iterator[Problem]:
    """Yield what keeps DATAFLOW regions from the canonical form."""
    for function in program.scopes:
        for scope in function.walk():
            if scope.pragma("dataflow") is not None:
                if scope.is_loop:
                    yield from _header(scope)
                yield from _body(program, scope)


def _header(scope: Scope) -> Iterator[Problem]:
    if scope.kind != "for":
        yield problem_at(scope.node, "dataflow", _WHILE)
        return
    begin, condition, step = scope.header()
    variables = list(begin.get_children()) if begin is not None else []
    if len(variables) != 1 or step is None or not _is_counted(variables[0], step):
        yield problem_at(scope.node, "dataflow", _STEP)
    if condition is None or not _is_given(plain(list(condition.get_children())[-1])):
        yield problem_at(scope.node, "dataflow", _BOUND)
    for jump in scope.body.walk_preorder():
        if jump.kind in (CursorKind.BREAK_STMT, CursorKind.CONTINUE_STMT):
            yield problem_at(jump, "dataflow", _CALLS)
    if scope.parent is None or scope.parent.kind != "function":
        yield problem_at(scope.node, "dataflow", _WITHIN)
        return
    others = (CursorKind.DECL_STMT, CursorKind.NULL_STMT)
    for statement in map(plain, scope.parent.body.get_children()):
        if statement != scope.node and statement.kind not in others:
            yield problem_at(statement, "dataflow", _ALONE)
            return


def _is_counted(variable: Cursor, step: Cursor) -> bool:
    """Whether a variable begins with 0 and is counted up."""
    words = [token.spelling for token in variable.get_tokens()]
    value = (
        words[words.index("=") + 1 :] if "=" in words else [w for w in words if w not in "{}"][-1:]
    )
    up = step.kind == CursorKind.UNARY_OPERATOR and operator_kind(step, unary=True) in (1, 3)
    return up and "".join(value).strip("{}uUlL") == "0"


def _is_given(bound: Cursor) -> bool:
    """Whether a bound is a constant or an argument."""
    target = bound.referenced if bound.kind == CursorKind.DECL_REF_EXPR else None
    return (target is not None and target.kind == CursorKind.PARM_DECL) or is_constant([bound])


def _body(program: Program, scope: Scope) -> Iterator[Problem]:
    """Look at the statements of a region: declarations of channels, and calls of processes."""
    touched: dict[int, list[_Use]] = {}
    local: dict[int, Cursor] = {}
    other: set[int] = set()  # of statements that are no processes: reported once, as such
    body = scope.body
    statements = body.get_children() if body.kind == CursorKind.COMPOUND_STMT else [body]
    for statement in statements:
        node = plain(statement)
        assigns = node.spelling.startswith("operator") and "=" in node.spelling
        if node.kind == CursorKind.CALL_EXPR:
            yield from (
                [problem_at(node, "dataflow", _CALLS)] if assigns else _process(program, node)
            )
            for variable, reads, writes in touches(program, node):
                touched.setdefault(variable.hash, []).append(_Use(variable, reads, writes, node))
        elif node.kind == CursorKind.DECL_STMT:
            for variable in node.get_children():
                local[variable.hash] = variable
                if variable.kind == CursorKind.VAR_DECL and not _is_lambda(variable):
                    for call in calls(variable)[:1]:
                        yield _value_used(call)
                    if _is_static(variable) and not is_stream(variable.type):
                        yield problem_at(variable, "dataflow", _STATIC)
        elif loop := unrolled(scope, node):  # calls beside each other
            yield from _body(program, loop)
            other |= names(node)
        elif node.kind != CursorKind.NULL_STMT and not _is_assertion(node):
            yield problem_at(node, "dataflow", _CALLS)
            other |= names(node)
    for uses in touched.values():
        if uses[0].variable.hash not in other:
            yield from _channel(scope, uses, uses[0].variable.hash in local)


def unrolled(scope: Scope, node: Cursor) -> Scope | None:
    """Return the loop that a statement is, if it is completely unrolled."""
    for inner in scope.inner:
        asked = inner.pragma("unroll") if inner.node == node and inner.is_loop else None
        if asked is None or asked.options.get("off", "").lower() == "true":
            continue
        if "factor" not in asked.options and "off" not in asked.words:
            return inner
    return None


def _is_assertion(node: Cursor) -> bool:
    """Whether a statement is ``assert(...)``; with NDEBUG it is a cast."""
    if node.kind in (CursorKind.CSTYLE_CAST_EXPR, CursorKind.CXX_STATIC_CAST_EXPR):
        return not names(node)
    return any(call.spelling in ("__assert_fail", "__assert") for call in calls(node))


def _is_lambda(variable: Cursor) -> bool:
    return any(child.kind == CursorKind.LAMBDA_EXPR for child in walk(variable))


def _is_static(variable: Cursor) -> bool:
    return variable.storage_class == StorageClass.STATIC and not variable.type.is_const_qualified()


def _value_used(call: Cursor) -> Problem:
    name = call.spelling or next((n.spelling for n in call.walk_preorder() if n.spelling), "a call")
    return problem_at(
        call,
        "dataflow",
        f"the value of {name}() is used in a DATAFLOW region; call it inside the process",
    )


def _process(program: Program, call: Cursor) -> Iterator[Problem]:
    for function in program.callees(call)[:1]:
        if toolchain.in_library(function.location.file.name):
            continue
        returned = function.result_type.get_canonical()
        if returned.kind == TypeKind.AUTO or returned.kind == TypeKind.UNEXPOSED:
            returned = call.type.get_canonical()  # auto, or a template's T
        if returned.kind != TypeKind.VOID:
            yield problem_at(
                call,
                "void",
                f"the process {_name(call, function)} returns {returned.spelling}; make it void "
                "and give it an argument to write to",
            )
    for argument in call.get_arguments():
        for inner in calls(argument)[:1]:
            yield _value_used(inner)


def _name(call: Cursor, function: Cursor) -> str:
    """Name a process: a lambda by its variable."""
    if function.spelling != "operator()":
        return str(function.spelling)
    root = root_of(next(iter(call.get_children())))
    return str(root.spelling) if root is not None else "operator()"


def touches(program: Program, call: Cursor) -> Iterator[tuple[Cursor, bool, bool]]:
    """Yield the variables that a process is given, and whether it reads and writes them."""
    functions = program.callees(call)
    arguments = list(call.get_arguments())
    if call.spelling == "operator()":  # of a lambda, which is the first of them
        arguments = arguments[1:]
    operator = call.spelling.startswith("operator") and call.spelling != "operator()"
    first = next(iter(call.get_children()), None)
    if first is not None and first.kind == CursorKind.MEMBER_REF_EXPR:
        variable, method = root_of(first), call.referenced
        if variable is not None:
            yield variable, True, method is None or not method.is_const_method()
    for function in functions[:1]:
        yield from _globals(program, function, set())
    for position, argument in enumerate(arguments):
        variable = root_of(argument)
        if variable is None or variable.kind not in (CursorKind.VAR_DECL, CursorKind.PARM_DECL):
            continue
        if operator or not functions:
            yield variable, position > 0 or not operator, operator or _is_array(variable)
            continue
        for function in functions[:1]:
            declared = parameters_of(function)[position].type
            if is_stream(declared):
                direction = stream_direction(function, position)
                yield variable, direction != "out", direction != "in"
            elif is_read_only(declared) or not any(
                mark in declared.get_canonical().spelling for mark in "*&["
            ):
                yield variable, True, False
            else:
                access = argument_access(function, position)
                yield variable, access.reads, access.writes


def _globals(
    program: Program, function: Cursor, seen: set[int]
) -> Iterator[tuple[Cursor, bool, bool]]:
    """Yield the variables outside every function that a process works with; it may write them."""
    seen.add(function.hash)
    for node in walk(function):
        target = node.referenced
        if node.kind == CursorKind.CALL_EXPR:
            for other in program.callees(node)[:1]:
                if other.hash not in seen and program.has(other):
                    yield from _globals(program, other, seen)
        elif node.kind == CursorKind.DECL_REF_EXPR and target is not None:
            outside = target.kind == CursorKind.VAR_DECL and target.spelling in program.globals
            if outside and target.semantic_parent.kind in _OUTSIDE and not _is_fixed(target.type):
                yield target, True, True


def _is_fixed(kind: Type) -> bool:
    while (element := kind.get_array_element_type()).kind != TypeKind.INVALID:
        kind = element
    return bool(kind.is_const_qualified())


def is_stream(kind: Type) -> bool:
    """Whether a type is a stream, a reference to one or an array of them, by whatever name."""
    spelt = f"{kind.spelling} {kind.get_canonical().spelling}"
    return re.search(r"\bstream(_of_blocks)?\b", spelt) is not None


def _is_array(variable: Cursor) -> bool:
    return "[" in variable.type.get_canonical().spelling or is_stream(variable.type)


def _channel(scope: Scope, uses: list[_Use], local: bool) -> Iterator[Problem]:
    variable = uses[0].variable
    name, array = variable.spelling, _is_array(variable)
    calls_of = list(dict.fromkeys(use.call for use in uses))
    writers = [call for call in calls_of if any(u.writes for u in uses if u.call == call)]
    if not writers:
        return
    readers = [call for call in calls_of if any(u.reads for u in uses if u.call == call)]
    others = [call for call in readers if call not in writers]
    at, wrong = scope.node, ""
    if len(writers) > 1:
        at, wrong = (
            writers[1],
            f"{len(writers)} processes write {name!r}; give each its own variable",
        )
    elif local and array and len(others) > 1:
        at, wrong = others[1], f"{len(others)} processes read {name!r}; let one of them copy it on"
    elif local and array and not others:
        at = variable
        wrong = f"no process reads {name!r}; declare it in the process that writes it"
    elif local and any(calls_of.index(call) < calls_of.index(writers[0]) for call in readers):
        at = others[0] if others else writers[0]
        wrong = f"{name!r} is read before the process that writes it; order the calls by their data"
    elif not local and scope.is_loop and others:
        at = others[0]
        wrong = (
            f"{name!r} is carried between processes from one iteration to the next; declare it in "
            "the loop, or keep it in one process"
        )
    if wrong:
        yield problem_at(at, "dataflow", wrong)
