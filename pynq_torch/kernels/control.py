"""AP_CTRL of a compute unit: who runs it, the bounded wait for its end, what is published of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from pynq import DefaultIP
from pynq.buffer import PynqBuffer

from pynq_torch import events
from pynq_torch.descriptions import answer_register
from pynq_torch.diagnosis import control_bits
from pynq_torch.diagnosis.streams import stream_hint
from pynq_torch.errors import (
    BoardHang,
    BusError,
    KernelBusy,
    KernelError,
    KernelFault,
    PynqTorchError,
    StaleOverlay,
)
from pynq_torch.hls.ap_ctrl import AP_CONTINUE, AP_DONE, AP_IDLE, AP_START, has_ended, is_idle
from pynq_torch.paths import HW
from pynq_torch.waits import kernel_timeout, wait_kernel
from pynq_torch.waits.polling import check_timeout, ends

from . import calls

__all__ = ["Control"]

#: Owner of a run that its thread gave up.
_NOBODY = threading.Thread(name="nobody")


class Control(DefaultIP):
    """A compute unit that runs for one thread at a time.

    Attributes
    ----------
    cu : str
        The compute unit's name in the overlay.
    kernel_name : str
        The kernel it is an instance of (VLNV name).
    """

    def __init__(self, description: dict[str, Any]) -> None:
        super().__init__(description)
        self.cu: str = description["fullpath"]
        self.kernel_name: str = description["type"].split(":")[2]
        fields = self._registers["CTRL"]["fields"] if self._registers else {}
        # ap_ctrl_chain holds AP_DONE until AP_CONTINUE. Few handoffs list the bit, so the first run
        # tells: there AP_DONE can be read twice.
        self._chain: bool | None = True if "AP_CONTINUE" in fields else None
        self._array = self.mmio.array
        # A board in another process starts a unit, and waits for it, by one message.
        self._start_there = getattr(self._array, "start", None)
        self._look = getattr(self._array, "look", partial(self._array.__getitem__, 0))
        self._lock = threading.Lock()
        self._owner: threading.Thread | None = None
        self._held: Sequence[Any] = ()
        self._results: Sequence[PynqBuffer] = ()
        #: The run as it was published; ``None`` while nobody has subscribed.
        self._told: events.KernelCall | None = None
        self._loaded = getattr(self.device, "timestamp", None)
        answers = answer_register(HW / "kernels" / self.kernel_name)
        offsets = [r["address_offset"] for r in (self._registers or {}).values()]
        # A kernel of another's with the same name may have an argument there, or fewer registers:
        # HLS decodes no more address bits than they need, so that others appear there again.
        self._answers = answers if answers is not None and answers.fits(offsets) else None

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
        KernelFault
            It has finished, and memory had answered it with an error: its result is not whole.
        """
        timeout_s = check_timeout(timeout_s)
        self._check_loaded()
        if self._owner is None:
            raise KernelError(f"{self.cu} was not started: call start(...) before wait()", self.cu)
        seen = self._seen_at_end(timeout_s)
        # The registers are the new overlay's by then: its unit is idle, ours did not finish.
        self._check_loaded()
        results = self._results
        self._acknowledge(seen)
        told = self._told
        fault = self._answered_errors()
        self._release("" if fault is None else "KernelFault")
        self._show(results, told)
        if fault is not None:
            raise fault

    def _seen_at_end(self, timeout_s: float) -> int:
        """Return the control register of a run that has ended; give the unit up otherwise."""
        seen = 0

        def over() -> bool:
            nonlocal seen
            seen = int(self._look())
            return has_ended(seen)

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
        return seen

    def _answered_errors(self) -> KernelFault | None:
        """Return the error of a run that ended although memory has refused an access of it."""
        if self._answers is None:
            return None
        errors = self._answers.errors(int(self._array[self._answers.offset >> 2]))
        if not errors:
            return None
        found = ", ".join(f"{answer} on {channel}" for channel, answer in errors.items())
        return KernelFault(
            f"{self.cu} ended, but memory answered {found}: its result is not whole. Check the "
            "addresses and lengths given to it: DECERR is an address without memory, SLVERR one "
            "that memory refuses (use_board('rtl') names the address).",
            self.cu,
        )

    def _acknowledge(self, seen: int) -> None:
        """Let the unit go on after its end, where it holds AP_DONE until then."""
        if seen & AP_DONE and self._chain is not False:
            if self._chain is None:
                self._chain = bool(int(self._array[0]) & AP_DONE)
            if self._chain:
                self._array[0] = AP_CONTINUE

    @staticmethod
    def _show(results: Sequence[Any], told: events.KernelCall | None) -> None:
        """Let the CPU see what a run has written."""
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
        return has_ended(seen)

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
        and `phases`. ``rtl`` counts cycles; ``csim`` has only the wall clock of this PC, and
        `pl_cycles` what a formula or an estimate gives the run, or why that is unknown.
        """
        unit = getattr(self.device, "cus", {}).get(self.cu)
        return getattr(unit, "last_run", None)

    def is_idle(self) -> bool:
        """Whether the compute unit stands still (reads AP_CTRL, which clears AP_DONE)."""
        return is_idle(int(self._array[0]))

    def _set_off(self, told: events.KernelCall | None) -> None:
        """Write AP_START; reported first, because on csim a short run is over when that returns."""
        if told is not None:
            self._told = calls.begun(told)
        try:
            if self._start_there is None:
                self._array[0] = AP_START
            else:
                also = None if self._answers is None else self._answers.offset
                self._start_there(also, self._results)
        except BaseException as error:
            self._tell_end(type(error).__name__)
            raise

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
                if control & (AP_DONE | AP_IDLE) == AP_DONE and self._chain is not False:
                    # The end of a run that nobody waited for: ap_ctrl_chain holds it.
                    self._array[0] = AP_CONTINUE
                    control = int(self._array[0])
                if is_idle(control):
                    self._tell_end("nobody waited")
                    self._owner, self._held, self._results = thread, (), ()
                    return
                bits = ", ".join(control_bits(control)) or "running"
                who = f"an earlier run (AP_CTRL 0x{control:02x} [{bits}])"
                hint = stream_hint(self.device, self.cu, only=True)
                advice = (
                    f"{'move its data, then ' if hint else ''}call wait() on what start() "
                    "returned; a run that was interrupted ends by itself, and one that hangs ends "
                    f"when the overlay is loaded again.{f' {hint}' if hint else ''}"
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

    # ---- what is published -----------------------------------------------------------------

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
