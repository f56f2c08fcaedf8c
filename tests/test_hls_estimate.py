"""``hls estimate``: II, latency and reasons from C++, without a vendor's tool."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
from estimates import COMPARED, REASONS, own_row

from pynq_torch import paths
from pynq_torch.cli import main
from pynq_torch.errors import InterfaceError, KernelBuildError, KernelError
from pynq_torch.hls import estimate, lint, read_interface
from pynq_torch.hls.estimator import compiler, passes, scev
from pynq_torch.hls.estimator.tool import guess_tool

MISSING = compiler.tools()
pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(MISSING is not None, reason=MISSING or ""),
]

#: Loops of theirs have bounds in structs, whose trip counts reach no loop of the IR.
UNBOUNDED = {"conv2d_f32", "conv2d_i8", "depthwise_f32", "depthwise_i8"}
#: Arrays of which a loop of theirs may need more words at a time than its banks have ports, where
#: PIPELINE II=1 hopes for the tool: rows that data choose, branches of which one is taken.
AT_A_TIME = {
    "depthwise_f32": ("patch",), "depthwise_i8": ("patch",), "softmax_f32": ("top", "sum"),
}  # fmt: skip

DOT = """
float dot(const float x[64], const float y[64]) {
    float sum = 0;
    dot_loop: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        sum += x[i] * y[i];
    }
    return sum;
}
"""
STENCIL = """
void blur(const int in[100], int out[100]) {
    int buf[100];
CUT
    copy: for (int i = 0; i < 100; ++i) {
#pragma HLS PIPELINE
        buf[i] = in[i];
    }
    sum: for (int i = 1; i < 97; ++i) {
#pragma HLS PIPELINE
        out[i] = buf[i - 1] + buf[i] + buf[i + 1];
    }
}
"""
HISTOGRAM = """
void histogram(const unsigned char in[256], int bins[256]) {
    count: for (int i = 0; i < 256; ++i) {
#pragma HLS PIPELINE
MORE
        bins[in[i]] += 1;
    }
}
"""
CHAIN = """
#include <hls_stream.h>
static void twice(hls::stream<int>& in, hls::stream<int>& out) {
    first: for (int i = 0; i < 1000; ++i) {
#pragma HLS PIPELINE
        out.write(in.read() * 2);
    }
}
void chain(hls::stream<int>& in, hls::stream<int>& out) {
    hls::stream<int> between;
FLOW
    twice(in, between);
    second: for (int i = 0; i < 1000; ++i) {
#pragma HLS PIPELINE
        out.write(between.read() + 1);
    }
}
"""


@pytest.fixture
def kernel(tmp_path):
    def write(text, **arguments):
        path = tmp_path / "kernel.cpp"
        path.write_text(textwrap.dedent(text))
        top = arguments.pop("top", None) or text.split("(", 1)[0].split()[-1]
        return estimate(path, top, **arguments)

    return write


def loop(found, name):
    return next(item for item in found.loops if item.name == name)


def test_a_float_sum_waits_for_its_addition(kernel):
    found = loop(kernel(DOT), "dot_loop")
    assert (found.ii, found.asked, found.trip_count) == (5, 1, (64, 64))
    assert "floating-point addition" in found.why and "several accumulators" in found.why
    assert "(kernel.cpp:6)" in found.why
    assert found.latency == (63 * 5 + found.iteration_latency[1] - 1,) * 2


def test_an_integer_sum_does_not_wait(kernel):
    found = loop(kernel(DOT.replace("float", "int")), "dot_loop")
    assert (found.ii, found.why) == (1, "")


def test_without_a_pipeline_iterations_add_up(kernel):
    text = DOT.replace("#pragma HLS PIPELINE", "")
    plain = loop(kernel(text, tool="vivado"), "dot_loop")
    assert plain.ii is None
    assert plain.latency[1] == 64 * plain.iteration_latency[1]
    itself = loop(kernel(text, tool="vitis"), "dot_loop")
    assert itself.automatic and itself.ii == 5
    off = loop(
        kernel(text.replace("sum +=", "\n#pragma HLS PIPELINE off\nsum +="), tool="vitis"),
        "dot_loop",
    )
    assert off.ii is None and off.latency == plain.latency


def test_an_interval_that_is_asked_for_is_kept(kernel):
    found = loop(kernel(DOT.replace("PIPELINE", "PIPELINE II=9")), "dot_loop")
    assert (found.ii, found.asked, found.why) == (9, 9, "")


def test_ports_of_a_memory_limit_the_interval(kernel):
    one = loop(kernel(STENCIL.replace("CUT", ""), tool="vivado"), "sum")
    assert one.ii == 2
    assert "3 accesses of `buf`" in one.why and "partition it by 2" in one.why
    for cut in ("cyclic factor=2", "complete", "cyclic factor=3"):
        text = STENCIL.replace("CUT", f"#pragma HLS ARRAY_PARTITION variable=buf {cut}")
        assert loop(kernel(text), "sum").ii == 1, cut


def test_a_histogram_meets_its_own_writes(kernel):
    found = loop(kernel(HISTOGRAM.replace("MORE", "")), "count")
    assert found.ii > 1 and "`bins`" in found.why and "(kernel.cpp:6)" in found.why
    false = "#pragma HLS DEPENDENCE variable=bins inter false"
    assert loop(kernel(HISTOGRAM.replace("MORE", false)), "count").ii == 1
    for other in (f"{false} WAW", "#pragma HLS DEPENDENCE variable=bins direction=WAR false"):
        assert loop(kernel(HISTOGRAM.replace("MORE", other)), "count").ii == found.ii, other


def test_a_distance_of_two_iterations_halves_the_interval(kernel):
    text = """
    void recur(float x[64]) {{
        walk: for (int i = {0}; i < 64; ++i) {{
    #pragma HLS PIPELINE
            x[i] = x[i - {0}] + 1.0f;
        }}
    }}
    """
    one, two = (loop(kernel(text.format(n)), "walk") for n in (1, 2))
    # What the iteration before wrote is in a register; from memory it takes 2 + 5 + 1 cycles.
    assert (one.ii, two.ii) == (5, 8 // 2)
    assert "2 iterations before" in two.why


@pytest.mark.parametrize(
    ("index", "interval"), [("i % 8", 1), ("i & 7", 1), ("i & 3", 2), ("i % 6", 8)]
)
def test_an_index_that_comes_round_again_meets_what_was_written(kernel, index, interval):
    """Of a power of two the tools know after how many iterations; of others DEPENDENCE says it."""
    text = f"""
    const int M = 2, D = 8;
    float sums(const float x[64]) {{
        float p[8] = {{}}, sum = 0;
        walk: for (int i = 0; i < 64; ++i) {{
    #pragma HLS PIPELINE
    MORE
            p[{index}] += x[i];
        }}
        add: for (int i = 0; i < 8; ++i) sum += p[i];
        return sum;
    }}
    """
    walk = loop(kernel(text.replace("MORE", "")), "walk")
    before = {2: "4 iterations before", 8: "after the iteration before"}
    assert walk.ii == interval and before.get(interval, "") in walk.why
    told = "#pragma HLS DEPENDENCE variable=p type=inter direction=RAW distance=D true"
    assert loop(kernel(text.replace("MORE", told)), "walk").ii == 1
    near = text.replace("MORE", told.replace("=D", "=3")).replace(f"p[{index}]", "p[i % 6]")
    near = loop(kernel(near), "walk")
    assert near.ii == 3 and "after it was written 3 iterations before" in near.why


def test_unrolling_divides_the_iterations(kernel):
    text = DOT.replace("float", "int").replace("PIPELINE", "UNROLL factor=4\n#pragma HLS PIPELINE")
    found = loop(kernel(text), "dot_loop")
    assert found.trip_count == (16, 16)
    assert found.ii == 2 and "dual-port" in found.why


def test_a_pipeline_unrolls_the_loops_in_it(kernel):
    text = """
    void rows(const int a[8][4], int b[8]) {
    #pragma HLS ARRAY_PARTITION variable=a complete dim=2
        outer: for (int i = 0; i < 8; ++i) {
    #pragma HLS PIPELINE
            int sum = 0;
            inner: for (int j = 0; j < 4; ++j) sum += a[i][j];
            b[i] = sum;
        }
    }
    """
    found = kernel(text)
    assert [item.name for item in found.loops] == ["outer"]
    assert found.loops[0].ii == 1


def test_perfect_nests_are_flattened(kernel):
    text = """
    void copy(const int a[20][30], int b[20][30]) {
        rows: for (int i = 0; i < 20; ++i)
            columns: for (int j = 0; j < 30; ++j) {
    #pragma HLS PIPELINE
    OFF
                b[i][j] = a[i][j];
            }
    }
    """
    flat = kernel(text.replace("OFF", "")).loops
    assert [(item.name, item.trip_count) for item in flat] == [("rows_columns", (600, 600))]
    nested = kernel(text.replace("OFF", "#pragma HLS LOOP_FLATTEN off")).loops
    assert [(item.name, item.ii) for item in nested] == [("rows", None), ("columns", 1)]


NEST = """
void move(const int in[ROWS][6], int out[ROWS][6], int sum[ROWS]) {
    OFF
    for (int i = 0; i < ROWS; ++i)
    {
BEFORE
        for (int j = 0; j < 6; ++j)
            out[i][j] = in[i][j] + 1;
    }
}
"""


def test_vitis_flattens_perfect_nests_and_unrolls_short_loops_of_others(kernel):
    text = NEST.replace("ROWS", "40").replace("OFF", "")
    (found,) = kernel(text.replace("BEFORE", ""), tool="vitis").loops
    assert (found.name, found.trip_count, found.ii) == (
        "VITIS_LOOP_4_1_VITIS_LOOP_7_2",
        (240, 240),
        1,
    )
    (found,) = kernel(text.replace("BEFORE", "sum[i] = 0;"), tool="vitis").loops
    assert (found.name, found.trip_count, found.ii) == ("VITIS_LOOP_4_1", (40, 40), 3)


def test_a_function_with_pipeline_off_keeps_its_loops_as_they_are(kernel):
    text = NEST.replace("ROWS", "40").replace("BEFORE", "")
    for line, pipelined in (("off", False), ("on", True)):  # the tool ignores what it does not know
        found = kernel(text.replace("OFF", f"\n#pragma HLS PIPELINE {line}\n"), tool="vitis")
        assert any(item.ii is not None for item in found.loops) == pipelined, line


@pytest.mark.parametrize("body", ["{ y[i] = x[i]; }", "y[i] = x[i];"])
def test_a_pragma_above_a_loop_s_body_is_the_loop_s(kernel, body):
    loop = f"for (int i = 0; i < 8; ++i)\n#pragma HLS UNROLL\n {body}"
    text = f"void copy(int x[8], int y[8]) {{\n {loop}\n}}"
    found = kernel(text, tool="vivado")
    assert found.loops == () and found.warnings == ()


def test_arrays_handed_over_are_memories_of_their_own(kernel):
    text = """
    void scale(const int x[64], int y[64][64]) {
        outer: for (int i = 0; i < 64; ++i)
            inner: for (int j = 0; j < 64; ++j) {
#pragma HLS PIPELINE
                y[i][j] -= x[0] + x[1] + x[2] + x[3];
                y[i][j] /= 4;
            }
    }
    """
    (found,) = kernel(text, top="scale").loops
    assert (found.ii, found.why) == (1, "")


def test_what_is_outside_of_the_inner_loop_meets_the_next_row_only(kernel):
    text = """
    void mean(const float x[40][100], float y[40]) {
        rows: for (int i = 0; i < 40; ++i) {
            y[i] = 0;
            sum: for (int j = 0; j < 100; ++j) {
#pragma HLS PIPELINE
                y[i] += x[i][j];
            }
            y[i] /= 100;
        }
    }
    """
    found = kernel(text, top="mean", tool="vitis").loops[-1]
    assert "addition" in found.why and found.ii < 8


def test_sums_are_chains_where_expression_balance_is_off(kernel):
    text = """
    int sum(const int x[8]) {
#pragma HLS PIPELINE
#pragma HLS ARRAY_PARTITION variable=x complete
MORE
        int s = 0;
        for (int i = 0; i < 8; ++i) s += x[i];
        return s;
    }
    """
    off = text.replace("MORE", "#pragma HLS EXPRESSION_BALANCE off")
    chain, tree = (
        kernel(one, top="sum", clock=4).latency[1] for one in (off, text.replace("MORE", ""))
    )
    assert chain > tree


def test_loops_in_an_unrolled_loop_are_pipelined_each(kernel):
    text = NEST.replace("ROWS", "3").replace("OFF", "")
    found = kernel(text.replace("BEFORE", "#pragma HLS UNROLL"), tool="vitis").loops
    assert [(item.line, item.trip_count, item.ii) for item in found] == [(7, (6, 6), 1)] * 3


def test_the_processor_has_one_port_of_an_array_on_s_axilite(kernel):
    text = DOT.replace("x[i] * y[i]", "x[i] * x[63 - i] * x[(i + 7) % 64]").replace("float", "int")
    lite = text.replace("int sum", "\n#pragma HLS INTERFACE s_axilite port=x\nint sum")
    assert [loop(kernel(one), "dot_loop").ii for one in (text, lite)] == [2, 3]


def test_the_tool_is_guessed_from_what_wrote_the_project(kernel, tmp_path):
    script = tmp_path / "solution1" / "script.tcl"
    script.parent.mkdir()
    head = "## This file is generated automatically by Vivado HLS.\n## Copyright (C) "
    script.write_text(head + "2012 Xilinx Inc.\n")  # a course's, handed on from tool to tool
    assert kernel(DOT).tool == "vitis"
    script.write_text(head + "1986-2019 Xilinx, Inc.\n")
    assert kernel(DOT).tool == "vivado"
    assert kernel(DOT, part="xck26-sfvc784-2LV-c").tool == "vitis"
    tcl = tmp_path / "directives.tcl"
    tcl.write_text(script.read_text().replace("Vivado", "Vitis"))
    assert kernel(DOT, directives=tcl).tool == "vitis"
    tcl.unlink()
    script.write_text("set scripts_vivado_version 2018.2\n")
    assert kernel(DOT).tool == "vivado"


def test_a_project_of_the_older_tool_tells_before_a_word_of_the_newer_one(kernel, tmp_path):
    """Vivado HLS takes no notice of `mode=`, which is written for it all the same."""
    text = DOT.replace("float sum", "\n#pragma HLS INTERFACE mode=ap_none port=return\nfloat sum")
    script = tmp_path / "solution1" / "script.tcl"
    script.parent.mkdir()
    assert kernel(text).tool == "vitis"
    script.write_text("## generated automatically by Vivado HLS.\n## Copyright 1986-2020")
    assert kernel(text).tool == "vivado"


def test_scripts_count_that_belong_to_the_same_repository(tmp_path):
    source = tmp_path / "project" / "src" / "dot.cpp"
    script = tmp_path / "project" / "hls" / "first" / "script.tcl"
    for path, text in (
        (source, DOT),
        (script, "## generated automatically by Vivado HLS.\n## Copyright 1986-2019"),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert guess_tool(source, [], None, "xc7z020clg400-1") == "vitis"
    (tmp_path / "project" / ".git").mkdir()
    assert guess_tool(source, [], None, "xc7z020clg400-1") == "vivado"


def test_the_default_part_tells_where_the_projects_script_names_it(tmp_path):
    source = tmp_path / "dot.cpp"
    source.write_text(DOT)
    assert guess_tool(source, [], None, "xc7z020clg400-1") == "vitis"
    (tmp_path / "script.tcl").write_text("open_project dot\nset_part  {xc7z020clg400-1}\n")
    assert guess_tool(source, [], None, "xc7z020clg400-1") == "vivado"
    (tmp_path / "script.tcl").write_text("open_project dot\nset_part {xc7z020-clg400-1}\n")
    assert guess_tool(source, [], None, "xc7z020clg400-1") == "vitis"


def test_what_only_the_new_tool_has_tells_before_names_and_old_words(tmp_path, kernel):
    assert guess_tool(tmp_path / "vivado" / "dot.cpp", [], None, "xcu50-fsvh2104-2-e") == "vitis"
    old = DOT.replace("float sum", "\n#pragma HLS RESOURCE variable=x core=RAM_1P\nfloat sum")
    assert kernel(old).tool == "vivado"
    script = tmp_path / "solution1" / "script.tcl"
    script.parent.mkdir()
    script.write_text("## generated automatically by Vitis HLS.\n## Copyright 1986-2021")
    assert kernel(old).tool == "vitis"


def test_a_constant_that_is_handed_to_a_function_is_known_in_it(kernel):
    text = """
    int total(const int x[64], int n) {
    #pragma HLS INLINE off
        int sum = 0;
        walk: for (int i = 0; i < n; ++i) sum += x[i];
        return sum;
    }
    int both(const int x[64], const int y[64]) { return total(x, 48) + total(y, 48); }
    """
    assert loop(kernel(text, top="both"), "walk").trip_count == (48, 48)


def test_what_the_tools_own_headers_include_is_there(kernel):
    text = "#include <ap_int.h>\nint dot(ap_int<8> x) { MORE assert(x > 0); return 3 * x; }"
    assert kernel(text.replace("MORE", 'printf("%d", int(x));')).latency[1] == 0
    assert kernel(text.replace("MORE", "if (x > INT_MAX) return 0;")).latency[1] == 0
    with pytest.raises(KernelBuildError, match=r":2: .*undeclared identifier 'missing'"):
        kernel(text.replace("MORE", "missing(x);"))


def test_include_folders_are_paths_or_strings(kernel, tmp_path):
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "size.h").write_text("#define SIZE 64\n")
    text = '#include "size.h"\n' + DOT.replace("64", "SIZE")
    found = [kernel(text, include_dirs=[form(tmp_path / "inc")]) for form in (Path, str)]
    assert found[0].latency == found[1].latency
    source = tmp_path / "kernel.cpp"
    (interface, findings) = (
        read_interface(source, "dot", include_dirs=[str(tmp_path / "inc")]),
        lint(source, "dot", include_dirs=[str(tmp_path / "inc")]),
    )
    assert interface.top == "dot" and [item.rule for item in findings] == ["accumulate"]


def test_a_c_file_has_bool_without_its_header(tmp_path):
    source = tmp_path / "k.c"
    source.write_text("int k(int x) { bool b = x > 3; return b ? x : 0; }\n")
    assert estimate(source, "k").latency == (0, 0)
    source.write_text("int k(int x) { bol b = x > 3; return b; }\n")
    with pytest.raises(KernelBuildError, match=r"k\.c:1: .*'bol'"):
        estimate(source, "k")


def test_an_array_whose_size_is_a_constant_after_all_is_a_memory(tmp_path):
    source = tmp_path / "k.c"
    source.write_text("""
int abs(int);
void k(short x[256], short y[256]) {
    short rows = 256;
    short a[rows][rows];
    for (int i = 0; i < 256; ++i)
        for (int j = 0; j < 256; ++j) a[i][j] = abs(x[i] - x[j]);
    for (int i = 0; i < 256; ++i) y[i] = a[x[i] & 255][i];
}
""")
    found = estimate(source, "k", tool="vivado")
    assert found.resources["BRAM_18K"] == 256 * 256 * 16 // 16_384
    assert found.warnings == ()  # abs is known


def test_volatile_numbers_are_read_and_written_and_rotations_have_a_value(kernel):
    text = """
    #include <ap_int.h>
    #include <ap_fixed.h>
    volatile ap_int<8> a[4];
    volatile ap_ufixed<8, 3> b[4];
    void top(int i, ap_int<8>* x, ap_ufixed<8, 3>* y, ap_uint<32> z, ap_uint<32>* r) {
        *x = a[i];
        *y = b[i];
        a[0] = *x;
        b[0] = *y;
        a[1] = a[2];
        b[1] = b[2];
        *r = z.lrotate(8);
        z.rrotate(8);
    }
    """
    assert kernel(text, top="top").latency[1] is not None


def test_the_member_v_of_a_number_is_a_number(kernel):
    text = """
    #include <ap_int.h>
    #include <ap_fixed.h>
    int top(ap_uint<8> command, ap_fixed<8, 3> x) {
        switch (command.V) {
        case 1: return x.V + 1;
        case 2: x.V = 3; return x.V;
        default: return command.V * command.V;
        }
    }
    """
    assert kernel(text, top="top").latency[1] is not None


def test_a_bound_that_is_not_known_stays_unknown(kernel):
    text = """
    int total(const int x[100], int n) {
        int sum = 0;
        walk: for (int i = 0; i < n; ++i) {
    COUNT
            sum += x[i];
        }
        return sum;
    }
    """
    unknown = kernel(text.replace("COUNT", ""))
    assert unknown.latency[1] is None and "?" in str(unknown)
    assert unknown.as_json()["loops"][0]["latency"] is None
    known = kernel(text.replace("COUNT", "#pragma HLS LOOP_TRIPCOUNT min=10 max=100"))
    assert loop(known, "walk").trip_count == (10, 100)
    assert known.latency[0] is not None and known.latency[1] - known.latency[0] == 90


def test_triangular_loops_have_a_least_and_a_most(kernel):
    text = """
    void triangle(int a[16][16]) {
        outer: for (int i = 0; i < 16; ++i)
            inner: for (int j = 0; j <= i; ++j) a[i][j] = 0;
    }
    """
    assert loop(kernel(text, tool="vivado"), "inner").trip_count == (1, 16)


def test_processes_of_dataflow_run_side_by_side(kernel):
    apart = kernel(CHAIN.replace("FLOW", ""), top="chain").latency[1]
    beside = kernel(CHAIN.replace("FLOW", "#pragma HLS DATAFLOW"), top="chain")
    assert apart > 2000
    assert 1000 < beside.latency[1] < 1020
    assert [name for name, _ in beside.stages] == ["twice", "second"]


def test_the_reader_of_an_array_begins_when_its_writer_has_ended(kernel):
    text = """
    static void fill(const int x[1000], int kept[1000]) {
        for (int i = 0; i < 1000; ++i) kept[i] = x[i];
    }
    static void turn(const int kept[1000], int y[1000]) {
        for (int i = 0; i < 1000; ++i) y[i] = kept[i];
    }
    void both(const int x[1000], int y[1000]) {
    #pragma HLS DATAFLOW
        int kept[1000];
    HOW
        fill(x, kept);
        turn(kept, y);
    }
    """
    array = kernel(text.replace("HOW", ""), top="both")
    assert array.latency[1] == array.begins[1] + 1002 == 2005
    assert array.interval[1] < 1010 and "turn 1,002 from 1,003" in str(array)
    fifo = kernel(text.replace("HOW", "#pragma HLS STREAM variable=kept depth=4"), top="both")
    assert fifo.latency[1] < 1010 and fifo.begins == (0, 3)


def test_each_stream_of_an_array_of_them_has_its_own_port(kernel):
    text = """
    #include <hls_stream.h>
    void spread(const int x[64], hls::stream<int> out[2]) {
        walk: for (int i = 0; i < 64; ++i) {
    #pragma HLS PIPELINE
            out[0].write(x[i]);
            out[WHICH].write(x[i] + 1);
        }
    }
    """
    assert loop(kernel(text.replace("WHICH", "1")), "walk").ii == 1
    assert loop(kernel(text.replace("WHICH", "0")), "walk").ii == 2


def test_addresses_behind_multiplexers_are_not_compared(kernel):
    text = """
    void sums(const float x[256], float out[16]) {
        float sum[16];
    CUT
        walk: for (int i = 0; i < 256; ++i) {
    #pragma HLS PIPELINE
            sum[i % 16] += x[i];
        }
        write: for (int i = 0; i < 16; ++i) out[i] = sum[i];
    }
    """
    cut = kernel(text.replace("CUT", "#pragma HLS ARRAY_PARTITION variable=sum complete"))
    assert loop(cut, "walk").ii > 4 and "floating-point addition" in loop(cut, "walk").why


def test_functions_of_the_c_library_write_no_memory(kernel):
    text = """
    #include <math.h>
    void wave(const float a[8], float out[32], float w) {
        walk: for (int i = 0; i < 32; i += 4) {
    #pragma HLS PIPELINE
            for (int k = 0; k < 4; ++k) out[i + k] = a[3] * cos(w * (i + k));
        }
    }
    """
    assert "`a`" not in loop(kernel(text), "walk").why


def test_a_break_and_a_narrow_bound_leave_a_most(kernel):
    text = """
    int find(const int x[100], unsigned char n) {
        int at = -1;
        search: for (int i = 0; i < 100; ++i) if (x[i] == n) { at = i; break; }
        narrow: for (int i = 0; i < n; ++i) at += x[i % 100];
        return at;
    }
    """
    found = kernel(text)
    assert loop(found, "search").trip_count == (0, 100)
    assert loop(found, "narrow").trip_count == (0, 255)


def test_the_margin_of_the_clock_is_that_of_the_script(kernel, tmp_path):
    tcl = tmp_path / "directives.tcl"
    tcl.write_text("")
    usual = loop(kernel(DOT, clock=7, directives=tcl), "dot_loop")
    (tmp_path / "script.tcl").write_text("set_clock_uncertainty 5\n")
    assert loop(kernel(DOT, clock=7, directives=tcl), "dot_loop").ii > usual.ii
    (tmp_path / "hls.cfg").write_text("[hls]\nclock_uncertainty=70%\n")
    assert loop(kernel(DOT, clock=7, directives=tmp_path / "hls.cfg"), "dot_loop").ii > usual.ii


def test_the_margin_of_the_clock_is_that_of_a_script_around_that_adds_the_source(tmp_path):
    (tmp_path / "src").mkdir()
    source = tmp_path / "src" / "k.cpp"
    source.write_text(DOT)
    (tmp_path / ".git").mkdir()
    script = tmp_path / "run.tcl"

    def interval(text: str) -> object:
        script.write_text(text)
        return loop(estimate(source, "dot", clock=7), "dot_loop").ii

    usual = interval("add_files src/k.cpp\n")
    assert interval("add_files src/k.cpp\nset_clock_uncertainty 5\n") > usual
    assert interval("add_files src/other.cpp\nset_clock_uncertainty 5\n") == usual
    two = "add_files src/k.cpp\nset_clock_uncertainty 5\nset_clock_uncertainty 4\n"
    assert interval(two) == usual  # of two solutions: whose it is, nothing says


def test_divisions_and_double_take_longer(kernel):
    single = loop(kernel(DOT.replace("x[i] * y[i]", "x[i] / y[i]")), "dot_loop")
    double = loop(
        kernel(DOT.replace("float", "double").replace("x[i] * y[i]", "x[i] / y[i]")), "dot_loop"
    )
    product = loop(kernel(DOT), "dot_loop")
    depths = [item.iteration_latency[1] for item in (product, single, double)]
    assert depths[0] < depths[1] < depths[2]


def test_a_faster_clock_needs_more_cycles(kernel):
    slow, fast = (loop(kernel(DOT, clock=clock), "dot_loop") for clock in (10.0, 4.0))
    assert fast.ii > slow.ii and fast.iteration_latency[1] > slow.iteration_latency[1]


def test_tables_of_hls_numbers_are_made_before_the_kernel_runs(kernel):
    numbers = ", ".join(f"{n % 7 - 3}.{n % 10}" for n in range(20_000))
    text = """
    #include <ap_fixed.h>
    typedef ap_fixed<32, 8> fix;
    fix weight[2000][10] = {NUMBERS};
    void scale(const fix x[8], fix y[8]) {
        static const fix few[8] = {0.5, -1, 2.25f, 3, 4, 5, 6, 7};
        walk: for (int i = 0; i < 8; ++i) {
    #pragma HLS PIPELINE
            y[i] = x[i] * few[i] + weight[3 * i][1];
        }
    }
    """
    found = kernel(text.replace("NUMBERS", numbers), top="scale")
    (walk,) = found.loops
    assert found.latency[1] == walk.latency[1] + 2
    blocks = found.resources["BRAM_18K"]
    assert blocks == 32_768 * 24 // 16_384  # as wide as its numbers ask for
    # Where the index is known, so is the number: -1 takes no product.
    one = kernel(text.replace("NUMBERS", "0.25").replace("few[i]", "few[1]"), top="scale")
    assert one.resources["DSP"] == 0 < found.resources["DSP"]


def test_fixed_point_and_wide_integers(kernel):
    text = """
    #include <ap_fixed.h>
    typedef ap_fixed<18, 4> fix;
    fix scale(const fix x[32], ap_int<200>& wide) {
        fix sum = 0;
        walk: for (int i = 0; i < 32; ++i) {
    #pragma HLS PIPELINE
            sum += x[i] * fix(0.7);
            wide = wide + 1;
        }
        return sum;
    }
    """
    found = kernel(text, top="scale")
    assert loop(found, "walk").ii == 1
    assert found.resources["DSP"] in (1, 2)


def test_block_ram_of_local_arrays(kernel):
    text = """
    void store(const int in[2048], int out[2048]) {
        int buf[2048];
    CUT
        a: for (int i = 0; i < 2048; ++i) buf[i] = in[i];
        b: for (int i = 0; i < 2048; ++i) out[i] = buf[2047 - i];
    }
    """
    assert kernel(text.replace("CUT", "")).resources["BRAM_18K"] == 4
    lut = "#pragma HLS BIND_STORAGE variable=buf type=ram_2p impl=lutram"
    assert kernel(text.replace("CUT", lut)).resources["BRAM_18K"] == 0


def test_reshaped_parts_share_the_words_of_a_memory(kernel):
    text = """
    void shift(const unsigned char in[256], unsigned char out[256]) {
        unsigned char line[2][256];
    CUT
        walk: for (int i = 0; i < 256; ++i) {
    #pragma HLS PIPELINE
            out[i] = line[0][i];
            line[0][i] = line[1][i];
            line[1][i] = in[i];
        }
    }
    """
    found = {
        name: kernel(text.replace("CUT", f"#pragma HLS {name} variable=line complete dim=1"))
        for name in ("ARRAY_PARTITION", "ARRAY_RESHAPE")
    }
    assert [loop(one, "walk").ii for one in found.values()] == [1, 1]
    assert [one.resources["BRAM_18K"] for one in found.values()] == [2, 1]
    for tool in ("vivado", "vitis"):  # the rows have constant indices: each is cut off unasked
        itself = kernel(text.replace("CUT", ""), tool=tool)
        assert (loop(itself, "walk").ii, itself.resources["BRAM_18K"]) == (1, 2)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("directives.tcl", 'set_directive_pipeline -II 7 "dot/dot_loop"'),
        ("hls_config.cfg", "syn.directive.pipeline=dot/dot_loop II=7"),
    ],
)
def test_directive_files_count(kernel, tmp_path, name, line):
    (tmp_path / name).write_text(line + "\n")
    text = DOT.replace("#pragma HLS PIPELINE", "")
    assert loop(kernel(text, directives=tmp_path / name), "dot_loop").ii == 7


def test_a_directive_for_nothing_is_a_warning(kernel, tmp_path):
    path = tmp_path / "directives.tcl"
    path.write_text('set_directive_pipeline "dot/lopp"\nset_directive_inline "dott"\n')
    warnings = kernel(DOT, directives=path).warnings
    assert f"{path}:1" in warnings[0] and "'dot/lopp'" in warnings[0]
    assert f"{path}:2" in warnings[1] and "'dott'" in warnings[1]


def test_a_misspelt_pragma_speaks(kernel, tmp_path, capsys):
    text = DOT.replace("HLS PIPELINE", "HLS PIPELINEE")
    warning = kernel(text, tool="vivado").warnings[0]
    assert (
        "kernel.cpp:5: PIPELINEE is no HLS pragma" in warning
        and "PIPELINE" in warning.split(";")[-1].upper()
    )
    outside = kernel(DOT.replace("PIPELINE", "ARRAY_PARTITION variable=nothing complete")).warnings[
        0
    ]
    assert "names 'nothing'" in outside
    path = str(tmp_path / "kernel.cpp")
    assert main(["hls", "estimate", path, "--top", "dot"]) == 0
    assert main(["hls", "estimate", path, "--top", "dot", "--strict"]) == 1
    assert "names 'nothing'" in capsys.readouterr().out
    assert kernel(DOT).warnings == ()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("int* p = (int*)malloc(4); x[0] = *p;", "heap"),
        ("int* p = new int[4]; x[0] = p[1];", "heap"),
        ("x[0] = y;", "undeclared"),
        ("if (x[0]) top(x);", "recursion"),
        ("int (*f)(int) = x[0] ? rand1 : rand2; x[0] = f(x[1]);", "function pointer"),
        ("std::string s(x[0], 'a');", "heap"),
        ('asm volatile("nop");', "assembly"),
        ("int v[x[0]]; v[0] = 1; x[0] = v[x[1]];", "size is known at run time"),
        ("int* v = (int*)__builtin_alloca(x[0]); x[0] = v[x[1]];", "size is known at run time"),
        ("x[0] = rand();", "rand asks the operating system"),
        ("x[0] = *(int*)(long)x[1];", "pointer made of a number"),
        ("if (x[0]) throw 1;", "hardware has no exceptions"),
        ("volatile int* p = 0; *p = 3;", "a pointer to a fixed address"),
        ("int* p = 0; if (x[0] == 7) *p = 3;", "a pointer to a fixed address"),
        ("volatile int* p = (volatile int*)0x1000; x[0] = p[x[1]];", "to a fixed address"),
        ("int* p = nullptr; x[0] = p[2];", "to a fixed address"),
        ("memset((void*)0x1000, 0, 16);", "to a fixed address"),
        ("int v[x[0]]; v[0] = 1;", "size is known at run time"),
        ("std::ofstream o; o.open(std::getenv(0));", "a file stream asks the operating system"),
        ("std::ifstream i; i >> x[0];", "a file stream asks the operating system"),
        ("std::cin >> x[0];", "std::cin asks the operating system"),
        ("x[0] = std::chrono::steady_clock::now().time_since_epoch().count();", "a clock asks"),
        ("static std::mutex m; m.lock();", "pthread_mutex_lock asks the operating system"),
        (
            "std::vector<int> v; v.push_back(x[0]);\n\n x[1] = v[0];",
            "which this line calls: .*heap",
        ),
    ],
)
def test_what_hls_forbids_is_an_error_with_its_line(kernel, body, words):
    head = "#include <bits/stdc++.h>\n\nint rand1(int), rand2(int);\n"
    text = f"{head}void top(int x[4]) {{\n    {body} }}\n"
    with pytest.raises(KernelBuildError, match=words) as error:
        kernel(text, top="top")
    assert "kernel.cpp:5" in str(error.value)


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("static void top(int x[4])", "'top' is static"),
        ("namespace { void top(int x[4]) { x[0] = 1; } } void other(int x[4])", "without a name"),
        ("void top(float x[4]) { x[0] = 1; } void top(int x[4])", "defined more than once"),
        ("void top(int **x)", "'x', what it points to is a pointer again"),
        ("struct N { N* next; int v; }; void top(N x[4])", "'x', 'next' is a pointer again"),
    ],
)
def test_a_top_that_no_tool_takes_is_an_error_with_its_line(kernel, head, words):
    with pytest.raises(KernelError, match=words) as error:
        kernel(f"\n{head} {{ x[0] = x[1]; }}\n", top="top")
    assert "kernel.cpp:2" in str(error.value)


def test_a_loop_without_an_end_or_a_keyword_has_its_line(kernel):
    text = "void top(int y[64]) {\n int i = 0;\nagain: y[i & 63] = i++;\n goto again; }"
    found = kernel(text, top="top")
    assert found.loops[0].line in (3, 4)
    assert "the loop has no end, so top never returns" in found.warnings[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("int top(int x[64]) {\nfor (int i = 0; i < 64; ++i) x[i] = i;\n}",
         "kernel.cpp:3: a result is missing behind this, and may be any value; write a return"),
        ("static int twice(int v) { v *= 2;\n}\nint other() {} void top(int x[64]) {\n"
         "for (int i = 0; i < 64; ++i) x[i] = i;\nx[0] = twice(x[1]); }",
         "kernel.cpp:2: a result is missing behind this, and may be any value; write a return"),
        ("#include <cassert>\nvoid top(int x[64]) {\nfor (int i = 0; i < 64; ++i) {\n"
         "assert(x[i] > 0);\nassert(i < 32);\nx[i] = i; }}",
         "kernel.cpp:5: what assert says here fails in every run, so that top never returns; "
         "correct it"),
    ],
)  # fmt: skip
def test_why_a_function_never_returns_is_said_of_no_good_loop(kernel, text, said):
    (warning,) = kernel(text, top="top").warnings
    assert said in warning


@pytest.mark.parametrize(
    "text",
    [
        "static void g(int n, int x[64]) { int t[n]; t[0] = n; x[n] = t[x[0]]; int u[n]; u[0] = 1;}"
        "void top(int x[64]) { g(8, x); g(16, x); }",
        "static void g(int x[64], int* y) { for (int i = 0; i < 64; ++i) if (y) x[i] = y[i]; }"
        "void top(int x[64]) { g(x, x); g(x, nullptr); }",
        "#include <iostream>\nvoid top(int x[64]) { x[0] = 1; std::cout << x[0] << std::endl; }",
    ],
)
def test_what_only_looks_forbidden_is_estimated(kernel, text):
    assert kernel(text, top="top").warnings == ()


def test_a_loop_whose_end_is_not_known_says_so(kernel):
    found = kernel(
        "void top(int n, int y[64]) {\n int i = 0;\n while (y[i] != n) ++i;\n y[0] = i; }",
        top="top",
    )
    assert found.latency[1] is None
    assert "how often it runs is not known, and so its latency; write LOOP_TRIPCOUNT" in str(found)
    assert "(kernel.cpp:3)" in str(found) and "(kernel.cpp:3)" in found._repr_html_()


def test_wrong_arguments(kernel, tmp_path):
    with pytest.raises(InterfaceError, match="no definition of the top function"):
        kernel(DOT, top="dott")
    with pytest.raises(InterfaceError, match="-D '' is no macro"):
        kernel(DOT, defines=[""])
    for name in ("include_dirs", "sources", "defines"):
        with pytest.raises(InterfaceError, match=rf"{name} takes a list: {name}=\['x'\]"):
            kernel(DOT, **{name: "x"})
    for clock in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(KernelBuildError, match="clock .* is no period"):
            kernel(DOT, clock=clock)
    with pytest.raises(KernelBuildError, match="'xyz' is no part"):
        kernel(DOT, part="xyz")
    with pytest.raises(InterfaceError, match="cannot be read"):
        estimate(tmp_path / "none.cpp", "top")


def test_the_command_prints_json(tmp_path, capsys):
    path = tmp_path / "kernel.cpp"
    path.write_text(DOT)
    assert main(["hls", "estimate", str(path), "--top", "dot", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["kind"] == "estimate"
    assert data["loops"][0]["ii"] == 5 and data["loops"][0]["line"] == 4
    assert set(data["resources"]) == {"DSP", "BRAM_18K", "LUT", "FF"}
    assert 500 < data["resources"]["LUT"] < 2000
    assert main(["hls", "estimate", str(path), "--top", "dot"]) == 0
    assert "dot_loop" in capsys.readouterr().out
    assert main(["hls", "estimate", str(path), "--top", "no"]) == 2
    assert "no definition" in capsys.readouterr().err


def test_a_missing_compiler_is_named(kernel, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(KernelBuildError, match="apt-get install clang-16"):
        kernel(DOT)


@pytest.mark.parametrize(
    ("text", "constant", "terms"),
    [
        ("(4 + {%a,+,40}<%outer>)", 4, {"%a": 1, "loop outer": 40}),
        ("{{%b,+,8}<nuw><%i>,+,-4}<%j>", 0, {"%b": 1, "loop i": 8, "loop j": -4}),
        ("(-1 + (zext i32 %n to i64))<nsw>", -1, {"%n": 1}),
        ("((2 * %k)<nsw> + -2)", -2, {"%k": 2}),
    ],
)
def test_scalar_evolution_is_read_as_sums(text, constant, terms):
    found = scev.parse(text)
    assert (found.constant, dict(found.terms)) == (constant, terms)


def test_what_is_no_sum_is_one_symbol():
    found = scev.parse("((%a * %b) + (8 * (%a * %b)))")
    assert len(found.terms) == 1 and found.constant == 0


@pytest.mark.parametrize(
    "name", sorted(path.name for path in paths.KERNELS.iterdir() if path.is_dir())
)
def test_our_own_kernels_have_an_estimate_and_are_clean_under_lint(name):
    source = paths.KERNELS / name / f"{name}.cpp"
    if not source.is_file():
        pytest.skip("a kernel in RTL only")
    found = estimate(source, name)
    assert found.loops and found.resources["DSP"] is not None
    if name not in UNBOUNDED:
        assert found.latency[1] is not None, "a loop without LOOP_TRIPCOUNT"
        assert found.latency[1] >= found.latency[0] > 0
    said = list(map(str, lint(source, name, schedule=found)))
    taken = [f"`{array}`" for array in AT_A_TIME.get(name, ())]
    assert [line for line in said if not any(array in line for array in taken)] == []


# ---- this project's kernels against their formulas -----------------------------------------------


@pytest.mark.parametrize("name", COMPARED)
def test_a_kernel_s_formula_is_within_a_tenth_of_the_estimate_or_says_why_not(name: str) -> None:
    _, formula, cycles = own_row(name)
    assert (abs(cycles - formula) <= 0.1 * formula) is (name not in REASONS), (formula, cycles)


# ---- arguments of a run --------------------------------------------------------------------------

TILES = """
static void fill(int tile[64], int count) {
    fill_loop: for (int i = 0; i < count; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
        tile[i] = i;
    }
}
void tiles(int* out, int n, unsigned char most) {
#pragma HLS INTERFACE m_axi port=out offset=slave
    int tile[64];
#pragma HLS INLINE off
    fill(tile, most);
    out_loop: for (int i = 0; i < n; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1000
        out[i] = tile[i & 63];
    }
}
"""


def test_arguments_give_the_latency_of_a_run(tmp_path: Path) -> None:
    source = tmp_path / "tiles.cpp"
    source.write_text(TILES)

    def trips(**arguments: int) -> list[tuple[int | None, int | None]]:
        return [loop.trip_count for loop in estimate(source, "tiles", arguments=arguments).loops]

    assert trips() == [(1, 64), (1, 1000)]
    assert trips(n=200) == [(1, 64), (200, 200)]
    assert trips(n=200, most=7) == [(7, 7), (200, 200)]  # callees know it too
    with pytest.raises(KernelError, match="no integer argument 'm'.*; it has n, most"):
        trips(m=1)
    whole, one = estimate(source, "tiles"), estimate(source, "tiles", arguments={"n": 200})
    # The hardware is the same, but its logic was not counted for this run.
    assert {**whole.resources, "LUT": None, "FF": None} == one.resources
    assert one.latency[1] < whole.latency[1]


def test_arguments_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "tiles.cpp"
    source.write_text(TILES)
    command = ["hls", "estimate", str(source), "--top", "tiles"]
    assert main([*command, "--json", "-a", "n=0x10", "--argument", "most=2"]) == 0
    assert json.loads(capsys.readouterr().out)["loops"][1]["trip_count"] == 16
    for wrong in ("n", "n=", "n=ten", "=4"):
        with pytest.raises(SystemExit):
            main([*command, "-a", wrong])
        assert "argument -a/--argument" in capsys.readouterr().err


# ---- what the schedule follows -------------------------------------------------------------------

ROM = """
static const unsigned char table[256] = {3, 1, 4, 1, 5, 9, 2, 6};
static unsigned char order[8] = {7, 6, 5, 4, 3, 2, 1, 0};
unsigned mix(unsigned word) {
    unsigned sum = 0;
    turns: for (int i = 0; i < 100; ++i) {
#pragma HLS PIPELINE
        unsigned made = 0;
        for (int j = 0; j < 8; ++j) {
            made = (made << 4) | ((word >> (4 * order[j])) & 15);
        }
        word = made ^ table[made & 255];
        sum += table[(made >> 8) & 255] + table[made >> 24];
    }
    return word + sum;
}
"""


def test_wires_and_tables_take_no_ports_and_no_time(tmp_path: Path) -> None:
    """Bits put side by side are wires; a table has copies; its answer goes round in the cycle."""
    source = tmp_path / "mix.cpp"
    source.write_text(ROM)
    made = estimate(source, "mix", clock=12)
    assert [loop.ii for loop in made.loops] == [1]
    assert made.resources["BRAM_18K"] == 2


@pytest.mark.parametrize(
    ("numbers", "blocks"), [("100, 200, 300, 400", 2), ("1, 2, 3, 4", 0), ("10, -20, 30, 25", 1)]
)
def test_a_product_is_as_wide_as_the_table_s_numbers(
    tmp_path: Path, numbers: str, blocks: int
) -> None:
    source = tmp_path / "weigh.cpp"
    source.write_text(
        f"int weigh(const int x[4]) {{ const int w[4] = {{{numbers}}}; int sum = 0;\n"
        "for (int i = 0; i < 4; ++i) {\n#pragma HLS PIPELINE\nsum += x[i] * w[i]; }\nreturn sum; }"
    )
    assert estimate(source, "weigh").resources["DSP"] == blocks


def test_an_array_that_begins_with_zeros_and_is_written_is_no_table(tmp_path: Path) -> None:
    source = tmp_path / "late.cpp"
    source.write_text(
        "void late(const int x[64], const int h[64], int y[64]) { int kept[64] = {};\n"
        "for (int i = 0; i < 64; ++i) kept[i] = x[63 - i];\n"
        "for (int i = 0; i < 64; ++i) y[i] = h[i] * kept[i]; }"
    )
    assert estimate(source, "late").resources["DSP"] == 3


def test_small_products_with_a_sum_are_dsp_blocks_and_share_them_over_the_interval(
    tmp_path: Path,
) -> None:
    source = tmp_path / "dense.cpp"
    text = (
        "void dense(const signed char x[64][8], signed char w[64][8], int y[64]) {\n"
        "#pragma HLS ARRAY_PARTITION variable=x complete dim=2\n"
        "#pragma HLS ARRAY_PARTITION variable=w complete dim=2\n"
        "for (int i = 0; i < 64; ++i) {\n#pragma HLS PIPELINE II=%d\nint sum = 0;\n"
        "for (int j = 0; j < 8; ++j) sum += x[i][j] * w[i][j];\ny[i] = sum; } }"
    )
    found = []
    for interval in (1, 2, 4):
        source.write_text(text % interval)
        found.append(estimate(source, "dense").resources["DSP"])
    assert found == [4, 4, 2]  # at II=1 one of each pair is in logic


def test_allocation_limits_integers_too(tmp_path: Path) -> None:
    source = tmp_path / "area.cpp"
    text = (
        "void area(const int x[64][4], int y[64]) {\n"
        "#pragma HLS ARRAY_PARTITION variable=x complete dim=2\n%s"
        "for (int i = 0; i < 64; ++i) {\n#pragma HLS PIPELINE\n"
        "y[i] = x[i][0] * x[i][1] + x[i][2] * x[i][3]; } }"
    )
    source.write_text(text % "")
    free = estimate(source, "area")
    source.write_text(text % "#pragma HLS ALLOCATION operation instances=mul limit=1\n")
    limited = estimate(source, "area")
    assert [one.loops[0].ii for one in (free, limited)] == [1, 2]
    assert limited.loops[0].why.startswith(
        "II=2: 2 times `mul` in an iteration, ALLOCATION allows 1"
    )
    assert (free.resources["DSP"], limited.resources["DSP"]) == (6, 3)


def test_analyses_end_by_processor_time(monkeypatch, tmp_path):
    """Then addresses alone are analysed, on an idle PC as on a busy one."""
    slow = tmp_path / "opt"
    slow.write_text("#!/bin/sh\nwhile :; do :; done\n")
    slow.chmod(0o755)
    monkeypatch.setattr(passes, "OPT", str(slow))
    with pytest.raises(KernelBuildError, match="took more than 1 s of processor time"):
        passes.opt([], 1)
