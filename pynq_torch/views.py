"""How data of the board is shown to a person: rooms below name a view, rooms above draw it."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["VIEWS", "draw", "interactive"]

#: View -> the function that draws it, imported at the first use; a program may put in its own.
VIEWS = {
    "bus": "pynq_torch.plot.bus:bus_timeline",
    "waves": "pynq_torch.widgets.wave_view:show",
}


def draw(view: str, data: Any, *args: Any, **options: Any) -> Any:
    """Draw data with a view.

    Parameters
    ----------
    view : str
        A key of `VIEWS`.
    data : object
        What the view draws.
    *args, **options
        Of the view's function.
    """
    module, _, function = VIEWS[view].partition(":")
    return getattr(import_module(module), function)(data, *args, **options)


def interactive() -> bool:
    """Whether there is somebody who could use a control: a live notebook with ipywidgets."""
    if os.environ.get("PYNQ_TORCH_STATIC", "") not in ("", "0"):
        return False
    if "ipykernel" not in sys.modules:
        return False
    return find_spec("ipywidgets") is not None
