"""What `pynq_torch.report` writes: the index, and a page for every executed notebook.

The pages are plain HTML with their style inside and load nothing from anywhere, so that they
can be mailed, archived and read offline.
"""

from __future__ import annotations

import base64
import dataclasses
import importlib.metadata
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import jinja2

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_TEMPLATES = Path(__file__).resolve().parent / "templates"
_PACKAGES = ("pynq_torch", "pynq", "torch", "numpy", "ipykernel", "papermill")


@dataclass(frozen=True)
class Run:
    """One notebook that is going to be executed, with the parameters it gets."""

    path: Path
    parameters: Mapping[str, Any]
    defaults: Mapping[str, Any]
    cells: int

    @property
    def name(self) -> str:
        """The notebook's file name without its suffix."""
        return self.path.stem


@dataclass
class Result:
    """How one notebook went.

    Attributes
    ----------
    parameters : dict
        All that the notebook declares, with the values it ran with.
    seconds : float
        Measured wall clock, the start of the notebook's kernel included.
    error, error_cell : str, int or None
        What failed, and the number that Jupyter shows beside the cell: ``In [n]``.
    charts, notebook, html : str
        Files, relative to the report's folder.
    """

    name: str
    title: str
    passed: bool
    seconds: float
    parameters: dict[str, Any]
    error: str | None = None
    error_cell: int | None = None
    charts: list[str] = field(default_factory=list)
    notebook: str | None = None
    html: str | None = None


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


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

    result = Result(run.name, run.name, passed, seconds, {**run.defaults, **run.parameters})
    if not passed:
        result.error = _last_words(_ANSI.sub("", log))
    if not executed.is_file():
        return result
    notebook = nbformat.read(executed, as_version=4)
    result.notebook = executed.name
    result.title = _title(notebook) or run.name
    if not passed:
        _find_error(notebook, result)
    for index, png in enumerate(_charts(notebook)):
        chart = Path("charts") / f"{run.name}-{index:02}.png"
        target = executed.parent / chart
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(png)
        result.charts.append(chart.as_posix())
    page = executed.with_suffix(".html")
    _write(page, _notebook_page(notebook, result))
    result.html = page.name
    return result


def _last_words(log: str) -> str:
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
            return match.group(1).strip()
    return None


def _find_error(notebook: Any, result: Result) -> None:
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                result.error = f"{output.ename}: {_ANSI.sub('', output.evalue)}"
                result.error_cell = cell.execution_count
                return


def _charts(notebook: Any) -> Iterator[bytes]:
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            png = output.get("data", {}).get("image/png")
            if png:
                yield base64.b64decode("".join(png))


def _notebook_page(notebook: Any, result: Result) -> str:
    from nbconvert import HTMLExporter
    from pygments.formatters import HtmlFormatter

    # "basic" is the body alone: the full templates fetch scripts from elsewhere.
    body, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook)
    code_style = HtmlFormatter(nowrap=False).get_style_defs(".highlight")
    return (
        _environment()
        .get_template("notebook.html.j2")
        .render(result=result, body=body, code_style=code_style)
    )


def write_index(results: Sequence[Result], output: Path, board: str, started: datetime) -> Path:
    """Write ``index.html`` and ``index.json`` into `output` and return the page's path."""
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    summary: dict[str, Any] = {
        "board": board,
        "started": started.isoformat(timespec="seconds"),
        "passed": sum(result.passed for result in results),
        "failed": sum(not result.passed for result in results),
        "seconds": round(sum(result.seconds for result in results), 1),
        "versions": versions,
        "notebooks": [dataclasses.asdict(result) for result in results],
    }
    _write(output / "index.json", json.dumps(summary, indent=1) + "\n")
    page = output / "index.html"
    _write(page, _environment().get_template("report.html.j2").render(summary))
    return page


def _write(path: Path, text: str) -> None:
    """Replace `path` in one step: somebody may be reading the page of the last run."""
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
