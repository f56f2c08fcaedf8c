"""Dividing the rows or columns of a result among compute units."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

__all__ = ["share"]


def share(total: int, speeds: Sequence[float]) -> list[int]:
    """Return the bounds that divide ``range(total)`` in proportion to `speeds`.

    Examples
    --------
    >>> share(10, [3.0, 1.0])
    [0, 8, 10]
    """
    whole = sum(speeds)
    bounds = [0]
    for part in itertools.accumulate(speeds):
        bounds.append(min(total, max(bounds[-1], round(total * part / whole))))
    bounds[-1] = total
    return bounds
