"""Matrix products of device "pynq" in float32, on ``matmul_f32``.

They come after those in int8 (`linear`), which serve int8 tensors and, where a program has opted in
to it, floating ones. An element is off by at most ``(K + 2) * 2**-23 * (|a| @ |b|)``.
"""

from __future__ import annotations

from typing import Any

import torch

from pynq_torch.kernels.matmul import plan
from pynq_torch.kernels.operand import Operand
from pynq_torch.kernels.strided import broadcasts
from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.variants import MIXED

from .launch import available, launch, operand, room
from .linear import _EMPTY, _NO_UNIT, _NOT_2D, _SHAPE, vector_forms
from .units import timeout_of

__all__ = ["KERNEL", "multiply"]

#: Its VLNV name.
KERNEL = "matmul_f32"
_MISSING = Declined(
    "no overlay loaded with pynq_torch.load has a unit that multiplies matrices of float32: "
    "pynq_torch.load('lenet')",
    missing=True,
)
_LARGE = Declined("a tensor of 2**31 elements or more is beyond the kernel's registers")
_COMPLEX = Declined("alpha and beta are no real numbers; torch raises the error on the CPU")
_NO_PRODUCT = Declined("with alpha 0 there is no product to compute")


def multiply(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    alpha: Any = 1,
    beta: Any = 1,
    relu: bool = False,
) -> torch.Tensor | Declined:
    """Return ``relu(alpha * (a @ b) + beta * bias)`` from the PL.

    Parameters
    ----------
    a, b : torch.Tensor
        float32 [M, K] and [K, N] or [B, M, K] and [B, K, N] on device "pynq", any strides.
    bias : torch.Tensor, optional
        float32, of a shape that broadcasts to the result's.
    alpha, beta : number
        Factors; with beta 0 the bias is not read, with alpha 0 there is nothing for the PL to do.
    relu : bool
        Whether negative results become 0.
    """
    if declined := _declined(a, b, alpha, beta):
        return declined
    shape = (*a.shape[:-1], b.shape[-1])
    added = None
    if bias is not None:
        if bias.dtype is not torch.float32 or bias.device.type != "pynq":
            return MIXED
        if not broadcasts(bias.shape, shape):
            return _SHAPE
        added = operand(bias) if beta else None
    c = room(shape, torch.float32)
    units, left, right = available(KERNEL), operand(a), operand(b)
    return _run(units, left, right, c, added, alpha=alpha, beta=beta, relu=relu)


def _declined(a: torch.Tensor, b: torch.Tensor, alpha: Any, beta: Any) -> Declined | None:
    """Return why the PL cannot multiply these matrices; None where it can."""
    if not a.dtype is b.dtype is torch.float32:
        # Nobody served them before, and where no unit does int8 that is what is missing.
        return _NO_UNIT
    if not available(KERNEL):
        return _MISSING
    if a.device.type != "pynq" or b.device.type != "pynq":
        return _NOT_2D
    if a.dim() != b.dim() or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        return _NOT_2D
    if isinstance(alpha, complex) or isinstance(beta, complex):
        return _COMPLEX
    if not alpha:
        # The CPU then does not look at the operands: 0 times their NaN would be NaN here.
        return _NO_PRODUCT
    return None if a.numel() and b.numel() else _EMPTY


def _run(
    units: Any, a: Operand, b: Operand, c: Operand, bias: Operand | None, **scalars: Any
) -> torch.Tensor | Declined:
    work = c.tensor.numel() * a.shape[-1]
    if work >= 2**31 and any(o.tensor.numel() >= 2**31 for o in (a, b, c)):
        return _LARGE
    runs = plan(a, b, c, bias, **scalars)
    reads = [a, b] if bias is None else [a, b, bias]
    launch(units, runs, reads=reads, writes=[c], timeout_s=timeout_of(work))
    return c.tensor


# ---- operators -----------------------------------------------------------------------------------


def mm(self: torch.Tensor, mat2: torch.Tensor) -> Any:
    return multiply(self, mat2) if self.dim() == mat2.dim() == 2 else _NOT_2D


def bmm(self: torch.Tensor, mat2: torch.Tensor) -> Any:
    return multiply(self, mat2) if self.dim() == mat2.dim() == 3 else _NOT_2D


def addmm(
    self: torch.Tensor, mat1: torch.Tensor, mat2: torch.Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    if not mat1.dim() == mat2.dim() == 2:
        return _NOT_2D
    return multiply(mat1, mat2, self, alpha=alpha, beta=beta)


def addmm_activation(
    self: torch.Tensor,
    mat1: torch.Tensor,
    mat2: torch.Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    use_gelu: bool = False,
) -> Any:
    if use_gelu:
        return Declined("matmul_f32 has ReLU only")
    if not mat1.dim() == mat2.dim() == 2:
        return _NOT_2D
    return multiply(mat1, mat2, self, alpha=alpha, beta=beta, relu=True)


def baddbmm(
    self: torch.Tensor,
    batch1: torch.Tensor,
    batch2: torch.Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
) -> Any:
    if not batch1.dim() == batch2.dim() == 3:
        return _NOT_2D
    return multiply(batch1, batch2, self, alpha=alpha, beta=beta)


mv, addmv, dot = vector_forms(mm, addmm)
