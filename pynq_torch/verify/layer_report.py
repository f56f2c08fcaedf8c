"""The table of `verify.layers`: one row a tensor, with its error and its verdict."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass

from pynq_torch.errors import VerificationError
from pynq_torch.tables import Table, size_text

from .layer_row import Row

__all__ = ["LayerReport"]

_HEADS = ("layer", "kind", "what", "tensor", "on", "max error", "relative", "SNR dB", "verdict")


@dataclass(frozen=True)
class LayerReport:
    """What `verify.layers` found.

    int8 that quantised layers pass to each other is compared as it is with int8, and in its steps
    with a floating reference. The gradient at a tensor that several layers take is the sum over
    all of them, shown at each. Where the model has an ``Identity`` for another module of the
    reference, which `quantize_` made part of the layer before, that has no gradient at its input.

    Attributes
    ----------
    model : str
        The model's class.
    rows : tuple of Row
        In the order of the run; gradients after that.
    tolerance : float
        What was allowed, see `verify.layers`.
    int8 : bool
        Whether the model computes in int8 and the reference does not; a verdict says so.
    """

    model: str
    rows: tuple[Row, ...]
    tolerance: float
    int8: bool = False

    @property
    def ok(self) -> bool:
        """Whether there is no mismatch."""
        return not self.mismatches

    @property
    def first_mismatch(self) -> Row | None:
        """The first row that is one, in the order of the run; ``None`` where all is well."""
        return next(iter(self.mismatches), None)

    @property
    def mismatches(self) -> tuple[Row, ...]:
        """All of them."""
        return tuple(row for row in self.rows if not row.ok)

    def check(self) -> LayerReport:
        """Print the verdict, and return the report.

        Raises
        ------
        VerificationError
            Naming the first mismatch.
        """
        first = self.first_mismatch
        if first is not None:
            raise VerificationError(
                f"{self.model}: {len(self.mismatches)} of {len(self.rows)} tensors differ; the "
                f"first is {first.sentence}, tolerance {self._allowed}{self._advice(first)}"
            )
        print(self._verdict)
        return self

    @property
    def _allowed(self) -> str:
        return f"{self.tolerance:g} of the largest magnitude" if self.tolerance else "0 (exact)"

    def _advice(self, first: Row) -> str:
        if not self.int8 or not first.wrong:
            return ""
        how = "a greater tolerance=" if self.tolerance else "tolerance=, e.g. tolerance=0.05"
        return f". int8 is expected to differ from this reference: pass {how}"

    @property
    def _verdict(self) -> str:
        first = self.first_mismatch
        if first is not None:
            return f"first mismatch: {first.sentence}{self._advice(first)}"
        worst = max((row.relative for row in self.rows), default=0.0)
        exact = sum(row.exact for row in self.rows)
        return (
            f"{self.model}: {len(self.rows)} tensors, {exact} of them exact, largest relative "
            f"error {worst:.3g}, tolerance {self._allowed}: PASS"
        )

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                row.label,
                row.kind,
                row.stage,
                f"{row.dtype}[{size_text(row.shape)}]" if row.shape or row.size else row.dtype,
                row.where,
                f"{row.max_abs:.3g}" if row.size else "",
                f"{row.relative:.3g}" if row.size else "",
                f"{row.snr_db:.1f}" if row.size and math.isfinite(row.snr_db) else "",
                row.note or ("exact" if row.exact else "ok" if row.ok else f"{row.wrong} wrong"),
            )
            for row in self.rows
        ]

    def table(self) -> str:
        """Return the table as text, with the verdict below."""
        return f"{Table(_HEADS, self._cells())}\n{self._verdict}"

    __str__ = table

    def _repr_html_(self) -> str:
        head = "".join(f"<th style='text-align:left'>{h}</th>" for h in _HEADS)
        body = []
        for row, cells in zip(self.rows, self._cells(), strict=True):
            # A mark beside the colour, for those who do not tell colours apart.
            mark, colour = ("", "inherit") if row.ok else ("&#10007; ", "#D55E00")
            texts = [f"<td style='text-align:left'>{html.escape(cell)}</td>" for cell in cells]
            texts[-1] = texts[-1].replace("'>", f";color:{colour}'>{mark}", 1)
            body.append(f"<tr>{''.join(texts)}</tr>")
        verdict = html.escape(self._verdict)
        return f"<table><tr>{head}</tr>{''.join(body)}</table><p>{verdict}</p>"
