"""Executing notebooks: a papermill process each, some at a time, with a progress bar over all."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from queue import SimpleQueue

from .plan import Run
from .result import Result, describe

__all__ = ["execute", "execute_all"]

EXECUTION_TIMEOUT_S = 600
#: How long a Jupyter kernel may take to answer, in seconds, try by try: a rare one never does.
START_TIMEOUTS_S = (60, 120)
_CELL_ENDED = re.compile(r"Ending Cell \d+")
_NO_ANSWER = "Kernel didn't respond in"


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
    executed = output / f"{run.name}.ipynb"
    environment = {
        **os.environ,
        "PYNQ_TORCH_BOARD": board,
        "PYNQ_TORCH_STATIC": "1",  # a page has no kernel behind it that a slider could ask
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    for start_s in START_TIMEOUTS_S:
        executed.unlink(missing_ok=True)
        command = [
            sys.executable, "-m", "papermill", str(run.path), str(executed),
            "--parameters_yaml", json.dumps(dict(run.parameters)),  # JSON is YAML
            "--kernel", "python3", "--cwd", str(run.path.parent),
            "--execution-timeout", str(timeout_s), "--start-timeout", str(start_s),
            "--log-output", "--no-progress-bar",
        ]  # fmt: skip
        started = time.perf_counter()
        passed, log = _run(command, environment, on_cell)
        if passed or _NO_ANSWER not in log:
            break
    seconds = time.perf_counter() - started
    return describe(run, executed, seconds, passed, log)


def _run(
    command: Sequence[str], environment: Mapping[str, str], on_cell: Callable[[], object]
) -> tuple[bool, str]:
    """Return whether papermill ended well, and the end of what it printed."""
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
    return process.returncode == 0, "".join(log[-40:])


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
