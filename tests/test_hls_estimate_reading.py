"""``hls estimate``: what the tools read in C++ that clang reads otherwise, or refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from clang.cindex import Cursor
from helpers import estimate_of

from pynq_torch.errors import InterfaceError, KernelBuildError
from pynq_torch.hls import estimate, lint, read_interface
from pynq_torch.hls.estimator import compiler
from pynq_torch.hls.estimator.tool import guess_release

MISSING = compiler.tools()
pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(MISSING is not None, reason=MISSING or ""),
]

TABLE = """
#include <math.h>
static void fill(short *table) {
    for (int i = 0; i < 256; ++i) table[i] = 1000 * cos(2 * M_PI * i / 256);
}
void k(const int in[256], int out[256]) {
    short table[256];
    fill(table);
    a: for (int i = 0; i < 256; ++i) {
#pragma HLS PIPELINE
        out[i] = table[in[i] & 255];
    }
}
"""
COMPLEX = """
#include <ap_fixed.h>
#include <complex>
typedef std::complex<ap_fixed<16, 1> > number;
template <int N> void turn(const number in[2 * N], number out[2 * N]) {
    number buf[2 * N];
    a: for (int i = 0; i < 2 * N; ++i) {
#pragma HLS PIPELINE
        ap_uint<7> at = i;
        at = at.range(0, 6);
        buf[at] = in[i];
    }
    b: for (int i = 0; i < 2 * N; ++i) {
#pragma HLS PIPELINE
        out[i] = buf[i];
    }
}
void k(const number in[128], number out[128]) { turn<64>(in, out); }
"""


@pytest.fixture
def kernel(tmp_path):
    def made(text, name="k.cpp", **how):
        (tmp_path / name).write_text(text)
        return estimate(tmp_path / name, "k", tool="vivado", **how)

    return made


def test_a_function_that_computes_a_table_is_a_rom(kernel):
    found = kernel(TABLE)
    assert [loop.name for loop in found.loops] == ["a"]
    assert found.latency[1] < 300
    assert (found.resources["DSP"], found.resources["BRAM_18K"]) == (0, 1)


@pytest.mark.parametrize(
    "change",
    [
        ("1000 *", "scale *", "*table)", "*table, short scale)", "fill(table", "fill(table, in[0]"),
        ("fill(table);", "fill(table); table[3] = in[0];"),
    ],
)
def test_a_table_that_depends_on_data_takes_its_time(kernel, change):
    text = TABLE
    for old, new in zip(change[::2], change[1::2], strict=True):
        text = text.replace(old, new)
    assert kernel(text).latency[1] > 256 * 20


def test_arrays_of_complex_numbers_begin_with_anything(kernel):
    found = kernel(COMPLEX)
    assert [loop.name for loop in found.loops] == ["a", "b"]


def test_bits_that_are_read_backwards_are_wires(kernel):
    found = kernel(COMPLEX)
    assert found.loops[0].iteration_latency == (2, 2)
    written = kernel(COMPLEX.replace("at = at.range(0, 6)", "at.range(0, 6) = i"))
    assert written.loops == found.loops


def test_an_array_whose_size_a_template_knows_is_a_memory(kernel):
    assert kernel(COMPLEX).resources["BRAM_18K"] == 1


def test_a_quotient_by_a_negative_power_of_two_is_no_division(kernel):
    text = "int k(int x) { return x / -4; }"
    assert kernel(text).latency == (0, 0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("k.cpp", "struct size { int n; }; int k(float x) { size s = {x * 2}; return s.n; }"),
        ("k.cpp", "int k(int x) throw() { register int y = x; return y; }"),
        ("k.c", "static int use(int *p) { return p != 0; } int k(int x) { use(x); return x; }"),
        ("k.c", "int k(int x) { if (x > 3) return; return x; }"),
    ],
)
def test_what_the_tools_only_warn_of_is_no_error(kernel, name, text):
    assert kernel(text, name).latency[1] is not None


@pytest.mark.parametrize(
    ("tool", "years", "release"),
    [("Vivado", "1986-2018", 2018.1), ("Vivado", "2015", 2015.1), ("Vivado", "2014", 2014.1),
     ("Vivado", "2012", 0), ("Vivado", "1986-2020", 2020.1), ("Vitis", "1986-2020", 2020.2),
     ("Vitis", "1986-2022", 2022.1)],
)  # fmt: skip
def test_scripts_say_the_year_of_a_release(tmp_path, tool, years, release):
    """Of 2014 and 2015 they say one year; Vitis HLS began with 2020.2."""
    text = (
        f"## This file is generated automatically by {tool} HLS.\n## Please DO NOT edit it.\n"
        f"## Copyright (C) {years} Xilinx Inc. All rights reserved.\n"
    )
    (tmp_path / "directives.tcl").write_text(text)
    found = guess_release(tmp_path / "k.cpp", tmp_path / "directives.tcl", tool.lower())
    assert found == release


@pytest.mark.parametrize(
    ("comments", "release"),
    [(["Vitis HLS 2024.2"], 2024.2), (["vitis_hls v2023.1"], 2023.1), (["Vivado HLS 2019.2"], 0),
     (["Vitis HLS 2024.2", "Vitis HLS 2023.1"], 0), (["Vitis 2024.2"], 0)],
)  # fmt: skip
def test_a_comment_of_a_script_may_say_the_release(tmp_path, monkeypatch, comments, release):
    monkeypatch.chdir(tmp_path)
    for number, comment in enumerate(comments):
        (tmp_path / f"run{number}.tcl").write_text(f"# run with {comment}\nopen_project p\n")
    assert guess_release(tmp_path / "k.cpp", None, "vitis") == release


@pytest.mark.parametrize(
    ("flow", "release"),
    [
        ("open_solution s\nconfig_flow -target vitis", 2020.1),
        ("open_solution -flow_target vitis s", 0),
    ],
)
def test_a_script_of_the_linker_says_the_first_release(tmp_path, monkeypatch, flow, release):
    monkeypatch.chdir(tmp_path)
    head = "#\n# Hls run script generated by the compiler\n#\nopen_project k\nset_top k\n"
    (tmp_path / "k.tcl").write_text(f"{head}{flow}\n")
    assert guess_release(tmp_path / "k.cpp", None, "vitis") == release
    assert guess_release(tmp_path / "k.cpp", None, "vivado") == 0


@pytest.mark.parametrize("name", ["more.h", "more.hpp"])
def test_headers_may_be_listed_beside_sources(tmp_path: Path, name: str) -> None:
    """Projects of HLS list them, and nothing is compiled of them but what includes them."""
    (tmp_path / name).write_text("inline int more(int x) { return 3 * x; }\n")
    source = tmp_path / "k.cpp"
    source.write_text(f'#include "{name}"\nint k(int x) {{ return more(x); }}\n')
    made = estimate(source, "k", sources=[tmp_path / name])
    assert (made.warnings, made.latency) == ((), estimate(source, "k").latency)
    with pytest.raises(InterfaceError, match="less"):
        estimate(source, "k", sources=[tmp_path / name.replace("more", "less")])


def test_a_kernel_may_stand_in_a_header(tmp_path: Path) -> None:
    source = tmp_path / "k.h"
    source.write_text("#include <ap_int.h>\nap_int<9> k(ap_int<8> x) { return x + 1; }\n")
    assert estimate(source, "k").latency == (0, 0)


def test_a_fixed_point_number_becomes_an_integer(kernel):
    text = """
    #include <ap_fixed.h>
    typedef ap_fixed<16, 8> number;
    int k(number x, number y) {
        auto quotient = x / y;
        ap_uint<5> whole = quotient;
        ap_int<9> near = x * y;
        near = x;
        return whole + near;
    }
    """
    assert kernel(text).latency[1] > 0


@pytest.mark.parametrize("argument", ["row x[]", "row *x", "word x[][8]", "row x[4]"])
def test_the_words_of_a_port_without_a_size_are_those_of_its_type(tmp_path, argument):
    (tmp_path / "k.cpp").write_text(f"""
    struct word {{ int lanes[4]; }};
    typedef word row[8];
    void k({argument}, int out[32]) {{
    #pragma HLS INTERFACE m_axi port=x
        for (int i = 0; i < 32; ++i) {{
    #pragma HLS PIPELINE
            const word &one = x[i >> 3][i & 7];
            out[i] = one.lanes[0] + one.lanes[1] + one.lanes[2] + one.lanes[3];
        }}
    }}
    """)
    assert estimate(tmp_path / "k.cpp", "k", tool="vitis").loops[0].ii == 1


def test_many_operators_of_one_name_are_looked_at_once(kernel, monkeypatch):
    compared, equal = [], Cursor.__eq__
    monkeypatch.setattr(
        Cursor, "__eq__", lambda one, other: compared.append(1) or equal(one, other)
    )
    names = [f"n{number}" for number in range(60)]
    text = "".join(
        f"struct {one} {{ int v; }}; inline int operator+({one} a, {one} b) {{ return a.v + b.v; }}"
        for one in names
    )
    sums = " + ".join(f"({one}{{x}} + {one}{{x}})" for one in names)
    kernel(f"{text} int k(int x) {{ return {sums}; }}")
    assert len(compared) < 500 * len(names)


def test_variables_may_have_the_names_that_values_get(tmp_path: Path) -> None:
    """Generators of HLS C++ call them v0, v1, ..."""
    text = """
    void k(int v0[8], int v1[8], int vv2) {
        l: for (int v3 = 0; v3 < 8; v3++) { int v4 = v0[v3]; v1[v3] = v4 * vv2; }
    }
    """
    source = tmp_path / "k.cpp"
    source.write_text(text)
    assert [one.trip_count for one in estimate(source, "k", tool="vitis").loops] == [(8, 8)]


def test_a_template_that_ends_in_itself_is_no_recursion(tmp_path: Path) -> None:
    """Labels keep what a constant condition leaves out in clang's code."""
    text = """
    template <int N> int total(const int x[N]) {
        constexpr int half = N / 2 > 0 ? N / 2 : 1, rest = N - half > 0 ? N - half : 1;
        if (N == 1) {
            return x[0];
        } else {
            int left[half], right[rest];
            first: for (int i = 0; i < half; ++i) left[i] = x[i];
            second: for (int i = 0; i < rest; ++i) right[i] = x[half + i];
            return total<half>(left) + total<rest>(right);
        }
    }
    int k(const int x[8]) { return total<8>(x); }
    """
    source = tmp_path / "k.cpp"
    source.write_text(text)
    assert estimate(source, "k", tool="vivado").latency[1]
    source.write_text(text.replace("if (N == 1)", "if (x[0] == 1)"))
    with pytest.raises(KernelBuildError, match=r"k.cpp:\d+: recursion cannot be synthesised"):
        estimate(source, "k", tool="vivado")


def test_what_is_under_synthesis_counts(tmp_path: Path) -> None:
    """The code that is read is that which is synthesised, its pragmas and its names too."""
    text = """
#ifndef __SYNTHESIS__
#include <cstddef>
using namespace std;  // has a `byte`, too
#endif
typedef unsigned char byte;
static void twice(const byte x[8], byte y[8]) {
    for (int i = 0; i < 8; ++i) {
#pragma HLS UNROLL
        y[i] = 2 * x[i];
    }
}
void k(const byte x[8], byte y[8]) {
    byte some[8];
    twice(x, some);
    all: for (int i = 0; i < 8; ++i) {
#ifdef __SYNTHESIS__
#pragma HLS PIPELINE off
#endif
        y[i] = some[i] + 1;
    }
}
"""
    found = estimate_of(tmp_path, text, "vitis")
    assert [(loop.name, loop.ii) for loop in found.loops] == [("all", None)]


@pytest.mark.parametrize(
    ("header", "body", "said"),
    [
        ("hls_task.h", "hls_thread_local hls::task t(work, in, out);", "a task never ends"),
        ("hls_streamofblocks.h", "hls::stream_of_blocks<int[8]> s; work(in, out);", "DATAFLOW"),
    ],
)
def test_what_has_no_latency_is_said_to_have_none(
    tmp_path: Path, header: str, body: str, said: str
) -> None:
    """The header alone is no mistake."""
    work = "void work(hls::stream<int> &in, hls::stream<int> &out) { out.write(in.read()); }\n"
    top = "void k(hls::stream<int> &in, hls::stream<int> &out) { BODY }\n"
    source = f"#include <hls_stream.h>\n#include <{header}>\n{work}{top}"
    plain = source.replace("BODY", "work(in, out);")
    assert estimate_of(tmp_path, plain, "vitis").latency[1] is not None
    with pytest.raises(KernelBuildError, match=rf"k\.cpp:4: .*{said}"):
        estimate_of(tmp_path, source.replace("BODY", body), "vitis")


@pytest.mark.parametrize("name", ["V", "i"])
def test_a_macro_with_the_name_of_what_a_header_uses_is_named(tmp_path: Path, name: str) -> None:
    """The tools' own `ap_int.h` does not compile with these either."""
    source = tmp_path / "k.cpp"
    source.write_text(
        f"\n#define {name} 64\n#include <ap_int.h>\nvoid k(ap_int<4> *x) {{ *x = 1; }}\n"
    )
    said = f"k.cpp:2: macro {name} replaces a name that ap_int.h uses; define it behind #include <"
    with pytest.raises(KernelBuildError, match=said):
        estimate(source, "k")
    source.write_text("#include <ap_int.h>\nvoid k(ap_int<4> *x) { *x = 1; }\n")
    with pytest.raises(KernelBuildError, match=f"^-D {name}: macro {name} .* call it otherwise"):
        estimate(source, "k", defines=[f"{name}=64"])


WORKSPACE = """
void sums(const int a[64], int *all, int n) {
    each: for (int i = 0; i < 62; ++i) {
#pragma HLS PIPELINE
        all[i] = a[i] + a[i + 1] + n;
    }
}
"""


@pytest.mark.parametrize(
    ("place", "line", "interval"),
    [
        ("component/hls_config.cfg", "syn.file=/home/one/work/host/src/sums.cpp", 2),
        ("component/hls_config.cfg", r"syn.file=C:\\work\\host\\src\\sums.cpp", 2),
        ("component/hls_config.cfg", "syn.file=/home/one/work/other/sums.cpp", 1),
        ("component/hls_config.cfg", "tb.file=/home/one/work/host/src/sums.cpp", 1),
        ("host/src/kernel/any.cfg", "syn.file=../sums.cpp", 2),
    ],
)
def test_a_component_beside_a_source_says_its_flow(tmp_path, place, line, interval):
    """Where its cfg file names the source: in the flow of Vitis arguments are m_axi."""
    (tmp_path / ".git").mkdir()
    config, source = tmp_path / place, tmp_path / "host" / "src" / "sums.cpp"
    config.parent.mkdir(parents=True, exist_ok=True)
    source.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"part=xczu9eg-ffvb1156-2-e\n[hls]\nflow_target=vitis\n{line}\n")
    source.write_text(WORKSPACE)
    assert guess_release(source, None, "vitis") == (2024.2 if interval == 2 else 0)
    assert estimate(source, "sums").loops[0].ii == interval


@pytest.mark.parametrize("name", ["systemc.h", "systemc", "ap_systemc.h"])
def test_a_kernel_in_systemc_is_said_to_be_none(tmp_path: Path, name: str) -> None:
    """No folder would help."""
    source = tmp_path / "k.cpp"
    source.write_text(f"#include <{name}>\nvoid k(int *a) {{ *a = 1; }}\n")
    with pytest.raises(KernelBuildError, match="SystemC is not read here"):
        estimate(source, "k")
    with pytest.raises(KernelBuildError, match="SystemC is not read here"):
        lint(source, "k")
    assert "SystemC" in read_interface(source, "k").notes[-1]


def test_channels_that_split_and_merge_are_said_to_be_unknown(tmp_path: Path) -> None:
    text = """
#include <hls_np_channel.h>
void k(hls::stream<int> &in, hls::stream<int> &out) {
#pragma HLS DATAFLOW
    hls::split::round_robin<int, 2> two;
    two.in.write(in.read());
    out.write(two.out[0].read());
}
"""
    with pytest.raises(KernelBuildError, match="estimate each function around them as a top"):
        estimate_of(tmp_path, text, "vitis")


def test_the_parts_of_a_float_come_with_the_mathematics(tmp_path: Path) -> None:
    """As in the tools: their hls_math.h includes the header of the parts."""
    text = """
#include <hls_math.h>
void k(float x, float *y, int *bits) {
    fp_struct<float> parts(x);
    parts.exp += 2;
    *bits = parts.to_int();
    *y = parts.to_float();
}
"""
    assert estimate_of(tmp_path, text, "vitis").latency[1] is not None
    assert not lint(tmp_path / "k.cpp", "k")
