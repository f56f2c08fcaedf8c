"""Quantised modules for device "pynq": drop-in for torch's, with int8 weights packed once.

`quantize_` turns the layers of a model into these; :mod:`pynq_torch.nn.arithmetic` says what they
compute, to the bit.
"""

from __future__ import annotations

from .conv import Conv2d
from .convert import quantize_
from .linear import Linear
from .sequential import Sequential

__all__ = ["Conv2d", "Linear", "Sequential", "quantize_"]
