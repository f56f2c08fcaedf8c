"""Which memory belongs to which live CMA buffer, and whether it was freed."""

from __future__ import annotations

import bisect
import threading
import weakref
from typing import Any

from pynq_torch.errors import BufferFreed

from .pool import Lease

__all__ = ["check_alive", "gone", "places"]


class Places:
    """Which virtual addresses belong to which live buffer; tensors know only their address."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._starts: list[int] = []
        self._buffers: dict[int, weakref.ref[Any]] = {}

    def add(self, buffer: Any) -> None:
        start = int(buffer.virtual_address)
        if not buffer.nbytes:
            return
        with self._lock:
            known = self._buffers.get(start)
            held = known() if known is not None else None
            if held is buffer:
                return
            if held is not None and held.nbytes >= buffer.nbytes and not _freed(held):
                return
            if known is None:
                bisect.insort(self._starts, start)
            self._buffers[start] = weakref.ref(buffer)

    def find(self, address: int, nbytes: int) -> tuple[Any, int]:
        """Return the buffer that holds the bytes, ``None`` without one, and where it starts."""
        with self._lock:
            index = bisect.bisect_right(self._starts, address) - 1
            while index >= 0:
                start = self._starts[index]
                buffer = self._buffers[start]()
                if buffer is None:
                    del self._buffers[start]
                    self._starts.pop(index)
                elif address + nbytes <= start + buffer.nbytes:
                    return buffer, start
                elif address >= start + buffer.nbytes:
                    return None, 0
                index -= 1
        return None, 0


places = Places()


def _freed(buffer: Any) -> bool:
    """Whether the memory of a PynqBuffer was given back explicitly; views follow their base."""
    if isinstance(buffer, Lease):
        # The lease knows for its views as well; the buffer beneath it belongs to the pool alone.
        return buffer.freed or bool(getattr(buffer.bo, "freed", False))  # type: ignore[attr-defined]
    here = buffer
    while here is not None:
        # Not by hasattr on everything: a base may be a memoryview or a mmap.
        if getattr(here, "freed", False):
            return True
        bo = getattr(here, "bo", None)
        if bo is None:
            return False
        if getattr(bo, "freed", False):
            return True
        here = here.base
    return False


def gone(buffer: Any) -> bool:
    """Whether the buffer's board was closed: the values are there, for the PL it is no memory."""
    return bool(getattr(getattr(buffer, "bo", None), "gone", ""))


def check_alive(buffer: Any) -> None:
    """Raise :class:`BufferFreed` where `buffer` was freed.

    On a board a freed buffer is unmapped: touching it ends the process, so ask before.
    """
    if _freed(buffer):
        raise BufferFreed(
            f"this CMA buffer ({buffer.dtype}[{'x'.join(map(str, buffer.shape))}]) was freed and "
            "is used again; keep it alive as long as it is used: no freebuffer(), no leaving its "
            "`with` block"
        )
