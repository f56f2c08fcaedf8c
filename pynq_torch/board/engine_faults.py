"""Why an engine ended, as the exception that a program gets."""

from __future__ import annotations

import itertools
import signal
import warnings
from dataclasses import dataclass

from pynq_torch.errors import ArrayBoundsWarning, KernelFault, StreamWarning

from .memory import PhysicalMemory

_SIGNALS = {number.value: number.name for number in signal.Signals}
_ACCESSES = {1: "read from", 2: "wrote to"}


@dataclass(frozen=True)
class Ended:
    """What an engine that is dead has left behind (layout: ``engine.hpp``)."""

    name: str
    message: str  #: of the exception that the kernel raised
    printed: str
    signal: int
    access: int
    stray: bool  #: the access was outside the buffers, and `address` is a physical one
    address: int
    exit_code: int | None
    outside: str = ""  #: an index outside its array, which the kernel used before

    def error(self, memory: PhysicalMemory) -> KernelFault:
        """Return the exception; `memory` names the buffer that is nearest."""
        text, hint, printed = self._cause(memory)
        tail = printed.splitlines()[-12:]
        shown = "\nThe kernel printed:\n  " + "\n  ".join(tail) if tail else ""
        address = self._signed if self.stray else None
        before = f" Before that, {self.outside}." if self.outside else ""
        return KernelFault(f"{text}. {hint}{before}{shown}", self.name, address)

    @property
    def _signed(self) -> int:
        return self.address - (self.address >> 63 << 64)

    def _cause(self, memory: PhysicalMemory) -> tuple[str, str, str]:
        """Return what happened, what to do about it, and what to show of what was printed."""
        if self.stray:
            verb = _ACCESSES.get(self.access, "touched")
            place = memory.describe(self._signed)
            return (
                f"{self.name} {verb} memory outside its buffers: physical address "
                f"0x{self.address:08x} is not its own: {place}",
                "Check the lengths and addresses given to the kernel, and its loop bounds.",
                self.printed,
            )
        if self.message:
            hint = "The kernel's own code raised this; its testbench under g++ shows it as well."
            return f"{self.name} failed: {self.message}", hint, self.printed
        report = sanitizer_report(self.printed)
        if report is not None:
            text = f"{self.name} was stopped by the sanitizer: {report[0]}"
            return text, "The lines below name the place in the source.", "\n".join(report[1])
        if self.signal in (signal.SIGSEGV, signal.SIGBUS):
            what = "an index outside a local array, or a stack overflow"
            if self.address < 4096:
                what = "a null pointer"
            text = f"{self.name} crashed ({_SIGNALS[self.signal]}): {what}"
            return text, "use_board('csim', sanitize=True) names the line.", self.printed
        if self.signal:
            text = f"{self.name} crashed ({_SIGNALS.get(self.signal, 'no signal')})"
            hint = "An assertion, a division by zero or an illegal operation in the kernel."
            return text, hint, self.printed
        hint = "use_board('csim', sanitize=True) may name the cause."
        if self.exit_code is not None and self.exit_code >= 0:
            hint = "A kernel must return, not call exit() or _exit()."
        return f"{self.name}'s process {_ending(self.exit_code)}", hint, self.printed


def _ending(code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended by itself (exit status {code})"
    return f"was killed by {_SIGNALS.get(-code, f'signal {-code}')}"


def sanitizer_report(printed: str) -> tuple[str, list[str]] | None:
    """Return what a sanitizer found and the lines of its traceback that are in the kernel."""
    lines = printed.splitlines()
    for at, line in enumerate(lines):
        if " runtime error: " in line or "ERROR: AddressSanitizer" in line:
            what = line.partition("ERROR: ")[2] or line
            frames = itertools.takewhile(
                lambda row: "pynq_torch::" not in row, (row for row in lines[at + 1 :])
            )
            return what.strip().partition(" at pc ")[0], [row.strip() for row in frames]
    return None


_TAILS: dict[type[Warning], str] = {
    ArrayBoundsWarning: "Board csim used what is beside the array; the PL has no such place, so a "
    "board computes something else. Check the loop bounds.",
    StreamWarning: "Board csim drops them; in the PL they are the first that the next run reads. "
    "Let its reader take as many as its writer gives.",
}


def warn_outside(ip: str, text: str, told: set[str]) -> None:
    """Warn of what an engine noted, once each; no text: there was nothing."""
    if text and text not in told:
        told.add(text)
        kind = StreamWarning if text.startswith("stream ") else ArrayBoundsWarning
        warnings.warn(f"{ip}: {text}. {_TAILS[kind]}", kind, stacklevel=3)
