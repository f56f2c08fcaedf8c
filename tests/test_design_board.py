"""The committed overlays on the virtual board, driven by upstream pynq alone."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pynq_torch
from pynq_torch.paths import ROOT

BITSTREAMS = ROOT / "bitstreams"


@pytest.fixture(scope="module")
def board() -> Iterator[Any]:
    board = pynq_torch.use_board("csim")
    yield board
    board.close()


def overlay(name: str) -> Any:
    import pynq

    return pynq.Overlay(str(BITSTREAMS / name / f"{name}.bit"))


def start(ip: Any, **values: Any) -> None:
    """Write arguments by the handoff's register names, and start."""
    registers = ip.register_map
    for name, value in values.items():
        if hasattr(value, "physical_address"):
            setattr(registers, f"{name}_1", value.physical_address)
            setattr(registers, f"{name}_2", 0)
        elif isinstance(value, float):
            setattr(registers, name, struct.unpack("<I", struct.pack("<f", value))[0])
        else:
            setattr(registers, name, value)
    registers.CTRL.AP_START = 1


def wait(ip: Any) -> None:
    deadline = time.monotonic() + 60
    while not ip.register_map.CTRL.AP_IDLE:
        assert time.monotonic() < deadline
        time.sleep(0.0005)


def product(ip: Any, m: int, n: int, k: int, seed: int) -> tuple[Any, Any]:
    """Start a product of random matrices; return the buffer of c and what it must become."""
    import pynq

    random = np.random.default_rng(seed)
    a, b = pynq.allocate((m, k), np.int8), pynq.allocate((k, n), np.int8)
    c = pynq.allocate((m, n), np.int32)
    a[:] = random.integers(-128, 128, a.shape)
    b[:] = random.integers(-128, 128, b.shape)
    expected = a.astype(np.int32) @ b.astype(np.int32)
    start(ip, a=a, b=b, c=c, m=m, n=n, k=k, lda=k, ldb=n, ldc=n)
    # The kernel reads a and b until it is done: they must outlive the caller's wait.
    return c, (expected, a, b)


def test_vadd(board: Any) -> None:
    import pynq

    vadd = overlay("vadd").vadd_0
    a, b, c = (pynq.allocate(3001, np.float32) for _ in range(3))
    a[:] = np.random.default_rng(1).normal(size=a.shape)
    b[:] = np.random.default_rng(2).normal(size=b.shape)
    start(vadd, a=a, b=b, c=c, n=3000)
    wait(vadd)
    assert np.array_equal(c[:3000], a[:3000] + b[:3000])
    assert c[3000] == 0


def test_stream_through_the_dma(board: Any) -> None:
    import pynq

    design = overlay("stream")
    assert isinstance(design.axi_dma_0, pynq.lib.DMA)
    assert design.axi_dma_0.buffer_max_size == 2**23 - 1
    sent, received = pynq.allocate(5000, np.float32), pynq.allocate(5000, np.float32)
    sent[:] = np.random.default_rng(3).normal(size=sent.shape)
    start(design.scale_stream_0, gain=1.7, offset=-0.4)
    design.axi_dma_0.recvchannel.transfer(received)
    design.axi_dma_0.sendchannel.transfer(sent)
    design.axi_dma_0.sendchannel.wait()
    design.axi_dma_0.recvchannel.wait()
    wait(design.scale_stream_0)
    assert np.array_equal(received, np.float32(1.7) * sent + np.float32(-0.4))
    assert int(design.scale_stream_0.register_map.ap_return) == 5000


def test_gemm(board: Any) -> None:
    gemm = overlay("gemm").gemm_0
    c, (expected, *_) = product(gemm, 70, 300, 90, seed=4)
    wait(gemm)
    assert np.array_equal(c, expected)


def test_two_units_at_once(board: Any) -> None:
    design = overlay("gemm_dual")
    runs = [product(design.gemm_0, 300, 40, 130, 5), product(design.gemm_lut_0, 33, 150, 200, 6)]
    wait(design.gemm_0)
    wait(design.gemm_lut_0)
    for c, (expected, *_) in runs:
        assert np.array_equal(c, expected)


def test_clock(board: Any) -> None:
    import pynq

    overlay("gemm")
    assert pytest.approx(100.0) == pynq.Clocks.fclk0_mhz
