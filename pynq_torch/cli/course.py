"""``python -m pynq_torch course FOLDER``: the lessons as an nbgrader course, for both sides."""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

from pynq_torch.errors import PynqTorchError, needs
from pynq_torch.paths import NOTEBOOKS, ROOT

__all__ = ["declare", "release", "write"]

_CONFIG = "nbgrader_config.py"


def write(folder: Path) -> list[str]:
    """Write the instructor's edition: ``source/LESSON/LESSON.ipynb``, and nbgrader's configuration.

    Parameters
    ----------
    folder : pathlib.Path
        The course's folder; files that are there already are replaced, a changed configuration is
        kept.

    Returns
    -------
    list of str
        The lessons, which are nbgrader's assignments.
    """
    lessons = sorted(NOTEBOOKS.glob("*.ipynb"))
    for lesson in lessons:
        target = folder / "source" / lesson.stem
        target.mkdir(parents=True, exist_ok=True)
        text = lesson.read_text(encoding="utf-8")
        for name in set(re.findall(r"\]\(([\w/]+\.(?:md|svg))", text)):
            (target / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(NOTEBOOKS / name, target / name)
        # Lessons link to each other, and each is in a folder of its own here.
        text = re.sub(r"\]\((\d\d_\w+)\.ipynb", r"](../\1/\1.ipynb", text)
        (target / lesson.name).write_text(text, encoding="utf-8")
    if not (folder / _CONFIG).exists():
        shutil.copyfile(ROOT / "deploy" / _CONFIG, folder / _CONFIG)
    return [lesson.stem for lesson in lessons]


def release(folder: Path, lessons: list[str]) -> None:
    """Write the student's edition into ``release/``: no solutions, no hidden tests, no outputs.

    Raises
    ------
    PynqTorchError
        nbgrader is missing, or refuses a lesson.
    """
    with needs("nbgrader", "A course"):
        from nbgrader.apps import NbGraderAPI
        from nbgrader.coursedir import CourseDirectory
    from traitlets.config.loader import PyFileConfigLoader

    config = PyFileConfigLoader(_CONFIG, path=str(folder)).load_config()
    api = NbGraderAPI(CourseDirectory(root=str(folder.resolve()), config=config), config=config)
    for lesson in lessons:
        done = api.generate_assignment(lesson, force=True, create=True)
        if not done["success"]:
            raise PynqTorchError(f"nbgrader refuses {lesson}:\n{done['log']}")


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare ``course FOLDER [--only TEXT] [--instructor]``."""
    parser.description = (
        "Write the lessons as an nbgrader course: source/ with solutions and all tests for those "
        "who teach, release/ without them for those who learn."
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the course's folder")
    parser.add_argument("--only", default="", metavar="TEXT", help="lessons that begin with TEXT")
    parser.add_argument("--instructor", action="store_true", help="source/ alone")
    parser.set_defaults(func=_run)


def _run(parsed: argparse.Namespace) -> int:
    lessons = [name for name in write(parsed.folder) if name.startswith(parsed.only)]
    if not lessons:
        raise PynqTorchError(f"no lesson begins with '{parsed.only}'; see notebooks/")
    print(f"{parsed.folder / 'source'}: with solutions and hidden tests, for those who teach")
    if not parsed.instructor:
        release(parsed.folder, lessons)
        print(f"{parsed.folder / 'release'}: {len(lessons)} lessons for those who learn")
    return 0
