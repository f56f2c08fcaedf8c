"""``python -m pynq_torch doctor``: what is there, what is missing, and what mends it."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pynq_torch import tables
from pynq_torch.errors import needs

from .doctor_checks import CHECKS, SIMULATOR, Finding

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from rich.table import Table

__all__ = ["Finding", "examine", "table"]

_SIGNS = {
    "ok": ("ok", "green"),
    "missing": ("missing", "red"),
    "wrong": ("wrong", "red"),
    "absent": ("-", "yellow"),
}


def examine() -> list[Finding]:
    """Look at this machine and return one finding a row, in the order of the table."""
    return [finding for check in CHECKS for finding in check()]


def table(findings: Sequence[Finding]) -> Table:
    """Return `findings` as a table for a terminal or a notebook; rich draws it."""
    with needs("rich", "A table in colours"):
        from rich.table import Table
        from rich.text import Text

    result = Table(title="pynq_torch doctor", title_justify="left")
    result.add_column("what")
    result.add_column("status")
    result.add_column("found", overflow="fold")
    result.add_column("mended by", overflow="fold")
    for finding in findings:
        word, colour = _SIGNS[finding.status]
        # Text, not markup: a path may hold square brackets.
        result.add_row(
            Text(finding.name),
            Text(word, style=colour),
            Text(finding.found),
            Text(finding.fix or ""),
        )
    return result


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


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``doctor [--json]``."""
    parser = subparsers.add_parser(
        "doctor",
        help="say what is there, what is missing, and what mends it",
        description="Say what is there, what is missing, and the one command that mends it. The "
        "exit status is non-zero only where the default board cannot run.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object for programs")
    parser.set_defaults(func=_run)


def _run(parsed: argparse.Namespace) -> int:
    findings = examine()
    usable = not any(finding.fatal for finding in findings)
    if parsed.json:
        rows = [dataclasses.asdict(finding) for finding in findings]
        print(json.dumps({"usable": usable, "findings": rows}, indent=1))
    elif importlib.util.find_spec("rich") is None:
        print(plain(findings))
    else:
        print(_coloured(findings), end="")
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
        console.print(table(findings))
        for sentence in verdicts(findings):
            console.print(Text(sentence, style="red" if " cannot " in sentence else "green"))
    return shown.get()
