"""Delays of the RTL that ships, block by block: half of a cycle is left to the wires."""

from __future__ import annotations

from pathlib import Path

import pytest
from rtl_bench import KERNELS, SHARED

from pynq_torch.errors import RtlError
from pynq_torch.models.rtl_timing import longest_path_ns

#: The wheel of yosys compiles itself when it runs for the first time.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

LIBRARY = {p.stem: p for p in (*SHARED.glob("*.sv"), *KERNELS.glob("gemm/rtl/*.sv"))}
#: A path of 10 ns has as much left for its wires as for its cells.
_MOST_NS = 5.0
#: The array's rows are alike; a few of them have every path.
BLOCKS: dict[str, dict[str, int]] = {
    "gemm_add": {},
    "gemm_array": {"ROWS": 4, "COLS": 8, "DSP_ROWS": 3},
    "gemm_scale": {},
    "gemm_lane": {},
    "gemm_sums": {},
    "gemm_jobs": {},
    "gemm_load": {},
    "axi_read": {"DATA_WIDTH": 64},
    "f32_add": {},
    "f32_mul": {},
}


@pytest.mark.parametrize("block", BLOCKS)
def test_half_of_a_cycle_is_left_to_the_wires(block: str) -> None:
    found = longest_path_ns(LIBRARY[block], LIBRARY, BLOCKS[block])
    assert 0 < found <= _MOST_NS, f"{block}: {found} ns"


def test_a_longer_path_is_seen(tmp_path: Path) -> None:
    """The delay grows with the carry chain; a module that cannot be read is an error."""
    source = tmp_path / "adder.sv"
    text = (
        "module adder #(parameter int unsigned WIDTH = 8) (input wire logic clk,\n"
        "  input wire logic [WIDTH-1:0] a, b, output logic [WIDTH-1:0] sum);\n"
        "  always_ff @(posedge clk) sum <= a + b;\nendmodule\n"
    )
    source.write_text(text)
    short, long = (longest_path_ns(source, {}, {"WIDTH": width}) for width in (8, 64))
    assert 0.5 < short < long - 1
    source.write_text(text.replace("a + b", "a + missing"))
    with pytest.raises(RtlError, match=r"(?s)adder: yosys cannot time it.*missing"):
        longest_path_ns(source, {})
