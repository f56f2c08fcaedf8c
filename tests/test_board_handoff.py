"""A damaged hardware handoff is refused before anything of the board changes."""

from __future__ import annotations

import random
import re
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from pynq import Overlay, allocate

import pynq_torch
from pynq_torch.board.bus import Bus
from pynq_torch.board.handoff import read_handoff
from pynq_torch.errors import BusError, HandoffError

BITSTREAMS = Path(__file__).resolve().parents[1] / "bitstreams"


@pytest.fixture(scope="module")
def board():
    yield pynq_torch.use_board("csim")
    pynq_torch.current_board().close()


@pytest.fixture
def loaded(board):
    """Return an overlay with a value in a register and a buffer in memory."""
    overlay = Overlay(str(BITSTREAMS / "vadd" / "vadd.bit"))
    overlay.vadd_0.write(0x10, 77)
    return overlay


def write(folder, text, name="vadd"):
    """Write a bitstream with this handoff; return its path."""
    bit = folder / f"{name}.bit"
    bit.write_bytes((BITSTREAMS / name / f"{name}.bit").read_bytes())
    bit.with_suffix(".hwh").write_text(text)
    return bit


def handoff(name="vadd"):
    return (BITSTREAMS / name / f"{name}.hwh").read_text()


def ranged(base, high):
    """Return the handoff of vadd with another address range for its kernel."""

    def changed(match):
        row = match[0]
        for name, value in (("BASEVALUE", base), ("HIGHVALUE", high)):
            row = re.sub(f'{name}="[^"]*"', "" if value is None else f'{name}="{value}"', row)
        return row

    text, count = re.subn(r'<MEMRANGE [^>]*INSTANCE="vadd_0"[^>]*>', changed, handoff())
    assert count == 1
    return text


@pytest.mark.parametrize(
    "base, high, says",
    [
        ("0x4000FFFF", "0x40000000", r"0x4000FFFF to 0x40000000; expected an end behind the start"),
        ("-0x40000000", "0x4000FFFF", "expected a range within 0x40000000 to 0xbfffffff"),
        ("0x00000000", "0xFFFFFFFF", "expected a range within"),
        ("0x40000000", "0xFFFFFFFFFFFFFFFF", "expected a range within"),
        ("0x140000000", "0x14000FFFF", "expected a range within"),
        ("0xF8000000", "0xF8000FFF", "expected a range within"),  # the PS's own registers
        ("0x1F000000", "0x1F00FFFF", "expected a range within"),  # DDR
        ("abc xyz", "0x4000FFFF", "expected two hexadecimal numbers"),
        ("0x40000000", "", "to nothing; expected two hexadecimal"),
        ("0x40000000", None, "to nothing; expected two hexadecimal"),
        (None, "0x4000FFFF", "range nothing to 0x4000FFFF; expected two hexadecimal"),
        ("0x40000001", "0x40010000", "begin on a multiple of 4096 bytes"),
        ("0x40000080", "0x4001007F", "begin on a multiple of 4096 bytes"),
        ("0x40000000", "0x40000000", "expected whole 32-bit words"),
    ],
)
def test_a_damaged_address_range(board, loaded, tmp_path, base, high, says):
    used, stamp = board.memory.used_bytes, board.timestamp
    with pytest.raises(
        HandoffError, match=rf"(?s)vadd.hwh is damaged: vadd_0.s_axi_control.*{says}"
    ):
        Overlay(str(write(tmp_path, ranged(base, high))))
    assert board.timestamp == stamp and loaded.is_loaded() and board.memory.used_bytes == used
    assert loaded.vadd_0.read(0x10) == 77 and list(board.cus) == ["vadd_0"]
    assert Overlay(str(write(tmp_path, handoff()))).vadd_0.read(0x10) == 0


@pytest.mark.parametrize("shift", [0, 0x8000])
def test_two_ips_at_one_address(board, loaded, tmp_path, shift):
    text = handoff("gemm")
    assert 'BASEVALUE="0x40010000"' in text
    text = text.replace('"0x40010000"', f'"0x{0x40000000 + shift:08X}"')
    text = text.replace('"0x4001FFFF"', f'"0x{0x4000FFFF + shift:08X}"')
    with pytest.raises(HandoffError) as caught:
        Overlay(str(write(tmp_path, text, "gemm")))
    assert str(caught.value).startswith(
        f"gemm.hwh: two IPs answer at 0x{0x40000000 + shift:08x}: gemm_0.s_axi_control "
        f"(0x40000000-0x4000ffff) and axi_intc_0.S_AXI (0x{0x40000000 + shift:08x}-"
    )
    assert loaded.vadd_0.read(0x10) == 77


def test_an_ip_inside_the_range_of_one_that_begins_earlier(tmp_path):
    text = handoff("gemm").replace('"0x4000FFFF"', '"0x7FFFFFFF"')
    with pytest.raises(HandoffError, match=r"two IPs answer at 0x40010000: gemm_0.*axi_intc_0"):
        read_handoff(write(tmp_path, text, "gemm").with_suffix(".hwh"))


def test_a_slave_that_is_listed_twice_is_one(tmp_path):
    text = handoff()
    row = re.search(r' *<MEMRANGE [^>]*INSTANCE="vadd_0"[^>]*>\n', text)[0]
    twice = row + row.replace("M_AXI_GP0", "M_AXI_GP1") + row.replace('"Reg"', '"Mem0"')
    own = row.replace('"vadd_0"', '"processing_system7_0"').replace("0x4000", "0x0000")
    found = read_handoff(write(tmp_path, text.replace(row, twice + own)).with_suffix(".hwh"))
    assert {s.base for s in found.ips["vadd_0"].slaves} == {0x40000000}
    assert not found.ips["processing_system7_0"].slaves


def test_small_ranges_share_a_page(ip_models):
    bus, first, second = ip_models
    bus.attach(0x40000000, 0x80, first, "", "first")
    bus.attach(0x40000080, 0x80, second, "", "second")
    bus.write(0x40000004, 1)
    bus.write(0x40000084, 2)
    assert first.words == {4: 1} and second.words == {4: 2}
    with pytest.raises(BusError, match="no IP answers at physical address 0x40000100"):
        bus.read(0x40000100)
    bus.clear()
    with pytest.raises(BusError):
        bus.read(0x40000004)


@pytest.fixture
def ip_models():
    from test_board_bus import Recorder

    return Bus(), Recorder(), Recorder()


_VALUES = ("", "-1", "0x", "0xFFFFFFFF", "0x1FFFFFFFF", "9" * 30, "abc", "0x40000001", "0", "1e9")


@pytest.mark.parametrize("seed", range(12))
def test_damage_anywhere_ends_in_an_overlay_or_a_handoff_error(board, loaded, tmp_path, seed):
    chance = random.Random(seed)
    buffer = allocate(16)
    for _ in range(4):
        tree = ET.ElementTree(ET.fromstring(handoff()))
        rows = [row for row in tree.iter("MEMRANGE" if seed % 2 else None) if row.attrib]
        row = chance.choice(rows)
        name = chance.choice(list(row.attrib))
        row.set(name, chance.choice(_VALUES))
        before = board.timestamp
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                Overlay(str(write(tmp_path, ET.tostring(tree.getroot(), "unicode"))))
            except pynq_torch.errors.PynqTorchError:
                assert board.timestamp == before and board.bus.regions
        assert buffer.physical_address and board.memory.buffers() == [buffer.bo]
    assert Overlay(str(write(tmp_path, handoff()))).vadd_0.read(0x10) == 0
