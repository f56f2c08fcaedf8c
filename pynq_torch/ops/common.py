"""What operators have in common: finding a kernel's units, refusing operands, one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pynq_torch.kernels.operand import Operand
from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.variants import MIXED, NOT_THERE

from .launch import ComputeUnit, available, launch

__all__ = ["on_cpu", "run", "short", "units_of"]

#: Kernel -> what an overlay lacks without it, and an overlay that has it.
_OVERLAYS = {
    "activation_f32": ("a unit for ReLU", "lenet"),
    "distance_f32": ("a unit for distances", "reductions"),
    "move_32": ("a unit that moves words", "movement"),
    "nll_f32": ("a kernel for losses", "neural"),
    "norm_f32": ("a kernel that normalises", "neural"),
    "pool2d_f32": ("a kernel that pools", "neural"),
    "reduce_f32": ("a unit for reductions", "reductions"),
    "softmax_f32": ("a unit for softmax", "reductions"),
    "spmm_f32": ("a unit for sparse products", "sparse"),
    "spmv_f32": ("a unit for sparse products", "sparse"),
}
_MISSING = {
    kernel: Declined(
        f"no overlay loaded with pynq_torch.load has {what}: pynq_torch.load('{overlay}')",
        missing=True,
    )
    for kernel, (what, overlay) in _OVERLAYS.items()
}


def on_cpu(reason: str) -> Declined:
    """Return the answer to a call that is an error in torch."""
    return Declined(f"{reason}; torch raises the error on the CPU")


def short(dtype: torch.dtype | None) -> str:
    """Return the name of a dtype without the module."""
    return str(dtype).removeprefix("torch.")


def units_of(
    kernel: str,
    *tensors: torch.Tensor | None,
    dtypes: Sequence[torch.dtype] = (torch.float32,),
) -> tuple[ComputeUnit, ...] | Declined:
    """Return the compute units of a kernel, or say why they cannot take these tensors.

    Parameters
    ----------
    kernel : str
        Its VLNV name, e.g. ``"pool2d_f32"``.
    *tensors : torch.Tensor or None
        The operands; all of them are on device "pynq" and of one dtype.
    dtypes : sequence of torch.dtype
        Those that the kernel takes.
    """
    slots = available(kernel)
    if not slots:
        return _MISSING[kernel]
    first: torch.dtype | None = None
    for tensor in tensors:
        if tensor is None:
            continue
        if first is not None and tensor.dtype is not first:
            return MIXED
        first = tensor.dtype
        if first not in dtypes:
            takes = " and ".join(map(short, dtypes))
            return Declined(f"{kernel} takes {takes}, found {short(first)}")
        if tensor.device.type != "pynq":
            return NOT_THERE
    return slots


def run(
    slots: Sequence[ComputeUnit],
    runs: Sequence[Sequence[int]],
    reads: Sequence[Operand | None],
    *writes: Operand,
) -> Any:
    """Do runs of a kernel; return the tensor that they write, or several of them."""
    launch(slots, runs, reads=[o for o in reads if o is not None], writes=writes)
    return writes[0].tensor if len(writes) == 1 else tuple(o.tensor for o in writes)
