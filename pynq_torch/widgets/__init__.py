"""What a lesson shows of the hardware: registers, address map, kernels and tiles to play with.

Every view is HTML and text first, so that the committed notebook, GitHub and a printed page show
it. In a live notebook controls come with it, made of what ipywidgets 7.7 and 8.1 both have. Set
``PYNQ_TORCH_STATIC=1`` where a notebook is executed to be kept: controls without a kernel behind
them would stay in the file as dead ones.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

from pynq_torch.errors import needs

from .address_map import MemoryMap
from .gemm import gemm_tiler
from .kernels import kernel_explorer
from .pointwise import function_explorer
from .register_view import RegisterView

__all__ = [
    "MemoryMap",
    "RegisterView",
    "explore",
    "function_explorer",
    "gemm_tiler",
    "interactive",
    "kernel_explorer",
    "memory_map",
    "register_map",
]


def interactive() -> bool:
    """Whether there is somebody who could use a control: a live notebook with ipywidgets."""
    if os.environ.get("PYNQ_TORCH_STATIC", "") not in ("", "0"):
        return False
    if "ipykernel" not in sys.modules:
        return False
    from importlib.util import find_spec

    return find_spec("ipywidgets") is not None


def register_map(ip: Any, *, live: bool | None = None) -> Any:
    """Show the registers of an IP: offsets, names, bits and what they hold now.

    Parameters
    ----------
    ip : object
        An IP of an overlay, upstream's or our driver.
    live : bool, optional
        With controls to read again and to write. Default: where somebody can use them.

    Returns
    -------
    RegisterView or None
        The static view; ``None`` where it was displayed with controls.

    Notes
    -----
    Reading is done once, when the view is made. Reading AP_CTRL clears AP_DONE and AP_READY; a
    register that is write-only is shown as such and not read.
    """
    view = RegisterView(ip)
    return _show(view, live)


def memory_map(overlay: Any, *, live: bool | None = None) -> Any:
    """Show the processor's address map with an overlay: IP, memories, CMA buffers.

    Parameters
    ----------
    overlay : pynq.Overlay
        The overlay.
    live : bool, optional
        With a menu to choose an IP and see its registers. Default: where somebody can use it.

    Returns
    -------
    MemoryMap or None
        The static view; ``None`` where it was displayed with controls.
    """
    view = MemoryMap(overlay)
    return _show(view, live)


def _show(view: Any, live: bool | None) -> Any:
    if not (interactive() if live is None else live):
        return view
    from IPython.display import display

    display(view.controls())
    return None


def explore(function: Callable[..., Any], *, live: bool | None = None, **controls: Any) -> Any:
    """Run a function, and again with each move of a slider.

    Parameters
    ----------
    function : callable
        Called with a keyword argument for each control. What it prints, displays or draws with
        ``plt.show()`` is its output.
    live : bool, optional
        With controls. Default: where somebody can use them; otherwise the function runs once and
        its output stays as it is, e.g. as a PNG.
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
    with needs("ipywidgets", "A control in a notebook"):
        import ipywidgets
        from IPython.display import display

    sliders = {name: _slider(ipywidgets, name, *plan) for name, plan in plans.items()}
    output = ipywidgets.Output()

    def rerun(_: Any = None) -> None:
        output.clear_output(wait=True)
        with output:
            function(**{name: slider.value for name, slider in sliders.items()})

    for slider in sliders.values():
        slider.observe(rerun, names="value")
    display(ipywidgets.VBox([*sliders.values(), output]))
    rerun()
    return None


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
            f"control {name!r} is {spec!r}; expected (low, high), (low, high, step) or a list of "
            "values"
        )
    low, high = spec[:2]
    step = spec[2] if len(spec) == 3 else (1 if _whole(spec) else (high - low) / 100)
    if step <= 0:
        raise ValueError(f"control {name!r} has step {step}; expected a number greater than 0")
    if start is None:
        middle = (low + high) / 2
        start = low + round((middle - low) / step) * step if step else low
    if not low <= start <= high:
        raise ValueError(f"control {name!r} starts at {start}, outside {low} to {high}")
    return (low, high, step), start


def _whole(values: Iterable[Any]) -> bool:
    return all(isinstance(v, int) for v in values)


def _slider(ipywidgets: Any, name: str, plan: Any, start: Any) -> Any:
    # Not while it is dragged: a run may take seconds.
    options: dict[str, Any] = {"description": name, "continuous_update": False, "value": start}
    if isinstance(plan, list):
        return ipywidgets.SelectionSlider(options=plan, **options)
    low, high, step = plan
    kind = ipywidgets.IntSlider if _whole(plan) else ipywidgets.FloatSlider
    return kind(min=low, max=high, step=step, **options)


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as HTML; cells are escaped."""
    head = "".join(f"<th style='text-align:left'>{escape(c)}</th>" for c in header)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(c)}</td>" for c in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
