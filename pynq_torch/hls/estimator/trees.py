"""Values that LLVM's scalar evolution would print at great length.

It prints a value as a tree, with each part as often as it is used: x to the 2**n has 2**n factors,
and what a long computation adds up can fill gigabytes. Nothing is asked of such a value but that it
is one unknown number.
"""

from __future__ import annotations

import re

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


def without_large_trees(text: str, most: int) -> str:
    """Return a module in which no value is a tree of more than so many parts.

    Instead of a larger one stands a number of which nothing is known.
    """
    sizes: dict[str, int] = {}
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line.startswith("define "):
            sizes = {}
            continue
        made = _MADE.match(line)
        if made is None:
            continue
        rest = made["rest"].partition(", !")[0]
        size = 1 + sum(sizes.get(name, 1) for name in _USED.findall(rest))
        if size > most and made["op"] not in _OTHER:
            kind = _result(made["op"], rest)
            if kind:
                lines[number] = f"  {made['name']} = freeze {kind} poison"
                size = 1
        sizes[made["name"]] = min(size, most)
    return "\n".join(lines)


def _result(op: str, rest: str) -> str:
    """Return the type of a number that an instruction makes; ``""`` for none."""
    if op in ("sext", "zext", "trunc", "ptrtoint"):
        kind = rest.rsplit(" to ", 1)[-1].strip()
        return kind if re.fullmatch(r"i\d+", kind) else ""
    if "call" in op:
        return op.split()[-2]
    match = _NUMBER.match(rest)
    return match[1] if match else ""
