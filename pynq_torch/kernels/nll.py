"""Driver of ``nll_f32``: the negative log-likelihood of class indices, and its gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .arguments import check_tensor
from .base import Kernel
from .operand import Operand, word
from .tables.loss import BACKWARD, FORWARD, MEAN, NONE, SUM

if TYPE_CHECKING:
    import torch

__all__ = ["REDUCTIONS", "Nll", "plan_backward", "plan_forward", "stranger"]

#: By the names of `torch.nn.functional.nll_loss`.
REDUCTIONS = {"none": NONE, "mean": MEAN, "sum": SUM}


def _dims(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return batch, classes and inner of [C], [N, C] or [N, C, S]."""
    if len(shape) == 1:
        return 1, shape[0], 1
    return shape[0], shape[1], shape[2] if len(shape) == 3 else 1


def _steps(strides: tuple[int, ...], classes: bool) -> tuple[int, ...]:
    """Return the strides over image, class (unless only targets have them) and inner."""
    if classes:
        return {1: (0, *strides, 0), 2: (*strides, 0), 3: strides}[len(strides)]
    return {0: (0, 0), 1: (*strides, 0), 2: strides}[len(strides)]


def plan_forward(
    source: Operand,
    target: Operand,
    weight: Operand | None,
    result: Operand,
    total: Operand,
    reduction: int,
    ignore_index: int,
) -> list[tuple[int, ...]]:
    """Return the registers of the run that computes the loss.

    Parameters
    ----------
    source : Operand
        float32 [C], [N, C] or [N, C, S], log-probabilities.
    target : Operand
        int64, the same without C: 0 to C - 1, or `ignore_index`.
    weight : Operand or None
        float32 [C], contiguous.
    result, total : Operand
        float32: the loss, or losses in order; and the sum of the weights, 0 where nothing is
        reduced.
    reduction : int
        Of `pynq_torch.kernels.tables.loss`.
    ignore_index : int
        A target that does not count; 32 bits.
    """
    places = (source, target, weight or source, result, total)
    return [
        (
            *(o.address for o in places),
            *(FORWARD, reduction, *_dims(source.shape)),
            *(word(ignore_index), int(weight is not None)),
            *_steps(source.strides, classes=True),
            *_steps(target.strides, classes=False),
        )
    ]


def plan_backward(
    gradient: Operand,
    target: Operand,
    weight: Operand | None,
    result: Operand,
    total: Operand,
    reduction: int,
    ignore_index: int,
) -> list[tuple[int, ...]]:
    """Return the registers of the run that computes the gradient of the input.

    Parameters
    ----------
    gradient : Operand
        float32: of the loss; of all losses, in the shape of `target`, where nothing was reduced.
    target, weight, reduction, ignore_index
        As for `plan_forward`.
    result : Operand
        float32 [C], [N, C] or [N, C, S], contiguous; all of it is written.
    total : Operand
        float32, what `plan_forward` has written; read for the mean only.
    """
    places = (gradient, target, weight or gradient, result, total)
    image, inner = _steps(gradient.strides, classes=False) if reduction == NONE else (0, 0)
    return [
        (
            *(o.address for o in places),
            *(BACKWARD, reduction, *_dims(result.shape)),
            *(word(ignore_index), int(weight is not None)),
            *(image, 0, inner),
            *_steps(target.strides, classes=False),
        )
    ]


def stranger(target: torch.Tensor, classes: int, ignore_index: int) -> int | None:
    """Return a target (a CPU tensor) that is no class and not `ignore_index`; ``None`` if none."""
    low, high = target.aminmax()
    if int(low) >= 0 and int(high) < classes:
        return None
    wrong = target[((target < 0) | (target >= classes)) & (target != ignore_index)]
    return int(wrong[0]) if len(wrong) else None


class Nll(Kernel):
    """``overlay.nll_f32_0(log_probabilities, target)`` returns the mean loss of a batch."""

    def __call__(
        self,
        log_probabilities: torch.Tensor,
        target: torch.Tensor,
        weight: torch.Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        timeout_s: float = 10.0,
    ) -> torch.Tensor:
        """Return the loss as `torch.nn.functional.nll_loss` does.

        Parameters
        ----------
        log_probabilities : torch.Tensor
            float32 [N, C] or [N, C, S] on the CPU, any strides.
        target : torch.Tensor
            int64 [N] or [N, S]: 0 to C - 1, or `ignore_index`.
        weight : torch.Tensor, optional
            float32 [C].
        ignore_index : int
            A target that does not count.
        reduction : {"mean", "sum", "none"}
            Of the losses.
        timeout_s : float
            Bound of the wait.

        Returns
        -------
        torch.Tensor
            float32: of no dimension, or of the shape of `target` for ``"none"``.

        Raises
        ------
        ArgumentError
            Tensors of another dtype or shape, a target that is no class, an unknown reduction.
        """
        import torch

        self._check(log_probabilities, target, ignore_index, reduction)
        weights = self.vector("weight", weight, shape=(log_probabilities.shape[1],))
        source = self.operand("log_probabilities", log_probabilities)
        classes = self.operand("target", target, torch.int64)
        result = self.result(target.shape if reduction == "none" else ())
        total = self.result(())
        factors = (REDUCTIONS[reduction], ignore_index)
        runs = plan_forward(source, classes, weights, result, total, *factors)
        self.do_runs(runs, (source, classes, weights), (result, total), timeout_s)
        return result.tensor

    call: Any = __call__

    def _check(self, x: Any, target: Any, ignore_index: int, reduction: str) -> None:
        import torch

        check_tensor(self.cu, "log_probabilities", x)
        shape = tuple(x.shape)
        if len(shape) not in (2, 3) or not x.numel():
            raise self.wrong(
                f"log_probabilities has shape {shape}; expected [N, C] or [N, C, S] "
                "with at least one sample and class"
            )
        check_tensor(self.cu, "target", target, torch.int64, shape=(shape[0], *shape[2:]))
        if reduction not in REDUCTIONS:
            raise self.wrong(f"reduction is {reduction!r}; expected one of {', '.join(REDUCTIONS)}")
        if (wrong := stranger(target, shape[1], ignore_index)) is not None:
            raise self.wrong(
                f"target has the class {wrong}; expected 0 to {shape[1] - 1}, or "
                f"ignore_index={ignore_index}"
            )
