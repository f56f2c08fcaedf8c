"""What runs where, recorded at the dispatch of operators and published on `events.operators`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from pynq_torch.events import KernelCall, OperatorCall, operators, runs
from pynq_torch.kernels import calls

__all__ = [
    "State",
    "counted",
    "current",
    "inputs_of",
    "recorded",
    "state",
    "switches",
    "transfer",
]


class State(threading.local):
    """The call that this thread is recording."""

    call: OperatorCall | None = None


class Switches:
    """What the dispatcher looks at; `active` is true when any of it matters.

    Attributes
    ----------
    route : callable or None
        ``route(name, inputs) -> bool | None``: whether this call goes to the PL; ``None`` where the
        route says nothing. Called once for every operator call, in order.
    fallback : bool
        ``False``: an operator without a kernel is an error.
    """

    def __init__(self) -> None:
        self.active = False
        self.route: Callable[[str, tuple[str, ...]], bool | None] | None = None
        self.fallback = True

    def settle(self) -> None:
        """Work out `active` after a change."""
        self.active = bool(operators) or self.route is not None or not self.fallback
        if operators:
            runs.subscribe(_note_run)
        else:
            runs.unsubscribe(_note_run)


switches = Switches()
state = State()


operators.changed = switches.settle


@contextmanager
def recorded(call: OperatorCall) -> Iterator[None]:
    """Make this the call that the thread is recording; publish it at the end."""
    state.call = call
    call.start = time.perf_counter()
    try:
        yield
    except BaseException as error:
        call.error = type(error).__name__
        raise
    finally:
        end = time.perf_counter()
        state.call = None
        call.settle(end)
        operators.publish(call)


def current() -> OperatorCall | None:
    """Return the call that is being recorded in this thread, or ``None``."""
    return state.call


def inputs_of(args: Iterable[Any], kwargs: dict[str, Any]) -> tuple[str, ...]:
    """Return the tensors among an operator's arguments, e.g. ``"float32[8x8]"``, in order."""
    found: list[str] = []
    for value in (*args, *kwargs.values()):
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, torch.Tensor):
                sizes = "x".join(map(str, item.shape))
                found.append(f"{str(item.dtype).removeprefix('torch.')}[{sizes}]")
    return tuple(found)


def counted(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel about memory itself with its calls recorded; they cannot be steered.

    Between devices the time of such an overload is a transfer.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        if not operators or state.call is not None:
            return kernel(*args, **kwargs)
        call = OperatorCall(name, inputs_of(args, kwargs), thread=threading.current_thread().name)
        devices = {v.device.type for v in args if isinstance(v, torch.Tensor)}
        with recorded(call):
            if len(devices) == 1:
                return kernel(*args, **kwargs)
            with transfer():
                return kernel(*args, **kwargs)

    return run


@contextmanager
def transfer() -> Iterator[None]:
    """Count the time inside as transfer, where a call is recorded."""
    call = state.call
    if call is None:
        yield
        return
    start = time.perf_counter()
    try:
        yield
    finally:
        call.transfers.append((start, time.perf_counter()))


def _note_run(run: KernelCall) -> None:
    """Add the start of a compute unit to the call that this thread is recording."""
    if state.call is not None and run.seconds is None:
        state.call.kernels.append(run)


def _address(tensor: torch.Tensor) -> int | None:
    """Return the physical address of a tensor on device "pynq", ``None`` for any other."""
    from . import memory

    if tensor.device.type != "pynq" or memory.block_of(tensor).memory is None:
        return None
    return memory.physical_address(tensor)


calls.address_of = _address
