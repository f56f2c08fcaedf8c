"""Finding the RTL of a kernel by its name: hand-written, or as Vitis HLS exported it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pynq_torch.errors import RtlError
from pynq_torch.paths import KERNELS

from . import archive, float_cores, vhdl
from .verilog import SUFFIXES, closure, scan, verilog_files

if TYPE_CHECKING:
    from pynq_torch.board.handoff import IpInstance

__all__ = ["RtlSource", "find_rtl", "modules_of"]

_DATA = (".dat", ".mem", ".hex", ".bin", ".mif", ".txt")
# Where exports are, best first: what was packaged is what the design has.
_EXPORTS = ("impl/ip/hdl/verilog", "impl/verilog", "syn/verilog", "hdl/verilog")
_SHOWN = 12


@dataclass(frozen=True)
class RtlSource:
    """The RTL of one kernel."""

    name: str  #: the kernel, as the third field of its VLNV
    top: str  #: the top module: of that name, but for the version that a packager adds
    folder: Path  #: of the top's file; ``$readmemh`` is relative to it
    files: tuple[Path, ...]  #: what the top needs, packages first
    include_dirs: tuple[Path, ...] = ()  #: for ```include``
    candidates: tuple[Path, ...] = ()  #: all files looked at: a new one may change the top
    data: tuple[Path, ...] = ()  #: files that ``$readmemh`` may read
    export: bool = False  #: generated: nobody edits it, so only errors count, not warnings
    ip: IpInstance | None = field(default=None, compare=False)  #: the kernel in the handoff


def find_rtl(
    kernel_paths: Sequence[Path | str], name: str, ip: IpInstance | None = None
) -> RtlSource | None:
    """Find the RTL of the kernel `name`.

    In each folder, in order: the folder called `name` (its ``rtl``, an export of Vitis HLS, an
    exported archive), then any Verilog below that defines a module `name`; each time VHDL counts
    where no Verilog does, through `vhdl.convert`. A folder that has the kernel's C++ and no RTL
    ends the search: RTL from elsewhere is another kernel's. Where no module is called `name`, one
    counts that lacks the packager's version, or has it (`ip.top_names`).

    Parameters
    ----------
    kernel_paths : sequence of path
        Folders with kernels.
    name : str
        As in the VLNV ``xilinx.com:hls:<name>:1.0``; the top module has this name.
    ip : IpInstance, optional
        The kernel in the handoff.

    Returns
    -------
    RtlSource or None
        None where no folder has RTL for the kernel.

    Raises
    ------
    RtlError
        The kernel's folder has RTL, and none of its modules is called `name`; or what is called so,
        or one that it needs, is defined in several files that nothing tells apart.
    """
    missing: RtlError | None = None
    for top in ip.top_names if ip is not None else (name,):
        # The library's own kernels are not packaged: there only the IP's name counts.
        paths = [path for path in map(Path, kernel_paths) if top == name or path != KERNELS]
        try:
            found, ends = _find(paths, name, top, ip)
        except _NoTopError as error:
            missing = missing or RtlError(str(error), name)
            continue
        if ends:
            return found
    if missing is not None:
        raise missing
    return None


class _NoTopError(RtlError):
    """RTL without a module of one name; there may be one of another name."""


def _find(
    paths: Sequence[Path], name: str, top: str, ip: IpInstance | None
) -> tuple[RtlSource | None, bool]:
    """Return the RTL whose top module is called `top`, and whether the search ends here."""
    for path in paths:
        if not path.is_dir():
            continue
        here = (path / name, path / top, path)
        named = next((f for f in here if f.name in (name, top) and f.is_dir()), None)
        if named is not None:
            found = _in_folder(named, path, top, ip)
        else:  # the library's own modules are kernels by their folder's name only
            found = _below(path, top, ip) if path != KERNELS else None
        if found is not None or _has_kernel(path, top):
            return (replace(found, name=name) if found is not None else None), True
    return None, False


def _has_kernel(path: Path, name: str) -> bool:
    """Tell whether a folder has the kernel's C++; raise where a file only seems to be its RTL."""
    from pynq_torch.hls import find_kernel

    kernel = find_kernel(name, [path])
    inside = kernel is not None and kernel.source.is_relative_to(path.resolve())
    bases = [path, kernel.source.parent] if kernel is not None and inside else [path]
    for folder in (folder for base in bases for folder in (base, base / "rtl")):
        files = [folder / f"{name}{suffix}" for suffix in SUFFIXES]
        if files := [file for file in files if file.is_file()]:
            raise _no_top(name, folder, files)
    return inside


def modules_of(path: Path) -> tuple[str, ...]:
    """Return the names of the modules that a Verilog file defines."""
    return scan(path).modules


def _in_folder(folder: Path, kernels: Path, name: str, ip: IpInstance | None) -> RtlSource | None:
    """Return the RTL in a kernel's own folder, with the modules that kernels share: ``hw/rtl``."""
    hand = folder / "rtl"
    if hand.is_dir():
        files = tuple(verilog_files(hand))
        top = next((file for file in files if name in modules_of(file)), None)
        if top is not None:
            library = tuple(verilog_files(kernels.parent / "rtl"))
            return _source(name, hand, top, files, library, ip, export=False)
        found = _vhdl_below(hand, name, ip)
        if found is not None:
            return found
        if seen := (*files, *vhdl.vhdl_files(hand)):
            raise _no_top(name, hand, seen)
    found = _below(folder, name, ip)
    if found is not None:
        return found
    files = (*verilog_files(folder), *vhdl.vhdl_files(folder))
    if files:
        raise _no_top(name, folder, files)
    unpacked = archive.unpack(folder, name)
    return _below(unpacked, name, ip) if unpacked is not None else None


def _below(folder: Path, name: str, ip: IpInstance | None) -> RtlSource | None:
    """Return the RTL anywhere below `folder` whose top is called `name`."""
    files = tuple(verilog_files(folder))
    top = _top(folder, files, [file for file in files if name in modules_of(file)], name)
    if top is None:
        return _vhdl_below(folder, name, ip)
    return _source(name, top.parent, top, files, (), ip, export=True)


def _vhdl_below(folder: Path, name: str, ip: IpInstance | None) -> RtlSource | None:
    """Return the VHDL below `folder` whose top is called `name`, as Verilog."""
    files = tuple(vhdl.vhdl_files(folder))

    def defines(file: Path) -> bool:
        return name.lower() in map(str.lower, vhdl.entities_of(file))

    top = _top(folder, files, [file for file in files if defines(file)], name)
    if top is None:
        return None
    # What is nearer to the top wins, as in `_source`.
    near = sorted(files, key=lambda file: (file != top, not file.is_relative_to(top.parent)))
    made = vhdl.convert(name, name, near, ip)
    verilog = tuple(verilog_files(folder))
    return _source(name, made.parent, made, (made, *verilog), (), ip, export=True, beside=top)


def _top(folder: Path, files: Sequence[Path], tops: Sequence[Path], name: str) -> Path | None:
    """Return the one of `tops` that is meant: what was packaged comes first."""

    def rank(file: Path) -> tuple[int, int, str]:
        where = f"/{file.parent.relative_to(folder).as_posix()}".replace("/vhdl", "/verilog")
        places = (i for i, end in enumerate(_EXPORTS) if where.endswith(f"/{end}"))
        return next(places, len(_EXPORTS)), len(file.parts), str(file)

    if not tops:
        return None
    top, *others = sorted(tops, key=rank)
    for other in others:
        if rank(other)[:2] == rank(top)[:2] and not _same_folder(top, other):
            raise _defined_twice(name, name, top, other, folder)
    return top


def _source(
    name: str,
    folder: Path,
    top: Path,
    files: tuple[Path, ...],
    library: tuple[Path, ...],
    ip: IpInstance | None,
    *,
    export: bool,
    beside: Path | None = None,
) -> RtlSource:
    """Return the files that a top needs; `beside` is the VHDL that its Verilog was made from."""
    files = float_cores.without_stubs(files)
    # What is nearer to the top wins: a project holds several copies of an export.
    near = [file for file in files if file.is_relative_to(folder)]
    # A copy of the same tree under another name is no part of an export, but of a hand-written
    # design the rest may be beside the top's folder.
    far = [file for file in files if not file.is_relative_to(folder)]
    needed = closure(top, [*near, *library, *far])
    # A word may be a signal's name: only what is meant as a module has to be one.
    used = frozenset({name}).union(*(scan(file).uses for file in needed))
    for tier in (near, library, far):
        _check_single(name, needed, tier, used, folder)
    folders = dict.fromkeys([folder, *(file.parent for file in needed)])
    data = sorted(p for p in folder.rglob("*") if p.suffix.lower() in _DATA and p.is_file())
    seen = sorted({*near, *needed})
    ips = beside.parent if beside is not None else folder
    needed += float_cores.provide(needed, [*near, *library, *far], ips)
    if beside is None:
        made = _entities(name, needed, folder)
        needed, export = [*needed, *made], export or bool(made)
    return RtlSource(
        name, name, folder, tuple(needed), tuple(folders), tuple(seen), tuple(data), export, ip
    )


def _entities(name: str, needed: Sequence[Path], folder: Path) -> list[Path]:
    """Return the Verilog of VHDL entities below `folder` that Verilog modules instantiate."""
    files = tuple(vhdl.vhdl_files(folder))
    known = {entity.lower() for file in files for entity in vhdl.entities_of(file)}
    defined = {module for file in needed for module in scan(file).modules}
    used = {use for file in needed for use in scan(file).uses} - defined
    return [
        vhdl.convert(name, use, files, module=use) for use in sorted(used) if use.lower() in known
    ]


def _check_single(
    name: str, needed: Sequence[Path], tier: Sequence[Path], used: frozenset[str], folder: Path
) -> None:
    """Raise where what is used is defined more than once, and differently, in files of one tier."""
    owners: dict[str, list[Path]] = {}
    for file in tier:
        for unit in used.intersection({*scan(file).modules, *scan(file).packages}):
            owners.setdefault(unit, []).append(file)
    for unit, files in sorted(owners.items()):
        chosen = next((file for file in needed if file in files), None)
        if chosen is None:
            continue
        if unit in scan(chosen).twice:
            raise _defined_twice(name, unit, chosen, chosen, folder)
        for other in files:
            if other != chosen and other.read_bytes() != chosen.read_bytes():
                raise _defined_twice(name, unit, chosen, other, folder)


def _same_folder(one: Path, other: Path) -> bool:
    """Tell whether the folders of two files have the same HDL."""
    if one.parent == other.parent:
        return one.read_bytes() == other.read_bytes()

    def texts(file: Path) -> dict[str, bytes]:
        kinds = (*SUFFIXES, *vhdl.SUFFIXES)
        found = (f for f in file.parent.iterdir() if f.suffix in kinds and f.is_file())
        return {f.name: f.read_bytes() for f in found}

    return texts(one) == texts(other)


def _defined_twice(name: str, unit: str, one: Path, other: Path, folder: Path) -> RtlError:
    shown = sorted(
        str(path.relative_to(folder) if path.is_relative_to(folder) else path)
        for path in (one, other)
    )
    where = f"twice in {shown[0]}" if one == other else f"in {' and '.join(shown)}"
    kind = "module" if unit in modules_of(one) else "package or interface"
    return RtlError(
        f"{name}: {kind} {unit} is defined {where}, below {folder}, and nothing says which of them "
        "is meant. Remove one or rename it (a copy may end in .bak), or give the folder of one "
        "alone with kernels=[...]",
        name,
    )


def _no_top(name: str, folder: Path, files: Sequence[Path]) -> _NoTopError:
    units = (vhdl.entities_of(f) if f.suffix in vhdl.SUFFIXES else modules_of(f) for f in files)
    found = sorted({unit for listed in units for unit in listed})
    shown = ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" * (len(found) > _SHOWN))
    kind = "Verilog" if any(file.suffix in SUFFIXES for file in files) else "VHDL"
    return _NoTopError(
        f"{name}: no module of that name in {folder}; its {len(files)} {kind} files have "
        f"{shown or 'no module at all'}. The top module has the kernel's name, that of the IP in "
        "the handoff: rename the module, or the kernel's folder",
        name,
    )
