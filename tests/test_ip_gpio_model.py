"""AXI GPIO (PG144): the model by itself, where the test is the board."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.ip.axi_gpio import AxiGpio
from pynq_torch.board.levels import Level

GIER, ISR, IER = 0x11C, 0x120, 0x128
DUAL = {"C_IS_DUAL": "1", "C_GPIO_WIDTH": "8", "C_GPIO2_WIDTH": "2"}


class Rig:
    """A GPIO; `level` is what the design drives on its inputs, `did` what it asked of the board."""

    def __init__(self, **parameters: str) -> None:
        self.did: list[Any] = []
        self.level: Level | None = None
        wires = SimpleNamespace(read_gpio=self._look, update=lambda: self.did.append("update"))
        board: Any = SimpleNamespace(wires=wires, raise_irq=lambda model: self.did.append("irq"))
        self.model = AxiGpio(board, IpInstance("gpio", "xilinx.com:ip:axi_gpio:2.0", parameters))
        self.read, self.write = self.model.read, self.model.write

    def _look(self, name: str, number: int) -> Level | None:
        self.did.append((name, number))
        return self.level


def test_what_the_handoff_does_not_say() -> None:
    rig = Rig()
    assert rig.model.describe() == {
        "channel1": {"value": 0, "driven": 0, "width": 32},
        **{"interrupt": False, "pending": 0, "enabled": 0},
    }
    assert [rig.read(at) for at in (0, 4, 8, 12, 0x10, GIER)] == [
        0,
        0xFFFFFFFF,
        0,
        0xFFFFFFFF,
        0,
        0,
    ]
    rig.write(12, 0)
    rig.write(8, 1)
    rig.model.set_input(1, 5)
    for at, value in ((GIER, 1 << 31), (IER, 1), (ISR, 1)):
        rig.write(at, value)
        assert rig.read(at) == 0
    assert rig.did.count("irq") == 1 and not rig.model.irq("ip2intc_irpt")
    rig = Rig(**DUAL, C_DOUT_DEFAULT="0x155", C_DOUT_DEFAULT_2="7", C_TRI_DEFAULT_2="0xFFFFFFFD")
    assert [rig.read(at) for at in (0, 4, 8, 12)] == [0, 0xFF, 2, 1]
    assert [rig.model.driven(at) for at in (0, 4, 8, 12)] == [0x55, 0xFF, 3, 1]
    assert Rig().model.driven(8) == Rig().model.driven(12) == 0
    assert rig.model.describe() == {
        "channel1": {"value": 0, "driven": 0, "width": 8},
        "channel2": {"value": 2, "driven": 2, "width": 2},
        **{"interrupt": False, "pending": 0, "enabled": 0},
    }


def test_the_registers_are_there_again_and_again() -> None:
    rig = Rig(**DUAL)
    rig.write(0x204, 0xF0)
    assert (rig.read(4), rig.read(0x404), rig.read(0x104)) == (0xF0, 0xF0, 0)


@pytest.mark.parametrize("fixed", ["inputs", "outputs"])
def test_a_direction_that_is_fixed(fixed: str) -> None:
    rig = Rig(C_GPIO_WIDTH="4", **{f"C_ALL_{fixed.upper()}": "1"})
    shown = 0xF if fixed == "inputs" else 0
    rig.write(4, ~shown & 0xF)
    assert rig.read(4) == shown and not rig.did
    assert rig.model._channels[0].tri == 0xF
    rig.write(0, 0x39)
    rig.model.set_input(1, 0x6)
    assert rig.read(0) == rig.model.output(1) == (0x6 if shown else 0x9)


def test_who_sees_what_is_driven() -> None:
    rig, seen = Rig(**DUAL), []
    for channel in (1, 2):
        rig.model.on_output(channel, lambda *told, channel=channel: seen.append((channel, *told)))
    rig.write(0, 0x35)  # inputs all: nothing is to be seen
    assert not seen and rig.did == ["update"]
    rig.write(4, 0x1F0)
    assert seen.pop() == (1, 0x5, 0xF)
    rig.model.set_input(1, 0xA0)
    rig.write(0, 0x135)
    assert not seen
    assert (rig.read(0), rig.model.output(1)) == (0xA5, 0xA5)
    rig.write(4, 0xF1)
    assert seen.pop() == (1, 0x4, 0xE)
    rig.write(0xC, 2)
    assert seen.pop() == (2, 0, 1)  # that it is driven, is new
    rig.write(8, 7)
    assert seen.pop() == (2, 1, 1) and not seen
    assert rig.read(8) == 1


def test_transitions_of_inputs() -> None:
    rig = Rig(**DUAL, C_INTERRUPT_PRESENT="1")
    rig.write(4, 0xF0)
    rig.did.clear()
    rig.model.set_input(1, 0x0F)
    assert rig.read(ISR) == 0 and not rig.did
    rig.model.set_input(1, 0x1F)
    rig.model.set_input(2, 1)
    assert rig.read(ISR) == 3 and rig.did == ["irq"] * 2
    rig.model.set_input(2, True)
    assert rig.did == ["irq"] * 2
    for at, value in ((ISR, 0xFE), (GIER, 1 << 31 | 5), (IER, 0xFD), (0x124, 1)):
        rig.write(at, value)
    assert [rig.read(at) for at in (ISR, GIER, IER, 0x124)] == [1, 1 << 31, 1, 0]
    assert rig.did == ["irq"] * 5 and rig.model.irq("ip2intc_irpt") is True
    assert rig.model.describe()["interrupt"] is True
    rig.write(IER, 2)
    assert not rig.model.irq("ip2intc_irpt")
    rig.write(IER, 3)
    rig.write(GIER, 0x7FFFFFFF)
    assert (rig.read(GIER), rig.model.irq("ip2intc_irpt")) == (0, False)


@pytest.mark.parametrize(
    ("channel", "value", "says"),
    [
        (0, 0, r"gpio has 2 channel\(s\); there is no channel 0"),
        (3, 0, "there is no channel 3"),
        (1, 256, "gpio channel 1 has 8 wires; 0x100 does not fit"),
        (2, -1, "gpio channel 2 has 2 wires; -0x1 does not fit"),
    ],
)
def test_what_fits_no_channel(channel: int, value: int, says: str) -> None:
    rig = Rig(**DUAL)
    with pytest.raises(ValueError, match=says):
        rig.model.set_input(channel, value)
    rig.model.set_input(1, 255)
    rig.model.set_input(2, 3)


def test_what_the_design_drives() -> None:
    rig = Rig(**DUAL)
    rig.model.set_input(1, 0x81)
    rig.level = Level(0x13C, 0x13E)  # of the others nobody knows
    rig.did.clear()
    assert (rig.read(0), rig.did) == (0xBD, [("gpio", 1), "irq"])
    rig.did.clear()
    assert (rig.read(4), rig.did) == (0xFF, [])
    rig.level = Level(2, 2)
    assert (rig.read(8), rig.did) == (2, [("gpio", 2), "irq"])
    rig.model.follow_wires(1, Level(0, 0xFF))  # it waits for a read, where nothing interrupts
    assert rig.model.output(1) == 0xBD
    rig = Rig(C_INTERRUPT_PRESENT="1")
    rig.model.follow_wires(1, Level(6, 7))
    rig.model.follow_wires(2, Level(1, 1))  # there is none
    assert (rig.model.output(1), rig.model.describe()["pending"]) == (6, 1)
    rig = Rig(**DUAL, C_INTERRUPT_PRESENT="1")
    rig.model.follow_wires(2, Level(1, 1))
    assert rig.model.output(2) == 1
