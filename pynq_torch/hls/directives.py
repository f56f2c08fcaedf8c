"""INTERFACE directives, wherever they are written.

They are pragmas in the top function, lines of Vitis' ``hls_config.cfg`` beside the source
(``syn.directive.interface=``), or commands of a Tcl file (``set_directive_interface``).
UG1399, "pragma HLS interface" and "HLS Configuration File Commands".
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pynq_torch.errors import InterfaceError

from .spelling import BLOCK_MODES, FLAGS, MODES, check_command, check_setting, contradicts

__all__ = [
    "Directive",
    "Pragma",
    "Settings",
    "Wanted",
    "config_lines",
    "contradictions",
    "files_beside",
    "from_files",
    "from_pragmas",
    "port_name",
    "tcl_words",
    "wanted_of",
]

#: Options of ``set_directive_...`` without a value; all others take one (UG1399, "Optimization
#: Directives").
_TCL_FLAGS = {
    "-disable_start_propagation", "-enable_flush", "-fixed", "-floating", "-force", "-horizontal",
    "-object", "-off", "-recursive", "-region", "-register", "-rewind", "-skip_exit_check",
}  # fmt: skip
_TCL_COMMANDS = ("set_directive_interface", "config_interface")
_FLOWS = ("vivado", "vitis")
_TCL_FILES = ("directives.tcl", "run_hls.tcl", "script.tcl", "hls.tcl", "run.tcl", "build.tcl")


@dataclass(frozen=True)
class Pragma:
    """``#pragma HLS <text>`` that the preprocessor let through, with its file and line."""

    file: str
    line: int
    text: str

    @property
    def where(self) -> str:
        """File and line, as compilers write them."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Directive:
    """One INTERFACE directive for one port.

    Parameters
    ----------
    port : str
        Argument name, or ``"return"``; ``""`` where the directive names none.
    mode : str or None
        ``s_axilite``, ``m_axi``, ``axis``, ``ap_ctrl_hs`` ...; None where it only adds options.
    options : dict of str to str
        ``bundle``, ``offset``, ``depth`` ... (lower-case keys; flags map to ``"true"``).
    where : str
        File and line.
    """

    port: str
    mode: str | None
    options: dict[str, str] = field(default_factory=dict)
    where: str = ""


@dataclass
class Wanted:
    """What the directives say of one port, put together."""

    modes: dict[str, dict[str, str]] = field(default_factory=dict)
    #: File and line of the last directive that gave a mode or an offset.
    at: dict[str, str] = field(default_factory=dict)

    def option(self, mode: str, name: str) -> str | None:
        """Return an option of `mode`, None where it is absent or empty."""
        return self.modes.get(mode, {}).get(name) or None


def wanted_of(directives: Sequence[Directive], port: str) -> Wanted:
    """Return what `directives` say of `port`."""
    wanted = Wanted()
    own = [directive for directive in directives if directive.port == port]
    # A directive without a mode adds its options to every mode of the port.
    for directive in sorted(own, key=lambda item: item.mode is None):
        for mode in list(wanted.modes) if directive.mode is None else [directive.mode]:
            wanted.modes.setdefault(mode, {}).update(directive.options)
            wanted.at[mode] = directive.where
            if mode == "s_axilite" and "offset" in directive.options:
                wanted.at["offset"] = directive.where
    return wanted


def contradictions(directives: Sequence[Directive]) -> list[str]:
    """Return a warning for each mode or option that an earlier directive of its port forbids."""
    found: list[str] = []
    earlier: dict[str, list[Directive]] = {}
    for new in directives:
        for old in earlier.setdefault(new.port, []):
            if new.mode and old.mode and contradicts(new.mode, old.mode):
                found.append(
                    f"{new.where}: {new.mode} of port {new.port!r}, which is {old.mode} at "
                    f"{old.where}; write one of them"
                )
            if new.mode != old.mode:
                continue
            found += [
                f"{new.where}: {name}={value} of port {new.port!r} replaces {name}="
                f"{old.options[name]} at {old.where}; write one of them"
                for name, value in new.options.items()
                if old.options.get(name, value).lower() != value.lower()
            ]
        modes = [word for word in new.options if new.mode and contradicts(new.mode, word)]
        found += [
            f"{new.where}: {new.mode} and {word} of port {new.port!r}; write one of them"
            for word in modes
        ]
        earlier[new.port].append(new)
    return found


@dataclass
class Settings:
    """What configuration files ask for beyond the pragmas (``config_interface``)."""

    directives: list[Directive] = field(default_factory=list)
    flow_target: str = "vivado"
    options: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def flag(self, name: str) -> bool | None:
        """Return an on/off option of ``config_interface``, None where it is not set."""
        value = self.options.get(name)
        return None if value is None else value.strip().lower() in ("1", "true", "yes", "on")


def _split_options(text: str, where: str) -> tuple[list[str], dict[str, str]]:
    """Split ``m_axi port=x depth = 4`` into bare words and key=value pairs."""
    text = re.sub(r"//.*$|/\*.*?\*/", " ", text)
    text = re.sub(r"\s*=\s*", "=", text)
    text = re.sub(r"\s*,\s*", ",", text)
    bare: list[str] = []
    pairs: dict[str, str] = {}
    for word in text.replace(";", " ").split():
        key, equals, value = word.partition("=")
        key, value = key.lower(), value.strip('"')
        if not equals:
            bare.append(word)
        elif pairs.setdefault(key, value) != value:
            raise InterfaceError(
                f"{where}: {key}={pairs[key]} and {key}={value} in one pragma; expected one of them"
            )
    return bare, pairs


def port_name(text: str) -> str:
    """Return the name in a directive's ``port``, without quotes, ``&``, ``*`` and brackets."""
    return text.strip().strip("\"'").lstrip("&*").strip("()")


def _make(bare: Iterable[str], pairs: dict[str, str], where: str) -> list[Directive]:
    mode = pairs.pop("mode", None)
    ports = pairs.pop("port", "")
    options = dict(pairs)
    for word in map(str.lower, bare):
        # A word that is no flag is a mode, if only a misspelt one.
        if mode is None and word not in FLAGS:
            mode = word
        else:
            options[word] = "true"
    mode = None if mode is None else mode.lower()
    names = [port_name(port) for port in ports.split(",") if port.strip()]
    return [Directive(name, mode, options, where) for name in names or [""]]


def from_pragmas(pragmas: Sequence[Pragma]) -> list[Directive]:
    """Return the INTERFACE directives among `pragmas`, in order.

    ``RESOURCE core=AXI4LiteS`` and its kin, the spelling of Vivado HLS 2012 to 2014, count too.
    """
    found: list[Directive] = []
    for pragma in pragmas:
        name, rest = [*pragma.text.split(None, 1), "", ""][:2]
        keyword = name.lower()
        if keyword == "interface":
            found += _make(*_split_options(rest.replace("\t", " "), pragma.where), pragma.where)
        elif keyword == "resource":
            found += _from_resource(rest, pragma.where)
    return found


def _from_resource(text: str, where: str) -> list[Directive]:
    metadata = re.search(r'metadata\s*=\s*"?\{?([^"}]*)', text)
    bundle = re.search(r"-bus_bundle\s+(\w+)", metadata.group(1)) if metadata else None
    _, pairs = _split_options(re.sub(r'metadata\s*=\s*"[^"]*"', "", text), where)
    modes = {"axi4lites": "s_axilite", "axi4m": "m_axi", "axi4stream": "axis", "axis": "axis"}
    mode = modes.get(pairs.get("core", "").lower())
    if mode is None:
        return []
    if not pairs.get("variable"):
        raise InterfaceError(
            f"{where}: RESOURCE core={pairs['core']} names no argument; write variable=NAME"
        )
    options = {"bundle": bundle.group(1)} if bundle else {}
    return [Directive(port_name(pairs["variable"]), mode, options, where)]


def from_files(source: Path, top: str, given: Path | None = None) -> Settings:
    """Return what the configuration files beside `source`, or one that is given, say about `top`.

    Parameters
    ----------
    source : pathlib.Path
        The kernel's source; its folder is searched for ``*.cfg`` and the usual Tcl names, and
        the folders of a Vivado HLS project below it for one ``directives.tcl``.
    top : str
        Directives for other functions are left out.
    given : pathlib.Path, optional
        The one file that counts.
    """
    settings = Settings()
    for path in files_beside(source) if given is None else [given]:
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
    return [*sorted(path for path in folder.glob("*.cfg") if path.is_file()), *scripts]


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


def config_lines(path: Path) -> list[tuple[str, str]]:
    """Return the lines of a configuration file and where they are, continued ones as one."""
    try:
        rows = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise InterfaceError(f"{path}: cannot be read ({error.strerror})") from error
    lines: list[tuple[str, str]] = []
    begun = ""
    for number, row in enumerate(rows, start=1):
        if begun:
            lines[-1] = (lines[-1][0], f"{begun} {row}")
        else:
            lines.append((f"{path}:{number}", row))
        text = lines[-1][1].rstrip("\r")
        begun = text.removesuffix("\\") if text.endswith("\\") else ""
    return lines


def _read_config(path: Path, top: str, settings: Settings) -> None:
    rows = []
    for where, line in config_lines(path):
        key, _, value = line.split("#", 1)[0].partition("=")
        rows.append((where, key.strip().lower(), value.strip()))
    # A configuration for another kernel of the same folder says nothing about this one.
    if any(key == "syn.top" and value != top for _, key, value in rows):
        return
    for where, key, value in rows:
        if key == "flow_target":
            if value.lower() not in _FLOWS:
                settings.warnings.append(
                    f"{where}: flow_target={value} is ignored; expected {' or '.join(_FLOWS)}"
                )
            elif value.lower() != "vivado":
                settings.flow_target = value.lower()
        elif key == "syn.directive.interface":
            bare, pairs = _split_options(value, where)
            words = [word for word in bare if word.lower() not in MODES]
            if words and words[0].split("/")[0] == top:
                pairs.setdefault("port", "".join(words[1:2]))
                modes = [word for word in bare if word.lower() in MODES]
                made = _make([*modes, *words[2:]], pairs, where)
                settings.directives += map(_of_the_function, made)
        elif key.startswith("syn.interface."):
            name = key.removeprefix("syn.interface.")
            settings.warnings += check_setting(name, value, where)
            settings.options[name] = value
        else:
            settings.warnings += check_command(key, ("syn.directive.interface",), where)


def _read_tcl(path: Path, top: str, settings: Settings) -> None:
    for where, line in config_lines(path):
        line = line.strip()
        command = line.split(None, 1)[0] if line else ""
        if command not in (*_TCL_COMMANDS, "open_solution"):
            settings.warnings += check_command(command, _TCL_COMMANDS, where)
            continue
        try:
            words = shlex.split(line, comments=True)[1:]
        except ValueError as error:
            settings.warnings.append(f"{where}: {command} is not followed: {error}")
            continue
        options, positional = tcl_words(words)
        if command == "open_solution":
            settings.flow_target = options.get("flow_target", settings.flow_target)
        elif command == "config_interface":
            for name, value in options.items():
                settings.warnings += check_setting(name, value, where)
            settings.options.update(options)
        elif positional and positional[0].split("/")[0] == top:
            mode = options.pop("mode", "").lower() or None
            for port in positional[1:] or [""]:
                directive = Directive(port_name(port), mode, options, where)
                settings.directives.append(_of_the_function(directive))


def _of_the_function(directive: Directive) -> Directive:
    """Give a command that names the function and no port the port ``return``, as the tools do.

    Only modes that the return has in a control register: any other may have lost its port.
    """
    if directive.port or directive.mode not in (*BLOCK_MODES, "s_axilite"):
        return directive
    return replace(directive, port="return")


def tcl_words(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the options and the other words of a Tcl command."""
    options: dict[str, str] = {}
    positional: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        key, equals, value = word.partition("=")
        if not word.startswith("-"):
            positional.append(word.strip("{}"))
        elif equals:
            options[key[1:].lower()] = value
        elif key.lower() in _TCL_FLAGS or not rest or re.match(r"-\D", rest[0]):  # -1 is a value
            options[key[1:].lower()] = "true"
        else:
            options[key[1:].lower()] = rest.pop(0).strip("{}")
    return options, positional
