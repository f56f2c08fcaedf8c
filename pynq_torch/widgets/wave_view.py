"""Waves with controls: which signals, and a window of cycles to move over them.

Made of what ipywidgets 7.7 and 8.1 both have.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from pynq_torch.errors import WaveError, needs
from pynq_torch.plot.wave_picture import WavePicture, picture
from pynq_torch.views import interactive

from .panel import error_html

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
        Of every picture; see `pynq_torch.plot.wave_picture.picture`.

    Attributes
    ----------
    shown : WavePicture or None
        What it shows; ``None`` after an error.
    """

    def __init__(self, waves: WaveFile, first: WavePicture, options: dict[str, Any]) -> None:
        with needs("ipywidgets", "A control in a notebook"):
            import ipywidgets

        self._waves = waves
        self._options = {key: value for key, value in options.items() if key != "fold"}
        self.shown: WavePicture | None = first
        origin = first.origin
        there = waves.cycles
        seen = [cycle for cycle in first.columns if cycle is not None]
        begin, span = seen[0] - origin, min(seen[-1] - seen[0] + 1, len(there))
        chosen = [lane.name for lane in first.lanes]
        names = list(dict.fromkeys([*chosen, *waves.signals]))
        wide = {"layout": {"width": "26em"}, "continuous_update": False}
        self.signals = ipywidgets.SelectMultiple(
            options=names, value=chosen, rows=10, description="signals", layout={"width": "26em"}
        )
        self.begin = ipywidgets.IntSlider(
            begin,
            min=there.start - origin,
            max=there.stop - 1 - origin,
            description="from cycle",
            **wide,
        )
        self.span = ipywidgets.IntSlider(
            span, min=1, max=max(len(there), 1), description="cycles", **wide
        )
        self.fold = ipywidgets.Checkbox(bool(options.get("fold", True)), description="fold gaps")
        self.picture = ipywidgets.HTML()
        self.message = ipywidgets.HTML()
        controls = ipywidgets.VBox([self.begin, self.span, self.fold])
        self.box = ipywidgets.VBox(
            [ipywidgets.HBox([self.signals, controls]), self.message, self.picture]
        )
        self.box.add_class("pynq-torch-waves")
        for control in (self.signals, self.begin, self.span, self.fold):
            control.observe(self._redraw, names="value")
        self._display(first)

    def _redraw(self, _: Any = None) -> None:
        begin = self.begin.value
        try:
            # In the order of the file, which a list of choices cannot change.
            drawn = picture(
                self._waves,
                list(self.signals.value),
                (begin, begin + self.span.value),
                fold=self.fold.value,
                **self._options,
            )
            self._display(drawn)
        except Exception as error:  # noqa: BLE001 - nobody above a callback would show it
            self.shown = None
            self.picture.value = ""
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
        view = {"version_major": 2, "version_minor": 0, "model_id": self.box.model_id}
        bundle: dict[str, Any] = {"application/vnd.jupyter.widget-view+json": view}
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
