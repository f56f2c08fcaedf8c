"""Sliders above the output of a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pynq_torch.views import interactive

from .panel import ipywidgets

__all__ = ["explore"]


def explore(function: Callable[..., Any], *, live: bool | None = None, **controls: Any) -> Any:
    """Run a function, and again with each move of a slider.

    Parameters
    ----------
    function : callable
        Called with a keyword argument for each control. What it prints, displays or draws with
        ``plt.show()`` is its output.
    live : bool, optional
        Show controls. Default: where somebody can use them; otherwise the function runs once
        and its output stays as it is, e.g. as a PNG.
    **controls
        ``name=(low, high)`` or ``(low, high, step)``, a slider of integers or, with a float among
        them, of floats; ``name=[values]``, a slider over those values. It starts in the middle;
        ``name=((low, high), start)`` says where.

    Returns
    -------
    object
        What the function returned, where it ran once; ``None`` with controls.

    Examples
    --------
    >>> explore(lambda size: print(size * size), size=(1, 9), live=False)
    25
    """
    if not controls:
        raise ValueError("explore needs at least one control, e.g. size=(16, 256)")
    plans = {name: _plan(name, spec) for name, spec in controls.items()}
    if not (interactive() if live is None else live):
        return function(**{name: start for name, (_, start) in plans.items()})
    _show({name: _slider(name, *plan) for name, plan in plans.items()}, function)
    return None


def _show(sliders: dict[str, Any], function: Callable[..., Any]) -> None:
    """Display sliders with the output of the function, which runs again when one is moved."""
    from IPython.display import display

    widgets = ipywidgets()
    output = widgets.Output()

    def rerun(_: Any = None) -> None:
        output.clear_output(wait=True)
        with output:
            function(**{name: slider.value for name, slider in sliders.items()})

    for slider in sliders.values():
        slider.observe(rerun, names="value")
    display(widgets.VBox([*sliders.values(), output]))
    rerun()


def _plan(name: str, spec: Any) -> tuple[Any, Any]:
    """Return (range or values, start) of a control."""
    start = None
    if isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[0], (tuple, list)):
        spec, start = spec
    if isinstance(spec, list):
        if not spec:
            raise ValueError(f"control {name!r} has no values; expected a list with at least one")
        start = spec[len(spec) // 2] if start is None else start
        if start not in spec:
            raise ValueError(f"control {name!r} starts at {start!r}, which is not in {spec}")
        return spec, start
    if not (isinstance(spec, tuple) and len(spec) in (2, 3) and spec[0] <= spec[1]):
        raise ValueError(
            f"control {name!r} is {spec!r}; "
            "expected (low, high), (low, high, step) or a list of values"
        )
    low, high = spec[:2]
    step = spec[2] if len(spec) == 3 else (1 if _whole(spec) else (high - low) / 100)
    if step <= 0:
        raise ValueError(f"control {name!r} has step {step}; expected a number greater than 0")
    if start is None:
        start = low + round(((low + high) / 2 - low) / step) * step
    if not low <= start <= high:
        raise ValueError(f"control {name!r} starts at {start}, outside {low} to {high}")
    return (low, high, step), start


def _whole(values: Iterable[Any]) -> bool:
    return all(isinstance(v, int) for v in values)


def _slider(name: str, plan: Any, start: Any) -> Any:
    # Not while it is dragged: a run may take seconds.
    options: dict[str, Any] = {"description": name, "continuous_update": False, "value": start}
    widgets = ipywidgets()
    if isinstance(plan, list):
        return widgets.SelectionSlider(options=plan, **options)
    low, high, step = plan
    kind = widgets.IntSlider if _whole(plan) else widgets.FloatSlider
    return kind(min=low, max=high, step=step, **options)
