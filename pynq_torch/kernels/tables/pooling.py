"""Pooling over windows: the opcodes, sizes and registers of ``pool2d_f32``."""

from __future__ import annotations

__all__ = [
    "ADAPTIVE",
    "AVERAGE",
    "BACKWARD",
    "BAND",
    "COUNT_PAD",
    "MAX",
    "SCALARS",
    "TILE",
]

#: Opcodes, as ``pool2d::Op`` in hw/include/pool2d.hpp has them.
MAX, AVERAGE, ADAPTIVE = 0, 1, 2
#: Added to an opcode: the gradient of the input from that of the output.
BACKWARD = 4
#: Added to an average: the padding counts among the pixels of a window.
COUNT_PAD = 8

#: Pixels of a plane that the kernel holds, and outputs that it computes from them at a time.
BAND, TILE = 4096, 1024

_AXES = ("image", "channel", "row", "col")
#: The scalar registers, behind the three pointers.
SCALARS = (
    *("op", "batch", "channels", "rows", "cols", "out_rows", "out_cols"),
    *("kernel_rows", "kernel_cols", "stride_rows", "stride_cols"),
    *("pad_rows", "pad_cols", "step_rows", "step_cols"),
    *("divisor", "tile_rows", "tile_cols"),
    *(f"{operand}_{axis}" for operand in ("source", "result", "index") for axis in _AXES),
)
