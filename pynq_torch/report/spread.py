"""Executing notebooks on a farm of boards: a worker executes one, and sends its files back."""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pynq_torch.remote import farm

from .execute import EXECUTION_TIMEOUT_S, START_TIMEOUTS_S, execute
from .papermill_process import Papermill
from .plan import Run
from .result import Result

__all__ = ["execute_on_farm"]

#: Cells that may take the whole of their limit before a notebook's worker is ended.
_SLOW_CELLS = 3


@dataclass(frozen=True)
class _Job:
    """A run with its notebook's text: a worker on another machine has no such file."""

    run: Run
    notebook: bytes
    board: str
    timeout_s: int


def execute_on_farm(
    runs: Sequence[Run],
    output: Path,
    board: str,
    scheduler: str,
    *,
    timeout_s: int = EXECUTION_TIMEOUT_S,
    on_result: Callable[[Result], object] = lambda _: None,
) -> list[Result]:
    """Execute `runs` on boards of a farm, and write to `output` what their workers made.

    Parameters and results are those of `execute_all`. A notebook whose worker dies is executed
    again on another one; it is in the results once.

    Raises
    ------
    BoardError
        No scheduler answers, or the farm has no such board.
    """
    from tqdm import tqdm

    jobs = [_Job(run, run.path.read_bytes(), board, timeout_s) for run in runs]
    limit_s = float(_SLOW_CELLS * timeout_s + sum(START_TIMEOUTS_S))
    results: dict[str, Result] = {}
    bar = tqdm(total=len(runs), unit="notebook", desc=f"{board}, {scheduler}", mininterval=1)
    with bar, farm.connected(scheduler) as client:
        ended = farm.results(client, _execute, jobs, board=board, timeout_s=limit_s)
        for index, value in ended:
            if isinstance(value, Exception):
                result = _without(runs[index], value)
            else:
                result, files = value
                _write(files, output)
            results[result.name] = result
            on_result(result)
            bar.update()
            verdict = "PASS" if result.passed else "FAIL"
            bar.write(f"{verdict} {result.name} {result.seconds:.1f} s", file=sys.stderr)
    return [results[run.name] for run in runs]


def _execute(job: _Job) -> tuple[Result, dict[str, bytes]]:
    """Execute a notebook on this worker's board; return its result and the files it made."""
    with tempfile.TemporaryDirectory(prefix="pynq_torch-") as name:
        folder = Path(name)
        output = folder / "output"
        output.mkdir()
        notebook = folder / job.run.path.name
        notebook.write_bytes(job.notebook)
        run = Run(notebook, job.run.parameters, job.run.defaults, job.run.cells, job.run.name)
        with Papermill(job.board, threading.Event()) as papermill:
            result = execute(run, output, papermill, timeout_s=job.timeout_s)
        made = (path for path in output.rglob("*") if path.is_file())
        return result, {path.relative_to(output).as_posix(): path.read_bytes() for path in made}


def _write(files: dict[str, bytes], output: Path) -> None:
    for name, content in files.items():
        path = output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _without(run: Run, error: Exception) -> Result:
    """Return the result of a notebook that no worker could execute."""
    parameters: dict[str, Any] = {**run.defaults, **run.parameters}
    stem = run.path.stem
    return Result(run.name, stem, stem, False, 0.0, parameters, f"{type(error).__name__}: {error}")
