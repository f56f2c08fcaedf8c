"""Driver of ``matrix_mult``: kernels that multiply 256x256 tiles, with products of any size.

Bitstreams with such kernels are published for the PYNQ-Z2: registers ``in1 in2 out_r`` and no
sizes, int8 values in int32 containers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pynq_torch import buffers, events
from pynq_torch.errors import BoardHang, PynqTorchError
from pynq_torch.hls.ap_ctrl import has_ended
from pynq_torch.waits.polling import check_timeout

from . import calls
from .arguments import ArgumentError, check_tensor
from .base import Kernel
from .operand import zeros
from .tile_units import Sums, TileUnit, run
from .tiles import Tile, Tiles, schedule, slab_of

if TYPE_CHECKING:
    import torch

__all__ = ["MatrixMult", "multiply_tiled"]


class MatrixMult(Kernel):
    """``overlay.matrix_mult(a, b)`` multiplies int8 matrices of any size exactly.

    Attributes
    ----------
    tile : int
        Rows and columns of what the kernel multiplies; the handoff does not tell.
    """

    tile: ClassVar[int] = 256
    expects: ClassVar[tuple[str, ...]] = ("in1", "in2", "out_r")

    def __call__(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        out: torch.Tensor | None = None,
        *,
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Return ``a @ b`` in int32; arguments as for `multiply_tiled`."""
        return multiply_tiled([self], a, b, out, timeout_s=timeout_s)

    call: Any = __call__

    # ---- a series of tiles; `start` and `wait` serve a single run ----------------------------

    def claim(self) -> None:
        """Take the unit for a series of tiles: other threads are refused until `release`.

        Raises
        ------
        KernelBusy, StaleOverlay
            See `Kernel.start`.
        """
        self._acquire()

    def start_tile(self, in1: Tile, in2: Tile, out: Tile) -> None:
        """Start one product on a claimed unit that stands still.

        Parameters
        ----------
        in1, in2 : Tile
            Flushed.
        out : Tile
            Of which the CPU's cache holds no changes.
        """
        self._check_loaded()
        layout = self._layout
        assert layout is not None  # three pointers: see `fits`
        told = self._describe(in1, in2, out) if events.runs else None
        self._held, self._results = (in1.buffer, in2.buffer, out.buffer), (out.buffer,)
        self._array[layout.span] = layout.of_integers((in1.address, in2.address, out.address))
        self._set_off(told)

    def _describe(self, *operands: Tile) -> events.KernelCall:
        given = dict(zip(self.expects, operands, strict=True))
        buffers_of = {name: tile.buffer for name, tile in given.items()}
        return calls.prepare(self, buffers_of, {n: t.address for n, t in given.items()})

    def tile_ended(self) -> tuple[bool, int]:
        """Return whether the product has ended, and the value of AP_CTRL that said so.

        If it has, the CPU sees it in the output tile.
        """
        try:
            seen = int(self._array[0])
        except BoardHang:
            raise  # it has not ended, and cannot
        except PynqTorchError as error:
            self._tell_end(type(error).__name__)
            raise
        if not has_ended(seen):
            return False, seen
        self._acknowledge(seen)
        told = self._told
        self._tell_end()
        self._show(self._results, told)
        return True, seen

    def release(self) -> None:
        """Let others have the unit again."""
        self._release()


def multiply_tiled(
    units: Sequence[MatrixMult],
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor | None = None,
    *,
    timeout_s: float = 10.0,
) -> torch.Tensor:
    """Compute ``a @ b`` tile by tile; each unit takes the next tile product as it becomes free.

    Parameters
    ----------
    units : sequence of MatrixMult
        E.g. ``[overlay.matrix_mult_0, overlay.matrix_mult_fabric_0]``; units of different speed
        share the work in proportion to it.
    a : torch.Tensor
        int8 [M, K], device cpu, any strides.
    b : torch.Tensor
        int8 [K, N].
    out : torch.Tensor, optional
        int32 [M, N]. It is written when the whole product is there: an error leaves it as it was.
    timeout_s : float
        Bound of the wait for each tile product, in seconds.

    Returns
    -------
    torch.Tensor
        int32 [M, N] in CMA memory, or `out`. Sums wrap at 32 bits, as in torch, which cannot
        happen for K <= 131,071. An empty product is returned without a start.

    Raises
    ------
    ArgumentError
        The matrices cannot be multiplied; nothing was started.
    KernelBusy
        A unit is running for somebody else.
    KernelTimeout, KernelFault
        A tile product did not end, or crashed. The other units have been waited for.

    Notes
    -----
    Every tile of `a` and of `b` is widened to int32 and copied into CMA memory once; products of
    tiles along K are added up here, each in one pass. Both happen while the units are running.
    """
    import torch

    timeout_s = check_timeout(timeout_s)
    size, device = _check_units(units)
    m, k, n = _check_product(units[0].cu, a, b, out)
    if not m * n * k:
        return zeros((m, n), torch.int32, out)
    # CMA memory is scarce: a result that is copied to `out` afterwards needs none.
    result = (
        buffers.empty_tensor((m, n), torch.int32, device=device)
        if out is None
        else torch.empty((m, n), dtype=torch.int32)
    )
    _multiply([TileUnit(unit, timeout_s) for unit in units], size, a, b, result)
    return result if out is None else out.copy_(result)


def _multiply(taken: Sequence[TileUnit], size: int, a: Any, b: Any, result: Any) -> None:
    """Claim the units, compute all tiles, and give the units back."""
    device = taken[0].unit.device
    (m, n), k = result.shape, a.shape[1]
    rows, columns, depth = (-(-length // size) for length in (m, n, k))
    left = Tiles(a, size, columns, device, zero_columns=True)
    right = Tiles(b, size, rows, device)
    sums = Sums(result, size, depth, slab_of(rows, columns))
    try:
        for unit in taken:
            unit.claim()
        run(taken, left, right, sums, schedule(rows, columns, depth))
    finally:
        for unit in taken:
            unit.release()
        left.drop()
        right.drop()


def _check_units(units: Sequence[MatrixMult]) -> tuple[int, Any]:
    """Return the size of the units' tiles and their device."""
    if not units:
        raise ValueError("multiply_tiled needs at least one compute unit")
    names = [unit.cu for unit in units]
    if len(set(names)) < len(names):
        raise ValueError(f"units are {names}; expected each compute unit once")
    sizes = {unit.tile for unit in units}
    if len(sizes) > 1:
        raise ValueError(f"units multiply tiles of {sorted(sizes)}; expected one size")
    return sizes.pop(), units[0].device


def _check_product(cu: str, a: Any, b: Any, out: Any) -> tuple[int, int, int]:
    """Return M, K, N, or raise `ArgumentError`."""
    import torch

    for name, matrix in (("a", a), ("b", b)):
        check_tensor(cu, name, matrix, torch.int8, ndim=2)
        if matrix.layout != torch.strided:
            raise ArgumentError(
                f"{cu}: {name} has layout {matrix.layout}; expected torch.strided; pass "
                f"{name}.to_dense()",
                cu,
            )
        buffers.buffer_of(matrix)  # raises for CMA memory that was freed
    (m, k), (rows, n) = a.shape, b.shape
    if rows != k:
        raise ArgumentError(
            f"{cu}: a is {m}x{k} and b is {rows}x{n}; expected b to have {k} rows, as many as a "
            "has columns",
            cu,
        )
    if out is not None:
        check_tensor(cu, "out", out, torch.int32, shape=(m, n))
    return m, k, n
