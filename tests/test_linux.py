"""The GPIO, UIO and interrupt files that pynq's own classes open on the board."""

from __future__ import annotations

import asyncio
import builtins
import gc
import io
import os
import select
import threading
from collections.abc import Iterator
from pathlib import Path

import pynq
import pynq.gpio
import pynq.interrupt
import pynq.uio
import pytest
from ip_handoff import Ip, write_design

from pynq_torch.board import use_board
from pynq_torch.board.device import VirtualBoard
from pynq_torch.board.linux import Linux, _open_anywhere
from pynq_torch.board.uio import UioDevice, UioFile

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def linux() -> Iterator[Linux]:
    linux = Linux()
    linux.install()
    yield linux
    linux.uninstall()


# ---- what is touched, and what is not --------------------------------------------------------


def test_what_changes_changes_back() -> None:
    real = builtins.open
    before = {
        m: (m.__dict__.get("open"), m.__dict__.get("os"))
        for m in (pynq.gpio, pynq.uio, pynq.interrupt)
    }
    had_pin = hasattr(pynq.gpio.GPIO, "_GPIO_MIN_USER_PIN")
    first, second = Linux(), Linux()
    first.install()
    second.install()
    assert pynq.gpio.GPIO._GPIO_MIN_USER_PIN == 54
    assert builtins.open is io.open is _open_anywhere and os.geteuid is pynq.gpio.os.__getattr__(
        "geteuid"
    )
    first.uninstall()
    assert pynq.uio.get_uio_device("fabric") == "/dev/uio0"
    second.uninstall()
    second.uninstall()
    assert builtins.open is io.open is real
    after = {
        m: (m.__dict__.get("open"), m.__dict__.get("os"))
        for m in (pynq.gpio, pynq.uio, pynq.interrupt)
    }
    assert after == before
    assert hasattr(pynq.gpio.GPIO, "_GPIO_MIN_USER_PIN") == had_pin


def test_other_paths_are_this_machines(linux: Linux, tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("here")
    with pynq.interrupt.open(str(file)) as f:
        assert f.read() == "here"
    assert pynq.gpio.os.path.exists(str(file))
    assert pynq.gpio.os.listdir(str(tmp_path)) == ["x"]
    assert pynq.gpio.os.getpid() == os.getpid()
    assert [n for _, _, n in pynq.gpio.os.walk(str(tmp_path))] == [["x"]]
    assert pynq.gpio.os.geteuid() == 0


# ---- GPIO ------------------------------------------------------------------------------------


def test_gpio_numbers(linux: Linux) -> None:
    assert pynq.GPIO.get_gpio_base() == 906
    assert pynq.GPIO.get_gpio_npins() == 118
    assert pynq.GPIO.get_gpio_pin(0) == 906 + 54
    assert pynq.GPIO.get_gpio_base("no such chip") is None


def test_gpio_output_reaches_the_pl(linux: Linux) -> None:
    seen: list[int] = []
    linux.gpio.on_output(54, seen.append)
    pin = pynq.GPIO(pynq.GPIO.get_gpio_pin(0), "out")
    pin.write(1)
    pin.write(0)
    pin.write(1)
    assert seen == [0, 1, 0, 1]  # "out" drives low first, as Linux does
    assert linux.gpio.output(54) == 1
    with pytest.raises(AttributeError):
        pin.read()
    pin.release()
    assert linux.gpio.output(54) is None


def test_gpio_input_comes_from_the_pl(linux: Linux) -> None:
    pin = pynq.GPIO(pynq.GPIO.get_gpio_pin(3), "in")
    assert pin.read() == 0
    linux.gpio.set_input(57, 1)
    assert pin.read() == 1
    with pytest.raises(AttributeError):
        pin.write(1)
    pin.release()


def test_gpio_mistakes_have_sysfs_errors(linux: Linux) -> None:
    with pytest.raises(OSError, match="906 to 1023"):
        pynq.GPIO(54, "out")  # the pin of the controller, not of Linux
    with pytest.raises(ValueError, match="EMIO from 54"):
        linux.gpio.set_input(118, 1)
    with pytest.raises(ValueError, match="0 or 1"):
        linux.gpio.set_input(54, 2)
    tree = linux.gpio
    with tree.open("/sys/class/gpio/export", "w") as f:
        f.write("960")
    with (
        pytest.raises(OSError, match="exported already"),
        tree.open("/sys/class/gpio/export", "w") as f,
    ):
        f.write("960")
    with (
        pytest.raises(OSError, match="is an input"),
        tree.open("/sys/class/gpio/gpio960/value", "w") as f,
    ):
        f.write("1")
    with (
        pytest.raises(OSError, match="not 'sideways'"),
        tree.open("/sys/class/gpio/gpio960/direction", "w") as f,
    ):
        f.write("sideways")
    with pytest.raises(FileNotFoundError, match="exported"):
        tree.open("/sys/class/gpio/gpio961/value", "r")


# ---- UIO -------------------------------------------------------------------------------------


def _readable(file: UioFile) -> bool:
    return bool(select.select([file], [], [], 0)[0])


def test_uio_device_is_found_by_pynq(linux: Linux) -> None:
    assert pynq.uio.get_uio_device("fabric") == "/dev/uio0"
    assert pynq.uio.get_uio_index("fabric") == 0
    assert pynq.uio.get_uio_index("audio-codec-ctrl") == 1
    assert pynq.uio.get_uio_device("nothing") is None
    assert pynq.interrupt.get_uio_irq(61) == "/dev/uio0"
    assert pynq.interrupt.get_uio_irq(62) is None  # the image binds the first PL interrupt only
    with pytest.raises(FileNotFoundError):
        pynq.uio.open("/dev/uio2", "r+b", buffering=0)


def test_uio_fires_once_until_it_is_enabled_again() -> None:
    device = UioDevice("fabric")
    with UioFile(device) as file:
        device.set_level(True)
        assert _readable(file)
        assert file.read(4) == (1).to_bytes(4, "little")
        device.set_level(False)
        device.set_level(True)
        assert not _readable(file)  # disabled by its own handler
        file.write(b"\0\0\0\1")
        assert _readable(file)  # the level is still high: at once again
        assert file.read(4) == (2).to_bytes(4, "little")
        device.set_level(False)
        file.write(b"\1\0\0\0")
        assert not _readable(file)
        device.set_level(True)
        assert _readable(file)
        assert device.count == 3


def test_uio_write_of_zero_disables() -> None:
    device = UioDevice("fabric")
    with UioFile(device) as file:
        file.write(bytes(4))
        device.set_level(True)
        assert not _readable(file)


def test_uio_transfers_are_four_bytes() -> None:
    with UioFile(UioDevice("fabric")) as file:
        with pytest.raises(OSError, match="4 bytes"):
            file.read(8)
        with pytest.raises(OSError, match="4 bytes"):
            file.write(b"\1")
    with pytest.raises(ValueError, match="closed"):
        file.fileno()


def test_uio_events_before_the_open_are_not_seen() -> None:
    device = UioDevice("fabric")
    device.set_level(True)
    with UioFile(device) as late:
        assert not _readable(late)


# ---- interrupts through pynq -----------------------------------------------------------------


@pytest.fixture
def board() -> Iterator[VirtualBoard]:
    board = use_board("csim")
    assert isinstance(board, VirtualBoard)
    yield board
    board.close()


_BUTTONS = {"C_GPIO_WIDTH": 1, "C_ALL_INPUTS": 1, "C_INTERRUPT_PRESENT": 1}


def _load(folder: Path) -> pynq.Overlay:
    ip = Ip("axi_gpio", "button", 0x41200000, _BUTTONS)
    overlay = pynq.Overlay(str(write_design(folder, "irq", [ip], {}, ["button/ip2intc_irpt"])))
    mmio = pynq.MMIO(0x41200000, 0x200)
    mmio.write(0x11C, 1 << 31)
    mmio.write(0x128, 1)
    return overlay


def _press_and_clear(board: VirtualBoard, times: int) -> object:
    async def go() -> int:
        interrupt = pynq.Interrupt("button/ip2intc_irpt")
        mmio = pynq.MMIO(0x41200000, 0x200)
        seen = 0
        for i in range(times):
            timer = threading.Timer(0.01, board.ip["button"].set_input, (1, (i + 1) % 2))
            timer.start()
            await asyncio.wait_for(interrupt.wait(), 5)
            mmio.write(0x120, 1)
            seen += 1
            timer.join()
        return seen

    return go()


def test_wait_in_a_script(board: VirtualBoard, tmp_path: Path) -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        _load(tmp_path)
        assert loop.run_until_complete(_press_and_clear(board, 5)) == 5
        board.close()
    finally:
        loop.close()
        asyncio.set_event_loop(None)


def test_wait_in_a_running_loop_as_in_jupyter(board: VirtualBoard, tmp_path: Path) -> None:
    async def cell() -> None:
        _load(tmp_path)
        assert await _press_and_clear(board, 5) == 5
        board.close()

    asyncio.run(cell())


def test_a_board_closed_after_its_loop_ended(board: VirtualBoard, tmp_path: Path) -> None:
    async def main() -> None:
        _load(tmp_path)
        assert await _press_and_clear(board, 1) == 1

    asyncio.run(main())
    board.close()
    gc.collect()  # pytest reports what a finalizer raises


def test_boards_in_a_row_leave_no_descriptor(tmp_path: Path) -> None:
    def once() -> None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        board = use_board("csim")
        assert isinstance(board, VirtualBoard)
        _load(tmp_path)
        assert loop.run_until_complete(_press_and_clear(board, 1)) == 1
        board.close()
        loop.close()
        asyncio.set_event_loop(None)
        gc.collect()

    once()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        once()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_second_overlay_takes_the_interrupts_over(board: VirtualBoard, tmp_path: Path) -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        for _ in range(3):
            _load(tmp_path)
            assert loop.run_until_complete(_press_and_clear(board, 2)) == 2
        board.close()
    finally:
        loop.close()
        asyncio.set_event_loop(None)
