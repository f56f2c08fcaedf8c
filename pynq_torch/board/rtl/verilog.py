"""What Verilog files define and use, as far as finding the files of a design needs it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["VerilogFile", "closure", "hdl_files", "scan", "verilog_files"]

SUFFIXES = (".sv", ".v")
# Folders of a vendor project or a checkout whose Verilog is a testbench, a netlist or a copy.
_SKIPPED = {
    ".git", ".venv", "node_modules", "__pycache__", ".autopilot", ".apc", ".Xil", "csim", "sim",
    "tv", "wrapc", "wrapc_pc", ".ipynb_checkpoints", "xsim", "tb", "bench", "testbench",
}  # fmt: skip
_BENCH = re.compile(r"(tb_.*|.*_tb|.*\.autotb|.*_sim_netlist|.*_stub)")
_UNIT = re.compile(
    r"^[ \t]*(?:\(\*.*?\*\)\s*)?(?P<kind>module|macromodule|interface|package)\s+"
    r"(?:automatic\s+|static\s+)?(?P<name>[A-Za-z_]\w*)",
    re.MULTILINE,
)
_USE = re.compile(r"\b([A-Za-z_]\w*)(?=\s*#\s*\(|\s+[A-Za-z_]\w*\s*(?:\[[^\]]*\]\s*)*\(|\s*::)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFINE = re.compile(r"^\s*`define\s", re.MULTILINE)
_COMMENT = re.compile(r'(?P<text>"(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_EITHER = re.compile(r"`(?:else|elsif)\b")
_MAX_BYTES = 16 << 20


@dataclass(frozen=True)
class VerilogFile:
    """What one Verilog file defines and which words it uses."""

    path: Path
    modules: tuple[str, ...]
    packages: tuple[str, ...]  # packages and interfaces, which come before their users
    words: frozenset[str]
    defines: bool  # nothing but macros
    uses: frozenset[str]  # of these words, what it instantiates, or takes names from
    twice: frozenset[str]  # modules that it defines more than once


def verilog_files(folder: Path) -> Iterator[Path]:
    """Yield the Verilog files below `folder`, testbenches and netlists apart."""
    return hdl_files(folder, SUFFIXES, "vhdl")


def hdl_files(folder: Path, suffixes: Sequence[str], *skipped: str) -> Iterator[Path]:
    """Yield the files below `folder` with one of `suffixes`, testbenches and netlists apart."""
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(item for item in folders if item not in {*_SKIPPED, *skipped})
        for path in (Path(root) / file for file in sorted(files)):
            if path.suffix in suffixes and not _BENCH.fullmatch(path.stem) and path.is_file():
                yield path


_scans: dict[Path, tuple[tuple[int, int], VerilogFile]] = {}


def scan(path: Path) -> VerilogFile:
    """Read what a file defines; remembered while the file stays as it is."""
    status = path.stat()
    stamp = status.st_mtime_ns, status.st_size
    known = _scans.get(path)
    if known is not None and known[0] == stamp:
        return known[1]
    text = ""
    if status.st_size <= _MAX_BYTES:
        # Editors of Windows begin a file with a mark of its encoding.
        text = path.read_text(encoding="utf-8-sig", errors="replace")
        text = _COMMENT.sub(lambda match: match["text"] or " ", text)
    units = [(match["kind"], match["name"]) for match in _UNIT.finditer(text)]
    modules = tuple(name for kind, name in units if kind in ("module", "macromodule"))
    packages = tuple(name for kind, name in units if kind in ("package", "interface"))
    words = frozenset(_WORD.findall(text)) - {*modules, *packages}
    defines = not units and _DEFINE.search(text) is not None
    # Between `ifdef and `else a file may have two of a kind.
    twice = frozenset(m for m in modules if modules.count(m) > 1 and not _EITHER.search(text))
    uses = frozenset(_USE.findall(text))
    found = VerilogFile(path, modules, packages, words, defines, uses, twice)
    _scans[path] = (stamp, found)
    return found


def closure(top: Path, files: Sequence[Path]) -> list[Path]:
    """Return the files that the top's file needs, directly or not: packages, then modules."""
    scans = [scan(file) for file in files]
    modules = {unit: found.path for found in reversed(scans) for unit in found.modules}
    packages = {unit: found.path for found in reversed(scans) for unit in found.packages}
    modules |= dict.fromkeys(scan(top).modules, top)
    first: list[Path] = []
    rest: list[Path] = []
    placed: set[Path] = set()

    def place(path: Path) -> None:
        if path in placed:
            return
        placed.add(path)
        found = scan(path)
        words = sorted(found.words)
        for word in words:
            if word in packages:
                place(packages[word])
        (first if found.packages else rest).append(path)
        for word in words:
            if word in modules:
                place(modules[word])

    place(top)
    macros = [found.path for found in scans if found.defines and found.path.parent == top.parent]
    return [*(path for path in macros if path not in placed), *first, *rest]
