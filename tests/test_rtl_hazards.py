"""What could give a wrong result on board ``rtl``, or no end, without a word: each is refused."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from helpers import start, wait_done, write_overlay
from pynq import Overlay, allocate

import pynq_torch
from pynq_torch.board.rtl import process
from pynq_torch.errors import RtlTimeout, WaveError

KERNELS = Path(__file__).parent / "rtl_kernels"


@pytest.fixture
def use():
    """Give a function that chooses board rtl, and close what it chose."""
    boards = []

    def choose(**options):
        boards.append(pynq_torch.use_board("rtl", **options))
        return boards[-1]

    yield choose
    for board in boards:
        board.close()


# ---- waves ---------------------------------------------------------------------------------------


def test_waves_of_a_unit_at_work_do_not_drop_its_run(use, tmp_path):
    board, n = use(), 100_000
    overlay = pynq_torch.load("vadd")
    a, c = allocate(n, np.float32), allocate(n, np.float32)
    a[:], c[:] = np.arange(n), 0
    run = overlay.vadd.start(a=a, b=a, c=c, n=n)
    said = "vadd_0 is at work; open waves before the start, or wait for it"
    with pytest.raises(WaveError, match=said):
        board.waves(tmp_path / "v.fst").__enter__()
    run.wait(30)
    assert np.array_equal(c, 2 * a)
    assert board.cus["vadd_0"].last_run.cycles > n
    assert not list(tmp_path.iterdir())
    with board.waves(tmp_path / "v.fst"):
        overlay.vadd_0.write(0x34, 0)
    # The model with waves is there now, and nothing has to begin anew.
    run = overlay.vadd.start(a=a, b=a, c=c, n=n)
    with board.waves(tmp_path / "middle.fst") as waves:
        run.wait(30)
    assert waves.open().cycles.start > 0
    assert board.cus["vadd_0"].last_run.cycles > n


def test_the_done_bit_is_still_to_come_where_waves_were_refused(use, tmp_path):
    board = use()
    unit = Overlay(str(Path(__file__).parents[1] / "bitstreams/vadd/vadd.bit")).vadd_0
    a = allocate(50_000, np.float32)
    for offset in (0x10, 0x1C, 0x28):
        unit.write(offset, a.device_address)
    unit.write(0x34, 50_000)
    start(unit)
    with pytest.raises(WaveError, match="vadd_0 is at work"):
        board.waves(tmp_path / "v.vcd").__enter__()
    assert wait_done(unit) & 2


# ---- RTL that does not return --------------------------------------------------------------------

LIMIT = 0x10
ENDS, ENDLESS = 6, 5


def test_an_endless_loop_within_a_cycle_has_a_limit(use, tmp_path):
    bit = write_overlay(tmp_path, {"spinner_0": "spinner"}, kernels=KERNELS)
    board = use(kernels=[KERNELS], hang_timeout_s=1.0)
    unit = Overlay(str(bit)).spinner_0
    unit.write(LIMIT, ENDS)
    start(unit)
    wait_done(unit)
    assert unit.read(LIMIT) == ENDS
    unit.write(LIMIT, ENDLESS)
    before = board.pl.cycle
    with pytest.raises(RtlTimeout) as error:
        start(unit)
        wait_done(unit)
    found = re.match(r"spinner_0: its RTL does not return from cycle (\d+)", str(error.value))
    assert found, error.value
    assert 0 <= int(found[1]) - before < 1000
    assert "an endless loop in an always block" in str(error.value)
    assert error.value.cu == "spinner_0"
    # The board has a fresh PL.
    unit.write(LIMIT, ENDS)
    start(unit)
    wait_done(unit)
    assert unit.read(LIMIT) == ENDS


def test_a_limit_of_waiting_does_not_hold_where_the_clock_stands(use, tmp_path):
    """A unit that nobody starts, and a program that looks at it for longer than the limit."""
    bit = write_overlay(tmp_path, {"spinner_0": "spinner"}, kernels=KERNELS)
    board = use(kernels=[KERNELS], hang_timeout_s=0.2)
    unit = Overlay(str(bit)).spinner_0
    pid, until = board.pl.pid, time.monotonic() + 1.0
    while time.monotonic() < until:
        board.wait_clock()
        time.sleep(0.01)
    assert unit.read(0) == 4
    assert board.pl.pid == pid


def test_an_endless_loop_while_the_reset_is_held_is_said_at_the_load(use, tmp_path, monkeypatch):
    kernels = tmp_path / "kernels"
    shutil.copytree(KERNELS / "spinner", kernels / "spinner")
    source = kernels / "spinner/rtl/spinner.v"
    text = source.read_text().replace("if (ap_done && ap_rst_n)", "if (ap_done)")
    assert text != source.read_text()
    source.write_text(text)  # what the registers hold before the reset is any value
    bit = write_overlay(tmp_path, {"spinner_0": "spinner"}, kernels=kernels)
    use(kernels=[kernels], hang_timeout_s=1.0)
    monkeypatch.setattr(process, "START_TIMEOUT_S", 2.0)
    said = r"PL process of spinner_0 did not start within 2 s.*endless loop.*reset"
    with pytest.raises(RtlTimeout, match=said):
        Overlay(str(bit))
