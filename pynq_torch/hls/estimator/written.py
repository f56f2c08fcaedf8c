"""Loops and arrays as they are written: what no directive says of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pynq_torch.errors import needs

from ..cursors import is_pointer
from ..lint_tree import LOOPS, Scope, plain, walk
from .place import header_folders, real_path

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, CursorKind, Type, TypeKind

__all__ = [
    "breaks", "dimensions_of", "has_plain_elements", "home_of", "is_fixed", "is_open_array",
    "is_perfect", "is_sized_by_template", "members_of",
]  # fmt: skip

_STRUCTS = (CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL)
_NARROW = re.compile(r"(?:const )?ap_u?(?:int|fixed)<(\d+)")


def dimensions_of(node: Cursor) -> tuple[tuple[int, ...], int, int]:
    """Return an array's dimensions, the bytes of an element and the bits that are used of it."""
    kind, sizes = node.type.get_canonical(), []
    if node.kind == CursorKind.PARM_DECL and (is_pointer(kind) or is_open_array(kind)):
        kind = kind.element_type if is_open_array(kind) else kind.get_pointee().get_canonical()
        if kind.get_array_size() > 0:
            sizes = [0]  # T a[][N]: the first one is not known here
    more, kind = _elements(kind, is_open=not sizes)
    size = kind.get_size()
    narrow = _NARROW.match(kind.spelling)
    return (*sizes, *more), size, int(narrow[1]) if narrow else size * 8


def _elements(kind: Type, *, is_open: bool = False) -> tuple[tuple[int, ...], Type]:
    """Return an array's dimensions and the type of an element; the first may have no number."""
    sizes: list[int] = []
    while kind.get_array_size() > 0 or (
        is_open and not sizes and "[" in kind.spelling and kind.get_array_size() == 0
    ):
        sizes.append(kind.get_array_size())
        kind = kind.get_array_element_type().get_canonical()
    return tuple(sizes), kind


def has_plain_elements(kind: Type) -> bool:
    """Whether what an array or a pointer has is of a type of C's own, no class."""
    kind = kind.get_canonical()
    kind = kind.get_pointee().get_canonical() if is_pointer(kind) else kind
    while is_open_array(kind) or kind.get_array_size() >= 0:
        kind = kind.get_array_element_type().get_canonical()
    return not kind.get_declaration().spelling  # of a class or a union


def members_of(
    name: str, kind: Type, around: tuple[int, ...] = ()
) -> Iterator[tuple[str, str, int, tuple[int, ...], int, int]]:
    """Yield the members of a struct of the kernel's own that holds an array or is in one.

    Each with the struct's name, its own, the byte where it begins, its dimensions behind those
    around it, and bytes and bits of an element.
    """
    sizes, kind = _elements(kind.get_canonical())
    declared = kind.get_declaration()
    fields = [*kind.get_fields()] if declared.kind in _STRUCTS and kind.get_size() > 0 else []
    file = declared.location.file
    is_own = file is not None and not file.name.startswith(header_folders())
    if not is_own or not (sizes or around or any(map(_holds_array, fields))):
        return
    for one in fields:
        inner, element = _elements(one.type.get_canonical())
        size, narrow = element.get_size(), _NARROW.match(element.spelling)
        bits = int(narrow[1]) if narrow else size * 8
        at = kind.get_offset(one.spelling) // 8
        yield name, one.spelling, at, (*around, *sizes, *inner), size, bits
        yield from members_of(f"{name}.{one.spelling}", one.type, (*around, *sizes))


def home_of(kind: Type) -> tuple[str, int]:
    """Return where a struct is declared, or the template that it is made from."""
    at = _elements(kind.get_canonical())[1].get_declaration().location
    return (real_path(at.file.name), at.line) if at.file is not None else ("", 0)


def _holds_array(node: Cursor) -> bool:
    """Whether a member is an array, or a struct that holds one."""
    sizes, kind = _elements(node.type.get_canonical())
    inner = kind.get_fields() if kind.get_declaration().kind in _STRUCTS else ()
    return bool(sizes) or any(map(_holds_array, inner))


def is_open_array(kind: Type) -> bool:
    """Whether a type is ``T[]``, which libclang calls no pointer even where it is an argument."""
    return bool(kind.kind == TypeKind.INCOMPLETEARRAY)


def is_sized_by_template(node: Cursor) -> bool:
    """Whether the size of an array is known in the instances of a template only."""
    return bool(node.type.get_canonical().kind == TypeKind.DEPENDENTSIZEDARRAY)


def is_perfect(scope: Scope) -> bool:
    """Whether another loop is the only statement of a loop."""
    body = scope.body
    parts = list(body.get_children()) if body.kind == CursorKind.COMPOUND_STMT else [body]
    parts = [plain(part) for part in parts if part.kind != CursorKind.NULL_STMT]
    return len(parts) == 1 and parts[0].kind in LOOPS


def breaks(node: Cursor) -> bool:
    """Whether a `break` in a loop's body ends that loop."""
    if node.kind in LOOPS or node.kind == CursorKind.SWITCH_STMT:
        return False
    parts = [part for part in node.get_children() if part.kind.is_statement()]
    return node.kind == CursorKind.BREAK_STMT or any(map(breaks, parts))


def is_fixed(node: Cursor) -> bool:
    """Whether a loop begins and ends at constants: no variable but its counter is in them.

    What a function is handed is a constant where a call that is inlined says so.
    """
    ends = [child for part in list(node.get_children())[:2] for child in walk(part)]
    names = [one for one in ends if one.kind == CursorKind.DECL_REF_EXPR]
    used = [one.referenced for one in names if one.referenced is not None]
    variables = (one for one in used if one.kind == CursorKind.VAR_DECL)
    free = {one.hash for one in variables if not one.type.is_const_qualified()}
    return node.kind == CursorKind.FOR_STMT and len(free) <= 1
