"""From Verilog to the ports of its top, and to C++."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pynq_torch.errors import RtlError, RtlPortError
from pynq_torch.hls import depends

from . import drivers, lint
from .grouping import group
from .ports import PortDecl
from .sources import RtlSource

__all__ = ["PREFIX", "WAVES", "Design", "elaborate", "verilate"]

PREFIX = "Vmodel"
WAVES = ("", "fst", "vcd")
# What the top of a kernel calls its block-level control, and the phases of a run that it tells.
_NET = re.compile(r"ap_(start|done|idle|ready)|perf_\w+")
_DIRECTIONS = {"INPUT": "in", "OUTPUT": "out", "INOUT": "inout"}
# HLS exports write #0 before values (--no-timing). What is quiet is not about what the RTL does:
# they have delays, and a port called interrupt.
_OPTIONS = (
    "--quiet", "--no-timing", "--timescale-override", "1ns/1ps", "--prefix", PREFIX, "--Mdir", ".",
    "-Wno-fatal", "-Wno-STMTDLY", "-Wno-SYMRSVDWORD", "-Wno-TIMESCALEMOD", "-Wno-UNOPTTHREADS",
    "-Iempty",
)  # fmt: skip
# Two drivers: never meant, in what a tool generated neither.
_COMBINED = "multiple combinational drivers"
_ODD = re.compile(r'["$\n]')
# One file of the list that comes with Verilator's tree: the letters it has there, and its name.
_LISTED = re.compile(r'^\s*"(\w+)": \{"filename":"(.*?)", ?"realpath":', re.MULTILINE)
# Verilator breaks long lines within the call.
_READMEM = re.compile(r'VL_READMEM_N\([^";]*"(?P<name>[^"\n]+)"')


@dataclass(frozen=True)
class Design:
    """What Verilator says of a top: its ports, its nets, its parameters; and errors of ours."""

    ports: tuple[PortDecl, ...]
    nets: tuple[str, ...]
    parameters: dict[str, str]  #: of the top, with their values as Verilator writes them
    options: tuple[str, ...]  #: -G, for those that the design sets
    driven_twice: tuple[lint.Message, ...]


def elaborate(tool: lint.Verilator, source: RtlSource, work: Path) -> Design:
    """Read a kernel's RTL into the folder `work`: its ports, the nets to watch, -G options.

    Raises
    ------
    RtlLintError, RtlPortError
    """
    _empty_deadlock_headers(source, work)
    design = _tree(tool, source, work, ())
    options = tuple(_options(source, design.parameters))
    if options:
        design = _tree(tool, source, work, options)
    _check(source, design.driven_twice)
    top = next(file for file in source.files if file.is_relative_to(source.folder))
    where = Path(source.folder.name) / top.relative_to(source.folder)
    group(design.ports, source.ip, top=source.top, where=str(where))  # raises what is wrong
    names = {port.name for port in design.ports}
    nets = tuple(n for n in design.nets if _NET.fullmatch(n) and n not in names)
    return replace(design, nets=nets, options=options)


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
    options = ["--cc", "--assert", "--x-assign", "unique", "--x-initial", "unique"]
    options += [f"--trace-{waves}", "--trace-structs"] if waves else []
    messages = _run(tool, source, [*options, *design.options, "control.vlt"], work)
    _check(source, messages)
    _check_data(source, work)
    warnings = [str(message) for message in messages]
    return _files_read(source, work), warnings, lint.loops(messages)


def _links(source: RtlSource) -> dict[Path, str]:
    """Return the folders whose path Verilator would not take as it is, and a name for each.

    It looks for an environment variable behind a ``$``, and ends a file's name at a quote.
    """
    folders = dict.fromkeys([*source.include_dirs, *(file.parent for file in source.files)])
    odd = [folder for folder in folders if _ODD.search(str(folder))]
    return {folder: f"sources{number}" for number, folder in enumerate(odd)}


def _run(
    tool: lint.Verilator, source: RtlSource, options: Sequence[str], work: Path
) -> list[lint.Message]:
    """Run Verilator on a kernel's sources; its messages name them where they are."""
    links = _links(source)
    for folder, link in links.items():
        if not (work / link).is_symlink():
            (work / link).symlink_to(folder.absolute())
    includes = [f"-I{links.get(folder, folder)}" for folder in source.include_dirs]
    files = [str(Path(links.get(file.parent, file.parent)) / file.name) for file in source.files]
    command = [*options, *_OPTIONS, "--top-module", source.top, *includes, *files]
    messages = lint.run(tool, command, work, source.name)
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


# ---- the tree ------------------------------------------------------------------------------------


def _tree(tool: lint.Verilator, source: RtlSource, work: Path, given: Sequence[str]) -> Design:
    path, meta = work / f"{PREFIX}.tree.json", work / f"{PREFIX}.meta.json"
    options = ["--json-only", "--json-only-output", path.name]
    options += ["--json-only-meta-output", meta.name, *given]
    messages = _run(tool, source, options, work)
    _check(source, [message for message in messages if message.kind == "Error"])
    tree = json.loads(path.read_text(encoding="utf-8"))
    links = _links(source)
    # No JSON reader takes it where a path has a backslash: Verilator writes paths as they are.
    listed = _LISTED.findall(os.fsdecode(meta.read_bytes()))
    files = {number: _real_name(name, links) for number, name in listed}
    twice = tuple(drivers.conflicts(tree, files))
    path.unlink()
    meta.unlink()
    modules = [module for module in tree["modulesp"] if module["type"] == "MODULE"]
    top = next((m for m in modules if m["origName"] == source.top), None)
    if top is None:
        raise RtlError(f"{source.name}: Verilator found no module {source.top}", source.name)
    types = {item["addr"]: item for misc in tree["miscsp"] for item in misc.get("typesp", ())}
    variables = [item for item in top["stmtsp"] if item["type"] == "VAR"]
    ports = tuple(_port(source, v, types) for v in variables if v["direction"] in _DIRECTIONS)
    others = [v for v in variables if v["direction"] not in _DIRECTIONS]
    nets = tuple(v["verilogName"] for v in others if not v.get("isGParam"))
    parameters = {
        v["verilogName"]: "".join(value.get("name", "") for value in v.get("valuep", ()))
        for v in others
        if v.get("isGParam")
    }
    return Design(ports, nets, parameters, (), twice)


def _port(source: RtlSource, variable: dict[str, Any], types: dict[str, Any]) -> PortDecl:
    name, width = variable["verilogName"], _width(types, variable["dtypep"])
    if width is None:
        raise RtlPortError(
            f"{source.name}: port {name} of module {source.top} is an unpacked array or an "
            "interface; a top has plain vectors",
            source.name,
        )
    return PortDecl(name, _DIRECTIONS[variable["direction"]], width)


def _width(types: dict[str, Any], address: str) -> int | None:
    """Return the bits of a packed type, None of any other."""
    item = types.get(address, {"type": ""})
    kind = item["type"]
    if kind == "BASICDTYPE":
        return _bits(item.get("range", "0:0"))
    if kind in ("REFDTYPE", "ENUMDTYPE", "MEMBERDTYPE"):
        return _width(types, item["refDTypep"])
    if kind == "PACKARRAYDTYPE":
        inner = _width(types, item["refDTypep"])
        return None if inner is None else _bits(item["declRange"].strip("[]")) * inner
    if kind == "STRUCTDTYPE":
        widths = [_width(types, m["dtypep"]) for m in item["membersp"]]
        return None if None in widths else sum(width or 0 for width in widths)
    return None


def _bits(declared: str) -> int:
    left, _, right = declared.partition(":")
    return abs(int(left) - int(right)) + 1


def _options(source: RtlSource, parameters: Mapping[str, str]) -> Iterator[str]:
    """Yield -G options for the parameters of the top that the design sets.

    The packager may have written a name in another case.
    """
    given = source.ip.parameters if source.ip is not None else {}
    folded = {name.lower(): value for name, value in given.items()}
    for name, default in parameters.items():
        value = given.get(name, folded.get(name.lower(), ""))
        literal = _literal(value, default)
        if value and literal is None:
            raise RtlError(
                f"{source.name}: parameter {name} of module {source.top} is {value!r} in the "
                "handoff; a number is expected, true or false. Build the overlay again with one",
                source.name,
            )
        if literal:
            yield f"-G{name}={literal}"


def _literal(value: str, default: str) -> str | None:
    """Return a value of the handoff as Verilog writes it, None where the module takes no text."""
    if re.fullmatch(r"-?\d+(\.\d+(e[-+]?\d+)?)?", value, re.IGNORECASE):
        return value
    if match := re.fullmatch(r"0([xb])([0-9A-F]+)", value, re.IGNORECASE):
        bits = len(match[2]) * (4 if match[1] in "xX" else 1)
        return f"{max(32, bits)}'{'h' if match[1] in 'xX' else 'b'}{match[2]}"
    if (match := re.fullmatch(r'"([01]+)"', value)) and not _is_text(default):
        return f"{max(32, len(match[1]))}'b{match[1]}"  # C_M_AXI_GMEM_PROT_VALUE of Vivado: "000"
    if value and '"' not in value and _is_text(default):
        return f'"{value}"'
    return str(int(value.lower() == "true")) if value.lower() in ("true", "false") else None


def _is_text(default: str) -> bool:
    """Tell a text from a number: Verilator shows it by its letters, in bytes and without a sign."""
    bits, _, digits = default.partition("'h")
    letters = re.fullmatch(r"([2-7][0-9a-f])+", digits) and bits == str(4 * len(digits))
    return bool(letters) or default == "8'h0" or default.startswith(('"', '\\"'))


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
    """Check that the files of ``$readmemh`` are where the RTL says: else a ROM holds junk."""
    known = {path.relative_to(source.folder) for path in source.data}
    for file in work.glob(f"{PREFIX}*.cpp"):
        for match in _READMEM.finditer(file.read_text(encoding="utf-8", errors="replace")):
            path = Path(match["name"])
            if not path.is_absolute() and path not in known:
                raise RtlError(
                    f"{source.name}: $readmemh reads {match['name']}, and there is no such file in "
                    f"{source.folder}: copy it there, as Vitis HLS lays it beside the Verilog",
                    source.name,
                )
