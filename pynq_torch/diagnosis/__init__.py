"""Why a transfer or a kernel does not end: decoded registers in, a cause and a remedy out.

Pure functions of a snapshot, so that they can be tested without a board. What is known is in
one table, :data:`pynq_torch.diagnosis.causes.CAUSES`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .causes import CAUSES, Cause
from .facts import ERROR_MASK, ChannelState, Facts, KernelState, control_bits, status_bits

__all__ = [
    "CAUSES",
    "ERROR_MASK",
    "Cause",
    "ChannelState",
    "Diagnosis",
    "Facts",
    "KernelState",
    "control_bits",
    "diagnose",
    "status_bits",
]


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong, as text (``str``) and as values.

    Parameters
    ----------
    facts : Facts
        What was seen.
    causes : tuple of Cause
        Those whose symptom is met, the likeliest first.
    """

    facts: Facts
    causes: tuple[Cause, ...] = field(default=())

    @property
    def cause(self) -> str:
        """The name of the likeliest cause, e.g. ``"missing TLAST"``."""
        return self.causes[0].name

    @property
    def remedy(self) -> str:
        """What to try first."""
        return self.causes[0].remedy(self.facts)

    def explain(self, headline: str) -> str:
        """Return the whole text under the sentence `headline`."""
        facts = self.facts
        lines = [headline]
        lines += [f"  {channel}" for channel in facts.channels]
        lines += [f"  {kernel}" for kernel in facts.kernels]
        if facts.tlast is not None:
            lines.append(f"  TLAST: {'seen' if facts.tlast else 'not seen'}")
        lines += [f"  {note}" for note in facts.notes]
        first, *others = self.causes
        how = "cause" if first.certain else "likely cause"
        lines.append(f"  {how}: {first.name}. {first.sentence(facts)}")
        lines.append(f"  try: {first.remedy(facts)}")
        if others:
            lines.append("  also possible: " + "; ".join(cause.name for cause in others))
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.explain(f"{self.facts.target} after {self.facts.waited_s:g} s:")


def diagnose(facts: Facts) -> Diagnosis:
    """Find the causes that fit.

    Parameters
    ----------
    facts : Facts
        What was seen when the wait gave up.

    Returns
    -------
    Diagnosis
        With at least one cause.
    """
    found: dict[str, Cause] = {}
    for cause in CAUSES:
        if cause.name not in found and cause.applies(facts):
            found[cause.name] = cause
    if len(found) > 1:
        found.pop("unknown", None)
    return Diagnosis(facts, tuple(found.values()))
