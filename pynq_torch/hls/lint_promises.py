"""DEPENDENCE false without a comment that says why it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .lint_tree import Directive, Problem, Program

__all__ = ["dependences"]

#: What stands in a row below one comment.
_GROUP = r"\s*(#\s*pragma\s+HLS\b|_Pragma\b|set_directive_|syn\.directive)"


def dependences(program: Program) -> Iterator[Problem]:
    """Yield each ``DEPENDENCE ... false`` without a reason beside it."""
    for item in program.directives:
        if item.name == "dependence" and item.is_false and not _is_explained(item):
            yield (
                item.pragma.file,
                item.pragma.line,
                "dependence",
                f"DEPENDENCE of {item.variable or 'all variables'} is called false, and no "
                "comment says why; write above the pragma what keeps iterations apart",
            )


def _is_explained(item: Directive) -> bool:
    """Whether a reason, a comment of two words or more, is beside a pragma or above its group."""
    lines = _lines(item.pragma.file)
    at = item.pragma.line - 1
    if at >= len(lines):
        return True
    if _is_reason(lines[at][re.search(r"//|/\*|;\s*#|$", lines[at]).start() :]):  # type: ignore[union-attr]
        return True
    while at > 0 and re.match(_GROUP, lines[at - 1], re.IGNORECASE):
        at -= 1
    above: list[str] = []
    is_script = item.pragma.file.endswith((".tcl", ".cfg"))
    comment = r"\s*#" if is_script else r"\s*(//|/\*|\*)|.*\*/\s*$"
    while at > 0 and re.match(comment, lines[at - 1]):
        at -= 1
        above.insert(0, lines[at])
    return _is_reason(" ".join(above))


def _is_reason(comment: str) -> bool:
    words = re.findall(r"[^\W\d_]{2,}", comment)
    return len(words) >= 2 and words[0].upper() not in ("TODO", "FIXME", "XXX")


def _lines(file: str) -> list[str]:
    return Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
