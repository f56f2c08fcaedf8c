"""g++ -E on a source, within limits of time, memory and output.

A macro that doubles at every level, a header like ``/dev/zero`` or a pipe that nobody writes to
have no end. libclang works in this process, where nothing can stop it, so g++ goes first.
"""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pynq_torch.errors import InterfaceError

from . import depends, toolchain

__all__ = ["Preprocessed", "check_headers", "complaints", "preprocess", "unreadable"]

#: A source with the arbitrary-precision types takes 0.2 s and 100 MB, and writes 2 MB.
_CPU_S = 10
_WALL_S = 60
_MEMORY_KB = 2 << 20
_OUTPUT_BYTES = 64 << 20
_SOURCE_BYTES = 64 << 20
_STOPPED = re.compile(r"signal terminated program|out of memory|virtual memory exhausted")
_INCLUDE = re.compile(r"[ \t]*#[ \t]*(?:include|include_next|import)\b")


@dataclass(frozen=True)
class Preprocessed:
    """What g++ -E wrote, and what it complained about."""

    text: str
    errors: str


def preprocess(path: Path, options: Sequence[str]) -> Preprocessed:
    """Return what the preprocessor makes of `path`.

    Raises
    ------
    InterfaceError
        It needs more time, memory or output than any kernel does.
    """
    code, written, said = _run([toolchain.compiler(), "-E", *options, str(path)])
    if code < 0 or len(written) >= _OUTPUT_BYTES or _STOPPED.search(said):
        raise InterfaceError(
            f"{path}: the preprocessor needs more than {_CPU_S} s, {_MEMORY_KB >> 20} GB or "
            f"{_OUTPUT_BYTES >> 20} MB of output. Look for a macro that multiplies itself, or a "
            "header without an end"
        )
    return Preprocessed(os.fsdecode(written), said)


def complaints(path: Path, options: Sequence[str]) -> tuple[int, str]:
    """Return what g++ says of a source without compiling it, and its exit status."""
    code, _, said = _run([toolchain.compiler(), "-fsyntax-only", *options, str(path)])
    return code, said


def _run(command: Sequence[str]) -> tuple[int, bytes, str]:
    """Run g++ within limits; return its exit status, its output and its messages."""
    limits = f"ulimit -t {_CPU_S}; ulimit -v {_MEMORY_KB}; ulimit -f {_OUTPUT_BYTES // 512}"
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            ["/bin/sh", "-c", f'{limits}; exec "$@"', "sh", *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env={**os.environ, "LC_ALL": "C"},
            start_new_session=True,  # g++ starts the compiler proper, which has to end with it
        )
        try:
            code = process.wait(_WALL_S)
        except subprocess.TimeoutExpired:
            code = -signal.SIGKILL
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        errors.seek(0)
        return code, output.read(), os.fsdecode(errors.read(_OUTPUT_BYTES))


def unreadable(path: Path) -> str:
    """Return why a file can be no source or header, ``""`` where it can."""
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        return "is a folder"
    if not stat.S_ISREG(status.st_mode):
        return "is a device, pipe or socket"
    if status.st_size > _SOURCE_BYTES:
        return f"has {status.st_size >> 20} MB, more than the {_SOURCE_BYTES >> 20} MB allowed"
    with path.open("rb") as file:
        return "is a binary file" if b"\0" in file.read(1 << 16) else ""


def check_headers(path: Path, folders: Sequence[Path]) -> None:
    """Refuse a source that includes what can be no header.

    Raises
    ------
    InterfaceError
        The message names the source and the header.
    """
    own = toolchain.include_dirs()
    waiting, seen = [path], {path}
    while waiting:
        file = waiting.pop()
        for name, quoted in depends.spelt(str(file), _INCLUDE):
            places = [file.parent, *folders] if quoted else folders
            found = next((p for place in places if (p := place / name).exists()), None)
            if found is None or found in seen or found.is_dir():
                continue
            seen.add(found)
            try:
                wrong = unreadable(found)
            except OSError as error:
                wrong = f"cannot be read ({error.strerror})"
            if wrong:
                raise InterfaceError(f"{file}: the header {found} {wrong}; expected C++ text")
            if not depends.is_installed(str(found)) and found.parent not in own:
                waiting.append(found)
