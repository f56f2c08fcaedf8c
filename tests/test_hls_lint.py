"""``hls lint``: for each rule a kernel that breaks it and a twin that keeps it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers import write

from pynq_torch import hls
from pynq_torch.cli import main
from pynq_torch.errors import InterfaceError, KernelBuildError
from pynq_torch.hls.estimator import compiler

HEAD = """static void load(const float* memory, float tile[64], int t) {
    for (int i = 0; i < 64; ++i) tile[i] = memory[t * 64 + i];
}
static void store(const float tile[64], float* memory, int t) {
    for (int i = 0; i < 64; ++i) memory[t * 64 + i] = tile[i];
}
static int whole(int n) { return n / 64; }
int seen;
void note() { ++seen; }
static bool check(const float tile[64]) { return tile[0] > 0; }
"""
PORTS = """
#pragma HLS INTERFACE m_axi port=a bundle=gmem0 offset=slave depth=64
#pragma HLS INTERFACE m_axi port=y bundle=gmem1 offset=slave depth=64
#pragma HLS INTERFACE s_axilite port=return
"""
REGION = """static void tiles(const float* a, float* y, int n) {
    for (int t = 0; t < n; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
#pragma HLS DATAFLOW
        float x[64];
        load(a, x, t);
        store(x, y, t);
    }
}
"""
TOP = "void k(const float* a, float* y, int n, int s) {" + PORTS + "%s\n}\n"
LOOP = """    for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE II=1
        %s
    }
"""


def rules(folder: Path, text: str) -> list[str]:
    """Return the rules that a kernel breaks, each once."""
    found = hls.lint(write(folder / "k.cpp", text), "k", schedule=False)
    return sorted({finding.rule for finding in found})


def texts(folder: Path, text: str) -> str:
    return "\n".join(map(str, hls.lint(write(folder / "k.cpp", text), "k", schedule=False)))


def in_region(old: str, new: str) -> str:
    assert old in REGION
    return HEAD + REGION.replace(old, new) + TOP % "    tiles(a, y, n);"


def in_loop(statement: str, before: str = "") -> str:
    return TOP % (before + LOOP % statement)


# ---- dataflow ------------------------------------------------------------------------------------


def test_a_canonical_region_has_no_findings(tmp_path: Path) -> None:
    assert hls.lint(write(tmp_path / "k.cpp", in_region("", "")), "k") == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("for (int t = 0; t < n; ++t) {", "int t = 0; while (t < n) {", "loop that does not count"),
        ("++t", "t += 1", r"counts one variable from 0 with \+\+"),
        ("t < n;", "t < n / 64;", "bound of a DATAFLOW loop is computed"),
        ("t < n;", "t < whole(n);", "bound of a DATAFLOW loop is computed"),
        ("load(a, x, t);", "load(a, x, whole(t));", r"value of whole\(\) is used"),
        ("float x[64];", "float x[64]; const int w = whole(n);", r"value of whole\(\) is used"),
        ("load(a, x, t);", "if (t < 8) load(a, x, t);", "declarations and calls only"),
        ("load(a, x, t);", "load(a, x, t); if (t > 8) break;", "declarations and calls only"),
        ("load(a, x, t);", "load(a, x, t); n = n - 1;", "declarations and calls only"),
        ("++t", "--t", r"counts one variable from 0 with \+\+"),
        ("int t = 0", "int t = 1", r"counts one variable from 0 with \+\+"),
        ("float x[64];", "static float x[64];", "a static variable keeps its value"),
        ("store(x, y, t);", "store(x, y, t); note(); note();", "2 processes write 'seen'"),
        ("load(a, x, t);", "load(a, x, t); load(a, x, t);", "2 processes write 'x'"),
        ("store(x, y, t);", "store(x, y, t); store(x, y + 64, t);", "processes read 'x'"),
        ("load(a, x, t);\n        store(x, y, t);", "store(x, y, t);\n        load(a, x, t);",
         "'x' is read before the process that writes it"),
        ("    for (int t", "    float x[64];\n    for (int t", "'x' is carried between processes"),
        ("    for (int t", "    store(a, y, 0);\n    for (int t", "is alone in its function"),
        ("store(x, y, t);", "", "no process reads 'x'"),
    ],
)  # fmt: skip
def test_a_region_that_is_not_canonical(tmp_path: Path, old: str, new: str, said: str) -> None:
    source = in_region(old, new)
    if "carried" in said:
        source = source.replace(
            "#pragma HLS DATAFLOW\n        float x[64];", "#pragma HLS DATAFLOW"
        )
    assert re.search(rf"k\.cpp:\d+: dataflow: .*{said}.*Canonical Body", texts(tmp_path, source))


def test_a_process_returns_nothing(tmp_path: Path) -> None:
    source = in_region("store(x, y, t);", "check(x);\n")
    assert re.search(r"k\.cpp:\d+: void: the process check returns bool", texts(tmp_path, source))


def test_an_assertion_is_no_process(tmp_path: Path) -> None:
    """It tells the tool a range (UG1399, "Assertions"), and stands before the calls."""
    told = "float x[64]; assert(n % 64 == 0);"
    source = in_region("float x[64];", told)
    assert rules(tmp_path, "#include <assert.h>\n" + source) == []
    assert rules(tmp_path, "#define NDEBUG\n#include <assert.h>\n" + source) == []
    assert rules(tmp_path, source.replace("assert", "(void)")) == ["dataflow"]


def test_a_lambda_is_a_process_too(tmp_path: Path) -> None:
    source = HEAD + TOP % (
        "#pragma HLS DATAFLOW\n    float x[64];\n"
        "    auto scale = [](float t[64]) { t[0] = 2; };\n"
        "    auto first = [](const float t[64], float* to) { to[0] = t[0]; return 1; };\n"
        "    scale(x);\n    first(x, y);"
    )
    assert re.findall(r"the process (\w+) returns int", texts(tmp_path, source)) == ["first"]
    assert rules(tmp_path, source.replace(" return 1;", "")) == []


def test_what_one_process_keeps_to_itself_may_be_carried(tmp_path: Path) -> None:
    source = in_region("store(x, y, t);", "add(x, sums);").replace(
        "static int", "static void add(const float x[64], float sums[64]) {\n"
        "    for (int i = 0; i < 64; ++i) sums[i] += x[i];\n}\nstatic int", 1
    ).replace("float* y, int n) {\n    for", "float sums[64], int n) {\n    for")  # fmt: skip
    source = source.replace("tiles(a, y, n)", "float sums[64]; tiles(a, sums, n)")
    assert rules(tmp_path, source) == []


def test_regions_in_templates_are_looked_at(tmp_path: Path) -> None:
    template = (HEAD + REGION).replace("static", "template <class T> static")
    template = template.replace("load(a", "load<T>(a").replace("store(x", "store<T>(x")
    clean = template + TOP % "    tiles<int>(a, y, n);"
    assert rules(tmp_path, clean) == []
    twice = clean.replace("load<T>(a, x, t);", "load<T>(a, x, t); load<T>(a, x, t);")
    assert "2 processes write 'x'" in texts(tmp_path, twice)


def test_streams_by_another_name_are_streams(tmp_path: Path) -> None:
    source = """
#include <hls_stream.h>
typedef hls::stream<int> fifo;
static void make(int n, fifo& out) {
    loop: for (int i = 0; i < n; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
        out.write(i);
    }
}
static void take(fifo& in, int n, int& sum) {
    int all = 0;
    loop: for (int i = 0; i < n; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
        all += in.read();
    }
    sum = all;
}
void k(int n, int& sum) {
#pragma HLS DATAFLOW
    fifo between;
    make(n, between);
    take(between, n, sum);
}
"""
    assert rules(tmp_path, source) == []
    twice = source.replace("make(n, between);", "make(n, between); make(n, between);")
    assert "2 processes write 'between'" in texts(tmp_path, twice)


# ---- loops ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "clean"),
    [
        ("i", True), ("n + i", True), ("n * 64 + i", True),
        ("i * s", False), ("(n + i) * s", False), ("n + i * s", False), ("i << s", False),
        ("4 * i", False), ("63 - i", False), ("i / 2", False), ("i % s", False), ("i ^ 1", False),
        ("0]; if (i > s) y[i] = a[i", False),
        ("static_cast<int>(w[i]) * s", True),  # a gather: no stride at all
    ],
)  # fmt: skip
def test_bursts_are_provable(tmp_path: Path, index: str, clean: bool) -> None:
    source = in_loop(f"y[i] = a[{index}];", "    float w[64];\n")
    assert rules(tmp_path, source) == ([] if clean else ["burst"])


@pytest.mark.parametrize(
    ("statement", "clean"),
    [
        ("y[i] = *(a + i * s);", False),
        ("y[i] = *at; at += s;", False),
        ("y[i] = *at; at = at + s;", False),
        ("y[i] = *at++;", True),
        ("y[i] = get(a, i, s);", False),
        ("y[i] = get(a, i, 1);", False),  # what a caller passes is not followed
        ("y[i] = walk.get(i);", False),
        ("y[i] += a[i];", False),  # read and written
        ("y[2 * i] = a[2 * i]; y[2 * i + 1] = a[2 * i + 1];", True),
    ],
)
def test_pointers_are_followed(tmp_path: Path, statement: str, clean: bool) -> None:
    walk = (
        "struct Walk {\n    int step;\n    const float* from;\n"
        "    float get(int i) const { return from[i * step]; }\n};\n"
        "static float get(const float* from, int i, int s) { return from[i * s]; }\n"
    )
    source = walk + in_loop(statement, "    const float* at = a;\n    Walk walk = {s, a};\n")
    assert rules(tmp_path, source) == ([] if clean else ["burst"])


def test_a_stride_is_followed_through_calls_and_variables(tmp_path: Path) -> None:
    stepped = TOP % (LOOP % "y[i] = a[at];").replace("++i)", "++i, at += s)")
    stepped = stepped.replace("int i = 0;", "int i = 0, at = 0;")
    assert rules(tmp_path, stepped) == ["burst"]
    assert rules(tmp_path, stepped.replace("at += s", "++at")) == []
    inner = "static void copy(const float* from, float* y, int s) {\n%s}\n" % (
        LOOP % "const int at = i * s;\n        y[i] = from[at];"
    )
    assert rules(tmp_path, inner + TOP % "    copy(a + n, y, s);") == ["burst"]
    assert (
        rules(tmp_path, inner + TOP % "    static float b[64]; copy(b, y, s); y[0] = a[0];") == []
    )


@pytest.mark.parametrize(
    ("statement", "clean"),
    [
        ("if (i == s) continue; y[i] = a[i];", False),
        ("y[i] = a[i]; if (i == s) break;", False),
        ("y[i] = s > i && a[i] > 0;", False),
        ("y[i] = a[i]; if (i == s) continue;", True),
        ("switch (s) { case 0: n = 1; break; default: n = 2; } y[i] = a[i];", True),
    ],
)
def test_what_a_branch_decides_is_no_burst(tmp_path: Path, statement: str, clean: bool) -> None:
    assert rules(tmp_path, in_loop(statement)) == ([] if clean else ["burst"])


@pytest.mark.parametrize(("index", "clean"), [("[n][i]", True), ("[i][n]", False)])
def test_arguments_of_two_dimensions(tmp_path: Path, index: str, clean: bool) -> None:
    source = in_loop(f"y[n][i] = a{index};")
    for name in ("const float* a", "float* y"):
        source = source.replace(name, name.replace("* ", " ") + "[64][64]")
    assert rules(tmp_path, source) == ([] if clean else ["burst"])


@pytest.mark.parametrize("condition", ["s == 1", "s != 1"])
def test_a_branch_for_neighbours_or_a_comment_allows_strides(
    tmp_path: Path, condition: str
) -> None:
    branch = "    if (%s) {\n%s    } else {\n%s    }"
    bodies = LOOP % "y[i] = a[i];", LOOP % "y[i] = a[i * s];"
    assert rules(tmp_path, TOP % (branch % (condition, *bodies))) == []
    assert rules(tmp_path, TOP % (branch % ("s > 1", *bodies))) == ["burst"]
    assert rules(tmp_path, TOP % ("    // Rows lie apart: single accesses.\n" + bodies[1])) == []
    assert rules(tmp_path, TOP % ("    // No single accesses here.\n" + bodies[1])) == ["burst"]


@pytest.mark.parametrize(
    ("loop", "clean"),
    [
        ("for (int i = 0; i < 64; ++i)", True),
        ("for (int i = 0; i < SIZE; ++i)", True),
        ("int i, j; for (i = 0, j = n; i < 64; ++i, ++j)", True),
        ("int i; for (i = n; i < 64; ++i)", False),
        ("for (unsigned i = 0; i < sizeof(n); ++i)", True),
        ("for (Count i; i < 64; ++i)", True),
        ("for (int half = SIZE / 2; half > 0; half /= 2)", True),
        ("for (int i = 0; i < n; ++i)", False),
        ("for (int i = n; i < 64; ++i)", False),
        ("for (int i = 0; i < 64; i += s)", False),
        ("while (n > 0)", False),
    ],
)
def test_loops_of_unknown_length_have_a_tripcount(tmp_path: Path, loop: str, clean: bool) -> None:
    count = "struct Count { int at = 0; void operator++() { at++; } };\n"  # as ap_uint is
    count += "bool operator<(const Count& a, int b) { return a.at < b; }\n"
    source = "constexpr int SIZE = 64;\n" + TOP % f"    {loop} {{\n        y[0] = n--;\n    }}"
    source = count + source
    assert rules(tmp_path, source) == ([] if clean else ["tripcount"])
    told = source.replace("{\n        y", "{\n#pragma HLS LOOP_TRIPCOUNT min=1 max=64\n        y")
    assert rules(tmp_path, told) == []


@pytest.mark.parametrize(
    ("declared", "statement", "clean"),
    [
        ("float sum = 0;", "sum += a[i];", False),
        ("float sum = 0;", "sum = sum + a[i];", False),
        ("float fmaf(float, float, float), sum = 0;", "sum = fmaf(a[i], a[i], sum);", False),
        ("float fmaf(float, float, float), sum = 0;", "sum = fmaf(a[i], a[i], 1);", True),
        ("double sum = 0;", "sum += a[i];", False),
        ("int sum = 0;", "sum += static_cast<int>(a[i]);", True),
        ("float sum[64];", "sum[n] += a[i];", False),
        ("float sum[64];", "sum[i] += a[i];", True),
        ("", "float sum = 0; sum += a[i]; y[i] = sum;", True),
        ("float sum[8];\n#pragma HLS ARRAY_PARTITION variable=sum complete",
         "sum[i % 8] += a[i];", False),
        ("float sum[8];\n#pragma HLS ARRAY_PARTITION variable=sum type=complete dim=0",
         "for (int l = 0; l < 8; ++l) sum[l] += a[i];", False),
        ("float sum[9][8];\n#pragma HLS ARRAY_PARTITION variable=sum type=complete dim=2",
         "for (int l = 0; l < 8; ++l) sum[i % 9][l] += a[i];", True),
    ],
)  # fmt: skip
def test_sums_reach_their_interval(
    tmp_path: Path, declared: str, statement: str, clean: bool
) -> None:
    source = in_loop(statement, f"    {declared}\n")
    assert rules(tmp_path, source) == ([] if clean else ["accumulate"])
    if "ARRAY_PARTITION" not in declared:
        assert rules(tmp_path, source.replace("II=1", "II=8")) == []
        assert rules(tmp_path, source.replace("PIPELINE II=1", "PIPELINE off")) == []


# ---- pragmas -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "statement", "said"),
    [
        ("Sum sum = {0};", "sum.value += a[i]; y[i] = sum.value;", "the floating-point addition"),
        ("Sum sum = {0};", "sum.add(a[i]); y[i] = sum.value;", "the floating-point addition"),
        (
            "float sum = 0;",
            "float next = sum + a[i]; sum = next; y[i] = sum;",
            "floating-point add",
        ),
        ("int bins[64];", "bins[n ^ (i & s)] += i;", "`bins` is read after it was written 2 iter"),
        (  # Vitis HLS would keep three copies of a memory that no directive names
            "float t[64];\n#pragma HLS BIND_STORAGE variable=t type=ram_2p\n"
            "    for (int i = 0; i < 64; ++i) t[i] = a[i];",
            "y[i] = t[i] + t[63 - i] + t[i ^ n] + t[i ^ s];",
            "4 accesses of `t`",
        ),
        (
            "Pair pair[64];\n    for (int i = 0; i < 64; ++i) pair[i].a = pair[i].b = a[i];",
            "y[i] = pair[i].a + pair[63 - i].b + pair[i ^ n].a;",
            "",
        ),
    ],
)
def test_the_schedule_finds_what_syntax_hides(
    tmp_path: Path, before: str, statement: str, said: str
) -> None:
    types = "struct Sum {\n    float value;\n    void add(float v) { value += v; }\n};\n"
    types += "struct Pair { float a, b; };\n"
    source = types + in_loop(statement, f"    {before}\n")
    found = "\n".join(map(str, hls.lint(write(tmp_path / "k.cpp", source), "k")))
    if said:
        assert re.fullmatch(
            rf"\S*k\.cpp:\d+: interval: II=\d: .*{said}.*pragma HLS pipeline.*", found
        )
    else:
        assert not found


def test_a_false_dependence_says_why(tmp_path: Path) -> None:
    pragma = "#pragma HLS DEPENDENCE variable=sum inter %s\n"
    source = in_loop("\n" + pragma % "false" + "        sum[i % 8] += a[i];", "    float sum[8];\n")
    assert rules(tmp_path, source) == ["dependence"]
    told = source.replace("\n#pragma HLS DEP", "\n        // Eight apart.\n#pragma HLS DEP")
    assert rules(tmp_path, told) == []
    assert rules(tmp_path, source.replace("inter false", "inter false  // eight apart")) == []
    assert rules(tmp_path, source.replace("inter false", "dependent=false")) == ["dependence"]
    todo = source.replace("\n#pragma HLS DEP", "\n        // TODO say why\n#pragma HLS DEP")
    assert rules(tmp_path, todo) == ["dependence"]
    assert rules(tmp_path, source.replace("inter false", "inter RAW distance=8 true")) == []


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("HLS PIPELINE II=1", "HLS PIPELNIE II=1", "PIPELNIE is no HLS pragma.*mean PIPELINE"),
        ("HLS PIPELINE II=1", "HLS PIPELINE I=1", "no option 'i'; did you mean ii"),
        ("HLS PIPELINE II=1", "HLS PIPELINE II=one", "II=one, and nothing is called so"),
        ("HLS PIPELINE II=1", "HSL PIPELINE II=1", "#pragma HSL is ignored"),
        ("HLS PIPELINE II=1", "HLS UNROLL fctor=2", "did you mean factor"),
        ("HLS UNROLL", "HLS PIPELINE", None),
        ("variable=x complete", "variable=z complete", "names 'z', which k has not"),
        ("variable=x complete", "variable=x complet3", "no option 'complet3'; did you mean comple"),
        ("variable=x complete", "complete", "names no variable"),
        ("variable=x complete", "variable=x type=cyclic", "of type cyclic has no factor"),
        ("variable=x complete", "variable=x block", "of type block has no factor"),
        ("variable=x complete", "variable=x", None),
        ("variable=x complete", "variable=n complete", "no effect: n is a number, not an array"),
        ("HLS UNROLL", "HLS LOOP_TRIPCOUNT min=9 max=2", "MIN=9 above MAX=2"),
        ("HLS UNROLL", "HLS LOOP_TRIPCOUNT min = 2 * 3 max = 8", None),
        ("s_axilite port=return", "s_axlite port=return", "no mode 's_axlite'; did you mean s_axi"),
        ("s_axilite port=return", "s_axilite port=return bundel=b", "did you mean bundle"),
        ("s_axilite port=return", "s_axilite port=return register both", None),
        ("s_axilite port=return", "s_axilite port=return both", "no option 'both'"),
    ],
)
def test_words_of_pragmas(tmp_path: Path, right: str, wrong: str, said: str | None) -> None:
    declared = "    float x[8];\n#pragma HLS ARRAY_PARTITION variable=x complete\n"
    source = in_loop("y[i] = a[i] + x[0];\n#pragma HLS UNROLL", declared)
    assert rules(tmp_path, source) == []
    assert right in source
    found = texts(tmp_path, source.replace(right, wrong))
    assert re.search(rf"k\.cpp:\d+: pragma: .*{said}", found) if said else not found


EFFECTS = """
#include <ap_int.h>
void k(const int a[64], int y[64], int n, ap_int<9> m) {
    int t[64], u[8][16];
WHAT
    for (int i = 0; i < 64; ++i) t[i] = a[i] * n + m;
    for (int i = 0; i < 64; ++i) y[i] = t[63 - i] + u[i & 7][n & 15];
}
"""


@pytest.mark.parametrize(
    ("pragma", "said"),
    [
        ("RESOURCE variable=t core=RAM_2P_BRAM", None),
        ("RESOURCE variable=t core=FMul_maxdsp", None),
        ("RESOURCE variable=t core=Mul5S", None),
        ("RESOURCE variable=t core=RAM_XYZ", "CORE=RAM_XYZ, which is no core .* mean RAM_"),
        ("RESOURCE variable=t core=RAM_2P_BRAN", "did you mean RAM_2P_BRAM"),
        ("BIND_STORAGE variable=t type=ram_2p impl=bram", None),
        ("BIND_STORAGE variable=t type=ram_3p", "TYPE=ram_3p; expected one of .* mean ram_"),
        ("BIND_STORAGE variable=t type=ram_2p impl=bramm", "IMPL=bramm; .* mean bram"),
        ("BIND_STORAGE variable=t impl=bram", "has no type, so it binds nothing; write type=ram"),
        ("BIND_OP variable=t op=mull", "OP=mull; expected one of .* mean mul"),
        ("BIND_OP variable=t op=mul impl=dps", "IMPL=dps; expected one of .* mean dsp"),
        ("BIND_OP variable=t impl=dsp", "has no op, so it binds nothing; write op=mul"),
        ("STREAM variable=n", "STREAM has no effect: n is a number, not an array"),
        ("STREAM variable=m", "STREAM has no effect: m is a number, not an array"),
        ("STREAM variable=t depth=4", "STREAM of t has no effect: k has no DATAFLOW"),
        ("DATAFLOW\n#pragma HLS STREAM variable=t depth=4", None),
        ("STREAM variable=a depth=4", None),  # a port becomes ap_fifo by it
        ("PIPELINE II=2 II=3", "PIPELINE has II twice, of which 3 counts here"),
        ("ARRAY_PARTITION variable=t cyclic factor=64", None),
        ("ARRAY_PARTITION variable=t cyclic factor=128",
         "FACTOR=128, and t has 64 elements there, so it is cut completely"),
        ("ARRAY_PARTITION variable=y block factor=65", "FACTOR=65, and y has 64 elements"),
        ("ARRAY_PARTITION variable=u cyclic factor=16", "FACTOR=16, and u has 8 elements"),
        ("ARRAY_PARTITION variable=u cyclic factor=16 dim=2", None),
        ("ARRAY_RESHAPE variable=u cyclic factor=17 dim=2", "FACTOR=17, and u has 16 elements"),
        ("ARRAY_PARTITION variable=t complete factor=4", "has no use for FACTOR=4: each element"),
        ("ARRAY_PARTITION variable=t type=complete factor=4", "has no use for FACTOR=4"),
    ],
)  # fmt: skip
def test_pragmas_that_do_nothing_say_so(tmp_path: Path, pragma: str, said: str | None) -> None:
    source = EFFECTS.replace("WHAT", f"#pragma HLS {pragma}")
    found = [one for one in texts(tmp_path, source).splitlines() if ": pragma: " in one]
    assert bool(found) == (said is not None)
    assert not found or any(re.search(rf"k\.cpp:5: pragma: .*{said}", one) for one in found)
    if said is None:
        return
    name, *words = pragma.split()
    kept = [word for word in words if not word.startswith("variable=")]
    options = " ".join(f"-{word.replace('=', ' ', 1)}" for word in kept)
    place = "k" + "".join(f" {word[9:]}" for word in words if word.startswith("variable="))
    script = write(tmp_path / "d.tcl", f"\nset_directive_{name.lower()} {options} {place}\n")
    write(tmp_path / "k.cpp", EFFECTS.replace("WHAT", ""))
    told = hls.lint(tmp_path / "k.cpp", "k", directives=script, schedule=False)
    assert any(re.search(rf"d\.tcl:2: pragma: .*{said}", str(one)) for one in told)


def test_the_spelling_of_before_2013_is_not_read(tmp_path: Path) -> None:
    source = EFFECTS.replace("WHAT", "#pragma AP PIPELINE II=2")
    assert "k.cpp:5: pragma: #pragma AP, of Vivado HLS before 2013, is not read" in texts(
        tmp_path, source
    )
    assert ": pragma: " not in texts(tmp_path, source.replace("AP PIPE", "AP_OF_OTHERS PIPE"))
    assert ": pragma: " not in texts(tmp_path, source.replace("AP PIPELINE", "AP of others"))


def test_the_size_of_an_array_of_the_library_is_known(tmp_path: Path) -> None:
    walk = "for (int i = 0; i < int(t.size()); ++i) y[i] = float(t[i]);"
    source = "#include <array>\n" + TOP % f"    std::array<int, 8> t = {{}};\n    {walk}"
    assert rules(tmp_path, source) == []
    assert rules(tmp_path, source.replace("int(t.size())", "n")) == ["tripcount"]


def test_pragmas_stand_where_they_have_an_effect(tmp_path: Path) -> None:
    source = TOP % "    if (n > 0) {\n#pragma HLS PIPELINE II=1\n        y[0] = a[0];\n    }"
    assert "PIPELINE in a branch has no effect" in texts(tmp_path, source)
    source = TOP % "#pragma HLS LOOP_TRIPCOUNT min=1 max=2\n    y[0] = a[0];"
    assert "LOOP_TRIPCOUNT in a function has no effect" in texts(tmp_path, source)
    assert rules(tmp_path, TOP % "#pragma HLS PIPELINE\n    y[0] = a[0];") == []
    source = "#pragma HLS PIPELINE\n" + TOP % "    y[0] = a[0];"
    assert "PIPELINE is outside every function" in texts(tmp_path, source)


def test_directives_of_a_file_count(tmp_path: Path) -> None:
    source = "    float sum = 0, part[8];\n    loop:\n" + LOOP % "sum += a[i]; part[i % 8] = a[i];"
    source = source.replace("#pragma HLS PIPELINE II=1\n", "")
    path = write(tmp_path / "k.cpp", TOP % source)
    lines = [
        'set_directive_pipeline -II 1 "k/loop"',
        "# A reason of two words.",
        'set_directive_dependence -variable part -type inter -dependent false "k/loop"',
        "set x 1",
        'set_directive_dependence -variable part -type inter -dependent false "k/loop"',
        'set_directive_unroll "k/lop"',
    ]
    script = write(tmp_path / "d.tcl", "\n".join(lines) + "\n")
    found = hls.lint(path, "k", directives=script, schedule=False)
    said = [(Path(one.file).name, one.line, one.rule) for one in found]
    assert said == [("d.tcl", 5, "dependence"), ("d.tcl", 6, "pragma"), ("k.cpp", 8, "accumulate")]
    assert hls.lint(path, "k", schedule=False) == []


# ---- the command ---------------------------------------------------------------------------------


def test_the_command_prints_a_line_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "k.cpp", in_loop("y[i] = a[i * s];"))
    assert main(["hls", "lint", str(path), "--top", "k"]) == 1
    line = capsys.readouterr().out
    assert re.fullmatch(r".*k\.cpp:7: burst: 'a' is read .* \(UG1399, \"Precond.*\"\)\n", line)
    write(path, in_loop("y[i] = a[i];"))
    assert main(["hls", "lint", str(path), "--top", "k"]) == 0
    assert capsys.readouterr().out == ""


def test_what_cannot_be_read_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "k.cpp", in_loop("y[i] = b[i];"))
    right = write(tmp_path / "r.cpp", in_loop("y[i] = a[i];"))
    for file, top, said in (
        (tmp_path / "none.cpp", "k", "none.cpp"),
        (right, "other", r"r\.cpp: no definition of the top function 'other'"),
        (path, "k", r"k\.cpp:\d+: .*'b' was not declared"),
    ):
        assert main(["hls", "lint", str(file), "--top", top]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert re.search(said, error)
    with pytest.raises(KernelBuildError):
        hls.lint(path, "k")
    with pytest.raises(InterfaceError):
        hls.lint(tmp_path / "none.cpp", "k")
    missing = write(tmp_path / "m.cpp", '#include "gone.h"\n' + in_loop("y[i] = a[i];"))
    with pytest.raises(KernelBuildError, match=r"m\.cpp:1: header not found: gone\.h"):
        hls.lint(missing, "k")


def test_without_clang_the_command_says_what_it_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiler, "CLANG", "no-such-clang")
    path = write(tmp_path / "k.cpp", in_loop("y[i] = a[i];"))
    assert main(["hls", "lint", str(path), "--top", "k"]) == 0
    assert (
        "note: rule 'interval' is left out: hls estimate needs no-such" in capsys.readouterr().err
    )
    with pytest.raises(KernelBuildError, match="no-such-clang"):
        hls.lint(path, "k")


@pytest.mark.parametrize(("named", "wrong"), [("v", False), ("this->v", False), ("w", True)])
@pytest.mark.parametrize(("template", "kind"), [("", "Tab"), ("template <int N = 8> ", "Tab<>")])
def test_a_constructor_has_directives_for_its_members(tmp_path, template, kind, named, wrong):
    owner = f"{template}struct Tab {{\n    int v[8];\n    Tab() {{\n"
    owner += f"#pragma HLS ARRAY_PARTITION variable={named} complete\n    }}\n}};\n"
    text = owner + in_loop("t.v[i & 7] = a[i]; y[i] = t.v[i & 3];", f"    {kind} t;\n")
    found = hls.lint(write(tmp_path / "k.cpp", text), "k")
    assert any("names 'w', which Tab" in str(one) for one in found) == wrong
    assert any("ARRAY_PARTITION" in str(one) for one in found) == wrong


def test_names_of_std_since_cpp17_may_be_the_source_s_own(tmp_path: Path) -> None:
    source = """
#include <iostream>
using namespace std;
typedef unsigned char byte;
int size = 3;
void k(byte a[8]) {
#pragma HLS INTERFACE s_axilite port=return
    for (int i = 0; i < 8; ++i) {
#pragma HLS PIPELYNE
        a[i] += size;
    }
}
"""
    assert "PIPELYNE" in texts(tmp_path, source)
