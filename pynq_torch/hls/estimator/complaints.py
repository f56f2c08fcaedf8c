"""What clang says of a source, in a sentence that names what to write."""

from __future__ import annotations

import re
from pathlib import Path

from ..headers import not_read
from .place import header_folders

__all__ = ["first_error"]

_ERROR = re.compile(r"^(.+?:\d+):\d+: (?:fatal )?error: (.*)$", re.MULTILINE)
_MACRO = re.compile(r"^(.+?):(\d+):\d+: note: expanded from macro '(\w+)'$", re.MULTILINE)


def first_error(said: str) -> str:
    """Return the first error that clang printed, with file and line; all of it if it has none."""
    first = _ERROR.search(said)
    if first is None:
        return said.strip()[:400]
    return _of_a_macro(first[1], said) or (
        f"{first[1]}: {_of_clang(first[1]) or _plainly(first[2])}"
    )


def _of_a_macro(where: str, said: str) -> str:
    """Return what to say where a macro of the source is a name in an HLS header.

    Those of the tools have such names, too: `V` and `i` in ``ap_int.h``.
    """
    made = _MACRO.search(said)
    if made is None or not where.startswith(header_folders()):
        return ""
    if made[1].startswith(header_folders()):
        return ""
    header = Path(where.rpartition(":")[0]).name
    is_option = made[1].startswith("<")
    at = f"-D {made[3]}" if is_option else f"{made[1]}:{made[2]}"
    instead = "call it otherwise" if is_option else f"define it behind #include <{header}>"
    return f"{at}: macro {made[3]} replaces a name that {header} uses; {instead}"


def _of_clang(where: str) -> str:
    """Return what to say where the compiler took an unroll pragma without HLS for its own."""
    file, _, line = where.rpartition(":")
    path, number = Path(file), int(line)  # which `#line` may have made up
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    row = "".join(text.split("\n")[number - 1 : number])
    found = re.match(r"\s*#\s*pragma\s+unroll\b(.*)", row)
    said = "#pragma unroll is no HLS pragma; did you mean #pragma HLS UNROLL"
    return f"{said}{found[1]}?" if found else ""


def _plainly(said: str) -> str:
    """Return an error of the compiler's, with what to do where it is HLS that forbids something."""
    if "with exceptions disabled" in said:
        return "hardware has no exceptions (try, throw); hand an error over as a result"
    if "requires -frtti" in said:
        return "types are not known at run time (dynamic_cast, typeid); use a template or a number"
    if not said.endswith("file not found"):
        return said
    if elsewhere := re.match(r"'(?:/|[A-Za-z]:)(?:.*[/\\])?([^/\\']+)'", said):
        return f"{said}: that path is of another machine; write #include <{elsewhere[1]}>"
    if other := not_read(said.split("'")[1]):
        return other
    return f"{said}; give its folder with -I"
