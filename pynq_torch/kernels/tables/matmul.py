"""Matrix products: the numbers that ``matmul_f32`` and its driver share."""

from __future__ import annotations

__all__ = ["BIAS", "LANES", "RELU"]

#: Bits of the ``mode`` register, those of gemm's epilogue.
BIAS, RELU = 4, 8
#: Products a cycle.
LANES = 4
