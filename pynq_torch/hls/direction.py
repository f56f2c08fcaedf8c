"""Whether a function reads or writes what a pointer or reference argument refers to.

HLS decides the direction of a port from the optimised body: an argument that is only read is an
input, one that is only written is an output with ap_vld, both is an inout. The same is asked here
of the syntax tree. Where a body cannot be seen, the answer is both.
"""

from __future__ import annotations

from dataclasses import dataclass

from pynq_torch.errors import needs

from .cursors import (
    body_of,
    candidates,
    definition_of,
    is_read_only,
    operator_kind,
    parameters_of,
)

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, CursorKind, TypeKind

__all__ = ["Access", "argument_access", "stream_direction"]

# CXBinaryOperatorKind and CXUnaryOperatorKind (clang-c/Index.h); the wheel's Python has no names.
_ASSIGN, _COMPOUND_FIRST, _COMPOUND_LAST = 22, 23, 32
_INCREMENTS, _ADDRESS, _DEREFERENCE = {1, 2, 3, 4}, 5, 6

_POINTERS = {
    TypeKind.POINTER,
    TypeKind.CONSTANTARRAY,
    TypeKind.INCOMPLETEARRAY,
    TypeKind.DEPENDENTSIZEDARRAY,
}
_REFERENCES = {TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE}
_CHOICES = {CursorKind.IF_STMT, CursorKind.CONDITIONAL_OPERATOR}
# Bodies that may run never, or from the middle.
_UNCERTAIN = {
    CursorKind.FOR_STMT,
    CursorKind.WHILE_STMT,
    CursorKind.SWITCH_STMT,
    CursorKind.CXX_FOR_RANGE_STMT,
    CursorKind.CXX_TRY_STMT,
    CursorKind.LAMBDA_EXPR,
}
_CONVERSIONS = {CursorKind.CONSTRUCTOR, CursorKind.CONVERSION_FUNCTION}
_LABELS = {CursorKind.CASE_STMT, CursorKind.DEFAULT_STMT}
# Library functions whose effect on their pointers is known: argument -> (reads, writes).
_KNOWN = {
    "memcpy": {0: (False, True), 1: (True, False)},
    "memmove": {0: (False, True), 1: (True, False)},
    "memset": {0: (False, True)},
    "modf": {1: (False, True)},
    "modff": {1: (False, True)},
    "frexp": {1: (False, True)},
    "sincos": {1: (False, True), 2: (False, True)},
    "sincosf": {1: (False, True), 2: (False, True)},
}


@dataclass
class Access:
    """What is done through an argument.

    Parameters
    ----------
    reads : bool
        The caller's value is read: some path reads before the function has written the whole.
    writes : bool
        It is written on some path.
    written : bool
        It is written, as a whole, on every path.
    """

    reads: bool = False
    writes: bool = False
    written: bool = False

    @property
    def direction(self) -> str:
        """``"in"``, ``"out"`` or ``"inout"``."""
        if not self.writes:
            return "in"
        return "inout" if self.reads else "out"


def argument_access(
    function: Cursor, index: int, above: tuple[tuple[str, int], ...] = ()
) -> Access:
    """Return what the definition `function` does with argument number `index`.

    `above` are the functions and arguments that this call comes from.
    """
    key = (function.get_usr(), index)
    if key in above:  # recursion adds nothing to what the first call does
        return Access()
    parameters = parameters_of(function)
    if index >= len(parameters):
        return Access(True, True)
    walk = _Walk(parameters[index], (*above, key))
    body = body_of(function)
    if body is not None:
        walk.visit(body, "discard", False)
    return walk.result


class _Walk:
    """Follows one argument, and the local names given to it, through a body."""

    def __init__(self, root: Cursor, above: tuple[tuple[str, int], ...]) -> None:
        self.roots = {root.hash}
        self.volatile = "volatile" in root.type.get_canonical().spelling
        self.above = above
        self.result = Access()
        self.at_switch = False  # whether the whole was written where the switch began

    def note(self, use: str, whole: bool = False) -> None:
        if use in ("read", "rw") and not self.result.written:
            self.result.reads = True
        if use in ("write", "rw"):
            self.result.writes = True
            # Every access of a volatile counts, so nothing is ever forwarded to a later read.
            self.result.written |= use == "write" and whole and not self.volatile

    def visit(self, node: Cursor, use: str, through: bool, whole: bool = True) -> None:
        """Visit an expression used as `use`; `through` says that a pointer was followed."""
        kind = node.kind
        children = list(node.get_children())
        if kind == CursorKind.DECL_REF_EXPR:
            # The pointer itself being compared, moved or copied touches nothing behind it.
            if self.names(node) and (through or not self.is_pointer(node.referenced)):
                self.note(use, whole)
        elif kind == CursorKind.BINARY_OPERATOR and len(children) == 2:
            self.binary(node, children, use, through, whole)
        elif kind == CursorKind.COMPOUND_ASSIGNMENT_OPERATOR:
            self.visit(children[0], "rw", False, whole)
            self.visit(children[1], "read", False)
        elif kind == CursorKind.UNARY_OPERATOR and children:
            self.unary(node, children[0], use, through, whole)
        elif kind == CursorKind.ARRAY_SUBSCRIPT_EXPR and len(children) == 2:
            self.visit(children[0], use, True, False)
            self.visit(children[1], "read", False)
        elif kind == CursorKind.MEMBER_REF_EXPR and children:
            arrow = children[0].type.get_canonical().kind == TypeKind.POINTER
            self.visit(children[0], use, through or arrow, False)
        elif kind == CursorKind.CALL_EXPR:
            self.call(node, children, use, whole)
        elif kind == CursorKind.VAR_DECL:
            self.variable(node, children)
        elif kind in _CHOICES:
            self.choice(children, use if kind == CursorKind.CONDITIONAL_OPERATOR else "discard")
        elif kind in _UNCERTAIN:
            self.uncertain(children, kind == CursorKind.SWITCH_STMT)
        elif kind.is_statement() or kind.is_declaration():
            if kind in _LABELS:
                self.result.written = self.at_switch
            for child in children:
                self.visit(child, "read" if kind == CursorKind.RETURN_STMT else "discard", False)
        else:  # casts, parentheses, implicit conversions, initialiser lists
            for child in children:
                self.visit(child, use, through, whole)

    def choice(self, children: list[Cursor], use: str) -> None:
        """``if`` and ``?:``: written afterwards when both sides write."""
        self.visit(children[0], "read", False)
        before = self.result.written
        after: list[bool] = []
        for child in children[1:]:
            self.result.written = before
            self.visit(child, use, False)
            after.append(self.result.written)
        self.result.written = before or (len(after) > 1 and all(after))

    def uncertain(self, children: list[Cursor], is_switch: bool) -> None:
        before, outer = self.result.written, self.at_switch
        if is_switch:
            self.at_switch = before
        for child in children:
            self.visit(child, "read" if child.kind.is_expression() else "discard", False)
        self.result.written, self.at_switch = before, outer

    def binary(
        self, node: Cursor, children: list[Cursor], use: str, through: bool, whole: bool
    ) -> None:
        operator = operator_kind(node, unary=False)
        left, right = children
        if operator == _ASSIGN:
            self.visit(right, "read", False)
            self.visit(left, "write", False, whole)
            named = left.kind == CursorKind.DECL_REF_EXPR and self.is_pointer(left)
            if named and left.referenced is not None and self.rooted(right):
                self.roots.add(left.referenced.hash)
        elif _COMPOUND_FIRST <= operator <= _COMPOUND_LAST:
            self.visit(right, "read", False)
            self.visit(left, "rw", False, whole)
        else:
            for child in children:
                follow = through and self.is_pointer(child)
                self.visit(child, use if follow else "read", follow, False)

    def unary(self, node: Cursor, child: Cursor, use: str, through: bool, whole: bool) -> None:
        operator = operator_kind(node, unary=True)
        if operator == _DEREFERENCE:
            plain = child.kind in (CursorKind.DECL_REF_EXPR, CursorKind.UNEXPOSED_EXPR)
            self.visit(child, use, True, whole and plain)
        elif operator == _ADDRESS:
            # An address that is not followed at once is handled where it is passed on.
            self.visit(child, use if through else "discard", False, whole)
        elif operator in _INCREMENTS:
            # *p++ moves the pointer and follows it; (*p)++ changes the value.
            self.visit(child, use if self.is_pointer(child) else "rw", through, whole)
        else:
            self.visit(child, "read", through)

    def variable(self, node: Cursor, children: list[Cursor]) -> None:
        initialisers = [child for child in children if child.kind.is_expression()]
        refers = node.type.get_canonical().kind in _POINTERS | _REFERENCES
        if refers and initialisers and self.rooted(initialisers[-1]):
            self.roots.add(node.hash)
            return
        for child in initialisers:
            self.visit(child, "read", False)

    def names(self, node: Cursor) -> bool:
        return node.referenced is not None and node.referenced.hash in self.roots

    def rooted(self, node: Cursor) -> bool:
        """Whether the expression is the argument, its address or a place within it."""
        if node.kind == CursorKind.DECL_REF_EXPR:
            return self.names(node)
        if node.kind == CursorKind.CALL_EXPR:
            return False
        children = list(node.get_children())
        if node.kind == CursorKind.ARRAY_SUBSCRIPT_EXPR:
            children = children[:1]
        return any(self.rooted(child) for child in children)

    def is_pointer(self, node: Cursor) -> bool:
        return node.type.get_canonical().kind in _POINTERS

    def call(self, node: Cursor, children: list[Cursor], use: str, whole: bool) -> None:
        name = node.spelling or ""
        arguments = list(node.get_arguments())
        target = node.referenced
        if name.startswith("operator") and name[8:9] not in ("", " ") and arguments:
            self.overloaded(name[8:], arguments, use, whole)
        elif target is not None and target.kind == CursorKind.CXX_METHOD and children:
            for child in children[0].get_children():
                # x.range(3, 0) = y: a part of x is written, the rest kept.
                self.visit(child, "read" if target.is_const_method() else "rw", False, False)
            for argument in arguments:
                self.visit(argument, "read", False)
        elif target is None and (found := candidates(node)):
            for function in found:
                for position, argument in enumerate(arguments):
                    self.passed(function, position, argument)
        elif target is None or target.kind in _CONVERSIONS:
            for child in children:
                self.visit(child, "read", False)
        else:
            for position, argument in enumerate(arguments):
                self.passed(target, position, argument)

    def overloaded(self, operator: str, arguments: list[Cursor], use: str, whole: bool) -> None:
        first, rest = arguments[0], arguments[1:]
        for argument in rest:
            self.visit(argument, "read", False)
        if operator == "=":
            self.visit(first, "write", False, whole)
        elif operator in ("++", "--") or (
            operator.endswith("=") and operator not in ("==", "!=", "<=", ">=")
        ):
            self.visit(first, "rw", False, whole)
        elif operator in ("[]", "()"):
            # A bit or bit range of an ap_int: the other bits are kept.
            self.visit(first, "rw" if use in ("write", "rw") else use, False, False)
        else:
            self.visit(first, "read", False)

    def passed(self, function: Cursor, position: int, argument: Cursor) -> None:
        """Follow an argument that is handed on to another function."""
        parameters = list(function.get_arguments())
        declared = parameters[position].type.get_canonical() if position < len(parameters) else None
        known = _KNOWN.get(function.spelling, {}).get(position)
        by_value = declared is not None and declared.kind not in _POINTERS | _REFERENCES
        if not self.rooted(argument) or (known is None and by_value):
            self.visit(argument, "read", False)
            return
        if known is not None:
            access = Access(*known)
        elif declared is not None and is_read_only(declared):
            access = Access(reads=True)
        else:
            body = definition_of(function)
            access = Access(True, True)
            if body is not None:
                access = argument_access(body, position, self.above)
        if access.reads:
            self.note("read")
        if access.writes:
            self.note("write", access.written)


#: Methods of hls::stream and of hls::burst_maxi, whose requests and responses move no data.
_STREAM_READS = {"read", "read_nb", "operator>>", "read_dep", "get", "peek", "acquire_read"}
_STREAM_WRITES = {"write", "write_nb", "operator<<", "write_dep", "put"}


def stream_direction(function: Cursor, index: int) -> str:
    """Return ``"in"``, ``"out"`` or ``"inout"`` for stream or burst_maxi argument number `index`.

    One that the body does not touch is an input.
    """
    reads, writes = _stream_access(function, index, ())
    if reads and writes:
        return "inout"
    return "out" if writes else "in"


def _stream_access(
    function: Cursor, index: int, above: tuple[tuple[str, int], ...]
) -> tuple[bool, bool]:
    key = (function.get_usr(), index)
    parameters = parameters_of(function)
    if key in above or index >= len(parameters):
        return False, False
    walk = _Walk(parameters[index], ())
    reads = writes = False
    for node in function.walk_preorder():
        if node.kind != CursorKind.CALL_EXPR:
            continue
        children = list(node.get_children())
        arguments = [_uncopied(argument) for argument in node.get_arguments()]
        name = node.spelling
        if not name and children:  # in a template the member is not resolved
            name = children[0].spelling
        bases = children[:1] if not name.startswith("operator") else arguments[:1]
        if name in _STREAM_READS | _STREAM_WRITES and bases and walk.rooted(bases[0]):
            reads |= name in _STREAM_READS
            writes |= name in _STREAM_WRITES
            continue
        for position, argument in enumerate(arguments):
            body = definition_of(node.referenced) if node.referenced is not None else None
            if body is not None and walk.rooted(argument):
                inner = _stream_access(body, position, (*above, key))
                reads, writes = reads or inner[0], writes or inner[1]
    return reads, writes


def _uncopied(argument: Cursor) -> Cursor:
    """Return what an argument passed by value is copied from."""
    while argument.kind in (CursorKind.CALL_EXPR, CursorKind.UNEXPOSED_EXPR):
        children = list(argument.get_children())
        made = argument.kind == CursorKind.CALL_EXPR
        constructor = argument.referenced is not None and argument.referenced.kind in _CONVERSIONS
        if len(children) != 1 or (made and not constructor):
            break
        argument = children[0]
    return argument
