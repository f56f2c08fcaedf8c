"""Controls with one picture: every move of a control draws the picture again.

A picture is a PNG with a line of text, so that a notebook that is committed, printed or shown
without a kernel keeps it. Live, it comes with controls that ipywidgets 7.7 and 8.1 both have.
"""

from __future__ import annotations

import base64
import io
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from html import escape
from typing import Any

from pynq_torch.errors import needs

__all__ = ["Panel", "Picture", "error_html", "figure", "ipywidgets", "shows_errors"]

#: Dots an inch: sharp on a projector at the width of a notebook, and drawn in a fifth of a second.
DPI = 90


def ipywidgets() -> Any:
    """Return the package ``ipywidgets``, imported when a control is made."""
    with needs("ipywidgets", "A control in a notebook"):
        import ipywidgets
    return ipywidgets


def figure(width: float = 10.0, height: float = 4.2) -> Any:
    """Return a matplotlib figure of its own, in inches, that no notebook back end displays."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    return made


class Picture:
    """A figure and what it says, fixed: it shows as PNG in a notebook and as text elsewhere.

    Parameters
    ----------
    drawn : matplotlib.figure.Figure
        From `figure`.
    text : str
        A line or a few; what a test or a reader without the picture needs.
    """

    def __init__(self, drawn: Any, text: str) -> None:
        stream = io.BytesIO()
        drawn.savefig(stream, format="png", dpi=DPI)
        self.png = stream.getvalue()
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def _repr_png_(self) -> bytes:
        return self.png


class Panel:
    """Controls above a picture; the value of a notebook's cell that ends in it.

    Parameters
    ----------
    draw : callable
        Called with the value of every control by name; returns a `Picture`.
    controls : mapping of str to ipywidgets widget
        In the order shown. A control with a single option is left out of sight: it could not
        change the picture.
    extra : sequence of ipywidgets widgets
        Shown with the controls, e.g. a player that is linked to one of them.
    on_change : mapping of str to callable
        Called before `redraw` when that control changes, where others follow from it.

    Attributes
    ----------
    picture : ipywidgets.Image
        The picture, empty after an error.
    message : ipywidgets.HTML
        The text of the picture, or what went wrong.
    error : Exception or None
        What `draw` raised the last time.
    """

    def __init__(
        self,
        draw: Callable[..., Picture],
        controls: Mapping[str, Any],
        extra: tuple[Any, ...] = (),
        on_change: Mapping[str, Callable[[Any], None]] | None = None,
    ) -> None:
        widgets = ipywidgets()
        self._draw = draw
        self._quiet = False
        self.controls = dict(controls)
        self.picture = widgets.Image(format="png", layout={"max_width": "100%"})
        self.message = widgets.HTML()
        self.error: Exception | None = None
        row = widgets.HBox([*self.controls.values(), *extra], layout={"flex_flow": "row wrap"})
        self.box = widgets.VBox([row, self.message, self.picture])
        self.box.add_class("pynq-torch-panel")
        for name, control in self.controls.items():
            reaction = (on_change or {}).get(name)
            control.observe(partial(self._changed, reaction), names="value")
        self.redraw()

    def values(self) -> dict[str, Any]:
        """Return the value of every control by name."""
        return {name: control.value for name, control in self.controls.items()}

    def redraw(self, first: Callable[[], None] | None = None) -> None:
        """Draw the picture for the values of now; what goes wrong is shown in its place.

        Parameters
        ----------
        first : callable, optional
            Called before; it sets controls that follow from others.
        """
        try:
            if first is not None:
                first()
            self._hide_what_has_no_choice()
            drawn = self._draw(**self.values())
        except Exception as error:  # noqa: BLE001 - nobody above a callback would show it
            self.error, self.picture.value = error, b""
            self.message.value = error_html(error)
            return
        self.error, self.picture.value = None, drawn.png
        self.message.value = f"<pre class='pynq-torch-text'>{escape(drawn.text)}</pre>"

    def change(self, **settings: Mapping[str, Any]) -> None:
        """Set traits of controls without drawing: ``change(step={"max": 9, "value": 0})``."""
        self._quiet = True
        try:
            for name, traits in settings.items():
                for trait, value in traits.items():
                    setattr(self.controls[name], trait, value)
        finally:
            self._quiet = False

    def _changed(self, reaction: Callable[[Any], None] | None, change: Any) -> None:
        if not self._quiet:
            self.redraw(None if reaction is None else partial(reaction, change))

    def _hide_what_has_no_choice(self) -> None:
        for control in self.controls.values():
            options = getattr(control, "options", None)
            if options is not None:
                control.layout.display = "none" if len(options) < 2 else None

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return the controls, and for a page without a kernel the picture of this moment."""
        bundle = view_of(self.box)
        if self.picture.value:
            bundle["image/png"] = base64.b64encode(self.picture.value).decode()
        return bundle | {"text/plain": "controls; run the cell again where they do not show"}


def view_of(box: Any) -> dict[str, Any]:
    """Return what makes a page with a kernel show a widget."""
    view = {"version_major": 2, "version_minor": 0, "model_id": box.model_id}
    return {"application/vnd.jupyter.widget-view+json": view}


def shows_errors(place: Any, callback: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a callback of a control that shows its errors.

    Parameters
    ----------
    place : ipywidgets.HTML
        Where they are shown; nobody above a callback would.
    callback : callable
        Called with what changed.
    """

    def shown(change: Any) -> None:
        try:
            callback(change)
        except Exception as error:  # noqa: BLE001 - shown
            place.value = error_html(error)

    return shown


def error_html(error: Exception) -> str:
    """Return an error for people, with the traceback to unfold."""
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    name, text = escape(type(error).__name__), escape(str(error))
    return (
        f"<div class='pynq-torch-error' style='color:#a11414'><b>{name}</b>: {text}"
        f"<details><summary>where</summary><pre>{escape(trace)}</pre></details></div>"
    )


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as HTML; cells are escaped."""
    head = "".join(f"<th style='text-align:left'>{escape(c)}</th>" for c in header)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(c)}</td>" for c in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
