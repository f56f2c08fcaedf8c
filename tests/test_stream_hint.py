"""A kernel with streams that is called like a function: the error names the DMA to use."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import HW_KERNELS, write_overlay

import pynq_torch
from pynq_torch.diagnosis.streams import stream_hint
from pynq_torch.errors import KernelBusy, KernelTimeout

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


GAIN = """
#include <hls_stream.h>
void gain(hls::stream<int> &samples, hls::stream<int> &results, int factor) {
#pragma HLS INTERFACE axis port=samples
#pragma HLS INTERFACE axis port=results
#pragma HLS INTERFACE s_axilite port=factor
#pragma HLS INTERFACE s_axilite port=return
    results.write(factor * samples.read());
}
"""


def test_calls_and_waits_of_a_kernel_with_a_register_and_streams(tmp_path):
    kernels = tmp_path / "kernels"
    (kernels / "gain").mkdir(parents=True)
    (kernels / "gain" / "gain.cpp").write_text(GAIN)
    extra = _DMA.format(ip="gain_0", out="results")
    bit = write_overlay(tmp_path, {"gain_0": "gain"}, extra, kernels)
    pynq_torch.use_board("csim", kernels=[kernels])
    overlay = pynq_torch.load(bit)
    with pytest.raises(TypeError, match=rf"factor is a number .*; found an array\. .*{_LINE}"):
        overlay.gain([1, 2], factor=3)
    with pytest.raises(TypeError, match=r"^gain_0\(factor\): argument 'factor' is given twice$"):
        overlay.gain(2, factor=3)
    with pytest.raises(KernelTimeout, match=rf"waits on stream gain_0\.samples[^$]*{_LINE}"):
        overlay.gain(3, timeout_s=0.1)
    with pytest.raises(KernelBusy, match=rf"move its data, then call wait\(\) .*{_LINE}"):
        overlay.gain(3)
