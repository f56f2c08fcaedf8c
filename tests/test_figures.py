"""Pictures in lessons: each is used, says what it shows, and goes where its lesson goes."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary
from notebook_style import text

from pynq_torch.cli import course, workbook
from pynq_torch.paths import NOTEBOOKS
from pynq_torch.report.plan import Run
from pynq_torch.report.result import describe

SVG = "{http://www.w3.org/2000/svg}"
FIGURES = sorted((NOTEBOOKS / "figures").iterdir())
LESSONS = sorted(NOTEBOOKS.glob("*.ipynb"))


def _shown(lesson: Path) -> list[tuple[str, str]]:
    """Return (text instead of the picture, its file) for each picture in a lesson's text."""
    cells = json.loads(lesson.read_text(encoding="utf-8"))["cells"]
    prose = "\n".join(text(cell) for cell in cells if cell["cell_type"] == "markdown")
    return re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", prose)


def test_every_picture_is_in_a_lesson_that_describes_it():
    shown = [pair for lesson in LESSONS for pair in _shown(lesson)]
    assert {file for _, file in shown} == {f"figures/{path.name}" for path in FIGURES}
    assert [file for words, file in shown if len(words.split()) < 8] == []


def test_every_picture_describes_itself_and_has_colours_for_a_dark_page():
    styles = set()
    for path in FIGURES:
        root = ET.parse(path).getroot()
        described = [root.find(f"{SVG}{name}") for name in ("title", "desc")]
        assert all(part is not None and part.text for part in described), path.name
        assert root.get("role") == "img", path.name
        styles.add(root.findtext(f"{SVG}style"))
        # Text has the page's own colour, and what is not styled would be black on black.
        bare = [part.tag for part in root.iter() if part.tag[len(SVG) :] in ("rect", "path", "line")
                and not part.get("class")]  # fmt: skip
        assert bare == [], path.name
    assert len(styles) == 1
    assert "prefers-color-scheme: dark" in str(styles.pop())


def test_labels_side_by_side_have_room_between_them():
    """Text is measured by the widths of a wide face: 0.5 of its size for each character."""
    crowded = []
    for path in FIGURES:
        spans = []
        for part in ET.parse(path).getroot().iter(f"{SVG}text"):
            kinds, words = str(part.get("class")).split(), part.text or ""
            width = len(words) * (7.0 if "s" in kinds else 8.0)
            x, y = float(part.get("x", 0)), float(part.get("y", 0))
            begin = x - width * ("e" in kinds) - width / 2 * ("m" in kinds)
            spans.append((begin, begin + width, y, words))
        for begin, end, y, words in spans:
            crowded += [
                (path.name, words, other)
                for start, _, height, other in spans
                if begin < start < end + 6 and abs(y - height) < 8 and other != words
            ]
    assert crowded == []


@pytest.fixture(autouse=True)
def _signatures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what is signed here away from the user's own."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))


def test_drawings_of_a_workbook_show_before_it_is_run(tmp_path: Path):
    read = [nbformat.read(path, as_version=4) for path in LESSONS]
    assert not any(NotebookNotary().check_signature(lesson) for lesson in read)
    workbook.write(tmp_path / "book")
    assert all(NotebookNotary().check_signature(lesson) for lesson in read)


def test_pictures_go_where_the_lessons_go(tmp_path: Path):
    lesson = next(path for path in LESSONS if _shown(path))
    course.write(tmp_path)
    for folder in (workbook.write(tmp_path / "book").parent, tmp_path / "source" / lesson.stem):
        assert all((folder / file).is_file() for _, file in _shown(folder / lesson.name)), folder
        assert (folder / "glossary.md").is_file()
    executed = tmp_path / lesson.name
    executed.write_bytes(lesson.read_bytes())
    result = describe(Run(lesson, {}, {}, 0, lesson.stem), executed, 1.0, True, "")
    page = (tmp_path / str(result.html)).read_text()
    for words, file in _shown(lesson):
        assert re.search(rf'<img[^>]*alt="{re.escape(words)}"', page), file
    assert page.count("data:image/svg+xml;base64") == len(_shown(lesson))
