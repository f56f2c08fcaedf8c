"""Every lesson keeps the anatomy of notebook_style.py, and every rule there can fail."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from notebook_style import GLOSSARY, RULES, TERMS, Notebook, code_cells, text

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "notebooks").glob("*.ipynb"))


def test_the_lessons_are_numbered_without_a_gap():
    assert NOTEBOOKS, "no lesson in notebooks/"
    assert all(re.fullmatch(r"\d\d_[a-z0-9_]+\.ipynb", path.name) for path in NOTEBOOKS)
    numbers = [int(path.name[:2]) for path in NOTEBOOKS]
    assert numbers == list(range(len(numbers)))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.parametrize("rule", RULES)
def test_lesson(path: Path, rule: str):
    complaints = list(RULES[rule](json.loads(path.read_text(encoding="utf-8"))))
    assert not complaints, f"{path.name}: " + "; ".join(complaints)


# The rules themselves, on a lesson made here.


def _cell(kind: str, source: str, **more: Any) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "source": source, "metadata": {}, **more}
    if kind == "code":
        cell.setdefault("outputs", [])
    return cell


def _lesson() -> Notebook:
    printed = {"output_type": "stream", "name": "stdout", "text": ["int32 (3,) error 0 PASS\n"]}
    cells = [
        _cell("markdown", "# A lesson\n\n## Goal\nTo see.\n\n## What it needs\nFive minutes.\n\n"),
        _cell(
            "markdown", "## Parameters\n![a](figures/zynq.svg)\n> **What a real board would show.**"
        ),
        _cell("code", 'BOARD = "csim"  # the board\nSIZE = 4  # edge\nSEED = 0  # of the data'),
    ]
    cells[-1]["metadata"]["tags"] = ["parameters"]
    for heading in ("Build", "Load", "Verify", "Verify twice", "Verify again", "Measure", "Chart"):
        cells.append(_cell("markdown", f"## {heading}\nWhy."))
        output = [printed] if heading.startswith("Verify") else []
        cells.append(_cell("code", "a = 1\nb = 2\nprint(a + b)", outputs=output))
    cells[-3]["source"] = 'a = 1\nb = 2\nguess = predict("sum", 3, "")'
    cells[-1]["source"] = 'a = 1\nb = 2\nguess.compare(a + b, "model")'
    cells.append(_cell("markdown", "## Summary"))
    # The lower limit of a lesson's cells, so that one less is too few.
    cells[-1:-1] = [_cell("markdown", "Why.") for _ in range(7)]
    for n in range(3):
        cells.append(_cell("markdown", "## Exercises\nDo."))
        cells.append(_cell("code", "### BEGIN SOLUTION\nx = 1\n### END SOLUTION"))
        cells[-1]["metadata"]["nbgrader"] = {"grade_id": f"{n}", "solution": True}
        hidden = "assert x\n### BEGIN HIDDEN TESTS\nassert x == 1\n### END HIDDEN TESTS"
        cells.append(_cell("code", hidden))
        cells[-1]["metadata"]["nbgrader"] = {
            **{"grade_id": f"{n}-check", "grade": True, "locked": True, "solution": False},
            "points": 1,
        }
    cells.append(_cell("markdown", "## What comes next\n**Further reading.** UG585."))
    for index, cell in enumerate(cells):
        cell["id"] = f"cell{index}"
    lesson = {"metadata": {"kernelspec": {"name": "python3"}}, "cells": cells}
    for number, cell in enumerate(code_cells(lesson), start=1):
        cell["execution_count"] = number
    return lesson


def _code(lesson: Notebook, index: int) -> dict[str, Any]:
    return code_cells(lesson)[index]


def _drop(pattern: str) -> Callable[[Notebook], None]:
    def edit(lesson: Notebook) -> None:
        for cell in lesson["cells"]:
            cell["source"] = re.sub(pattern, "", text(cell))

    return edit


def _set(index: int, **values: Any) -> Callable[[Notebook], None]:
    return lambda lesson: _code(lesson, index).update(copy.deepcopy(values))


def _nbgrader(index: int, **values: Any) -> Callable[[Notebook], None]:
    return lambda lesson: _code(lesson, index)["metadata"]["nbgrader"].update(values)


def _tag(tag: str) -> Callable[[Notebook], None]:
    return lambda lesson: _code(lesson, 2)["metadata"].update(tags=[tag])


def _swap(first: int, second: int) -> Callable[[Notebook], None]:
    def edit(lesson: Notebook) -> None:
        cells = lesson["cells"]
        cells[first], cells[second] = cells[second], cells[first]

    return edit


def _each_code(source: str) -> Callable[[Notebook], None]:
    def edit(lesson: Notebook) -> None:
        for cell in code_cells(lesson):
            cell["source"] = source

    return edit


_ERROR = {"output_type": "error", "ename": "E", "evalue": "", "traceback": []}
_MAGIC = {"output_type": "stream", "name": "stderr", "text": "UsageError: no magic"}
_WIDGET = {
    "output_type": "display_data",
    "metadata": {},
    "data": {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "VBox()"},
}
_PATH = {"output_type": "stream", "name": "stdout", "text": "see /home/me/a.bit"}

BROKEN: list[tuple[str, Callable[[Notebook], object]]] = [
    ("title", _drop("^# ")),
    ("kernelspec", lambda lesson: lesson["metadata"].clear()),
    ("parameters", lambda lesson: _code(lesson, 0)["metadata"].clear()),
    ("parameters", _tag("parameters")),
    ("parameters", _set(0, source='BOARD = "csim"  # board\nN: int | None = None')),
    ("parameters", _set(0, source="SIZE = 4  # edge")),
    ("parameters", _set(0, source='BOARD = "csim"  # board\nN = 4  # edge, m = n')),
    ("parameters", _set(0, source='BOARD = "rtl"  # a board that simulates RTL')),
    ("sections", _drop("## Goal")),
    ("sections", _drop("## Summary")),
    ("sections", _swap(0, -1)),
    ("size", lambda lesson: lesson["cells"].__setitem__(slice(3, 3), lesson["cells"][3:20])),
    ("size", lambda lesson: lesson["cells"].pop(3)),
    ("size", _set(3, source="a = 1\n" * 31)),
    ("size", _each_code("a = 1\n" * 9)),
    ("size", _each_code("a = 1")),
    ("size", _each_code("")),
    ("prose", lambda lesson: lesson["cells"].pop(3)),
    ("verdicts", _set(4, outputs=[])),
    ("picture", _drop(r"!\[a\]\(.*\)")),
    ("picture", lambda lesson: lesson["cells"][3].update(source="![a](figures/none.svg)")),
    ("prediction", _drop("predict")),
    ("prediction", _drop("compare")),
    ("reading", _drop("Further reading")),
    ("reading", _drop("> .*")),
    ("solutions", _drop("### BEGIN SOLUTION\n")),
    ("solutions", _drop("### BEGIN HIDDEN TESTS\n")),
    ("solutions", lambda lesson: _code(lesson, -1)["metadata"]["nbgrader"].update(grade=False)),
    ("solutions", lambda lesson: _code(lesson, -2)["metadata"].clear()),
    ("graded", _drop("### (BEGIN|END) HIDDEN TESTS\n?")),
    ("graded", _set(-1, source="### BEGIN HIDDEN TESTS\nassert x\n### END HIDDEN TESTS")),
    ("graded", _set(-1, metadata={})),
    ("graded", _nbgrader(-1, points=0)),
    ("graded", _nbgrader(-1, locked=False)),
    ("graded", _nbgrader(-1, grade_id="0-check")),
    ("graded", _nbgrader(-2, solution=False)),
    ("graded", _set(-1, outputs=[{"output_type": "execute_result", "data": {}}])),
    ("graded", _set(-1, outputs=[{"output_type": "stream", "name": "stderr", "text": "no"}])),
    ("outputs", _set(2, execution_count=None)),
    ("outputs", _set(2, execution_count=7)),
    ("outputs", _set(2, outputs=[_ERROR])),
    ("outputs", _set(2, outputs=[_MAGIC])),
    ("outputs", _set(2, outputs=[_WIDGET])),
    ("paths", _set(2, source='print(hls.excerpt("../hw/kernels/gemm/gemm.cpp", "pair"))')),
    ("paths", _set(2, source="print(Path.cwd())")),
    ("paths", _set(2, source="open('/home/me/x')\nb = 2\nc = 3")),
    ("paths", _set(2, outputs=[_PATH])),
    ("tags", _tag("raises-exception")),
    ("glossary", lambda lesson: lesson["cells"][3].update(source="## Build\nThe II is 1.")),
    ("cell_ids", lambda lesson: lesson["cells"][3].pop("id")),
]


def test_the_made_lesson_breaks_no_rule():
    lesson = _lesson()
    found = {name: list(rule(lesson)) for name, rule in RULES.items()}
    assert found == {name: [] for name in RULES}


@pytest.mark.parametrize(
    ("rule", "edit"), BROKEN, ids=[f"{r}-{i}" for i, (r, _) in enumerate(BROKEN)]
)
def test_a_broken_lesson_is_told(rule: str, edit: Callable[[Notebook], object]):
    lesson = _lesson()
    edit(lesson)
    assert list(RULES[rule](lesson))


def test_the_glossary_is_in_order():
    headings = [line[3:] for line in GLOSSARY.read_text().splitlines() if line.startswith("## ")]
    assert headings == sorted(headings, key=str.casefold) and set(TERMS) < set(headings)
    lesson = _lesson()
    lesson["cells"][3]["source"] = "## An II\n`II` [II](glossary.md#ii), and once more the II."
    assert not list(RULES["glossary"](lesson))


def test_every_rule_is_broken_by_some_case():
    assert {rule for rule, _ in BROKEN} == set(RULES)


def test_addresses_of_hardware_and_of_files_in_the_project_are_no_absolute_paths():
    lesson = _lesson()
    _code(lesson, 2)["source"] = (
        "base = 0x4000_0000\nname = paths.BITSTREAMS / 'gemm/gemm.bit'\nc = 1"
    )
    assert not list(RULES["paths"](lesson))


def test_the_map_of_the_course_has_every_lesson() -> None:
    first = NOTEBOOKS[0].read_text(encoding="utf-8")
    readme = (NOTEBOOKS[0].parents[1] / "README.md").read_text(encoding="utf-8")
    for path in NOTEBOOKS[1:]:
        assert f"({path.name})" in first, path.name
        assert f"`{path.stem}`" in readme, path.name
