"""What the record adds up to, operator by operator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pynq_torch.events import KernelCall, OperatorCall
from pynq_torch.tables import count_text

__all__ = ["MAX_REASONS", "OTHER_REASONS", "Row", "Unit", "Why", "folded"]

#: Reasons may name sizes: so many are kept apart for one operator, to bound what is stored.
MAX_REASONS = 32
OTHER_REASONS = "other reasons"


@dataclass
class Why:
    """Calls that one reason kept from the PL, and their seconds."""

    calls: int = 0
    seconds: float = 0.0


@dataclass
class Unit:
    """What a compute unit did for an operator."""

    #: The kernel it is an instance of, and where `seconds` comes from as in `events.KernelCall`.
    kernel: str
    kind: str
    where: str
    starts: int = 0
    #: Running; units that run at the same time count each for itself.
    seconds: float = 0.0
    #: Of the PL's clock, the sum over the runs whose cycles the board counted; ``None`` where it
    #: counted none. No part of `seconds`, which may be a simulator's.
    cycles: int | None = None
    #: How many runs these are.
    counted: int = 0

    def add(self, starts: int, seconds: float, cycles: int | None, runs: int) -> None:
        """Add runs, and the cycles of those of them that were counted."""
        self.starts += starts
        self.seconds += seconds
        if cycles is not None:
            self.cycles = (self.cycles or 0) + cycles
            self.counted += runs


@dataclass
class Row:
    """Sums over the calls of one operator, each a `pynq_torch.events.OperatorCall`."""

    name: str
    calls: int = 0
    on_pl: int = 0
    errors: int = 0
    seconds: float = 0.0
    host_s: float = 0.0
    transfer_s: float = 0.0
    pl_s: float = 0.0
    why: dict[str, Why] = field(default_factory=dict)
    units: dict[str, Unit] = field(default_factory=dict)

    def add(self, call: OperatorCall) -> None:
        """Count a call."""
        self.calls += 1
        self.on_pl += call.where == "PL"
        self.errors += bool(call.error)
        self.seconds += call.seconds
        self.host_s += call.host_s
        self.transfer_s += call.transfer_s
        self.pl_s += call.pl_s
        if call.reason:
            known = call.reason in self.why or len(self.why) < MAX_REASONS
            why = self.why.setdefault(call.reason if known else OTHER_REASONS, Why())
            why.calls += 1
            why.seconds += call.seconds
        for run in call.kernels:
            self._unit(run.cu, run).add(1, run.seconds or 0.0, run.cycles, 1)

    def merge(self, other: Row) -> None:
        """Add the sums of another row; reasons stay with it."""
        for name in ("calls", "on_pl", "errors", "seconds", "host_s", "transfer_s", "pl_s"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for cu, unit in other.units.items():
            self._unit(cu, unit).add(unit.starts, unit.seconds, unit.cycles, unit.counted)

    def _unit(self, cu: str, like: KernelCall | Unit) -> Unit:
        if cu not in self.units:
            self.units[cu] = Unit(like.kernel, like.kind, like.where)
        return self.units[cu]


def folded(rows: Iterable[Row], share: float) -> list[Row]:
    """Return rows by time, the longest first, with small ones as one row at the end.

    Operators with less than the part `share` of the whole time become ``others (n operators)``.
    """
    ordered = sorted(rows, key=lambda row: (-row.seconds, row.name))
    least = share * sum(row.seconds for row in ordered)
    kept = [row for row in ordered if row.seconds >= least]
    small = ordered[len(kept) :]
    if not small:
        return kept
    others = Row(f"others ({count_text(len(small), 'operator')})")
    for row in small:
        others.merge(row)
    return [*kept, others]
