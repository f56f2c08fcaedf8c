"""Lessons as an nbgrader course: the student's edition, and grades for what students hand in.

Lesson 01 is handed in, in five ways; PYNQ_TORCH_GRADE names others ("29,33"), or "all", as
`make test-long` does.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from grading_course import KINDS, Course, answers, expected, read
from notebook_style import graded, text

from pynq_torch.cli.course import write
from pynq_torch.paths import NOTEBOOKS, ROOT
from pynq_torch.report import sandbox

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nbgrader") is None, reason="nbgrader is not installed (Python 3.11)"
)
needs_sandbox = pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="Bubblewrap is not installed (apt install bubblewrap)"
)
LESSONS = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
ASKED = os.environ.get("PYNQ_TORCH_GRADE", "")
GRADED = [name for name in LESSONS if ASKED == "all" or name[:2] in (ASKED or "01").split(",")]
TINY = "99_tiny"


def _cell(source: str, **nbgrader: Any) -> dict[str, Any]:
    about = {"schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}
    return {
        "cell_type": "code",
        "id": nbgrader.get("grade_id", "first"),
        "metadata": {"nbgrader": about | nbgrader} if nbgrader else {},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def _tiny() -> dict[str, Any]:
    """Return a lesson that needs no board: what is said of submissions is quick to try with it."""
    cells = [_cell("secret = 1")]
    for n in (1, 2):
        solved = f"### BEGIN SOLUTION\nanswer_{n} = {n}\n### END SOLUTION"
        check = f"assert answer_{n}\n### BEGIN HIDDEN TESTS\nassert answer_{n} == {n}  # hidden"
        cells.append(_cell(solved, grade_id=f"{n}", solution=True))
        cells.append(
            _cell(
                f"{check}\n### END HIDDEN TESTS",
                **{"grade_id": f"{n}-check", "grade": True, "locked": True, "points": n},
            )
        )
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": spec}, "nbformat": 4, "nbformat_minor": 5}


def _release(made: Course, *lessons: str) -> None:
    code = (
        "import sys; from pathlib import Path; from pynq_torch.cli.course import release;"
        "release(Path(sys.argv[1]), sys.argv[2:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(made.folder), *lessons],
        capture_output=True,
        text=True,
        timeout=850,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Return a course with all lessons, released."""
    made = Course(tmp_path_factory.mktemp("course"))
    _release(made, *write(made.folder))
    return made


@pytest.fixture
def tiny(tmp_path: Path) -> Course:
    """Return a course with the tiny lesson alone, released."""
    made = Course(tmp_path)
    path = made.notebook("source", TINY)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(_tiny()), encoding="utf-8")
    shutil.copy(ROOT / "deploy" / "nbgrader_config.py", tmp_path)
    _release(made, TINY)
    return made


@pytest.mark.timeout(900)
@pytest.mark.parametrize("lesson", LESSONS)
def test_the_students_edition_has_neither_solutions_nor_hidden_tests(course: Course, lesson: str):
    source, given = (read(course.notebook(step, lesson)) for step in ("source", "release"))
    everything = json.dumps(given)
    assert "SOLUTION" not in everything and "HIDDEN" not in everything
    assert not any(cell.get("outputs") for cell in given["cells"])
    assert [graded(c).get("grade_id") for c in given["cells"]] == [
        graded(c).get("grade_id") for c in source["cells"]
    ]
    assert all("NotImplementedError" in text(cell) for cell in answers(given))
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", everything)
    assert all((course.notebook("release", lesson).parent / name).is_file() for name in pictures)
    checks = [cell for cell in given["cells"] if graded(cell).get("grade")]
    assert all(text(cell).strip() and cell["metadata"]["editable"] is False for cell in checks)


@needs_sandbox
@pytest.mark.slow
@pytest.mark.timeout(20000 if ASKED else 1800)
@pytest.mark.parametrize("lesson", GRADED)
def test_points_of_right_wrong_empty_crashing_and_hanging_work(course: Course, lesson: str):
    source = course.hand_in_kinds(lesson, list(KINDS))
    # Cells that end are given the time that they take on a busy PC, the one that hangs does not
    # need it.
    others = "--CourseDirectory.student_id_exclude=hanging"
    course.autograde(lesson, others, "--Execute.timeout=300", "--create", timeout_s=15000)
    limit_s = 120 if ASKED else 20
    hanging = ["--student=hanging", f"--Execute.timeout={limit_s}", "--create"]
    found = course.autograde(lesson, *hanging, timeout_s=1500)
    assert found == {kind: expected(source, kind) for kind in KINDS}
    for kind in ("wrong", "empty", "crashing", "hanging"):
        assert course.errors(kind, lesson), kind
    right = course.notebook("submitted/right", lesson)
    validated = course.run("validate", str(right), timeout_s=1500)
    assert "Success" in validated.stdout, validated.stdout


def _answer(source: str, number: int = 1) -> dict[str, Any]:
    """Return the tiny lesson with `source` as the answer to one exercise, and the other right."""
    work = _tiny()
    for n, cell in enumerate(answers(work), start=1):
        cell["source"] = source if n == number else f"answer_{n} = {n}"
    return work


def _without(*ids: str) -> dict[str, Any]:
    work = _answer("answer_1 = 1")
    work["cells"] = [c for c in work["cells"] if graded(c).get("grade_id") not in ids]
    return work


def _with_copies() -> dict[str, Any]:
    """Return a right answer behind a wrong copy of its cell, and a check that is there twice."""
    work = _answer("answer_1 = 1")
    copied = work["cells"][1] | {"source": "answer_1 = 7"}
    work["cells"][1:3] = [copied, *work["cells"][1:3], work["cells"][2]]
    return work


FILES = """
from pathlib import Path

found = [str(p) for top in ("{course}", "{notebooks}") for p in Path(top).rglob("*") if p.is_file()]
answer_1 = 1 if not found and not Path.home().joinpath(".ssh").exists() else found
"""
WRITES = """
import os

try:
    open("{folder}/written", "w")
except OSError:
    answer_1 = 1
os.path.exists("{folder}/written") and 1 / 0
"""
KILLS = """
import os
import signal

others = [int(name) for name in os.listdir("/proc") if name.isdigit()]
answer_1 = 1 if len(others) < 6 else others
"""
NETWORK = """
import socket

try:
    socket.create_connection(("127.0.0.1", {port}), timeout=2)
except OSError:
    answer_1 = 1
"""
FORKS = """
import os
import signal
import subprocess
import sys

children = []
try:
    for _ in range(2000):
        children.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
except OSError:
    answer_1 = 1
for child in children:
    child.kill()
    child.wait()
"""
#: The check writes to stderr then, as where RTL is built.
WARNS = """
import sys


class One(int):
    def __eq__(self, other):
        return sys.stderr.write("built") > 0


answer_1 = One(1)
"""
#: Student -> (what is handed in, points of 3, a word of what the student reads).
UNUSUAL: dict[str, tuple[dict[str, Any], float, str]] = {
    "segfault": (_answer("import ctypes\nctypes.string_at(0)"), 0, "kernel died"),
    "exit": (_answer("import os\nos._exit(0)", 2), 1, "kernel died"),
    "memory": (_answer("answer_1 = bytearray(64 << 30)"), 2, "answer_1"),
    "forever": (_answer("while True: pass"), 2, "answer_1"),
    "stubborn": (
        _answer("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"),
        0,
        "did not end",
    ),
    "no_answer": (_without("1"), 2, "answer_1"),
    "no_check": (_without("1-check"), 3, ""),
    "neither": (_without("1", "1-check"), 2, "answer_1"),
    "no_cells": (_without("1", "1-check", "2", "2-check"), 0, "answer_1"),
    "bare_exit": (_answer("exit()"), 0, "kernel died"),
    "syntax": (_answer("answer_1 = = 1"), 2, "answer_1"),
    "warning": (_answer(WARNS), 3, ""),
    "guess": (_answer("answer_1 = 7"), 2, "AssertionError"),
    "copies": (_with_copies(), 3, ""),
}


@needs_sandbox
@pytest.mark.timeout(900)
def test_whatever_is_handed_in_ends_in_points_and_a_sentence(tiny: Course):
    for student, (work, _, _) in UNUSUAL.items():
        tiny.hand_in(student, TINY, work)
    changed = _answer("answer_1 = 7")
    changed["cells"][2]["source"] = "pass"
    tiny.hand_in("changed", TINY, changed)
    tiny.hand_in("flood", TINY, _answer("while True: print('x' * 10_000)"))
    tiny.hand_in("damaged", TINY, {})
    tiny.notebook("submitted/damaged", TINY).write_text('{"cells": [')
    found = tiny.autograde(TINY, "--Execute.timeout=5", timeout_s=800)
    assert found.pop("flood") in (0, 2)  # as it could be interrupted or not
    assert found.pop("damaged") == 0
    assert "cannot be read" in text(read(tiny.notebook("autograded/damaged", TINY))["cells"][0])
    assert found == {s: score for s, (_, score, _) in UNUSUAL.items()} | {"changed": 2}
    for student, (_, _, word) in UNUSUAL.items():
        told = " ".join(tiny.errors(student, TINY))
        assert word in told and bool(told) == bool(word), (student, told)


@needs_sandbox
@pytest.mark.timeout(900)
def test_a_submission_sees_and_harms_nothing_but_itself(tiny: Course):
    listener = socket.create_server(("127.0.0.1", 0))
    tries = {
        "reads": FILES.format(course=tiny.folder, notebooks=NOTEBOOKS),
        "writes": WRITES.format(folder=NOTEBOOKS.parent / "pynq_torch"),
        "kills": KILLS,
        "calls": NETWORK.format(port=listener.getsockname()[1]),
        "forks": FORKS,
    }
    for student, source in tries.items():
        tiny.hand_in(student, TINY, _answer(source))
    found = tiny.autograde(TINY, "--Execute.timeout=60", timeout_s=500)
    listener.close()
    seen = {s: (found[s], tiny.errors(s, TINY)) for s in tries}
    assert seen == {student: (3, []) for student in tries}


@needs_sandbox
def test_what_pynq_left_of_another_program_is_not_there(monkeypatch: pytest.MonkeyPatch):
    state = Path(sandbox.__file__)  # any file that is read in a sandbox
    look = [sys.executable, "-c", f"import os; print(os.path.isfile({str(state)!r}))"]
    for files, found in (([], "True"), ([state], "False")):
        monkeypatch.setattr(sandbox, "left_by_pynq", lambda files=files: files)
        words = [*sandbox.sandbox([], [], 64), *look]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout.strip() == found, done.stderr


@needs_sandbox
@pytest.mark.timeout(600)
def test_without_the_sandbox_nothing_is_run(tiny: Course):
    tiny.hand_in("somebody", TINY, _answer("answer_1 = 1"))
    options = ["--student=somebody", "--SandboxedExecute.bubblewrap=no-such-command"]
    done = tiny.run("autograde", TINY, *options, timeout_s=300)
    assert done.returncode != 0 and "apt install bubblewrap" in done.stderr
    assert not tiny.notebook("autograded/somebody", TINY).exists()
