"""The driver that every kernel has: arguments in one block, start, results."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pynq.buffer import PynqBuffer

from pynq_torch import events
from pynq_torch.errors import ArgumentError, StaleOverlay

from . import calls
from .arguments import bind, check_tensor, encode, reach
from .control import Control
from .launch import Runs
from .operand import Operand, in_cma, result_in_cma
from .registers import Layout, Parameter, blocks, parameters_of

if TYPE_CHECKING:
    import torch

__all__ = ["Kernel", "KernelStart", "StaleOverlay"]


def _write_back(buffers: Iterable[Any], told: events.KernelCall | None) -> None:
    """Let the kernel see what the CPU has written."""
    begin = time.perf_counter()
    for buffer in buffers:
        buffer.flush()
    if told is not None:
        told.transfer_s = time.perf_counter() - begin


class KernelStart:
    """A run that was started; ``wait`` ends it.

    Parameters
    ----------
    kernel : Kernel
        The compute unit.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def wait(self, timeout_s: float = 10.0) -> None:
        """Wait for the end of the run; see `Kernel.wait`."""
        self._kernel.wait(timeout_s)


class Kernel(Control):
    """Driver of an HLS kernel: its registers by name, start and wait.

    Subclasses add ``__call__`` with typed arguments.

    Attributes
    ----------
    cu : str
        The compute unit's name in the overlay.
    kernel_name : str
        The kernel it is an instance of (VLNV name).
    parameters : tuple of Parameter
        Its arguments, in order.
    expects : tuple of str
        Names of the arguments that a kernel of this driver has; empty where any will do.
    job : tuple of str
        Names of the words behind its pointer ``job``, where it has one; see `job.job_in_cma`.
    """

    expects: ClassVar[tuple[str, ...]] = ()
    job: ClassVar[tuple[str, ...]] = ()

    def __init__(self, description: dict[str, Any]) -> None:
        super().__init__(description)
        self.parameters: tuple[Parameter, ...] = parameters_of(self._registers or {})
        self._by_name = {name: p for p in self.parameters for name in p.names}
        self._layouts = tuple(Layout(run, self.cu) for run in blocks(self.parameters))
        arrays = any(p.kind == "memory" for p in self.parameters)
        #: What `start_raw` writes, where one slice does it.
        self._layout = self._layouts[0] if len(self._layouts) == 1 and not arrays else None
        self._run = KernelStart(self)

    @classmethod
    def fits(cls, registers: dict[str, Any]) -> bool:
        """Whether a kernel with these registers is the driver's: others may have its name.

        Parameters
        ----------
        registers : dict
            ``ip_dict[name]["registers"]``.
        """
        return not cls.expects or tuple(p.name for p in parameters_of(registers)) == cls.expects

    # ---- the run -----------------------------------------------------------------------------

    def start(self, *arguments: Any, **registers: Any) -> KernelStart:
        """Write the arguments and start; do not wait.

        Parameters
        ----------
        *arguments, **registers
            In order of the registers, or by name. Integers as they are, floats as float32 (float64
            in a 64-bit register), buffers and tensors in CMA memory by physical address. An
            ``np.uint32`` or ``np.uint64`` is the bits of the register, whatever is in it.

        Raises
        ------
        KernelBusy
            The compute unit is running; nothing is changed.
        ArgumentError
            A tensor or buffer has elements of another size than the kernel's C++, or a number is a
            float for an int there, or the reverse. That is known on the virtual boards, behind
            compiled C++.
        """
        return self._begin(bind(self, arguments, registers))

    def start_raw(
        self,
        values: Sequence[int],
        *,
        held: Sequence[Any] = (),
        flush: Sequence[PynqBuffer] = (),
        results: Sequence[PynqBuffer] = (),
    ) -> KernelStart:
        """Start with arguments that are integers already: the way for many short runs.

        One write of all registers, one of AP_START; nothing is looked up or converted.

        Parameters
        ----------
        values : sequence of int
            One for each argument, in order of the registers: physical addresses for pointers, the
            bits of floats. The caller answers for what lies at an address.
        held : sequence
            Kept alive until the run has ended: what owns the memory behind the addresses.
        flush : sequence of PynqBuffer
            Flushed before the start: what the CPU has written since the last time.
        results : sequence of PynqBuffer
            Invalidated when it has: what the kernel writes.

        Raises
        ------
        KernelBusy, StaleOverlay
            See `start`.
        OverflowError
            A value does not fit its register.
        TypeError
            Values are missing, or the arguments are not one run of 32-bit and 64-bit registers.
            Nothing was started.
        """
        if self._layout is None:
            raise TypeError(
                f"{self.signature_text}: the arguments are no single run of registers, or there "
                "are arrays among them; use start()"
            )
        words = self._layout.of_integers(values)
        self._acquire()
        try:
            told = None
            if events.runs:
                given = dict(zip(self._layout.names, values, strict=True))
                told = calls.prepare(self, given, given, held)
            _write_back(flush, told)
            self._array[self._layout.span] = words
            self._held, self._results = (*held, *results), results
            self._set_off(told)
        except Exception:
            self._release()
            raise
        except BaseException:
            self.abandon()  # an interrupt: AP_START may have been written
            raise
        return self._run

    def do_runs(
        self,
        runs: Sequence[Sequence[int]],
        reads: Sequence[Operand | None],
        writes: Sequence[Operand | None],
        timeout_s: float,
    ) -> None:
        """Do runs one after the other, see `start_raw`.

        Parameters
        ----------
        runs : sequence of sequence of int
            The values of all registers for each.
        reads, writes : sequence of Operand
            See `Runs`.
        timeout_s : float
            Bound of the wait for one run.
        """
        made = Runs(reads, writes, timeout_s)
        for values in runs:
            made.run(self, values)

    def run_into(
        self,
        result: Operand,
        runs: Sequence[Sequence[int]],
        reads: Sequence[Operand | None],
        timeout_s: float,
    ) -> torch.Tensor:
        """Do runs that write one result, see `do_runs`, and return its tensor."""
        self.do_runs(runs, reads, (result,), timeout_s)
        return result.tensor

    def _begin(self, bound: dict[str, Any]) -> KernelStart:
        values = {name: reach(value) for name, value in bound.items()}
        self._acquire()
        try:
            held = [v for v in values.values() if isinstance(v, PynqBuffer)]
            words = {name: encode(self, self._by_name[name], v) for name, v in values.items()}
            told = calls.prepare(self, values, words) if events.runs else None
            _write_back(held, told)
            self._launch(words, held)
            self._set_off(told)
        except Exception:
            self._release()
            raise
        except BaseException:
            self.abandon()  # an interrupt: AP_START may have been written
            raise
        return self._run

    def outputs(self) -> Any:
        """Read the outputs in registers (``ap_return``, scalars by pointer).

        Returns
        -------
        int, dict or None
            Unsigned integers: one as it is, several by name, ``None`` without any.
        """
        outs = [p for p in self.parameters if p.kind == "out" and not p.name.endswith("_ctrl")]
        found = {p.name: self._read(p) for p in outs}
        if len(found) == 1:
            return next(iter(found.values()))
        return found or None

    def read_memory(self, name: str, count: int, dtype: Any = "u4") -> np.ndarray[Any, Any]:
        """Read `count` elements from the start of an array argument (s_axilite)."""
        kind = np.dtype(dtype)
        window = self._by_name[name]
        nwords = -(-count * kind.itemsize // 4)
        first = window.offset >> 2
        words = np.array(self._array[first : first + nwords], np.uint32)
        return words.view(kind)[:count]

    # ---- arguments ---------------------------------------------------------------------------

    def operand(
        self, name: str, tensor: torch.Tensor, dtype: torch.dtype | None = None, **expected: Any
    ) -> Operand:
        """Return a CPU tensor for the kernel; see `in_cma`."""
        return in_cma(self.cu, name, tensor, dtype, self.device, **expected)

    def vector(
        self, name: str, tensor: Any, dtype: torch.dtype | None = None, **expected: Any
    ) -> Operand | None:
        """Return a tensor with its elements in order; ``None`` where none is given."""
        if tensor is None:
            return None
        check_tensor(self.cu, name, tensor, dtype, **expected)
        return self.operand(name, tensor.contiguous(), dtype)

    def result(self, shape: Sequence[int], dtype: torch.dtype | None = None) -> Operand:
        """Return an uninitialised result in CMA memory, float32 by default."""
        return result_in_cma(shape, dtype, self.device)

    def wrong(self, text: str) -> ArgumentError:
        """Return the error of an argument; `text` says what was found and what was expected."""
        return ArgumentError(f"{self.cu}: {text}", self.cu)

    @property
    def signature_text(self) -> str:
        """The call as text, e.g. ``vadd_0(a, b, c, n)``."""
        inputs = (p.names[-1] for p in self.parameters if p.kind != "out")
        return f"{self.cu}({', '.join(inputs)})"

    @cached_property
    def elements(self) -> Mapping[str, Any]:
        """What is known of the elements behind pointers: nothing on a board, or behind RTL."""
        return self._known("elements")

    @cached_property
    def numbers(self) -> Mapping[str, Any]:
        """What is known of the numbers in registers: nothing on a board, or behind RTL."""
        return self._known("numbers")

    def _known(self, what: str) -> Mapping[str, Any]:
        unit = getattr(self.device, "cus", {}).get(self.cu)
        found: Mapping[str, Any] = getattr(unit, what, {})
        return found

    def _launch(self, words: dict[str, bytes], held: list[Any]) -> None:
        """Write the arguments: a slice for each run of registers.

        A Python register write costs about 31 us on the board, a slice of `mmio.array` about as
        much for a whole block.
        """
        for layout in self._layouts:
            self._array[layout.span] = layout.of_bytes([words[name] for name in layout.names])
        for parameter in self.parameters:
            if parameter.kind == "memory" and parameter.name in words:
                data = np.frombuffer(words[parameter.name], np.uint32)
                start = parameter.offset >> 2
                self._array[start : start + len(data)] = data
        # Nothing says which of them the kernel writes.
        self._held = self._results = tuple(held)

    def _read(self, parameter: Parameter) -> int:
        first = parameter.offset >> 2
        return sum(int(self._array[first + i]) << 32 * i for i in range(parameter.nwords))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.signature_text}>"
