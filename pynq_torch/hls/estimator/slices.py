"""The part of a module on which addresses and branches depend."""

from __future__ import annotations

import re

__all__ = ["address_slice"]

_NAME = r"%(?:\"[^\"]+\"|[-\w.$]+)"
_RESULT = re.compile(rf"^  ({_NAME}) = (.*)$")
#: What no address is made of, unless it is looked up in a table.
#: An `or` with a number is a sum, of an unrolled loop's counter.
_DATA = re.compile(
    rf"^  ({_NAME}) = (?:or(?!.*, \d+(?:,|$))|xor|lshr|ashr|udiv|urem|sdiv|srem) (?:exact )?(i\d+) "
)
_POINTER = re.compile(rf"ptr (?:noundef |nonnull )*({_NAME})")
#: What an assert says of a bound.
_ASSUMED = "@llvm.assume(i1 "
_ENDS = ("  br ", "  switch ", "    i", "  ]", "  unreachable")


def address_slice(text: str) -> str:
    """Return a module without the instructions on which no address and no branch depends."""
    parts = re.split(r"(?m)^(?=define )|(?<=^}\n)", text)
    return "".join(_sliced(part) if part.startswith("define ") else part for part in parts)


def _sliced(function: str) -> str:
    """Keep what leads to a pointer of a load, a store or a call, or to a condition.

    A condition is a branch's or an assert's, which bounds loops.

    An index that is computed from data is one unknown number: what is printed of it would be a
    tree that holds each part as often as it is used.
    """
    lines = function.split("\n")
    made = {match[1]: number for number, row in enumerate(lines) if (match := _RESULT.match(row))}
    conditions: list[str] = []
    pointers: list[str] = []
    for row in lines:
        if row.startswith(_ENDS):
            conditions += re.findall(_NAME, row)
        elif " load " in row or row.startswith(("  store ", "  call ", "  tail call ")):
            pointers += _POINTER.findall(row)
    kept = {number for number, row in enumerate(lines) if _ASSUMED in row}
    for number in kept:
        conditions += re.findall(_NAME, lines[number])
    _follow(conditions, lines, made, kept, cuts=False)
    for number in _follow(pointers, lines, made, kept, cuts=True) - kept:
        match = _DATA.match(lines[number])
        assert match is not None
        lines[number] = f"  {match[1]} = freeze {match[2]} poison"
        kept.add(number)
    return "\n".join(
        "  unreachable" if row.startswith("  ret ") else row
        for number, row in enumerate(lines)
        if number in kept or not row.startswith("  ") or row.startswith((*_ENDS, "  ret "))
    )


def _follow(
    waiting: list[str], lines: list[str], made: dict[str, int], kept: set[int], *, cuts: bool
) -> set[int]:
    """Add to `kept` the lines that make some values; return those of data, where it ends."""
    ends: set[int] = set()
    while waiting:
        number = made.get(waiting.pop())
        if number is None or number in kept or number in ends:
            continue
        if cuts and _DATA.match(lines[number]):
            ends.add(number)
            continue
        kept.add(number)
        waiting += re.findall(_NAME, lines[number])[1:]
    return ends
