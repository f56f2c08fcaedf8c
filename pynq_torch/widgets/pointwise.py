"""The function explorer: a pointwise function on the PL, its curve, and its error in ulp."""

from __future__ import annotations

from typing import Any

from pynq_torch.errors import KernelError
from pynq_torch.kernels.tables.pointwise import FUNCTIONS, Function, find
from pynq_torch.plot import COLOURS
from pynq_torch.views import interactive

from .panel import Panel, Picture, figure, ipywidgets

__all__ = ["function_explorer"]

#: Points of the curve: more than the picture has columns.
POINTS = 2001
#: Where ranges and parameters may be set.
LIMIT = 20.0
KERNEL = "unary_f32"


def function_explorer(
    function: str = "tanh",
    low: float | None = None,
    high: float | None = None,
    *,
    live: bool | None = None,
    **parameters: float,
) -> Any:
    """Compute a function of one operand on the PL, and draw it with its error.

    Parameters
    ----------
    function : str
        To begin with; the names are in `pynq_torch.kernels.tables.pointwise`.
    low, high : float, optional
        The range to begin with, -20 to 20. Default: the function's own.
    live : bool, optional
        Show controls. Default: where somebody can use them; otherwise it is computed once.
    **parameters : float
        Those that the function has, to begin with, e.g. ``min=-1, max=1`` of ``"clamp"``.

    Returns
    -------
    Picture or Panel
        The picture without controls, or the panel: end the cell with it. Errors are in units in the
        last place of float32, at the size of the result.

    Raises
    ------
    KernelError
        The loaded overlay has no kernel ``unary_f32``.
    ValueError
        There is no such function or parameter, or the range is empty or too wide.
    """
    _unit()
    row, span = _chosen(function, low, high, parameters)
    p, q = _start(row, parameters)
    if not (interactive() if live is None else live):
        return _draw(function, span, p, q)
    return _panel(row, span, p, q)


def _chosen(
    function: str, low: float | None, high: float | None, parameters: dict[str, float]
) -> tuple[Function, tuple[float, float]]:
    """Return the function's row and its range, checked."""
    try:
        row = find("unary", function)
    except KeyError as error:
        raise ValueError(str(error.args[0])) from error
    own = row.domain
    span = (own[0] if low is None else float(low), own[1] if high is None else float(high))
    if not -LIMIT <= span[0] < span[1] <= LIMIT:
        raise ValueError(
            f"the range is {span[0]:g} to {span[1]:g}; "
            f"expected two ascending numbers in -{LIMIT:g} to {LIMIT:g}"
        )
    for name in parameters:
        if name not in row.parameters:
            known = ", ".join(row.parameters) or "none"
            raise ValueError(f"{row.name} has no parameter {name!r}; it has: {known}")
    return row, span


def _start(row: Function, given: dict[str, float]) -> tuple[float, float]:
    values = [given.get(name, value) for name, value in row.parameters.items()]
    p, q = [*values, 0.0, 0.0][:2]
    return float(p), float(q)


def _unit() -> Any:
    from pynq_torch.overlay import current_overlay

    overlay = current_overlay()
    units = overlay.kernels.of(KERNEL) if overlay is not None else []
    if not units:
        raise KernelError(
            f"{f'{overlay} has no kernel {KERNEL}' if overlay else 'no overlay is loaded'}; "
            "call pynq_torch.load('pointwise') first"
        )
    return units[0]


def _panel(row: Function, span: tuple[float, float], p: float, q: float) -> Panel:
    widgets = ipywidgets()
    names = list(FUNCTIONS["unary"])
    slider: dict[str, Any] = {"min": -LIMIT, "max": LIMIT, "continuous_update": False}
    controls = {
        "function": widgets.Dropdown(options=names, value=row.name, description="function"),
        "span": widgets.FloatRangeSlider(value=span, step=0.1, description="range", **slider),
        "p": widgets.FloatSlider(value=p, step=0.125, **slider),
        "q": widgets.FloatSlider(value=q, step=0.125, **slider),
    }

    def name_parameters(chosen: Function) -> None:
        names = [*chosen.parameters, "", ""]
        for control, name in zip((controls["p"], controls["q"]), names, strict=False):
            control.description = name
            control.layout.display = None if name else "none"

    def other_function(_: Any) -> None:
        chosen = find("unary", panel.controls["function"].value)
        p, q = _start(chosen, {})
        panel.change(span={"value": chosen.domain}, p={"value": p}, q={"value": q})
        name_parameters(chosen)

    name_parameters(row)
    panel = Panel(_draw, controls, on_change={"function": other_function})
    return panel


def _draw(function: str, span: tuple[float, float], p: float, q: float) -> Picture:
    import torch

    unit, row = _unit(), find("unary", function)
    given = dict(zip(row.parameters, (p, q), strict=False))
    x = torch.linspace(span[0], span[1], POINTS)
    y = unit(row, x, **given)
    on_cpu = row.reference(x, p=p, q=q)
    exact = row.reference(x.double(), p=p, q=q)
    unit_in_last_place = row.spacing(x, p=p, q=q)
    error = _ulp(y.double() - on_cpu.double(), y, on_cpu, unit_in_last_place)
    truth = _ulp(y.double() - exact, y, exact, unit_in_last_place)
    drawn = figure()
    curve, errors = drawn.subplots(1, 2)
    settings = "".join(f", {name} = {value:g}" for name, value in given.items())
    curve.plot(x, on_cpu, color=COLOURS["orange"], linewidth=5, label="torch on the CPU")
    curve.plot(x, y, color=COLOURS["blue"], linewidth=1.5, label=f"{unit.cu} on the PL")
    curve.set_title(f"{function}{settings}", fontsize=14)
    curve.legend()
    errors.plot(x, truth, ".", markersize=3, color=COLOURS["green"], label="against float64")
    errors.plot(x, error, ".", markersize=4, color=COLOURS["blue"], label="against torch, float32")
    for bound in {row.ulp, -row.ulp}:
        errors.axhline(bound, color=COLOURS["vermillion"], linewidth=1.5)
    errors.set_title(f"error in ulp (bound {row.ulp:g})", fontsize=14)
    errors.legend()
    for ax in (curve, errors):
        ax.set_xlabel("x")
        ax.grid(alpha=0.3)
    largest = float(error.abs().max())
    verdict = "PASS" if largest <= row.ulp else "FAIL"
    return Picture(
        drawn,
        f"{function}{settings} on {span[0]:g} to {span[1]:g}, {POINTS} points: max error "
        f"{largest:g} ulp of torch's float32, bound {row.ulp:g}: {verdict}",
    )


def _ulp(difference: Any, found: Any, expected: Any, unit: Any) -> Any:
    """Return errors in units in the last place; equal infinities and NaN have none."""
    import torch

    same = (found == expected) | (found.isnan() & expected.isnan())
    return torch.where(same, 0.0, difference / unit).float()
