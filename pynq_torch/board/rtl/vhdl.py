"""VHDL kernels: GHDL's synthesis writes a design as one Verilog file, which is built as any other.

Generics are those of the handoff, so each instance has a file of its own; it stays in the cache.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pynq_torch.errors import RtlError
from pynq_torch.hls import cache

from . import float_cores
from .ghdl import synthesise
from .verilog import hdl_files

if TYPE_CHECKING:
    from pynq_torch.board.handoff import IpInstance

__all__ = ["convert", "entities_of", "vhdl_files"]

SUFFIXES = (".vhd", ".vhdl")
_MAX_BYTES = 16 << 20
_COMMENT = re.compile(r'(?P<text>"[^"\n]*")|--[^\n]*|/\*.*?\*/', re.DOTALL)
_UNIT = re.compile(r"\b(?P<kind>entity|package)\s+(?P<name>\w+)\s+is\b", re.IGNORECASE)
# `use work.name`, `entity work.name`, `package body name`.
_BEFORE = re.compile(r"\b(?:use|entity|context)\s+\w+\s*\.\s*(\w+)|\bpackage\s+body\s+(\w+)")
_GENERICS = re.compile(r"\s*generic\s*\((?P<list>.*?)\)\s*;\s*(?:port|begin|end)\b", re.I | re.S)
_GENERIC = re.compile(r"(?P<names>\w[\w\s,]*?)\s*:\s*(?:in\s+)?(?P<type>\w+)(?P<rest>.*)", re.S)
_RANGE = re.compile(r"\s*\(\s*(\d+)\s+(?:downto|to)\s+(\d+)\s*\)", re.IGNORECASE)


@dataclass(frozen=True)
class _VhdlFile:
    """What one VHDL file defines, and the words it uses; words are in small letters."""

    path: Path
    entities: tuple[str, ...]  # as they are written
    units: frozenset[str]  # entities and packages
    words: frozenset[str]
    before: frozenset[str]  # of these words, what has to be analysed first
    generics: dict[str, tuple[tuple[str, str, str], ...]]  # of an entity: name, type, the rest


_scans: dict[Path, tuple[tuple[int, int], _VhdlFile]] = {}


def vhdl_files(folder: Path) -> Iterator[Path]:
    """Yield the VHDL files below `folder`, testbenches apart, and what Vivado wrote for a core."""
    for path in hdl_files(folder, SUFFIXES):
        if not any(map(float_cores.parse, entities_of(path))):
            yield path


def entities_of(path: Path) -> tuple[str, ...]:
    """Return the names of the entities that a VHDL file defines, as they are written."""
    return _scan(path).entities


def convert(
    name: str, top: str, files: Sequence[Path], ip: IpInstance | None = None, *, module: str = ""
) -> Path:
    """Return the Verilog of the entity `top`, from the cache where it is unchanged.

    Parameters
    ----------
    name : str
        The kernel, for messages.
    top : str
        The entity; VHDL has no case.
    files : sequence of path
        VHDL that it may need; of two that define one name, the first counts.
    ip : IpInstance, optional
        The kernel in the handoff, whose parameters are the generics.
    module : str
        The name that the Verilog has; that of the entity where it is empty.

    Raises
    ------
    RtlLintError
        What GHDL says, with file and line.
    RtlError
        There is no GHDL, or a generic has a value that its type does not.
    """
    needed = _closure(top, files)
    owner = next(found for found in map(_scan, needed) if top.lower() in found.generics)
    program = _ghdl(name, owner.path)
    generics = tuple(_options(name, owner, top, ip))
    module, dated = module or top, os.stat(program).st_mtime_ns
    key = cache.digest("vhdl", top, module, *needed, *generics, program, dated)

    def make() -> cache.Entry:
        with cache.scratch() as folder, tempfile.TemporaryDirectory() as work:
            text = synthesise(program, name, top, needed, generics, Path(work))
            text = re.sub(rf"(?im)^module {top}\b", f"module {module}", text)
            cache.write_text(folder / f"{module}.v", text)
            return cache.store(key, folder, [str(path) for path in needed], (), {})

    return Path(cache.find_or_make(key, (), make)["path"]) / f"{module}.v"


def _ghdl(name: str, path: Path) -> str:
    program = shutil.which("ghdl")
    if program is None:
        raise RtlError(
            f"{name}: its RTL is VHDL ({path}), which board rtl reads with GHDL, and no ghdl is on "
            "the PATH: install it (sudo apt-get install ghdl). Or export the kernel as Verilog, or "
            "use board csim",
            name,
        )
    return program


def _scan(path: Path) -> _VhdlFile:
    """Read what a file defines; remembered while the file stays as it is."""
    status = path.stat()
    stamp = status.st_mtime_ns, status.st_size
    known = _scans.get(path)
    if known is not None and known[0] == stamp:
        return known[1]
    text = ""
    if status.st_size <= _MAX_BYTES:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
        text = _COMMENT.sub(lambda match: match["text"] or " ", text)
    units = list(_UNIT.finditer(text))
    entities = [unit for unit in units if unit["kind"].lower() == "entity"]
    found = _VhdlFile(
        path,
        tuple(unit["name"] for unit in entities),
        frozenset(unit["name"].lower() for unit in units),
        frozenset(re.findall(r"\w+", text.lower())),
        frozenset(match[1] or match[2] for match in _BEFORE.finditer(text.lower())),
        {unit["name"].lower(): tuple(_generics(text[unit.end() :])) for unit in entities},
    )
    _scans[path] = (stamp, found)
    return found


def _generics(body: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and the rest of each generic at the head of an entity."""
    clause = _GENERICS.match(body)
    for item in clause["list"].split(";") if clause is not None else ():
        match = _GENERIC.match(item.strip())
        for generic in re.findall(r"\w+", match["names"]) if match is not None else ():
            assert match is not None
            yield generic, match["type"].lower(), match["rest"]


def _closure(top: str, files: Sequence[Path]) -> list[Path]:
    """Return the files that an entity needs, directly or not, in the order of analysis.

    Any word may name a component; only packages, and entities that are named as such, have to be
    analysed before their users.
    """
    owners: dict[str, _VhdlFile] = {}
    for found in map(_scan, files):
        for unit in found.units:
            owners.setdefault(unit, found)
    needed: set[Path] = set()
    waiting = [owners[top.lower()]]
    while waiting:
        found = waiting.pop()
        if found.path not in needed:
            needed.add(found.path)
            waiting += [owners[word] for word in found.words & owners.keys()]
    ordered: dict[Path, None] = {}
    begun: set[Path] = set()

    def place(found: _VhdlFile) -> None:
        if found.path not in begun:
            begun.add(found.path)
            for unit in sorted(found.before & owners.keys()):
                place(owners[unit])
            ordered[found.path] = None

    for path in files:
        if path in needed:
            place(_scan(path))
    return list(ordered)


def _options(name: str, owner: _VhdlFile, top: str, ip: IpInstance | None) -> Iterator[str]:
    """Yield -g options for the generics that the design sets."""
    given = {key.lower(): value for key, value in ip.parameters.items()} if ip is not None else {}
    for generic, kind, rest in owner.generics[top.lower()]:
        value = given.get(generic.lower(), "")
        if not value:
            continue
        literal = _literal(value, kind, rest)
        if literal is None:
            raise RtlError(
                f"{name}: generic {generic} of entity {top} is {value!r} in the handoff; a value "
                f"of type {kind} is expected. Build the overlay again with one",
                name,
            )
        yield f"-g{generic}={literal}"


def _literal(value: str, kind: str, rest: str) -> str | None:
    """Return a value of the handoff as GHDL takes it, None where the type has no such value."""
    number = re.fullmatch(r'"?(?P<base>0[xb])?(?P<digits>[0-9A-F]+)"?', value, re.IGNORECASE)
    base = {"": 10, "0x": 16, "0b": 2}[(number["base"] or "").lower()] if number else 10
    if kind in ("integer", "natural", "positive"):
        if number is not None and base != 10:
            return str(int(number["digits"], base))
        return value if re.fullmatch(r"-?\d+", value) else None
    if kind == "boolean":
        return {"1": "true", "0": "false"}.get(value, value.lower())
    if kind in ("std_logic_vector", "std_ulogic_vector", "bit_vector", "unsigned", "signed"):
        if number is None:
            return None
        digits = number["digits"]
        if base == 10:  # a text of bits
            return digits if not digits.strip("01") else None
        bounds = _RANGE.match(rest)
        width = abs(int(bounds[1]) - int(bounds[2])) + 1 if bounds else len(digits) * (base // 4)
        return f"{int(digits, base):0{width}b}"[-width:]
    return f"'{value}'" if kind in ("std_logic", "std_ulogic", "bit") else value
