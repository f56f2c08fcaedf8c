"""A notebook as the program of ``python -m pynq_torch run``: its cells, and what they print."""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from pynq_torch.errors import BoardError

from .interrupts import ended_in_order

__all__ = ["CELL_TIMEOUT_S", "execute"]

#: The longest that a cell may take, and the Jupyter kernel until it answers, in seconds.
CELL_TIMEOUT_S = 600
_START_TIMEOUT_S = 120


def execute(program: Path, timeout_s: int, environment: dict[str, str]) -> int:
    """Execute a notebook's cells, print what they print, and return the exit status.

    Parameters
    ----------
    program : Path
        The notebook; its folder is the working directory.
    timeout_s : int
        The longest that one cell may take; 0 for any time.
    environment : dict
        The variables of the Jupyter kernel's process, all of them.

    Raises
    ------
    BoardError
        The file is no notebook, a cell took longer, or the Jupyter kernel died or never answered.
    """
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook = _read_notebook(program)
    try:
        client = _client(notebook, program, timeout_s)
        _wait_for(partial(client.async_execute, env=environment))
    except CellExecutionError:
        return 1  # the traceback is an output of its cell
    except CellTimeoutError as error:
        ended = f"gave no answer for {timeout_s} s and was ended"
        why = f"{_which_cell(notebook)} {ended}; give it longer with --timeout SECONDS"
        raise BoardError(f"notebook '{program}': {why}") from error
    except DeadKernelError as error:
        why = f"the Jupyter kernel died in {_which_cell(notebook)}"
        raise BoardError(f"notebook '{program}': {why}") from error
    except (RuntimeError, NoSuchKernel) as error:  # before the first cell
        why = f"its Jupyter kernel cannot be used: {error}"
        raise BoardError(f"notebook '{program}': {why}") from error
    finally:
        for output in (o for cell in notebook.cells for o in cell.get("outputs", [])):
            _print_output(output)
    return 0


def _client(notebook: Any, program: Path, timeout_s: int) -> Any:
    from nbclient import NotebookClient

    return NotebookClient(
        notebook,
        kernel_name="python3",
        resources={"metadata": {"path": str(program.absolute().parent)}},
        timeout=timeout_s or None,
        startup_timeout=_START_TIMEOUT_S,
        shutdown_kernel="immediate",
    )


def _read_notebook(program: Path) -> Any:
    """Return a notebook in today's format, without outputs of an earlier run."""
    import nbformat

    try:
        text = program.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise BoardError(f"notebook '{program}' cannot be read: {why}") from error
    try:
        found = json.loads(text)
        if not isinstance(found, dict) or "nbformat" not in found:
            raise BoardError(f"'{program}' is JSON, but no notebook: it has no 'nbformat'")
        # A notebook of version 3 or earlier is converted.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of cells without an id
            notebook = nbformat.reads(text, as_version=4)
            if not _has_cells(notebook):
                nbformat.validate(notebook)  # which says what is missing
                raise ValueError("its cells need 'cell_type' and 'source'")
    except json.JSONDecodeError as error:
        why = f"it is no JSON: {error}" if text.strip() else "it is empty"
        raise BoardError(f"notebook '{program}' cannot be read: {why}") from error
    except (
        nbformat.ValidationError, LookupError, TypeError, ValueError, AttributeError, RecursionError
    ) as error:  # fmt: skip
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise BoardError(
            f"notebook '{program}' is not as the notebook format has it: {first}"
        ) from error
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.metadata.pop("execution", None)
    return notebook


def _has_cells(notebook: Any) -> bool:
    """Whether there is what running it needs; JupyterLab opens more than the format allows."""
    cells = notebook.get("cells")
    return isinstance(cells, list) and all(
        isinstance(cell, dict)
        and isinstance(cell.get("source"), str)
        and isinstance(cell.setdefault("metadata", {}), dict)
        and "cell_type" in cell
        for cell in cells
    )


def _wait_for(work: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Run a coroutine to its end; an interrupt cancels it, so that it ends what it started.

    It runs in a thread, where nbclient leaves signals alone: in the main one its own handler ends
    the Jupyter kernel, which then looks as if it had died.
    """
    made: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[object] | None]] = Future()

    async def working() -> None:
        made.set_result((asyncio.get_running_loop(), asyncio.current_task()))
        await work()

    with ThreadPoolExecutor(1) as pool, ended_in_order():
        ended = pool.submit(asyncio.run, working())
        try:
            ended.result()
        except (KeyboardInterrupt, SystemExit):
            loop, task = made.result()
            if task is not None and not ended.done():
                loop.call_soon_threadsafe(task.cancel)
            raise


def _which_cell(notebook: Any) -> str:
    """Return the code cell that ran last, counted as Jupyter does: ``In [n]``."""
    started = [cell for cell in notebook.cells if "execution" in cell.metadata]
    if not started:
        return "its first cell"
    first = started[-1].source.strip().splitlines()[0]
    return f"cell In [{len(started)}] ('{first[:60]}')"


def _print_output(output: dict[str, object]) -> None:
    kind = output["output_type"]
    if kind == "stream":
        target = sys.stderr if output["name"] == "stderr" else sys.stdout
        target.write(str(output["text"]))
    elif kind == "error":
        print(*output["traceback"], sep="\n", file=sys.stderr)  # type: ignore[misc]
    elif isinstance(data := output.get("data"), dict) and "text/plain" in data:
        print(data["text/plain"])
