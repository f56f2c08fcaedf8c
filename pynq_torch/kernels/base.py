"""The driver that every kernel has: arguments in one block, start, bounded wait."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from pynq import DefaultIP
from pynq.buffer import PynqBuffer

from pynq_torch import buffers, events
from pynq_torch.diagnosis import control_bits
from pynq_torch.diagnosis.streams import stream_hint
from pynq_torch.errors import (
    BoardHang,
    BusError,
    KernelBusy,
    KernelError,
    PynqTorchError,
    StaleOverlay,
)
from pynq_torch.waits import kernel_timeout, wait_kernel
from pynq_torch.waits.polling import check_timeout, ends

from . import calls
from .arguments import check_elements
from .registers import Layout, Parameter, blocks, parameters_of

__all__ = ["Kernel", "KernelStart", "StaleOverlay"]

_START, _DONE, _IDLE, _CONTINUE = 0x01, 0x02, 0x04, 0x10
#: Owner of a run that its thread gave up.
_NOBODY = threading.Thread(name="nobody")


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


class Kernel(DefaultIP):
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
    """

    def __init__(self, description: dict[str, Any]) -> None:
        super().__init__(description)
        self.cu: str = description["fullpath"]
        self.kernel_name: str = description["type"].split(":")[2]
        self.parameters: tuple[Parameter, ...] = parameters_of(self._registers or {})
        self._by_name = {name: p for p in self.parameters for name in p.names}
        self._layouts = tuple(Layout(run, self.cu) for run in blocks(self.parameters))
        arrays = any(p.kind == "memory" for p in self.parameters)
        #: What `start_raw` writes, where one slice does it.
        self._layout = self._layouts[0] if len(self._layouts) == 1 and not arrays else None
        fields = self._registers["CTRL"]["fields"] if self._registers else {}
        # ap_ctrl_chain holds AP_DONE until AP_CONTINUE. Few handoffs list the bit, so the first run
        # tells: there AP_DONE can be read twice.
        self._chain: bool | None = True if "AP_CONTINUE" in fields else None
        self._array = self.mmio.array
        self._run = KernelStart(self)
        self._lock = threading.Lock()
        self._owner: threading.Thread | None = None
        self._held: Sequence[Any] = ()
        self._results: Sequence[PynqBuffer] = ()
        #: The run as observers were told of it; ``None`` while nobody watches.
        self._told: events.KernelCall | None = None
        self._loaded = getattr(self.device, "timestamp", None)

    # ---- the run -----------------------------------------------------------------------------

    def start(self, *arguments: Any, **registers: Any) -> KernelStart:
        """Write the arguments and start; do not wait.

        Parameters
        ----------
        *arguments, **registers
            In order of the registers, or by name. Integers as they are, floats as float32 (float64
            in a 64-bit register), buffers and tensors in CMA memory by physical address.

        Raises
        ------
        KernelBusy
            The compute unit is running; nothing is changed.
        ArgumentError
            A tensor or buffer has elements of another size than the kernel's C++, where that is
            known: on the virtual boards, behind compiled C++.
        """
        return self._begin(self._bind(arguments, registers))

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
            begin = time.perf_counter()
            for buffer in flush:
                buffer.flush()
            if told is not None:
                told.transfer_s = time.perf_counter() - begin
            self._array[self._layout.span] = words
            self._held, self._results = (*held, *results), results
            self._set_off(told)
        except BaseException:
            self._release()
            raise
        return self._run

    def _begin(self, bound: dict[str, Any]) -> KernelStart:
        values = {name: self._reach(value) for name, value in bound.items()}
        self._acquire()
        try:
            held = [v for v in values.values() if isinstance(v, PynqBuffer)]
            words = {name: self._encode(self._by_name[name], v) for name, v in values.items()}
            told = calls.prepare(self, values, words) if events.runs else None
            begin = time.perf_counter()
            for buffer in held:
                buffer.flush()
            if told is not None:
                told.transfer_s = time.perf_counter() - begin
            self._launch(words, held)
            self._set_off(told)
        except BaseException:
            self._release()
            raise
        return self._run

    def wait(self, timeout_s: float = 10.0) -> None:
        """Wait until the compute unit has finished.

        Parameters
        ----------
        timeout_s : float
            Seconds.

        Raises
        ------
        KernelTimeout
            It has not; the message is a diagnosis. Its buffers are kept until it has.
        KernelError
            It was never started.
        """
        timeout_s = check_timeout(timeout_s)
        self._check_loaded()
        if self._owner is None:
            raise KernelError(f"{self.cu} was not started: call start(...) before wait()", self.cu)
        seen = 0

        def over() -> bool:
            nonlocal seen
            seen = int(self._array[0])
            return bool(seen & _DONE) or seen & (_START | _IDLE) == _IDLE

        try:
            ended = ends(over, timeout_s)
        except BusError as error:
            raise self._vanished() from error
        except PynqTorchError as error:
            # The board ended the run (a fault): the unit is free again.
            self._release(type(error).__name__)
            raise
        except BaseException:
            self.abandon()
            raise
        if not ended:
            self.abandon()
            raise kernel_timeout(self, self.cu, timeout_s, seen)
        # The registers are the new overlay's by then: its unit stands still, ours did not finish.
        self._check_loaded()
        if seen & _DONE and self._chain is not False:
            if self._chain is None:
                self._chain = bool(int(self._array[0]) & _DONE)
            if self._chain:
                self._array[0] = _CONTINUE
        results, told = self._results, self._told
        self._release()
        begin = time.perf_counter()
        for buffer in results:
            buffer.invalidate()
        if told is not None:
            told.transfer_s += time.perf_counter() - begin

    def has_ended(self) -> bool:
        """Whether the run that was started has ended: `wait`, which is still due, returns at once.

        Raises
        ------
        KernelFault
            It has crashed; there is nothing more to wait for.
        """
        try:
            seen = int(self._array[0])
        except BoardHang:
            raise  # it has not ended, and cannot
        except BusError as error:
            raise self._vanished() from error
        except PynqTorchError as error:
            self._release(type(error).__name__)
            raise
        return bool(seen & _DONE) or seen & (_START | _IDLE) == _IDLE

    def _vanished(self) -> StaleOverlay:
        """Return the error of a run whose registers have gone."""
        self._release("StaleOverlay")
        return StaleOverlay(
            f"{self.cu} has left the PL while it was running: another overlay is being loaded. "
            "Load this one again, and take the kernel from the new overlay.",
            self.cu,
        )

    def is_claimed(self) -> bool:
        """Whether a run was started that nobody has waited for, or that goes on though given up.

        A run that was started by writing registers is not known here.
        """
        if self._owner is not _NOBODY:
            return self._owner is not None
        try:
            return not self.has_ended()
        except BoardHang:
            return True
        except PynqTorchError:
            return False  # what was given up has crashed since: the unit stands still

    def is_mine(self) -> bool:
        """Whether it is this thread that has to wait for the run."""
        return self._owner is threading.current_thread()

    def pynq_torch_wait(self, timeout_s: float) -> None:
        """Wait for what `pynq_torch.wait` is asked for: also a run that registers started."""
        if self._owner is None:
            self._check_loaded()
            wait_kernel(self, timeout_s)
        else:
            self.wait(timeout_s)

    @property
    def last_run(self) -> Any:
        """The run that ended last, as the board counted it; ``None`` where it counts none.

        On the virtual boards: `number`, `seconds`, `kind` (where the numbers come from), `cycles`
        and `phases`. ``rtl`` counts cycles; ``csim`` has only the wall clock of this PC.
        """
        unit = getattr(self.device, "cus", {}).get(self.cu)
        return getattr(unit, "last_run", None)

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

    def is_idle(self) -> bool:
        """Whether the compute unit stands still (reads AP_CTRL, which clears AP_DONE)."""
        return bool(int(self._array[0]) & (_START | _IDLE) == _IDLE)

    # ---- arguments ---------------------------------------------------------------------------

    @property
    def signature_text(self) -> str:
        """The call as text, e.g. ``vadd_0(a, b, c, n)``."""
        inputs = (p.names[-1] for p in self.parameters if p.kind != "out")
        return f"{self.cu}({', '.join(inputs)})"

    def _bind(self, arguments: tuple[Any, ...], registers: dict[str, Any]) -> dict[str, Any]:
        inputs = [p for p in self.parameters if p.kind != "out"]
        if len(arguments) > len(inputs):
            hint = stream_hint(self.device, self.cu)
            raise TypeError(
                f"{self.signature_text} takes {len(inputs)} arguments; found {len(arguments)}"
                + (f". {hint}" if hint else "")
            )
        values = {p.name: v for p, v in zip(inputs, arguments, strict=False)}
        for name, value in registers.items():
            parameter = self._by_name.get(name)
            if parameter is None or parameter.kind == "out":
                raise TypeError(f"{self.signature_text} has no argument {name!r} to write")
            if parameter.name in values:
                raise TypeError(f"{self.signature_text}: argument {name!r} is given twice")
            values[parameter.name] = value
        missing = [p.names[-1] for p in inputs if p.name not in values and p.kind == "in"]
        if missing:
            raise TypeError(
                f"{self.signature_text}: missing {', '.join(missing)}. A register left out would "
                "keep the value of the run before."
            )
        return values

    @cached_property
    def _elements(self) -> Mapping[str, Any]:
        """What is known of the elements behind pointers: nothing on a board, or behind RTL."""
        unit = getattr(self.device, "cus", {}).get(self.cu)
        found: Mapping[str, Any] = getattr(unit, "elements", {})
        return found

    @staticmethod
    def _reach(value: Any) -> Any:
        """Return the buffer over a tensor in CMA memory; anything else as it is."""
        own = buffers.buffer_of(value) if hasattr(value, "data_ptr") else None
        return value if own is None else own

    def _encode(self, parameter: Parameter, value: Any) -> bytes:
        """Return the bytes to write for an argument."""
        what = f"{self.cu}: argument {parameter.names[-1]}"
        element = self._elements.get(parameter.name)
        if parameter.kind == "memory":
            values = np.ascontiguousarray(value)
            if element is not None:
                check_elements(self.cu, parameter.names[-1], values.dtype, element)
            raw = values.tobytes()
            if len(raw) > parameter.nbytes:
                raise ValueError(f"{what} holds {parameter.nbytes} bytes; found {len(raw)}")
            return raw + bytes(-len(raw) % 4)
        size = parameter.nbytes
        if isinstance(value, (bool, int, np.integer, np.bool_)):
            number, bits = int(value), 8 * size
            if not -(1 << bits - 1) <= number < 1 << bits:
                raise OverflowError(f"{what} has {bits} bits; found {number}")
            return (number & (1 << bits) - 1).to_bytes(size, "little")
        if isinstance(value, np.generic):
            return value.tobytes().ljust(size, b"\0")[:size]
        if isinstance(value, float):
            return struct.pack("<f" if size == 4 else "<d", value).ljust(size, b"\0")
        if isinstance(value, PynqBuffer) and value.device_address is not None:
            buffers.check_alive(value)
            if element is not None:
                check_elements(self.cu, parameter.names[-1], value.dtype, element)
            return int(value.physical_address).to_bytes(size, "little")
        raise TypeError(
            f"{what} is {type(value).__name__}; expected a number, or a buffer or tensor in CMA "
            "memory (buffers.to_buffer, buffers.empty_tensor)"
        )

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

    def _set_off(self, told: events.KernelCall | None) -> None:
        """Write AP_START; reported first, because on csim a short run is over when that returns."""
        if told is not None:
            self._told = calls.begun(told)
        try:
            self._array[0] = _START
        except BaseException as error:
            self._tell_end(type(error).__name__)
            raise

    def _read(self, parameter: Parameter) -> int:
        first = parameter.offset >> 2
        return sum(int(self._array[first + i]) << 32 * i for i in range(parameter.nwords))

    # ---- one at a time -----------------------------------------------------------------------

    def _check_loaded(self) -> None:
        if getattr(self.device, "timestamp", None) != self._loaded:
            self._release()
            raise StaleOverlay(
                f"{self.cu} belongs to an overlay that is no longer loaded: another one was "
                "downloaded since. Load it again, and take the kernel from the new overlay.",
                self.cu,
            )

    def _acquire(self) -> None:
        self._check_loaded()
        thread = threading.current_thread()
        with self._lock:
            owner = self._owner
            if owner is None or owner is _NOBODY or owner is thread:
                control = int(self._array[0])
                if control & (_DONE | _IDLE) == _DONE and self._chain is not False:
                    # The end of a run that nobody waited for: ap_ctrl_chain holds it.
                    self._array[0] = _CONTINUE
                    control = int(self._array[0])
                if control & _IDLE and not control & _START:
                    self._tell_end("nobody waited")
                    self._owner, self._held, self._results = thread, (), ()
                    return
                bits = ", ".join(control_bits(control)) or "running"
                who = f"an earlier run (AP_CTRL 0x{control:02x} [{bits}])"
                advice = (
                    "call wait() on what start() returned; a run that was interrupted ends by "
                    "itself, and one that hangs ends when the overlay is loaded again."
                )
            else:
                who = f"thread {owner.name!r}"
                advice = (
                    "wait for the other run, give each thread a compute unit of its own, or "
                    "hold a lock around the call."
                )
        raise KernelBusy(
            f"{self.cu} is running for {who}; thread {thread.name!r} tried to start it. Nothing "
            f"was lost: {advice}",
            self.cu,
        )

    def abandon(self) -> None:
        """Give up waiting for a run: any thread may start again once the unit is idle.

        The buffers of the run are kept until then, because it may still write to them.
        """
        self._tell_end("abandoned")
        self._owner = _NOBODY

    def _release(self, error: str = "") -> None:
        self._tell_end(error)
        self._held = self._results = ()
        self._owner = None

    # ---- for those who watch -----------------------------------------------------------------

    def _tell_end(self, error: str = "") -> None:
        if self._told is not None:
            told, self._told = self._told, None
            calls.ended(told, error)
            if not error:  # then the run that ended last is this one
                told.cycles = self._counted()

    def _counted(self) -> int | None:
        """Return the cycles of the last run where they were counted: those of a model are none."""
        run = self.last_run
        return run.cycles if run is not None and run.kind.startswith("cycles") else None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.signature_text}>"
