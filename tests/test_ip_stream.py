"""AXI DMA with other parts of the PL: block RAM, and a kernel between its two channels."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pynq
import pytest
from helpers import eventually
from ip_handoff import AXI_DMA, Ip, write_design

from pynq_torch.board import use_board
from pynq_torch.board.device import VirtualBoard
from pynq_torch.errors import BoardHang, KernelFault

pytestmark = pytest.mark.timeout(120)

_ROOT = Path(__file__).resolve().parents[1]
_LOOP = {"dma.M_AXIS_MM2S": "dma.S_AXIS_S2MM"}
_BRAM = 0x40000000


@pytest.fixture
def loop() -> Iterator[None]:
    # pynq's interrupt classes take the thread's event loop, and make one where there is none.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture
def board(loop: None) -> Iterator[VirtualBoard]:
    board = use_board("csim", hang_timeout_s=1.5)
    assert isinstance(board, VirtualBoard)
    yield board
    board.close()


@pytest.fixture
def with_bram(board: VirtualBoard, tmp_path: Path) -> pynq.Overlay:
    ips = [
        Ip("axi_dma", "dma", 0x40400000, AXI_DMA | {"C_INCLUDE_SG": 0}),
        Ip("axi_bram_ctrl", "bram", _BRAM, nbytes=8192),
    ]
    return pynq.Overlay(str(write_design(tmp_path, "bram", ips, _LOOP)))


def test_dma_reaches_block_ram(with_bram: pynq.Overlay) -> None:
    memory = with_bram.bram.mmio
    memory.array[:1024] = np.arange(1024, dtype=np.uint32)
    target = pynq.allocate(1024, "u4")
    with_bram.dma.recvchannel.transfer(target)
    with_bram.dma.mmio.write(0x18, _BRAM)
    with_bram.dma.mmio.write(0x28, 4096)
    with_bram.dma.recvchannel.wait()
    assert np.array_equal(target, np.arange(1024))
    with_bram.dma.mmio.write(0x48, _BRAM + 4096)
    with_bram.dma.mmio.write(0x58, 4096)
    with_bram.dma.sendchannel.transfer(target)
    while not with_bram.dma.recvchannel.idle:
        pass
    assert memory.read(4096 + 4 * 1023) == 1023


def test_the_end_of_block_ram_is_a_decode_error(with_bram: pynq.Overlay) -> None:
    target = pynq.allocate(1024, "u4")
    with_bram.dma.recvchannel.transfer(target)
    with_bram.dma.mmio.write(0x18, _BRAM + 8192 - 64)
    with_bram.dma.mmio.write(0x28, 128)
    with pytest.raises(RuntimeError, match=r"Decode Error|not started"):
        with_bram.dma.sendchannel.wait()
    assert with_bram.dma.mmio.read(0x04) & 0x40


def test_a_beat_may_lie_in_two_memories(board: VirtualBoard, tmp_path: Path) -> None:
    dma = AXI_DMA | {"C_INCLUDE_SG": 0, "C_INCLUDE_MM2S_DRE": 1, "C_INCLUDE_S2MM_DRE": 1}
    ips = [
        Ip("axi_dma", "dma", 0x40400000, dma),
        Ip("axi_bram_ctrl", "low", _BRAM, nbytes=4096),
        Ip("axi_bram_ctrl", "high", _BRAM + 4096, nbytes=4096),
    ]
    overlay = pynq.Overlay(str(write_design(tmp_path, "two", ips, _LOOP)))
    low, high = (part.mmio.array.view("u1") for part in (overlay.low, overlay.high))
    low[-5:], high[:4] = range(1, 6), range(6, 10)
    target = pynq.allocate(9, "u1")
    for register, address in ((0x18, _BRAM + 4091), (0x48, target.physical_address)):
        overlay.dma.mmio.write(register, address)
    for register in (0x58, 0x28):
        overlay.dma.mmio.write(register, 9)
    eventually(lambda: target[8] == 9)
    assert list(target) == [*range(1, 10)]
    overlay.dma.mmio.write(0x18, target.physical_address)
    overlay.dma.mmio.write(0x48, _BRAM + 4093)
    for register in (0x58, 0x28):
        overlay.dma.mmio.write(register, 9)
    eventually(lambda: high[5] == 9)
    assert [*low[-5:], *high[:8]] == [1, 2, *range(1, 10), 0, 0]


# ---- with a kernel -------------------------------------------------------------------------


@pytest.fixture
def stream(board: VirtualBoard) -> pynq.Overlay:
    return pynq.Overlay(str(_ROOT / "bitstreams" / "stream" / "stream.bit"))


def _start(kernel: Any) -> None:
    kernel.register_map.gain = int(np.float32(2.0).view(np.uint32))
    kernel.register_map.offset = int(np.float32(0.5).view(np.uint32))
    while not kernel.read(0) & 4:
        pass
    kernel.write(0, 1)


def _buffers(n: int) -> tuple[Any, Any]:
    source, target = pynq.allocate(n, "f4"), pynq.allocate(n, "f4")
    source[:] = np.arange(n)
    return source, target


@pytest.mark.parametrize("n", [1, 100, 20_000])
def test_a_kernel_between_the_channels(stream: pynq.Overlay, n: int) -> None:
    source, target = _buffers(n)
    for _ in range(3):
        target[:] = 0
        _start(stream.scale_stream_0)
        stream.axi_dma_0.recvchannel.transfer(target)
        stream.axi_dma_0.sendchannel.transfer(source)
        stream.axi_dma_0.sendchannel.wait()
        stream.axi_dma_0.recvchannel.wait()
        assert np.array_equal(target, 2 * np.arange(n, dtype=np.float32) + np.float32(0.5))


def test_a_kernel_that_was_not_started_blocks_the_sender(
    board: VirtualBoard, stream: pynq.Overlay
) -> None:
    source, _ = _buffers(1000)
    stream.axi_dma_0.sendchannel.transfer(source)
    with pytest.raises(BoardHang):
        stream.axi_dma_0.sendchannel.wait()
    state = board.ip["axi_dma_0"].describe()["MM2S"]  # type: ignore[attr-defined]
    assert state["phase"] == "NO_SPACE"
    assert state["peer"] == "scale_stream_0.samples"


def test_interrupts_of_dma_and_kernel(board: VirtualBoard) -> None:
    async def main() -> None:
        stream = pynq.Overlay(str(_ROOT / "bitstreams" / "stream" / "stream.bit"))
        source, target = _buffers(1000)
        dma = stream.axi_dma_0
        for _ in range(5):
            _start(stream.scale_stream_0)
            dma.recvchannel.transfer(target)
            dma.sendchannel.transfer(source)
            await asyncio.wait_for(dma.sendchannel.wait_async(), 10)
            await asyncio.wait_for(dma.recvchannel.wait_async(), 10)
            assert target[999] == 2 * 999 + 0.5
        board.close()

    asyncio.run(main())


def test_a_stopped_transfer_wakes_a_coroutine(board: VirtualBoard) -> None:
    async def main() -> None:
        stream = pynq.Overlay(str(_ROOT / "bitstreams" / "stream" / "stream.bit"))
        source, _ = _buffers(16)
        dma = stream.axi_dma_0
        dma.sendchannel.transfer(source)
        await asyncio.wait_for(dma.sendchannel.wait_async(), 10)
        dma.mmio.write(0x18, 0x00200000)  # no buffer of anybody
        dma.mmio.write(0x28, 64)
        with pytest.raises(KernelFault, match="left the buffers"):
            await asyncio.wait_for(dma.sendchannel.wait_async(), 10)
        board.close()

    asyncio.run(main())


def test_a_hang_behind_an_ip_without_a_model_says_so(board: VirtualBoard, tmp_path: Path) -> None:
    ips = [
        Ip("axi_dma", "dma", 0x40400000, AXI_DMA),
        Ip("axis_interconnect", "widen", 0x40410000, AXI_DMA),
    ]
    streams = {"dma.M_AXIS_MM2S": "widen.S_AXIS", "widen.M_AXIS": "dma.S_AXIS_S2MM"}
    overlay = pynq.Overlay(str(write_design(tmp_path, "wide", ips, streams)))
    overlay.dma.sendchannel.transfer(pynq.allocate(4000, "u4"))
    with pytest.raises(BoardHang) as error:
        overlay.dma.sendchannel.wait()
    assert "widen has no model and passes nothing on; the board may go on" in str(error.value)
    assert "dma.M_AXIS_MM2S -> widen.S_AXIS: 4000 beats sent, 4000 waiting" in str(error.value)
    assert "on the board this waits for ever" not in str(error.value)
