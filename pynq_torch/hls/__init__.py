"""HLS kernels: reading their interface from the C++, building and testing them on a PC."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .build import Build, build, compile_engine
from .command import CHECK_INDICES, compile_command
from .interface import Argument, AxiBundle, Axis, Interface, Register
from .kernels import KernelSource, find_kernel

if TYPE_CHECKING:
    from .csynth import SynthesisReport, find_report, read_report
    from .estimator import Estimate, estimate
    from .linter import Finding, lint
    from .parse import read_interface
    from .reading import excerpt, format_interface
    from .skeleton import new_kernel, new_overlay
    from .testbench import TestbenchResult, run_testbench

__all__ = [
    "CHECK_INDICES",
    "Argument",
    "AxiBundle",
    "Axis",
    "Build",
    "Estimate",
    "Finding",
    "Interface",
    "KernelSource",
    "Register",
    "SynthesisReport",
    "TestbenchResult",
    "build",
    "compile_command",
    "compile_engine",
    "estimate",
    "excerpt",
    "find_kernel",
    "find_report",
    "format_interface",
    "lint",
    "new_kernel",
    "new_overlay",
    "read_interface",
    "read_report",
    "run_testbench",
]

# libclang is slow to load and a cached build does not need it: these load on first use.
_LAZY = {
    "Estimate": "pynq_torch.hls.estimator",
    "Finding": "pynq_torch.hls.linter",
    "SynthesisReport": "pynq_torch.hls.csynth",
    "TestbenchResult": "pynq_torch.hls.testbench",
    "estimate": "pynq_torch.hls.estimator",
    "excerpt": "pynq_torch.hls.reading",
    "find_report": "pynq_torch.hls.csynth",
    "format_interface": "pynq_torch.hls.reading",
    "lint": "pynq_torch.hls.linter",
    "new_kernel": "pynq_torch.hls.skeleton",
    "new_overlay": "pynq_torch.hls.skeleton",
    "read_interface": "pynq_torch.hls.parse",
    "read_report": "pynq_torch.hls.csynth",
    "run_testbench": "pynq_torch.hls.testbench",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
