"""Board rtl: simulated cycles a second, beside cocotb's; the build of the gemm; cycles of the gemm
and of whole networks, which ``python tests/bench_rtl.py networks`` counts alone."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BEATS = 1_000_000  # of a packet
PACKETS = 5
COCOTB_CYCLES = 100_000
#: Network -> cycles of an image that it should take at most.
NETWORKS = {
    "resnet8": 45_000,
    "resnet20": 120_000,
    "ds_cnn": 35_000,
    "mobilenet_v1": 80_000,
    "autoencoder": 25_000,
}


@dataclass(frozen=True)
class Result:
    """A figure with its target; ``kind`` is measured (wall clock of this PC) or cycles (RTL)."""

    what: str
    value: float
    unit: str
    target: float
    conditions: str
    least: bool = False
    kind: str = "measured"


def stream_speed() -> float:
    """Return simulated cycles a second of scale_stream behind an unmodified pynq.lib.DMA."""
    import numpy as np
    from pynq import Overlay, allocate

    import pynq_torch

    board = pynq_torch.use_board("rtl")
    overlay = Overlay(str(ROOT / "bitstreams" / "stream" / "stream.bit"))
    unit, dma = overlay.scale_stream_0, overlay.axi_dma_0
    x, y = allocate(BEATS, "f4"), allocate(BEATS, "f4")
    x[:] = np.random.default_rng(0).normal(size=BEATS)
    unit.write(0x18, int(np.float32(1.5).view("u4")))
    unit.write(0x20, int(np.float32(0.25).view("u4")))

    def run() -> None:
        unit.write(0x00, 1)
        dma.recvchannel.transfer(y)
        dma.sendchannel.transfer(x)
        dma.sendchannel.wait()
        dma.recvchannel.wait()

    speeds = _speeds(board, run, PACKETS)
    assert np.array_equal(np.array(y), np.float32(1.5) * np.array(x) + np.float32(0.25))
    board.close()
    return median(speeds)


def _speeds(board: Any, run: Callable[[], object], repeat: int) -> list[float]:
    run()
    speeds = []
    for _ in range(repeat):
        before, begin = board.pl.cycle, time.perf_counter()
        run()
        speeds.append((board.pl.cycle - before) / (time.perf_counter() - begin))
    return speeds


def cocotb_speed() -> float:
    """Return simulated cycles a second of the cocotb bench on the same design, without a stall."""
    from rtl_cocotb import run  # tests/rtl_cocotb.py

    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "run.log"
        environment = {"CYCLES": str(COCOTB_CYCLES), "COCOTB_TEST_FILTER": "how_fast"}
        run("scale_stream", Path(folder), environment=environment, log=log)
        said = re.search(r"cocotb: (\d+) cycles/s", log.read_text())
    if said is None:
        raise RuntimeError("the cocotb bench printed no speed")
    return float(said[1])


def gemm_figures() -> list[Result]:
    """Cycles and speed of products, memory as on the PYNQ-Z2."""
    import torch

    import pynq_torch
    from pynq_torch import buffers
    from pynq_torch.torch_device.exact import int_mm

    board = pynq_torch.use_board("rtl", memory="pynq-z2")
    overlay = pynq_torch.load("gemm")
    torch.manual_seed(0)

    def product(size: int, **options: Any) -> int:
        a, b = (buffers.empty_tensor((size, size), torch.int8).random_(-128, 128) for _ in "ab")
        c = overlay.gemm(a, b, timeout_s=300, **options)
        if not options:
            assert torch.equal(c, int_mm(a, b))
        return int(board.cus["gemm_0"].last_run.cycles)

    int32 = product(256)
    int8 = product(256, scale=torch.full((256,), 1e-3), dtype=torch.int8)
    before, begin = board.pl.cycle, time.perf_counter()
    large = product(1024)
    speed = (board.pl.cycle - before) / (time.perf_counter() - begin)
    board.close()
    rate = 1024**3 / large
    memory = "memory pynq-z2, 100 MHz"
    return [
        Result("gemm 256^3, int32 out", int32, "cycles", 46_000, memory, kind="cycles"),
        Result("gemm 256^3, int8 out", int8, "cycles", 44_000, memory, kind="cycles"),
        Result("gemm 1024^3", rate, "MAC/cycle", 400, memory, least=True, kind="cycles"),
        Result("gemm 1024^3, share of 512", 100 * rate / 512, "%", 93, memory, True, "cycles"),
        Result("gemm on board rtl", speed / 1e3, "k cycles/s", 400, "1024^3, wall clock", True),
    ]


def network_figures() -> list[Result]:
    """Cycles of one image, memory as on the PYNQ-Z2, the sum over a network's instructions."""
    import torch

    import pynq_torch
    from pynq_torch.lessons import networks

    board = pynq_torch.use_board("rtl", memory="pynq-z2")
    figures = []
    for name, target in NETWORKS.items():
        torch.manual_seed(0)
        x = torch.randn(1, *networks.SHAPES[name])
        compiled = pynq_torch.compile(networks.NETWORKS[name]().eval(), x, calibrate=[x])
        compiled(x)
        cycles = sum(int(row[-1] or 0) for row in compiled.explain().rows)
        memory = "one image, memory pynq-z2, 100 MHz"
        figures.append(Result(name, cycles, "cycles", target, memory, kind="cycles"))
    board.close()
    return figures


def build_seconds() -> float:
    """Return the seconds of a Verilator build of the gemm from an empty cache."""
    from pynq_torch.board.rtl.build import build_model
    from pynq_torch.board.rtl.sources import find_rtl

    before = os.environ.get("PYNQ_TORCH_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYNQ_TORCH_CACHE"] = folder
        try:
            source = find_rtl([ROOT / "hw" / "kernels"], "gemm", None)
            assert source is not None
            begin = time.perf_counter()
            build_model(source)
            return time.perf_counter() - begin
        finally:
            if before is None:
                del os.environ["PYNQ_TORCH_CACHE"]
            else:
                os.environ["PYNQ_TORCH_CACHE"] = before


def results() -> list[Result]:
    """Return all figures, in the order of the table."""
    stream, cocotb = stream_speed(), cocotb_speed()
    design = f"scale_stream, {BEATS} beats a packet, pynq.lib.DMA, of {PACKETS}"
    return [
        Result("stream on board rtl", stream / 1e6, "M cycles/s", 2, design, True),
        Result(
            "stream, board rtl over cocotb",
            stream / cocotb,
            "x",
            50,
            f"cocotb: {cocotb / 1e3:.1f} k cycles/s of {COCOTB_CYCLES} without a stall",
            True,
        ),
        *gemm_figures(),
        *network_figures(),
        Result("Verilator build of the gemm", build_seconds(), "s", 60, "empty cache"),
    ]


def main() -> None:
    """Print the figures alone."""
    for r in network_figures() if "networks" in sys.argv[1:] else results():
        sign = ">=" if r.least else "<="
        print(
            f"{r.what}: {r.value:.5g} {r.unit} ({r.kind}), target {sign} {r.target:g}, "
            f"ratio {r.value / r.target:.2f}; {r.conditions}"
        )


if __name__ == "__main__":
    main()
