"""A function of a kernel's C++ with its line numbers, for reading in a notebook."""

from __future__ import annotations

import re
from pathlib import Path

from pynq_torch.errors import KernelError

from .kernels import strip_comments

__all__ = ["excerpt"]


def excerpt(source: Path | str, function: str) -> str:
    """Return the definition of a function with line numbers, and the comment above it.

    Parameters
    ----------
    source : path
        A C++ file.
    function : str
        The function's name, without namespaces.

    Raises
    ------
    KernelError
        The file does not define it.
    """
    path = Path(source)
    text = path.read_text(encoding="utf-8")
    code = strip_comments(text)
    pattern = re.compile(rf"^[^\n;{{}}#]*\b{re.escape(function)}\s*\([^;{{}}]*\)[^;{{}}]*\{{", re.M)
    match = pattern.search(code)
    if match is None:
        raise KernelError(f"{path.name} defines no function {function!r}", path.stem)
    end, depth = match.end(), 1
    while depth and end < len(code):
        depth += {"{": 1, "}": -1}.get(code[end], 0)
        end += 1
    lines = text.splitlines()
    # The pattern may begin in blank lines: what stands there was a comment.
    first = code.count("\n", 0, match.start() + len(match.group()) - len(match.group().lstrip()))
    while first and re.match(r"\s*(//|template\b)", lines[first - 1]):
        first -= 1
    last = code.count("\n", 0, end)
    width = len(str(last + 1))
    shown = enumerate(lines[first : last + 1], start=first + 1)
    return "\n".join(f"{number:{width}}  {line}".rstrip() for number, line in shown)
