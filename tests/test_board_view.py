"""The board as a picture: what it shows, and that a click moves it."""

from __future__ import annotations

import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import pytest
from helpers import eventually

import pynq_torch
from pynq_torch import widgets
from pynq_torch.board.panel import Panel
from pynq_torch.errors import BoardError
from pynq_torch.widgets.board_view import BoardView

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def base() -> Iterator[Any]:
    board = pynq_torch.use_board("csim")
    from pynq.overlays.base import BaseOverlay

    yield BaseOverlay("base.bit")
    board.close()


def _panel() -> Panel:
    return Panel(pynq_torch.current_board())


def _leds(svg: str) -> list[str]:
    """Return the fills of LD4, LD5 and LD0 to LD3."""
    circles = ET.fromstring(svg).iter(f"{SVG}circle")
    return [str(one.get("fill")) for one in circles if one.get("stroke")]


def test_what_the_picture_shows(base: Any) -> None:
    dark = _leds(widgets.board(live=False).svg)
    assert len(dark) == 6 and len(set(dark)) == 1
    base.leds[1].on()
    base.rgbleds[5].write(6)
    panel = _panel()
    panel.switch(1, True)
    panel.press(3)
    view = widgets.board(live=False)
    assert repr(view) == "PYNQ-Z2: LEDs 0100, RGB LEDs off, yellow, switches 01, buttons 0001"
    lit = _leds(view.svg)
    assert [n for n, (now, then) in enumerate(zip(lit, dark, strict=True)) if now != then] == [1, 3]
    assert lit[1] != lit[3]
    assert ET.fromstring(view._repr_html_()).get("aria-label") == str(view)
    panel.release(3)
    assert "buttons 0000" in view.svg


def _parts(box: Any) -> tuple[Any, dict[str, Any], Any]:
    picture, row, message = box.children
    return picture, {control.description: control for control in row.children}, message


def test_clicks_and_leds(base: Any) -> None:
    _panel().switch(0, True)
    picture, controls, message = _parts(BoardView(_panel()).controls())
    assert list(controls) == ["SW0", "SW1", "BTN0", "BTN1", "BTN2", "BTN3"]
    assert [control.value for control in controls.values()] == [True] + 5 * [False]
    controls["BTN2"].value = True
    controls["SW1"].value = True
    assert (base.buttons.read(), base.switches.read()) == (4, 3)
    assert "switches 11, buttons 0010" in picture.value
    controls["BTN2"].value = False
    assert base.buttons.read() == 0
    base.leds[0].on()
    eventually(lambda: "LEDs 1000" in picture.value)
    assert message.value == ""


def test_a_click_raises_the_interrupt(base: Any) -> None:
    _, controls, _ = _parts(BoardView(_panel()).controls())
    clicks = threading.Timer(0.2, setattr, [controls["BTN1"], "value", True])
    clicks.start()
    base.buttons[1].wait_for_value(1)
    clicks.join()


def test_an_led_that_blinks_faster_than_a_page(base: Any) -> None:
    picture, _, _ = _parts(BoardView(_panel()).controls())
    drawn: list[str] = []
    picture.observe(lambda change: drawn.append(change["new"]), names="value")
    begun = time.monotonic()
    for _ in range(2001):
        base.leds[3].toggle()
    eventually(lambda: "LEDs 0001" in picture.value)
    assert 0 < len(drawn) <= 3 + (time.monotonic() - begun) / 0.04
    assert _leds(drawn[-1])[5] != _leds(drawn[-1])[2]


def test_where_there_is_nothing_to_show(base: Any) -> None:
    _, controls, message = _parts(BoardView(_panel()).controls())
    pynq_torch.load("vadd")
    with pytest.raises(BoardError, match="load the base overlay"):
        widgets.board()
    controls["BTN0"].value = True  # of an overlay that is gone: nothing is interrupted
    assert message.value == ""


def test_without_a_virtual_board(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(widgets, "current_board", lambda: None)
    with pytest.raises(BoardError, match="choose one with use_board"):
        widgets.board()
