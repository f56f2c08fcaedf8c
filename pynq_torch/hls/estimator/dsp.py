"""How many DSP blocks and how long a product of integers takes.

From the schedules and reports of the tools; what the blocks are is in UG479 and UG579.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from .cost import Cost
from .delays import adder, product
from .floats import SERIES_7
from .target import Target

__all__ = ["LEAST_CONSTANT", "constant_product", "multiplier", "signed_digits"]


def constant_product(constant: int, bits: int, target: Target) -> Cost:
    """Return what the product of a number and a value of some bits costs."""
    digits = signed_digits(constant)
    if digits <= 2:  # wires, or one sum
        return Cost(0, target.speed * adder(bits)) if digits == 2 else Cost()
    own = abs(constant).bit_length() + 1
    return multiplier(min(own, bits), max(own, bits), target, own + bits)


#: Bits of the smaller factor, and bits times bits, from which a sum behind a product takes it into
#: its DSP block (240 products of 4 bits by 8, 69 of 5 by 6, none of 34 of 4 by 4).
_SMALLEST, _LEAST_MAC = 4, 30
#: Bits times bits from which it takes a product by a constant in Vitis HLS.
LEAST_CONSTANT = 27


def signed_digits(number: int) -> int:
    """How many powers of two are added or subtracted to make a number (non-adjacent form)."""
    number = abs(number)
    return (number ^ 3 * number).bit_count()


#: Bits of the wider factor up to which any product is in logic.
_WIDE = 10
#: The releases of Vitis HLS that finish wide products in logic, to save DSP blocks; the next ones.
_IN_LOGIC, _WHOLE = 2021.0, 2023.0
#: The first release of Vivado HLS with three DSP blocks, not four, in a 32-bit product of stages.
_THREE = 2019.0
#: Releases of Vivado HLS that take a DSP block for the smallest product, too.
_OLD = (2014.0, 2017.0)
#: Releases of Vivado HLS before have six stages in a product of several DSP blocks at 10 ns too.
_UNSTAGED = 2016.0
#: The first release with faster products of several blocks in Kintex-7 and Virtex-7.
_FASTER = 2018.0
#: How much longer those with stages take there (4.1 ns a stage at 5 ns in a report of 2018.2).
_STAGED = 1.075
#: The release that reports no DSP blocks of products that take several, in a 7-series part.
_SILENT = 2020.2


#: Of a cycle, what a stage of a product takes: nothing chains behind one (243 of 243 schedules).
_FULL_STAGE = 0.945
#: Cycles in which the tools build a product of several DSP blocks, and what each of its stages then
#: takes of the time of one without stages: in 7-series parts for two blocks and for more, and in
#: UltraScale+ parts (26 schedules at 1 to 10 ns). There is nothing between these.
_STAGES_OF_TWO = ((1, 0.812), (2, 0.675), (4, 0.457))
_STAGES = ((1, 0.812), (2, 0.675), (4, 0.464), (6, 0.25))
_NEW_STAGES = ((1, 0.763), (4, 0.521), (6, 0.307))


def multiplier(small: int, large: int, target: Target, bits: int) -> Cost:
    """Return what an integer multiplier of two widths costs, of whose product `bits` are used."""
    cost = _multiplier(small, large, target)
    if target.tool == "vitis" and cost.dsp:
        return replace(cost, dsp=_blocks(small, large, cost.dsp, target, bits))
    return cost


def _blocks(small: int, large: int, blocks: int, target: Target, bits: int) -> int:
    """Return the DSP blocks of a multiplier of Vitis HLS, as reports of its releases list them."""
    release = target.release
    whole = bool(release) and not _IN_LOGIC <= release < _WHOLE
    if release == _SILENT and not target.has_ultra_ram:
        return blocks if blocks == 1 else 0
    if small <= 7 and 25 < large <= 32:
        return 2 if whole else 1
    if target.has_ultra_ram and small <= 27:  # its blocks have 27 x 18 bits (UG579)
        few = (large <= 27 and small <= 18) or (large <= 32 and small <= 10)
        return 1 if few else ceil(large / 18)
    if not release:
        return blocks
    if 25 < small <= large <= 36:
        return 4 if whole and bits > 40 else 3
    if target.has_ultra_ram:
        return blocks
    if 25 < small <= 34 and large <= 64:
        return 7 if bits <= 64 else 8 if whole else 6
    if 60 < small <= large <= 66 and bits > 64:
        return 16 if whole else 9
    return blocks


def _multiplier(small: int, large: int, target: Target) -> Cost:
    blocks = ceil(small / 18) * ceil(large / 25) if large > 18 else 1
    beside = 25 < large <= 32 and small <= 7  # the upper bits are multiplied beside the block
    if beside and target.tool == "vitis":
        blocks = 1
    old = target.tool == "vivado" and _OLD[0] <= target.release < _OLD[1]
    if (small <= 4 or large <= _WIDE) and not old:
        wide = small >= _SMALLEST and small * large >= _LEAST_MAC
        wider = product(large) if large <= _WIDE else 1.9 + 0.22 * small
        return Cost(0, target.speed * wider, core="mul", mac=wide)
    whole = {32: 3, 64: 10 if target.tool == "vitis" else 16}
    if small > 17 and large > 17:
        ways = ((small, large), (large, small))
        split = min(ceil((one - 1) / 17) * ceil((other - 1) / 24) for one, other in ways)
        blocks = whole.get(large, split) if small > 25 else split
    one = 36.0 if blocks >= 10 else 6.38 if small + large > 20 else 4.17
    if 1 < blocks < 10 or beside:
        one = 8.51 * _of_family(target)
    one *= target.speed
    if 1 < blocks < 10 and target.tool == "vivado" and 0 < target.release < _UNSTAGED:
        return Cost(5, 0.7 * target.budget, 0.7 * target.budget, dsp=max(blocks, 4), core="mul")
    if one <= target.budget:
        return Cost(0, one, dsp=blocks, core="mul")
    few = 1 < blocks < 10
    latency = _stages(one, blocks, target) if few else max(1, ceil(one / target.budget) - 1)
    if blocks == 3 and target.tool == "vivado" and 0 < target.release < _THREE:
        blocks = 4
    part = _FULL_STAGE * target.budget
    return Cost(latency, part, part, dsp=blocks, core="mul")


def _of_family(target: Target) -> float:
    """Return by how much products of several blocks are slower in Kintex-7 and Virtex-7 than logic.

    Of grade -2 they take 6.81 ns in Vivado HLS 2016.1 and 6.57 in 2017.2, in a Zynq of grade -1
    8.51. In 2020.1 it is 5.49, which is behind memories that are as much faster (14 schedules).
    """
    is_old = 0 < target.release < _FASTER
    return 1.31 if is_old and not target.has_ultra_ram and target.speed < SERIES_7 else 1.0


def _stages(one: float, blocks: int, target: Target) -> int:
    """Return the cycles of a product of several DSP blocks that takes `one` ns without stages."""
    known = _NEW_STAGES if target.has_ultra_ram else _STAGES_OF_TWO if blocks == 2 else _STAGES
    if not target.has_ultra_ram and target.speed < SERIES_7:
        one *= _STAGED
    fits = (latency for latency, part in known if part * one <= target.budget)
    return next(fits, known[-1][0])
