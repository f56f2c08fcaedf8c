"""When the clock of board ``rtl`` runs: cycles are the design's, whenever the program gets on.

The kernel (``rtl_kernels/hesitant``) asks for its beats in all the ways that AXI allows.
"""

from __future__ import annotations

import itertools
import re
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from helpers import eventually, start, wait_done, write_overlay
from pynq import Overlay, allocate

import pynq_torch
from pynq_torch.errors import NotModelledWarning
from pynq_torch.hls.ap_ctrl import AP_DONE

ROOT = Path(__file__).parents[1]
KERNELS = Path(__file__).parent / "rtl_kernels"
MODE, CYCLES = 0x10, 0x18
EAGER, TOGGLES, LATE, COUNTS, COMPUTES, BROODS, BELATED = range(7)
BEATS, THINKS = 100, 3000
#: What docs/rtl_board.md allows for: when the first beats leave DDR.
TENS = 64
STREAMS = """
streams = [
    "axi_dma_0.M_AXIS_MM2S -> {0}.samples",
    "{0}.results -> axi_dma_0.S_AXIS_S2MM",
]
[instances.axi_dma_0]
ip = "axi_dma"
parameters = {{ c_include_sg = 0, c_sg_length_width = 20 }}
memory = {{ M_AXI_MM2S = "HP0", M_AXI_S2MM = "HP1" }}
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seen")
    extra = STREAMS.format("hesitant_0")
    return write_overlay(folder, {"hesitant_0": "hesitant"}, extra, KERNELS), KERNELS


@pytest.fixture(scope="module")
def unseen(tmp_path_factory):
    """Make the same overlay with names of a student's own for the nets of the top."""
    folder = tmp_path_factory.mktemp("unseen")
    shutil.copytree(KERNELS / "hesitant", folder / "kernels" / "hesitant")
    source = folder / "kernels/hesitant/rtl/hesitant.sv"
    source.write_text(re.sub(r"\bap_(start|done|idle|ready)\b", r"my_\1", source.read_text()))
    extra = STREAMS.format("hesitant_0")
    bit = write_overlay(folder, {"hesitant_0": "hesitant"}, extra, folder / "kernels")
    return bit, folder / "kernels"


@pytest.fixture
def load(use_rtl):
    """Give a function that loads an overlay on board rtl."""

    def loaded(overlay):
        bit, kernels = overlay
        return use_rtl(kernels=[kernels]), Overlay(str(bit))

    return loaded


def transfer(overlay, mode, pause_s=0.0, between=lambda: None, thinks=THINKS):
    """Return the cycles of a packet whose beats are sent some time after the start."""
    unit, dma = overlay.hesitant_0, overlay.axi_dma_0
    unit.write(MODE, mode)
    unit.write(CYCLES, thinks)
    source, target = allocate(BEATS, "u4"), allocate(BEATS, "u4")
    source[:] = np.arange(BEATS)
    dma.recvchannel.transfer(target)
    start(unit)
    time.sleep(pause_s)
    between()
    dma.sendchannel.transfer(source)
    dma.sendchannel.wait()
    dma.recvchannel.wait()
    assert np.array_equal(target, source + 1)
    wait_done(unit)
    return pynq_torch.board.current_board().cus["hesitant_0"].last_run.cycles


@pytest.fixture
def add(use_rtl):
    """Give a function that starts vadd_0 on some numbers, and returns them with the results."""
    use_rtl()
    unit = Overlay(str(ROOT / "bitstreams/vadd/vadd.bit")).vadd_0

    def started(n):
        a, c = allocate(n, np.float32), allocate(n, np.float32)
        a[:], c[:] = np.arange(n), 0
        for offset, value in ((0x10, a), (0x1C, a), (0x28, c)):
            unit.write(offset, value.device_address)
        unit.write(0x34, n)
        start(unit)
        return unit, a, c

    return started


def test_a_program_that_does_not_wait_is_right_where_the_board_makes_it_right(add):
    """A run of 31 us is over before Python's next statement, one of 2 ms after 70 of them."""
    for _ in range(5):
        unit, a, c = add(2_900)
        assert np.array_equal(c, 2 * a)
        assert unit.read(0x00) & AP_DONE
    unit, a, c = add(200_000)
    seen = [unit.read(0x00) for _ in range(70)]
    assert not seen[0] & AP_DONE and any(value & AP_DONE for value in seen)
    assert np.array_equal(c, 2 * a)


def test_a_program_that_sleeps_finds_what_the_board_has_done_meanwhile(add):
    unit, a, c = add(1_000_000)  # 10 ms of the board, and some 500 ms of this PC
    time.sleep(0.02)
    c.invalidate()
    assert np.array_equal(c, 2 * a)
    assert unit.read(0x00) & AP_DONE


def test_a_sleep_that_board_rtl_cannot_keep_up_with_is_said(add, monkeypatch):
    monkeypatch.setattr("pynq_torch.board.rtl.board._SLEPT_CYCLES", 10_000)
    unit, a, c = add(1_000_000)
    time.sleep(0.02)
    with pytest.warns(NotModelledWarning, match=r"waited 0.02\d* s for vadd_0 .* not over"):
        assert not unit.read(0x00) & AP_DONE
    assert wait_done(unit) & AP_DONE
    assert np.array_equal(c, 2 * a)


@pytest.mark.parametrize("mode", [EAGER, TOGGLES, LATE, COUNTS])
def test_waiting_for_the_program_takes_no_cycles(load, seen, mode):
    _, overlay = load(seen)
    pauses = (0.0, 0.05, 0.3, 0.0, 0.0, 0.003, 0.01)
    counts = [transfer(overlay, mode, pause_s) for pause_s in pauses]
    # With a counter that runs on, it takes 128 cycles to tell that it waits.
    assert max(counts) - min(counts) <= TENS + 128 * (mode == COUNTS), counts
    assert BEATS < min(counts) < 4 * BEATS + TENS


def test_computing_while_nothing_has_come_takes_its_cycles(load, seen):
    _, overlay = load(seen)
    counts = [transfer(overlay, COMPUTES, pause_s) for pause_s in (0.0, 0.3, 0.05)]
    assert max(counts) - min(counts) <= TENS, counts
    assert THINKS + BEATS < min(counts) < THINKS + 4 * BEATS


@pytest.mark.parametrize("thinks", [THINKS, 1_300_000])
def test_a_unit_that_asks_and_computes_gets_its_cycles(load, seen, thinks):
    """An input that is always ready, as a register slice is, does not make it one that waits."""
    _, overlay = load(seen)
    counts = [transfer(overlay, BROODS, pause_s, thinks=thinks) for pause_s in (0.0, 0.05)]
    assert max(counts) - min(counts) <= TENS, counts
    assert thinks + BEATS < min(counts) < thinks + 2 * BEATS + 2 * TENS


@pytest.mark.parametrize("thinks", [THINKS, 200_000])
def test_what_a_unit_does_after_it_is_done_comes(load, seen, thinks):
    _, overlay = load(seen)
    counts = [transfer(overlay, BELATED, pause_s, thinks=thinks) for pause_s in (0.0, 0.05)]
    # The run is over with its last beat; the program had waited for the result.
    assert max(counts) < BEATS + TENS, counts


@pytest.mark.parametrize("mode", [COMPUTES, BROODS])
def test_without_the_nets_of_hls_a_unit_gets_its_cycles_though_nobody_asks(load, unseen, mode):
    board, overlay = load(unseen)
    unit, dma = overlay.hesitant_0, overlay.axi_dma_0
    unit.write(MODE, mode)
    unit.write(CYCLES, 200_000)
    source, target = allocate(BEATS, "u4"), allocate(BEATS, "u4")
    source[:] = np.arange(BEATS)
    before = board.pl.cycle
    dma.recvchannel.transfer(target)
    start(unit)
    dma.sendchannel.transfer(source)
    dma.recvchannel.wait()
    assert np.array_equal(target, source + 1)
    assert board.pl.cycle - before > 200_000


def test_a_unit_without_control_computes_for_long(use_rtl, tmp_path):
    kernels = tmp_path / "kernels"
    shutil.copytree(KERNELS / "increment", kernels / "increment")
    source = kernels / "increment/rtl/increment.sv"
    source.write_text(source.read_text().replace("DELAY = 300", "DELAY = 5000"))
    names = {"increment_0": "increment"}
    bit = write_overlay(tmp_path, names, STREAMS.format("increment_0"), kernels)
    use_rtl(kernels=[kernels])
    dma = Overlay(str(bit)).axi_dma_0
    for n in (1, 100):
        source, target = allocate(n, "u4"), allocate(n, "u4")
        source[:] = np.arange(n)
        dma.recvchannel.transfer(target)
        dma.sendchannel.transfer(source)
        dma.recvchannel.wait()
        assert np.array_equal(target, source + 1)


def test_looking_at_registers_while_waiting_takes_no_cycles_of_the_run(load, seen):
    _, overlay = load(seen)

    def look():
        for _ in range(200):
            overlay.hesitant_0.read(MODE)

    counts = [transfer(overlay, LATE), transfer(overlay, LATE, 0.05, look)]
    assert max(counts) - min(counts) <= TENS, counts


def test_a_receiver_that_comes_late_takes_no_cycles(load, seen):
    board, overlay = load(seen)
    unit, dma = overlay.hesitant_0, overlay.axi_dma_0
    counts = []
    for pause_s in (0.0, 0.3, 0.05):
        unit.write(MODE, TOGGLES)
        source, target = allocate(BEATS, "u4"), allocate(BEATS, "u4")
        start(unit)
        dma.sendchannel.transfer(source)
        time.sleep(pause_s)
        dma.recvchannel.transfer(target)
        dma.recvchannel.wait()
        wait_done(unit)
        counts.append(board.cus["hesitant_0"].last_run.cycles)
    assert max(counts) - min(counts) <= 2 * TENS + 128, counts  # it waits once for each side


def test_the_clock_stands_while_a_unit_waits(load, seen):
    board, overlay = load(seen)
    for mode in (EAGER, TOGGLES, LATE):
        overlay.hesitant_0.write(MODE, mode)
        start(overlay.hesitant_0)
        eventually(lambda: board.pl.state.name == "ASLEEP")
        assert board.cus["hesitant_0"].describe()["blocked_on"] == "hesitant_0.samples"
        before = board.pl.cycle
        time.sleep(0.2)
        assert board.pl.cycle == before
        board.cus["hesitant_0"].reset()


def test_without_the_nets_of_hls_cycles_repeat_too(load, unseen):
    for mode in (EAGER, TOGGLES, LATE):
        _, overlay = load(unseen)
        counts = [transfer(overlay, mode, pause_s) for pause_s in (0.0, 0.05, 0.3, 0.0)]
        assert max(counts) - min(counts) <= TENS, (mode, counts)
        assert BEATS < min(counts) < 4 * BEATS + 2 * TENS


def test_without_the_nets_of_hls_a_run_says_how_it_was_counted(load, seen, unseen):
    board, overlay = load(unseen)
    transfer(overlay, EAGER)
    kind = board.cus["hesitant_0"].last_run.kind
    assert "AP_DONE" in kind and "ap_start" in kind
    board, overlay = load(seen)
    transfer(overlay, EAGER)
    assert board.cus["hesitant_0"].last_run.kind == "cycles (RTL, AP_START to ap_done)"


@pytest.mark.parametrize(("overlay_of", "begins"), [("seen", 16 + 128), ("unseen", 16 + 32)])
def test_a_program_begins_in_the_same_cycle(load, overlay_of, begins, request):
    """The clock halts behind the reset when nothing has moved for a while, or states repeat."""
    first = set()
    for pause_s in (0.0, 0.2, 0.0, 0.05):
        board, overlay = load(request.getfixturevalue(overlay_of))
        time.sleep(pause_s)
        overlay.hesitant_0.write(MODE, EAGER)
        first.add(board.trace_records()[0].cycle)
    assert first == {begins}


def test_accesses_that_follow_each_other_take_the_same_cycles_whenever_they_come(load, seen):
    board, overlay = load(seen)
    unit = overlay.hesitant_0
    gaps = set()
    for i in range(2_000):
        unit.write(MODE, EAGER)
        if i % 100 == 99:
            cycles = [t.cycle for t in board.trace_records()[-100:]]
            gaps.update(b - a for a, b in itertools.pairwise(cycles))
    assert gaps == {4}
