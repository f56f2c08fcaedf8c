"""The checks of one operator: each runs every sample on the CPU and on the device and compares.

A sample on which the CPU raises has to raise the same class of exception on the device.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from .compare import Values, difference
from .samples import DEVICE, Call, call_of, copy_to, samples_of, seed_everything, tensors_of

DTYPES = {
    "float32": torch.float32,
    "int64": torch.int64,
    "bool": torch.bool,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}


@dataclass
class Outcome:
    """What a check found; ``raised`` are samples on which the CPU raised, and the device alike."""

    samples: int = 0
    raised: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, index: int, said: str | None, raised: bool = False) -> None:
        """Count one sample, `said` being its first difference."""
        self.samples += 1
        self.raised += raised and said is None
        if said is not None:
            self.failures.append(f"sample {index}: {said}")


@dataclass
class Ran:
    """One call's result or exception."""

    result: Any = None
    error: Exception | None = None


def _run(function: Callable[..., Any], call: Call) -> Ran:
    seed_everything()
    try:
        return Ran(function(*call.args, **call.kwargs))
    except Exception as error:  # noqa: BLE001  whatever it is: the two devices' errors are compared
        return Ran(error=error)


def _said(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    inner = [f"{f.filename.rsplit('/', 1)[-1]}:{f.lineno}" for f in frames[-2:]]
    text = " ".join(str(error).split())
    return f"{type(error).__name__} at {' > '.join(inner)}: {text[:300]}"


def _error_difference(on_cpu: Ran, on_device: Ran) -> str | None:
    """Compare two runs of which at least one raised."""
    if type(on_cpu.error) is type(on_device.error):
        return None
    raised = "nothing" if on_device.error is None else _said(on_device.error)
    expected = "" if on_cpu.error is None else f", expected {_said(on_cpu.error)}"
    return f"raises {raised}{expected}"


def _both(
    function: Callable[..., Any], cpu: Call, device: Call, values: Values
) -> tuple[str | None, Ran, Ran]:
    """Run a function on the CPU's and on the device's call and compare all that it left behind."""
    on_cpu, on_device = _run(function, cpu), _run(function, device)
    if on_cpu.error or on_device.error:
        return _error_difference(on_cpu, on_device), on_cpu, on_device
    try:
        said = _differences(on_cpu, on_device, cpu, device, values)
    except Exception as error:  # noqa: BLE001  a result that cannot be read is a difference
        said = f"reading the result raises {_said(error)}"
    return said, on_cpu, on_device


def _differences(
    on_cpu: Ran, on_device: Ran, cpu: Call, device: Call, values: Values
) -> str | None:
    place = cpu.names_a_device()
    said = difference(on_cpu.result, on_device.result, values=values, place=place)
    for name, left in (("args", cpu.args), ("kwargs", cpu.kwargs)):
        after = getattr(device, name)
        said = said or difference(left, after, name, values=values, place=False)
    return said or _identity(on_cpu, on_device, cpu, device)


def _identity(on_cpu: Ran, on_device: Ran, cpu: Call, device: Call) -> str | None:
    """Compare which results are an argument, as in-place operators return, or a view of one."""
    given = list(zip(cpu.tensors(), device.tensors(), strict=True))
    for x_cpu, x in zip(tensors_of(on_cpu.result), tensors_of(on_device.result), strict=True):
        for position, (t_cpu, t) in enumerate(given):
            if (x_cpu is t_cpu) != (x is t):
                return f"result {_is(x is t)} the very argument {position}, unlike the CPU's"
            if (_root(x_cpu) is _root(t_cpu)) != (_root(x) is _root(t)):
                is_it = _is(_root(x) is _root(t))
                return f"result {is_it} a view of argument {position}, unlike the CPU's"
    return None


def _is(it: bool) -> str:
    return "is" if it else "is not"


def _root(x: torch.Tensor) -> torch.Tensor:
    """Return the tensor that `x` is a view of, or itself."""
    return x._base if x._base is not None else x


def _pairs(
    outcome: Outcome, op: Any, samples: Iterable[Any]
) -> Iterator[tuple[int, Any, Call, Call]]:
    """Yield each sample with its copies; one that cannot be moved to the device is a failure."""
    for index, sample in enumerate(samples):
        try:
            cpu, device = call_of(sample, "cpu"), call_of(sample, DEVICE)
        except Exception as error:  # noqa: BLE001  whatever it is: it is the device's failure
            outcome.add(index, f"moving the arguments raises {_said(error)}")
            continue
        yield index, sample, cpu, device


def forward(op: Any, dtype: torch.dtype, values: Values) -> Outcome:
    """Compare the operator's results."""
    outcome = Outcome()
    for index, _, cpu, device in _pairs(outcome, op, samples_of(op, dtype)):
        said, on_cpu, _ = _both(op.op, cpu, device, values)
        outcome.add(index, said, on_cpu.error is not None)
    return outcome


def method(op: Any, values: Values) -> Outcome:
    """Compare the results of the method and of the Python operator, on the first samples."""
    outcome = Outcome()
    variants = [v for v in (op.method_variant, op.operator_variant) if v is not None]
    samples = samples_of(op, torch.float32)[:4] if variants else ()
    for variant in variants:
        for index, _, cpu, device in _pairs(outcome, op, samples):
            said, on_cpu, _ = _both(variant, cpu, device, values)
            outcome.add(index, said, on_cpu.error is not None)
    return outcome


def inplace(op: Any, values: Values) -> Outcome:
    """Compare what the in-place method leaves behind."""
    outcome = Outcome()
    variants = [v for v in (op.inplace_variant, op.inplace_operator_variant) if v is not None]
    samples = samples_of(op, torch.float32) if variants else ()
    for variant in variants:
        for index, _, cpu, device in _pairs(outcome, op, samples):
            said, on_cpu, _ = _both(variant, cpu, device, values)
            outcome.add(index, said, on_cpu.error is not None)
    return outcome


def _strided(like: torch.Tensor) -> torch.Tensor:
    # The batch dimensions stay in order: where they do not, torch 2.13's own tril on the CPU
    # writes beside the tensor.
    if like.ndim > 1:
        return torch.ones(like.mT.shape, dtype=like.dtype).mT
    return torch.ones((*like.shape, 2), dtype=like.dtype)[..., 0]


#: What :func:`_outs` yields.
OUTS = ("a fresh", "a strided", "an empty")


def _outs(result: Any) -> Iterator[Any]:
    """Yield an ``out=`` of the right shape, one with other strides, and an empty one."""
    several = isinstance(result, (tuple, list))
    tensors = list(result) if several else [result]
    if not all(isinstance(t, torch.Tensor) and t.layout is torch.strided for t in tensors):
        return
    makers: list[Callable[[torch.Tensor], torch.Tensor]] = [
        lambda t: torch.ones(t.shape, dtype=t.dtype),
        _strided,
        lambda t: torch.empty(0, dtype=t.dtype),
    ]
    for make in makers:
        outs = [make(t) for t in tensors]
        yield tuple(outs) if several else outs[0]


def out(op: Any, values: Values) -> Outcome:
    """Compare what the operator writes to ``out=``."""
    outcome = Outcome()
    for sample in samples_of(op, torch.float32) if op.supports_out else ():
        expected = _run(op.op, call_of(sample, "cpu"))
        targets = list(_outs(expected.result)) if expected.error is None else []
        for index, _, cpu, device in _pairs(outcome, op, [sample] * len(targets)):
            cpu.kwargs["out"] = copy_to(targets[index], "cpu")
            device.kwargs["out"] = copy_to(targets[index], DEVICE)
            said, on_cpu, _ = _both(op.op, cpu, device, values)
            said = said and f"{OUTS[index]} out: {said}"
            outcome.add(outcome.samples // len(targets), said, on_cpu.error is not None)
    return outcome


def errors(op: Any, values: Values) -> Outcome:
    """Compare the exceptions on inputs that PyTorch's table names as wrong."""
    del values
    outcome = Outcome()
    if op.error_inputs_func is None:
        return outcome
    seed_everything()
    wrong = [error.sample_input for error in op.error_inputs("cpu", set_seed=False)]
    for index, _, cpu, device in _pairs(outcome, op, wrong):
        on_cpu, on_device = _run(op.op, cpu), _run(op.op, device)
        # Inputs that are wrong on another device only are no error here, and tell nothing.
        if on_cpu.error is not None:
            outcome.add(index, _error_difference(on_cpu, on_device))
    return outcome


def _gradients(ran: Ran, call: Call, process: Callable[[Any], Any]) -> Ran:
    """Run the backward pass of a result for seeded gradients; return those of the arguments."""
    leaves = [t for t in call.tensors() if t.requires_grad]
    try:
        outputs = [t for t in tensors_of(process(ran.result)) if t.requires_grad]
        if not outputs or not leaves:
            return Ran([])
        generator = torch.Generator().manual_seed(1)
        given = [torch.randn(o.shape, dtype=o.dtype, generator=generator) for o in outputs]
        given = [g.to(o.device) for g, o in zip(given, outputs, strict=True)]
        seed_everything()
        return Ran(torch.autograd.grad(outputs, leaves, given, allow_unused=True))
    except Exception as error:  # noqa: BLE001  whatever it is: the two devices' errors are compared
        return Ran(error=error)


def backward(op: Any, values: Values) -> Outcome:
    """Compare the gradients of every argument that requires one."""
    outcome = Outcome()
    samples = samples_of(op, torch.float32, requires_grad=True)
    for index, sample, cpu, device in _pairs(outcome, op, samples):
        said, on_cpu, on_device = _both(op.op, cpu, device, values)
        raised = on_cpu.error is not None
        if said is None and not raised:
            process = sample.output_process_fn_grad
            of_cpu = _gradients(on_cpu, cpu, process)
            of_device = _gradients(on_device, device, process)
            raised = of_cpu.error is not None
            if of_cpu.error or of_device.error:
                said = _error_difference(of_cpu, of_device)
            else:
                said = difference(of_cpu.result, of_device.result, "gradient", values=values)
        outcome.add(index, said, raised)
    return outcome


#: Column of the table -> its check, as a function of the OpInfo and of how values are compared.
CHECKS: dict[str, Callable[[Any, Values], Outcome]] = {
    "float32": lambda op, values: forward(op, torch.float32, values),
    "backward": backward,
    "int64": lambda op, values: forward(op, torch.int64, values),
    "bool": lambda op, values: forward(op, torch.bool, values),
    "float16": lambda op, values: forward(op, torch.float16, values),
    "bfloat16": lambda op, values: forward(op, torch.bfloat16, values),
    "method": method,
    "in-place": inplace,
    "out=": out,
    "errors": errors,
}


def applies(op: Any, column: str) -> bool:
    """Whether PyTorch's table gives the operator samples for this column on the CPU."""
    if column == "backward":
        return torch.float32 in op.supported_backward_dtypes("cpu")
    dtype = DTYPES.get(column, torch.float32)
    return column == "errors" or op.supports_dtype(dtype, "cpu")
