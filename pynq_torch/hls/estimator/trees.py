"""Values that LLVM's scalar evolution would print at great length.

It prints a value as a tree, with each part as often as it is used: x to the 2**n has 2**n factors,
and what a long computation adds up can fill gigabytes. Nothing is asked of such a value but
between which numbers it is.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping

from .ir import NAME

__all__ = ["without_large_trees"]

#: What scalar evolution sees through: the result, its type, what it is made of.
_OPS = (
    "add|sub|mul|shl|lshr|udiv|urem|and|or|xor|sext|zext|trunc|select|phi|getelementptr|ptrtoint"
    r"|inttoptr|(?:tail )?call i\d+ @llvm\.[su](?:max|min)"
)
_MADE = re.compile(rf"^  (?P<name>%{NAME}) = (?P<op>{_OPS})\b(?P<rest>.*)$")
_USED = re.compile(rf"%{NAME}")
_NUMBER = re.compile(r" (?:n[us]w |exact )*(i\d+) ")
#: An address, or a value that is chosen, keeps its own form.
_OTHER = ("phi", "getelementptr", "select", "inttoptr")
_WRITTEN = re.compile(r"-?\d+$")
_SHIFTS = ("shl", "lshr")
#: What is least and greatest at the ends of the ranges of two numbers.
_RESULTS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "shl": operator.lshift,
    "lshr": operator.rshift,
}  # fmt: skip
#: Two numbers, both of which may be met.
_Range = tuple[int, int]
#: Parts that LLVM prints in half a second, each in a few writes; parts of a value then.
_MUCH, _SMALL = 100_000, 200


def without_large_trees(text: str, most: int) -> str:
    """Return a module in which no value is a tree of more than so many parts.

    Instead of a larger one stands a number of which nothing is known but its range. Where all
    trees together would still be much to print, smaller ones are cut, too.
    """
    sizes: dict[str, int] = {}
    ranges: dict[str, _Range] = {}
    lines = text.split("\n")
    printed = 0
    for number, line in enumerate(lines):
        if line.startswith("define "):
            sizes, ranges = {}, {}
            continue
        made = _MADE.match(line)
        if made is None:
            continue
        name, op, rest = made["name"], made["op"], made["rest"].partition(", !")[0]
        if (span := _range_of(op, rest, ranges)) is not None:
            ranges[name] = span
        size = 1 + sum(sizes.get(one, 1) for one in _USED.findall(rest))
        if size > most and op not in _OTHER:
            kind = _result(op, rest)
            if kind:
                lines[number] = f"  {name} = {_unknown(kind, span)}"
                size = 1
        sizes[name] = min(size, most)
        printed += sizes[name]
    if printed > _MUCH and most > _SMALL:
        return without_large_trees(text, _SMALL)
    return "\n".join(lines)


def _unknown(kind: str, span: _Range | None) -> str:
    """Return an instruction that makes a number of which nothing is known but its range."""
    if span is None or not kind[1:].isdigit() or not _fits(span, int(kind[1:]) - 1):
        return f"freeze {kind} poison"
    return f"load {kind}, ptr null, !range !{{{kind} {span[0]}, {kind} {span[1] + 1}}}"


def _fits(span: _Range, bits: int) -> bool:
    return -1 << bits <= span[0] and span[1] + 1 < 1 << bits


def _range_of(op: str, rest: str, known: Mapping[str, _Range]) -> _Range | None:
    """Return between which numbers an instruction's result is, from those it is made of."""
    kind = _NUMBER.match(rest)
    if kind is None:
        return None
    bits = int(kind[1][1:])
    words = [word.split(" ")[0] for word in rest[kind.end() :].split(", ")]
    each = [(int(w), int(w)) if _WRITTEN.match(w) else known.get(w) for w in words]
    first = each[0]
    least = [one[1] for one in each if one is not None and one[0] >= 0]
    if op in ("zext", "lshr") and (first is None or first[0] < 0):
        first = 0, (1 << bits) - 1
    if op == "sext" and first is None:
        first = -1 << (bits - 1), (1 << (bits - 1)) - 1
    if op in ("zext", "sext"):
        return first
    if op == "and":
        return (0, min(least)) if least else None
    second = each[-1]
    if first is None or second is None:
        return None
    if op == "trunc":
        return first if _fits(first, int(_result(op, rest)[1:]) - 1) else None
    if op not in _RESULTS or (op in _SHIFTS and not 0 <= second[0] == second[1] < bits):
        return None
    results = [_RESULTS[op](one, other) for one in first for other in second]
    found = min(results), max(results)
    return found if _fits(found, bits - 1) else None


def _result(op: str, rest: str) -> str:
    """Return the type of a number that an instruction makes; ``""`` for none."""
    if op in ("sext", "zext", "trunc", "ptrtoint"):
        kind = rest.rsplit(" to ", 1)[-1].strip()
        return kind if re.fullmatch(r"i\d+", kind) else ""
    if "call" in op:
        return op.split()[-2]
    match = _NUMBER.match(rest)
    return match[1] if match else ""
