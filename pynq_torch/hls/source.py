"""One C++ source as libclang sees it, with the headers it could not find replaced by nothing.

A kernel's interface seldom depends on the headers that are missing on a PC (a vendor's maths
library, a testbench's image reader), so a missing header is remembered, not fatal.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pynq_torch.errors import InterfaceError, needs

from . import headers, toolchain
from .clang_headers import precompiled
from .directives import Pragma
from .long_tables import without_long_tables
from .preprocess import Preprocessed, check_headers, complaints, preprocess, unreadable

with needs("clang", "Reading HLS C++"):
    from clang import cindex

# Numbers of types that libclang has and its bindings have no word for: _Float16 and the like.
for _number in range(32, 40):
    with suppress(ValueError):  # a later release of the bindings has one
        cindex.TypeKind(_number)

__all__ = ["SourceUnit", "check_macros", "folders", "read_source", "read_text"]

# CXTranslationUnit_KeepGoing: templates are instantiated after a fatal error too.
_PARSE_OPTIONS = 0x200
_CXX = ("-x", "c++", "-std=gnu++17")
#: The tools' own: `size` and `byte` are names of std since C++17, and may be the source's.
_OLDER = "-std=gnu++14"
# Old C declares `static x = 0;`, which g++ takes with a warning.
_C = ("-x", "c", "-std=gnu17")
_CLANG = ("-nostdinc", "-nostdinc++", "-w", "-ferror-limit=0", "-Wno-error=implicit-int")
_NO_HEADER = re.compile(r"fatal error: (.+): No such file")
_DEFINE = re.compile(r"[A-Za-z_]\w*(?:\([^()]*\))?(?:=.*)?")
_MISSING = re.compile(r"'([^']+)' file not found")
_LINE_MARKER = re.compile(r'^#\s*(?:line\s+)?(\d+)\s+"((?:[^"\\]|\\.)*)"')
_DIRECTIVE = re.compile(r"^[ \t]*#.*", re.MULTILINE)
#: Where the lines behind it are from.
_MARKER = re.compile(r'# \d+ "[^"]*"(.*)')
_PRAGMA_LINE = re.compile(r"\s*#\s*pragma\b")
_MACRO = re.compile(r"^#define (\w+) (.+)$", re.MULTILINE)
_PRAGMA = re.compile(r"^\s*#\s*pragma\s+HLS\s+(.*)$", re.IGNORECASE)
_OTHER_PRAGMA = re.compile(r"^\s*#\s*pragma\s+(\w.*)$")
#: Texts of several lines, in which a line of a pragma is none.
_RAW_TEXT = re.compile(r'\bR"(\w*)\(.*?\)\1"', re.DOTALL)
_FILE = re.compile(r'^# \d+ "((?:[^"\\]|\\.)*)" 1', re.MULTILINE)
_MAX_MISSING = 40
#: The syntax trees that were used last: registers, lint and a testbench are about the same source.
#: One that is in use is not among them, since libclang's belong to one thread.
_KEPT: OrderedDict[str | None, cindex.TranslationUnit] = OrderedDict()
_MAX_KEPT = 2


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
    said : str
        What the preprocessor complained about.
    others : tuple of Pragma
        The active pragmas that are not of HLS, with what is behind ``#pragma``.
    """

    path: Path
    unit: cindex.TranslationUnit
    pragmas: tuple[Pragma, ...]
    missing: tuple[str, ...]
    errors: tuple[str, ...]
    options: tuple[str, ...] = ()
    said: str = ""
    others: tuple[Pragma, ...] = ()

    def complaints(self) -> tuple[int, str]:
        """Return the exit status of g++ on the source, and its messages."""
        return complaints(self.path, [*_language(self.path), "-w", *self.options])

    def macros(self) -> dict[str, str]:
        """Return the macros without arguments that are defined at the end of the file."""
        return {match[1]: match[2].strip() for match in _MACRO.finditer(self._preprocess("-dM"))}

    def mentions(self, name: str) -> bool:
        """Return whether code or a macro uses a name; pragmas and system headers do not count."""
        if self.missing:  # a header that is not there may define it
            return True
        word, is_own = re.compile(rf"\b{name}\b"), True
        for line in self._preprocess("-dD").split("\n"):
            if marker := _MARKER.match(line):
                is_own = "3" not in marker[1].split()  # GCC's flag of a system header
            elif is_own and word.search(line) and not _PRAGMA_LINE.match(line):
                return True
        return False

    def _preprocess(self, option: str) -> str:
        return preprocess(self.path, [*_language(self.path), "-w", *self.options, option]).text


@contextmanager
def read_source(
    path: Path,
    include_dirs: Sequence[Path] = (),
    defines: Sequence[str] = (),
    appendix: str = "",
    light: Sequence[Path] = (),
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
        C++ that is parsed as if it were at the end of the file.
    light : sequence of pathlib.Path
        Folders of HLS headers that come before the usual ones, and need no precompiled form.

    Raises
    ------
    InterfaceError
        The file cannot be read.
    """
    check_macros(defines)
    text = read_text(path)
    with tempfile.TemporaryDirectory(prefix="pynq_torch_stubs_") as stubs:
        folders = [path.parent, *include_dirs, *light, *toolchain.include_dirs()]
        common = [f"-I{folder}" for folder in folders] + [f"-D{define}" for define in defines]
        common.append(f"-I{stubs}")  # what is included by way of it is the kernel's own
        # First the preprocessor, in a process with limits: what has no end must not reach libclang.
        preprocessed, missing = _settle(path, common, folders, Path(stubs))
        arguments, taken = _arguments(path, common, preprocessed.text, defines)
        if light:
            taken = []
            arguments += ["-Xclang", "-fexperimental-max-bitint-width=65536"]
        content = f"{text}\n{appendix}\n"
        key = None if missing else _key(path, content, preprocessed.text, arguments, stubs)
        unit = _KEPT.pop(key, None)
        included = {_unquoted(match[1]) for match in _FILE.finditer(preprocessed.text)}
        more = without_long_tables(sorted(included - {str(path)})) if unit is None else ()
        unsaved = [(os.fsencode(path), content), *more]
        if unit is None:
            unit = _tree(unsaved, arguments, taken, folders, Path(stubs), missing)
        if any("reference to '" in one for one in _errors(unit)):
            common.append(_OLDER)
            unit = _parse(unsaved, [*arguments, _OLDER], folders, Path(stubs), missing)
        (pragmas, others), errors = _active_pragmas(path, preprocessed), _errors(unit)
        said = preprocessed.errors
        yield SourceUnit(path, unit, pragmas, tuple(missing), errors, tuple(common), said, others)
        if not missing:
            _KEPT[key] = unit
            while len(_KEPT) > _MAX_KEPT:
                _KEPT.popitem(last=False)


def _key(path: Path, content: str, text: str, arguments: Sequence[str], stubs: str) -> str:
    """Return what a syntax tree follows from: all that libclang reads, comments by their dates."""
    settled = [one for one in arguments if one != f"-I{stubs}"]
    whole = hashlib.sha256(repr((path, content, settled)).encode())
    whole.update(text.encode(errors="replace"))
    for name in sorted({_unquoted(match[1]) for match in _FILE.finditer(text)}):
        with suppress(OSError):
            whole.update(f"{name} {os.stat(name).st_mtime_ns}".encode())
    return whole.hexdigest()


def _arguments(
    path: Path, common: Sequence[str], text: str, defines: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return libclang's arguments, and those for headers that are precompiled."""
    system = [f"-isystem{folder}" for folder in toolchain.system_include_dirs()]
    places = [f"-I{folder}" for folder in toolchain.include_dirs()]
    begin = [*_language(path), *_CLANG]
    return [*begin, *common, *system], precompiled(text, [*begin, *places, *system], defines)


def folders(given: Sequence[Path | str], name: str = "include_dirs") -> list[Path]:
    """Return paths that a caller gave; one alone would be read letter by letter, and is refused."""
    if isinstance(given, (str, Path)):
        raise InterfaceError(f"{name} takes a list: {name}=[{str(given)!r}]")
    return [Path(one) for one in given]


def check_macros(defines: Sequence[str]) -> None:
    """Raise `InterfaceError` for what no compiler takes as ``-D``."""
    if isinstance(defines, str):
        raise InterfaceError(f"defines takes a list: defines=[{defines!r}]")
    for define in defines:
        if not _DEFINE.fullmatch(define):
            raise InterfaceError(f"-D {define!r} is no macro; expected NAME or NAME=VALUE")


def _errors(unit: cindex.TranslationUnit) -> tuple[str, ...]:
    """Return what libclang complains about, with file and line."""
    return tuple(
        f"{item.location.file}:{item.location.line}: {item.spelling}"
        for item in unit.diagnostics
        if item.severity >= cindex.Diagnostic.Error
    )


def read_text(path: Path) -> str:
    """Return a source's text.

    Raises
    ------
    InterfaceError
        It is no file, is too large, holds bytes of no text, cannot be read, or has a name that
        is no UTF-8.
    """
    try:
        wrong = unreadable(path)
        if wrong:
            raise InterfaceError(f"{path}: {wrong}; expected a C++ source")
        str(path).encode()
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InterfaceError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeEncodeError as error:
        raise InterfaceError(
            f"{str(path)!r} is no UTF-8, and libclang reads no other names; "
            "rename the file or folder"
        ) from error
    except ValueError as error:  # a name with a NUL
        raise InterfaceError(f"{str(path)!r} is no file's name: {error}") from error


def _settle(
    path: Path, common: Sequence[str], folders: Sequence[Path], stubs: Path
) -> tuple[Preprocessed, list[str]]:
    """Preprocess `path` with stand-ins for missing headers; return the names of those headers."""
    missing: list[str] = []
    options = [*_language(path), "-w", *common]
    for _ in range(_MAX_MISSING):
        check_headers(path, folders)
        preprocessed = preprocess(path, options)
        header = _NO_HEADER.search(preprocessed.errors)
        if header is None or (stubs / header[1]).exists():
            break
        real = headers.real_name(header[1], folders)
        if real is None:
            missing.append(header[1])
        headers.write_stand_in(stubs, header[1], real)
    return preprocessed, missing


def _tree(
    unsaved: Sequence[tuple[bytes, str]], arguments: Sequence[str], taken: Sequence[str],
    folders: Sequence[Path], stubs: Path, missing: list[str],
) -> cindex.TranslationUnit:  # fmt: skip
    """Parse the first of some texts, with what is `taken` of precompiled headers where that goes.

    libclang refuses those of headers that were installed again, the same to the letter.
    """
    if taken:
        with suppress(cindex.TranslationUnitLoadError):
            unit = _parse(unsaved, [*arguments, *taken], folders, stubs, missing)
            if not _errors(unit):  # which may be the precompiled headers'
                return unit
    return _parse(unsaved, arguments, folders, stubs, missing)


def _parse(
    unsaved: Sequence[tuple[bytes, str]],
    arguments: Sequence[str],
    folders: Sequence[Path],
    stubs: Path,
    missing: list[str],
) -> cindex.TranslationUnit:
    """Parse the first of some texts; a header that only libclang lacks gets a stand-in too."""
    seen = set(missing)
    index = cindex.Index.create()
    while True:
        unit = index.parse(
            unsaved[0][0],
            args=[os.fsencode(argument) for argument in arguments],
            unsaved_files=[*unsaved],
            options=_PARSE_OPTIONS,
        )
        found = (_MISSING.search(item.spelling) for item in unit.diagnostics)
        new = {match[1] for match in found if match} - seen
        if not new or len(seen) > _MAX_MISSING:
            return unit
        seen |= new
        for name in sorted(new):
            real = headers.real_name(name, folders)
            if real is None:
                missing.append(name)
            headers.write_stand_in(stubs, name, real)


def _active_pragmas(
    path: Path, preprocessed: Preprocessed
) -> tuple[tuple[Pragma, ...], tuple[Pragma, ...]]:
    """Return the HLS pragmas that survive the preprocessor, and the other ones, in order.

    libclang keeps no pragmas, and its tokens include what an ``#if`` removed; g++ -E drops those
    and expands ``_Pragma`` and macros that contain it.
    """
    pragmas: list[Pragma] = []
    others: list[Pragma] = []
    file, line, counted = str(path), 0, 0
    text = _RAW_TEXT.sub(lambda one: "\n" * one[0].count("\n"), preprocessed.text)
    for row in _DIRECTIVE.finditer(text):
        line += text.count("\n", counted, row.start())
        counted = row.start()
        marker, pragma = _LINE_MARKER.match(row[0]), _PRAGMA.match(row[0])
        if marker:
            file, line, counted = _unquoted(marker[2]), int(marker[1]), row.end() + 1
        elif pragma:
            pragmas.append(Pragma(file, line, _spelt(pragma.group(1).strip())))
        elif other := _OTHER_PRAGMA.match(row[0]):
            others.append(Pragma(file, line, other[1]))
    return tuple(pragmas), tuple(others)


def _spelt(text: str) -> str:
    r"""Return a pragma with the letters that g++ writes as ``\U000000e4``."""
    return re.sub(r"\\U([0-9a-f]{8})", lambda match: chr(int(match[1], 16)), text)


def _unquoted(text: str) -> str:
    """Return a file's name as g++ quotes it in a line marker."""

    def plain(match: re.Match[str]) -> str:
        code = match[1]
        return {"n": "\n"}.get(code) or (chr(int(code, 8)) if code.isdigit() else code)

    return re.sub(r"\\([0-7]{3}|.)", plain, text) if "\\" in text else text


def _language(path: Path) -> tuple[str, ...]:
    return _C if path.suffix == ".c" else _CXX
