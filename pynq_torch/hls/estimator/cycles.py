"""Arithmetic of cycles that are known between a least and a most, or not at all."""

from __future__ import annotations

from .result import Cycles

#: No report has as many cycles, or a loop of as many iterations: they say `?` there.
_CYCLES, _TRIPS = 1 << 63, 1 << 32

__all__ = ["add", "at_least", "greater", "in_32_bits", "multiply", "pipeline_latency", "plus"]


def plus(cycles: Cycles, number: int) -> Cycles:
    """Return cycles and a number more."""
    least, most = cycles
    return (
        None if least is None else max(least + number, 0),
        None if most is None else max(most + number, 0),
    )


def add(one: Cycles, other: Cycles) -> Cycles:
    """Return the sum of two."""
    return (
        None if one[0] is None or other[0] is None else one[0] + other[0],
        None if one[1] is None or other[1] is None else one[1] + other[1],
    )


def multiply(one: Cycles, other: Cycles) -> Cycles:
    """Return the product of two; nothing where it is too much for a number of 64 bits."""
    least, most = (
        None if a is None or b is None or a * b >= _CYCLES else a * b
        for a, b in zip(one, other, strict=True)
    )
    return least, most


def in_32_bits(trips: Cycles) -> Cycles:
    """Return how often a loop runs; nothing where no counter of 32 bits can say it."""
    return (None, None) if trips[1] is not None and trips[1] >= _TRIPS else trips


def greater(one: Cycles, other: Cycles) -> Cycles:
    """Return the greater of two."""
    least = None if one[0] is None or other[0] is None else max(one[0], other[0])
    most = None if one[1] is None or other[1] is None else max(one[1], other[1])
    return least, most


def at_least(cycles: Cycles, number: int) -> Cycles:
    """Return cycles, or a number where that is more."""
    least, most = cycles
    return (
        None if least is None else max(least, number),
        None if most is None else max(most, number),
    )


def pipeline_latency(trips: Cycles, interval: int, depth: int) -> Cycles:
    """(T - 1) II + depth - 1, as both tools report it."""
    ends = [
        None if n is None else max((n - 1) * interval + depth - 1, 0) if n else 0 for n in trips
    ]
    return ends[0], ends[1]
