"""Verdicts on pointwise functions: every function of a kernel against torch on the CPU, in ulp."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from pynq_torch.errors import VerificationError
from pynq_torch.kernels.tables.pointwise import FUNCTIONS, Function, find
from pynq_torch.plot.charts import Chart
from pynq_torch.plot.errors import error
from pynq_torch.tables import Table
from pynq_torch.timing import where_measured

__all__ = ["check", "errors", "functions", "operands", "ulps"]

_INF = float("inf")
#: Both zeros, infinities, NaN, the ends of float32, halves that round to even.
SPECIAL = (
    *(0.0, -0.0, 1.0, -1.0, _INF, -_INF, float("nan"), 1e-45, -1e-45, 3.4028235e38),
    *(-3.4028235e38, 1.1754944e-38, 0.5, -0.5, 1.5, 2.5, -2.5, 88.7, -104.0),
)


def operands(function: Function, count: int, seed: int = 0) -> list[torch.Tensor]:
    """Return values for each operand of a function, special ones among them.

    Parameters
    ----------
    function : Function
        Whose; see `trusted` for their range.
    count : int
        Elements of each operand.
    seed : int
        Of the random ones.
    """
    generator = torch.Generator().manual_seed(seed)
    made = []
    for _ in function.operands:
        values = torch.randn(count, generator=generator) * 3
        special = torch.tensor(SPECIAL)
        chosen = special[torch.randint(0, len(SPECIAL), (count,), generator=generator)]
        made.append(torch.where(torch.rand(count, generator=generator) < 0.2, chosen, values))
    return trusted(function, made)


def trusted(function: Function, operands: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Return operands kept within what torch's own result can be trusted with.

    The quotient of ``remainder`` fits float32 (beyond, vectors of torch's give NaN), ``gelu`` stays
    below half the largest number (on some processors torch's vectors overflow at twice x),
    gradients are finite, and the condition of ``where`` is of bools.
    """
    made = list(operands)
    if function.name == "where":
        made[2] = made[2] > 0
    if function.name == "remainder":
        far = (made[0] / made[1]).isinf() & made[0].isfinite()
        made[0] = torch.where(far, 1.0, made[0])
        made[1] = torch.where(far, 3.0, made[1])
    if function.name == "gelu":
        made[0] = made[0].clamp(-1e38, 1e38)
    if "backward" in function.name:
        made[0] = made[0].nan_to_num(1.0, 2.0, -2.0).clamp(-1e3, 1e3)
    return made


def ulps(function: Function, result: torch.Tensor, given: Iterable[torch.Tensor]) -> torch.Tensor:
    """Return how far a result is from torch's, in the units of the function's bound.

    Parameters
    ----------
    function : Function
        With the parameters of its table row.
    result : torch.Tensor
        float32.
    given : iterable of torch.Tensor
        Its operands.

    Returns
    -------
    torch.Tensor
        float64; infinite where one is NaN or infinite and the other is not.
    """
    given = tuple(given)
    expected = function.reference(*given)
    error = (result.double() - expected.double()).abs()
    error /= function.spacing(*(g.float() for g in given))
    same = (result == expected) | (result.isnan() & expected.isnan())
    return torch.where(same, 0.0, error.nan_to_num(_INF, _INF))


def check(unit: Any, function: Function, count: int = 4096, seed: int = 0) -> list[Any]:
    """Compare one function with torch; return its row of the table.

    Parameters
    ----------
    unit : Pointwise
        A driver of its kind, for float32.
    function : Function
        What to compute.
    count, seed : int
        See `operands`.

    Raises
    ------
    VerificationError
        A value is off by more than the table allows.
    """
    given = operands(function, count, seed)
    result = unit(function, *given, **function.parameters)
    error = ulps(function, result, given)
    worst = float(error.max())
    if not worst <= function.ulp:
        at = int(error.argmax())
        values = ", ".join(f"{float(g[at]):.9g}" for g in given)
        expected = float(function.reference(*given)[at])
        raise VerificationError(
            f"{function.name}({values}): found {float(result[at]):.9g}, expected {expected:.9g}; "
            f"{worst:.3g} ulp, allowed {function.ulp:g}"
        )
    equal = float((error == 0).double().mean())
    bound = f"{function.ulp:g} ulp" if function.ulp else "exact"
    return [function.kind, function.name, function.opcode, bound, f"{worst:.2g}", f"{equal:.1%}",
            "PASS"]  # fmt: skip


def functions(overlay: Any, count: int = 4096, seed: int = 0) -> Table:
    """Check every float32 function that the units of an overlay compute.

    Parameters
    ----------
    overlay : Overlay
        With one or more of ``unary_f32``, ``binary_f32`` and ``ternary_f32``.
    count, seed : int
        See `operands`.

    Returns
    -------
    Table
        A row each: bound, largest error in ulp, share of results that are torch's bit by bit.

    Raises
    ------
    VerificationError
        A function is off by more than its bound.
    """
    rows = []
    for kind, table in FUNCTIONS.items():
        units = [u for u in overlay.kernels.values() if u.kernel_name == f"{kind}_f32"]
        rows += [check(units[0], f, count, seed) for f in table.values() if units]
    header = ["operands", "function", "opcode", "bound", "worst / ulp", "equal", "verdict"]
    return Table(header, rows)


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
