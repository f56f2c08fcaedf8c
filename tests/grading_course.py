"""An nbgrader course made of lessons, with work that we hand in ourselves: right, wrong, broken.

Everything runs as it does for a teacher: by nbgrader's own command line, in other processes.
"""

from __future__ import annotations

import ast
import copy
import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from notebook_style import graded, text

Notebook = dict[str, Any]
Cell = dict[str, Any]

CRASH = "import os\nimport signal\n\nos.kill(os.getpid(), signal.SIGSEGV)"
HANG = "while True:\n    pass"


def read(path: Path) -> Notebook:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def answers(notebook: Notebook) -> list[Cell]:
    return [cell for cell in notebook["cells"] if graded(cell).get("solution")]


def points(notebook: Notebook) -> list[float]:
    return [graded(c)["points"] for c in notebook["cells"] if graded(c).get("grade")]


def wrong(source: str) -> str:
    """Return an answer that defines the same names, all of them useless."""
    names: dict[str, str] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names[node.name] = "lambda *args, **options: None"
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            names |= {n.id: "None" for n in ast.walk(target) if isinstance(n, ast.Name)}
    return "\n".join(f"{name} = {value}" for name, value in names.items())


def _right(cells: list[Cell], solved: list[str]) -> None:
    for cell, source in zip(cells, solved, strict=True):
        cell["source"] = source


def _wrong(cells: list[Cell], solved: list[str]) -> None:
    _right(cells, [wrong(source) for source in solved])


def _ends_in(last: str) -> Callable[[list[Cell], list[str]], None]:
    return lambda cells, solved: _right(cells, [*solved[:-1], last])


#: Student -> what they make of the cells for answers, given the solutions; "empty" leaves them.
KINDS: dict[str, Callable[[list[Cell], list[str]], None]] = {
    "right": _right,
    "wrong": _wrong,
    "empty": lambda cells, solved: None,
    "crashing": _ends_in(CRASH),
    "hanging": _ends_in(HANG),
}


def expected(notebook: Notebook, kind: str) -> float:
    """Return the points: who crashes or hangs does so in the last exercise."""
    each = points(notebook)
    return {"right": sum(each), "wrong": 0, "empty": 0}.get(kind, sum(each[:-1]))


class Course:
    """A course in a folder; nbgrader runs in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def notebook(self, step: str, lesson: str) -> Path:
        return self.folder / step / lesson / f"{lesson}.ipynb"

    def hand_in(self, student: str, lesson: str, notebook: Notebook) -> None:
        path = self.notebook(f"submitted/{student}", lesson)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(notebook), encoding="utf-8")

    def hand_in_kinds(self, lesson: str, kinds: list[str]) -> Notebook:
        """Hand in a lesson as each kind of student would; return the instructor's."""
        source, given = (read(self.notebook(step, lesson)) for step in ("source", "release"))
        solved = [text(cell) for cell in answers(source)]
        for kind in kinds:
            work = copy.deepcopy(given)
            KINDS[kind](answers(work), solved)
            self.hand_in(kind, lesson, work)
        return source

    def run(self, *words: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "nbgrader", *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def autograde(self, lesson: str, *options: str, timeout_s: float) -> dict[str, float]:
        """Autograde what was handed in; return student -> points."""
        done = self.run("autograde", lesson, *options, timeout_s=timeout_s)
        assert done.returncode == 0, done.stderr[-4000:]
        exported = self.run("export", timeout_s=300)
        assert exported.returncode == 0, exported.stderr[-4000:]
        with (self.folder / "grades.csv").open(encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["assignment"] == lesson]
        return {
            row["student_id"]: float(row["score"] or 0) for row in rows if row["timestamp"] != "-"
        }

    def errors(self, student: str, lesson: str) -> list[str]:
        """Return what a student reads of the checks that failed."""
        cells = read(self.notebook(f"autograded/{student}", lesson))["cells"]
        return [
            f"{output['ename']}: {output['evalue']}"
            for cell in cells
            if graded(cell).get("grade")
            for output in cell["outputs"]
            if output["output_type"] == "error"
        ]
