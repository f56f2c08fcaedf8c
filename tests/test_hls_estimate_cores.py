"""``hls estimate``: kernels that call a core of the vendor's, through its header."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from helpers import estimate_of

from pynq_torch.errors import KernelBuildError
from pynq_torch.hls import compile_command, lint
from pynq_torch.hls.estimator import compiler

MISSING = compiler.tools()
pytestmark = [
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(MISSING is not None, reason=MISSING or ""),
]

HEAD = """
#include <hls_fft.h>
struct settings : hls::ip_fft::params_t {
    static const unsigned ordering_opt = hls::ip_fft::natural_order, max_nfft = 6;
};
typedef hls::ip_fft::config_t<settings> config;
typedef hls::ip_fft::status_t<settings> status;
typedef std::complex<ap_fixed<16, 1> > word;
"""
OF_ARRAYS = """
static void before(const short in[64], word x[64], config *c) {
    c->setDir(1);
    c->setSch(0x1b);
    first: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        x[i] = word(in[i], 0);
    }
}
static void behind(word x[64], short out[64], status *s) {
    last: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        out[i] = x[i].real().to_int() + s->getOvflo();
    }
}
void k(const short in[64], short out[64]) {
#pragma HLS DATAFLOW
    word x[64], y[64];
    config c;
    status s;
    before(in, x, &c);
    hls::fft<settings>(x, y, &s, &c);
    behind(y, out, &s);
}
"""
OF_STREAMS = """
void k(const short in[64], short out[64]) {
#pragma HLS DATAFLOW
    hls::stream<word> x, y;
    hls::stream<config> c;
    hls::stream<status> s;
    config told;
    told.setDir(0);
    c.write(told);
    first: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        x.write(word(in[i], 0));
    }
    hls::fft<settings>(x, y, s, c);
    last: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        out[i] = y.read().real().to_int();
    }
    s.read();
}
"""


@pytest.mark.parametrize("body", [OF_ARRAYS, OF_STREAMS], ids=["arrays", "streams"])
@pytest.mark.parametrize("tool", ["vitis", "vivado"])
def test_around_an_fft_all_has_an_estimate_and_the_core_has_none(tmp_path, body, tool):
    """The vendor alone knows the core's latency, and so the kernel's is not known."""
    found = estimate_of(tmp_path, HEAD + body, tool=tool)
    rows = {loop.name: loop for loop in found.loops}
    assert {*rows} == {"first", "fft", "last"}
    assert rows["first"].trip_count == rows["last"].trip_count == (64, 64)
    assert rows["first"].ii == rows["last"].ii == 1
    assert rows["fft"].latency == found.latency == (None, None)
    line = 1 + (HEAD + body).split("\n").index(
        next(row for row in (HEAD + body).split("\n") if "hls::fft<settings>(" in row)
    )
    assert "fft: a core of the vendor's, whose latency and resources are not known" in str(found)
    assert f"(k.cpp:{line})" in str(found)
    assert "LOOP_TRIPCOUNT" not in str(found)


def test_lint_and_the_registers_know_the_header(tmp_path: Path) -> None:
    """They took it for missing; what it cannot do is run."""
    source = tmp_path / "k.cpp"
    source.write_text(HEAD + OF_ARRAYS)
    assert not lint(source, "k")
    command = compile_command(source, tmp_path / "k.so", cflags=["-shared", "-fPIC"])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "the FFT core of hls_fft.h is the vendor's and cannot be simulated" in done.stderr


def test_the_parts_of_a_complex_number_are_written_in_place(tmp_path: Path) -> None:
    """Vivado HLS has references, and so has hls_fft.h; what clang's library has is a copy."""
    text = """
#include <ap_fixed.h>
#include <complex>
typedef std::complex<ap_fixed<16, 1> > word;
void k(const int in[64], word out[64]) {
    a: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        word w;
        w.real() = ap_fixed<16, 1>(0.5) * in[i];
        w.imag().range(15, 0) = in[i] * in[63 - i];
        out[i] = w;
    }
}
"""
    found = estimate_of(tmp_path, text, "vitis")
    assert found.resources["DSP"] > 0
    assert found.loops[0].ii == 1


def test_numbers_of_a_large_array_are_set_in_a_loop(tmp_path: Path) -> None:
    """The look at the loops as they are written made one piece of code of each number."""
    text = """
#include <ap_fixed.h>
#include <complex>
typedef std::complex<ap_fixed<16, 1> > word;
static int part(int x) { int all = 0; h: for (int i = 0; i < 3; ++i) all += x >> i; return all; }
static void turn(const word in[8], word out[8], float f) {
    word kept[2][2][8192];
    a: for (int i = 0; i < 8; ++i) kept[i & 1][part(i) & 1][i * 9] = in[i];
    b: for (int i = 0; i < 8; ++i) out[i] = kept[i & 1][part(i) & 1][int(i * f)];
}
void k(const word in[8], word out[8], float f) { turn(in, out, f); }
"""
    found = estimate_of(tmp_path, text, "vitis")
    assert {"a", "b"} <= {loop.name for loop in found.loops}


@pytest.mark.parametrize(("arch", "products"), [("CmpyThreeMult", 3), ("CmpyFourMult", 4)])
def test_the_complex_multiplier_of_the_dsp_library(tmp_path, arch, products):
    """What the library's CORDIC functions take is not known, and said so."""
    text = f"""
#include <hls_dsp.h>
typedef std::complex<ap_fixed<16, 1> > word;
typedef std::complex<ap_fixed<32, 2> > wide;
void k(const word a[64], const word b[64], wide out[64]) {{
    a: for (int i = 0; i < 64; ++i) {{
#pragma HLS PIPELINE
        hls::cmpy<hls::{arch}>(a[i], b[i], out[i]);
    }}
}}
"""
    assert estimate_of(tmp_path, text, "vivado").resources["DSP"] == products
    assert not lint(tmp_path / "k.cpp", "k")
    with pytest.raises(KernelBuildError, match="a CORDIC of the vendor's"):
        estimate_of(tmp_path, CORDIC, "vivado")


CORDIC = """
#include <hls_dsp.h>
typedef hls::atan2_input<16>::cartesian point;
typedef hls::atan2_output<16>::phase angle;
void k(const point &x, angle &y) {
    hls::atan2<hls::CORDIC_FORMAT_RAD, 16, 16, hls::CORDIC_ROUND_TRUNCATE>(x, y);
}
"""
GIVENS = """
#include <hls_linear_algebra.h>
#include <hls/linear_algebra/utils/x_hls_complex.h>
typedef hls::x_complex<float> number;
void k(const number a[64], number out[64], float f) {
    number kept[64];
    a: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        kept[63 - i] = hls::x_conj(a[i]) * f;
    }
    b: for (int i = 0; i < 64; ++i) {
#pragma HLS PIPELINE
        out[i] = kept[i] * a[i];
        out[i].real() += 1;
    }
}
"""


def test_complex_numbers_of_the_linear_algebra_library(tmp_path: Path) -> None:
    """No loop sets those of an array, as it does with std::complex."""
    for tool in ("vitis", "vivado"):
        found = estimate_of(tmp_path, GIVENS, tool)
        assert [loop.name for loop in found.loops] == ["a", "b"]
    assert not lint(tmp_path / "k.cpp", "k")


def test_functions_of_the_linear_algebra_library_are_said_to_be_unknown(tmp_path: Path) -> None:
    text = """
#include <hls_linear_algebra.h>
struct mine : hls::qrf_traits<4, 4, float, float> { static const int ARCH = 0; };
void k(const float a[4][4], float q[4][4], float r[4][4]) {
    hls::qrf_top<false, 4, 4, float, float, mine>(a, q, r);
}
"""
    with pytest.raises(KernelBuildError, match="qrf of hls_linear_algebra.h is the vendor's"):
        estimate_of(tmp_path, text, "vivado")
