"""Times of operators as a table for people, for LaTeX and for machines."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict
from typing import Any, NamedTuple

from pynq_torch.tables import count_text
from pynq_torch.timing import seconds_text

from .tally import Row, Unit, folded

__all__ = ["Found", "latex", "raw", "text", "unimplemented"]

_WIDTH = 100
_NAME = 34


class Found(NamedTuple):
    """What a profile found."""

    rows: list[Row]  # one an operator
    units: dict[str, Unit]  # compute unit -> all that it did for operators
    roi_s: float  # seconds in regions of interest
    rois: int
    cpu: tuple[str, ...]  # whose wall clock times of the host and of transfers are
    share: float  # operators with a smaller part of the time are folded

    @property
    def total(self) -> Row:
        """The sum of all rows."""
        whole = Row("all operators")
        for row in self.rows:
            whole.merge(row)
        return whole

    @property
    def pl_kind(self) -> str:
        """Where times of the PL come from; several sources are named together."""
        return " + ".join(dict.fromkeys(u.kind for u in self.units.values())) or "-"

    @property
    def provenance(self) -> str:
        """The sentence below a table."""
        cpu = " and ".join(self.cpu) or "nothing yet"
        places = dict.fromkeys(f"{u.kind} ({u.where})" for u in self.units.values())
        pl = f"{' + '.join(places)}, as the program sees it" if places else "not used"
        return f"total, host, transfer: measured ({cpu}); PL: {pl}."


def text(found: Found) -> str:
    """Return the table that a person reads, at most 100 columns wide."""
    whole = found.total
    lines = [
        f"{count_text(found.rois, 'ROI')}, {seconds_text(found.roi_s)}; in operators of device "
        f"'pynq' {seconds_text(whole.seconds)} of it, {count_text(whole.calls, 'call')}",
        _line("operator", "calls", "on PL", "total", "host", "transfer", "PL", "share"),
        _line("", "", "", "measured", "measured", "measured", found.pl_kind[:10], ""),
        "-" * _WIDTH,
    ]
    for row in [*folded(found.rows, found.share), whole]:
        if row is whole:
            lines.append("-" * _WIDTH)
        share = row.seconds / whole.seconds if whole.seconds else 0.0
        times = (row.seconds, row.host_s, row.transfer_s, row.pl_s)
        cells = (seconds_text(seconds) if seconds else "-" for seconds in times)
        lines.append(_line(row.name, row.calls, row.on_pl, *cells, f"{share:.1%}"))
    lines += textwrap.wrap(found.provenance, _WIDTH)
    if whole.errors:
        lines.append(f"{count_text(whole.errors, 'call')} ended in an error.")
    for cu, unit in found.units.items():
        lines.append(
            f"{cu} (kernel {unit.kernel}): {count_text(unit.starts, 'start')}, busy for "
            f"{seconds_text(unit.seconds)} {unit.kind} ({unit.where})"
        )
        if unit.cycles is not None:
            some = f"{unit.counted} of " if unit.counted < unit.starts else ""
            runs = f"{some}{count_text(unit.starts, 'start')}"
            lines.append(f"  cycles: {unit.cycles:,} of the PL's clock in {runs}, counted in RTL")
    return "\n".join(lines)


def _line(name: str, *cells: Any) -> str:
    widths = (6, 6, 10, 10, 10, 10, 7)
    aligned = (f" {cell!s:>{w}}" for cell, w in zip(cells, widths, strict=True))
    return f"{_short(name):<{_NAME}}{''.join(aligned)}".rstrip()


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME - 12]}..{name[-10:]}"


def latex(found: Found) -> str:
    """Return a ``tabular`` that needs no package; times in ms."""
    whole = found.total
    kinds = ("measured", "measured", "measured", found.pl_kind)
    rows = [
        r"\begin{tabular}{lrrrrrr}",
        r"\hline",
        r"operator & calls & on PL & total & host & transfer & PL \\",
        " &  &  & " + " & ".join(f"{_escape(kind)}, ms" for kind in kinds) + r" \\",
        r"\hline",
    ]
    for row in [*folded(found.rows, found.share), whole]:
        if row is whole:
            rows.append(r"\hline")
        times = (row.seconds, row.host_s, row.transfer_s, row.pl_s)
        cells = [_escape(row.name), str(row.calls), str(row.on_pl)]
        rows.append(" & ".join([*cells, *(f"{1e3 * s:.3f}" for s in times)]) + r" \\")
    rows += [r"\hline", r"\end{tabular}", f"% {found.provenance}"]
    return "\n".join(rows)


def _escape(name: str) -> str:
    for sign in r"_%&#$":
        name = name.replace(sign, f"\\{sign}")
    return name


def raw(found: Found) -> str:
    """Return JSON.

    Notes
    -----
    ``rois``, ``roi_s``; ``kinds``: for each column of times, where it comes from; ``operators``: by
    time, each with ``name calls on_pl errors total_s host_s transfer_s pl_s``, ``why`` (reason ->
    ``calls``, ``seconds``) and ``units`` (compute unit -> ``kernel starts seconds kind where``, and
    ``cycles``, counted in RTL in ``counted`` of the starts; ``null`` where none were).
    """
    cpu = [{"kind": "measured", "where": where} for where in found.cpu]
    places = dict.fromkeys((u.kind, u.where) for u in found.units.values())
    pl = [{"kind": kind, "where": where} for kind, where in places]
    data = {
        "rois": found.rois,
        "roi_s": found.roi_s,
        "kinds": {"total_s": cpu, "host_s": cpu, "transfer_s": cpu, "pl_s": pl},
        "operators": [
            {"total_s" if name == "seconds" else name: value for name, value in asdict(row).items()}
            for row in folded(found.rows, found.share)
        ],
    }
    return json.dumps(data, indent=1)


def unimplemented(found: Found) -> str:
    """Return what the CPU did: operator, calls, time, and why no kernel did it."""
    entries = [(row.name, reason, why) for row in found.rows for reason, why in row.why.items()]
    entries.sort(key=lambda entry: (-entry[2].seconds, entry[0]))
    if not entries:
        return "Unimpl: every operator that computes ran on the PL"
    lines = [f"{'on the CPU':<{_NAME}} {'calls':>6} {'measured':>10}  why", "-" * _WIDTH]
    for name, reason, why in entries:
        head = f"{_short(name):<{_NAME}} {why.calls:>6} {seconds_text(why.seconds):>10}  "
        indent = " " * len(head)
        lines += textwrap.wrap(reason, _WIDTH, initial_indent=head, subsequent_indent=indent)
    return "\n".join(lines)
