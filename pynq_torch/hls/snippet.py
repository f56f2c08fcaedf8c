"""Kernels written as text: in a notebook's ``%%hls`` cell, or as a string in a program."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pynq_torch.errors import needs

from .source import read_source

with needs("clang", "Reading HLS C++"):
    from clang.cindex import CursorKind, LinkageKind

__all__ = ["CELLS", "declarations", "named_number", "split", "write_directives"]

_SPLIT = re.compile(r"(?mi)^[ \t]*//[ \t]*test ?bench\b.*$")

#: Top function -> the text of its latest ``%%hls`` cell, also of one that does not compile.
CELLS: dict[str, str] = {}


def split(code: str) -> tuple[str, str]:
    """Return the kernel, and what is from a line ``// testbench`` on (``""`` without one)."""
    match = _SPLIT.search(code)
    return (code, "") if match is None else (code[: match.start()], code[match.start() :])


def named_number(text: str) -> tuple[str, int]:
    """Return the scalar argument and its value that ``NAME=NUMBER`` gives.

    Raises
    ------
    ValueError
        It is written otherwise; the message says how.
    """
    name, _, number = text.partition("=")
    if not name.isidentifier():
        raise ValueError(f"{text!r}: expected NAME=NUMBER")
    try:
        return name, int(number, 0)
    except ValueError:
        problem = f"{text!r}: {number!r} is no whole number" if number else f"{text!r}: no number"
        raise ValueError(f"{problem}; expected NAME=NUMBER, e.g. {name}=64") from None


def write_directives(folder: Path, lines: Iterable[str]) -> Path | None:
    """Write lines of Tcl beside a kernel, for an estimate; return the file, None without any."""
    text = "".join(f"{line}\n" for line in lines)
    file = folder / "directives.tcl"
    if not text:
        return None
    file.write_text(text, encoding="utf-8")
    return file


def declarations(source: Path) -> str:
    """Return a source with ``;`` for the body of each function that the linker will find.

    With it before a testbench, that one needs no header. Lines keep their numbers.

    Raises
    ------
    KernelBuildError
        The source cannot be parsed.
    """
    code, bodies = source.read_bytes(), []
    with read_source(source) as unit:
        waiting = list(unit.unit.cursor.get_children())
        while waiting:
            node = waiting.pop()
            if node.location.file is None or node.location.file.name != str(source):
                continue
            if node.kind in (CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC):
                waiting += node.get_children()
            elif node.kind == CursorKind.FUNCTION_DECL and node.linkage == LinkageKind.EXTERNAL:
                bodies += [
                    (part.extent.start.offset, part.extent.end.offset)
                    for part in node.get_children()
                    if part.kind == CursorKind.COMPOUND_STMT
                ]
    for begin, end in sorted(bodies, reverse=True):
        lines = b"\n" * code.count(b"\n", begin, end)
        code = code[:begin] + b";" + lines + code[end:]
    return code.decode("utf-8")
