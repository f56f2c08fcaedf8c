"""Normalisation: the numbers that the registers of ``norm_f32`` take."""

from __future__ import annotations

__all__ = ["BATCH", "BIAS", "LAYER", "ROUNDINGS", "WEIGHT"]

#: Opcodes, as ``norm::Op`` in hw/include/norm.hpp has them.
BATCH, LAYER = 0, 1
#: Bits of the register ``affine``.
WEIGHT, BIAS = 1, 2
#: Roundings (half an ulp each) of ``(x - mean) * scale * weight`` at most; one of the sum besides.
ROUNDINGS = 7
