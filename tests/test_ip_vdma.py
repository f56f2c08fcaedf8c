"""AXI VDMA (PG020): frames through streams, under raw registers and pynq's own driver."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pynq
import pytest
from helpers import eventually, write
from ip_handoff import AXI_DMA, Ip, write_design

from pynq_torch.board import use_board
from pynq_torch.board.device import VirtualBoard
from pynq_torch.board.ip.dma_channel import ChannelParameters
from pynq_torch.board.ip.dma_slot import Fault
from pynq_torch.board.ip.vdma_channel import VdmaChannel
from pynq_torch.errors import BoardHang, KernelFault, NotModelledWarning

pytestmark = pytest.mark.timeout(120)

CR, SR, PARK, VERSION, MASK = 0x00, 0x04, 0x28, 0x2C, 0x3C
S2MM = 0x30
SIZES = {0: 0x50, S2MM: 0xA0}
RS, CIRCULAR, RESET, GENLOCK, COUNT, FRAME_IRQ, ERROR_IRQ = 1, 2, 4, 8, 16, 1 << 12, 1 << 14
SOF_EARLY, EOL_EARLY, SOF_LATE, EOL_LATE = 1 << 7, 1 << 8, 1 << 11, 1 << 15
LOOP = {"vdma.M_AXIS_MM2S": "vdma.S_AXIS_S2MM"}
VDMA = {
    "C_INCLUDE_MM2S": 1, "C_INCLUDE_S2MM": 1, "C_NUM_FSTORES": 4, "C_USE_S2MM_FSYNC": 2,
    "C_M_AXI_MM2S_ADDR_WIDTH": 32, "C_M_AXI_S2MM_ADDR_WIDTH": 32,
    "C_M_AXI_MM2S_DATA_WIDTH": 32, "C_M_AXI_S2MM_DATA_WIDTH": 32,
    "C_M_AXIS_MM2S_TDATA_WIDTH": 32, "C_S_AXIS_S2MM_TDATA_WIDTH": 32,
}  # fmt: skip
INVERT = """
#include <ap_axi_sdata.h>
#include <hls_stream.h>
typedef ap_axiu<32, 1, 1, 1> pixel;
void invert(hls::stream<pixel>& in_r, hls::stream<pixel>& out_r) {
#pragma HLS INTERFACE axis port=in_r
#pragma HLS INTERFACE axis port=out_r
#pragma HLS INTERFACE ap_ctrl_none port=return
    pixel p = in_r.read();
    p.data = ~p.data;
    out_r.write(p);
}
"""

Load = Callable[..., Any]


@pytest.fixture
def load(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Load]:
    write(tmp_path / "kernels" / "invert" / "invert.cpp", INVERT)
    name = getattr(request, "param", "csim")
    board = use_board(name, hang_timeout_s=1.0, kernels=[tmp_path / "kernels"])
    assert isinstance(board, VirtualBoard)

    def loads(*others: Ip, streams: dict[str, str] = LOOP, **options: Any) -> Any:
        vdma = Ip("axi_vdma", "vdma", 0x43000000, VDMA | options)
        interrupts = ["vdma/mm2s_introut", "vdma/s2mm_introut"]
        bit = write_design(tmp_path, "vdma", [vdma, *others], streams, interrupts)
        return pynq.Overlay(str(bit))

    yield loads
    board.close()


def picture(lines: int = 6, width: int = 40, seed: int = 1) -> Any:
    buffer = pynq.allocate((lines, width), "u1")
    buffer[:] = np.random.default_rng(seed).integers(0, 256, (lines, width))
    return buffer


def begin(
    vdma: Any, base: int, frames: list[Any], control: int = 0, size: tuple[int, int] | None = None
) -> None:
    """Start a channel with the registers in the order of PG020."""
    lines, width = size or frames[0].shape
    vdma.write(base + CR, 1 << 16 | RS | control)
    for index, frame in enumerate(frames):
        vdma.write(SIZES[base] + 0x0C + 4 * index, frame.physical_address)
    vdma.write(SIZES[base] + 8, frames[0].shape[1])
    vdma.write(SIZES[base] + 4, width)
    vdma.write(SIZES[base], lines)


def wait_frame(vdma: Any, base: int) -> int:
    while not (status := vdma.read(base + SR)) & FRAME_IRQ:
        pass
    return int(status)


def mixed(out: Any, back: Any) -> Load:
    return lambda: bool((out == back).all())


def test_after_configuration(load: Load) -> None:
    vdma = load().vdma
    for base in (0, S2MM):
        assert (vdma.read(base + CR), vdma.read(base + SR)) == (0x00010002, 0x00010001)
        vdma.write(base + CR, 0x00FFDF9A & ~0x00FF0004)
        assert vdma.read(base + CR) == 0x0001DF9A  # a count of zero is one
        vdma.write(base + SR, 0xFFFFFFFF)
        assert vdma.read(base + SR) == 0x00010001
        vdma.write(base + CR, RESET)
        assert vdma.read(base + CR) == 0x00010002
    assert vdma.read(VERSION) == 0x62000000
    vdma.write(PARK, 0xFFFFFFFF)
    assert vdma.read(PARK) == 0x00001F1F
    vdma.write(MASK, 0xFF)
    assert vdma.read(MASK) == 0xF
    for at, value in ((0x54, 0x12345678), (0x58, 0xFFFFFFFF), (0x5C, 0x10000000), (0xB8, 4)):
        vdma.write(at, value)
    assert [vdma.read(at) for at in (0x54, 0x58, 0x5C, 0xB8)] == [0x5678, 0x1F00FFFF, 1 << 28, 4]
    for bank in (1, 0):  # frames 17 to 32
        vdma.write(0x14, bank)
        assert vdma.read(0x5C) == (0 if bank else 1 << 28)


def test_a_parked_frame_goes_round(load: Load) -> None:
    vdma = load().vdma
    frames, backs = [picture(seed=i) for i in range(2)], [picture(seed=9) for _ in range(2)]
    vdma.write(PARK, 1 << 8 | 1)
    begin(vdma, S2MM, backs)
    begin(vdma, 0, frames)
    wait_frame(vdma, 0)
    wait_frame(vdma, S2MM)
    assert (backs[1] == frames[1]).all() and not (backs[0] == frames[0]).any(axis=1).all()
    assert vdma.read(PARK) == 0x01010101
    vdma.write(PARK, 0)  # the picture that is shown changes with the pointer
    eventually(lambda: bool((backs[0] == frames[0]).all()))
    for base in (0, S2MM):
        vdma.write(base + CR, 0)
        while not vdma.read(base + SR) & 1:
            pass
        assert vdma.read(base + SR) & ~FRAME_IRQ == 0x00010001


def test_frames_in_turn_with_a_stride(load: Load) -> None:
    vdma = load(C_NUM_FSTORES=3).vdma
    frames, backs = [picture(seed=i) for i in range(3)], [picture(seed=9) for _ in range(3)]
    before = np.array(backs[0])
    begin(vdma, S2MM, backs, CIRCULAR, (5, 36))
    begin(vdma, 0, frames, CIRCULAR | COUNT | 2 << 16, (5, 36))  # three frames, then it halts
    while not vdma.read(SR) & 1:
        pass
    for frame, back in zip(frames, backs, strict=True):
        eventually(mixed(frame[:5, :36], back[:5, :36]))
        assert (back[5] == before[5]).all() and (back[:, 36:] == before[:, 36:]).all()


def test_how_fast_a_picture_is_repeated(load: Load) -> None:
    vdma = load().vdma
    frame, back = picture(), picture(seed=9)
    begin(vdma, S2MM, [back], 200 << 16)
    begin(vdma, 0, [frame])
    time.sleep(0.5)
    count = 201 - (vdma.read(S2MM + SR) >> 16 & 0xFF)
    assert 1 <= count <= 32


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("sent", "taken", "error"),
    [
        ((6, 40), (6, 40), 0),
        ((6, 36), (6, 40), EOL_EARLY),
        ((6, 40), (6, 36), EOL_LATE),
        ((4, 40), (6, 40), SOF_EARLY),
        ((6, 40), (4, 40), SOF_LATE),
    ],
)
def test_sizes_that_differ(
    load: Load, sent: tuple[int, int], taken: tuple[int, int], error: int, masked: bool
) -> None:
    overlay = load()
    vdma, model = overlay.vdma, overlay.device.ip["vdma"]
    frame, back = picture(), picture(seed=9)
    own = {SOF_EARLY: 1, EOL_EARLY: 2, SOF_LATE: 4, EOL_LATE: 8}.get(error, 0)
    vdma.write(MASK, own if masked else 0xF & ~own)
    interrupts = bool(error) and not masked
    begin(vdma, S2MM, [back], ERROR_IRQ, taken)
    begin(vdma, 0, [frame], 0, sent)
    eventually(lambda: vdma.read(S2MM + SR) & 0x8980 == error and wait_frame(vdma, S2MM) > 0)
    lines, width = min(sent[0], taken[0]), min(sent[1], taken[1])
    assert (back[:lines, :width] == frame[:lines, :width]).all()
    assert model.irq("s2mm_introut") == interrupts
    assert vdma.read(S2MM + SR) & 0x4071 == (ERROR_IRQ if interrupts else 0)  # it goes on
    vdma.write(CR, 0)
    while not vdma.read(SR) & 1:
        pass
    vdma.write(S2MM + SR, 0xFFFFFFFF)
    assert vdma.read(S2MM + SR) & 0xC980 == 0 and not model.irq("s2mm_introut")


def test_frames_start_at_tuser(load: Load) -> None:
    dma = Ip("axi_dma", "dma", 0x40400000, AXI_DMA)
    for sync in (2, 0):  # an AXI DMA gives no TUSER
        overlay = load(dma, streams={"dma.M_AXIS_MM2S": "vdma.S_AXIS_S2MM"}, C_USE_S2MM_FSYNC=sync)
        back = picture(seed=9)
        begin(overlay.vdma, S2MM, [back])
        for line in picture():
            row = pynq.allocate(40, "u1")
            row[:] = line
            overlay.dma.sendchannel.transfer(row)
            overlay.dma.sendchannel.wait()
        if sync:
            time.sleep(0.05)
            assert not overlay.vdma.read(S2MM + SR) & FRAME_IRQ
        else:
            wait_frame(overlay.vdma, S2MM)
        assert (back == picture()).all() == (sync == 0)


def test_pynqs_driver_through_a_kernel(load: Load) -> None:
    from pynq.lib.video import VideoMode
    from pynq.lib.video.dma import AxiVDMA

    kernel = Ip("invert", "invert", 0, streams={"in_r": 4, "out_r": 4}, library="hls")
    overlay = load(
        kernel, streams={"vdma.M_AXIS_MM2S": "invert.in_r", "invert.out_r": "vdma.S_AXIS_S2MM"}
    )
    vdma = overlay.vdma
    assert isinstance(vdma, AxiVDMA) and vdma.framecount == 4
    mode = VideoMode(32, 10, 24)
    vdma.writechannel.mode = vdma.readchannel.mode = mode
    vdma.readchannel.start()
    vdma.writechannel.start()
    for seed in range(3):
        frame = vdma.writechannel.newframe()
        frame[:] = image = np.random.default_rng(seed).integers(0, 256, (10, 32, 3), "u1")
        vdma.writechannel.writeframe(frame)
        for _ in range(20):  # some that were in between are older
            got = np.array(vdma.readchannel.readframe())
            if (got == ~image).all():
                break
        else:
            raise AssertionError("the frame did not come back")
    vdma.writechannel.stop()
    vdma.readchannel.stop()
    vdma.readchannel.reset()
    assert not vdma.readchannel.running and not vdma.writechannel.running


@pytest.mark.parametrize("load", ["csim", "rtl"], indirect=True)
def test_lines_through_a_kernel_that_knows_no_tuser(load: Load) -> None:
    streams = {"samples": 4, "scaled": 4}
    kernel = Ip("scale_stream", "scale", 0x43C00000, {}, 0x10000, streams, "hls")
    ends = {"vdma.M_AXIS_MM2S": "scale.samples", "scale.scaled": "vdma.S_AXIS_S2MM"}
    overlay = load(kernel, streams=ends, C_USE_S2MM_FSYNC=0)
    overlay.scale.write(0x18, int(np.float32(2).view("u4")))
    frame, back = picture(), picture(seed=9)
    frame.view("f4")[:] = values = np.arange(60, dtype="f4").reshape(6, 10)
    overlay.scale.write(0, 0x81)  # each line is a packet, and a run
    begin(overlay.vdma, S2MM, [back])
    begin(overlay.vdma, 0, [frame])
    wait_frame(overlay.vdma, S2MM)
    assert (back.view("f4") == 2 * values).all()


def test_genlock_within_the_vdma(load: Load) -> None:
    overlay = load()
    model = overlay.device.ip["vdma"]
    frames = [picture(seed=i) for i in range(4)]
    begin(overlay.vdma, S2MM, frames, CIRCULAR)
    model.channels["S2MM"].index = 2
    overlay.vdma.write(0x58, 1 << 24)
    model.channels["MM2S"].delay_frames = 3
    overlay.vdma.write(CR, 1 << 16 | RS | CIRCULAR | GENLOCK)
    for register, value in (
        (0x58, 3 << 24 | 40),
        (0x54, 40),
        (0x5C + 12, frames[3].physical_address),
    ):
        overlay.vdma.write(register, value)
    overlay.vdma.write(0x50, 6)
    assert overlay.vdma.read(PARK) >> 16 & 0x1F == 3  # (2 - 3) of 4


def test_a_frame_outside_the_buffers(load: Load) -> None:
    vdma = load().vdma
    frame = picture()
    begin(vdma, 0, [frame], 0, (5000, 40))
    with pytest.raises(KernelFault, match=r"vdma MM2S .*read at physical address 0x.* stopped"):
        while True:
            vdma.read(SR)
    assert vdma.read(SR) & 0x21 == 0x21
    vdma.write(CR, RS)
    assert vdma.read(SR) & 1  # an error holds it halted
    with pytest.raises(BoardHang, match=r"VDMASlvErr holds channel MM2S halted.*Reset it"):
        while vdma.read(SR) & 1:
            pass


@pytest.mark.parametrize(
    ("writes", "text"),
    [
        ([], r"channel S2MM is halted \(VDMACR.RS is 0\)"),
        ([(0xA0, 4)], "VSIZE = 4 was written while VDMACR.RS was 0"),
        ([(0x30, 1)], "channel S2MM moves no frame: VSIZE was not written"),
        ([(0x30, 1), (0xA0, 4)], "VSIZE = 4 was written with HSIZE = 0"),
        ([(0x30, 1), (0xA4, 4), (0xA0, 4)], "nothing in the PL has moved or can move"),
    ],
)
def test_waits_that_cannot_end_say_why(
    load: Load, writes: list[tuple[int, int]], text: str
) -> None:
    vdma = load().vdma
    for register, value in writes:
        vdma.write(register, value)
    with pytest.raises(BoardHang, match=text):
        while not vdma.read(S2MM + SR) & FRAME_IRQ:
            pass


def test_what_is_not_modelled_is_said_once(load: Load) -> None:
    vdma = load(C_USE_MM2S_FSYNC=1).vdma
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            vdma.write(0xEC, 1)
            vdma.write(CR, 0x05012000 | RS)
            vdma.write(CR, 0)
    said = [str(w.message).partition(" is not modelled")[0] for w in caught]
    assert {w.category for w in caught} == {NotModelledWarning}
    assert said == [
        "vdma: the vertical flip (ENABLE_VERTICAL_FLIP)",
        "vdma: the delay interrupt (IRQDelayCount)",
        "vdma: the input mm2s_fsync",
    ]


def test_a_vdma_with_one_channel(load: Load) -> None:
    vdma = load(streams={}, C_INCLUDE_S2MM=0).vdma
    vdma.write(S2MM + CR, RS)
    vdma.write(PARK, 0x0101)
    assert [vdma.read(r) for r in (S2MM + CR, S2MM + SR, PARK, 0xA0)] == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("bit", "name", "mask"),
    [
        *((4, "VDMAIntErr", 0), (5, "VDMASlvErr", 0), (6, "VDMADecErr", 0), (7, "SOFEarlyErr", 1)),
        *((8, "EOLEarlyErr", 2), (11, "SOFLateErr", 4), (15, "EOLLateErr", 8)),
    ],
)
def test_bits_of_errors_and_what_keeps_them_from_interrupting(
    bit: int, name: str, mask: int
) -> None:
    for masked in {0, mask}:  # PG020, "S2MM_VDMASR" and "S2MM_VDMA_IRQ_MASK"
        channel = VdmaChannel(ChannelParameters("S2MM", False, 14, 32, 4, False), 1)
        ended: Any = SimpleNamespace(busy=False, error=1 << bit, fault=(Fault.NONE,))
        channel.slot, channel.busy, channel.mask = ended, True, masked
        assert channel.update()
        assert channel.errors == 1 << bit and channel.error_text().startswith(name)
        assert bool(channel.pending & 1 << 14) == (not masked)
        channel.clear(0xFFFFFFFF)
        assert channel.errors == (0 if mask else 1 << bit) and not channel.pending
