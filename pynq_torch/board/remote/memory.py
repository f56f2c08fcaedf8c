"""Buffers of a served board: local arrays, moved when they differ from what the board has.

What is known of the board's memory is kept beside each buffer. Only runs and DMAs change it there,
so it stays known until a run is started that names the buffer among its results, or something of
which nobody knows what it writes (`RemoteMemory.forget`).
"""

from __future__ import annotations

import math
import mmap
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from pynq_torch.board.cma_buffer import Allocation, VirtualBuffer, checked_layout
from pynq_torch.errors import BoardError

from .steps import Steps

__all__ = ["Piece", "RemoteMemory"]


@dataclass(eq=False)
class RemoteAllocation(Allocation):
    """A buffer on the board, its local memory, and what is known of the former."""

    handle: str = ""
    local: Any = None  #: uint8, what the program reads and writes
    board: Any = None  #: uint8, what the board's memory has, as far as `known`
    known: Any = None  #: bool, of each byte
    epoch: int = 0  #: of `RemoteMemory` when `known` was right


class Piece(NamedTuple):
    """Bytes of a buffer."""

    of: RemoteAllocation
    start: int
    nbytes: int

    @property
    def span(self) -> slice:
        """Where they are."""
        return slice(self.start, self.start + self.nbytes)


class RemoteBuffer(VirtualBuffer):
    """A buffer of a served board: of a view with gaps only what it shows is moved.

    `PynqBuffer.flush` takes as many bytes as a view has elements, from its first on: too few there.
    """

    bo: Any

    def flush(self) -> None:
        """Let the board have what the program wrote."""
        self._own()
        for piece in self._rows():
            self.device.memory.flush(piece)

    def invalidate(self) -> None:
        """Let the program see what the board has."""
        self._own()
        self.device.memory.fetch(self.span)
        for piece in self._rows():
            self.device.memory.show(piece)

    @property
    def span(self) -> Piece:
        """From the first byte to the last."""
        steps = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        if not self.size:
            return Piece(self.bo, self.offset, 0)
        low, high = (sum(take(0, step) for step in steps) for take in (min, max))
        return Piece(self.bo, self.offset + low, high - low + self.itemsize)

    def _rows(self) -> list[Piece]:
        """Return the parts without gaps; all of it where elements stand alone."""
        row = self[(0,) * (self.ndim - 1)] if self.ndim and self.size else self
        if self.flags.c_contiguous or not row.flags.c_contiguous or min(self.strides) < 0:
            return [self.span]
        starts = np.zeros(self.shape[:-1], np.int64)
        for axis, step in enumerate(self.strides[:-1]):
            places = np.arange(self.shape[axis]) * step
            starts += places.reshape([-1 if a == axis else 1 for a in range(self.ndim - 1)])
        return [Piece(self.bo, self.offset + int(at), row.nbytes) for at in starts.flat]


class RemoteMemory:
    """The CMA memory of a served board, as `pynq.allocate` and the buffer pool use it."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._lock = threading.RLock()
        self._live: dict[int, RemoteAllocation] = {}
        self._epoch = 0
        #: Something runs that may write anywhere, e.g. a DMA: nothing is known until a download.
        self.busy = False
        self.gone = ""

    def allocate(
        self, shape: int | tuple[int, ...], dtype: DTypeLike = "u4", *, device: Any = None, **_: Any
    ) -> VirtualBuffer:
        """Allocate a buffer; the CPU's view of it is zeros until it is invalidated.

        Raises
        ------
        CmaExhausted
            The board has no contiguous memory for it.
        """
        if self.gone:
            raise BoardError(f"no memory can be allocated: it {self.gone}; call use_board() again")
        dims, kind = checked_layout(shape, dtype)
        nbytes = math.prod(dims) * kind.itemsize
        handle, address = self._steps.allocate(max(nbytes, 1))
        place = mmap.mmap(-1, max(nbytes, 1))
        made = RemoteAllocation(address, nbytes, nbytes, 0, dims, kind, handle=handle)
        made.local = np.frombuffer(place, np.uint8, nbytes)
        made.board = np.zeros(nbytes, np.uint8)
        made.known = np.zeros(nbytes, np.bool_)
        known = {"device": device, "device_address": address, "coherent": False}
        buffer = RemoteBuffer(dims, kind, bo=made, buffer=place, offset=0, **known)
        buffer.memory = self
        with self._lock:
            self._live[address] = made
        return buffer

    def release(self, allocation: RemoteAllocation) -> None:
        """Free a buffer: with the next message, since this may run inside the collector."""
        if not allocation.freed:
            allocation.freed = True
            self._live.pop(allocation.address, None)
            if not allocation.gone:
                self._steps.free(allocation.handle)

    @property
    def used_bytes(self) -> int:
        """Bytes of this program's buffers."""
        return sum(each.nbytes for each in self.buffers())

    def buffers(self) -> list[RemoteAllocation]:
        """Return the live buffers."""
        return list(self._live.values())

    def disown(self, why: str) -> None:
        """Note that the board has no such memory any more; values stay readable."""
        self.gone = why
        for each in self.buffers():
            each.gone = why

    # ---- moving ------------------------------------------------------------------------------

    def flush(self, piece: Piece) -> None:
        """Let the board have what the program wrote: what differs from what it has."""
        of, span = piece.of, piece.span
        with self._lock:
            new, old = of.local[span], of.board[span]
            if self._is_known(piece):
                differs = new != old
                if not differs.any():
                    return
                first, last = int(differs.argmax()), len(differs) - int(differs[::-1].argmax())
                span = slice(piece.start + first, piece.start + last)
            content = of.local[span].tobytes()
            of.board[span] = np.frombuffer(content, np.uint8)
            self._note(piece)
            self._steps.upload(of.handle, span.start, content, at_once=self.busy)

    def fetch(self, piece: Piece) -> None:
        """Find out what the board has, where that is not known."""
        with self._lock:
            if not self._is_known(piece):
                self.put(piece, self._steps.download(piece.of.handle, piece.start, piece.nbytes))

    def show(self, piece: Piece) -> None:
        """Let the program see what was fetched."""
        piece.of.local[piece.span] = piece.of.board[piece.span]

    def put(self, piece: Piece, content: bytes) -> None:
        """Note what the board has."""
        with self._lock:
            piece.of.board[piece.span] = np.frombuffer(content, np.uint8)
            self._note(piece)

    # ---- what is known -----------------------------------------------------------------------

    def written(self, pieces: Iterable[Piece]) -> None:
        """Note that a run may write there."""
        with self._lock:
            for piece in pieces:
                piece.of.known[piece.span] = False

    def forget(self, busy: bool) -> None:
        """Note that anything may have been written; while `busy`, that it goes on."""
        with self._lock:
            self._epoch += 1
            self.busy = busy

    def _is_known(self, piece: Piece) -> bool:
        if piece.of.epoch != self._epoch:
            piece.of.known[:] = False
            piece.of.epoch = self._epoch
        return not self.busy and bool(piece.of.known[piece.span].all())

    def _note(self, piece: Piece) -> None:
        """Note that what the board has is known."""
        self._is_known(piece)  # brings the epoch up to date
        piece.of.known[piece.span] = True
