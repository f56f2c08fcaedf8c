"""The board's own base overlay: the vendor's first programs, unmodified, on a virtual board."""

from __future__ import annotations

import asyncio
import importlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynq
import pytest

import pynq_torch
from pynq_torch import paths
from pynq_torch.board import vendor
from pynq_torch.board.panel import Panel
from pynq_torch.cli import main
from pynq_torch.errors import BoardError

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    loop.close()
    asyncio.set_event_loop(None)


@pytest.fixture(params=["csim", "rtl"])
def board(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> Iterator[Any]:
    board = pynq_torch.use_board(request.param)
    yield board
    board.close()


@pytest.fixture
def base(board: Any) -> Any:
    from pynq.overlays.base import BaseOverlay

    return BaseOverlay("base.bit")


@pytest.fixture
def panel(board: Any, base: Any) -> Panel:
    return Panel(board)


def test_leds_are_seen(base: Any, panel: Panel) -> None:
    seen: list[tuple[bool, ...]] = []
    panel.watch(lambda panel: seen.append(panel.leds))
    for led in base.leds:
        led.on()
    base.leds[1].toggle()
    assert panel.leds == (True, False, True, True)
    assert seen[0] == (True, False, False, False) and seen[-1] == panel.leds
    base.rgbleds[4].write(1)
    base.rgbleds[5].write(6)
    assert panel.rgbleds == (1, 6)
    base.rgbleds[4].off()
    assert panel.rgbleds == (0, 6) and base.rgbleds[5].read() == 6


def test_buttons_and_switches_are_read(base: Any, panel: Panel) -> None:
    panel.press(3)
    panel.press(0)
    panel.switch(1, True)
    assert [base.buttons[i].read() for i in range(4)] == [1, 0, 0, 1]
    assert (base.switches.read(), panel.switches) == (2, (False, True))
    panel.release(3)
    assert (base.buttons.read(), panel.buttons) == (1, (True, False, False, False))


def test_an_interrupt_ends_a_wait(base: Any, panel: Panel, loop: asyncio.AbstractEventLoop) -> None:
    async def flash(number: int) -> None:
        await base.buttons[number].wait_for_value_async(1)
        base.leds[number].on()
        await base.buttons[number].wait_for_value_async(0)
        base.leds[number].off()

    async def play() -> list[tuple[bool, ...]]:
        task = asyncio.ensure_future(flash(2))
        seen = []
        for move in (panel.press, panel.release):
            await asyncio.sleep(0.05)
            move(2)
            await asyncio.sleep(0.2)
            seen.append(panel.leds)
        await asyncio.wait_for(task, 10)
        return seen

    assert loop.run_until_complete(play()) == [(False, False, True, False), (False,) * 4]
    timer = threading.Timer(0.2, panel.switch, [0, True])
    timer.start()
    base.switches[0].wait_for_value(1)
    timer.join()


def test_the_register_map_is_that_of_a_board(base: Any) -> None:
    # As printed by a board in the vendor's notebook register_map_intro.
    assert list(base.btns_gpio.register_map._register_classes) == [
        "GPIO_DATA",
        "GPIO_TRI",
        "GPIO2_DATA",
        "GPIO2_TRI",
        "GIER",
        "IP_ISR",
        "IP_IER",
    ]
    assert base.btns_gpio.register_map.GPIO_DATA.CH1_DATA == 0
    assert base.btns_gpio.register_map.GPIO_TRI.CH1_TRI == 15
    assert base.btns_gpio.register_map.GPIO2_DATA.CH2_DATA == 0
    assert base.btns_gpio.register_map.GPIO2_TRI.CH2_TRI == 0xFFFFFFFF
    base.leds_gpio.register_map.GPIO_DATA.CH1_DATA = 8
    base.leds_gpio.register_map.GPIO_DATA[2:0] = 5
    assert Panel(pynq.Device.active_device).leds == (True, False, True, True)


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda base: base.video.hdmi_in.start(), r"base\.video: .* no model of HDMI video"),
        (lambda base: base.PMODA["mbtype"], r"base\.PMODA: .* no model of MicroBlaze"),
        (lambda base: base.audio.record(3), r"base\.audio: .* no model of audio"),
        (lambda base: base.trace_pmoda.setup(), r"base\.trace_pmoda: .* the trace analyser"),
        (lambda base: base.select_rpi(), r"base\.pin_select: "),
    ],
)
def test_what_has_no_model_says_so_at_once(base: Any, use: Any, says: str) -> None:
    with pytest.raises(BoardError, match=says):
        use(base)
    assert base.leds_gpio is not None
    with pytest.raises(AttributeError, match="nonsense"):
        base.nonsense  # noqa: B018


def test_a_second_board_has_leds_of_its_own() -> None:
    for _ in range(2):
        board = pynq_torch.use_board("csim")
        base = importlib.import_module("pynq.overlays.base").BaseOverlay("base.bit")
        assert Panel(board).rgbleds == (0, 0)
        base.rgbleds[5].write(2)
        assert Panel(board).rgbleds == (0, 2)
    board.close()


def test_by_its_name_as_pynq_finds_it(board: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert pynq.Overlay("base.bit").bitfile_name == str(vendor.BASE / "base.bit")


@pytest.mark.parametrize("where", ["beside the program", "in the current folder", "by its path"])
def test_a_base_overlay_of_the_program_comes_first(tmp_path: Path, where: str) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for end in ("bit", "hwh"):
        shutil.copy(vendor.BASE / f"base.{end}", own)
    name = repr(str(own / "base.bit") if where == "by its path" else "base.bit")
    program = (own if where == "beside the program" else tmp_path) / "program.py"
    program.write_text(
        f"from pynq.overlays.base import BaseOverlay\nprint(BaseOverlay({name}).bitfile_name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pynq_torch", "run", str(program)],
        cwd=own if where == "in the current folder" else tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == str(own / "base.bit"), done.stderr


def test_only_while_a_virtual_board_is_in_use() -> None:
    board = pynq_torch.use_board("csim")
    assert importlib.util.find_spec("pynq.overlays.base") is not None
    board.close()
    sys.modules.pop("pynq.overlays.base", None)
    assert importlib.util.find_spec("pynq.overlays.base") is None
    assert not (Path(next(iter(vendor.__path__))) / "base.bit").exists()


def test_the_drivers_of_hdmi_are_those_of_a_board() -> None:
    """pynq leaves them out on a PC; with VideoIn alone, its check of a hierarchy is a TypeError."""
    program = """
import pynq.lib.video
from pynq.overlays.base import BaseOverlay
BaseOverlay("base.bit")
print(sorted(kind.__name__ for kind in pynq.overlay._hierarchy_drivers if "HDMI" in kind.__name__))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYNQ_TORCH_BOARD": "csim"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['HDMIInFrontend', 'HDMIOutFrontend', 'HDMIWrapper']"


def test_a_panel_needs_the_gpio() -> None:
    board = pynq_torch.use_board("csim")
    pynq_torch.load("vadd")
    with pytest.raises(BoardError, match="no GPIO called leds_gpio; load the base overlay"):
        Panel(board)
    importlib.import_module("pynq.overlays.base").BaseOverlay("base.bit")
    with pytest.raises(ValueError, match="button is 4; the board has buttons 0 to 3"):
        Panel(board).press(4)
    board.close()


def test_the_design_is_what_its_description_makes(tmp_path: Path) -> None:
    shutil.copytree(paths.HW / "board" / "hw", tmp_path / "hw")
    assert main(["overlay", "build", "--root", str(tmp_path), "base"]) == 0
    for name in ("base.bit", "base.hwh"):
        assert (tmp_path / "bitstreams/base" / name).read_bytes() == (
            vendor.BASE / name
        ).read_bytes()
