"""``hls estimate``: directives that bind operators, merge loops and ask for a latency."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from pynq_torch.errors import KernelBuildError
from pynq_torch.hls import Estimate, estimate
from pynq_torch.hls.estimator import compiler
from pynq_torch.hls.estimator.passes import TooLongError
from pynq_torch.hls.estimator.trees import without_large_trees

MISSING = compiler.tools()
pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(MISSING is not None, reason=MISSING or ""),
]

PRODUCT = """
#include <ap_int.h>
void k(const TYPE x[64], const TYPE u[64], TYPE y[64], TYPE z[64]) {
    a: for (int i = 0; i < 64; ++i) {
        TYPE p = x[i] * u[i];
BIND
        y[i] = p;
    }
    b: for (int i = 0; i < 64; ++i)
        z[i] = x[i] + u[i];
}
"""
MERGE = """
void k(const int x[64], int y[64], const int u[64], int z[64], int n) {
#pragma HLS LOOP_MERGE
    a: for (int i = 0; i < LEFT; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=8 max=16
        y[i] = 3 * x[i];
    }
    b: for (int i = 0; i < RIGHT; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=8 max=16
        z[i] = FROM;
    }
}
"""


def _of(folder: Path, text: str, **words: str) -> Estimate:
    for word, value in words.items():
        text = text.replace(word, value)
    source = folder / "k.cpp"
    source.write_text(text)
    return estimate(source, "k", tool="vitis")


def _bound(folder: Path, kind: str, pragma: str) -> tuple[int | None, tuple[int | None, ...]]:
    """The DSP blocks, and the depths of the loops."""
    made = _of(folder, PRODUCT, TYPE=kind, BIND=f"#pragma HLS {pragma}" if pragma else "")
    return made.resources["DSP"], tuple(loop.iteration_latency[1] for loop in made.loops)


@pytest.mark.parametrize(
    ("kind", "pragma", "dsp", "later"),
    [
        ("int", "BIND_OP variable=p op=mul impl=fabric", -3, 0),
        ("int", "BIND_OP variable=p op=mul impl=dsp latency=4", 0, 3),
        ("int", "BIND_OP variable=p op=mul latency=-1", 0, 0),
        ("int", "BIND_OP variable=p op=add impl=fabric", 0, 0),  # no sum gives it its value
        ("int", "BIND_OP variable=y op=mul impl=fabric", 0, 0),  # it is only assigned
        ("int", "BIND_OP variable=z op=add impl=dsp", 1, 0),
        ("int", "RESOURCE variable=p core=Mul_LUT", -3, 0),
        ("int", "RESOURCE variable=p core=Mul5S", 0, 3),
        ("ap_int<18>", "BIND_OP variable=p op=mul impl=fabric", -1, 0),
        ("ap_int<4>", "BIND_OP variable=p op=mul impl=dsp", 1, 0),
        ("float", "BIND_OP variable=p op=fmul impl=meddsp", -2, 0),
        ("float", "BIND_OP variable=p op=fmul impl=fabric latency=7", -3, 4),
        ("float", "RESOURCE variable=z core=FAddSub_nodsp", -2, 0),
        ("double", "BIND_OP variable=p op=dmul impl=fabric", -11, 0),
    ],
)
def test_operators_are_bound(tmp_path: Path, kind: str, pragma: str, dsp: int, later: int) -> None:
    blocks, depths = _bound(tmp_path, kind, "")
    assert blocks is not None
    assert depths[0] is not None
    assert _bound(tmp_path, kind, pragma) == (blocks + dsp, (depths[0] + later, *depths[1:]))


def test_a_bound_operator_in_an_inlined_function(tmp_path: Path) -> None:
    text = """
int product(int x, int u) {
    int p = x * u;
#pragma HLS BIND_OP variable=p op=mul impl=fabric
    return p;
}
void k(const int x[64], int y[64]) {
    for (int i = 0; i < 64; ++i) y[i] = product(x[i], x[63 - i]) + 1;
}
"""
    assert _of(tmp_path, text).resources["DSP"] == 0
    assert _of(tmp_path, text, fabric="dsp").resources["DSP"] == 3


@pytest.mark.parametrize(
    ("words", "trips", "ii", "depth"),
    [
        ({"LEFT": "64", "RIGHT": "32", "FROM": "u[i] + 1"}, (64, 64), 1, 3),
        ({"LEFT": "n", "RIGHT": "n", "FROM": "u[i] + 1"}, (8, 16), 1, 3),
        # Three reads of x an iteration: two ports give two a cycle.
        ({"LEFT": "64", "RIGHT": "64", "FROM": "x[i] + x[i ^ 5]"}, (64, 64), 2, 3),
        # The second loop waits for what the first one has written.
        ({"LEFT": "64", "RIGHT": "64", "FROM": "y[i] + 1"}, (64, 64), 1, 6),
    ],
)
def test_merged_loops(
    tmp_path: Path, words: dict[str, str], trips: tuple[int, int], ii: int, depth: int
) -> None:
    (loop,) = (made := _of(tmp_path, MERGE, **words)).loops
    assert (loop.name, loop.trip_count, loop.ii) == ("a_b", trips, ii)
    assert loop.iteration_latency == (depth, depth)
    assert loop.latency == tuple((n - 1) * ii + depth - 1 for n in trips)
    apart = _of(tmp_path, MERGE, **{"#pragma HLS LOOP_MERGE": "", **words})
    assert [loop.name for loop in apart.loops] == ["a", "b"]
    # Vitis HLS runs loops that meet in nothing side by side, merged or not.
    assert (made.latency[1] or 0) <= (apart.latency[1] or 0)


def test_loops_that_cannot_be_merged_say_why(tmp_path: Path) -> None:
    made = _of(tmp_path, MERGE, LEFT="64", RIGHT="n", FROM="u[i]")
    assert [loop.name for loop in made.loops] == ["a", "b"]
    (warning,) = made.warnings
    assert "k.cpp:4: LOOP_MERGE has no effect: a constant and a" in warning


BOTH = """
void k(const int x[64], int y[64], int z[64]) {
#pragma HLS LOOP_MERGE
    int kept = 0;
    a: for (int i = 0; i < 64; ++i) { FIRST; }
    BETWEEN;
    b: for (int i = 0; i < LAST; ++i) { SECOND; }
}
"""


@pytest.mark.parametrize(
    ("first", "between", "second", "why"),
    [
        ("y[i] = x[i]", "", "z[i] = y[i] * 3", ""),
        ("y[i] = x[i]", "", "if (i) z[i] = y[i - 1] * 3", ""),
        ("y[i] = x[i]", "", "z[i] = y[63 - i] * 3",
         "it reads elements of 'y' that a later iteration there writes"),
        ("y[i] = x[i]", "", "z[i] = y[i + 1] * 3",
         "it reads elements of 'y' that a later iteration there writes"),
        ("y[i] = z[i]", "", "z[i + 1] = x[i]",
         "it writes elements of 'z' that a later iteration there reads"),
        ("y[63 - i] = x[i]", "", "y[i] = 3",
         "it writes elements of 'y' that a later iteration there writes"),
        ("y[x[i] & 63] = i", "", "z[i] = y[i]",
         "it reads elements of 'y' that a later iteration there may write"),
        ("kept += x[i]", "", "z[i] = kept * x[i]",
         "it uses a value that is known only when that loop has ended"),
        ("y[i] = x[i]", "z[0] = x[3]", "z[i] = z[i] + x[i]",
         "'z', which it writes in line 6, is used by the loops"),
        ("y[i] = x[i]", "z[0] = x[3]", "y[i] += 2 * x[i]", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("force", ["", " force"])
def test_loops_that_depend_on_each_other_are_merged_by_force_only(
    tmp_path: Path, first: str, between: str, second: str, why: str, force: str
) -> None:
    words = {"FIRST": first, "BETWEEN": between, "SECOND": second, "MERGE": f"MERGE{force}"}
    made = _of(tmp_path, BOTH, LAST="63" if "+ 1]" in second else "64", **words)
    if why and not force:
        assert [loop.name for loop in made.loops] == ["a", "b"]
        (said,) = made.warnings
        assert "k.cpp:5: LOOP_MERGE has no effect: " in said and why in said
        assert "loop a (line 5)" in said and "loop b (line 7)" in said
    else:
        assert [loop.name for loop in made.loops] == ["a_b"] and not made.warnings


def test_loops_of_different_steps_are_merged_where_their_elements_come_in_order(
    tmp_path: Path,
) -> None:
    """The bound is an argument: the steps alone say which iteration comes first."""
    text = """
void k(const int x[64], int y[80], int z[64], int n) {
#pragma HLS LOOP_MERGE
    a: for (int i = 0; i < n; ++i) y[STEP i] = x[i];
    b: for (int i = 0; i < n; ++i) z[i] = y[i + OFF];
}
"""
    for step, off, names in (("", "0", ["a_b"]), ("", "2", ["a", "b"]), ("2 *", "0", ["a", "b"])):
        made = _of(tmp_path, text, STEP=step, OFF=off)
        assert [loop.name for loop in made.loops] == names


def test_loops_that_read_fifos_are_not_merged(tmp_path: Path) -> None:
    text = """
#include <hls_stream.h>
void k(hls::stream<int> &s, hls::stream<int> &t, int y[64], int z[64]) {
#pragma HLS LOOP_MERGE
    a: for (int i = 0; i < 64; ++i) y[i] = s.read();
    b: for (int i = 0; i < 64; ++i) z[i] = t.read();
}
"""
    made = _of(tmp_path, text)
    assert [loop.name for loop in made.loops] == ["a", "b"]
    assert any("loop b (line 6) reads a FIFO" in said for said in made.warnings)


def test_a_merge_of_loops_that_a_pipeline_unrolls_says_so(tmp_path: Path) -> None:
    text = """
void k(const int x[256], int y[256], const int c[16]) {
    static int kept[16];
    outer: for (int i = 0; i < 256; ++i) {
#pragma HLS PIPELINE OFF
#pragma HLS LOOP_MERGE
        int sum = 0;
        a: for (int j = 15; j > 0; --j) kept[j] = kept[j - 1];
        kept[0] = x[i];
        b: for (int j = 0; j < 16; ++j) sum += kept[j] * c[j];
        y[i] = sum;
    }
}
"""
    made = _of(tmp_path, text, OFF="")
    assert any("k.cpp:4: LOOP_MERGE has no effect: PIPELINE of the" in s for s in made.warnings)
    made = _of(tmp_path, text, OFF="off")
    assert [loop.name for loop in made.loops] == ["outer", "a", "b"]
    assert any("k.cpp:8: LOOP_MERGE has no effect: " in said for said in made.warnings)


BLOCK = """
void k(const int x[64], const int u[64], int y[64], int z[64], int w[64]) {
    ALL
    block: {
        PART
        a: for (int i = 0; i < 64; ++i) y[i] = x[i] + 1;
        BETWEEN
        b: for (int i = 0; i < 64; ++i) z[i] = u[i] FROM;
    }
    if (x[0] > 3) {
        BRANCH
        c: for (int i = 0; i < 32; ++i) w[i] = x[i];
        d: for (int i = 0; i < 32; ++i) w[i + 32] = x[i];
    } else {
        o: for (int i = 0; i < 32; ++i) w[i] = u[i];
    }
}
"""


@pytest.mark.parametrize(
    ("words", "names", "said"),
    [
        ({"PART": "#pragma HLS LOOP_MERGE"}, ["a_b", "c", "d"], ""),
        ({"BRANCH": "#pragma HLS LOOP_MERGE"}, ["a", "b", "c_d"], ""),
        ({"PART": "#pragma HLS LOOP_MERGE", "BRANCH": "#pragma HLS LOOP_MERGE"},
         ["a_b", "c_d"], ""),
        # The function has no loop directly in it, and what a branch runs is none of these.
        ({"ALL": "#pragma HLS LOOP_MERGE force"}, ["a", "b", "c", "d"],
         "k.cpp:3: LOOP_MERGE has no effect: no loop stands directly in there"),
        ({"ALL": "#pragma HLS LOOP_MERGE\n f: for (int i = 0; i < 64; ++i) w[i] = 0;\n"
          "g: for (int i = 0; i < 64; ++i) w[i] = u[i];", "PART": "#pragma HLS LOOP_MERGE"},
         ["f_g", "a_b", "c", "d"], ""),
        ({"PART": "#pragma HLS LOOP_MERGE\n#pragma HLS LOOP_MERGE force"}, ["a_b", "c", "d"], ""),
        ({"PART": "#pragma HLS LOOP_MERGE", "FROM": "+ y[63 - i]"}, ["a", "b", "c", "d"],
         "loop b (line 8) depends on loop a (line 6)"),
        ({"PART": "#pragma HLS LOOP_MERGE force", "FROM": "+ y[63 - i]"}, ["a_b", "c", "d"], ""),
        # What is in a block of its own is no loop of this one.
        ({"PART": "#pragma HLS LOOP_MERGE",
          "BETWEEN": "{ e: for (int i = 0; i < 64; ++i) w[i] = x[i]; }"},
         ["a_b", "e", "c", "d"], ""),
        ({"PART": "#pragma HLS LOOP_MERGE",
          "BETWEEN": "{ e: for (int i = 0; i < 64; ++i) z[i] = y[i]; }"},
         ["a", "e", "b", "c", "d"], "code between loop a (line 6) and loop b (line 8)"),
    ],
)  # fmt: skip
def test_a_merge_in_a_block_is_of_the_loops_in_there(
    tmp_path: Path, words: dict[str, str], names: list[str], said: str
) -> None:
    empty = dict.fromkeys(("ALL", "PART", "BETWEEN", "FROM", "BRANCH"), "")
    made = _of(tmp_path, BLOCK, **{**empty, **words})
    assert sorted(loop.name for loop in made.loops) == sorted([*names, "o"])
    assert len(made.warnings) == bool(said)
    assert all(said in warning for warning in made.warnings)


def test_a_merge_in_a_loop_s_block_leaves_the_other_loops_there(tmp_path: Path) -> None:
    text = """
void k(const int x[9][64], int y[64], int z[64], int w[64]) {
    outer: for (int r = 0; r < 9; ++r) {
#pragma HLS PIPELINE off
        {
#pragma HLS LOOP_MERGE
            a: for (int i = 0; i < 64; ++i) y[i] = x[r][i];
            b: for (int i = 0; i < 64; ++i) z[i] = x[r][i] + 1;
        }
        c: for (int i = 0; i < 32; ++i) w[i] += r;
    }
}
"""
    made = _of(tmp_path, text)
    assert [loop.name for loop in made.loops] == ["outer", "a_b", "c"] and not made.warnings


def test_a_directive_file_names_a_block_by_its_label(tmp_path: Path) -> None:
    source, script = tmp_path / "k.cpp", tmp_path / "k.tcl"
    text = BLOCK
    for word in ("ALL", "PART", "BETWEEN", "FROM", "BRANCH"):
        text = text.replace(word, "")
    source.write_text(text)
    script.write_text("set_directive_loop_merge k/block\n")
    made = estimate(source, "k", directives=script)
    assert {loop.name for loop in made.loops} == {"a_b", "c", "d", "o"} and not made.warnings
    script.write_text("set_directive_pipeline k/block\n")
    (said,) = estimate(source, "k", directives=script).warnings
    assert "in a block has no effect" in said


def test_a_pipeline_takes_the_latency_that_is_asked_for(tmp_path: Path) -> None:
    text = """
void k(const int x[64], int y[64]) {
    for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
#pragma HLS LATENCY min=12
        y[i] = x[i] + 1;
    }
}
"""
    (loop,) = _of(tmp_path, text).loops
    assert (loop.ii, loop.iteration_latency, loop.latency) == (1, (13, 13), (75, 75))
    (loop,) = _of(tmp_path, text, **{"min=12": "min=2"}).loops
    assert loop.iteration_latency == (3, 3)


def test_too_much_unrolling_names_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_UNROLL_S", 1)  # as a million iterations do to 20 s
    text = """
void k(const int x[60000], int y[60000]) {
    for (int i = 0; i < 60000; ++i) {
#pragma HLS UNROLL
        y[i] = x[i] + 1;
    }
}
"""
    with pytest.raises(KernelBuildError, match=r"k\.cpp:3: unrolling makes more code .* factor"):
        _of(tmp_path, text)
    opt = compiler.opt

    def analysed(words: Sequence[str], seconds: int) -> tuple[str, str]:
        if any("print<" in word for word in words):
            raise TooLongError(seconds)
        return opt(words, seconds)

    monkeypatch.setattr(compiler, "opt", analysed)
    with pytest.raises(KernelBuildError, match=r"k\.cpp:3: unrolling makes more code .* factor"):
        _of(tmp_path, text.replace("60000", "64"))
    text = "void k(const int x[4], int y[4]) { y[0] = x[0]; }"
    monkeypatch.setattr(compiler, "opt", _too_long)
    with pytest.raises(KernelBuildError, match=r"^what the top function calls is more code"):
        _of(tmp_path, text)


def _too_long(*_: object) -> tuple[str, str]:
    raise TooLongError(1)


def test_an_element_s_bits_are_those_of_a_product(tmp_path: Path) -> None:
    """LLVM loads an ap_int<18> as 32 bits, and lets the sign go where the result has 18."""
    made = _of(tmp_path, PRODUCT, TYPE="ap_int<18>", BIND="")
    assert made.resources["DSP"] == 1


LOGIC = """
#include <ap_int.h>
void k(const TYPE x[64], const TYPE u[64], TYPE y[64]) {
    a: for (int i = 0; i < 64; ++i) {
#pragma HLS UNROLL factor=TIMES
        y[i] = x[i] OP u[i];
    }
}
"""


def test_logic_grows_with_what_is_computed(tmp_path: Path) -> None:
    def logic(**words: str) -> tuple[int, int]:
        found = _of(tmp_path, LOGIC, **words).resources
        assert found["LUT"] is not None
        assert found["FF"] is not None
        return found["LUT"], found["FF"]

    one = logic(TYPE="ap_int<16>", OP="+", TIMES="1")
    # Three more sums of 16 bits, each with three accesses.
    four = logic(TYPE="ap_int<16>", OP="+", TIMES="4")
    assert 3 * 16 <= four[0] - one[0] <= 3 * (16 + 3 * 6) + 20
    wide = logic(TYPE="ap_int<32>", OP="+", TIMES="1")
    assert 16 <= wide[0] - one[0] <= 24
    # A core for floating point takes some 500 LUTs and 300 flip-flops; double twice as many.
    single, double = (logic(TYPE=kind, OP="+", TIMES="1") for kind in ("float", "double"))
    assert 400 <= single[0] - one[0] <= 600
    assert 250 <= single[1] - one[1] <= 400
    assert double[0] - single[0] >= 500


def test_buses_and_registers_of_the_top_are_counted(tmp_path: Path) -> None:
    bus = """
void k(const int *x, int y[64]) {
#pragma HLS INTERFACE m_axi port=x bundle=one depth=64
#pragma HLS INTERFACE s_axilite port=return
    for (int i = 0; i < 64; ++i) y[i] = x[i];
}
"""
    with_bus = _of(tmp_path, bus).resources
    without = _of(tmp_path, bus, **{"#pragma HLS INTERFACE m_axi": "//"}).resources
    assert 700 <= (with_bus["LUT"] or 0) - (without["LUT"] or 0) <= 900
    assert 800 <= (with_bus["FF"] or 0) - (without["FF"] or 0) <= 900


def test_a_pointer_that_the_data_choose_is_a_warning(tmp_path: Path) -> None:
    text = """
void k(int a[64], int b[64], const int x[64], int c) {
    for (int i = 0; i < 64; ++i) {
        int *p = c ? a : b;
        p[i] = x[i] + FROM[63 - i];
    }
}
"""
    (warning,) = _of(tmp_path, text, FROM="a").warnings
    assert "choose between pointers into several arrays; the estimate takes all" in warning
    assert not _of(tmp_path, text, **{"FROM": "a", "c ? a : b": "a"}).warnings


def test_a_rom_keeps_no_more_bits_than_its_numbers_need(tmp_path: Path) -> None:
    """65,536 zeros take 4 blocks as one bit each, and no time to write (as Vitis HLS reports)."""
    text = """
#include <ap_fixed.h>
typedef ap_fixed<8, 3> data;
void k(ap_uint<16> i, data *y) {
    data t[65536] = {0};
    *y = t[i];
}
"""
    made = _of(tmp_path, text)
    assert made.resources["BRAM_18K"] == 4
    assert not made.loops
    assert (made.latency[1] or 0) < 5
    integers = """
void k(int i, int *y) {
    const int t[4096] = {1, -2, 3};
    *y = t[i & 4095];
}
"""
    assert _of(tmp_path, integers).resources["BRAM_18K"] == 1  # -2 to 3: three bits


NUMBERS = """
enum { FOUR = 4 };
struct Config { static const int four = 4; };
constexpr int half_of(int x) { return x / 2; }
template <int N, class C> void body(const int x[64], int y[64]) {
    const int local = N * 2;
    loop: for (int i = 0; i < 64; ++i)
#pragma HLS UNROLL factor=FACTOR
    {
        y[i] = 3 * x[i];
    }
}
void k(const int x[64], int y[64]) {
#pragma HLS ARRAY_PARTITION variable=x complete
#pragma HLS ARRAY_PARTITION variable=y complete
    body<2, Config>(x, y);
    MORE
}
"""


@pytest.mark.parametrize("factor", ["FOUR", "C::four", "N+2", "local", "half_of(8)"])
def test_a_pragma_s_number_is_what_the_compiler_says(tmp_path: Path, factor: str) -> None:
    made = _of(tmp_path, NUMBERS, FACTOR=factor, MORE="")
    assert ([loop.trip_count[1] for loop in made.loops], made.warnings) == ([16], ())


def test_a_pragma_s_number_that_is_not_known_is_a_warning(tmp_path: Path) -> None:
    made = _of(tmp_path, NUMBERS, FACTOR="nothing", MORE="")
    assert [loop.trip_count[1] for loop in made.loops] == [64]
    assert "k.cpp:8: UNROLL has FACTOR=nothing, and nothing is called so" in made.warnings[0]
    path = tmp_path / "d.tcl"
    path.write_text('set_directive_unroll -factor $n "body/loop"\nset_directive_pipelines "body"\n')
    source = tmp_path / "k.cpp"
    source.write_text(NUMBERS.replace("#pragma HLS UNROLL factor=FACTOR", "").replace("MORE", ""))
    said = estimate(source, "k", directives=path).warnings
    assert "d.tcl:2: PIPELINES is no HLS pragma" in said[0]
    assert "d.tcl:1: UNROLL has FACTOR=$n, whose value is not known" in said[1]


def test_an_instance_of_a_template_is_a_top(tmp_path: Path) -> None:
    source = tmp_path / "k.cpp"
    source.write_text(NUMBERS.replace("FACTOR", "N").replace("MORE", "body<4, Config>(x, y);"))
    made = estimate(source, "body<4, Config>")
    assert made.loops[0].trip_count == (16, 16)


def test_what_is_not_modelled_says_so(tmp_path: Path) -> None:
    text = """
void k(const int x[64], int y[64]) {
#pragma HLS STABLE variable=x
#pragma HLS ALIAS ports=x,y distance=0
    a: for (int i = 0; i < 64; ++i) {
#pragma HLS OCCURRENCE cycle=4
#pragma HLS PERFORMANCE target_ti=500
#pragma HLS LATENCY max=1
        y[i] = 3 * x[i];
    }
}
"""
    said = _of(tmp_path, text).warnings
    names = [warning.split(" is not modelled")[0].split()[-1] for warning in said]
    assert sorted(names) == ["ALIAS", "LATENCY", "OCCURRENCE", "PERFORMANCE", "STABLE"]


def test_an_instance_for_each_constant(tmp_path: Path) -> None:
    text = """
int g(int x, int mode) {
#pragma HLS FUNCTION_INSTANTIATE variable=mode
#pragma HLS INLINE off
    int s = 0;
    inner: for (int i = 0; i < 16 * mode; ++i) s += x;
    return s;
}
int k(int x) { return g(x, 1) + g(x, 2); }
"""
    assert [loop.trip_count for loop in _of(tmp_path, text).loops] == [(16, 16), (32, 32)]
    unasked = _of(tmp_path, text, FUNCTION_INSTANTIATE="STABLE").loops
    assert [loop.trip_count for loop in unasked] == [(16, 32)]


def test_half_is_no_float_with_conversions(tmp_path: Path) -> None:
    text = """
#include <hls_half.h>
half k(const half x[64], half first) {
    half sum = first;
    for (int i = 0; i < 64; ++i) sum += x[i] * x[i];
    return sum;
}
"""
    made, single = (
        _of(tmp_path, text),
        _of(tmp_path, text, **{"#include <hls_half.h>": "", "half": "float"}),
    )
    assert (made.loops[0].ii, made.resources["DSP"]) == (6, 4)
    assert (single.loops[0].ii, single.resources["DSP"]) == (5, 5)


def test_the_fields_of_an_element_are_one_access(tmp_path: Path) -> None:
    text = """
struct Pixel { int a; short b; char c; };
void k(const Pixel in[64], Pixel out[64]) {
    for (int i = 0; i < 64; ++i) {
        Pixel p = in[i];
        p.a += p.b * p.c;
        out[i] = p;
    }
}
"""
    (loop,) = _of(tmp_path, text).loops
    assert (loop.ii, loop.iteration_latency) == (1, (5, 5))


def test_the_lanes_of_a_vector_are_one_word_of_a_bus(tmp_path: Path) -> None:
    text = """
#include <hls_vector.h>
typedef hls::vector<int, 16> Lanes;
void k(const Lanes *a, Lanes *c) {
#pragma HLS INTERFACE m_axi port=a bundle=g0
#pragma HLS INTERFACE m_axi port=c bundle=g1
    for (int i = 0; i < 64; ++i) c[i] = a[i] * a[i];
}
"""
    made = _of(tmp_path, text)
    assert (made.loops[0].ii, made.resources["DSP"]) == (1, 48)


def test_calls_at_a_time_need_instances_of_their_own(tmp_path: Path) -> None:
    text = """
int f(const int x[64]) {
    int s = 0;
    for (int i = 0; i < 64; ++i) s += x[i] * x[i];
    return s;
}
int k(const int a[64], const int b[64]) {
#pragma HLS ALLOCATION function instances=f limit=LIMIT
    int u = f(a);
    return u + f(b);
}
"""
    two, one = _of(tmp_path, text, LIMIT="2"), _of(tmp_path, text, LIMIT="1")
    assert (two.resources["DSP"], one.resources["DSP"]) == (6, 3)
    assert two.latency[1] is not None
    assert one.latency[1] == 2 * two.latency[1]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("s += x[i];\n#pragma HLS UNROLL factor=4", "4 floating-point additions, one after"),
        ("p[i % 6] += x[i];", "(load to store, through the floating-point addition); use more"),
        ("q.write(x[i]); q.write(x[i]);", "it takes one a cycle (k.cpp:7)"),
    ],
)
def test_the_reason_is_of_the_kernel_s_own_line(tmp_path: Path, body: str, why: str) -> None:
    text = """
#include <hls_stream.h>
float k(const float x[64], hls::stream<float>& q) {
    static float p[8];
    float s = 0;
    for (int i = 0; i < 64; ++i) {
        BODY
    }
    return s;
}
"""
    assert why in _of(tmp_path, text, BODY=body).loops[0].why


def test_a_loop_whose_inner_one_is_unrolled_is_innermost(tmp_path: Path) -> None:
    text = """
void k(const int x[512], int y[64]) {
    outer: for (int i = 0; i < 64; ++i)
        inner: for (int j = 0; j < 8; ++j) {
#pragma HLS UNROLL FACTOR
            y[i] = x[i] * j;
        }
}
"""
    for factor in ("", "factor=8"):
        (loop,) = _of(tmp_path, text, FACTOR=factor).loops
        assert (loop.name, loop.ii, loop.automatic) == ("outer", 1, True)


def test_a_pipelined_function_is_no_faster_in_a_pipeline(tmp_path: Path) -> None:
    text = """
int f(int x) {
#pragma HLS PIPELINE II=3
    return 3 * x;
}
void k(const int x[64], int y[64]) {
    for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        y[i] = f(x[i]);
    }
}
"""
    (loop,) = (
        made := _of(
            tmp_path,
            text,
            **{"{\n    for": "{\n#pragma HLS ALLOCATION function instances=f limit=1\n    for"},
        )
    ).loops
    assert "ALLOCATION of f, which has no effect" in made.warnings[0]
    assert loop.ii == 3
    assert "II=3: it calls f, whose PIPELINE asks for II=3 (k.cpp:" in loop.why


def test_a_chain_of_small_operations_says_how_long(tmp_path: Path) -> None:
    text = """
void k(const int x[64], int y[64]) {
#pragma HLS ARRAY_PARTITION variable=x cyclic factor=8
#pragma HLS ARRAY_PARTITION variable=y cyclic factor=8
    int sum = 0;
    for (int i = 0; i < 64; ++i) {
#pragma HLS UNROLL factor=8
        sum += x[i];
        y[i] = sum;
    }
}
"""
    why = _of(tmp_path, text).loops[0].why
    assert "waits for 8 additions, one after another" in why
    assert "longer than the 7.3 ns of a cycle" in why


def test_powers_are_not_printed_factor_by_factor() -> None:
    """Nor anything else that scalar evolution would print as a tree of many parts."""
    squares = "".join(f"  %x{n + 1} = mul nsw i32 %x{n}, %x{n}\n" for n in range(3))
    text = f"define i32 @k(i32 %x0) {{\n{squares}  %sum = add i32 %x3, %x2\n}}\n"
    made = without_large_trees(text, most=9).splitlines()
    assert made[1:3] == text.splitlines()[1:3]
    assert made[3:5] == ["  %x3 = freeze i32 poison", text.splitlines()[4]]


def test_what_limits_a_pipelined_function_is_said(tmp_path: Path) -> None:
    text = """
void k(const int x[16], int *y) {
#pragma HLS PIPELINE
    int sum = 0;
    for (int i = 0; i < 16; ++i) sum += x[i];
    *y = sum;
}
"""
    made = _of(tmp_path, text)
    assert (made.interval, made.as_json()["reasons"]) == ((8, 8), made.reasons)
    assert "k: II=8: 16 accesses of `x` in an iteration" in str(made)
    assert "(k.cpp:5)" in made.reasons[0]
    assert _of(tmp_path, text, PIPELINE="PIPELINE II=8").reasons == ()


def test_a_port_has_the_memory_that_interface_says(tmp_path: Path) -> None:
    text = """
void k(const int x[64], int y[64]) {
#pragma HLS INTERFACE mode=ap_memory port=x storage_type=KIND
    for (int i = 0; i < 64; ++i) y[i] = x[i] + x[63 - i];
}
"""
    found = [_of(tmp_path, text, KIND=kind).loops[0].ii for kind in ("ram_1p", "ram_t2p")]
    assert found == [2, 1]


@pytest.mark.parametrize(("mode", "interval"), [("ap_memory", 4), ("bram", 2)])
def test_block_ram_outside_has_two_ports(tmp_path: Path, mode: str, interval: int) -> None:
    text = """
void k(const int x[256], int y[64]) {
#pragma HLS INTERFACE MODE port=x
    for (int i = 0; i < 64; ++i) y[i] = x[i] ^ x[i + 64] ^ x[i + 128] ^ x[i + 192];
}
"""
    assert _of(tmp_path, text, MODE=mode).loops[0].ii == interval


_SUM = """
int k(const int x[64], BOUND n) {
    int sum = 0;
    l: for (int i = 0; i < n; ++i) {
#pragma HLS UNROLL factor=4
#pragma HLS MORE
        sum += x[i];
    }
    return sum;
}
"""


@pytest.mark.parametrize(
    ("words", "trips"),
    [
        ({}, (None, None)),
        ({"BOUND": "unsigned char"}, (0, 64)),
        ({"MORE": "LOOP_TRIPCOUNT min=1 max=10"}, (1, 3)),
        ({"UNROLL factor=4": "UNROLL factor=3"}, (None, None)),
        ({"UNROLL factor=4": "UNROLL factor=2"}, (None, None)),
        ({"UNROLL factor=4": "UNROLL factor=100"}, (None, None)),
    ],
)
def test_a_loop_that_is_unrolled_in_part_stays_one_loop(
    tmp_path: Path, words: dict[str, str], trips: tuple[int | None, int | None]
) -> None:
    """Of a bound that is not known nothing is guessed; the last iteration may end early."""
    text = _SUM
    for word, other in {"BOUND": "int", "MORE": "PIPELINE"}.items():
        text = text.replace(word, words.get(word, other))
    for word, other in words.items():
        text = text.replace(word, other)
    found = _of(tmp_path, text)
    assert [loop.trip_count for loop in found.loops] == [trips]
    assert (found.latency[1] is None) == (trips[1] is None)


_INNER = """
void k(const int x[64], int n, int y[8]) {
#pragma HLS ABOVE
    outer: for (int i = 0; i < 8; ++i) {
#pragma HLS OUTER
        int sum = 0;
        inner: for (int j = 0; j < n; ++j) {
#pragma HLS INNER
            sum += x[j];
        }
        y[i] = sum;
    }
}
"""


@pytest.mark.parametrize(
    ("where", "pragma", "by"),
    [
        ("ABOVE", "PIPELINE", "PIPELINE of k"),
        ("OUTER", "PIPELINE", "PIPELINE of the loop in line 4"),
        ("INNER", "UNROLL", "UNROLL"),
    ],
)
def test_what_cannot_be_unrolled_is_said_and_its_pipeline_given_up(
    tmp_path: Path, where: str, pragma: str, by: str
) -> None:
    text = _INNER.replace(where, pragma)
    for other in ("ABOVE", "OUTER", "INNER"):
        text = text.replace(f"#pragma HLS {other}\n", "\n")
    found = _of(tmp_path, text)
    assert any(
        f"k.cpp:7: {by} has no effect: this loop cannot be unrolled" in said
        for said in found.warnings
    )
    assert found.latency == found.interval == (None, None)
    bounded = _of(tmp_path, text.replace("j < n", "j < 4"))
    assert bounded.latency[1] is not None and not bounded.warnings


def test_ultra_ram_is_there_in_ultrascale_parts_only(tmp_path: Path) -> None:
    text = """
void k(const int x[512], int y[512]) {
    int kept[512];
#pragma HLS BIND_STORAGE variable=kept type=ram_2p impl=uram
    for (int i = 0; i < 512; ++i) kept[i] = x[i];
    for (int i = 0; i < 512; ++i) y[i] = kept[511 - i];
}
"""
    made = _of(tmp_path, text)
    assert made.resources["BRAM_18K"] == 1
    assert any("has no UltraRAM; kept counts as block RAM" in said for said in made.warnings)
    source = tmp_path / "k.cpp"
    large = estimate(source, "k", part="xczu7ev-ffvc1156-2-e")
    assert large.resources["BRAM_18K"] == 0 and not large.warnings


@pytest.mark.parametrize(
    ("pragma", "said"),
    [
        ("INTERFACE m_axy port=x", "INTERFACE has no mode 'm_axy'; did you mean m_axi?"),
        ("INTERFACE m_axi port=xx", "INTERFACE names port 'xx', which k does not have"),
        (
            "INTERFACE s_axilite port=n offset=0x10\n#pragma HLS INTERFACE s_axilite port=m "
            "offset=0x10",
            "has offset=0x10 in s_axi_control, where argument",
        ),
        ("ALLOCATION operation instances=mull limit=1", "there is none; did you mean mul?"),
        ("ALLOCATION function instances=foo limit=1", "ALLOCATION names function 'foo'"),
        ("LOOP_MERGE", "LOOP_MERGE has no effect: one loop stands directly in there"),
        ("ARRAY_PARTITION variable=x cyclc factor=2", "has no option 'cyclc'; did you mean cycl"),
    ],
)
def test_an_estimate_speaks_of_pragmas_that_do_nothing(
    tmp_path: Path, pragma: str, said: str
) -> None:
    text = f"""
void k(int x[64], int n, int m) {{
#pragma HLS {pragma}
    for (int i = 0; i < 64; ++i) x[i] += n * m;
}}
"""
    nothing = (" offset=0x10", "") if "offset" in pragma else (f"#pragma HLS {pragma}", "")
    without = _of(tmp_path, text.replace(*nothing))
    made = _of(tmp_path, text)
    assert any(said in warning for warning in made.warnings), made.warnings
    assert (made.latency, made.resources["DSP"]) == (without.latency, without.resources["DSP"])


def test_a_core_that_is_not_there_binds_nothing(tmp_path: Path) -> None:
    """An array of three words is registers, unless a directive keeps it in a memory."""
    text = """
void k(const int x[64], int y[64]) {
    int t[3];
#pragma HLS RESOURCE variable=t core=CORE
    for (int i = 0; i < 64; ++i) { t[i % 3] = x[i]; y[i] = t[x[i] & 1]; }
}
"""
    plain = _of(tmp_path, re.sub("#pragma.*", "", text))
    kept, wrong = (_of(tmp_path, text, CORE=one) for one in ("RAM_1P_BRAM", "RAM_XYZ"))
    assert (wrong.loops, wrong.resources["BRAM_18K"]) == (plain.loops, plain.resources["BRAM_18K"])
    assert kept.loops != plain.loops and len(wrong.warnings) == 1


@pytest.mark.parametrize(
    ("pragmas", "said"),
    [
        ({"AT": "LATENCY min=9", "TWICE": "INLINE off"}, []),
        ({"ROUND": "LATENCY min=9", "INSIDE": "PIPELINE"}, []),
        ({"AT": "LATENCY min=9", "TWICE": "INLINE"}, ["2: LATENCY has no effect: twice is inl"]),
        ({"AT": "LATENCY min=9", "ROUND": "PIPELINE"}, ["2: LATENCY has no effect: twice is inl"]),
        ({"INSIDE": "LATENCY min=9", "ROUND": "PIPELINE"},
         ["11: LATENCY has no effect: PIPELINE of the loop in line 8 unrolls this loop"]),
    ],
)  # fmt: skip
def test_a_latency_of_what_is_dissolved_says_so(
    tmp_path: Path, pragmas: dict[str, str], said: list[str]
) -> None:
    text = """
static void twice(int t[64]) {
HLS AT
HLS TWICE
    for (int i = 0; i < 64; ++i) t[i] *= 2;
}
void k(int x[16], int t[64]) {
    outer: for (int i = 0; i < 16; ++i) {
HLS ROUND
        twice(t);
        inner: for (int j = 0; j < 4; ++j) {
HLS INSIDE
            x[i] += j * t[i];
        }
    }
}
"""
    for word, pragma in pragmas.items():
        text = text.replace(f"HLS {word}", f"#pragma HLS {pragma}")
    found = _of(tmp_path, re.sub(r"(?m)^HLS .*$", "", text))
    assert len(found.warnings) == len(said)
    assert all(f"k.cpp:{one}" in found.warnings[0] for one in said)


@pytest.mark.parametrize("factor", ["-3", "0"])
def test_an_unroll_factor_below_one_is_left_out(tmp_path: Path, factor: str) -> None:
    text = "void k(int x[64]) {\nfor (int i = 0; i < 64; ++i) {\nWHAT\nx[i] += 1; } }\n"
    found = _of(tmp_path, text, WHAT=f"#pragma HLS UNROLL factor={factor}")
    assert found.loops[0].trip_count == (64, 64)
    assert any(f"FACTOR={factor}; expected a whole number" in one for one in found.warnings)


def test_ports_are_counted_along_each_path(tmp_path: Path) -> None:
    """Two of the three reads are in branches that exclude each other; with two more II is 2."""
    text = """
void k(const float x[512], const float g[512], float y[512], int op, float limit) {
    for (int i = 0; i < 512; ++i) {
#pragma HLS PIPELINE II=1
        const bool zero = op == 1 ? x[i] < 0.0f : x[511 - i] <= limit;
        y[i] = (zero ? 0.0f : g[i]) + MORE;
    }
}
"""
    found = _of(tmp_path, text, MORE="x[(3 * i) & 511]").loops[0]
    assert found.ii == 1 and found.iteration_latency[1] < 20
    found = _of(tmp_path, text, MORE="(x[(3 * i) & 511] + x[(5 * i) & 511])").loops[0]
    assert found.ii == 2 and "accesses of `x` in an iteration" in found.why
    assert found.iteration_latency[1] < 20


@pytest.mark.parametrize(
    ("command", "interval", "said"),
    [
        ('set_directive_pipeline -II 2 -rewind "k/l"', 2, ""),
        ('set_directive_pipeline -rewind -II 2 "k/l"', 2, ""),
        ('set_directive_pipeline -off "k/l"', None, ""),
        ('set_directive_pipeline "k/l" -off', None, ""),
        ("set_directive_pipeline -II 2", 1, "PIPELINE is for '', which is not there"),
    ],
)
def test_flags_of_directives_take_no_word_behind_them(
    tmp_path: Path, command: str, interval: int | None, said: str
) -> None:
    source, script = tmp_path / "k.cpp", tmp_path / "directives.tcl"
    source.write_text("void k(int x[64]) { l: for (int i = 0; i < 64; ++i) x[i] += 3; }\n")
    script.write_text(command + "\n")
    found = estimate(source, "k", directives=script, tool="vitis")
    assert found.loops[0].ii == interval
    assert any(said in one for one in found.warnings) if said else not found.warnings


def test_a_sine_outside_of_a_pipeline_takes_longer_and_has_tables(tmp_path: Path) -> None:
    """Vivado HLS has it for double only: 50 cycles, 86 DSP blocks and 8 block RAMs each."""
    source = tmp_path / "k.cpp"
    source.write_text("""
#include <math.h>
void k(const float x[64], float y[64]) {
    l: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE off
        y[i] = cos(x[i]);
    }
}
""")
    vivado, vitis = (estimate(source, "k", tool=tool) for tool in ("vivado", "vitis"))
    assert (vivado.resources["DSP"], vivado.resources["BRAM_18K"]) == (86, 8)
    assert (vitis.resources["DSP"], vitis.resources["BRAM_18K"]) == (9, 0)
    depth = [made.loops[0].iteration_latency[1] for made in (vivado, vitis)]
    assert 52 <= depth[0] <= 56 and 29 <= depth[1] <= 33
    source.write_text(source.read_text().replace("PIPELINE off", "PIPELINE"))
    assert estimate(source, "k", tool="vitis").loops[0].iteration_latency[1] == depth[1] - 9


UNASKED = """
static int sum8(const int x[8]) {
#pragma HLS INLINE off
    int sum = 0;
    each: for (int i = 0; i < 8; ++i) {
#pragma HLS PIPELINE
        sum += x[i];
    }
    return sum;
}
void k(const int x[8][8], int y[8], int z[8]) {
    int mine[8][8];
    copy: for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j)
#pragma HLS PIPELINE
            mine[i][j] = x[i][j];
    rows: for (int i = 0; i < 8; ++i)
        y[i] = sum8(mine[i]);
    again: for (int i = 0; i < 8; ++i) {
PRAGMA
        z[i] = sum8(mine[i]);
    }
}
"""


@pytest.mark.parametrize(("pragma", "interval"), [("", None), ("#pragma HLS PIPELINE", 1)])
def test_a_function_that_a_pipeline_calls_has_no_loops_for_any_caller(
    tmp_path: Path, pragma: str, interval: int | None
) -> None:
    loops = {one.name: one for one in _of(tmp_path, UNASKED, PRAGMA=pragma).loops}
    assert loops["rows"].ii == interval
    assert ("each" in loops) == (interval is None)


NEST = """
void k(const float a[80], const float b[80], float sum[80]) {
CUT
    outer: for (int i = 0; i < 80; ++i) {
        sum[i] = 0;
        inner: for (int j = 0; j < 80; ++j)
            sum[i] += a[j] * b[(i + j) % 80];
    }
}
"""


def test_a_sum_is_in_a_register_where_loops_stay_two(tmp_path: Path) -> None:
    """Which bank the store between the loops goes to is a branch: they are not flattened then.

    In a nest it takes a cycle to choose between the sum and what it begins with.
    """
    (flat,) = _of(tmp_path, NEST, CUT="").loops
    assert (flat.name, flat.trip_count, flat.ii) == ("outer_inner", (6400, 6400), 6)
    assert "waits for the floating-point addition" in flat.why
    (more,) = _of(tmp_path, NEST.replace("sum[i] = 0;", ""), CUT="").loops
    assert more.ii == 6
    cut = "#pragma HLS ARRAY_PARTITION variable=sum cyclic factor=2"
    outer, inner = _of(tmp_path, NEST, CUT=cut).loops
    assert (outer.name, outer.ii, inner.name, inner.ii) == ("outer", None, "inner", 5)
    assert "floating-point addition" in inner.why


def test_vivado_flattens_before_it_looks_for_sums(tmp_path: Path) -> None:
    text = NEST.replace("        sum[i] = 0;\n", "").replace("CUT\n", "")
    text = text.replace("++j)\n", "++j)\n#pragma HLS PIPELINE\n")
    source = tmp_path / "k.cpp"
    source.write_text(text)
    (flat,) = estimate(source, "k", tool="vivado").loops
    assert (flat.name, flat.ii) == ("outer_inner", 6)
    source.write_text(text.replace("++i) {", "++i) {\n#pragma HLS LOOP_FLATTEN off\n"))
    outer, inner = estimate(source, "k", tool="vivado").loops
    assert (outer.name, inner.name, inner.ii) == ("outer", "inner", 5)


COPIES = """
static int weight[64];
int others[64];
void k(const int x[64], int y[64], int w[64], int n) {
    int a[64];
    fill: for (int i = 0; i < 64; ++i) {
        a[i] = x[i];
        weight[i] += 1;
        others[i] += x[i];
    }
    use: for (int i = 0; i < 8; ++i) {
PRAGMA
        int sum = 0;
        for (int j = 0; j < 8; ++j) {
UNROLL
            sum += FROM;
        }
        y[i] = sum;
    }
}
"""
ASKED, BY_HAND = "#pragma HLS PIPELINE", "#pragma HLS UNROLL"


@pytest.mark.parametrize(
    ("words", "interval"),
    [
        ({"PRAGMA": ASKED, "FROM": "a[8 * i + j]"}, 1),
        ({"UNROLL": BY_HAND, "FROM": "a[8 * i + j]"}, 1),
        ({"FROM": "a[8 * i + j]"}, 1),  # each access has a bank of its own
        ({"PRAGMA": ASKED, "FROM": "a[i + j]"}, 1),  # a window
        ({"PRAGMA": ASKED, "FROM": "w[8 * i + j]"}, 4),  # the caller's
        ({"PRAGMA": ASKED, "FROM": "others[8 * i + j]"}, 4),  # other files may use it
        ({"PRAGMA": ASKED, "FROM": "a[i + j * n]"}, 1),  # no cut parts them, copies answer
        ({"PRAGMA": ASKED, "FROM": "weight[8 * i + j]"}, 1),
        ({"PRAGMA": ASKED, "FROM": "a[i] + a[i + j] + a[i + 2 * j]"}, 1),  # several statements
        ({"PRAGMA": ASKED, "FROM": "(j ? 0 : a[4 * i] + a[4 * i + 1] + a[4 * i + 2])"}, 1),
        ({"PRAGMA": ASKED, "FROM": "(j ? 0 : a[4 * i] + a[4 * i + 1] + a[4 * i + 3])"}, 1),
    ],
)
def test_vitis_divides_its_own_arrays_so_that_each_access_has_a_port(
    tmp_path: Path, words: dict[str, str], interval: int
) -> None:
    text = {"PRAGMA": "", "UNROLL": "", **words}
    loops = {one.name: one for one in _of(tmp_path, COPIES, **text).loops}
    assert loops["use"].ii == interval
    assert bool(loops["use"].why) == (interval > 1)


BRANCHES = """
#include <ap_int.h>
enum kind { parallel, serial };
struct config {
    static const int io = KIND, n = 8, reuse = 2;
    static void more(std::vector<int>& all);
};
template <class C> void dense(const int x[C::n], int y[C::n]) {
    int sum[C::n];
    if (C::io == parallel) {
#pragma HLS PIPELINE II=C::reuse
#pragma HLS ARRAY_PARTITION variable=sum complete
    } else if (C::io == serial) {
#pragma HLS ARRAY_PARTITION variable=sum cyclic factor=2
    }
    for (int i = 0; i < C::n; ++i) {
        if (C::io == serial) {
#pragma HLS UNROLL factor=2
        }
        sum[i] = x[i] * 3;
    }
    for (int i = 0; i < C::n; ++i) {
        int often = x[0];
        if (often > 3) {
#pragma HLS PIPELINE II=often
        }
        y[i] = sum[i];
    }
}
void k(const int x[8], int y[8]) { dense<config>(x, y); }
"""


@pytest.mark.parametrize(
    ("tool", "kind", "trips"),
    [
        ("vivado", "parallel", []),  # all of the function is one pipeline
        ("vivado", "serial", [4, 8]),
        ("vitis", "parallel", [8, 8]),
        ("vitis", "serial", [8, 8]),
    ],
)
def test_pragmas_of_branches_count_where_the_branch_is_taken_and_in_vivado(
    tmp_path: Path, tool: str, kind: str, trips: list[int]
) -> None:
    """hls4ml chose so between parallel and serial layers, until Vitis HLS came."""
    source = tmp_path / "k.cpp"
    source.write_text(BRANCHES.replace("KIND", kind))
    found = estimate(source, "k", tool=tool)
    assert [loop.trip_count[1] for loop in found.loops if loop.trip_count] == trips
    assert [loop.ii for loop in found.loops] == [None if tool == "vivado" else 1] * len(trips)
    said = "\n".join(found.warnings)
    assert "k.cpp:11: PIPELINE in a branch has no effect in Vitis HLS; it belongs at" in said
    assert "k.cpp:25: PIPELINE in a branch has no effect in Vitis HLS; it belongs at" in said


CARD = """
extern "C" {
void k(const int *in, int *out, hls::stream<int> &more) {
    copy: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        out[i] = in[i] + more.read();
    }
}
}
"""


@pytest.mark.parametrize(
    ("text", "part", "blocks"),
    [
        (CARD, "xcu50-fsvh2104-2-e", 4),
        (CARD, "xc7z020clg400-1", 0),
        (CARD.replace('"C"', '"C++"'), "xcu50-fsvh2104-2-e", 0),
    ],
)
def test_pointers_of_a_card_s_kernel_are_buses(tmp_path, text, part, blocks):
    (tmp_path / "k.cpp").write_text("#include <hls_stream.h>\n" + text)
    found = estimate(tmp_path / "k.cpp", "k", part=part, tool="vitis")
    assert found.loops[0].ii == 1
    assert (found.resources["BRAM_18K"] > 0, found.latency[1] > 140) == (blocks > 0, blocks > 0)


def test_a_memory_has_as_many_ports_to_read_as_a_directive_says(tmp_path):
    (tmp_path / "k.cpp").write_text("""
void k(const int in[1024], int out[1024]) {
    int own[1024];
#pragma HLS BIND_STORAGE variable=own type=ram_1wnr
    a: for (int i = 0; i < 1024; ++i) own[i] = in[i];
    b: for (int i = 0; i < 1024; ++i) {
#pragma HLS PIPELINE
        const int x = in[i];
        out[i] = own[x & 1023] + own[x >> 5 & 1023] + own[x >> 10 & 1023];
    }
}
""")
    found = estimate(tmp_path / "k.cpp", "k", tool="vitis")
    assert [loop.ii for loop in found.loops] == [1, 1]
