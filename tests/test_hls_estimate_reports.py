"""Rules that single published reports showed: each holds a report's kernel in a few lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from pynq_torch import hls
from pynq_torch.errors import KernelBuildError
from pynq_torch.hls.estimator.factored import has_common_factors
from pynq_torch.hls.estimator.result import Estimate, LoopEstimate


def estimate(folder: Path, text: str, **options: object) -> Estimate:
    source = folder / "k.cpp"
    source.write_text(text)
    return hls.estimate(source, "k", **options)  # type: ignore[arg-type]


def loop(found: Estimate, name: str) -> LoopEstimate:
    return next(one for one in found.loops if one.name.endswith(name))


FILTER = """
#include <ap_int.h>
void k(const TYPE x[16], SUM *y) {
#pragma HLS PIPELINE
#pragma HLS ARRAY_PARTITION variable=x complete
    const ap_int<8> c[16] = {91, 23, 77, 45, 101, 59, 37, 83, 83, 37, 59, 101, 45, 77, 23, 91};
    SUM sum = 0;
    for (int i = 0; i < 16; ++i) sum += x[i] * c[i];
    *y = sum;
}
"""


@pytest.mark.parametrize(
    ("kind", "total", "tool", "products"),
    [
        ("ap_int<16>", "ap_int<24>", "vitis", 8),  # a filter whose coefficients come twice
        ("ap_int<16>", "ap_int<24>", "vitis-2023.2", 8),
        ("ap_int<16>", "ap_int<24>", "vitis-2021.1", 16),
        ("ap_int<16>", "ap_int<24>", "vivado", 16),
        ("ap_int<16>", "ap_int<30>", "vitis", 16),  # each product has a type of its own
    ],
)
def test_equal_coefficients_share_a_product(
    tmp_path: Path, kind: str, total: str, tool: str, products: int
) -> None:
    text = FILTER.replace("TYPE", kind).replace("SUM", total)
    assert estimate(tmp_path, text, tool=tool).as_json()["resources"]["DSP"] == products


def test_products_have_factors_in_common_or_not() -> None:
    product = "define void @k() {{\n  %x = sext i16 %a to i{0}\n  %p = mul nsw i{0} %x, 91\n"
    other = "  %q = mul nsw i{0} %y, {1}\n}}\n"
    assert has_common_factors((product + other).format(24, 91))
    assert not has_common_factors((product + other).format(24, 90))
    assert not has_common_factors(product.format(24) + "}\n" + product.format(24) + "}\n")
    assert not has_common_factors((product + other).format(40, 91))


SMALL = """
void k(const unsigned char a[16], const unsigned char b[16], int *y) {
#pragma HLS PIPELINE
#pragma HLS ARRAY_PARTITION variable=a complete
#pragma HLS ARRAY_PARTITION variable=b complete
    int sum = 0;
    for (int i = 0; i < 16; ++i) sum += a[i] * b[i];
    *y = sum;
}
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_a_sum_takes_one_small_product_into_its_block(tmp_path: Path, tool: str) -> None:
    """The other one of a pair is in logic: 63 of 8 bits take 32 blocks, nine take five."""
    assert estimate(tmp_path, SMALL, tool=tool).as_json()["resources"]["DSP"] == 8


BLOCK = """
void k(const int in[8], int out[8]) {
PORT
#pragma HLS PIPELINE II=1
    for (int i = 0; i < 8; ++i) out[7 - i] = in[i] * 3;
}
"""


@pytest.mark.parametrize(
    ("pragma", "tool", "interval"),
    [
        ("", "vitis", 4),
        ("INTERFACE ap_memory port=in", "vitis", 8),
        ("INTERFACE mode=bram port=out", "vitis", 4),
        ("INTERFACE ap_memory port=in storage_type=ram_2p", "vitis", 4),
        ("INTERFACE ap_memory port=in", "vivado", 4),
    ],
)
def test_a_memory_that_interface_names_has_one_port_in_vitis_hls(
    tmp_path: Path, pragma: str, tool: str, interval: int
) -> None:
    text = BLOCK.replace("PORT", f"#pragma HLS {pragma}" if pragma else "")
    found = estimate(tmp_path, text, tool=tool)
    assert found.as_json()["interval"]["max"] == interval


def test_an_element_of_a_branch_is_loaded_once(tmp_path: Path) -> None:
    text = """
void k(const int a[16], const int b[16], int *y, int *z) {
#pragma HLS INTERFACE mode=ap_memory port=a
#pragma HLS INTERFACE mode=ap_memory port=b
    int one = 0, two = 0;
    each: for (int i = 0; i < 16; ++i) {
#pragma HLS PIPELINE
        if (b[i] != 0) one += a[i] * 5;
        if (a[OTHER] > 3) two += 7;
    }
    *y = one;
    *z = two;
}
"""
    same, other = (
        loop(estimate(tmp_path, text.replace("OTHER", index)), "each") for index in ("i", "15 - i")
    )
    assert (same.ii, other.ii) == (1, 2)
    assert "write storage_type=ram_2p in its INTERFACE" in other.why


OPEN = """
#include <ap_fixed.h>
typedef ap_fixed<8, 5> fixed;
void k(fixed PARAMETER, fixed out[64]) {
#pragma HLS INTERFACE m_axi port=in depth=64 offset=slave bundle=one
    fixed t[64];
    copy: for (int i = 0; i < 64; ++i) t[i] = in[i];
    for (int i = 0; i < 64; ++i) out[i] = t[63 - i];
}
"""


@pytest.mark.parametrize("parameter", ["in[]", "*in", "in[64]"])
def test_an_array_without_a_size_has_elements_of_its_type(tmp_path: Path, parameter: str) -> None:
    found = estimate(tmp_path, OPEN.replace("PARAMETER", parameter), tool="vivado-2020.1")
    assert loop(found, "copy").iteration_latency == (2, 2)  # of a burst


IN_PLACE = """
void k(float *c, const float *a, const float *b, int size) {
#pragma HLS INTERFACE m_axi port=c bundle=one
#pragma HLS INTERFACE m_axi port=a bundle=one
#pragma HLS INTERFACE m_axi port=b bundle=one
    each: for (int i = 0; i < size; ++i) {
#pragma HLS PIPELINE
        c[i] += a[i] * b[i];
    }
}
"""


def test_vitis_hls_of_2023_compares_the_elements_of_a_bus(tmp_path: Path) -> None:
    old, new, vivado = (
        loop(estimate(tmp_path, IN_PLACE, tool=tool), "each")
        for tool in ("vitis-2022.2", "vitis-2023.1", "vivado-2019.1")
    )
    assert old.ii is not None and old.ii > 10
    assert (new.ii, vivado.ii) == (3, 3)  # three reads by one bundle
    assert "say DEPENDENCE inter false if no iteration" in old.why
    text = IN_PLACE.replace("a[i] * b[i]", "c[i - 1]")
    found = loop(estimate(tmp_path, text, tool="vitis-2022.2"), "each")
    assert "is answered; work on a copy" in found.why and "DEPENDENCE" not in found.why


def test_a_loop_with_two_bounds_has_no_burst(tmp_path: Path) -> None:
    text = """
void k(const int *a, int *y, int n) {
#pragma HLS INTERFACE m_axi port=a bundle=one
    int t[64], sum = 0;
    copy: for (int i = 0; BOUND; ++i) {
#pragma HLS PIPELINE
#pragma HLS LOOP_TRIPCOUNT min=64 max=64
        t[i & 63] = a[i];
    }
    for (int i = 0; i < 64; ++i) sum += t[i];
    *y = sum;
}
"""
    one, two = (
        loop(estimate(tmp_path, text.replace("BOUND", bound), tool="vitis"), "copy")
        for bound in ("i < n", "i < n && i < 64")
    )
    assert one.iteration_latency is not None and two.iteration_latency is not None
    assert two.iteration_latency[0] - one.iteration_latency[0] == 5
    assert (one.ii, two.ii) == (1, 1)


STRUCTS = """
struct cell { int p, q; };
void k(const int b[32], int o[32]) {
    static cell s[32];
PRAGMA
    each: for (int i = 0; i < 32; ++i) {
#pragma HLS PIPELINE
        s[b[i] & 31].q = s[(b[i] >> 5) & 31].FIELD + 1;
    }
    for (int i = 0; i < 32; ++i) o[i] = s[i].q;
    for (int i = 0; i < 32; ++i) s[i].p = b[i];
}
"""


def test_the_fields_of_an_array_of_structs_are_apart(tmp_path: Path) -> None:
    """UG1399, "Structs": local and static ones are disaggregated, unless AGGREGATE keeps them."""
    whole = "#pragma HLS AGGREGATE variable=s"
    apart, same, kept = (
        loop(estimate(tmp_path, STRUCTS.replace("FIELD", field).replace("PRAGMA", pragma)), "each")
        for field, pragma in (("p", ""), ("q", ""), ("p", whole))
    )
    assert apart.ii == 1
    assert same.ii is not None and same.ii > 1 and kept.ii == same.ii


def test_an_array_of_structs_that_are_copied_has_all_its_bits(tmp_path: Path) -> None:
    """A field taken apart would leave the others out: the copy is of all of them."""
    text = """
#include <hls_stream.h>
struct complex { float real, imag; };
void k(hls::stream<complex> &in, hls::stream<complex> &out) {
    complex line[1024];
    for (int i = 0; i < 1024; ++i) line[i] = in.read();
    for (int i = 0; i < 1024; ++i) out.write(line[1023 - i]);
}
"""
    assert estimate(tmp_path, text).as_json()["resources"]["BRAM_18K"] == 4


def test_columns_of_a_matrix_never_meet(tmp_path: Path) -> None:
    text = """
void k(int a[32][8], const int b[32]) {
    each: for (int i = 0; i < 32; ++i) {
#pragma HLS PIPELINE
        a[(i * 7) & 31][COLUMN] = a[b[i] & 31][3] + 1;
    }
}
"""
    apart, same = (
        loop(estimate(tmp_path, text.replace("COLUMN", column)), "each").ii for column in "43"
    )
    assert apart == 1 and same is not None and same > 1


def test_what_ends_late_in_its_cycle_is_said(tmp_path: Path) -> None:
    found = estimate(
        tmp_path,
        """
void k(const int in[64], int hist[32]) {
#pragma HLS DEPENDENCE variable=hist intra RAW false
    int old = in[0], acc = 0;
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE II=1
        int now = in[i];
        if (old == now) { acc = acc + 1; } else { hist[old & 31] = acc; acc = hist[now & 31] + 1; }
        old = now;
    }
    hist[old & 31] = acc;
}
""",
    )
    why = loop(found, "each").why
    assert "the choice and the addition, one after another, of the one before it, which end" in why
    assert "behind the read of memory" in why


def test_a_header_of_another_machine_is_named_by_its_name(tmp_path: Path) -> None:
    for path in ("/opt/Xilinx/include/hls_cv.h", r"C:\Xilinx\Vivado\2020.1\include\hls_cv.h"):
        with pytest.raises(KernelBuildError, match=r"another machine; write #include <\w+.h>"):
            estimate(tmp_path, f'#include "{path}"\nvoid k(ap_int<8> *a) {{ *a = 3; }}\n')


def test_sources_of_the_video_library_are_for_vivado_hls(tmp_path: Path) -> None:
    text = "#include <hls_video.h>\nvoid k(int a[8]) { for (int i = 0; i < 8; ++i) a[i] = i; }\n"
    assert estimate(tmp_path, text).tool == "vivado"
    assert estimate(tmp_path, text.replace("hls_video", "hls_stream")).tool == "vitis"


WAY_BACK = """
void k(const char way[4096], char out[128], int begin) {
    int row = begin, column = begin, n = 0;
    back: while (row > 0 || column > 0) {
        char here = way[row * 64 + column];
        if (BREAK) break;
        if (here == 0) { --row; --column; } else if (here == 1) { --column; } else { --row; }
        out[n++] = here;
    }
}
"""


@pytest.mark.parametrize(
    ("condition", "interval"),
    [
        ("false", 1),  # the condition of `while` is the next iteration's
        ("here == 7", 2),  # this one tells what has been read
    ],
)
def test_a_while_tells_in_the_next_iteration_whether_it_goes_on(
    tmp_path: Path, condition: str, interval: int
) -> None:
    text = WAY_BACK.replace("BREAK", condition)
    found = loop(estimate(tmp_path, text, part="xcu55c-fsvh2892-2L-e", tool="vitis"), "back")
    assert found.ii == interval
    assert ("to tell whether the loop goes on" in found.why) == (interval > 1)


@pytest.mark.parametrize(
    ("line", "interval"),
    [
        ("if (x[j] != -1) s[i] ^= t[(x[j] + i * j) & 255];", 1),
        ("if (x[j] != -1) s[i] ^= t[s[i] & 255];", 2),  # the table waits for the sum
        ("if (x[j] != -1) s[i] ^= t[s[j & 15] & 255];", 3),  # elsewhere in the array, too
    ],
)
def test_a_sum_that_only_some_iterations_add_to_is_in_a_register(
    tmp_path: Path, line: str, interval: int
) -> None:
    found = estimate(
        tmp_path,
        """
void k(const int x[128], int y[16], const int t[256]) {
    int s[16];
    for (int i = 0; i < 16; ++i) {
        s[i] = 0;
        each: for (int j = 0; j < 128; ++j) LINE
        if (s[i] != 0) s[i] = t[s[i] & 255];
    }
    for (int i = 0; i < 16; ++i) y[i] = s[15 - i];
}
""".replace("LINE", line),
        tool="vitis",
    )
    assert loop(found, "each").ii == interval


ROTATE = """
void k(const short a[4][ROWS][64], short b[4][ROWS][64], int n, int m, short c) {
    short t[ROWS][64];
#pragma HLS ARRAY_PARTITION variable=t CUT
    for (int i = 0; i < ROWS; ++i) for (int j = 0; j < 64; ++j) t[i][j] = a[n & 3][i][j];
    for (int p = 0; p < n; ++p)
        for (int q = p + 1; q < m; ++q)
            rotate: for (int j = 0; j < 64; ++j) {
#pragma HLS PIPELINE II=1
                short x = t[p][j], y = t[q][j];
                t[p][j] = x * c - y; t[q][j] = y * c + x;
            }
    for (int i = 0; i < ROWS; ++i) for (int j = 0; j < 64; ++j) b[m & 3][i][j] = t[i][j];
}
"""


@pytest.mark.parametrize(
    ("rows", "partition", "interval"),
    [
        (32, "cyclic factor=2 dim=2", 2),  # two reads and two writes of each bank
        (4, "complete dim=2", 1),  # four words of a column: registers
        (5, "complete dim=2", 2),
    ],
)
def test_two_rows_are_rotated_without_waiting_for_each_other(
    tmp_path: Path, rows: int, partition: str, interval: int
) -> None:
    text = ROTATE.replace("ROWS", str(rows)).replace("CUT", partition)
    found = loop(estimate(tmp_path, text, tool="vitis"), "rotate")
    assert found.ii == interval and "was written" not in found.why


def test_a_name_of_the_standard_library_since_cpp17_is_the_kernels_own(tmp_path: Path) -> None:
    text = """
#include <cmath>
#include <iterator>
using namespace std;
typedef unsigned char byte;
static int size = 16;
void k(byte in[16], byte out[16]) { for (int i = 0; i < 16; ++i) out[i] = in[i] ^ size; }
"""
    other = text.replace("byte", "octet").replace("size", "amount")
    assert estimate(tmp_path, text).latency == estimate(tmp_path, other).latency == (18, 18)


LONG = """
void k(const int x[64], int *y) {
    int best = 0, last = 0;
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE II=1
        int a = best + x[i], b = a > last ? a : last, c = b > 1000 ? b - 1000 : b + last;
        best = c < 0 ? -c : c;
        last = best > 500 ? best - 500 : best;
    }
    *y = best + last;
}
"""


def test_vivado_hls_keeps_its_interval_and_misses_the_clock(tmp_path: Path) -> None:
    vivado, vitis = (estimate(tmp_path, LONG, tool=tool, clock=5) for tool in ("vivado", "vitis"))
    assert loop(vivado, "each").ii == 1
    assert any("keeps II=1 and misses the clock" in said for said in vivado.warnings)
    assert loop(vitis, "each").ii == 1
    assert any("Vitis HLS keeps II=1 and misses" in said for said in vitis.warnings)
    asked = estimate(tmp_path, LONG.replace("PIPELINE II=1", "PIPELINE"), tool="vitis", clock=5)
    longer = loop(asked, "each").ii
    assert longer is not None and longer > 1 and not asked.warnings
    assert not estimate(tmp_path, LONG, tool="vivado", clock=40).warnings


LANES = """
#include <ap_int.h>
void k(const ap_int<8> x[256], const ap_int<8> w[256], int *y) {
    int sums[8];
#pragma HLS ARRAY_PARTITION variable=sums complete
    for (int i = 0; i < 8; ++i) {
#pragma HLS UNROLL
        sums[i] = 0;
    }
    each: for (int n = 0; n < 256; ++n) {
#pragma HLS PIPELINE II=1
        sums[n & 7] += x[n] * w[n];
    }
    int sum = 0;
    for (int i = 0; i < 8; ++i) {
#pragma HLS UNROLL
        sum += sums[i];
    }
    *y = sum;
}
"""


def test_sums_among_registers_are_passed_by(tmp_path: Path) -> None:
    found = estimate(tmp_path, LANES, part="xck26-sfvc784-2LV-c", tool="vitis-2025.1")
    assert loop(found, "each").ii == 1


BANKS = """
void k(const int in[4096], int out[4096], const int order[4096]) {
    static int bank[2][4096];
    int now = 0;
    for (int i = 0; i < 4096; ++i) bank[1][i] = in[i];
    for (int turn = 0; turn < 8; ++turn) {
        each: for (int i = 0; i < 4096; ++i) {
#pragma HLS PIPELINE
            bank[FROM][order[i] & 4095] = bank[TO][i];
        }
        now = 1 - now;
    }
    for (int i = 0; i < 4096; ++i) out[i] = bank[1 - now][i];
}
"""


@pytest.mark.parametrize(
    ("written", "read", "interval"), [("now", "1 - now", 1), ("now", "turn & 1", 2)]
)
def test_banks_that_take_turns_never_meet(
    tmp_path: Path, written: str, read: str, interval: int
) -> None:
    found = estimate(tmp_path, BANKS.replace("FROM", written).replace("TO", read), tool="vitis")
    assert loop(found, "each").ii == interval


MERGED = """
void k(int a[256], int b[256], int n) {
    turns: for (int j = 0; j < n; ++j) {
#pragma HLS LOOP_MERGE
#pragma HLS PIPELINE
        one: for (int i = 0; i < 256; ++i) a[i] += j;
        two: for (int i = 0; i < 256; ++i) b[i] ^= j;
    }
}
"""


def test_pipeline_behind_loop_merge_has_no_effect_in_vitis_hls(tmp_path: Path) -> None:
    vitis = estimate(tmp_path, MERGED, tool="vitis")
    assert loop(vitis, "turns").ii is None
    assert any("behind LOOP_MERGE has no effect in Vitis HLS" in said for said in vitis.warnings)
    lines = MERGED.split("\n")
    lines[3], lines[4] = lines[4], lines[3]
    assert loop(estimate(tmp_path, "\n".join(lines), tool="vitis"), "turns").ii is not None


COUNT = """
static unsigned ones(unsigned x) {
    unsigned n = 0;
    for (int b = 0; b < 32; ++b) { n += x & 1; x >>= 1; }
    return n;
}
void k(const unsigned x[128][WORDS], const unsigned w[WORDS], unsigned y[128]) {
    rows: for (int i = 0; i < 128; ++i) {
        unsigned sum = 0;
        words: for (int j = 0; j < WORDS; ++j) sum += ones(x[i][j] ^ w[j]);
        y[i] = sum;
    }
}
"""


def test_short_loops_of_what_is_called_are_unrolled_with_those_around_them(tmp_path: Path) -> None:
    few, many = (estimate(tmp_path, COUNT.replace("WORDS", n), tool="vitis") for n in ("2", "25"))
    assert loop(few, "rows").ii == 1  # 2 x 32 are 64
    assert [(one.name, one.trip_count[1]) for one in many.loops] == [("rows_words", 128 * 25)]


def test_a_loop_with_several_lengths_is_as_long_as_the_longest(tmp_path: Path) -> None:
    found = estimate(
        tmp_path,
        """
static int dot(const int *a, const int *b, int n) {
    int sum = 0;
    each: for (int i = 0; i < n; ++i) sum += a[i] == b[i];
    return sum;
}
void k(const int x[784], const int w[784], int y[8], int z[8]) {
    first: for (int j = 0; j < 8; ++j) y[j] = dot(x, w, 784) + j;
    second: for (int j = 0; j < 8; ++j) z[j] = dot(x, w, 16) + j;
}
""",
        tool="vitis",
    )
    trips = [(one.name, one.trip_count[1], one.ii) for one in found.loops]
    assert trips == [("first_each", 8 * 784, 1), ("second", 8, 1)]  # its 16 are unrolled


@pytest.mark.parametrize(
    ("part", "clock", "interval"),
    [
        ("xck26-sfvc784-2LV-c", 4, 10),  # ten stages, fewer do not fit a cycle
        ("xczu5eg-sfvc784-1-e", 10, 4),  # there is time to choose where a turn begins
        ("xczu9eg-ffvb1156-2-i", 10, 4),  # here the choice takes one more
    ],
)
def test_a_nest_begins_its_sums_in_the_stages_of_the_grade(
    tmp_path: Path, part: str, clock: float, interval: int
) -> None:
    text = """
void k(const float w[64][128], const float x[128], float y[64]) {
    for (int i = 0; i < 64; ++i) {
        float sum = 0;
        each: for (int j = 0; j < 128; ++j) sum += w[i][j] * x[j];
        y[i] = sum;
    }
}
"""
    assert (
        loop(estimate(tmp_path, text, part=part, clock=clock, tool="vitis"), "each").ii == interval
    )


COUNTED = """
void k(const int x[1000], int counts[256]) {
    each: for (int i = 0; i < 1000; ++i) {
#pragma HLS PIPELINE II=1
        counts[x[i]] += CHANGE;
    }
}
"""


def test_vivado_hls_reads_and_writes_a_word_in_one_cycle(tmp_path: Path) -> None:
    text = COUNTED.replace("CHANGE", "1")
    slow = estimate(tmp_path, text, tool="vivado", clock=10)
    assert loop(slow, "each").ii == 2
    assert any("takes 9.1 ns, a cycle has 8.8" in said for said in slow.warnings)
    fast = estimate(tmp_path, text, tool="vivado", clock=8)  # nor do 9.1 ns fit its period
    assert loop(fast, "each").ii == 2
    assert any("takes 9.1 ns, a cycle has 7.0" in said for said in fast.warnings)
    longer = estimate(tmp_path, COUNTED.replace("CHANGE", "x[i] * x[i]"), tool="vivado", clock=40)
    assert loop(longer, "each").ii == 2 and not longer.warnings
    vitis = estimate(tmp_path, text, tool="vitis", clock=10)
    assert loop(vitis, "each").ii == 2 and not vitis.warnings


WEIGHED = """
void k(const int a[28][28], const int w[3][3], int out[26][26]) {
PORTS
    row: for (int i = 0; i < 26; ++i)
        col: for (int j = 0; j < 26; ++j) {
#pragma HLS PIPELINE II=1
            int sum = 0;
            for (int k = 0; k < 3; ++k) sum += a[i + k][j] * w[k][0] + a[i + k][j + 1] * w[k][1];
            out[i][j] = sum;
        }
}
"""


def test_words_behind_one_bus_are_read_in_each_iteration(tmp_path: Path) -> None:
    buses = "".join(
        f"#pragma HLS INTERFACE m_axi port={name} offset=slave bundle=gmem\n"
        for name in ("a", "w", "out")
    )
    text = WEIGHED.replace("PORTS", buses)
    assert estimate(tmp_path, text, tool="vivado").loops[0].ii == 12
    apart = text.replace("port=w offset=slave bundle=gmem", "port=w offset=slave bundle=other")
    assert estimate(tmp_path, apart, tool="vivado").loops[0].ii == 6


def test_a_function_that_forgets_its_result_returns_all_the_same(tmp_path: Path) -> None:
    text = "int k(int x[64]) {\n    each: for (int i = 0; i < 64; ++i) x[i] += 1;\n}\n"
    found = estimate(tmp_path, text)
    assert found.latency == (67, 67)
    assert "k.cpp:3: a result is missing behind this" in "".join(found.warnings)
