"""Sparse tensors of device "pynq", of every layout that torch has.

torch makes such a tensor of two or three dense ones, here of the device, and gives it a dispatch
key of its own. What only looks at them, or copies them, is torch's code for the CPU; everything
else the CPU computes on the memory of those parts, see `fallback`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from pynq_torch.kernels.sparse import csr_fault

from .memory import alias, note_write
from .schema import has_kernel, operator

__all__ = ["SPARSE", "STRUCTURE", "alias_sparse", "follow_sparse", "mapped", "structure_kernel"]

SPARSE = frozenset(
    {torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc}
)
#: Dispatch key -> the CPU's, whose kernels of these operators do for tensors of the device too:
#: they make a tensor of its parts, look at these, or have them copied.
STRUCTURE = {"SparsePrivateUse1": "SparseCPU", "SparseCsrPrivateUse1": "SparseCsrCPU"}
_STRUCTURAL = (
    *("_sparse_coo_tensor_with_dims", "_sparse_coo_tensor_with_dims_and_tensors"),
    *("_indices", "indices", "_values", "values", "_nnz", "sparse_dim", "dense_dim", "_dimI"),
    *("_dimV", "is_coalesced", "_coalesced_", "crow_indices", "col_indices", "ccol_indices"),
    *("row_indices", "empty.memory_format", "empty_like", "clone", "copy_"),
    *("copy_sparse_to_sparse_", "sparse_resize_", "sparse_resize_and_clear_", "resize_as_sparse_"),
)


def structure_kernel(name: str, key: str) -> Callable[..., Any] | None:
    """Return the CPU's kernel if it does for an operator of the device's sparse tensors."""
    on_cpu = STRUCTURE[key]
    if name.removeprefix("aten::") not in _STRUCTURAL or not has_kernel(name, on_cpu):
        return None
    redispatch = operator(name).redispatch
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, on_cpu))
    return lambda *args, **kwargs: redispatch(keys, *args, **kwargs)


def _parts(value: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the dense tensors that a sparse one is made of, the values last."""
    if value.layout is torch.sparse_coo:
        return value._indices(), value._values()
    if value.layout in (torch.sparse_csr, torch.sparse_bsr):
        return value.crow_indices(), value.col_indices(), value.values()
    return value.ccol_indices(), value.row_indices(), value.values()


def _made_of(parts: Sequence[torch.Tensor], like: torch.Tensor) -> torch.Tensor:
    """Return a tensor of that layout and shape, on the device of its parts."""
    values = parts[-1]
    options = {"dtype": values.dtype, "layout": like.layout, "device": values.device}
    aten = torch.ops.aten
    if like.layout is not torch.sparse_coo:
        made = aten._sparse_compressed_tensor_unsafe(*parts, like.shape, **options)
    else:
        dims = (like.sparse_dim(), like.dense_dim(), like.shape)
        options["is_coalesced"] = like.is_coalesced()
        made = aten._sparse_coo_tensor_with_dims_and_tensors(*dims, *parts, **options)
    return made  # type: ignore[no-any-return]


def mapped(value: torch.Tensor, function: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Return the sparse tensor that is made of what `function` makes of each part."""
    return _made_of([function(part) for part in _parts(value)], value)


def alias_sparse(value: torch.Tensor) -> torch.Tensor:
    """Return the sparse CPU tensor over the memory of one on device "pynq".

    Raises
    ------
    IndexError
        An index points outside the tensor; torch itself looks only where it is asked to.
    """
    # The CPU's kernels may resize them: not the views that the storages keep.
    parts = [alias(part).detach() for part in _parts(value)]
    fault = _coo_fault(parts, value) if len(parts) == 2 else _compressed_fault(parts, value)
    if fault:
        layout = str(value.layout).removeprefix("torch.")
        raise IndexError(f"{layout} tensor on device 'pynq': {fault}")
    return _made_of(parts, value)


def _coo_fault(parts: Sequence[torch.Tensor], value: torch.Tensor) -> str:
    sizes = torch.tensor(value.shape[: value.sparse_dim()])[:, None]
    wrong = ((parts[0] < 0) | (parts[0] >= sizes)).nonzero()
    if not len(wrong):
        return ""
    dim, place = wrong[0].tolist()
    found, size = int(parts[0][dim, place]), value.shape[dim]
    return f"indices[{dim}, {place}] is {found}; expected 0 to {size - 1}"


def _compressed_fault(parts: Sequence[torch.Tensor], value: torch.Tensor) -> str:
    outer, inner, values = parts
    by_rows = value.layout in (torch.sparse_csr, torch.sparse_bsr)
    batch = outer.dim() - 1
    width, blocks = value.shape[batch + by_rows], 1
    if value.layout in (torch.sparse_bsr, torch.sparse_bsc):
        blocks = max(1, values.shape[batch + 1 + by_rows])
    entries = inner.shape[-1]
    pairs: Any = [(outer, inner)]
    if batch:
        pairs = zip(outer.flatten(0, -2), inner.flatten(0, -2), strict=True)
    faults = (csr_fault(starts, places, entries, width // blocks) for starts, places in pairs)
    fault = next(filter(None, faults), "")
    return fault if by_rows else fault.replace("crow_", "ccol_").replace("col_ind", "row_ind")


def follow_sparse(
    tensor: torch.Tensor,
    seen: torch.Tensor,
    place: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    """Make a sparse tensor on device "pynq" show what the CPU's kernel made of its alias."""
    own, now = _parts(tensor), _parts(seen)
    note_write(own[-1])
    same = all(
        (a.data_ptr(), a.shape, a.stride()) == (b.data_ptr(), b.shape, b.stride())
        for a, b in zip(own, now, strict=True)
    )
    if tensor.layout is not torch.sparse_coo:
        if not same:
            tensor.resize_as_sparse_(mapped(seen, place))
            for part, values in zip(_parts(tensor), now, strict=True):
                part.copy_(values)
    elif same and tensor.shape == seen.shape:
        tensor._coalesced_(seen.is_coalesced())
    else:
        tensor.sparse_resize_and_clear_(seen.shape, seen.sparse_dim(), seen.dense_dim())
        torch.ops.aten.copy_sparse_to_sparse_(tensor, mapped(seen, place))
