"""A report's numbers as rows of a table, and as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from .records import Record, ReportError

__all__ = ["DURATION", "Row", "csv_rows", "csv_text", "settings"]

#: The number that every notebook has, without recording it.
DURATION = "duration of the notebook"


@dataclass(frozen=True, kw_only=True)
class Row(Record):
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
    """

    run: str
    started: str
    board: str
    commit: str
    notebook: str
    parameters: str
    passed: bool

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
        return settings(json.loads(self.parameters))


#: The columns of the CSV file: first whose number it is, then the number.
_COLUMNS = sorted((f.name for f in fields(Row)), key=[f.name for f in fields(Record)].__contains__)


def settings(values: Mapping[str, Any]) -> str:
    """Return values with their names: ``SIZE=64 SEED=5``."""
    return " ".join(f"{name}={value}" for name, value in values.items())


def csv_text(rows: Iterable[Row]) -> str:
    """Return rows as CSV (RFC 4180) with a header."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, _COLUMNS, lineterminator="\n")
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
    missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise ReportError(f"'{source}' has no column {', '.join(missing)}; expected a report's CSV")
    rows = []
    for line, item in enumerate(reader, start=2):
        values: dict[str, Any] = {name: item[name] for name in _COLUMNS}
        try:
            values["value"] = float(values["value"])
            values["passed"] = {"True": True, "False": False}[values["passed"]]
            json.loads(values["parameters"])
        except (ValueError, KeyError, TypeError) as error:
            raise ReportError(f"'{source}', line {line}: {error} is not valid there") from error
        rows.append(Row(**values))
    return rows
