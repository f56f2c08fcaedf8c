"""Two reports side by side: what became better, what became worse, what is not there any more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pynq_torch.tables import Table

from .records import ReportError
from .rows import DURATION, Row

__all__ = ["TOLERANCE", "Difference", "compare", "judge", "table"]

#: The share by which a number may be worse, where nothing else is asked for.
TOLERANCE = 0.1
#: Verdicts that make a comparison fail.
FAILURES = ("REGRESSION", "GONE", "FAILS NOW", "KINDS DIFFER")
#: Verdicts on numbers that were not compared with another one.
NOT_JUDGED = ("new", "not judged", "other place")
#: Verdicts as the overview shows them.
WORDS = {
    "REGRESSION": "worse", "GONE": "gone", "KINDS DIFFER": "another kind", "ok": "as before",
    "other place": "measured elsewhere",
}  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """One number in two reports.

    Attributes
    ----------
    before, after : Row or None
        ``None`` where a report does not have it.
    verdict : str
        ``ok``, ``better``, ``new``, ``not judged``, ``other place``, or one of `FAILURES`.
    """

    before: Row | None
    after: Row | None
    verdict: str

    @property
    def row(self) -> Row:
        """Whichever there is, to say what it is about."""
        found = self.before or self.after
        assert found is not None
        return found

    @property
    def failed(self) -> bool:
        """Whether a comparison fails because of this number."""
        return self.verdict in FAILURES

    @property
    def word(self) -> str:
        """The verdict as the overview shows it."""
        return WORDS.get(self.verdict, self.verdict)

    @property
    def ratio(self) -> float | None:
        """After by before, where both are of one kind and place."""
        if self.before is None or self.after is None or not self.before.value:
            return None
        comparable = self.verdict not in ("KINDS DIFFER", "other place")
        return self.after.value / self.before.value if comparable else None


def compare(
    before: Sequence[Row], after: Sequence[Row], tolerance: float, *, durations: bool = False
) -> list[Difference]:
    """Compare two runs number by number.

    Parameters
    ----------
    before, after : sequence of Row
        A run each.
    tolerance : float
        Share by which a number may be worse, 0.1 for a tenth.
    durations : bool
        Judge how long notebooks took too; they depend on what else the machine did.

    Returns
    -------
    list of Difference
        In the order of `before`, then what is new.

    Raises
    ------
    ReportError
        There is no notebook that both ran with the same parameters.
    """
    if tolerance < 0:
        raise ReportError(f"--tolerance {tolerance:g}: expected a number of at least 0")
    if not {row.job for row in before} & {row.job for row in after}:
        raise ReportError(
            "the two reports have no notebook with the same parameters in common; "
            "there is nothing to compare"
        )
    new, old = ({row.key: row for row in rows} for rows in (after, before))
    boards = {row.job: row.board for row in after}
    found = []
    for row in before:
        verdict = judge(row, new.get(row.key), tolerance, durations)
        if verdict == "GONE" and boards.get(row.job, row.board) != row.board:
            verdict = "other place"  # e.g. cycles, which board rtl counts and csim does not
        found.append(Difference(row, new.get(row.key), verdict))
    return found + [Difference(None, row, "new") for row in after if row.key not in old]


def judge(before: Row, after: Row | None, tolerance: float, durations: bool) -> str:
    """Return the verdict on one number; see `compare` for the parameters."""
    if after is None:
        return "GONE"
    if before.name == DURATION and before.passed and not after.passed:
        return "FAILS NOW"
    if (before.kind, before.unit, before.better) != (after.kind, after.unit, after.better):
        return "KINDS DIFFER"
    if before.where != after.where:
        return "other place"
    if before.name == DURATION and not durations:
        return "not judged"
    worse = after.value - before.value if before.better == "lower" else before.value - after.value
    # A hair's breadth for what adding up floats costs, so that a tolerance of 0 can be met.
    allowed = tolerance * abs(before.value) + 1e-12 * abs(before.value)
    return "REGRESSION" if worse > allowed else "better" if -worse > allowed else "ok"


def table(found: Sequence[Difference]) -> Table:
    """Return differences as a table."""
    rows = []
    for item in found:
        values = [f"{row.text} ({row.kind})" if row else "-" for row in (item.before, item.after)]
        ratio = f"{item.ratio:.3f}" if item.ratio is not None else "-"
        job = f"{item.row.notebook} {item.row.parameters_text}".strip()
        rows.append([job, item.row.name, *values, ratio, item.verdict])
    return Table(["notebook", "number", "before", "after", "ratio", "verdict"], rows)


def nothing_judged(found: Sequence[Difference]) -> str:
    """Return a sentence where no number was compared with another one; else an empty text."""
    verdicts = {item.verdict for item in found}
    if not verdicts <= set(NOT_JUDGED):
        return ""
    why = "ran in different places"
    if "not judged" in verdicts:
        why = "record no number that both reports have from one place"
        why += " (--durations judges wall clock)"
    return f"nothing was judged: the notebooks {why}; what passed before still passes"


def counts(found: Sequence[Difference], *, words: bool = False) -> str:
    """Return how many numbers have which verdict, by its name or by its plain word."""
    number = sorted(Counter(item.verdict for item in found).items())  # failures come first
    return ", ".join(f"{n} {WORDS.get(name, name) if words else name}" for name, n in number)
