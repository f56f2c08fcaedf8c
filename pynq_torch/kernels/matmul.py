"""Driver of ``matmul_f32``: float32 matrix products of any sizes and strides, batched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .arguments import check_tensor
from .base import Kernel
from .operand import Operand, float_bits, word
from .strided import broadcast_strides, broadcasts
from .tables.matmul import BIAS, LANES, RELU

if TYPE_CHECKING:
    import torch

__all__ = ["Matmul", "plan"]


def plan(
    a: Operand,
    b: Operand,
    c: Operand,
    bias: Operand | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    relu: bool = False,
) -> list[tuple[int, ...]]:
    """Return the registers of ``c = relu(alpha * (a @ b) + beta * bias)``.

    Parameters
    ----------
    a, b, c : Operand
        float32 [M, K], [K, N] and [M, N], or all three with a batch in front; any strides.
    bias : Operand, optional
        Of a shape that broadcasts to that of `c`.
    alpha, beta : float
        Used as float32.
    relu : bool
        Whether negative results become 0.

    Returns
    -------
    list of tuple of int
        One run, its values in order of `pynq_torch.kernels.tables.matmul.REGISTERS`.

    Notes
    -----
    The lanes lie along the columns of `c`. Where its rows fill them better, the kernel computes the
    transposed product: that is a matter of strides only.
    """
    (m, k), n = a.shape[-2:], b.shape[-1]
    batch = c.shape[0] if len(c.shape) == 3 else 1
    left, right, to = _steps(a), _steps(b), _steps(c)
    added, at_bias = (0, 0, 0), 0
    if bias is not None:
        own = broadcast_strides(bias.shape, bias.strides, c.shape)
        added, at_bias = own if len(own) == 3 else (0, *own), bias.address  # type: ignore[assignment]
    first, second = a.address, b.address
    if n * -(-m // LANES) < m * -(-n // LANES):
        m, n, first, second = n, m, second, first
        left, right = _transposed(right), _transposed(left)
        added, to = _transposed(added), _transposed(to)
    steps = map(word, (*left, *right, *added, *to))
    mode = (BIAS if bias is not None else 0) | (RELU if relu else 0)
    sizes = (batch, m, n, k)
    scalars = (float_bits(alpha), float_bits(beta), mode)
    return [(first, second, at_bias, c.address, *sizes, *steps, *scalars)]


def _steps(o: Operand) -> tuple[int, int, int]:
    """Return the strides as (matrix, row, column); 0 where there is one only."""
    own = [0 if size == 1 else step for size, step in zip(o.shape, o.strides, strict=True)]
    return (own[0], own[1], own[2]) if len(own) == 3 else (0, own[0], own[1])


def _transposed(steps: tuple[int, int, int]) -> tuple[int, int, int]:
    return steps[0], steps[2], steps[1]


class Matmul(Kernel):
    """``overlay.matmul_f32(a, b)`` multiplies float32 matrices."""

    def __call__(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        *,
        bias: torch.Tensor | None = None,
        alpha: float = 1.0,
        beta: float = 1.0,
        relu: bool = False,
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Return ``relu(alpha * (a @ b) + beta * bias)``.

        Parameters
        ----------
        a, b : torch.Tensor
            float32 [M, K] and [K, N], device cpu; or [B, M, K] and [B, K, N]. In CMA memory they
            are used as they lie, transposed or not.
        bias : torch.Tensor, optional
            float32, of a shape that broadcasts to the result's.
        alpha, beta : float
            Factors.
        relu : bool
            Whether negative results become 0.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        torch.Tensor
            float32 [M, N] or [B, M, N] in CMA memory. An empty one is returned without a start.

        Raises
        ------
        ArgumentError
            A tensor has another dtype, or the shapes do not fit each other.

        Notes
        -----
        An element is off by at most ``(K + 2) * 2**-23 * (|a| @ |b|)`` where nothing overflows and
        alpha is 1 and no bias added: a sum of K rounded products (Higham, Accuracy and Stability of
        Numerical Algorithms, 3.1).
        """
        import torch

        shape = self._shape(a, b, bias)
        if not a.shape[-2] * shape[-1] or not all(shape):
            return torch.empty(shape)
        left, right, c = self.operand("a", a), self.operand("b", b), self.result(shape)
        added = None if bias is None else self.operand("bias", bias)
        runs = plan(left, right, c, added, alpha=alpha, beta=beta, relu=relu)
        return self.run_into(c, runs, (left, right, added), timeout_s)

    call: Any = __call__

    def _shape(self, a: Any, b: Any, bias: Any) -> tuple[int, ...]:
        """Return the shape of the result, when the operands fit each other."""
        check_tensor(self.cu, "a", a)
        check_tensor(self.cu, "b", b)
        fits = a.ndim == b.ndim and a.ndim in (2, 3) and a.shape[-1] == b.shape[-2]
        if not fits or a.shape[:-2] != b.shape[:-2]:
            raise self.wrong(
                f"a has shape {tuple(a.shape)} and b {tuple(b.shape)}; expected (M, K) "
                "and (K, N), or (B, M, K) and (B, K, N)"
            )
        shape = (*a.shape[:-1], b.shape[-1])
        if bias is not None:
            check_tensor(self.cu, "bias", bias)
            if not broadcasts(bias.shape, shape):
                raise self.wrong(
                    f"bias has shape {tuple(bias.shape)}; expected one that broadcasts to {shape}"
                )
        return shape
