"""What ended the PL process, as the exception that a program gets."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from pynq_torch.errors import KernelError, KernelFault, RtlProtocolError, RtlTimeout

from .layout import FaultKind

if TYPE_CHECKING:
    from pynq_torch.board.memory import PhysicalMemory

    from .process import Pl, PlFault

#: Transactions shown with an error.
_SHOWN = 5
#: How `check_reset` of ``checker.hpp`` begins where the model itself gave up.
_IN_RESET = "stops in its reset: "


def error_of(pl: Pl, memory: PhysicalMemory, asked: str = "") -> KernelError:
    """Return the exception for the end of `pl`.

    Parameters
    ----------
    pl : Pl
        Ended.
    memory : PhysicalMemory
        To say where an address lies.
    asked : str
        The unit whose register a program accessed when it came to light.
    """
    fault = pl.fault()
    cu = pl.units[fault.unit] if fault.unit is not None else asked or ", ".join(pl.units)
    other = f" {asked} and the other units were reset with it." if asked and asked != cu else ""
    text, kind, address = _text(cu, fault, memory)
    tail = pl.printed.splitlines()[-12:]
    printed = "\nThe model printed:\n  " + "\n  ".join(tail) if tail else ""
    message = f"{text}{other}{_last(pl, cu, fault)}{printed}"
    if issubclass(kind, KernelFault):
        return kind(message, cu, address)
    return kind(message, cu)


def _text(
    cu: str, fault: PlFault, memory: PhysicalMemory
) -> tuple[str, type[KernelError], int | None]:
    where = f"cycle {fault.cycle}" + (f", port {fault.port}" if fault.port else "")
    if fault.kind == FaultKind.ACCESS and fault.address is not None:
        place = memory.describe(fault.address)
        return (
            f"{cu} {fault.access} memory outside its buffers: physical address "
            f"0x{fault.address:08x} is not its own: {place} ({where}; the bus answers DECERR). "
            "Check the lengths and addresses given to the kernel, and its loop bounds.",
            KernelFault,
            fault.address,
        )
    if fault.kind == FaultKind.PROTOCOL and fault.text.startswith(_IN_RESET):
        return (f"{cu} cannot be simulated, its RTL {fault.text}.", KernelFault, None)
    if fault.kind == FaultKind.PROTOCOL:
        return (
            f"{cu} broke a rule of AXI ({where}): {fault.text}. On the board this loses data or "
            "hangs; record it with board.waves(...).",
            RtlProtocolError,
            None,
        )
    if fault.kind == FaultKind.TIMEOUT:
        return (
            f"{cu} does not end: {fault.text} Waves of its last cycles show why "
            "(board.waves(...)); a run that needs longer wants use_board('rtl', timeout_cycles=N).",
            RtlTimeout,
            None,
        )
    if fault.kind == FaultKind.STUCK:
        return (
            f"{cu}: its RTL does not return from cycle {fault.cycle} (or one of the 63 after it): "
            "no cycle has ended since, and the simulator computed all the time. Is there an "
            "endless loop in an always block? A loop that can be synthesised has a constant bound.",
            RtlTimeout,
            None,
        )
    if fault.kind == FaultKind.MODEL:
        return (f"{cu}'s RTL stopped in cycle {fault.cycle}: {fault.text}.", KernelFault, None)
    if fault.kind == FaultKind.SETUP:
        return (f"{cu} cannot be simulated: {fault.text}.", KernelFault, None)
    name = signal.Signals(fault.signal).name if fault.signal in set(signal.Signals) else ""
    how = f"the process was ended by {name}" if name else fault.text or "the process is gone"
    return (f"the PL crashed with {cu} in cycle {fault.cycle}: {how}.", KernelFault, None)


def _last(pl: Pl, cu: str, fault: PlFault) -> str:
    """Return the last transactions of the unit, a line each."""
    if fault.kind in (FaultKind.SETUP, FaultKind.NONE):
        return ""
    seen = [t for t in pl.trace_window(last=64).transactions if t.unit == cu][-_SHOWN:]
    if not seen:
        return "\nNothing had moved on its buses."
    return "\nThe last transactions on its buses:\n  " + "\n  ".join(map(str, seen))
