"""Block RAM of arrays (UG473: 18 Kbit blocks of 1 to 36 bits a word)."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

from .memory import Array

__all__ = ["block_rams"]

_SHAPES = ((16384, 1), (8192, 2), (4096, 4), (2048, 9), (1024, 18), (512, 36))
_LUT_BITS = 1024


def block_rams(arrays: Sequence[Array], dataflow: bool) -> int:
    """Return the 18 Kbit blocks that arrays take; small ones are kept in LUTs."""
    total = 0
    bundles: dict[str, int] = {}
    for array in arrays:
        if array.kind == "m_axi":
            bundles[array.bundle] = max(bundles.get(array.bundle, 0), array.element_bits)
        if array.kind not in ("memory", "stream") or not array.local:
            continue
        core = array.plan.kind + "_" + array.plan.implementation
        if "lutram" in core or ("lut" in core and "bram" not in core) or "srl" in core:
            continue
        words = array.plan.depth or 2 if array.kind == "stream" else array.words
        banks = _banks(array)
        depth = ceil(words / banks)
        if not words or (depth * array.element_bits < _LUT_BITS and "bram" not in core):
            continue
        one = min(ceil(depth / rows) * ceil(array.element_bits / bits) for rows, bits in _SHAPES)
        total += banks * one * array.copies * (2 if dataflow and array.kind == "memory" else 1)
    for bits in bundles.values():
        total += 2 * max(ceil(bits / 32), 1)
    return total


def _banks(array: Array) -> int:
    sizes = array.dimensions
    found = [
        (sizes[dimension] if dimension < len(sizes) else 1) if kind == "complete" else factor
        for dimension, (kind, factor) in array.cuts().items()
    ]
    return max(prod(found), 1)
