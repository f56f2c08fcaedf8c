"""What calls hand over to a function that is one piece of hardware for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

SCALE = """
static void scale(const float in[64], float out[64], int n) {
#pragma HLS INLINE off
    each: for (int i = 0; i < n; ++i) out[i] = in[i] * 3 + n;
}
void k(const float x[64], float y[64], float z[64]) {
PRAGMA
    scale(x, y, 16);
    scale(y, z, 64);
}
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_calls_with_several_numbers_share_one_piece_of_hardware(tmp_path: Path, tool: str) -> None:
    found = estimate_of(tmp_path, SCALE.replace("PRAGMA", ""), tool)
    assert found.resources["DSP"] == 5  # one product, one sum
    assert [one.trip_count for one in found.loops] == [(16, 64)]


def test_each_process_is_made_for_its_numbers(tmp_path: Path) -> None:
    found = estimate_of(tmp_path, SCALE.replace("PRAGMA", "#pragma HLS DATAFLOW"), "vitis")
    assert found.resources["DSP"] == 10
    assert [one.trip_count for one in found.loops] == [(16, 16), (64, 64)]


def test_a_number_that_all_calls_name_is_a_constant(tmp_path: Path) -> None:
    found = estimate_of(tmp_path, SCALE.replace("PRAGMA", "").replace("y, 16", "y, 64"), "vitis")
    assert [one.trip_count for one in found.loops] == [(64, 64)]


def test_a_number_of_another_call_leaves_the_length_unknown(tmp_path: Path) -> None:
    text = SCALE.replace("PRAGMA", "").replace("float z[64]", "float z[64], int n")
    found = estimate_of(tmp_path, text.replace("y, 16", "y, n"), "vitis")
    assert [one.trip_count for one in found.loops] == [(None, None)]


RELU = """
static void relu(const int in[1][32], int out[1][32], int least) {
#pragma HLS INLINE off
    each: for (int i = 0; i < 32; ++i) {
#pragma HLS UNROLL factor=2
        out[0][i] = in[0][i] < least ? least : in[0][i] + least;
    }
}
static void layer(int a[1][32], int b[1][32]) {
#pragma HLS INLINE off
    relu(a, OUTSIDE, 3);
    relu(a, OUTSIDE, 4);
}
void k(const int x[32], int y[32]) {
    int u[1][32], v[1][32];
    for (int i = 0; i < 32; ++i) u[0][i] = x[i] + i;
    layer(u, OTHER);
    for (int i = 0; i < 32; ++i) u[0][i] *= x[i];
    layer(u, OTHER);
    for (int i = 0; i < 32; ++i) y[i] = u[0][i] + v[0][i];
}
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_an_array_that_is_handed_over_twice_is_one_memory(tmp_path: Path, tool: str) -> None:
    def interval(outside: str, other: str) -> int | None:
        text = RELU.replace("OUTSIDE", outside).replace("OTHER", other)
        text = text.replace("factor=2", "factor=2\n#pragma HLS PIPELINE")
        return loop_of(estimate_of(tmp_path, text, tool), "each").ii

    assert interval("b", "v") == 1  # two reads of one memory, two writes of the other
    assert interval("b", "u") == 2  # four accesses of one, through two functions
    assert interval("a", "v") == 2


CONTEXT = """
struct Context { unsigned char data[64]; unsigned length; unsigned state[8]; };
static void begin(Context *c) {
#pragma HLS INLINE off
    c->length = 0;
    clear: for (int i = 0; i < 8; ++i) c->state[i] = 77 * i;
}
static void mix(unsigned state[8], unsigned char data[64]) {
#pragma HLS INLINE off
    mixed: for (int i = 0; i < 8; ++i) state[i] += data[i];
}
static void update(Context *c, const unsigned char *x) {
#pragma HLS INLINE off
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        c->data[c->length & 63] = x[i];
        c->state[i & 7] += x[i];
        ++c->length;
    }
    mix(c->state, c->data);
}
void k(const unsigned char x[64], unsigned y[8]) {
    VARIABLE
    begin(&c);
    update(&c, x);
    for (int i = 0; i < 8; ++i) y[i] = c.state[i] + c.length;
}
"""


@pytest.mark.parametrize("variable", ["Context c;", "static Context c;", "Context c = {};"])
def test_each_member_of_a_struct_handed_by_address_is_a_memory(
    tmp_path: Path, variable: str
) -> None:
    found = estimate_of(tmp_path, CONTEXT.replace("VARIABLE", variable), "vitis")
    assert loop_of(found, "each").ii == 1  # two accesses of `state`, one of `data`
    assert not found.warnings


def test_a_struct_that_something_takes_as_a_whole_stays_one_memory(tmp_path: Path) -> None:
    text = CONTEXT.replace("VARIABLE", "Context c, d;").replace("update(&c, x);", "d = c; c = d;")
    whole = text.replace("begin(&c);", "begin(&c); update(&d, x); update(&c, x);")
    assert loop_of(estimate_of(tmp_path, whole, "vitis"), "each").ii == 2


METHODS = """
class Window {
    int rows[64], last[64], count;
public:
    Window() : count(0) { clear: for (int i = 0; i < 64; ++i) last[i] = i; }
    void put(const int x[64]);
    int sum(int at) { return rows[at] + last[at] + count; }
};
void Window::put(const int x[64]) {
#pragma HLS INLINE off
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        last[i] += rows[i];
        rows[i] = x[i];
    }
    ++count;
}
void k(const int x[64], int y[64]) {
    Window window;
    window.put(x);
    sums: for (int i = 0; i < 64; ++i) y[i] = window.sum(i);
}
"""


def test_members_of_an_object_are_memories_in_its_methods(tmp_path: Path) -> None:
    found = estimate_of(tmp_path, METHODS, "vitis")
    assert loop_of(found, "each").ii == 1
    assert loop_of(found, "clear").trip_count == (64, 64)  # the constructor's
    assert not found.warnings


INHERITED = """
#include <ap_fixed.h>
typedef ap_fixed<8, 2, AP_RND_CONV, AP_SAT> sample_t;
void k(const int x[64], sample_t y[64]) {
    const sample_t signs[4] = {-1, 1, 0, 1};
    each: for (int i = 0; i < 64; ++i) y[i] = signs[x[i] & 3];
}
"""


def test_arguments_without_a_name_stay_as_they_are(tmp_path: Path) -> None:
    # A constructor that a class inherits has such arguments; -1, 0 and 1 call it.
    found = estimate_of(tmp_path, INHERITED, "vitis")
    assert loop_of(found, "each").trip_count == (64, 64)


LAYER = """
template <int N> struct Layer {
    int kind = 3;
    int in[N], out[N];
    void run() {
        each: for (int i = 0; i < N; ++i) out[i] = in[N - 1 - i] * kind;
    }
};
void k(const int x[1024], int y[1024]) {
    Layer<1024> layer;
    for (int i = 0; i < 1024; ++i) layer.in[i] = x[i];
    layer.run();
    for (int i = 0; i < 1024; ++i) y[i] = layer.out[i];
}
"""


def test_arrays_of_a_templates_object_stay_memories(tmp_path: Path) -> None:
    # No name is known of the members that `this` has in a template.
    assert estimate_of(tmp_path, LAYER, "vivado").resources["BRAM_18K"] == 4


SIZES = """
static void scale(const float *in, float *out, int n) {
#pragma HLS INLINE off
    each: for (int i = 0; i < n; ++i) out[i] = in[i] * 3 + n;
}
void k(const float x[64], float y[64]) {
    float some[64], more[SIZE], last[64];
    for (int i = 0; i < 64; ++i) some[i] = more[i] = x[i];
    scale(some, last, 64);
    scale(more, last, 32);
    for (int i = 0; i < 64; ++i) y[i] = last[i] + 1;
}
"""


@pytest.mark.parametrize(("size", "pieces"), [(64, 1), (128, 2)])
def test_calls_with_arrays_of_several_sizes_have_hardware_of_their_own(
    tmp_path: Path, size: int, pieces: int
) -> None:
    # NTRU's sha3_256 is two modules in reports of Vivado HLS: one gets 204 bytes, one 731.
    found = estimate_of(tmp_path, SIZES.replace("SIZE", str(size)), "vivado")
    assert found.resources["DSP"] == 5 * pieces + 2


@pytest.mark.parametrize("tool", ["vitis-2022.1", "vivado-2019.1"])
def test_an_argument_that_is_a_struct_of_an_array_has_the_array_s_ports(
    tmp_path: Path, tool: str
) -> None:
    """`Disaggregating variable`, says a log of 2022.1; in a bus it is a wide word."""
    text = """
    struct matrix { int of[16][16]; };
    void k(const int x[16], matrix &y) {
    PORT
        row: for (int i = 0; i < 16; ++i) {
    #pragma HLS PIPELINE
            for (int j = 0; j < 16; ++j) y.of[i][j] = x[i] + j;
        }
    }
    """
    apart = estimate_of(tmp_path, text.replace("PORT", ""), tool)
    assert apart.loops[0].ii == 8 and "partition it by 8 in dimension 2" in apart.loops[0].why
    bus = "#pragma HLS INTERFACE m_axi port=y"
    assert "partition" not in estimate_of(tmp_path, text.replace("PORT", bus), tool).loops[0].why
