"""A kernel with streams that is called like a function: the error names the DMA to use."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import HW_KERNELS, write_overlay

import pynq_torch
from pynq_torch.diagnosis.streams import stream_hint

RTL_KERNELS = Path(__file__).parent / "rtl_kernels"
_DMA = """
streams = [
  "axi_dma_0.M_AXIS_MM2S -> {ip}.samples",
  "{ip}.{out} -> axi_dma_0.S_AXIS_S2MM",
]
[instances.axi_dma_0]
ip = "axi_dma"
parameters = {{ c_include_sg = 0, c_sg_length_width = 20 }}
memory = {{ M_AXI_MM2S = "HP0", M_AXI_S2MM = "HP1" }}
"""
_LINE = r"pynq_torch\.transfer\(overlay\.axi_dma_0, send=x, recv=y\)\."


@pytest.mark.parametrize("name", ["increment", "increment_0"])
def test_a_kernel_without_registers(tmp_path, name):
    extra = _DMA.format(ip="increment_0", out="results")
    bit = write_overlay(tmp_path, {"increment_0": "increment"}, extra, RTL_KERNELS)
    pynq_torch.use_board("csim", kernels=[RTL_KERNELS])
    overlay = pynq_torch.load(bit)
    with pytest.raises(AttributeError, match=rf"increment_0 takes its data from .*, {_LINE}"):
        getattr(overlay, name)([1, 2])
    with pytest.raises(AttributeError, match="has no 'other'; it has: "):
        overlay.other([1, 2])


def test_a_kernel_with_registers(tmp_path):
    kernels = tmp_path / "kernels"
    (kernels / "fir").mkdir(parents=True)
    text = (RTL_KERNELS / "increment" / "increment.cpp").read_text()
    control = "s_axilite port=return bundle=control"
    text = text.replace("increment", "fir").replace("ap_ctrl_none port=return", control)
    (kernels / "fir" / "fir.cpp").write_text(text)
    extra = _DMA.format(ip="fir_0", out="results")
    bit = write_overlay(tmp_path, {"fir_0": "fir"}, extra, kernels)
    pynq_torch.use_board("csim", kernels=[kernels])
    overlay = pynq_torch.load(bit)
    with pytest.raises(TypeError, match=rf"found 1\. fir_0 .*overlay\.fir_0\.start\(\); {_LINE}"):
        overlay.fir([1, 2])


def test_a_kernel_without_streams_has_no_hint():
    board = pynq_torch.use_board("csim", kernels=[HW_KERNELS])
    pynq_torch.load("vadd")
    assert stream_hint(board, "vadd_0") == "" == stream_hint(board, "nothing")
    assert stream_hint(object(), "vadd_0") == ""
