"""What published designs and programs rely on without saying so."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from helpers import overlay_of, start, wait_done
from pynq import Overlay, allocate

import pynq_torch
from pynq_torch import hls
from pynq_torch.board.handoff_nets import stream_links
from pynq_torch.errors import InterfaceError, KernelFault
from pynq_torch.hls.directives import files_beside

pytestmark = [pytest.mark.timeout(180), pytest.mark.usefixtures("closed")]

ADD = """
void add(volatile int *a, int length, int value) {
#pragma HLS INTERFACE m_axi port=a bundle=gmem offset=slave
#pragma HLS INTERFACE s_axilite port=a
#pragma HLS INTERFACE s_axilite port=length
#pragma HLS INTERFACE s_axilite port=value
#pragma HLS INTERFACE s_axilite port=return
    for (int i = 0; i < length; ++i) a[i] += value;
}
"""
SHIFT = """
#include <ap_axi_sdata.h>
#include <hls_stream.h>
typedef ap_axis<32, 0, 0, 0> beat_t;
void shift(hls::stream<beat_t> &a, hls::stream<beat_t> &b) {
#pragma HLS INTERFACE axis port=a
#pragma HLS INTERFACE axis port=b
#pragma HLS INTERFACE s_axilite port=return
    beat_t beat;
    do {
        a.read(beat);
        beat.data = beat.data.to_int() + 5;
        b.write(beat);
    } while (!beat.last);
}
"""
PAIR = """
void pair(int x, int *half, int *twice) {
#pragma HLS INTERFACE s_axilite port=x
#pragma HLS INTERFACE s_axilite port=half
#pragma HLS INTERFACE s_axilite port=twice
#pragma HLS INTERFACE s_axilite port=return
    *half = x / 2;
    *twice = x * 2;
}
"""
WIRED = """
void wired(int a, int b, int *sum) {
#pragma HLS INTERFACE ap_ctrl_none port=return
#pragma HLS INTERFACE s_axilite port=a
#pragma HLS INTERFACE s_axilite port=b
#pragma HLS INTERFACE s_axilite port=sum
    *sum = a + b;
}
"""


def _kernel(folder: Path, name: str, text: str) -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / f"{name}.cpp").write_text(text)
    return folder


def test_a_result_is_there_without_a_wait(tmp_path):
    overlay = overlay_of(tmp_path, {"add_0": "add"}, [_kernel(tmp_path / "k", "add", ADD)])
    ip = overlay.add_0
    buffer = allocate(100, "i4")
    buffer[:] = 0
    registers = ip.register_map
    setattr(registers, "a_1" if hasattr(registers, "a_1") else "a", buffer.physical_address)
    ip.register_map.length_r = 100
    ip.register_map.value_r = 7
    ip.register_map.CTRL.AP_START = 1
    assert (buffer == 7).all()


def test_a_long_run_does_not_hold_the_program_up(tmp_path):
    endless = 2  # tests/kernels/faulty: loops for ever
    overlay = overlay_of(tmp_path, {"faulty_0": "faulty"})
    overlay.faulty_0.register_map.sin = endless
    start(overlay.faulty_0)
    assert not overlay.faulty_0.register_map.CTRL.AP_DONE
    pynq_torch.current_board().cus["faulty_0"].reset()


def test_dma_through_a_kernel_without_a_wait(tmp_path):
    extra = """
streams = ["dma.M_AXIS_MM2S -> shift_0.a", "shift_0.b -> dma.S_AXIS_S2MM"]
[instances.dma]
ip = "axi_dma"
parameters = { c_include_sg = 0, c_sg_length_width = 23 }
memory = { M_AXI_MM2S = "HP0", M_AXI_S2MM = "HP1" }
"""
    kernels = [_kernel(tmp_path / "k", "shift", SHIFT)]
    overlay = overlay_of(tmp_path, {"shift_0": "shift"}, kernels, extra=extra)
    overlay.shift_0.write(0, 0x81)
    sent, received = allocate(100, "u4"), allocate(100, "u4")
    sent[:] = np.arange(100)
    for _ in range(3):
        received[:] = 0
        overlay.dma.sendchannel.transfer(sent)
        overlay.dma.recvchannel.transfer(received)
        assert np.array_equal(sent, received - 5)
        overlay.dma.sendchannel.wait()
        overlay.dma.recvchannel.wait()


def test_two_valid_flags_polled_together(tmp_path):
    overlay = overlay_of(tmp_path, {"pair_0": "pair"}, [_kernel(tmp_path / "k", "pair", PAIR)])
    ip = overlay.pair_0
    for x in range(500):
        ip.write(0x10, x)
        start(ip)
        deadline = time.monotonic() + 10
        # Both are read in every turn, and reading clears: neither may come alone.
        while not ((ip.read(0x1C) == 1) & (ip.read(0x2C) == 1)):
            assert time.monotonic() < deadline, f"a flag was lost in run {x}"
        assert (ip.read(0x18), ip.read(0x28)) == (x // 2, x * 2)


def test_a_kernel_that_always_runs_has_seen_its_inputs(tmp_path):
    overlay = overlay_of(tmp_path, {"wired_0": "wired"}, [_kernel(tmp_path / "k", "wired", WIRED)])
    ip = overlay.wired_0
    for x in range(50):
        ip.write(0x10, x)
        ip.write(0x18, 1000)
        assert ip.read(0x20) == x + 1000


def test_sources_without_the_bitstreams_control_register_are_refused(tmp_path):
    overlay_of(tmp_path, {"add_0": "add"}, [_kernel(tmp_path / "k", "add", ADD)])
    bit = next((tmp_path / "design").rglob("*.bit"))
    bare = "\n".join(line for line in ADD.splitlines() if "s_axilite" not in line)
    pynq_torch.use_board("csim", kernels=[_kernel(tmp_path / "bare", "add", bare)])
    with pytest.raises(InterfaceError, match="control register"):
        Overlay(str(bit))


def test_open_stream_ports_are_not_joined():
    def module(name: str, **ports: str) -> ET.Element:
        buses = "".join(
            f'<BUSINTERFACE BUSNAME="__NOC__" NAME="{port}" TYPE="{kind}" '
            'VLNV="xilinx.com:interface:axis:1.0"/>'
            for port, kind in ports.items()
        )
        return ET.fromstring(
            f'<MODULE FULLNAME="/{name}" MODTYPE="{name}"><BUSINTERFACES>{buses}</BUSINTERFACES>'
            "</MODULE>"
        )

    links = list(stream_links([module("a", out="INITIATOR"), module("b", inp="TARGET")]))
    assert [link.sink for link in links] == [None]


def test_c_that_is_no_cpp(tmp_path):
    source = tmp_path / "mac.c"
    source.write_text(
        "void mac(int a, int b[4], int *out) {\n"
        "#pragma HLS INTERFACE s_axilite port=return\n"
        "#pragma HLS INTERFACE s_axilite port=a\n"
        "#pragma HLS INTERFACE s_axilite port=b\n"
        "#pragma HLS INTERFACE s_axilite port=out\n"
        "    static sum = 0;\n"  # an implicit int, which C++ does not have
        "    sum += a * b[0];\n"
        "    *out = sum;\n"
        "}\n"
    )
    assert hls.build(hls.KernelSource("mac", source)).executable.is_file()


def test_directives_beside_the_source_folder(tmp_path):
    (tmp_path / "src" / "code").mkdir(parents=True)
    (tmp_path / "script").mkdir()
    wanted = tmp_path / "script" / "directives.tcl"
    wanted.write_text('set_directive_interface -mode s_axilite "k"\n')
    source = tmp_path / "src" / "code" / "k.cpp"
    source.write_text("void k() {}\n")
    assert files_beside(source) == [wanted]
    # Two of them: nothing says which one counts.
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "directives.tcl").write_text("")
    assert files_beside(source) == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("directives.tcl", "set_directive_interface -mode s_axilite -bundle ctrl {}\n"),
        ("hls_config.cfg", "syn.directive.interface={} mode=s_axilite bundle=ctrl\n"),
    ],
)
def test_a_directive_for_the_function_itself_is_one_for_its_return(tmp_path, file, text):
    kernels = _kernel(tmp_path / "k", "twice", "int twice(int x) { return 2 * x; }\n")
    lines = [text.format("twice"), text.format("twice x" if "cfg" in file else '"twice" x')]
    (kernels / "twice" / file).write_text("".join(lines))
    overlay = overlay_of(tmp_path, {"twice_0": "twice"}, [kernels])
    ip = overlay.twice_0
    assert ip.register_map.CTRL.AP_IDLE == 1
    ip.write(0x18, 21)  # behind ap_return
    start(ip)
    wait_done(ip)
    assert ip.read(0x10) == 42


SUMS = """
#include <ap_int.h>
struct word_t {
    float data;
    ap_uint<1> last;
    word_t(float data, bool last) : data(data), last(last) {}
};
void sums(word_t in[4], word_t out[2], unsigned rows) {
#pragma HLS INTERFACE axis port=in
#pragma HLS INTERFACE axis port=out
#pragma HLS INTERFACE s_axilite port=rows
#pragma HLS INTERFACE ap_ctrl_none port=return
    static unsigned row;
    if (row == rows) row = 0;
    ++row;
    float total = 0;
    for (int i = 0; i < 4; ++i) total += in[i].data;
    for (int i = 0; i < 2; ++i) {
        out[i] = word_t(total + i, i == 1 && row == rows);
    }
}
"""


def test_arrays_of_structs_on_stream_ports(tmp_path):
    extra = """
streams = ["dma.M_AXIS_MM2S -> sums_0.in_r", "sums_0.out_r -> dma.S_AXIS_S2MM"]
[instances.dma]
ip = "axi_dma"
parameters = { c_include_sg = 0, c_sg_length_width = 23 }
memory = { M_AXI_MM2S = "HP0", M_AXI_S2MM = "HP1" }
"""
    kernels = [_kernel(tmp_path / "k", "sums", SUMS)]
    overlay = overlay_of(tmp_path, {"sums_0": "sums"}, kernels, extra=extra)
    overlay.sums_0.write(0x10, 25)
    sent, received = allocate((25, 4), "f4"), allocate((25, 2), "f4")
    sent[:] = np.arange(100).reshape(25, 4)
    overlay.dma.sendchannel.transfer(sent)
    overlay.dma.recvchannel.transfer(received)
    overlay.dma.sendchannel.wait()
    overlay.dma.recvchannel.wait()
    assert np.array_equal(received, sent.sum(1)[:, None] + [0, 1])


WALK = """
#include <ap_axi_sdata.h>
typedef ap_axis<32, 0, 0, 0> beat_t;
void walk(beat_t {in}, beat_t {out}, int reads, int writes) {{
#pragma HLS INTERFACE axis port=in depth=64
#pragma HLS INTERFACE axis port=out depth=64
#pragma HLS INTERFACE s_axilite port=reads
#pragma HLS INTERFACE s_axilite port=writes
#pragma HLS INTERFACE s_axilite port=return
    beat_t beat;
    beat.keep = -1;
    int total = 0;
    for (int i = 0; i < reads; ++i) total += in[i].data;
    for (int i = 0; i < writes; ++i) {{
        beat.data = total + i;
        beat.last = i == writes - 1;
        out[i] = beat;
    }}
}}
"""
DMA = """
streams = ["dma.M_AXIS_MM2S -> walk_0.in_r", "walk_0.out_r -> dma.S_AXIS_S2MM"]
[instances.dma]
ip = "axi_dma"
parameters = {{ c_include_sg = 0, c_sg_length_width = 23 }}
memory = {{ M_AXI_MM2S = "HP0", M_AXI_S2MM = "HP1" }}
"""


def _walk(folder, given, result, sent, reads, writes):
    """Send 0, 1, ... to a kernel that writes their sum, its successor and so on."""
    kernels = [_kernel(folder / "k", "walk", WALK.format(**{"in": given, "out": result}))]
    overlay = overlay_of(folder, {"walk_0": "walk"}, kernels, extra=DMA.format())
    walk, dma = overlay.walk_0, overlay.dma
    source, sink = allocate(sent, "i4"), allocate(100, "i4")
    source[:] = np.arange(sent)
    dma.recvchannel.transfer(sink)
    for _ in range(2):  # nothing is left of the first run
        walk.write(0x10, reads)
        walk.write(0x18, writes)
        start(walk)
        dma.sendchannel.transfer(source)
        dma.recvchannel.wait()
        assert sink[:writes].tolist() == [sum(range(reads)) + i for i in range(writes)]
        dma.recvchannel.transfer(sink)
    return True


@pytest.mark.parametrize("given", ["*in", "in[6]"])
@pytest.mark.parametrize("result", ["*out", "out[64]"])
def test_packets_behind_pointers_and_arrays_end_where_they_end(tmp_path, given, result):
    assert _walk(tmp_path, given, result, sent=6, reads=6, writes=3)


@pytest.mark.parametrize(
    ("given", "result", "reads", "writes", "says"),
    [
        ("*in", "*out", 7, 1, "read past the 6 beats up to TLAST on argument 1"),
        ("in[6]", "out[8]", 7, 1, "went past the 6 elements of argument 1, a stream"),
        ("in[6]", "out[8]", 6, 9, "went past the 8 elements of argument 2, a stream"),
        ("*in", "*out", 6, 1_048_577, "went past the 1048576 elements of argument 2"),
    ],
)
def test_who_goes_past_an_array_behind_a_stream(tmp_path, given, result, reads, writes, says):
    with pytest.raises(KernelFault, match=says):
        _walk(tmp_path, given, result, 6, reads, writes)


@pytest.mark.parametrize(("offset", "bundle"), [("", "CTRL"), ("offset=slave", "control")])
def test_bundle_of_a_pointer_without_an_s_axilite_pragma(tmp_path, offset, bundle):
    # As in published overlays of Vitis HLS 2021.1 to 2025.2.
    source = tmp_path / "k.cpp"
    source.write_text(
        "void k(int *a, int n) {\n"
        f"#pragma HLS INTERFACE m_axi port=a {offset}\n"
        "#pragma HLS INTERFACE s_axilite port=n bundle=CTRL\n"
        "#pragma HLS INTERFACE s_axilite port=return bundle=CTRL\n"
        "    for (int i = 0; i < n; ++i) a[i] = i;\n"
        "}\n"
    )
    assert hls.read_interface(source, "k").argument("a").bundle == bundle
