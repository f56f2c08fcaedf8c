"""Driver of ``net``: a whole int8 network in one start, from a program in memory."""

from __future__ import annotations

import copy
import threading
from typing import Any, ClassVar

import numpy as np

from pynq_torch import buffers
from pynq_torch.errors import KernelFault
from pynq_torch.kernels.base import Kernel

from .check import Limits, ProgramError, check
from .format import HEADER, REASONS, Instruction

__all__ = ["Limits", "Loaded", "Net", "ProgramError", "check"]

_REFUSED = len(REASONS) - 1


class Loaded:
    """A program in CMA memory, ready to run.

    Parameters
    ----------
    kernel : Net
        The compute unit.
    program, weights, table : numpy.ndarray
        uint32 [n, 32], int8, int32.
    arena : int
        Bytes for activations.

    Attributes
    ----------
    instructions : list of Instruction
        What runs.
    arena : numpy.ndarray
        int8, in CMA memory: the input is written there, the result read.

    Raises
    ------
    ProgramError
        The program is invalid; nothing is allocated.
    """

    def __init__(
        self,
        kernel: Net,
        program: np.ndarray[Any, Any],
        weights: np.ndarray[Any, Any],
        table: np.ndarray[Any, Any],
        arena: int,
    ) -> None:
        limits = Limits(weights.nbytes, table.size, arena)
        self.instructions: list[Instruction] = check(program, limits, table)
        self._kernel = kernel
        device = kernel.device
        constants = (program, weights, table)
        # A kernel has an address for each pointer, also where there is nothing behind it.
        self._constants = [buffers.to_buffer(c if c.size else c.dtype.type([0]), device=device)
                           for c in constants]  # fmt: skip
        self._sizes = (len(program), limits.weights, limits.table, limits.arena)
        self._take_memory()

    def _take_memory(self) -> None:
        length, _, _, arena = self._sizes
        device = self._kernel.device
        self._memory = buffers.empty((max(arena, 1),), np.int8, device=device)
        self._report = buffers.empty((HEADER + length,), np.uint32, device=device)
        self.arena = np.asarray(self._memory)
        places = (*self._constants, self._memory, self._report)
        self._values = (*(int(place.device_address) for place in places), *self._sizes)

    def twin(self) -> Loaded:
        """Return the same program with an arena of its own: one is filled while another runs."""
        other = copy.copy(self)
        other._take_memory()
        return other

    def run(self, timeout_s: float = 10.0) -> None:
        """Start once and wait: from what is in the arena to the results there.

        Threads take turns on the kernel; each waits only for runs that are bounded like its own.

        Raises
        ------
        ProgramError
            The kernel has stopped at an instruction.
        KernelFault
            Memory has refused an access of it.
        """
        try:
            with self._kernel.turn:
                self._kernel.start_raw(
                    self._values,
                    held=self._constants,
                    flush=(self._memory,),
                    results=(self._memory, self._report),
                ).wait(timeout_s)
        except KernelFault as fault:
            reason, index = (int(word) for word in self._report[:2])
            if reason != _REFUSED:
                raise  # it has not come to its report
            self._report[0] = 0
            self._report.flush()
            where = f"Instruction {index}, or the next one, which is read ahead"
            raise KernelFault(f"{where}: {fault}", self._kernel.cu) from fault
        reason, index = (int(word) for word in self._report[:2])
        if reason:
            raise ProgramError(index, reason, "as the kernel says", self._kernel.cu)

    @property
    def cycles(self) -> list[int] | None:
        """The cycles of each instruction in the last run; ``None`` where they are not counted."""
        counted = [int(word) for word in self._report[HEADER : HEADER + len(self.instructions)]]
        return counted if any(counted) else None


class Net(Kernel):
    """``overlay.net(...)`` takes a program; see `pynq_torch.net` for one from a file."""

    expects: ClassVar[tuple[str, ...]] = (
        *("program", "weights", "tables", "arena", "outcome"),
        *("instructions", "weights_bytes", "table_words", "arena_bytes"),
    )

    def __init__(self, description: dict[str, Any]) -> None:
        super().__init__(description)
        #: Held during a run: programs in several threads run one after the other.
        self.turn = threading.Lock()

    def __call__(
        self,
        program: np.ndarray[Any, Any],
        weights: np.ndarray[Any, Any],
        table: np.ndarray[Any, Any],
        arena: int,
    ) -> Loaded:
        """Check a program and load it into CMA memory; see `Loaded`."""
        return Loaded(self, program, weights, table, arena)

    call: Any = __call__
