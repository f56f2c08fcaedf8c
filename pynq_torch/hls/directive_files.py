"""Directives that are written in files beside a source: Tcl commands and lines of a cfg file."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from .directives import Pragma, config_lines, tcl_words
from .lint_tree import Directive, Problem, Program
from .spelling import MODES, nearest

__all__ = [
    "added",
    "default_fifo",
    "directives_of",
    "divides_arrays",
    "misspelt_settings",
    "not_followed",
]

#: Directives of something with a name: the option that says it where the name does not stand alone.
_NAMED_BY = {
    **dict.fromkeys(
        ("array_partition", "array_reshape", "bind_storage", "resource", "stream", "dependence",
         "bind_op", "aggregate", "disaggregate", "data_pack", "array_map", "function_instantiate",
         "stable", "reset"),
        "variable",
    ),
    "interface": "port",
    "allocation": "instances",
}  # fmt: skip
#: Words that may stand alone and are no such name.
_KINDS = {"interface": tuple(MODES), "allocation": ("function", "operation", "core")}
#: Options of config_array_partition of Vitis HLS, and the values that a schedule can follow.
_ARRAY_OPTIONS = {"throughput_driven": ("auto", "off"), "complete_threshold": ("4",)}
#: Those of Vivado HLS (UG902), which do not change what an estimate assumes.
_OLD_OPTIONS = (
    "auto_partition_threshold", "auto_promotion_threshold", "exclude_extern_globals",
    "include_ports", "maximum_size", "scalarize_all", "include_extern_globals",
)  # fmt: skip
#: Commands, or options of them, that change a schedule and that no estimate follows: what to do.
_NOT_FOLLOWED = {
    ("op", ""): "write BIND_OP, or RESOURCE, for each variable",
    ("unroll", ""): "write UNROLL in the loops",
    ("compile", "unsafe_math_optimizations"): (
        "floating-point sums keep their order; write several sums"
    ),
    ("schedule", "relax_ii_for_timing"): "II is what the clock allows",
}
_OTHERS = """
    array_partition bind core cosim csim dataflow debug emulation export interface op package rtl
    sdx storage
"""
_COMPILE = """
    disable_start_propagation disable_unroll_code_size_check enable_auto_rewind
    ignore_long_run_time instruction_warning_threshold name_max_length no_signed_zeros
    pipeline_flush_in_task pipeline_loops pipeline_style pragma_strict_mode
    unsafe_math_optimizations
"""
#: The settings of UG1399 and UG902 ("Configuration Commands"), config_NAME in Tcl and syn.NAME in
#: a cfg file, and all options of those that change a schedule.
_SETTINGS = {name: list[str]() for name in _OTHERS.split()} | {
    "compile": _COMPILE.split(),
    "schedule": ["effort", "enable_dsp_full_reg", "relax_ii_for_timing", "verbose"],
    "unroll": ["tripcount_threshold"],
}
#: What else a cfg file says of synthesis.
_OF_A_CFG = (
    "blackbox", "cflags", "csimflags", "directive", "file", "file_cflags", "file_csimflags",
    "output", "top",
)  # fmt: skip
#: Values that say that an option is off, as it is by default.
_OFF = ("0", "false", "off")


def _settings(path: Path | str | None) -> Iterator[tuple[str, int, str, dict[str, str]]]:
    """Yield file, line, name and options of each ``config_name`` (Tcl), or ``syn.name`` (cfg)."""
    for where, line in config_lines(Path(path)) if path is not None else ():
        text = line.split("#", 1)[0].strip()
        if text.startswith("config_"):
            command, *words = text.split()
            name, options = command.removeprefix("config_"), tcl_words(words)[0]
        elif text.startswith("syn."):
            key, _, value = text.removeprefix("syn.").partition("=")
            name, _, option = key.strip().partition(".")
            options = {option: value.strip()}
        else:
            continue
        file, _, number = where.rpartition(":")
        yield file, int(number), name, options


def not_followed(path: Path | str | None) -> Iterator[Problem]:
    """Yield each line of a file that changes what the tools do, and not what an estimate says."""
    for file, number, name, options in _settings(path):
        on = {key.lower() for key, value in options.items() if value.lower() not in _OFF}
        for (command, option), instead in _NOT_FOLLOWED.items():
            if name == command and on and (not option or option in on):
                said = f"config_{name} is not modelled in this estimate: {instead}"
                yield file, number, "pragma", said


def misspelt_settings(path: Path | str | None) -> Iterator[Problem]:
    """Yield each line of a file that sets nothing, and is a setting but for a letter or two."""
    begins, known = "syn." if str(path).endswith(".cfg") else "config_", (*_SETTINGS, *_OF_A_CFG)
    for file, number, name, options in _settings(path):
        if name not in known and (hint := nearest(name, known)):
            hint = hint.replace(" mean ", f" mean {begins}")
            yield file, number, "pragma", f"{begins}{name} is ignored{hint}"
        there = _SETTINGS.get(name, [])
        for option in (one for one in options if there and one and one.lower() not in there):
            if hint := nearest(option, there):
                yield file, number, "pragma", f"{begins}{name} has no option {option!r}{hint}"


def divides_arrays(path: Path | str | None) -> tuple[bool, list[Problem]]:
    """Return whether a file lets Vitis HLS divide arrays by itself, and what is not understood.

    ``config_array_partition -throughput_driven off`` (Tcl) and
    ``syn.array_partition.throughput_driven=off`` (cfg) forbid it (UG1399).
    """
    divides, problems = True, []
    of_arrays = (one for one in _settings(path) if one[2] == "array_partition")
    for file, number, _, options in of_arrays:
        for name, value in options.items():
            if name.lower() in ("", *_OLD_OPTIONS):
                continue
            known = _ARRAY_OPTIONS.get(name.lower())
            if known is None:
                said = f"has no option {name!r}{nearest(name, _ARRAY_OPTIONS)}"
            elif value.lower() not in known:
                said = f"has {name}={value}, which is ignored; expected {' or '.join(known)}"
            else:
                divides = divides and value.lower() != "off"
                continue
            problems.append((file, number, "pragma", f"config_array_partition {said}"))
    return divides, problems


def default_fifo(path: Path | str | None) -> tuple[str, int, int] | None:
    """Return file, line and depth of what makes arrays between processes FIFOs, None by default.

    ``config_dataflow -default_channel fifo -fifo_depth 2`` (UG902, UG1399) does, in the file or in
    the script of its solution. A depth of 0 is that of the array.
    """
    found, depth = None, 0
    beside = [] if path is None else [Path(path), Path(path).with_name("script.tcl")]
    for one in dict.fromkeys(beside):
        for file, number, name, options in _settings(one) if one.is_file() else ():
            if name != "dataflow":
                continue
            if (channel := options.get("default_channel", "").lower()) in ("fifo", "pingpong"):
                found = (file, number) if channel == "fifo" else None
            if (said := options.get("fifo_depth", "")).isdigit():
                depth = int(said)
    return (*found, depth) if found is not None else None


def _named(name: str, bare: Sequence[str], options: Mapping[str, str]) -> list[str]:
    """Return the variable, port or instance that a line of a cfg file names without a key."""
    if name not in _NAMED_BY or _NAMED_BY[name] in options:
        return []
    return [word for word in bare if word.lower() not in _KINDS.get(name, ())][:1]


def _unreadable(path: Path | str | None) -> Iterator[Problem]:
    """Yield each directive whose quotes or brackets are not closed."""
    for where, line in config_lines(Path(path)) if path is not None else ():
        is_directive = line.strip().startswith(("set_directive_", "syn.directive."))
        if is_directive and not line.strip().startswith("set_directive_interface"):  # said already
            try:
                shlex.split(line, comments=True)
            except ValueError as error:
                file, _, number = where.rpartition(":")
                name = line.split("=")[0].split()[0]
                said = f"{name} is ignored: {str(error).lower()}; write the quote that ends it"
                yield file, int(number), "pragma", said


def directives_of(path: Path) -> Iterator[tuple[str, Directive]]:
    """Yield the location (``top/loop``) and the directive of each line of a Tcl or cfg file."""
    for where, line in config_lines(path):
        text = line.strip()
        file, _, number = where.rpartition(":")
        if text.startswith("set_directive_"):
            try:
                words = shlex.split(text, comments=True)
            except ValueError:  # as :func:`added` says
                continue
            options, positional = tcl_words(words[1:])
            name = words[0].removeprefix("set_directive_").lower()
        elif text.startswith("syn.directive."):
            key, _, value = text.partition("=")
            name = key.removeprefix("syn.directive.").strip().lower()
            try:
                first, *rest = shlex.split(value) or [""]
            except ValueError:  # as :func:`added` says
                continue
            pairs = [word.partition("=") for word in rest]
            options = {k.lower().lstrip("-"): v or "true" for k, e, v in pairs if e}
            bare = [word for word, equals, _ in pairs if not equals]
            positional = [first, *_named(name, bare, options)]
            options |= {word.lower(): "true" for word in bare if word not in positional[1:]}
        else:
            continue
        positional = positional or [""]
        if len(positional) > 1 and name in _NAMED_BY:
            options.setdefault(_NAMED_BY[name], positional[1])
        given = {key: value for key, value in options.items() if value != "true"}
        flags_only = tuple(key for key, value in options.items() if value == "true")
        pragma = Pragma(file, int(number), text)
        yield positional[0], Directive(pragma, name, flags_only, given)


def added(programs: Sequence[Program], path: Path | str | None) -> Iterator[Problem]:
    """Add the directives of a file to programs; yield those that have no place or no end."""
    yield from _unreadable(path)
    for where, item in directives_of(Path(path)) if path is not None else ():
        if not any(program.add(where, item) for program in programs):
            text = f"{item.name.upper()} is for {where!r}, which is not there; write FUNCTION/LABEL"
            option, value = [("", "0"), *item.options.items()][-1]
            if not where and not value.isdigit():
                text = f"{item.name.upper()} has {value!r} as the value of -{option}, and no place"
                text += "; write a value for it, or leave it out, before FUNCTION/LABEL"
            yield item.pragma.file, item.pragma.line, "pragma", text
