"""What a kernel's latency model says of a run that was made, from the registers of that run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from subprocess import SubprocessError
from typing import TYPE_CHECKING, Any

from pynq_torch.descriptions import KernelDescription, read_kernel_description
from pynq_torch.errors import KernelError, PynqTorchError
from pynq_torch.paths import KERNELS
from pynq_torch.timing import Duration, model_cycles

from .tiling import patch_cells

if TYPE_CHECKING:
    from pynq_torch.events import KernelCall
    from pynq_torch.hls.interface import Interface

__all__ = ["RunCycles", "cycles_of_run", "formula_cycles", "modelled", "run_cycles", "symbols"]

Numbers = Mapping[str, int]


def _convolution(r: Numbers) -> dict[str, int]:
    """Return the symbols of a convolution that are products of its registers."""
    result, kernel = (r["rows"], r["columns"]), (r["k_rows"], r["k_columns"])
    patch = patch_cells(result, kernel, (r["stride_y"], r["stride_x"]), (r["step_y"], r["step_x"]))
    return {"pixels": prod(result), "taps": prod(kernel), "patch": patch}


def _softmax(r: Numbers) -> dict[str, int]:
    return {"rows": r["outer"] * r["inner"]}


def _pointwise(operands: str) -> Callable[[Numbers], dict[str, int]]:
    """Return the symbols of a pointwise kernel with strides in registers like ``x0`` to ``x3``."""

    def of(r: Numbers) -> dict[str, int]:
        sizes = [r[f"n{axis}"] for axis in range(4)]
        rows = single = 0
        for operand in operands:
            strides = [r[f"{operand}{axis}"] for axis in range(4)]
            if strides[3] > 1 and sizes[3] > 1:
                single = prod(sizes)
            jumps = [
                axis
                for axis in range(3)
                if sizes[axis] > 1 and strides[axis] != strides[axis + 1] * sizes[axis + 1]
            ]
            rows = max(rows, prod(sizes[: jumps[-1] + 1]) if jumps else 1)
        return {"n": prod(sizes), "rows": rows, "single": single}

    return of


#: Kernel -> symbols of its model that are no registers of it.
_DERIVED: dict[str, Callable[[Numbers], dict[str, int]]] = {
    "conv2d_f32": _convolution,
    "softmax_f32": _softmax,
    "unary_f32": _pointwise("x"),
    "binary_f32": _pointwise("ab"),
}


@cache
def _description(kernel: str) -> KernelDescription:
    return read_kernel_description(KERNELS / kernel)


def symbols(run: KernelCall) -> dict[str, int]:
    """Return the sizes that the latency model of a run's kernel asks for.

    Raises
    ------
    KernelError
        A symbol of the model is neither a register nor known to be made of registers.
    """
    # HLS adds "_r" to names like ``length``.
    numbers: dict[str, Any] = {
        name.removesuffix("_r"): value
        for name, value in run.arguments.items()
        if isinstance(value, int)
    }
    if run.kernel in _DERIVED:
        numbers |= _DERIVED[run.kernel](numbers)
    wanted = _description(run.kernel).latency.symbols
    missing = [name for name in wanted if name not in numbers]
    if missing:
        raise KernelError(
            f"{run.cu}: the latency model of {run.kernel} asks for {', '.join(missing)}, which is "
            "no register of it: add how to compute it to run_model._DERIVED",
            run.cu,
        )
    return {name: numbers[name] for name in wanted}


def run_cycles(run: KernelCall) -> int:
    """Return the cycles that the model of its kernel gives a run."""
    cycles = model_cycles(run.kernel, **symbols(run))
    assert cycles is not None  # `symbols` has read the description
    return cycles


def modelled(runs: Sequence[KernelCall], clock_hz: float, label: str = "") -> Duration:
    """Return the modelled duration of runs, one after the other, at a clock of the PL."""
    total = sum(run_cycles(run) for run in runs)
    return Duration(total / clock_hz, "model", label, clock_hz=clock_hz, part="compute")


@dataclass(frozen=True)
class RunCycles:
    """What a run takes in the PL.

    Parameters
    ----------
    cycles : int or None
        ``None`` where it is not known; `note` says why.
    kind : {"cycles", "model", "estimate", ""}
        Counted in RTL; the formula of a ``description.json``; an estimate from the C++.
    note : str
        What the number was found from, or why there is none.
    """

    cycles: int | None
    kind: str = ""
    note: str = ""

    def __str__(self) -> str:
        if self.cycles is None:
            return f"cycles unknown: {self.note}"
        about = f" ({self.note})" if self.note else ""
        return f"{self.cycles:,} cycles, {self.kind}{about}"


def cycles_of_run(interface: Interface, arguments: Numbers, clock_hz: float) -> RunCycles:
    """Return the cycles of a run with these arguments, without having run it.

    By the formula of the ``description.json`` beside the source; without one by the estimate of
    `pynq_torch.hls.estimate`, where the arguments alone decide how long the kernel takes.

    Parameters
    ----------
    interface : Interface
        Of the kernel.
    arguments : mapping of str to int
        The integers that it gets by value.
    clock_hz : float
        Of the PL; operators take more cycles at a faster one.
    """
    why = ""
    try:
        cycles = formula_cycles(interface, arguments)
        if cycles is not None:
            return RunCycles(cycles, "model", "description.json")
    except (PynqTorchError, ArithmeticError) as error:
        why = f"no formula: {error}; "
    found = _estimated(interface, arguments, clock_hz)
    return replace(found, note=why + found.note)


def formula_cycles(interface: Interface, arguments: Numbers) -> int | None:
    """Return what the ``description.json`` beside a kernel's source gives a run.

    Parameters
    ----------
    interface, arguments
        See `cycles_of_run`.

    Returns
    -------
    int or None
        ``None`` where there is no such file.

    Raises
    ------
    KernelError
        The formula asks for what is no argument.
    """
    folder = interface.source.parent
    if not (folder / "description.json").is_file():
        return None
    latency = read_kernel_description(folder).latency
    numbers = dict(arguments)
    if interface.top in _DERIVED and folder.parent == KERNELS:
        numbers |= _DERIVED[interface.top](numbers)
    missing = [name for name in latency.symbols if name not in numbers]
    if missing:
        raise KernelError(
            f"that of {folder / 'description.json'} asks for {', '.join(missing)}, which is no "
            "integer argument",
            interface.top,
        )
    return latency.cycles(**{name: numbers[name] for name in latency.symbols})


def _estimated(interface: Interface, arguments: Numbers, clock_hz: float) -> RunCycles:
    from pynq_torch.hls.estimator import estimate_of_run
    from pynq_torch.hls.kernels import KernelSource

    source = KernelSource(interface.top, interface.source)
    clock = round(1e9 / clock_hz, 3)
    try:
        found = estimate_of_run(source, arguments, clock=clock, tool=interface.tool)
    except (KernelError, OSError, SubprocessError) as error:
        return RunCycles(None, note=f"no estimate: {error}")
    least, most = found.latency
    if least is None or most is None:
        return RunCycles(None, note="the data, not the arguments alone, say how often a loop runs")
    if least != most:
        return RunCycles(None, note=f"branches decide, an estimate says {least:,} to {most:,}")
    return RunCycles(
        most, "estimate", f"as {found.tool.title()} HLS would schedule it at {clock:g} ns"
    )
