"""The PYNQ-Z2 as a person in front of it sees it: LEDs, RGB LEDs, switches and buttons."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from pynq_torch.board.panel import Panel

from .panel import ipywidgets, shows_errors

__all__ = ["BoardView"]

_COLOURS = ("off", "blue", "green", "cyan", "red", "magenta", "yellow", "white")
_LIGHTS = ("#4A4A4A", "#3B6BFF", "#25D04A", "#22D3D3", "#FF3B30", "#E040FB", "#FFD60A", "#FFFFFF")
_LED_ON = _LIGHTS[2]
#: A program can switch an LED more often than a page can show it.
_SHORTEST_S = 0.04
#: Parts that help to find one's way: x, y, width, height, name.
_PARTS = (
    (18, 30, 62, 40, "HDMI out"),
    (18, 88, 62, 40, "HDMI in"),
    (18, 146, 62, 34, "audio"),
    (18, 214, 62, 52, "Ethernet"),
    (110, 8, 62, 26, "USB"),
    (196, 8, 84, 26, "micro-USB"),
    (470, 60, 46, 84, "PMODA"),
    (470, 160, 46, 84, "PMODB"),
    (330, 8, 130, 18, "Arduino"),
    (120, 56, 150, 26, "Raspberry Pi header"),
)


class BoardView:
    """The board of a moment, not to scale: SVG in a notebook, a line elsewhere.

    Parameters
    ----------
    panel : Panel
        Of a virtual board with the base overlay's GPIO.
    """

    def __init__(self, panel: Panel) -> None:
        self._panel = panel

    @property
    def svg(self) -> str:
        """The drawing of now."""
        panel = self._panel
        shapes = [
            '<rect x="2" y="2" width="536" height="336" rx="14" fill="#E79BBE" stroke="#8A4A68"/>',
            *(_part(*part) for part in _PARTS),
            '<rect x="196" y="118" width="104" height="104" fill="#2E2E2E"/>',
            _text(248, 166, "Zynq-7000", "#FFFFFF"),
            _text(248, 182, "PS and PL", "#FFFFFF"),
            _text(410, 330, "PYNQ-Z2", "#3A1226"),
        ]
        for index, colour in enumerate(panel.rgbleds):
            shapes += _led(356 + 44 * index, 196, _LIGHTS[colour], f"LD{4 + index}")
        for index, up in enumerate(panel.switches):
            x = 110 + 40 * index
            shapes += [_box(x, 262, 20, 40, "#2E2E2E"), _box(x + 3, 265 + 20 * (not up), 14, 14)]
            shapes.append(_text(x + 10, 318, f"SW{index}"))
        for index, lit in enumerate(panel.leds):
            shapes += _led(224 + 44 * index, 250, _LED_ON if lit else _LIGHTS[0], f"LD{index}")
        for index, down in enumerate(panel.buttons):
            x = 224 + 44 * index
            shapes += [
                _box(x - 11, 278, 22, 22, "#C9C9C9"),
                _cap(x, 289, down),
            ]
            shapes.append(_text(x, 318, f"BTN{index}"))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{self}" '
            f'viewBox="0 0 540 340" style="max-width: 540px; width: 100%">{"".join(shapes)}</svg>'
        )

    def controls(self) -> Any:
        """Return the drawing as a widget that follows the LEDs, above switches and buttons.

        What is clicked reaches the board while no cell runs, or while one awaits something.
        """
        widgets = ipywidgets()
        picture, message = widgets.HTML(self.svg), widgets.HTML()
        _Follower(self, picture).follow(self._panel)
        rows = []
        kinds = (
            ("SW", self._panel.switches, self._panel.switch),
            ("BTN", self._panel.buttons, self._move_button),
        )
        for name, levels, move in kinds:
            for index, level in enumerate(levels):
                control = widgets.ToggleButton(
                    value=level, description=f"{name}{index}", layout={"width": "auto"},
                    tooltip="up or down" if name == "SW" else "pressed, and released",
                )  # fmt: skip
                moved = partial(self._moved, partial(move, index), picture)
                control.observe(shows_errors(message, moved), names="value")
                rows.append(control)
        row = widgets.HBox(rows, layout={"flex_flow": "row wrap"})
        box = widgets.VBox([picture, row, message])
        box.add_class("pynq-torch-board")
        return box

    def _move_button(self, button: int, down: bool) -> None:
        (self._panel.press if down else self._panel.release)(button)

    def _moved(self, move: Any, picture: Any, change: Any) -> None:
        move(change["new"])
        picture.value = self.svg

    def __str__(self) -> str:
        panel = self._panel
        colours = ", ".join(_COLOURS[colour] for colour in panel.rgbleds)
        return (
            f"PYNQ-Z2: LEDs {_bits(panel.leds)}, RGB LEDs {colours}, "
            f"switches {_bits(panel.switches)}, buttons {_bits(panel.buttons)}"
        )

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.svg


class _Follower:
    """Draws a board again when its LEDs change, not more often than a page can show."""

    def __init__(self, view: BoardView, picture: Any) -> None:
        self._view, self._picture = view, picture
        self._lock = threading.Lock()
        self._drawn = 0.0
        self._waiting = False

    def follow(self, panel: Panel) -> None:
        panel.watch(lambda _: self._changed())

    def _changed(self) -> None:
        with self._lock:
            if self._waiting:
                return
            rest = self._drawn + _SHORTEST_S - time.monotonic()
            self._waiting = rest > 0
        if rest > 0:
            timer = threading.Timer(rest, self._draw)
            timer.daemon = True
            timer.start()
        else:
            self._draw()

    def _draw(self) -> None:
        with self._lock:  # what changes from here on is drawn by the next one
            self._drawn, self._waiting = time.monotonic(), False
        self._picture.value = self._view.svg


def _bits(levels: Sequence[bool]) -> str:
    return "".join(str(int(level)) for level in levels)


def _part(x: int, y: int, width: int, height: int, name: str) -> str:
    return _box(x, y, width, height, "#BDBDBD") + _text(x + width / 2, y + height / 2 + 3, name)


def _led(x: int, y: int, colour: str, name: str) -> tuple[str, str]:
    lit = f'<circle cx="{x}" cy="{y}" r="9" fill="{colour}" stroke="#222222" stroke-width="1.5"/>'
    return lit, _text(x, y - 13, name)


def _cap(x: int, y: int, down: bool) -> str:
    radius, colour = (6, "#111111") if down else (8, "#555555")
    return f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{colour}"/>'


def _box(x: int, y: int, width: int, height: int, colour: str = "#F2F2F2") -> str:
    size = f'width="{width}" height="{height}"'
    return f'<rect x="{x}" y="{y}" {size} rx="2" fill="{colour}" stroke="#444444"/>'


def _text(x: float, y: float, text: str, colour: str = "#111111") -> str:
    # As a style: JupyterLab has one of its own for text, which wins against an attribute.
    font = 'style="font: 10px Helvetica, Arial, sans-serif" text-anchor="middle"'
    return f'<text x="{x:g}" y="{y:g}" {font} fill="{colour}">{text}</text>'
