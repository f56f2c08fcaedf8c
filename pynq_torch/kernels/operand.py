"""Tensors as kernels see them: a physical address, sizes, and strides in elements."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pynq.buffer import PynqBuffer

from pynq_torch import buffers

from .arguments import check_tensor

if TYPE_CHECKING:
    import torch

__all__ = [
    "Operand",
    "float_bits",
    "in_cma",
    "result_in_cma",
    "rows_in_cma",
    "vector_in_cma",
    "word",
    "zeros",
]


class Operand:
    """A tensor where a kernel can reach it.

    Parameters
    ----------
    tensor : torch.Tensor or PynqBuffer
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
    constant : bool
        Whether the memory will not be written to while this object lives, so that the CPU's cache
        is written back once; `flushed` says that it was.
    """

    __slots__ = (
        "address",
        "constant",
        "flushed",
        "itemsize",
        "memory",
        "shape",
        "strides",
        "tensor",
    )

    def __init__(self, tensor: Any, address: int, memory: Any) -> None:
        self.tensor: torch.Tensor = tensor  # or a buffer, which has what is used of one
        self.address = address
        self.memory = memory
        self.shape: tuple[int, ...] = tuple(tensor.shape)
        self.itemsize: int = tensor.itemsize
        self.strides: tuple[int, ...]
        if isinstance(tensor, np.ndarray):
            self.strides = tuple(s // tensor.itemsize for s in tensor.strides)
        else:
            self.strides = tensor.stride()
        self.constant = self.flushed = False

    @property
    def row_stride(self) -> int | None:
        """Elements from row to row of a matrix; ``None`` where those of a row are apart."""
        (rows, columns), (along, across) = self.shape, self.strides
        if columns > 1 and across != 1:
            return None
        if rows <= 1:
            return columns
        return along if along >= columns else None


def in_cma(
    cu: str,
    name: str,
    tensor: torch.Tensor,
    dtype: torch.dtype | None = None,
    device: Any = None,
    **expected: Any,
) -> Operand:
    """Return a CPU tensor for a kernel: as it is in CMA memory, or copied there.

    Parameters
    ----------
    cu, name : str
        The compute unit and the argument, for messages.
    tensor : torch.Tensor
        On the CPU; any shape and strides where it is in CMA memory.
    dtype : torch.dtype, optional
        The kernel's. Default: float32.
    device : pynq.Device, optional
        Default: the active one.
    **expected
        ``ndim`` or ``shape``, see `check_tensor`.

    Raises
    ------
    ArgumentError
        It is no CPU tensor of that dtype and shape.
    """
    check_tensor(cu, name, tensor, dtype, **expected)
    own = buffers.buffer_of(tensor)
    if own is None:
        own = buffers.to_buffer(tensor, device=device)
        tensor = buffers.as_tensor(own, tensor.dtype)
    return Operand(tensor, int(own.device_address), own)


def result_in_cma(
    shape: Sequence[int], dtype: torch.dtype | None = None, device: Any = None
) -> Operand:
    """Return an uninitialised result: a new contiguous CPU tensor in CMA memory."""
    import torch

    dtype = dtype or torch.float32
    buffer = buffers.empty(tuple(shape), dtype, device=device)
    return Operand(buffers.as_tensor(buffer, dtype), int(buffer.device_address), buffer)


def zeros(shape: tuple[int, ...], dtype: torch.dtype, out: torch.Tensor | None) -> torch.Tensor:
    """Return the result where there is nothing to compute: zeros, in `out` if it is given."""
    import torch

    return torch.zeros(shape, dtype=dtype) if out is None else out.zero_()


def rows_in_cma(matrix: Any, device: Any) -> Operand:
    """Return a matrix in CMA memory, elements of a row side by side; copied only if need be."""
    own = matrix if isinstance(matrix, PynqBuffer) else buffers.buffer_of(matrix)
    place = None if own is None else buffer_operand(own)
    if place is not None and place.row_stride is not None:
        return place
    own = buffers.to_buffer(matrix, device=device)
    return Operand(own, int(own.physical_address), own)


def vector_in_cma(vector: Any, device: Any) -> Operand:
    """Return a vector in CMA memory, elements side by side."""
    contiguous = isinstance(vector, PynqBuffer) and vector.flags.c_contiguous
    if contiguous and (place := buffer_operand(vector)) is not None:
        return place
    own = buffers.to_buffer(vector, device=device)
    return Operand(own, int(own.physical_address), own)


def buffer_operand(buffer: PynqBuffer) -> Operand | None:
    """Return a buffer as an operand; ``None`` for an array that is no CMA memory.

    Raises
    ------
    BufferFreed
        It was freed.
    """
    buffers.check_alive(buffer)
    address: int | None = buffer.physical_address
    return None if address is None else Operand(buffer, address, buffer)


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
