"""The virtual boards, and choosing one."""

from __future__ import annotations

import atexit
import os
import time
import warnings
from typing import TYPE_CHECKING, Any

from pynq_torch.errors import BoardError

from . import vendor

if TYPE_CHECKING:
    from pynq.pl_server.device import Device

    from .device import VirtualBoard
    from .remote import RemoteBoard

#: What each board is.
BOARDS = {
    "csim": "virtual PYNQ-Z2 on this PC; kernels are their compiled HLS C++",
    "rtl": "virtual PYNQ-Z2 on this PC; kernels are their RTL, simulated cycle by cycle",
    "local": "the board that pynq itself finds on this machine (a real PYNQ-Z2)",
    "remote": "a board that `python -m pynq_torch serve` has in another process, or elsewhere",
}
_current: VirtualBoard | RemoteBoard | None = None


def available_boards() -> dict[str, str]:
    """Return the boards that ``use_board`` knows, with a sentence each."""
    return dict(BOARDS)


def _made(name: str, options: dict[str, Any]) -> Any:
    kind = _kind(name)
    known = set(kind.__init__.__kwdefaults__ or ())
    unknown = set(options) - known
    if unknown:
        raise BoardError(
            f"board {name!r} has no option {', '.join(sorted(unknown))}; "
            f"it has {', '.join(sorted(known))}"
        )
    return kind(**options) if name == "remote" else kind(name, **options)


def _installed(board: VirtualBoard) -> VirtualBoard:
    _release()
    board.install()
    vendor.install()
    board.on_close(vendor.uninstall)
    return board


def use_board(name: str = "csim", **options: Any) -> Device:
    """Choose the board that pynq uses from now on.

    Parameters
    ----------
    name : str
        ``"csim"``, the virtual PYNQ-Z2 (default), ``"rtl"``, the same with RTL behind its
        registers, ``"local"``, the board pynq finds, or ``"remote"``, one that is served.
    **options
        For a virtual board: ``cma_bytes``, ``strict_cache``, ``guard``, ``kernels``, ``sanitize``,
        ``hang_timeout_s`` (see `VirtualBoard`); for ``"rtl"`` besides: ``memory``, ``stalls``,
        ``seed``, ``timeout_cycles`` (see `pynq_torch.board.rtl.board.RtlBoard`); for ``"remote"``:
        ``address``, ``access`` (see `pynq_torch.board.remote.RemoteBoard`).

    Returns
    -------
    pynq.Device
        The board; it is ``pynq.Device.active_device`` too.

    Raises
    ------
    BoardError
        The name is unknown, or there is no such board.
    """
    global _current
    if name not in BOARDS:
        raise BoardError(f"no board is called {name!r}; there are {', '.join(BOARDS)}")
    if name == "local":
        if options:
            raise BoardError(f"board 'local' takes no options; found {', '.join(options)}")
        _release()
        return _use_local()
    if name == "remote":
        return _use_remote(options)
    _current = board = _installed(_made(name, options))
    if name == "rtl":
        from .rtl.observe.watch import watch_from_environment

        watch_from_environment(board)
    return board


def ensure_board() -> Device:
    """Return the active device; where there is none, choose the default board first.

    Returns
    -------
    pynq.Device
        The active one: a real board where pynq finds one, else the virtual board in use, else
        ``use_board(PYNQ_TORCH_BOARD)``, by default ``"csim"``.
    """
    from pynq.pl_server.device import Device

    if _current is None and not _pynq_finds_a_board():
        return use_board(os.environ.get("PYNQ_TORCH_BOARD") or "csim")
    return Device.active_device


def _pynq_finds_a_board() -> bool:
    from pynq.pl_server.device import Device

    with warnings.catch_warnings():
        # pynq says so where it finds none; that is what we ask.
        warnings.filterwarnings("ignore", message="No devices found")
        return bool(Device.devices)


def _kind(name: str) -> type[Any]:
    if name == "remote":
        from .remote import RemoteBoard

        return RemoteBoard
    if name == "rtl":
        from .rtl.board import RtlBoard

        return RtlBoard
    from .device import VirtualBoard

    return VirtualBoard


def _use_remote(options: dict[str, Any]) -> Device:
    global _current
    _release()  # it may be the same one, which has one client
    remote: RemoteBoard = _made("remote", options)
    remote.install()
    _current = remote
    return remote


def _use_local() -> Device:
    from pynq.pl_server.device import Device

    from .device import _forget_clocks

    for name in ("_devices", "_active_device"):
        if name in vars(Device):
            delattr(Device, name)
    _forget_clocks()
    if not _pynq_finds_a_board():
        raise BoardError(
            "pynq finds no board on this machine. On a PYNQ-Z2 run as root with its environment "
            "sourced (sudo -i, or XILINX_XRT set); on a PC use board 'csim'."
        )
    return Device.active_device


@atexit.register
def _release() -> None:
    """Close the board in use, if `use_board` has made it."""
    global _current
    board, _current = _current, None
    if board is not None:
        board.close()


def _after_fork() -> None:
    if _current is not None:
        _current.left_in_child()


# Workers of a DataLoader are forked: what they free or start must not be their parent's.
os.register_at_fork(after_in_child=_after_fork)


def current_board() -> VirtualBoard | None:
    """Return the virtual board in use, or ``None``."""
    from .device import VirtualBoard

    return _current if isinstance(_current, VirtualBoard) else None


def wait_clock() -> float:
    """Return the seconds that bounded waits count, see `pynq_torch.waits`."""
    return time.perf_counter() if _current is None else _current.wait_clock()
