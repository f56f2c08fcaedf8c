"""The gemm in RTL: arrays, bus widths and multipliers that do not ship; cycles of those that do."""

from __future__ import annotations

import re
import subprocess

import pytest
import torch
from rtl_bench import KERNELS, Bench, Model, build

import pynq_torch
from pynq_torch.hls import toolchain
from pynq_torch.models import evidence
from pynq_torch.torch_device.exact import int_mm


def _bench(bus_bytes: int = 8, macros: tuple[str, ...] = (), **parameters: int) -> Bench:
    """Return the bench of a small array: everything that wraps around does so often."""
    small = {"ROWS": 4, "COLS": 8, "DSP_ROWS": 3, "DEPTH": 32, "BLOCK_ROWS": 16, "BLOCK_COLS": 16}
    given = {**small, "QUEUE": 32, "DATA_WIDTH": 8 * bus_bytes, **parameters}
    model = Model("gemm", tuple((name, str(value)) for name, value in given.items()), macros)
    includes = (KERNELS / "gemm", toolchain.include_dirs()[0])
    return Bench("gemm", (model,), ("SMALL", f"BUS_BYTES={bus_bytes}"), includes)


#: `synthesis`: the multipliers of LUTs, which simulators leave to the processor, and no assertions.
BENCHES = {
    "synthesis": _bench(macros=("SYNTHESIS",), DSP_ROWS=1),
    "narrow": _bench(4, DSP_ROWS=4, LANES=2, QUEUE=16),
    "wide": _bench(16, ROWS=8, COLS=16, DSP_ROWS=4, BLOCK_COLS=32),
}


@pytest.mark.slow
@pytest.mark.parametrize("bench", BENCHES)
def test_bench(bench: str) -> None:
    """The HLS kernel's checks hold, whatever the array and the bus."""
    program = build(BENCHES[bench])
    answer = subprocess.run(
        [program], capture_output=True, text=True, check=False, timeout=120, cwd=program.parent
    )
    assert answer.returncode == 0, answer.stdout[-2000:] + answer.stderr
    assert answer.stdout.endswith("PASS\n")


def test_arrays_that_fit_nothing_are_refused() -> None:
    """A parameter out of range ends the simulation with its name and what was expected."""
    program = build(_bench(COLS=8, LANES=4, BLOCK_ROWS=12))
    answer = subprocess.run(
        [program], capture_output=True, text=True, check=False, timeout=60, cwd=program.parent
    )
    said = answer.stdout + answer.stderr
    assert answer.returncode != 0 and re.search(r"BLOCK_ROWS 12|12 x 16", said), said[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["pynq-z2", "ideal"])
def test_cycles(memory: str) -> None:
    """256^3 takes what the array takes, and little more: loads and stores hide behind it."""
    macs = 256**3
    generator = torch.Generator().manual_seed(3)
    a, b = (
        torch.randint(-128, 128, (256, 256), dtype=torch.int8, generator=generator)
        for _ in range(2)
    )
    scale = torch.full((256,), 2.0**-9)
    sums = a.double() @ b.double()
    board = pynq_torch.use_board("rtl", memory=memory)
    try:
        overlay = pynq_torch.load("gemm")
        assert torch.equal(overlay.gemm(a, b).double(), sums)
        int32 = board.cus["gemm_0"].last_run
        scaled = overlay.gemm(a, b, scale=scale, dtype=torch.int8)
        int8 = board.cus["gemm_0"].last_run
    finally:
        board.close()
    assert torch.equal(scaled.double(), (sums * 2.0**-9).round().clamp(-128, 127))
    assert int32.kind.startswith("cycles (RTL") and int8.kind == int32.kind
    assert int32.cycles <= 46_000 and int8.cycles <= 44_000
    for run in (int32, int8):
        assert run.phases["compute"] == macs // 512  # 16 x 32 products in each of these cycles
        assert run.cycles > run.phases["drain"] > 0
        assert run.phases["load"] >= 3 * 128 * 256 // 8  # three panels at 8 bytes a cycle


# A busy PC simulates fewer cycles than the program lets pass between two looks.
@pytest.mark.filterwarnings("ignore:the program waited:pynq_torch.errors.NotModelledWarning")
@pytest.mark.slow
def test_a_large_product_takes_the_cycles_that_are_committed() -> None:
    """1024^3 keeps at least 500 of the 512 multipliers busy, on the memory of the PYNQ-Z2."""
    size = 1024
    generator = torch.Generator().manual_seed(4)
    a, b = (
        torch.randint(-128, 128, (size, size), dtype=torch.int8, generator=generator)
        for _ in range(2)
    )
    board = pynq_torch.use_board("rtl", memory="pynq-z2")
    try:
        product = pynq_torch.load("gemm").gemm(a, b, timeout_s=300.0)
        cycles = board.cus["gemm_0"].last_run.cycles
    finally:
        board.close()
    assert torch.equal(product, int_mm(a, b))
    assert size**3 / cycles >= 500
    committed = evidence.latency("gemm", 1e8, m=size, n=size, k=size)
    assert (committed.kind, round(committed.seconds * 1e8)) == ("cycles", cycles)
