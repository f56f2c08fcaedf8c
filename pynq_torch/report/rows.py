"""A report's numbers as rows of a table, and as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from .records import Record, ReportError

if TYPE_CHECKING:
    from .result import Result

__all__ = ["DURATION", "Row", "csv_rows", "csv_text"]

#: The number that every notebook has, without recording it.
DURATION = "duration of the notebook"


@dataclass(frozen=True)
class Row:
    """One number of one notebook in one run; a line of the CSV file.

    Attributes
    ----------
    run, started, board, commit : str
        See `pynq_torch.report.history.Summary`.
    notebook : str
        Its file name without the suffix.
    parameters : str
        JSON, without the board: what else the notebook ran with.
    passed : bool
        Whether the notebook ended without an error.
    name, value, unit, kind, better, where
        See `pynq_torch.report.Record`.
    """

    run: str
    started: str
    board: str
    commit: str
    notebook: str
    parameters: str
    passed: bool
    name: str
    value: float
    unit: str
    kind: str
    better: str
    where: str

    @classmethod
    def of(
        cls, run: str, started: str, board: str, commit: str, result: Result, record: Record | None
    ) -> Row:
        """Return the row of a record; without one that of the notebook's duration."""
        if record is None:
            seconds = round(result.seconds, 3)
            record = Record(DURATION, seconds, "s", "measured", "lower", f"notebook on {board}")
        given = {name: v for name, v in sorted(result.parameters.items()) if name != "BOARD"}
        return cls(
            run, started, board, commit, result.notebook_name, json.dumps(given), result.passed,
            record.name, record.value, record.unit, record.kind, record.better, record.where,
        )  # fmt: skip

    @property
    def job(self) -> tuple[str, str]:
        """The notebook and its parameters: what runs are compared by."""
        return self.notebook, self.parameters

    @property
    def key(self) -> tuple[str, str, str]:
        """The number in that notebook."""
        return (*self.job, self.name)

    @property
    def parameters_text(self) -> str:
        """The parameters for people: ``SIZE=64 SEED=5``."""
        given: Mapping[str, Any] = json.loads(self.parameters)
        return " ".join(f"{name}={value}" for name, value in given.items())

    @property
    def text(self) -> str:
        """The value with its unit."""
        return f"{self.value:.4g} {self.unit}".rstrip()


def csv_text(rows: Iterable[Row]) -> str:
    """Return rows as CSV (RFC 4180) with a header."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, [field.name for field in fields(Row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return stream.getvalue()


def csv_rows(text: str, source: str) -> list[Row]:
    """Read rows from CSV.

    Parameters
    ----------
    text : str
        What `csv_text` returned.
    source : str
        The file, for messages.

    Raises
    ------
    ReportError
        A column is missing, or a value is no number.
    """
    reader = csv.DictReader(io.StringIO(text))
    expected = [field.name for field in fields(Row)]
    missing = [name for name in expected if name not in (reader.fieldnames or ())]
    if missing:
        raise ReportError(f"'{source}' has no column {', '.join(missing)}; expected a report's CSV")
    rows = []
    for line, item in enumerate(reader, start=2):
        values: dict[str, Any] = {name: item[name] for name in expected}
        try:
            values["value"] = float(values["value"])
            values["passed"] = {"True": True, "False": False}[values["passed"]]
            json.loads(values["parameters"])
        except (ValueError, KeyError, TypeError) as error:
            raise ReportError(
                f"'{source}', line {line}: {error} is not what is expected"
            ) from error
        rows.append(Row(**values))
    return rows
