"""Polls that can never end, engines that are stopped, and processes that a design starts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from helpers import KERNELS, eventually, held, overlay_of, start, stop, wait_done, write_overlay
from pynq import Overlay, allocate

import pynq_torch
from pynq_torch.errors import BoardHang, KernelFault

BITSTREAMS = Path(__file__).resolve().parents[1] / "bitstreams"
RTL_KERNELS = Path(__file__).parent / "rtl_kernels"
NOTHING, FORK, SHELL, DAEMON, COMES_BACK, DAEMON_AND_CRASH, FORK_AND_EXIT = range(7)


def poll(condition, pause_s=0.0, limit_s=20.0):
    """Poll as programs do, with a limit of the test's own."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "the polling did not end"
        if pause_s:
            time.sleep(pause_s)


# ---- polls in vain -------------------------------------------------------------------------------


@pytest.fixture(params=["csim", "rtl"])
def idle(request, tmp_path):
    """Return a kernel that was never started."""
    bit = write_overlay(tmp_path, {"culprit_0": "culprit"}, kernels=RTL_KERNELS)
    board = pynq_torch.use_board(request.param, kernels=[RTL_KERNELS], hang_timeout_s=0.5)
    ip = Overlay(str(bit)).culprit_0
    ip.buffers = [allocate(1024, "u4"), allocate(1024, "u4")]
    for offset, buffer in zip((0x10, 0x1C), ip.buffers, strict=True):
        ip.write(offset, buffer.device_address)
    yield ip
    board.close()


def test_a_flag_of_a_kernel_that_was_never_started(idle):
    with pytest.raises(BoardHang, match=r"culprit_0 was never started"):
        poll(lambda: idle.read(0x0C) & 1)


@pytest.mark.parametrize("pause_s", [0.0, 0.01])
@pytest.mark.parametrize("way", ["read", "register_map"])
def test_a_kernel_that_was_never_started(idle, way, pause_s):
    def done():
        if way == "read":
            return idle.read(0) & 2
        return idle.register_map.CTRL.AP_DONE

    begin = time.monotonic()
    with pytest.raises(
        BoardHang, match=r"culprit_0 was never started: AP_START was not written to AP_CTRL"
    ):
        poll(done, pause_s)
    assert time.monotonic() - begin >= 0.5
    start(idle)
    wait_done(idle)
    with pytest.raises(BoardHang, match=r"is idle: its last run has ended.*cleared AP_DONE"):
        poll(done, pause_s)
    poll(lambda: idle.read(0) & 4)


def test_another_thread_may_start_it(idle):
    def later():
        time.sleep(1.5)
        start(idle)

    thread = threading.Thread(target=later)
    thread.start()
    poll(lambda: idle.read(0) & 2)
    thread.join()


def test_a_program_that_does_something_else_goes_on(idle):
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline:  # a program that shows the state, and looks at an input
        assert not idle.read(0) & 2
        idle.read(0x10)


def test_a_dma_without_a_transfer():
    pynq_torch.use_board("csim", hang_timeout_s=0.5)
    dma = Overlay(str(BITSTREAMS / "stream" / "stream.bit")).axi_dma_0
    with pytest.raises(BoardHang, match=r"axi_dma_0: no transfer was started on channel MM2S"):
        dma.sendchannel.wait()
    with pytest.raises(BoardHang, match=r"no transfer was started on channel S2MM: .* LENGTH"):
        poll(lambda: dma.register_map.S2MM_DMASR.IOC_Irq)
    dma.sendchannel.stop()
    with pytest.raises(BoardHang, match=r"channel MM2S is halted \(DMACR.RS is 0\)"):
        poll(lambda: dma.sendchannel.idle)


def test_a_kernel_without_a_model(tmp_path):
    bit = write_overlay(tmp_path, {"counter_0": "counter"})
    pynq_torch.use_board("csim", hang_timeout_s=0.5)
    overlay = Overlay(str(bit))
    with pytest.raises(BoardHang, match="counter_0 has no model"):
        poll(lambda: overlay.counter_0.read(0) & 2)


# ---- engines that are stopped --------------------------------------------------------------------


def test_a_stopped_engine_on_csim(tmp_path):
    overlay = overlay_of(tmp_path, {"counter_0": "counter"}, hang_timeout_s=0.5)
    board = pynq_torch.current_board()
    engine = board.cus["counter_0"].engine
    with held(engine.pid):
        start(overlay.counter_0)
        said = r"(?s)counter_0 is stopped by a signal.*kill -CONT \d+"
        with pytest.raises(BoardHang, match=said):
            poll(lambda: overlay.counter_0.read(0) & 2)
    wait_done(overlay.counter_0)


@pytest.mark.parametrize("idle", ["rtl"], indirect=True)
@pytest.mark.parametrize("running", [False, True])
def test_a_stopped_engine_on_rtl(idle, running):
    if running:
        start(idle)
    stop(pynq_torch.current_board().pl.pid)
    begin = time.monotonic()
    with pytest.raises(KernelFault, match="did not answer in cycle .* was stopped by a signal"):
        poll(lambda: idle.read(0) & 2)
    assert time.monotonic() - begin < 15
    for offset, buffer in zip((0x10, 0x1C), idle.buffers, strict=True):
        idle.write(offset, buffer.device_address)
    start(idle)
    wait_done(idle)


# ---- processes that a design starts --------------------------------------------------------------


def sleepers(seconds):
    """Return the processes ``sleep SECONDS`` that live."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue  # it has just ended
        if words[:2] == [b"sleep", str(seconds).encode()]:
            found.append(int(path.parent.name))
    return found


@pytest.fixture
def seconds():
    """Return a time to sleep that tells this test's processes from all others."""
    number = 100_000 + os.getpid() % 50_000 * 10 + next(_numbers)
    yield number
    for pid in sleepers(number):
        os.kill(pid, signal.SIGKILL)


_numbers = iter(range(1000))


def run(ip, how, seconds):
    ip.register_map.how, ip.register_map.seconds = how, seconds
    start(ip)
    wait_done(ip)
    return int(ip.read(0x10))


@pytest.mark.parametrize("how", [FORK, SHELL, DAEMON])
@pytest.mark.parametrize("end", ["close", "reset"])
def test_what_a_kernel_starts_ends_with_it(tmp_path, seconds, how, end):
    overlay = overlay_of(tmp_path, {"forking_0": "forking"})
    board = pynq_torch.current_board()
    run(overlay.forking_0, how, seconds)
    eventually(lambda: len(sleepers(seconds)) == 1)
    board.close() if end == "close" else board.ip["forking_0"].reset()
    eventually(lambda: not sleepers(seconds))


@pytest.mark.parametrize("how", [DAEMON_AND_CRASH, FORK_AND_EXIT])
def test_what_a_kernel_starts_ends_with_its_fault(tmp_path, seconds, how):
    overlay = overlay_of(tmp_path, {"forking_0": "forking"})
    with pytest.raises(KernelFault):
        run(overlay.forking_0, how, seconds)
    eventually(lambda: not sleepers(seconds))


def test_a_daemon_ends_with_an_engine_that_was_killed(tmp_path, seconds):
    overlay = overlay_of(tmp_path, {"forking_0": "forking"})
    board = pynq_torch.current_board()
    run(overlay.forking_0, DAEMON, seconds)
    eventually(lambda: sleepers(seconds))
    os.kill(board.cus["forking_0"].engine.pid, signal.SIGKILL)  # as where memory runs out
    eventually(lambda: board.cus["forking_0"].engine.faulted)
    board.close()
    eventually(lambda: not sleepers(seconds))


def test_a_child_that_comes_back_from_the_kernel_serves_nothing(tmp_path):
    overlay = overlay_of(tmp_path, {"forking_0": "forking"})
    for _ in range(5):
        assert run(overlay.forking_0, COMES_BACK, 0) == 2
    time.sleep(0.1)
    assert pynq_torch.current_board().cus["forking_0"].engine.completed == 5


_PROGRAM = """
import os, signal, sys, time
sys.path[:0] = {paths!r}
import pynq_torch
from pynq import Overlay, allocate
from helpers import start, wait_done
pynq_torch.use_board({board!r}, kernels=[{kernels!r}])
overlay = Overlay({bit!r})
if {how}:
    overlay.forking_0.register_map.how = {how}
    overlay.forking_0.register_map.seconds = {seconds}
    start(overlay.forking_0)
    wait_done(overlay.forking_0)
print("ready", flush=True)
time.sleep(600)
"""


def killed(bit, board, kernels, how, seconds):
    """Run a program, and end it by kill -9 when what it loads has started a process."""
    text = _PROGRAM.format(
        paths=[str(Path(__file__).parent)],
        board=board,
        kernels=str(kernels),
        bit=str(bit),
        how=how,
        seconds=seconds,
    )
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout.readline() == b"ready\n"
            eventually(lambda: sleepers(seconds))
        finally:
            program.kill()
    eventually(lambda: not sleepers(seconds))


@pytest.mark.parametrize("how", [FORK, SHELL, DAEMON])
def test_what_a_kernel_starts_ends_with_a_program_that_is_killed(tmp_path, seconds, how):
    killed(write_overlay(tmp_path, {"forking_0": "forking"}), "csim", KERNELS, how, seconds)


def test_what_rtl_starts_ends_with_it(tmp_path, seconds):
    kernels = tmp_path / "kernels"
    shutil.copytree(RTL_KERNELS / "increment", kernels / "increment")
    source = kernels / "increment" / "rtl" / "increment.sv"
    text = source.read_text()
    at = text.rindex("endmodule")
    shell = f'initial begin $system("setsid sleep {seconds} &"); end\n'
    source.write_text(text[:at] + shell + text[at:])
    bit = write_overlay(tmp_path, {"increment_0": "increment"}, kernels=kernels)
    board = pynq_torch.use_board("rtl", kernels=[kernels])
    Overlay(str(bit))
    eventually(lambda: sleepers(seconds))
    board.close()
    eventually(lambda: not sleepers(seconds))
    killed(bit, "rtl", kernels, NOTHING, seconds)
