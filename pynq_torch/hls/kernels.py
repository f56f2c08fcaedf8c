"""Finding the C++ of a kernel by its name, in this project's folders or anybody's."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pynq_torch.paths import KERNELS, environment_kernels

__all__ = ["KernelSource", "find_kernel", "has_main"]

SUFFIXES = (".cpp", ".cc", ".cxx", ".c")
# Folders of a vendor project or a checkout without sources.
_SKIPPED = {
    ".git", ".venv", "node_modules", "__pycache__", "csim", "sim", "syn", "impl", ".autopilot",
    ".apc", ".Xil", ".ipynb_checkpoints", "verilog", "vhdl",
}  # fmt: skip
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_INTERFACE = re.compile(r"#\s*pragma\s+HLS\s+INTERFACE", re.IGNORECASE)
_MAX_BYTES = 4 << 20


@dataclass(frozen=True)
class KernelSource:
    """Where a kernel's C++ is.

    Parameters
    ----------
    name : str
        The kernel, as the third field of its VLNV.
    source : pathlib.Path
        The file that defines the top function.
    top : str
        The top function; the name by default.
    folder : pathlib.Path
        The kernel's folder; other sources in it are compiled in where they are needed.
    include_dirs : tuple of pathlib.Path
        Further include folders.
    defines : tuple of str
        Macros, ``NAME`` or ``NAME=VALUE``.
    """

    name: str
    source: Path
    top: str = ""
    folder: Path = Path()
    include_dirs: tuple[Path, ...] = field(default=())
    defines: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", Path(self.source).resolve())
        if not self.top:
            object.__setattr__(self, "top", self.name)
        if self.folder == Path():
            object.__setattr__(self, "folder", self.source.parent)


def find_kernel(name: str, paths: Sequence[Path | str] = ()) -> KernelSource | None:
    """Find the sources of the kernel `name`.

    A folder called `name` has priority. Published designs have no common layout, so any file
    below the folders that defines a function of that name will do. A file with ``main`` is a
    testbench, and is used only if no other file defines the function. In the library's own folder
    only the name of a kernel's folder counts: what else its files define are helpers.

    Parameters
    ----------
    name : str
        As in the VLNV ``xilinx.com:hls:<name>:1.0``.
    paths : sequence of path
        Folders, searched in order, then those of ``PYNQ_TORCH_KERNELS``.

    Returns
    -------
    KernelSource or None
        None where no file defines the function.
    """
    folders = [Path(path) for path in paths]
    folders += environment_kernels()
    named = [item for folder in folders for item in (folder / name, folder) if item.name == name]
    for candidate in (*named, *(folder for folder in folders if folder != KERNELS)):
        found = _best(name, candidate)
        if found is not None:
            return found
    # A macro may spell the function's name: the compiler knows, which reads it later.
    files = (folder / f"{name}{suffix}" for folder in named for suffix in SUFFIXES)
    file = next((path for path in files if path.is_file() and _has_ports(path)), None)
    return None if file is None else KernelSource(name, file)


def _sources(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(item for item in folders if item not in _SKIPPED)
        for file in sorted(files):
            path = Path(root) / file
            if file.endswith(SUFFIXES) and path.is_file():  # no pipe, no link to nowhere
                yield path


def _best(name: str, folder: Path) -> KernelSource | None:
    """Return the most likely source: with pragmas, called like the kernel, high up."""
    ranked: list[tuple[tuple[bool, bool, bool, int, str], Path]] = []
    pattern = re.compile(rf"(?<![\w.>:]){re.escape(name)}\s*\([^;{{}}]*\)\s*(?:noexcept\s*)?\{{")
    for path in _sources(folder):
        if path.stat().st_size > _MAX_BYTES:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if name not in text:
            continue
        code = strip_comments(text)
        if not any(_is_definition(code, match.start()) for match in pattern.finditer(code)):
            continue
        pragmas = _INTERFACE.search(text) is not None
        depth = len(path.relative_to(folder).parts)
        rank = (_main_in(code), not pragmas, path.stem != name, depth, str(path))
        ranked.append((rank, path))
    return KernelSource(name, min(ranked)[1]) if ranked else None


def _has_ports(path: Path) -> bool:
    if path.stat().st_size > _MAX_BYTES:
        return False
    return _INTERFACE.search(path.read_text(encoding="utf-8", errors="replace")) is not None


def _is_definition(code: str, at: int) -> bool:
    """Tell ``void f(...) {`` from ``else f(...) {`` and from a call in a condition."""
    before = code[:at].rstrip()
    word = re.search(r"[\w>&*\]]+$", before)
    return word is not None and word.group() not in {"return", "else", "new", "case", "throw"}


def strip_comments(text: str) -> str:
    """Return C++ without comments and string literals, lines kept."""
    return _COMMENTS.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def _main_in(code: str) -> bool:
    return re.search(r"\bmain\s*\([^;{}]*\)\s*\{", code) is not None


def has_main(path: Path) -> bool:
    """Return whether a source defines ``main``: a testbench, or a program."""
    return _main_in(strip_comments(path.read_text(encoding="utf-8", errors="replace")))


def companions(kernel: KernelSource, symbols: set[str]) -> list[Path]:
    """Return the sources of the kernel's folder that define one of the undefined `symbols`."""
    wanted = {symbol.split("<")[0].split("::")[-1] for symbol in symbols}
    found = []
    for path in _sources(kernel.folder):
        if path.resolve() == kernel.source:
            continue
        code = strip_comments(path.read_text(encoding="utf-8", errors="replace"))
        words = set(re.findall(r"\b[A-Za-z_]\w*\b", code))
        if words & wanted and not _main_in(code):
            found.append(path)
    return found
