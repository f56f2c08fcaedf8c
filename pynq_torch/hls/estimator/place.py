"""Places in a source."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass

__all__ = ["Place", "real_path"]


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
