"""Build results kept by content, shared by every process of a user.

An entry is found by a key (what is built, how, and with which compiler) and is good while every
file it was made from still has the content it had. Files are compared by hash; those of the
compiler and of installed packages by size and time only, since there are hundreds of them. Names
of files that did not exist count too: see `pynq_torch.hls.depends`. What a build left is looked at
before it is used, so that a damaged result is built again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pynq_torch.errors import CacheWarning, KernelBuildError

from . import depends

__all__ = [
    "Entry",
    "cache_dir",
    "digest",
    "find",
    "find_or_make",
    "is_in_use",
    "locked",
    "remembered",
    "scratch",
    "store",
    "write_text",
]

# Part of every key: entries of an older layout are never found.
FORMAT = 2
# Versions of one source that stay: going back to an earlier one costs nothing.
_KEPT = 8
#: Entries from which on a precompiled header saves more than it takes to be made.
_ENOUGH = 5
_FIELDS = {
    "name": str, "files": dict, "extra": list, "facts": dict, "absent": dict, "results": dict,
}  # fmt: skip
#: The name of an entry's folder: what is damaged is removed, so it must not lead anywhere else.
_NAME = re.compile(r"[0-9a-f]+(-[0-9a-f]+)*")
#: A program up to this size is compared by content at every use: it takes a tenth of a millisecond.
_SMALL_BYTES = 256 << 10
#: Entries whose damage was reported.
_reported: set[str] = set()
#: When each build in progress began, by its folder.
_begun: dict[Path, int] = {}

Entry = dict[str, Any]


def cache_dir() -> Path:
    """Return the cache folder: ``$PYNQ_TORCH_CACHE``, else ``pynq_torch`` in the user's cache."""
    own = os.environ.get("PYNQ_TORCH_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pynq_torch"


def digest(*parts: object) -> str:
    """Return a name for `parts`: 24 hexadecimal digits."""
    text = json.dumps([FORMAT, *(str(part) for part in parts)])
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _print_of(path: str) -> str:
    """Return what tells one content of a file from another, ``""`` where it is gone."""
    try:
        if depends.is_installed(path):
            status = os.stat(path)
            return f"{status.st_size}:{status.st_mtime_ns}"
        return _hash(path)
    except (OSError, ValueError):  # a NUL in a damaged index
        return ""


def _hash(path: str | Path) -> str:
    return hashlib.sha256(_content(path)).hexdigest()


def _content(path: str | Path) -> bytes:
    if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe waits for its other end
        raise OSError(errno.EINVAL, "no file", str(path))
    with open(path, "rb") as file:
        return file.read()


def _print_at(path: str, begun: int) -> str:
    """Return `_print_of` a file; of one written since the build began, what none ever has.

    The build may have read what it held before, so its result is good for this once only. So is
    the result of a build whose file is gone.
    """
    try:
        written = os.stat(path).st_mtime_ns
    except OSError:
        written = 0
    return "written during the build" if written > begun else _print_of(path) or "not there"


def _index(key: str) -> Path:
    return cache_dir() / "index" / f"{key}.json"


def _entries(key: str) -> list[Entry]:
    # Anything may have written into the cache; what is no entry is built again.
    return [item for item in _list_in(_index(key)) or () if _is_entry(item)]


def _list_in(path: Path) -> list[Any] | None:
    """Return the list in a file of the cache, None where there is none, or one that was cut off."""
    try:
        found = json.loads(_content(path))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _is_entry(item: object) -> bool:
    if not isinstance(item, dict):
        return False
    if not all(isinstance(item.get(field), kind) for field, kind in _FIELDS.items()):
        return False
    rows = item["results"].values()
    whole = all(isinstance(row, list) and len(row) == 4 for row in rows)
    return whole and _NAME.fullmatch(item["name"]) is not None


def find(key: str, extra: Sequence[Path] = ()) -> Entry | None:
    """Return the entry stored under `key` whose files are unchanged, or None.

    Parameters
    ----------
    key : str
        From :func:`digest`.
    extra : sequence of pathlib.Path
        Files that must be exactly those that `store` was given: one that has appeared since
        makes the entry stale.
    """
    known: dict[str, str] = {}
    for entry in _entries(key):
        if entry["extra"] != [str(path) for path in extra]:
            continue
        if not (cache_dir() / "entries" / entry["name"]).is_dir():
            continue
        for path, value in entry["files"].items():
            if path not in known:
                known[path] = _print_of(path)
            if not known[path] or known[path] != value:  # what is gone is never unchanged
                break
        else:
            if not depends.appeared(entry["absent"]) and _is_whole(entry):
                return {**entry, "path": str(cache_dir() / "entries" / entry["name"])}
    return None


def _is_whole(entry: Entry) -> bool:
    """Return whether the results of an entry are as they were stored; say once where not."""
    folder = cache_dir() / "entries" / entry["name"]
    for name, stored in entry["results"].items():
        reason = _damage(folder / name, *stored)
        if not reason:
            continue
        if entry["name"] not in _reported:
            _reported.add(entry["name"])
            text = f"the cached build {folder / name} {reason}; it is built again"
            warnings.warn(text, CacheWarning, stacklevel=4)
        shutil.rmtree(folder, ignore_errors=True)
        return False
    return True


def _damage(path: Path, nbytes: int, mtime_ns: int, executable: bool, content: str) -> str:
    """Return how a result differs from what was stored, ``""`` where it does not."""
    try:
        status = os.stat(path)
        if status.st_size != nbytes:
            return f"has {status.st_size} bytes, expected {nbytes}"
        if executable and not status.st_mode & 0o100:
            return "is not executable"
        moved = status.st_mtime_ns != mtime_ns
        if (moved or (executable and nbytes <= _SMALL_BYTES)) and _hash(path) != content:
            return "has another content than was stored"
        if moved:  # a copy of the cache: compared once
            with contextlib.suppress(OSError):  # a cache that can only be read
                os.utime(path, ns=(status.st_atime_ns, mtime_ns))
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return ""


def _results(folder: Path) -> dict[str, tuple[int, int, bool, str]]:
    """Return what `_damage` compares, for each file of a build."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            status = path.stat()
            found[str(path.relative_to(folder))] = (
                status.st_size,
                status.st_mtime_ns,
                bool(status.st_mode & 0o100),
                _hash(path),
            )
    return found


def is_in_use() -> bool:
    """Return whether so much has been built that what many builds share is worth being made."""
    index = cache_dir() / "index"
    return index.is_dir() and len(os.listdir(index)) >= _ENOUGH


def find_or_make(key: str, extra: Sequence[Path], make: Callable[[], Entry]) -> Entry:
    """Return the entry for `key`; `make` makes it where it is missing, in one process at a time."""
    entry = find(key, extra)
    if entry is None:
        with locked(key):
            # Another process may have made it while this one waited.
            entry = find(key, extra) or make()
    return entry


@contextlib.contextmanager
def locked(key: str) -> Iterator[None]:
    """Hold the lock of `key`: two processes that want the same build make it once."""
    with _clean_errors():
        path = cache_dir() / "locks" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """Give a folder on the cache's own file system, so that a rename can publish it."""
    with _clean_errors():
        base = cache_dir() / "entries"
        base.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".build-", dir=base))
    _begun[folder] = time.time_ns()
    try:
        yield folder
    finally:
        del _begun[folder]
        shutil.rmtree(folder, ignore_errors=True)


def store(
    key: str,
    folder: Path,
    files: Sequence[str],
    extra: Sequence[Path],
    facts: Entry,
    absent: Mapping[str, Sequence[str]] | None = None,
) -> Entry:
    """Publish the content of `folder` under `key` and return its entry.

    Parameters
    ----------
    key : str
        From :func:`digest`.
    folder : pathlib.Path
        From :func:`scratch`; it is moved away.
    files, extra : sequence of str, sequence of pathlib.Path
        Everything the result was made from; `extra` as for :func:`find`.
    facts : dict
        JSON values to remember.
    absent : mapping of str to sequence of str, optional
        From :func:`pynq_torch.hls.depends.absent`: one of these that appears makes the entry stale.
    """
    with _clean_errors():
        more = [str(path) for path in extra]
        prints = {path: _print_at(path, _begun[folder]) for path in (*files, *more)}
        name = f"{key}-{digest(*sorted(prints.items()))[:12]}-{os.getpid():x}{os.urandom(3).hex()}"
        entry = {
            "name": name,
            "files": prints,
            "extra": more,
            "facts": facts,
            "absent": dict(absent or {}),
            "results": _results(folder),
        }
        target = cache_dir() / "entries" / name
        folder.rename(target)
        _list_first(key, entry, target)
    return {**entry, "path": str(target)}


def _list_first(key: str, entry: Entry, target: Path) -> None:
    """Put an entry before the others of its key, and remove those that are too many."""
    kept = [item for item in _entries(key) if item["files"] != entry["files"]]
    index = _index(key)
    index.parent.mkdir(parents=True, exist_ok=True)
    if index.is_dir() and not index.is_symlink():  # no file can be renamed to it
        shutil.rmtree(index)
    try:
        _write_atomically(index, json.dumps([entry, *kept[: _KEPT - 1]]))
    except OSError:
        shutil.rmtree(target, ignore_errors=True)
        raise
    for dropped in kept[_KEPT - 1 :]:
        shutil.rmtree(cache_dir() / "entries" / dropped["name"], ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write a file of a build, with a clear error where there is no room."""
    with _clean_errors():
        path.write_text(text, encoding="utf-8")


def remembered(key: str, ask: Callable[[], list[str]]) -> list[str]:
    """Return an answer that depends on nothing but what `key` was made from.

    Parameters
    ----------
    key : str
        From :func:`digest`.
    ask : callable
        Gives the answer, which is not kept where the cache cannot be written.
    """
    path = cache_dir() / "answers" / f"{key}.json"
    known = _list_in(path)
    if known is not None:
        return known
    answer = ask()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_atomically(path, json.dumps(answer))
    return answer


def _write_atomically(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except OSError:
        os.unlink(name)
        raise


@contextlib.contextmanager
def _clean_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise KernelBuildError(no_room()) from error
        raise KernelBuildError(
            f"the build cache {cache_dir()} cannot be used: {error.strerror} "
            f"({error.filename}). Set PYNQ_TORCH_CACHE to a folder that can be written"
        ) from error


def no_room() -> str:
    """Return the sentence for a full disk."""
    return (
        f"no space left on the device while building in {cache_dir()}; nothing was kept. Free some "
        "space, or set PYNQ_TORCH_CACHE to a folder on another disk"
    )
