"""Three numbers in one adder.

A sum of which another sum is the only user, both of the same width and in the same cycle, is one
adder of three numbers: the schedules of Vivado HLS since 2017.4 and of Vitis HLS say "grouped into
TernaryAdder" and "root node of TernaryAdder". So it is with 6,123 of 6,360 such pairs in public
schedules, and most of the others are in DSP blocks. Where a number comes so late that the adder
does not fit into the cycle, the second sum waits for the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .operators import width_of

if TYPE_CHECKING:
    from .region import Node, Region, Slot
    from .target import Target

__all__ = ["delay_of", "join_sums", "sum_of_three"]

_SUMS = ("add", "sub")


def join_sums(region: Region) -> None:
    """Note for each sum the sums that may share an adder with it, behind `join_products`."""
    for node in region.nodes:
        if _is_plain(node):
            bits = _width(region, node)
            if delay_of(bits, region.target) > region.target.budget:
                continue  # no cycle has room for it
            node.inner = [
                other
                for other, gap in node.before
                if not gap
                and _is_plain(other)
                and region.function.uses[other.item.name] == 1
                and _width(region, other) == bits
            ]


def _is_plain(node: Node) -> bool:
    """Whether it is a sum in logic, neither one of wires nor one in a DSP block."""
    cost = node.cost
    return node.item.op in _SUMS and cost.core == "add" and bool(cost.delay) and not cost.latency


def _width(region: Region, node: Node) -> int:
    return width_of(node.item.name, region.function, node.item.type)


def delay_of(bits: int, target: Target) -> float:
    """Return the ns of an adder of three numbers of some bits.

    Those of the 7 series take longer than an adder of two, those of UltraScale+ do not.
    """
    if target.has_ultra_ram:
        return target.speed * (1.5 + 0.008 * bits)
    return target.speed * min(0.83 + 0.62 * bits, 2.95 + 0.09 * bits, 3.42 + 0.03 * bits)


def sum_of_three(
    region: Region, node: Node, ready: Mapping[int, Slot], begun: Mapping[int, Slot]
) -> tuple[Slot, Slot | None] | None:
    """Return when a sum begins that shares its cycle with one before it, and when it ends.

    Parameters
    ----------
    region, node : Region, Node
        The sum.
    ready : mapping
        For each of `node.inner` (by id) when all else is there that the sum waits for.
    begun : mapping
        When the sums of two numbers before it begin.

    Returns
    -------
    tuple or None
        The slot in which the adder of three begins, and that of its result. The second is None
        where the sum begins alone, in the next cycle. None where no sum is in its cycle.
    """
    found: list[tuple[Slot, Slot | None]] = []
    for inner in node.inner:
        start = begun.get(id(inner))
        if start is None:
            continue
        at = max(ready[id(inner)], start)
        if at[0] != start[0]:
            continue
        end = at[1] + delay_of(_width(region, node), region.target)
        fits = end <= region.target.budget + 1e-9 or id(node) in region.unbroken
        found.append((at, (at[0], end)) if fits else ((at[0] + 1, 0.0), None))
    return min(found, key=lambda pair: pair[1] or pair[0], default=None)
