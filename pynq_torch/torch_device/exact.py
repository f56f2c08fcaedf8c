"""What torch's own operators on the CPU should have given, where a PC's give something else."""

from __future__ import annotations

import functools

import torch

__all__ = ["int_mm", "settle"]

#: What torch leaves to MKL's vector mathematics (`aten/src/ATen/cpu/vml.h`).
_OF_MKL = (
    *("acos", "asin", "atan", "cos", "erf", "erfc", "erfinv", "exp", "expm1", "lgamma", "log"),
    *("log10", "log1p", "log2", "sin", "sqrt", "tan", "tanh", "trunc"),
)


def settle() -> None:
    """Have MKL choose its code for each of its functions while one thread calls them.

    MKL 2024.2, which torch's wheels hold, chooses at a function's first call. Where several threads
    make that call at once, as for a tensor of some thousand elements, one of them may compute its
    part of it with a code of low accuracy: about 12 bits of `sqrt`, once, and nothing says so
    (pytorch/pytorch#188792). It costs 2 ms.
    """
    for dtype in (torch.float32, torch.float64):
        one = torch.full((1,), 0.5, dtype=dtype)
        for name in _OF_MKL:
            getattr(torch, name)(one)


@functools.cache
def _saturates() -> bool:
    """Whether this PC's `torch._int_mm` is wrong.

    On processors without VNNI (most from before 2020) oneDNN adds products of int8 in pairs, and
    keeps a pair in 16 bits: what does not fit becomes the greatest number there is ("Nuances of
    int8 Computations" in oneDNN's guide). torch says nothing of it.
    """
    a, b = torch.full((32, 32), 127, dtype=torch.int8), torch.full((32, 32), -128, dtype=torch.int8)
    return any(
        not torch.equal(torch._int_mm(x, y), _by_floats(x, y)) for x in (a, b) for y in (a, b)
    )


def _by_floats(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product by float64, in which every sum is exact (below 2**53), and wrapped."""
    return (a.double() @ b.double()).long().to(torch.int32)


def int_mm(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """Return the product of two int8 matrices on the CPU, exact in int32.

    Parameters
    ----------
    a, b : torch.Tensor
        int8, m x k and k x n.
    out : torch.Tensor, optional
        int32, m x n, to write to.

    Raises
    ------
    RuntimeError
        Shapes or dtypes that ``torch._int_mm`` refuses.
    """
    found = torch._int_mm(a, b) if out is None else torch._int_mm(a, b, out=out)
    return found.copy_(_by_floats(a, b)) if _saturates() else found
