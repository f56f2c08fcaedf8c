"""The kernels of fixed shape: registers as published overlays have them, exact products."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pynq
import pytest

import pynq_torch
from pynq_torch.descriptions import read_kernel_description
from pynq_torch.paths import ROOT
from pynq_torch.timing import model_cycles

pytestmark = pytest.mark.timeout(240)

KERNELS = ROOT / "hw" / "kernels"
UNITS = {
    "matrix_mult": {"matrix_mult_0": "matrix_mult"},
    "matrix_mult_dual": {
        "matrix_mult_0": "matrix_mult",
        "matrix_mult_fabric_0": "matrix_mult_fabric",
    },
}
#: As in the handoffs of the overlays published for the PYNQ-Z2 (Vitis HLS, 64-bit pointers).
REGISTERS = {
    "CTRL": 0x00, "GIER": 0x04, "IP_IER": 0x08, "IP_ISR": 0x0C,
    "in1_1": 0x10, "in1_2": 0x14, "in2_1": 0x1C, "in2_2": 0x20, "out_r_1": 0x28, "out_r_2": 0x2C,
}  # fmt: skip


def _run(unit: Any, in1: Any, in2: Any) -> np.ndarray[Any, Any]:
    """Multiply with nothing but upstream pynq: buffers, registers, polling."""
    left, right = pynq.allocate((256, 256), "i4"), pynq.allocate((256, 256), "i4")
    out = pynq.allocate((256, 256), "i4")
    left[:], right[:], out[:] = in1, in2, -1
    for buffer in (left, right, out):
        buffer.flush()
    for name, buffer in (("in1", left), ("in2", right), ("out_r", out)):
        setattr(unit.register_map, f"{name}_1", buffer.physical_address)
        setattr(unit.register_map, f"{name}_2", 0)
    unit.register_map.CTRL.AP_START = 1
    pynq_torch.wait(unit, timeout_s=20)
    out.invalidate()
    return np.array(out)


@pytest.mark.parametrize("name", UNITS)
def test_overlay_as_programs_for_published_ones_expect_it(name: str) -> None:
    board = pynq_torch.use_board("csim")
    overlay = pynq.Overlay(str(pynq_torch.overlay.find_overlay(name)))
    assert {cu: entry["type"] for cu, entry in overlay.ip_dict.items() if cu in UNITS[name]} == {
        cu: f"xilinx.com:hls:{kernel}:1.0" for cu, kernel in UNITS[name].items()
    }
    for index, cu in enumerate(UNITS[name]):
        entry = overlay.ip_dict[cu]
        assert {n: r["address_offset"] for n, r in entry["registers"].items()} == REGISTERS
        assert entry["phys_addr"] == 0x4000_0000 + 0x1_0000 * index
        rng = np.random.default_rng(index)
        in1, in2 = rng.integers(-128, 128, (2, 256, 256), dtype=np.int32)
        assert np.array_equal(_run(getattr(overlay, cu), in1, in2), in1 @ in2)
    board.close()


def test_only_the_low_byte_of_a_container_counts() -> None:
    board = pynq_torch.use_board("csim")
    overlay = pynq.Overlay(str(pynq_torch.overlay.find_overlay("matrix_mult_dual")))
    rng = np.random.default_rng(0)
    in1, in2 = rng.integers(-(2**31), 2**31, (2, 256, 256)).astype(np.int32)
    expected = in1.astype(np.int8).astype(np.int32) @ in2.astype(np.int8).astype(np.int32)
    for cu in UNITS["matrix_mult_dual"]:
        assert np.array_equal(_run(getattr(overlay, cu), in1, in2), expected)
    board.close()


def test_modelled_cycles_are_what_the_arithmetic_gives() -> None:
    # in2 row by row, then rows of in1, each behind 50 cycles of latency; the last row's product
    # and its store come on top.
    tile = 256 * (256 + 50 + 1) + 256 * (256 + 50) + 2 * 256 + 60
    assert model_cycles("matrix_mult", m=256, n=256, k=256) == tile
    assert model_cycles("matrix_mult", m=1, n=1, k=1) == tile
    assert model_cycles("matrix_mult", m=257, n=256, k=1024) == 2 * 4 * tile
    slow = model_cycles("matrix_mult_fabric", m=256, n=256, k=256)
    assert slow is not None
    assert slow > 2 * tile
    for name, cycles in (("matrix_mult", tile), ("matrix_mult_fabric", slow)):
        macs = read_kernel_description(KERNELS / name).macs_per_cycle
        assert cycles >= 256**3 / macs  # no model may promise more than the array can do


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("sums[w] += low", "sums[w] = low"),
        ("(products - low) >> 16", "products >> 16"),
        ("static_cast<int8_t>(matrix[", "static_cast<int8_t>(matrix[1 ^ "),
    ],
)
def test_the_testbench_fails_on_a_wrong_kernel(tmp_path: Path, right: str, wrong: str) -> None:
    folder = KERNELS / "matrix_mult"
    found = 0
    for path in folder.glob("*.[ch]pp"):
        text = path.read_text()
        found += text.count(right)
        (tmp_path / path.name).write_text(text.replace(right, wrong))
    assert found == 1
    command = ["g++", "-std=c++17", "-w", "-O2", tmp_path / "matrix_mult.cpp",
               tmp_path / "matrix_mult_tb.cpp", "-o", tmp_path / "tb"]  # fmt: skip
    subprocess.run(command, check=True, timeout=60)
    done = subprocess.run([tmp_path / "tb"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "first wrong element" in done.stdout
