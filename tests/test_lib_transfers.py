"""Transfers and waits through pynq's own DMA driver: they end, and say why."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pynq
import pytest
from ip_handoff import AXI_DMA, Ip, write_design

import pynq_torch
from pynq_torch import buffers, events
from pynq_torch.board.device import VirtualBoard
from pynq_torch.errors import BufferFreed, TransferTimeout
from pynq_torch.waits import wait_async
from pynq_torch.waits.transfers import TransferError

LOOP = {"dma.M_AXIS_MM2S": "dma.S_AXIS_S2MM"}


@pytest.fixture
def board() -> Iterator[VirtualBoard]:
    board = pynq_torch.use_board("csim", hang_timeout_s=20.0)
    assert isinstance(board, VirtualBoard)
    yield board
    board.close()


def _load(tmp_path: Path, name: str = "loop", **parameters: object) -> Any:
    ips = [Ip("axi_dma", "dma", 0x40400000, AXI_DMA | parameters)]
    return pynq.Overlay(str(write_design(tmp_path, name, ips, LOOP)))


@pytest.fixture
def dma(board: VirtualBoard, tmp_path: Path) -> Any:
    return _load(tmp_path).dma


def _fill(n: int, dtype: str = "u4") -> Any:
    buffer = buffers.empty(n, dtype)
    buffer[:] = np.arange(n) * 7 + 3
    return buffer


@pytest.mark.parametrize("scatter_gather", [0, 1])
@pytest.mark.parametrize("n", [2, 7, 1000])
def test_transfer_moves_both_ways(
    board: VirtualBoard, tmp_path: Path, n: int, scatter_gather: int
) -> None:
    dma = _load(tmp_path, C_INCLUDE_SG=scatter_gather).dma
    source, target = _fill(n), buffers.empty(n, "u4")
    for _ in range(3):
        assert pynq_torch.transfer(dma, send=source, recv=target) == (4 * n, 4 * n)
        assert np.array_equal(source, target)


def test_transfer_takes_tensors_over_cma_memory(dma: Any) -> None:
    import torch

    source, target = buffers.empty_tensor(16), buffers.empty_tensor(16)
    source.copy_(torch.arange(16.0))
    pynq_torch.transfer(dma, send=source, recv=target)
    assert torch.equal(source, target)


def test_the_receive_side_is_armed_first_and_each_lane_is_published(dma: Any) -> None:
    lanes: list[tuple[str, float, float]] = []
    armed: list[str] = []
    for name in ("send", "recv"):
        channel = getattr(dma, f"{name}channel")

        def transfer(buffer: Any, name: str = name, arm: Any = channel.transfer) -> None:
            armed.append(name)
            arm(buffer)

        channel.transfer = transfer
    watcher = lanes.append
    events.transfers.subscribe(watcher)
    begin = time.perf_counter()
    try:
        pynq_torch.transfer(dma, send=_fill(64), recv=buffers.empty(64, "u4"))
    finally:
        events.transfers.unsubscribe(watcher)
    assert armed == ["recv", "send"]
    assert [lane for lane, _, _ in lanes] == ["dma.recv", "dma.send"]
    (_, first, end), (_, second, same_end) = lanes
    assert begin < first < second < end == same_end < time.perf_counter()


def test_a_strict_cache_sees_what_came_and_what_was_written(tmp_path: Path, closed: None) -> None:
    pynq_torch.use_board("csim", strict_cache=True)
    dma = _load(tmp_path).dma
    source, target = _fill(64), buffers.empty(64, "u4")
    target[:] = 0
    target.flush()
    for step in range(2):
        source[:] = np.arange(64) + step
        pynq_torch.transfer(dma, send=source, recv=target)
        assert target.tolist() == source.tolist()


def test_a_transfer_that_is_not_given_up_goes_on(dma: Any) -> None:
    target = buffers.empty(64, "u4")
    with pytest.raises(TransferTimeout, match=r"give it up with pynq_torch\.reset\(dma\)\.$"):
        pynq_torch.transfer(dma, recv=target, timeout_s=0.1, recover=False)
    dma.sendchannel.transfer(_fill(64))
    pynq_torch.wait(dma, timeout_s=5)
    assert target[1] == 10
    with pytest.raises(TransferTimeout, match="now: the DMA has been reset and can be used"):
        pynq_torch.transfer(dma, recv=target, timeout_s=0.1)


def test_wait_for_a_channel_of_pynq(dma: Any) -> None:
    source, target = _fill(64), buffers.empty(64, "u4")
    dma.recvchannel.transfer(target)
    dma.sendchannel.transfer(source)
    pynq_torch.wait(dma.recvchannel, timeout_s=5)
    pynq_torch.wait(dma, timeout_s=5)
    assert dma.recvchannel.transferred == 256
    assert np.array_equal(source, target)


def test_receive_without_send_times_out_with_a_diagnosis(dma: Any) -> None:
    target = buffers.empty(64, "u4")
    for _ in range(2):
        with pytest.raises(TransferTimeout, match=r"cause: nothing sent") as caught:
            pynq_torch.transfer(dma, recv=target, timeout_s=0.1)
        assert "256 bytes asked for" in str(caught.value)
        assert caught.value.diagnosis is not None
        assert caught.value.diagnosis.facts.tlast is False  # what came before does not count
        # usable at once
        pynq_torch.transfer(dma, send=_fill(64), recv=target)


def test_send_without_receive_times_out_with_a_diagnosis(dma: Any) -> None:
    source = _fill(1000)
    with pytest.raises(TransferTimeout, match="receive not armed before send"):
        pynq_torch.transfer(dma, send=source, timeout_s=0.1)
    with pytest.raises(TransferTimeout, match="receive not armed before send"):
        dma.sendchannel.transfer(source)
        pynq_torch.wait(dma.sendchannel, timeout_s=0.1)


def test_a_packet_longer_than_the_buffer(dma: Any) -> None:
    source, target = _fill(64), buffers.empty(16, "u4")
    with pytest.raises(TransferError, match="cause: late TLAST") as caught:
        pynq_torch.transfer(dma, send=source, recv=target, timeout_s=20)
    assert caught.value.diagnosis is not None
    assert caught.value.diagnosis.cause == "late TLAST"


def test_a_second_run_after_an_error(dma: Any) -> None:
    source, target = _fill(64), buffers.empty(16, "u4")
    dma.recvchannel.transfer(target)
    dma.sendchannel.transfer(source)
    with pytest.raises(TransferError, match="late TLAST"):
        pynq_torch.wait(dma.recvchannel, timeout_s=20)
    with pytest.raises(RuntimeError):
        dma.recvchannel.transfer(target)  # pynq: not started
    pynq_torch.reset(dma)
    whole = buffers.empty(64, "u4")
    pynq_torch.transfer(dma, send=source, recv=whole, timeout_s=20)
    assert np.array_equal(source, whole)


def test_a_short_packet(dma: Any) -> None:
    source, target = _fill(10), buffers.empty(64, "u4")
    with pytest.raises(TransferError, match="early TLAST") as caught:
        pynq_torch.transfer(dma, send=source, recv=target)
    assert caught.value.diagnosis is not None
    facts = caught.value.diagnosis.facts
    assert [side and side.requested for side in (facts.send, facts.recv)] == [40, 256]
    assert pynq_torch.transfer(dma, send=source, recv=target, exact=False) == (40, 40)


def test_length_beyond_the_register(board: VirtualBoard, tmp_path: Path) -> None:
    dma = _load(tmp_path, C_SG_LENGTH_WIDTH=8).dma
    source = _fill(64)
    with pytest.raises(TransferError, match=r"256 bytes.*at most 255"):
        pynq_torch.transfer(dma, send=source)
    dma.mmio.write(0x18, source.physical_address)
    dma.mmio.write(0x28, source.nbytes)
    with pytest.raises(TransferError, match="length beyond the length register"):
        pynq_torch.wait(dma.sendchannel, timeout_s=0.2)
    pynq_torch.reset(dma)
    source, target = _fill(255, "u1"), buffers.empty(255, "u1")
    assert pynq_torch.transfer(dma, send=source, recv=target) == (255, 255)
    assert np.array_equal(source, target)
    with pytest.raises(TransferError, match=r"recv has 256 bytes.*at most 255 \(8 bits\)"):
        pynq_torch.transfer(dma, recv=buffers.empty(256, "u1"))


def test_what_scatter_gather_takes(board: VirtualBoard, tmp_path: Path) -> None:
    dma = _load(tmp_path, C_INCLUDE_SG=1, C_SG_LENGTH_WIDTH=8).dma
    with pytest.raises(TransferError, match="needs at least 8"):
        pynq_torch.transfer(dma, send=_fill(1), recv=buffers.empty(1, "u4"))
    source, target = _fill(1000), buffers.empty(1000, "u4")
    assert pynq_torch.transfer(dma, send=source, recv=target) == (4000, 4000)
    assert np.array_equal(source, target)


def test_unaligned_buffer(board: VirtualBoard, tmp_path: Path) -> None:
    dma = _load(tmp_path).dma
    source, target = _fill(64, "u1"), buffers.empty(64, "u1")
    with pytest.raises(TransferError, match="no multiple of the 4 bytes"):
        pynq_torch.transfer(dma, send=source[1:33])
    dma = _load(tmp_path, "dre", C_INCLUDE_MM2S_DRE=1, C_INCLUDE_S2MM_DRE=1).dma
    assert pynq_torch.transfer(dma, send=source[1:33], recv=target[2:34]) == (32, 32)
    assert np.array_equal(source[1:33], target[2:34])


@pytest.mark.parametrize(("side", "word"), [("send", "Read"), ("recv", "Write")])
def test_a_channel_that_was_not_built(
    board: VirtualBoard, tmp_path: Path, side: str, word: str
) -> None:
    key = "C_INCLUDE_MM2S" if side == "send" else "C_INCLUDE_S2MM"
    ips = [Ip("axi_dma", "dma", 0x40400000, AXI_DMA | {key: 0})]
    dma = pynq.Overlay(str(write_design(tmp_path, "half", ips))).dma
    with pytest.raises(TransferError, match=f"dma has no {side} channel.*'Enable {word} Channel'"):
        pynq_torch.transfer(dma, **{side: _fill(4)})


def test_address_outside_the_map(dma: Any) -> None:
    dma.mmio.write(0x18, 0x50000000)
    dma.mmio.write(0x28, 64)
    with pytest.raises(TransferError, match="cause: address outside the map") as caught:
        pynq_torch.wait(dma.sendchannel, timeout_s=20)
    assert "0x50000000" in str(caught.value)


def test_stale_overlay_object(board: VirtualBoard, dma: Any, tmp_path: Path) -> None:
    ips = [Ip("axi_gpio", "gpio", 0x41200000, {"C_GPIO_WIDTH": 4, "C_IS_DUAL": 0})]
    pynq.Overlay(str(write_design(tmp_path, "other", ips)))
    with pytest.raises(TransferError, match="stale overlay object"):
        pynq_torch.transfer(dma, send=_fill(4))


def test_never_armed(dma: Any) -> None:
    with pytest.raises(TransferError, match="nothing to wait for"):
        pynq_torch.wait(dma.recvchannel, timeout_s=1)


def test_busy_dma_says_so(dma: Any) -> None:
    dma.recvchannel.transfer(buffers.empty(4, "u4"))
    dma.recvchannel._first_transfer = False
    with pytest.raises(TransferError, match="still running on an earlier transfer"):
        pynq_torch.transfer(dma, recv=buffers.empty(4, "u4"))


def test_halted_dma_is_started_again(dma: Any) -> None:
    dma.sendchannel.stop()
    dma.recvchannel.stop()
    pynq_torch.transfer(dma, send=_fill(4), recv=buffers.empty(4, "u4"))


def test_ordinary_memory_and_freed_buffers_are_refused(dma: Any) -> None:
    with pytest.raises(TransferError, match="ordinary memory"):
        pynq_torch.transfer(dma, send=np.zeros(4))
    with pytest.raises(TransferError, match="ordinary memory"):
        pynq_torch.transfer(dma, send=_fill(4) + 1)
    gone = pynq.allocate(4)
    part = gone[::2]
    gone.freebuffer()
    for freed in (gone, part):
        with pytest.raises(BufferFreed):
            pynq_torch.transfer(dma, send=freed)
    with pytest.raises(TransferError, match="strides"):
        pynq_torch.transfer(dma, send=_fill(8)[::2])


def test_empty_transfers(dma: Any) -> None:
    assert pynq_torch.transfer(dma, send=buffers.empty(0), recv=buffers.empty(0)) == (0, 0)
    with pytest.raises(TransferError, match="cannot move 0 bytes"):
        pynq_torch.transfer(dma, send=_fill(4), recv=buffers.empty(0))
    assert pynq_torch.transfer(dma, recv=np.zeros(0)) == (0, 0)
    with pytest.raises(TransferError, match="nothing to do"):
        pynq_torch.transfer(dma)
    with pytest.raises(TypeError, match=r"expected a pynq\.lib\.DMA, found int"):
        pynq_torch.transfer(3, send=_fill(4))


def test_a_buffer_of_another_board(dma: Any, closed: None) -> None:
    pynq_torch.use_board("csim")
    with pytest.raises(TransferError, match="send was allocated on another device than dma is on"):
        pynq_torch.transfer(dma, send=_fill(4))


@pytest.mark.parametrize("timeout_s", [0, -1, float("inf"), float("nan"), None, "1"])
def test_every_wait_has_an_end(dma: Any, timeout_s: Any) -> None:
    with pytest.raises(ValueError, match="timeout_s"):
        pynq_torch.wait(dma.sendchannel, timeout_s=timeout_s)


def test_what_cannot_be_waited_for() -> None:
    with pytest.raises(TypeError, match="cannot wait for int"):
        pynq_torch.wait(3)


def test_ctrl_c_leaves_the_dma_usable(dma: Any) -> None:
    target = buffers.empty(64, "u4")
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        pynq_torch.transfer(dma, recv=target, timeout_s=20)
    assert time.monotonic() - started < 10
    pynq_torch.transfer(dma, send=_fill(64), recv=target)
    assert target[1] == 10


@pytest.mark.parametrize("intc", [True, False])
def test_wait_async_by_interrupt(board: VirtualBoard, tmp_path: Path, intc: bool) -> None:
    import asyncio

    ips = [Ip("axi_dma", "dma", 0x40400000, AXI_DMA)]
    irqs = ["dma/mm2s_introut", "dma/s2mm_introut"] if intc else ["dma/s2mm_introut"]
    bit = write_design(tmp_path, "irq", ips, LOOP, irqs, intc)
    asyncio.set_event_loop(asyncio.new_event_loop())
    loop = asyncio.get_event_loop()
    try:
        dma = pynq.Overlay(str(bit)).dma
        source, target = _fill(64), buffers.empty(64, "u4")

        async def run() -> None:
            dma.recvchannel.transfer(target)
            dma.sendchannel.transfer(source)
            await wait_async(dma.recvchannel, timeout_s=5)
            await wait_async(dma.sendchannel, timeout_s=5)

        for _ in range(3):
            loop.run_until_complete(run())
            assert np.array_equal(source, target)
    finally:
        board.close()
        loop.close()
        asyncio.set_event_loop(None)
