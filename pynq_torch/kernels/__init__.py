"""Drivers: one class a kernel, from typed arguments to registers, start and wait.

:data:`DRIVERS` is the registration: VLNV name -> class. An HLS IP that is not in it is driven by
:class:`GenericKernel`, which takes its arguments by register name.
"""

from __future__ import annotations

from typing import Any

from .base import Kernel, KernelStart
from .gemm import Gemm, split_gemm
from .generic import GenericKernel
from .registers import Parameter, parameters_of
from .scale_stream import ScaleStream
from .vadd import Vadd

__all__ = [
    "DRIVERS",
    "Gemm",
    "GenericKernel",
    "Kernel",
    "KernelStart",
    "Parameter",
    "ScaleStream",
    "Vadd",
    "driver_for",
    "parameters_of",
    "split_gemm",
]

#: VLNV name (its third field) -> driver.
DRIVERS: dict[str, type[Kernel]] = {
    "vadd": Vadd,
    "gemm": Gemm,
    "gemm_lut": Gemm,
    "scale_stream": ScaleStream,
}


def driver_for(entry: dict[str, Any]) -> type[Kernel] | None:
    """Return the driver for an entry of ``ip_dict``; ``None`` for what is no HLS kernel."""
    fields = entry.get("type", "").split(":")
    registers = entry.get("registers") or {}
    control = registers.get("CTRL", {}).get("fields", {})
    if len(fields) < 3 or "AP_START" not in control:
        return None
    return DRIVERS.get(fields[2], GenericKernel)
