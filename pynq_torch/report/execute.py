"""Executing notebooks: a papermill process each, some at a time, with a progress bar over all."""

from __future__ import annotations

import json
import os
import re
import selectors
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
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
#: Beyond papermill's own bounds on a start and a cell: what it needs besides, on a busy PC.
_SPARE_S = 60
#: How long papermill may take to end its Jupyter kernel, which gets 5 s to end by itself.
_ENDING_S = 15.0
_LOOK_S = 0.2


def execute(
    run: Run,
    output: Path,
    board: str,
    *,
    on_cell: Callable[[], object] = lambda: None,
    timeout_s: int = EXECUTION_TIMEOUT_S,
    stop: threading.Event | None = None,
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
    stop : threading.Event, optional
        Ends the run once it is set.

    Raises
    ------
    InterruptedError
        `stop` was set.
    """
    stop = threading.Event() if stop is None else stop
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
        silence_s = timeout_s + start_s + _SPARE_S
        passed, log = _run(command, environment, on_cell, silence_s, stop)
        if passed or _NO_ANSWER not in log:
            break
    seconds = time.perf_counter() - started
    return describe(run, executed, seconds, passed, log)


def _run(
    command: Sequence[str],
    environment: Mapping[str, str],
    on_cell: Callable[[], object],
    silence_s: float,
    stop: threading.Event,
) -> tuple[bool, str]:
    """Return whether papermill ended well, and the end of what it printed."""
    log: deque[str] = deque(maxlen=40)
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            for line in _lines(process, silence_s, stop):
                log.append(line)
                if _CELL_ENDED.search(line):
                    on_cell()
            process.wait(_ENDING_S)
        except (TimeoutError, subprocess.TimeoutExpired) as error:
            log.append(f"TimeoutError: {error}\n")
        finally:
            _end(process)
    return process.returncode == 0, "".join(log)


def _lines(
    process: subprocess.Popen[bytes], silence_s: float, stop: threading.Event
) -> Iterator[str]:
    """Yield the lines that a process writes to its stderr, until it ends.

    papermill's own bounds need a papermill that runs; this one holds for any.
    """
    assert process.stderr is not None
    rest, heard = b"", time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        while True:
            if stop.is_set():
                raise InterruptedError("the report was interrupted")
            # Before the look, so that its last words are read. A Jupyter kernel that it left
            # behind keeps the pipe open.
            ended = process.poll() is not None
            if selector.select(_LOOK_S):
                data = os.read(process.stderr.fileno(), 1 << 16)
                *lines, rest = (rest + data).split(b"\n")
                yield from (f"{line.decode('utf-8', 'replace')}\n" for line in lines)
                heard = time.monotonic()
                if not data:
                    break
            if ended:
                break
            if time.monotonic() - heard > silence_s:
                raise TimeoutError(f"papermill gave no sign for {silence_s:g} s and was ended")
    yield rest.decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End papermill where it runs on: by SIGTERM, at which it ends its Jupyter kernel, or else."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_ENDING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


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

    def one(run: Run) -> Result:
        return execute(
            run, output, board, on_cell=lambda: ended.put(None), timeout_s=timeout_s, stop=stop
        )

    with ThreadPoolExecutor(max_workers=jobs) as pool:
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
