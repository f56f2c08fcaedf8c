"""A stretch of CMA memory, and a block: such memory prepared for tensors of one kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .dlpack import CPU, PYNQ, Importable

__all__ = ["ARENA_BYTES", "Arena", "Block", "Idle", "Lent", "Memory"]

#: Bytes that small tensors share.
ARENA_BYTES = 1 << 16


class Memory:
    """A stretch of a CMA buffer; a piece of an arena is free again with the last reference.

    Parameters
    ----------
    buffer : PynqBuffer
        Kept alive.
    device : pynq.Device
        Whose memory.
    offset, nbytes : int
        Where in the buffer, and the size with rounding.
    arena : Arena, optional
        Where it is a piece of one.
    """

    __slots__ = (
        *("_arena", "_buffer", "_lines", "_window"),
        *("address", "device", "nbytes", "offset", "physical"),
    )

    def __init__(
        self, buffer: Any, device: Any, offset: int, nbytes: int, arena: Arena | None = None
    ) -> None:
        self._arena, self._buffer = arena, buffer
        self._window = None if arena is not None else buffer
        self._lines: tuple[Any, ...] | None = None
        self.device = device
        self.offset = offset
        self.nbytes = nbytes
        self.address = int(buffer.virtual_address) + offset
        self.physical = int(buffer.device_address) + offset

    @property
    def window(self) -> Any:
        """The PynqBuffer over just this memory."""
        if self._window is None:
            self._window = self._buffer[self.offset : self.offset + self.nbytes]
        return self._window

    def flush(self) -> None:
        """Write the CPU's cache back, where the hardware does not keep it coherent.

        As `PynqBuffer.flush`, which looks everything up and asks whether it was freed: a quarter
        of what a small product costs.
        """
        lines = self._lines
        if lines is None:
            lines = self._look_up()
        if lines:
            self.device.flush(*lines)

    def invalidate(self) -> None:
        """Drop the CPU's cache, where the hardware does not keep it coherent."""
        lines = self._lines
        if lines is None:
            lines = self._look_up()
        if lines:
            self.device.invalidate(*lines)

    def _look_up(self) -> tuple[Any, ...]:
        buffer = self.window
        own = (buffer.bo, buffer.offset, buffer.virtual_address, buffer.nbytes)
        self._lines = () if buffer.coherent else own
        return self._lines

    def __del__(self) -> None:
        if self._arena is not None:
            self._arena.free.append(self.offset)


class Lent(Memory):
    """A CMA buffer that belongs to the caller, who may free it."""

    __slots__ = ()

    def flush(self) -> None:
        """Write the CPU's cache back."""
        self.window.flush()

    def invalidate(self) -> None:
        """Drop the CPU's cache."""
        self.window.invalidate()


class Arena:
    """A CMA buffer cut into pieces of one size."""

    def __init__(self, buffer: Any, piece: int) -> None:
        self.buffer, self.piece = buffer, piece
        self.free = list(range(0, ARENA_BYTES, piece))


class Idle(list["Block"]):
    """Blocks of one kind that wait for the next tensor.

    Parameters
    ----------
    open : bool
        ``False`` where no tensor will ask it: blocks that come back are given up.
    """

    def __init__(self, *, open: bool = True) -> None:
        self.open = open


class Block:
    """Memory prepared for tensors of one shape, strides and dtype.

    Attributes
    ----------
    cpu : torch.Tensor
        The memory as a CPU tensor.
    shape, dtype : torch.Size and torch.dtype
        Of that tensor.
    row_major : bool
        Whether its elements are in order.
    at : int
        Address of the description that torch imports.
    array : numpy.ndarray or None
        Its elements in a row, where `memory.array` has been asked for them.
    idle : Idle
        Where it waits for the next tensor of its kind; all blocks of a kind share the list.
    memory : Memory or None
        ``None`` where torch itself made a storage over memory of this device, as ``torch.load`` of
        an old file does for the time of a copy.
    """

    __slots__ = (
        *("_described", "array", "at", "cpu", "dtype"),
        *("idle", "memory", "row_major", "shape"),
    )

    def __init__(
        self,
        memory: Memory | None,
        address: int,
        shape: Sequence[int],
        strides: Sequence[int],
        dtype: torch.dtype,
        idle: Idle,
    ) -> None:
        self._described = Importable(address, shape, strides, dtype, PYNQ)
        self.at = self._described.at
        self.cpu = Importable(address, shape, strides, dtype, CPU).tensor()
        self.shape = self.cpu.shape
        self.dtype = dtype
        self.row_major = self.cpu.is_contiguous()
        self.array: Any = None
        self.idle = idle
        self.memory = memory

    def spoil(self) -> None:
        """Keep the block from other tensors: `cpu` was described in another way by a kernel."""
        self.idle = Idle(open=False)
