"""BIND_OP that binds nothing, or what cannot be built so, is a finding of ``hls lint``."""

from __future__ import annotations

from pathlib import Path

import pytest

from pynq_torch.cli import main

KERNEL = """#include <ap_int.h>
#include <hls_half.h>
#define TWICE(x) ((x) * 2)
static int times(int a, int b) { return a * b; }
static void fill(int a, int &b) { b = a * 7; }
void k(const int a[64], const float b[64], int c[64], float d[64]) {
    each: for (int i = 0; i < 64; ++i) {
#pragma HLS BIND_OP PRAGMA
        int p = a[i] * a[63 - i];
        ap_int<40> wide = p;
        wide *= 3;
        int called = times(p, 3), grown = TWICE(p);
        float f = b[i] * 1.5f;
        f += 2;
        int braced{a[i] * 5}, filled, count = 0;
        fill(a[i], filled);
        if (p > 3) count++;
        c[i] = p + called + grown + wide.to_int() + braced + filled + count;
        d[i] = f - 1;
    }
}
"""


@pytest.mark.parametrize(
    ("pragma", "said"),
    [
        ("variable=p op=mul impl=fabric", ""),
        ("variable=wide op=mul impl=dsp latency=2", ""),
        ("variable=called op=mul impl=dsp", ""),
        ("variable=grown op=mul impl=fabric", ""),
        ("variable=f op=fadd impl=fulldsp", ""),
        ("variable=f op=fmul impl=maxdsp", ""),
        ("variable=c op=add impl=dsp", ""),
        ("variable=d op=fsub impl=fabric", ""),
        ("variable=i op=mul impl=fabric", "has no effect: i gets its value from no product"),
        ("variable=f op=fdiv impl=fabric", "has no effect: f gets its value from no quotient"),
        ("variable=braced op=mul impl=fabric", ""),
        ("variable=filled op=mul impl=fabric", ""),
        ("variable=count op=add impl=dsp", ""),
        ("variable=braced op=add impl=dsp", "has no effect: braced gets its value from no sum"),
        ("variable=p op=fmul impl=fulldsp", "has OP=fmul, but p is of type int; write op=mul"),
        ("variable=f op=mul impl=dsp", "has OP=mul, but f is of type float; write op=fmul"),
        ("variable=p op=mul impl=maxdsp", "has IMPL=maxdsp, which integers have not"),
        ("variable=p op=mul latency=99", "has LATENCY=99; expected at most 4 for integers"),
    ],
)
def test_what_bind_op_binds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pragma: str, said: str
) -> None:
    (tmp_path / "k.cpp").write_text(KERNEL.replace("PRAGMA", pragma))
    status = main(["hls", "lint", str(tmp_path / "k.cpp"), "--top", "k"])
    found = [line for line in capsys.readouterr().out.splitlines() if "BIND_OP" in line]
    assert (status, len(found)) == ((1, 1) if said else (0, 0)), found
    assert said in "".join(found)
    assert not said or "k.cpp:8" in found[0]
