"""The host's side of a product on kernels of fixed shape: units kept busy, tiles added up."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from pynq_torch.errors import BoardHang, PynqTorchError
from pynq_torch.hls.ap_ctrl import AP_START
from pynq_torch.waits import kernel_timeout
from pynq_torch.waits.polling import polls, wait_clock

from .tiles import Tile, Tiles, empty_tile

if TYPE_CHECKING:
    import torch

    from .matrix_mult import MatrixMult

__all__ = ["Sums", "TileUnit", "run"]

#: Seconds that units running are given to end when another one has failed.
_DRAIN_S = 2.0
#: The longest wait without a look at what else there is to do; each unit has a bound of its own.
_LOOK_S = 1.0


class Sums:
    """The result while tile products are added up in it.

    A sum is gathered in a buffer as dense as the tiles and copied to the result when it is
    complete: numpy adds dense tiles three times as fast as blocks of a wider matrix.

    Parameters
    ----------
    result : torch.Tensor
        int32 [M, N], uninitialised.
    size : int
        Rows and columns of a tile.
    depth : int
        Products that make up a block.
    slab : int
        How many of them follow each other; see `schedule`.
    """

    def __init__(self, result: torch.Tensor, size: int, depth: int, slab: int) -> None:
        self._result, self._size = result.numpy(), size
        self._depth, self._slab = depth, slab
        self._added: dict[tuple[int, int], int] = {}
        self._partial: dict[tuple[int, int], np.ndarray[Any, Any]] = {}
        self._spare: list[np.ndarray[Any, Any]] = []

    def add(self, i: int, j: int, product: Tile) -> None:
        """Add a tile product to block (i, j); sums wrap at 32 bits."""
        size, before = self._size, self._added.get((i, j), 0)
        self._added[i, j] = before + 1
        block = self._result[i * size : (i + 1) * size, j * size : (j + 1) * size]
        rows, columns = block.shape
        values = product.values[:rows]
        first = before % self._slab == 0
        last = (before + 1) % self._slab == 0 or before + 1 == self._depth
        if not (first and last):
            values = self._gather(i, j, values, first)
        if last and before < self._slab:
            np.copyto(block, values[:, :columns])
        elif last:
            np.add(block, values[:, :columns], out=block)
        if last and not first:
            self._spare.append(self._partial.pop((i, j)))

    def _gather(
        self, i: int, j: int, values: np.ndarray[Any, Any], first: bool
    ) -> np.ndarray[Any, Any]:
        """Return the sum so far, with `values` in it."""
        if first:
            whole = self._spare.pop() if self._spare else np.empty((self._size,) * 2, np.int32)
            self._partial[i, j] = whole
        partial = self._partial[i, j][: len(values)]
        if first:
            np.copyto(partial, values)
        else:
            np.add(partial, values, out=partial)
        return partial


class TileUnit:
    """One unit during one product: what it computes, and its output tiles.

    Parameters
    ----------
    unit : MatrixMult
        The compute unit.
    timeout_s : float
        Bound of each tile product, in seconds.

    Attributes
    ----------
    free : list of Tile
        Outputs that may be written to.
    running : (int, int, Tile) or None
        The block that is being computed a term of, and where to.
    """

    def __init__(self, unit: MatrixMult, timeout_s: float) -> None:
        self.unit, self._timeout_s = unit, timeout_s
        self.claimed = False
        self.free: list[Tile] = []
        self.running: tuple[int, int, Tile] | None = None
        self._deadline = 0.0

    def claim(self) -> None:
        """Take the unit, and memory for what it computes."""
        self.unit.claim()
        self.claimed = True
        for _ in range(2):  # one is added up while the other is computed
            tile = empty_tile(self.unit.tile, self.unit.device)
            tile.buffer.flush()  # the CPU never writes to it: once is enough
            self.free.append(tile)

    def start(self, i: int, j: int, in1: Tile, in2: Tile) -> None:
        """Start a tile product for block (i, j) on the unit, which stands still."""
        out = self.free.pop()
        self.running = i, j, out  # before it is: an interrupt in between must not lose a run
        self.unit.start_tile(in1, in2, out)
        self._deadline = wait_clock() + self._timeout_s

    def poll(self) -> tuple[int, int, Tile] | None:
        """Return the tile product that has ended, if one has.

        Raises
        ------
        KernelTimeout
            Its time is over.
        """
        if self.running is None:
            return None
        late = wait_clock() > self._deadline  # before it is asked: this PC may be late too
        try:
            ended, seen = self.unit.tile_ended()
        except BoardHang:
            ended, seen, late = False, AP_START, True  # it cannot end any more
        except PynqTorchError:
            self.running = None  # the board ended the run (a fault)
            raise
        if ended:
            done, self.running = self.running, None
            return done
        if late:
            self._abandon()
            raise kernel_timeout(self.unit, self.unit.cu, self._timeout_s, seen)
        return None

    def release(self) -> None:
        """Give the unit back; a run that is still running ends first, or is abandoned."""
        self.free.clear()  # a traceback may keep this object
        if not self.claimed:
            return
        if not self._stands_still():
            self._abandon()
            return
        self.claimed, self.running = False, None
        self.unit.release()

    def _stands_still(self) -> bool:
        """Wait for the end of a run whose result nobody wants any more; say whether it came."""
        if self.running is None:
            return True
        try:
            return any(self.unit.tile_ended()[0] for _ in polls(_DRAIN_S))
        except BoardHang:
            return False
        except PynqTorchError:
            return True  # this unit failed as well; the first error is on its way to the caller

    def _abandon(self) -> None:
        self.unit.abandon()  # it keeps the buffers until the unit stands still
        self.claimed, self.running = False, None


def _start_free(
    units: Sequence[TileUnit],
    left: Tiles,
    right: Tiles,
    waiting: deque[tuple[int, int, int]],
    plan: Iterator[tuple[int, int, int]],
) -> None:
    """Start the next products on the units that are free; `waiting` follows from the plan."""
    for unit in units:
        if unit.running is None and unit.free and waiting:
            i, j, k = waiting.popleft()
            waiting.extend(islice(plan, 1))
            unit.start(i, j, left.take(i, k), right.take(k, j))


def run(
    units: Sequence[TileUnit],
    left: Tiles,
    right: Tiles,
    sums: Sums,
    plan: Iterator[tuple[int, int, int]],
) -> None:
    """Compute every tile product of a plan on whichever unit is free.

    Parameters
    ----------
    units : sequence of TileUnit
        Claimed.
    left, right : Tiles
        The operands.
    sums : Sums
        Receives the products.
    plan : iterator of (int, int, int)
        See `schedule`.
    """
    waiting = deque(islice(plan, len(units)))
    ended: deque[tuple[TileUnit, tuple[int, int, Tile]]] = deque()

    def collect() -> bool:
        ended.extend((unit, done) for unit in units if (done := unit.poll()) is not None)
        return bool(ended)

    while waiting or ended or any(unit.running for unit in units):
        _start_free(units, left, right, waiting, plan)
        # One piece of the host's work at a time, so that no unit waits long for its next tile.
        if any(left.prepare(i, k) or right.prepare(k, j) for i, j, k in waiting):
            collect()
        elif ended:
            unit, (i, j, product) = ended.popleft()
            sums.add(i, j, product)
            unit.free.append(product)
            collect()
        else:
            any(collect() for _ in polls(_LOOK_S))
