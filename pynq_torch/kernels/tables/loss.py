"""Losses: the opcodes and registers of ``nll_f32``, for its templates and driver."""

from __future__ import annotations

from pynq_torch.hls.instance import Instance

__all__ = ["BACKWARD", "FORWARD", "INSTANCES", "MEAN", "NONE", "SCALARS", "SUM"]

#: Opcodes, as ``nll::Op`` in hw/include/nll.hpp has them.
FORWARD, BACKWARD = 0, 1
#: Reductions, as torch numbers them (``at::Reduction`` of ATen/core/Reduction.h).
NONE, MEAN, SUM = 0, 1, 2

#: The scalar registers, behind the five pointers.
SCALARS = (
    *("op", "reduction", "batch", "classes", "inner", "ignore_index", "weighted"),
    *("source_image", "source_class", "source_inner", "target_image", "target_inner"),
)
_NAME = "nll_f32"

INSTANCES = (
    Instance(
        _NAME,
        "nll",
        {
            "about": "Negative log-likelihood of class indices in float32, with weights, and its "
            "gradient.",
            "pad": " " * len(f"void {_NAME}("),
            "ports": (
                ("source", "gmem0"),
                ("target", "gmem1"),
                ("weight", "gmem0"),
                ("result", "gmem2"),
                ("total", "gmem2"),
            ),
            "scalars": SCALARS,
            "registers": 2 * 5 + len(SCALARS),
            "operators": (
                "aten::nll_loss_forward",
                "aten::nll_loss_backward",
                "aten::nll_loss2d_forward",
                "aten::nll_loss2d_backward",
            ),
        },
    ),
)
