"""DATAFLOW regions: arrays of streams, unrolled loops of processes, processes that poll."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from helpers import write, write_overlay
from pynq import allocate

import pynq_torch
from pynq_torch.errors import KernelFault

SOURCE = """
#include <array>
#include <hls_stream.h>
typedef hls::stream<int> Fifo;
const int WAYS = 4;

static void load(const int* in, Fifo& s, int n) {
    for (int i = 0; i < n; ++i) s.write(in[i]);
}
static void store(Fifo& s, int* out, int n) {
    for (int i = 0; i < n; ++i) out[i] = s.read();
}
static void add(Fifo& from, Fifo& to, int what, int n) {
    for (int i = 0; i < n; ++i) to.write(from.read() + what);
}
static void stages(const int* in, int* out, int n) {
#pragma HLS DATAFLOW
    std::array<Fifo, WAYS + 1> s;
    load(in, s[0], n);
    for (int i = 0; i < WAYS; ++i) {
#pragma HLS UNROLL
        add(s[i], s[i + 1], i, n);
    }
    store(s[WAYS], out, n);
}
static void deal(const int* in, Fifo to[2][2], int n) {
    for (int i = 0; i < n; ++i) to[i / 2 % 2][i % 2].write(in[i]);
}
static void collect(Fifo from[2][2], int* out, int n) {
    for (int i = 0; i < n; ++i) out[i] = from[i / 2 % 2][i % 2].read();
}
static void grid(const int* in, int* out, int n) {
#pragma HLS DATAFLOW
    Fifo a[2][2], b[2][2];
    deal(in, a, n);
    for (int i = 0; i < 2; i++) {
#pragma HLS UNROLL
        for (int j = 0; j < 2; j++) {
#pragma HLS UNROLL
            Fifo between;
            const int what = 10 * i + j;
            add(a[i][j], between, what, n / WAYS);
            add(between, b[i][j], 100, n / WAYS);
        }
    }
    collect(b, out, n);
}
static void fill(Fifo& s, int row[8]) {
    for (int i = 0; i < 8; ++i) row[i] = s.read();
}
static void turn(const int from[8], int to[8]) {
    for (int i = 0; i < 8; ++i) to[i] = from[7 - i] + 1;
}
static void drain(const int row[8], int* out) {
    for (int i = 0; i < 8; ++i) out[i] = row[i];
}
static void rows(const int* in, int* out) {
#pragma HLS DATAFLOW
    Fifo s;
    int row[WAYS][8];
    load(in, s, 8);
    fill(s, row[0]);
    for (int i = 1; i < WAYS; ++i) {
#pragma HLS UNROLL
        turn(row[i - 1], row[i]);
    }
    drain(row[WAYS - 1], out);
}
static void kept(const int* in, int* out, int n) {
#pragma HLS DATAFLOW
    Fifo s[WAYS + 1];
    load(in, s[0], n);
    for (int i = 0; i < WAYS; ++i) {
#pragma HLS UNROLL factor=2
        add(s[i], s[i + 1], i, n);
    }
    store(s[WAYS], out, n);
}
static void first_then_second(const int* in, Fifo s[2]) {
    for (int i = 0; i < 16; ++i) s[0].write(in[i]);
    for (int i = 0; i < 16; ++i) s[1].write(in[i]);
}
static void second_and_first(Fifo s[2], int* out) {
    for (int i = 0; i < 16; ++i) out[i] = s[1].read() + s[0].read();
}
static void of_elements(const int* in, int* out) {
#pragma HLS DATAFLOW
    Fifo s[2];
#pragma HLS STREAM variable=s[0] depth=4*WAYS
#pragma HLS STREAM variable=s[WAYS-3] depth=2
    first_then_second(in, s);
    second_and_first(s, out);
}
static void too_short(const int* in, int* out) {
#pragma HLS DATAFLOW
    Fifo s[2];
#pragma HLS STREAM variable=s depth=32
#pragma HLS STREAM variable=s[0] depth=7
    first_then_second(in, s);
    second_and_first(s, out);
}
static void no_such_element(const int* in, int* out) {
#pragma HLS DATAFLOW
    Fifo s[2];
#pragma HLS STREAM variable=s[2] depth=16
    first_then_second(in, s);
    second_and_first(s, out);
}
static void by_row(const int* in, Fifo o[WAYS]) {
    for (int i = 0; i < 64; ++i) o[i / 16].write(in[i]);
}
static void by_column(Fifo o[WAYS], int* out) {
    for (int i = 0; i < 16; ++i)
        for (int k = 0; k < WAYS; ++k) out[16 * k + i] = o[k].read();
}
static void transpose(const int* in, int* out) {
#pragma HLS DATAFLOW
    Fifo o[WAYS];
    by_row(in, o);
    by_column(o, out);
}
static void copy(Fifo& in, Fifo& a, Fifo& b, int n) {
    for (int i = 0; i < n; ++i) {
        const int x = in.read();
        a.write(x), b.write(x);
    }
}
static void block(Fifo& in, Fifo& out, int n) {
    for (int j = 0; j < n / 32; ++j) {
        int kept[32];
        for (int i = 0; i < 32; ++i) kept[i] = in.read();
        for (int i = 0; i < 32; ++i) out.write(kept[i]);
    }
}
static void sum(Fifo& a, Fifo& b, Fifo& out, int n) {
    for (int i = 0; i < n; ++i) out.write(a.read() + b.read());
}
static void skipping(Fifo& in, Fifo& out, int n) {
#pragma HLS DATAFLOW
    Fifo skip, main_in, main_out;
    copy(in, skip, main_in, n);
    block(main_in, main_out, n);
    sum(skip, main_out, out, n);
}
static void upstream(const int* in, int* out, int n) {
#pragma HLS DATAFLOW
    Fifo to, from;
    load(in, to, n);
    skipping(to, from, n);
    store(from, out, n);
}
static void poll(Fifo& s, int* out, int n) {
    for (int i = 0; i < n;) {
        int x;
        if (s.read_nb(x)) out[i++] = x;
    }
}
static void starved(const int* in, int* out, int n) {
#pragma HLS DATAFLOW
    Fifo s;
    load(in, s, n - 1);
    poll(s, out, n);
}
static void look(Fifo& s, int* out) {  // gives up by itself
    int tries = 0, x = 0;
    while (!s.read_nb(x) && tries < 3000000) ++tries;
    out[0] = tries;
}
static void nothing(const int* in, Fifo& s) {
    if (in[0] < 0) s.write(0);
}
static void patient(const int* in, int* out) {
#pragma HLS DATAFLOW
    Fifo s;
    nothing(in, s);
    look(s, out);
}
static void put_two(const int* in, Fifo s[2]) {
    s[0].write(in[0]);
    s[1].write(in[1]);
}
static void plus_one(Fifo& s, Fifo& t) { t.write(s.read() + 1); }
static void get_two(Fifo t[2], int* out) {
    out[0] = t[0].read();
    out[1] = t[1].read();
}
static void counted(const int* in, int* out) {
#pragma HLS DATAFLOW
    Fifo s[2], t[2];
    put_two(in, s);
    for (int i = 0; i < 2;) {
#pragma HLS UNROLL
        plus_one(s[i], t[i]);
        ++i;
    }
    get_two(t, out);
}
static void push(const int* in, Fifo& a, Fifo& b) {
    for (int i = 0; i < 8; ++i)
        while (!a.write_nb(in[i])) {}
    for (int i = 0; i < 8; ++i) b.write(in[i]);
}
static void pull(Fifo& a, Fifo& b, int* out) {
    for (int i = 0; i < 8; ++i) out[i] = b.read() + a.read();
}
static void pushed(const int* in, int* out) {
#pragma HLS DATAFLOW
    Fifo pushed_a, b;
    push(in, pushed_a, b);
    pull(pushed_a, b, out);
}
void flow(const int* in, int* out, int n, int what) {
#pragma HLS INTERFACE m_axi port=in offset=slave bundle=gmem
#pragma HLS INTERFACE m_axi port=out offset=slave bundle=gmem
#pragma HLS INTERFACE s_axilite port=n
#pragma HLS INTERFACE s_axilite port=what
#pragma HLS INTERFACE s_axilite port=return
    if (what == 0) stages(in, out, n);
    if (what == 1) grid(in, out, n);
    if (what == 2) rows(in, out);
    if (what == 3) kept(in, out, n);
    if (what == 4) of_elements(in, out);
    if (what == 5) too_short(in, out);
    if (what == 6) no_such_element(in, out);
    if (what == 7) transpose(in, out);
    if (what == 8) upstream(in, out, n);
    if (what == 9) starved(in, out, n);
    if (what == 10) patient(in, out);
    if (what == 11) counted(in, out);
    if (what == 12) pushed(in, out);
}
"""
LINES = SOURCE.split("\n")


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(LINES, start=1) if text in line)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("arrays")
    write(folder / "kernels/flow/flow.cpp", SOURCE)
    bit = write_overlay(folder, {"flow_0": "flow"}, kernels=folder / "kernels")
    pynq_torch.use_board("csim", kernels=[folder / "kernels"])
    yield pynq_torch.load(bit).flow_0
    pynq_torch.current_board().close()


def run(kernel: Any, what: int, n: int = 64) -> tuple[np.ndarray, np.ndarray]:
    with allocate(n, "i4") as given, allocate(n, "i4") as got:
        given[:] = np.arange(n)
        got[:] = 0
        kernel(given, got, n, what)
        return np.array(given), np.array(got)


def fault(kernel: Any, what: int) -> str:
    with pytest.raises(KernelFault) as caught:
        run(kernel, what)
    return str(caught.value)


def test_each_iteration_of_an_unrolled_loop_is_a_process(kernel):
    x, y = run(kernel, 0)
    assert (y == x + 6).all()


def test_unrolled_loops_within_each_other_and_what_they_declare(kernel):
    x, y = run(kernel, 1)
    assert (y == x + 100 + 10 * (x // 2 % 2) + x % 2).all()


def test_iterations_that_hand_an_array_on_run_one_after_another(kernel):
    x, y = run(kernel, 2)
    assert (y[:8] == x[7::-1][:8] + 3).all()


def test_a_loop_that_is_not_unrolled_is_one_process(kernel):
    assert "the loop waits to write s[1], which is full with 2" in fault(kernel, 3)


def test_elements_of_an_array_of_streams_have_their_own_depths(kernel):
    x, y = run(kernel, 4)
    assert (y[:16] == 2 * x[:16]).all()


def test_a_fifo_of_an_array_is_named_as_its_directive_names_it(kernel):
    at = line_of("variable=s depth=32") - 1
    text = fault(kernel, 5)
    assert "first_then_second waits to write s[0], which is full with 7" in text
    assert f"Write #pragma HLS STREAM variable=s[0] depth=16 (flow.cpp:{at})" in text


def test_an_element_that_is_not_there_is_named_with_its_line(kernel):
    at = line_of("variable=s[2]")
    assert f"flow.cpp:{at}: STREAM names s[2], and the array has no such element" in fault(
        kernel, 6
    )


def test_an_array_of_fifos_is_told_once(kernel):
    text = fault(kernel, 7)
    assert "by_row waits to write o[0], which is full with 2" in text
    assert text.count("variable=") == 1
    assert "variable=o depth=15 (flow.cpp:" in text


def test_a_fifo_whose_reader_waits_for_room_needs_no_depth(kernel):
    text = fault(kernel, 8)
    assert (
        f"Write #pragma HLS STREAM variable=skip depth=31 (flow.cpp:{line_of('Fifo skip')})" in text
    )
    assert "variable=to" not in text
    assert "within it" not in text


def test_a_process_that_polls_what_nobody_fills_any_more_is_a_deadlock(kernel):
    text = fault(kernel, 9)
    assert "deadlock: poll polls s, which is empty. No depth helps" in text


def test_a_process_that_gives_up_by_itself_is_none(kernel):
    assert run(kernel, 10)[1][0] == 3_000_000


def test_a_loop_whose_body_counts_is_one_process(kernel):
    x, y = run(kernel, 11)
    assert (y[:2] == x[:2] + 1).all()


def test_a_process_that_polls_for_room_needs_depth(kernel):
    said = fault(kernel, 12)
    assert "push polls pushed_a, which is full" in said
    assert "variable=pushed_a depth=8" in said
