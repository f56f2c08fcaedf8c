"""AXI DMA behind pynq's own driver: transfers, and every way they go wrong."""

from __future__ import annotations

import asyncio
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pynq
import pytest
from helpers import eventually, held
from ip_handoff import AXI_DMA, Ip, write_design

from pynq_torch.board import use_board
from pynq_torch.board.device import VirtualBoard
from pynq_torch.board.ip.axi_dma import AxiDma
from pynq_torch.board.ip.dma_channel import ChannelParameters, DmaChannel
from pynq_torch.board.ip.dma_slot import DmaSlot
from pynq_torch.errors import BoardHang, KernelFault

pytestmark = pytest.mark.timeout(120)

_SG = AXI_DMA | {"C_INCLUDE_SG": 1}
_LOOP = {"dma.M_AXIS_MM2S": "dma.S_AXIS_S2MM"}
_IRQS = ["dma/mm2s_introut", "dma/s2mm_introut"]
# A sender that leaves TLAST out when its descriptor has no end-of-frame bit, and a simple receiver.
_PAIR = {"tx.M_AXIS_MM2S": "rx.S_AXIS_S2MM"}
_HALTED, _IDLE, _INT_ERR, _SLV_ERR, _DEC_ERR = 1, 2, 0x10, 0x20, 0x40
_SG_INT_ERR, _SG_DEC_ERR = 0x100, 0x400


class Design:
    """A loaded overlay and what the tests look at in it."""

    def __init__(self, board: VirtualBoard, bit: Path) -> None:
        self.board = board
        self.overlay = pynq.Overlay(str(bit))

    def __getattr__(self, name: str) -> object:
        return getattr(self.overlay, name)

    def model(self, name: str) -> AxiDma:
        found = self.board.ip[name]
        assert isinstance(found, AxiDma)
        return found


@pytest.fixture
def board() -> Iterator[VirtualBoard]:
    board = use_board("csim", hang_timeout_s=1.5)
    assert isinstance(board, VirtualBoard)
    yield board
    board.close()


def _dma(name: str = "dma", base: int = 0x40400000, **parameters: object) -> Ip:
    return Ip("axi_dma", name, base, AXI_DMA | parameters)


@pytest.fixture
def loop(board: VirtualBoard, tmp_path: Path) -> Design:
    return Design(board, write_design(tmp_path, "loop", [_dma()], _LOOP))


@pytest.fixture
def pair(board: VirtualBoard, tmp_path: Path) -> Design:
    ips = [Ip("axi_dma", "tx", 0x40400000, _SG), _dma("rx", 0x40410000)]
    return Design(board, write_design(tmp_path, "pair", ips, _PAIR))


def _fill(n: int, dtype: str = "u4") -> pynq.buffer.PynqBuffer:
    buffer = pynq.allocate(n, dtype)
    buffer[:] = np.arange(n) * 7 + 3
    return buffer


def _carry(dma: Any, source: pynq.buffer.PynqBuffer, target: pynq.buffer.PynqBuffer) -> None:
    """Send one buffer, receive the other, and wait for both as programs do."""
    dma.recvchannel.transfer(target)
    dma.sendchannel.transfer(source)
    dma.sendchannel.wait()
    dma.recvchannel.wait()


def _descriptors(rows: list[tuple[int, int, int]]) -> pynq.buffer.PynqBuffer:
    """A chain of (address, length, flags); each points to the next, the last to the first."""
    chain = pynq.allocate((len(rows), 16), "u4")
    for i, (address, length, flags) in enumerate(rows):
        chain[i, 0] = chain.physical_address + 64 * ((i + 1) % len(rows))
        chain[i, 2] = address
        chain[i, 6] = length | flags
    return chain


def _send_chain(
    mmio: pynq.MMIO, chain: pynq.buffer.PynqBuffer, base: int = 0, cyclic: bool = False
) -> None:
    mmio.write(base + 0x08, chain.physical_address)
    mmio.write(base, 0x11 if cyclic else 1)
    last = chain.physical_address + 64 * (len(chain) if cyclic else len(chain) - 1)
    mmio.write(base + 0x10, last)


def _wait_status(mmio: pynq.MMIO, offset: int, mask: int, seconds: float = 5.0) -> int:
    deadline = time.monotonic() + seconds
    while not (status := mmio.read(offset)) & mask:
        assert time.monotonic() < deadline, f"DMASR stayed 0x{status:08x}"
        time.sleep(0.001)
    return status


# ---- direct register mode --------------------------------------------------------------------


def test_an_address_of_64_bits_is_two_registers(board: VirtualBoard, tmp_path: Path) -> None:
    Design(board, write_design(tmp_path, "wide", [_dma(C_ADDR_WIDTH=64)], _LOOP))
    mmio = pynq.MMIO(0x40400000, 0x100)
    for base in (0x18, 0x48):
        for low, high in ((0x12345678, 5), (0x10, 5), (0x10, 0x80000000)):
            mmio.write(base, low)
            mmio.write(base + 4, high)
            assert (mmio.read(base), mmio.read(base + 4)) == (low, high)


def test_a_transfer_goes_on_while_its_interrupt_is_enabled(loop: Design) -> None:
    source, target = _fill(16), pynq.allocate(16, "u4")
    loop.dma.recvchannel.transfer(target)
    loop.dma.mmio.write(0x30, 1 << 12 | 1)
    loop.dma.sendchannel.transfer(source)
    loop.dma.recvchannel.wait()
    assert np.array_equal(source, target)


@pytest.mark.parametrize("n", [1, 3, 16, 17, 1000, 65536])
def test_loop_returns_what_was_sent(loop: Design, n: int) -> None:
    source, target = _fill(n), pynq.allocate(n, "u4")
    _carry(loop.dma, source, target)
    assert np.array_equal(source, target)
    assert loop.dma.recvchannel.transferred == source.nbytes


def test_many_transfers_in_a_row(loop: Design) -> None:
    source, target = _fill(64), pynq.allocate(64, "u4")
    for i in range(200):
        source[:] = i
        _carry(loop.dma, source, target)
        assert target[63] == i
    state = loop.model("dma").describe()
    assert state["MM2S"]["packets"] == state["S2MM"]["packets"] == 200


def test_transfers_while_another_thread_allocates_and_frees(loop: Design) -> None:
    """The table of what belongs to a buffer is read in the middle of a transfer."""
    over = threading.Event()

    def churn() -> None:
        while not over.wait(1e-5):
            pynq.allocate(64, "u4").freebuffer()

    source, target = _fill(20_000), pynq.allocate(20_000, "u4")
    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(100):
            target[:] = 0
            _carry(loop.dma, source, target)
            assert np.array_equal(source, target)
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("nbytes", [1, 5, 7, 4093])
def test_last_beat_may_be_partial(loop: Design, nbytes: int) -> None:
    source, target = _fill(4096, "u1"), pynq.allocate(4096, "u1")
    target[:] = 0xEE
    loop.dma.recvchannel.transfer(target)
    loop.dma.sendchannel.transfer(source, nbytes=nbytes)
    loop.dma.recvchannel.wait()
    assert np.array_equal(target[:nbytes], source[:nbytes])
    assert np.all(target[nbytes:] == 0xEE)
    assert loop.dma.recvchannel.transferred == nbytes


def test_null_bytes_are_left_out(loop: Design) -> None:
    target = pynq.allocate(5, "u1")
    loop.dma.recvchannel.transfer(target)
    ring = next(iter(loop.board.rings))
    for n, (keep, last) in enumerate([(0b1110, 0), (0b0101, 1)]):
        side = struct.pack("<QQQIIII", keep, (1 << 64) - 1, 0, 0, 0, last, 0)
        beat = side + bytes(range(4 * n, 4 * n + 4))
        at = 64 + n * ring._stride
        ring._map[at : at + len(beat)] = beat
    ring._map[16:24] = (2).to_bytes(8, "little")
    loop.dma.recvchannel.wait()
    assert (list(target), loop.dma.recvchannel.transferred) == ([1, 2, 3, 4, 6], 5)


def test_an_early_tlast_ends_the_transfer_with_the_real_length(loop: Design) -> None:
    source, target = _fill(10), pynq.allocate(100, "u4")
    loop.dma.recvchannel.transfer(target)
    loop.dma.sendchannel.transfer(source)
    loop.dma.recvchannel.wait()
    assert loop.dma.recvchannel.transferred == 40
    assert loop.dma.mmio.read(0x58) == 40


def test_idle_is_low_until_the_first_transfer_is_over(loop: Design) -> None:
    mmio = loop.dma.mmio
    assert mmio.read(0x04) & (_HALTED | _IDLE) == 0
    loop.dma.sendchannel.transfer(_fill(4))
    loop.dma.sendchannel.wait()
    assert mmio.read(0x04) & _IDLE
    loop.dma.sendchannel.stop()
    assert mmio.read(0x04) & (_HALTED | _IDLE) == _HALTED


def test_reset_values_and_reserved_bits(loop: Design) -> None:
    mmio = loop.dma.mmio
    mmio.write(0x30, 0x4)  # either Reset resets both channels
    assert [mmio.read(o) for o in (0x00, 0x04, 0x30, 0x34)] == [0x10002, 0x10001] * 2
    mmio.write(0x18, 0x12345678)
    mmio.write(0x1C, 1)
    assert (mmio.read(0x18), mmio.read(0x1C)) == (0x12345678, 0)  # 32-bit addresses
    assert mmio.read(0x08) == 0  # no CURDESC without scatter-gather


def test_length_has_the_width_it_was_built_with(board: VirtualBoard, tmp_path: Path) -> None:
    design = Design(board, write_design(tmp_path, "narrow", [_dma(C_SG_LENGTH_WIDTH=14)], _LOOP))
    with pytest.raises(ValueError, match="exceeds"):
        design.dma.sendchannel.transfer(_fill(4096))  # pynq's own check
    mmio = design.dma.mmio
    mmio.write(0x28, 1 << 14)  # what a program without the check does: the register keeps nothing
    assert mmio.read(0x28) == 0
    assert not mmio.read(0x04) & _IDLE
    assert any("14 bits" in text for text in design.model("dma").describe()["MM2S"]["ignored"])


def test_length_does_nothing_while_halted(loop: Design) -> None:
    loop.dma.sendchannel.stop()
    loop.dma.mmio.write(0x28, 64)
    state = loop.model("dma").describe()["MM2S"]
    assert state["halted"] and not state["armed"]
    assert "halted" in state["ignored"][0]


@pytest.mark.parametrize("stream_bits", [8, 16, 32, 64, 128, 512, 1024])
def test_stream_and_memory_widths_may_differ(
    board: VirtualBoard, tmp_path: Path, stream_bits: int
) -> None:
    widths = {"C_M_AXIS_MM2S_TDATA_WIDTH": stream_bits, "C_S_AXIS_S2MM_TDATA_WIDTH": stream_bits}
    design = Design(board, write_design(tmp_path, "w", [_dma(**widths)], _LOOP))
    # The last beat has 28 bytes of 64, 92 of 128.
    source, target = _fill(1015), pynq.allocate(1015, "u4")
    design.dma.recvchannel.transfer(target)
    design.dma.sendchannel.transfer(source)
    design.dma.recvchannel.wait()
    assert np.array_equal(source, target)
    assert design.dma.recvchannel.transferred == source.nbytes
    beats = design.model("dma").describe()["MM2S"]["beats"]
    assert beats == -(-source.nbytes * 8 // stream_bits)


def test_one_channel_only(board: VirtualBoard, tmp_path: Path) -> None:
    design = Design(board, write_design(tmp_path, "one", [_dma(C_INCLUDE_S2MM=0)]))
    assert design.dma.recvchannel is None
    assert design.dma.mmio.read(0x34) == 0


# ---- what hangs on the board -----------------------------------------------------------------


def test_a_send_that_nobody_takes_does_not_complete(loop: Design) -> None:
    loop.dma.sendchannel.transfer(_fill(1000))
    with pytest.raises(BoardHang):
        loop.dma.sendchannel.wait()
    state = loop.model("dma").describe()["MM2S"]
    assert state["phase"] == "NO_SPACE" and state["peer"] == "dma.S_AXIS_S2MM"
    assert 0 < state["waiting"] < 1000 or state["waiting"] > state["fifo_depth"]
    loop.dma.mmio.write(0x00, 0x4)  # the board is usable afterwards
    assert loop.dma.mmio.read(0x04) & _HALTED


def test_a_receive_that_nothing_feeds_does_not_complete(loop: Design) -> None:
    loop.dma.recvchannel.transfer(pynq.allocate(16, "u4"))
    with pytest.raises(BoardHang):
        loop.dma.recvchannel.wait()
    assert loop.model("dma").describe()["S2MM"]["phase"] == "NO_DATA"


def test_a_channel_about_to_move_counts_while_the_other_one_waits(loop: Design) -> None:
    source, target = _fill(100), pynq.allocate(100, "u4")
    loop.dma.recvchannel.transfer(target)
    model = loop.model("dma")
    mover = model.engine
    assert mover is not None and mover.pid is not None
    eventually(lambda: model.describe()["S2MM"]["phase"] == "NO_DATA")
    assert not mover.can_move
    with held(mover.pid):  # a PC that has no processor for it at this moment
        loop.dma.sendchannel.transfer(source)
        assert mover.can_move
    loop.dma.recvchannel.wait()
    eventually(lambda: not mover.can_move)
    assert loop.dma.sendchannel.idle
    assert (target == source).all()


def test_an_unconnected_stream_blocks(board: VirtualBoard, tmp_path: Path) -> None:
    design = Design(board, write_design(tmp_path, "open", [_dma()]))
    design.dma.sendchannel.transfer(_fill(4))
    with pytest.raises(BoardHang):
        design.dma.sendchannel.wait()
    assert design.model("dma").describe()["MM2S"]["peer"] is None
    design.dma.sendchannel.stop()


def test_stop_gives_up_a_blocked_transfer_and_the_next_one_works(loop: Design) -> None:
    target = pynq.allocate(16, "u4")
    loop.dma.recvchannel.transfer(target)
    begin = time.monotonic()
    loop.dma.recvchannel.stop()
    assert time.monotonic() - begin < 20
    loop.dma.recvchannel.start()
    source = _fill(16)
    loop.dma.recvchannel.transfer(target)
    loop.dma.sendchannel.transfer(source)
    loop.dma.recvchannel.wait()
    assert np.array_equal(source, target)


def test_a_missing_tlast_hangs_and_the_next_beat_is_an_error(pair: Design) -> None:
    source, target = _fill(8), pynq.allocate(8, "u4")
    pair.rx.recvchannel.transfer(target)
    chain = _descriptors(
        [(source.physical_address, 32, 1 << 27)]
    )  # start of frame, no end of frame
    _send_chain(pair.tx.mmio, chain)
    with pytest.raises(BoardHang):
        pair.rx.recvchannel.wait()
    state = pair.model("rx").describe()["S2MM"]
    assert state["phase"] == "NO_TLAST" and state["bytes"] == 32 and not state["tlast"]
    assert np.array_equal(source, target)
    more = _descriptors([(source.physical_address, 32, 1 << 26)])
    pair.tx.mmio.write(0x00, 0)
    _send_chain(pair.tx.mmio, more)
    assert _wait_status(pair.rx.mmio, 0x34, _HALTED) & _INT_ERR


# ---- errors ----------------------------------------------------------------------------------


def test_a_packet_larger_than_the_length_is_an_internal_error(loop: Design) -> None:
    source, target = _fill(16), pynq.allocate(8, "u4")
    loop.dma.recvchannel.transfer(target)
    loop.dma.sendchannel.transfer(source)
    # The driver says "Internal Error" if it waits already, "not started" if the error came first.
    with pytest.raises(RuntimeError, match=r"DMA (Internal Error|channel not started)"):
        loop.dma.recvchannel.wait()
    assert np.array_equal(target, source[:8])
    status = loop.dma.mmio.read(0x34)
    assert status & _HALTED and status & _INT_ERR and status & 1 << 14
    assert not loop.dma.recvchannel.running


def test_an_error_holds_the_channel_until_a_reset(loop: Design) -> None:
    loop.dma.recvchannel.transfer(pynq.allocate(1, "u4"))
    loop.dma.sendchannel.transfer(_fill(2))
    mmio = loop.dma.mmio
    _wait_status(mmio, 0x34, _INT_ERR)
    mmio.write(0x30, 1)
    assert mmio.read(0x34) & (_HALTED | _INT_ERR) == _HALTED | _INT_ERR
    mmio.write(0x34, 1 << 14)
    assert not mmio.read(0x34) & 1 << 14  # the interrupt bit is write-1-to-clear, the error is not
    assert mmio.read(0x34) & _INT_ERR
    mmio.write(0x30, 4)
    mmio.write(0x30, 1)
    assert mmio.read(0x34) & (_HALTED | _INT_ERR) == 0


@pytest.mark.parametrize("offset", [0x00, 0x30])
def test_an_address_outside_the_map_is_a_decode_error(loop: Design, offset: int) -> None:
    mmio = loop.dma.mmio
    if offset:
        loop.dma.sendchannel.transfer(_fill(4))
    mmio.write(offset + 0x18, 0xA0000000)
    mmio.write(offset + 0x28, 64)
    assert _wait_status(mmio, offset + 4, _HALTED) & _DEC_ERR
    channel = loop.dma.recvchannel if offset else loop.dma.sendchannel
    assert channel.error


@pytest.mark.parametrize("sends", [True, False])
def test_leaving_the_buffer_is_reported_and_corrupts_nothing(loop: Design, sends: bool) -> None:
    source, target, neighbour = _fill(16), pynq.allocate(8, "u4"), _fill(4096)
    before = np.array(neighbour)
    mmio = loop.dma.mmio
    if sends:
        mmio.write(0x18, source.physical_address)
        mmio.write(0x28, 1 << 16)
        loop.dma.recvchannel.transfer(neighbour)
    else:
        loop.dma.sendchannel.transfer(source)
        mmio.write(0x48, target.physical_address)
        mmio.write(0x58, 4096)
    channel = loop.dma.sendchannel if sends else loop.dma.recvchannel
    with pytest.raises(KernelFault, match="past the end of its buffer") as caught:
        channel.wait()
    owner = source if sends else target
    assert caught.value.address == owner.physical_address + owner.nbytes
    assert caught.value.cu == "dma"
    assert mmio.read(0x04 if sends else 0x34) & (_SLV_ERR | _HALTED) == _SLV_ERR | _HALTED
    if not sends:
        assert np.array_equal(target, source[:8])
        assert np.array_equal(neighbour, before)


def test_memory_of_no_buffer_is_reported(loop: Design) -> None:
    keep = pynq.allocate(4, "u4")
    loop.dma.mmio.write(0x18, 0x00200000)
    loop.dma.mmio.write(0x28, 64)
    with pytest.raises(KernelFault, match=f"nearest.*0x{keep.physical_address:08x}"):
        _wait_status(loop.dma.mmio, 0x04, _HALTED)


def test_a_freed_buffer_is_reported(loop: Design) -> None:
    source = _fill(4)
    address = source.physical_address
    source.freebuffer()
    loop.dma.mmio.write(0x18, address)
    loop.dma.mmio.write(0x28, 16)
    with pytest.raises(KernelFault, match="freed"):
        _wait_status(loop.dma.mmio, 0x04, _HALTED)


def test_a_buffer_freed_in_the_middle_of_a_transfer_is_reported(pair: Design) -> None:
    source, target = _fill(16), pynq.allocate(16, "u4")
    rx, tx = pynq.MMIO(0x40410000, 0x100), pynq.MMIO(0x40400000, 0x100)
    pair.overlay.rx.recvchannel.transfer(target)
    halves = _descriptors([(source.physical_address + 32 * i, 32, i << 26) for i in range(2)])
    tx.write(0x08, halves.physical_address)
    tx.write(0x00, 1)
    tx.write(0x10, halves.physical_address)
    eventually(lambda: target[7] == source[7])
    target.freebuffer()
    tx.write(0x10, halves.physical_address + 64)
    with pytest.raises(KernelFault, match="freed"):
        _wait_status(rx, 0x34, _HALTED)


def test_without_the_guard_a_stray_access_goes_through(tmp_path: Path) -> None:
    board = use_board("csim", guard=False, hang_timeout_s=1.5)
    assert isinstance(board, VirtualBoard)
    try:
        design = Design(board, write_design(tmp_path, "loop", [_dma()], _LOOP))
        design.dma.recvchannel.transfer(pynq.allocate(16, "u4"))
        design.dma.mmio.write(0x18, 0x00200000)
        design.dma.mmio.write(0x28, 64)
        design.dma.recvchannel.wait()
    finally:
        board.close()


def test_an_unaligned_address_needs_the_realignment_engine(
    board: VirtualBoard, tmp_path: Path
) -> None:
    design = Design(board, write_design(tmp_path, "loop", [_dma()], _LOOP))
    source = _fill(64, "u1")
    with pytest.raises(RuntimeError, match="unaligned"):
        design.dma.sendchannel.transfer(source, start=1, nbytes=8)  # pynq's own check
    design.dma.mmio.write(0x18, source.physical_address + 1)
    design.dma.mmio.write(0x28, 8)
    with pytest.raises(KernelFault, match="C_INCLUDE_MM2S_DRE=0"):
        _wait_status(design.dma.mmio, 0x04, _HALTED)


def test_with_the_realignment_engine_any_address_works(board: VirtualBoard, tmp_path: Path) -> None:
    dre = {"C_INCLUDE_MM2S_DRE": 1, "C_INCLUDE_S2MM_DRE": 1}
    design = Design(board, write_design(tmp_path, "dre", [_dma(**dre)], _LOOP))
    source, target = _fill(64, "u1"), pynq.allocate(64, "u1")
    design.dma.recvchannel.transfer(target, start=3, nbytes=21)
    design.dma.sendchannel.transfer(source, start=5, nbytes=21)
    design.dma.recvchannel.wait()
    assert np.array_equal(target[3:24], source[5:26])


def test_an_engine_that_dies_is_an_exception_and_is_replaced(loop: Design) -> None:
    target = pynq.allocate(16, "u4")
    loop.dma.recvchannel.transfer(target)
    engine = loop.model("dma").engine
    assert engine is not None and engine._process is not None
    engine._process.kill()
    with pytest.raises(KernelFault, match="was killed by SIGKILL"):
        loop.dma.recvchannel.wait()
    assert loop.dma.mmio.read(0x58) == 64  # no byte came, and no transfer has ended
    loop.dma.recvchannel.start()
    source = _fill(16)
    loop.dma.recvchannel.transfer(target)
    loop.dma.sendchannel.transfer(source)
    loop.dma.recvchannel.wait()
    assert np.array_equal(source, target)


def test_an_engine_that_gives_no_job_up_is_replaced(
    loop: Design, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = _fill(16), pynq.allocate(16, "u4")
    loop.dma.recvchannel.transfer(target)
    engine = loop.model("dma").engine
    assert engine is not None and engine._process is not None
    process = engine._process
    with monkeypatch.context() as patch:
        patch.setattr(DmaSlot, "abort", lambda *_: False)
        loop.dma.mmio.write(0x30, 0)
    assert process.poll() is not None
    loop.dma.recvchannel.start()
    _carry(loop.dma, source, target)
    assert np.array_equal(source, target)


# ---- scatter-gather --------------------------------------------------------------------------


@pytest.fixture
def chained(board: VirtualBoard, tmp_path: Path) -> Design:
    return Design(
        board, write_design(tmp_path, "sg", [Ip("axi_dma", "dma", 0x40400000, _SG)], _LOOP)
    )


@pytest.mark.parametrize("n", [8, 1000, 300_000])
def test_scatter_gather_through_pynqs_driver(chained: Design, n: int) -> None:
    source, target = _fill(n), pynq.allocate(n, "u4")
    for _ in range(2):
        target[:] = 0
        _carry(chained.dma, source, target)
        assert np.array_equal(source, target)
        assert chained.dma.recvchannel.transferred == source.nbytes


def test_descriptors_report_bytes_and_frames(chained: Design) -> None:
    source, target = _fill(16, "u1"), pynq.allocate(64, "u1")
    mmio = chained.dma.mmio
    rx = _descriptors([(target.physical_address + 8 * i, 8, 0) for i in range(4)])
    tx = _descriptors(
        [(source.physical_address, 12, 3 << 26), (source.physical_address, 8, 3 << 26)]
    )
    _send_chain(mmio, rx, 0x30)
    _send_chain(mmio, tx)
    _wait_status(mmio, 0x04, _IDLE)
    deadline = time.monotonic() + 5
    while not rx[2, 7] and time.monotonic() < deadline:
        time.sleep(0.001)
    assert [int(w) for w in tx[:, 7]] == [1 << 31 | 12, 1 << 31 | 8]
    start, end, done = 1 << 27, 1 << 26, 1 << 31
    assert [int(w) for w in rx[:3, 7]] == [done | start | 8, done | end | 4, done | start | end | 8]
    assert np.array_equal(target[:12], source[:12]) and np.array_equal(target[16:24], source[:8])
    assert not mmio.read(0x34) & _IDLE  # the tail, a fourth buffer, is not reached


def test_a_tail_that_moves_continues_the_chain(chained: Design) -> None:
    source, target = _fill(40), pynq.allocate(40, "u4")
    mmio = chained.dma.mmio
    rx = _descriptors([(target.physical_address, 160, 0)])
    tx = _descriptors(
        [(source.physical_address + 16 * i, 16, 1 << 26 if i == 9 else 0) for i in range(10)]
    )
    _send_chain(mmio, rx, 0x30)
    mmio.write(0x08, tx.physical_address)
    mmio.write(0x00, 1)
    for i in (2, 5, 9):
        mmio.write(0x10, tx.physical_address + 64 * i)
        _wait_status(mmio, 0x04, _IDLE)
    _wait_status(mmio, 0x34, _IDLE)
    assert np.array_equal(source, target)
    assert mmio.read(0x08) == tx.physical_address or mmio.read(0x08) == tx.physical_address + 64 * 9


def test_a_completed_descriptor_is_stale(chained: Design) -> None:
    source = _fill(4)
    chain = _descriptors([(source.physical_address, 16, 3 << 26)])
    chain[0, 7] = 1 << 31
    _send_chain(chained.dma.mmio, chain)
    assert _wait_status(chained.dma.mmio, 0x04, _HALTED) & _SG_INT_ERR


def test_a_descriptor_of_length_zero_is_an_internal_error(chained: Design) -> None:
    chain = _descriptors([(_fill(4).physical_address, 0, 3 << 26)])
    _send_chain(chained.dma.mmio, chain)
    assert _wait_status(chained.dma.mmio, 0x04, _HALTED) & _INT_ERR
    assert int(chain[0, 7]) >> 28 == 0b1001  # complete, DMAIntErr


def test_a_descriptor_outside_the_map_is_a_decode_error(chained: Design) -> None:
    mmio = chained.dma.mmio
    mmio.write(0x08, 0xA0000000)
    mmio.write(0x00, 1)
    mmio.write(0x10, 0xA0000000)
    assert _wait_status(mmio, 0x04, _HALTED) & _SG_DEC_ERR


def test_the_first_descriptor_is_fixed_while_the_channel_runs(chained: Design) -> None:
    mmio = chained.dma.mmio
    for base in (0x08, 0x38):
        mmio.write(base - 8, 0)
        mmio.write(base, 0x1000007F)
        assert mmio.read(base) == 0x10000040  # descriptors are 64 bytes apart
        mmio.write(base - 8, 1)
        mmio.write(base, 0x20000000)  # PG021: read-only while DMACR.RS is 1
        assert mmio.read(base) == 0x10000040
    said = chained.model("dma").describe()
    assert all("CURDESC was written while" in said[n]["ignored"][0] for n in ("MM2S", "S2MM"))


def test_a_freed_descriptor_is_reported(chained: Design) -> None:
    chain = _descriptors([(_fill(4).physical_address, 16, 3 << 26)])
    address = chain.physical_address
    chain.freebuffer()
    mmio = chained.dma.mmio
    mmio.write(0x08, address)
    mmio.write(0x00, 1)
    mmio.write(0x10, address)
    with pytest.raises(KernelFault, match="descriptor"):
        _wait_status(mmio, 0x04, _HALTED)
    assert _wait_status(mmio, 0x04, _HALTED) & 0x770 == _SG_DEC_ERR
    assert chained.model("dma").describe()["MM2S"]["errors"] == ["SGDecErr"]


def test_every_error_bit_has_its_name() -> None:
    # PG021, tables "MM2S_DMASR" and "S2MM_DMASR".
    bits = {
        4: "DMAIntErr", 5: "DMASlvErr", 6: "DMADecErr",
        8: "SGIntErr", 9: "SGSlvErr", 10: "SGDecErr",
    }  # fmt: skip
    channel = DmaChannel(ChannelParameters("MM2S", True, 14, 32, 4, False))
    for bit, name in bits.items():
        channel.errors = 1 << bit
        assert (channel.error_text(), channel.describe()["errors"]) == (name, [name])
    channel.errors = 0x770
    assert channel.describe()["errors"] == list(bits.values())


def test_cyclic_mode_repeats_until_it_is_stopped(board: VirtualBoard, tmp_path: Path) -> None:
    ips = [Ip("axi_dma", "tx", 0x40400000, _SG), _dma("rx", 0x40410000)]
    design = Design(board, write_design(tmp_path, "cyclic", ips, _PAIR))
    source, target = _fill(64), pynq.allocate(64, "u4")
    design.tx.sendchannel.transfer(source, cyclic=True)
    for _ in range(5):
        design.rx.recvchannel.transfer(target)
        design.rx.recvchannel.wait()
        assert np.array_equal(source, target)
    with pytest.raises(RuntimeError, match="cyclic"):
        design.tx.sendchannel.wait()
    design.tx.sendchannel.stop()
    assert design.tx.mmio.read(0x04) & _HALTED


# ---- interrupts ------------------------------------------------------------------------------


def _with_interrupts(board: VirtualBoard, folder: Path, parameters: dict[str, object]) -> Design:
    ip = Ip("axi_dma", "dma", 0x40400000, parameters)
    return Design(board, write_design(folder, "irq", [ip], _LOOP, _IRQS))


async def _round_trip(design: Design, source: object, target: object) -> None:
    design.dma.recvchannel.transfer(target)
    design.dma.sendchannel.transfer(source)
    await asyncio.gather(design.dma.sendchannel.wait_async(), design.dma.recvchannel.wait_async())


@pytest.mark.parametrize("parameters", [AXI_DMA, _SG], ids=["direct", "scatter-gather"])
def test_wait_async(board: VirtualBoard, tmp_path: Path, parameters: dict[str, object]) -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        design = _with_interrupts(board, tmp_path, parameters)
        source, target = _fill(1000), pynq.allocate(1000, "u4")
        for i in range(20):
            source[:] = i
            loop.run_until_complete(asyncio.wait_for(_round_trip(design, source, target), 10))
            assert np.array_equal(source, target)
    finally:
        board.close()
        loop.close()
        asyncio.set_event_loop(None)


def test_threshold_counts_packets(board: VirtualBoard, tmp_path: Path) -> None:
    design = _with_interrupts(board, tmp_path, _SG)
    source, target = _fill(4), pynq.allocate((6, 4), "u4")
    mmio = design.overlay.ip_dict and pynq.MMIO(0x40400000, 0x100)
    rx = _descriptors([(target.physical_address + 16 * i, 16, 0) for i in range(6)])
    tx = _descriptors([(source.physical_address, 16, 3 << 26)] * 5)
    mmio.write(0x00, 2 << 16)
    assert mmio.read(0x04) >> 16 & 0xFF == 2
    _send_chain(mmio, rx, 0x30)
    mmio.write(0x08, tx.physical_address)
    mmio.write(0x00, 2 << 16 | 1)
    mmio.write(0x10, tx.physical_address)
    _wait_status(mmio, 0x04, _IDLE)
    assert not mmio.read(0x04) & 1 << 12  # one packet of two
    mmio.write(0x10, tx.physical_address + 64)
    assert _wait_status(mmio, 0x04, _IDLE) & 1 << 12
    mmio.write(0x04, 1 << 12)
    assert not mmio.read(0x04) & 1 << 12


def test_packets_short_of_the_threshold_interrupt_after_the_delay(
    board: VirtualBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers: list[Any] = []

    class Timer(threading.Timer):
        """Fires when the test says so."""

        def __init__(self, seconds: float, function: Any, arguments: Any) -> None:
            super().__init__(3600, function, arguments)
            self.seconds = seconds
            timers.append(self)

    design = _with_interrupts(board, tmp_path, _SG)
    model = design.model("dma")
    monkeypatch.setattr(threading, "Timer", Timer)
    ioc, delay = 1 << 12, 1 << 13
    source, target = _fill(4), pynq.allocate((6, 4), "u4")
    mmio = pynq.MMIO(0x40400000, 0x100)
    rx = _descriptors([(target.physical_address + 16 * i, 16, 0) for i in range(6)])
    tx = _descriptors([(source.physical_address, 16, 3 << 26)] * 5)
    mmio.write(0x30, 4 << 16)  # no delay: these packets wait for their threshold
    _send_chain(mmio, rx, 0x30)
    mmio.write(0x08, tx.physical_address)
    control = 200 << 24 | 3 << 16 | ioc | 1
    mmio.write(0x00, control)
    for packet, left in enumerate((2, 1)):
        mmio.write(0x00, control | delay * packet)  # the same threshold goes on counting
        mmio.write(0x10, tx.physical_address + 64 * packet)
        eventually(lambda: len(timers) > 0)
        assert _wait_status(mmio, 0x04, _IDLE) & (ioc | delay) == 0
        assert mmio.read(0x04) >> 16 & 0xFF == left
    # IRQDelay counts 125 clocks of the scatter-gather engine (PG021, "MM2S_DMACR").
    assert timers[-1].seconds == pytest.approx(200 * 125 / board.clock_hz(model.ip))
    timers[-1].function(*timers[-1].args)
    assert mmio.read(0x04) & (ioc | delay) == delay
    assert mmio.read(0x04) >> 16 & 0xFF == 3  # it counts from the threshold again
    assert mmio.read(0x34) & (ioc | delay) == 0 and mmio.read(0x34) >> 16 & 0xFF == 2
    assert model.irq("mm2s_introut") and not model.irq("s2mm_introut")
    mmio.write(0x00, control)  # without its enable the bit is there, and the line is low
    assert mmio.read(0x04) & delay and not model.irq("mm2s_introut")
    mmio.write(0x04, ioc)  # write one to clear, each bit for itself
    assert mmio.read(0x04) & delay
    mmio.write(0x04, delay)
    assert not mmio.read(0x04) & delay


def test_closing_the_overlay_leaves_no_process(board: VirtualBoard, tmp_path: Path) -> None:
    bit = write_design(tmp_path, "loop", [_dma()], _LOOP)
    for _ in range(3):
        design = Design(board, bit)
        design.dma.recvchannel.transfer(pynq.allocate(16, "u4"))
        engine = design.model("dma").engine
        assert engine is not None and engine._process is not None
        process = engine._process
        pynq.Overlay(str(bit))
        assert process.poll() is not None
