"""What happens when kernels misbehave, caches are strict, or somebody presses Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import pynq_torch
from pynq_torch import buffers
from pynq_torch.errors import CmaExhausted, KernelFault, KernelTimeout
from pynq_torch.kernels import split_gemm
from pynq_torch.waits import wait_async

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def board() -> Iterator[Any]:
    board = pynq_torch.use_board("csim", strict_cache=True)
    yield board
    board.close()


def _int8(*shape: int) -> torch.Tensor:
    return torch.randint(-128, 128, shape, dtype=torch.int8)


def test_drivers_keep_a_strict_cache_coherent(board: Any) -> None:
    overlay = pynq_torch.load("gemm_dual")
    a, b = _int8(30, 20), _int8(20, 10)
    expected = a.int() @ b.int()
    for unit in overlay.kernels.values():
        assert torch.equal(unit(a, b), expected)
    out = buffers.empty_tensor((30, 16), torch.int32)
    for round_ in range(5):
        out.fill_(round_)
        split_gemm(list(overlay.kernels.values()), a, b, out=out[:, 2:12])
        assert torch.equal(out[:, 2:12], expected)
        assert bool((out[:, :2] == round_).all() and (out[:, 12:] == round_).all())
    overlay = pynq_torch.load("stream")
    x = torch.randn(100)
    for gain in (1.0, 2.0, 3.0):
        assert torch.equal(overlay.scale_stream(x, gain), gain * x)


def test_a_kernel_that_leaves_its_buffers(board: Any) -> None:
    overlay = pynq_torch.load("vadd")
    a = buffers.to_buffer(torch.ones(16))
    wild = buffers.empty(16)
    with pytest.raises(KernelFault, match="vadd_0"):
        overlay.vadd.start(a=a, b=a, c=wild, n=1 << 24).wait(timeout_s=20)
    assert overlay.vadd(torch.ones(3), torch.ones(3)).tolist() == [2.0] * 3


def test_ctrl_c_in_a_kernels_wait(board: Any) -> None:
    overlay = pynq_torch.load("stream")
    kernel, dma = overlay.scale_stream, overlay.axi_dma_0
    run = kernel.start(gain=2.0, offset=0.0)
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run.wait(timeout_s=20)
    timer.join()
    target = buffers.empty(4)
    pynq_torch.transfer(dma, send=buffers.to_buffer(torch.ones(4)), recv=target)
    run.wait(timeout_s=5)
    assert target.tolist() == [2.0] * 4


def test_huge_tensors_name_the_numbers(board: Any) -> None:
    vadd = pynq_torch.load("vadd").vadd
    huge = torch.zeros(1).expand(1 << 30)
    with pytest.raises(CmaExhausted, match="4294967296 bytes"):
        vadd(huge, huge)
    assert vadd(torch.ones(2), torch.ones(2)).tolist() == [2.0, 2.0]


def test_a_kernel_awaited_by_interrupt_or_polling() -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    board = pynq_torch.use_board("csim")
    try:
        for name in ("vadd", "stream"):
            overlay = pynq_torch.load(name)
            kernel = next(iter(overlay.kernels.values()))
            if name == "vadd":
                a, c = buffers.to_buffer(torch.ones(8)), buffers.empty(8)
                for _ in range(3):
                    kernel.start(a=a, b=a, c=c, n=8)
                    loop.run_until_complete(wait_async(kernel, timeout_s=5))
                    assert c.tolist() == [2.0] * 8
            else:
                kernel.start(gain=1.0, offset=0.0)
                with pytest.raises(KernelTimeout, match="has not finished within"):
                    loop.run_until_complete(wait_async(kernel, timeout_s=0.3))
    finally:
        board.close()
        loop.close()
        asyncio.set_event_loop(None)


def test_an_interrupt_object() -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    board = pynq_torch.use_board("csim")
    try:
        overlay = pynq_torch.load("vadd")
        kernel = overlay.vadd
        if getattr(kernel, "interrupt", None) is None:
            pytest.skip("the overlay connects no interrupt")
        with pytest.raises(KernelTimeout, match=r"no interrupt in 0\.2 s"):
            pynq_torch.wait(kernel.interrupt, timeout_s=0.2)
        kernel.write(0x08, 1)
        kernel.write(0x04, 1)
        a, c = buffers.to_buffer(torch.ones(8)), buffers.empty(8)
        run = kernel.start(a=a, b=a, c=c, n=8)
        pynq_torch.wait(kernel.interrupt, timeout_s=20)
        run.wait(timeout_s=20)
        assert c.tolist() == [2.0] * 8

        async def inside() -> None:
            pynq_torch.wait(kernel.interrupt, timeout_s=1)

        with pytest.raises(RuntimeError, match="running event loop"):
            loop.run_until_complete(inside())
    finally:
        board.close()
        loop.close()
        asyncio.set_event_loop(None)


def test_diagnoses_are_values_too(board: Any) -> None:
    overlay = pynq_torch.load("stream")
    with pytest.raises(TimeoutError) as caught:
        pynq_torch.transfer(overlay.axi_dma_0, recv=buffers.empty(4), timeout_s=0.1)
    diagnosis = caught.value.diagnosis  # type: ignore[attr-defined]
    assert diagnosis.cause == "IP never started"
    assert json.dumps(diagnosis.remedy)
