"""What could give a wrong result on board ``rtl``, or no end, without a word: each is refused."""

from __future__ import annotations

import re
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import eventually, start, wait_done, write_overlay
from pynq import Overlay, allocate

import pynq_torch
from pynq_torch.board.rtl import process
from pynq_torch.errors import RtlTimeout, WaveError

KERNELS = Path(__file__).parent / "rtl_kernels"


# ---- waves ---------------------------------------------------------------------------------------


# A slow PC takes long between the start and the next look, which the board takes for a sleep.
@pytest.mark.filterwarnings("ignore:the program waited:pynq_torch.errors.NotModelledWarning")
def test_waves_of_a_unit_at_work_do_not_drop_its_run(use_rtl, tmp_path):
    board, n = use_rtl(), 1_000_000
    overlay = pynq_torch.load("vadd")
    a, c = allocate(n, np.float32), allocate(n, np.float32)
    a[:], c[:] = np.arange(n), 0
    run = overlay.vadd.start(a=a, b=a, c=c, n=n)
    said = "vadd_0 is running; open waves before the start, or wait for it"
    with pytest.raises(WaveError, match=said):
        board.waves(tmp_path / "v.fst").__enter__()
    run.wait(30)
    assert np.array_equal(c, 2 * a)
    assert board.cus["vadd_0"].last_run.cycles > n
    assert not list(tmp_path.iterdir())
    with board.waves(tmp_path / "v.fst"):
        overlay.vadd_0.write(0x34, 0)
    # The model with waves is there now, and nothing has to begin again.
    run = overlay.vadd.start(a=a, b=a, c=c, n=n)
    with board.waves(tmp_path / "middle.fst") as waves:
        run.wait(30)
    assert waves.open().cycles.start > 0
    assert board.cus["vadd_0"].last_run.cycles > n


# A slow PC takes long between the start and the next look, which the board takes for a sleep.
@pytest.mark.filterwarnings("ignore:the program waited:pynq_torch.errors.NotModelledWarning")
def test_the_done_bit_is_still_to_come_where_waves_were_refused(use_rtl, tmp_path):
    board = use_rtl()
    unit = Overlay(str(Path(__file__).parents[1] / "bitstreams/vadd/vadd.bit")).vadd_0
    n = 1_000_000  # running for as long as a busy PC may keep this program waiting
    a = allocate(n, np.float32)
    for offset in (0x10, 0x1C, 0x28):
        unit.write(offset, a.device_address)
    unit.write(0x34, n)
    start(unit)
    with pytest.raises(WaveError, match="vadd_0 is running"):
        board.waves(tmp_path / "v.vcd").__enter__()
    assert wait_done(unit) & 2


def test_what_a_new_model_would_not_know_is_read_first(use_rtl, tmp_path):
    board = use_rtl()
    unit = Overlay(str(Path(__file__).parents[1] / "bitstreams/vadd/vadd.bit")).vadd_0
    a = allocate(64, np.float32)
    for offset in (0x10, 0x1C, 0x28):
        unit.write(offset, a.device_address)
    unit.write(0x34, 64)

    def refused(why):
        with pytest.raises(WaveError, match=why):
            board.waves(tmp_path / "v.fst").__enter__()

    unit.write(0x4, 1)
    unit.write(0x8, 1)
    start(unit)
    eventually(lambda: board.cus["vadd_0"].describe()["runs"] == 1)
    refused("vadd_0 has ended a run whose AP_DONE nobody has read")
    assert wait_done(unit) & 2
    refused("vadd_0 holds its interrupt")
    unit.write(0xC, 1)
    unit.write(0, 0x81)
    refused(r"vadd_0 (starts by itself|is running)")
    unit.write(0, 0)
    eventually(lambda: unit.read(0) & 5 == 4)
    unit.write(0xC, unit.read(0xC))
    with board.waves(tmp_path / "v.fst"):
        assert unit.read(0xC) == 0  # acknowledging toggles: it is no register to write again
        assert unit.read(0x4) == unit.read(0x8) == 1
        start(unit)
        wait_done(unit)
        assert unit.read(0xC) == 1


def test_waves_of_a_unit_without_control_come_before_its_registers_are_written(use_rtl, tmp_path):
    """Any of them may start it."""
    kernels = tmp_path / "kernels"
    shutil.copytree(KERNELS / "hesitant", kernels / "hesitant")
    for path in (kernels / "hesitant").rglob("hesitant.*"):
        returns = "port=return bundle=control"
        text = path.read_text().replace(f"s_axilite {returns}", "ap_ctrl_none port=return")
        path.write_text(re.sub(r"\bap_(start|done|idle|ready)\b", r"my_\1", text))
    bit = write_overlay(tmp_path, {"hesitant_0": "hesitant"}, kernels=kernels)
    board = use_rtl(kernels=[kernels])
    unit = Overlay(str(bit)).hesitant_0
    with board.waves(tmp_path / "v.fst"):
        unit.write(0x10, 1)
    with pytest.raises(WaveError, match="hesitant_0 has no AP_CTRL, and writing its registers"):
        board.waves(tmp_path / "v.vcd").__enter__()


def test_two_recordings_of_a_unit_are_one_too_many(use_rtl, tmp_path):
    board = use_rtl()
    overlay = pynq_torch.load("vadd")
    a = torch.arange(40.0)
    said = r"vadd_0 is being recorded already, into 'a\.fst'"
    with board.waves(tmp_path / "a.fst") as waves:
        for name in ("b.fst", "b.vcd"):
            with pytest.raises(WaveError, match=said):
                board.waves(tmp_path / name).__enter__()
        assert torch.equal(overlay.vadd(a, a), a + a)
    assert len(waves.open().signal("ap_start").rising()) == 1
    with board.waves(tmp_path / "b.fst"):  # the unit is free again
        assert torch.equal(overlay.vadd(a, a), a + a)
    with pytest.raises(WaveError, match="no signal 'go'"):
        board.waves(tmp_path / "c.fst", start="go").__enter__()
    with board.waves(tmp_path / "c.fst"):
        assert torch.equal(overlay.vadd(a, a), a + a)


def test_threads_that_record_the_same_unit(use_rtl, tmp_path):
    board = use_rtl()
    overlay = pynq_torch.load("vadd")
    together, refused, recorded = threading.Barrier(2), [], []

    def record(name):
        together.wait(60)
        try:
            with board.waves(tmp_path / f"{name}.fst") as waves:
                while not refused:
                    time.sleep(0.01)
            recorded.append(waves)
        except WaveError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=record, args=(name,), daemon=True) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    assert len(recorded) == 1
    file = recorded[0].path.name
    assert [f"vadd_0 is being recorded already, into '{file}'" in text for text in refused] == [
        True
    ]
    assert torch.equal(overlay.vadd(torch.ones(9), torch.ones(9)), torch.full((9,), 2.0))


def test_a_model_that_is_exchanged_ends_no_recording(use_rtl, tmp_path):
    """Two units: the waves of the second one need another model than the one that is loaded."""
    bit = write_overlay(tmp_path, {"first": "spinner", "second": "spinner"}, kernels=KERNELS)
    board = use_rtl(kernels=[KERNELS])
    first = Overlay(str(bit)).first
    said = "first is being recorded into 'f.fst', and the waves of second need another model"
    with board.waves(tmp_path / "f.fst", units="first") as waves:
        with pytest.raises(WaveError, match=said):
            board.waves(tmp_path / "s.fst", units="second").__enter__()
        start(first)
        wait_done(first)
    assert waves.open().signal("ap_start").rising()


def test_a_recording_of_the_environment_gives_way_to_the_programs(
    use_rtl, tmp_path, capfd, monkeypatch
):
    monkeypatch.setenv("PYNQ_TORCH_WAVE", str(tmp_path / "all.fst"))
    board = use_rtl()
    overlay = pynq_torch.load("vadd")
    a = torch.arange(40.0)
    assert torch.equal(overlay.vadd(a, a), a + a)
    with board.waves(tmp_path / "own.vcd") as waves:
        assert torch.equal(overlay.vadd(a, a), a + a)
    assert len(waves.open().signal("ap_start").rising()) == 1
    assert (
        "waves of vadd_0 in all.fst end here: the program records its own" in capfd.readouterr().err
    )
    assert (tmp_path / "all.fst").stat().st_size > 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"start": 5}, "start=5: expected the name of a signal, e.g. 'ap_start'"),
        ({"stop": True}, "stop=True: expected the name of a signal"),
        ({"start": "ap_start", "before": 1.5}, "before=1.5: expected a whole number"),
        ({"after": "3"}, "after='3': expected a whole number"),
        ({"limit_bytes": 1e6}, "limit_bytes=1000000.0: expected a whole number"),
        ({"cycles": 5}, "cycles=5: expected the first and the one after the last"),
        ({"cycles": (1.5, 9)}, r"cycles=\(1.5, 9\): expected the first and"),
    ],
)
def test_options_of_another_type_are_refused_in_a_sentence(use_rtl, tmp_path, options, said):
    board = use_rtl()
    pynq_torch.load("vadd")
    with pytest.raises(WaveError, match=said):
        board.waves(tmp_path / "d.fst", **options)


# ---- RTL that does not return --------------------------------------------------------------------

LIMIT = 0x10
ENDS, ENDLESS = 6, 5


def test_an_endless_loop_within_a_cycle_has_a_limit(use_rtl, tmp_path):
    bit = write_overlay(tmp_path, {"spinner_0": "spinner"}, kernels=KERNELS)
    use_rtl(kernels=[KERNELS], hang_timeout_s=1.0)
    unit = Overlay(str(bit)).spinner_0
    unit.write(LIMIT, ENDS)
    start(unit)
    wait_done(unit)
    assert unit.read(LIMIT) == ENDS
    unit.write(LIMIT, ENDLESS)
    with pytest.raises(RtlTimeout) as error:
        start(unit)
        wait_done(unit)
    found = re.match(r"spinner_0: its RTL does not return from cycle (\d+)", str(error.value))
    assert found, error.value
    begun = re.findall(r"cycle (\d+): .* write at 0x00000000 = 0x00000001", str(error.value))
    assert -8 < int(begun[-1]) - int(found[1]) < 64
    assert "an endless loop in an always block" in str(error.value)
    assert error.value.cu == "spinner_0"
    # The board has a fresh PL.
    unit.write(LIMIT, ENDS)
    start(unit)
    wait_done(unit)
    assert unit.read(LIMIT) == ENDS


def test_a_limit_of_waiting_does_not_hold_where_the_clock_stands(use_rtl, tmp_path):
    """A unit that nobody starts, and a program that looks at it for longer than the limit."""
    bit = write_overlay(tmp_path, {"spinner_0": "spinner"}, kernels=KERNELS)
    board = use_rtl(kernels=[KERNELS], hang_timeout_s=0.2)
    unit = Overlay(str(bit)).spinner_0
    pid, until = board.pl.pid, time.monotonic() + 1.0
    while time.monotonic() < until:
        board.wait_clock()
        time.sleep(0.01)
    assert unit.read(0) == 4
    assert board.pl.pid == pid


def test_an_endless_loop_while_the_reset_is_held_is_said_at_the_load(
    use_rtl, tmp_path, monkeypatch
):
    kernels = tmp_path / "kernels"
    shutil.copytree(KERNELS / "spinner", kernels / "spinner")
    source = kernels / "spinner/rtl/spinner.v"
    text = source.read_text().replace("if (ap_done && ap_rst_n)", "if (ap_done)")
    assert text != source.read_text()
    source.write_text(text)  # what the registers hold before the reset is any value
    bit = write_overlay(tmp_path, {"spinner_0": "spinner"}, kernels=kernels)
    use_rtl(kernels=[kernels], hang_timeout_s=1.0)
    monkeypatch.setattr(process, "START_TIMEOUT_S", 2.0)
    said = r"PL process of spinner_0 did not start within 2 s.*endless loop.*reset"
    with pytest.raises(RtlTimeout, match=said):
        Overlay(str(bit))


# ---- RTL that does not answer --------------------------------------------------------------------


def renamed(folder, old, new):
    """Return a folder with a spinner in which a name is another, and its overlay."""
    kernels = folder / "kernels"
    shutil.copytree(KERNELS / "spinner", kernels / "spinner")
    source = kernels / "spinner/rtl/spinner.v"
    source.write_text(re.sub(old, new, source.read_text()))
    return kernels, write_overlay(folder, {"spinner_0": "spinner"}, kernels=kernels)


def test_a_reset_that_nobody_took_for_one_is_named(use_rtl, tmp_path):
    kernels, bit = renamed(tmp_path, r"\bap_rst_n\b", "por")
    use_rtl(kernels=[kernels])
    unit = Overlay(str(bit)).spinner_0
    with pytest.raises(RtlTimeout) as error:
        unit.read(0)
    said = (
        "No input of module spinner was recognised as a reset, so there was none; tied to 0: por."
    )
    assert said in str(error.value)


def test_an_active_low_reset_with_the_n_before_it(use_rtl, tmp_path):
    kernels, bit = renamed(tmp_path, r"\bap_rst_n\b", "nrst")
    use_rtl(kernels=[kernels])
    assert Overlay(str(bit)).spinner_0.read(0) == 4


# ---- RTL whose end cannot be seen ----------------------------------------------------------------


def test_a_run_that_ended_unseen_is_no_timeout_however_late_it_is_asked_for(use_rtl, tmp_path):
    kernels, bit = renamed(tmp_path, r"\bap_(start|done|idle|ready)\b", r"my_\1")
    board = use_rtl(kernels=[kernels], timeout_cycles=20_000)
    unit = Overlay(str(bit)).spinner_0
    unit.write(LIMIT, ENDS)
    before = board.pl.cycle
    start(unit)
    eventually(lambda: board.pl.cycle > before + 40_000)  # its clock runs on: it may be running
    with pytest.raises(
        WaveError, match="spinner_0 is running, or nobody has read its AP_DONE; open"
    ):
        board.waves(tmp_path / "s.fst").__enter__()
    assert unit.read(0) & 2
    assert unit.read(LIMIT) == ENDS


def test_a_run_that_does_not_end_is_a_timeout_where_registers_say_so(use_rtl, tmp_path):
    kernels, bit = renamed(tmp_path, r"\bap_(start|done|idle|ready)\b", r"my_\1")
    source = kernels / "spinner/rtl/spinner.v"
    source.write_text(
        source.read_text().replace("wire my_done = my_start;", "wire my_done = 1'b0;")
    )
    board = use_rtl(kernels=[kernels], timeout_cycles=20_000)
    unit = Overlay(str(bit)).spinner_0
    start(unit)
    with pytest.raises(RtlTimeout, match=r"spinner_0 does not end: no ap_done in \d{5,} cycles"):
        wait_done(unit)
    assert board.cus["spinner_0"].busy is False
    assert unit.read(0) == 4
