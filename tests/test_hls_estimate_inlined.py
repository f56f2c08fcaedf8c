"""What Vitis HLS inlines unasked, and what directives in inlined functions speak of."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.hls.estimator import Estimate, LoopEstimate, compiler, estimate

pytestmark = pytest.mark.skipif(compiler.tools() is not None, reason="clang-16 is not installed")

ROWS = """
static int total(const int a[96]) {
    KEEP
    int sum = 0;
    add: for (int i = 0; i < 96; ++i) {
        COPIES
        sum += a[i] * a[i];
    }
    return sum;
}
void k(const int x[96][96], int y[96]) {
    rows: for (int r = 0; r < 96; ++r)
        y[r] = total(x[r]);
}
"""
KEPT = [
    {"KEEP": "#pragma HLS INLINE off"},
    {"KEEP": "#pragma HLS PIPELINE off"},
    {"COPIES": "#pragma HLS UNROLL factor=16"},
]


def _of(folder: Path, text: str, tool: str = "vitis", **words: str) -> Estimate:
    for word in ("KEEP", "COPIES", "CUT"):
        text = text.replace(word, words.get(word, ""))
    source = folder / "k.cpp"
    source.write_text(text, encoding="utf-8")
    return estimate(source, "k", tool=tool)


def _loop(found: Estimate, name: str) -> LoopEstimate:
    return next(loop for loop in found.loops if loop.name == name)


def test_a_small_function_with_a_loop_is_inlined(tmp_path: Path) -> None:
    """The nest that appears is one loop; Vivado HLS keeps the function."""
    assert _loop(_of(tmp_path, ROWS), "rows_add").trip_count == (96 * 96, 96 * 96)
    assert [loop.name for loop in _of(tmp_path, ROWS, "vivado").loops] == ["rows", "add"]


@pytest.mark.parametrize("words", KEPT, ids=["inline", "pipeline", "unroll"])
def test_a_directive_or_what_it_unrolls_keeps_a_function(
    tmp_path: Path, words: dict[str, str]
) -> None:
    """Loops are unrolled before, so that the function costs more than LLVM inlines."""
    found = _of(tmp_path, ROWS, **words)
    assert [loop.name for loop in found.loops] == ["rows", "add"]
    asked = words.get("KEEP", "") + "\n#pragma HLS INLINE off"
    assert found.latency == _of(tmp_path, ROWS, **{**words, "KEEP": asked}).latency


PROCESSES = """
static void twice(const int a[96], int b[96]) {
    double_loop: for (int i = 0; i < 96; ++i) b[i] = 2 * a[i];
}
void k(const int x[96], int y[96]) {
#pragma HLS DATAFLOW
    int one[96];
    twice(x, one);
    twice(one, y);
}
"""


def test_processes_stay_functions(tmp_path: Path) -> None:
    found = _of(tmp_path, PROCESSES)
    assert [name for name, _ in found.stages] == ["twice", "twice"]


PASSED = """
static int four(const int v[SIZE], int n) {
    CUT
    int sum = 0;
    add: for (int i = 0; i < 64; i += 4) {
#pragma HLS PIPELINE II=1
        sum += v[i] * v[i + 1] + v[i + 2] * v[i + 3];
    }
    return sum + n;
}
static int through(const int w[SIZE], int n) {
#pragma HLS INLINE
    return four(w, n);
}
int k(const int x[SHAPE], int n) { return through(HANDED, n); }
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
@pytest.mark.parametrize(("shape", "handed"), [("64", "x"), ("8][64", "x[3]")])
def test_what_is_handed_over_is_cut_as_the_inlined_function_asks(
    tmp_path: Path, tool: str, shape: str, handed: str
) -> None:
    text = PASSED.replace("SIZE", "64").replace("SHAPE", shape).replace("HANDED", handed)
    cut = "#pragma HLS INLINE\n#pragma HLS ARRAY_PARTITION variable=v cyclic factor=4 dim=1"
    assert _loop(_of(tmp_path, text, tool, CUT="#pragma HLS INLINE"), "add").ii == 2
    assert _loop(_of(tmp_path, text, tool, CUT=cut), "add").ii == 1


ALSO = """
static void count(const int at[64], int table[64]) {
#pragma HLS INLINE
    CUT
    add: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE II=1
        table[at[i]] = table[at[63 - i]] + 1;
    }
}
void k(const int x[64], int y[64]) { count(x, y); }
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_dependence_of_an_inlined_function_s_argument_counts(tmp_path: Path, tool: str) -> None:
    cut = "#pragma HLS DEPENDENCE variable=table inter false"
    without, told = (_loop(_of(tmp_path, ALSO, tool, CUT=one), "add").ii for one in ("", cut))
    assert without is not None and told is not None and told < without


FILTER = """
static float one(float x) {
    KEEP
    static float line[32];
    float sum = 0;
    shift: for (int i = 31; i > 0; --i) line[i] = line[i - 1];
    line[0] = x;
    mac: for (int i = 0; i < 32; ++i) sum += line[i] * i;
    return sum;
}
"""
BESIDE = f"""
{FILTER}{FILTER.replace("one", "two")}
void k(float a, float b, float *y) {{ *y = one(a) + two(b); }}
"""


def test_pipelines_with_work_between_them_run_side_by_side(tmp_path: Path) -> None:
    """Then each has adders and multipliers of its own (a published FIR filter, 216 cycles)."""
    apart, joined = _of(tmp_path, BESIDE, KEEP="#pragma HLS INLINE off"), _of(tmp_path, BESIDE)
    assert apart.latency[1] is not None and joined.latency[1] is not None
    assert abs(apart.latency[1] - joined.latency[1]) <= 3
    assert joined.resources["DSP"] == 2 * (2 + 3)


SPREAD = """
static void smooth(const int from[64], int to[64]) {
#pragma HLS INLINE
    int kept[64];
    fill: for (int i = 0; i < 64; ++i) kept[i] = from[i];
    walk: for (int i = 0; i < 60; ++i) {
#pragma HLS PIPELINE II=1
        to[i] = kept[i] + kept[i + 1] + kept[i + 2] + kept[i + 3];
    }
}
void k(const int x[64], int y[64]) { smooth(x, y); }
"""


def test_an_array_of_an_inlined_function_is_divided_for_its_pipeline(tmp_path: Path) -> None:
    assert _loop(_of(tmp_path, SPREAD), "walk").ii == 1


RESULTS = """
void product(short a, short b, int out[2]) {
#pragma HLS INLINE off
#pragma HLS PIPELINE
    out[0] = a * b;
    out[1] = a + b;
}
void k(const short x[8], int y[16]) {
#pragma HLS ARRAY_PARTITION variable=x complete
#pragma HLS ARRAY_PARTITION variable=y complete
    int out[2];
    for (int i = 0; i < 8; ++i) {
#pragma HLS UNROLL
        product(x[i], CHAINED, out);
        y[2 * i] = out[0];
        y[2 * i + 1] = out[1];
    }
}
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_calls_that_write_the_same_registers_run_side_by_side(tmp_path: Path, tool: str) -> None:
    """What each of them writes is a value of its own, unless one call takes what another made."""
    apart = _of(tmp_path, RESULTS.replace("CHAINED", "x[7 - i]"), tool)
    chained = _of(tmp_path, RESULTS.replace("CHAINED", "i ? out[0] : x[7]"), tool)
    assert (apart.latency[1], apart.resources["DSP"]) == (2, 8)
    assert chained.latency[1] is not None and chained.latency[1] >= 8


REGION = """
static int twice(const int a[8]) {
    int sum = 0;
    inner: for (int i = 0; i < 8; ++i) sum += a[i];
    return 2 * sum;
}
static int outer(const int a[8], bool more) {
    FUNCTION
    int sum = twice(a);
    if (more) {
        BLOCK
        sum += twice(a);
    }
    return sum;
}
int k(const int a[8], bool more) { return outer(a, more); }
"""


@pytest.mark.parametrize(
    ("function", "block", "copies"),
    [
        ("", "", 1),
        ("INLINE region", "", 2),
        ("", "INLINE region", 2),
        ("INLINE", "", 1),
        ("INLINE recursive", "", 2),
        ("INLINE region off", "", 1),
    ],
)
def test_inline_of_a_region_speaks_of_the_calls_in_it(
    tmp_path: Path, function: str, block: str, copies: int
) -> None:
    """Not of the function that it stands in, as INLINE does (UG902)."""
    text = REGION
    for word, asked in (("FUNCTION", function), ("BLOCK", block)):
        text = text.replace(word, f"#pragma HLS {asked}" if asked else "")
    source = tmp_path / "k.cpp"
    source.write_text(text)
    found = estimate(source, "k", tool="vivado-2019.2")
    assert len(found.loops) == copies
    assert not [one for one in found.warnings if "INLINE" in one]


ROUNDS = """
template <int N> void step(unsigned char s[N]) {
    each: for (int i = 0; i < N; ++i) s[i] = s[i] * 5 + 1;
}
static void both(unsigned char s[16]) {
    step<16>(s);
    back: for (int i = 0; i < 8; ++i) s[i] ^= s[15 - i];
}
void k(const unsigned char x[16], unsigned char y[16]) {
    unsigned char s[16];
    in: for (int i = 0; i < 16; ++i) s[i] = x[i];
    both(s);
    rounds: for (int r = 0; r < 9; ++r) {
        KEEP
        both(s);
    }
    both(s);
    out: for (int i = 0; i < 16; ++i) y[i] = s[i];
}
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_calls_of_an_inlined_function_have_loops_of_their_own(tmp_path: Path, tool: str) -> None:
    """Rounds are a pipeline, in which loops are unrolled; before and behind it they stay loops."""
    text = ROUNDS.replace("{\n    step", "{\n#pragma HLS INLINE recursive\n    step")
    text = text.replace("{\n    each", "{\n#pragma HLS INLINE\n    each")
    asked = "#pragma HLS PIPELINE" if tool == "vivado" else ""
    found = _of(tmp_path, text, tool, KEEP=asked)
    names = [loop.name for loop in found.loops]
    assert names == ["in", "each", "back", "rounds", "each", "back", "out"]
    assert _loop(found, "rounds").ii is not None and _loop(found, "each").trip_count == (16, 16)
    kept = _of(tmp_path, text, tool, KEEP="#pragma HLS PIPELINE off")
    assert [loop.name for loop in kept.loops][3:-3] == ["rounds", "each", "back"]


def test_an_array_of_a_constant_variable_is_registers_in_a_function_that_is_inlined(
    tmp_path: Path,
) -> None:
    """`int size = 9; int a[size];` is an array of nine (the log of a median filter)."""
    text = """
static int middle(int first, const int x[8]) {
#pragma HLS INLINE
    int size = 9;
    int kept[size];
    kept[0] = first;
    for (int i = 0; i < 8; ++i) kept[i + 1] = x[i];
    for (int n = 0; n < size; ++n)
        for (int i = 0; i < size - 1; ++i)
            if (kept[i] > kept[i + 1]) {
                int greater = kept[i];
                kept[i] = kept[i + 1];
                kept[i + 1] = greater;
            }
    return kept[4];
}
void k(const int x[64], int y[64]) {
    int last[8] = {0};
#pragma HLS ARRAY_PARTITION variable=last complete
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        y[i] = middle(x[i], last);
        for (int j = 7; j > 0; --j) last[j] = last[j - 1];
        last[0] = x[i];
    }
}
"""
    assert loop_of(estimate_of(tmp_path, text, "vivado"), "each").ii == 1
