"""Weights in the order in which kernel ``net`` reads them; inputs, as a message describes them."""

from __future__ import annotations

from typing import Any

import torch

from pynq_torch.kernels.net.format import OUTS

__all__ = ["blocks", "described", "pack", "unpack"]


def blocks(outs: int) -> list[int]:
    """Return how many output channels are worked on at a time: 16, fewer at the end."""
    return [min(OUTS, outs - first) for first in range(0, outs, OUTS)]


def pack(weight: torch.Tensor, groups: int) -> torch.Tensor:
    """Return weights in memory order.

    Parameters
    ----------
    weight : torch.Tensor
        int8 [outs, channels of a group, rows, columns].
    groups : int
        Of the convolution.

    Returns
    -------
    torch.Tensor
        int8, 1 dimension: for each group and each block of 16 output channels, for each channel,
        row and column of the window, the weights of the block side by side.
    """
    outs = weight.shape[0] // groups
    matrix = weight.reshape(groups, outs, -1).transpose(1, 2)
    parts = torch.split(matrix, blocks(outs), 2)
    return torch.cat([part.reshape(groups, -1) for part in parts], 1).flatten()


def unpack(packed: torch.Tensor, groups: int, outs: int, taps: int) -> torch.Tensor:
    """Return weights int8 [groups, outs, taps] of a group, from memory order; see `pack`."""
    parts = torch.split(packed.reshape(groups, outs * taps), [n * taps for n in blocks(outs)], 1)
    return torch.cat([part.reshape(groups, taps, -1).transpose(1, 2) for part in parts], 1)


def described(value: Any) -> str:
    """Return the type and shape of an input, e.g. ``"float32 [N, 3, 8, 8]"``."""
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    shape = ", ".join(["N", *map(str, value.shape[1:])] if value.ndim else [])
    return f"{str(value.dtype).removeprefix('torch.')} [{shape}]"
