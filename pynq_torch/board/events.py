"""A thread that waits for engines to finish, for programs that await interrupts."""

from __future__ import annotations

import os
import selectors
import threading
from collections.abc import Callable


class EventLoop:
    """Calls a function whenever an eventfd fires; its thread starts with the first watch."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._selector.register(self._wake, selectors.EVENT_READ, None)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False
        self.error: BaseException | None = None

    def watch(self, fd: int, callback: Callable[[], None]) -> None:
        """Call ``callback`` in the loop's thread each time ``fd`` fires."""
        with self._lock:
            self._selector.register(fd, selectors.EVENT_READ, callback)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="pynq_torch-events", daemon=True
                )
                self._thread.start()
        os.eventfd_write(self._wake, 1)

    def unwatch(self, fd: int) -> None:
        """Stop watching ``fd``."""
        with self._lock:
            if fd in self._selector.get_map():
                self._selector.unregister(fd)

    def _run(self) -> None:
        while not self._closed:
            for key, _ in self._selector.select():
                try:
                    os.eventfd_read(key.fd)
                except (BlockingIOError, OSError):
                    continue  # read meanwhile, or closed by unwatch in another thread
                if key.data is None:
                    continue
                try:
                    key.data()
                except Exception as error:  # noqa: BLE001 - kept, and raised in the program's thread
                    # Shown to the program at its next register access: nobody reads this thread.
                    self.error = error

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        os.eventfd_write(self._wake, 1)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)
        self._selector.close()
        os.close(self._wake)
