"""Sources as other people write them: what once had no estimate, or one of absurd numbers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pynq_torch import hls
from pynq_torch.errors import InterfaceError
from pynq_torch.hls.estimator.result import Estimate, LoopEstimate
from pynq_torch.hls.source import read_source
from pynq_torch.hls.toolchain import LIGHT_HEADERS


def estimate(folder: Path, text: str, **options: object) -> Estimate:
    source = folder / "k.cpp"
    source.write_text(text)
    return hls.estimate(source, "k", **options)  # type: ignore[arg-type]


def loop(found: Estimate, name: str) -> LoopEstimate:
    return next(one for one in found.loops if one.name.endswith(name))


def test_loops_of_one_block_may_be_asked_to_merge(tmp_path: Path) -> None:
    found = estimate(
        tmp_path,
        """
void k(const int a[4][100], int b[4][100], int c[4][100]) {
    {
#pragma HLS LOOP_MERGE
        first: for (int i = 0; i < 4; ++i) {
            if (a[i][0] > 0) b[i][0] = a[i][1];
            for (int j = 0; j < 100; ++j) b[i][j] += a[i][j];
        }
        other: for (int i = 0; i < 4; ++i) {
            if (a[i][0] > 0) c[i][0] = a[i][1];
            for (int j = 0; j < 100; ++j) c[i][j] += a[i][j];
        }
    }
}
""",
    )
    assert found.latency[1] is not None


def test_many_loops_with_conditions_behind_each_other_are_quick(tmp_path: Path) -> None:
    began = time.perf_counter()
    found = estimate(
        tmp_path,
        """
void k(int x[30]) {
    each: for (int i = 1; i < 30; ++i) {
#pragma HLS UNROLL
        int now = x[i], j = i - 1;
        down: while (j >= 0 && x[j] > now) { x[j + 1] = x[j]; --j; }
        x[j + 1] = now;
    }
}
""",
        tool="vivado",
    )
    assert len(found.loops) == 29
    assert time.perf_counter() - began < 15


def test_headers_are_found_as_windows_finds_them(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "Sum.h").write_text(
        """
int sum(const int a[64]) {
    int s = 0;
    adds: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE II=3
        s += a[i];
    }
    return s;
}
"""
    )
    text = '#include "INC\\\\sum.h"\nvoid k(const int a[64], int *b) { *b = sum(a); }\n'
    found = estimate(tmp_path, text)
    assert loop(found, "adds").asked == 3
    assert found.warnings == ()


def test_a_header_under_the_path_of_another_machine_is_our_own(tmp_path: Path) -> None:
    paths = (r"C:\Xilinx\Vivado\2020.2\src\hls_video.h", "D:/Xilinx/include/ap_int.h")
    for path in (*paths, "/opt/Xilinx/2020.2/include/ap_int.h"):
        found = estimate(tmp_path, f'#include "{path}"\nvoid k(int *a) {{ *a = 3; }}\n')
        assert len(found.warnings) == 1
        assert "k.cpp:1: " in found.warnings[0]
        assert "is a path of another machine; " in found.warnings[0]


def test_two_sources_may_name_the_path_of_another_machine(tmp_path: Path) -> None:
    line = '#include "C:/Xilinx/include/ap_int.h"\n'
    (tmp_path / "more.cpp").write_text(line + "void more(ap_int<9> *a) { *a = 4; }\n")
    text = line + "void more(ap_int<9> *);\nvoid k(ap_int<9> *a) { more(a); }\n"
    assert len(estimate(tmp_path, text, sources=[tmp_path / "more.cpp"]).warnings) == 2


def test_a_name_of_cpp17_may_be_one_of_the_source(tmp_path: Path) -> None:
    text = """
#include <ap_fixed.h>
#include <hls_stream.h>
using namespace std;
typedef unsigned char byte;
int size = 3;
void k(byte a[8], ap_fixed<16, 4> b[8]) {
    each: for (int i = 0; i < 8; ++i) { a[i] += size; b[i] = b[i] * ap_fixed<16, 4>(0.3); }
}
"""
    made = loop(estimate(tmp_path, "#include <iostream>\n" + text), "each")
    assert (made.trip_count, made.asked) == ((8, 8), 1)  # its plan is there, too


def test_complex_numbers_come_with_the_headers_of_the_tools(tmp_path: Path) -> None:
    text = """
#include <ap_fixed.h>
typedef std::complex<ap_fixed<16, 2> > number;
void k(number a[8], number b[8]) {
    each: for (int i = 0; i < 8; ++i) b[i] = number(a[i].imag(), a[i].real());
}
"""
    assert loop(estimate(tmp_path, text), "each").ii == 1


def test_a_top_that_is_a_template_is_the_instance_that_the_source_asks_for(tmp_path: Path) -> None:
    text = """
#include <ap_int.h>
template <typename T> void k(T a[8], T b[8]) { for (int i = 0; i < 8; ++i) b[i] = a[i] * a[i]; }
// template void k<int>(int a[8], int b[8]);
template void k<ap_int<16>>(ap_int<16> a[8],
                            ap_int<16> b[8]);
"""
    assert estimate(tmp_path, text).resources["DSP"] == 1
    with pytest.raises(InterfaceError, match="is a template; name the instance"):
        estimate(tmp_path, text + "template void k<char>(char a[8], char b[8]);\n")


def test_a_type_may_have_the_name_of_one_of_the_c_library(tmp_path: Path) -> None:
    text = "#include <string>\nstruct error_t { int i, q; };\nvoid k(error_t *e) { e->i = 1; }\n"
    assert estimate(tmp_path, text).latency[1] is not None


def test_the_numbers_of_a_testbench_may_be_included(tmp_path: Path) -> None:
    text = "#include <gmp.h>\n#include <mpfr.h>\nvoid k(int *a) { *a = 3; }\n"
    assert estimate(tmp_path, text).warnings == ()


def test_what_no_counter_can_count_is_unknown(tmp_path: Path) -> None:
    found = estimate(
        tmp_path,
        """
void k(const int a[64], int b[64], unsigned n, int m) {
    far: for (int i = 0; i < m; i += 4)
        wide: for (int j = 0; j < m; j += 4) {
            next: for (int l = 0; l < m; l += 4) { b[l & 63] += a[j & 63]; }
            b[j & 63] /= a[i & 63];
        }
    unsigned parts = (n - 1) / 128 + 1;
    each: for (unsigned i = 0; i < parts; ++i)
        all: for (int j = 0; j < 128; ++j) b[i & 63] += a[j & 63];
}
""",
    )
    assert found.latency[1] is None
    assert loop(found, "next").trip_count == (0, (1 << 29) - 1)
    assert loop(found, "next").latency[1] is not None
    assert loop(found, "each_all").trip_count == (None, None)


def test_what_is_printed_costs_nothing(tmp_path: Path) -> None:
    text = """
#include <iostream>
void k(int a, int b, int *c, int what) {
    if (what == 0) *c = a ^ b;
    else if (what == 1) *c = a & b;
    else std::cout << "no such thing: " << what << std::endl;
}
"""
    found = estimate(tmp_path, text)
    assert found.latency == (0, 0)
    assert found.warnings == ()


def test_a_cut_of_a_struct_cuts_the_array_in_it(tmp_path: Path) -> None:
    found = estimate(
        tmp_path,
        """
struct Window {
    float kept[9];
    void push(float x) { for (int i = 8; i > 0; --i) kept[i] = kept[i - 1]; kept[0] = x; }
};
void k(const float in[64], float out[64]) {
    Window window;
#pragma HLS ARRAY_PARTITION variable=window complete
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        window.push(in[i]);
        out[i] = window.kept[8] + window.kept[0];
    }
}
""",
    )
    assert loop(found, "each").ii == 1
    assert found.resources["BRAM_18K"] == 0
    assert found.warnings == ()


def test_a_long_table_is_no_time_of_libclang(tmp_path: Path) -> None:
    numbers = ", ".join(f"{n % 97 / 64}" for n in range(20000))
    text = f"#include <ap_fixed.h>\nap_fixed<16, 6> table[20000] = {{\n{numbers}\n}};\n"
    (tmp_path / "table.h").write_text(text)
    source = tmp_path / "k.cpp"
    source.write_text('#include "table.h"\nvoid k(int i, ap_fixed<16, 6> *x) { *x = table[i]; }\n')
    began = time.process_time()
    with read_source(source, light=[LIGHT_HEADERS]) as unit:
        names = {cursor.spelling: cursor for cursor in unit.unit.cursor.get_children()}
        assert names["table"].type.get_array_size() == 20000
        assert names["table"].extent.end.line == 4
    assert time.process_time() - began < 3
    assert not unit.errors
