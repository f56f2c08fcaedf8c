"""Values on a grid of int8 steps, with sliders for its scale and for where it cuts off."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pynq_torch.plot.charts import pyplot
from pynq_torch.plot.grid import Grid, peak
from pynq_torch.plot.quantisation import histogram, row_of_axes, trade_off

from .sliders import explore

if TYPE_CHECKING:
    import torch

__all__ = ["explore_grid"]


def explore_grid(
    values: torch.Tensor,
    run: Callable[[Grid], Any] | None = None,
    *,
    scale: float = 1.0,
    clip: float = 1.0,
    live: bool | None = None,
) -> Any:
    """Show values on a grid, with sliders for its scale and for where it cuts off.

    Parameters
    ----------
    values : torch.Tensor
        Floating, any shape, not all 0.
    run : callable, optional
        Called with each `Grid`, e.g. to multiply with it and print how good that is.
    scale : float
        Where the slider starts: a power of two from 1/8 to 32, times the scale that puts the peak
        on step 127.
    clip : float
        Where the slider starts, a share of the peak from 0.05 to 1.
    live : bool, optional
        See `widgets.explore`.
    """
    end = peak(values)

    def show(scale: float, clip: float) -> None:
        grid = Grid(scale * end / 127, clip * end)
        print(_text(grid, values))
        if run is not None:
            run(grid)
        axes = row_of_axes((3, 2))
        histogram(values, grid, ax=axes[0])
        if grid.used:
            trade_off(values, grid.used, grid.limit / end, ax=axes[1])
        pyplot().show()

    scales = [2.0**power for power in range(-3, 6)]
    return explore(show, live=live, scale=(scales, scale), clip=((0.05, 1.0, 0.05), clip))


def _text(grid: Grid, values: torch.Tensor) -> str:
    found = grid.errors(values)
    return (
        f"scale {grid.scale:.3g}, cut off at {grid.limit:.3g}: {grid.used} steps on each side; "
        f"{found.share:.2%} cut off; error (RMS): rounding {found.rounding:.3g}, "
        f"cutting off {found.cut_off:.3g}, both {found.both:.3g}"
    )
