"""The loops, branches and functions of a kernel, with the pragmas that stand in each.

libclang keeps no pragmas: each goes to the innermost scope around its line. Calls in templates are
not resolved, so they are followed by their name and the number of their arguments.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from pynq_torch.errors import needs

from . import toolchain
from .cursors import body_of, candidates, definition_of, name_in_template, operator_kind
from .directives import Pragma

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, CursorKind, conf

__all__ = [
    "ADD", "AND", "ASSIGN", "COMMA", "EQUAL", "LOOPS", "MULTIPLY", "OR", "SHIFT", "SUBTRACT",
    "UNEQUAL", "Directive", "Problem", "Program", "Scope", "calls", "is_constant", "is_step",
    "names", "plain", "problem_at", "root_of", "walk",
]  # fmt: skip

#: What is wrong: file, line, rule and text.
Problem = tuple[str, int, str, str]
_WRAPPERS = (CursorKind.UNEXPOSED_EXPR, CursorKind.LABEL_STMT, CursorKind.PAREN_EXPR)
ASSIGN, COMMA, MULTIPLY, EQUAL, UNEQUAL = 22, 33, 3, 15, 16  # clang-c/Index.h, as in direction
ADD, SUBTRACT, SHIFT, AND, OR = 6, 7, 8, 20, 21
LOOPS = {
    CursorKind.FOR_STMT: "for",
    CursorKind.WHILE_STMT: "while",
    CursorKind.DO_STMT: "do",
    CursorKind.CXX_FOR_RANGE_STMT: "range",
}
_OTHERS = {CursorKind.IF_STMT: "if", CursorKind.COMPOUND_STMT: "block"}
_FUNCTIONS = {
    CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE, CursorKind.CXX_METHOD,
    CursorKind.CONSTRUCTOR,
}  # fmt: skip
_SPACES = {
    CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC, CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL,
    CursorKind.CLASS_TEMPLATE, CursorKind.UNION_DECL, CursorKind.UNEXPOSED_DECL,
}  # fmt: skip
_CONSTANT = {
    CursorKind.ENUM_CONSTANT_DECL,
    CursorKind.TEMPLATE_NON_TYPE_PARAMETER,
    CursorKind.FUNCTION_DECL,
    CursorKind.FUNCTION_TEMPLATE,
    CursorKind.CXX_METHOD,  # an operator; other methods are members of what they are called on
    CursorKind.OVERLOADED_DECL_REF,
}
_CONVERSIONS = {CursorKind.CONSTRUCTOR, CursorKind.CONVERSION_FUNCTION}


@dataclass(frozen=True)
class Directive:
    """One HLS pragma: its name and words in lower case, its options, where it stands."""

    pragma: Pragma
    name: str
    words: tuple[str, ...]
    options: dict[str, str]
    #: What options are, by LLVM's name of the instance of a template, where a compiler has to say.
    instances: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, pragma: Pragma) -> Iterator[Directive]:
        """Take a pragma's text apart, once for each variable; ``a = b * c`` counts as ``a=b*c``."""
        text = re.sub(r"\s*([=*/+,-])\s*", r"\1", pragma.text.rstrip("; \t"))
        name, *rest = re.findall(r'\w+="[^"]*"|\S+', text) or [""]
        pairs = [word.partition("=") for word in rest]
        options = {key.lower(): value for key, equals, value in pairs if equals}
        words = tuple(key.lower() for key, equals, _ in pairs if not equals)
        for one in options.get("variable", "").split(","):
            named = {"variable": one} if one else {}
            yield cls(pragma, name.lower(), words, options | named)

    def within(self, instance: str) -> Directive | None:
        """Return the directive as it is in an instance; None where that has none."""
        if not self.instances:
            return self
        if instance not in self.instances:
            return None
        return replace(self, options={**self.options, **self.instances[instance]}, instances={})

    @property
    def is_false(self) -> bool:
        """Whether a DEPENDENCE is called false."""
        return "false" in self.words or self.options.get("dependent", "").lower() == "false"

    @property
    def variable(self) -> str:
        """The variable it names, without what chooses a part of it."""
        found = re.match(r"[&*(\s]*(?:\w+::)*(\w+)", self.options.get("variable", ""))
        return found[1] if found else ""

    @property
    def member(self) -> str:
        """The variable and the members of it that it names: ``t.v``; of ``this->v`` it is ``v``."""
        name = self.options.get("variable", "")
        found = re.match(r"[&*(\s]*(?:this->)?(?:\w+::)*(\w+(?:(?:\.|->)\w+)*)", name)
        return found[1].replace("->", ".") if found else ""


@dataclass(eq=False)
class Scope:
    """A function, loop, branch or block, with what is directly in it."""

    kind: str
    node: Cursor
    body: Cursor
    function: Cursor
    parent: Scope | None = None
    inner: list[Scope] = field(default_factory=list)
    pragmas: list[Directive] = field(default_factory=list)

    @property
    def is_loop(self) -> bool:
        """Whether it repeats."""
        return self.kind in LOOPS.values()

    def pragma(self, name: str) -> Directive | None:
        """Return the first pragma called `name`, None where there is none."""
        return next((item for item in self.pragmas if item.name == name), None)

    def walk(self) -> Iterator[Scope]:
        """Yield this scope and all within it, outer ones first."""
        yield self
        for scope in self.inner:
            yield from scope.walk()

    def above(self) -> Iterator[Scope]:
        """Yield the scopes around it, the nearest first."""
        scope = self.parent
        while scope is not None:
            yield scope
            scope = scope.parent

    def holds(self, file: str, line: int) -> bool:
        """Whether a pragma on a line is in here; those above a loop's body are the loop's."""
        if _holds(self.body, file, line):
            return True  # also where a macro makes all of the loop on one line
        if not self.is_loop or self.kind == "do":
            return False
        return self.node.location.line < line and _holds(self.node, file, line)

    def header(self) -> tuple[Cursor | None, Cursor | None, Cursor | None]:
        """Return begin, condition and step of a ``for``; libclang leaves out what is absent."""
        begin = condition = step = None
        for part in list(self.node.get_children())[:-1]:
            if condition is not None:  # `++i` of an ap_uint is a call
                step = part
            elif part.kind == CursorKind.DECL_STMT or is_step(part):
                begin = part
            else:
                condition = part
        return begin, condition, step


class Program:
    """The functions of a kernel's own files that its top function reaches; all without a top."""

    def __init__(
        self, unit: Cursor, top: Cursor | None, pragmas: Sequence[Pragma],
        others: Sequence[Pragma] = (),
    ) -> None:  # fmt: skip
        self._system = toolchain.header_dirs()
        self.named: dict[str, list[Cursor]] = defaultdict(list)
        self._labels: dict[int, dict[str, Scope]] = {}
        self.globals: set[str] = set()
        self._collect(unit)
        self.functions = [*chain(*self.named.values())] if top is None else self._reached(top)
        self.directives = [*chain(*map(Directive.read, pragmas))]
        self.others = others
        self.scopes = [self._scope_of(function) for function in self.functions]
        self.top = None if top is None else self.scopes[0]
        self.outside = [item for item in self.directives if not self._attach(item)]

    def has(self, cursor: Cursor) -> bool:
        """Whether something stands in the kernel's own files, not in a header of the tools."""
        file = cursor.location.file
        away = conf.lib.clang_Location_isInSystemHeader(cursor.location)
        return not away and (file is None or not file.name.startswith(self._system))

    def _collect(self, cursor: Cursor) -> None:
        for child in cursor.get_children():
            if not self.has(child):
                continue
            if child.kind in _SPACES:
                self._collect(child)
            elif child.kind in _FUNCTIONS and body_of(child) is not None:
                self.named[_name_of(child)].append(child)
            elif child.kind == CursorKind.VAR_DECL:
                self.globals.add(child.spelling)

    def _reached(self, top: Cursor) -> list[Cursor]:
        found = [top, *self.named.get("operator=", ())]  # the second: streams call them
        waiting, left = [*found], dict(self.named)  # 600 operators may have one name: look once
        while waiting:
            for node in walk(waiting.pop()):
                name = node.spelling or name_in_template(node)
                more = [one for one in left.pop(name, ()) if one not in found]
                found += more
                waiting += more
        return found

    def _scope_of(self, function: Cursor) -> Scope:
        body = body_of(function)
        assert body is not None, "only functions with a body are collected"
        scope = Scope("function", function, body, function)
        _fill(scope, body.get_children())
        return scope

    def _attach(self, item: Directive) -> bool:
        """Put a pragma into its scope; True as well where its function is not the kernel's."""
        file, line = item.pragma.file, item.pragma.line
        for scope in self.scopes:
            around = [part for part in scope.walk() if part.holds(file, line)]
            if around:
                around[-1].pragmas.append(item)
                return True
        return any(_holds(other, file, line) for other in chain(*self.named.values()))

    def add(self, where: str, item: Directive) -> bool:
        """Put a directive for ``function`` or ``function/label`` into its scope, if any."""
        name, _, label = where.partition("/")
        for function in self.scopes:
            if function.node.spelling == name.rpartition("::")[2]:
                scope = self._labelled(function).get(label.rpartition("/")[2])
                if scope is not None:
                    scope.pragmas.append(item)
                    self.directives.append(item)
                    return True
        return False

    def _labelled(self, function: Scope) -> dict[str, Scope]:
        """Return the loops and blocks of a function by their labels; by ``""`` the function."""
        if function.node.hash not in self._labels:
            found = {
                plain(node).hash: str(node.spelling)
                for node in walk(function.node)
                if node.kind == CursorKind.LABEL_STMT
            }
            named = {
                found[part.node.hash]: part
                for part in reversed([*function.walk()])
                if (part.is_loop or part.kind == "block") and part.node.hash in found
            }
            self._labels[function.node.hash] = {**named, "": function}
        return self._labels[function.node.hash]

    def callees(self, call: Cursor) -> list[Cursor]:
        """Return the definitions that a call may mean."""
        target = call.referenced
        known = target is not None and target.kind in _FUNCTIONS
        found = map(definition_of, [target] if known else candidates(call))
        return [self._pattern(function) for function in found if function is not None]

    def _pattern(self, function: Cursor) -> Cursor:
        """Return the template that a function is an instance of, or the function."""
        same = self.named.get(_name_of(function), ())
        return next((one for one in same if one.location == function.location), function)


def _name_of(function: Cursor) -> str:
    """Return the name by which it is called: a template's constructor is ``buffer<SIZE>``."""
    name = str(function.spelling)
    return name.partition("<")[0] if function.kind == CursorKind.CONSTRUCTOR else name


def _holds(node: Cursor, file: str, line: int) -> bool:
    begin, end = node.extent.start, node.extent.end
    if begin.file is None or not begin.line <= line <= end.line:
        return False
    return begin.file.name == file or Path(begin.file.name).resolve() == Path(file).resolve()


def _fill(scope: Scope, nodes: Iterable[Cursor]) -> None:
    """Add the scopes in `nodes` to `scope`."""
    for child in nodes:
        if child.kind == CursorKind.INIT_LIST_EXPR:
            continue
        parts = list(child.get_children())
        kind = LOOPS.get(child.kind) or _OTHERS.get(child.kind)
        if kind is None:
            _fill(scope, parts)
            continue
        body = parts[0] if kind == "do" else child if kind in ("if", "block") else parts[-1]
        inner = Scope(kind, child, body, scope.function, scope)
        scope.inner.append(inner)
        for part in parts:
            # The braces of a loop or a branch are no scope of their own.
            braces = part.kind == CursorKind.COMPOUND_STMT and kind != "block"
            _fill(inner, part.get_children() if braces else [part])


def walk(node: Cursor) -> Iterator[Cursor]:
    """Yield a node and all below it, but for the values of arrays, which may be 100,000."""
    yield node
    if node.kind != CursorKind.INIT_LIST_EXPR:
        for child in node.get_children():
            yield from walk(child)


def names(node: Cursor) -> set[int]:
    """Return the hashes of the variables that an expression mentions."""
    return {
        item.referenced.hash
        for item in node.walk_preorder()
        if item.kind == CursorKind.DECL_REF_EXPR and item.referenced is not None
    }


def calls(node: Cursor) -> list[Cursor]:
    """Return the calls in an expression, without constructors and conversions."""
    return [
        item
        for item in walk(node)
        if item.kind == CursorKind.CALL_EXPR
        and not (item.referenced is not None and item.referenced.kind in _CONVERSIONS)
    ]


def is_step(node: Cursor) -> bool:
    """Whether an expression changes a variable: ``++i``, ``i += 2``, ``i = i + 1, ++j``."""
    if node.kind == CursorKind.COMPOUND_ASSIGNMENT_OPERATOR:
        return True
    if node.kind == CursorKind.UNARY_OPERATOR:
        return operator_kind(node, unary=True) in range(1, 5)
    is_binary = node.kind == CursorKind.BINARY_OPERATOR
    return is_binary and operator_kind(node, unary=False) in (ASSIGN, COMMA)


def is_constant(nodes: Iterable[Cursor | None], free: frozenset[int] = frozenset()) -> bool:
    """Whether expressions are known at compile time; `free` are variables that do not count."""
    for node in nodes:
        for item in [] if node is None else _evaluated(node):
            if item.kind == CursorKind.MEMBER_REF_EXPR:
                return False
            if item.kind != CursorKind.DECL_REF_EXPR or item.referenced is None:
                continue  # S::TILE, in a template
            target = item.referenced
            if target.kind in _CONSTANT or target.hash in free:
                continue
            if not (target.kind == CursorKind.VAR_DECL and target.type.is_const_qualified()):
                return False
            value = [child for child in target.get_children() if child.kind.is_expression()]
            if not value or not is_constant(value):
                return False
    return True


def _evaluated(node: Cursor) -> Iterator[Cursor]:
    """Yield an expression and all in it but what `sizeof` looks at and sizes of std::array."""
    if _is_array_size(node):
        return
    yield node
    if node.kind != CursorKind.CXX_UNARY_EXPR:
        for child in node.get_children():
            yield from _evaluated(child)


def _is_array_size(node: Cursor) -> bool:
    if node.kind != CursorKind.CALL_EXPR or node.spelling not in ("size", "max_size"):
        return False
    owner = node.referenced.semantic_parent if node.referenced is not None else None
    return owner is not None and owner.spelling == "array" and owner.location.file is not None


def problem_at(node: Cursor, rule: str, text: str) -> Problem:
    """Return what is wrong at a place in the source."""
    return node.location.file.name, node.location.line, rule, text


def plain(node: Cursor) -> Cursor:
    """Return what is in labels, parentheses and conversions."""
    while node.kind in _WRAPPERS:
        children = list(node.get_children())
        if not children:
            break
        node = children[-1]
    return node


def root_of(node: Cursor) -> Cursor | None:
    """Return the variable that ``a[i].b`` or ``a + i`` is a part of."""
    while (node := plain(node)).kind != CursorKind.DECL_REF_EXPR:
        children = list(node.get_children())
        if not children or (node.kind == CursorKind.CALL_EXPR and len(children) > 1):
            return None
        node = children[0]
    return node.referenced
