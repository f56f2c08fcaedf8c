"""A driver whose calls are one or more runs of its unit, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .base import Kernel
from .operand import Operand

__all__ = ["RunsKernel"]


class RunsKernel(Kernel):
    """A kernel that is started with registers which were worked out before."""

    def do_runs(
        self,
        runs: Sequence[Sequence[int]],
        reads: Sequence[Operand],
        writes: Sequence[Operand],
        timeout_s: float,
    ) -> None:
        """Do runs one after the other.

        Parameters
        ----------
        runs : sequence of sequence of int
            The values of all registers for each, see `Kernel.start_raw`.
        reads, writes : sequence of Operand
            All that any of the runs reads and writes; kept alive until the last one has ended.
        timeout_s : float
            Bound of the wait for one run.
        """
        held = [o.tensor for o in (*reads, *writes)]
        results = [o.memory for o in writes]
        flush: Sequence[Any] = [o.memory for o in (*reads, *writes)]
        for values in runs:
            self.start_raw(values, held=held, flush=flush, results=results).wait(timeout_s)
            # Once more would write what the cache has of the results over what the unit stored.
            flush = ()
