"""Numbers of 65 to 127 bits that functions are handed: LLVM keeps them in registers if widened.

clang hands them over as two words, through a variable on the stack, which LLVM's ``sroa`` takes
apart only where whole bytes are written. Left there it would count as a memory.
"""

from __future__ import annotations

import re
from itertools import count

__all__ = ["with_whole_words"]

_WIDE = r"i(?P<bits>6[5-9]|[7-9]\d|1[01]\d|12[0-7])"
_PLACE = r"(?P<pointer>ptr \S+, align \d+)(?P<rest>.*)$"
_STORE = re.compile(rf"(?m)^  store {_WIDE} (?P<value>\S+), {_PLACE}")
_LOAD = re.compile(rf"(?m)^  (?P<name>\S+) = load {_WIDE}, {_PLACE}")
_NODE = re.compile(r", !dbg !\d+")


def with_whole_words(text: str) -> str:
    """Return a raw module that writes and reads such numbers as the 16 bytes that they take."""
    numbers = count()

    def stored(match: re.Match[str]) -> str:
        name, node = f"%whole.{next(numbers)}", _node(match)
        return (
            f"  {name} = zext i{match['bits']} {match['value']} to i128{node}\n"
            f"  store i128 {name}, {match['pointer']}{node}"
        )

    def loaded(match: re.Match[str]) -> str:
        name, node = f"%whole.{next(numbers)}", _node(match)
        return (
            f"  {name} = load i128, {match['pointer']}{node}\n"
            f"  {match['name']} = trunc i128 {name} to i{match['bits']}{node}"
        )

    return _LOAD.sub(loaded, _STORE.sub(stored, text))


def _node(match: re.Match[str]) -> str:
    found = _NODE.search(match["rest"])
    return found[0] if found else ""
