"""AXI Quad SPI (PG153) and AXI IIC (PG090): the models alone, where the test is the pins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.ip import axi_iic
from pynq_torch.board.ip.axi_iic import AxiIic
from pynq_torch.board.ip.axi_quad_spi import AxiQuadSpi
from pynq_torch.errors import RegisterMisuse

GIE, ISR, IER = 0x1C, 0x20, 0x28
SPICR, SPISR, DTR, DRR, SSR, TX_COUNT, RX_COUNT = 0x60, 0x64, 0x68, 0x6C, 0x70, 0x74, 0x78
CR, SR, TX, RX, TX_LEFT, RX_LEFT, RX_LIMIT = 0x100, 0x104, 0x108, 0x10C, 0x114, 0x118, 0x120


class Alarm(SimpleNamespace):
    """A timer that the test lets ring."""

    made: list[Any]
    daemon = False

    def __init__(self, seconds: float, call: Any) -> None:
        super().__init__(seconds=seconds, call=call, did=[])
        self.made.append(self)

    def start(self) -> None:
        self.did.append("start")

    def cancel(self) -> None:
        self.did.append("cancel")


class Rig:
    """A serial port; `did` is what it told the board."""

    def __init__(self, kind: type[AxiIic] | type[AxiQuadSpi], **parameters: str) -> None:
        self.did: list[Any] = []
        board: Any = SimpleNamespace(
            vain_polls=SimpleNamespace(note=lambda why: self.did.append(why())),
            raise_irq=lambda model: self.did.append("irq"),
        )
        name = kind.vlnv_names[0]
        self.model: Any = kind(board, IpInstance("port", f"xilinx.com:ip:{name}:2.0", parameters))
        self.read, self.write = self.model.read, self.model.write

    def why(self, register: int) -> str:
        self.did.clear()
        self.read(register)
        (text,) = self.did
        return str(text)


@pytest.fixture(autouse=True)
def alarms(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    Alarm.made = []
    monkeypatch.setattr(axi_iic, "threading", SimpleNamespace(Timer=Alarm))
    return Alarm.made


# ---- SPI -----------------------------------------------------------------------------------------


def test_spi_says_what_its_control_lacks() -> None:
    rig = Rig(AxiQuadSpi)
    assert rig.why(SPISR).startswith("port: no word waits in SPIDTR")
    rig.write(DTR, 1)
    head = "port: 1 words wait in SPIDTR: in SPICR, "
    spe, master, inhibit = "SPE has to be 1", "Master has to be 1", "Master_Inhibit has to be 0"
    for control, lacks in (
        (0x100, f"{spe}, {master}, {inhibit}"),
        (0x102, f"{master}, {inhibit}"),
        (0x104, f"{spe}, {inhibit}"),
        (0x004, spe),
        (0x002, master),
        (0x106, inhibit),
    ):
        rig.write(SPICR, control)
        assert rig.why(SPISR) == f"{head}{lacks}."
        assert rig.read(TX_COUNT) == 0 and rig.read(SPISR) == 0xA1
    rig.did.clear()
    rig.write(SPICR, 0x7)
    assert rig.did == ["irq"] and rig.read(DRR) == 1


@pytest.mark.parametrize(("depth", "most"), [("16", 8), ("4", 2)])
def test_spi_levels_of_its_words(depth: str, most: int) -> None:
    rig = Rig(AxiQuadSpi, C_FIFO_DEPTH=depth)
    for words in (1, most, most + 1, int(depth)):
        rig.write(SPICR, 0x107)
        for word in range(words):
            assert rig.read(TX_COUNT) == max(word - 1, 0)
            rig.write(DTR, 0x100 + word)
        full = words == int(depth)
        assert rig.read(SPISR) == (0xA9 if full else 0xA1)
        rig.write(SPICR, 0x7)
        assert (rig.read(RX_COUNT), rig.read(SPISR)) == (words - 1, 0xA6 if full else 0xA4)
        half = 0x40 if words > most else 0  # PG153: from more than half to half, and less
        assert rig.read(ISR) == 0x104 | half | (0x10 if full else 0)
        rig.write(ISR, 0x3FFF & rig.read(ISR))
        assert [rig.read(DRR) for _ in range(words)] == list(range(words))
    rig.write(DTR, 7)
    rig.write(SPICR, 0x47)
    assert rig.read(SPISR) == 0xA5  # what had come is dropped
    rig.did.clear()
    rig.write(0x7C, 1)
    rig.write(0x40, 0xB)
    assert not rig.did and rig.read(SPICR) == 0x7
    rig.write(0x40, 0xA)
    assert rig.read(SPICR) == 0x180 and rig.did == ["irq"]


def test_spi_of_one_word() -> None:
    rig = Rig(AxiQuadSpi, C_FIFO_DEPTH="0", C_NUM_SS_BITS="3")
    assert (rig.read(SSR), rig.read(TX_COUNT), rig.read(RX_COUNT)) == (7, 0, 0)
    rig.model.device = lambda word, select: word << 4 | select
    rig.write(SSR, 5)
    rig.write(SPICR, 0x6)
    rig.write(DTR, 0x1F)
    assert (rig.read(ISR), rig.read(SPISR)) == (0x14, 0xA6)
    rig.write(DTR, 2)
    assert (rig.read(ISR), rig.read(DRR)) == (0x34, 0xF5)  # the second one is lost
    rig.write(ISR, 0xFFFFFFFF)
    assert rig.read(ISR) == 0xBF & ~0x34
    rig.write(SPICR, 0x106)
    rig.write(DTR, 1)
    assert rig.read(SPISR) == 0xA9
    with pytest.warns(RegisterMisuse, match="while its 1 words are full"):
        rig.write(DTR, 1)


# ---- IIC -----------------------------------------------------------------------------------------


def test_iic_registers_that_only_keep_what_is_written() -> None:
    rig = Rig(AxiIic)
    kept = {0x110: 0xFE, 0x11C: 7, 0x120: 0xF, 0x124: 0xFF}
    kept |= dict.fromkeys(range(0x128, 0x148, 4), 0xFFFFFFFF)
    for at in range(0x100, 0x150):
        if at not in (CR, TX):
            rig.write(at, 0xFFFFFFFF)
    shown = {at: rig.read(at) for at in range(0x110, 0x150)}
    assert {at: value for at, value in shown.items() if value} == kept
    rig.write(CR, 0xFFFFFFFE)
    assert rig.read(CR) == 0x7E & ~0x22  # the reset of TX_FIFO and RSTA end by themselves
    rig.write(0x40, 0xB)
    assert rig.read(CR) == 0x5C
    rig.write(0x40, 0xA)
    assert [rig.read(at) for at in (CR, *kept)] == [0] * (1 + len(kept))


def test_iic_levels_that_are_set_again_while_they_hold() -> None:
    rig = Rig(AxiIic)
    rig.model.devices[0x50] = memory = bytearray(range(10))
    assert rig.read(ISR) == 0xD0
    rig.write(ISR, 0xD0)
    rig.write(CR, 1)
    assert rig.read(ISR) == 0  # there was no START
    rig.write(RX_LIMIT, 2)
    for word in (0x1A0, 8, 0x1A1, 0x200 | 5):
        rig.write(TX, word)
    assert (rig.read(SR), rig.read(RX_LEFT), rig.read(ISR)) == (0x84, 2, 0x8C)
    rig.write(ISR, 0x8C)
    assert rig.read(ISR) == 0xC
    assert [rig.read(RX) for _ in range(2)] == [8, 9]
    assert rig.read(RX_LEFT) == 2 and rig.read(SR) == 0x80  # the bus is free: all have come
    assert [rig.read(RX) for _ in range(3)] == [0, 1, 2]
    assert rig.read(SR) == 0xC0 and rig.read(ISR) & 0x10 == 0x10
    with pytest.warns(RegisterMisuse, match="RX_FIFO was read while it is empty"):
        assert rig.read(RX) == 0
    assert memory == bytearray(range(10))
    for word in (0x1A0, 9, 0x55, 0x266):  # goes on at the beginning
        rig.write(TX, word)
    assert rig.read(SR) == 0xC0 and (memory[9], memory[0], memory[1]) == (0x55, 0x66, 1)


def test_iic_why_nothing_goes_on() -> None:
    rig = Rig(AxiIic)
    assert rig.why(SR).startswith("port: the IIC core is disabled.")
    assert rig.why(ISR).startswith("port: the IIC core is disabled.")
    rig.write(CR, 1)
    assert rig.why(SR) == "port: nothing is under way on the IIC bus."
    rig.model.devices[0x50] = bytearray(4)
    rig.write(TX, 0xA0)
    rig.write(CR, 0xD)
    assert rig.why(SR).startswith("port: a transfer is open, and TX_FIFO is empty")
    rig.did.clear()
    for at in (CR, IER, TX_LEFT, 0x110):
        rig.read(at)
    assert not rig.did


def test_iic_bytes_pass_by_themselves_where_an_interrupt_waits(alarms: list[Any]) -> None:
    rig = Rig(AxiIic)
    rig.model.devices[0x50] = bytearray(4)
    rig.write(GIE, 1 << 31)
    for word in (0x1A0, 1, 2):
        rig.write(TX, word)
    assert len(alarms) == 1 and alarms[0].did == ["start"] and alarms[0].daemon
    assert alarms[0].seconds == pytest.approx(90e-6)
    rig.write(CR, 1)  # lets them pass, so that nothing is left for the next alarm
    alarms[0].call()
    assert rig.model._timer is None and len(alarms) == 1
    rig.write(IER, 0x10)
    assert len(alarms) == 1
    rig.write(CR, 0)
    for count, word in enumerate((0x1A0, 3, 0x204), 1):
        rig.write(TX, word)
        assert rig.read(TX_LEFT) == count - 1
    assert len(alarms) == 2
    rig.model._control = 1
    rig.did.clear()
    rig.write(ISR, rig.read(ISR))
    rig.model.close()
    assert alarms[1].did == ["start", "cancel"]
    alarms[1].call()
    rig.write(TX, 0x1A0)
    assert len(alarms) == 2


def test_iic_an_alarm_lets_the_bytes_pass(alarms: list[Any]) -> None:
    rig = Rig(AxiIic)
    rig.model.devices[0x50] = memory = bytearray(4)
    rig.write(CR, 1)
    rig.write(ISR, 0xFF & rig.read(ISR))
    rig.write(IER, 0x10)
    rig.write(GIE, 1 << 31)
    for word in (0x1A0, 3, 0x277):
        rig.write(TX, word)
    rig.did.clear()
    alarms[-1].call()
    assert memory[3] == 0x77 and rig.did == ["irq"] * 2
    assert rig.model.irq("iic2intc_irpt") is True
    rig.model.close()
    assert alarms[-1].did == ["start"]
