"""What one iteration hands on to the next within a cycle, and what is no dependence at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from pynq_torch import hls
from pynq_torch.hls.estimator.result import LoopEstimate
from pynq_torch.hls.estimator.target import target_of

SHA = """
typedef unsigned int u32;
static u32 turned(u32 x, int by) { return x >> by | x << (32 - by); }
void k(const u32 w[64], u32 out[8]) {
    u32 s[8];
    for (int i = 0; i < 8; ++i) s[i] = i;
    rounds: for (int i = 0; i < 64; ++i) {
        u32 t1 = s[7] + (turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25))
            + ((s[4] & s[5]) ^ (~s[4] & s[6])) + w[i];
        u32 t2 = (turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22))
            + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        for (int j = 7; j > 0; --j) s[j] = s[j - 1];
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (int i = 0; i < 8; ++i) out[i] = s[i];
}
"""


def loop(folder: Path, text: str, name: str, **options: object) -> LoopEstimate:
    source = folder / "k.cpp"
    source.write_text(text)
    [found] = [
        one
        for one in hls.estimate(source, "k", **options).loops  # type: ignore[arg-type]
        if one.name == name
    ]
    return found


@pytest.mark.parametrize(("clock", "interval"), [(8.0, 2), (9.0, 2), (14.0, 1), (20.0, 1)])
def test_a_recurrence_takes_little_more_than_a_cycle(
    tmp_path: Path, clock: float, interval: int
) -> None:
    # Derpanieux/SHA-2-Accel-Vitis-HLS: 64 rounds at II=2, 10 ns, on a part of grade -2.
    found = loop(tmp_path, SHA, "rounds", clock=clock, part="xa7s6-cpga196-2I", tool="vitis")
    assert found.ii == interval
    assert interval == 1 or "each iteration waits for" in found.why


@pytest.mark.parametrize(
    ("part", "fast"),
    [
        ("xc7z020clg400-1", False),
        ("xc7z020-clg484-1", False),
        ("xa7z010-clg400-1I", False),
        ("xc7z010clg400-2", True),
        ("xa7s6-cpga196-2I", True),
        ("xc7a35ticsg324-1L", False),
        ("xc7k325t-ffg900-2", True),
        ("xc7vx690tffg1761-3", True),
        ("xa7a50t-csg325-2LI", True),
    ],
)
def test_a_speed_grade_is_read_with_its_letters(part: str, fast: bool) -> None:
    slow = target_of(10.0, part.split("-")[0] + "-1", "vitis").speed
    assert target_of(10.0, part, "vitis").speed == pytest.approx(slow * (0.8 if fast else 1.0))


def test_elements_of_other_columns_are_apart(tmp_path: Path) -> None:
    text = """
void k(float a[16][16], int row, const float x[16]) {
    rows: for (int i = 0; i < 16; ++i) {
#pragma HLS PIPELINE II=1
        float m = x[i];
        a[i][2] = m * a[row][1];
        a[i][3] = m * a[row][COLUMN];
    }
}
"""
    apart = loop(tmp_path, text.replace("COLUMN", "4"), "rows")
    met = loop(tmp_path, text.replace("COLUMN", "2"), "rows")
    # Row `row` may be row i: then the second product waits for the first one.
    assert apart.iteration_latency < met.iteration_latency


def test_a_loop_with_a_trip_count_is_entered(tmp_path: Path) -> None:
    text = """
static int sum(const int *x, int n) {
    int s = 0;
    add: for (int i = 0; i < n; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=100 max=100
        s += x[i];
    }
    return s;
}
int k(const int a[256], const int b[256], int n) {
    return sum(b, sum(a, n));
}
"""
    source = tmp_path / "k.cpp"
    source.write_text(text)
    least, most = hls.estimate(source, "k", tool="vitis").latency
    assert least is not None and most is not None and least == most > 200
    source.write_text(text.replace("min=100", "min=50"))
    least, most = hls.estimate(source, "k", tool="vitis").latency
    assert least is not None and most is not None and 100 < least < most


def test_offsets_of_registers_are_looked_at_outside_of_synthesis(tmp_path: Path) -> None:
    text = """
#include <ap_int.h>
void k(const ap_int<7> a[8], int n, int &sum) {
#pragma HLS INTERFACE s_axilite port=n offset=0x20
#pragma HLS INTERFACE s_axilite port=sum offset=OFFSET
#pragma HLS INTERFACE s_axilite port=return
    sum = n;
    for (int i = 0; i < 8; ++i) sum += a[i];
}
"""
    source = tmp_path / "k.cpp"
    source.write_text(text.replace("OFFSET", "0x30"))
    assert not hls.estimate(source, "k").warnings
    source.write_text(text.replace("OFFSET", "0x20"))
    assert "offset" in " ".join(hls.estimate(source, "k").warnings)


IN_PLACE = """
void k(float *a, const float *b) {
#pragma HLS INTERFACE m_axi port=a bundle=one
#pragma HLS INTERFACE m_axi port=b bundle=two
    loop: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE II=1
        BODY
    }
}
"""


@pytest.mark.parametrize(
    ("body", "waits"),
    [
        ("a[i] *= 2;", True),
        ("a[i + 64] = a[i];", True),
        ("#pragma HLS DEPENDENCE variable=a inter false\n a[i] *= 2;", False),
        ("a[i] = b[i] * 2;", False),
    ],
)
def test_a_port_answers_a_write_before_it_is_read_again(
    tmp_path: Path, body: str, waits: bool
) -> None:
    # BrunoMor99/Taffo-VitisHLS: `C[i * n + j] *= beta` at II=15, one less than its depth.
    found = loop(tmp_path, IN_PLACE.replace("BODY", body), "loop")
    assert found.ii is not None and found.iteration_latency[1] is not None
    if waits:
        assert found.iteration_latency[1] - 1 <= found.ii <= found.iteration_latency[1]
        assert (
            "a read of m_axi waits until the write of the iteration before is answered" in found.why
        )
    else:
        assert found.ii == 1


def test_a_port_answers_so_many_iterations_later(tmp_path: Path) -> None:
    far = "#pragma HLS DEPENDENCE variable=a inter true distance=8\n a[i + 8] = a[i] * 2;"
    near = loop(tmp_path, IN_PLACE.replace("BODY", "a[i + 8] = a[i] * 2;"), "loop").ii
    assert near is not None
    assert loop(tmp_path, IN_PLACE.replace("BODY", far), "loop").ii == -(-near // 8)


def test_a_flattened_nest_hands_no_element_on_in_vivado_hls(tmp_path: Path) -> None:
    # chl218/DCNN-on-FPGA: II=54 for 36 elements that are read and written twice.
    text = """
void k(int out[16][16], const int in[6][6], int w) {
    int t[16][16];
    for (int i = 0; i < 256; ++i) t[i / 16][i % 16] = 0;
    OUTER
    cells: for (int j = 0; j < 6; ++j) {
#pragma HLS PIPELINE II=1
        t[ROW][2 * j] += in[ROW][j] * w;
        t[ROW][2 * j + 1] += in[ROW][j] * w;
        t[ROW][2 * j + 2] += in[ROW][j] * w;
        t[ROW][2 * j + 3] += in[ROW][j] * w;
    }
    for (int i = 0; i < 256; ++i) out[i / 16][i % 16] = t[i / 16][i % 16];
}
"""
    nest = text.replace("OUTER", "rows: for (int i = 0; i < 6; ++i)").replace("ROW", "i")
    line = text.replace("OUTER", "").replace("ROW", "3")
    of_line, of_nest = (
        loop(tmp_path, one, name, tool="vivado").ii
        for one, name in ((line, "cells"), (nest, "rows_cells"))
    )
    assert (of_line, of_nest) == (3, 4)
    # nrakhlin/ece6775Final: an AES key schedule whose inner loops are unrolled for the pipeline.
    body = line[
        line.index("        t[3]") : line.index("    }\n    for (int i = 0; i < 256; ++i) out")
    ]
    inner = "        for (int x = 0; x < 4; ++x) t[3][2 * j + x] += in[3][j] * w;\n"
    assert loop(tmp_path, line.replace(body, inner), "cells", tool="vivado").ii == 4
