"""Arithmetic of cycles that are known between a least and a most, or not at all."""

from __future__ import annotations

from .result import Cycles

__all__ = ["add", "at_least", "greater", "multiply", "pipeline_latency", "plus"]


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
    """Return the product of two."""
    return (
        None if one[0] is None or other[0] is None else one[0] * other[0],
        None if one[1] is None or other[1] is None else one[1] * other[1],
    )


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
