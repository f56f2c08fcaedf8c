"""Pragmas that are spelt right and do nothing, or not what they say.

The rules are those of UG1399, "HLS Pragmas", and for the cores of RESOURCE those of UG902.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator

from pynq_torch.errors import needs

from . import toolchain
from .cursors import parameters_of
from .directives import port_name
from .lint_tree import Directive, Problem, Scope, is_constant, walk
from .spelling import nearest

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, CursorKind, StorageClass, Type, TypeKind

__all__ = [
    "copied_streams", "effects", "is_core", "kind_of", "ports", "problem", "repeated",
    "unknown_core",
]  # fmt: skip

#: Types of numbers, the first and the last of them; and the tools' own.
_ARITHMETIC = TypeKind.BOOL.value, TypeKind.LONGDOUBLE.value
_NUMBER = re.compile(r"(?:const )?ap_u?(?:int|fixed)<[^\[]*$")
#: Cores of RESOURCE (UG902, "set_directive_resource"): memories, each with what it is made of.
_MEMORIES = """
    FIFO BRAM LUTRAM SRL
    RAM_1P BRAM LUTRAM URAM 1S
    RAM_2P BRAM LUTRAM URAM 1S
    RAM_S2P BRAM LUTRAM URAM
    RAM_T2P BRAM URAM
    ROM_1P BRAM LUTRAM 1S
    ROM_2P BRAM LUTRAM
    ROM_nP BRAM LUTRAM
"""
#: Operators, each with the letters of its types of float and its variants.
_OPERATORS = """
    AddSub DFH fulldsp nodsp
    Mul DFH fulldsp maxdsp meddsp nodsp
    Div DFH
    Exp DF fulldsp meddsp nodsp
    Log DF fulldsp meddsp nodsp
    Sqrt DFH
    RSqrt DF fulldsp nodsp
    Recip DF fulldsp nodsp
"""
_WHOLE = "AddSub AddSubnS AddSub_DSP DivnS DSP48 Mul MulnS Mul_LUT XPM_MEMORY"
#: A product of some stages, and the adapters of Vivado HLS until 2014, which are interfaces.
_FREE = re.compile(r"(?i)(?:mul|addsub|div)\d+s$|axi|\w*_slave$|nplb|plb46|fsl$|$")
#: Modes that arrays have not (UG902, "Interface Synthesis").
_OF_SCALARS = ("ap_none", "ap_stable", "ap_vld", "ap_ovld", "ap_ack")
#: Modes with addresses, which streams have not; and all that move data.
_ADDRESSED = ("ap_memory", "bram", "ap_bus")
_OF_MANY = (*_ADDRESSED, "ap_fifo", "ap_ovld", "m_axi")
_MOVING = (*_ADDRESSED, "ap_fifo", "axis", "m_axi")
_SIZE = re.compile(r"\[\w*\]")
_POINTER = re.compile(r"\*\s*(?:const|volatile|__restrict|\s)*$")
_REFERENCES = (TypeKind.POINTER, TypeKind.LVALUEREFERENCE, TypeKind.INCOMPLETEARRAY)
_ZERO = re.compile(r"0(?:[xX]0+|0*)[uUlL]*")
_TEMPLATE = re.compile(r"[A-Za-z]$|\$")


def _cores() -> dict[str, str]:
    """Return the cores of RESOURCE by their names in lower case."""
    found = _WHOLE.split()
    for name, *parts in map(str.split, _MEMORIES.strip().splitlines()):
        found += [name, *(f"{name}_{part}" for part in parts)]
    for name, letters, *parts in map(str.split, _OPERATORS.strip().splitlines()):
        found += [f"{letter}{name}{end}" for letter in letters
                  for end in ("", *(f"_{part}" for part in parts))]  # fmt: skip
    return {core.lower(): core for core in found}


_CORES = _cores()


def problem(item: Directive, text: str) -> Problem:
    """Return what is wrong with a directive, at its line."""
    return item.pragma.file, item.pragma.line, "pragma", f"{item.name.upper()} {text}"


def kind_of(item: Directive) -> str:
    """Return how an array is partitioned, ``""`` for other pragmas."""
    if item.name not in ("array_partition", "array_reshape"):
        return ""
    given = item.options.get("type", "").lower()
    return given or next((word for word in item.words if word in ("block", "cyclic")), "complete")


def is_core(name: str) -> bool:
    """Whether a core of RESOURCE may be there; a template's parameter may be any."""
    return name.lower() in _CORES or bool(_FREE.match(name) or _TEMPLATE.match(name))


def unknown_core(item: Directive) -> Iterator[Problem]:
    """Yield a core of RESOURCE that no tool has."""
    core = item.options.get("core", "") if item.name == "resource" else ""
    if is_core(core):
        return
    close = difflib.get_close_matches(core.lower(), _CORES, n=1, cutoff=0.5)
    hint = f"; did you mean {_CORES[close[0]]}?" if close else ""
    yield problem(item, f"has CORE={core}, which is no core and is ignored{hint}")


def repeated(item: Directive) -> Iterator[Problem]:
    """Yield an option that is given twice: one of the values is lost."""
    text = re.sub(r'"[^"]*"', "", item.pragma.text)
    if text.lstrip().startswith("set_directive_"):
        keys = re.findall(r"\s-([A-Za-z]\w*)", text)
    else:
        keys = re.findall(r"(?<=\s)(\w+)\s*=", text.replace("syn.directive.", "", 1))
    for key, count in Counter(map(str.lower, keys)).items():
        if count > 1 and key != "port":
            often = "twice" if count == 2 else f"{count} times"
            value = item.options.get(key, "")
            yield problem(item, f"has {key.upper()} {often}, of which {value} counts here")


def effects(item: Directive, function: Scope) -> Iterator[Problem]:
    """Yield what keeps a directive of a variable from having the effect that it names."""
    cuts = item.name in ("array_partition", "array_reshape", "stream")
    binds = item.name == "bind_storage" and item.options.get("type", "").lower() == "fifo"
    if not (cuts or binds or item.name == "reset" or "." in item.member):
        return
    declared = [
        node
        for node in walk(function.node)
        if node.kind in (CursorKind.VAR_DECL, CursorKind.PARM_DECL)
        and node.spelling == item.variable
    ]
    if item.name == "reset":
        yield from _reset(item, declared)
    missing = [*_missing(item, declared)]
    yield from missing
    if missing or not (cuts or binds):
        return
    kinds = [_of_member(node.type, item.member.split(".")[1:]) for node in declared]
    if kinds and all(not around and _is_number(kind) for around, kind in kinds):
        yield problem(item, f"has no effect: {item.member} is a number, not an array")
    elif item.name in ("stream", "bind_storage"):
        yield from _stream(item, function, declared)
    else:
        yield from _dimension(item, kinds)
        yield from _factor(item, kinds)


def ports(item: Directive, function: Scope, *, is_top: bool) -> Iterator[Problem]:
    """Yield an INTERFACE of what is no port, or that needs a scalar and has an array."""
    if item.name != "interface":
        return
    words = {*item.words, *item.options}
    name = port_name(item.options.get("port", ""))
    mode = item.options.get("mode") or next(iter(item.words), "")
    if not is_top and "register" not in words:
        yield problem(
            item,
            f"in {function.node.spelling} has no effect: only the top function has ports; its "
            "arguments are the caller's",
        )
    elif is_top and name == "return" and mode.lower() in (*_OF_SCALARS, *_MOVING):
        yield problem(
            item,
            f"{mode} of port=return has no effect: it is how the kernel is started; write "
            "ap_ctrl_hs, ap_ctrl_none, ap_ctrl_chain or s_axilite",
        )
    elif is_top:
        for node in parameters_of(function.node):
            reason = _refused(mode.lower(), node, function) if node.spelling == name else ""
            if reason:
                yield problem(item, f"{mode} {reason}")


def copied_streams(function: Scope) -> Iterator[Problem]:
    """Yield the streams that a top function takes by value: a port has no copy (UG1399)."""
    for argument in parameters_of(function.node):
        kind, name = argument.type.spelling, argument.spelling
        if re.match(r"(?:const )?hls::stream<[^&*\[]*$", argument.type.get_canonical().spelling):
            at, text = argument.location, f"argument {name!r} is a stream that is passed by value"
            said = f"{text}, which no tool takes; write {kind} &{name}"
            yield at.file.name, at.line, "pragma", said


def _refused(mode: str, argument: Cursor, function: Scope) -> str:
    """Return why an argument cannot have this mode, ``""`` if it may (UG902, UG1399)."""
    name, kind = argument.spelling, argument.type
    sizes, spelling = _SIZE.findall(kind.spelling), kind.get_canonical().spelling
    is_pointer = kind.get_canonical().kind in _REFERENCES
    is_cut = any(kind_of(one) and one.variable == name for one in function.pragmas)
    if re.search(r"\bhls::stream<[^()]*$", spelling):
        wrong = mode in (*_OF_SCALARS, *_ADDRESSED, "m_axi")
        return f"is no mode of streams, and {name} is one; write axis or ap_fifo" if wrong else ""
    if sizes not in ([], ["[1]"]):
        wrong = mode in _OF_SCALARS and not is_cut
        instead = "partition it completely, or write ap_memory, ap_fifo, axis or m_axi"
        return f"needs a scalar, and {name} is an array; {instead}" if wrong else ""
    if not is_pointer and _is_number(kind) and mode in _OF_MANY:
        return f"needs an array or a pointer, and {name} is passed by value as {kind.spelling}"
    if not _POINTER.search(kind.spelling):  # the name of a type may be that of an array
        return ""
    if mode in ("ap_memory", "bram") and not sizes:
        return f"needs an array with a size, and {name} is {kind.spelling}; write {name}[SIZE]"
    if mode in _OF_SCALARS and _is_indexed(name, function):
        return f"carries one value, and {name} is indexed; write m_axi, or an array with a size"
    return ""


def _is_indexed(name: str, function: Scope) -> bool:
    """Whether a function reads or writes another element of a pointer than its first."""
    for node in walk(function.node):
        if node.kind == CursorKind.ARRAY_SUBSCRIPT_EXPR:
            base, index = list(node.get_children())[:2]
            named = index.kind == CursorKind.UNEXPOSED_EXPR and is_constant([index])
            if _spelt(base) == name and not named and not _ZERO.fullmatch(_spelt(index)):
                return True
    return False


def _spelt(node: Cursor) -> str:
    return "".join(token.spelling for token in node.get_tokens())


def _missing(item: Directive, declared: list[Cursor]) -> Iterator[Problem]:
    """Yield a member that a struct has not, and a cut of a struct without an array."""
    if len(declared) != 1:
        return
    kind, name = _element(declared[0].type), item.variable
    for member in item.member.split(".")[1:]:
        fields = {node.spelling: node for node in _fields(kind)}
        if not fields:
            return
        if member not in fields:
            hint = nearest(member, fields) or f"; its members are {', '.join(fields)}"
            yield problem(item, f"names '{name}.{member}', and {name} has no such member{hint}")
            return
        name, kind = f"{name}.{member}", _element(fields[member].type)
    if item.name in ("array_partition", "array_reshape") and name == item.variable:
        kind = declared[0].type.get_canonical()
        kind = kind.get_pointee() if kind.spelling.endswith("&") else kind
        fields = {node.spelling: node for node in _fields(kind)}
        if fields and not any("[" in one.type.get_canonical().spelling for one in fields.values()):
            yield problem(item, f"has no effect: {name} is a struct, and there is no array in it")


def _fields(kind: Type) -> list[Cursor]:
    """Return the members of a struct of the kernel's own; none where others may be inherited."""
    made = kind.get_canonical().get_declaration()
    if made.location.file is None or toolchain.in_library(made.location.file.name):
        return []
    if any(child.kind == CursorKind.CXX_BASE_SPECIFIER for child in made.get_children()):
        return []
    fields = list(kind.get_canonical().get_fields())
    has_names = all(one.spelling.isidentifier() for one in fields)  # but for a union in it
    return fields if has_names else []


def _of_member(kind: Type, members: list[str]) -> tuple[str, Type]:
    """Return the sizes of the arrays that a member of a member is in, and its type."""
    around = ""
    for member in members:
        around += "".join(_SIZE.findall(kind.get_canonical().spelling))
        fields = {node.spelling: node.type for node in _fields(_element(kind))}
        kind = fields.get(member, kind)
    return around, kind


def _element(kind: Type) -> Type:
    """Return the type of what an array has, or a pointer or a reference is to."""
    kind = kind.get_canonical()
    while kind.spelling.endswith(("*", "&", "]")):
        is_array = kind.spelling.endswith("]")
        kind = kind.get_array_element_type() if is_array else kind.get_pointee()
        kind = kind.get_canonical()
    return kind


def _is_number(kind: Type) -> bool:
    kind = kind.get_canonical()
    is_plain = _ARITHMETIC[0] <= kind.kind.value <= _ARITHMETIC[1]
    return is_plain or _NUMBER.match(kind.spelling) is not None


def _stream(item: Directive, function: Scope, declared: list[Cursor]) -> Iterator[Problem]:
    """Yield a STREAM of an array that no two processes share."""
    flows = any(scope.pragma("dataflow") is not None for scope in function.walk())
    local = [node for node in declared if node.kind == CursorKind.VAR_DECL]
    plain = [node for node in local if re.fullmatch(r"[^<]*\[\d+\]", node.type.spelling)]
    if plain and len(plain) == len(declared) and not flows and not function.pragma("inline"):
        yield problem(
            item,
            f"of {item.variable} has no effect: {function.node.spelling} has no DATAFLOW, whose "
            "processes a FIFO would connect",
        )


def _reset(item: Directive, declared: list[Cursor]) -> Iterator[Problem]:
    """Yield a RESET of what keeps no value from run to run (UG1399, "pragma HLS reset")."""
    plain = [one for one in declared if one.storage_class != StorageClass.STATIC]
    if declared and len(plain) == len(declared):
        text = "is not static, so that it has no value to return to"
        yield problem(item, f"has no effect: {item.variable} {text}")


def _dimension(item: Directive, declared: list[tuple[str, Type]]) -> Iterator[Problem]:
    """Yield a partition of a dimension that the array has not."""
    asked = item.options.get("dim", "")
    if not asked.isdigit():
        return
    # An array of streams or of structures is not looked into.
    kinds = [around + kind.get_canonical().spelling for around, kind in declared]
    sizes = [len(_SIZE.findall(kind)) for kind in kinds]
    if len(sizes) == 1 and 0 < sizes[0] < int(asked) and "<" not in kinds[0]:
        plural = "dimension" if sizes[0] == 1 else "dimensions"
        yield problem(item, f"has DIM={asked}, and {item.member} has {sizes[0]} {plural}")


def _factor(item: Directive, declared: list[tuple[str, Type]]) -> Iterator[Problem]:
    """Yield a factor that is of no use: with type complete, or above the number of elements."""
    factor, kind = item.options.get("factor", ""), kind_of(item)
    if not factor:
        return
    misspelt = {*item.words} - {"complete", "object", "off"}  # a warning is for it
    if kind == "complete" and not misspelt:
        yield problem(
            item,
            f"of type complete has no use for FACTOR={factor}: each element is apart; write "
            "type=cyclic or type=block for so many parts",
        )
    sizes = [re.findall(r"\[(\d+)\]", around + one.spelling) for around, one in declared]
    asked = item.options.get("dim", "1")
    if kind == "complete" or len(sizes) != 1 or not (factor.isdigit() and asked.isdigit()):
        return
    chosen = sizes[0] if asked == "0" else sizes[0][int(asked) - 1 : int(asked)]
    if chosen and int(factor) > max(map(int, chosen)):
        yield problem(
            item,
            f"has FACTOR={factor}, and {item.member} has {max(map(int, chosen))} elements there, "
            "so it is cut completely; write type=complete, or a smaller factor",
        )
