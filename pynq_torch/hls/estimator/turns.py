"""How many turns a loop takes, and a nest that became one loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from .dsp import constant_product, multiplier
from .result import Cycles

if TYPE_CHECKING:
    from .ir import Loop
    from .target import Target

__all__ = ["as_written", "between", "blocks_of_turns"]

#: Bits of a bound of which nothing is known: an `int`.
_ANY_BITS = 32


def between(loop: Loop, most_of: Callable[[Loop], int | None]) -> Cycles:
    """Return how often a loop runs at least and at most; its count may depend on loops around it.

    `most_of` tells of these how often they run at most.
    """
    if loop.taken is None:
        return None, None
    least = most = loop.taken.constant
    around = {"loop " + one.header: one for one in loop.above()}
    for name, factor in loop.taken.terms:
        outer = around.get(name)
        top = most_of(outer) if outer is not None and outer is not loop else None
        if top is None:
            return None, None
        ends = (0, factor * (top - 1))
        least, most = least + min(ends), most + max(ends)
    return max(least + 1, 0), max(most + 1, 0)


def as_written(loop: Loop) -> Cycles:
    """Return how often a loop runs by the bounds of itself and of the loops around it alone."""
    return between(loop, lambda outer: as_written(outer)[1])


def blocks_of_turns(loops: Sequence[Loop], target: Target) -> Iterator[int]:
    """Yield the DSP blocks of the products that say how many turns a flattened nest takes.

    It has one counter, which ends at the product of the bounds. Where these are numbers so is
    that; else a multiplier makes it, and a further one for each loop more.
    """
    factor, bits = 1, 0
    for loop in loops:
        taken = loop.taken
        if taken is None:
            return
        if not taken.terms:
            factor *= taken.constant + 1
            continue
        most = loop.most
        own = (most + 1).bit_length() if most is not None else _ANY_BITS
        own = min(own, _ANY_BITS)
        if bits:
            yield multiplier(min(bits, own), max(bits, own), target, bits + own).dsp
        bits += own
    if bits:
        yield constant_product(factor, bits, target).dsp
