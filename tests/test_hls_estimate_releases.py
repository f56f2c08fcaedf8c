"""What later releases do by themselves, and what a function does with what its calls hand it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.hls import toolchain
from pynq_torch.hls.estimator import compiler

pytestmark = pytest.mark.skipif(compiler.tools() is not None, reason="clang-16 is not installed")


ROUNDS = """
#include <ap_int.h>
typedef ap_uint<32> word;
void k(const word in[8], const word key[64], word out[8]) {
    word now[8];
    for (int i = 0; i < 8; i++) now[i] = in[i];
    rounds: for (int i = 0; i < 64; i++) {
        word next[8];
        next[0] = now[7] ^ key[i];
        for (int j = 1; j < 8; j++) next[j] = now[j - 1];
        for (int j = 0; j < 8; j++) now[j] = next[j];
    }
    for (int i = 0; i < 8; i++) out[i] = now[i];
}
"""


@pytest.mark.parametrize(("tool", "few"), [("vitis-2022.2", False), ("vitis-2024.1", True)])
def test_pipelines_made_early_keep_their_state_in_registers(
    tmp_path: Path, tool: str, few: bool
) -> None:
    """Since 2023.2 the first compiler makes the pipeline: eight words are eight registers."""
    found = loop_of(estimate_of(tmp_path, ROUNDS, tool), "rounds").ii
    assert found is not None and (found == 1) is few


SCHEDULE = """
#include <ap_int.h>
typedef ap_uint<32> word;
static word mixed(const word *x) { return (*x >> 7) ^ (*x << 25) ^ (*x >> 3); }
void k(const word in[16], word out[64]) {
    word w[64];
    for (int i = 0; i < 16; i++) w[i] = in[i];
    extend: for (int i = 16; i < 64; i++) w[i] = PARTS + w[i - 7] + w[i - 16];
    for (int i = 0; i < 64; i++) out[i] = w[i];
}
"""


@pytest.mark.parametrize(
    "parts",
    ["mixed(&w[i - 15]) + mixed(&w[i - 2])", "(w[i - 15] ^ (w[i - 15] >> 7)) + (w[i - 2] >> 3)"],
)
def test_a_memory_is_copied_though_the_pipeline_writes_it(tmp_path: Path, parts: str) -> None:
    """Four reads and a write in an iteration: copies for the reads, and the word before it."""
    found = loop_of(
        estimate_of(tmp_path, SCHEDULE.replace("PARTS", parts), "vitis-2025.1"), "extend"
    )
    assert found.ii == 2 and "2 iterations before" in found.why


def test_a_table_behind_a_function_is_not_copied(tmp_path: Path) -> None:
    """Sixteen look-ups through an inlined function share the ports of one ROM, or few."""
    table = ", ".join(str(37 * i % 256) for i in range(256))
    text = f"""
    static const unsigned char box[256] = {{{table}}};
    static unsigned char look(const unsigned char *from, unsigned char at) {{ return from[at]; }}
    void k(unsigned char x[16]) {{
    #pragma HLS ARRAY_PARTITION variable=x complete
        turns: for (int r = 0; r < 10; r++) {{
    #pragma HLS PIPELINE
            for (int i = 0; i < 16; i++) x[i] = look(box, x[i]);
        }}
    }}
    """
    found = estimate_of(tmp_path, text, "vitis-2023.2")
    assert found.resources["BRAM_18K"] is not None and found.resources["BRAM_18K"] < 8


CHAIN = """
void k(const unsigned x[64], unsigned y[64]) {
    unsigned a = 1;
    turns: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        const unsigned b = ((a ^ (a >> 3)) + x[i]) ^ 0x5a5a;
        a = BODY;
        y[i] = a;
    }
}
"""


@pytest.mark.parametrize(
    ("body", "ii"),
    [
        ("b", 1), ("((b + 7) ^ (b << 3)) + b", 1),
        ("(((b + 7) ^ (b << 3)) + b) ^ (b >> 9)", 2),
        ("(((((b + 7) ^ (b << 3)) + b) ^ (b >> 9)) + i + b) ^ (b >> 5)", 2),
    ],
)  # fmt: skip
def test_logic_that_ends_in_the_next_cycle_is_a_pipeline_of_one(
    tmp_path: Path, body: str, ii: int
) -> None:
    """The tools pass it by within that cycle, as long as all of it takes 1.36 cycles at most."""
    assert (
        loop_of(estimate_of(tmp_path, CHAIN.replace("BODY", body), "vitis-2024.2"), "turns").ii
        == ii
    )


INNER = """
void k(float a[16][16], int n) {
    rows: for (int i = 0; i < 16; i++) {
#pragma HLS PIPELINE
        cells: for (int j = i; j < n; j++) {
            OWN
            a[i][j] = a[i][j] * 3;
        }
    }
}
"""


@pytest.mark.parametrize("own", ["", "#pragma HLS PIPELINE"])
def test_a_loop_that_cannot_be_unrolled_keeps_its_own_pipeline(tmp_path: Path, own: str) -> None:
    """The pipeline around it has no effect, which a warning says; its own directive has."""
    found = estimate_of(tmp_path, INNER.replace("OWN", "\n" + own + "\n"), "vivado-2019.1")
    assert loop_of(found, "cells").ii == (1 if own else None)
    assert loop_of(found, "rows").ii is None
    assert any("PIPELINE of the loop in line 3 has no effect" in one for one in found.warnings)


STEADY = """
void k(const int a[16][16], int b[16][16], int n) {
    rows: for (int i = 0; i < 16; i++) {
#pragma HLS PIPELINE
        cells: for (int j = FROM; j < n; j++) b[i][j] = a[i][j] + 3;
    }
}
"""


@pytest.mark.parametrize(
    ("tool", "begin", "ii"), [("vivado-2018.2", "0", 1), ("vivado-2018.2", "i", None)]
)
def test_vivado_makes_one_pipeline_of_a_nest_that_runs_as_often_in_each_turn(
    tmp_path: Path, tool: str, begin: str, ii: int | None
) -> None:
    found = estimate_of(tmp_path, STEADY.replace("FROM", begin), tool)
    assert [loop.ii for loop in found.loops] == ([ii] if ii else [None, None])
    assert any("PIPELINE of the loop in line 3" in one for one in found.warnings) is (ii is None)


TABLE = """
#include <hls_stream.h>
short weights[32][8] = {NUMBERS};
static void sums(hls::stream<short> &in, hls::stream<int> &out, short w[32][8]) {
CUT
    int sum[8];
#pragma HLS ARRAY_PARTITION variable=sum complete
    for (int j = 0; j < 8; j++) {
#pragma HLS UNROLL
        sum[j] = 0;
    }
    rows: for (int i = 0; i < 32; i++) {
#pragma HLS PIPELINE
        const short x = in.read();
        for (int j = 0; j < 8; j++) sum[j] += x * w[i][j];
    }
    for (int j = 0; j < 8; j++) out.write(sum[j]);
}
void k(hls::stream<short> &in, hls::stream<int> &out) {
    weights[in.read() & 31][0] = 1;
    sums(in, out, weights);
}
"""


@pytest.mark.parametrize(("cut", "ii"), [("", 4), ("ARRAY_RESHAPE variable=w complete dim=2", 1)])
def test_directives_on_an_argument_reach_the_global_array(
    tmp_path: Path, cut: str, ii: int
) -> None:
    """All calls hand over one table: LLVM gives the function that itself."""
    numbers = ", ".join(str(i * 7 % 100) for i in range(256))
    text = TABLE.replace("NUMBERS", numbers).replace("CUT", f"#pragma HLS {cut}" if cut else "")
    assert loop_of(estimate_of(tmp_path, text, "vivado-2017.4"), "rows").ii == ii


ON = """
int table[64] = {1, 2, 3, 4, 5, 6, 7};
static int sum(const int w[64], int n) {
#pragma HLS INLINE
#pragma HLS ARRAY_RESHAPE variable=w block factor=8
    int sum = 0;
    add: for (int i = 0; i < 8; ++i) {
#pragma HLS PIPELINE
        for (int j = 0; j < 8; ++j) sum += w[i + 8 * j] * n;
    }
    return sum;
}
static int kept(const int v[64], int n) {
#pragma HLS INLINE off
    return sum(v, n);
}
static int on(const int u[64], int n) {
#pragma HLS INLINE
    return kept(u, n);
}
int k(int n) { return on(table, n); }
"""


def test_directives_on_an_argument_reach_a_global_array_through_calls_that_stay(
    tmp_path: Path,
) -> None:
    assert loop_of(estimate_of(tmp_path, ON, "vivado-2019.2"), "add").ii == 1


HELPERS = """
#include <hls/utils/x_hls_utils.h>
#include <hls_vector.h>
#include <cmath>
#include <cstdio>
static bool works(float x, double y) {
    fp_struct<float> p(x);
    fp_struct<double> q(y);
    ap_int<80> wide = 5;
    wide <<= 60;
    ap_int<128> turned = wide;
    turned.b_not();
    ap_uint<20> three = 3;
    hls::vector<half, 2> pair = half(2.0f);
    const double parts = std::scalbn(p.mantissa().to_int(), p.expv() - 23);
    return fp_struct<float>(p.data()).to_float() == x && q.to_double() == y &&
           p.expv() == std::ilogb(x) && parts == std::fabs(x) &&
           wide.countLeadingZeros() == 17 && three.countLeadingZeros() == 18 &&
           turned.countLeadingZeros() == 0 && three.to_short() == 3 &&
           three.xnor_reduce() != three.xor_reduce() && hls::reg(3) == 3 && pair[1] == half(2.0f);
}
int main() { std::printf("%d", works(1.5f, -2.25) && works(-1e-3f, 3e300)); }
"""


@pytest.mark.parametrize("light", [False, True])
def test_the_tools_helpers_compute(tmp_path: Path, light: bool) -> None:
    """With the headers that kernels are built with, and with those of the estimator."""
    assert _prints(tmp_path, HELPERS, light=light) == "1"


@pytest.mark.parametrize("light", [False, True])
def test_numbers_and_their_bits_stand_beside_each_other(tmp_path: Path, light: bool) -> None:
    """Fixed point with parts of integers, half, C's numbers, and as bits."""
    assert _prints(tmp_path, MIXED, light=light) == "1"


def _prints(folder: Path, text: str, *, light: bool) -> str:
    source, program = folder / "main.cpp", folder / "main"
    source.write_text(text, encoding="utf-8")
    folders = [f"-I{path}" for path in toolchain.include_dirs()]
    command = compiler.command_of(source, (), ()) if light else ["g++", "-std=gnu++17", *folders]
    subprocess.run(
        [*command, str(source), "-o", str(program), "-lstdc++", "-lm"], check=True, timeout=120
    )
    said = subprocess.run([str(program)], check=True, capture_output=True, text=True, timeout=60)
    return said.stdout


MIXED = """
#include <ap_fixed.h>
#include <ap_int.h>
#include <hls_half.h>
#include <cmath>
#include <cstdio>
extern "C" float __hls_scale_f32(float x, int n) { return std::ldexp(x, n); }
extern "C" double __hls_scale_f64(double x, int n) { return std::ldexp(x, n); }
static bool works(ap_fixed<16, 8> a, ap_ufixed<12, 4> b, ap_int<8> n, ap_uint<16> u, half h) {
    ap_fixed<16, 8> of_bits = a.range(15, 8), of_bit = u[3], shifted = a << ap_uint<3>(1);
    ap_fixed<16, 8> masked = a;
    masked &= 0x0f;
    int sum = 40;
    sum += u(7, 4);
    sum <<= u(1, 0);
    ap_uint<16> put = 0;
    put.range(7, 4) = a;
    shifted >>= 3LL;
    return of_bits == 5 && of_bit == 1 && (a | b) == ap_fixed<17, 9>(7.5) && (a & 3) == 1 &&
           (a ^ n) == 2.5 && masked == 5 && sum == 400 && put == 0x50 && shifted == 1.375 &&
           (a + u[3]) == 6.5 && (a * u[3]) == 5.5 && (n + h) == 9 && (h < n) && -u(7, 4) == -10;
}
int main() { std::printf("%d", works(5.5, 7, 7, 0xa9 + 2, half(2.0f))); }
"""
HIDDEN = """
constexpr int LANES = 2;
struct Shape { static constexpr int LANES = 8; };
template <typename S> void fill(int sums[64], int n) {
#pragma HLS INLINE off
    lanes: for (int p = 0; p < n; p += S::LANES) {
#pragma HLS PIPELINE
        for (int l = 0; l < S::LANES; ++l) sums[p + l] = p;
    }
}
template <typename S> void body(int *y, int n) {
    int sums[64];
    constexpr int LANES = S::LANES;
#pragma HLS ARRAY_PARTITION variable=sums type=cyclic factor=LANES dim=1
    fill<S>(sums, n);
    for (int i = 0; i < 64; i++) y[i] = sums[i];
}
void k(int y[64], int n) {
    static_assert(LANES == 2, "the global one is hidden in `body`");
    body<Shape>(y, n);
}
"""


def test_a_name_of_the_function_hides_a_global_constant(tmp_path: Path) -> None:
    """ARRAY_PARTITION by a template's own LANES: eight banks, though another LANES is two."""
    assert loop_of(estimate_of(tmp_path, HIDDEN, "vitis-2024.1"), "lanes").ii == 1


FAR = """
static void low(int x[64], int n) {
#pragma HLS INLINE off
    cells: for (int i = 0; i < n; i++) x[i] += 1;
}
static void middle(int x[64], int n) {
#pragma HLS INLINE off
    if (n > 3) low(x, n);
    x[0] = n;
}
void k(int x[64], int n) {
    turns: for (int i = 0; i < n; i++) middle(x, n - i);
}
"""


def test_a_loop_that_calls_loops_in_turn_is_no_pipeline_of_its_own(tmp_path: Path) -> None:
    """The loops are two calls away: the inner one is the pipeline, nothing is to be unrolled."""
    found = estimate_of(tmp_path, FAR, "vitis-2024.1")
    assert loop_of(found, "turns").ii is None and loop_of(found, "cells").ii == 1
    assert not any("has no effect" in one for one in found.warnings)


LINE = """
void k(int *y, short x) {
    static short line[128];
#pragma HLS ARRAY_PARTITION variable=line KIND
    int sum = 0;
    turns: for (int i = 127; i > 0; i--) {
#pragma HLS PIPELINE
#pragma HLS UNROLL factor=2
        line[i] = line[i - 1];
        sum += line[i];
    }
    line[0] = x;
    *y = sum;
}
"""


@pytest.mark.parametrize(
    ("kind", "text", "tool", "ii"),
    [
        ("complete", "", "vivado-2019.1", 2),
        ("complete", "", "vitis-2022.1", 1),
        ("complete", "static ", "vivado-2019.1", 1),  # of a local array addresses are compared
    ],
)
def test_a_line_of_static_registers_moves_on_once_a_cycle(
    tmp_path: Path, kind: str, text: str, tool: str, ii: int
) -> None:
    source = LINE.replace("KIND", kind).replace(text, "") if text else LINE.replace("KIND", kind)
    assert loop_of(estimate_of(tmp_path, source, tool), "turns").ii == ii


APART = """
void k(int x, int o[3]) {
    static WINDOW
#pragma HLS ARRAY_PARTITION variable=w complete dim=0
    shift: for (int i = 0; i < 7; i++) {
#pragma HLS PIPELINE
        SHIFT
    }
    w[0]FIELD = x;
    o[0] = w[7]FIELD;
}
"""


@pytest.mark.parametrize(
    ("window", "shift", "field"),
    [
        ("int w[8][3];", "for (int r = 0; r < 3; r++) w[i][r] = w[i + 1][r];", "[1]"),
        ("struct { int r, i; } w[8];", "w[i].r = w[i + 1].r; w[i].i = w[i + 1].i;", ".r"),
    ],
)
def test_registers_of_rows_and_fields_are_apart(
    tmp_path: Path, window: str, shift: str, field: str
) -> None:
    text = APART.replace("WINDOW", window).replace("SHIFT", shift).replace("FIELD", field)
    assert loop_of(estimate_of(tmp_path, text, "vivado-2019.1"), "shift").ii == 1


HALF = """
#include <hls_half.h>
void k(const half x[64], const half w[64], half *y) {
    half sum = 0;
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        sum += x[i] * w[i];
    }
    *y = sum;
}
"""


@pytest.mark.parametrize(
    ("tool", "part", "clock", "interval"),
    [
        ("vitis-2021.1", "xc7z020-clg400-1", 10, 6),
        ("vivado-2019.2", "xc7z020clg400-1", 10, 5),
        ("vitis-2024.2", "xczu7ev-ffvc1156-2-e", 3.33, 5),
    ],
)
def test_half_has_cores_of_its_own(
    tmp_path: Path, tool: str, part: str, clock: float, interval: int
) -> None:
    found = estimate_of(tmp_path, HALF, tool, part=part, clock=clock)
    assert loop_of(found, "each").ii == interval  # `float` takes 5, 5 and 11 cycles
    assert found.resources["DSP"] == 4


@pytest.mark.parametrize(
    ("tool", "blocks"), [("vivado-2015.4", 1), ("vivado-2017.4", 0), ("vitis-2022.1", 0)]
)
def test_early_releases_take_a_block_for_the_smallest_product(
    tmp_path: Path, tool: str, blocks: int
) -> None:
    text = "void k(unsigned char x, unsigned char y, unsigned short *z) { *z = x * y; }"
    assert estimate_of(tmp_path, text, tool).resources["DSP"] == blocks


READ_AT_ONCE = """
OUTSIDE
void k(unsigned x, unsigned char *y) {
    INSIDE
    unsigned char found = 0;
    each: for (int i = 0; i < 1000; ++i) {
#pragma HLS PIPELINE
        for (int j = 0; j < 4; ++j) found += table[j][i] == x;
    }
    *y = found;
}
"""


@pytest.mark.parametrize(("place", "blocks"), [("OUTSIDE", 8), ("INSIDE", 16)])
def test_vivado_takes_a_table_of_a_file_apart(tmp_path: Path, place: str, blocks: int) -> None:
    rows = ", ".join("{" + ", ".join(str(i * j << 18) for i in range(1000)) + "}" for j in range(4))
    text = READ_AT_ONCE.replace(place, f"static const unsigned table[4][1000] = {{{rows}}};")
    text = text.replace("OUTSIDE", "").replace("INSIDE", "")
    found = estimate_of(tmp_path, text, "vivado-2019.2")
    assert loop_of(found, "each").ii == 1
    assert found.resources["BRAM_18K"] == blocks  # two for each row; or eight, twice
