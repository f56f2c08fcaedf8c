"""The pages of a report: one for every executed notebook, one for a run, one over all runs.

The pages are plain HTML with their style inside and load nothing from anywhere, so that they
can be mailed, archived and read offline.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from .rows import settings

if TYPE_CHECKING:
    from .history import History, Summary
    from .result import Result

__all__ = ["replace_file", "write_notebook", "write_overview", "write_run"]

_TEMPLATES = Path(__file__).resolve().parent / "templates"
_VERDICTS = {
    True: Markup('<span class="pass">PASS</span>'),
    False: Markup('<span class="fail">FAIL</span>'),
}


def _render(template: str, **values: Any) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        plural=lambda number, noun: f"{number} {noun}{'' if number == 1 else 's'}",
        seconds="{:.1f} s".format,
        settings=settings,
        verdict=lambda passed: _VERDICTS[passed],
        when=lambda started: started[:16].replace("T", " "),
    )
    return environment.get_template(template).render(values)


def write_notebook(page: Path, notebook: Any, result: Result, beside: Path) -> None:
    """Write an executed notebook as HTML; pictures of its text are in the folder `beside`."""
    from nbconvert import HTMLExporter
    from pygments.formatters import HtmlFormatter

    # "basic" is the body alone: the full templates fetch scripts from elsewhere.
    exporter = HTMLExporter(template_name="basic", embed_images=True)
    body, _ = exporter.from_notebook_node(notebook, {"metadata": {"path": str(beside)}})
    style = HtmlFormatter(nowrap=False).get_style_defs(".highlight")
    text = _render("notebook.html.j2", result=result, content=body, code_style=style)
    replace_file(page, text)


def write_run(page: Path, summary: Summary) -> None:
    """Write the page of one run."""
    replace_file(page, _render("report.html.j2", run=summary))


def write_overview(page: Path, history: History) -> None:
    """Write the page that compares runs."""
    replace_file(page, _render("runs.html.j2", history=history))


def replace_file(path: Path, text: str) -> None:
    """Replace `path` in one step: somebody may be reading the page of the last run."""
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
