"""``python -m pynq_torch doctor``: what is there, what is missing, and what mends it."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pynq_torch import tables
from pynq_torch.errors import needs

from .doctor_checks import CHECKS, SIMULATOR, Finding

__all__ = ["Finding", "examine", "table"]

_SIGNS = {
    "ok": ("ok", "green"),
    "missing": ("missing", "red"),
    "wrong": ("wrong", "red"),
    "absent": ("-", "yellow"),
}
_INDENT = 9
_WRAP: Any = {"subsequent_indent": "  ", "break_on_hyphens": False}


def examine() -> list[Finding]:
    """Look at this machine and return one finding a row, in the order of the table."""
    return [finding for check in CHECKS for finding in check()]


@dataclass(frozen=True)
class _Rows:
    """Findings as lines of at most the terminal's width; a narrow one has no room for columns."""

    findings: Sequence[Finding]

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        with needs("rich", "A table in colours"):
            from rich.text import Text

        yield Text("pynq_torch doctor", style="bold")
        width = max(options.max_width - _INDENT, 20)
        for finding in self.findings:
            word, colour = _SIGNS[finding.status]
            # Text, not markup: a path may hold square brackets.
            sign = Text(f"{word:<{_INDENT}}", style=colour)
            for line in textwrap.wrap(f"{finding.name}: {finding.found}", width, **_WRAP):
                yield sign + Text(line, style="default")
                sign = Text(" " * _INDENT)
            for line in _command(finding.fix, width) if finding.fix else ():
                yield Text(" " * _INDENT + line, style="bold")


def table(findings: Sequence[Finding]) -> _Rows:
    """Return `findings` for a rich console: a line or a few for each, as wide as the terminal."""
    return _Rows(findings)


def _command(command: str, width: int) -> Iterator[str]:
    """Yield what mends a finding in lines that a shell takes as they are.

    They are broken between words only: a path in two pieces could not be copied.
    """
    line = "mended by:"
    for word in re.findall(r"""(?:[^\s'"]|'[^']*'|"[^"]*"|['"])+""", command):
        if len(line) + len(word) + 3 > width and line.strip():  # 3: a space before, " \\" after
            yield line if line == "mended by:" else f"{line} \\"
            line = " "
        line += f" {word}"
    yield line


def verdicts(findings: Sequence[Finding]) -> list[str]:
    """Return the sentences below the table: for each virtual board, whether it can run here."""
    fatal = [finding.name for finding in findings if finding.fatal]
    # Board rtl is csim with a simulator: what csim cannot do without, it cannot either.
    simulator = [f.name for f in findings if f.name == SIMULATOR and f.status != "ok"]
    return [
        f"The board {board} cannot run here: see {', '.join(wanting)}."
        if wanting
        else f"The board {board} can run here."
        for board, wanting in (("csim", fatal), ("rtl", fatal + simulator))
    ]


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare ``doctor [--json]``."""
    parser.description = (
        "Say what is there, what is missing, and the one command that mends it. The exit status "
        "is non-zero only where the default board cannot run."
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object for programs")
    parser.set_defaults(func=_run)


def _run(parsed: argparse.Namespace) -> int:
    findings = examine()
    usable = not any(finding.fatal for finding in findings)
    if parsed.json:
        rows = [dataclasses.asdict(finding) for finding in findings]
        print(json.dumps({"usable": usable, "findings": rows}, indent=1))
    else:
        print(_coloured(findings) if importlib.util.find_spec("rich") else plain(findings))
    return 0 if usable else 1


def plain(findings: Sequence[Finding]) -> str:
    """Return table and verdicts as plain text: rich is one of the packages that may be missing."""
    header = ["what", "status", "found", "mended by"]
    rows = [[f.name, _SIGNS[f.status][0], f.found, f.fix or ""] for f in findings]
    return "\n".join([str(tables.Table(header, rows)), "", *verdicts(findings)])


def _coloured(findings: Sequence[Finding]) -> str:
    from rich.console import Console
    from rich.text import Text

    console = Console()
    # Captured: a Console ends the program by itself where nobody reads, print() does not.
    with console.capture() as shown:
        # The lines fit; only a path longer than the terminal is left to it, in one piece.
        console.print(table(findings), soft_wrap=True)
        for sentence in verdicts(findings):
            console.print(Text(sentence, style="red" if " cannot " in sentence else "green"))
    return shown.get().rstrip("\n")
