"""INTERFACE directives, wherever they are written.

They stand as pragmas in the top function, or beside the source in Vitis' ``hls_config.cfg``
(``syn.directive.interface=``) or in a Tcl file (``set_directive_interface``).
UG1399, "pragma HLS interface" and "HLS Configuration File Commands".
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Directive", "Pragma", "Settings", "files_beside", "from_files", "from_pragmas"]

_BLOCK = {"ap_ctrl_hs", "ap_ctrl_chain", "ap_ctrl_none"}
_WIRE = {
    "ap_none", "ap_stable", "ap_vld", "ap_ovld", "ap_ack", "ap_hs", "ap_memory", "ap_fifo",
    "ap_bus", "bram", "ap_auto",
}  # fmt: skip
_MODES = _BLOCK | _WIRE | {"s_axilite", "m_axi", "axis"}
# Options of set_directive_interface that stand alone; all others take a value.
_TCL_FLAGS = {"-register"}
_TCL_FILES = ("directives.tcl", "run_hls.tcl", "script.tcl", "hls.tcl", "run.tcl", "build.tcl")


@dataclass(frozen=True)
class Pragma:
    """``#pragma HLS <text>`` that the preprocessor let through, and where it stands."""

    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Directive:
    """One INTERFACE directive for one port.

    Parameters
    ----------
    port : str
        Argument name, or ``"return"``.
    mode : str or None
        ``s_axilite``, ``m_axi``, ``axis``, ``ap_ctrl_hs`` ...; None where it only adds options.
    options : dict of str to str
        ``bundle``, ``offset``, ``depth`` ... (lower-case keys; flags map to ``"true"``).
    """

    port: str
    mode: str | None
    options: dict[str, str] = field(default_factory=dict)


@dataclass
class Settings:
    """What configuration files ask for beyond the pragmas (``config_interface``)."""

    directives: list[Directive] = field(default_factory=list)
    flow_target: str = "vivado"
    options: dict[str, str] = field(default_factory=dict)

    def flag(self, name: str) -> bool | None:
        """Return an on/off option of ``config_interface``, None where it is not set."""
        value = self.options.get(name)
        return None if value is None else value.strip().lower() in ("1", "true", "yes", "on")


def _split_options(text: str) -> tuple[list[str], dict[str, str]]:
    """Split ``m_axi port=x depth = 4`` into bare words and key=value pairs."""
    text = re.sub(r"//.*$|/\*.*?\*/", " ", text)
    text = re.sub(r"\s*=\s*", "=", text)
    text = re.sub(r"\s*,\s*", ",", text)
    bare: list[str] = []
    pairs: dict[str, str] = {}
    for word in text.replace(";", " ").split():
        key, equals, value = word.partition("=")
        if equals:
            pairs[key.lower()] = value.strip('"')
        else:
            bare.append(word)
    return bare, pairs


def _port_name(text: str) -> str:
    return text.strip().strip("\"'").lstrip("&*").strip("()")


def _make(bare: Iterable[str], pairs: dict[str, str]) -> list[Directive]:
    mode = pairs.pop("mode", None)
    ports = pairs.pop("port", "")
    options = dict(pairs)
    for word in bare:
        lower = word.lower()
        if mode is None and lower in _MODES:
            mode = lower
        elif lower in _MODES and lower != mode:
            options[lower] = "true"
        else:
            options[lower] = "true"
    mode = None if mode is None else mode.lower()
    return [Directive(_port_name(port), mode, options) for port in ports.split(",") if port.strip()]


def from_pragmas(pragmas: Sequence[Pragma]) -> list[Directive]:
    """Return the INTERFACE directives among `pragmas`, in order.

    ``RESOURCE core=AXI4LiteS`` and its kin, the spelling of Vivado HLS 2012 to 2014, count too.
    """
    found: list[Directive] = []
    for pragma in pragmas:
        name, _, rest = pragma.text.partition(" ")
        keyword = name.strip().lower()
        if keyword == "interface":
            found += _make(*_split_options(rest.replace("\t", " ")))
        elif keyword == "resource":
            found += _from_resource(rest)
    return found


def _from_resource(text: str) -> list[Directive]:
    metadata = re.search(r'metadata\s*=\s*"?\{?([^"}]*)', text)
    bundle = re.search(r"-bus_bundle\s+(\w+)", metadata.group(1)) if metadata else None
    _, pairs = _split_options(re.sub(r'metadata\s*=\s*"[^"]*"', "", text))
    modes = {"axi4lites": "s_axilite", "axi4m": "m_axi", "axi4stream": "axis", "axis": "axis"}
    mode = modes.get(pairs.get("core", "").lower())
    if mode is None or "variable" not in pairs:
        return []
    options = {"bundle": bundle.group(1)} if bundle else {}
    return [Directive(_port_name(pairs["variable"]), mode, options)]


def from_files(source: Path, top: str) -> Settings:
    """Return what the configuration files beside `source` say about `top`.

    Parameters
    ----------
    source : pathlib.Path
        The kernel's source; its folder is searched for ``*.cfg`` and the usual Tcl names, and
        the folders of a Vivado HLS project below it for one ``directives.tcl``.
    top : str
        Directives for other functions are left out.
    """
    settings = Settings()
    for path in files_beside(source):
        if path.suffix == ".cfg":
            _read_config(path, top, settings)
        else:
            _read_tcl(path, top, settings)
    return settings


def files_beside(source: Path) -> list[Path]:
    """Return the configuration files that count for `source`, whether or not they name its top."""
    folder = source.parent
    scripts = [folder / name for name in _TCL_FILES if (folder / name).is_file()]
    if not any(script.name == "directives.tcl" for script in scripts):
        projects = [inner for outer in _folders(folder) for inner in (outer, *_folders(outer))]
        nested = [project / "directives.tcl" for project in projects]
        nested = [path for path in nested if path.is_file()]
        # Several solutions of one project: the source does not say which was exported.
        if len(nested) == 1:
            scripts += nested
        elif not nested:
            scripts += _directives_above(folder)
    return [*sorted(folder.glob("*.cfg")), *scripts]


def _directives_above(folder: Path) -> list[Path]:
    """Return the one ``directives.tcl`` beside a source folder (``src/x.cpp``, ``script/``)."""
    for above in list(folder.parents)[:2]:
        found = [item / "directives.tcl" for item in (above, *_folders(above))]
        found = [path for path in found if path.is_file()]
        if found:
            return found if len(found) == 1 else []
    return []


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(item.path) for item in entries if item.is_dir())
    except OSError:  # gone meanwhile, or not ours to read: it holds no directives for us
        return []


def _read_config(path: Path, top: str, settings: Settings) -> None:
    directives: list[Directive] = []
    options: dict[str, str] = {}
    flow, wanted = "vivado", None
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.split("#", 1)[0].partition("=")
        key, value = key.strip().lower(), value.strip()
        if key == "syn.top":
            wanted = value
        elif key == "flow_target":
            flow = value.lower()
        elif key == "syn.directive.interface":
            bare, pairs = _split_options(value)
            words = [word for word in bare if word.lower() not in _MODES]
            if not words or words[0].split("/")[0] != top:
                continue
            if "port" not in pairs and len(words) > 1:
                pairs["port"] = words[1]
            modes = [word for word in bare if word.lower() in _MODES]
            directives += _make([*modes, *words[2:]], pairs)
        elif key.startswith("syn.interface."):
            options[key.removeprefix("syn.interface.")] = value
    # A configuration for another kernel of the same folder says nothing about this one.
    if wanted in (None, top):
        settings.directives += directives
        settings.options.update(options)
        if flow != "vivado":
            settings.flow_target = flow


def _read_tcl(path: Path, top: str, settings: Settings) -> None:
    text = path.read_text(encoding="utf-8", errors="replace").replace("\\\n", " ")
    for line in text.splitlines():
        line = line.strip()
        command = line.split(None, 1)[0] if line else ""
        if command not in ("set_directive_interface", "config_interface", "open_solution"):
            continue
        try:
            words = shlex.split(line, comments=True)[1:]
        except ValueError:  # unbalanced quotes: Tcl of another kind
            continue
        options, positional = _tcl_words(words, command)
        if command == "open_solution":
            settings.flow_target = options.get("flow_target", settings.flow_target)
        elif command == "config_interface":
            settings.options.update(options)
        elif len(positional) > 1 and positional[0].split("/")[0] == top:
            for port in positional[1:]:
                mode = options.get("mode")
                rest = {key: value for key, value in options.items() if key != "mode"}
                settings.directives.append(Directive(_port_name(port), mode, rest))


def _tcl_words(words: Sequence[str], command: str) -> tuple[dict[str, str], list[str]]:
    options: dict[str, str] = {}
    positional: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            positional.append(word.strip("{}"))
            continue
        key, equals, value = word.partition("=")
        lone = key in _TCL_FLAGS or not rest or rest[0].startswith("-")
        if equals:
            options[key[1:].lower()] = value
        elif lone:
            options[key[1:].lower()] = "true"
        else:
            options[key[1:].lower()] = rest.pop(0).strip("{}")
    return options, positional
