"""What a layer of a network is to kernel ``net``: an instruction without its addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch.fx import Node

from pynq_torch.kernels.net.format import CONV, FLOAT, MEAN, SUM

__all__ = ["Declined", "Layer", "Steps", "copy_of", "plane"]


class Declined(Exception):
    """Why kernel ``net`` cannot do a layer; the text is for the reader of ``explain()``."""


@dataclass(frozen=True)
class Steps:
    """How a tensor is quantised: ``x ~ (x_q - zero) * scale``.

    Attributes
    ----------
    node : torch.fx.Node
        The node whose value is the int8 tensor.
    scale, zero : float, int
        Its steps.
    shape : tuple of int
        Of one image.
    """

    node: Node
    scale: float
    zero: int
    shape: tuple[int, ...]

    def same(self, other: Steps) -> bool:
        """Whether two tensors have the same scale and zero point."""
        return (self.scale, self.zero) == (other.scale, other.zero)


@dataclass(frozen=True)
class Layer:
    """A layer on the PL.

    Attributes
    ----------
    name : str
        For people: the module's.
    kind : str
        For people; ``"view"`` and ``"cat"`` are no instructions.
    result : Steps
        What it gives; of no meaning where it is float32.
    inputs : tuple of Steps
        What it reads.
    opcode : int
        See `pynq_torch.kernels.net.format`.
    window : mapping
        Members of an instruction: groups, window, bounds.
    weight : torch.Tensor or None
        int8 [outs, channels of a group, rows, columns].
    table : torch.Tensor
        int32 [n, 2]: bias and bits of the multiplier.
    image : tuple of int, optional
        Channels, height and width as which the input is read; default: its own.
    real : bool
        Whether the result is float32.

    Of a convolution that ends in an addition the other operand is the second input, and the last
    rows of the table are the addition's.
    """

    name: str
    kind: str
    result: Steps
    inputs: tuple[Steps, ...]
    opcode: int = 0
    window: Mapping[str, int] = field(default_factory=dict)
    weight: torch.Tensor | None = None
    table: torch.Tensor = field(default_factory=lambda: torch.empty(0, 2, dtype=torch.int32))
    image: tuple[int, int, int] | None = None
    real: bool = False

    @property
    def flags(self) -> int:
        """Flags of the instruction."""
        return FLOAT * self.real | SUM * (self.opcode == CONV and len(self.inputs) == 2)

    @property
    def macs(self) -> int:
        """Products of one image; 0 where there are no weights."""
        if self.opcode != CONV or self.weight is None:
            return 0
        _, rows, columns = plane(self.result.shape)
        return self.weight.numel() * rows * columns


def plane(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return channels, rows and columns of one image.

    Raises
    ------
    Declined
        It has more dimensions.
    """
    if len(shape) > 3:
        raise Declined(f"an image of {len(shape)} dimensions; the kernel has at most 3")
    if len(shape) == 2:
        return shape[0], 1, shape[1]
    channels, rows, columns = (*shape, 1, 1, 1)[:3]
    return channels, rows, columns


def entries(bias: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Return rows of the table: biases and the bits of the multipliers.

    Raises
    ------
    Declined
        A bias has more than 32 bits, or a multiplier is not finite.
    """
    if bias.abs().max() >= 1 << 31 or not factor.float().isfinite().all():
        raise Declined("its scales lead to a bias or a multiplier that 32 bits cannot hold")
    return torch.stack([bias.to(torch.int32), factor.float().view(torch.int32)], 1)


def copy_of(source: Steps, result: Steps, name: str, **bounds: int) -> Layer:
    """Return a layer that gives its input in other steps: a mean over one element."""
    factor = torch.tensor([source.scale / result.scale], dtype=torch.float64)
    # Both are contiguous, so that the input can be read in the shape of the result.
    image = plane(result.shape)
    return Layer(
        name,
        "copy" if source.same(result) else "scale",
        result,
        (source,),
        MEAN,
        {"groups": image[0], **bounds},
        table=entries(torch.tensor([-source.zero]), factor),
        image=image,
    )
