"""``make report``: run the notebooks on a board and write a page about how it went.

Every notebook runs in a papermill process of its own, with the board named in its environment
and, where the notebook has a ``BOARD`` parameter, in that. Parameters are checked against what
the notebooks declare before anything runs.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from datetime import datetime, timezone
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from pynq_torch.errors import PynqTorchError
from pynq_torch.report_page import Result, Run, describe, write_index
from pynq_torch.run import DEFAULT_BOARD, check_board

if TYPE_CHECKING:
    from argparse import _SubParsersAction

ROOT = Path(__file__).resolve().parent.parent
EXECUTION_TIMEOUT_S = 600
START_TIMEOUT_S = 120
_CELL_ENDED = re.compile(r"Ending Cell \d+")


class ReportError(PynqTorchError):
    """The report was asked for something that no notebook can do."""


def find_notebooks(folder: Path) -> list[Path]:
    """Return the lessons, ``NN_<topic>.ipynb``, in order.

    Raises
    ------
    ReportError
        There is none.
    """
    found = sorted(p for p in folder.glob("*.ipynb") if re.match(r"\d\d_", p.name))
    if not found:
        raise ReportError(f"no notebook in '{folder}': expected files named NN_<topic>.ipynb")
    return found


def plan(notebooks: Sequence[Path], board: str, values: Mapping[str, str]) -> list[Run]:
    """Decide which parameters every notebook gets.

    Parameters
    ----------
    notebooks : sequence of Path
        What will be executed.
    board : str
        Passed as ``BOARD`` to the notebooks that declare it.
    values : mapping of str to str
        Parameters as typed on the command line. One that a notebook does not declare is left
        out for that notebook; one that no notebook declares is refused.

    Raises
    ------
    ReportError
        A parameter is unknown, or its value has another type than the default.
    """
    declared = {path: _declared(path) for path in notebooks}
    known = sorted({name for parameters in declared.values() for name in parameters})
    for name in values:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise ReportError(f"parameter '{name}' is unknown; the notebooks declare: {listed}")
    wanted = {**values, "BOARD": board}
    runs = []
    for path in notebooks:
        own = declared[path]
        parameters = {n: _typed(n, wanted[n], own[n]) for n in wanted if n in own}
        # papermill puts what it was given into a cell of its own
        cells = _cell_count(path) + bool(parameters)
        defaults = {name: _literal(text) for name, text in own.items()}
        runs.append(Run(path, parameters, defaults, cells))
    return runs


def _declared(path: Path) -> dict[str, str]:
    """Return the names in the cell tagged ``parameters``, with their defaults as written."""
    from papermill import inspect_notebook

    try:
        return {name: str(info["default"]) for name, info in inspect_notebook(str(path)).items()}
    except ValueError as error:
        raise ReportError(f"notebook '{path}' cannot be read: {error}") from error


def _cell_count(path: Path) -> int:
    return len(json.loads(path.read_text(encoding="utf-8"))["cells"])


def _typed(name: str, text: str, default: str) -> Any:
    """Read `text` as a value of the type that `default` has."""
    expected = _literal(default)
    if isinstance(expected, str):
        return text.strip("'\"")
    value = _literal(text)
    fits = {bool: (bool,), int: (int,), float: (int, float)}.get(type(expected))
    if fits is not None and type(value) not in fits:
        raise ReportError(
            f"parameter '{name}': '{text}' is no {type(expected).__name__}; "
            f"its default is {default}"
        )
    return value


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text  # a bare word is a string, as on any command line


def execute(
    run: Run,
    output: Path,
    board: str,
    *,
    on_cell: Callable[[], object] = lambda: None,
    timeout_s: int = EXECUTION_TIMEOUT_S,
) -> Result:
    """Execute one notebook and write the executed copy, its page and its charts to `output`.

    Parameters
    ----------
    run : Run
        The notebook and its parameters.
    output : Path
        An existing folder.
    board : str
        The board, for the environment of the notebook's kernel.
    on_cell : callable
        Called after every cell.
    timeout_s : int
        The longest that one cell may take.
    """
    executed = output / run.path.name
    executed.unlink(missing_ok=True)
    command = [
        sys.executable, "-m", "papermill", str(run.path), str(executed),
        "--parameters_yaml", json.dumps(dict(run.parameters)),  # JSON is YAML
        "--kernel", "python3", "--cwd", str(run.path.parent),
        "--execution-timeout", str(timeout_s), "--start-timeout", str(START_TIMEOUT_S),
        "--log-output", "--no-progress-bar",
    ]  # fmt: skip
    environment = {
        **os.environ,
        "PYNQ_TORCH_BOARD": board,
        "PYNQ_TORCH_STATIC": "1",  # a page has no kernel behind it that a slider could ask
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    started = time.perf_counter()
    log: list[str] = []
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            log.append(line)
            if _CELL_ENDED.search(line):
                on_cell()
    seconds = time.perf_counter() - started
    return describe(run, executed, seconds, process.returncode == 0, "".join(log[-40:]))


def execute_all(runs: Sequence[Run], output: Path, board: str, *, jobs: int = 1) -> list[Result]:
    """Execute `runs`, at most `jobs` at a time, with a progress bar over all their cells.

    A notebook that fails does not stop the others. The results come in the order of `runs`.
    """
    from tqdm import tqdm

    results: dict[str, Result] = {}
    # In a log file a bar that redraws itself ten times a second is a thousand lines.
    interval_s = 0.1 if sys.stderr.isatty() else 10.0
    total = sum(run.cells for run in runs)
    ended: SimpleQueue[None] = SimpleQueue()  # one entry a cell; only this thread draws the bar
    bar = tqdm(total=total, unit="cell", desc=board, mininterval=interval_s)
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        waiting = {
            pool.submit(execute, run, output, board, on_cell=lambda: ended.put(None))
            for run in runs
        }
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
                bar.update(ended.qsize() - bar.n)
                for future in done:
                    result = future.result()
                    results[result.name] = result
                    verdict = "PASS" if result.passed else "FAIL"
                    bar.write(f"{verdict} {result.name} {result.seconds:.1f} s")
        except BaseException:
            # tqdm never releases its lock once its stream is broken: closing would wait for ever
            bar.disable = True
            pool.shutdown(cancel_futures=True, wait=False)
            raise
    bar.close()
    return [results[run.name] for run in runs]


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare ``report [--board NAME] [--jobs N] [NAME=value ...]``."""
    parser = subparsers.add_parser(
        "report",
        help="run the notebooks and write an HTML report",
        description="Run every notebook on a board and write index.html and index.json. One "
        "failing notebook does not stop the rest; the exit status tells.",
    )
    parser.add_argument("--board", default=DEFAULT_BOARD, help="default: %(default)s")
    parser.add_argument("--jobs", type=int, default=1, help="notebooks at a time (default: 1)")
    parser.add_argument("--notebooks", type=Path, default=ROOT / "notebooks", metavar="DIR")
    parser.add_argument("--output", type=Path, default=Path("reports"), metavar="DIR")
    parser.add_argument("parameters", nargs="*", metavar="NAME=value")
    parser.set_defaults(func=_run)


def _run(parsed: argparse.Namespace) -> int:
    check_board(parsed.board)
    if parsed.jobs < 1:
        raise ReportError(f"--jobs {parsed.jobs}: expected 1 or more")
    runs = plan(find_notebooks(parsed.notebooks), parsed.board, _pairs(parsed.parameters))
    output: Path = parsed.output
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReportError(f"--output '{output}' cannot be made: {error.strerror}") from error
    started = datetime.now(timezone.utc)
    results = execute_all(runs, output, parsed.board, jobs=parsed.jobs)
    page = write_index(results, output, parsed.board, started)
    failed = [result for result in results if not result.passed]
    for result in failed:
        print(f"\n{result.name}: {result.error}", file=sys.stderr)
    print(f"{page}\n{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def _pairs(words: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise ReportError(f"'{word}' is no parameter; expected NAME=value, as in SEED=3")
        pairs[name] = value
    return pairs
