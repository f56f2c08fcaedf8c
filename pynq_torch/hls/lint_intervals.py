"""Whether pipelined loops reach the interval that they ask for, by the estimate of the schedule.

Every spelling of a sum, of a memory with too few ports or of a port that two arrays share ends in
the same operations, so the schedule finds what syntax hides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pynq_torch.errors import needs

from .estimator import Estimate, LoopEstimate
from .lint_tree import Problem, Program

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, CursorKind, Type, TypeKind

__all__ = ["intervals"]

_PLACE = re.compile(r"^(?P<text>.*?)(?: \((?P<file>[^()]+):(?P<line>\d+)\))?$", re.DOTALL)
_ARRAY = re.compile(r"\d+ accesses of (?:one bank of )?`(\w+)`")
_MEMORY = re.compile(r"`\w+` is read after ")


def intervals(program: Program, estimate: Estimate) -> Iterator[Problem]:
    """Yield the loops whose schedule needs a longer interval than their PIPELINE asks for."""
    files = {Path(function.location.file.name).name: function for function in program.functions}
    for loop in estimate.loops:
        found = _PLACE.match(loop.why)
        if loop.automatic or loop.ii is None or not loop.why or found is None:
            continue
        array = _ARRAY.search(loop.why)
        # Of a struct Vitis HLS makes a memory of each member; the estimate knows one for all. Nor
        # does it know factors that depend on a template's parameters.
        if array and (_is_struct(program, array[1]) or _is_cut_by_template(program, array[1])):
            continue
        if _MEMORY.search(loop.why) and _has_dependence(program, loop):
            continue  # the author answers for it; the estimate knows arrays by their callers' names
        file, line = loop.file, loop.line
        if found["file"] in files:
            file, line = files[found["file"]].location.file.name, int(found["line"])
        yield file, line, "interval", f"{found['text']}; or ask for what it takes"


def _has_dependence(program: Program, loop: LoopEstimate) -> bool:
    """Whether DEPENDENCE stands in a loop or around it."""
    for function in program.scopes:
        for scope in function.walk():
            place = scope.node.location
            if scope.is_loop and place.line == loop.line:
                same = Path(place.file.name).resolve() == Path(loop.file).resolve()
                if same and any(part.pragma("dependence") for part in (scope, *scope.above())):
                    return True
    return False


def _is_struct(program: Program, name: str) -> bool:
    """Whether a variable of this name is a struct, an array of them, or a reference to one."""
    kinds = [
        _element(node.type)
        for function in program.functions
        for node in _declared(function)
        if node.spelling == name
    ]
    # State<S>, in a template, is of no kind yet.
    return any(kind.kind == TypeKind.RECORD or "<" in kind.spelling for kind in kinds)


def _is_cut_by_template(program: Program, name: str) -> bool:
    for function in program.scopes:
        parameters = {
            child.spelling
            for child in function.node.get_children()
            if child.kind == CursorKind.TEMPLATE_NON_TYPE_PARAMETER
        }
        for item in (item for scope in function.walk() for item in scope.pragmas):
            factor = item.options.get("factor", "")
            if item.variable == name and ("::" in factor or factor in parameters):
                return True
    return False


def _declared(function: Cursor) -> Iterator[Cursor]:
    kinds = (CursorKind.VAR_DECL, CursorKind.PARM_DECL)
    return (node for node in function.walk_preorder() if node.kind in kinds)


def _element(kind: Type) -> Type:
    kind = kind.get_canonical()
    while True:
        inner = kind.get_pointee()
        inner = kind.get_array_element_type() if inner.kind == TypeKind.INVALID else inner
        if inner.kind == TypeKind.INVALID:
            return kind
        kind = inner.get_canonical()
