"""Operators of device "pynq" on the kernels of an overlay, a module for each family."""

from __future__ import annotations

from importlib import import_module

__all__ = ["FAMILIES", "add_offers"]

#: In the order in which they are asked where several serve the same operator.
FAMILIES = (
    "activation",
    "conv",
    "conv_direct",
    "convolution",
    "distance",
    "indexed",
    "ladder",
    "linear",
    "loss",
    "matmul",
    "movement",
    "normalisation",
    "pointwise",
    "pooling",
    "reductions",
    "softmax",
    "sparse",
)


def add_offers() -> None:
    """Have every family say which operators it serves."""
    for family in FAMILIES:
        import_module(f"{__name__}.{family}")
