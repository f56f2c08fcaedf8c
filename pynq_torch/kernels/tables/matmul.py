"""The matmul family: float32 matrix products of any sizes and strides, batched."""

from __future__ import annotations

from pynq_torch.hls.instance import Instance

__all__ = ["BIAS", "INSTANCES", "LANES", "REGISTERS", "RELU"]

#: Bits of the ``mode`` register, those of gemm's epilogue.
BIAS, RELU = 4, 8
#: Products a cycle.
LANES = 4
_TILE_M, _TILE_N, _TILE_K = 64, 128, 64

_OPERANDS = ("a", "b", "bias", "c")
#: Arguments in order of the registers.
REGISTERS: tuple[str, ...] = (
    *_OPERANDS,
    *("batch", "m", "n", "k"),
    *(f"{o}_{step}" for o in _OPERANDS for step in ("matrix", "row", "column")),
    *("alpha", "beta", "mode"),
)

INSTANCES: tuple[Instance, ...] = (
    Instance(
        "matmul_f32",
        "matmul",
        {
            "summary": "Multiplies float32 matrices of any sizes and strides, batched; scales, "
            "adds a bias and applies ReLU on the way out, if asked to.",
            "lanes": LANES,
            "tile_m": _TILE_M,
            "tile_n": _TILE_N,
            "tile_k": _TILE_K,
            "registers": REGISTERS,
        },
    ),
)
