"""What C++ fills with zeros and what it leaves open, in answers with ``ap_int``."""

from __future__ import annotations

import re

import pytest

from pynq_torch.hls import toolchain
from pynq_torch.hls.ap_zeros import write_zeroing_headers
from pynq_torch.lessons.hls_lab import Target, check

KERNEL = """
#include <ap_fixed.h>
#include <ap_int.h>
const int N = 16;
struct Line { ap_fixed<20, 10> sum; ap_uint<1> bits[2]; };
void f(const int x[N], int y[N]) {
    VALUES
    for (int i = 0; i < N; i++) y[i] = 2 * x[i] + d[i & 3].to_int();
}
"""
BENCH = """
int main() {
    int x[N], y[N];
    for (int i = 0; i < N; i++) x[i] = i * i;
    f(x, y);
    for (int i = 0; i < N; i++)
        if (y[i] != 2 * x[i]) return 1;
    return 0;
}
"""


@pytest.mark.parametrize("values", [
    "ap_int<20> d[4] = {};",
    "ap_uint<200> d[4] = {0}; Line line = {}; d[1] = line.sum + line.bits[0] + line.bits[1];",
])  # fmt: skip
def test_braces_are_zeros(values):
    assert check(KERNEL.replace("VALUES", values), "f", Target(), BENCH).passed


@pytest.mark.parametrize("values", [
    "ap_int<20> d[4] = {}, e[4]; for (int i = 0; i < 4; i++) d[i] = e[i];",
    "ap_fixed<30, 20> d[4];",
])  # fmt: skip
def test_a_variable_without_a_value_is_not(values):
    found = check(KERNEL.replace("VALUES", values), "f", Target(), BENCH)
    assert "read before anything is written to it" in str(found)


def test_every_default_constructor_is_found(tmp_path):
    own = toolchain.ap_types_dir()
    if not re.search(r"ap_int\(\) : Base\(\) \{\}", (own / "ap_int.h").read_text()):
        pytest.skip("these headers are Vitis'")
    assert write_zeroing_headers(tmp_path)
    made = "".join(path.read_text() for path in tmp_path.rglob("*.h"))
    named = re.findall(r"(\w+)\(\) = default;", made)
    assert set(named) >= {
        "ap_int", "ap_uint", "ap_fixed", "ap_ufixed", "ap_int_base", "ap_fixed_base",
        "ssdm_int_sim",
    }  # fmt: skip
    assert named.count("ap_private") == 2  # up to 64 bits, and of more
