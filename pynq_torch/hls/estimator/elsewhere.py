"""Headers that a source includes under the path of another machine, or as Windows spells them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from pynq_torch.paths import shown

from ..headers import is_elsewhere, real_name, write_stand_in

__all__ = ["with_stand_ins"]

_NOT_FOUND = re.compile(r"^(.+?):(\d+):\d+: fatal error: '(.+)' file not found$", re.MULTILINE)
_MOST = 40


def with_stand_ins(
    command: Sequence[str], said: str, folder: Path, run: Callable[[Sequence[str]], tuple[str, int]]
) -> tuple[list[str], str, int, list[str]]:
    """Compile with a file for each header that is there under another name.

    Parameters
    ----------
    command, said : sequence of str, str
        Of a compiler that failed, and its messages.
    folder : pathlib.Path
        Gets the files.
    run : callable
        Returns what a compiler says, and its exit status.

    Returns
    -------
    tuple of list of str, str, int, list of str
        The command that was run last, what it said, its status, and the warnings of paths that are
        another machine's.
    """
    again, status, notes, tried = [*command], 1, list[str](), set[str]()
    for _ in range(_MOST):
        missing = _NOT_FOUND.search(said)
        if not status or missing is None:
            break
        file, line, name = missing.groups()
        real = real_name(name, [Path(file).parent, *_folders(command)])
        option = _option(folder, name, real) if real is not None else ""
        if real is None or not option or (option in again and name in tried):
            break  # another source's compiler may have made the file
        tried.add(name)
        if is_elsewhere(name):
            notes.append(
                f"{shown(Path(file))}:{line}: {name} is a path of another machine; {real.name} was "
                f"read instead; write #include <{real.name}>"
            )
        again += [option] if option not in again else []
        said, status = run(again)
    return again, said, status, notes


def _option(folder: Path, name: str, real: Path) -> str:
    """Put a header where a source looks for it; return clang's option, ``""`` if that cannot be.

    An absolute path is one of clang's virtual file system: nothing is written outside the folder.
    """
    if not name.startswith("/"):
        return f"-I{folder}" if write_stand_in(folder, name, real) else ""
    folder.mkdir(parents=True, exist_ok=True)
    overlay = folder / (name.replace("/", "_") + ".json")
    here = {"type": "file", "name": name, "external-contents": str(real.resolve())}
    overlay.write_text(json.dumps({"version": 0, "roots": [here]}), encoding="utf-8")
    return f"-ivfsoverlay{overlay}"


def _folders(command: Sequence[str]) -> Iterator[Path]:
    """Yield where a compiler looks for headers."""
    for before, word in pairwise(command):
        if before == "-isystem":
            yield Path(word)
        elif word.startswith("-I"):
            yield Path(word[2:])
