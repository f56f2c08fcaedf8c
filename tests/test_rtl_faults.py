"""Designs that break their bus: an exception with cycle, port and transactions, a board that lives.

All but one are a single kernel (``rtl_kernels/culprit``), whose register chooses what to do wrong.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers import write_overlay
from pynq import Overlay, allocate

import pynq_torch
from pynq_torch.errors import BusError, KernelFault, RtlPortError, RtlProtocolError, RtlTimeout

KERNELS = Path(__file__).parent / "rtl_kernels"
SOURCE, TARGET, SIN = 0x10, 0x1C, 0x28
REFUSED, UNANSWERED = 0x30, 0x34
(
    NONE,
    WLAST_EARLY,
    VALID_DROPPED,
    CROSSES_4K,
    DATA_CHANGES,
    NEVER_DONE,
    GIVES_UP,
    TOO_WIDE,
    HANGS_ON_READ,
    RECURSES,
) = range(10)


@pytest.fixture(scope="module")
def bit(tmp_path_factory):
    return write_overlay(
        tmp_path_factory.mktemp("culprit"), {"culprit_0": "culprit"}, kernels=KERNELS
    )


@pytest.fixture(scope="module")
def rigs():
    made = []
    yield made
    for rig in made:
        rig.board.close()


@pytest.fixture
def rig(rigs, bit):
    """Return the board of the test before, unless a test with a board of its own has closed it."""
    if not rigs or rigs[-1].board.closed:
        board = pynq_torch.use_board("rtl", kernels=[KERNELS], timeout_cycles=20_000)
        rigs.append(Rig(board, Overlay(str(bit)).culprit_0))
    return rigs[-1]


class Rig:
    """A board with the culprit, and two buffers that it may use."""

    def __init__(self, board, ip):
        self.board, self.ip = board, ip
        self.source, self.target = allocate(1024, "u4"), allocate(1024, "u4")
        self.source[:] = np.arange(1024) + 7

    def run(self, sin, source=None, target=None):
        self.ip.write(SOURCE, self.source.device_address if source is None else source)
        self.ip.write(TARGET, self.target.device_address if target is None else target)
        self.ip.write(SIN, sin)
        self.ip.write(0, 1)
        for _ in range(20_000):
            if self.ip.read(0) & 2:
                return
        raise AssertionError("neither done nor an error")

    def works(self):
        """Say that the board is usable: a correct run, with its result."""
        self.target[0] = 0
        self.run(NONE)
        return self.target[0] == 7


def sentence(error):
    """Return the first line of an error and the lines of the last transactions."""
    first, *rest = str(error.value).splitlines()
    return first, [line.strip() for line in rest if line.startswith("  cycle ")]


BROKEN = {
    WLAST_EARLY: "WLAST is high on beat [1-3] of 4",
    VALID_DROPPED: "ARVALID fell before ARREADY: a beat that was offered was taken back",
    CROSSES_4K: r"a burst crosses the 4 KB boundary at 0x\w+ \(ARADDR 0x\w+ffc, 2 beats of 4 bytes",
    DATA_CHANGES: r"WDATA changed from 0x\w+ to 0x\w+ while WVALID waited for WREADY",
    TOO_WIDE: "ARSIZE says 8 bytes a beat on a data bus of 4",
}


@pytest.mark.parametrize("sin", BROKEN)
def test_a_broken_rule(rig, sin):
    with pytest.raises(RtlProtocolError) as error:
        rig.run(sin)
    first, transactions = sentence(error)
    where = r"culprit_0 broke a rule of AXI \(cycle \d+, port culprit_0\.m_axi_gmem\): "
    assert re.match(where + BROKEN[sin], first)
    # The start is the last thing that the program did, and what the design did comes after it.
    assert any("culprit_0.s_axi_control register write at 0x00000000" in t for t in transactions)
    assert error.value.cu == "culprit_0"
    assert rig.works()


def test_a_read_of_nowhere(rig):
    with pytest.raises(KernelFault, match="culprit_0 read from memory outside") as error:
        rig.run(NONE, source=0x3000_0000)
    first, transactions = sentence(error)
    assert "0x30000000 lies outside the 512 MB of DDR" in first
    assert re.search(r"cycle \d+, port culprit_0\.m_axi_gmem; the bus answers DECERR", first)
    assert "DECERR, never ended" in transactions[-1] and "0x30000000" in transactions[-1]
    assert error.value.address == 0x3000_0000
    assert rig.works()


def test_a_write_beside_the_buffers(rig):
    address = rig.target.device_address + (4 << 20)
    with pytest.raises(KernelFault, match="culprit_0 wrote to memory outside") as error:
        rig.run(NONE, target=address)
    first, transactions = sentence(error)
    assert f"0x{address:08x} belongs to no buffer" in first
    assert any("culprit_0.m_axi_gmem read at" in t and "ended at" in t for t in transactions)
    assert rig.works()


def test_a_design_that_never_ends(rig):
    with pytest.raises(RtlTimeout) as error:
        rig.run(NEVER_DONE)
    first, transactions = sentence(error)
    assert re.search(r"culprit_0 does not end: no ap_done in 2\d{4} cycles", first)
    assert "timeout_cycles = 20000" in first
    assert re.search(r"m_axi_gmem \d+ cycles ago", first)
    assert transactions
    assert rig.works()


def test_an_unfinished_burst_is_shown(rig):
    with pytest.raises(RtlTimeout) as error:
        rig.run(HANGS_ON_READ)
    _, transactions = sentence(error)
    assert "m_axi_gmem read" in transactions[-1] and "never ended" in transactions[-1]
    assert rig.works()


def test_a_design_that_stops_the_simulation(rig):
    with pytest.raises(KernelFault, match="RTL stopped in cycle") as error:
        rig.run(GIVES_UP)
    assert "culprit gives up" in str(error.value) and "culprit.sv" in str(error.value)
    assert rig.works()


def test_a_design_that_overflows_the_stack(rig):
    with pytest.raises(KernelFault, match=r"the PL crashed with culprit_0 in .* SIGSEGV") as error:
        rig.run(RECURSES)
    crashed, *_, started = map(int, re.findall(r"(?:in cycle|ended at) (\d+)", str(error.value)))
    assert crashed > started  # in the cycle of the crash, which its handler notes
    assert rig.works()


def test_a_register_that_is_refused(rig):
    with pytest.raises(BusError, match=r"SLVERR when register 0x30 was read"):
        rig.ip.read(REFUSED)
    assert rig.works()


def test_a_register_that_does_not_answer(rig):
    with pytest.raises(RtlTimeout, match=r"did not answer when register 0x34 was read"):
        rig.ip.read(UNANSWERED)
    assert rig.works()


def test_random_stalls_change_nothing_but_cycles(bit):
    board = pynq_torch.use_board("rtl", kernels=[KERNELS], stalls=0.6, seed=3, memory="ideal")
    with_stalls = Rig(board, Overlay(str(bit)).culprit_0)
    assert all(with_stalls.works() for _ in range(10))
    board.close()


def test_a_state_that_the_reset_leaves_alone(tmp_path):
    """What registers hold at power-up must not reach the bus."""
    kernels = tmp_path / "kernels"
    folder = kernels / "sleeper"
    shutil.copytree(KERNELS / "culprit", folder)
    code = (folder / "rtl" / "culprit.sv").read_text().replace("module culprit", "module sleeper")
    reset = "    if (!ap_rst_n) begin\n      s_axi_control_BVALID <= 1'b0;\n"
    assert reset in code
    code = code.replace(reset, "    if (!ap_rst_n) begin\n")
    (folder / "rtl" / "culprit.sv").unlink()
    (folder / "rtl" / "sleeper.sv").write_text(code)
    source = (folder / "culprit.cpp").read_text().replace("culprit(", "sleeper(")
    (folder / "culprit.cpp").unlink()
    (folder / "sleeper.cpp").write_text(source)
    image = write_overlay(tmp_path, {"sleeper_0": "sleeper"}, kernels=kernels)
    board = pynq_torch.use_board("rtl", kernels=[kernels])
    with pytest.raises(KernelFault, match=r"control_BVALID depends, 0 cycles after the reset"):
        Overlay(str(image))
    board.close()


INTERRUPT = """interrupts = ["culprit_0.interrupt"]
[instances.axi_intc_0]
ip = "axi_intc"
"""


def test_an_interrupt_that_the_rtl_does_not_have(tmp_path):
    kernels = tmp_path / "kernels"
    shutil.copytree(KERNELS / "culprit", kernels / "culprit")
    source = kernels / "culprit/rtl/culprit.sv"
    source.write_text(re.sub(r"\binterrupt\b", "irq_line", source.read_text()))
    names = {"culprit_0": "culprit"}
    connected = write_overlay(tmp_path, names, INTERRUPT, kernels, name="connected")
    alone = write_overlay(tmp_path, names, kernels=kernels, name="alone")
    board = pynq_torch.use_board("rtl", kernels=[kernels])
    with pytest.raises(RtlPortError, match=r"culprit_0: .* output interrupt, and module culprit"):
        Overlay(str(connected))
    assert Overlay(str(alone)).culprit_0.read(0) == 4
    board.close()


def test_a_unit_that_cannot_be_made_is_named(tmp_path):
    """The process starts again after a fault; here one unit's plan names a signal it has not."""
    both = {"good_0": "culprit", "odd_0": "culprit"}
    image = write_overlay(tmp_path, both, kernels=KERNELS)
    board = pynq_torch.use_board("rtl", kernels=[KERNELS])
    overlay = Overlay(str(image))
    board.pl.plans[1].ties["absent"] = 1
    with pytest.raises(KernelFault, match="^odd_0 cannot be simulated: the model has no signal ab"):
        Rig(board, overlay.good_0).run(GIVES_UP)
    board.close()
