"""Waves with controls: which signals, and a window of cycles to move over them.

Made of what ipywidgets 7.7 and 8.1 both have.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from pynq_torch.errors import WaveError
from pynq_torch.plot.wave_picture import WavePicture, picture
from pynq_torch.views import interactive

from .panel import error_html, ipywidgets, view_of

if TYPE_CHECKING:
    from pynq_torch.board.rtl.observe.wave_file import WaveFile

__all__ = ["WaveView", "show"]

#: Cycles in the window at first, where the picture that was asked for has more.
_SPAN = 40


class WaveView:
    """A list of signals and two sliders above a picture of waves.

    Parameters
    ----------
    waves : WaveFile
        The waves.
    first : WavePicture
        What it shows at first.
    options : dict
        Options of every picture; see `pynq_torch.plot.wave_picture.picture`.

    Attributes
    ----------
    shown : WavePicture or None
        What it shows; ``None`` after an error.
    """

    def __init__(self, waves: WaveFile, first: WavePicture, options: dict[str, Any]) -> None:
        widgets = ipywidgets()
        self._waves = waves
        self._options = options
        self.shown: WavePicture | None = first
        origin = first.origin
        there = waves.cycles
        seen = [cycle for cycle in first.columns if cycle is not None]
        begin, span = seen[0] - origin, min(seen[-1] - seen[0] + 1, len(there))
        chosen = [lane.name for lane in first.lanes]
        names = list(dict.fromkeys([*chosen, *waves.signals]))
        wide = {"layout": {"width": "26em"}, "continuous_update": False}
        self.signals = widgets.SelectMultiple(
            options=names, value=chosen, rows=10, description="signals", layout={"width": "26em"}
        )
        ends = {"min": there.start - origin, "max": there.stop - 1 - origin}
        self.begin = widgets.IntSlider(begin, description="from cycle", **ends, **wide)
        ends = {"min": 1, "max": max(len(there), 1)}
        self.span = widgets.IntSlider(span, description="cycles", **ends, **wide)
        self.fold = widgets.Checkbox(bool(options.get("fold", True)), description="fold gaps")
        self.picture, self.message = widgets.HTML(), widgets.HTML()
        window = widgets.VBox([self.begin, self.span, self.fold])
        controls = widgets.HBox([self.signals, window])
        self.box = widgets.VBox([controls, self.message, self.picture])
        self.box.add_class("pynq-torch-waves")
        for control in (self.signals, self.begin, self.span, self.fold):
            control.observe(self._redraw, names="value")
        self._display(first)

    def _redraw(self, _: Any = None) -> None:
        begin = self.begin.value
        try:
            # In the order of the file, which a list of choices cannot change.
            signals, cycles = list(self.signals.value), (begin, begin + self.span.value)
            options = {**self._options, "fold": self.fold.value}
            self._display(picture(self._waves, signals, cycles, **options))
        except Exception as error:  # noqa: BLE001 - nobody above a callback would show it
            self.shown, self.picture.value = None, ""
            self.message.value = error_html(error)

    def _display(self, drawn: WavePicture) -> None:
        try:
            self.picture.value = drawn.svg
        except WaveError:
            self.picture.value = f"<pre>{escape(str(drawn))}</pre>"
        self.shown = drawn
        self.message.value = ""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return the controls, and for a page without a kernel the picture of this moment."""
        bundle = view_of(self.box)
        if self.shown is not None:
            svg = self.shown._repr_svg_()
            bundle |= {"image/svg+xml": svg} if svg else {}
            bundle["text/plain"] = str(self.shown)
        return bundle


def show(
    waves: WaveFile,
    signals: Any = None,
    cycles: tuple[int, int] | None = None,
    *,
    live: bool | None = None,
    **options: Any,
) -> Any:
    """Show a window of signals, in a live notebook with controls.

    Parameters
    ----------
    waves : WaveFile
        Where they are.
    signals, cycles, **options
        See `picture`.
    live : bool, optional
        With a list of signals and sliders of the window. Default: where somebody can use them.

    Returns
    -------
    WavePicture or WaveView
        What the last line of a cell shows.
    """
    drawn = picture(waves, signals, cycles, **options)  # errors are the caller's
    if not (interactive() if live is None else live):
        return drawn
    return WaveView(waves, drawn, options)
