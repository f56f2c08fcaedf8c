"""From Verilog to the ports of its top, and to C++."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pynq_torch.errors import RtlError, RtlPortError
from pynq_torch.hls import depends

from . import drivers, lint
from .grouping import group
from .ports import AxiInterfaces, PortDecl
from .sources import RtlSource

__all__ = ["PREFIX", "WAVES", "Design", "elaborate", "verilate"]

PREFIX = "Vmodel"
WAVES = ("", "fst", "vcd")
# What the top of a kernel calls its block-level control, and the phases of a run that it tells.
_NET = re.compile(r"ap_(start|done|idle|ready)|perf_\w+")
_DIRECTIONS = {"INPUT": "in", "OUTPUT": "out", "INOUT": "inout"}
# Not about what the RTL does: HLS exports have delays (#0) and a port called interrupt.
_QUIET = ("-Wno-STMTDLY", "-Wno-SYMRSVDWORD", "-Wno-TIMESCALEMOD", "-Wno-UNOPTTHREADS")
# Two drivers: never meant, in what a tool generated neither.
_COMBINED = "multiple combinational drivers"
_ODD = re.compile(r'["$\n]')
# One file of the list that comes with Verilator's tree: the letters it has there, and its name.
_LISTED = re.compile(r'^\s*"(\w+)": \{"filename":"(.*?)", ?"realpath":', re.MULTILINE)
# Verilator breaks long lines within the call.
_READMEM = re.compile(r'VL_READMEM_N\([^";]*"(?P<name>[^"\n]+)"')


@dataclass(frozen=True)
class Design:
    """An elaborated top: its ports, what they are, its nets to watch, its parameters."""

    ports: tuple[PortDecl, ...]
    interfaces: AxiInterfaces
    nets: tuple[str, ...]
    parameters: tuple[str, ...]  # as -G options


def elaborate(tool: lint.Verilator, source: RtlSource, work: Path) -> Design:
    """Read a kernel's RTL and put its ports together.

    Parameters
    ----------
    tool : lint.Verilator
    source : RtlSource
    work : pathlib.Path
        Takes what is written.

    Raises
    ------
    RtlLintError, RtlPortError
    """
    _empty_deadlock_headers(source, work)
    module = _tree(tool, source, work, ())
    parameters = tuple(_parameters(source, module.parameters))
    if parameters:
        module = _tree(tool, source, work, parameters)
    _check(source, module.driven_twice)
    top = next(file for file in source.files if file.is_relative_to(source.folder))
    interfaces = group(module.ports, source.ip, top=source.top, where=str(_place(source, top)))
    names = {port.name for port in module.ports}
    nets = tuple(n for n in module.nets if _NET.fullmatch(n) and n not in names)
    return Design(module.ports, interfaces, nets, parameters)


def verilate(
    tool: lint.Verilator, source: RtlSource, design: Design, waves: str, work: Path
) -> tuple[list[str], list[str], list[str]]:
    """Turn the RTL into C++.

    Returns
    -------
    files : list of str
        Every file that was read.
    warnings : list of str
        What Verilator said.
    loops : list of str
        Signals of combinational loops.

    Raises
    ------
    RtlLintError
        In hand-written RTL a warning is an error, as for Verilator itself.
    RtlError
        A file that ``$readmemh`` reads is missing.
    """
    nets = [f'public_flat_rd -module "{source.top}" -var "{net}"' for net in design.nets]
    control = ["`verilator_config", f'inline -module "{source.top}"', *nets, ""]
    (work / "control.vlt").write_text("\n".join(control), encoding="utf-8")
    options = [
        "--cc",
        *(["--assert", "--x-assign", "unique", "--x-initial", "unique"]),
        *([f"--trace-{waves}", "--trace-structs"] if waves else []),
        *design.parameters,
        "control.vlt",
    ]
    messages = _run(tool, source, options, work)
    _check(source, messages)
    loops = lint.loops(messages)
    _check_data(source, work)
    return _files_read(source, work), [str(message) for message in messages], loops


def _arguments(source: RtlSource) -> list[str]:
    """Return the options and files that every run of Verilator has."""
    return [
        "--quiet",
        "--no-timing",  # HLS exports write #0 before values
        "--timescale-override",
        "1ns/1ps",
        "--top-module",
        source.top,
        "--prefix",
        PREFIX,
        "--Mdir",
        ".",
        "-Wno-fatal",
        *_QUIET,
        "-Iempty",
        *(f"-I{_shown(source, folder)}" for folder in source.include_dirs),
        *(str(_shown(source, file.parent) / file.name) for file in source.files),
    ]


def _links(source: RtlSource) -> dict[Path, str]:
    """Return the folders whose path Verilator would not take as it is, and a name for each.

    It looks for an environment variable behind a ``$``, and ends a file's name at a quote.
    """
    folders = dict.fromkeys([*source.include_dirs, *(file.parent for file in source.files)])
    odd = [folder for folder in folders if _ODD.search(str(folder))]
    return {folder: f"sources{number}" for number, folder in enumerate(odd)}


def _shown(source: RtlSource, folder: Path) -> Path:
    """Return a folder as Verilator gets it."""
    return Path(_links(source).get(folder, folder))


def _run(
    tool: lint.Verilator, source: RtlSource, options: Sequence[str], work: Path
) -> list[lint.Message]:
    """Run Verilator on a kernel's sources; its messages name them where they are."""
    links = _links(source)
    for folder, link in links.items():
        if not (work / link).is_symlink():
            (work / link).symlink_to(folder.absolute())
    messages = lint.run(tool, [*options, *_arguments(source)], work, source.name)
    return [replace(message, file=_real_name(message.file, links)) for message in messages]


def _real_name(file: str, links: dict[Path, str]) -> str:
    """Return the name of a file that Verilator got through a link."""
    for folder, link in links.items():
        if file.startswith(f"{link}/"):
            return f"{folder}{file.removeprefix(link)}"
    return file


def _check(source: RtlSource, messages: Sequence[lint.Message]) -> None:
    wrong = [m for m in messages if m.kind == "Error" or not source.export or _COMBINED in m.text]
    if wrong:
        raise lint.lint_error(source.name, wrong)


def _empty_deadlock_headers(source: RtlSource, work: Path) -> None:
    """Write the headers of HLS' deadlock detector, empty: it watches its own co-simulation."""
    (work / "empty").mkdir(exist_ok=True)
    for file in source.files:
        text = file.read_text(encoding="utf-8", errors="replace")
        for name in re.findall(r'`include\s+"([^"]*_hls_deadlock_[^"]*\.vh)"', text):
            (work / "empty" / Path(name).name).write_text("", encoding="utf-8")


def _place(source: RtlSource, path: Path) -> Path:
    return Path(source.folder.name) / path.relative_to(source.folder)


# ---- the tree ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Module:
    ports: tuple[PortDecl, ...]
    nets: tuple[str, ...]
    parameters: tuple[str, ...]
    driven_twice: tuple[lint.Message, ...]


def _tree(
    tool: lint.Verilator, source: RtlSource, work: Path, parameters: Sequence[str]
) -> _Module:
    path, meta = work / f"{PREFIX}.tree.json", work / f"{PREFIX}.meta.json"
    options = ["--json-only", "--json-only-output", path.name]
    options += ["--json-only-meta-output", meta.name, *parameters]
    messages = _run(tool, source, options, work)
    _check(source, [message for message in messages if message.kind == "Error"])
    tree = json.loads(path.read_text(encoding="utf-8"))
    links = _links(source)
    # No JSON reader takes it where a path has a backslash: Verilator writes paths as they are.
    listed = _LISTED.findall(meta.read_text(encoding="utf-8"))
    files = {number: _real_name(name, links) for number, name in listed}
    twice = tuple(drivers.conflicts(tree, files))
    path.unlink()
    meta.unlink()
    modules = [module for module in tree["modulesp"] if module["type"] == "MODULE"]
    top = next((m for m in modules if m["origName"] == source.top), None)
    if top is None:
        raise RtlError(f"{source.name}: Verilator found no module {source.top}", source.name)
    types = {item["addr"]: item for misc in tree["miscsp"] for item in misc.get("typesp", ())}
    ports, nets, names = [], [], []
    for item in top["stmtsp"]:
        if item["type"] != "VAR":
            continue
        if item["direction"] in _DIRECTIONS:
            width = _width(types, types[item["dtypep"]])
            if width is None:
                raise RtlPortError(
                    f"{source.name}: port {item['verilogName']} of module {source.top} is an "
                    "unpacked array or an interface; a top has plain vectors",
                    source.name,
                )
            ports.append(PortDecl(item["verilogName"], _DIRECTIONS[item["direction"]], width))
        elif item.get("isGParam"):
            names.append(item["verilogName"])
        else:
            nets.append(item["verilogName"])
    return _Module(tuple(ports), tuple(nets), tuple(names), twice)


def _width(types: dict[str, Any], item: dict[str, Any]) -> int | None:
    """Return the bits of a packed type, None of any other."""
    kind = item["type"]
    if kind == "BASICDTYPE":
        left, _, right = item.get("range", "0:0").partition(":")
        return abs(int(left) - int(right)) + 1
    if kind in ("REFDTYPE", "ENUMDTYPE", "MEMBERDTYPE"):
        return _width(types, types[item["refDTypep"]]) if item["refDTypep"] in types else None
    if kind == "PACKARRAYDTYPE":
        left, _, right = item["declRange"].strip("[]").partition(":")
        inner = _width(types, types[item["refDTypep"]])
        return None if inner is None else (abs(int(left) - int(right)) + 1) * inner
    if kind == "STRUCTDTYPE":
        widths = [_width(types, types[m["dtypep"]]) for m in item["membersp"]]
        known = [width for width in widths if width is not None]
        return sum(known) if len(known) == len(widths) else None
    return None


def _parameters(source: RtlSource, names: Sequence[str]) -> Iterator[str]:
    """Yield -G options for the parameters of the top that the design sets."""
    given = source.ip.parameters if source.ip is not None else {}
    for name in names:
        value = given.get(name, "")
        if re.fullmatch(r"-?\d+", value):
            yield f"-G{name}={value}"
        elif re.fullmatch(r"0x[0-9A-Fa-f]+", value):
            yield f"-G{name}=64'h{value[2:]}" if len(value) > 10 else f"-G{name}=32'h{value[2:]}"


# ---- after it ------------------------------------------------------------------------------------


def _files_read(source: RtlSource, work: Path) -> list[str]:
    """Return the sources that Verilator read."""
    real = {link: folder for folder, link in _links(source).items()}
    paths = []
    for name in depends.verilator_files(work / f"{PREFIX}__verFiles.dat"):
        path = Path(name)
        if path.parts[0] in real:
            path = real[path.parts[0]].joinpath(*path.parts[1:])
        paths.append(work / path)  # an absolute path stays as it is
    return sorted({str(path) for path in paths if not path.is_relative_to(work)})


def _check_data(source: RtlSource, work: Path) -> None:
    """See that the files of ``$readmemh`` are where the RTL says: else a ROM holds junk."""
    known = {path.relative_to(source.folder) for path in source.data}
    for file in work.glob(f"{PREFIX}*.cpp"):
        for match in _READMEM.finditer(file.read_text(encoding="utf-8", errors="replace")):
            path = Path(match["name"])
            if not path.is_absolute() and Path(*path.parts) not in known:
                raise RtlError(
                    f"{source.name}: $readmemh reads {match['name']}, and there is no such file in "
                    f"{source.folder}: copy it there, as Vitis HLS lays it beside the Verilog",
                    source.name,
                )
