"""Products of sparse matrices on the PL: ``spmv_f32`` and ``spmm_f32``.

Both take a matrix in compressed rows. A coalesced COO matrix has its entries in that order already,
so that only its rows are counted first.
"""

from __future__ import annotations

from typing import Any

import torch

from pynq_torch.kernels.sparse import Csr, spmm_run, spmv_run
from pynq_torch.kernels.strided import broadcasts
from pynq_torch.torch_device.dispatch import SPARSE, Declined, add_offer
from pynq_torch.torch_device.fallback import place
from pynq_torch.torch_device.layouts import alias_sparse

from .common import run, units_of
from .launch import operand, room
from .linear import _weighted

__all__: list[str] = []

_KIND = Declined("spmv_f32 and spmm_f32 take a float32 matrix of layout CSR or COO on the left")
_UNSORTED = Declined("the COO matrix is not coalesced: x = x.coalesce() once, before the products")
_SHAPE = Declined("the operands are no matrices or vectors of fitting sizes")
_EMPTY = Declined("there is nothing to multiply")


def _product(kernel: str, matrix: torch.Tensor, dense: torch.Tensor) -> Any:
    """Return ``matrix @ dense`` from a unit of that kernel."""
    slots = units_of(kernel)
    if isinstance(slots, Declined):
        return slots
    if matrix.layout not in (torch.sparse_csr, torch.sparse_coo) or dense.is_sparse:
        return _KIND
    if dense.layout is not torch.strided or matrix.dense_dim():
        return _KIND
    if matrix.dtype is not torch.float32 or dense.dtype is not torch.float32:
        return _KIND
    if dense.device.type != "pynq" or matrix.dim() != 2 or matrix.shape[1] != dense.shape[0]:
        return _SHAPE
    if not (matrix._nnz() and dense.numel()):
        return _EMPTY
    if matrix.layout is torch.sparse_coo and not matrix.is_coalesced():
        return _UNSORTED
    rows, cols, own = (operand(t.contiguous()) for t in _compressed(matrix))
    a, x = Csr(rows, cols, own, *matrix.shape), operand(dense)
    result = room((matrix.shape[0], *dense.shape[1:]), torch.float32)
    started = spmv_run(a, x, result) if dense.dim() == 1 else spmm_run(a, x, result)
    return run(slots, [started], (rows, cols, own, x), result)


def _compressed(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return where rows start, the columns and the values; raise IndexError for bad indices."""
    on_cpu = alias_sparse(matrix)
    if matrix.layout is torch.sparse_csr:
        return matrix.crow_indices(), matrix.col_indices(), matrix.values()
    starts = torch._convert_indices_from_coo_to_csr(on_cpu._indices()[0], matrix.shape[0])
    return place(starts), matrix._indices()[1], matrix._values()


def _mm(self: torch.Tensor, mat2: torch.Tensor) -> Any:
    return _product("spmm_f32", self, mat2) if mat2.dim() == 2 else _SHAPE


def _mv(self: torch.Tensor, vec: torch.Tensor) -> Any:
    return _product("spmv_f32", self, vec) if vec.dim() == 1 else _SHAPE


def _addmm(
    self: torch.Tensor, mat1: torch.Tensor, mat2: torch.Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    if self.layout is not torch.strided or self.dtype is not torch.float32:
        return _KIND
    if not broadcasts(self.shape, (mat1.shape[0], mat2.shape[-1])):
        return _SHAPE
    product = _mm(mat1, mat2)
    return product if isinstance(product, Declined) else _weighted(self, product, beta, alpha)


def _addmv_out(
    self: torch.Tensor,
    mat: torch.Tensor,
    vec: torch.Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    out: torch.Tensor,
) -> Any:
    shape = (mat.shape[0],)
    if self.dtype is not torch.float32 or not broadcasts(self.shape, shape) or out.shape != shape:
        return _SHAPE
    product = _mv(mat, vec)
    if isinstance(product, Declined):
        return product
    return out.copy_(_weighted(self, product, beta, alpha))


def register() -> None:
    """Add the offers: torch gives operators with sparse tensors dispatch keys of their own."""
    offers: dict[str, Any] = {"mm": _mm, "mv": _mv, "addmm": _addmm, "addmv.out": _addmv_out}
    for name, offer in offers.items():
        add_offer(f"{SPARSE}{name}", offer, ("spmv_f32", "spmm_f32"))
