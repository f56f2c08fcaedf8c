"""Cores of the vendor's that a kernel calls: how long they take is not known here.

A header has a loop for one, whose end nobody knows: it asks ``__hls_core_NAME``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .ir import Loop
from .place import own_place
from .result import LoopEstimate

if TYPE_CHECKING:
    from .latency import Body

__all__ = ["as_core", "core_in"]

_ASKS = "__hls_core_"


def core_in(body: Body, loop: Loop) -> str:
    """Return which core a loop stands for, ``""`` for one of the kernel's own."""
    if loop.inner:
        return ""
    called = (item.callee for block in body.blocks(loop) for item in block.instructions)
    return next((name.removeprefix(_ASKS) for name in called if name.startswith(_ASKS)), "")


def as_core(body: Body, loop: Loop, made: LoopEstimate) -> LoopEstimate:
    """Return the row of a loop; of one that stands for a core, where the kernel calls that."""
    if not made.lines or not core_in(body, loop):
        return made
    chains = (item.chain for block in body.blocks(loop) for item in block.instructions)
    at = next((place for chain in chains if (place := own_place(chain))), None)
    if at is None:
        return made
    why = (
        f"{made.name}: a core of the vendor's, whose latency and resources are not known here, nor "
        f"are those of what waits for it ({Path(at.file).name}:{at.line})"
    )
    return replace(
        made, file=at.file, line=at.line, lines=(at.line,), iteration_latency=(None, None), why=why
    )
