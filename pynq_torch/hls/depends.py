"""What a build was made from, and which files would have taken part had they been there.

The one reader of dependency files: of g++ (``-MD``) and of Verilator (``*__verFiles.dat``). Beside
the files that a tool read, a build depends on files that did not exist: a header that ``#if
__has_include`` asked for, or one earlier on the include path than the one that was found.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["absent", "appeared", "gcc_files", "is_installed", "real", "spelt", "verilator_files"]

_INSTALLED = ("/usr/", "/opt/", "/lib/")
_SLASHES = re.compile(r"\\*")
# Every name on a line for the preprocessor: a macro may hold what #include gets, and what an #if
# leaves out, or is no file's name, does no harm: it is only looked for.
_C_LINE = re.compile(r"^[ \t]*#")
_VERILOG_LINE = re.compile(r"`[ \t]*(?:include|define)\b")
_NAME = re.compile(r'"([^"\n]+)"|<([^<>\n]+)>')
# Size, inode and two times in two parts each; older releases write no hash.
_VERILATED = re.compile(r'^S(?:\s+\d+){6}\s+(?:"[^"]*"\s+)?"([^"]*)"$', re.MULTILINE)
_LONGEST_NAME = 512
#: Up to this number of names it is faster to ask for each than to list the folder.
_FEW = 16


def is_installed(path: str) -> bool:
    """Return whether a file belongs to the system or to a Python package: it is not edited."""
    return path.startswith(_INSTALLED) or "/site-packages/" in path


def gcc_files(listing: Path) -> list[str]:
    r"""Return the absolute paths in a dependency file of ``g++ -MD``.

    g++ writes ``$$`` for ``$``, ``\#`` for ``#``, and a space with a backslash before it and every
    backslash in front of that doubled. Other characters, a newline too, are as they are. A link is
    not followed: it may point somewhere else at the next build.
    """
    text = os.fsdecode(listing.read_bytes())
    _, _, rest = text.removesuffix("\n").partition(": ")
    return [_absolute(name) for name in _names(rest)]


def _names(text: str) -> list[str]:
    names: list[str] = []
    name = ""
    at = 0
    while at < len(text):
        begin = at
        at = _SLASHES.match(text, begin).end()  # type: ignore[union-attr]  # matches nothing too
        slashes = at - begin
        char = text[at : at + 1]
        at += 1
        if (char in (" ", "\t") and slashes % 2 == 0) or (
            char == "\n" and slashes == 1 and not name
        ):
            # The end of a name, which may be a backslash; or of a line that goes on.
            name += "\\" * slashes if char != "\n" else ""
            names += [name] if name else []
            name = ""
        elif char in (" ", "\t"):
            name += "\\" * (slashes // 2) + char
        elif char == "#":
            name += "\\" * max(slashes - 1, 0) + char
        else:
            at += char == "$" and text[at : at + 1] == "$"
            name += "\\" * slashes + char
    return [*names, name] if name else names


def real(path: Path) -> Path:
    """Return the file behind links; unlike ``resolve()`` it takes a link to itself."""
    return Path(os.path.realpath(path))


def _joined(name: str | Path) -> str:
    # A program may run in a folder that is gone.
    return str(name) if os.path.isabs(name) else os.path.join(os.getcwd(), name)


def _absolute(name: str) -> str:
    path = _joined(name)
    # Later releases of g++ escape a colon as well.
    plain = path.replace("\\:", ":")
    return plain if plain != path and not os.path.exists(path) and os.path.exists(plain) else path


def verilator_files(listing: Path) -> list[str]:
    """Return the paths of the sources in Verilator's ``*__verFiles.dat``, as they were given.

    Its ``*__ver.d`` escapes nothing, so that a space there ends no name for certain.
    """
    return _VERILATED.findall(os.fsdecode(listing.read_bytes()))


def spelt(path: str, lines: re.Pattern[str]) -> list[tuple[str, bool]]:
    """Return the names on the preprocessor lines of a source, and which are in quotes.

    Parameters
    ----------
    path : str
        The source.
    lines : re.Pattern
        What the lines begin with.
    """
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            text = file.read()
    except OSError:  # gone since the compiler read it: that alone makes the build stale
        return []
    rows = (row for row in re.split(r"(?<!\\)(?<!\\\r)\n", text) if lines.search(row))
    found = (match for row in rows for match in _NAME.finditer(row))
    pairs = dict.fromkeys((match[1] or match[2], match[1] is not None) for match in found)
    return [pair for pair in pairs if len(pair[0]) < _LONGEST_NAME and "\0" not in pair[0]]


def absent(
    files: Sequence[str], folders: Sequence[Path | str], *, verilog: bool = False
) -> dict[str, list[str]]:
    """Return the names that would change a build if they appeared, by folder.

    Parameters
    ----------
    files : sequence of str
        What the tool read, absolute.
    folders : sequence of path
        The include folders in the order of search.
    verilog : bool
        The files are Verilog; otherwise C or C++.
    """
    places = [_joined(folder) for folder in folders]
    missing: set[tuple[str, str]] = set()
    for file in files:
        if not is_installed(file):
            for name, quoted in spelt(file, _VERILOG_LINE if verilog else _C_LINE):
                own = [os.path.dirname(file)] if quoted and not verilog else []
                _look(name, [*own, *places], missing)
        # What a macro or another header asked for: the same name in an earlier folder.
        for place in places:
            if file.startswith(place.rstrip("/") + "/"):
                _look(file[len(place.rstrip("/")) + 1 :], places, missing)
                break
    found: dict[str, list[str]] = {}
    for folder, name in sorted(missing):
        found.setdefault(folder, []).append(name)
    return found


def _look(name: str, places: Sequence[str], missing: set[tuple[str, str]]) -> None:
    """Add the places where `name` is not, up to the one where it is found."""
    empty: list[str] = []
    for place in places:
        path = os.path.join(place, name)
        if os.path.isfile(path):
            # The folders of the system do not change their order among themselves.
            empty = [path for path in empty if not is_installed(path)]
            break
        if not os.path.lexists(path):
            empty.append(path)
        elif not os.path.lexists(target := os.path.realpath(path)):
            empty.append(target)  # a link to it is there already
    missing.update(map(_first_missing, empty))


def _first_missing(path: str) -> tuple[str, str]:
    """Return the nearest folder above `path` that exists, and the name that it lacks."""
    folder, name = os.path.split(path)
    while not os.path.lexists(folder) and os.path.dirname(folder) != folder:
        folder, name = os.path.split(folder)
    return folder, name


def appeared(names: Mapping[str, Sequence[str]]) -> bool:
    """Return whether one of the names of `absent` is there now."""
    for folder, wanted in names.items():
        if len(wanted) <= _FEW:
            if any(os.path.lexists(f"{folder}/{name}") for name in wanted):
                return True
            continue
        try:
            if not set(wanted).isdisjoint(os.listdir(folder)):
                return True
        except OSError:  # the folder has gone, and its names with it
            continue
    return False
