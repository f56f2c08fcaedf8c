"""Host time of one call of each kernel of the library, with a kernel that takes none.

Small operands, so that nothing but the driver's work is seen: checks, registers, start, wait, room
for the result. The target is that of one call, `TARGET_US`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from bench_device import null_overlay

from pynq_torch import buffers, events

#: Microseconds that a call may take on the host.
TARGET_US = 80.0
CONDITIONS = "8x8 or less, null kernel, of 500"

Call = Callable[[], Any]


def _pointwise() -> dict[str, Call]:
    x, y = torch.randn(8, 8).pynq(), torch.randn(8, 8).pynq()
    turned, condition = y.T, x > 0
    return {
        "unary_f32: x.relu()": lambda: x.relu(),
        "binary_f32: x + y": lambda: x + y,
        "binary_f32: x + 2": lambda: x + 2,
        "binary_f32: x + y.T": lambda: x + turned,
        "ternary_f32: where(c, x, y)": lambda: torch.where(condition, x, y),
    }


def _pointwise_int() -> dict[str, Call]:
    i = torch.ones(8, 8, dtype=torch.int32).pynq()
    return {"binary_i32: i + i": lambda: i + i}


def _reductions() -> dict[str, Call]:
    x = torch.randn(8, 8).pynq()
    return {
        "reduce_f32: x.sum(1)": lambda: x.sum(1),
        "softmax_f32: x.softmax(1)": lambda: x.softmax(1),
        "distance_f32: cdist(x, x)": lambda: torch.cdist(x, x),
    }


def _movement() -> dict[str, Call]:
    x, index = torch.randn(8, 8).pynq(), torch.tensor([1, 3, 5]).pynq()
    return {"move_32: x.index_select(0, i)": lambda: x.index_select(0, index)}


def _sparse() -> dict[str, Call]:
    matrix, x = torch.eye(8).to_sparse_csr().pynq(), torch.randn(8, 8).pynq()
    vector = x[0].clone()
    return {"spmm_f32: a @ x": lambda: matrix @ x, "spmv_f32: a @ v": lambda: matrix @ vector}


def _neural() -> dict[str, Call]:
    image, rows = torch.randn(1, 1, 8, 8).pynq(), torch.randn(8, 8).pynq()
    target = torch.zeros(8, dtype=torch.int64).pynq()
    return {
        "pool2d_f32: max_pool2d": lambda: F.max_pool2d(image, 2),
        "nll_f32: nll_loss": lambda: F.nll_loss(rows, target),
        "norm_f32: layer_norm": lambda: F.layer_norm(rows, (8,)),
    }


def _lenet() -> dict[str, Call]:
    x, image, weight = torch.randn(8, 8), torch.randn(1, 1, 8, 8), torch.randn(1, 1, 3, 3)
    x, image, weight = x.pynq(), image.pynq(), weight.pynq()
    return {
        "matmul_f32: x @ y": lambda: x @ x,
        "conv2d_f32: conv2d": lambda: F.conv2d(image, weight),
    }


def _ladder() -> dict[str, Call]:
    v = torch.randn(64).pynq()
    return {"vadd_4: v + v": lambda: v + v, "dot_4: dot(v, v)": lambda: torch.dot(v, v)}


#: Overlay -> its calls by kernel.
OPERATORS: dict[str, Callable[[], dict[str, Call]]] = {
    "pointwise": _pointwise,
    "pointwise_int": _pointwise_int,
    "reductions": _reductions,
    "movement": _movement,
    "sparse": _sparse,
    "neural": _neural,
    "lenet": _lenet,
    "ladder_4": _ladder,
}


def check(label: str, call: Call) -> None:
    """Raise unless the kernel in front of the colon is what runs."""
    calls: list[Any] = []
    events.operators.subscribe(calls.append)
    try:
        call()
    finally:
        events.operators.unsubscribe(calls.append)
    kernels = [start.kernel for done in calls for start in done.kernels]
    kernel = label.partition(":")[0]
    if kernel not in kernels:
        reasons = "; ".join(f"{done.name}: {done.reason}" for done in calls)
        raise RuntimeError(
            f"{label} did not run on {kernel}, but on {kernels or 'the CPU'}: {reasons}"
        )


def call_us(call: Call, repeat: int = 500) -> float:
    """Return the median of the microseconds that a call takes."""
    times = []
    for _ in range(repeat + 20):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return median(times[20:]) * 1e6


def _drivers(overlay: Any) -> dict[str, Call]:
    """Return calls of drivers by themselves, on tensors in CMA memory."""
    a = buffers.empty_tensor((8, 8))
    unary, binary, ternary = overlay.unary_f32, overlay.binary_f32_0, overlay.ternary_f32
    return {
        "overlay.unary_f32('relu', a)": lambda: unary("relu", a),
        "overlay.binary_f32('add', a, a)": lambda: binary("add", a, a),
        "overlay.ternary_f32('lerp', a, a, 0.5)": lambda: ternary("lerp", a, a, 0.5),
    }


def overheads() -> dict[str, float]:
    """Return the microseconds of each call: operators of the device, and drivers by themselves."""
    found = {}
    for name, calls_of in OPERATORS.items():
        overlay = null_overlay(name)
        for label, call in calls_of().items():
            check(label, call)
            found[label] = call_us(call)
        if name == "pointwise":
            found |= {label: call_us(call) for label, call in _drivers(overlay).items()}
    return found


if __name__ == "__main__":
    print(f"measured on this PC ({CONDITIONS}); ratio to {TARGET_US:g} us")
    for label, us in overheads().items():
        print(f"{label:42s} {us:7.1f} us  {us / TARGET_US:5.2f}", file=sys.stdout)
