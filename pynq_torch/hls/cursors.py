"""What libclang's Python bindings do not say of a cursor: operators, templates, their calls."""

from __future__ import annotations

import ctypes

from pynq_torch.errors import needs

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, CursorKind, Type, TypeKind, conf

__all__ = [
    "body_of",
    "candidates",
    "definition_of",
    "is_pointer",
    "is_read_only",
    "name_in_template",
    "operator_kind",
    "parameters_of",
]


def operator_kind(cursor: Cursor, unary: bool) -> int:
    """Return which operator it is, as clang-c/Index.h numbers them."""
    name = "clang_getCursorUnaryOperatorKind" if unary else "clang_getCursorBinaryOperatorKind"
    function = getattr(conf.lib, name)
    function.argtypes = [Cursor]
    function.restype = ctypes.c_int
    return int(function(cursor))


def parameters_of(function: Cursor) -> list[Cursor]:
    """Return the parameters of a function or a template."""
    # A template's definition lists its parameters as children.
    return list(function.get_arguments()) or [
        child for child in function.get_children() if child.kind == CursorKind.PARM_DECL
    ]


def is_read_only(declared: Type) -> bool:
    """Whether a parameter of this type leaves alone what it refers to."""
    spelling = str(declared.spelling)  # an array whose size a template knows has no pointee
    return bool(declared.get_pointee().is_const_qualified()) or spelling.startswith("const ")


def candidates(call: Cursor) -> list[Cursor]:
    """Return the functions that a call in a template, which is not resolved, may mean."""
    children = list(call.get_children())
    count = len(children) - 1
    found: list[Cursor] = []
    for node in children[0].walk_preorder() if children else ():
        if node.kind == CursorKind.OVERLOADED_DECL_REF:
            number = conf.lib.clang_getNumOverloadedDecls(node)
            found += [conf.lib.clang_getOverloadedDecl(node, at) for at in range(number)]
            break
    return [function for function in found if len(parameters_of(function)) == count]


def name_in_template(node: Cursor) -> str:
    """Return the name that a reference ends in which only an instance resolves: `Sum<N>::of<T>`."""
    if node.kind not in (CursorKind.DECL_REF_EXPR, CursorKind.MEMBER_REF_EXPR):
        return ""
    name, depth = "", 0
    for token in node.get_tokens():
        depth += token.spelling.count("<") - token.spelling.count(">")
        if depth == 0 and token.spelling.isidentifier():
            name = str(token.spelling)
    return name


def body_of(function: Cursor) -> Cursor | None:
    """Return the braces of a function, None where it is only declared."""
    return next((c for c in function.get_children() if c.kind == CursorKind.COMPOUND_STMT), None)


def definition_of(function: Cursor) -> Cursor | None:
    """Return the cursor with the function's body; that of a template's instance is the template."""
    template = conf.lib.clang_getSpecializedCursorTemplate(function)
    candidates = [function.get_definition()]
    if template is not None:
        candidates.append(template.get_definition() or template)
    for candidate in candidates:
        if candidate is not None and body_of(candidate) is not None:
            return candidate
    return None


def is_pointer(kind: Type) -> bool:
    """Whether a type is a pointer."""
    return bool(kind.kind == TypeKind.POINTER)
