"""The driver that every kernel has: arguments in one block, start, bounded wait."""

from __future__ import annotations

import struct
import threading
from typing import Any

import numpy as np
from pynq import DefaultIP
from pynq.buffer import PynqBuffer

from .. import buffers
from ..diagnosis import control_bits
from ..errors import KernelBusy, KernelError, PynqTorchError, StaleOverlay
from ..polling import check_timeout, ends
from ..waits import kernel_timeout, wait_kernel
from .registers import Parameter, blocks, parameters_of

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
        self._blocks = blocks(self.parameters)
        fields = self._registers["CTRL"]["fields"] if self._registers else {}
        # ap_ctrl_chain holds AP_DONE until AP_CONTINUE. Few handoffs list the bit, so the first run
        # tells: there AP_DONE can be read twice.
        self._chain: bool | None = True if "AP_CONTINUE" in fields else None
        self._array = self.mmio.array
        self._lock = threading.Lock()
        self._owner: threading.Thread | None = None
        self._held: tuple[Any, ...] = ()
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
            The compute unit is at work; nothing is changed.
        """
        return self._begin(self._bind(arguments, registers))

    def _begin(self, bound: dict[str, Any], flush: bool = True) -> KernelStart:
        values = {name: self._reach(value) for name, value in bound.items()}
        self._acquire()
        try:
            held = [v for v in values.values() if isinstance(v, PynqBuffer)]
            words = {name: self._encode(self._by_name[name], v) for name, v in values.items()}
            if flush:
                for buffer in held:
                    buffer.flush()
            self._launch(words, held)
        except BaseException:
            self._release()
            raise
        return KernelStart(self)

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
        except PynqTorchError:
            self._release()  # the board ended the run (a fault): the unit is free again
            raise
        except BaseException:
            self.abandon()
            raise
        if not ended:
            self.abandon()
            raise kernel_timeout(self, self.cu, timeout_s, seen)
        if seen & _DONE and self._chain is not False:
            if self._chain is None:
                self._chain = bool(int(self._array[0]) & _DONE)
            if self._chain:
                self._array[0] = _CONTINUE
        held = self._held
        self._release()
        for buffer in held:
            buffer.invalidate()

    def pynq_torch_wait(self, timeout_s: float) -> None:
        """Wait for what `pynq_torch.wait` is asked for: also a run that registers started."""
        if self._owner is None:
            self._check_loaded()
            wait_kernel(self, timeout_s)
        else:
            self.wait(timeout_s)

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
            raise TypeError(
                f"{self.signature_text} takes {len(inputs)} arguments; found {len(arguments)}"
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

    @staticmethod
    def _reach(value: Any) -> Any:
        """Return the buffer over a tensor in CMA memory; anything else as it is."""
        own = buffers.buffer_of(value) if hasattr(value, "data_ptr") else None
        return value if own is None else own

    def _encode(self, parameter: Parameter, value: Any) -> bytes:
        """Return the bytes to write for an argument."""
        what = f"{self.cu}: argument {parameter.names[-1]}"
        if parameter.kind == "memory":
            raw = np.ascontiguousarray(value).tobytes()
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
            return int(value.physical_address).to_bytes(size, "little")
        raise TypeError(
            f"{what} is {type(value).__name__}; expected a number, or a buffer or tensor in CMA "
            "memory (buffers.to_buffer, buffers.empty_tensor)"
        )

    def _launch(self, words: dict[str, bytes], held: list[Any]) -> None:
        """Write arguments and AP_START: a slice for each run of registers.

        A Python register write costs about 31 us on the board, a slice of `mmio.array` about as
        much for a whole block.
        """
        for run in self._blocks:
            first, last = run[0], run[-1]
            block = np.zeros((last.offset + last.nbytes - first.offset) >> 2, np.uint32)
            for parameter in run:
                at = (parameter.offset - first.offset) >> 2
                block[at : at + parameter.nwords] = np.frombuffer(words[parameter.name], np.uint32)
            start = first.offset >> 2
            self._array[start : start + len(block)] = block
        for parameter in self.parameters:
            if parameter.kind == "memory" and parameter.name in words:
                data = np.frombuffer(words[parameter.name], np.uint32)
                start = parameter.offset >> 2
                self._array[start : start + len(data)] = data
        self._held = tuple(held)
        self._array[0] = _START

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
                    self._owner, self._held = thread, ()
                    return
                bits = ", ".join(control_bits(control)) or "running"
                who = f"an earlier run (AP_CTRL 0x{control:02x} [{bits}])"
            else:
                who = f"thread {owner.name!r}"
        raise KernelBusy(
            f"{self.cu} is at work for {who}; thread {thread.name!r} tried to start it. Nothing "
            "was lost: wait for the other run, give each thread a compute unit of its own, or "
            "hold a lock around the call.",
            self.cu,
        )

    def abandon(self) -> None:
        """Give up waiting for a run: any thread may start again once the unit is idle.

        The buffers of the run are kept until then, because it may still write to them.
        """
        self._owner = _NOBODY

    def _release(self) -> None:
        self._held = ()
        self._owner = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.signature_text}>"
