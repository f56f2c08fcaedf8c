"""The buffers that pynq hands out on a virtual board."""

from __future__ import annotations

import mmap
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from pynq.buffer import PynqBuffer

from pynq_torch.errors import BufferFreed, BusError


@dataclass
class Allocation:
    """A piece of CMA memory; ``pynq`` calls it the buffer object."""

    address: int
    nbytes: int  #: what was asked for
    reserved: int  #: what is taken, guard page included
    slot: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    copy: mmap.mmap | None = None  #: the CPU's cached copy, where it is apart from DDR
    #: the array handed out: every view, tensor and memoryview keeps it alive
    holder: weakref.ref[Any] | None = None
    freed: bool = False
    gone: str = ""  #: why its memory is no longer that of the board in use

    @property
    def end(self) -> int:
        """First address behind the buffer."""
        return self.address + self.nbytes

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"buffer at 0x{self.address:08x} ({self.dtype}[{shape}], {self.nbytes} bytes)"


class VirtualBuffer(PynqBuffer):
    """A ``PynqBuffer`` that knows when it has been freed."""

    def __array_finalize__(self, obj: Any) -> None:
        super().__array_finalize__(obj)
        if (
            isinstance(obj, PynqBuffer)
            and obj.bo is not None
            and 0 <= self.offset < max(obj.bo.nbytes, 1)
        ):
            return
        # A result of arithmetic is ordinary memory. pynq would give it an address computed from
        # the distance of two unrelated arrays; no address at all is what is true.
        self.bo = None
        self.coherent = None
        self.device_address = None

    def _live(self) -> None:
        bo = self.bo
        if bo is not None and bo.freed:
            raise BufferFreed(
                f"the {bo} was freed and is used again. Keep the buffer alive as long as it is "
                "used: do not call freebuffer() or leave its `with` block before."
            )

    @property
    def device_address(self) -> int | None:
        """The physical address; ``None`` for an array that is no CMA memory."""
        self._live()
        return self._device_address

    @device_address.setter
    def device_address(self, value: int | None) -> None:
        self._device_address = value

    @property
    def physical_address(self) -> int | None:
        """The address for the PL; `BufferFreed` where the board was closed or is another's."""
        bo = self.bo
        if bo is not None and bo.gone:
            raise BufferFreed(
                f"the {bo} {bo.gone}: its values can be read, but the PL of the board in use has "
                "other memory there. Allocate a new buffer and copy the values into it."
            )
        return self.device_address

    def __getitem__(self, key: Any) -> Any:
        self._live()
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._live()
        super().__setitem__(key, value)

    def flush(self) -> None:
        """Write the CPU's cached copy of the whole buffer to DDR."""
        self._own()
        super().flush()

    def invalidate(self) -> None:
        """Drop the CPU's cached copy of the whole buffer."""
        self._own()
        super().invalidate()

    def _own(self) -> None:
        self._live()
        if self.bo is None:
            raise BusError(
                "this array is no CMA memory: it is a copy of a buffer, or the result of "
                "arithmetic on one. Write the result into a buffer from pynq.allocate() "
                "(buffer[:] = ...) and use that."
            )

    def freebuffer(self) -> None:
        """Give the memory back; views of the buffer may not be used afterwards.

        A numpy or torch view of it keeps the values and shares no memory with later buffers.
        """
        memory = self.__dict__.get("memory")
        allocation: Allocation | None = self.__dict__.get("bo")
        if memory is not None and allocation is not None and not allocation.freed:
            self.freed = True
            self.flags.writeable = False  # for what writes without an index: ``buffer += 1``
            memory.release(allocation)

    def __reduce__(self) -> Any:
        # A copy elsewhere is no CMA memory: pickle the values.
        return np.asarray(self).copy().__reduce__()


def checked_layout(
    shape: int | tuple[int, ...], dtype: DTypeLike
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the dimensions and the type of a buffer's elements, or raise what is wrong."""
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise TypeError(f"a CMA buffer cannot hold {kind}: the PL reads bytes, not Python objects")
    dims = (shape,) if isinstance(shape, (int, np.integer)) else shape
    dims = tuple(int(d) for d in dims)
    if any(d < 0 for d in dims):
        raise ValueError(f"shape {dims} has a negative dimension")
    return dims, kind
