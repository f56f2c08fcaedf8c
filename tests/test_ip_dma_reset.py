"""What a reset of an AXI DMA drops, what stays before the IP, and that both are told."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pynq
import pytest
import torch
from helpers import KERNELS, stop, write_overlay
from ip_handoff import AXI_DMA, Ip, write_design

import pynq_torch
from pynq_torch import buffers
from pynq_torch.board.device import VirtualBoard
from pynq_torch.board.ip.dma_slot import DmaSlot
from pynq_torch.board.streams import Ring
from pynq_torch.errors import BoardError, BoardHang, TransferTimeout
from pynq_torch.waits.transfers import TransferError

pytestmark = pytest.mark.timeout(180)

_STREAM = Path(__file__).resolve().parents[1] / "bitstreams" / "stream"
_RTL_KERNELS = Path(__file__).parent / "rtl_kernels"
_TX = AXI_DMA | {"C_SG_LENGTH_WIDTH": 23}
_PAIR = [Ip("axi_dma", "tx", 0x40400000, _TX), Ip("axi_dma", "rx", 0x40410000, _TX)]
_DMAS = """
streams = ["tx.M_AXIS_MM2S -> unit_0.{taken}", "unit_0.{given} -> rx.S_AXIS_S2MM"]
[instances.tx]
ip = "axi_dma"
parameters = {{ c_include_sg = 0, c_sg_length_width = 23, c_include_s2mm = 0 }}
memory = {{ M_AXI_MM2S = "HP0" }}
[instances.rx]
ip = "axi_dma"
parameters = {{ c_include_sg = 0, c_sg_length_width = 23, c_include_mm2s = 0 }}
memory = {{ M_AXI_S2MM = "HP1" }}
"""


@pytest.fixture
def board(request: pytest.FixtureRequest) -> Iterator[VirtualBoard]:
    board = pynq_torch.use_board(getattr(request, "param", "csim"))
    assert isinstance(board, VirtualBoard)
    yield board
    board.close()


def _ring(board: VirtualBoard, source: str) -> Ring:
    return next(ring for ring in board.rings if ring.source and ring.source.ip == source)


# ---- as a program meets it -------------------------------------------------------------------


def _start(kernel: Any, gain: float = 2.0) -> None:
    kernel.write(0x18, int(np.float32(gain).view("u4")))
    kernel.write(0x20, 0)
    kernel.write(0x00, 1)


def _not_started(overlay: Any, n: int) -> tuple[torch.Tensor, torch.Tensor, str]:
    """Transfer `n` ones through a kernel that stands still; return the buffers and the message."""
    x, y = buffers.empty_tensor(n), buffers.empty_tensor(n)
    x.fill_(1.0)
    with pytest.raises(TransferTimeout) as caught:
        pynq_torch.transfer(overlay.axi_dma_0, send=x, recv=y, timeout_s=0.2)
    assert "cause: IP never started" in str(caught.value)
    x.copy_(torch.arange(n) + 10.0)
    return x, y, str(caught.value)


def _right_after_a_failure(n: int, times: int = 1) -> None:
    overlay = pynq_torch.load("stream")
    for _ in range(times):
        x, y, message = _not_started(overlay, n)
        assert "has been reset and can be used" in message
    _start(overlay.scale_stream)
    assert pynq_torch.transfer(overlay.axi_dma_0, send=x, recv=y, timeout_s=20) == (4 * n, 4 * n)
    assert torch.equal(y, 2 * x)


# What a sender may leave behind is 16 beats; what a ring holds, 4096.
@pytest.mark.parametrize("n", [1, 8, 100, 4096, 6000])
def test_the_transfer_after_one_that_nobody_took(board: VirtualBoard, n: int) -> None:
    _right_after_a_failure(n)


@pytest.mark.parametrize("n", [8, 5000])
def test_failures_in_a_row_leave_nothing(board: VirtualBoard, n: int) -> None:
    _right_after_a_failure(n, times=3)


@pytest.mark.parametrize("board", ["rtl"], indirect=True)
@pytest.mark.parametrize("n", [8, 100, 6000])
def test_the_transfer_after_one_that_nobody_took_on_rtl(board: VirtualBoard, n: int) -> None:
    _right_after_a_failure(n, times=2)


def test_the_transfer_after_one_that_was_taken_in_part(board: VirtualBoard) -> None:
    overlay = pynq_torch.load("packets")
    dma, kernel = overlay.axi_dma_0, overlay.packetize_0
    x, half, y = (buffers.empty_tensor(n) for n in (100, 50, 100))
    kernel.start(n=50, packet=50)
    with pytest.raises(TransferTimeout, match="cause: wrong length") as caught:
        pynq_torch.transfer(dma, send=x, recv=half, timeout_s=0.2)
    assert "can be used" in str(caught.value)  # the kernel has ended its run: it kept nothing
    x.copy_(torch.arange(100.0))
    kernel.start(n=100, packet=100)
    pynq_torch.transfer(dma, send=x, recv=y)
    assert torch.equal(y, x)


def test_a_kernel_that_was_started_late_and_took_a_part(board: VirtualBoard) -> None:
    overlay = pynq_torch.load("packets")
    dma, kernel = overlay.axi_dma_0, overlay.packetize_0
    x, half, y = (buffers.empty(n) for n in (100, 50, 100))
    dma.sendchannel.transfer(x)
    kernel.start(n=50, packet=50)
    dma.recvchannel.transfer(half)
    pynq_torch.wait(kernel, timeout_s=5)
    pynq_torch.wait(dma.recvchannel, timeout_s=5)
    pynq_torch.reset(dma)
    x[:] = np.arange(100)
    kernel.start(n=100, packet=100)
    pynq_torch.transfer(dma, send=x, recv=y)
    assert np.array_equal(y, x)


def test_a_reset_by_hand_drops_what_was_not_taken(board: VirtualBoard) -> None:
    overlay = pynq_torch.load("stream")
    dma, ring = overlay.axi_dma_0, _ring(board, "axi_dma_0")
    dma.sendchannel.transfer(buffers.to_buffer(torch.ones(8)))
    dma.sendchannel.wait()
    dma.sendchannel.stop()
    assert ring.occupancy == 8  # they had gone out: a stop is no reset
    pynq_torch.reset(dma)
    assert ring.occupancy == 0
    dma.sendchannel.transfer(buffers.to_buffer(torch.ones(100)))
    assert ring.occupancy > 0
    dma.sendchannel.stop()  # in the middle of the transfer
    assert ring.occupancy == 0


def test_a_reset_cuts_off_nothing_that_a_board_would_have_sent(board: VirtualBoard) -> None:
    overlay = pynq_torch.load("packets")
    dma, kernel = overlay.axi_dma_0, overlay.packetize_0
    n = 1000
    x, y = buffers.empty(n), buffers.empty(n)
    x[:] = np.arange(n)
    kernel.start(n=n, packet=n)
    pynq_torch.transfer(dma, send=x, recv=y, timeout_s=20)  # the data mover runs from here on
    kernel.start(n=n, packet=n)
    mover = next(engine.pid for engine in board.engines() if engine.name == "axi_dma_0")
    stop(mover)
    resume = threading.Timer(1.0, os.kill, (mover, signal.SIGCONT))
    resume.start()
    try:
        dma.sendchannel.transfer(x)
        pynq_torch.reset(dma)  # what comes back is thrown away: nobody has asked for it
        pynq_torch.wait(kernel, timeout_s=20)
    finally:
        resume.join()
    kernel.start(n=n, packet=n)
    y[:] = 0
    pynq_torch.transfer(dma, send=x, recv=y, timeout_s=20)
    assert np.array_equal(y, x)


def test_a_sender_that_nobody_will_ever_serve_is_a_hang() -> None:
    board = pynq_torch.use_board("csim", hang_timeout_s=1.0)
    assert isinstance(board, VirtualBoard)
    try:
        overlay = pynq_torch.load("stream")
        x, _, _ = _not_started(overlay, 6000)  # all that the ring has room for is withdrawn
        overlay.axi_dma_0.sendchannel.transfer(buffers.to_buffer(x))
        with pytest.raises(BoardHang):
            overlay.axi_dma_0.sendchannel.wait()
        assert not any(engine.can_move for engine in board.engines())
    finally:
        board.close()


def test_a_data_mover_that_takes_nothing_back_is_an_error(
    board: VirtualBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    dma = pynq_torch.load("stream").axi_dma_0
    dma.sendchannel.transfer(buffers.to_buffer(torch.ones(8)))
    dma.sendchannel.wait()
    monkeypatch.setattr(DmaSlot, "withdraw", lambda *_: False)
    with pytest.raises(BoardError, match="axi_dma_0: .* the 8 beats .* load the overlay again"):
        pynq_torch.reset(dma)


def test_received_beats_wait_for_the_receiver_through_its_reset(
    board: VirtualBoard, tmp_path: Path
) -> None:
    streams = {"tx.M_AXIS_MM2S": "rx.S_AXIS_S2MM"}
    overlay = pynq.Overlay(str(write_design(tmp_path, "pair", _PAIR, streams)))
    source, target = pynq.allocate(8, "u4"), pynq.allocate(8, "u4")
    source[:] = np.arange(8)
    overlay.tx.sendchannel.transfer(source)
    overlay.tx.sendchannel.wait()
    overlay.rx.mmio.write(0x30, 4)
    overlay.rx.mmio.write(0x30, 1)
    overlay.rx.recvchannel.transfer(target)
    overlay.rx.recvchannel.wait()
    assert np.array_equal(source, target)


# ---- where a reset does not reach ------------------------------------------------------------


def _with_fifo(folder: Path, depth: int) -> Any:
    """Load the overlay `stream` with an AXI4-Stream data FIFO between the DMA and the kernel."""
    shutil.copy(_STREAM / "stream.bit", folder)
    hwh = (_STREAM / "stream.hwh").read_text()
    name = 'BUSNAME="{}" NAME="{}" TYPE="{}" VLNV="xilinx.com:interface:axis:1.0"'
    taken = name.format("axi_dma_0_M_AXIS_MM2S", "samples", "TARGET")
    assert hwh.count(taken) == 1
    hwh = hwh.replace(taken, name.format("fifo_M_AXIS", "samples", "TARGET"))
    fifo = (
        '<MODULE FULLNAME="/fifo" INSTANCE="fifo" IPTYPE="PERIPHERAL" MODTYPE="axis_data_fifo" '
        f'VLNV="xilinx.com:ip:axis_data_fifo:2.0"><PARAMETERS><PARAMETER NAME="FIFO_DEPTH" '
        f'VALUE="{depth}"/></PARAMETERS><PORTS/><BUSINTERFACES>'
        f"<BUSINTERFACE {name.format('axi_dma_0_M_AXIS_MM2S', 'S_AXIS', 'TARGET')}/>"
        f"<BUSINTERFACE {name.format('fifo_M_AXIS', 'M_AXIS', 'INITIATOR')}/>"
        "</BUSINTERFACES></MODULE>"
    )
    (folder / "stream.hwh").write_text(hwh.replace("</MODULES>", fifo + "</MODULES>"))
    return pynq_torch.load(str(folder / "stream.bit"))


@pytest.mark.parametrize("n, left", [(8, 8), (100, 100), (1000, 512)])
def test_what_a_fifo_holds_is_told_and_refused(
    board: VirtualBoard, tmp_path: Path, n: int, left: int
) -> None:
    overlay = _with_fifo(tmp_path, 512)
    x, y, message = _not_started(overlay, n)
    assert f"a FIFO before the IP, or its input registers, still hold {left} beats" in message
    assert "load the overlay again" in message
    assert "can be used" not in message
    for started in (False, True):
        if started:
            _start(overlay.scale_stream)
        with pytest.raises(TransferError, match=f"cause: data of an earlier.*{left} beats") as no:
            pynq_torch.transfer(overlay.axi_dma_0, send=x, recv=y)
        assert no.value.diagnosis is not None
        assert "load the overlay again" in no.value.diagnosis.remedy
    overlay = pynq_torch.load(str(tmp_path / "stream.bit"))
    _start(overlay.scale_stream)
    pynq_torch.transfer(overlay.axi_dma_0, send=x, recv=y)
    assert torch.equal(y, 2 * x)


def test_what_a_fifo_holds_and_a_running_kernel_takes_is_drained(
    board: VirtualBoard, tmp_path: Path
) -> None:
    overlay = _with_fifo(tmp_path, 512)
    x, half, y = (buffers.empty_tensor(n) for n in (400, 200, 400))
    x.copy_(torch.arange(400.0))
    _start(overlay.scale_stream)
    with pytest.raises(TransferError, match="cause: late TLAST"):
        pynq_torch.transfer(overlay.axi_dma_0, send=x, recv=half)
    pynq_torch.wait(overlay.scale_stream, timeout_s=5)
    _start(overlay.scale_stream)
    pynq_torch.transfer(overlay.axi_dma_0, send=x, recv=y)
    assert torch.equal(y, 2 * x)


# ---- a reset while the other side takes beats ------------------------------------------------


def _reset_at_any_moment(board: VirtualBoard, overlay: Any, rounds: int, added: int) -> None:
    """Reset `tx` while `rx` goes on: what came is the beginning of the packet, and nothing else.

    A second packet follows. A beat lost or doubled, before the reset or after it, shows.
    """
    tx, rx = overlay.tx.mmio, overlay.rx.mmio
    n, m = 40_000, 300
    counted, mark = pynq.allocate(n, "u4"), pynq.allocate(m, "u4")
    came = pynq.allocate(n + m, "u4")
    counted[:] = np.arange(n)
    chance, deadline = random.Random(7), time.monotonic() + 120
    longest_s = 0.004

    def receive() -> None:
        rx.write(0x48, came.physical_address)
        rx.write(0x58, came.nbytes)

    def ended(mmio: Any, status: int) -> None:
        while not mmio.read(status) & 2:
            assert time.monotonic() < deadline, board.activity()

    for i in range(rounds):
        mark[:] = 0x10000000 + 1000 * i + np.arange(m)
        rx.write(0x30, 1)
        receive()
        for source, pause_s in ((counted, longest_s * chance.random()), (mark, 0.0)):
            tx.write(0x00, 1)
            tx.write(0x18, source.physical_address)
            tx.write(0x28, source.nbytes)
            until = time.perf_counter() + pause_s
            while time.perf_counter() < until:
                pass
            if source is counted:
                tx.write(0x00, 4)
        ended(rx, 0x34)
        through = int(rx.read(0x58)) // 4 - m
        whole = through + m == n  # before the reset, and the mark is a packet of its own
        if whole:
            assert np.array_equal(came[:n], counted + np.uint32(added))
            receive()
            ended(rx, 0x34)
            through = int(rx.read(0x58)) // 4 - m
            assert through == 0
        assert np.array_equal(came[:through], counted[:through] + np.uint32(added)), (i, through)
        assert np.array_equal(came[through : through + m], mark + np.uint32(added)), (i, through)
        ended(tx, 0x04)
        # So that resets come in the middle, whatever the PC is; one that is busy may move packets
        # whole or not at all for a while.
        longest_s *= 0.8 if whole else 1.25 if through == 0 else 1.0


@pytest.mark.parametrize("fifo", [0, 700])
def test_reset_against_a_data_mover(board: VirtualBoard, tmp_path: Path, fifo: int) -> None:
    streams = {"tx.M_AXIS_MM2S": "rx.S_AXIS_S2MM"}
    overlay = pynq.Overlay(str(write_design(tmp_path, "pair", _PAIR, streams)))
    _ring(board, "tx").fifo = fifo
    _reset_at_any_moment(board, overlay, 200, 0)


@pytest.mark.parametrize("fifo", [0, 700])
def test_reset_against_a_kernel_at_work(tmp_path: Path, fifo: int) -> None:
    extra = _DMAS.format(taken="in_r", given="out_r")
    bit = write_overlay(tmp_path, {"unit_0": "free_running"}, extra)
    board = pynq_torch.use_board("csim", kernels=[KERNELS])
    assert isinstance(board, VirtualBoard)
    try:
        overlay = pynq.Overlay(str(bit))
        _ring(board, "tx").fifo = fifo
        _reset_at_any_moment(board, overlay, 250, 0)
    finally:
        board.close()


def test_reset_against_a_unit_on_rtl(tmp_path: Path) -> None:
    extra = _DMAS.format(taken="samples", given="results")
    bit = write_overlay(tmp_path, {"unit_0": "increment"}, extra, _RTL_KERNELS)
    board = pynq_torch.use_board("rtl", kernels=[_RTL_KERNELS])
    assert isinstance(board, VirtualBoard)
    try:
        _reset_at_any_moment(board, pynq.Overlay(str(bit)), 30, 1)
    finally:
        board.close()
