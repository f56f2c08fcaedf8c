"""HLS kernels: reading their interface from the C++, building and testing them on a PC."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pynq_torch.hls.build import Build, build, compile_engine
from pynq_torch.hls.compile import compile_command
from pynq_torch.hls.interface import Argument, Axis, AxiBundle, Interface, Register
from pynq_torch.hls.kernels import KernelSource, find_kernel

if TYPE_CHECKING:
    from pynq_torch.hls.parse import read_interface

__all__ = [
    "Argument",
    "AxiBundle",
    "Axis",
    "Build",
    "Interface",
    "KernelSource",
    "Register",
    "build",
    "compile_command",
    "compile_engine",
    "find_kernel",
    "read_interface",
]

# libclang is slow to load and a cached build does not need it: the name loads on first use.
_LAZY = {"read_interface": "pynq_torch.hls.parse"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
