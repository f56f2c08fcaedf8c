"""Driver of ``norm_f32``: normalisation of batches and of layers."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from .arguments import check_tensor
from .base import Kernel
from .operand import Operand, float_bits
from .strided import collapse, outer_offsets
from .tables.normalisation import BATCH, BIAS, LAYER, WEIGHT

if TYPE_CHECKING:
    import torch

__all__ = ["Norm", "in_a_row", "plan_batch", "plan_layer"]


def in_a_row(operand: Operand, dims: int) -> bool:
    """Whether the last dimensions can be walked through with one stride."""
    if operand.tensor.is_contiguous():
        return True
    return len(collapse(operand.shape[-dims:], operand.strides[-dims:])[0]) == 1


def _affine(weight: Operand | None, bias: Operand | None) -> int:
    return (WEIGHT if weight else 0) | (BIAS if bias else 0)


def plan_batch(
    source: Operand,
    mean: Operand,
    variance: Operand,
    weight: Operand | None,
    bias: Operand | None,
    result: Operand,
    eps: float,
) -> list[tuple[int, ...]]:
    """Return the registers of the runs that normalise each channel by its mean and variance.

    Parameters
    ----------
    source, result : Operand
        float32 [N, C, ...], any strides. One run does it where all places of a channel lie in a row
        with one stride, as they do in row-major and channels-last order.
    mean, variance, weight, bias : Operand or None
        float32 [C], contiguous.
    eps : float
        Added to the variance.
    """
    numbers: tuple[int, ...]
    strides: tuple[int, ...]
    vectors = [o.address for o in (mean, variance, weight or mean, bias or mean)]
    if source.strides == result.strides and result.tensor.is_contiguous():
        inner, channels = prod(source.shape[2:]), source.shape[1]
        numbers = (BATCH, source.shape[0], channels, inner, _affine(weight, bias), float_bits(eps))
        strides = (channels * inner, inner, 1)
        return [(source.address, *vectors, result.address, *numbers, *strides, *strides)]
    sizes, (steps, result_steps) = collapse(
        source.shape[2:] or (1,), source.strides[2:] or (1,), result.strides[2:] or (1,)
    )
    numbers = (BATCH, *source.shape[:2], sizes[-1], _affine(weight, bias), float_bits(eps))
    strides = (*source.strides[:2], steps[-1], *result.strides[:2], result_steps[-1])
    return [
        (source.address + 4 * a, *vectors, result.address + 4 * b, *numbers, *strides)
        for a, b in outer_offsets(sizes, [steps, result_steps], 1)
    ]


def plan_layer(
    source: Operand,
    dims: int,
    weight: Operand | None,
    bias: Operand | None,
    result: Operand,
    mean: Operand,
    factor: Operand,
    eps: float,
) -> list[tuple[int, ...]]:
    """Return the registers of the runs that normalise rows.

    Parameters
    ----------
    source : Operand
        float32; its last `dims` dimensions are a row, see `in_a_row`.
    dims : int
        Dimensions of a row.
    weight, bias : Operand or None
        float32 of a row's shape, contiguous.
    result, mean, factor : Operand
        float32, contiguous: the rows, their means, and their ``1 / sqrt(variance + eps)``.
    eps : float
        Added to the variance.
    """
    row = source.shape[-dims:]
    vectors = [o.address for o in (weight or source, bias or source)]
    if source.tensor.is_contiguous():
        cols, affine = prod(row), _affine(weight, bias)
        rows = prod(source.shape[:-dims])
        numbers = (LAYER, rows, 1, cols, affine, float_bits(eps))
        places = (source.address, mean.address, factor.address, *vectors, result.address)
        return [(*places, *numbers, cols, 0, 1, cols, 0, 1)]
    _, (steps,) = collapse(row, source.strides[-dims:])
    sizes, (outer, result_outer) = collapse(
        source.shape[:-dims] or (1,), source.strides[:-dims] or (1,), result.strides[:-dims] or (1,)
    )
    rows = sizes[-1]
    numbers = (LAYER, rows, 1, prod(row), _affine(weight, bias), float_bits(eps))
    strides = (outer[-1], 0, steps[-1], result_outer[-1], 0, 1)
    return [
        (
            *(source.address + 4 * a, mean.address + 4 * i * rows, factor.address + 4 * i * rows),
            *(*vectors, result.address + 4 * b, *numbers, *strides),
        )
        for i, (a, b) in enumerate(outer_offsets(sizes, [outer, result_outer], 1))
    ]


class Norm(Kernel):
    """``overlay.norm_f32_0(x, mean, variance)`` normalises channels; without those two, rows."""

    def __call__(
        self,
        x: torch.Tensor,
        mean: torch.Tensor | None = None,
        variance: torch.Tensor | None = None,
        weight: torch.Tensor | None = None,
        bias: torch.Tensor | None = None,
        *,
        eps: float = 1e-5,
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Return ``(x - mean) / sqrt(variance + eps) * weight + bias``.

        Parameters
        ----------
        x : torch.Tensor
            float32 on the CPU: [N, C, ...] with a mean and a variance, [..., L] without.
        mean, variance : torch.Tensor, optional
            float32 [C]; both or none. Without them those of each row of `x` are taken.
        weight, bias : torch.Tensor, optional
            float32 [C], or [L].
        eps : float
            Added to the variance.
        timeout_s : float
            Bound of the wait for each run.

        Returns
        -------
        torch.Tensor
            float32 in CMA memory, of the shape of `x`, contiguous.

        Raises
        ------
        ArgumentError
            Tensors of another dtype or shape; a mean without a variance.
        """
        length = self._length(x, mean, variance)
        first, second, scale, shift = (
            self.vector(name, vector, shape=(length,))
            for name, vector in (
                *(("mean", mean), ("variance", variance)),
                *(("weight", weight), ("bias", bias)),
            )
        )
        source, result = self.operand("x", x), self.result(x.shape)
        if first is not None and second is not None:
            runs = plan_batch(source, first, second, scale, shift, result, eps)
        else:
            first, second = self.result(x.shape[:-1]), self.result(x.shape[:-1])
            runs = plan_layer(source, 1, scale, shift, result, first, second, eps)
        return self.run_into(result, runs, (source, first, second, scale, shift), timeout_s)

    call: Any = __call__

    def _length(self, x: Any, mean: Any, variance: Any) -> int:
        """Return the elements of a mean, or of a row where none is given."""
        check_tensor(self.cu, "x", x)
        if (mean is None) is not (variance is None):
            raise self.wrong(
                "one of mean and variance is given; expected both, or none to take "
                "those of each row"
            )
        batch = mean is not None
        if not x.numel() or x.dim() < (2 if batch else 1):
            raise self.wrong(
                f"x has shape {tuple(x.shape)}; expected "
                f"{'[N, C, ...]' if batch else '[..., L]'} with at least one element"
            )
        return int(x.shape[1] if batch else x.shape[-1])
