"""int8 steps of one size: which step a value gets, and what rounding and cutting off cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

__all__ = ["Errors", "Grid"]

#: The last step: -128 is left out, so that the grid is symmetric.
LAST = 127


@dataclass(frozen=True)
class Errors:
    """Root mean square errors of values on a grid.

    Attributes
    ----------
    rounding : float
        Error of the values within the grid, which move to the nearest step.
    cut_off : float
        Error of the values beyond it, which move to its end.
    both : float
        Together: ``both**2 == rounding**2 + cut_off**2``.
    share : float
        Share of the values beyond its end, 0 to 1.
    """

    rounding: float
    cut_off: float
    both: float
    share: float


@dataclass(frozen=True)
class Grid:
    """A value ``x`` becomes ``round(clamp(x, -clip, clip) / scale)``, at most 127 steps from zero.

    Parameters
    ----------
    scale : float
        Size of a step, greater than 0.
    clip : float
        Values beyond are cut off before they are rounded, greater than 0. int8 itself ends at
        ``127 * scale``, whatever `clip` is.
    """

    scale: float
    clip: float = float("inf")

    def __post_init__(self) -> None:
        if not 0 < self.scale < float("inf"):
            raise ValueError(f"scale is {self.scale}; expected a finite number greater than 0")
        if not self.clip > 0:
            raise ValueError(f"clip is {self.clip}; expected a number greater than 0")

    @classmethod
    def over(cls, values: torch.Tensor, clip: float = 1.0, *, bits: int = 8) -> Grid:
        """Return the grid that uses all steps of a width up to a share of the peak.

        Parameters
        ----------
        values : torch.Tensor
            Floating, any shape, not all 0.
        clip : float
            Share of the largest magnitude that gets the last step; 1 cuts nothing off.
        bits : int
            Width of a step's number with its sign, 2 to 8.
        """
        if not 2 <= bits <= 8:
            raise ValueError(f"bits is {bits}; expected 2 to 8: the steps are int8")
        limit = clip * peak(values)
        return cls(limit / (2 ** (bits - 1) - 1), limit)

    @property
    def limit(self) -> float:
        """The largest magnitude that is not cut off."""
        return min(self.clip, LAST * self.scale)

    @property
    def used(self) -> int:
        """Steps that are used on each side of zero, at most 127."""
        return round(self.limit / self.scale)

    def steps(self, values: torch.Tensor) -> torch.Tensor:
        """Return values as int8, halves rounded to even."""
        scaled = values.clamp(-self.clip, self.clip) / self.scale
        return scaled.round().clamp(-LAST, LAST).char()

    def values(self, values: torch.Tensor) -> torch.Tensor:
        """Return the values that the steps represent, float32."""
        return self.steps(values).float() * self.scale

    def errors(self, values: torch.Tensor) -> Errors:
        """Return what the grid costs on values, which may have any shape but not be empty."""
        values = values.detach().double().flatten()
        squares = (self.steps(values).double() * self.scale - values).square()
        # Half a step beyond the last one is rounding still.
        beyond = values.abs() > (self.used + 0.5) * self.scale
        far, near = float(squares[beyond].sum()), float(squares[~beyond].sum())
        count = values.numel()
        return Errors(
            (near / count) ** 0.5,
            (far / count) ** 0.5,
            ((near + far) / count) ** 0.5,
            float(beyond.sum()) / count,
        )


def peak(values: torch.Tensor) -> float:
    """Return the largest magnitude."""
    found = float(values.detach().abs().max())
    if not 0 < found < float("inf"):
        raise ValueError(f"the largest magnitude is {found}; expected finite values, not all 0")
    return found
