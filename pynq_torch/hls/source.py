"""One C++ source as libclang sees it, with the headers it could not find replaced by nothing.

A kernel's interface seldom depends on the headers that are missing on a PC (a vendor's maths
library, a testbench's image reader), so a missing header is remembered, not fatal.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pynq_torch.errors import InterfaceError, needs

from . import headers, toolchain
from .directives import Pragma

with needs("clang", "Reading HLS C++"):
    from clang import cindex

__all__ = ["SourceUnit", "read_source"]

# CXTranslationUnit_KeepGoing: templates are instantiated after a fatal error too.
_PARSE_OPTIONS = 0x200
_CXX = ("-x", "c++", "-std=gnu++17")
# Old C declares `static x = 0;`, which g++ takes with a warning.
_C = ("-x", "c", "-std=gnu17")
_CLANG = ("-nostdinc", "-nostdinc++", "-w", "-ferror-limit=0", "-Wno-error=implicit-int")
_MISSING = re.compile(r"'([^']+)' file not found")
_LINE_MARKER = re.compile(r'^#\s*(?:line\s+)?(\d+)\s+"((?:[^"\\]|\\.)*)"')
_MACRO = re.compile(r"^#define (\w+) (.+)$", re.MULTILINE)
_PRAGMA = re.compile(r"^\s*#\s*pragma\s+HLS\s+(.*)$", re.IGNORECASE)
_MAX_MISSING = 40


@dataclass
class SourceUnit:
    """A parsed source.

    Parameters
    ----------
    path : pathlib.Path
        The source file.
    unit : clang.cindex.TranslationUnit
        libclang's syntax tree.
    pragmas : tuple of Pragma
        Every HLS pragma that is active, macros expanded.
    missing : tuple of str
        Headers that were not found.
    errors : tuple of str
        What libclang complained about, with file and line.
    options : tuple of str
        Include folders and macros, for the preprocessor.
    """

    path: Path
    unit: cindex.TranslationUnit
    pragmas: tuple[Pragma, ...]
    missing: tuple[str, ...]
    errors: tuple[str, ...]
    options: tuple[str, ...] = ()

    def macros(self) -> dict[str, str]:
        """Return the macros without arguments that are defined at the end of the file."""
        text = _preprocess(self.path, [*self.options, "-dM"])
        return {match[1]: match[2].strip() for match in _MACRO.finditer(text)}


@contextmanager
def read_source(
    path: Path,
    include_dirs: Sequence[Path] = (),
    defines: Sequence[str] = (),
    appendix: str = "",
) -> Iterator[SourceUnit]:
    """Parse `path`; the syntax tree is valid inside the ``with`` block.

    Parameters
    ----------
    path : pathlib.Path
        A ``.cpp``, ``.cc``, ``.c`` or header file.
    include_dirs : sequence of pathlib.Path
        Searched before the HLS headers.
    defines : sequence of str
        ``NAME`` or ``NAME=VALUE``.
    appendix : str
        C++ that is parsed as if it stood at the end of the file.

    Raises
    ------
    InterfaceError
        The file cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InterfaceError(f"{path}: cannot be read ({error.strerror})") from error
    with tempfile.TemporaryDirectory(prefix="pynq_torch_stubs_") as stubs:
        folders = [path.parent, *include_dirs, *toolchain.include_dirs()]
        common = [f"-I{folder}" for folder in folders] + [f"-D{define}" for define in defines]
        common += ["-idirafter", stubs]
        arguments = [*_language(path), *_CLANG, *common]
        for folder in toolchain.system_include_dirs():
            arguments += ["-isystem", folder]
        content = f"{text}\n{appendix}\n"
        missing: list[str] = []
        misspelt: list[str] = []
        index = cindex.Index.create()
        while True:
            unit = index.parse(
                str(path),
                args=arguments,
                unsaved_files=[(str(path), content)],
                options=_PARSE_OPTIONS,
            )
            new = [
                match.group(1)
                for match in (_MISSING.search(item.spelling) for item in unit.diagnostics)
                if match and match.group(1) not in missing + misspelt
            ]
            if not new or len(missing) > _MAX_MISSING:
                break
            for name in new:
                real = headers.real_name(name, folders)
                (missing if real is None else misspelt).append(name)
                headers.write_stand_in(Path(stubs), name, real)
        errors = tuple(
            f"{item.location.file}:{item.location.line}: {item.spelling}"
            for item in unit.diagnostics
            if item.severity >= cindex.Diagnostic.Error
        )
        pragmas = _active_pragmas(path, common)
        yield SourceUnit(path, unit, pragmas, tuple(missing), errors, tuple(common))


def _active_pragmas(path: Path, arguments: Sequence[str]) -> tuple[Pragma, ...]:
    """Return the HLS pragmas that survive the preprocessor, in order.

    libclang keeps no pragmas, and its tokens include what an ``#if`` removed; g++ -E drops those
    and expands ``_Pragma`` and macros that contain it.
    """
    pragmas: list[Pragma] = []
    file, line = str(path), 0
    for row in _preprocess(path, arguments).splitlines():
        marker = _LINE_MARKER.match(row)
        if marker:
            file, line = marker.group(2).replace("\\\\", "\\"), int(marker.group(1))
            continue
        pragma = _PRAGMA.match(row)
        if pragma:
            pragmas.append(Pragma(file, line, pragma.group(1).strip()))
        line += 1
    return tuple(pragmas)


def _preprocess(path: Path, arguments: Sequence[str]) -> str:
    """Return what g++ -E makes of `path`; what it complains about, libclang reports too."""
    command = [toolchain.compiler(), "-E", *_language(path), "-w", *arguments]
    answer = subprocess.run(
        [*command, str(path)],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=120,
    )
    return answer.stdout


def _language(path: Path) -> tuple[str, ...]:
    return _C if path.suffix == ".c" else _CXX
