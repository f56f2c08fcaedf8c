"""Driver of ``activation_f32``: ReLU and its gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .arguments import check_tensor
from .base import Kernel
from .operand import Operand, float_bits

if TYPE_CHECKING:
    import torch

__all__ = ["Activation", "plan"]

#: Opcodes, as hw/kernels/activation_f32/activation_f32.hpp has them.
_RELU, _BACKWARD = 0, 1


def plan(
    gradient: Operand | None, x: Operand, result: Operand, n: int, threshold: float = 0.0
) -> list[tuple[int, ...]]:
    """Return the registers of the run.

    Parameters
    ----------
    gradient : Operand or None
        Of the result of ReLU; ``None`` for ReLU itself.
    x, result : Operand
        float32; all operands have their elements in a row, in the same order.
    n : int
        Elements.
    threshold : float
        Up to which an `x` gives no gradient.
    """
    op = _RELU if gradient is None else _BACKWARD
    addresses = (o.address for o in (gradient or x, x, result))
    return [(*addresses, op, float_bits(threshold), n)]


class Activation(Kernel):
    """``overlay.activation_f32_0(x)`` is ReLU; with ``gradient=`` its gradient."""

    def __call__(
        self,
        x: torch.Tensor,
        gradient: torch.Tensor | None = None,
        *,
        threshold: float = 0.0,
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Return ``relu(x)``, or `gradient` where `x` is above the threshold and 0 elsewhere.

        Parameters
        ----------
        x : torch.Tensor
            float32 on the CPU.
        gradient : torch.Tensor, optional
            float32 of the same shape.
        threshold : float
            For the gradient only.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        torch.Tensor
            float32 in CMA memory; an empty `x` gives an empty one without a start.

        Raises
        ------
        ArgumentError
            Another dtype, or another shape of the gradient.
        """
        check_tensor(self.cu, "x", x)
        if gradient is not None:
            check_tensor(self.cu, "gradient", gradient, shape=tuple(x.shape))
        if not x.numel():
            return x.new_empty(x.shape)
        source, slope = self.operand("x", x.contiguous()), self.vector("gradient", gradient)
        result = self.result(x.shape)
        runs = plan(slope, source, result, x.numel(), threshold)
        return self.run_into(result, runs, (slope, source), timeout_s)

    call: Any = __call__
