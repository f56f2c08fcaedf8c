"""Operands cut into square tiles of int32 containers, for kernels of fixed shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pynq_torch.buffers.pool import pool_of

if TYPE_CHECKING:
    import torch

__all__ = ["Tile", "Tiles", "empty_tile", "schedule", "slab_of"]

#: Tiles kept in CMA memory for one product: 8 MB of the 128 MB on image v3.1, and less than the
#: buffer pool keeps, so that the next product finds them there.
RESIDENT_TILES = 32


class Tile(NamedTuple):
    """A tile in CMA memory.

    Parameters
    ----------
    buffer : PynqBuffer
        int32 [size, size].
    values : numpy.ndarray
        The same memory.
    address : int
        Its physical address.
    """

    buffer: Any
    values: np.ndarray[Any, Any]
    address: int


def empty_tile(size: int, device: Any) -> Tile:
    """Take a tile of `size` x `size` containers from the buffer pool, uninitialised."""
    buffer = pool_of(device).take((size, size), np.dtype(np.int32))
    return Tile(buffer, np.asarray(buffer), int(buffer.physical_address))


class Tiles:
    """A matrix as tiles, each widened and copied into CMA memory once.

    A tile is made when it is first asked for and dropped after its last use. Rows and columns of
    padding that reach no valid element of a product keep whatever the memory held.

    Parameters
    ----------
    matrix : torch.Tensor
        int8, any strides.
    size : int
        Rows and columns of a tile.
    uses : int
        How often each tile is taken.
    device : pynq.Device
        Whose CMA memory.
    zero_columns : bool
        Fill columns of padding with zeros: those of the left operand are terms of every sum.
    """

    def __init__(
        self, matrix: torch.Tensor, size: int, uses: int, device: Any, *, zero_columns: bool = False
    ) -> None:
        self._matrix: np.ndarray[Any, Any] = matrix.detach().numpy()
        self._size, self._uses = size, uses
        self._device, self._zero_columns = device, zero_columns
        self._made: dict[tuple[int, int], Tile] = {}
        self._left: dict[tuple[int, int], int] = {}

    def prepare(self, row: int, column: int) -> bool:
        """Make a tile ahead of its use; return whether there was anything to do."""
        if (row, column) in self._made:
            return False
        self._made[row, column] = self._widen(row, column)
        self._left[row, column] = self._uses
        return True

    def take(self, row: int, column: int) -> Tile:
        """Return a tile for one use."""
        self.prepare(row, column)
        at = row, column
        self._left[at] -= 1
        if self._left[at]:
            return self._made[at]
        del self._left[at]
        return self._made.pop(at)

    def drop(self) -> None:
        """Give every tile back to the pool, also where a traceback keeps this object."""
        self._made.clear()

    def _widen(self, row: int, column: int) -> Tile:
        size = self._size
        block = self._matrix[row * size : (row + 1) * size, column * size : (column + 1) * size]
        rows, columns = block.shape
        tile = empty_tile(size, self._device)
        # numpy, because torch gives a whole tile to several threads, which wait for each other
        # longer than the work takes.
        np.copyto(tile.values[:rows, :columns], block)
        if self._zero_columns and columns < size:
            tile.values[:rows, columns:] = 0
        tile.buffer.flush()
        return tile


def slab_of(rows: int, columns: int) -> int:
    """Return how many tiles along K are worked on at a time, for `rows` x `columns` sums."""
    return max(1, RESIDENT_TILES // (min(rows, columns) + 1))


def schedule(rows: int, columns: int, depth: int) -> Iterator[tuple[int, int, int]]:
    """Yield the tile products (i, j, k) of a product, in an order that needs few tiles at a time.

    Parameters
    ----------
    rows, columns, depth : int
        Tiles along M, N and K.

    Notes
    -----
    K is cut into slabs. Within one, the tiles of the shorter side stay while those of the longer
    side pass by, and the products of one sum follow each other, so that the sum stays in the
    CPU's cache. Every tile belongs to one slab: none is needed again later.
    """
    short, long = sorted((rows, columns))
    slab = slab_of(rows, columns)
    for first in range(0, depth, slab):
        for outer in range(long):
            for inner in range(short):
                i, j = (outer, inner) if columns == short else (inner, outer)
                for k in range(first, min(first + slab, depth)):
                    yield i, j, k
