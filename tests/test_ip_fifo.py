"""AXI4-Stream FIFO (PG080): packets through registers, errors as its bits say, its interrupt."""

from __future__ import annotations

import asyncio
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pynq
import pytest
from helpers import eventually, start, wait_done
from ip_handoff import Ip, write_design

from pynq_torch.board import use_board
from pynq_torch.board.device import VirtualBoard
from pynq_torch.errors import BoardHang, KernelFault, RegisterMisuse

pytestmark = pytest.mark.timeout(120)

ISR, IER, TDFR, TDFV, TDFD, TLR, RDFR = 0x00, 0x04, 0x08, 0x0C, 0x10, 0x14, 0x18
RDFO, RDFD, RLR, SRR, TDR, RDR, TID, TUSER = 0x1C, 0x20, 0x24, 0x28, 0x2C, 0x30, 0x34, 0x38
RPURE, RPORE, RPUE, TPOE = 1 << 31, 1 << 30, 1 << 29, 1 << 28
TC, RC, TSE, TRC, RRC = 1 << 27, 1 << 26, 1 << 25, 1 << 24, 1 << 23
TFPF, TFPE, RFPF, RFPE = 1 << 22, 1 << 21, 1 << 20, 1 << 19

LOOP = {"fifo.AXI_STR_TXD": "fifo.AXI_STR_RXD"}
SCALE = Ip("scale_stream", "scale", 0x43C00000, {}, 0x10000, {"samples": 4, "scaled": 4}, "hls")

Load = Callable[..., Any]


@pytest.fixture
def load(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Load]:
    board = use_board(getattr(request, "param", "csim"), hang_timeout_s=1.0)
    assert isinstance(board, VirtualBoard)

    def loads(*others: Ip, streams: dict[str, str] = LOOP, width: int = 4, **options: Any) -> Any:
        interrupts = options.pop("interrupts", None)
        ends = {"AXI_STR_TXD": width, "AXI_STR_RXD": width}
        fifo = Ip("axi_fifo_mm_s", "fifo", 0x43C10000, options, streams=ends)
        bit = write_design(tmp_path, "fifo", [fifo, *others], streams, interrupts)
        return pynq.Overlay(str(bit))

    yield loads
    board.close()


def send(fifo: Any, words: Any, nbytes: int | None = None) -> None:
    for word in words:
        fifo.write(TDFD, int(word))
    fifo.write(TLR, 4 * len(words) if nbytes is None else nbytes)


def wait_for(fifo: Any, bit: int) -> None:
    while not fifo.read(ISR) & bit:
        pass
    fifo.write(ISR, bit)


def receive(fifo: Any) -> list[int]:
    while not fifo.read(RDFO):
        pass
    return [fifo.read(RDFD) for _ in range(-(-fifo.read(RLR) // 4))]


def test_after_configuration(load: Load) -> None:
    fifo = load().fifo
    assert fifo.read(ISR) == 0x01D00000
    fifo.write(ISR, 0x01000000)
    assert fifo.read(ISR) == 0x00D00000
    fifo.write(ISR, 0xFFFFFFFF)
    shown = [fifo.read(offset) for offset in (ISR, IER, TDFV, RDFO, RDR, TDR, SRR, TDFD)]
    assert shown == [0, 0, 0x1FC, 0, 0, 0, 0, 0]
    fifo.write(IER, 0xFFFFFFFF)
    assert fifo.read(IER) == 0xFFF80000
    for offset in (TDFV, RDFO, RLR, RDFD, RDR):
        fifo.write(offset, 0xFFFFFFFF)  # read-only
    assert (fifo.read(TDFV), fifo.read(RDFO)) == (0x1FC, 0)


def test_packets_go_round(load: Load) -> None:
    fifo = load().fifo
    fifo.write(ISR, 0xFFFFFFFF)
    for n in (1, 3, 200):
        words = [(0x01000193 * i) & 0xFFFFFFFF for i in range(n)]
        send(fifo, words)
        wait_for(fifo, TC)
        wait_for(fifo, RC)
        assert fifo.read(RDFO) == n
        assert receive(fifo) == words
        assert (fifo.read(RDFO), fifo.read(TDFV)) == (0, 0x1FC)


def test_bytes_and_destinations_of_several_packets(load: Load) -> None:
    fifo = load().fifo
    for dest, nbytes in ((3, 5), (9, 12), (0, 1)):
        fifo.write(TDR, dest)
        fifo.write(TID, dest + 1)
        fifo.write(TUSER, dest + 2)
        send(fifo, range(-(-nbytes // 4)), nbytes)
    eventually(lambda: fifo.read(RDFO) == 2 + 3 + 1)
    got = []
    for _ in range(3):
        length, shown = fifo.read(RLR), [fifo.read(offset) for offset in (RDR, 0x3C, 0x40)]
        got.append((length, *shown, [fifo.read(RDFD) for _ in range(-(-length // 4))]))
    assert got == [(5, 3, 4, 5, [0, 1]), (12, 9, 10, 11, [0, 1, 2]), (1, 0, 1, 2, [0])]


@pytest.mark.parametrize("load", ["csim", "rtl"], indirect=True)
def test_through_a_kernel_and_back(load: Load) -> None:
    overlay = load(
        SCALE,
        streams={"fifo.AXI_STR_TXD": "scale.samples", "scale.scaled": "fifo.AXI_STR_RXD"},
    )
    overlay.scale.write(0x18, int(np.float32(2).view("u4")))
    overlay.scale.write(0x20, int(np.float32(0.5).view("u4")))
    for n in (7, 300):
        start(overlay.scale)
        samples = np.arange(n, dtype="f4")
        send(overlay.fifo, samples.view("u4"))
        got = np.array(receive(overlay.fifo), "u4").view("f4")
        wait_done(overlay.scale)
        assert (got == samples * 2 + np.float32(0.5)).all()


def test_a_full_receive_fifo_holds_the_stream(load: Load) -> None:
    fifo = load(C_TX_FIFO_DEPTH=1024, C_RX_FIFO_DEPTH=32).fifo
    for first in range(0, 80, 8):
        send(fifo, range(first, first + 8))
    eventually(lambda: fifo.read(RDFO) == 32)  # further ones wait in the stream
    assert next(iter(pynq.Device.active_device.rings)).beats_read == 32
    assert fifo.read(ISR) & RFPF == RFPF
    assert [word for _ in range(10) for word in receive(fifo)] == list(range(80))


@pytest.mark.parametrize(
    ("bit", "text"),
    [
        (TPOE, "full, and is lost"),
        (TSE, "TLR = 12 bytes does not fit the 2 words"),
        (RPUE, "RDFD was read while its receive FIFO is empty"),
        (RPURE, "RLR was read while no whole packet"),
        (RPORE, "beyond the packet that RLR told of"),
    ],
)
def test_wrong_use_sets_its_bit_and_is_said_once(load: Load, bit: int, text: str) -> None:
    fifo = load(C_TX_FIFO_DEPTH=16).fifo
    fifo.write(ISR, 0xFFFFFFFF)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            if bit == TPOE:
                for word in range(13):  # four of 16 are the core's own
                    assert not fifo.read(ISR) & TPOE
                    fifo.write(TDFD, word)
            elif bit == TSE:
                send(fifo, [1, 2], 12)
            elif bit == RPUE:
                assert fifo.read(RDFD) == 0
            elif bit == RPURE:
                assert fifo.read(RLR) == 0
            else:
                send(fifo, [1])
                send(fifo, [2])
                eventually(lambda: fifo.read(RDFO) == 2)
                assert [fifo.read(r) for r in (RLR, RDFD, RDFD)] == [4, 1, 2]
            assert fifo.read(ISR) & (RPURE | RPORE | RPUE | TPOE | TSE) == bit
            assert fifo.read(TDFV) == {TPOE: 0, TSE: 10}.get(bit, 12)
            fifo.write(TDFR, 0xA4)  # not the key
            fifo.write(SRR, 0xA5)
            assert fifo.read(ISR) & (TRC | RRC) == TRC | RRC
            fifo.write(ISR, 0xFFFFFFFF)
            assert (fifo.read(TDFV), fifo.read(RDFO)) == (12, 0)
    assert [w.category for w in caught] == [RegisterMisuse]
    assert str(caught[0].message).startswith("fifo: ") and text in str(caught[0].message)


def test_a_reset_of_one_side_leaves_the_other(load: Load) -> None:
    fifo = load().fifo
    send(fifo, [5, 6])
    eventually(lambda: fifo.read(RDFO) == 2)
    fifo.write(TDFD, 1)
    fifo.write(ISR, 0xFFFFFFFF)
    fifo.write(TDFR, 0xA5)
    assert fifo.read(ISR) & (TRC | RRC) == TRC and fifo.read(TDFV) == 0x1FC
    assert receive(fifo) == [5, 6]
    send(fifo, [7])
    eventually(lambda: fifo.read(RDFO) == 1)
    fifo.write(ISR, 0xFFFFFFFF)
    fifo.write(RDFR, 0xA5)
    assert fifo.read(ISR) & (TRC | RRC) == RRC and fifo.read(RDFO) == 0
    send(fifo, [8])
    assert receive(fifo) == [8]


def test_a_packet_that_a_reset_drops_was_not_sent(load: Load) -> None:
    fifo = load(C_TX_FIFO_DEPTH=1024, C_RX_FIFO_DEPTH=32).fifo
    ring = next(iter(pynq.Device.active_device.rings))
    for word in range(80):
        send(fifo, [word])
    eventually(lambda: ring.beats_read == 32 and ring.occupancy > ring.depth)
    fifo.write(ISR, 0xFFFFFFFF)
    fifo.write(TDFR, 0xA5)
    eventually(lambda: pynq.Device.active_device.ip["fifo"]._sends.taken == 80)
    assert fifo.read(ISR) & (TC | TRC) == TRC


def test_cut_through(load: Load) -> None:
    fifo = load(C_USE_TX_CUT_THROUGH=1, C_USE_RX_CUT_THROUGH=1, C_TX_FIFO_DEPTH=32).fifo
    for word in range(100):  # more than the transmit FIFO holds
        while not fifo.read(TDFV):
            pass
        fifo.write(TDFD, word)
    eventually(lambda: fifo.read(RDFO) == 99)  # the last one waits for TLR
    assert fifo.read(RLR) == 1 << 31 | 4 * 99
    got = [fifo.read(RDFD) for _ in range(50)]
    fifo.write(TLR, 398)
    wait_for(fifo, RC)
    assert fifo.read(RLR) == 398
    assert got + [fifo.read(RDFD) for _ in range(50)] == list(range(100))


def test_the_axi4_data_port(load: Load) -> None:
    overlay = load(width=8, C_DATA_INTERFACE_TYPE=1, C_S_AXI4_DATA_WIDTH=64)
    fifo, model = overlay.fifo, overlay.device.ip["fifo"]
    for word in range(1, 7):
        model.write(0, word, "S_AXI_FULL")
    assert fifo.read(TDFV) == 0x1FC - 3
    fifo.write(TDFD, 9)  # no data go through AXI4-Lite then
    fifo.write(TLR, 20)
    eventually(lambda: fifo.read(RDFO) == 3)
    assert (fifo.read(RLR), fifo.read(RDFD)) == (20, 0)
    words = [model.read(0x1000, "S_AXI_FULL") for _ in range(6)]
    assert words == [1, 2, 3, 4, 5, 6] and fifo.read(RDFO) == 0


def test_transmit_thresholds(load: Load) -> None:
    fifo = load(C_TX_FIFO_PF_THRESHOLD=10, C_TX_FIFO_PE_THRESHOLD=6).fifo
    fifo.write(ISR, 0xFFFFFFFF)
    for word in range(9):
        fifo.write(TDFD, word)
    assert fifo.read(ISR) == 0
    fifo.write(TDFD, 9)
    assert fifo.read(ISR) == TFPF
    fifo.write(ISR, TFPF)
    fifo.write(TDFR, 0xA5)
    assert fifo.read(ISR) == TFPE | TRC


def test_thresholds(load: Load) -> None:
    fifo = load(C_RX_FIFO_PF_THRESHOLD=10, C_RX_FIFO_PE_THRESHOLD=6).fifo
    fifo.write(ISR, 0xFFFFFFFF)
    send(fifo, range(9))
    eventually(lambda: fifo.read(RDFO) == 9)
    assert fifo.read(ISR) & (RFPF | RFPE) == 0
    send(fifo, range(1))
    eventually(lambda: fifo.read(RDFO) == 10)
    assert fifo.read(ISR) & (RFPF | RFPE) == RFPF
    for left in range(9, 5, -1):
        assert not fifo.read(ISR) & RFPE
        fifo.read(RDFD)
        assert fifo.read(RDFO) == left
    assert fifo.read(ISR) & RFPE


def test_the_interrupt(load: Load) -> None:
    overlay = load(interrupts=["fifo/interrupt"])
    fifo = overlay.fifo
    fifo.write(ISR, 0xFFFFFFFF)
    fifo.write(IER, RC)

    async def wait() -> None:
        waiting = asyncio.ensure_future(fifo.interrupt.wait())
        await asyncio.sleep(0.05)
        assert not waiting.done()
        send(fifo, [1, 2, 3])
        await asyncio.wait_for(waiting, 10)

    asyncio.get_event_loop().run_until_complete(wait())
    assert fifo.read(ISR) & RC and fifo.read(RDFO) == 3
    fifo.write(ISR, RC)
    assert not overlay.device.ip["fifo"].irq("interrupt")


@pytest.mark.parametrize(
    ("words", "streams", "text"),
    [
        (0, LOOP, "no word comes to AXI_STR_RXD from fifo.AXI_STR_TXD"),
        (2, LOOP, "2 words were written to TDFD, and nothing is sent before TLR"),
        (-40, {}, "nothing does not take the words of AXI_STR_TXD"),
        (-40, LOOP, "receive FIFO of 32 words is full and TLAST has not come"),
    ],
)
def test_waits_that_cannot_end_say_why(
    load: Load, words: int, streams: dict[str, str], text: str
) -> None:
    fifo = load(streams=streams, C_RX_FIFO_DEPTH=32).fifo
    if words < 0:
        send(fifo, range(-words))
    for word in range(words):
        fifo.write(TDFD, word)
    with pytest.raises(BoardHang, match=text):
        while not fifo.read(RDFO):
            pass


def test_words_without_tlast_are_named(load: Load) -> None:
    fifo = load().fifo
    ring = next(iter(pynq.Device.active_device.rings))
    model = pynq.Device.active_device.ip["fifo"]
    model._post([b"abcd", b"efgh"])  # as a kernel that never sets TLAST
    eventually(lambda: ring.beats_read == 2)
    with pytest.raises(BoardHang, match="2 words have come to AXI_STR_RXD without TLAST"):
        while not fifo.read(ISR) & RC:
            pass


def test_thresholds_by_default(load: Load) -> None:
    fifo = load().fifo
    for words, bits in ((5, TRC), (6, TRC | TFPE)):  # up to five words it is nearly empty
        fifo.write(ISR, 0xFFFFFFFF)
        for word in range(words):
            fifo.write(TDFD, word)
        fifo.write(TDFR, 0xA5)
        assert fifo.read(ISR) == bits


def test_a_fifo_that_only_receives(load: Load) -> None:
    fifo = load(streams={}, C_USE_TX_DATA=0).fifo
    assert fifo.read(TDFV) == 0
    with pytest.warns(RegisterMisuse, match="transmit FIFO of 0 words is full"):
        fifo.write(TDFD, 1)
    with pytest.warns(RegisterMisuse, match="does not fit the 0 words of 4 bytes"):
        fifo.write(TLR, 4)
    fifo.write(SRR, 0xA5)
    assert fifo.read(ISR) & (TRC | RRC) == TRC | RRC


def test_an_engine_that_dies_is_said_and_starts_again(load: Load) -> None:
    fifo = load().fifo
    model = pynq.Device.active_device.ip["fifo"]
    send(fifo, [1, 2])
    assert receive(fifo) == [1, 2]
    os.kill(model.engine.pid, signal.SIGKILL)
    with pytest.raises(KernelFault, match="fifo"):
        while True:
            fifo.read(ISR)
    fifo.write(SRR, 0xA5)
    send(fifo, [3])
    assert receive(fifo) == [3]


def test_what_a_diagnosis_shows(load: Load) -> None:
    fifo = load().fifo
    model = pynq.Device.active_device.ip["fifo"]
    send(fifo, [1, 2], 7)
    eventually(lambda: model.describe()["packets"] == [7])
    shown = model.describe()
    assert (shown["vacancy"], shown["occupancy"], shown["enabled"]) == (0x1FC, 2, 0)
    assert shown["status"] & (RC | TC) == RC | TC
