"""The processes of DATAFLOW regions: side by side on board csim, with FIFOs of their depth."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import start, wait_done, write, write_overlay
from pynq import allocate

import pynq_torch
from pynq_torch import hls
from pynq_torch.errors import KernelFault, StreamWarning, VerificationError

FLOW = """
#include <hls_stream.h>
#include <hls_streamofblocks.h>
typedef hls::stream<int> Fifo;
const int SKEW = 16, TILE = 8;

static void split(const int* in, Fifo& a, Fifo& b, int n) {
    for (int i = 0; i < n; ++i) a.write(in[i]), b.write(in[i]);
}
static void delay(Fifo& a, Fifo& b, int n) {
    int kept[SKEW] = {};
    for (int i = 0; i < n + SKEW; ++i) {
        if (i >= SKEW) b.write(kept[i % SKEW]);
        if (i < n) kept[i % SKEW] = a.read();
    }
}
static void join(Fifo& a, Fifo& b, int* out, int n) {
    for (int i = 0; i < n; ++i) {
        const int first = a.read();
        out[i] = 1000 * first + b.read();
    }
}
static void skewed_enough(const int* in, int* out, int n) {
#pragma HLS DATAFLOW
    Fifo direct, early, late;
#pragma HLS STREAM variable=direct depth=SKEW-1
    split(in, direct, early, n);
    delay(early, late, n);
    join(direct, late, out, n);
}
static void skewed(const int* in, int* out, int n) {
#pragma HLS DATAFLOW
    Fifo direct, early("an early one"), late;
    split(in, direct, early, n);
    delay(early, late, n);
    join(direct, late, out, n);
}

static void fill(const int* in, int tile[TILE], int t) {
    for (int i = 0; i < TILE; ++i) tile[i] = in[t * TILE + i];
}
static void turn(const int tile[TILE], Fifo& reversed) {
    for (int i = TILE; i-- > 0;) reversed.write(tile[i]);
}
static void drain(Fifo& reversed, int* out, int t) {
    for (int i = 0; i < TILE; ++i) out[t * TILE + i] = reversed.read();
}
static void tiles(const int* in, int* out, int count) {
    for (int t = 0; t < count; ++t) {
#pragma HLS DATAFLOW
        int tile[TILE];
        Fifo reversed;
        fill(in, tile, t);
        turn(tile, reversed);
        drain(reversed, out, t);
    }
}

static void load(const int* in, Fifo& s, int n) {
    for (int i = 0; i < n; ++i) s.write(in[i]);
}
static void add(Fifo& from, Fifo& to, int n, int what) {
    for (int i = 0; i < n; ++i) to.write(from.read() + what);
}
static void twice(Fifo& from, Fifo& to, int n) {
#pragma HLS DATAFLOW
    Fifo between[2];
    add(from, between[0], n, 1);
    add(between[0], between[1], n, 10);
    add(between[1], to, n, 100);
}
static void store(Fifo& s, int* out, int n) {
    for (int i = 0; i < n; ++i) {
        while (s.empty()) {
        }
        s.read_nb(out[i]);
    }
}
static void nested(const int* in, int* out, int n) {
#pragma HLS DATAFLOW
    Fifo to, from;
    load(in, to, n);
    twice(to, from, n);
    store(from, out, n);
}
static void crash(Fifo& s, int* out) { out[1 << 28] = s.read(); }
static void crashing(const int* in, int* out) {
#pragma HLS DATAFLOW
    Fifo s;
    load(in, s, 100);
    crash(s, out);
}
static void uneven(const int* in, int* out, int given, int taken) {
#pragma HLS DATAFLOW
    hls::stream<int, 4> s;
    load(in, s, given);
    store(s, out, taken);
}
static void lacking(const int* in, int* out, int n) {
#pragma HLS DATAFLOW
    Fifo a, b;
    load(in, a, n - 1);
    add(a, b, n, 0);
    store(b, out, n - 1);
}
typedef int Block[TILE];
static void put(const int* in, hls::stream_of_blocks<Block>& s, int count) {
    for (int t = 0; t < count; ++t) {
        hls::write_lock<Block> block(s);
        for (int i = 0; i < TILE; ++i) block[i] = in[t * TILE + i];
    }
}
static void get(hls::stream_of_blocks<Block>& s, int* out, int count) {
    for (int t = 0; t < count; ++t) {
        hls::read_lock<Block> block(s);
        for (int i = 0; i < TILE; ++i) out[t * TILE + i] = block[TILE - 1 - i];
    }
}
static void blocks(const int* in, int* out, int count) {
#pragma HLS DATAFLOW
    hls::stream_of_blocks<Block> s;
    put(in, s, count);
    get(s, out, count);
}
void flow(const int* in, int* out, int n, int what) {
#pragma HLS INTERFACE m_axi port=in offset=slave bundle=gmem
#pragma HLS INTERFACE m_axi port=out offset=slave bundle=gmem
#pragma HLS INTERFACE s_axilite port=n
#pragma HLS INTERFACE s_axilite port=what
#pragma HLS INTERFACE s_axilite port=return
    if (what == 0) skewed_enough(in, out, n);
    if (what == 1) skewed(in, out, n);
    if (what == 2) tiles(in, out, n / TILE);
    if (what == 3) nested(in, out, n);
    if (what == 4) crashing(in, out);
    if (what == 5) uneven(in, out, n, n - 3);
    if (what == 6) lacking(in, out, n);
    if (what == 7) blocks(in, out, n / TILE);
}
"""
LINES = FLOW.split("\n")


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(LINES, start=1) if text in line)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("flow")
    write(folder / "kernels/flow/flow.cpp", FLOW)
    bit = write_overlay(folder, {"flow_0": "flow"}, kernels=folder / "kernels")
    pynq_torch.use_board("csim", kernels=[folder / "kernels"])
    yield pynq_torch.load(bit).flow_0
    pynq_torch.current_board().close()


def run(kernel: Any, what: int, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    with allocate(n, "i4") as given, allocate(n, "i4") as got:
        given[:] = np.arange(n)
        kernel(given, got, n, what)
        return np.array(given), np.array(got)


def test_a_split_and_join_needs_as_much_room_as_the_longer_branch_holds(kernel):
    x, y = run(kernel, 0)
    assert (y == 1001 * x).all()


def test_a_fifo_that_is_too_short_is_named_with_the_depth_that_suffices(kernel):
    at = line_of("Fifo direct, early(")
    with pytest.raises(KernelFault) as caught:
        run(kernel, 1)
    text = str(caught.value)
    for part in (
        "deadlock: split waits to write direct, which is full with 2",
        "delay waits to read early, which is empty",
        "join waits to read late, which is empty",
        f"#pragma HLS STREAM variable=direct depth=15 (flow.cpp:{at})",
    ):
        assert part in text, text
    run(kernel, 0)  # the next run is as good as ever


@pytest.mark.parametrize("what", [2, 7])
def test_an_array_is_complete_before_its_reader_begins(kernel, what):
    x, y = run(kernel, what)
    assert (y.reshape(-1, 8) == x.reshape(-1, 8)[:, ::-1]).all()


def test_regions_within_a_region_leave_nothing_behind(kernel):
    def resident() -> int:
        pid = pynq_torch.current_board().cus["flow_0"].engine.pid
        return int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[0])

    x, y = run(kernel, 3)
    assert (y == x + 111).all()
    for _ in range(50):
        run(kernel, 3)
    before = resident()
    for _ in range(1000):
        run(kernel, 3)
    assert resident() - before < 300


def test_a_process_that_crashes_ends_the_run_as_a_kernel_does(kernel):
    with pytest.raises(KernelFault, match="wrote to memory outside its buffers"):
        run(kernel, 4)


def test_elements_that_nobody_reads_are_a_warning(kernel):
    at = line_of("hls::stream<int, 4> s;")
    with pytest.warns(StreamWarning, match=rf"stream s \(flow.cpp:{at}\) still holds 3 elements"):
        run(kernel, 5)


def test_a_writer_that_gives_too_little_is_no_matter_of_depth(kernel):
    with pytest.raises(KernelFault, match="add waits to read a, which is empty.*No depth helps"):
        run(kernel, 6)


RELAY = """
#include <ap_axi_sdata.h>
#include <hls_stream.h>
typedef ap_axiu<32, 0, 0, 0> Beat;
static void take(hls::stream<Beat>& in, hls::stream<Beat>& between, int n) {
    for (int i = 0; i < n; ++i) between.write(in.read());
}
static void give(hls::stream<Beat>& between, hls::stream<Beat>& out, int n) {
    for (int i = 0; i < n; ++i) out.write(between.read());
}
void relay(hls::stream<Beat>& in, hls::stream<Beat>& out, int n) {
#pragma HLS INTERFACE axis port=in
#pragma HLS INTERFACE axis port=out
#pragma HLS INTERFACE s_axilite port=n
#pragma HLS INTERFACE s_axilite port=return
#pragma HLS DATAFLOW
    hls::stream<Beat> between;
    take(in, between, n);
    give(between, out, n);
}
"""
STREAMS = """
streams = ["dma.M_AXIS_MM2S -> relay_0.in_r", "relay_0.out_r -> dma.S_AXIS_S2MM"]

[instances.dma]
ip = "axi_dma"
parameters = { c_include_sg = 0, c_sg_length_width = 23 }
memory = { M_AXI_MM2S = "HP0", M_AXI_S2MM = "HP1" }
"""


def test_a_process_that_waits_for_the_outside_is_no_deadlock(tmp_path):
    from pynq import Overlay

    write(tmp_path / "kernels/relay/relay.cpp", RELAY)
    bit = write_overlay(tmp_path, {"relay_0": "relay"}, STREAMS, tmp_path / "kernels")
    pynq_torch.use_board("csim", kernels=[tmp_path / "kernels"])
    overlay = Overlay(str(bit))
    overlay.relay_0.write(0x10, 3000)
    start(overlay.relay_0)
    sent, received = allocate(1000, "i4"), allocate(1000, "i4")
    for part in range(3):  # what came in goes out before the next comes
        sent[:] = np.arange(1000) + part
        overlay.dma.recvchannel.transfer(received)
        overlay.dma.sendchannel.transfer(sent)
        overlay.dma.recvchannel.wait()
        assert (received == sent).all()
    wait_done(overlay.relay_0)
    pynq_torch.current_board().close()


HEADER = """
#include <hls_stream.h>
typedef hls::stream<int> Fifo;
template <class S> void put(const int* a, const int* b, Fifo& first, Fifo& second) {
    for (int i = 0; i < S::COUNT; ++i) first.write(a[i]);
    for (int i = 0; i < S::COUNT; ++i) second.write(b[i]);
}
template <class S> void get(Fifo& first, Fifo& second, int* out) {
    for (int i = 0; i < S::COUNT; ++i) out[i] = second.read();
    for (int i = 0; i < S::COUNT; ++i) out[i] += first.read();
}
template <class S> void sum_of(const int* a, const int* b, int* out) {
    hls::stream<int> first;
    hls::stream<int> second;
#pragma HLS STREAM variable=first depth=S::COUNT
    put<S>(a, b, first, second);
    get<S>(first, second, out);
}
"""
BENCH = """
#include "top.cpp"
int main() {
    int a[4] = {1, 2, 3, 4}, out[4];
    top(a, a, out);
    return out[3] != 8;
}
"""


def test_headers_templates_directive_files_and_testbenches_count(tmp_path):
    write(tmp_path / "parts/sum.hpp", HEADER)
    source = write(
        tmp_path / "top.cpp",
        '#include "parts/sum.hpp"\nstruct Four { static constexpr int COUNT = 4; };\n'
        "void top(const int* a, const int* b, int* out) { sum_of<Four>(a, b, out); }\n",
    )
    write(tmp_path / "top_tb.cpp", BENCH)
    write(tmp_path / "directives.tcl", "set_directive_dataflow sum_of\n")
    made = hls.KernelSource("top", source)
    hls.run_testbench(made)
    with (tmp_path / "directives.tcl").open("a") as file:
        file.write("set_directive_stream -depth 1 sum_of first\n")
    with pytest.raises(VerificationError, match=r"variable=first depth=4 \(sum.hpp:13\)"):
        hls.run_testbench(made)
