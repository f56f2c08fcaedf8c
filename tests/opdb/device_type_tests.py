"""PyTorch's device-generic machinery pointed at device "pynq".

``instantiate_device_type_tests`` makes the tests; their inputs are PyTorch's tables of modules,
optimisers and autograd functions. `tests/test_device_generic.py` runs this file in a process of
its own: importing ``torch.testing._internal`` changes settings of the whole process.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch.testing._internal.autograd_function_db import autograd_function_db
from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops
from torch.testing._internal.common_modules import module_db, modules
from torch.testing._internal.common_optimizers import optim_db, optims
from torch.testing._internal.common_utils import TestCase

from opdb.checks import backward, forward
from opdb.compare import Values, difference
from opdb.exclusions import exclusion_of
from opdb.samples import DEVICE, copy_to, seed_everything, tensors_of


def _run_module(module: torch.nn.Module, args: Any, kwargs: Any) -> tuple[Any, list[Any]]:
    """Return a module's output, and the gradients of its inputs and parameters."""
    seed_everything()
    output = module(*args, **kwargs)
    leaves = [t for t in tensors_of((args, kwargs)) if t.requires_grad]
    leaves += [p for p in module.parameters() if p.requires_grad]
    outputs = [t for t in tensors_of(output) if t.requires_grad]
    if not outputs or not leaves:
        return output, []
    generator = torch.Generator().manual_seed(1)
    given = [torch.randn(o.shape, dtype=o.dtype, generator=generator) for o in outputs]
    given = [g.to(o.device) for g, o in zip(given, outputs, strict=True)]
    seed_everything()
    return output, list(torch.autograd.grad(outputs, leaves, given, allow_unused=True))


class TestModules(TestCase):
    """Every module of ``torch.nn``: output, gradients, buffers afterwards."""

    @modules(module_db, allowed_dtypes=[torch.float32])
    def test_module(
        self, device: str, dtype: torch.dtype, module_info: Any, training: bool
    ) -> None:
        seed_everything()
        inputs = module_info.module_inputs_func(
            module_info, device="cpu", dtype=dtype, requires_grad=True, training=training
        )
        compared, inexact = 0, []
        entry = exclusion_of(module_info.name, "module")
        for given in inputs:
            if given.forward_input is None:
                continue
            seed_everything()
            args, kwargs = given.constructor_input.args, given.constructor_input.kwargs
            module = module_info.module_cls(*args, **kwargs).to(dtype).train(training)
            forward_input = (given.forward_input.args, given.forward_input.kwargs)
            if module_info.is_lazy:
                # Parameters take their shape from the first input.
                module(*copy_to(forward_input[0], "cpu"), **copy_to(forward_input[1], "cpu"))
            moved = copy.deepcopy(module).to(device)
            ran = [
                [*_run_module(m, *copy_to(forward_input, d)), dict(m.state_dict())]
                for m, d in ((module, "cpu"), (moved, DEVICE))
            ]
            for name, cpu, found in zip(("output", "gradient", "state"), *ran, strict=True):
                where = f"{name} {given.desc}"
                said = difference(cpu, found, where)
                if said is not None and entry is not None:
                    inexact.append(said)
                    said = difference(cpu, found, where, values=Values.CLOSE)
                assert said is None, said
            compared += 1
        if not compared:
            self.skipTest("PyTorch's table has no input for forward()")
        assert bool(entry) == bool(inexact), "exact: take it out of the exclusions"


class TestOptimizers(TestCase):
    """Every optimiser with every set of options: parameters and state after three steps."""

    @optims(optim_db, dtypes=[torch.float32])
    def test_steps(self, device: str, dtype: torch.dtype, optim_info: Any) -> None:
        loops = [{}] if "foreach" not in optim_info.supported_impls else _LOOPS
        sparse = optim_info.only_supports_sparse_grads
        if sparse:
            self.skipTest("takes sparse gradients only: see test_sparse_layouts.py")
        for given, loop in itertools.product(
            optim_info.optim_inputs_func(device="cpu", dtype=dtype), loops
        ):
            options = {**given.kwargs, **loop}
            if options.get("capturable") or options.get("differentiable"):
                continue
            found = [self._run(optim_info.optim_cls, options, d) for d in ("cpu", device)]
            for name, cpu, pynq in zip(("parameter", "state"), *found, strict=True):
                # Some optimisers keep scalars on the CPU, whatever the parameters' device.
                said = difference(cpu, pynq, name, place=name == "parameter")
                assert said is None, f"{given.desc} {loop}: {said}"

    def _run(self, make: Callable[..., Any], options: dict[str, Any], device: str) -> Any:
        generator = torch.Generator().manual_seed(3)
        weights = [torch.randn(s, generator=generator) for s in ((4, 3), (5, 5))]
        parameters = [torch.nn.Parameter(w.to(device)) for w in weights]
        optimizer = make(parameters, **options)
        target = torch.randn(4, 5, generator=generator).to(device)

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            product = torch.nn.functional.pad(parameters[0], (0, 2)) @ parameters[1]
            loss = (product - target).square().sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        state = optimizer.state_dict()["state"]
        return [p.detach() for p in parameters], state


_LOOPS: list[dict[str, Any]] = [{"foreach": False}, {"foreach": True}]


class TestAutogradFunctions(TestCase):
    """PyTorch's table of ``autograd.Function`` classes."""

    # The one left out changes its argument's memory through numpy, which sees the CPU's only.
    @ops(
        [op for op in autograd_function_db if op.name != "NumpyExpMarkDirtyAutogradFunction"],
        allowed_dtypes=[torch.float32],
    )
    def test_function(self, device: str, dtype: torch.dtype, op: Any) -> None:
        del device
        outcomes = [forward(op, dtype, Values.EXACT), backward(op, Values.EXACT)]
        failures = [said for outcome in outcomes for said in outcome.failures]
        assert not failures, failures
        assert all(outcome.samples for outcome in outcomes)


for case in (TestModules, TestOptimizers, TestAutogradFunctions):
    instantiate_device_type_tests(case, globals(), only_for=DEVICE)
