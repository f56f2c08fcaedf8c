"""What a kernel's RTL takes of the PL: yosys maps it to the cells of the 7 series, and counts.

`count` runs yosys; its results are cached by content. A kernel's own result is beside its RTL
(``rtl/resources.json``, written by ``python -m pynq_torch kernels synth``), so that nobody needs
yosys to read it, and `stale` says when the RTL is no longer what was counted. yosys places
nothing: it proves what is needed, not that it meets a clock.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pynq_torch.errors import RtlError
from pynq_torch.hls import cache
from pynq_torch.paths import HW, to_read, to_write

from . import yosys
from .hls_resources import Resources

__all__ = [
    "RESULT",
    "Count",
    "committed",
    "count",
    "counted",
    "hashes",
    "named_in",
    "rtl_folder",
    "rtl_sources",
    "stale",
    "synthesise",
]

#: Beside the RTL.
RESULT = "resources.json"
PART = "xc7z020clg400-1"
#: Modules that kernels share.
_SHARED = HW / "rtl"
#: Slang reads all of SystemVerilog; yosys' own reader does not. The wheel has no threads.
_READ = "read_slang -j 1 --ignore-assertions"
#: A kernel is inside a larger design: its ports get no pads.
_MAP = "synth_xilinx -family xc7 -noiopad -noclkbuf"
_TIMEOUT_S = 3000.0

#: LUTs of a cell [UG474]; a RAM64M is four LUTs of one slice, a RAM128X1D four.
_LUTS = {
    **dict.fromkeys(("INV", "LUT1", "LUT2", "LUT3", "LUT4", "LUT5", "LUT6", "CFGLUT5"), 1),
    **dict.fromkeys(("SRL16E", "SRLC16E", "SRLC32E", "RAM32X1S", "RAM64X1S"), 1),
    **dict.fromkeys(("RAM32X1D", "RAM64X1D", "RAM32X2S", "RAM128X1S"), 2),
    **dict.fromkeys(("RAM32M", "RAM64M", "RAM128X1D", "RAM256X1S"), 4),
}
_BRAMS = {"RAMB18E1": 1, "RAMB36E1": 2}
#: A flip-flop's name: D with clock enable, and how it is set or cleared; ``_1`` on a falling edge.
_FLIP_FLOP = re.compile(r"FD[RSCP]E(_1)?")
#: Neither LUT nor flip-flop: carries and multiplexers of a slice, constants, clock buffers.
_FREE = {"CARRY4", "MUXF7", "MUXF8", "GND", "VCC", "BUFG", "IBUF", "OBUF"}


@dataclass(frozen=True)
class Count:
    """What yosys counted."""

    cells: dict[str, int]  # by the primitives of the 7 series
    tool: str  # the version of yosys
    seconds: float  # wall clock of the mapping, on this PC
    cached: bool  # it had been counted before

    @property
    def resources(self) -> Resources:
        """The cells as BRAMs of 18 Kbit, DSP48E1, flip-flops and LUTs, of kind ``"yosys"``."""
        return counted(self.cells, self.tool)


def counted(cells: Mapping[str, int], tool: str) -> Resources:
    """Return cells of the 7 series as resources of kind ``"yosys"``.

    Raises
    ------
    RtlError
        There are others among them.
    """
    known = {*_LUTS, *_BRAMS, *_FREE, "DSP48E1"}
    unknown = sorted(c for c in cells if c not in known and not _FLIP_FLOP.fullmatch(c))
    if unknown:
        raise RtlError(
            f"yosys left cells that are no primitives of the 7 series: {', '.join(unknown)}; "
            "expected LUTs, flip-flops, DSP48E1 and BRAMs. A module may be missing"
        )
    return Resources(
        bram_18k=sum(cells.get(name, 0) * each for name, each in _BRAMS.items()),
        dsp=cells.get("DSP48E1", 0),
        ff=sum(n for name, n in cells.items() if _FLIP_FLOP.fullmatch(name)),
        lut=sum(cells.get(name, 0) * each for name, each in _LUTS.items()),
        kind="yosys",
        source=f"{tool}, {_MAP}",
    )


# ---- sources -------------------------------------------------------------------------------------


def rtl_folder(kernel: Path) -> Path | None:
    """Return the folder of a kernel's RTL, ``None`` where it has none."""
    folder = kernel / "rtl"
    return folder if any(_files(folder)) else None


def _files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.sv"), *folder.glob("*.v")])


def rtl_sources(folder: Path, shared: Path = _SHARED) -> tuple[Path, ...]:
    """Return the files of an RTL folder and those of the shared modules that they name.

    `shared` has a module a file, of the file's name; only those that are named count, directly or
    through another.
    """
    found = _files(folder)
    library = {path.stem: path for path in _files(shared)}
    return named_in(found, library)


def named_in(files: Iterable[Path], library: dict[str, Path]) -> tuple[Path, ...]:
    """Return files and those of `library`, by their modules' names, that they name or need."""
    found = list(files)
    left = {name: path for name, path in library.items() if path not in found}
    index = 0
    while index < len(found):
        words = set(re.findall(r"\w+", found[index].read_text(encoding="utf-8")))
        found += [left.pop(name) for name in sorted(words & left.keys())]
        index += 1
    return tuple(found)


def hashes(files: Iterable[Path]) -> dict[str, str]:
    """Return file name -> SHA-256 of its content."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


# ---- counting ------------------------------------------------------------------------------------


def count(files: Sequence[Path], top: str, parameters: Mapping[str, int] | None = None) -> Count:
    """Map RTL to the xc7z020 by yosys and count the cells.

    `files` are those of `rtl_sources`, `parameters` those of the module `top`.

    Raises
    ------
    RtlError
        yosys is not installed, cannot read the RTL, or took too long.
    """
    given = dict(sorted((parameters or {}).items()))
    key = cache.digest("yosys", top, given, _READ, _MAP, _version(), *(p.resolve() for p in files))
    begin = time.perf_counter()
    with cache.locked(key):
        entry = cache.find(key)
        cached = entry is not None
        if entry is None:
            with cache.scratch() as folder:
                before = hashes(files)
                facts = {"cells": _run(files, top, given, folder)}
                if hashes(files) != before:
                    raise RtlError(
                        f"{top}: the RTL changed while yosys mapped it; start again", top
                    )
                made_from = [str(p.resolve()) for p in (*files, *yosys.beside(files))]
                entry = cache.store(key, folder, made_from, [], facts)
    return Count(entry["facts"]["cells"], _version(), time.perf_counter() - begin, cached)


def _version() -> str:
    return yosys.version("Counting what RTL takes")


def _run(
    files: Sequence[Path], top: str, parameters: Mapping[str, int], folder: Path
) -> dict[str, int]:
    read = [_READ, "--top", top]
    for name, value in parameters.items():
        read += ["-G", f"{name}={value}"]
    read += [path.name for path in files]
    script = [" ".join(read), f"{_MAP} -top {top}", "tee -q -o stat.json stat -json -tech xilinx"]
    done = yosys.run(script, (*files, *yosys.beside(files)), folder, _TIMEOUT_S, top)
    result = folder / "stat.json"
    if done.returncode or not result.is_file():
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise RtlError(f"{top}: yosys cannot map the RTL:\n" + "\n".join(said[-12:]), top)
    counted = json.loads(result.read_text(encoding="utf-8"))["design"]["num_cells_by_type"]
    return dict(sorted(counted.items()))


# ---- results that are committed ------------------------------------------------------------------


def synthesise(kernel: Path, top: str = "") -> Path:
    """Count a kernel's RTL and write the result beside it, or where `to_write` says; return where.

    `kernel` is its folder, whose name is the top module by default.
    """
    folder = rtl_folder(kernel)
    if folder is None:
        raise RtlError(f"{kernel.name} has no RTL; expected *.sv or *.v in {kernel}/rtl")
    top = top or kernel.name
    files = rtl_sources(folder)
    found = count(files, top)
    result = {
        "part": PART,
        "tool": found.tool,
        "command": f"{_READ} --top {top}; {_MAP}",
        "used": found.resources.used,
        "cells": found.cells,
        "sources": hashes(files),
    }
    path = to_write(folder / RESULT)
    path.parent.mkdir(parents=True, exist_ok=True)
    cache.write_text(path, json.dumps(result, indent=2) + "\n")
    return path


def committed(kernel: Path) -> Resources | None:
    """Return what the result beside a kernel's RTL says, ``None`` where there is none."""
    path = to_read(kernel / "rtl" / RESULT)
    if not path.is_file():
        return None
    result = _read(path)
    return counted(result["cells"], result["tool"])


def _read(path: Path) -> dict[str, Any]:
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        if missing := {"tool", "cells", "sources"} - result.keys():
            raise KeyError(*sorted(missing))
    except (ValueError, KeyError, AttributeError) as error:
        raise RtlError(
            f"{path}: {error!r}; expected what `python -m pynq_torch kernels synth` writes"
        ) from error
    return dict(result)


def stale(kernel: Path) -> list[str]:
    """Return the names of the files by which a kernel's RTL differs from what was counted."""
    now = hashes(rtl_sources(kernel / "rtl"))
    path = to_read(kernel / "rtl" / RESULT)
    then = _read(path)["sources"] if path.is_file() else {}
    return sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))
