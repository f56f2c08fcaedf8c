"""The part of a module on which addresses and branches depend."""

from __future__ import annotations

import re

__all__ = ["address_slice"]

_NAME = r"%(?:\"[^\"]+\"|[-\w.$]+)"
_RESULT = re.compile(rf"^  ({_NAME}) = (.*)$")
_POINTER = re.compile(rf"ptr (?:noundef |nonnull )*({_NAME})")
_ENDS = ("  br ", "  switch ", "    i", "  ]", "  unreachable")


def address_slice(text: str) -> str:
    """Return a module without the instructions on which no address and no branch depends."""
    parts = re.split(r"(?m)^(?=define )|(?<=^}\n)", text)
    return "".join(_sliced(part) if part.startswith("define ") else part for part in parts)


def _sliced(function: str) -> str:
    """Keep what leads to a pointer of a load, a store or a call, or to a branch's condition."""
    lines = function.split("\n")
    made = {match[1]: number for number, row in enumerate(lines) if (match := _RESULT.match(row))}
    kept: set[int] = set()
    waiting: list[str] = []
    for row in lines:
        if row.startswith(_ENDS):
            waiting += re.findall(_NAME, row)
        elif " load " in row or row.startswith(("  store ", "  call ", "  tail call ")):
            waiting += _POINTER.findall(row)
    while waiting:
        number = made.get(waiting.pop())
        if number is not None and number not in kept:
            kept.add(number)
            waiting += re.findall(_NAME, lines[number])[1:]
    return "\n".join(
        "  unreachable" if row.startswith("  ret ") else row
        for number, row in enumerate(lines)
        if number in kept or not row.startswith("  ") or row.startswith((*_ENDS, "  ret "))
    )
