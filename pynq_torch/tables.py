"""Tables that a person reads: HTML in a notebook, text in a terminal, CSV in a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from html import escape
from typing import Any

__all__ = ["Table", "count_text", "size_text"]


def count_text(number: int, what: str) -> str:
    """Return a number of things as text: ``"1 beat"``, ``"2 beats"``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def size_text(shape: Sequence[int]) -> str:
    """Return a shape as text, e.g. ``"2x3"``."""
    return "x".join(map(str, shape)) or "scalar"


class Table:
    """Rows and columns that show as HTML in a notebook and as text elsewhere.

    Parameters
    ----------
    header : sequence of str
        Column names.
    rows : sequence of sequences
        Shown with ``str``.
    """

    def __init__(self, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self.header = list(header)
        self.rows = [[str(cell) for cell in row] for row in rows]
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"a row has {len(row)} cells; expected {len(self.header)}: {row}")

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows, strict=True)]
        lines = [self.header, ["-" * w for w in widths], *self.rows]
        return "\n".join(
            "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )

    __repr__ = __str__

    def csv(self) -> str:
        """Return the table as comma-separated values, a line for the header and each row."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.header)
        writer.writerows(self.rows)
        return text.getvalue()

    def _repr_html_(self) -> str:
        def row(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(c)}</{tag}>" for c in cells) + "</tr>"

        body = "".join(row(r, "td") for r in self.rows)
        return f"<table><thead>{row(self.header, 'th')}</thead><tbody>{body}</tbody></table>"
