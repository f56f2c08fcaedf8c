"""How long logic takes, by its width: ns in a 7-series part of speed grade -1.

What the schedules of Vivado HLS 2018 to Vitis HLS 2025 say of 35,000 operations, in public
repositories; each width has one number there, and what lies between two of these is their mean.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

__all__ = ["adder", "comparison", "division", "product", "selection", "shifter"]

_Points = Sequence[tuple[int, float]]
_ADDER: _Points = ((2, 1.56), (4, 1.73), (8, 1.91), (12, 1.54), (16, 2.07), (32, 2.55), (64, 3.52),
                   (128, 5.35))  # fmt: skip
_COMPARISON: _Points = ((1, 0.9), (3, 1.13), (4, 1.3), (8, 1.55), (16, 2.42), (32, 2.47),
                        (40, 2.53), (52, 2.89), (64, 2.77), (128, 3.47))  # fmt: skip
_SELECTION: _Points = ((1, 0.99), (4, 1.02), (8, 1.24), (10, 0.69), (12, 0.69), (16, 0.8),
                       (20, 0.7), (24, 0.69), (28, 0.83), (32, 0.69), (64, 1.48),
                       (128, 1.9))  # fmt: skip
_DIVISION: _Points = ((3, 2.23), (4, 2.36), (5, 3.2), (7, 4.21), (8, 4.38), (9, 3.74), (11, 3.22),
                      (14, 3.61), (24, 3.91), (32, 4.13), (48, 4.55), (64, 5.07))  # fmt: skip
#: By the wider of two factors.
_PRODUCT: _Points = ((2, 1.34), (3, 1.62), (4, 2.34), (5, 3.49), (7, 3.74), (8, 4.17), (9, 4.35),
                     (10, 4.52), (11, 5.63), (16, 5.58), (32, 5.58))  # fmt: skip
_SHIFTER: _Points = ((4, 2.12), (10, 2.39), (16, 3.98), (32, 4.42), (54, 4.61), (128, 4.89))


def adder(bits: int) -> float:
    """Return the ns of a sum or a difference."""
    return _between(_ADDER, bits)


def comparison(bits: int) -> float:
    """Return the ns of a comparison of two integers."""
    return _between(_COMPARISON, bits)


def division(bits: int) -> float:
    """Return the ns of a stage of a divider."""
    return _between(_DIVISION, bits)


def product(bits: int) -> float:
    """Return the ns of a product in logic, by the wider factor."""
    return _between(_PRODUCT, bits)


def selection(bits: int) -> float:
    """Return the ns of a choice between two values."""
    return _between(_SELECTION, bits)


def shifter(bits: int) -> float:
    """Return the ns of a shift by a distance that is no constant."""
    return _between(_SHIFTER, bits)


def _between(points: _Points, bits: int) -> float:
    at = min(max(bisect_right(points, (bits, 0.0)), 1), len(points) - 1)
    (low, first), (high, last) = points[at - 1], points[at]
    return first + (last - first) * max(bits - low, 0) / (high - low)
