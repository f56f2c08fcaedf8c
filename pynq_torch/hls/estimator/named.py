"""What the tools call loops: their labels, or what stands for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .asked import LoopPlan
from .ir import Loop
from .place import Place, own_place

if TYPE_CHECKING:
    from .latency import Body

__all__ = ["core_in", "loop_name", "somewhere"]

#: What a loop of a header asks that stands for a core of the vendor's.
_ASKS = "__hls_core_"


def loop_name(body: Body, loops: Sequence[Loop], plans: Sequence[LoopPlan | None]) -> str:
    """Return the name of a nest: labels, or the lines and numbers that Vitis HLS makes them of."""
    names = []
    for loop, plan in zip(loops, plans, strict=True):
        place = loop.place or somewhere(body, loop)
        line = place.line if place else 0
        if plan is None:  # of a constructor or of `goto`; the tools call it `Loop 1`
            names.append(core_in(body, loop) or f"Loop_{line}")
        else:
            names.append(plan.label or f"VITIS_LOOP_{line}_{_number(plan)}")
    return "_".join(names)


def core_in(body: Body, loop: Loop) -> str:
    """Return which core a loop stands for, ``""`` for one of the kernel's own."""
    if loop.inner:
        return ""
    called = (item.callee for block in body.blocks(loop) for item in block.instructions)
    return next((name.removeprefix(_ASKS) for name in called if name.startswith(_ASKS)), "")


def somewhere(body: Body, loop: Loop) -> Place | None:
    """Return a place in a loop that has no keyword, as `goto` makes it."""
    chains = (item.chain for block in body.blocks(loop) for item in block.instructions)
    return next((place for chain in chains if (place := own_place(chain))), None)


def _number(plan: LoopPlan) -> int:
    """The n-th loop without a label of its function, as Vitis numbers them."""
    unnamed = (loop for loop in plan.function.all_loops() if not loop.label)
    return next((n for n, loop in enumerate(unnamed, 1) if loop is plan), 1)
