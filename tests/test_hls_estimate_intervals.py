"""``hls estimate``: what is no reason for a longer interval, though it may look like one."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.hls import Estimate, estimate
from pynq_torch.hls.estimator import compiler
from pynq_torch.hls.estimator.scev import parse

MISSING = compiler.tools()
pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(MISSING is not None, reason=MISSING or ""),
]

#: A sum of one bit more than 64: clang hands it over in two words.
WIDE = """
#include <ap_int.h>
void k(const ap_uint<8> x[8][64], ap_uint<WIDTH> y[64]) {
#pragma HLS ARRAY_PARTITION variable=x complete dim=1
    for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        ap_uint<WIDTH> sum = 0;
        for (int j = 0; j < 8; ++j) sum += x[j][i] * x[j][i];
        y[i] = sum;
    }
}
"""
STRIDED = """
static int image[4096];
#pragma HLS ARRAY_PARTITION variable=image cyclic factor=4
void k(int y[64][4], int width, int first) {
#pragma HLS ARRAY_PARTITION variable=y complete dim=2
#pragma HLS ARRAY_PARTITION variable=image cyclic factor=4
    for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        for (int j = 0; j < 4; ++j) y[i][j] = image[first + i * width + j];
    }
    for (int i = 0; i < 4096; ++i) image[i] += 1;
}
"""
#: The sum of an element that is added last takes one addition from one iteration to the next.
ELEMENTS = """
void k(const int x[4][64], const int u[4][64], int y[8][8]) {
#pragma HLS ARRAY_PARTITION variable=x complete dim=1
#pragma HLS ARRAY_PARTITION variable=u complete dim=1
    int sums[8][8];
#pragma HLS ARRAY_PARTITION variable=sums complete dim=0
    add: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        for (int m = 0; m < 8; ++m)
            sums[m][i % 8] += x[0][i] + x[1][i] + u[2][i] + u[3][i];
    }
    out: for (int m = 0; m < 8; ++m)
        for (int i = 0; i < 8; ++i) y[m][i] = sums[m][i];
}
"""
TEMPLATE = """
template <int K, int D> int find(const signed char query[D], const signed char table[K][D]) {
#pragma HLS ARRAY_PARTITION variable=query cyclic factor=8
#pragma HLS ARRAY_PARTITION variable=table cyclic factor=2 dim=1
#pragma HLS ARRAY_PARTITION variable=table cyclic factor=8 dim=2
    int sum = 0;
    for (int i = 0; i < D; ++i) {
#pragma HLS PIPELINE
#pragma HLS UNROLL factor=8
        sum += query[i] * table[1][i];
    }
    return sum;
}
int k(const signed char query[256], const signed char table[10][256]) {
    return find<10, 256>(query, table);
}
"""


def _of(folder: Path, text: str, clock: float = 10.0, **words: str) -> Estimate:
    for word, value in words.items():
        text = text.replace(word, value)
    source = folder / "kernel.cpp"
    source.write_text(text, encoding="utf-8")
    return estimate(source, "k", clock=clock, tool="vitis")


@pytest.mark.parametrize("width", ["63", "64", "90", "128"])
def test_wide_numbers_are_no_memory(tmp_path: Path, width: str) -> None:
    found = _of(tmp_path, WIDE, WIDTH=width)
    assert [loop.ii for loop in found.loops] == [1]
    assert found.resources["BRAM_18K"] == 0


def test_a_stride_that_an_argument_tells_leaves_the_banks_known(tmp_path: Path) -> None:
    assert _of(tmp_path, STRIDED).loops[0].ii == 1
    several = parse("{(4 + {%a,+,%width}<%outer>),+,8}<%inner>")
    assert several.constant == 4
    assert dict(several.terms)["loop inner"] == 8 and dict(several.terms)["%a"] == 1
    assert [name for name, _ in several.terms if "%width" in name and "<%outer>" in name]


def test_an_element_of_an_array_is_added_last(tmp_path: Path) -> None:
    """The choice among eight registers (not 64) and one addition fit into a cycle."""
    found = _of(tmp_path, ELEMENTS, clock=7)
    assert {loop.name: loop.ii for loop in found.loops}["add"] == 1


def test_dimensions_of_an_argument_hold_in_a_template_that_takes_it(tmp_path: Path) -> None:
    assert [loop.ii for loop in _of(tmp_path, TEMPLATE).loops] == [1]


FEW = """
void k(const int x[64], int y[64]) {
    slow: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE II=32
        y[i] = x[i] + 1;
    }
}
"""


def test_an_interval_is_no_longer_than_an_iteration(tmp_path: Path) -> None:
    """The tools report the depth where a directive asks for more."""
    loop = _of(tmp_path, FEW).loops[0]
    assert loop.ii == loop.iteration_latency[1] < 32


NEST = """
void k(const int x[16][16], int y[16], int z[16], int n) {
#pragma HLS INTERFACE ap_memory port=y
    outer: for (int i = 0; i < 16; ++i) {
        BEFORE
        inner: for (int j = 0; j < COUNT; ++j) {
#pragma HLS PIPELINE
            z[i] += x[i][j];
        }
    }
}
"""


@pytest.mark.parametrize(
    ("words", "loops"),
    [
        ({"BEFORE": "y[i] = i;", "COUNT": "16"}, ["outer_inner"]),
        ({"BEFORE": "y[i] = i;", "COUNT": "n"}, ["outer", "inner"]),
        ({"BEFORE": "", "COUNT": "n"}, ["outer_inner"]),
    ],
)
def test_what_is_written_between_loops_needs_an_iteration_of_the_inner_one(
    tmp_path: Path, words: dict[str, str], loops: list[str]
) -> None:
    """Where the inner loop may have none, Vitis leaves the loops two."""
    assert [loop.name for loop in _of(tmp_path, NEST, **words).loops] == loops


BANKS = """
static int kept[8][64];
void k(const int x[64][4], int y[64][4], int first) {
#pragma HLS ARRAY_PARTITION variable=x complete dim=2
#pragma HLS ARRAY_PARTITION variable=y complete dim=2
    int flat[512];
#pragma HLS ARRAY_PARTITION variable=flat cyclic factor=8
#pragma HLS ARRAY_PARTITION variable=kept complete dim=1
    write: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        for (int j = 0; j < 4; ++j) flat[FROM + j] = x[i][j];
    }
    read: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        for (int j = 0; j < 4; ++j) y[i][j] = flat[first + 4 * i + j];
    }
    beside: for (int i = 0; i < 16; ++i) {
#pragma HLS PIPELINE
        for (int j = 0; j < 4; ++j) kept[3][4 * i + j] = x[i][j];
    }
    last: for (int i = 0; i < 64; ++i) y[i][0] += kept[3][i];
}
"""


@pytest.mark.parametrize(
    ("start", "interval"), [("8 * i", 1), ("4 * i", 1), ("5 * i", 1), ("first + 5 * i", 2)]
)
def test_a_write_that_chooses_its_bank_meets_the_others(
    tmp_path: Path, start: str, interval: int
) -> None:
    found = {loop.name: loop.ii for loop in _of(tmp_path, BANKS, FROM=start).loops}
    assert found["write"] == interval
    assert found["read"] == 1
    assert found["beside"] == 1  # the second dimension is cut too


ROM = """
void k(const unsigned char x[64][4], unsigned char y[64][4]) {
#pragma HLS ARRAY_PARTITION variable=x complete dim=2
#pragma HLS ARRAY_PARTITION variable=y complete dim=2
    static const unsigned char squares[8] = {0, 1, 4, 9, 16, 25, 36, 49};
#pragma HLS BIND_STORAGE variable=squares type=KIND impl=lutram
    for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        for (int j = 0; j < 4; ++j) y[i][j] = squares[x[i][j] & 7];
    }
}
"""


@pytest.mark.parametrize(("kind", "interval"), [("rom_np", 1), ("rom_1p", 4)])
def test_a_table_of_one_port_is_not_copied(tmp_path: Path, kind: str, interval: int) -> None:
    assert _of(tmp_path, ROM, KIND=kind).loops[0].ii == interval


LANES = """
typedef unsigned char words __attribute__((ext_vector_type(4)));
void k(const words *x, unsigned char y[64][2], int n) {
#pragma HLS INTERFACE m_axi port=x
#pragma HLS ARRAY_PARTITION variable=y complete dim=2
    const unsigned char *bytes = (const unsigned char *)x;
    for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        for (int j = 0; j < 2; ++j) y[i][j] = bytes[START + j];
    }
}
"""


@pytest.mark.parametrize(("start", "interval"), [("4 * i", 1), ("n * i", 2)])
def test_bytes_share_a_word_where_words_are_known_to_begin(
    tmp_path: Path, start: str, interval: int
) -> None:
    assert _of(tmp_path, LANES, START=start).loops[0].ii == interval


HISTOGRAM = """
void count(const unsigned char x[1024], int bins[256]) {
    for (int i = 0; i < 1024; ++i) {
#pragma HLS PIPELINE
        bins[x[i]] += 1;
    }
}
"""


@pytest.mark.parametrize(("tool", "misses"), [("vitis", False), ("vivado", True)])
def test_vitis_keeps_the_element_that_data_chose_last(
    tmp_path: Path, tool: str, misses: bool
) -> None:
    """A register beside the memory has it for the next iteration: `reuse_reg` in reports."""
    source = tmp_path / "kernel.cpp"
    source.write_text(HISTOGRAM)  # at 8 ns Vivado HLS has no time to read, add and write
    found = estimate(source, "count", tool=tool, clock=8)
    assert found.loops[0].ii == 2
    assert any("clock" in warning for warning in found.warnings) is misses


HEADED = """
#include <hls_stream.h>
void rows(hls::stream<int>& x, hls::stream<int>& y) {
    row: for (int r = 0; r < 64; ++r) {
        int sum = 0;
        for (int i = 0; i < 4; ++i) sum += x.read();
        column: for (int c = 0; c < 100; ++c) {
#pragma HLS PIPELINE
            y.write(sum += x.read());
        }
    }
}
"""


def test_words_of_a_stream_between_loops_keep_them_apart(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text(HEADED)
    loops = {loop.name: loop for loop in estimate(source, "rows", tool="vitis").loops}
    assert loops["row"].ii is None
    assert (loops["column"].ii, loops["column"].trip_count) == (1, (100, 100))


#: Two rounds of a permutation: eight LUTs, one after another, of 25 operations.
LOGIC = """
#include <stdint.h>
uint64_t turn(uint64_t x, int n) { return x << n | x >> (64 - n); }
uint64_t mix(uint64_t a, uint64_t b) {
    for (int i = 0; i < 24; ++i) {
#pragma HLS PIPELINE
        for (int j = 0; j < ROUNDS; ++j) {
            const uint64_t c = a ^ turn(b, 1);
            a = (c ^ turn(a, 9)) ^ (~b & c);
            b = (a & c) ^ (turn(b, 3) | a);
        }
    }
    return a ^ b;
}
"""


@pytest.mark.parametrize(("rounds", "interval"), [(2, 1), (6, 2), (10, 4)])
def test_logic_that_one_operation_takes_is_in_its_lut(
    tmp_path: Path, rounds: int, interval: int
) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text(LOGIC.replace("ROUNDS", str(rounds)))
    assert estimate(source, "mix", tool="vitis").loops[0].ii == interval


#: The sum of all before, in an array; WHERE says which element is read, and which written.
RUNNING = """
void k(const int in[128], int out[128]) {
    out[0] = in[0];
    a: for (int i = 1; i < 128; ++i) {
#pragma HLS PIPELINE
        BODY
    }
}
"""


@pytest.mark.parametrize("tool", ["vivado", "vitis"])
def test_what_the_iteration_before_has_written_is_in_a_register(tmp_path, tool):
    def interval(body):
        (tmp_path / "k.cpp").write_text(RUNNING.replace("BODY", body))
        return estimate(tmp_path / "k.cpp", "k", clock=6, tool=tool).loops[0].ii

    assert interval("out[i] = out[i - 1] + in[i];") == 1
    assert interval("if (in[i] > 3) out[i] = out[i - 1] + in[i];") > 1
    assert interval("out[i] = out[i - 1] + in[i]; out[in[i] & 127] = 3;") > 1


@pytest.mark.parametrize(
    ("tool", "kind", "interval"),
    [
        ("vivado-2015.2", "int", 1),
        ("vivado-2015.2", "volatile int", 3),
        ("vitis-2022.1", "volatile int", 1),
    ],
)
def test_a_volatile_variable_is_read_once_in_a_state(
    tmp_path: Path, kind: str, interval: int, tool: str
) -> None:
    text = f"""
void k(const int a[64], int b[64]) {{
    {kind} word;
    l: for (int i = 0; i < 64; ++i) {{
#pragma HLS PIPELINE
        word = a[i];
        int low = word & 255, middle = word >> 8 & 255, high = word >> 16;
        b[i] = low + (middle ^ high);
    }}
}}
"""
    found = estimate_of(tmp_path, text, tool)
    assert loop_of(found, "l").ii == interval
    said = "3 reads of `word`, which is volatile, in an iteration, one a cycle"
    assert (said in loop_of(found, "l").why) == (interval == 3)
