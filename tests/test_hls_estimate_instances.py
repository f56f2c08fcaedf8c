"""Estimates of templates: each instance has the directives, loops and calls that are its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of

from pynq_torch.hls.estimator import Estimate, compiler, estimate

pytestmark = pytest.mark.skipif(compiler.tools() is not None, reason="clang-16 is not installed")


def of(folder: Path, text: str, **more: str) -> Estimate:
    source = folder / "k.cpp"
    source.write_text(text)
    return estimate(source, "k", **more)  # type: ignore[arg-type]


def loops(made: Estimate, line: int | None = None) -> list[tuple[int | None, int | None]]:
    """Return trip count and II of each loop, those of the shortest first."""
    found = [loop for loop in made.loops if line is None or loop.line == line]
    return sorted(((loop.trip_count[1], loop.ii) for loop in found), key=str)


SUM = """
template <int N, int F, int II> void part(const int x[64], int y[64]) {
    int t[64];
    DIVIDED
    a: for (int i = 0; i < 64; ++i) t[i] = x[i] * N;
    b: for (int i = 0; i < 64 / F; ++i) {
#pragma HLS PIPELINE II=II
        int s = 0;
        for (int j = 0; j < F; ++j) s += t[F * i + j];
        y[i] = s;
    }
}
void k(const int x[64], int y[64], const int v[64], int w[64]) {
    part<3, 2, 1>(x, y);
    part<5, 8, 1>(v, w);
}
"""


def of_b(made: Estimate) -> dict[int | None, int | None]:
    return {loop.trip_count[1]: loop.ii for loop in made.loops if loop.name == "b"}


def test_an_array_is_cut_by_its_instance_s_factor(tmp_path: Path) -> None:
    """Each of two instances reads as many elements in a cycle as its own banks give."""
    whole = of(tmp_path, SUM.replace("DIVIDED", ""), tool="vivado")
    assert of_b(whole) == {32: 1, 8: 4}
    for kind in ("ARRAY_PARTITION", "ARRAY_RESHAPE"):
        cut = f"\n#pragma HLS {kind} variable=t cyclic factor=F\n"
        made = of(tmp_path, SUM.replace("DIVIDED", cut), tool="vivado")
        assert (of_b(made), made.warnings) == ({32: 1, 8: 1}, ())
        made = of(tmp_path, SUM.replace("DIVIDED", cut.replace("F\n", "10-F\n")), tool="vivado")
        assert of_b(made) == {32: 1, 8: 2}


def test_an_interval_is_that_of_its_instance(tmp_path: Path) -> None:
    text = SUM.replace("DIVIDED", "").replace("5, 8, 1", "5, 8, 7").replace("3, 2, 1", "3, 2, 2")
    assert of_b(of(tmp_path, text)) == {32: 2, 8: 7}


def test_a_loop_is_unrolled_by_its_instance_s_factor(tmp_path: Path) -> None:
    text = """
template <int F> void scale(const int x[64], int y[64]) {
    a: for (int i = 0; i < 64; ++i) {
#pragma HLS UNROLL factor=F
        y[i] = 3 * x[i];
    }
}
void k(const int x[64], int y[64], const int v[64], int w[64]) {
    scale<1>(x, y);
    scale<2>(v, w);
    scale<4>(x, w);
}
"""
    made = of(tmp_path, text)
    assert loops(made) == [(16, 2), (32, 1), (64, 1)]
    assert made.warnings == ()


def test_a_nest_is_pipelined_where_its_instance_is_short(tmp_path: Path) -> None:
    """Vitis HLS unrolls inner loops of up to 64 iterations: here of one instance only."""
    text = """
template <int N> void rows(const int x[16 * N], int y[16]) {
    a: for (int i = 0; i < 16; ++i) {
        int s = 0;
        b: for (int j = 0; j < N; ++j) s += x[N * i + j];
        y[i] = s >> 3;
    }
}
void k(const int x[64], int y[16], const int v[2048], int w[16]) {
    rows<4>(x, y);
    rows<128>(v, w);
}
"""
    made = of(tmp_path, text)
    assert sorted((loop.name, loop.ii, loop.trip_count[1]) for loop in made.loops) == [
        ("a", 2, 16),
        ("a_b", 1, 2048),
    ]


def test_a_loop_that_runs_once_in_an_instance_is_none(tmp_path: Path) -> None:
    """What is in it keeps its own PIPELINE, as in a published report of a 1 x 1 convolution."""
    text = """
template <int SIZE, int IN> void point(const float x[SIZE * SIZE * IN], float y[SIZE * SIZE]) {
    py: for (int r = 0; r < SIZE; ++r)
        px: for (int c = 0; c < SIZE; ++c) {
            float s = 0;
            ic: for (int i = 0; i < IN; ++i) {
#pragma HLS PIPELINE II=1
                s += x[(r * SIZE + c) * IN + i];
            }
            y[r * SIZE + c] = s > 0 ? s : 0;
        }
}
void k(const float x[12], float y[1], const float v[128], float w[16]) {
    point<1, 12>(x, y);
    point<4, 8>(v, w);
}
"""
    pipelined = [loop for loop in of(tmp_path, text).loops if loop.ii is not None]
    found = sorted((loop.name, loop.trip_count[1]) for loop in pipelined)
    assert found == [("ic", 12), ("py_px_ic", 128)]


BRANCH = """
template <bool FAST> void choose(const int x[64], int y[64]) {
    if (FAST) {
#pragma HLS PIPELINE
    }
    a: for (int i = 0; i < 64; ++i) y[i] = 3 * x[i];
}
void k(const int x[64], int y[64], const int v[64], int w[64]) {
    choose<true>(x, y);
    choose<false>(v, w);
}
"""


def test_a_pragma_in_a_branch_is_of_the_instance_that_takes_it(tmp_path: Path) -> None:
    """Vivado HLS takes it out of the branch: one instance is a pipeline, its loop unrolled."""
    assert loops(of(tmp_path, BRANCH, tool="vivado")) == [(64, None)]
    assert not of(tmp_path, BRANCH.replace("<false>", "<true>"), tool="vivado").loops
    assert loops(of(tmp_path, BRANCH, tool="vitis")) == [(64, 1), (64, 1)]


def test_a_pipeline_takes_in_the_instance_that_it_calls(tmp_path: Path) -> None:
    text = """
template <int N> int sum(const int x[64]) {
#pragma HLS INLINE off
    int s = 0;
    a: for (int i = 0; i < N; ++i) s += x[i];
    return s;
}
void k(const int x[64], int y[64]) {
    y[0] = sum<33>(x);
    b: for (int i = 1; i < 32; ++i) {
#pragma HLS PIPELINE
        y[i] = sum<4>(x) + i;
    }
}
"""
    made = of(tmp_path, text, tool="vivado")
    assert [loop.trip_count[1] for loop in made.loops if loop.name == "a"] == [33]


@pytest.mark.parametrize("of_template", [False, True])
def test_a_loop_in_a_lambda_has_the_directives_of_its_function(
    tmp_path: Path, of_template: bool
) -> None:
    text = """
TEMPLATE void each(const int x[64], int y[64]) {
    auto one = [&](int from) {
        a: for (int i = 0; i < 32; ++i) {
#pragma HLS PIPELINE II=FOUR
            y[from + i] = 3 * x[from + i];
        }
    };
    one(0);
    one(32);
}
void k(const int x[64], int y[64]) { each(x, y); }
"""
    text = text.replace("TEMPLATE ", "template <int N> " if of_template else "")
    text = text.replace("each(x", "each<2>(x" if of_template else "each(x")
    made = of(tmp_path, text.replace("FOUR", "N" if of_template else "2"))
    assert loops(made) == [(32, 2), (32, 2)]
    assert made.warnings == ()


def test_what_a_lambda_calls_its_function_calls(tmp_path: Path) -> None:
    text = """
static int sum(const int x[64]) {
    int s = 0;
    a: for (int i = 0; i < 64; ++i) s += x[i];
    return s;
}
void k(const int x[64], int y[64]) {
    b: for (int i = 0; i < 4; ++i) {
#pragma HLS PIPELINE
        auto one = [&](int n) { y[n] = sum(x) + n; };
        one(i);
    }
}
"""
    made = of(tmp_path, text, tool="vivado")
    assert [loop.name for loop in made.loops] == ["b"]


def test_functions_of_one_name_in_two_files_are_two(tmp_path: Path) -> None:
    one = """
static void scale(const int x[64], int y[64]) {
    a: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE II=2
        y[i] = 3 * x[i];
    }
}
void other(const int x[64], int y[64]);
void k(const int x[64], int y[64], int z[64]) { scale(x, y); other(x, z); }
"""
    two = one.replace("II=2", "II=3").partition("void other")[0]
    (tmp_path / "two.cpp").write_text(
        f"{two}void other(const int x[64], int y[64]) {{ scale(x, y); }}"
    )
    source = tmp_path / "k.cpp"
    source.write_text(one)
    made = estimate(source, "k", sources=[tmp_path / "two.cpp"])
    assert loops(made) == [(64, 2), (64, 3)]


TWICE = """
static int weighed(const int w[9], const int x[9]) {
    int sum = 0;
    for (int i = 0; i < 9; ++i) sum += w[i] * x[i];
    return sum;
}
void k(const int u[9], const int v[9], const int x[9], const int z[9], int y[2]) {
    y[0] = weighed(u, x);
    y[1] = weighed(v, OTHER);
}
"""


def test_calls_of_a_function_take_turns_at_a_memory_that_both_read(tmp_path: Path) -> None:
    """The two filters of a window in a schedule of Vivado HLS 2017.4, which has one instance."""
    found = [estimate_of(tmp_path, TWICE.replace("OTHER", name), "vivado") for name in "xz"]
    (one, two) = (item.latency[1] or 0 for item in found)
    assert one > 1.8 * two
    assert found[1].resources["DSP"] == 2 * (found[0].resources["DSP"] or 0)


LAYERS = """
static void dense(const int *x, const int *w, int inputs, int outputs, int *y) {
#pragma HLS INLINE
    for (int i = 0; i < outputs; ++i) {
        int sum = 0;
        for (int j = 0; j < inputs; ++j) sum += x[j] * w[i * inputs + j];
        y[i] = sum;
    }
}
void k(const int x[SIZE], const int v[FIRST], const int w[320], int y[10]) {
    int t[32];
    dense(x, v, SIZE, 32, t);
    dense(t, w, 32, 10, y);
}
"""


@pytest.mark.parametrize(
    ("size", "trips"),
    [
        (392, [10, 32 * 392]),  # the inner loop of the second call alone is short
        (1, [10, 32]),  # that of the first runs once
    ],
)
def test_calls_that_are_inlined_one_after_the_other_have_loops_of_their_own(
    tmp_path: Path, size: int, trips: list[int]
) -> None:
    """Two layers of a network in a report of 2022.2: of 392 and of 32 inputs."""
    text = LAYERS.replace("SIZE", str(size)).replace("FIRST", str(32 * size))
    found = of(tmp_path, text, tool="vitis-2022.2")
    assert [trip for trip, _ in loops(found)] == trips
    assert dict(loops(found))[10] == 16  # 32 elements of each of two memories, two in a cycle
