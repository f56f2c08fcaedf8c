"""How one notebook went: its error, its charts, the numbers it recorded, its page."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .page import write_notebook
from .plan import Run
from .records import Record, ReportError, records_of

__all__ = ["Result", "describe"]

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass
class Result:
    """How one notebook went.

    Attributes
    ----------
    name, notebook_name : str
        The run's, and the notebook's file name without its suffix.
    parameters : dict
        All that the notebook declares, with the values it ran with.
    seconds : float
        Measured wall clock, the start of the notebook's kernel included.
    cell_seconds : list of float
        Measured, for each code cell that was executed.
    error, error_cell : str, int or None
        What failed, and the number that Jupyter shows beside the cell: ``In [n]``.
    records : list of Record
        The numbers that the notebook recorded.
    charts, notebook, html : str
        Files, relative to the run's folder.
    """

    name: str
    notebook_name: str
    title: str
    passed: bool
    seconds: float
    parameters: dict[str, Any]
    error: str | None = None
    error_cell: int | None = None
    cell_seconds: list[float] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    charts: list[str] = field(default_factory=list)
    notebook: str | None = None
    html: str | None = None

    @property
    def job(self) -> tuple[str, str]:
        """The notebook and its parameters without the board: what runs are compared by."""
        given = {name: v for name, v in sorted(self.parameters.items()) if name != "BOARD"}
        return self.notebook_name, json.dumps(given)

    @property
    def failure(self) -> str:
        """The first line of the error with its cell; empty without one."""
        place = f"In [{self.error_cell}]: " if self.error_cell is not None else ""
        return place + self.error.strip().partition("\n")[0] if self.error else ""


def describe(run: Run, executed: Path, seconds: float, passed: bool, log: str) -> Result:
    """Return the result of one notebook, after writing its charts and its page.

    Parameters
    ----------
    run : Run
        What was executed.
    executed : Path
        The notebook that papermill wrote; there may be none.
    seconds : float
        Measured wall clock.
    passed : bool
        Whether papermill ended without an error.
    log : str
        The end of papermill's log, shown where the notebook itself tells of no error.
    """
    import nbformat

    parameters = {**run.defaults, **run.parameters}
    result = Result(run.name, run.path.stem, run.path.stem, passed, seconds, parameters)
    if not passed:
        result.error = last_words(_ANSI.sub("", log))
    if not executed.is_file():
        return result
    notebook = nbformat.read(executed, as_version=4)
    result.notebook = executed.name
    result.title = _title(notebook) or run.path.stem
    result.cell_seconds = list(_cell_seconds(notebook))
    if not passed:
        _find_error(notebook, result)
    try:
        result.records = list(records_of(notebook))
    except ReportError as error:
        result.passed, result.error = False, result.error or str(error)
    result.charts = list(_write_charts(notebook, executed.parent, run.name))
    page = executed.with_name(f"{run.name}.html")
    write_notebook(page, notebook, result, run.path.parent)
    result.html = page.name
    return result


def last_words(log: str) -> str:
    """Return the line of papermill's log that says why it ended.

    IPython answers an unknown magic with a ``UsageError`` on stderr and no error output; a kernel
    that died leaves only papermill's own exception.
    """
    causes: list[str] = re.findall(
        r"^(?:UsageError|[\w.]*(?:Error|Exception|Timeout\w*)):.*$", log, re.MULTILINE
    )
    usage = [line for line in causes if line.startswith("UsageError")]
    return (usage + causes[-1:] + [log.strip() or "papermill ended without a word"])[0]


def _title(notebook: Any) -> str | None:
    for cell in notebook.cells:
        match = re.search(r"^# +(.+)$", cell.source, re.MULTILINE)
        if cell.cell_type == "markdown" and match:
            return match.group(1).strip().replace("`", "")
    return None


def _cell_seconds(notebook: Any) -> Iterator[float]:
    for cell in notebook.cells:
        taken = cell.metadata.get("papermill", {}).get("duration")
        if cell.cell_type == "code" and taken is not None:
            yield round(float(taken), 3)


def _find_error(notebook: Any, result: Result) -> None:
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                result.error = f"{output.ename}: {_ANSI.sub('', output.evalue)}"
                result.error_cell = cell.execution_count
                return


def _write_charts(notebook: Any, folder: Path, name: str) -> Iterator[str]:
    """Write the pictures in a notebook's outputs as files, and yield their names."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    pictures = (output.get("data", {}).get("image/png") for output in outputs)
    for index, png in enumerate(filter(None, pictures)):
        chart = Path("charts") / f"{name}-{index:02}.png"
        (folder / "charts").mkdir(exist_ok=True)
        (folder / chart).write_bytes(base64.b64decode("".join(png)))
        yield chart.as_posix()
