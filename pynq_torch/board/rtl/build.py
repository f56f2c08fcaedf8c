"""Building a kernel's RTL into a library with Verilator, and the process that runs it.

Verilator is run as the program itself, without its Perl front end and without make: the C++ it
writes is compiled here, as many files at once as there are processors, whichever model they belong
to. Everything is kept by content in the same cache as compiled kernels.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from pynq_torch import views
from pynq_torch.errors import RtlError
from pynq_torch.hls import cache, depends
from pynq_torch.hls.build import compile_engine, machine

from . import lint
from .compile import compile_model
from .glue import glue, own_files
from .grouping import group
from .ports import AxiInterfaces, PortDecl
from .sources import RtlSource
from .verilate import WAVES, elaborate, verilate
from .verilog import scan

__all__ = ["BuiltModel", "build_engine", "build_model"]

_LIBRARY = "model.so"
_ENGINE = Path(__file__).resolve().parents[1] / "engines" / "rtl" / "main.cpp"
# Not -O3: g++ 12 then mixes up the elements of LiteChecker's loop over three channels (it counts
# handshakes of AR as W's), and these sources gain nothing from it.
_ENGINE_FLAGS = ("-std=gnu++20", "-O2", "-fno-tree-vectorize", "-ldl", "-rdynamic")
#: A build that takes longer says so.
_PATIENCE_S = 3.0


@dataclass(frozen=True)
class BuiltModel:
    """The library of one kernel's RTL, for the process that runs it (``model.hpp``)."""

    library: Path
    top: str
    ports: list[PortDecl]  #: of the top module, in the order of the source
    interfaces: AxiInterfaces  #: what these ports are
    nets: tuple[str, ...]  #: nets inside the top that the library shows, without the leading dot
    waves: str  #: ``""``, ``"fst"`` or ``"vcd"``: what waves it can write
    warnings: tuple[str, ...]  #: what Verilator said of RTL that a tool generated
    seconds: float  #: wall-clock time of this call
    cached: bool  #: nothing had to be built


def build_model(source: RtlSource, *, waves: str = "") -> BuiltModel:
    """Build the library of a kernel's RTL, or find it unchanged in the cache.

    Parameters
    ----------
    source : RtlSource
        From :func:`pynq_torch.board.rtl.sources.find_rtl`.
    waves : {"", "fst", "vcd"}
        Waves that the model can write; each is a build of its own, slower than one without.

    Raises
    ------
    RtlLintError
        Verilator's message, with file and line.
    RtlPortError
        The ports are no AXI interfaces, or not those of the handoff.
    RtlError
        No Verilator, no space, or the C++ it wrote does not compile.
    """
    if waves not in WAVES:
        raise ValueError(f"waves is {waves!r}; one of {', '.join(map(repr, WAVES))} is expected")
    begin = time.perf_counter()
    entry, cached = _entry(source, waves)
    facts = entry["facts"]
    ports = [PortDecl(**port) for port in facts["ports"]]
    return BuiltModel(
        Path(entry["path"]) / _LIBRARY,
        source.top,
        ports,
        group(ports, source.ip, top=source.top),
        tuple(facts["nets"]),
        waves,
        tuple(facts["warnings"]),
        time.perf_counter() - begin,
        cached,
    )


def _entry(source: RtlSource, waves: str) -> tuple[cache.Entry, bool]:
    """Return the entry in the cache, and whether it was there."""
    tool = lint.find_verilator()
    key = cache.digest(
        "rtl", *source.files, source.top, source.export, _handoff(source), waves, tool.version,
        machine(), own_files(),
    )  # fmt: skip
    entry = cache.find(key, source.candidates)
    if entry is not None:
        return entry, True
    with cache.locked(key), _patience(source.name, waves):
        entry = cache.find(key, source.candidates)  # another process may have built it
        return entry or _build(tool, source, waves, key), False


def build_engine(*, sanitize: bool = False) -> Path:
    """Build the process that runs RTL, or find it unchanged in the cache.

    Parameters
    ----------
    sanitize : bool
        With ``-fsanitize=address,undefined``.

    Returns
    -------
    pathlib.Path
        The executable; it knows no kernel, and loads one library for each.
    """
    return compile_engine(_ENGINE, sanitize=sanitize, cflags=_ENGINE_FLAGS)


def _build(tool: lint.Verilator, source: RtlSource, waves: str, key: str) -> cache.Entry:
    with cache.scratch() as folder:
        work = folder / "work"
        work.mkdir()
        design = elaborate(tool, source, work)
        files, warnings, loops = verilate(tool, source, design, waves, work)
        cache.write_text(
            work / "model.cpp", glue(source.top, design.ports, design.nets, loops, waves, work)
        )
        compile_model(tool, source.name, waves, work, folder / _LIBRARY)
        _move_data(source, work, folder)
        facts = {
            "ports": [asdict(port) for port in design.ports],
            "nets": list(design.nets),
            "warnings": warnings,
        }
        read = sorted({*files, *(str(path) for path in source.data)})
        absent = depends.absent(files, source.include_dirs, verilog=True)
        return cache.store(key, folder, read, source.candidates, facts, absent)


def _move_data(source: RtlSource, work: Path, folder: Path) -> None:
    """Copy the files of ``$readmemh`` beside the library, and drop what the build left."""
    try:
        for path in source.data:
            target = folder / "data" / path.relative_to(source.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    except OSError as error:
        raise RtlError(f"{source.name}: {error}", source.name) from error
    shutil.rmtree(work)


def _handoff(source: RtlSource) -> str:
    """Return what the handoff says of the kernel: it decides on ports and parameters.

    An instance's name and addresses, which no module knows, and what its inputs are connected to
    make no other library.
    """
    ip = source.ip
    if ip is None:
        return ""
    words = {word.lower() for file in source.files for word in scan(file).words}
    parameters = {name: v for name, v in ip.parameters.items() if name.lower() in words}
    ports = [asdict(port) | {"constant": None, "net": ""} for port in ip.ports.values()]
    buses = [asdict(bus) | {"net": ""} for bus in ip.buses.values()]
    return json.dumps([parameters, ip.interrupt_pins, ports, buses], sort_keys=True)


@contextlib.contextmanager
def _patience(name: str, waves: str = "") -> Iterator[None]:
    """Say what takes so long; not where outputs are compared."""
    name += f" for waves (.{waves})" if waves else ""
    text = f"building the RTL of {name} with Verilator: up to a minute, then it is kept\n"
    timer = threading.Timer(_PATIENCE_S, sys.stderr.write, (text,))
    timer.daemon = True
    if not views.static():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
