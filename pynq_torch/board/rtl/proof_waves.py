"""The counterexample of a proof as waves: a dump of steps becomes one with a clock and scopes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

__all__ = ["clocked", "low_at_the_end"]

_PERIOD = 2
_VARIABLE = re.compile(r"\$var wire (\d+) (\S+) \\?(\S+) \$end")


def clocked(dump: str) -> tuple[str, int]:
    """Return yosys' dump of a counterexample with a clock, and how many steps it has.

    A step of the dump becomes a cycle of ``clk``; names that are paths become scopes.
    """
    header, _, body = dump.partition("$dumpvars")
    variables = {tag: (name, width) for width, tag, name in _VARIABLE.findall(header)}
    parts = re.split(r"^#\d+$", body, flags=re.MULTILINE)
    steps = [list(_values(part, variables.keys())) for part in parts]
    steps = [step for step in steps if step]
    lines = ["$timescale 1ns $end", *_scopes(variables), "$enddefinitions $end"]
    for number, step in enumerate(steps):
        lines += [f"#{_PERIOD * number}", "0clk", *step, f"#{_PERIOD * number + 1}", "1clk"]
    return "\n".join([*lines, f"#{_PERIOD * len(steps)}", "0clk", ""]), len(steps)


def _values(part: str, tags: Collection[str]) -> Iterator[str]:
    """Yield the changes of a step: ``1v3``, ``b0101 v4``; not those of parts of a signal."""
    for line in part.splitlines():
        bit, _, tag = line.partition(" ")
        if line[:1] in set("01xb") and (tag or bit[1:]) in tags:
            yield line


def _scopes(variables: dict[str, tuple[str, str]]) -> Iterator[str]:
    """Yield the declarations, module by module."""
    modules: dict[str, list[str]] = {"": ["$var wire 1 clk clk $end"]}
    for tag, (name, width) in variables.items():
        module, _, own = name.rpartition(".")
        modules.setdefault(module, []).append(f"$var wire {width} {tag} {own} $end")
    # The clock beside the proof as well, as Verilator shows the ports of a top module.
    yield from ("$scope module TOP $end", modules[""][0], "$scope module proof $end")
    for module, declared in sorted(modules.items()):
        inside = [part for part in module.split(".") if part]
        yield from (f"$scope module {part} $end" for part in inside)
        yield from declared
        yield from ("$upscope $end" for _ in inside)
    yield from ("$upscope $end", "$upscope $end")


def low_at_the_end(dump: str, names: Iterable[str]) -> Iterator[str]:
    """Yield those of the proof's own signals that are 0 in the last step."""
    declared = {name: tag for _, tag, name in reversed(_VARIABLE.findall(dump))}
    last = dict(reversed(line) for line in re.findall(r"^([01])(\S+)$", dump, re.MULTILINE))
    yield from (name for name in names if last.get(declared.get(name, "")) == "0")
