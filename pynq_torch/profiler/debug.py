"""One line a decision: operator, operands, where it ran, and why.

``TORCH_PYNQ_DEBUG=1`` in the environment switches it on from the start, on stderr::

    pynq: aten::_int_mm(int8[64x64], int8[64x64]) -> PL gemm_0, 412 µs
    pynq: aten::add.Tensor(float32[8x8], float32[8x8]) -> CPU, 21 µs: no kernel serves this operator

`shown` prints the lines of a block of code; `followed` also prints what Python calls and what
arrives at ATen, PyTorch's operators.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode

from pynq_torch import events
from pynq_torch.timing import seconds_text

__all__ = ["disable", "enable", "followed", "is_enabled", "shown"]


def enable() -> None:
    """Print a line for every operator from now on, on stderr."""
    events.operators.subscribe(_show)


def disable() -> None:
    """Stop that."""
    events.operators.unsubscribe(_show)


def is_enabled() -> bool:
    """Whether lines are printed."""
    return _show in events.operators.subscribers


@contextmanager
def shown(file: TextIO | None = None) -> Iterator[None]:
    """Print a line for every operator that is called in a ``with`` block, by any thread.

    Parameters
    ----------
    file : text file, optional
        Where to. Default: stdout, because a notebook shows stderr as if something were wrong.

    Examples
    --------
    >>> with torch.pynq.profiler.debug.shown():  # doctest: +SKIP
    ...     z = x + y
    pynq: aten::add.Tensor(float32[8x8], float32[8x8]) -> CPU, 21 µs: no kernel serves this operator
    """

    def show(call: events.OperatorCall) -> None:
        (sys.stdout if file is None else file).write(_line(call))

    events.operators.subscribe(show)
    try:
        yield
    finally:
        events.operators.unsubscribe(show)


@contextmanager
def followed(file: TextIO | None = None) -> Iterator[None]:
    """Print how calls get from Python to the device, in a ``with`` block of one thread.

    Parameters
    ----------
    file : text file, optional
        Where to. Default: stdout.

    Examples
    --------
    >>> with torch.pynq.profiler.debug.followed():  # doctest: +SKIP
    ...     y = torch.conv2d(x, weight)
    Python: torch.conv2d
    ATen:   aten::convolution
    pynq: aten::convolution(float32[1x1x8x8], float32[4x1x3x3]) -> CPU, 84 µs: ...
    """
    target = sys.stdout if file is None else file
    with shown(target), _Python(target), _ATen(target):
        yield


class _Python(TorchFunctionMode):
    """Prints which of torch's Python functions are called."""

    def __init__(self, file: TextIO) -> None:
        super().__init__()
        self._file = file

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = resolve_name(func) or getattr(func, "__name__", str(func))
        if not name.endswith("__get__"):  # shape, device and the like
            self._file.write(f"Python: {name}\n")
        return func(*args, **(kwargs or {}))


class _ATen(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Prints which operators torch has made of that."""

    def __init__(self, file: TextIO) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._file = file

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self._file.write(f"ATen:   {func.name()}\n")
        return func(*args, **(kwargs or {}))


def _show(call: events.OperatorCall) -> None:
    # One write a line: lines of several threads do not mix.
    sys.stderr.write(_line(call))


def _line(call: events.OperatorCall) -> str:
    units = ", ".join(dict.fromkeys(run.cu for run in call.kernels))
    where = f"PL {units}".rstrip() if call.where == "PL" else "CPU"
    line = f"pynq: {call.name}({', '.join(call.inputs)}) -> {where}, {seconds_text(call.seconds)}"
    # Copies compute nothing, and only those between devices spend time in transfer.
    moved = call.where == "CPU" and bool(call.transfers)
    reason = call.reason or "copy between devices" * moved
    why = "; ".join(w for w in (reason, f"ended in {call.error}" * bool(call.error)) if w)
    return f"{line}: {why}\n" if why else f"{line}\n"
