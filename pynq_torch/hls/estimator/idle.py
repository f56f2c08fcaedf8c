"""Loops of which the tools leave nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .ir import Loop

if TYPE_CHECKING:
    from .latency import Body

__all__ = ["costs_nothing"]

_COMPLEX = '%"class.std::complex'
_ZERO = re.compile(r"store i\d+ 0,")
_NO_EFFECT = frozenset((
    "phi", "br", "switch", "icmp", "select", "getelementptr", "zext", "sext", "trunc", "freeze",
    "add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr",
))  # fmt: skip


def costs_nothing(body: Body, loop: Loop) -> bool:
    """Whether a loop takes no cycle: the rest of an unrolled one, a table's, one without effect."""
    return loop.is_rest or _fills_a_table(body, loop) or _does_nothing(body, loop)


def _does_nothing(body: Body, loop: Loop) -> bool:
    """Whether a loop has no effect, and no value of it is used: the tools leave it out."""
    items = body.items(loop)
    if any(item.op not in _NO_EFFECT for item in items):
        return False
    names = {item.name for item in items if item.name}
    blocks = (one for one in body.blocks(None) if one.name not in loop.blocks)
    others = (item for block in blocks for item in block.instructions)
    return not any(names & {*item.operands} for item in others)


def _fills_a_table(body: Body, loop: Loop) -> bool:
    """Whether a loop is clang's own, and gives a table its constants: HLS makes a ROM of it.

    Nor does an array of ``std::complex<ap_fixed<...>>`` take one, which begins with any numbers.
    """
    items = body.items(loop)
    stores = [i for i in items if i.op == "store"]
    if loop.header.startswith("arrayctor.loop") and any(_COMPLEX in i.text for i in items):
        return all(_ZERO.match(i.text) for i in stores)
    if not loop.header.startswith("arrayinit.body"):
        return False
    return all(body.arrays.array(body.arrays.base_of(i.operands[-1])).constant for i in stores)
