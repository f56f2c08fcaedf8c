"""``python -m pynq_torch board-check``: try the board part by part, write one report of it."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from datetime import datetime, timezone
from html import escape
from pathlib import Path
from typing import Any

from pynq_torch.tables import Table

from .run import check_board as check_name

__all__ = ["declare"]

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>board-check: {board}</title>
<meta name="color-scheme" content="light dark"><style>body {{ font: 15px sans-serif; margin: 2em }}
table {{ border-collapse: collapse; margin: 1em 0 }} td, th {{ padding: 4px 12px; text-align: left;
border-bottom: 1px solid #8884 }}</style><h1>board-check: {board}</h1>
<p>{started}. {counts}. Every number says its kind. Times are compared with models only where they
are a board's.</p>{tables}</html>
"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``board-check``."""
    parser.description = (
        "Try clocks, CMA, registers, a kernel over the HP ports, DMA, interrupts, a wait that has "
        "to end, and every overlay whose bitstream this board can load; compare with the models, "
        "and write one JSON file and one HTML page. It needs numpy and pynq alone. The exit status "
        "is 1 where a check failed."
    )
    parser.add_argument(
        "--board", default="local", help="default: %(default)s, the board pynq finds"
    )
    parser.add_argument("--output", type=Path, default=Path("board-check"), metavar="DIR")
    parser.set_defaults(func=_check)


def _check(options: argparse.Namespace) -> int:
    import pynq_torch
    from pynq_torch.report.board_check import check_board, machine

    check_name(options.board)
    pynq_torch.use_board(options.board)
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    options.output.mkdir(parents=True, exist_ok=True)
    facts = machine()
    outcomes = check_board(lambda o: print(f"{o.verdict:<8}{o.name}  {o.said}".rstrip()))
    failed = sum(outcome.verdict == "fail" for outcome in outcomes)
    counts = f"{sum(o.verdict == 'pass' for o in outcomes)} passed, {failed} failed, " + (
        f"{sum(o.verdict == 'skipped' for o in outcomes)} skipped"
    )
    found = {"started": started, "machine": facts, "checks": [asdict(o) for o in outcomes]}
    (options.output / "board-check.json").write_text(json.dumps(found, indent=1) + "\n")
    page = options.output / "board-check.html"
    tables = "".join(table._repr_html_() for table in _tables(facts, outcomes))
    page.write_text(
        _PAGE.format(board=escape(facts["board"]), started=started, counts=counts, tables=tables),
        encoding="utf-8",
    )
    print(f"{page}\n{counts}")
    return 1 if failed else 0


def _tables(facts: dict[str, str], outcomes: list[Any]) -> list[Table]:
    def expected(row: Any) -> str:
        return "" if row.expected is None else f"{row.expected:.4g} ({row.expected_kind})"

    return [
        Table(["", "found"], list(facts.items())),
        Table(
            ["check", "verdict", "seconds", "why"],
            [[o.name, o.verdict, o.seconds, o.said] for o in outcomes],
        ),
        Table(
            ["check", "what", "found", "kind", "expected"],
            [
                [o.name, r.what, f"{r.value:.4g} {r.unit}", r.kind, expected(r)]
                for o in outcomes
                for r in o.rows
            ],
        ),
    ]
