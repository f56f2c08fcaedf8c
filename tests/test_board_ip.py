"""What the board does with each type of IP: the table, its page, IP with registers only."""

from __future__ import annotations

import warnings
from pathlib import Path

import pynq
import pytest
from ip_handoff import Ip, write_design

from pynq_torch.board import use_board
from pynq_torch.board.ip_table import TABLE, Treatment, as_markdown, names, treatment
from pynq_torch.board.loading import MODELS
from pynq_torch.errors import BoardHang, RegistersOnly
from pynq_torch.hls.design.catalogue import CATALOGUE

_ROOT = Path(__file__).resolve().parents[1]


def test_the_table_and_the_models_agree() -> None:
    listed = [name for row in TABLE for name in row.names]
    assert len(listed) == len(set(listed))
    modelled = {name for row in TABLE if row.treatment is Treatment.MODELLED for name in row.names}
    assert set(MODELS) == modelled - {"processing_system7"} - names(Treatment.MODELLED, "gate")
    assert set(CATALOGUE) <= modelled
    assert treatment("axi_cdma") is Treatment.REGISTERS and treatment("mine") is None
    assert "axis_data_fifo" in names(Treatment.PASSED, "stream")


def test_the_page_shows_the_table() -> None:
    page = (_ROOT / "docs" / "ip.md").read_text()
    assert page.endswith("\n\n" + as_markdown()), "docs/ip.md is older than ip_table.TABLE"
    for one in Treatment:
        assert f"- **{one.value}**: " in page


@pytest.fixture
def serial(tmp_path: Path):
    board = use_board("csim", hang_timeout_s=0.3)
    yield pynq.Overlay(
        str(write_design(tmp_path, "serial", [Ip("axi_uart16550", "uart", 0x42C00000)]))
    ).uart
    board.close()


def test_polling_an_ip_with_registers_only_is_said_once(serial) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for offset in range(0, 0x100, 4):  # a program that shows all registers
            assert serial.read(offset) == 0
        serial.write(4, 7)
        for _ in range(15):  # looks now and then
            assert serial.read(4) == 7
            serial.write(8, 1)
        assert not caught
        for _ in range(19):
            serial.read(8)
        assert not caught
        for _ in range(100):
            serial.read(8)
    assert [(w.category, w.filename) for w in caught] == [(RegistersOnly, caught[0].filename)]
    assert "uart (xilinx.com:ip:axi_uart16550:2.0) has registers only" in str(caught[0].message)


@pytest.mark.filterwarnings("ignore::pynq_torch.errors.RegistersOnly")
def test_polling_an_ip_with_registers_only_ends(serial) -> None:
    with pytest.raises(BoardHang, match=r"poll for 0.3.* s, and uart \(.*registers only.*PYNQ-Z2"):
        while not serial.read(8) & 1:
            serial.read(0)
