"""What an operation costs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Cost"]


@dataclass(frozen=True)
class Cost:
    """Cycles until the result is there, and the ns that it takes of its first and last cycle."""

    latency: int = 0
    delay: float = 0.0
    #: ns of the first cycle, where the operation takes several.
    entry: float = 0.0
    dsp: int = 0
    core: str = ""
    #: The widths of a product, or of a divider: only of the same ones is one multiplier.
    widths: str = ""
    #: Of a product in logic: whether a DSP block takes it where a sum follows.
    mac: bool = False
