"""The HLS headers, precompiled for libclang, which needs three seconds to read ``ap_int.h``."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from pynq_torch.errors import KernelBuildError, needs

from . import cache, depends, toolchain

with needs("clang", "Reading HLS C++"):
    from clang import cindex

__all__ = ["precompiled"]

#: A line of g++ -E; 1 is for a file that begins here.
_MARKER = re.compile(r'^# \d+ "((?:[^"\\]|\\.)*)"( 1)?', re.MULTILINE)
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:el)?if(?:n?def)?\b(.*)$", re.MULTILINE)
#: CXTranslationUnit_Incomplete | ForSerialization | KeepGoing
_OPTIONS = 0x2 | 0x4 | 0x200
_NAME, _RESULT = "headers.hpp", "headers.pch"


def precompiled(text: str, arguments: Sequence[str], defines: Sequence[str]) -> list[str]:
    """Return the arguments with which libclang takes a source's HLS headers from the cache.

    Parameters
    ----------
    text : str
        The source behind g++ -E, with its line markers.
    arguments : sequence of str
        For libclang, without what is this source's alone: its folders and macros.
    defines : sequence of str
        Its macros, ``NAME`` or ``NAME=VALUE``.

    Returns
    -------
    list of str
        Empty where the headers have to be read as text: the source includes none of those that
        take long, it has a header or a macro of its own that changes them, or the cache is so
        small that a precompiled header would not be used often.
    """
    hls = _folders(toolchain.include_dirs())
    system = _folders(toolchain.system_include_dirs())
    direct, files = _included(text, hls, system)
    slow = any(file.startswith(hls[-1]) for file in files)
    if direct is None or not slow or "c++" not in arguments:
        return []
    named = {define.partition("=")[0] for define in defines}
    own = [file for file in files if not file.startswith((*hls, *system))]
    named.update(*(_DEFINED.findall(_read(file)) for file in own))
    if not named.isdisjoint(_tested(tuple(file for file in files if file.startswith(hls)))):
        return []
    dates = [str(os.stat(file).st_mtime_ns) for file in direct]  # which libclang goes by
    version = importlib.metadata.version("libclang")
    key = cache.digest("libclang", version, *arguments, *direct, *dates)
    if cache.find(key) is None and not cache.is_in_use():
        return []
    try:
        entry = cache.find_or_make(key, (), lambda: _make(key, direct, arguments))
    except (KernelBuildError, cindex.TranslationUnitSaveError):  # no room for it
        return []
    return ["-include-pch", os.path.join(entry["path"], _RESULT)]


def _make(key: str, headers: Sequence[str], arguments: Sequence[str]) -> cache.Entry:
    content = "".join(f'#include "{header}"\n' for header in headers)
    with cache.scratch() as folder:
        unit = cindex.Index.create().parse(
            _NAME,
            args=[*arguments, "-x", "c++-header"],
            unsaved_files=[(_NAME, content)],
            options=_OPTIONS,
        )
        unit.save(str(folder / _RESULT))
        files = sorted({str(Path(item.include.name).resolve()) for item in unit.get_includes()})
        places: list[Path | str] = [*toolchain.include_dirs(), *toolchain.system_include_dirs()]
        return cache.store(key, folder, files, (), {}, depends.absent(files, places))


def _included(
    text: str, hls: tuple[str, ...], system: tuple[str, ...]
) -> tuple[list[str] | None, list[str]]:
    """Return the HLS headers that a source's own files include, and all files that are read.

    The first is None where an HLS header reads a file from elsewhere: the source's folder has one
    of that name.
    """
    direct: dict[str, None] = {}
    files: dict[str, None] = {}
    within, foreign = "", False
    for match in _MARKER.finditer(text):
        name = os.path.normpath(match[1])
        files[name] = None  # the source itself does not begin with a 1
        if match[2]:
            if name.startswith(hls):
                if not within.startswith((*hls, *system)):
                    direct[name] = None
            elif within.startswith(hls):
                foreign |= not name.startswith(system)
        within = name
    return (None if foreign else list(direct)), list(files)


@functools.lru_cache(maxsize=8)
def _tested(headers: tuple[str, ...]) -> frozenset[str]:
    """Return the names in conditions of the preprocessor."""
    lines = (line for header in headers for line in _CONDITION.findall(_read(header)))
    return frozenset(name for line in lines for name in re.findall(r"\w+", line))


def _folders(paths: Iterable[str | Path]) -> tuple[str, ...]:
    return tuple(os.path.join(os.path.normpath(path), "") for path in paths)


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:  # <stdin> and the like
        return ""
