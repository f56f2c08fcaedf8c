"""Checks in worker processes: one that ends or hangs costs its own case, the rest goes on."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .exclusions import Allowed, exclusion_of

COLUMNS = (
    "float32",
    "backward",
    "int64",
    "bool",
    "float16",
    "bfloat16",
    "method",
    "in-place",
    "out=",
    "errors",
)
WORKERS = 2
#: The longest case takes seconds; importing op_db takes some too.
CASE_TIMEOUT_S = 120.0
#: Until a worker has imported torch and built what its overlay holds, on a busy PC.
BEGIN_TIMEOUT_S = 400.0
_TESTS = Path(__file__).resolve().parents[1]


@dataclass
class Case:
    """What became of one operator in one column.

    ``raised`` of the ``samples`` raise on the CPU, and alike on the device; ``allowed`` is the
    value of the exclusion's ``Allowed``.
    """

    operator: str
    column: str
    samples: int = 0
    raised: int = 0
    allowed: str = ""
    failed: int = 0
    failures: tuple[str, ...] = ()
    seconds: float = 0.0


class _Worker:
    """One process, and what it last said on stderr."""

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        self.errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115  closed below
        path = os.pathsep.join(filter(None, (str(_TESTS), os.environ.get("PYTHONPATH"))))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "opdb.worker", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )
        self.timed_out = False
        try:
            self.operators: list[str] = self.answer(BEGIN_TIMEOUT_S)["operators"]
        except BaseException:
            self.close()
            raise

    def ask(self, operator: str, columns: Sequence[str]) -> None:
        assert self.process.stdin is not None
        request = json.dumps({"operator": operator, "columns": columns})
        # Of a process that has ended, answer() says how.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()

    def answer(self, timeout_s: float = CASE_TIMEOUT_S) -> Any:
        """Return the next answer; raise EOFError where the process ended or was ended."""
        assert self.process.stdout is not None
        timer = threading.Timer(timeout_s, self._end)
        timer.start()
        try:
            line = self.process.stdout.readline()
        finally:
            timer.cancel()
        if not line:
            raise EOFError(self._obituary())
        return json.loads(line)

    def _end(self) -> None:
        self.timed_out = True
        self.process.kill()

    def _obituary(self) -> str:
        status = self.process.wait()
        self.errors.seek(0)
        tail = " | ".join(self.errors.read().strip().splitlines()[-12:])
        if self.timed_out:
            return "the process was ended: it gave no answer in time"
        return f"the process ended with status {status}: {tail[-1200:]}"

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()


class _Lane:
    """A worker, and another one after its death."""

    def __init__(self, columns: Sequence[str], arguments: Sequence[str]) -> None:
        self._columns = columns
        self._arguments = arguments
        self.worker: _Worker | None = None
        self._open = True

    def begin(self) -> _Worker:
        """Start the worker."""
        self.worker = _Worker(self._arguments)
        return self.worker

    def check(self, operator: str) -> list[Case]:
        """Run one operator's columns; a death is the failure of the column it happened in."""
        cases: list[Case] = []
        while len(cases) < len(self._columns) and self._open:
            self.worker = self.worker or self.begin()
            left = self._columns[len(cases) :]
            self.worker.ask(operator, left)
            try:
                for column in left:
                    answer = self.worker.answer()
                    answer["failures"] = tuple(answer["failures"])
                    cases.append(Case(operator, **{**answer, "column": column}))
            except EOFError as end:
                cases.append(_dead(operator, column, str(end)))
                self.worker.close()
                self.worker = None
        return cases

    def end(self) -> None:
        """End the worker, in the midst of a check too."""
        self._open = False
        if self.worker is not None:
            self.worker.process.kill()


def _dead(operator: str, column: str, said: str) -> Case:
    entry = exclusion_of(operator, column)
    if entry and entry.allowed is Allowed.FAILURE:
        return Case(operator, column, allowed=entry.allowed.value)
    return Case(operator, column, failed=1, failures=(said,))


class Pool:
    """Runs operators in order on a few workers; results are awaited one by one.

    Parameters
    ----------
    operators : iterable of str
        Full names in ``op_db``; empty means all of them.
    workers : int
        Processes at a time.
    columns : sequence of str
        The checks to run.
    overlay : str
        Loaded in the workers first, so that operators are offered to its kernels.
    """

    def __init__(
        self,
        operators: Iterable[str] = (),
        workers: int = WORKERS,
        columns: Sequence[str] = COLUMNS,
        overlay: str = "",
    ) -> None:
        self._cases: dict[str, list[Case]] = {}
        self._done = threading.Condition()
        self._fault: BaseException | None = None
        self._lanes = [_Lane(columns, (overlay,) * bool(overlay)) for _ in range(workers)]
        #: Every operator of this PyTorch, in the order of ``op_db``.
        self.operators = self._lanes[0].begin().operators
        self._waiting = deque(operators or self.operators)
        self._threads = [
            threading.Thread(target=self._work, args=(lane,), daemon=True) for lane in self._lanes
        ]
        for thread in self._threads:
            thread.start()

    def _next(self) -> str | None:
        with self._done:
            return self._waiting.popleft() if self._waiting else None

    def _work(self, lane: _Lane) -> None:
        try:
            while (operator := self._next()) is not None:
                cases = lane.check(operator)
                with self._done:
                    self._cases[operator] = cases
                    self._done.notify_all()
        except BaseException as fault:
            with self._done:
                self._fault = fault
                self._done.notify_all()
            raise
        finally:
            if lane.worker is not None:
                lane.worker.close()

    def cases(self, operator: str, timeout_s: float = 280.0) -> list[Case]:
        """Wait for an operator's cases, one a column.

        Raises
        ------
        RuntimeError
            No result in time, or the workers cannot be started.
        """
        with self._done:
            there = self._done.wait_for(
                lambda: operator in self._cases or self._fault is not None, timeout_s
            )
            if operator in self._cases:
                return self._cases[operator]
        if not there:
            raise RuntimeError(f"{operator}: no result after {timeout_s:g} s")
        raise RuntimeError(f"{operator}: the workers ended") from self._fault

    def processes(self) -> list[int]:
        """Return the ids of the worker processes that run now."""
        return [lane.worker.process.pid for lane in self._lanes if lane.worker is not None]

    def close(self) -> None:
        """End the workers, whatever they are at."""
        with self._done:
            self._waiting.clear()
        for lane in self._lanes:
            lane.end()
        for thread in self._threads:
            thread.join()
