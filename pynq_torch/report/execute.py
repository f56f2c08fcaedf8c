"""Executing notebooks: some at a time, each job in its papermill process, with a progress bar."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue

from .papermill_process import Papermill
from .plan import Run
from .result import Result, describe

__all__ = ["execute", "execute_all"]

EXECUTION_TIMEOUT_S = 600
#: How long a Jupyter kernel may take to answer, in seconds, try by try: a rare one never does, and
#: one dies at its start where another program has taken one of the ports chosen for it.
START_TIMEOUTS_S = (60, 120)
_NOT_STARTED = re.compile("Kernel (didn't respond in|died before replying)")
#: Beyond papermill's own bounds on a start and a cell: what it needs besides, on a busy PC.
_SPARE_S = 60


def execute(
    run: Run,
    output: Path,
    papermill: Papermill,
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
    papermill : Papermill
        The process that executes it.
    on_cell : callable
        Called after every cell.
    timeout_s : int
        The longest that one cell may take.

    Raises
    ------
    InterruptedError
        The process was told to stop.
    """
    executed = output / f"{run.name}.ipynb"
    for start_s in START_TIMEOUTS_S:
        executed.unlink(missing_ok=True)
        arguments = {
            "input_path": str(run.path),
            "output_path": str(executed),
            "parameters": dict(run.parameters),
            "kernel_name": "python3",
            "cwd": str(run.path.parent),
            "execution_timeout": timeout_s,
            "start_timeout": start_s,
            "log_output": True,
            "progress_bar": False,
        }
        started = time.perf_counter()
        passed, log = papermill.run(arguments, timeout_s + start_s + _SPARE_S, on_cell)
        if passed or not _NOT_STARTED.search(log):
            break
    seconds = time.perf_counter() - started
    return describe(run, executed, seconds, passed, log)


def execute_all(
    runs: Sequence[Run],
    output: Path,
    board: str,
    *,
    jobs: int = 1,
    timeout_s: int = EXECUTION_TIMEOUT_S,
    on_result: Callable[[Result], object] = lambda _: None,
) -> list[Result]:
    """Execute `runs`, at most `jobs` at a time, with a progress bar over all their cells.

    A notebook that fails does not stop the others. The results come in the order of `runs`; each
    is given to `on_result` as soon as it is there. An interrupt ends those that are running.
    """
    from tqdm import tqdm

    results: dict[str, Result] = {}
    # In a log file a bar that redraws itself ten times a second is a thousand lines.
    interval_s = 0.1 if sys.stderr.isatty() else 10.0
    total = sum(run.cells for run in runs)
    ended: SimpleQueue[None] = SimpleQueue()  # one entry a cell; only this thread draws the bar
    bar = tqdm(total=total, unit="cell", desc=board, mininterval=interval_s)
    stop = threading.Event()

    idle: SimpleQueue[Papermill] = SimpleQueue()  # as many as there are threads

    def one(run: Run) -> Result:
        papermill = idle.get()
        try:
            return execute(
                run, output, papermill, on_cell=lambda: ended.put(None), timeout_s=timeout_s
            )
        finally:
            idle.put(papermill)

    with ExitStack() as processes, ThreadPoolExecutor(max_workers=jobs) as pool:
        for _ in range(jobs):
            idle.put(processes.enter_context(Papermill(board, stop)))
        waiting = {pool.submit(one, run) for run in runs}
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
                bar.update(ended.qsize() - bar.n)
                for future in done:
                    result = future.result()
                    results[result.name] = result
                    on_result(result)
                    verdict = "PASS" if result.passed else "FAIL"
                    bar.write(f"{verdict} {result.name} {result.seconds:.1f} s")
        except BaseException:
            # tqdm never releases its lock once its stream is broken: closing would wait for ever
            bar.disable = True
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    bar.close()
    return [results[run.name] for run in runs]
