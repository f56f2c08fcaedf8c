"""Drivers of ``spmv_f32`` and ``spmm_f32``: sparse matrices in compressed rows (CSR), float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .base import Kernel
from .operand import Operand

if TYPE_CHECKING:
    import torch

__all__ = ["Csr", "SpmmF32", "SpmvF32", "csr_fault", "spmm_run", "spmv_run"]


class Csr(NamedTuple):
    """A sparse matrix where a kernel can reach it.

    Attributes
    ----------
    crow, col, values : Operand
        Contiguous: int32 or int64 [rows + 1] and [entries], float32 [entries].
    rows, columns : int
        Its shape.
    """

    crow: Operand
    col: Operand
    values: Operand
    rows: int
    columns: int


def csr_fault(crow: torch.Tensor, col: torch.Tensor, entries: int, columns: int) -> str:
    """Say what is wrong with the indices of a CSR matrix; empty if nothing is.

    torch itself checks them only where it is asked to (``check_invariants``), and a kernel would
    read wherever they point to. Repeated and unsorted columns are fine.

    Parameters
    ----------
    crow, col : torch.Tensor
        On the CPU, int32 or int64 [rows + 1] and [entries].
    entries : int
        How many values there are.
    columns : int
        Of the matrix.
    """
    # numpy: a quarter of the time of torch for vectors of this kind.
    starts, places = crow.numpy(), col.numpy()
    first, last = int(starts[0]), int(starts[-1])
    if first or last != entries:
        return f"crow_indices go from {first} to {last}; expected 0 to {entries}, the entries"
    falls = starts[1:] < starts[:-1]
    if falls.any():
        row = int(falls.argmax())
        return f"crow_indices fall after row {row}: {starts[row]}, then {starts[row + 1]}"
    if not entries:
        return ""
    low, high = int(places.min()), int(places.max())
    if low < 0 or high >= columns:
        wrong = low if low < 0 else high
        place = int((places == wrong).argmax())
        return f"col_indices[{place}] is {wrong}; expected 0 to {columns - 1}"
    return ""


def spmv_run(a: Csr, x: Operand, y: Operand) -> tuple[int, ...]:
    """Return the registers of ``y = a @ x`` with vectors; `x` of any stride."""
    addresses = (a.crow.address, a.col.address, a.values.address, x.address, y.address)
    return (*addresses, a.rows, a.columns, a.crow.itemsize // 4, x.strides[0], y.strides[0])


def spmm_run(a: Csr, b: Operand, out: Operand) -> tuple[int, ...]:
    """Return the registers of ``out = a @ b`` with matrices; `b` of any strides."""
    addresses = (a.crow.address, a.col.address, a.values.address, b.address, out.address)
    return (*addresses, a.rows, b.shape[1], a.crow.itemsize // 4, *b.strides, out.strides[0])


class _Sparse(Kernel):
    """What both have in common: the matrix, and how many dimensions the other operand has."""

    _dims = 1

    def __call__(
        self, matrix: torch.Tensor, other: torch.Tensor, *, timeout_s: float = 10.0
    ) -> torch.Tensor:
        """Return ``matrix @ other``.

        Parameters
        ----------
        matrix : torch.Tensor
            Layout ``torch.sparse_csr``, float32 [M, K], device cpu; indices int32 or int64.
        other : torch.Tensor
            float32 [K] for ``spmv_f32``, [K, N] for ``spmm_f32``, any strides.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        torch.Tensor
            float32 [M] or [M, N] in new CMA memory; a row without entries gives 0. The error of an
            element is bounded by `pynq_torch.kernels.tables.sparse.error_factor`.

        Raises
        ------
        ArgumentError
            Another layout, dtype or shape, or indices that point outside. Nothing was started.
        """
        self._check(matrix, other)
        dense = self.operand("other", other)
        result = self.result((matrix.shape[0], *other.shape[1:]))
        if not matrix._nnz() or not result.tensor.numel():
            return result.tensor.zero_()
        a = self._placed(matrix)
        run = spmv_run(a, dense, result) if self._dims == 1 else spmm_run(a, dense, result)
        return self.run_into(result, [run], (a.crow, a.col, a.values, dense), timeout_s)

    call: Any = __call__

    def _check(self, matrix: torch.Tensor, other: torch.Tensor) -> None:
        """Raise unless they are a CSR matrix and an operand of a fitting shape."""
        import torch

        if not isinstance(matrix, torch.Tensor) or matrix.layout is not torch.sparse_csr:
            found = getattr(matrix, "layout", type(matrix).__name__)
            raise self.wrong(
                f"matrix has layout {found}; expected torch.sparse_csr: matrix.to_sparse_csr()"
            )
        if matrix.dim() != 2 or other.dim() != self._dims or matrix.shape[1] != other.shape[0]:
            raise self.wrong(
                f"matrix {tuple(matrix.shape)} and other {tuple(other.shape)}; expected "
                f"a matrix [M, K] and {'a vector [K]' if self._dims == 1 else 'a matrix [K, N]'}"
            )

    def _placed(self, matrix: torch.Tensor) -> Csr:
        """Return a matrix in CMA memory; raise where its indices point outside of it."""
        crow, col, values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
        fault = csr_fault(crow, col, values.numel(), matrix.shape[1])
        if fault:
            raise self.wrong(fault)
        return Csr(
            self.operand("crow_indices", crow.contiguous(), crow.dtype),
            self.operand("col_indices", col.contiguous(), crow.dtype),
            self.operand("values", values.contiguous()),
            *matrix.shape,
        )


class SpmvF32(_Sparse):
    """``overlay.spmv_f32(matrix, x)``: a sparse matrix times a vector."""


class SpmmF32(_Sparse):
    """``overlay.spmm_f32(matrix, b)``: a sparse matrix times a matrix."""

    _dims = 2
