"""Ctrl-C in the middle of what must not be left half done."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def deferred_interrupt() -> Iterator[None]:
    """Hold SIGINT back until the block has ended; only the main thread ever gets it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = signal.getsignal(signal.SIGINT)
    if not callable(usual):  # ignored, or not Python's to handle
        yield
        return
    caught: list[FrameType | None] = []

    def note(_number: int, frame: FrameType | None) -> None:
        caught.append(frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if caught:
            usual(signal.SIGINT, caught[0])
