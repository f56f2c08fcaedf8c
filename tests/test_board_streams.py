"""Kernels with AXI4-Stream ports between the channels of an AXI DMA."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import HW_KERNELS, overlay_of, start, wait_done
from pynq import allocate

import pynq_torch

DMA = """
[instances.axi_dma_0]
ip = "axi_dma"
parameters = { c_include_sg = 0, c_sg_length_width = 23 }
memory = { M_AXI_MM2S = "HP0", M_AXI_S2MM = "HP1" }
"""


def test_free_running_kernel_between_two_dma_channels(tmp_path):
    overlay = overlay_of(
        tmp_path,
        {"free_running_0": "free_running"},
        extra="""
streams = [
  "axi_dma_0.M_AXIS_MM2S -> free_running_0.in_r",
  "free_running_0.out_r -> axi_dma_0.S_AXIS_S2MM",
]
"""
        + DMA,
    )
    sent, received = allocate(300, "u4"), allocate(300, "u4")
    sent[:] = np.arange(300)
    for bias in range(5, 40):
        # The kernel waits for data already; a register written now counts, as a wire does.
        overlay.free_running_0.write(0x10, bias)
        overlay.axi_dma_0.recvchannel.transfer(received)
        overlay.axi_dma_0.sendchannel.transfer(sent)
        overlay.axi_dma_0.sendchannel.wait()
        overlay.axi_dma_0.recvchannel.wait()
        assert (received == np.arange(300) + bias).all()
        received[:] = 0


@pytest.fixture
def scale(tmp_path):
    yield overlay_of(
        tmp_path,
        {"scale_stream_0": "scale_stream"},
        [HW_KERNELS],
        extra="""
streams = [
  "axi_dma_0.M_AXIS_MM2S -> scale_stream_0.samples",
  "scale_stream_0.scaled -> axi_dma_0.S_AXIS_S2MM",
]
"""
        + DMA,
        hang_timeout_s=1.0,
    )
    pynq_torch.current_board().close()


def test_upstream_dma_feeds_a_kernel_and_takes_its_packet(scale):
    ip, dma = scale.scale_stream_0, scale.axi_dma_0
    ip.register_map.gain = int(np.float32(2).view("u4"))
    ip.register_map.offset = int(np.float32(0.5).view("u4"))
    for n in (1, 7, 5000):
        sent, received = allocate(n, "f4"), allocate(n, "f4")
        sent[:] = np.arange(n)
        start(ip)
        dma.recvchannel.transfer(received)
        dma.sendchannel.transfer(sent)
        dma.sendchannel.wait()
        dma.recvchannel.wait()
        wait_done(ip)
        assert (received == np.arange(n, dtype="f4") * 2 + np.float32(0.5)).all()
        assert dma.recvchannel.transferred == 4 * n


def test_send_alone_does_not_end_while_nobody_receives(scale):
    """The FIFOs between two IPs hold a few beats, as on the board; a ring must not hold more."""
    start(scale.scale_stream_0)
    sent = allocate(1000, "f4")
    scale.axi_dma_0.sendchannel.transfer(sent)
    with pytest.raises(pynq_torch.errors.BoardHang, match="scale_stream_0: WAIT_WRITE"):
        wait_done(scale.scale_stream_0)
    received = allocate(1000, "f4")
    scale.axi_dma_0.recvchannel.transfer(received)
    scale.axi_dma_0.sendchannel.wait()
    scale.axi_dma_0.recvchannel.wait()
    wait_done(scale.scale_stream_0)
