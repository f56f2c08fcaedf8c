"""A kernel may do anything: the program gets one sentence, and the board goes on."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from helpers import KERNELS, overlay_of, start, wait_done, write_overlay
from pynq import Overlay, allocate

import pynq_torch
from pynq_torch.errors import BoardHang, HandoffError, KernelBuildError, KernelFault, NoModelError

(
    NOTHING,
    NULL_POINTER,
    FOR_EVER,
    WRITE_PAST,
    READ_PAST,
    WRITE_FAR,
    ABORT,
    THROW,
    DIVIDE,
    RECURSE,
    SHOUT,
) = range(11)


@pytest.fixture(scope="module")
def overlay(tmp_path_factory):
    yield overlay_of(
        tmp_path_factory.mktemp("faulty"), {"faulty_0": "faulty", "counter_0": "counter"}
    )
    pynq_torch.current_board().close()


@pytest.fixture
def board(overlay):
    return pynq_torch.current_board()


@pytest.fixture
def data(overlay):
    return allocate(1000, "i4")


def launch(ip, buffer, n, sin):
    registers = ip.register_map
    registers.data_1, registers.data_2 = buffer.physical_address, 0
    registers.n, registers.sin = n, sin
    start(ip)


@pytest.mark.parametrize(
    "sin, says",
    [
        (NULL_POINTER, r"faulty_0 crashed \(SIGSEGV\): a null pointer"),
        (
            READ_PAST,
            r"faulty_0 read from memory outside its buffers: physical address 0x{end:08x}.*"
            r"the nearest is the buffer at 0x{begin:08x} \(int32\[1000\], 4000 bytes\)",
        ),
        (WRITE_FAR, r"faulty_0 wrote to memory outside its buffers: physical address 0x{far:08x}"),
        (
            WRITE_PAST,
            r"faulty_0 wrote past the end of the buffer at 0x{begin:08x}.*register 0x18 points",
        ),
        (ABORT, r"faulty_0 crashed \(SIGABRT\)(.|\n)*about to abort"),
        (THROW, r"faulty_0 failed: no such mode"),
        (DIVIDE, r"faulty_0 crashed \(SIGFPE\)"),
        (RECURSE, r"faulty_0 crashed \(SIGSEGV\).*stack overflow"),
    ],
)
def test_a_crash_names_the_unit_and_the_place_and_the_board_goes_on(overlay, data, sin, says):
    begin = data.physical_address
    data[:] = 1
    launch(overlay.faulty_0, data, 1000, sin)
    expected = says.format(begin=begin, end=begin + 4096 + 64, far=begin + (4 << 24))
    with pytest.raises(KernelFault, match=expected) as caught:
        wait_done(overlay.faulty_0)
    assert caught.value.cu == "faulty_0"
    assert (data == 2).all()  # nothing the kernel had done before is lost
    launch(overlay.faulty_0, data, 1000, NOTHING)
    wait_done(overlay.faulty_0)
    assert int(overlay.faulty_0.register_map.ap_return) == 3000


def test_the_upper_word_of_an_address_counts(overlay, data):
    registers = overlay.faulty_0.register_map
    registers.data_1, registers.data_2 = data.physical_address, 1
    registers.n, registers.sin = 10, NOTHING
    start(overlay.faulty_0)
    with pytest.raises(KernelFault, match=f"0x1{data.physical_address:08x} lies outside the 512"):
        wait_done(overlay.faulty_0)
    launch(overlay.faulty_0, data, 10, NOTHING)
    wait_done(overlay.faulty_0)


def test_a_result_that_is_read_after_a_crash_is_the_fault(overlay, data):
    def read_results():
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:  # never AP_CTRL: the program sleeps, then reads
            overlay.faulty_0.read(0x10)

    launch(overlay.faulty_0, data, 1000, ABORT)
    with pytest.raises(KernelFault, match=r"SIGABRT"):
        read_results()


def test_what_a_crash_wrote_behind_its_buffers_is_not_blamed_on_the_next_run(overlay, data):
    other = allocate(10, "i4")  # lies behind, and is run over as well
    launch(overlay.faulty_0, data, 100_000, NOTHING)
    with pytest.raises(KernelFault, match="memory outside its buffers"):
        wait_done(overlay.faulty_0)
    for buffer in (data, other):
        buffer[:] = 1
        launch(overlay.faulty_0, buffer, buffer.size, NOTHING)
        wait_done(overlay.faulty_0)
        assert (buffer == 2).all()


def test_endless_loop_is_ended_by_reset(overlay, board, data):
    launch(overlay.faulty_0, data, 10, FOR_EVER)
    time.sleep(0.05)
    assert int(overlay.faulty_0.read(0)) & 4 == 0
    board.cus["faulty_0"].reset()
    launch(overlay.faulty_0, data, 10, NOTHING)
    wait_done(overlay.faulty_0)
    assert (data[:10] == 2).all()


def test_a_kernel_that_prints_for_ever_fills_no_memory(overlay, board, data):
    launch(overlay.faulty_0, data, 1, SHOUT)
    wait_done(overlay.faulty_0, 60)
    assert 1 << 20 < len(board.cus["faulty_0"].log) <= 16 << 20
    board.cus["faulty_0"].reset()


@pytest.mark.parametrize("used", [False, True], ids=["never used", "used before"])
def test_freed_buffer_given_to_a_kernel(overlay, data, used):
    old = allocate(1000, "i4")
    address = old.physical_address
    if used:  # its pages are open then, and must be closed
        launch(overlay.faulty_0, old, 4, NOTHING)
        wait_done(overlay.faulty_0)
    old.freebuffer()
    overlay.faulty_0.register_map.data_1 = address
    overlay.faulty_0.register_map.n = 4
    start(overlay.faulty_0)
    with pytest.raises(KernelFault, match=r"byte 0 of a freed buffer"):
        wait_done(overlay.faulty_0)


def test_buffer_freed_while_the_kernel_runs_is_not_handed_out(overlay, board):
    old = allocate(1000, "i4")
    address = old.physical_address
    launch(overlay.faulty_0, old, 0, FOR_EVER)
    time.sleep(0.02)
    old.freebuffer()
    fresh = allocate(1000, "i4")
    assert fresh.physical_address != address
    board.cus["faulty_0"].reset()


def test_process_killed_from_outside_is_noticed(overlay, board, data):
    launch(overlay.faulty_0, data, 0, FOR_EVER)
    os.kill(board.cus["faulty_0"].engine.pid, signal.SIGKILL)
    with pytest.raises(KernelFault, match=r"process was killed by SIGKILL"):
        wait_done(overlay.faulty_0)


def test_ctrl_c_during_a_wait_leaves_the_board_usable(overlay, board, data):
    launch(overlay.faulty_0, data, 0, FOR_EVER)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        wait_done(overlay.faulty_0)
    board.cus["faulty_0"].reset()
    launch(overlay.faulty_0, data, 5, NOTHING)
    wait_done(overlay.faulty_0)


def test_overlay_replaced_while_a_kernel_runs(overlay, board, data, tmp_path):
    launch(overlay.faulty_0, data, 0, FOR_EVER)
    pid = board.cus["faulty_0"].engine.pid
    other = Overlay(str(write_overlay(tmp_path, {"counter_0": "counter"})))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    other.counter_0.write(0x10, 4)
    start(other.counter_0)
    wait_done(other.counter_0)
    assert other.counter_0.read(0x18) == 4
    with pytest.raises(RuntimeError, match="not currently loaded"):
        _ = overlay.counter_0  # pynq's own check on a stale overlay object
    overlay.download()


@pytest.mark.filterwarnings("ignore::pynq_torch.errors.InterfaceWarning")  # the build says it too
def test_a_kernel_that_does_not_compile_shows_the_compilers_line(overlay, board, tmp_path):
    with pytest.raises(KernelBuildError, match=r"uncompilable.cpp:5:\d+: error: .*undeclared_name"):
        Overlay(str(write_overlay(tmp_path, {"uncompilable_0": "uncompilable"})))
    # The design that was loaded before still runs.
    overlay.counter_0.write(0x10, 1)
    start(overlay.counter_0)
    wait_done(overlay.counter_0)


def test_ip_without_a_model_loads_reads_back_and_names_the_folders(tmp_path):
    bit = write_overlay(tmp_path, {"counter_0": "counter"})
    pynq_torch.use_board("csim")
    overlay = Overlay(str(bit))
    overlay.counter_0.write(0x10, 77)
    assert overlay.counter_0.read(0x10) == 77
    with pytest.raises(
        NoModelError, match=r"(?s)counter_0 \(xilinx.com:hls:counter:1.0\) was started.*hw/kernels"
    ):
        start(overlay.counter_0)


def test_polling_what_can_never_happen_ends(tmp_path):
    units = {"counter_0": "counter", "free_running_0": "free_running"}
    overlay = overlay_of(tmp_path, units, hang_timeout_s=0.5)
    with pytest.raises(BoardHang, match="counter_0 was never started"):
        wait_done(overlay.counter_0)
    with pytest.raises(BoardHang, match="free_running_0 runs all the time: it has no AP_CTRL"):
        wait_done(overlay.free_running_0)
    chained = overlay_of(tmp_path / "second", {"chained_0": "chained"}, hang_timeout_s=0.5)
    start(chained.chained_0)
    wait_done(chained.chained_0)


def test_blocked_stream_ends_in_a_board_hang(tmp_path):
    overlay = overlay_of(
        tmp_path,
        {"scale_stream_0": "scale_stream"},
        [KERNELS.parents[1] / "hw" / "kernels"],
        extra="""
streams = [
  "axi_dma_0.M_AXIS_MM2S -> scale_stream_0.samples",
  "scale_stream_0.scaled -> axi_dma_0.S_AXIS_S2MM",
]
[instances.axi_dma_0]
ip = "axi_dma"
parameters = { c_include_sg = 0, c_sg_length_width = 23 }
memory = { M_AXI_MM2S = "HP0", M_AXI_S2MM = "HP1" }
""",
        hang_timeout_s=0.5,
    )
    start(overlay.scale_stream_0)
    with pytest.raises(BoardHang, match=r"scale_stream_0: WAIT_READ on scale_stream_0.samples"):
        wait_done(overlay.scale_stream_0)


@pytest.fixture
def bit(tmp_path):
    return write_overlay(tmp_path, {"counter_0": "counter"})


def test_missing_bit(bit):
    pynq_torch.use_board("csim")
    with pytest.raises(OSError, match="does not exist"):
        Overlay(str(bit.with_name("other.bit")))


def test_missing_hwh(bit):
    pynq_torch.use_board("csim")
    bit.with_suffix(".hwh").unlink()
    with pytest.raises(HandoffError, match=r"design.hwh is missing"):
        Overlay(str(bit))


@pytest.mark.parametrize(
    "text, says",
    [
        ("this is no XML", "is not XML"),
        ("<a/>", "is XML but no hardware handoff"),
        (None, r"is for a 7z010 .* a PYNQ-Z2 is a 7z020"),
    ],
)
def test_unusable_hwh(bit, text, says):
    pynq_torch.use_board("csim", kernels=[KERNELS])
    good = bit.with_suffix(".hwh").read_text()
    bit.with_suffix(".hwh").write_text(
        text if text is not None else good.replace('DEVICE="7z020"', 'DEVICE="7z010"')
    )
    with pytest.raises(HandoffError, match=says):
        Overlay(str(bit))
    bit.with_suffix(".hwh").write_text(good)
    assert np.isclose(Overlay(str(bit)).counter_0.read(0x10), 0)


def test_unknown_board_and_option():
    with pytest.raises(
        pynq_torch.errors.BoardError,
        match="no board is called 'zcu102'; there are csim, rtl, local, remote",
    ):
        pynq_torch.use_board("zcu102")
    with pytest.raises(pynq_torch.errors.BoardError, match="has no option cma; it has cma_bytes"):
        pynq_torch.use_board("csim", cma=1)
    with pytest.raises(pynq_torch.errors.BoardError, match="kernel folder .* does not exist"):
        pynq_torch.use_board("csim", kernels=["no/such/folder"])


def test_no_local_board_here():
    with pytest.raises(pynq_torch.errors.BoardError, match="pynq finds no board"):
        pynq_torch.use_board("local")
    pynq_torch.use_board("csim")
