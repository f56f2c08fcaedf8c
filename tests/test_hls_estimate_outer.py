"""What an iteration waits for across a nest, and across branches."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import estimate_of

from pynq_torch.hls.estimator import compiler

pytestmark = pytest.mark.skipif(compiler.tools() is not None, reason="clang-16 is not installed")


def _interval(folder: Path, text: str, tool: str) -> int:
    (found,) = (one.ii for one in estimate_of(folder, text, tool).loops if one.ii is not None)
    return found


COLUMNS = """
void k(const TYPE a[64][WIDTH], TYPE s[WIDTH]) {
    for (int i = 0; i < 64; ++i)
        for (int j = 0; j < WIDTH; ++j) {
#pragma HLS PIPELINE II=1
            s[PLACE] = s[PLACE] * 3 + a[i][j];
        }
}
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
@pytest.mark.parametrize(
    ("kind", "width", "place", "least"),
    [
        ("float", 2, "j", 5), ("float", 4, "j", 3), ("float", 16, "j", 1),
        ("int", 2, "j", 2), ("int", 8, "j", 1),
        ("float", 2, "(i & 1) * 0 + j", 5),
    ],
)  # fmt: skip
def test_an_outer_loop_comes_to_an_element_again(
    tmp_path: Path, tool: str, kind: str, width: int, place: str, least: int
) -> None:
    """A product and a sum of floats lie between a read and the write of it: 9 cycles or more."""
    text = COLUMNS.replace("TYPE", kind).replace("WIDTH", str(width)).replace("PLACE", place)
    interval = _interval(tmp_path, text, tool)
    assert least <= interval <= least + (kind == "float" and least > 1)
    if least > 1:
        said = " ".join(one.why for one in estimate_of(tmp_path, text, tool).loops)
        assert f"`s` is read after it was written {width} iterations before" in said


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_an_outer_loop_with_work_of_its_own_comes_to_other_rows(tmp_path: Path, tool: str) -> None:
    """clang calls these loops ``for.body`` and ``for.body4``."""
    text = """
void k(float y[64][4], const float w[64]) {
    for (int i = 0; i < 64; ++i) {
        float a = w[i];
        for (int j = 0; j < 4; ++j) {
#pragma HLS PIPELINE II=1
            y[i][j] = y[i][j] * a + 1;
        }
    }
}
"""
    assert _interval(tmp_path, text, tool) == 1


BRANCHES = """
void k(const float x[256], float y[256], float z[256]) {
    float s = 0;
    for (int i = 0; i < 256; ++i) {
#pragma HLS PIPELINE II=1
        BODY
    }
}
"""


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_what_a_branch_chooses_waits_for_its_condition(tmp_path: Path, tool: str) -> None:
    """Also where the branches write, so that they are no choice between two values."""
    written = "if (s * s > x[i]) { y[i] = s; s = x[i]; } else { z[i] = s; s = 1; }"
    chosen = "s = s * s > x[i] ? x[i] : 1; y[i] = s;"
    one, two = (
        _interval(tmp_path, BRANCHES.replace("BODY", body), tool) for body in (written, chosen)
    )
    assert one == two == 6


@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_a_condition_around_both_ways_chooses_nothing(tmp_path: Path, tool: str) -> None:
    """Both ways are in one branch: what they choose waits for what tells them apart alone."""
    body = """
        float t = 0;
        if (x[i] / 3 > 1) {
            if (i & 1) { y[i] = s; t = s + 1; } else { z[i] = s; t = s + 2; }
            z[255 - i] = t;
        }
        s = t * 0 + x[i];
    """
    interval = _interval(tmp_path, BRANCHES.replace("BODY", body), tool)
    assert interval < 16, "the quotient is in no recurrence"
