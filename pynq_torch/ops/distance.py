"""``cdist`` and ``dot`` of device "pynq" in float32, on ``distance_f32``.

Distances are taken element by element for every size, also where torch's CPU takes those of more
than 25 rows from a matrix product, which costs digits where rows are close to each other.
"""

from __future__ import annotations

from typing import Any

import torch

from pynq_torch.kernels.distance import distance_runs, distances_shape, dot_run
from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.variants import MIXED

from . import launch

__all__: list[str] = []

_NO_UNIT = Declined(
    "no overlay loaded with pynq_torch.load has a unit for distances: "
    "pynq_torch.load('reductions')",
    missing=True,
)
_EMPTY = Declined("there is nothing to measure")
_SIZES = Declined("the operands do not fit each other; torch raises the error on the CPU")
_NOT_HERE = Declined("an operand is not on device 'pynq'; torch raises the error on the CPU")


def _refused(a: torch.Tensor, b: torch.Tensor) -> Declined | None:
    if a.dtype is not b.dtype:
        return MIXED
    if a.dtype is not torch.float32:
        return Declined(f"distance_f32 takes float32, found {str(a.dtype).removeprefix('torch.')}")
    if a.device.type != "pynq" or b.device.type != "pynq":
        return _NOT_HERE
    return None if a.numel() and b.numel() else _EMPTY


def cdist_forward(x1: torch.Tensor, x2: torch.Tensor, p: float, compute_mode: int | None) -> Any:
    slots = launch.available("distance_f32")
    if not slots:
        return _NO_UNIT
    refused = _refused(x1, x2)
    if refused is not None:
        return refused
    shape = distances_shape(x1, x2)
    if shape is None or not p >= 0 or compute_mode not in (None, 0, 1, 2):
        return _SIZES
    left, right = launch.operand(x1), launch.operand(x2)
    room = launch.room(shape, torch.float32)
    runs = distance_runs(left, right, room, p)
    launch.launch(slots, runs, reads=[left, right], writes=[room])
    return room.tensor


def euclidean_dist(x1: torch.Tensor, x2: torch.Tensor) -> Any:
    return cdist_forward(x1, x2, 2.0, None)


def dot(self: torch.Tensor, tensor: torch.Tensor) -> Any:
    slots = launch.available("distance_f32")
    if not slots:
        return _NO_UNIT
    refused = _refused(self, tensor)
    if refused is not None:
        return refused
    if self.dim() != 1 or self.shape != tensor.shape:
        return _SIZES
    left, right = launch.operand(self), launch.operand(tensor)
    room = launch.room((), torch.float32)
    launch.launch(slots, [dot_run(left, right, room)], reads=[left, right], writes=[room])
    return room.tensor
