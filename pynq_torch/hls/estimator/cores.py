"""Cores of the vendor's that a kernel calls: how long they take is not known here.

A header has a loop for one, whose end nobody knows: it asks ``__hls_core_NAME``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .ir import Loop
from .named import core_in, somewhere
from .result import LoopEstimate

if TYPE_CHECKING:
    from .latency import Body

__all__ = ["as_core"]


def as_core(body: Body, loop: Loop, made: LoopEstimate) -> LoopEstimate:
    """Return the row of a loop; of one that stands for a core, where the kernel calls that."""
    if not made.lines or not core_in(body, loop):
        return made
    at = somewhere(body, loop)
    if at is None:
        return made
    why = (
        f"{made.name}: a core of the vendor's, whose latency and resources are not known here, nor "
        f"are those of what waits for it ({Path(at.file).name}:{at.line})"
    )
    return replace(
        made, file=at.file, line=at.line, lines=(at.line,), iteration_latency=(None, None), why=why
    )
