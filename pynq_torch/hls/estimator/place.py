"""Places in a source."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass

from .. import toolchain

__all__ = ["Place", "header_folders", "own_place", "real_path"]


@dataclass(frozen=True)
class Place:
    """Where something is in the source: file as the compiler names it, line and column from 1."""

    file: str
    line: int
    column: int = 0

    @property
    def path(self) -> str:
        """The file without links: one file has several names."""
        return real_path(self.file)


@functools.lru_cache(maxsize=1024)
def real_path(file: str) -> str:
    """Return a file's path without links."""
    return os.path.realpath(file)


def own_place(chain: Sequence[Place]) -> Place | None:
    """Return the innermost place in the kernel's own files; LLVM gives what it merges line 0."""
    return next((at for at in chain if at.line and not at.file.startswith(header_folders())), None)


@functools.cache
def header_folders() -> tuple[str, ...]:
    """Return the folders of HLS headers: what is in them is no kernel's."""
    return tuple(str(path) for path in (toolchain.LIGHT_HEADERS, *toolchain.include_dirs()))
