"""Runs on disk: ``runs/<id>/`` each with its ``index.json``, and what compares them."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from .page import replace_file, write_overview, write_run
from .records import Record, ReportError
from .result import Result
from .rows import Row, csv_text

__all__ = ["History", "Summary", "commit_of", "new_folder", "read_summary", "write_all"]

RUNS = "runs"
#: Runs side by side on the overview; the CSV file has all.
MOST_COLUMNS = 8
PACKAGES = ("pynq_torch", "pynq", "torch", "numpy", "ipykernel", "papermill")


@dataclass
class Summary:
    """One run of a report: what ran, where, and how it went.

    Attributes
    ----------
    id : str
        The run's folder below ``runs``.
    board, commit, started : str
        Commit of the package with ``-dirty`` where files were changed; UTC in ISO 8601.
    elapsed_s : float
        Wall clock of the whole run, notebooks side by side.
    jobs : int
        Notebooks at a time.
    given : dict of str to str
        Parameters as typed.
    versions : dict of str to str
        Of the packages that matter.
    notebooks : list of Result
        In the order of the plan.
    """

    id: str
    board: str
    commit: str
    started: str
    elapsed_s: float
    jobs: int
    given: dict[str, str]
    versions: dict[str, str]
    notebooks: list[Result]

    @property
    def passed(self) -> int:
        """Number of notebooks without an error."""
        return sum(result.passed for result in self.notebooks)

    @property
    def failed(self) -> int:
        """Number of notebooks with an error."""
        return len(self.notebooks) - self.passed

    @property
    def seconds(self) -> float:
        """Durations of all notebooks, added up."""
        return round(sum(result.seconds for result in self.notebooks), 1)

    def rows(self) -> list[Row]:
        """Return every number of the run: the durations of notebooks, and what they recorded."""
        return [
            Row.of(self.id, self.started, self.board, self.commit, result, record)
            for result in self.notebooks
            for record in (None, *result.records)
        ]

    def as_json(self) -> str:
        """Return the content of ``index.json``."""
        counts = {"passed": self.passed, "failed": self.failed, "seconds": self.seconds}
        return json.dumps({**dataclasses.asdict(self), **counts}, indent=1) + "\n"


def read_summary(path: Path) -> Summary:
    """Read the ``index.json`` of a run.

    Raises
    ------
    ReportError
        It cannot be read, or is no summary of this version.
    """
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
        fields = {field.name for field in dataclasses.fields(Summary)}
        values = {name: value for name, value in loaded.items() if name in fields}
        notebooks = []
        for item in values.pop("notebooks"):
            records = [Record(**record) for record in item.pop("records")]
            notebooks.append(Result(**item, records=records))
        return Summary(**values, notebooks=notebooks)
    except OSError as error:
        raise ReportError(f"report '{path}' cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ReportError(
            f"'{path}' is no report of this version ({type(error).__name__}: {error}); expected "
            "the index.json that `python -m pynq_torch report` writes"
        ) from error


def commit_of(folder: Path) -> str:
    """Return the short commit of a work tree, ``-dirty`` with changes; ``unknown`` without git."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=10"]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}  # somebody may be committing
    try:
        done = subprocess.run(
            [*command, "--exclude=*"],
            env=environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def new_folder(output: Path, board: str, commit: str, started: datetime) -> Path:
    """Make the folder of a new run, whose name is its id.

    Raises
    ------
    ReportError
        It cannot be made.
    """
    word = re.sub(r"[^\w.-]+", "_", f"{started:%Y%m%d-%H%M%S}-{board}-{commit}")
    for number in range(1, 1000):
        folder = output / RUNS / (word if number == 1 else f"{word}-{number}")
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            if not folder.is_dir():
                break  # a file lies where a folder should
        except OSError as error:
            raise ReportError(f"--output '{output}' cannot be made: {error.strerror}") from error
    raise ReportError(f"--output '{output}' has no room for a run called '{word}'")


def write_all(summary: Summary, output: Path, *, keep: int | None = None) -> Path:
    """Write the files of a run, and those over all runs; return the overview.

    Parameters
    ----------
    summary : Summary
        The new run.
    output : Path
        The folder with ``runs``.
    keep : int, optional
        Older runs beyond this number are deleted. Default: all are kept.
    """
    folder = output / RUNS / summary.id
    replace_file(folder / "index.csv", csv_text(summary.rows()))
    write_run(folder / "index.html", summary)
    replace_file(folder / "index.json", summary.as_json())
    history = History.read(output)
    for old in history.runs[keep:] if keep is not None else ():
        shutil.rmtree(output / RUNS / old.id)
    history = History(history.runs[:keep], history.problems)
    rows = [row for run in history.runs for row in run.rows()]
    replace_file(output / "index.csv", csv_text(rows))
    page = output / "index.html"
    write_overview(page, history)
    return page


def versions() -> dict[str, str]:
    """Return the versions of the packages that matter."""
    return {name: importlib.metadata.version(name) for name in PACKAGES}


@dataclass(frozen=True)
class History:
    """All runs of a folder.

    Attributes
    ----------
    runs : sequence of Summary
        Newest first.
    problems : sequence of str
        What could not be read, a sentence each.
    """

    runs: Sequence[Summary]
    problems: Sequence[str] = ()

    @classmethod
    def read(cls, output: Path) -> History:
        """Read the runs below a folder; one that is under way has no summary yet."""
        found, problems = [], []
        for path in sorted((output / RUNS).glob("*/index.json")):
            try:
                found.append(read_summary(path))
            except ReportError as error:  # one bad file must not hide all the others
                problems.append(str(error))
        return cls(sorted(found, key=lambda run: (run.started, run.id), reverse=True), problems)

    @property
    def columns(self) -> list[Summary]:
        """The newest runs, board by board, each from the oldest to the newest."""
        newest = list(self.runs[:MOST_COLUMNS])
        return sorted(newest, key=lambda run: (run.board, run.started, run.id))

    def table(self) -> list[tuple[Row, list[tuple[Row | None, float | None]]]]:
        """Return a line for each number: what it is; for each column its row and change.

        The change is the ratio to the run before on the same board, where the two can be compared.
        """
        columns = self.columns
        found: dict[Any, dict[str, Row]] = {}
        for run in columns:
            for row in run.rows():
                found.setdefault((row.key, row.unit, row.kind, row.where), {})[row.run] = row
        lines = []
        for by_run in found.values():
            cells: list[tuple[Row | None, float | None]] = []
            before: Row | None = None
            for run in columns:
                here = by_run.get(run.id)
                cells.append((here, _ratio(before, here)))
                before = here or before
            lines.append((next(iter(by_run.values())), cells))
        return sorted(
            lines, key=lambda line: _order(f"{line[0].notebook} {line[0].parameters_text}")
        )


def _ratio(before: Row | None, after: Row | None) -> float | None:
    if before is None or after is None or before.board != after.board or not before.value:
        return None
    return after.value / before.value


def _order(text: str) -> list[tuple[int, str]]:
    """Return what sorts a text with its numbers by size: 32 before 128."""
    return [
        (int(part), "") if part.isdigit() else (-1, part)
        for part in re.split(r"(\d+)", text)
        if part
    ]
