"""What pragmas and configuration move: banks, cores and latencies; and what is not followed."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.hls import estimate
from pynq_torch.hls.estimator import Estimate, compiler

pytestmark = pytest.mark.skipif(compiler.tools() is not None, reason="clang-16 is not installed")

LOOP = """
void k(ARGUMENTS) {
#pragma HLS OPTION
    loop: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        BODY
    }
}
"""
MATRICES = """
void k(int a[16][16], int b[16][16], int c[16][16]) {
#pragma HLS OPTION
    for (int i = 0; i < 16; i++)
        column: for (int j = 0; j < 16; j++) {
#pragma HLS PIPELINE
            int sum = 0;
            for (int n = 0; n < 16; n++)
                sum += a[i][n] * b[n][j];
            c[i][j] = sum;
        }
}
"""
CORDIC = """
void k(short angle, short *x_out, short *y_out) {
    short x[17], y[17], z[17];
    const short turns[16] = {12867, 7596, 4013, 2037, 1022, 511, 255, 127, 63, 31, 15, 7, 3, 1, 0};
    x[0] = 9949;
    y[0] = 0;
    z[0] = angle;
    turn: for (int i = 0; i < 16; i++) {
        if (z[i] >= 0) {
            x[i + 1] = x[i] - (y[i] >> i);
            y[i + 1] = y[i] + (x[i] >> i);
            z[i + 1] = z[i] - turns[i];
        } else {
            x[i + 1] = x[i] + (y[i] >> i);
            ELSE;
            z[i + 1] = z[i] + turns[i];
        }
    }
    *x_out = x[16];
    *y_out = y[16];
}
"""
DCT = """
const int N = 8;
void line(const short in[N], short out[N]) {
    const short c[N][N] = {{8192, 8191, 8190, 8189, 8188, 8187, 8186, 8185},
                           {11363, 9633, 6437, 2260, -2261, -6436, -9632, -11362},
                           {10703, 4433, -4434, -10704, -10703, -4433, 4434, 10704},
                           {9633, -2259, -11362, -6436, 6437, 11363, 2260, -9632},
                           {8192, -8191, -8190, 8189, 8188, -8187, -8186, 8185},
                           {6437, -11362, 2260, 9633, -9632, -2259, 11363, -6436},
                           {4433, -10703, 10704, -4434, -4433, 10705, -10702, 4434},
                           {2260, -6436, 9633, -11362, 11363, -9632, 6437, -2259}};
    outer: for (int k = 0; k < N; k++) {
        int sum = 0;
        for (int n = 0; n < N; n++) sum += in[n] * c[k][n];
        out[k] = (sum + 4096) >> 13;
    }
}
void k(const short in[64], short out[64]) {
    short block[N][N], rows[N][N];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) block[i][j] = in[i * N + j];
    row: for (int i = 0; i < N; i++) line(block[i], rows[i]);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) out[i * N + j] = rows[i][j];
}
"""


def _of(
    folder: Path, arguments: str, body: str, option: str = "", tool: str = "vitis-2022.1"
) -> Estimate:
    text = LOOP.replace("ARGUMENTS", arguments).replace("BODY", body)
    text = text.replace("#pragma HLS OPTION", f"#pragma HLS {option}" if option else "")
    return estimate_of(folder, text, tool)


def test_what_counts_in_one_block_takes_its_ports_alone(tmp_path: Path) -> None:
    two = "ARRAY_PARTITION variable=a block factor=2"
    body = "b[i] = a[i] + a[i + 64] + a[i + 128] + a[i + 192];"
    for option, interval in (("", 2), (two, 1), (two.replace("block", "cyclic"), 2)):
        found = loop_of(_of(tmp_path, "int a[256], int b[64]", body, option), "loop")
        assert found.ii == interval, option


def test_each_array_is_cut_in_its_own_way(tmp_path: Path) -> None:
    found = estimate_of(tmp_path, MATRICES.replace("#pragma HLS OPTION", ""), "vitis").loops[0]
    said = "partition it by 8 in dimension 2, and `b` by 8 in dimension 1"
    line = 1 + MATRICES.split("\n").index("                sum += a[i][n] * b[n][j];")
    assert found.ii == 8 and said in found.why and f"k.cpp:{line})" in found.why


def test_a_bank_is_told_from_its_array(tmp_path: Path) -> None:
    option = "#pragma HLS ARRAY_PARTITION variable=a cyclic factor=4 dim=2"
    found = estimate_of(tmp_path, MATRICES.replace("#pragma HLS OPTION", option), "vitis").loops[0]
    assert found.ii == 8 and "16 accesses of `b`" in found.why
    both = f"{option}\n{option.replace('=a', '=b').replace('dim=2', 'dim=1')}"
    found = estimate_of(tmp_path, MATRICES.replace("#pragma HLS OPTION", both), "vitis").loops[0]
    assert found.ii == 2 and "4 accesses of one bank of `a`" in found.why


def test_allocation_leaves_shifts_and_sums_alone(tmp_path: Path) -> None:
    body, one = "b[i] = a[i] * 3; c[i] = a[i] * FIVE;", "ALLOCATION operation instances=mul limit=1"
    arguments = "int a[64], int b[64], int c[64]"
    free = _of(tmp_path, arguments, body.replace("FIVE", "5"), one)
    assert loop_of(free, "loop").ii == 1
    body = body.replace("* 3", "* a[i]").replace("FIVE", "12347")
    assert loop_of(_of(tmp_path, arguments, body, one), "loop").ii == 2


@pytest.mark.parametrize("mode", ["ap_memory", "bram"])
def test_the_latency_of_a_memory_outside_counts(tmp_path: Path, mode: str) -> None:
    arguments, body = "int a[64], int b[64]", "b[i] = a[i] + 1;"
    plain = loop_of(_of(tmp_path, arguments, body), "loop").iteration_latency
    slow = f"INTERFACE {mode} port=a latency=3"
    assert plain == (3, 3)
    assert loop_of(_of(tmp_path, arguments, body, slow), "loop").iteration_latency == (5, 5)


def test_cores_of_half_are_bound(tmp_path: Path) -> None:
    text = (
        "#include <hls_half.h>\nvoid k(half a[64], half b[64]) {\n"
        "loop: for (int i = 0; i < 64; i++) {\n#pragma HLS PIPELINE\n"
        "half s = a[i] + half(1.5);\nBIND\nb[i] = s; } }\n"
    )
    bind = "#pragma HLS BIND_OP variable=s op=hadd impl=fabric"
    found = [estimate_of(tmp_path, text.replace("BIND", one), "vitis") for one in ("", bind)]
    assert [one.resources["DSP"] for one in found] == [2, 0]


@pytest.mark.parametrize(
    ("kind", "body", "low", "high"),
    [
        ("int", "int t = a[i] * b[i];\nBIND\nb[i] = t;", 900, 1300),
        ("double", "double t = a[i] * b[i];\nBIND\nb[i] = t;", 2000, 4000),
    ],
)
def test_what_is_bound_to_logic_takes_logic(
    tmp_path: Path, kind: str, body: str, low: int, high: int
) -> None:
    """A 32 x 32 product without DSP blocks has 1,042 LUTs in a report."""
    op = {"int": "mul", "double": "dmul"}[kind]
    bind = f"#pragma HLS BIND_OP variable=t op={op} impl=fabric"
    luts = []
    for one in ("", bind):
        found = _of(tmp_path, f"{kind} a[64], {kind} b[64]", body.replace("BIND", one))
        assert (found.resources["DSP"] == 0) is bool(one)
        luts.append(found.resources["LUT"] or 0)
    assert low < luts[1] - luts[0] < high


def test_dividers_take_logic(tmp_path: Path) -> None:
    """One of 32 bits has 1,738 LUTs and 2,283 flip-flops in a pipeline (reports of Vitis HLS)."""
    found = _of(tmp_path, "int a[64], int b[64]", "b[i] = a[i] / b[i];").resources
    assert 1700 < (found["LUT"] or 0) < 2500 and 2100 < (found["FF"] or 0) < 3500


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("config_op fadd -impl fabric -latency 2", "config_op is not modelled"),
        ("config_compile -unsafe_math_optimizations", "floating-point sums keep their order"),
        ("config_compile -pipeline_loops 8", ""),
        (
            "create_clock -period 5 -name default",
            "5 ns, this estimate is at 10 ns; give --clock",
        ),
        ("create_clock -period 10ns", ""),
        ("create_clock -period 0.01us", ""),
        ("create_clock -period 66.7MHz", "is 14.99 ns"),
        ("config_compile -unsafe_math_optimizations=0", ""),
        ("config_compile -unsafe_math_optimizations=true", "keep their order"),
        ("config_schedule -enable_dsp_full_reg=false", ""),
        ("syn.compile.unsafe_math_optimizations=1", "keep their order"),
        ("syn.compile.unsafe_math_optimizations=0", ""),
        ("syn.op=op=fadd impl=fabric", "config_op is not modelled"),
        ("syn.top=k", ""),
        (
            "config_compile -pipeline_loop 0",
            "no option 'pipeline_loop'; did you mean pipeline_loops",
        ),
        ("config_unrol -tripcount_threshold 3", "did you mean config_unroll?"),
        ("config_dataflow -fifo_depth 3", ""),
        ("set_directive_pipeline -II k/each", "'k/each' as the value of -ii, and no place"),
        ("set_directive_pipeline -rewnd k/each", "as the value of -rewnd, and no place"),
        (
            "set_directive_dependence -variable a -dependent falsee k/each",
            "DEPENDENT=falsee; expected one of false, true; did you mean false?",
        ),
    ],
)
def test_a_line_that_is_not_followed_is_named(tmp_path: Path, line: str, said: str) -> None:
    source, tcl = tmp_path / "k.cpp", tmp_path / "d.tcl"
    source.write_text(
        "void k(float a[64], float *s) { each: for (int i = 0; i < 64; i++) *s += a[i]; }\n"
    )
    tcl.write_text(f"# first\n{line}\n")
    warnings = estimate(source, "k", directives=tcl).warnings
    found = [one for one in warnings if "d.tcl:2" in one]
    assert len(found) == bool(said) and said in "".join(found)


def test_a_misspelt_line_of_a_cfg_file_is_named(tmp_path: Path) -> None:
    source, cfg = tmp_path / "k.cpp", tmp_path / "c.cfg"
    source.write_text("void k(int a[64]) { each: for (int i = 0; i < 64; i++) a[i] = i; }\n")
    cfg.write_text("[hls]\nsyn.directve.unroll=k/each factor=2\nsyn.compile.pipline_loops=0\n")
    said = " ".join(estimate(source, "k", directives=cfg).warnings)
    assert "c.cfg:2: syn.directve is ignored; did you mean syn.directive?" in said
    assert (
        "c.cfg:3: syn.compile has no option 'pipline_loops'; did you mean pipeline_loops?" in said
    )


@pytest.mark.parametrize(
    ("file", "is_pipelined"),
    [
        ("syn.file=other.cpp\nsyn.compile.pipeline_loops=0\n", True),
        ("syn.file=k.cpp\nsyn.compile.pipeline_loops=0\n", False),
        ("syn.compile.pipeline_loops=0\n", False),
    ],
)
def test_a_cfg_file_of_other_sources_says_nothing_of_this_one(
    tmp_path: Path, file: str, is_pipelined: bool
) -> None:
    (tmp_path / "project.cfg").write_text("[hls]\n" + file)
    text = "void k(int a[64]) { each: for (int i = 0; i < 64; i++) a[i] = i; }\n"
    assert (loop_of(estimate_of(tmp_path, text, "vitis"), "each").ii is not None) is is_pipelined


def test_advice_does_not_ask_for_a_dependence_that_is_there(tmp_path: Path) -> None:
    text = """
void k(int a[64], const int to[64], const int from[64]) {
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
#pragma HLS DEPENDENCE variable=a inter false
        int l = to[i], m = from[i], t = a[m] * 3;
        a[m] = a[l] + t;
        a[l] -= t;
    }
}
"""
    for written in (text, text.replace("#pragma HLS DEPENDENCE variable=a inter false\n", "")):
        why = loop_of(estimate_of(tmp_path, written, "vitis"), "each").why
        assert ("DEPENDENCE" in why) is ("DEPENDENCE" not in written)


def test_elements_written_in_both_branches_are_handed_on(tmp_path: Path) -> None:
    """A report of Vitis HLS 2020.2 has II=1 and two cycles; with one branch it is read again."""
    both, one = "y[i + 1] = y[i] - (x[i] >> i)", "if (y[i] > x[i]) y[i + 1] = y[i]"
    found = [
        loop_of(estimate_of(tmp_path, CORDIC.replace("ELSE", text), "vitis-2020.2"), "turn")
        for text in (both, one)
    ]
    assert found[0].ii == 1 and found[0].iteration_latency == (2, 2)
    assert found[1].ii is not None and found[1].ii > 1


def test_what_an_inlined_function_reads_is_copied_not_cut(tmp_path: Path) -> None:
    """As AMD's DCT in Vitis HLS 2022.1: seven copies of the block of which eight words are read."""
    found = estimate_of(tmp_path, DCT, "vitis-2022.1")
    assert loop_of(found, "row_outer").ii == 1
    assert found.resources["BRAM_18K"] == 7 + 1


@pytest.mark.parametrize(("test", "interval"), [("a[j] == 0", 2), ("j != n", 1)])
def test_a_word_that_ends_the_loop_comes_before_the_next_iteration(
    tmp_path: Path, test: str, interval: int
) -> None:
    """Two such loops of a Huffman coder have II=2 in a report of Vitis HLS 2020.2."""
    text = f"""
int k(int a[64], int n) {{
    int j = n & 31;
    search: do {{
#pragma HLS PIPELINE
        j++;
    }} while ({test});
    return j;
}}
"""
    found = loop_of(estimate_of(tmp_path, text, "vitis-2020.2"), "search")
    assert found.ii == interval
    assert ("tell whether the loop goes on" in found.why) is (interval > 1)


@pytest.mark.parametrize("tool", ["vitis-2023.2", "vivado-2019.1"])
def test_without_exit_checks_a_known_count_is_a_multiple(tmp_path: Path, tool: str) -> None:
    """The tool keeps them else: 127 iterations are 8 of 16 copies in a report of 2019.1."""
    text = """
void k(const int a[128], int b[128]) {
    loop: for (int i = 0; i < COUNT; i++) {
#pragma HLS UNROLL factor=16 CHECK
        b[i] = 3 * a[i];
    }
}
"""

    def made(count: str, check: str) -> tuple[int | None, str]:
        source = text.replace("COUNT", count).replace("CHECK", check)
        found = estimate_of(tmp_path, source, tool)
        return loop_of(found, "loop").trip_count[1], " ".join(found.warnings)

    assert made("127", "") == (8, "") and made("128", "skip_exit_check") == (8, "")
    trips, said = made("127", "skip_exit_check")
    assert trips == 8 and "k.cpp:3: skip_exit_check has no effect: 127 turns" in said


def test_a_loop_that_a_directive_cannot_unroll_is_a_pipeline_unasked(tmp_path: Path) -> None:
    """UG1399: Vitis HLS makes pipelines by itself behind all directives; Vivado HLS makes none."""
    text = """
void k(const int rows[65], const int a[512], int b[64]) {
    row: for (int i = 0; i < 64; i++) {
#pragma HLS OUTER
        int sum = 0;
        word: for (int j = rows[i]; j < rows[i + 1]; j++) {
#pragma HLS INNER
            sum += a[j];
        }
        b[i] = sum;
    }
}
"""

    def made(outer: str, inner: str, tool: str = "vitis-2023.2") -> int | None:
        source = text.replace("OUTER", outer).replace("INNER", inner)
        found = estimate_of(tmp_path, source, tool)
        assert any("this loop cannot be unrolled" in one for one in found.warnings)
        return loop_of(found, "word").ii

    assert made("PIPELINE", "LOOP_TRIPCOUNT max=8") == 1
    assert made("LOOP_TRIPCOUNT max=64", "UNROLL") == 1
    assert made("PIPELINE", "PIPELINE off") is None
    assert made("PIPELINE", "LOOP_TRIPCOUNT max=8", "vivado-2019.1") is None


@pytest.mark.parametrize(
    ("outer", "inner", "by"),
    [
        ("INLINE off", "UNROLL\n#pragma HLS PIPELINE", "UNROLL"),
        ("PIPELINE", "PIPELINE II=2", "PIPELINE of k"),
        ("INLINE off", "PIPELINE", ""),
        ("INLINE off", "UNROLL factor=2\n#pragma HLS PIPELINE", ""),
    ],
)
def test_a_pipeline_that_is_unrolled_is_named(
    tmp_path: Path, outer: str, inner: str, by: str
) -> None:
    text = f"""
void k(const int a[8], int b[8]) {{
#pragma HLS {outer}
    loop: for (int i = 0; i < 8; i++) {{
#pragma HLS {inner}
        b[i] = 3 * a[i];
    }}
}}
"""
    said = [one for one in estimate_of(tmp_path, text, "vitis").warnings if "PIPELINE has" in one]
    assert [f"k.cpp:4: PIPELINE has no effect: {by} unrolls" in one for one in said] == [True] * (
        by != ""
    )


@pytest.mark.parametrize(
    ("said", "tool", "interval"),
    [
        ("distance=2", "vitis", 1),
        ("distance=2 true", "vitis", 2),
        ("", "vitis", 1),
        ("distance=2", "vivado", 2),
    ],
)
def test_vitis_hls_takes_a_dependence_for_false_unless_it_says(
    tmp_path: Path, said: str, tool: str, interval: int
) -> None:
    body = f"#pragma HLS DEPENDENCE variable=a inter RAW {said}\n a[x[i]] += 1;"
    text = LOOP.replace("ARGUMENTS", "const int x[64], int a[64]").replace("BODY", body)
    assert loop_of(estimate_of(tmp_path, text, tool), "loop").ii == interval


def test_vitis_hls_2020_hands_a_sum_on_in_its_last_cycle(tmp_path: Path) -> None:
    text = LOOP.replace("ARGUMENTS", "const float x[64], const float y[64], float *sum")
    text = text.replace("loop:", "float all = 0;\n    loop:").replace("BODY", "all += x[i] * y[i];")
    text = text[: text.rindex("}")] + "*sum = all;\n}\n"
    intervals = [
        loop_of(estimate_of(tmp_path, text, tool), "loop").ii
        for tool in ("vitis-2020.2", "vitis-2021.2")
    ]
    assert intervals == [4, 5]
