"""The cfg files of Vitis's unified tool that name a source, wherever around it they are."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["files_of", "places_around"]

#: A line of a cfg file that names a source of its component.
_SOURCE = re.compile(r"^[ \t]*syn\.file[ \t]*=[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
#: How many folders up from a source its component may be.
_UP = 3


def files_of(source: Path) -> list[Path]:
    """Return the cfg files that name a source: those of the nearest folder that has any.

    A workspace has its components side by side, each with an `hls_config.cfg`, and the sources in
    one of them or beside them. Further away than beside the source, a file has to name the
    source's folder too: many components have a `top.cpp`.
    """
    for above, place in enumerate(itertools.islice(places_around(source.parent), _UP)):
        found = [*place.glob("*.cfg"), *place.glob("*/*.cfg")]
        named = [path for path in sorted(found) if _names(path, source, 2 if above else 1)]
        if named:
            return named
    return []


def places_around(folder: Path) -> Iterator[Path]:
    """Yield a folder and those around it, up to the working folder or a repository's.

    Of a folder in neither (one of ``/tmp``) there is only itself: what else is there belongs to
    others.
    """
    here, folder = Path.cwd(), folder.resolve()
    places = (folder, *folder.parents)
    last = next((one for one in places if one == here or (one / ".git").exists()), folder)
    for place in places:
        yield place
        if place == last:
            return


def _names(path: Path, source: Path, parts: int) -> bool:
    """Whether a cfg file names a source, by so many last parts of its path."""
    if not path.is_file() or not os.access(path, os.R_OK):
        return False
    wanted = source.resolve().parts[-parts:]
    names = _SOURCE.findall(path.read_text("utf-8", "replace"))
    return any(tuple(re.split(r"[/\\]+", name)[-parts:]) == wanted for name in names)
