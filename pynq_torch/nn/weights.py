"""The weight of a layer in CMA memory, as the units read it, with the values derived from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from pynq_torch.ops.conv_direct import filters_of
from pynq_torch.ops.linear import vector as as_vector
from pynq_torch.ops.quantise import NOT_FINITE, Packed, kept, per_column
from pynq_torch.ops.units import Matrix, Vector
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined

from .arithmetic import requantisation

__all__ = ["NOTHING", "Factors", "Requantised", "Weights", "weights_of"]

NOTHING = Declined("there is nothing to multiply")
#: Factors and biases for the device: one of each a group, and ``None`` for no bias.
Requantised = tuple[list[Vector], Vector | None]


class Factors:
    """The factors of one product, float32 in CMA memory: `vectors` has one a group."""

    def __init__(self, packed: Sequence[Packed]) -> None:
        made = [memory.new(p.scale.shape, torch.float32) for p in packed]
        self.vectors = [Vector(tensor, constant=True) for tensor in made]
        targets = [memory.alias(tensor).numpy() for tensor in made]
        sources = [p.scale.numpy() for p in packed]
        self._parts = list(zip(self.vectors, targets, sources, strict=True))
        self._scale: float | None = None

    def set(self, scale: float) -> None:
        """Make them ``t * s`` for an input with such steps, as `arithmetic` says."""
        if scale == self._scale:
            return
        step = np.float32(scale)
        for vector, target, source in self._parts:
            np.multiply(source, step, out=target)
            vector.flushed = False
        self._scale = scale


class Weights:
    """A weight in int8.

    Parameters
    ----------
    packed : sequence of Packed
        [K, N] for each group of channels, values on device "pynq".

    Attributes
    ----------
    depth : int
        K, the products in a sum.
    top : float
        The largest scale.
    matrices : list of Matrix
        See `use_on`.
    """

    def __init__(self, packed: Sequence[Packed]) -> None:
        self.packed = tuple(packed)
        self.depth = int(packed[0].values.shape[0])
        self.top = max(p.top for p in packed)
        self.matrices: list[Matrix] = []
        self._device: Any = None
        self._idle: list[Factors] = []
        self._bias: tuple[tuple[Any, int, int], Vector] | None = None
        self._requantised: tuple[Any, Requantised | None] | None = None
        self._filters: torch.Tensor | None = None

    def filters(self, shape: Sequence[int]) -> torch.Tensor:
        """Return the values as one tensor [OC, C / groups, ...], for a direct convolution."""
        if self._filters is None:
            self._filters = filters_of(self.packed, shape).values
        return self._filters

    def use_on(self, device: Any) -> None:
        """Make ready for the units of a board: `matrices` are the groups as their operands."""
        if self._device is not device:
            self.matrices = [Matrix(p.values, device, constant=True) for p in self.packed]
            self._idle, self._bias, self._requantised = [], None, None
            self._device = device

    def on_cpu(self) -> list[Packed]:
        """Return the groups with values as CPU tensors over the same memory."""
        return [Packed(memory.alias(p.values), p.scale, p.top) for p in self.packed]

    def factors(self, scale: float) -> Factors:
        """Return what the sums of each group are multiplied by for a float32 result.

        `scale` is the input's. They are the caller's alone, who gives them back with `reuse` when
        the product is there.
        """
        try:
            found = self._idle.pop()
        except IndexError:
            found = Factors(self.packed)
        found.set(scale)
        return found

    def reuse(self, factors: Factors) -> None:
        """Take back what no unit reads any more."""
        self._idle.append(factors)

    def bias(self, bias: torch.Tensor) -> Vector:
        """Return a bias on device "pynq" as the units read it, in float32."""
        written = _written(bias)
        if self._bias is None or self._bias[0] != written:
            self._bias = (written, Vector(as_vector(bias), constant=True))
        return self._bias[1]

    def requantised(
        self, scale: float, out_scale: float, bias: torch.Tensor | None
    ) -> Requantised | None:
        """Return factors and bias for an int8 result; ``None`` where sums could leave int32.

        `scale` and `out_scale` are those of the input and of the result.
        """
        key = (scale, out_scale, bias if bias is None else _written(bias))
        found = self._requantised
        if found is None or found[0] != key:
            found = self._requantised = (key, self._requantise(scale, out_scale, bias))
        return found[1]

    def _requantise(
        self, scale: float, out_scale: float, bias: torch.Tensor | None
    ) -> Requantised | None:
        whole = None if bias is None else memory.alias(bias)
        scales = torch.cat([p.scale for p in self.packed])
        found = requantisation(scales, scale, out_scale, whole, self.depth)
        if found is None:
            return None
        parts = found[0].chunk(len(self.packed))
        offset = None if found[1] is None else _on_device(found[1])
        return [_on_device(part) for part in parts], offset


def _written(tensor: torch.Tensor) -> tuple[Any, int, int]:
    """Return what changes when a tensor is written to; it keeps the tensor's memory."""
    storage: Any = tensor.untyped_storage()
    return storage, storage.writes, int(tensor.storage_offset())


def _on_device(values: torch.Tensor) -> Vector:
    made = memory.new(values.shape, values.dtype)
    memory.block_of(made).cpu.copy_(values)
    return Vector(made, constant=True)


def weights_of(
    weight: torch.Tensor, kind: str, matrices: Callable[[torch.Tensor], list[torch.Tensor]]
) -> Weights | Declined:
    """Return a floating weight packed; it is packed again when it has been written to.

    `matrices` makes the weight as a CPU tensor matrices [K, N], one a group; `kind` names that.
    """
    return kept(weight, kind, _pack, weight, matrices)


def _pack(
    weight: torch.Tensor, matrices: Callable[[torch.Tensor], list[torch.Tensor]]
) -> Weights | Declined:
    if not weight.numel():
        return NOTHING
    found = [per_column(matrix) for matrix in matrices(memory.alias(weight))]
    good = [p for p in found if isinstance(p, Packed)]
    return Weights(good) if len(good) == len(found) else NOT_FINITE
