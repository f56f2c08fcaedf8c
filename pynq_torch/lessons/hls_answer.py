"""What an answer in HLS C++ says: its pragmas, the depths of its FIFOs, its code without them."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pynq_torch.errors import InterfaceWarning, needs
from pynq_torch.hls import KernelSource, read_interface
from pynq_torch.hls.constants import Constants
from pynq_torch.hls.lint_dataflow import is_stream
from pynq_torch.hls.lint_effects import kind_of
from pynq_torch.hls.lint_tree import Program, walk
from pynq_torch.hls.parse import constants_of
from pynq_torch.hls.snippet import CELLS, split
from pynq_torch.hls.source import read_source

with needs("clang", "Reading HLS C++"):
    from clang.cindex import CursorKind

__all__ = ["bare", "fifos", "overwritten", "plain", "pragmas"]

#: Comments, and strings, in which a comment's beginning is none.
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_PRAGMA = re.compile(r"(?m)^[ \t]*#[ \t]*pragma\b.*$|_Pragma\s*\(\s*\"(?:\\.|[^\"\\])*\"\s*\)")
#: The number of places that a stream's type gives.
_PLACES = re.compile(r"\bstream<.*, (\d+)>")
#: Those of a FIFO for which nothing says a number (UG1399, pragma HLS stream).
_DEFAULT = 2


def plain(code: str) -> str:
    """Return C++ as its preprocessor sees it: lines joined, digraphs spelt out, comments blank."""
    code = re.sub(r"_Pragma\s*\(\s*#", "_Pragma( ", code)  # of a macro that makes a pragma
    code = code.replace("%:", "#").replace("??=", "#").replace("??/", "\\")
    while joined := re.search(r"\\[ \t]*\n", code):  # the lines keep their numbers
        end = code.find("\n", joined.end())
        end = len(code) if end < 0 else end
        code = code[: joined.start()] + code[joined.end() : end] + "\n" + code[end:]
    return _COMMENT.sub(
        lambda one: one[0] if one[0][0] == '"' else " " + "\n" * one[0].count("\n"), code
    )


def bare(answer: str) -> str:
    """Return an answer's code without pragmas, comments and white space, to compare two answers."""
    return "".join(_PRAGMA.sub("", plain(_code(answer))).split())


def pragmas(answer: str, name: str) -> list[dict[str, str | int]]:
    """Return the pragmas of one kind, in order of their lines.

    Parameters
    ----------
    answer : str
        C++, or the name of a ``%%hls`` cell that has been run.
    name : str
        ``"STREAM"``, in any case.

    Returns
    -------
    list of dict
        The options of each by their names in lower case, with numbers where the value is one;
        ``"type"`` of ``ARRAY_PARTITION`` also where it is a word of its own, or left out.
    """
    found: list[dict[str, str | int]] = []
    with _program(answer) as (program, constants):
        for item in program.directives:
            if item.name == name.lower():
                kind = kind_of(item)
                options: dict[str, str | int] = {"type": kind} if kind else {}
                for option, value in item.options.items():
                    number = constants.number(value)
                    options.setdefault(option, value if number is None else number)
                found.append(options | {"variable": item.variable})
    return found


def fifos(answer: str, include_dirs: Sequence[Path] = ()) -> dict[str, int]:
    """Return the places of each stream that is declared: by its pragma, its type, or two.

    An array of streams is one, of two with one name the deeper counts, and a depth that is no
    constant counts as two.
    """
    found: dict[str, int] = {}
    with _program(answer, include_dirs) as (program, constants):
        asked = {
            (scope.function.hash, item.variable): constants.number(item.options.get("depth"))
            for function in program.scopes
            for scope in function.walk()
            for item in scope.pragmas
            if item.name == "stream"
        }
        declared = (node for function in program.functions for node in walk(function))
        for node in declared:
            if node.kind == CursorKind.VAR_DECL and is_stream(node.type):
                typed = _PLACES.search(node.type.get_canonical().spelling)
                places = asked.get((node.semantic_parent.hash, node.spelling))
                places = places or int(typed[1] if typed else 0) or _DEFAULT
                found[node.spelling] = max(places, found.get(node.spelling, 0))
    return found


def overwritten(kernel: KernelSource, reads: int, tool: str) -> Iterator[str]:
    """Yield a sentence for each of the first `reads` arguments that the function writes to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterfaceWarning)  # among those of the estimate
        interface = read_interface(
            kernel.source, kernel.top, tool=tool, include_dirs=kernel.include_dirs
        )
    for argument in interface.arguments[:reads]:
        if argument.direction != "in":
            yield f"{argument.name} is an input of {kernel.top}, which writes to it; leave it be."


def _code(answer: str) -> str:
    return split(CELLS.get(answer, answer))[0]


@contextmanager
def _program(answer: str, include_dirs: Sequence[Path] = ()) -> Iterator[tuple[Program, Constants]]:
    with tempfile.TemporaryDirectory(prefix="pynq_torch_lab_") as name:
        source = Path(name) / "answer.cpp"
        source.write_text(_code(answer), encoding="utf-8")
        with read_source(source, include_dirs) as unit:
            program = Program(unit.unit.cursor, None, unit.pragmas)
            yield program, Constants(lambda: constants_of(unit), unit.mentions)
