"""Pragmas that Vitis HLS ignores or refuses: misspelt, misplaced, or with options it has not.

The words are those of UG1399, "HLS Pragmas", with the older spellings that the tool still takes.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator

from pynq_torch.errors import needs

from .directives import Pragma, port_name
from .lint_bindings import unbound
from .lint_effects import (
    copied_streams,
    effects,
    kind_of,
    ports,
    problem,
    repeated,
    unknown_core,
)  # fmt: skip
from .lint_tree import LOOPS, Directive, Problem, Program, Scope, calls, is_constant, plain
from .spelling import nearest

with needs("clang", "Reading HLS C++"):
    from clang.cindex import Cursor, CursorKind

__all__ = [
    "has_wrong_word", "home_of", "is_behind_merge", "is_placed", "is_settled", "pragma_problems",
]  # fmt: skip

_TABLE = """
    aggregate variable compact
    alias ports distance
    allocation instances limit type function operation core
    array_map variable instance offset mode horizontal vertical
    array_partition variable type factor dim off cyclic block complete
    array_reshape variable type factor dim object off cyclic block complete
    bind_op variable op impl latency
    bind_storage variable type impl latency
    cache port lines depth ways users
    data_pack variable instance struct_level field_level byte_pad
    dataflow disable_start_propagation
    dependence variable class type direction distance dependent true false inter intra raw war waw
        pointer array
    disaggregate variable
    expression_balance off
    function_instantiate variable
    inline recursive off region
    interface
    latency min max
    loop_flatten off
    loop_merge force
    loop_tripcount min max avg
    occurrence cycle off
    performance target_ti target_tl assume_ti assume_tl unit
    pipeline ii off rewind style enable_flush
    protocol mode floating fixed
    reset variable off
    resource variable core latency metadata
    stable variable
    stream variable type depth off dim
    top name
    unroll factor skip_exit_check off region
"""
_PRAGMAS = {
    words[0]: frozenset(words[1:])
    for row in re.sub(r"\n {8}", " ", _TABLE).strip().splitlines()
    if (words := row.split())
}
#: How alike a first word and a pragma's name are, where HLS is missing or joined to it.
_ALIKE = 0.85
#: Where a pragma may stand, for those that cannot stand in any scope.
_PLACES = {
    "pipeline": ("function", "loop"),
    "dataflow": ("function", "loop"),
    "inline": ("function",),
    **dict.fromkeys(("unroll", "loop_flatten", "loop_tripcount"), ("loop",)),
}
#: Options whose value is a whole number, and the smallest it may be; a name is not looked up.
_NUMBERS = {
    "ii": 1, "factor": 1, "depth": 1, "dim": 0, "distance": 1, "limit": 1,
    "min": 0, "max": 0, "avg": 0, "lines": 1, "ways": 1, "users": 1,
}  # fmt: skip
#: Options that have one of a few words: PRAGMA OPTION WORD ...
_WORDS = """
    bind_op impl auto all dsp fabric fulldsp maxdsp meddsp none primitivedsp
    bind_storage impl auto bram bram_ecc lutram memory srl uram uram_ecc
    bind_storage type fifo ram_1p ram_1wnr ram_2p ram_s2p ram_t2p rom_1p rom_2p rom_np
    array_partition type block complete cyclic
    array_reshape type block complete cyclic
    dependence class array pointer
    dependence dependent false true
    dependence direction raw war waw
    dependence type inter intra
    pipeline style flp frp stp
    protocol mode fixed floating
    stream type fifo pipo shared unsync
"""
_FLOATS = "add sub mul div exp log sqrt rsqrt recip acc macc madd"
_CHOICES = {tuple(row.split()[:2]): row.split()[2:] for row in _WORDS.strip().splitlines()}
_CHOICES["interface", "storage_type"] = _CHOICES["bind_storage", "type"]
_CHOICES["bind_op", "op"] = ["add", "sub", "mul"]
_CHOICES["bind_op", "op"] += [kind + name for kind in "fdh" for name in _FLOATS.split()]
#: What ALLOCATION limits: BIND_OP's operators, and those that only LLVM names.
_MORE = """
    div rem sdiv udiv srem urem shl lshr ashr and or xor icmp fcmp dcmp select load store
"""
_OPERATIONS = (*_CHOICES["bind_op", "op"], *_MORE.split())
#: Options that are no flags: each has a value.
_VALUED = frozenset(_NUMBERS) | {
    "core", "cycle", "impl", "instances", "op", "port", "ports", "style", "target_ti", "target_tl",
    "variable",
}  # fmt: skip
#: An option without which a directive says nothing (UG1399), with one of its values.
_NEEDED = {"bind_op": "op=mul", "bind_storage": "type=ram_2p"}
_CLASSES = (
    CursorKind.CLASS_DECL, CursorKind.STRUCT_DECL, CursorKind.CLASS_TEMPLATE,
    CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION,
)  # fmt: skip
_HOLDING = (CursorKind.COMPOUND_STMT, CursorKind.IF_STMT)
_VARIABLE = frozenset(name for name, options in _PRAGMAS.items() if "variable" in options)


def words_of(program: Program, mentions: Callable[[str], bool]) -> Iterator[Problem]:
    """Yield what is wrong with the words and the places of pragmas."""
    for item in program.outside:
        yield problem(item, "is outside every function and is ignored; move it into one")
    yield from copied_streams(program.top) if program.top is not None else ()
    for function in program.scopes:
        known = _known(function) | program.globals
        for scope in function.walk():
            for item in scope.pragmas:
                yield from _spelling(item)
                yield from _unknown_numbers(item, mentions)
                yield from _place(item, scope)
                yield from _nothing(item, scope, program)
                yield from effects(item, function)
                yield from unbound(item, function)
                yield from ports(item, function, is_top=program.top in (None, function))
                for name in _named(item):
                    if name not in known:
                        yield problem(
                            item,
                            f"names {name!r}, which {function.node.spelling} has not"
                            f"{nearest(name, known)}",
                        )


def pragma_problems(
    program: Program, mentions: Callable[[str], bool], *, whole: bool = True
) -> list[Problem]:
    """Return what is wrong with the pragmas of a program, in order of file and line.

    Parameters
    ----------
    program : Program
        Its pragmas and functions.
    mentions : callable
        Whether its code uses a name.
    whole : bool
        Whether all of it was understood: else only the words of pragmas are looked at.
    """
    files = {function.location.file.name for function in program.functions}
    found = {wrong for item in program.others if item.file in files for wrong in misspelt(item)}
    found |= set(words_of(program, mentions) if whole else ())
    if not whole:
        found |= {wrong for item in program.directives for wrong in _spelling(item)}
    return sorted(found)


def _known(function: Scope) -> set[str]:
    declared = (CursorKind.VAR_DECL, CursorKind.PARM_DECL, CursorKind.FIELD_DECL)
    found = {node.spelling for node in function.node.walk_preorder() if node.kind in declared}
    owner = function.node.semantic_parent
    if owner is not None and owner.kind in _CLASSES:  # constructors and methods are in one
        found |= {"this", *(node.spelling for node in owner.get_children())}
    return found


def _named(item: Directive) -> list[str]:
    """Return the variables or arguments that a directive speaks of."""
    if item.name in ("alias", "cache"):
        given = item.options.get("ports") or item.options.get("port") or ""
        return [port_name(one) for one in given.split(",") if port_name(one)]
    return [item.variable] if item.variable and item.name in _VARIABLE else []


def _spelling(item: Directive) -> Iterator[Problem]:
    options = _PRAGMAS.get(item.name)
    if options is None:
        hint = nearest(item.name, {name.upper() for name in _PRAGMAS})
        yield problem(item, f"is no HLS pragma and is ignored{hint}")
    elif item.name not in ("interface", "resource"):  # `hls interface` looks at these
        for word in (*item.options, *item.words):
            if word not in options:
                yield problem(item, f"has no option {word!r}{nearest(word, options)}")
    for word in item.words:
        if options is not None and word in options & _VALUED:
            yield problem(item, f"has {word.upper()} without a value; write {word}=VALUE")
    if item.name == "pipeline" and "off" in item.words and "ii" in item.options:
        yield problem(item, f"off has no use for II={item.options['ii']}; write one of the two")
    for option, value in item.options.items():
        least, choices = _NUMBERS.get(option, -1), _CHOICES.get((item.name, option), [])
        if choices and value.lower() not in choices:
            expected = f"one of {', '.join(choices)}{nearest(value, choices)}"
            yield problem(item, f"has {option.upper()}={value}; expected {expected}")
        elif item.name in ("interface", "alias"):  # ports may be 0 apart
            continue
        elif least >= 0 and not _may_be_number(value, least):
            expected = f"a whole number of at least {least}"
            yield problem(item, f"has {option.upper()}={value or 'nothing'}; expected {expected}")
    yield from unknown_core(item)
    if item.name != "interface":
        yield from repeated(item)
    needed, _, example = _NEEDED.get(item.name, "").partition("=")
    if needed and needed not in item.options:
        yield problem(item, f"has no {needed}, so it binds nothing; write {needed}={example}")
    if item.name == "allocation" and "limit" not in item.options:
        yield problem(item, "has no limit, so it limits nothing; write limit=N")
    kind = kind_of(item)
    if kind in ("block", "cyclic") and "factor" not in item.options and "variable" in item.options:
        yield problem(item, f"of type {kind} has no factor; write factor=N, or type=complete")
    low, high = (item.options.get(option, "") for option in ("min", "max"))
    if low.isdigit() and high.isdigit() and int(low) > int(high):
        yield problem(item, f"has MIN={low} above MAX={high}; exchange them")
    if item.name in _VARIABLE - {"dependence", "reset"} and "variable" not in item.options:
        yield problem(item, "names no variable; write variable=NAME")


def has_wrong_word(item: Directive) -> bool:
    """Whether an option has a word that it cannot have: the tool ignores the whole line."""
    return any(
        value.lower() not in _CHOICES.get((item.name, option), [value.lower()])
        for option, value in item.options.items()
    )


def _unknown_numbers(item: Directive, mentions: Callable[[str], bool]) -> Iterator[Problem]:
    """Yield a number that is a name, where nothing has that name."""
    for option, value in item.options.items():
        is_name = _NUMBERS.get(option, -1) >= 0 and re.fullmatch(r"[A-Za-z_]\w*", value)
        if is_name and item.name not in ("interface", "alias") and not mentions(value):
            text = (
                f"has {option.upper()}={value}, and nothing is called so; expected a whole number"
            )
            yield problem(item, text)


def _may_be_number(text: str, least: int) -> bool:
    """Tell whether a text is a whole number of at least `least`, or may be one: a name, a sum."""
    try:
        return int(text.rstrip("uUlL"), 0) >= least
    except ValueError:
        return re.fullmatch(r"[-+]?[\d.][\w.']*|", text) is None


def is_settled(scope: Scope) -> bool:
    """Whether a scope is a branch whose condition is known at compile time."""
    return scope.kind == "if" and is_constant([next(scope.node.get_children())])


def home_of(item: Directive, scope: Scope) -> Scope:
    """Return the scope for which Vivado HLS takes a pragma: what is around a branch.

    "Unrolling all loops for pipelining in function", says its log of 2019.1 where the data choose
    between two branches of a function with a PIPELINE each. Other pragmas are known to reach there
    where the branch is always taken.
    """
    while scope.kind == "if" and scope.parent is not None:
        if item.name != "pipeline" and not is_settled(scope):
            break
        scope = scope.parent
    return scope


def is_placed(item: Directive, scope: Scope) -> bool:
    """Whether a pragma may stand in a scope; INLINE region speaks of the calls in any (UG902)."""
    if item.name == "inline" and "region" in item.words:
        return True
    return _place_of(scope) in _PLACES.get(item.name, (_place_of(scope),))


def is_behind_merge(item: Directive, scope: Scope) -> bool:
    """Whether Vitis HLS takes PIPELINE for one of the LOOP_MERGE before it, not of the loop.

    Its logs of 2022.2 say "Only for/while/do support the pipeline pragma" there.
    """
    at = item.pragma
    if item.name != "pipeline" or not scope.is_loop or at.file != scope.node.location.file.name:
        return False  # a file of directives has no order
    merges = (one.pragma for one in scope.pragmas if one.name == "loop_merge")
    return any(one.file == at.file and one.line < at.line for one in merges)


def _place(item: Directive, scope: Scope) -> Iterator[Problem]:
    if is_behind_merge(item, scope):
        yield problem(item, "behind LOOP_MERGE has no effect in Vitis HLS; write it before that")
    if not is_placed(item, scope):
        kind, places = _place_of(scope), _PLACES[item.name]
        where = {"if": "a branch", "block": "a block", "function": "a function"}.get(kind, kind)
        right = " or ".join(f"the body of a {place}" for place in places)
        # hls4ml's pull request 609 says so, too.
        only = " in Vitis HLS" if is_placed(item, home_of(item, scope)) else ""
        yield problem(item, f"in {where} has no effect{only}; it belongs at the head of {right}")


def _place_of(scope: Scope) -> str:
    return "loop" if scope.is_loop else scope.kind


def _nothing(item: Directive, scope: Scope, program: Program) -> Iterator[Problem]:
    """Yield an ALLOCATION of what is not there; a LOOP_MERGE or a DATAFLOW of nothing."""
    if item.name == "dataflow" and scope.is_loop and not _has_process(scope.body):
        yield problem(
            item,
            "overlaps nothing: no statement of this loop is a call or a loop, and with it the loop "
            "is no pipeline; write PIPELINE",
        )
    if item.name == "loop_merge":
        loops = sum(inner.is_loop for inner in scope.inner)
        if loops < 2:
            found = "one loop stands" if loops else "no loop stands"
            yield problem(item, f"has no effect: {found} directly in there")
    elif item.name == "allocation" and (name := item.options.get("instances")):
        kinds = {item.options.get("type", "").lower(), *item.words}
        for kind, known in (
            ("operation", set(_OPERATIONS)),
            ("function", {function.spelling for function in program.functions}),
        ):
            if kind in kinds and not {name, name.lower()} & known:
                yield problem(item, f"names {kind} {name!r}: there is none{nearest(name, known)}")


def _has_process(body: Cursor) -> bool:
    """Whether a statement is a call or a loop, or holds one in a branch or in braces."""
    for statement in body.get_children() if body.kind in _HOLDING else (body,):
        node = plain(statement)
        if node.kind in LOOPS or (node.kind in _HOLDING and _has_process(node)):
            return True
        if node.kind == CursorKind.CALL_EXPR and node.spelling != "operator=":
            return True
        if any(not call.spelling.startswith("operator") for call in calls(node)):
            return True  # `int t = f(x);`
    return False


def misspelt(pragma: Pragma) -> Iterator[Problem]:
    """Yield a line like ``#pragma HSL``, which no compiler looks at."""
    found = re.match(r"(\w+)\b\s*($|\w+|\W)", pragma.text)
    if found and (hint := _meant(found[1], found[2])):
        yield pragma.file, pragma.line, "pragma", f"#pragma {found[1]}{hint}"


def _meant(word: str, following: str) -> str:
    """Return what is wrong with a pragma of this first word and the next one, ``""`` if nothing."""
    lower, is_pragma = word.lower(), following.lower() in _PRAGMAS
    glued = lower.removeprefix("hls").lstrip("_")
    if word == "AP":
        text = ", of Vivado HLS before 2013, is not read; write #pragma HLS"
        return text if is_pragma else ""
    alone = difflib.get_close_matches(glued, _PRAGMAS, n=1, cutoff=_ALIKE)
    if alone and lower != "nounroll":  # of clang
        return f" is ignored; did you mean #pragma HLS {alone[0].upper()}?"
    ratio = difflib.SequenceMatcher(None, lower, "hls").ratio()
    has_more = following[:1].isalnum() or following == "="
    if has_more and lower != "hls" and (ratio > 0.6 or lower.startswith("hls")):
        return " is ignored; did you mean #pragma HLS?"
    return ""
