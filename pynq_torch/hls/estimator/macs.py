"""A product and the sum that takes it, in one DSP block."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .bindings import binding_of
from .operators import constant_in, width_of

if TYPE_CHECKING:
    from .cost import Cost
    from .region import Node, Region
    from .target import Target

__all__ = ["in_block", "join_products", "sum_in_block"]

#: Bits that the adder of a DSP block has (UG479).
_WIDTH = 48
#: The wider number that a block of UltraScale+ parts multiplies (UG579).
_WIDEST = 27
#: ns of the first stage of such a product and of its sum, with all registers used.
_FIRST_NS, _SUM_NS = 1.05, 2.1
#: ns of the product and of the sum without registers.
_PRODUCT_NS, _PLUS_NS = 3.36, 3.02
#: The first release of Vitis HLS that gives a product without a sum no registers. Before, of 230
#: such products in the schedules of 32 projects all have them that BIND_OP does not name.
_WITHOUT = 2023.0
#: Bits of the narrower factor of such a product.
_LEAST = 6
#: ns of the first stage of a product without a sum, in 7-series and in UltraScale+ parts.
_ALONE_NS, _NEW_ALONE_NS = 2.15, 0.53


def join_products(region: Region) -> None:
    """Give a product and its sum the time of a DSP block.

    Vitis HLS uses all its registers at any clock: the sum is there three cycles after the factors,
    but the next sum can take it in the cycle after. Vivado HLS uses none of them where a cycle is
    long enough.
    """
    vivado = region.target.tool == "vivado"
    speed = region.target.speed
    if vivado and (_PRODUCT_NS + _PLUS_NS) * speed > region.target.budget:
        return
    sums: set[int] = set()
    for node in region.nodes:
        if node.item.op not in ("add", "sub"):
            continue
        if vivado and any(id(other.through_wires()[-1]) in sums for other, _ in node.before):
            continue  # a chain of sums would be longer by a cycle for each
        if width_of(node.item.name, region.function, node.item.type) > _WIDTH:
            continue
        for other, _ in node.before:
            between = other.through_wires()
            product = between[-1]
            if not _fits(product, is_vitis=not vivado):
                continue
            if any(region.function.uses[one.item.name] != 1 for one in between):
                continue
            if vivado:
                product.cost = replace(product.cost, latency=0, delay=_PRODUCT_NS * speed)
                node.cost = replace(node.cost, delay=_PLUS_NS * speed, core="mac")
            else:
                product.cost = in_block(product.cost)
                node.cost = sum_in_block(node.cost, region.target)
            sums.add(id(node))
            break
    if not vivado and 0 < region.target.release < _WITHOUT:
        _keep_registers(region)


def _keep_registers(region: Region) -> None:
    """Give the products that no sum took three cycles, as older releases of Vitis HLS do."""
    first = _NEW_ALONE_NS if region.target.has_ultra_ram else _ALONE_NS * region.target.speed
    for node in region.nodes:
        small, large = _bits(node)
        is_one = node.cost.core == "mul" and node.cost.dsp == 1 and not node.cost.latency
        fits = is_one and small >= _LEAST and large <= _WIDEST
        if fits and binding_of(node.item, region.bindings) is None:
            node.cost = replace(node.cost, latency=3, delay=0.0, entry=first)


def in_block(product: Cost) -> Cost:
    """Return what a product costs whose sum is in its DSP block, with all registers used."""
    return replace(product, latency=2, delay=0.0, entry=_FIRST_NS)


def sum_in_block(cost: Cost, target: Target) -> Cost:
    """Return what such a sum costs."""
    time = _SUM_NS * target.speed
    return replace(cost, latency=1, delay=time, entry=time, core="mac")


def _fits(node: Node, *, is_vitis: bool) -> bool:
    """Whether an operation is a product of one DSP block, or of one that its sum makes it.

    What a block and some logic beside it multiply, as 32 bits by 7, is not joined.
    """
    cost = node.cost
    small = cost.mac and (is_vitis or constant_in(node.item) is None)
    return cost.core == "mul" and (cost.dsp == 1 or small) and _bits(node)[1] <= _WIDEST


def _bits(node: Node) -> tuple[int, int]:
    """Return the widths of a product's factors, the narrower one first; 0 for a constant of few."""
    small, _, large = node.cost.widths.partition("x")
    return int(small or 0), int(large or 0)
