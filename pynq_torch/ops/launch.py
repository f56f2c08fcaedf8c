"""Running the kernels of the loaded overlay for operators: finding units, sharing runs on them.

`available` says which compute units of a kernel there are, `launch` gives them one or more runs.
Operands are tensors on device "pynq" (`operand`); what a kernel writes is new memory, so that a run
that fails leaves the tensors of the program as they were.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import torch

from pynq_torch.errors import BoardHang, KernelBusy, PynqTorchError
from pynq_torch.kernels.operand import Operand
from pynq_torch.overlay import overlay_in_use
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.record import transfer
from pynq_torch.waits.polling import polls

from .slots import BASE_TIMEOUT_S, LOOK_S, Slot, give_back, take, try_take

__all__ = ["Slot", "available", "launch", "operand", "room"]


class _Slots:
    """The compute units of an overlay by the name of their kernel."""

    def __init__(self, overlay: Any) -> None:
        self.overlay = overlay
        self.device = overlay.device if overlay is not None else None
        self.by_kernel: dict[str, tuple[Slot, ...]] = {}
        for driver in overlay.kernels.values() if overlay is not None else ():
            name = driver.kernel_name
            self.by_kernel[name] = (*self.by_kernel.get(name, ()), Slot(driver))


_lock = threading.Lock()
_found = _Slots(None)


def _slots() -> _Slots:
    global _found
    overlay = overlay_in_use()
    if overlay is not _found.overlay:
        with _lock:
            if overlay is not _found.overlay:
                _found = _Slots(overlay)
    return _found


def available(kernel: str) -> tuple[Slot, ...]:
    """Return the compute units of a kernel in the loaded overlay; empty where there is none.

    Parameters
    ----------
    kernel : str
        Its VLNV name, e.g. ``"unary_f32"``.
    """
    return _slots().by_kernel.get(kernel, ())


def operand(tensor: torch.Tensor) -> Operand:
    """Return a tensor on device "pynq" for a kernel, as it lies; strides stay.

    It is copied only where its memory is not on the board of the loaded overlay, or where what it
    shows is not what lies in memory (lazy negation).
    """
    block = memory.block_of(tensor)
    held = block.memory
    # Not _slots(): `available` has just looked, and a look costs as much as the rest of this.
    if held is None or held.device is not _found.device or tensor.is_neg():
        with transfer():
            copied = memory.new(tensor.shape, tensor.dtype)
            memory.block_of(copied).cpu.copy_(memory.alias(tensor))
        tensor, held = copied, memory.held(copied)
    address = held.physical + int(tensor.storage_offset()) * tensor.element_size()
    return Operand(tensor, address, held)


def room(shape: Sequence[int], dtype: torch.dtype) -> Operand:
    """Return room for a result: a new contiguous tensor on device "pynq"."""
    return operand(memory.new(shape, dtype))


def launch(
    slots: Sequence[Slot],
    runs: Sequence[Sequence[int]],
    *,
    reads: Sequence[Operand] = (),
    writes: Sequence[Operand] = (),
    timeout_s: float | None = None,
) -> None:
    """Do runs of one kernel on its compute units, as many at a time as there are units free.

    Parameters
    ----------
    slots : sequence of Slot
        From `available`; at least one.
    runs : sequence of sequence of int
        The values of all registers for each run, see `Kernel.start_raw`. Runs must not depend on
        each other.
    reads, writes : sequence of Operand
        All that any of the runs reads and writes; caches are kept up once for all of them.
    timeout_s : float, optional
        Bound of the wait for one run. Default: `BASE_TIMEOUT_S`.

    Raises
    ------
    KernelError
        A run failed; all that had been started have been waited for.
    KernelBusy
        A program has started all units by hand and they do not become free.
    """
    timeout_s = BASE_TIMEOUT_S if timeout_s is None else timeout_s
    held = tuple(o.tensor for o in (*reads, *writes))
    # What is written too: what the CPU has in its cache of it must not come later.
    flush: Sequence[Any] = tuple(o.memory for o in (*reads, *writes))
    results = tuple(o.memory for o in writes)
    if len(slots) == 1 or len(runs) == 1:
        for values in runs:
            taken = take(slots)
            try:
                run = _start(taken[0], values, held, flush, results)
                run.wait(timeout_s)
            finally:
                give_back(taken)
            flush = ()
    else:
        _in_parallel(slots, runs, held, flush, results, timeout_s)
    for o in writes:
        memory.note_write(o.tensor)


def _start(slot: Slot, values: Sequence[int], held: Any, flush: Sequence[Any], results: Any) -> Any:
    """Start a unit; wait where a program has started it by its registers."""
    begin = 0.0
    while True:
        try:
            return slot.driver.start_raw(values, held=held, flush=flush, results=results)
        except KernelBusy:
            begin = begin or time.perf_counter()
            if time.perf_counter() - begin > BASE_TIMEOUT_S or slot.driver.is_mine():
                raise
            time.sleep(LOOK_S)


def _in_parallel(
    slots: Sequence[Slot],
    runs: Sequence[Sequence[int]],
    held: Any,
    flush: Sequence[Any],
    results: Any,
    timeout_s: float,
) -> None:
    """Keep all free units running until the runs are done or one has failed."""
    waiting = list(reversed(runs))
    working: list[tuple[Slot, Any]] = []
    failure: BaseException | None = None
    while working or (waiting and failure is None):
        try:
            while waiting and failure is None:
                taken = take(slots) if not working else try_take(slots)
                if not taken:
                    break
                try:
                    run = _start(taken[0], waiting[-1], held, flush, results)
                except BaseException:
                    give_back(taken)
                    raise
                working.append((taken[0], run))
                waiting.pop()
                # Once a unit is running, writing the cache back could undo what it has stored.
                flush = ()
        except BaseException as error:  # noqa: BLE001 (raised below, when all have ended)
            failure = error
        if working:
            failure = _end_one(working, timeout_s) or failure
    if failure is not None:
        raise failure


def _end_one(working: list[tuple[Slot, Any]], timeout_s: float) -> BaseException | None:
    """Wait for the run that ends first, give its unit back, and return what it failed with."""
    chosen, failure = _first(working, timeout_s) if len(working) > 1 else (working[0], None)
    slot, run = chosen
    working.remove(chosen)
    try:
        if failure is None:
            run.wait(timeout_s)
    except BaseException as error:  # noqa: BLE001 (raised by the caller, when all have ended)
        failure = error
    finally:
        give_back([slot])
    return failure


def _first(
    working: Sequence[tuple[Slot, Any]], timeout_s: float
) -> tuple[tuple[Slot, Any], BaseException | None]:
    """Return the run that ends first, with the error of a unit that crashed."""
    for _ in polls(timeout_s):
        for pair in working:
            try:
                if pair[0].driver.has_ended():
                    return pair, None
            except BoardHang:
                return pair, None  # waiting for it says what hangs
            except PynqTorchError as error:
                return pair, error
    return working[0], None
