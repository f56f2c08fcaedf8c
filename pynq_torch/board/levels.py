"""Levels of wires, of which some may not be known."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["Level", "combine", "given", "invert"]


@dataclass(frozen=True)
class Level:
    """Bits of a net: their levels, which of them are known, and the pins that nothing models."""

    value: int = 0
    known: int = 0
    unfollowed: frozenset[str] = frozenset()

    def part(self, low: int, width: int) -> Level:
        """Return `width` bits from bit `low` on."""
        mask = (1 << width) - 1
        return replace(self, value=self.value >> low & mask, known=self.known >> low & mask)


def given(value: int, width: int) -> Level:
    """Return bits that are all known."""
    mask = (1 << width) - 1
    return Level(value & mask, mask)


def invert(one: Level, width: int) -> Level:
    """Return the opposite of `width` bits."""
    one = one.part(0, width)
    return replace(one, value=~one.value & one.known)


def combine(operation: str, one: Level, other: Level, width: int) -> Level:
    """Return the bits of a gate: ``"and"``, ``"or"`` or ``"xor"``, `width` of them."""
    mask = (1 << width) - 1
    both = one.known & other.known
    if operation == "and":
        value = one.value & other.value
        known = both | one.known & ~one.value | other.known & ~other.value
    elif operation == "or":
        value = one.value | other.value
        known = both | one.value | other.value
    else:
        value, known = (one.value ^ other.value) & both, both
    pins = frozenset() if known & mask == mask else one.unfollowed | other.unfollowed
    return Level(value & known & mask, known & mask, pins)
