"""A process that executes notebooks with papermill, one after the other.

Loading papermill takes as long as a short notebook, so each job of a report loads it once.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import selectors
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

__all__ = ["Papermill"]

_CELL_ENDED = re.compile(r"Ending Cell \d+")
#: What the process writes after the log of a notebook, with 1 where papermill raised an error.
_ENDED = "\0papermill ended: "
#: How long papermill may take to end its Jupyter kernel, which gets 5 s to end by itself.
_ENDING_S = 15.0
_LOOK_S = 0.2


class Papermill:
    """A papermill process: started when it is first needed, replaced after a notebook that fails.

    Parameters
    ----------
    board : str
        The board, for the environment of the notebooks' Jupyter kernels.
    stop : threading.Event
        Ends a run once it is set.
    command : sequence of str
        What is started; by default this module.
    """

    def __init__(
        self,
        board: str,
        stop: threading.Event,
        command: Sequence[str] = (sys.executable, "-m", __name__),
    ) -> None:
        self._environment = {
            **os.environ,
            "PYNQ_TORCH_BOARD": board,
            "PYNQ_TORCH_STATIC": "1",  # a page has no kernel behind it that a slider could ask
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
        self._stop = stop
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Papermill:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def run(
        self, arguments: Mapping[str, Any], silence_s: float, on_cell: Callable[[], object]
    ) -> tuple[bool, str]:
        """Return whether papermill ended well, and the end of what it printed.

        Parameters
        ----------
        arguments : mapping of str to Any
            Of ``papermill.execute_notebook``.
        silence_s : float
            The longest that papermill may print nothing.
        on_cell : callable
            Called after every cell.

        Raises
        ------
        InterruptedError
            `stop` was set.
        """
        log: deque[str] = deque(maxlen=40)
        passed = False
        try:
            for line in self._lines(arguments, silence_s):
                words, ended, failed = line.partition(_ENDED)
                log.append(words)
                if _CELL_ENDED.search(words):
                    on_cell()
                if ended:
                    passed = failed == "0\n"
                    break
        except TimeoutError as error:
            log.append(f"TimeoutError: {error}\n")
        finally:
            if not passed:
                self.close()
        return passed, "".join(log)

    def close(self) -> None:
        """End the process by SIGTERM, at which papermill ends its Jupyter kernel, or by SIGKILL."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stderr is not None
        process.stdin.close()
        process.terminate()
        try:
            process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stderr.close()

    def _lines(self, arguments: Mapping[str, Any], silence_s: float) -> Iterator[str]:
        """Yield the lines that the process writes to its stderr, until it ends.

        papermill's own bounds need a papermill that runs; this one holds for any.
        """
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                bufsize=0,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        process = self._process
        assert process.stdin is not None and process.stderr is not None
        with contextlib.suppress(BrokenPipeError):  # it ended already: its log says why
            process.stdin.write(f"{json.dumps(arguments)}\n".encode())
        rest, heard = b"", time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stderr, selectors.EVENT_READ)
            while True:
                if self._stop.is_set():
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


def _serve() -> None:
    """Execute a notebook for every line of arguments on the standard input."""
    from papermill import execute_notebook

    logging.basicConfig(level="INFO", format="%(message)s")
    # A Jupyter kernel must not read the requests: what it inherits is empty.
    with os.fdopen(os.dup(0), encoding="utf-8") as requests:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        for line in requests:
            failed = 0
            try:
                execute_notebook(**json.loads(line))
            except Exception:  # noqa: BLE001  # whatever a notebook raises goes into the log
                traceback.print_exc()
                failed = 1
            print(f"{_ENDED}{failed}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    _serve()
