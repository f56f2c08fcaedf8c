"""The anatomy of a lesson as rules over its JSON; test_notebook_style.py applies them.

The rules are those of the project's notebooks: a goal, what it needs, parameters, a body, a
verification, a measurement, a summary, exercises with solutions, what comes next; a drawing, a
prediction, what a real board would show, further reading; short cells with prose before each;
verdicts that the reader sees; outputs that are committed and clean.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Notebook = dict[str, Any]
Cell = dict[str, Any]

#: Up to the exercises, which have an anatomy of their own (`rule_graded`).
CELLS = range(25, 41)
MAX_LINES = 30
MAX_MEAN_LINES = 8
MEDIAN_LINES = (2, 7)  # 3 to 5, with some tolerance on either side
MIN_VERDICTS = 3

#: Headings that every lesson has, in this order: a pattern for the start of the heading.
SECTIONS = {
    "Goal": r"goal",
    "What it needs": r"what (it|you|this) need",
    "Parameters": r"parameters",
    "Verify": r"verify",
    "Measure": r"measure",
    "Summary": r"summary",
    "Exercises": r"exercise",
    "What comes next": r"(what comes )?next",
}
WIDGET = "application/vnd.jupyter.widget-view+json"
FORBIDDEN_TAGS = {"raises-exception", "nbval-raises-exception"}
_ABSOLUTE_PATH = re.compile(
    r"(?<![\w.~/:])/(home|root|tmp|work|Users|mnt|opt|var)/[\w.-]+|[A-Z]:\\\\"
)
#: A path that depends on who runs the notebook: papermill stays in the folder of its caller.
_RELATIVE_PATH = re.compile(r"""["']\.\.?/|\bgetcwd\(|\bcwd\(\)|Path\((["']\.{0,2}["'])?\)""")
#: Code, links, headings and formulas.
_NO_PROSE = re.compile(
    r"(?ms)^```.*?^```|`[^`]*`|!?\[[^\]]*\]\([^)]*\)|^#[^\n]*$|\$[^$]*\$|<[^>]*>"
)
#: The abbreviations of the glossary; its other words are explained where lessons introduce them.
GLOSSARY = Path(__file__).resolve().parents[1] / "notebooks" / "glossary.md"
FIGURES = GLOSSARY.parent / "figures"
TERMS = [
    line[3:] for line in GLOSSARY.read_text().splitlines() if line[:3] == "## " and line.isupper()
]
_BEGIN, _END = "### BEGIN SOLUTION", "### END SOLUTION"
_HIDDEN, _HIDDEN_END = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
EXERCISES = range(3, 6)


def text(cell: Cell) -> str:
    """Return a cell's source as one string, whichever way the file stores it."""
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def code_cells(notebook: Notebook) -> list[Cell]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def tags(cell: Cell) -> set[str]:
    return set(cell.get("metadata", {}).get("tags", []))


def code_lines(cell: Cell) -> int:
    return sum(bool(line.strip()) for line in text(cell).splitlines())


def graded(cell: Cell) -> dict[str, Any]:
    """Return what nbgrader is told of a cell."""
    return dict(cell.get("metadata", {}).get("nbgrader", {}))


def lesson_cells(notebook: Notebook) -> list[Cell]:
    """Return the cells before the exercises."""
    cells: list[Cell] = notebook["cells"]
    starts = [i for i, heading in headings(notebook) if heading.lower().startswith("exercise")]
    return cells[: starts[0] if starts else None]


def headings(notebook: Notebook) -> list[tuple[int, str]]:
    """Return (index of the cell, heading) for every heading of level two or deeper."""
    return [
        (index, match.group(1).strip())
        for index, cell in enumerate(notebook["cells"])
        if cell["cell_type"] == "markdown"
        for match in re.finditer(r"^##+ +(.+)$", text(cell), re.MULTILINE)
    ]


def output_text(cell: Cell) -> str:
    parts: list[str] = []
    for output in cell.get("outputs", []):
        found = output.get("text") or output.get("data", {}).get("text/plain", "")
        parts.append(found if isinstance(found, str) else "".join(found))
    return "".join(parts)


def rule_title(notebook: Notebook) -> Iterator[str]:
    first = notebook["cells"][0] if notebook["cells"] else None
    if first is None or first["cell_type"] != "markdown" or not text(first).startswith("# "):
        yield "the first cell is not a markdown cell that begins with '# ' and the title"


def rule_kernelspec(notebook: Notebook) -> Iterator[str]:
    name = notebook["metadata"].get("kernelspec", {}).get("name")
    if name != "python3":
        yield f"the kernelspec is '{name}', expected 'python3'"


def rule_parameters(notebook: Notebook) -> Iterator[str]:
    cells = code_cells(notebook)
    tagged = [index for index, cell in enumerate(cells) if "parameters" in tags(cell)]
    if tagged != [0]:
        yield f"code cells tagged 'parameters': {tagged}, expected the first code cell only"
        return
    for line in filter(str.strip, text(cells[0]).splitlines()):
        # papermill reads "NAME = value  # help" and nothing more elaborate
        if not re.match(r"[A-Z][A-Z0-9_]* = [^#=]+  # [^=]+$", line) and line[0] != "#":
            yield f"parameter line {line!r}: expected 'NAME = default  # help', one '='"
    board = re.search(r'^BOARD = "(\w+)"', text(cells[0]), re.MULTILINE)
    boards = notebook["metadata"].get("pynq_torch", {}).get("boards", ["csim"])
    if board is None:
        yield "the parameters have no BOARD"
    elif board.group(1) not in boards:
        # A report on another board would pass its own, see pynq_torch.report.plan.
        yield f"BOARD is {board.group(1)}, which is none of the boards in the metadata: {boards}"


def rule_sections(notebook: Notebook) -> Iterator[str]:
    found = [heading.lower() for _, heading in headings(notebook)]
    at = -1
    for name, pattern in SECTIONS.items():
        places = [i for i, heading in enumerate(found) if re.match(pattern, heading)]
        if not places:
            yield f"no heading '## {name}'"
        elif places[-1] < at:
            yield f"heading '## {name}' comes too early; the order is {', '.join(SECTIONS)}"
        else:
            at = next(place for place in places if place >= at)


def rule_size(notebook: Notebook) -> Iterator[str]:
    count = len(lesson_cells(notebook))
    if count not in CELLS:
        yield f"{count} cells before the exercises, expected {CELLS.start} to {CELLS.stop - 1}"
    lengths = [code_lines(cell) for cell in code_cells({"cells": lesson_cells(notebook)})]
    if not lengths:
        yield "no code cell"
        return
    for index, length in enumerate(lengths):
        if length > MAX_LINES:
            yield f"code cell {index} has {length} lines, at most {MAX_LINES}; make it a function"
    mean, median = statistics.mean(lengths), statistics.median(lengths)
    if mean > MAX_MEAN_LINES:
        yield f"code cells of {mean:.1f} lines on average, at most {MAX_MEAN_LINES}"
    low, high = MEDIAN_LINES
    if not low <= median <= high:
        yield f"code cells of {median} lines in the median, expected {low} to {high}"


def rule_prose(notebook: Notebook) -> Iterator[str]:
    cells = notebook["cells"]
    for index, cell in enumerate(cells):
        if graded(cell).get("grade") and index and graded(cells[index - 1]).get("solution"):
            continue  # a check speaks for itself
        if cell["cell_type"] == "code" and (index == 0 or cells[index - 1]["cell_type"] == "code"):
            yield f"cell {index}: no prose directly before the code {text(cell)[:40]!r}"


def rule_verdicts(notebook: Notebook) -> Iterator[str]:
    shown = sum(bool(re.search(r"\bPASS\b", output_text(c))) for c in code_cells(notebook))
    if shown < MIN_VERDICTS:
        yield f"{shown} cells whose output shows a PASS, expected {MIN_VERDICTS} or more"


def rule_solutions(notebook: Notebook) -> Iterator[str]:
    """Solutions and hidden tests are where nbgrader takes them out of the student's edition."""
    for index, cell in enumerate(notebook["cells"]):
        lines = [line.strip() for line in text(cell).splitlines()]
        for begin, end, kind in ((_BEGIN, _END, "solution"), (_HIDDEN, _HIDDEN_END, "grade")):
            marks = [line for line in lines if line in (begin, end)]
            if marks != [begin, end] * (len(marks) // 2):
                yield f"cell {index}: '{begin}' and '{end}' do not alternate"
            if marks and not graded(cell).get(kind):
                yield f"cell {index}: '{begin}' in a cell whose nbgrader metadata has no {kind}"


def rule_graded(notebook: Notebook) -> Iterator[str]:
    """Three to five exercises: a cell for the answer, right behind it a locked one that checks."""
    cells = notebook["cells"]
    ids = [graded(cell).get("grade_id") for cell in cells if graded(cell)]
    if len(set(ids)) != len(ids):
        yield f"grade_ids that are not unique: {ids}"
    checks = [index for index, cell in enumerate(cells) if graded(cell).get("grade")]
    if len(checks) not in EXERCISES:
        yield f"{len(checks)} graded exercises, expected {EXERCISES.start} to {EXERCISES.stop - 1}"
    for index in checks:
        own = graded(cells[index])
        if not own.get("locked") or own.get("solution") or not own.get("points"):
            yield f"cell {index}: expected a check that is locked, no solution, and has points"
        if not graded(cells[index - 1]).get("solution"):
            yield f"cell {index}: no cell for the answer directly before the check"
        visible, mark, _ = text(cells[index]).partition(_HIDDEN)
        if not mark or not visible.strip():
            yield f"cell {index}: expected visible tests, and hidden ones after '{_HIDDEN}'"
        if any(output["output_type"] == "execute_result" for output in cells[index]["outputs"]):
            yield f"cell {index}: nbgrader reads a check's last value as its points; print it"
        if any(output.get("name") == "stderr" for output in cells[index]["outputs"]):
            yield f"cell {index}: a check that writes to stderr has no points in nbgrader"


def rule_picture(notebook: Notebook) -> Iterator[str]:
    """A drawing of the hardware: one of the figures, or an overlay's block diagram."""
    parts = "".join(map(text, notebook["cells"]))
    missing = [
        n for n in re.findall(r"\]\(figures/([\w.]+)\)", parts) if not (FIGURES / n).exists()
    ]
    if missing:
        yield f"no such file in notebooks/figures: {', '.join(missing)}"
    if not re.search(r"\]\(figures/|\.draw\(\)|block_design\(", parts):
        yield "no drawing: a picture of notebooks/figures, or `overlay.draw()`"


def rule_prediction(notebook: Notebook) -> Iterator[str]:
    """A number is predicted in a cell, and compared in a later one."""
    sources = [text(cell) for cell in code_cells(notebook)]
    asked = [i for i, source in enumerate(sources) if re.search(r"= predict\(", source)]
    if not asked or not any(".compare(" in source for source in sources[asked[0] + 1 :]):
        yield "no `predict(...)` that a later cell compares with what came"


def rule_reading(notebook: Notebook) -> Iterator[str]:
    cells = notebook["cells"]
    if not cells or "**Further reading.**" not in text(cells[-1]):
        yield "the last cell has no paragraph that begins with '**Further reading.**'"
    if not any("> **What a real board would show.**" in text(cell) for cell in cells):
        yield "no box that begins with '> **What a real board would show.**'"


def rule_outputs(notebook: Notebook) -> Iterator[str]:
    cells = [cell for cell in code_cells(notebook) if text(cell).strip()]
    counts = [cell.get("execution_count") for cell in cells]
    if counts != list(range(1, len(cells) + 1)):
        yield f"execution counts {counts}: run all cells in a fresh kernel and commit the outputs"
    if not any(cell.get("outputs") for cell in cells):
        yield "no output is committed"
    for index, cell in enumerate(cells):
        if any(output["output_type"] == "error" for output in cell.get("outputs", [])):
            yield f"code cell {index}: an error is committed; show errors through a helper"
        if "UsageError:" in output_text(cell):
            yield f"code cell {index}: an unknown magic is committed"
        if any(WIDGET in output.get("data", {}) for output in cell.get("outputs", [])):
            yield f"code cell {index}: dead controls; execute it with jupyter nbconvert --execute"


def rule_paths(notebook: Notebook) -> Iterator[str]:
    for index, cell in enumerate(notebook["cells"]):
        for where, content in (("source", text(cell)), ("output", output_text(cell))):
            match = _ABSOLUTE_PATH.search(content)
            if match:
                yield f"cell {index}: the {where} has the absolute path {match.group(0)!r}"
    for index, cell in enumerate(code_cells(notebook)):
        if match := _RELATIVE_PATH.search(text(cell)):
            yield f"code cell {index}: {match.group(0)!r} depends on the working directory; " + (
                "expected a path from pynq_torch.paths or a temporary folder"
            )


def rule_tags(notebook: Notebook) -> Iterator[str]:
    for index, cell in enumerate(notebook["cells"]):
        for tag in sorted(tags(cell) & FORBIDDEN_TAGS):
            yield f"cell {index}: tag '{tag}' (papermill stops there); use a helper that shows it"


def rule_cell_ids(notebook: Notebook) -> Iterator[str]:
    ids = [cell.get("id") for cell in notebook["cells"]]
    if None in ids or len(set(ids)) != len(ids):
        yield "cells without an id of their own: save the file as nbformat 4.5"


def rule_glossary(notebook: Notebook) -> Iterator[str]:
    """The first use of an abbreviation that the glossary has links to it."""
    texts = [text(cell) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    for term in TERMS:
        link = f"](glossary.md#{term.lower()})"
        word = re.compile(rf"(?<![\w_/.-]){term}s?(?![\w_-])")
        used = any(word.search(_NO_PROSE.sub("", part)) for part in texts)
        if used and not any(link in part for part in texts):
            yield f"write [{term}{link} where the lesson uses {term} for the first time"


Rule = Callable[[Notebook], Iterator[str]]
RULES: dict[str, Rule] = {
    name.removeprefix("rule_"): rule
    for name, rule in list(globals().items())
    if name.startswith("rule_")
}
