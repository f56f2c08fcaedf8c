"""Exercises in HLS C++: right answers, and every kind of wrong one, end in a sentence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pynq_torch.hls.estimator import compiler
from pynq_torch.lessons import rtl_lab
from pynq_torch.lessons.hls_lab import (
    Target,
    bare,
    cell,
    check,
    estimated,
    fifos,
    pragmas,
    with_pragmas,
)
from pynq_torch.widgets.hls_cell import run_cell

pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(compiler.tools() is not None, reason=compiler.tools() or ""),
]

NAIVE = """\
const int N = 256;
float dot(const float x[N], const float y[N]) {
    float acc = 0;
    dot_loop: for (int i = 0; i < N; ++i) {
#pragma HLS PIPELINE
        acc += x[i] * y[i];
    }
    return acc;
}
"""
RIGHT = """\
const int N = 256, P = 8;
float dot(const float x[N], const float y[N]) {
    float part[P];
    clear_loop: for (int p = 0; p < P; ++p) part[p] = 0;
    dot_loop: for (int i = 0; i < N; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS DEPENDENCE variable=part type=inter direction=RAW distance=8 true
        part[i % P] += x[i] * y[i];
    }
    float acc = 0;
    sum_loop: for (int p = 0; p < P; ++p) acc += part[p];
    return acc;
}
"""
BENCH = """\
#include <cstdio>
int main() {
    float x[N], y[N], expected = 0;
    for (int i = 0; i < N; ++i) {
        x[i] = i % 7;
        y[i] = i % 5 - 2;
        expected += x[i] * y[i];
    }
    const float found = dot(x, y);
    std::printf("dot is %g, expected %g\\n", found, expected);
    return found != expected;
}
"""
TARGET = Target(ii={"dot_loop": 1}, dsp=8, bram=0)


def test_a_right_answer() -> None:
    done = check(RIGHT, "dot", TARGET, BENCH)
    assert done.passed and done.schedule is not None
    assert repr(done) == done.sentence
    assert done.sentence.startswith("dot: the testbench passes, dot_loop has II=1, ")
    verdict, promise = done.sentence.splitlines()
    assert verdict.endswith(" 5 DSP, 0 BRAM_18K (estimate): PASS")
    assert promise == "dot.cpp:7: DEPENDENCE is a promise that no testbench checks; is it true?"


def test_lint_s_hints_stand_behind_the_verdict() -> None:
    answer = RIGHT.replace("direction=RAW distance=8 true", "dependent=false")
    done = check(answer, "dot", TARGET, BENCH)
    assert done.passed
    assert re.search(r": PASS\nlint: dot\.cpp:7: dependence: .*say.* why", done.sentence)
    assert "is it true?" not in done.sentence


WRONG = [
    (NAIVE, TARGET, r"dot_loop has II=5, the target is 1\. II=5: .*floating-point addition"),
    (RIGHT, Target(dsp=1), "number of DSP blocks is 5 .* at most 1"),
    (RIGHT, Target(latency=9), "latency in cycles is .* at most 9. Most are in dot_loop"),
    (NAIVE, Target(interval=9), "interval in cycles is .*II=5"),
    (RIGHT.replace("= 0;\n    sum", "= 1;\n    sum"), TARGET, "result is wrong.*expected"),
    (RIGHT.replace("PIPELINE", "PIPELNIE"), TARGET, "dot.cpp:6: PIPELNIE .* mean PIPELINE"),
    (RIGHT.replace("float acc = 0;", "float acc = 0"), TARGET, r"compile\. dot\.cpp:10: expected"),
    (RIGHT.replace("++i", "i = 0"), TARGET,
     r"did not end within 2 s, and was in dot\.cpp:\d+ then: .* never ends"),
    (RIGHT.replace("[i % P]", "[i << 22]"), TARGET, "stopped in dot.cpp:8: an address outside"),
    (RIGHT.replace("i < N;", "i <= N;"), TARGET,
     r"stopped in dot\.cpp:\d+: an index or pointer outside its array \("),
    (RIGHT.replace("dot_loop", "loop"), TARGET, "no loop dot_loop .*clear_loop, loop, sum_loop"),
    (RIGHT.replace("PIPELINE II=1", "PIPELINE off"), TARGET, "dot_loop is not pipelined"),
    (RIGHT.replace("float dot", "float dot2"), TARGET, "no definition of the top function 'dot'"),
    (RIGHT.replace("float x[N], const", "float x[N], int n, const"), TARGET, r"tb.cpp:\d+: inv"),
    (RIGHT.replace("float part[P]", "float* part = new float[P]"), TARGET, "no heap"),
    (RIGHT + BENCH, TARGET, "a main of its own; put that behind a line // testbench"),
    (RIGHT.replace("i < N;", "i < y[0] + N + 2;"), Target(latency=400), "latency .* not known"),
    ("", TARGET, "no definition of the top function"),
    (NAIVE.replace("PIPELINE", "PIPELINE II=0"), TARGET, r"number of at least 1\. dot_loop"),
    (RIGHT.replace("int i = 0; i < N; ++i", "unsigned i = N - 1; i >= 0; --i"), TARGET,
     r"dot\.cpp:5: i is unsigned and never below 0, so i >= 0 is always true\."),
    (RIGHT.replace("    return acc;\n", ""), TARGET, r"reached the end of a .* a value\.$"),
    (RIGHT.replace("dot_loop: ", ""), TARGET, "label it dot_loop, and do not unroll it completely"),
    ('#include "none.h"\n' + RIGHT, TARGET, r"dot\.cpp:1: 'none\.h' file not found\.$"),
    ("#include <cstdlib>\n" + RIGHT.replace("acc = 0;", "acc = std::rand();"), TARGET,
     r"rand asks the .* hand its result over as an argument\.$"),
    # Answers that would fool the testbench, or the estimate.
    ('#include <cstdlib>\n#include <cstdio>\n' + RIGHT.replace(
        "float acc = 0;", 'std::puts("PASS"); std::exit(0); float acc = 0;'
     ), TARGET, "did not come to its end: what calls exit?"),
    (RIGHT.replace("        part[i % P] += x[i] * y[i];", "#ifndef __SYNTHESIS__\n"
     "        part[i % P] += x[i] * y[i];\n#endif"), TARGET, "dot.cpp:8: #ifndef makes one"),
    ("/**/#ifdef A\n#endif\n" + RIGHT, TARGET, "not accepted: dot.cpp:1: #ifdef makes one"),
    ("\n%:ifdef A\n%:endif\n" + RIGHT, TARGET, "not accepted: dot.cpp:2: #ifdef makes one"),
    ("\n#\\\nifdef A\n#endif\n" + RIGHT, TARGET, "not accepted: dot.cpp:2: #ifdef makes one"),
    ("#define S(x) #x\n" + RIGHT, TARGET, "not accepted: dot.cpp:1: #define S"),
    ("#define C(a, b) a##b\n" + RIGHT, TARGET, "not accepted: dot.cpp:1: #define C"),
    ("const int c = sizeof(__clang__);\n" + RIGHT, TARGET, "not accepted: dot.cpp:1: __clang__"),
    (RIGHT.replace("float part[P];", "static float part[P];").replace(
        "clear_loop: for (int p = 0; p < P; ++p) part[p] = 0;", ""), TARGET,
     r"YET\. A second run is wrong: does a static .* The first run was right, and printed: dot is"),
    (RIGHT.replace("float part[P];", "float part[P], more[P];").replace("= acc;", "= 0;").replace(
        "float acc = 0;", "float acc = more[0];"
     ), TARGET, r"YET\. A local variable is read before anything is written to it"),
    ("float twice(float);\n" + RIGHT.replace("return acc", "return twice(acc)"), TARGET,
     "twice is declared, and nothing defines it"),
    ("int calls = 0;\n" + RIGHT, TARGET, "calls is defined in the testbench as well; write static"),
    (RIGHT.replace("dot_loop: for (int i = 0; i < N; ++i) {\n#pragma HLS PIPELINE II=1\n",
     "\n#pragma HLS PIPELINE II=1\ndot_loop: for (int i = 0; i < N; ++i) {\n"), TARGET,
     r"The loop dot_loop \(dot\.cpp:7\) is not in the schedule: .* PIPELINE around it\. A pragma"),
    ("#define static_assert(...)\n" + RIGHT, TARGET,
     "not accepted: dot.cpp:1: #define static_assert gives a word of C\\+\\+ another meaning"),
    ("\n# define printf(...) 0\n" + RIGHT, TARGET, "not accepted: dot.cpp:2: #define printf gives"),
    ("#define float double\n" + RIGHT, TARGET, "not accepted: dot.cpp:1: #define float gives"),
    ("#define pynq_torch_bench dot\n" + RIGHT, TARGET, "not accepted: dot.cpp:1: #define pynq_"),
    ("\nstruct own { float v; operator double() const { return 0; } };\n" + RIGHT, TARGET,
     r"not accepted: dot.cpp:2: operator double\(\) would decide what the testbench finds equal"),
    ("struct own { bool operator != (own) const { return false; } };\n" + RIGHT, TARGET,
     "not accepted: dot.cpp:1: operator != would decide"),
    (f"```cpp\n{RIGHT}```\n", TARGET, "not accepted: dot.cpp:1: ``` is of the page, not of C"),
    (f"\n%%hls dot\n{RIGHT}", TARGET, "not accepted: dot.cpp:2: %%hls is of the page, not of C"),
    ("dot", TARGET, "no cell %%hls dot; run it first"),
    (RIGHT.replace("const float x[N]", "float x[N]").replace("return acc", "x[0] = 0; return acc"),
     Target(reads=2), r"YET\. x is an input of dot, which writes to it; leave it be"),
    (RIGHT.replace("return acc", "const_cast<float*>(y)[0] = 0; return acc"), Target(reads=2),
     r"YET\. y is an input of dot"),
]  # fmt: skip


def test_what_is_no_pragma_s_fault_is_said_plainly() -> None:
    answer = RIGHT.replace("int i = 0; i < N; ++i", "int i = 0; ; i = (i + 1) % N")
    done = check(answer, "dot", TARGET, BENCH, timeout_s=2)
    assert re.search(r"ends\? dot\.cpp:5: the loop has no end, so .*condition\.", done.sentence)
    assert "pragma" not in done.sentence


@pytest.mark.parametrize("bench", ["int test() { return 0; }", "void main() {}", "// int main() {"])
def test_a_testbench_without_main_is_told_so(bench: str) -> None:
    said = "dot: NOT YET. The testbench needs `int main()`, which returns 0 for a right result."
    assert check(RIGHT, "dot", TARGET, bench).sentence == said


def test_fifos_and_pragmas_of_an_answer() -> None:
    answer = """
#include <hls_stream.h>
typedef hls::stream<int> fifo;
const int T = 16;
void f(hls::stream<int, 8>& s) { s.read(); }
void top(int x[64]) {
    fifo a, b, c; // #pragma HLS STREAM variable=b depth=9
    hls::stream<int, T> d("d");
    static hls::stream<int, 3> e;
#pragma HLS stream depth = T / 2 variable = a,c
#pragma HLS STREAM variable=e depth=5
#pragma HLS array_partition cyclic variable=x factor = T dim=1
#pragma HLS ARRAY_PARTITION variable=x
}
"""
    assert fifos(answer) == {"a": 8, "b": 2, "c": 8, "d": 16, "e": 5}
    assert pragmas(answer, "ARRAY_PARTITION") == [
        {"variable": "x", "type": "cyclic", "factor": 16, "dim": 1},
        {"variable": "x", "type": "complete"},
    ]
    assert [one["variable"] for one in pragmas(answer, "stream")] == ["a", "c", "e"]
    assert bare("int a; // b\n#pragma HLS STREAM\n/* c */ int d;") == "inta;intd;"


def test_a_macro_may_make_a_pragma() -> None:
    text = RIGHT.replace("#pragma HLS PIPELINE II=1", "DO(HLS PIPELINE II=1)")
    assert check("#define DO(x) _Pragma(#x)\n" + text, "dot", TARGET, BENCH).passed


def test_arithmetic_of_its_own_is_no_judge() -> None:
    own = "struct own { float v; own operator+(own o) const { return {v + o.v}; } };\n"
    call = own.replace("operator+(own o)", "operator()(own o)")
    for text in (own, call):
        assert check(text + RIGHT, "dot", TARGET, BENCH).passed


def test_an_answer_cannot_choose_the_data() -> None:
    """`rand` of its own is not that of the testbench."""
    bench = BENCH.replace("i % 7", "std::rand() % 7").replace("i % 5 - 2", "std::rand() % 5 - 2")
    answer = "#include <cstdlib>\nint rand() noexcept { return 2; }\n" + RIGHT
    assert check(answer, "dot", TARGET, bench).passed
    fixed = answer.replace("return acc", "return 0 * acc")
    assert "The result is wrong" in check(fixed, "dot", TARGET, bench).sentence


def test_words_that_nobody_reads_are_not_right() -> None:
    """The next run would begin with them."""
    answer = """
#include <hls_stream.h>
static void send(const int x[8], hls::stream<int>& s) {
    send_loop: for (int i = 0; i < 8; ++i) s.write(x[i]);
    MORE
}
static void take(hls::stream<int>& s, int y[8]) {
    take_loop: for (int i = 0; i < 8; ++i) y[i] = s.read();
}
void pass(const int x[8], int y[8]) {
#pragma HLS DATAFLOW
    hls::stream<int> s("s");
    send(x, s);
    take(s, y);
}
"""
    bench = """
int main() {
    int x[8], y[8], wrong = 0;
    for (int i = 0; i < 8; ++i) x[i] = std::rand();
    pass(x, y);
    for (int i = 0; i < 8; ++i) wrong += x[i] != y[i];
    return wrong;
}
"""
    assert check(answer.replace("MORE", ""), "pass", Target(), bench).passed
    done = check(answer.replace("MORE", "s.write(0);"), "pass", Target(), bench)
    assert not done.passed and re.search(r"Stream s .*still holds 1 element at", done.sentence)


@pytest.mark.parametrize(
    ("answer", "target", "said"), WRONG, ids=[str(n) for n in range(len(WRONG))]
)
def test_a_wrong_answer_is_told_why(answer: str, target: Target, said: str) -> None:
    done = check(answer, "dot", target, BENCH, timeout_s=2)
    assert not done.passed
    assert done.sentence.startswith("dot: NOT YET. ")
    assert re.search(said, done.sentence, re.DOTALL), done.sentence
    assert "/tmp" not in done.sentence


def test_what_is_no_text_is_said() -> None:
    answer: Any = None
    done = check(answer, "dot", TARGET, BENCH)
    assert done.sentence == "dot: NOT YET. It is None; expected C++ in a string."
    stage = rtl_lab.check(answer)
    assert stage.sentence == "stage: NOT YET. It is None; expected SystemVerilog as text."
    assert not done.passed and not stage.passed


def test_a_result_that_was_read_off_is_wrong_for_the_next_answer() -> None:
    """std::rand() gives other data to each answer."""
    random = BENCH.replace("i % 7", "std::rand() % 7")
    first = check(NAIVE.replace("return acc", "return 0"), "dot", Target(), random)
    (read,) = re.findall(r"dot is 0, expected (-?\d+)", first.sentence)
    done = check(NAIVE.replace("return acc", f"return {read}"), "dot", Target(), random)
    assert not done.passed and f"dot is {read}, expected" in done.sentence


def test_a_loop_that_prints_without_end_fills_no_disk() -> None:
    endless = "#include <cstdio>\n" + RIGHT.replace(
        "float acc = 0;", 'float acc = 0; for (;;) std::printf("%0999d\\n", 7);'
    )
    done = check(endless, "dot", TARGET, BENCH, timeout_s=60)
    assert not done.passed and "does a loop print without end" in done.sentence


def test_a_cell_is_checked_by_its_name() -> None:
    run_cell("dot", NAIVE + "// testbench\nint main() { return 0; }\n")
    assert "II=5" in check("dot", "dot", TARGET, BENCH).sentence
    assert cell("dot") == (NAIVE, "// testbench\nint main() { return 0; }\n")
    with pytest.raises(ValueError, match="no cell %%hls dots; those that have been run: .*dot"):
        cell("dots")
    run_cell("dot", RIGHT)
    assert check("dot", "dot", TARGET, BENCH).passed


def test_a_testbench_and_headers_from_files(tmp_path: Path) -> None:
    (tmp_path / "dot.hpp").write_text(
        "const int N = 256, P = 8;\nfloat dot(const float*, const float*);\n"
    )
    (tmp_path / "bench.cpp").write_text('#include "dot.hpp"\n' + BENCH)
    answer = RIGHT.replace("const int N = 256, P = 8;", '#include "dot.hpp"')
    done = check(answer, "dot", TARGET, tmp_path / "bench.cpp", include_dirs=[tmp_path])
    assert done.passed, done.sentence


def test_pragmas_put_into_loops_and_functions() -> None:
    plain = RIGHT.replace("#pragma HLS PIPELINE II=1\n", "")
    made = with_pragmas(plain, {"dot_loop": "PIPELINE II=1", "dot": ["INLINE off", "PIPELINE off"]})
    assert "++i) {\n#pragma HLS PIPELINE II=1\n#pragma HLS DEP" in made
    assert "y[N]) {\n#pragma HLS INLINE off\n#pragma HLS PIPELINE off\n    float" in made
    for name in ("clear_loop", "no_loop"):  # without braces; not there
        with pytest.raises(ValueError, match=f"no loop or function '{name}'"):
            with_pragmas(RIGHT, {name: "UNROLL"})


def test_a_shift_by_more_bits_than_there_are_leaves_the_sign() -> None:
    """In C++ it is undefined, and the compiler would drop what follows from it."""
    source = """#include <ap_fixed.h>
typedef ap_fixed<12, 2> number;
void f(const number x[64], number y[64]) {
    for (int i = 0; i < 64; ++i) y[i] = (x[i] >> 14) < 0 ? number(x[i] * x[i]) : number(0);
}
"""
    assert estimated(source, "f").resources["DSP"] == 1


def test_an_interval_that_misses_the_clock_is_no_pass() -> None:
    """Vitis HLS keeps an II=1 that PIPELINE names, whatever the clock: the target is reached."""
    long = """void f(const int x[64], int *y) {
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
    bench = "int main() { int x[64] = {}, y; f(x, &y); return y != 0; }"
    said = check(long, "f", Target(ii={"each": 1}), bench).sentence
    assert said.startswith("f: NOT YET. f.cpp:") and "misses the clock" in said
