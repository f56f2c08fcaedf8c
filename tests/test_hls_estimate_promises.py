"""``hls estimate`` and ``hls lint``: DEPENDENCE that is not true, and indices beyond an array."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.hls import lint
from pynq_torch.hls.estimator import compiler
from pynq_torch.lessons.hls_lab import Target, check

pytestmark = pytest.mark.skipif(compiler.tools() is not None, reason="clang-16 is not installed")

SUMS = """
const int N = 256, P = 2;
float k(const float x[N]) {
    float part[P] = {};
    l: for (int i = 0; i < N; ++i) {
#pragma HLS PIPELINE II=1
// The addresses never meet.
#pragma HLS DEPENDENCE variable=part type=inter PROMISE
        part[i % P] += x[i] * x[i];
    }
    float sum = 0;
    for (int i = 0; i < P; ++i) sum += part[i];
    return sum;
}
"""
FALSE = SUMS.replace("PROMISE", "dependent=false")
BENCH = "int main() { float x[N]; for (int i = 0; i < N; i++) x[i] = i % 2; return k(x) != N / 2; }"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (FALSE, 9, "'part' is not true: the element read here was written 2 iterations before"),
        (FALSE.replace("P = 2", "P = 3"), 9, "written 3 iterations before, .*distance=3"),
        (FALSE.replace("P = 2", "P = 4"), 9, "written 4 iterations before, .*distance=4"),
        (SUMS.replace("PROMISE", "distance=8 true"), 9, "2 iterations before, .*distance=2, or"),
        ("void k(float a[64]) {\n    l: for (int i = 3; i < 64; i++) {\n#pragma HLS PIPELINE II=1\n"
         "#pragma HLS DEPENDENCE variable=a type=inter false\n    a[i] = a[i - 3] * 0.5f;\n}}",
         5, "'a' is not true: .* 3 iterations before"),
    ],
)  # fmt: skip
def test_a_promise_that_is_not_true_is_named(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    found = [one for one in estimate_of(tmp_path, text, "vitis").warnings if "is not true" in one]
    assert len(found) == 1 and f"k.cpp:{line}: DEPENDENCE of " in found[0]
    assert re.search(said, found[0])


@pytest.mark.parametrize(
    "text",
    [
        FALSE.replace("P = 2", "P = 8"),
        SUMS.replace("P = 2", "P = 8").replace("PROMISE", "distance=8 true"),
        FALSE.replace("part[i % P] +=", "if (x[i] > 3) part[i % P] +="),
        FALSE.replace("part[i % P]", "part[int(x[i]) & 1]"),
        FALSE.replace("part[i % P] += x[i] * x[i]", "part[i % P] = x[i] * x[i]"),
        FALSE.replace("II=1", "II=6"),
        "void k(float a[64], int n) {\n    l: for (int i = 0; i < 9; i++) {\n#pragma HLS PIPELINE\n"
        "#pragma HLS DEPENDENCE variable=a type=inter false\n    a[i] = a[i + n] * 0.5f;\n}}",
        "void k(float a[64]) {\n    l: for (int i = 0; i < 3; i++) {\n#pragma HLS PIPELINE II=1\n"
        "#pragma HLS DEPENDENCE variable=a type=inter false\n    a[i + 3] = a[i] * 0.5f;\n}}",
    ],
)
def test_a_promise_that_may_be_true_or_does_no_harm_is_kept(tmp_path: Path, text: str) -> None:
    assert not [one for one in estimate_of(tmp_path, text, "vitis").warnings if "true:" in one]


LANES = """
void k(const float x[256], float part[LANE]) {
#pragma HLS ARRAY_PARTITION variable=part complete
    for (int i = 0; i < 256; i += LANE)
        l: for (int j = 0; j < LANE; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS DEPENDENCE variable=part inter false
            part[j] += x[i + j];
        }
}
"""


def test_a_promise_about_registers_is_one_about_their_elements(tmp_path: Path) -> None:
    """The tool takes any of them for the next one's; the nest comes again after all lanes."""
    said = [estimate_of(tmp_path, LANES.replace("LANE", n), "vitis").warnings for n in ("8", "4")]
    assert said[0] == () and "written 4 iterations before" in said[1][0]


def test_registers_of_which_a_count_chooses_are_better_a_memory(tmp_path: Path) -> None:
    kept = LANES.replace("#pragma HLS DEPENDENCE variable=part inter false", "")
    kept = kept.replace("LANE", "8")
    cut, whole = estimate_of(tmp_path, kept, "vitis"), kept.replace("part complete", "x complete")
    assert cut.loops[0].ii == 6 and "leave ARRAY_PARTITION out" in cut.loops[0].why
    assert "after 8 iterations" in cut.loops[0].why
    assert estimate_of(tmp_path, whole, "vitis").loops[0].ii == 1


def test_an_index_of_one_bit_comes_again_after_two_iterations(tmp_path: Path) -> None:
    text = FALSE.replace("#pragma HLS DEPENDENCE variable=part type=inter dependent=false", "")
    found = loop_of(estimate_of(tmp_path, text, "vitis"), "l")
    assert found.ii == 3 and "written 2 iterations before" in found.why


def test_a_broken_promise_is_a_finding_and_no_right_answer(tmp_path: Path) -> None:
    source = tmp_path / "k.cpp"
    source.write_text(FALSE)
    (found,) = lint(source, "k")
    assert (found.line, found.rule) == (9, "dependence") and "is not true" in found.text
    done = check(FALSE, "k", Target(ii={"l": 1}), BENCH)
    assert done.sentence.startswith("k: NOT YET. k.cpp:9: DEPENDENCE of 'part' is not true")


INDICES = """
int k(const int x[64], int y[64]) {
    int t[8][8], u[64];
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) t[i][j] = x[i * 8 + j];
    for (int i = 0; i < 64; ++i) if (i > 0) u[i - 1] = t[i / 8][i % 8];
    for (int i = 0; i < 63; ++i) u[i] = u[i + 1];
    for (int i = 0; i < 64; ++i) y[i] = u[i];
    return y[3];
}
"""


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("i < 63", "i < 64", "k.cpp:7: element 64 of 'u' is read here, and there are 0 to 63;"),
        ("y[i] = u[i]", "y[i] = u[i - 1]", "k.cpp:8: element -1 of 'u' is read here"),
        ("j < 8", "j <= 8", "k.cpp:5: element 64 of 't' is written here"),
        ("i < 64; ++i) y", "i <= 64; ++i) y", "k.cpp:8: element 64 of 'y' is written here"),
    ],
)
def test_an_index_beyond_its_array_is_named(
    tmp_path: Path, right: str, wrong: str, said: str
) -> None:
    assert not estimate_of(tmp_path, INDICES, "vitis").warnings
    found = estimate_of(tmp_path, INDICES.replace(right, wrong), "vitis").warnings
    assert any(said in one for one in found)
    assert "element" in {one.rule for one in lint(tmp_path / "k.cpp", "k")}


def test_a_loop_that_is_left_before_goes_not_too_far(tmp_path: Path) -> None:
    text = INDICES.replace("i < 64; ++i) y", "i < 99; ++i) if (i > 63) break; else y")
    assert not estimate_of(tmp_path, text, "vitis").warnings
