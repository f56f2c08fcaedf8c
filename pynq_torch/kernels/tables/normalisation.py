"""Normalisation: the opcodes and registers of ``norm_f32``, for its templates and driver."""

from __future__ import annotations

from pynq_torch.hls.instance import Instance

__all__ = ["BATCH", "BIAS", "INSTANCES", "LAYER", "ROUNDINGS", "SCALARS", "WEIGHT"]

#: Opcodes, as ``norm::Op`` in hw/include/norm.hpp has them.
BATCH, LAYER = 0, 1
#: Bits of the register ``affine``.
WEIGHT, BIAS = 1, 2
#: Roundings (half an ulp each) of ``(x - mean) * scale * weight`` at most; one of the sum besides.
ROUNDINGS = 7

#: The scalar registers, behind the six pointers.
SCALARS = (
    *("op", "outer", "channels", "inner", "affine", "eps"),
    *(
        f"{operand}_{axis}"
        for operand in ("source", "result")
        for axis in ("outer", "channel", "inner")
    ),
)
_NAME = "norm_f32"

INSTANCES = (
    Instance(
        _NAME,
        "norm",
        {
            "about": "Normalises float32 channels with a mean and variance that are given, or rows "
            "with their own.",
            "pad": " " * len(f"void {_NAME}("),
            "ports": (
                ("source", "gmem0"),
                ("mean", "gmem1"),
                ("variance", "gmem2"),
                ("weight", "gmem1"),
                ("bias", "gmem2"),
                ("result", "gmem3"),
            ),
            "scalars": SCALARS,
            "registers": 2 * 6 + len(SCALARS),
            "operators": (
                "aten::native_batch_norm",
                "aten::_native_batch_norm_legit_no_training",
                "aten::native_layer_norm",
            ),
        },
    ),
)
