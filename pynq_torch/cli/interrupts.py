"""SIGTERM as an orderly end, for commands that have other processes to end first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["ended_in_order"]


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise ``SystemExit`` within the block, with a shell's exit status.

    A signal that the caller ignores, as under ``nohup``, stays ignored. Ctrl-C is Python's own
    ``KeyboardInterrupt`` already.
    """

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    here = threading.current_thread() is threading.main_thread()  # signals belong to it
    mine = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if here and signal.getsignal(number) is signal.SIG_DFL
    ]
    for number in mine:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)
