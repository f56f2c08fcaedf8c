"""Gates and wires between GPIO, EMIO GPIO and interrupts, under unmodified pynq programs."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynq
import pytest
from ip_handoff import Ip, Pin, write_design
from pynq import GPIO

from pynq_torch.board import handoff_wires, use_board
from pynq_torch.board.device import VirtualBoard
from pynq_torch.board.handoff_wires import wiring_of
from pynq_torch.board.levels import Level, combine, given, invert
from pynq_torch.errors import NotModelledWarning


@pytest.fixture
def board() -> Iterator[VirtualBoard]:
    board = use_board("csim")
    assert isinstance(board, VirtualBoard)
    yield board
    board.close()


def gpio(name: str, index: int, **pins: Pin) -> Ip:
    """Return a GPIO of two channels: what it drives, and what it reads with an interrupt."""
    parameters: dict[str, object] = {
        "C_GPIO_WIDTH": 4,
        "C_ALL_OUTPUTS": 1,
        "C_IS_DUAL": 1,
        "C_GPIO2_WIDTH": 4,
        "C_ALL_INPUTS_2": 1,
        "C_INTERRUPT_PRESENT": 1,
    }
    return Ip("axi_gpio", name, 0x41200000 + index * 0x10000, parameters, pins=pins)


def gate(kind: str, name: str, parameters: dict[str, object], **pins: Pin) -> Ip:
    return Ip(kind, name, 0, parameters, pins=pins)


def logic(operation: str, name: str, one: str, other: str, result: str, size: int = 4) -> Ip:
    pins: dict[str, Pin] = {"Op1": ("I", one, size), "Res": ("O", result, size)}
    if other:
        pins["Op2"] = ("I", other, size)
    return gate("util_vector_logic", name, {"C_OPERATION": operation, "C_SIZE": size}, **pins)


def load(folder: Path, *ips: Ip, ps: dict[str, Pin] | None = None) -> Any:
    return pynq.Overlay(str(write_design(folder, "wires", list(ips), ps_pins=ps)))


@pytest.mark.parametrize("operation", ["and", "or", "xor"])
def test_a_gate_between_gpio(board: VirtualBoard, tmp_path: Path, operation: str) -> None:
    overlay = load(
        tmp_path,
        gpio("one", 0, gpio_io_o=("O", "a", 4), gpio2_io_i=("I", "n", 4)),
        gpio("two", 1, gpio_io_o=("O", "b", 4), gpio2_io_i=("I", "r", 4)),
        logic(operation, "gate", "a", "b", "r"),
        logic("not", "inverter", "r", "", "n"),
    )
    python = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__}[operation]
    for a, b in ((0b0011, 0b0101), (0, 0), (15, 15), (15, 0), (6, 9)):
        overlay.one.channel1.write(a, 0xF)
        overlay.two.channel1.write(b, 0xF)
        assert int(overlay.two.channel2.read()) == python(a, b)
        assert int(overlay.one.channel2.read()) == 15 - python(a, b)


def test_slices_concats_constants_and_reduced_logic(board: VirtualBoard, tmp_path: Path) -> None:
    overlay = load(
        tmp_path,
        gpio("one", 0, gpio_io_o=("O", "a", 4), gpio2_io_i=("I", "joined", 4)),
        gate(
            *("xlslice", "middle", {"DIN_WIDTH": 4, "DIN_FROM": 2, "DIN_TO": 1}),
            **{"Din": ("I", "a", 4), "Dout": ("O", "two", 2)},
        ),
        gate(
            *("util_reduced_logic", "all", {"C_OPERATION": "and", "C_SIZE": 4}),
            **{"Op1": ("I", "a", 4), "Res": ("O", "all", 1)},
        ),
        gate("xlconstant", "high", {"CONST_VAL": 1, "CONST_WIDTH": 1}, dout=("O", "vcc", 1)),
        gate(
            *("xlconcat", "join", {"NUM_PORTS": 3, "IN1_WIDTH": 2}),
            **{"In0": ("I", "vcc", 1), "In1": ("I", "two", 2), "In2": ("I", "all", 1)},
            dout=("O", "joined", 4),
        ),
        logic("not", "inverter", "all", "", "inverse", 1),
        gpio("two", 1, gpio2_io_i=("I", "inverse", 4)),
    )
    for value, joined in ((0, 0b0001), (0b0010, 0b0011), (0b0100, 0b0101), (0b1111, 0b1111)):
        overlay.one.channel1.write(value, 0xF)
        assert int(overlay.one.channel2.read()) == joined
        assert int(overlay.two.channel2.read()) == int(value != 15)  # one bit of the four


def test_emio_gpio_through_gates(board: VirtualBoard, tmp_path: Path) -> None:
    overlay = load(
        tmp_path,
        gpio("one", 0, gpio_io_o=("O", "a", 4), gpio2_io_i=("I", "low", 4)),
        gate(
            *("xlslice", "low", {"DIN_WIDTH": 64, "DIN_FROM": 4, "DIN_TO": 1}),
            **{"Din": ("I", "emio_o", 64), "Dout": ("O", "low", 4)},
        ),
        logic("not", "inverter", "a", "", "emio_i"),
        ps={"GPIO_O": ("O", "emio_o", 64), "GPIO_I": ("I", "emio_i", 4)},
    )
    outputs = [GPIO(GPIO.get_gpio_pin(i), "out") for i in range(6, 12)]
    inputs = [GPIO(GPIO.get_gpio_pin(i), "in") for i in range(4)]
    overlay.one.channel1.write(0b0101, 0xF)
    assert [pin.read() for pin in inputs] == [0, 1, 0, 1]
    overlay.one.channel1.write(0b0110, 0xF)
    assert [pin.read() for pin in inputs] == [1, 0, 0, 1]
    assert int(overlay.one.channel2.read()) == 0
    for pin in (*inputs, *outputs):
        pin.release()
    outputs = [GPIO(GPIO.get_gpio_pin(i), "out") for i in range(5)]
    for pin, level in zip(outputs, (1, 1, 0, 1, 0), strict=True):
        pin.write(level)
    assert int(overlay.one.channel2.read()) == 0b0101
    for pin in outputs:
        pin.release()


def test_interrupts_through_a_gate(board: VirtualBoard, tmp_path: Path) -> None:
    overlay = load(
        tmp_path,
        gpio("one", 0, gpio_io_o=("O", "a", 4), ip2intc_irpt=("O", "irq_one", 1, "INTERRUPT")),
        gpio("two", 1, gpio2_io_i=("I", "a", 4), ip2intc_irpt=("O", "irq_two", 1, "INTERRUPT")),
        logic("or", "either", "irq_one", "irq_two", "irq", 1),
        ps={"IRQ_F2P": ("I", "irq", 1)},
    )
    two = overlay.two.mmio
    two.write(0x11C, 1 << 31)
    two.write(0x128, 2)
    assert not board.linux.irq_level(61)
    overlay.one.channel1.write(3, 0xF)  # a wire of the other GPIO changes
    assert board.linux.irq_level(61) and two.read(0x120) == 2
    two.write(0x120, 2)
    assert not board.linux.irq_level(61)


def test_bits_of_which_nothing_is_known_stay_as_they_are(
    board: VirtualBoard, tmp_path: Path
) -> None:
    overlay = load(
        tmp_path,
        gpio("one", 0, gpio_io_o=("O", "a", 4)),
        gate("xlslice", "low", {"DIN_FROM": 1, "DIN_TO": 1}, Din=("I", "a", 4), Dout=("O", "i", 1)),
        gate("blinker", "blink", {}, led=("O", "led", 1)),
        gate("xlconcat", "join", {}, In0=("I", "led", 1), In1=("I", "i", 1), dout=("O", "both", 2)),
        ps={"GPIO_I": ("I", "both", 2), "IRQ_F2P": ("I", "i", 1)},
    )
    pins = [GPIO(GPIO.get_gpio_pin(i), "in") for i in range(2)]
    board.linux.gpio.set_input(54, 1)
    overlay.one.channel1.write(0b0110, 0xF)
    assert [board.linux.irq_level(i) for i in (61, 62)] == [True, False]
    with pytest.warns(NotModelledWarning, match="EMIO GPIO of the PS reads 0 .* blink.led"):
        assert [pin.read() for pin in pins] == [1, 1]
    overlay.one.channel1.write(0b0101, 0xF)
    assert [pin.read() for pin in pins] == [1, 0]
    for pin in pins:
        pin.release()


def test_a_pin_that_is_not_modelled_is_named_once(board: VirtualBoard, tmp_path: Path) -> None:
    overlay = load(
        tmp_path,
        gpio("one", 0, gpio_io_o=("O", "a", 4), gpio2_io_i=("I", "r", 4)),
        gate("blinker", "blink", {}, led=("O", "led", 4)),
        logic("and", "gate", "a", "led", "r"),
        logic("or", "loop", "round", "round", "round"),
        gpio("two", 1, gpio2_io_i=("I", "round", 4)),
        gpio("out", 2, gpio2_io_i=("I", "pins_of_the_board", 4)),
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        overlay.one.channel1.write(0, 0xF)
        assert int(overlay.one.channel2.read()) == 0  # whatever the other input is
        assert int(overlay.two.channel2.read()) == int(overlay.out.channel2.read()) == 0
        assert not caught
        overlay.one.channel1.write(3, 0xF)
        for _ in range(3):
            assert int(overlay.one.channel2.read()) == 0
    (warning,) = caught
    assert warning.category is NotModelledWarning
    assert "one, channel 2 reads 0 where its wire comes from blink.led (blinker)" in str(
        warning.message
    )
    board.ip["out"].set_input(2, 9)  # type: ignore[call-arg, arg-type]
    assert int(overlay.out.channel2.read()) == 9


def test_widths_of_pins_and_pins_on_no_net() -> None:
    module = ET.fromstring(
        '<MODULE MODTYPE="x"><PORTS><PORT NAME="A" DIR="I" SIGNAME="n" LEFT="7" RIGHT="4"/>'
        '<PORT NAME="B" DIR="I" SIGNAME="n" LEFT="W-1" RIGHT="0"/>'
        '<PORT NAME="C" DIR="I" SIGNAME=""/><PORT NAME="D" DIR="O"/></PORTS></MODULE>'
    )
    found = wiring_of([("u", module)])
    wires = {"a": handoff_wires.Pin("u", "a", "n", 4), "b": handoff_wires.Pin("u", "b", "n", None)}
    assert found.inputs == {"u": wires} and not found.drivers


def test_bits_that_are_not_known() -> None:
    half = Level(0b01, 0b01, frozenset(["x"]))
    assert combine("and", half, given(0b10, 2), 2) == Level(0, 0b01, half.unfollowed)
    assert combine("and", half, given(0b01, 2), 2) == Level(0b01, 0b11)
    assert combine("or", half, given(0b10, 2), 2) == Level(0b11, 0b11)
    assert combine("or", half, given(0, 2), 2) == Level(0b01, 0b01, half.unfollowed)
    assert combine("xor", half, given(0b11, 2), 2) == Level(0, 0b01, half.unfollowed)
    assert invert(half, 2) == Level(0, 0b01, half.unfollowed)
    assert invert(given(0b10, 2), 2) == given(0b01, 2)
