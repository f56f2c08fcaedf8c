"""``cdist`` and ``dot`` of device "pynq" in float32, on ``distance_f32``.

Distances are taken element by element for every size, also where torch's CPU takes those of more
than 25 rows from a matrix product, which costs digits where rows are close to each other.
"""

from __future__ import annotations

from typing import Any

import torch

from pynq_torch.kernels.distance import distance_runs, distances_shape, dot_run
from pynq_torch.torch_device.dispatch import Declined

from .common import on_cpu, run, units_of
from .launch import operand, room

__all__: list[str] = []

_EMPTY = Declined("there is nothing to measure")
_SIZES = on_cpu("the operands do not fit each other")


def cdist_forward(x1: torch.Tensor, x2: torch.Tensor, p: float, compute_mode: int | None) -> Any:
    slots = units_of("distance_f32", x1, x2)
    if isinstance(slots, Declined):
        return slots
    if not (x1.numel() and x2.numel()):
        return _EMPTY
    shape = distances_shape(x1, x2)
    if shape is None or not p >= 0 or compute_mode not in (None, 0, 1, 2):
        return _SIZES
    left, right, result = operand(x1), operand(x2), room(shape, torch.float32)
    return run(slots, distance_runs(left, right, result, p), (left, right), result)


def euclidean_dist(x1: torch.Tensor, x2: torch.Tensor) -> Any:
    return cdist_forward(x1, x2, 2.0, None)


def dot(self: torch.Tensor, tensor: torch.Tensor) -> Any:
    slots = units_of("distance_f32", self, tensor)
    if isinstance(slots, Declined):
        return slots
    if not (self.numel() and tensor.numel()):
        return _EMPTY
    if self.dim() != 1 or self.shape != tensor.shape:
        return _SIZES
    left, right, result = operand(self), operand(tensor), room((), torch.float32)
    return run(slots, [dot_run(left, right, result)], (left, right), result)
