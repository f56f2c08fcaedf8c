"""Whatever a program reads and writes: no access hangs, and none ends in an error of Python's."""

from __future__ import annotations

import random
from pathlib import Path

import pynq
import pytest
from ip_handoff import Ip, write_design
from test_ip_vdma import VDMA

from pynq_torch.board import use_board
from pynq_torch.board.ip.axi_vdma import AxiVdma
from pynq_torch.errors import KernelFault

_FIFO = {"AXI_STR_TXD": 4, "AXI_STR_RXD": 4}
_LOOPS = {"fifo.AXI_STR_TXD": "fifo.AXI_STR_RXD", "vdma.M_AXIS_MM2S": "vdma.S_AXIS_S2MM"}
_VALUES = (0, 1, 2, 3, 4, 7, 8, 0xA, 0xA5, 0x100, 0x1A0, 0x1A1, 0x203, 0x11083, 1 << 31, 0xFFFFFFFF)


@pytest.mark.timeout(120)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_any_access(tmp_path: Path, seed: int) -> None:
    board = use_board("csim", hang_timeout_s=60.0)
    kinds = ("axi_iic", "axi_quad_spi", "axi_uartlite", "xadc_wiz")
    ips = [Ip(kind, kind[-4:], 0x42C00000 + i * 0x10000) for i, kind in enumerate(kinds)]
    ips.append(Ip("axi_fifo_mm_s", "fifo", 0x43C10000, {}, streams=_FIFO))
    ips.append(Ip("axi_vdma", "vdma", 0x43000000, VDMA))
    pynq.Overlay(str(write_design(tmp_path, "any", ips, _LOOPS)))
    board.ip[ips[0].name].devices[0x50] = bytearray(3)
    frame = pynq.allocate((4, 16), "u1")
    draw = random.Random(seed)
    for ip in ips:
        model = board.ip[ip.name]
        offsets = range(0, 0x50 if ip.name == "fifo" else 0x148, 4)
        for _ in range(600):
            at = ip.base + draw.choice(offsets)
            value = draw.choice((*_VALUES, frame.physical_address, draw.getrandbits(32)))
            try:
                if draw.random() < 0.6:
                    board.bus.write(at, value)
                else:
                    assert 0 <= board.bus.read(at) < 1 << 32
            except KernelFault as error:  # a frame that would leave its buffer
                assert isinstance(model, AxiVdma) and "vdma" in str(error)
    board.close()
