"""Host time of torch's device "pynq": small fallbacks, and products with kernels that take none."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from bench_matrix_mult import NullKernel

import pynq_torch


def overhead_us(operator: Callable[..., Any], count: int = 2, calls: int = 2000) -> float:
    """Return the microseconds that an operator on 8x8 floats takes beyond the CPU's own.

    Parameters
    ----------
    operator : callable
        Called with `count` tensors.
    count : int
        How many.
    calls : int
        Calls a measurement; the two devices take turns, seven times.
    """
    on_cpu = [torch.randn(8, 8) for _ in range(count)]
    on_pynq = [t.pynq() for t in on_cpu]
    differences = []
    for _ in range(7):
        times = []
        for tensors in (on_cpu, on_pynq):
            operator(*tensors)
            begin = time.perf_counter()
            for _ in range(calls):
                operator(*tensors)
            times.append((time.perf_counter() - begin) / calls)
        differences.append(times[1] - times[0])
    return median(differences) * 1e6


#: The operators of the fallback figure.
FALLBACKS: dict[str, tuple[Callable[..., Any], int]] = {
    "x + y": (lambda x, y: x + y, 2),
    "x.add_(y)": (lambda x, y: x.add_(y), 2),
    "x.relu()": (lambda x: x.relu(), 1),
    "x @ y": (lambda x, y: x @ y, 2),
    "x.sum()": (lambda x: x.sum(), 1),
    "x.exp()": (lambda x: x.exp(), 1),
}


def null_overlay(name: str) -> Any:
    """Load an overlay and put kernels that are done at once in place of its own."""
    board: Any = pynq_torch.use_board("csim")
    overlay = pynq_torch.load(name)
    for cu in overlay.kernels:
        region = board.bus.find(overlay.kernels[cu].mmio.base_addr)
        null = NullKernel(board, region.model.ip)
        board.bus.attach(region.base, region.nbytes, null, region.slave, region.name)
    return overlay


def product_ms(overlay: str, size: int = 1024, repeat: int = 15) -> float:
    """Return the milliseconds of host time of ``torch._int_mm`` on device "pynq"."""
    null_overlay(overlay)
    a, b = (torch.randint(-128, 128, (size, size), dtype=torch.int8).pynq() for _ in range(2))
    return median(_times(lambda: torch._int_mm(a, b), repeat)) * 1e3


def linear_us(size: int = 512, repeat: int = 300) -> float:
    """Return the microseconds of host time of a quantised linear layer, batch 1, weights packed."""
    null_overlay("gemm")
    layer = pynq_torch.nn.Linear.from_float(torch.nn.Linear(size, size)).to("pynq")
    x = torch.randn(1, size).pynq()
    # A new input each time: one that was seen before is not quantised again.
    with torch.no_grad():
        return median(_times(lambda: layer(x), repeat, before=lambda: x.add_(0.001))) * 1e6


def _times(
    run: Callable[[], Any], repeat: int, before: Callable[[], Any] | None = None
) -> list[float]:
    times = []
    for _ in range(repeat + 3):
        if before is not None:
            before()
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return times[3:]
