"""Sparse tensors of layout ``torch.sparse_csr`` on device "pynq", and their products on the PL.

torch makes such a tensor of three tensors of ours and keeps it behind a dispatch key of its own; it
only lacks kernels there for looking inside. Products with vectors and matrices in float32 are
offered to ``spmv_f32`` and ``spmm_f32``; the CPU does the rest over the same memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pynq_torch.kernels.sparse import Csr, csr_fault, spmm_run, spmv_run
from pynq_torch.kernels.strided import broadcasts
from pynq_torch.torch_device import memory, record
from pynq_torch.torch_device.dispatch import Declined, _watched, library, note_serving
from pynq_torch.torch_device.fallback import place
from pynq_torch.torch_device.record import switches
from pynq_torch.torch_device.schema import operator

from .common import run, units_of
from .launch import operand, room
from .linear import _weighted

__all__: list[str] = []

_KEY = "SparseCsrPrivateUse1"
_CPU_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.SparseCsrCPU)
#: They look only at what the tensor is made of: torch's kernels for the CPU do for ours.
_INSIDE = ("values", "crow_indices", "col_indices", "ccol_indices", "row_indices", "_nnz")
#: Done by the CPU; what else arrives is refused, see `foreign`.
_ON_CPU = ("_to_dense", "clone", "sparse_mask", "neg", "abs", "mul.Tensor", "mul.Scalar", "sum")

_KIND = Declined("spmv_f32 and spmm_f32 take a float32 matrix in compressed rows (CSR) on the left")
_SHAPE = Declined("the operands are no matrices or vectors of fitting sizes")
_EMPTY = Declined("there is nothing to multiply")


# ---- products ------------------------------------------------------------------------------------


def _product(kernel: str, matrix: torch.Tensor, dense: torch.Tensor) -> Any:
    """Return ``matrix @ dense`` from a unit of that kernel."""
    slots = units_of(kernel)
    if isinstance(slots, Declined):
        return slots
    if matrix.layout is not torch.sparse_csr or dense.layout is not torch.strided:
        return _KIND
    if matrix.dtype is not torch.float32 or dense.dtype is not torch.float32:
        return _KIND
    if dense.device.type != "pynq" or matrix.dim() != 2 or matrix.shape[1] != dense.shape[0]:
        return _SHAPE
    values = matrix.values()
    if not (values.numel() and dense.numel()):
        return _EMPTY
    crow, col = matrix.crow_indices(), matrix.col_indices()
    _check(crow, col, values, matrix.shape[1])
    rows, cols, own = (operand(t.contiguous()) for t in (crow, col, values))
    a, x = Csr(rows, cols, own, *matrix.shape), operand(dense)
    result = room((matrix.shape[0], *dense.shape[1:]), torch.float32)
    started = spmv_run(a, x, result) if dense.dim() == 1 else spmm_run(a, x, result)
    return run(slots, [started], (rows, cols, own, x), result)


def _check(crow: torch.Tensor, col: torch.Tensor, values: torch.Tensor, columns: int) -> None:
    """Raise IndexError where indices point outside; torch checks them only when asked to."""
    fault = csr_fault(memory.alias(crow), memory.alias(col), values.numel(), columns)
    if fault:
        raise IndexError(f"sparse_csr tensor on device 'pynq': {fault}")


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


# ---- the CPU -------------------------------------------------------------------------------------


def _parts(value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the outer indices, the inner ones and the values of a compressed tensor."""
    if value.layout is torch.sparse_csr:
        return value.crow_indices(), value.col_indices(), value.values()
    return value.ccol_indices(), value.row_indices(), value.values()


def _made_of(parts: Any, like: torch.Tensor) -> Any:
    outer, inner, values = parts
    return torch.sparse_compressed_tensor(outer, inner, values, like.shape, layout=like.layout)


def _alias(value: Any) -> Any:
    """Return the CPU's view of an argument; nothing is copied."""
    if not isinstance(value, torch.Tensor) or value.device.type != "pynq":
        return value
    if value.layout is torch.strided:
        return memory.alias(value)
    if value.layout not in (torch.sparse_csr, torch.sparse_csc):
        raise NotImplementedError(
            f"device 'pynq' has no tensors of layout {value.layout}; expected torch.sparse_csr: "
            "keep it on the CPU, or pass tensor.to_dense()"
        )
    parts = _parts(value)
    _check(*parts, value.shape[1 if value.layout is torch.sparse_csr else 0])
    return _made_of(map(memory.alias, parts), value)


def _placed(value: Any) -> Any:
    """Return a result of the CPU on device "pynq"."""
    if not isinstance(value, torch.Tensor) or value.layout is torch.strided:
        return place(value)
    return _made_of(map(place, _parts(value)), value)


def _cpu(name: str) -> Callable[..., Any]:
    op = operator(name)

    def run(*args: Any, out: torch.Tensor | None = None, **kwargs: Any) -> Any:
        given = [_alias(a) for a in args]
        options = {key: _alias(value) for key, value in kwargs.items()}
        if out is None:
            return _placed(op(*given, **options))
        op(*given, out=memory.alias(out), **options)
        memory.note_write(out)
        return out

    return run


# ---- registration --------------------------------------------------------------------------------


def _kernel(name: str, offer: Callable[..., Any] | None) -> Callable[..., Any]:
    on_cpu = _cpu(name)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        if switches.active and record.state.call is None:
            return _watched(name, offer, on_cpu, args, kwargs)
        result = offer(*args, **kwargs) if offer is not None else _KIND
        return on_cpu(*args, **kwargs) if isinstance(result, Declined) else result

    return kernel


def _inside(name: str) -> Callable[..., Any]:
    redispatch = operator(f"aten::{name}").redispatch
    return lambda self: redispatch(_CPU_KEYS, self)


def register() -> None:
    """Register the operators of CSR tensors; torch has a dispatch key of their own for them."""
    for name in _INSIDE:
        library.impl(name, _inside(name), _KEY)
    offers: dict[str, Callable[..., Any]] = {
        "mm": _mm,
        "mv": _mv,
        "addmm": _addmm,
        "addmv.out": _addmv_out,
    }
    for name in (*offers, *_ON_CPU):
        library.impl(name, _kernel(f"aten::{name}", offers.get(name)), _KEY)
    note_serving("spmv_f32", "spmm_f32")
