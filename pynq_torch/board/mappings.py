"""Where this process sees CMA memory, and what happens to views of a buffer that was freed.

A freed buffer's numpy views, tensors and memoryviews stay usable for Python: nothing can take them
away. Its pages are therefore not given to another buffer while one of them lives. Where CMA has no
other room, the views are moved to memory of their own with the values they have, and the pages are
free: a write through an old view never reaches another buffer.
"""

from __future__ import annotations

import ctypes
import mmap
import weakref
from dataclasses import dataclass, field
from typing import Any

PAGE = 4096
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
    *(ctypes.c_int, ctypes.c_int, ctypes.c_long),
]
_READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
_MAP_FIXED = 0x10  # Linux, on x86 and Arm; the mmap module does not have it
_FAILED = ctypes.c_void_p(-1).value


def pages_of(nbytes: int) -> int:
    """Return ``nbytes`` rounded up to whole pages."""
    return -(-nbytes // PAGE) * PAGE


@dataclass(frozen=True)
class Window:
    """A physical memory: its address range and where it is in the shared file."""

    name: str
    base: int
    nbytes: int
    file_offset: int
    map: mmap.mmap = field(repr=False)

    def contains(self, address: int, nbytes: int) -> bool:
        """Say whether all of ``nbytes`` at ``address`` are inside."""
        return self.base <= address and address + nbytes <= self.base + self.nbytes


class CmaMapping:
    """The CMA region in the address space of this process; the file has it at its address."""

    def __init__(self, fd: int, base: int, nbytes: int) -> None:
        self._fd = fd
        self._base = base
        self._map = mmap.mmap(fd, nbytes, offset=base)
        # Ranges of the mapping that show copies to the views of freed buffers: [start, end).
        self._moved: list[tuple[weakref.ref[Any], int, int]] = []

    def place(self, start: int, nbytes: int) -> tuple[mmap.mmap, int]:
        """Return the mapping to see ``nbytes`` at physical address ``start`` in, and the offset."""
        self._restore()
        end = start + nbytes
        if any(start < last and first < end for _, first, last in self._moved):
            return mmap.mmap(self._fd, pages_of(nbytes), offset=start), 0
        return self._map, start - self._base

    def move_away(self, buffer: Any, start: int, nbytes: int) -> bool:
        """Let the views of a freed buffer see a copy of its values; return whether that worked."""
        size = pages_of(nbytes)
        address = buffer.__array_interface__["data"][0]
        values = ctypes.string_at(address, size)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
        if _libc.mmap(address, size, _READ_WRITE, flags, -1, 0) == _FAILED:
            return False  # the system has no memory for the copy
        ctypes.memmove(address, values, size)
        if address == self._address + start - self._base:
            self._moved.append((weakref.ref(buffer), start, start + size))
        return True

    @property
    def _address(self) -> int:
        return ctypes.addressof(ctypes.c_char.from_buffer(self._map))

    def _restore(self) -> None:
        """Show the region again where the last view of a freed buffer has gone."""
        for item in [item for item in self._moved if item[0]() is None]:
            _, start, end = item
            address = self._address + start - self._base
            flags = mmap.MAP_SHARED | _MAP_FIXED
            if _libc.mmap(address, end - start, _READ_WRITE, flags, self._fd, start) != _FAILED:
                self._moved.remove(item)
