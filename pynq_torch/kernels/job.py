"""Jobs: what a run is told besides its operands, as 32-bit words in memory instead of registers.

A kernel of many settings gets them by one pointer (``job``) and reads them in a burst. They are
written by ordinary stores, where a program in Python pays 31 us for a register that it writes by
itself. A job is an operand: named among the reads of a run it is flushed before the start and kept
until the end. It never changes, so that runs with the same settings share one, also on several
units at a time, and a layer that runs again pays neither for a buffer nor for a flush.
"""

from __future__ import annotations

import struct
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pynq_torch import buffers

from .operand import Operand

__all__ = ["ARGUMENT", "Planned", "job_in_cma", "job_of"]

#: The name of the pointer.
ARGUMENT = "job"
#: Jobs that a device keeps, the latest ones; a page of CMA memory each.
KEPT = 64
#: Values of the registers for each run, and the job that they point to.
Planned = tuple[list[tuple[int, ...]], Operand]


def job_in_cma(names: Sequence[str], values: Sequence[int], device: Any) -> Operand:
    """Return settings in CMA memory, read-only: those of an earlier call where they are the same.

    Parameters
    ----------
    names : sequence of str
        Of the words, in the order in which the kernel reads them.
    values : sequence of int
        One for each; negative ones in two's complement.
    device : pynq.Device
        On which the kernel runs.

    Raises
    ------
    OverflowError
        A value does not fit a word.
    """
    # On the device, as its pool is: jobs go with the board that has their memory.
    kept: Callable[..., Operand] | None = vars(device).get("_pynq_torch_jobs")
    if kept is None:
        kept = device._pynq_torch_jobs = lru_cache(maxsize=KEPT)(_written)
    return kept(names, values, weakref.ref(device))


def _written(names: Sequence[str], values: Sequence[int], device: weakref.ref[Any]) -> Operand:
    try:
        words = struct.pack(f"<{len(names)}I", *values)
    except struct.error as error:
        wrong = [f"{n}={v}" for n, v in zip(names, values, strict=True) if not 0 <= v < 1 << 32]
        raise OverflowError(
            f"{', '.join(wrong)}: expected words of 32 bits, negative numbers in two's complement"
        ) from error
    buffer = buffers.empty((len(names),), np.uint32, device=device())
    np.asarray(buffer)[:] = np.frombuffer(words, "<u4")
    buffer.flags.writeable = False
    made = Operand(buffer, int(buffer.device_address), buffer)
    made.constant = True
    return made


def job_of(names: Sequence[str], job: Any, owners: Iterable[Any]) -> Mapping[str, int]:
    """Return the words of a job by name, for those who watch runs.

    Parameters
    ----------
    names : sequence of str
        Of the words, in order.
    job : PynqBuffer or int
        What the kernel gets: a buffer, or its address.
    owners : iterable
        Buffers and tensors among which that address is looked up. A program that started a run by
        an address alone has told nobody what is there: then there are no words to return.
    """
    found = [b for b in (job, *owners) if isinstance(b, np.ndarray) and b.nbytes >= 4 * len(names)]
    for buffer in found:
        if buffer is job or getattr(buffer, "device_address", None) == job:
            words = np.ascontiguousarray(buffer).reshape(-1).view(np.uint32)
            return dict(zip(names, words.tolist(), strict=False))
    return {}
