"""Charts of pointwise functions: the error of a kernel and of torch over the range of its input."""

from __future__ import annotations

from typing import Any

from pynq_torch.kernels.tables.pointwise import find
from pynq_torch.timing import where_measured

from .charts import Chart
from .errors import error

__all__ = ["errors"]


def errors(
    unit: Any, name: str, low: float | None = None, high: float | None = None, points: int = 1001
) -> Chart:
    """Draw the errors of a function of one operand, of the kernel and of torch, against float64.

    Parameters
    ----------
    unit : Pointwise
        A driver of ``unary_f32``.
    name : str
        Of the function, with the parameters of its table row.
    low, high : float, optional
        The range; default: the function's own.
    points : int
        How many, equally far apart.

    Returns
    -------
    Chart
        In ulp of the result. The function's bound is drawn where it is in that unit, and not in ulp
        of a larger term (`Function.scale`).
    """
    import torch

    function = find("unary", name)
    begin, end = function.domain
    x = torch.linspace(begin if low is None else low, end if high is None else high, points)
    return error(
        {"PL": unit(function, x, **function.parameters), "CPU": function.reference(x)},
        function.reference(x.double()),
        x=x,
        title=f"{name}: error in float32",
        bound=None if function.scale else function.ulp,
        where=where_measured(),
    )
