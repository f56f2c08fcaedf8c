"""AXI GPIO and the interrupt controller behind pynq's own drivers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pynq
import pytest
from ip_handoff import Ip, write_design

from pynq_torch.board import use_board
from pynq_torch.board.device import VirtualBoard
from pynq_torch.board.ip.axi_gpio import AxiGpio
from pynq_torch.board.ip.axi_intc import AxiIntc

pytestmark = pytest.mark.timeout(60)

_BUTTONS = {"C_GPIO_WIDTH": 4, "C_ALL_INPUTS": 1, "C_INTERRUPT_PRESENT": 1}
_LEDS = {"C_GPIO_WIDTH": 4, "C_ALL_OUTPUTS": 1, "C_DOUT_DEFAULT": "0x00000005"}
_BOTH = {"C_GPIO_WIDTH": 8, "C_IS_DUAL": 1, "C_GPIO2_WIDTH": 2, "C_INTERRUPT_PRESENT": 1}


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    loop.close()
    asyncio.set_event_loop(None)


@pytest.fixture
def board(loop: asyncio.AbstractEventLoop) -> Iterator[VirtualBoard]:
    board = use_board("csim", hang_timeout_s=1.5)
    assert isinstance(board, VirtualBoard)
    yield board
    board.close()


@pytest.fixture
def overlay(board: VirtualBoard, tmp_path: Path) -> pynq.Overlay:
    ips = [
        Ip("axi_gpio", "buttons", 0x41200000, _BUTTONS),
        Ip("axi_gpio", "leds", 0x41210000, _LEDS),
        Ip("axi_gpio", "both", 0x41220000, _BOTH),
    ]
    pins = ["buttons/ip2intc_irpt", "both/ip2intc_irpt"]
    return pynq.Overlay(str(write_design(tmp_path, "gpio", ips, {}, pins)))


def _gpio(board: VirtualBoard, name: str) -> AxiGpio:
    model = board.ip[name]
    assert isinstance(model, AxiGpio)
    return model


def test_inputs_are_what_the_outside_drives(board: VirtualBoard, overlay: pynq.Overlay) -> None:
    buttons = overlay.buttons.channel1
    buttons.setdirection("in")
    _gpio(board, "buttons").set_input(1, 0b1010)
    assert buttons[0:4].read() == 0b1010
    assert (buttons[1].read(), buttons[0].read()) == (1, 0)


def test_outputs_reach_the_observer_and_read_back(
    board: VirtualBoard, overlay: pynq.Overlay
) -> None:
    seen: list[tuple[int, int]] = []
    model = _gpio(board, "leds")
    assert model.output(1) == 5  # C_DOUT_DEFAULT
    model.on_output(1, lambda value, driven: seen.append((value, driven)))
    leds = overlay.leds.channel1
    leds.setdirection("out")
    leds[0:4].write(0b0110)
    leds[0].on()
    leds[0].on()  # no change, no call
    assert seen == [(0b0110, 0xF), (0b0111, 0xF)]
    assert overlay.leds.read(0) == 0b0111


def test_direction_decides_who_drives_a_wire(board: VirtualBoard, overlay: pynq.Overlay) -> None:
    model = _gpio(board, "both")
    assert overlay.both.read(4) == 0xFF and overlay.both.read(0xC) == 0b11  # inputs after reset
    model.set_input(1, 0b1100_0011)
    wires = overlay.both.channel1
    wires.setdirection("inout")
    wires[0:4].write(0b0101)
    assert overlay.both.read(4) == 0xF0
    assert overlay.both.read(0) == 0b1100_0101
    assert wires[0:4].read() == 0b0011  # reading turns them into inputs again
    assert overlay.both.read(4) == 0xFF


def test_second_channel_has_its_own_width(board: VirtualBoard, overlay: pynq.Overlay) -> None:
    model = _gpio(board, "both")
    model.set_input(2, 0b10)
    assert overlay.both.read(8) == 0b10
    with pytest.raises(ValueError, match="2 wires"):
        model.set_input(2, 4)
    with pytest.raises(ValueError, match="no channel 2"):
        _gpio(board, "leds").set_input(2, 0)


def test_interrupt_registers(board: VirtualBoard, overlay: pynq.Overlay) -> None:
    model, ip = _gpio(board, "both"), overlay.both
    model.set_input(2, 1)
    assert ip.read(0x120) == 0b10
    ip.write(0x128, 0b11)
    assert ip.read(0x11C) == 1 << 31  # pynq's driver set the global enable
    assert model.irq("ip2intc_irpt")
    ip.write(0x120, 0b11)  # toggle on write: clears one, sets the other
    assert ip.read(0x120) == 0b01
    ip.write(0x11C, 0)
    assert not model.irq("ip2intc_irpt")
    assert overlay.leds.read(0x120) == 0  # built without the interrupt


def test_a_wire_that_the_ip_drives_raises_no_interrupt(
    board: VirtualBoard, overlay: pynq.Overlay
) -> None:
    overlay.both.write(4, 0xF0)
    _gpio(board, "both").set_input(1, 0x0F)
    assert overlay.both.read(0x120) == 0
    _gpio(board, "both").set_input(1, 0x1F)
    assert overlay.both.read(0x120) == 1


def test_wait_for_value(board: VirtualBoard, overlay: pynq.Overlay) -> None:
    model = _gpio(board, "buttons")
    buttons = overlay.buttons.channel1
    buttons.setdirection("in")
    for value in (0b0011, 0b1000, 0b0000, 0b0001):
        timer = threading.Timer(0.05, model.set_input, (1, value))
        begin = time.monotonic()
        timer.start()
        buttons[0:4].wait_for_value(value)
        assert 0.05 <= time.monotonic() - begin < 5
        timer.join()


def test_two_waits_at_once(
    board: VirtualBoard, overlay: pynq.Overlay, loop: asyncio.AbstractEventLoop
) -> None:
    buttons, both = overlay.buttons.channel1, overlay.both.channel1
    buttons.setdirection("in")
    both.setdirection("in")

    async def press() -> None:
        await asyncio.sleep(0.02)
        _gpio(board, "both").set_input(1, 0x80)
        await asyncio.sleep(0.02)
        _gpio(board, "buttons").set_input(1, 1)

    waits = (buttons[0].wait_for_value_async(1), both[7].wait_for_value_async(1), press())

    async def all_of_them() -> None:
        await asyncio.wait_for(asyncio.gather(*waits), 10)

    loop.run_until_complete(all_of_them())


def test_interrupt_without_intc_uses_the_uio_device(
    board: VirtualBoard, tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    ips = [Ip("axi_gpio", "buttons", 0x41200000, _BUTTONS)]
    overlay = pynq.Overlay(
        str(write_design(tmp_path, "direct", ips, {}, ["buttons/ip2intc_irpt"], intc=False))
    )
    overlay.buttons.write(0x11C, 1 << 31)
    overlay.buttons.write(0x128, 1)
    _gpio(board, "buttons").set_input(1, 1)
    assert board.linux.irq_level(61)


# ---- the interrupt controller itself ---------------------------------------------------------


@pytest.fixture
def intc(board: VirtualBoard, overlay: pynq.Overlay) -> tuple[AxiIntc, pynq.MMIO]:
    model = board.ip["axi_intc_0"]
    assert isinstance(model, AxiIntc)
    return model, pynq.MMIO(0x41800000, 0x100)


def test_levels_are_captured_until_acknowledged(intc: tuple[AxiIntc, pynq.MMIO]) -> None:
    model, mmio = intc
    mmio.write(0x10, 0b11)  # SIE
    mmio.write(0x1C, 0b11)  # MER
    model.set_input(1, True)
    assert (mmio.read(0x00), mmio.read(0x04), mmio.read(0x18)) == (0b10, 0b10, 1)
    assert model.irq("irq")
    mmio.write(0x0C, 0b10)
    assert mmio.read(0x00) == 0b10  # the line is still high
    model.set_input(1, False)
    assert mmio.read(0x00) == 0b10
    mmio.write(0x0C, 0b10)
    assert mmio.read(0x00) == 0 and mmio.read(0x18) == 0xFFFFFFFF
    assert not model.irq("irq")


def test_enables_and_the_global_switch(intc: tuple[AxiIntc, pynq.MMIO]) -> None:
    model, mmio = intc
    mmio.write(0x1C, 0b11)
    model.set_input(0, True)
    assert (mmio.read(0x00), mmio.read(0x04)) == (1, 0)
    mmio.write(0x10, 0b11)
    mmio.write(0x14, 0b10)
    assert mmio.read(0x08) == 1 and model.irq("irq")
    mmio.write(0x1C, 0)
    assert mmio.read(0x1C) == 0b10  # HIE cannot be taken back
    assert not model.irq("irq")


def test_software_interrupts_only_before_hie(intc: tuple[AxiIntc, pynq.MMIO]) -> None:
    model, mmio = intc
    model.set_input(0, True)
    assert mmio.read(0x00) == 0  # hardware inputs wait for HIE
    mmio.write(0x00, 0b10)
    mmio.write(0x08, 0b11)
    mmio.write(0x1C, 0b01)
    assert model.irq("irq") and mmio.read(0x04) == 0b10
    mmio.write(0x1C, 0b11)
    assert mmio.read(0x00) == 0b11
    mmio.write(0x00, 0)
    assert mmio.read(0x00) == 0b11


def test_priority_and_level_register(intc: tuple[AxiIntc, pynq.MMIO]) -> None:
    model, mmio = intc
    mmio.write(0x08, 0b11)
    mmio.write(0x1C, 0b11)
    model.set_input(1, True)
    mmio.write(0x24, 1)  # only inputs above priority 1, that is input 0
    assert not model.irq("irq")
    model.set_input(0, True)
    assert model.irq("irq") and mmio.read(0x18) == 0
    with pytest.raises(ValueError, match="no input 2"):
        model.set_input(2, True)
    model.set_input(0, False)
    mmio.write(0x0C, 1)
    assert model.describe() == {
        **{"inputs": 2, "active": 2, "enabled": 3, "pending": 2},
        **{"master_enable": True, "hardware_enable": True, "irq": False},
    }


def test_an_edge_is_kept_and_a_level_change_back_is_not(
    board: VirtualBoard, tmp_path: Path
) -> None:
    ip = Ip("axi_gpio", "g", 0x41200000, _BUTTONS)
    pynq.Overlay(str(write_design(tmp_path, "edge", [ip], {}, ["g/ip2intc_irpt"])))
    model = board.ip["axi_intc_0"]
    assert isinstance(model, AxiIntc)
    model._edge = 1
    mmio = pynq.MMIO(0x41800000, 0x100)
    mmio.write(0x1C, 0b11)
    model.set_input(0, True)
    model.set_input(0, False)
    assert mmio.read(0x00) == 1
    mmio.write(0x0C, 1)
    assert mmio.read(0x00) == 0
    model.set_input(0, True)
    mmio.write(0x0C, 1)
    assert mmio.read(0x00) == 0  # still high, but no new edge
