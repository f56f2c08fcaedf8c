"""Numbers that notebooks record: what is refused, what an executed notebook keeps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from pynq_torch import report
from pynq_torch.board.rtl.fallback import MODELLED, UNKNOWN
from pynq_torch.board.rtl.unit import COUNTED
from pynq_torch.board.runs import Run
from pynq_torch.report.records import METADATA
from pynq_torch.timing import Duration

SOURCE = """\
from pynq_torch import report
from pynq_torch.timing import Duration
report.record("vadd/cycles", 1234, "cycles", "model")
report.record("accuracy", 0.5, "", "measured", better="higher")
report.record("vadd/time", Duration(2e-3, "measured", where="csim on this PC"))
"""


@pytest.fixture(scope="module")
def executed() -> Any:
    notebook = new_notebook(cells=[new_code_cell(SOURCE), new_code_cell("1 + 1")])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return notebook


def test_records_lie_in_the_output(executed: Any, tmp_path: Path):
    nbformat.validate(executed)
    nbformat.write(executed, tmp_path / "a.ipynb")
    found = list(report.records_of(nbformat.read(tmp_path / "a.ipynb", as_version=4)))
    assert found == [
        report.Record("vadd/cycles", 1234.0, "cycles", "model", "lower"),
        report.Record("accuracy", 0.5, "", "measured", "higher"),
        report.Record("vadd/time", 2e-3, "s", "measured", "lower", "csim on this PC"),
    ]
    texts = [o["data"]["text/plain"] for o in executed.cells[0].outputs]
    assert texts[0] == "recorded vadd/cycles = 1234 cycles (model)"
    assert texts[2] == "recorded vadd/time = 0.002 s (measured, csim on this PC)"


def test_measurements_may_differ_in_a_committed_notebook(root: Path):
    text = (root / "ci" / "nbval_sanitize.cfg").read_text()
    rules = re.findall(r"^regex: (.*)\nreplace: (.*)$", text, re.MULTILINE)

    def clean(line: str) -> str:
        for pattern, replacement in rules:
            line = re.sub(pattern, replacement, line)
        return line

    one, two = (
        str(report.Record("speed-up/vadd = x", value, "x", "measured", "higher"))
        for value in (1.5, 2.25)
    )
    assert clean(one) == clean(two) == "recorded speed-up/vadd = x = VALUE (measured)"
    assert "= 7 x (model)" in clean(str(report.Record("a", 7, "x", "model", "higher")))


def test_outside_a_notebook_a_record_is_printed(capsys: pytest.CaptureFixture[str]):
    report.record("rate", 2.5, "GMAC/s", "cycles")
    assert capsys.readouterr().out == "recorded rate = 2.5 GMAC/s (cycles)\n"


@pytest.mark.parametrize(
    ("run", "line"),
    [
        (Run(1, 0.1, COUNTED, 103), "recorded vadd = 103 cycles (cycles)"),
        (Run(1, 0.1, MODELLED, 158), "recorded vadd = 158 cycles (model)"),
        (Run(1, 0.1), "vadd: not recorded, this board counts no cycles"),
        (Run(1, 0.1, UNKNOWN), "vadd: not recorded, this board counts no cycles"),
        (None, "vadd: not recorded, this board counts no cycles"),
    ],
)
def test_a_run_is_recorded_where_the_board_counts(
    run: Run | None, line: str, capsys: pytest.CaptureFixture[str]
):
    report.record_run("vadd", run)
    assert capsys.readouterr().out == f"{line}\n"


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (("a", 1, "s"), {}, "kind is ''; expected one of measured, routed, cycles"),
        (("a", 1, "s", "guess"), {}, "kind is 'guess'"),
        (("a", float("nan"), "s", "model"), {}, "value is nan; expected a finite number"),
        (("a", float("inf"), "s", "model"), {}, "value is inf"),
        (("", 1, "s", "model"), {}, "expected a name"),
        ((" a", 1, "s", "model"), {}, "expected a name without blanks"),
        (("a", 1, "", "model"), {}, "unit '' does not say what is better"),
        (("a", 1, "s", "model"), {"better": "faster"}, "better is 'faster'"),
        (("a", Duration(1.0, "model", clock_hz=1e8), "ms"), {}, "a unit and a kind of its own"),
    ],
)
def test_a_record_that_nobody_could_compare_is_refused(
    arguments: tuple[Any, ...], options: dict[str, str], words: str
):
    with pytest.raises(report.ReportError, match=re.escape(words)):
        report.record(*arguments, **options)


def _notebook(*records: dict[str, Any]) -> dict[str, Any]:
    return {"cells": [{"outputs": [{"metadata": {METADATA: r}} for r in records]}, {}]}


def test_records_of_a_notebook_that_is_odd():
    good = {"name": "a", "value": 1.0, "unit": "s", "kind": "model", "better": "lower"}
    assert [r.name for r in report.records_of(_notebook(good))] == ["a"]
    with pytest.raises(report.ReportError, match="'a' is there twice"):
        list(report.records_of(_notebook(good, good)))
    with pytest.raises(report.ReportError, match="missing"):
        list(report.records_of(_notebook({"name": "a"})))
