"""What torch's own operators on the CPU should have given, where a PC's give something else."""

from __future__ import annotations

import functools

import torch

__all__ = ["int_mm"]


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
