"""Losses: the numbers that the registers of ``nll_f32`` take."""

from __future__ import annotations

__all__ = ["BACKWARD", "FORWARD", "MEAN", "NONE", "SUM"]

#: Opcodes, as ``nll::Op`` in hw/include/nll.hpp has them.
FORWARD, BACKWARD = 0, 1
#: Reductions, as torch numbers them (``at::Reduction`` of ATen/core/Reduction.h).
NONE, MEAN, SUM = 0, 1, 2
