"""What could give a wrong result on board ``rtl``, or no end, without a word: each is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers import start, wait_done
from pynq import Overlay, allocate

import pynq_torch
from pynq_torch.errors import WaveError

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
