"""The C++ between a Verilator model and ``model.hpp``: which of its members is which signal."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

import jinja2

from pynq_torch.errors import RtlError
from pynq_torch.hls import cache

from .ports import PortDecl
from .verilate import PREFIX

__all__ = ["HEADER", "glue", "own_files"]

HEADER = Path(__file__).resolve().parents[1] / "engines" / "rtl" / "model.hpp"
_TEMPLATES = Path(__file__).resolve().parent / "templates"
_PORT = re.compile(
    r"VL_(?:IN|OUT|INOUT)(?:8|16|64|W)?\(&?(?P<member>\w+),\s*(?P<msb>\d+),\s*(?P<lsb>\d+)"
)
_MEMBER = re.compile(
    r"^\s+(?:CData|SData|IData|QData|VlWide<\d+>)/\*(?P<msb>\d+):(?P<lsb>\d+)\*/ (?P<member>\w+);",
    re.MULTILINE,
)


def glue(
    top: str,
    ports: Sequence[PortDecl],
    nets: Sequence[str],
    loops: Sequence[str],
    waves: str,
    work: Path,
) -> str:
    """Return the C++ of the library of module `top`, which shows its ports and some nets.

    The names of combinational loops are for the message of a model that does not settle; in `work`
    are the headers that Verilator wrote.
    """
    header = (work / f"{PREFIX}.h").read_text(encoding="utf-8")
    root = (work / f"{PREFIX}___024root.h").read_text(encoding="utf-8")
    members = {_plain(match["member"]): match for match in _PORT.finditer(header)}
    inside = {_plain(match["member"]): match for match in _MEMBER.finditer(root)}
    signals = []
    for port in ports:
        match = members.get(port.name)
        if match is None:
            raise RtlError(f"Verilator's {PREFIX}.h has no port {port.name} of {top}", top)
        path, kind = f"top.{match['member']}", int(port.direction != "in")
        signals.append({"name": port.name, "path": path, "width": port.width, "kind": kind})
    for net in nets:
        match = inside.get(f"{top}.{net}")
        if match is not None:  # otherwise Verilator found it to be constant, or it is an array
            width = int(match["msb"]) - int(match["lsb"]) + 1
            path = f"top.rootp->{match['member']}"
            signals.append({"name": f".{net}", "path": path, "width": width, "kind": 2})
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
    )
    environment.filters["cstring"] = _cstring
    facts = {"top": top, "prefix": PREFIX, "header": HEADER, "signals": signals, "waves": waves}
    template = environment.get_template("model.cpp.j2")
    return template.render(loops=", ".join(loops[:4]), **facts)


def _plain(member: str) -> str:
    """Return the Verilog name of a member that Verilator had to spell in another way."""
    name = member.removeprefix("__SYM__")
    return re.sub(r"__0([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), name.replace("__DOT__", "."))


def _cstring(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


@functools.cache
def own_files() -> str:
    """Return a digest of what turns RTL into a library: a new version builds again."""
    own = Path(__file__).resolve().parent
    names = (
        "build", "compile", "drivers", "drivers_loops", "glue", "grouping", "lint", "ports",
        "verilate",
    )  # fmt: skip
    paths = [HEADER, _TEMPLATES / "model.cpp.j2", *(own / f"{name}.py" for name in names)]
    return cache.digest(*(path.read_bytes() for path in paths))
