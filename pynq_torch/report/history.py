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

from .compare import TOLERANCE, Difference, compare, counts, judge
from .page import replace_file, write_overview, write_run
from .records import Record, ReportError
from .result import Result
from .rows import DURATION, Row, csv_rows, csv_text

__all__ = [
    "History",
    "Summary",
    "commit_of",
    "new_folder",
    "read_rows",
    "read_summary",
    "write_all",
]

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
        Versions of the packages that matter.
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
        return [row for result in self.notebooks for row in self.rows_of(result)]

    def rows_of(self, result: Result) -> list[Row]:
        """Return the numbers of one notebook, its duration first."""
        seconds = round(result.seconds, 3)
        place = f"notebook on {self.board}"
        duration = Record(DURATION, seconds, "s", "measured", "lower", place)
        notebook, parameters = result.job
        return [
            Row(
                **dataclasses.asdict(record),
                run=self.id, started=self.started, board=self.board, commit=self.commit,
                notebook=notebook, parameters=parameters, passed=result.passed,
            )
            for record in (duration, *result.records)
        ]  # fmt: skip

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
            f"'{path}' is no report of this version ({type(error).__name__}: {error}); "
            "expected the index.json that `python -m pynq_torch report` writes"
        ) from error


def read_rows(name: str, reports: Path) -> list[Row]:
    """Return the numbers of one run.

    Parameters
    ----------
    name : str
        A run's folder, its ``index.json`` or a CSV file of one run; a folder of reports, for its
        newest run; or the id of a run in `reports`.
    reports : Path
        The folder of reports.

    Raises
    ------
    ReportError
        There is nothing of that name, or it is no report.
    """
    path = Path(name)
    if not path.exists() and (reports / RUNS / name).is_dir():
        path = reports / RUNS / name
    if not path.exists():
        raise ReportError(
            f"report '{name}' does not exist; "
            f"expected a folder, a JSON or CSV file, or a run in '{reports / RUNS}'"
        )
    if path.is_dir() and (path / "index.json").is_file():
        path = path / "index.json"
    if path.is_dir():
        history = History.read(path)
        if not history.runs:
            why = history.problems[0] if history.problems else "no index.json, and no runs with one"
            raise ReportError(f"folder '{name}' has no report: {why}")
        return history.runs[0].rows()
    if path.suffix != ".csv":
        return read_summary(path).rows()
    try:
        rows = csv_rows(path.read_text(encoding="utf-8"), name)
    except (OSError, ValueError) as error:
        raise ReportError(f"report '{name}' cannot be read: {error}") from error
    newest = max(rows, key=lambda row: (row.started, row.run), default=None)
    return [row for row in rows if newest is not None and row.run == newest.run]


def commit_of(folder: Path) -> str:
    """Return the short commit of a work tree, ``-dirty`` with changes; ``unknown`` without git."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=10"]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}  # somebody may be committing
    try:
        found = subprocess.check_output(
            [*command, "--exclude=*"],
            env=environment, stderr=subprocess.DEVNULL, text=True, timeout=60,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found.strip()


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
                break  # there is a file where the folder should be
        except OSError as error:
            raise ReportError(f"--output '{output}' cannot be made: {error.strerror}") from error
    raise ReportError(f"--output '{output}': a file or 999 runs have the name '{word}' already")


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
class Line:
    """One notebook on the overview.

    Attributes
    ----------
    result : Result
        How it went.
    before : Result or None
        How it went the time before, on the same board with the same parameters.
    differences : list of Difference
        The numbers that it recorded: what is worse first, what is as before last.
    """

    result: Result
    before: Result | None
    differences: list[Difference]

    @property
    def changed(self) -> int:
        """How many numbers are not as before; 0 where there is no run before."""
        return sum(item.verdict != "ok" for item in self.differences) if self.before else 0


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

    @property
    def newest(self) -> list[Summary]:
        """The newest run of each board, newest first."""
        first: dict[str, Summary] = {}
        for run in self.runs:
            first.setdefault(run.board, run)
        return list(first.values())

    def lines(self, run: Summary) -> list[Line]:
        """Return the notebooks of a run, each beside the run before of the same on that board."""
        older = [old for old in self.runs[self.runs.index(run) + 1 :] if old.board == run.board]
        lines = []
        for result in run.notebooks:
            found = ((old, n) for old in older for n in old.notebooks if n.job == result.job)
            rows, (old, before) = run.rows_of(result), next(found, (None, None))
            differences = [Difference(None, row, "new") for row in rows]
            if old is not None and before is not None:
                differences = compare(old.rows_of(before), rows, TOLERANCE)
            differences = [item for item in differences if item.row.name != DURATION]
            differences.sort(key=lambda item: (not item.failed, item.verdict == "ok"))
            lines.append(Line(result, before, differences))
        return lines

    @staticmethod
    def changes(lines: Sequence[Line]) -> str:
        """Return how many numbers changed since the run before, as a sentence."""
        if not any(line.before for line in lines):
            return "There is no earlier run to compare with."
        found = [item for line in lines if line.before for item in line.differences]
        numbers = counts(found, words=True) or "no number to compare"
        return f"Since the run before, with a tolerance of {TOLERANCE:.0%}: {numbers}."

    def table(self) -> list[tuple[Row, list[tuple[Row | None, Difference | None]]]]:
        """Return a line for each number: what it is; for each column its row and change.

        The change is to the run before on the same board, where the two can be compared.
        """
        columns = self.columns
        found: dict[Any, dict[str, Row]] = {}
        for run in columns:
            for row in run.rows():
                found.setdefault((row.key, row.unit, row.kind, row.where), {})[row.run] = row
        lines = []
        for by_run in found.values():
            cells: list[tuple[Row | None, Difference | None]] = []
            before: Row | None = None
            for run in columns:
                here, change = by_run.get(run.id), None
                if before is not None and here is not None and before.board == here.board:
                    verdict = judge(before, here, TOLERANCE, durations=True)
                    change = Difference(before, here, verdict)
                cells.append((here, change))
                before = here or before
            lines.append((next(iter(by_run.values())), cells))
        return sorted(lines, key=lambda line: _order(line[0]))


def _order(row: Row) -> list[tuple[int, str]]:
    """Return what sorts notebooks with their numbers by size: 32 before 128."""
    parts = re.findall(r"\d+|\D+", f"{row.notebook} {row.parameters_text}")
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]
