"""HLS kernels: reading their interface from the C++, building and testing them on a PC."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pynq_torch.hls.interface import Argument, Axis, AxiBundle, Interface, Register

if TYPE_CHECKING:
    from pynq_torch.hls.parse import read_interface

__all__ = ["Argument", "Axis", "AxiBundle", "Interface", "Register", "read_interface"]

# libclang costs 50 ms to load and a cached build does not need it: names load on first use.
_LAZY = {"read_interface": "pynq_torch.hls.parse"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
