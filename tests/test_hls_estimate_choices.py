"""``hls estimate``: words of one of several memories, which data or a loop choose."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of, loop_of

from pynq_torch.hls.estimator import compiler

MISSING = compiler.tools()
pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(MISSING is not None, reason=MISSING or ""),
]

TOOLS = ("vitis-2022.2", "vivado-2019.1")
EITHER = """
void k(const int x[32], const int h[32], const int w[64], int *y) {
#pragma HLS ARRAY_PARTITION variable=x cyclic factor=8
#pragma HLS ARRAY_PARTITION variable=h cyclic factor=8
#pragma HLS ARRAY_PARTITION variable=w cyclic factor=8
    int sum = 0;
    each: for (int j = 0; j < 64; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS UNROLL factor=8
        WORD
        sum += v * w[j];
    }
    *y = sum;
}
"""
WORDS = (
    "int v = j < 32 ? x[j] : h[j - 32];",
    "int v; if (j < 32) v = x[j]; else v = h[j - 32];",
    "const int *from = j < 32 ? x : h; int v = from[j & 31];",
    "int v = j < 32 ? x[j & 31] : h[j & 31];",
    "int v = j < 16 ? x[j] : j < 32 ? h[j] : w[j];",
)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("word", WORDS)
def test_either_array_is_read_by_its_own_ports(tmp_path: Path, word: str, tool: str) -> None:
    found = estimate_of(tmp_path, EITHER.replace("WORD", word), tool)
    assert loop_of(found, "each").ii == 1
    assert found.resources["DSP"] == 24 and not found.warnings


#: The first iteration takes a word of another array; each writes its own.
FIRST = """
void k(const float in[64], const float bias[16], float out[16]) {
#pragma HLS ARRAY_PARTITION variable=bias complete
#pragma HLS ARRAY_PARTITION variable=out complete
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE II=6
        for (int o = 0; o < 16; ++o) {
            float from = i == 0 ? bias[o] : out[o];
            out[o] = from + in[i];
        }
    }
}
"""


def test_a_sum_may_begin_with_a_word_of_another_array(tmp_path: Path) -> None:
    found = estimate_of(tmp_path, FIRST, TOOLS[0])
    assert loop_of(found, "each").ii == 6 and not found.warnings


#: The row is known early, the state only when the one before is.
BACK = """
void k(const bool from[256][64], bool out[256]) {
CUT
    int state = 0;
    each: for (int t = 255; t >= 0; --t) {
#pragma HLS PIPELINE II=1
        out[t] = state >> 5;
        state = ((state << 1) & 63) | from[t][state];
    }
}
"""
CUTS = tuple(f"ARRAY_{cut} variable=from complete dim=2" for cut in ("PARTITION", "RESHAPE"))


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("cut", CUTS)
def test_a_choice_among_memories_waits_for_no_read(tmp_path: Path, cut: str, tool: str) -> None:
    found = estimate_of(tmp_path, BACK.replace("CUT", f"#pragma HLS {cut}"), tool)
    assert loop_of(found, "each").ii == 1
    rows = "ARRAY_PARTITION variable=from complete dim=1"  # the state is the address
    found = estimate_of(tmp_path, BACK.replace("CUT", f"#pragma HLS {rows}"), tool)
    assert loop_of(found, "each").ii == 2


TAKEN = """
#include <ap_fixed.h>
typedef ap_fixed<16, 8> fixed;
void k(const fixed x[64], const fixed by, fixed y[64]) {
    fixed sum = 0;
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        sum = sum * by + x[i];
        y[i] = sum;
    }
}
"""


def test_the_cycles_of_a_sentence_are_the_interval(tmp_path: Path) -> None:
    source = TAKEN.replace("<16, 8>", "<18, 6, AP_RND, AP_SAT>")
    why = loop_of(estimate_of(tmp_path, source, TOOLS[0]), "each").why
    interval = loop_of(estimate_of(tmp_path, source, TOOLS[0]), "each").ii
    assert f"one after another ({interval} cycles at 10 ns), of the one before it" in why


#: Members of objects are arrays of their own, with `$` in LLVM's names.
MEMBERS = """
struct Table { int v[64], w[64]; };
void k(const int x[64], const bool c[64], int y[64]) {
    Table one, two;
    fill: for (int i = 0; i < 64; ++i) {
        one.v[i] = x[i];
        one.w[i] = 3 * x[i];
        two.v[i] = x[63 - i];
        two.w[i] = x[i] + 1;
    }
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE II=1
        const int *from = c[i] ? one.v : two.w;
        y[i] = from[63 - i] + (c[i] ? one.w[i] : two.v[i]);
    }
}
"""


def test_members_of_objects_may_be_chosen(tmp_path: Path) -> None:
    found = estimate_of(tmp_path, MEMBERS, TOOLS[0])
    assert loop_of(found, "each").ii == 1 and not found.warnings


#: A `switch` with several cases of one place, a variable called as new ones might be, and an
#: element at a constant place.
SHAPES = (
    "const int *p; switch (x[i]) { case 0: case 100: case 777: p = a; break; case 3: case 5: p = b;"
    " break; default: y[63 - i] = 5; p = b; } y[i] = *p;",
    "const int *p = x[i] == 5 ? a : b; if (a[i] > way) way = a[i]; y[i] = p[63 - i] + way;",
    "C[i & 7] = a[i]; D[i & 3] = b[i]; int v; if (x[i] == 1) { z[i] = 1; v = D[2]; } else if "
    "(x[i] == 2) { z[63 - i] = 2; v = x[i & 31]; } else { z[i ^ 1] = 3; v = C[0]; } y[i] = v;",
)


@pytest.mark.parametrize("shape", SHAPES)
def test_choices_of_every_shape_have_an_estimate(tmp_path: Path, shape: str) -> None:
    text = (
        "static int C[8], D[8];\n"
        "void k(const int a[64], const int b[64], const int x[64], int y[64], int z[64]) {\n"
        f"int way = 0;\neach: for (int i = 0; i < 64; ++i) {{ {shape} }}\nz[0] = way;\n}}\n"
    )
    for tool in TOOLS:
        assert loop_of(estimate_of(tmp_path, text, tool), "each").trip_count == (64, 64)


#: Each stays within its array, though a count alone does not say so.
WITHIN = (
    "int u[10]; for (int i = 0; i < 10; ++i) u[i] = x[i];\n"
    "for (int i = 0; i < 10; ++i) {\n#pragma HLS UNROLL factor=4\n y[i] = u[i] * 3; }",
    "for (int i = 0; i < 64; i += 2) { y[i] = x[i]; if (i == 62) break; y[i + 2] = x[i + 1]; }",
    "int u[8];\n#pragma HLS ARRAY_PARTITION variable=u complete\n"
    "for (int i = 0; i < 8; ++i) u[i] = x[i];\nint s = 0;\nfor (int k = 0; k < 8; ++k) {\n"
    "#pragma HLS UNROLL\n if (k + 1 < n) s += u[k + 1]; }\ny[0] = s;",
    "int *debug = nullptr; for (int i = 0; i < 64; ++i) { y[i] = x[i]; if (debug) *debug = i; }",
)


@pytest.mark.parametrize("body", WITHIN)
def test_what_never_happens_is_no_fault(tmp_path: Path, body: str) -> None:
    text = f"void k(const int x[64], int y[64], int n) {{\n{body}\n}}\n"
    assert not estimate_of(tmp_path, text, TOOLS[0]).warnings
