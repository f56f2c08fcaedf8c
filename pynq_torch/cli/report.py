"""``python -m pynq_torch report``: execute notebooks and write pages, or compare two reports.

Every notebook runs in a Jupyter kernel of its own, with the board named in its environment and,
where the notebook has a ``BOARD`` parameter, in that. Parameters are checked against what the
notebooks declare before anything runs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

from pynq_torch.paths import ROOT
from pynq_torch.report import compare
from pynq_torch.report.execute import EXECUTION_TIMEOUT_S, execute_all
from pynq_torch.report.history import (
    Summary,
    commit_of,
    new_folder,
    read_rows,
    versions,
    write_all,
)
from pynq_torch.report.plan import Run, find_notebooks, plan
from pynq_torch.report.records import ReportError
from pynq_torch.report.result import Result
from pynq_torch.report.spread import execute_on_farm

from .interrupts import ended_in_order
from .run import DEFAULT_BOARD, check_board

_DESCRIPTION = """\
Run the notebooks on a board and write index.html, which shows how each notebook went and what
changed since the run before, index.csv, and runs/<id>/ with the executed notebooks. One failing
notebook does not stop the rest; the exit status is 1 where one failed.

NAME=value sets the parameter NAME of the notebooks that declare it. Several values, with commas
or blanks between them, make a run of each; several such parameters, one of each combination:
  SIZE=64,128,256   or   SIZES="64 128 256"   (a plural stands for the parameter)
  NAME="'one two'"  or   LIST=[1,2]           (quotes and brackets keep a value together)

--compare exits with 1 where a number is worse than before by more than the tolerance, is gone,
is of another kind, or where a notebook that passed fails. Lessons record what is the same on any
PC: cycles, models, errors. How long they took is shown, and judged with --durations only. Where
nothing could be judged it says so, and exits with 0.
"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare ``report``, with its options and ``NAME=value`` words."""
    parser.description = _DESCRIPTION
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--board", default=DEFAULT_BOARD, help="default: %(default)s")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument(
        "--jobs", type=int, default=cores, help=f"notebooks at a time (default: the cores, {cores})"
    )
    parser.add_argument(
        "--scheduler", metavar="ADDRESS",
        help="execute on a farm of boards instead, by this Dask scheduler (see docs/farm.md)",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", type=int, default=EXECUTION_TIMEOUT_S, metavar="SECONDS",
        help="the longest that one cell may take (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--notebooks", type=Path, default=ROOT / "notebooks", metavar="DIR")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAMES",
        help="only these notebooks: names or numbers, e.g. 05,07_torch_device",
    )  # fmt: skip
    parser.add_argument("--output", type=Path, default=Path("reports"), metavar="DIR")
    parser.add_argument(
        "--keep", type=int, metavar="N", help="delete older runs beyond N (default: keep all)"
    )
    parser.add_argument(
        "--compare", nargs=2, metavar=("BEFORE", "AFTER"),
        help="run nothing; compare two reports: folders, JSON or CSV files, or ids of runs",
    )  # fmt: skip
    parser.add_argument(
        "--tolerance", type=float, metavar="SHARE",
        help=f"what --compare allows a number to be worse (default: {compare.TOLERANCE})",
    )  # fmt: skip
    parser.add_argument(
        "--durations", action="store_true",
        help="let --compare judge how long notebooks took as well",
    )  # fmt: skip
    parser.add_argument("parameters", nargs="*", metavar="NAME=value")
    parser.set_defaults(func=_main)


def _main(parsed: argparse.Namespace) -> int:
    if parsed.compare:
        if parsed.parameters:
            raise ReportError(f"--compare runs nothing: '{parsed.parameters[0]}' has no meaning")
        return _compare(parsed)
    if parsed.tolerance is not None or parsed.durations:
        raise ReportError("--tolerance and --durations belong to --compare BEFORE AFTER")
    return _run(parsed)


def _check(parsed: argparse.Namespace) -> None:
    check_board(parsed.board)
    least_of = {"jobs": "1 or more", "timeout": "1 or more seconds", "keep": "1 or more"}
    for option, least in least_of.items():
        given = getattr(parsed, option)
        if given is not None and given < 1:
            raise ReportError(f"--{option} {given}: expected {least}")


def _run(parsed: argparse.Namespace) -> int:
    _check(parsed)
    only = [name for text in parsed.only for name in text.replace(",", " ").split()]
    values = _pairs(parsed.parameters)
    runs = plan(find_notebooks(parsed.notebooks, only), parsed.board, values)
    commit, started, begin = commit_of(ROOT), datetime.now(timezone.utc), time.perf_counter()
    folder = new_folder(parsed.output, parsed.board, commit, started)
    ended: list[Result] = []
    try:
        with ended_in_order():
            results = _execute(parsed, runs, folder, ended.append)
    except (KeyboardInterrupt, SystemExit) as error:
        print(f"\n{_kept(ended, len(runs), folder)}", file=sys.stderr)  # below the bar
        if isinstance(error, SystemExit):
            raise
        return 128 + signal.SIGINT
    summary = Summary(
        id=folder.name,
        board=parsed.board,
        commit=commit,
        started=started.isoformat(timespec="seconds"),
        elapsed_s=round(time.perf_counter() - begin, 1),
        jobs=parsed.jobs,
        given=values,
        versions=versions(),
        notebooks=results,
    )
    page = write_all(summary, parsed.output, keep=parsed.keep)
    for result in results:
        if not result.passed:
            print(f"\n{result.name}: {result.error}", file=sys.stderr)
    print(f"{page}\n{folder / 'index.html'}\n{summary.passed} passed, {summary.failed} failed")
    return 1 if summary.failed else 0


def _execute(
    parsed: argparse.Namespace,
    runs: Sequence[Run],
    folder: Path,
    on_result: Callable[[Result], object],
) -> list[Result]:
    if parsed.scheduler:
        return execute_on_farm(
            runs, folder, parsed.board, parsed.scheduler,
            timeout_s=parsed.timeout, on_result=on_result,
        )  # fmt: skip
    return execute_all(
        runs, folder, parsed.board,
        jobs=parsed.jobs, timeout_s=parsed.timeout, on_result=on_result,
    )  # fmt: skip


def _kept(ended: Sequence[Result], runs: int, folder: Path) -> str:
    """Return what an interrupted report leaves; a run in which nothing ended leaves nothing."""
    if not ended:
        shutil.rmtree(folder)
        return "interrupted: no notebook had ended, nothing was kept"
    names = ", ".join(result.name for result in ended)
    return (
        f"interrupted: {len(ended)} of {runs} notebooks had ended and were kept in '{folder}': "
        f"{names}. The overview does not count this run."
    )


def _compare(parsed: argparse.Namespace) -> int:
    before, after = (read_rows(name, parsed.output) for name in parsed.compare)
    tolerance = compare.TOLERANCE if parsed.tolerance is None else parsed.tolerance
    found = compare.compare(before, after, tolerance, durations=parsed.durations)
    print(compare.table(found))
    print(f"\n{compare.counts(found)}; tolerance {tolerance:g}")
    if sentence := compare.nothing_judged(found):
        print(sentence)
    return 1 if any(item.failed for item in found) else 0


def _pairs(words: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            notebook = Path(word).stem if word.endswith(".ipynb") else "05"
            raise ReportError(
                f"'{word}' is no parameter; expected NAME=value, as in SEED=3. "
                f"Notebooks are chosen with --only, as in --only {notebook}"
            )
        if name in pairs:
            raise ReportError(f"parameter '{name}' is given twice; write {name}=one,two for both")
        pairs[name] = value
    return pairs
