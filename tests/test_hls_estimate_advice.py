"""The sentence that says what limits an II: its advice helps, as the estimate itself counts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.hls.estimator import LoopEstimate, compiler

pytestmark = pytest.mark.skipif(compiler.tools() is not None, reason="clang-16 is not installed")

_PARTITION = re.compile(
    r"accesses of `(?P<array>\w+)`.*; partition it(?P<how>.*?)(?:, for II=(?P<ii>\d+))?$"
)

PRODUCT = """
void k(const int A[32][32], const int B[32][32], int C[32][32]) {
    row: for (int i = 0; i < 32; i++)
        col: for (int j = 0; j < 32; j++) {
#pragma HLS PIPELINE
            int sum = 0;
            for (int n = 0; n < 32; n++)
                sum += A[i][n] * B[n][j];
            C[i][j] = sum;
        }
}
"""
BLOCKS = """
void k(const int x[64], int y[16]) {
    add: for (int i = 0; i < 16; i++) {
#pragma HLS PIPELINE
        y[i] = x[i] + x[16 + i] + x[32 + i] + x[48 + i];
    }
}
"""
NEIGHBOURS = """
void k(const int x[66], int y[64]) {
    add: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        y[i] = x[i] + x[i + 1] + x[i + 2];
    }
}
"""
CHOSEN = """
void k(const unsigned char p[64], int x[64], int y[64]) {
    add: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        y[i] = x[p[i] & 63] + x[p[i] >> 3] + x[(p[i] ^ 5) & 63];
    }
}
"""
WINDOW = """
void k(const short x[34][34], short y[32][32]) {
    row: for (int r = 0; r < 32; r++)
        col: for (int c = 0; c < 32; c++) {
#pragma HLS PIPELINE
            short most = 0;
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++)
                    if (x[r + i][c + j] > most) most = x[r + i][c + j];
            y[r][c] = most;
        }
}
"""


def _pragmas(why: str) -> list[str]:
    """Return the ARRAY_PARTITION that a reason advises."""
    match = _PARTITION.search(re.sub(r" \(\w+\.cpp:\d+\)$", "", why))
    assert match is not None, why
    made = []
    for one in match["how"].split(" and "):
        dimension = re.search(r"dimension (\d+)", one)
        dim = f" dim={dimension[1]}" if dimension else " dim=0" if "dim=0" in one else ""
        count = re.search(r"by (\d+)|in (\d+) blocks", one)
        kind = "complete"
        if count is not None:
            kind = f"cyclic factor={count[1]}" if count[1] else f"block factor={count[2]}"
        made.append(f"#pragma HLS ARRAY_PARTITION variable={match['array']} {kind}{dim}")
    return made


def _first(folder: Path, text: str, tool: str) -> LoopEstimate:
    return max(estimate_of(folder, text, tool).loops, key=lambda loop: loop.ii or 0)


@pytest.mark.parametrize("tool", ["vitis-2022.2", "vivado-2019.1"])
@pytest.mark.parametrize("text", [PRODUCT, BLOCKS, NEIGHBOURS, CHOSEN, WINDOW])
def test_the_advice_on_an_array_leads_to_the_interval(tmp_path: Path, text: str, tool: str) -> None:
    for _ in range(3):  # one array after another
        found = _first(tmp_path, text, tool)
        if found.ii == 1:
            return
        begin, end = text.split("{\n", 1)
        text = "\n".join([begin + "{", *_pragmas(found.why), end])
    assert _first(tmp_path, text, tool).ii == 1


def test_the_advice_names_the_dimension(tmp_path: Path) -> None:
    """A cut along the other one, the usual mistake, changes nothing."""
    assert "partition it by 16 in dimension 2" in _first(tmp_path, PRODUCT, "vitis").why
    cut = "    row:", "#pragma HLS ARRAY_PARTITION variable=A cyclic factor=16 dim=1\n    row:"
    wrong = _first(tmp_path, PRODUCT.replace(*cut), "vitis")
    assert wrong.ii == 16 and "`A`" in wrong.why and "by 16 in dimension 2" in wrong.why


def test_blocks_are_advised_where_cyclic_parts_do_not_help(tmp_path: Path) -> None:
    assert "partition it in 2 blocks" in _first(tmp_path, BLOCKS, "vitis").why


def test_an_interval_that_is_asked_for_needs_fewer_parts(tmp_path: Path) -> None:
    asked = PRODUCT.replace("PIPELINE", "PIPELINE II=4")
    assert "partition it by 4 in dimension 2" in _first(tmp_path, asked, "vitis").why


def test_what_is_never_divided_enough_is_said(tmp_path: Path) -> None:
    """Data choose among 4,096 elements: too many for registers."""
    text = CHOSEN.replace("int x[64]", "int x[4096]").replace("unsigned char", "unsigned short")
    text = text.replace("& 63", "& 4095").replace(">> 3", ">> 4")
    assert "no ARRAY_PARTITION gives it more" in _first(tmp_path, text, "vitis").why


CHAIN = """
void k(const float x[64], float *y) {
    float a = 0;
    loop: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        a = a * 0.5f + x[i];
    }
    *y = a;
}
"""


def test_a_chain_is_named_whole(tmp_path: Path) -> None:
    """Several accumulators would help a sum, not a filter with feedback."""
    found = loop_of(estimate_of(tmp_path, CHAIN, "vitis"), "loop")
    assert found.ii == 9
    assert "product (4 cycles at 10 ns) and the floating-point addition (5 cycles)" in found.why
    assert "accumulators" not in found.why and "k.cpp:6" in found.why
    alone = loop_of(estimate_of(tmp_path, CHAIN.replace("a * 0.5f", "a"), "vitis"), "loop")
    assert "addition of the one before it (5 cycles at 10 ns)" in alone.why
    assert "use several accumulators" in alone.why


ELEMENT = """
void k(int y[64]) {
    loop: for (int i = 2; i < 64; i++) {
#pragma HLS PIPELINE
        y[i] = y[i - 1] * y[i - 2] + 7;
    }
}
"""


def test_advice_on_an_element_does_not_promise_what_a_variable_cannot_do(tmp_path: Path) -> None:
    """The product and the sum take the three cycles; the addresses surely meet."""
    found = loop_of(estimate_of(tmp_path, ELEMENT, "vitis"), "loop")
    assert found.ii == 3 and "the product (2 cycles" in found.why
    assert "DEPENDENCE" not in found.why and "variable" not in found.why


ROTATION = """
void k(const float K[16], float x, float y, float *out) {
    loop: for (int i = 0; i < 16; i++) {
        float one, other;
        if (y < 0) {
            one = x - y * K[i];
            other = y + x * K[i];
        } else {
            one = x + y * K[i];
            other = y - x * K[i];
        }
        x = one;
        y = other;
    }
    *out = x;
}
"""


@pytest.mark.parametrize(("tool", "ii"), [("vitis-2024.2", 10), ("vitis-2021.1", 9)])
def test_a_recurrence_by_way_of_two_values_is_named_whole(
    tmp_path: Path, tool: str, ii: int
) -> None:
    """Published for CORDIC, in both releases: what was chosen is taken from a variable later."""
    found = loop_of(estimate_of(tmp_path, ROTATION, tool), "loop")
    assert found.ii == ii
    assert "product (4 cycles at 10 ns) and the floating-point addition (5 cycles)" in found.why
    assert "accumulators" not in found.why and "read of memory" not in found.why


BETWEEN = """
void k(const float x[64], float *y) {
    float p[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    loop: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        p[AT] OP x[i];
    }
    *y = p[0] + p[1] + p[2] + p[3] + p[4] + p[5] + p[6] + p[7];
}
"""


@pytest.mark.parametrize(
    ("at", "op", "said"),
    [
        ("i % 6", "+=", "use more accumulators"),  # no variable can be all of them
        ("(i ^ 5) & 7", "*=", "say DEPENDENCE false where addresses never meet"),
    ],
)
def test_what_is_said_of_an_element_depends_on_where_it_is(
    tmp_path: Path, at: str, op: str, said: str
) -> None:
    text = BETWEEN.replace("AT", at).replace("OP", op)
    found = loop_of(estimate_of(tmp_path, text, "vivado-2019.1"), "loop")
    assert found.why.split("; ")[1].startswith(said)


def test_all_arrays_that_are_as_short_of_ports_are_named(tmp_path: Path) -> None:
    text = BLOCKS.replace("int y[16]", "const int z[64], int y[16]")
    text = text.replace("x[48 + i]", "x[48 + i] + z[i] + z[i + 1] + z[i + 7]")
    why = _first(tmp_path, text, "vitis").why
    assert "4 accesses of `x`" in why and "partition it in 2 blocks, and `z` by 2" in why


def test_a_bus_of_one_argument_gets_no_advice_for_two(tmp_path: Path) -> None:
    text = """
void k(const int *x, int *y) {
#pragma HLS INTERFACE m_axi port=x bundle=a
#pragma HLS INTERFACE m_axi port=y bundle=b
    loop: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        y[3 * i] = x[i];
        y[3 * i + 1] = x[i] + 1;
    }
}
"""
    alone = loop_of(estimate_of(tmp_path, text, "vitis"), "loop").why
    assert "it has one a cycle; write one word in an iteration" in alone
    both = loop_of(estimate_of(tmp_path, text.replace("bundle=a", "bundle=b"), "vitis"), "loop").why
    assert "own" not in both  # a bus has a way to read, and one to write


def test_an_element_that_surely_was_written_is_no_false_dependence(tmp_path: Path) -> None:
    """DEPENDENCE false would make hardware that reads what is not written yet."""
    text = """
void k(int a[64]) {
    up: for (int j = 0; j < 63; j++) {
#pragma HLS PIPELINE
        if (a[j] > 5) a[j + 1] = a[j] * 3;
    }
}
"""
    why = loop_of(estimate_of(tmp_path, text, "vitis"), "up").why
    assert why.startswith("II=3: `a` is read after") and "keep the value in a variable" in why
    assert "DEPENDENCE" not in why


def test_a_sum_that_begins_anew_is_all_that_is_named(tmp_path: Path) -> None:
    text = """
void k(const float x[32], const float y[32], float out[32]) {
    rows: for (int i = 0; i < 32; i++) {
        float sum = 0;
        add: for (int j = 0; j < 32; j++) {
#pragma HLS PIPELINE
            sum += x[j] * y[j] - y[31 - j] * x[31 - j];
        }
        out[i] = sum;
    }
}
"""
    why = loop_of(estimate_of(tmp_path, text, "vitis"), "rows_add").why
    assert "product" not in why and why.count("addition") == 1
    assert "use several accumulators" in why


def test_advice_counts_the_memories_that_there_are_already(tmp_path: Path) -> None:
    """With 128 rows of their own, two halves of each would be 256 memories; 2 by 2 are four."""
    text = """
void k(const unsigned char in[128][128], int out[126][126]) {
#pragma HLS ARRAY_PARTITION variable=in complete dim=1
#pragma HLS BIND_STORAGE variable=in type=ram_2p
    for (int r = 0; r < 126; r++)
        column: for (int c = 0; c < 126; c++) {
#pragma HLS PIPELINE II=1
            out[r][c] = in[r][c] + in[r][c + 1] + in[r][c + 2]
                      + in[r + 1][c] + in[r + 1][c + 1] + in[r + 1][c + 2];
        }
}
"""
    why = estimate_of(tmp_path, text, "vitis").loops[-1].why
    assert "partition it by 2 in dimension 1 and by 2 in dimension 2" in why


def test_a_value_that_no_type_has_cuts_nothing(tmp_path: Path) -> None:
    text = BLOCKS.replace(
        "{\n", "{\n#pragma HLS ARRAY_PARTITION variable=x type=KIND factor=4\n", 1
    )
    assert loop_of(estimate_of(tmp_path, text.replace("KIND", "block"), "vitis"), "add").ii == 1
    assert loop_of(estimate_of(tmp_path, text.replace("KIND", "blocked"), "vitis"), "add").ii == 2


def test_functions_of_llvm_have_words(tmp_path: Path) -> None:
    text = """
void k(const int x[64], int y[64]) {
    int best = 0, last = 0, much = 0;
    find: for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE
        for (int n = 0; n < 4; n++) {
            best = best > last + x[i] ? best : last + x[i];
            last = best < much - n ? best : much - n;
            much = much + last * 3 > best ? much + last * 3 : best;
        }
        y[i] = best;
    }
}
"""
    why = loop_of(estimate_of(tmp_path, text, "vitis"), "find").why
    assert "llvm" not in why and "maximum" in why and "minimum" in why


FILTER = """
void k(const unsigned char x[4096], const unsigned char w[9], unsigned char y[4096]) {
#pragma HLS INTERFACE m_axi port=x bundle=one
#pragma HLS INTERFACE m_axi port=w bundle=WEIGHTS
#pragma HLS INTERFACE m_axi port=y bundle=RESULT
    rows: for (int i = 0; i < 4000; ++i) {
#pragma HLS PIPELINE
        int sum = 0;
        for (int j = 0; j < 9; ++j) sum += x[7 * i % 4000 + 5 * j] * w[j];
        y[i] = sum >> 4;
    }
}
"""


@pytest.mark.parametrize(
    ("weights", "result", "interval"), [("one", "one", 18), ("one", "two", 9), ("two", "one", 9)]
)
def test_a_write_to_a_bundle_may_change_all_behind_it(
    tmp_path: Path, weights: str, result: str, interval: int
) -> None:
    """Nine weights are read again in each iteration that writes to their port."""
    text = FILTER.replace("WEIGHTS", weights).replace("RESULT", result)
    assert loop_of(estimate_of(tmp_path, text, "vitis-2024.1"), "rows").ii == interval


LEAST = """
void k(const float x[40], float *y) {
    float least = 1e30f, next = 1e30f;
    each: for (int i = 0; i < 40; ++i) {
        const float now = x[i];
        if (now < least) {
            next = least;
            least = now;
        } else if (now < next) {
            next = now;
        }
    }
    *y = next - least;
}
"""


@pytest.mark.parametrize(("clock", "interval"), [(10, 1), (5, 2)])
def test_a_comparison_begins_behind_a_choice_if_there_is_time(
    tmp_path: Path, clock: float, interval: int
) -> None:
    """Its second cycle, the choice and the first cycle of the next one take 7.2 ns."""
    found = estimate_of(tmp_path, LEAST, "vitis-2025.1", part="xczu7ev-ffvc1156-2-e", clock=clock)
    assert loop_of(found, "each").ii == interval
