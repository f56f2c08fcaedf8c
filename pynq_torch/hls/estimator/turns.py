"""How many turns a nest takes that became one loop: a product of the bounds, before it begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .operators import constant_product, multiplier

if TYPE_CHECKING:
    from .ir import Loop
    from .target import Target

__all__ = ["blocks_of_turns"]

#: Bits of a bound of which nothing is known: an `int`.
_ANY_BITS = 32


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
