"""What torch makes wrong on some PCs: int8 products, and a first call by several threads."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest
import torch

from pynq_torch.torch_device import exact

#: Prints whether torch's own product is right, and asserts that all of ours are.
_PROGRAM = """
import torch, pynq_torch
from pynq_torch.torch_device.exact import int_mm
pynq_torch.use_board("csim")
pynq_torch.load("vadd")  # which has no unit for products: the CPU makes them
for m, k, n in ((1, 1, 1), (32, 32, 32), (33, 70, 9)):
    for a, b in (
        (torch.randint(-128, 128, (m, k)), torch.randint(-128, 128, (k, n))),
        (torch.full((m, k), 127), torch.full((k, n), -128)),
    ):
        a, b = a.to(torch.int8), b.to(torch.int8)
        right, out = a.int() @ b.int(), torch.empty(m, n, dtype=torch.int32)
        assert torch.equal(int_mm(a, b), right)
        assert int_mm(a, b, out=out) is out and torch.equal(out, right)
        x, y, on_device = a.to("pynq"), b.to("pynq"), torch.empty_like(out, device="pynq")
        assert torch.equal(torch._int_mm(x, y).cpu(), right)
        assert torch.equal(torch._int_mm(x, y, out=on_device).cpu(), right)
print(torch.equal(torch._int_mm(a, b), right))
"""


@pytest.mark.parametrize("processor", ["AVX2", "DEFAULT"])
def test_products_are_exact_whatever_the_processor(processor: str) -> None:
    # A limit for oneDNN, so that it does without VNNI as older processors have to.
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": processor}
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert run.returncode == 0, run.stderr
    if processor == "AVX2" and platform.machine() == "x86_64":
        assert run.stdout.strip() == "False", "torch is right without VNNI: `exact` is not needed"


def test_sums_wrap_as_int32_does() -> None:
    a = torch.full((32, 140_000), 127, dtype=torch.int8)
    b = torch.full((140_000, 32), 127, dtype=torch.int8)
    assert torch.equal(exact._by_floats(a, b), a.int() @ b.int())


def test_what_torch_refuses_is_refused() -> None:
    a = torch.zeros(4, 8, dtype=torch.int8)
    with pytest.raises(RuntimeError):
        exact.int_mm(a, a)
    with pytest.raises(RuntimeError):
        exact.int_mm(a.float(), a.float().T)


#: Prints what device "pynq" calls while torch is imported: no more than that is done before it.
_AUTOLOAD = """
import pynq_torch, torch
from torch.utils._python_dispatch import TorchDispatchMode

class Calls(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if args and isinstance(args[0], torch.Tensor):
            print(function.overloadpacket.__name__, args[0].dtype, args[0].numel())
        return function(*args, **(kwargs or {}))

with Calls():
    pynq_torch.autoload()
"""


def test_mkl_has_chosen_its_code_before_several_threads_call_a_function() -> None:
    # The fault itself comes once in a thousand processes, with more threads than cores.
    run = subprocess.run(
        [sys.executable, "-c", _AUTOLOAD],
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    called = set(run.stdout.splitlines())
    functions = ("acos", "asin", "atan", "cos", "erf", "exp", "expm1", "lgamma", "log", "log10")
    for name in (*functions, "log2", "sin", "sqrt", "tan", "tanh"):
        for dtype in (torch.float32, torch.float64):
            assert f"{name} {dtype} 1" in called, f"{name} of {dtype}: not called by one thread"
