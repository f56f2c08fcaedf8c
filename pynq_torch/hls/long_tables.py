"""Long tables of numbers, which libclang reads without their numbers: a network's weights.

It takes half a millisecond for each `ap_fixed` of them, and nothing here asks it for one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["without_long_tables"]

#: An array whose sizes are all written, and what it begins with: numbers, and braces around them.
_TABLE = re.compile(
    r"(\w\s*(?:\[[^\[\]=;{}]+\]\s*)+=\s*\{)([-+.,{}\s\da-fA-FxXuUlLeEpP]{4096,})(\}\s*;)"
)
_LONG = 4096


def without_long_tables(files: Iterable[str]) -> Iterator[tuple[bytes, str]]:
    """Yield those of some files that hold long tables, with their text less these numbers.

    All lines stay where they are.
    """
    for name in files:
        with suppress(OSError):
            if os.stat(name).st_size < _LONG:
                continue
            text = Path(name).read_text(encoding="utf-8", errors="replace")
            made = _TABLE.sub(lambda one: one[1] + "\n" * one[2].count("\n") + one[3], text)
            if made != text:
                yield os.fsencode(name), made
