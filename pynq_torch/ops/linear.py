"""Matrix products of device "pynq" on the units of the loaded overlay.

int8 runs exactly. Floating operands run on the CPU, exactly as torch defines it, unless
``torch.backends.pynq.matmul.allow_int8`` is set: then they are quantised (see `quantise`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pynq_torch.kernels.epilogue import BIAS, FLOAT32
from pynq_torch.kernels.strided import broadcasts
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.flags import allowed_in_a_thread, matmul
from pynq_torch.torch_device.variants import MIXED as _MIXED

from .quantise import FLOATS, TOO_LARGE, Packed, kept, overflows, per_column, per_tensor
from .units import Matrix, multiply, units

__all__ = ["MAX_EXACT_K", "OPT_IN", "float_product", "int_product", "vector"]

#: Longest sum of products of [-128, 127] that stays below 2**31 for certain.
MAX_EXACT_K = (2**31 - 1) // 2**14

_NO_UNIT = Declined(
    "no overlay loaded with pynq_torch.load has a unit that multiplies matrices: "
    "pynq_torch.load('gemm')",
    missing=True,
)
_EMPTY = Declined("there is nothing to multiply")
_NOT_2D = Declined(
    "the operands are no matrices of fitting sizes; torch raises the error on the CPU"
)


def _why_exact() -> str:
    """Say why floating values were not quantised, and what to do where that can be changed."""
    switch = "torch.backends.pynq.matmul.allow_int8"
    # Private, but the only way to know; -1 outside of a backward pass.
    if torch._C._current_graph_task_id() != -1 and torch._C._is_multithreading_enabled():
        return (
            "the backward pass stays exact, on the CPU: it runs in a thread of autograd's, and "
            f"{switch} belongs to the thread that set it"
        )
    if allowed_in_a_thread():
        return (
            f"floating values run exactly, on the CPU: {switch} is on in another thread, and "
            "belongs to the thread that set it; to opt in to int8 set it in this thread, too"
        )
    return f"floating values run exactly, on the CPU; opt in to int8 with {switch} = True"


#: Of floating operands in a thread that has not allowed int8.
OPT_IN = Declined(_why_exact)
_FACTORS = Declined("alpha and beta are no int8; torch raises the error on the CPU")
_SHAPE = Declined("the first argument is not of the result's shape")


def _dtype_declined(dtype: torch.dtype) -> Declined:
    return Declined(f"no unit multiplies {str(dtype).removeprefix('torch.')}")


def _suitable(a: torch.Tensor, b: torch.Tensor) -> Declined | None:
    """Say why the units cannot multiply these, ``None`` if they can."""
    if not units():
        return _NO_UNIT
    if a.dtype is not b.dtype:
        return _MIXED
    if a.dtype is torch.int8:
        return None
    if a.dtype in FLOATS:
        return None if matmul.allow_int8 else OPT_IN
    return _dtype_declined(a.dtype)


def _fits(a: torch.Tensor, b: torch.Tensor) -> Declined | None:
    if a.device.type != "pynq" or b.device.type != "pynq" or a.dim() != 2 or b.dim() != 2:
        return _NOT_2D
    if a.shape[1] != b.shape[0]:
        return _NOT_2D
    return _EMPTY if not (a.numel() and b.numel()) else None


# ---- the two products ----------------------------------------------------------------------------


def int_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the int32 product of int8 matrices on device "pynq".

    Sums wrap at 32 bits, as torch's do; that cannot happen for K <= `MAX_EXACT_K`.
    """
    found = units()
    return multiply(Matrix(a, found.device), Matrix(b, found.device), on=found)


def float_product(
    a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor | Declined:
    """Return ``a @ b + bias`` with the operands in int8.

    Parameters
    ----------
    a, b : torch.Tensor
        float32, float16 or bfloat16 [M, K] and [K, N] on device "pynq".
    bias : torch.Tensor, optional
        [N] on device "pynq".

    Returns
    -------
    torch.Tensor or Declined
        Of the dtype of `a`. `Declined` where values are not finite, or as large as float32's.
    """
    left = kept(a, "tensor", lambda: per_tensor(memory.alias(a)))
    right = kept(b, "column", lambda: per_column(memory.alias(b)))
    if isinstance(left, Declined):
        return left
    if isinstance(right, Declined):
        return right
    if overflows(left, right, a.shape[1]):
        return TOO_LARGE
    result = scaled_product(left, right, bias)
    return result if a.dtype is torch.float32 else result.to(a.dtype)


def scaled_product(
    left: Packed, right: Packed, bias: torch.Tensor | None = None, relu: int = 0
) -> torch.Tensor:
    """Return the float32 product of packed matrices, with bias, and ReLU where `relu` is its bit.

    Sums that could leave int32 are split along K, and the parts added in float64.
    """
    found = units()
    a, b = Matrix(left.values, found.device), Matrix(right.values, found.device)
    k = a.shape[1]
    # |q| <= 127, so a little longer than for any int8.
    if k > (2**31 - 1) // 127**2:
        return _split(left, right, bias, relu)
    factor = memory.new(right.scale.shape, torch.float32)
    torch.mul(right.scale, left.scale, out=memory.block_of(factor).cpu)
    mode = FLOAT32 | relu
    if bias is not None:
        bias, mode = vector(bias), mode | BIAS
    return multiply(a, b, mode=mode, scale=factor, bias=bias, on=found)


def _split(left: Packed, right: Packed, bias: torch.Tensor | None, relu: int) -> torch.Tensor:
    total: torch.Tensor | None = None
    for start in range(0, left.values.shape[1], MAX_EXACT_K):
        end = start + MAX_EXACT_K
        sums = int_product(left.values[:, start:end], right.values[start:end])
        part = memory.alias(sums).double()
        total = part if total is None else total.add_(part)
    assert total is not None
    total *= right.scale.double() * left.scale
    if bias is not None:
        total += memory.alias(bias)
    if relu:
        total.relu_()
    result = memory.new(total.shape, torch.float32)
    memory.block_of(result).cpu.copy_(total)
    return result


def vector(values: torch.Tensor) -> torch.Tensor:
    """Return a vector as float32, element by element, on the board of the units."""
    block = memory.block_of(values)
    if (
        values.dtype is torch.float32
        and (values.shape[0] <= 1 or values.stride(0) == 1)
        and block.memory is not None
        and block.memory.device is units().device
    ):
        return values
    made = memory.new(values.shape, torch.float32)
    memory.block_of(made).cpu.copy_(memory.alias(values))
    return made


# ---- operators -----------------------------------------------------------------------------------


def int_mm(self: torch.Tensor, mat2: torch.Tensor) -> Any:
    if self.dtype is not torch.int8 or mat2.dtype is not torch.int8:
        return _MIXED
    declined = _suitable(self, mat2) or _fits(self, mat2)
    return declined or int_product(self, mat2)


def mm(self: torch.Tensor, mat2: torch.Tensor) -> Any:
    declined = _suitable(self, mat2) or _fits(self, mat2)
    if declined:
        return declined
    if self.dtype is torch.int8:
        # torch's int8 product is int8 and wraps: the low bits of the int32 sum.
        return int_product(self, mat2).to(torch.int8)
    return float_product(self, mat2)


def addmm(
    self: torch.Tensor, mat1: torch.Tensor, mat2: torch.Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    declined = _suitable(mat1, mat2) or _fits(mat1, mat2)
    if declined:
        return declined
    m, n = mat1.shape[0], mat2.shape[1]
    if self.dtype is not mat1.dtype or self.device.type != "pynq":
        return _MIXED
    if not broadcasts(self.shape, (m, n)):
        return _SHAPE
    if mat1.dtype is torch.int8:
        if not (_is_int8(alpha) and _is_int8(beta)):
            return _FACTORS
        return _added(self, int_product(mat1, mat2), beta, alpha, torch.int8)
    if alpha == 1 and beta == 1 and self.shape == (n,):
        return float_product(mat1, mat2, self)
    product = float_product(mat1, mat2)
    return product if isinstance(product, Declined) else _weighted(self, product, beta, alpha)


def _is_int8(value: Any) -> bool:
    """Whether torch can make an int8 of a factor, as it does with those of an int8 product."""
    if isinstance(value, complex):
        return False
    return -128 <= value <= 127 and (isinstance(value, int) or float(value).is_integer())


def _added(
    self: torch.Tensor, sums: torch.Tensor, beta: Any, alpha: Any, dtype: torch.dtype
) -> torch.Tensor:
    """Return ``beta * self + alpha * sums`` in integers, which wrap; beta 0 ignores self."""
    total = memory.alias(sums).to(torch.int64).mul_(int(alpha))
    if beta:
        total += memory.alias(self).to(torch.int64) * int(beta)
    result = memory.new(sums.shape, dtype)
    memory.block_of(result).cpu.copy_(total.to(dtype))
    return result


def _weighted(self: torch.Tensor, product: torch.Tensor, beta: Any, alpha: Any) -> torch.Tensor:
    total = memory.alias(product)
    if alpha != 1:
        total = total.mul_(alpha)
    if beta:
        total = total.add_(memory.alias(self), alpha=beta)
    if total.data_ptr() != product.data_ptr():
        memory.alias(product).copy_(total)
    return product


def bmm(self: torch.Tensor, mat2: torch.Tensor) -> Any:
    declined = _suitable(self, mat2) or _fits_batched(self, mat2)
    return declined or _batched(self, mat2, mm)


def _fits_batched(a: torch.Tensor, b: torch.Tensor) -> Declined | None:
    if a.device.type != "pynq" or b.device.type != "pynq" or a.dim() != 3 or b.dim() != 3:
        return _NOT_2D
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        return _NOT_2D
    return _EMPTY if not (a.numel() and b.numel()) else None


def _batched(a: torch.Tensor, b: torch.Tensor, product: Callable[..., Any]) -> Any:
    result = memory.new((a.shape[0], a.shape[1], b.shape[2]), a.dtype)
    target = memory.block_of(result).cpu
    for i in range(a.shape[0]):
        part = product(a[i], b[i])
        if isinstance(part, Declined):
            return part
        target[i].copy_(memory.alias(part))
    return result


def baddbmm(
    self: torch.Tensor,
    batch1: torch.Tensor,
    batch2: torch.Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
) -> Any:
    declined = _suitable(batch1, batch2) or _fits_batched(batch1, batch2)
    if declined:
        return declined
    shape = (batch1.shape[0], batch1.shape[1], batch2.shape[2])
    if self.dtype is not batch1.dtype or self.device.type != "pynq":
        return _MIXED
    if not broadcasts(self.shape, shape):
        return _SHAPE
    if batch1.dtype is torch.int8:
        if not (_is_int8(alpha) and _is_int8(beta)):
            return _FACTORS
        return _added(self, _batched(batch1, batch2, mm), beta, alpha, torch.int8)
    product = _batched(batch1, batch2, mm)
    return product if isinstance(product, Declined) else _weighted(self, product, beta, alpha)


def vector_forms(mm: Callable[..., Any], addmm: Callable[..., Any]) -> Any:
    """Return ``mv``, ``addmv`` and ``dot``, given the products of matrices."""

    def mv(self: torch.Tensor, vec: torch.Tensor) -> Any:
        if vec.dim() != 1 or self.dim() != 2:
            return _NOT_2D
        result = mm(self, vec.unsqueeze(1))
        return result if isinstance(result, Declined) else result.squeeze(1)

    def addmv(
        self: torch.Tensor, mat: torch.Tensor, vec: torch.Tensor, *, beta: Any = 1, alpha: Any = 1
    ) -> Any:
        if vec.dim() != 1 or mat.dim() != 2 or self.dim() > 1:
            return _NOT_2D
        column = self.unsqueeze(-1) if self.dim() else self
        result = addmm(column, mat, vec.unsqueeze(1), beta=beta, alpha=alpha)
        return result if isinstance(result, Declined) else result.squeeze(1)

    def dot(self: torch.Tensor, tensor: torch.Tensor) -> Any:
        if self.dim() != 1 or tensor.dim() != 1:
            return _NOT_2D
        result = mm(self.unsqueeze(0), tensor.unsqueeze(1))
        return result if isinstance(result, Declined) else result.reshape(())

    return mv, addmv, dot


mv, addmv, dot = vector_forms(mm, addmm)
