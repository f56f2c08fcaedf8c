"""From an overlay's description to the hwh, the Vivado Tcl, the v++ connectivity and the image."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .build import build_overlay, generate, overlay_names
    from .description import OverlayDescription, read_description
    from .image import check_bitstream, is_simulation_image
    from .netlist import Design, elaborate

__all__ = [
    "Design",
    "OverlayDescription",
    "build_overlay",
    "check_bitstream",
    "elaborate",
    "generate",
    "is_simulation_image",
    "overlay_names",
    "read_description",
]

# Loading an overlay asks check_bitstream on every call; it must not load the generator.
_LAZY = {
    "Design": "netlist",
    "OverlayDescription": "description",
    "build_overlay": "build",
    "check_bitstream": "image",
    "elaborate": "netlist",
    "generate": "build",
    "is_simulation_image": "image",
    "overlay_names": "build",
    "read_description": "description",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
