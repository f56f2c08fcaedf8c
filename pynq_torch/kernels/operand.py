"""Tensors as kernels see them: a physical address, sizes, and strides in elements."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pynq_torch import buffers

from .arguments import check_tensor

if TYPE_CHECKING:
    import torch

__all__ = ["Operand", "float_bits", "in_cma", "result_in_cma", "word"]


class Operand:
    """A tensor where a kernel can reach it.

    Parameters
    ----------
    tensor : torch.Tensor
        Kept alive.
    address : int
        Physical, of its first element.
    memory : object
        What ``flush()`` and ``invalidate()`` are called on: a PynqBuffer, or the memory of a tensor
        on device "pynq".

    Attributes
    ----------
    shape, strides : tuple of int
        In elements.
    itemsize : int
        Bytes of an element.
    """

    __slots__ = ("address", "itemsize", "memory", "shape", "strides", "tensor")

    def __init__(self, tensor: torch.Tensor, address: int, memory: Any) -> None:
        self.tensor = tensor
        self.address = address
        self.memory = memory
        self.shape: tuple[int, ...] = tuple(tensor.shape)
        self.strides: tuple[int, ...] = tensor.stride()
        self.itemsize: int = tensor.element_size()


def in_cma(
    cu: str, name: str, tensor: torch.Tensor, dtype: torch.dtype, device: Any = None
) -> Operand:
    """Return a CPU tensor for a kernel: as it lies in CMA memory, or copied there.

    Parameters
    ----------
    cu, name : str
        The compute unit and the argument, for messages.
    tensor : torch.Tensor
        On the CPU; any shape and strides where it lies in CMA memory.
    dtype : torch.dtype
        The kernel's.
    device : pynq.Device, optional
        Default: the active one.

    Raises
    ------
    ArgumentError
        It is no CPU tensor of that dtype.
    """
    check_tensor(cu, name, tensor, dtype)
    own = buffers.buffer_of(tensor)
    if own is None:
        own = buffers.to_buffer(tensor, device=device)
        tensor = buffers.as_tensor(own, dtype)
    return Operand(tensor, int(own.device_address), own)


def result_in_cma(shape: Sequence[int], dtype: torch.dtype, device: Any = None) -> Operand:
    """Return room for a kernel's result: a new contiguous CPU tensor in CMA memory."""
    buffer = buffers.empty(tuple(shape), dtype, device=device)
    return Operand(buffers.as_tensor(buffer, dtype), int(buffer.device_address), buffer)


def word(value: int) -> int:
    """Return a signed 32-bit value as a register takes it (two's complement).

    Raises
    ------
    OverflowError
        It has more than 32 bits.
    """
    if not -(1 << 31) <= value < 1 << 32:
        raise OverflowError(f"{value} does not fit a register of 32 bits")
    return value & 0xFFFFFFFF


def float_bits(value: float) -> int:
    """Return the bits of a number as float32, as a register takes it; too large is infinite."""
    try:
        return int.from_bytes(struct.pack("<f", value), "little")
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000
