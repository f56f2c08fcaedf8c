"""What ended the PL process or a register access, as the exception that a program gets."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from pynq_torch.errors import (
    BusError,
    KernelError,
    KernelFault,
    PynqTorchError,
    RtlProtocolError,
    RtlTimeout,
)

from .layout import Answer, FaultKind

if TYPE_CHECKING:
    from pynq_torch.board.memory import PhysicalMemory

    from .build import BuiltModel
    from .process import Pl
    from .shared import PlFault

#: Transactions shown with an error.
_SHOWN = 5
#: How `check_reset` of ``checker.hpp`` begins where the model itself gave up.
_IN_RESET = "stops in its reset: "
#: The exception for a way to end, and its message.
_ENDS: dict[FaultKind, tuple[type[KernelError], str]] = {
    FaultKind.PROTOCOL: (
        RtlProtocolError,
        "{cu} broke a rule of AXI ({where}): {text}. On the board this loses data or hangs; "
        "record it with board.waves(...).",
    ),
    FaultKind.TIMEOUT: (
        RtlTimeout,
        "{cu} does not end: {text} Waves of its last cycles show why (board.waves(...)); a run "
        "that needs longer wants use_board('rtl', timeout_cycles=N).",
    ),
    FaultKind.STUCK: (
        RtlTimeout,
        "{cu}: its RTL does not return from cycle {cycle} (or one of the 63 after it): no cycle "
        "has ended since, and the simulator computed all the time. Is there an endless loop in an "
        "always block? A loop that can be synthesised has a constant bound.",
    ),
    FaultKind.SILENT: (
        KernelFault,
        "the process of the PL with {cu} did not answer in cycle {cycle}, and used no processor "
        "time: it was stopped by a signal (SIGSTOP), by a debugger, or for lack of memory. It was "
        "ended and started again: write the registers again, and start the run again.",
    ),
    FaultKind.ACCESS: (
        KernelFault,
        "{cu} {access} memory outside its buffers: physical address 0x{address:08x} is not its "
        "own: {place} ({where}; the bus answers DECERR). Check the lengths and addresses given to "
        "the kernel, and its loop bounds.",
    ),
    FaultKind.MODEL: (KernelFault, "{cu}'s RTL stopped in cycle {cycle}: {text}."),
    FaultKind.SETUP: (KernelFault, "{cu} cannot be simulated: {text}."),
    FaultKind.CRASH: (KernelFault, "the PL crashed with {cu} in cycle {cycle}: {text}."),
}


def error_of(pl: Pl, memory: PhysicalMemory, asked: str = "") -> KernelError:
    """Return the exception for the end of `pl`.

    Parameters
    ----------
    pl : Pl
        Ended.
    memory : PhysicalMemory
        To say what is at an address.
    asked : str
        The unit whose register a program accessed when it came to light.
    """
    fault = pl.fault()
    cu = pl.units[fault.unit] if fault.unit is not None else asked or ", ".join(pl.units)
    other = f" {asked} and the other units were reset with it." if asked and asked != cu else ""
    tail = pl.printed.splitlines()[-12:]
    printed = "\nThe model printed:\n  " + "\n  ".join(tail) if tail else ""
    kind, text = _text(cu, fault, memory)
    message = f"{text}{other}{_last(pl, cu, fault)}{printed}"
    if fault.kind == FaultKind.ACCESS and issubclass(kind, KernelFault):
        return kind(message, cu, fault.address)
    return kind(message, cu)


def _text(cu: str, fault: PlFault, memory: PhysicalMemory) -> tuple[type[KernelError], str]:
    if fault.kind == FaultKind.PROTOCOL and fault.text.startswith(_IN_RESET):
        return KernelFault, f"{cu} cannot be simulated, its RTL {fault.text}."
    end, text, place = fault.kind, fault.text, ""
    if fault.kind == FaultKind.ACCESS:
        if fault.address is None:
            end = FaultKind.CRASH
        else:
            place = memory.describe(fault.address)
    if end == FaultKind.CRASH:
        known = fault.signal in set(signal.Signals)
        ended = f"the process was ended by {signal.Signals(fault.signal).name}" if known else ""
        text = ended or text or "the process is gone"
    where = f"cycle {fault.cycle}" + (f", port {fault.port}" if fault.port else "")
    kind, message = _ENDS[end]
    facts = {**vars(fault), "text": text, "cu": cu, "place": place, "where": where}
    return kind, message.format_map(facts)


def _last(pl: Pl, cu: str, fault: PlFault) -> str:
    """Return the last transactions of the unit, a line each."""
    if fault.kind == FaultKind.SETUP:
        return ""
    seen = [t for t in pl.trace_window(last=64).transactions if t.unit == cu][-_SHOWN:]
    if not seen:
        return "\nNothing had moved on its buses."
    return "\nThe last transactions on its buses:\n  " + "\n  ".join(map(str, seen))


def answer_error(
    answer: Answer, name: str, cu: str, offset: int, what: str, model: BuiltModel
) -> PynqTorchError:
    """Return the exception for a register access that was refused, or never answered."""
    access = f"when register 0x{offset:02x} was {what}"
    if answer == Answer.NO_ANSWER:
        return RtlTimeout(
            f"{name} did not answer {access}: a handshake of its AXI4-Lite interface never came. "
            f"On the board this freezes the processor. The unit was reset.{_without_reset(model)}",
            cu,
        )
    word, kind = ("SLVERR", "slave") if answer == Answer.REFUSED else ("DECERR", "decode")
    return BusError(
        f"{name} answered {word} {access}: on the board this ends the program with a bus error. It "
        "has no such register, or refuses this access.",
        offset,
        kind,
    )


def dropped_bursts(cu: str, count: int, port: str) -> str:
    """Return what a reset of a unit with bursts on their way would bring about on the board."""
    bursts = "a burst" if count == 1 else f"{count} bursts"
    return (
        f"{cu} was reset with {bursts} on the way, the first on {port}: here they are forgotten. "
        "On the board the port of the PS answers them all the same, and the kernel takes the "
        "answers for others. Wait for AP_IDLE before a reset, or load the overlay again."
    )


def _without_reset(model: BuiltModel) -> str:
    """Say which inputs may be a reset that was not recognised as one."""
    if model.interfaces.resets:
        return ""
    low = [name for name, value in model.interfaces.constants.items() if not value]
    tied = f"; tied to 0: {', '.join(low)}" if low else ""
    return (
        f" No input of module {model.top} was recognised as a reset, so there was none{tied}. "
        "Names like ap_rst_n, aresetn, nrst, rst are."
    )
