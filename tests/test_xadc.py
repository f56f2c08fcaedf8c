"""The XADC: Linux's files, the PS's interface (UG585, chapter 30) and the wizard (PG091)."""

from __future__ import annotations

import builtins
import io
from collections.abc import Iterator
from pathlib import Path

import pynq
import pytest
from ip_handoff import Ip, write_design

from pynq_torch.board import use_board
from pynq_torch.board.device import VirtualBoard
from pynq_torch.board.xadc import Xadc

FOLDER = "/sys/bus/iio/devices/iio:device0"
CFG, INT_STS, MASK, MSTS, CMD, DATA, MCTL = range(0, 0x1C, 4)
VOLTS = {
    "voltage0_vccint": 1.0, "voltage1_vccaux": 1.8, "voltage2_vccbram": 1.0,
    "voltage3_vccpint": 1.0, "voltage4_vccpaux": 1.8, "voltage5_vccoddr": 1.5,
    "voltage6_vrefp": 1.25, "voltage7_vrefn": 0.0,
}  # fmt: skip


@pytest.fixture
def board() -> Iterator[VirtualBoard]:
    board = use_board("csim")
    assert isinstance(board, VirtualBoard)
    yield board
    board.close()


def number(name: str) -> float:
    with open(f"{FOLDER}/in_{name}") as file:
        return float(file.read())


def test_the_files_of_linux(board: VirtualBoard) -> None:
    celsius = (number("temp0_raw") + number("temp0_offset")) * number("temp0_scale") / 1000
    assert celsius == pytest.approx(45, abs=0.3)
    assert number("temp0_raw") * 503.975 / 4096 - 273.15 == pytest.approx(45, abs=0.1)
    for name, volts in VOLTS.items():
        assert number(f"{name}_raw") * number(f"{name}_scale") / 1000 == pytest.approx(
            volts, abs=1e-3
        )
    assert (Path(FOLDER) / "in_temp0_scale").read_text() == "123.040771484\n"
    assert (Path(FOLDER) / "in_voltage0_vccint_scale").read_bytes() == b"0.732421875\n"
    assert [Path(f"{FOLDER}/{n}").read_text() for n in ("name", "in_temp0_offset")] == [
        "xadc\n", "-2219\n",
    ]  # fmt: skip
    with pytest.raises(FileNotFoundError, match="no such file"):
        Path(f"{FOLDER}/in_temp1_raw").read_text()
    for mode in ("w", "r+", "a"):
        with pytest.raises(PermissionError, match="read only"):
            open(f"{FOLDER}/in_temp0_raw", mode)  # noqa: SIM115 - it raises


def test_other_files_are_this_machines(tmp_path: Path) -> None:
    real = io.open
    board = use_board("csim")
    path = tmp_path / "a"
    with open(path, "w", encoding="ascii") as file:
        file.write("text")
    with open(str(path), mode="rb") as file:
        assert file.read() == b"text"
    with open(0, closefd=False) as file:
        assert file.fileno() == 0
    board.close()
    assert builtins.open is real and io.open is real


def test_the_interface_of_the_ps(board: VirtualBoard) -> None:
    xadc = pynq.MMIO(0xF8007100, 0x20)
    shown = [xadc.read(r) for r in (CFG, INT_STS, MASK, MSTS, CMD, DATA, MCTL)]
    assert shown == [0x1114, 0x200, 0xFFFFFFFF, 0x500, 0, 0, 0x10]
    xadc.write(CMD, 1 << 26)
    assert xadc.read(MSTS) == 0x10100  # it waits: the interface is off
    xadc.write(MCTL, 0)
    xadc.write(CFG, 0x80001114)
    assert (xadc.read(MSTS), xadc.read(DATA), xadc.read(MSTS)) == (0x1400, 0, 0x500)

    def register(address: int) -> int:
        xadc.write(CMD, 1 << 26 | address << 16)
        xadc.read(DATA)  # the answer to the command before
        xadc.write(CMD, 0)
        return int(xadc.read(DATA))

    assert (register(0x00) >> 4) * 503.975 / 4096 - 273.15 == pytest.approx(45, abs=0.1)
    for address, volts in ((0x01, 1.0), (0x02, 1.8), (0x0F, 1.5), (0x27, 1.0), (0x2A, 1.5)):
        assert register(address) / 65536 * 3 == pytest.approx(volts, abs=1e-3)
    assert (register(0x10), register(0x41)) == (0, 0)
    for address in (0x41, 0x00):  # a channel cannot be written
        xadc.write(CMD, 2 << 26 | address << 16 | 0x1234)
        xadc.read(DATA)
    assert (register(0x41), register(0x00) >> 4) == (0x1234, 2586)
    for _ in range(40):
        xadc.write(CMD, 0)
    assert xadc.read(MSTS) == 0xFFA00  # both FIFOs are full
    xadc.write(MCTL, 0x10)
    assert xadc.read(MSTS) == 0x500


def test_the_wizard(board: VirtualBoard, tmp_path: Path) -> None:
    wizard = Ip("xadc_wiz", "xadc", 0x43C00000)
    for _ in range(2):  # the PS's interface stays when the overlay goes
        xadc = pynq.Overlay(str(write_design(tmp_path, "xadc", [wizard]))).xadc
        assert pynq.MMIO(0xF8007100, 0x20).read(MSTS) == 0x500
    assert (xadc.read(0x200) >> 4) * 503.975 / 4096 - 273.15 == pytest.approx(45, abs=0.1)
    assert [xadc.read(0x200 + 4 * a) / 65536 * 3 for a in (1, 2, 6)] == pytest.approx(
        [1.0, 1.8, 1.0], abs=1e-3
    )
    assert xadc.read(0x04) == 0x60
    for offset, value in ((0x5C, 1 << 31), (0x68, 0x3FFFF), (0x304, 0xFFFF), (0x3FC, 0), (0x60, 0)):
        xadc.write(offset, 0xFFFFFFFF)
        assert xadc.read(offset) == value
    xadc.write(0x00, 0xA)
    assert [xadc.read(offset) for offset in (0x5C, 0x68, 0x304)] == [0, 0, 0]


def test_highest_and_lowest_values_are_the_present_ones() -> None:
    xadc = Xadc()
    channels = {0x00: 0x20, 0x01: 0x21, 0x02: 0x22, 0x06: 0x23, 0x0D: 0x28, 0x0E: 0x29, 0x0F: 0x2A}
    for channel, highest in channels.items():  # UG480, table 3-1
        assert xadc.read(channel) == xadc.read(highest) == xadc.read(highest + 4) != 0
