"""A UIO device with the behaviour of Linux's ``uio_pdrv_genirq`` driver, and its open files."""

from __future__ import annotations

import errno
import os
import struct
import threading
import weakref


class UioDevice:
    """One interrupt line behind ``/dev/uioN``.

    The driver disables the line in its handler and counts the event; a program that has read the
    count writes 1 to enable the line again. The line is level triggered: if it is still high then,
    it fires at once. (Linux, drivers/uio/uio_pdrv_genirq.c and driver-api/uio-howto.)
    """

    def __init__(self, name: str) -> None:
        self.name = name  #: what ``/sys/class/uio/uioN/name`` says
        self.count = 0  #: interrupts since the board was made
        self.enabled = True  #: whether the line would fire: at once, as after the driver's probe
        self._level = False
        self._lock = threading.RLock()  # a file may be collected while it is held
        self._files: weakref.WeakSet[UioFile] = weakref.WeakSet()

    def set_level(self, level: bool) -> None:
        """Drive the line; an enabled line that is high fires."""
        with self._lock:
            self._level = level
            self._fire()

    def enable(self, on: bool) -> None:
        """Enable or disable the line, as a write of 1 or 0 to the file does."""
        with self._lock:
            self.enabled = on
            self._fire()

    def attach(self, file: UioFile) -> None:
        """Let ``file`` know of every event from now on."""
        with self._lock:
            self._files.add(file)

    def detach(self, file: UioFile) -> None:
        """Forget a file that is being closed."""
        with self._lock:
            self._files.discard(file)

    def _fire(self) -> None:
        if self._level and self.enabled:
            self.enabled = False
            self.count += 1
            for file in list(self._files):
                file.signal()


class UioFile:
    """An open ``/dev/uioN``: a real file descriptor, fit for ``add_reader``, select and epoll."""

    def __init__(self, device: UioDevice) -> None:
        self.device = device
        self.closed = True
        self._fd = os.eventfd(0, os.EFD_CLOEXEC)
        self.closed = False
        device.attach(self)

    def signal(self) -> None:
        """Make the descriptor readable; called by the device."""
        if not self.closed:
            os.eventfd_write(self._fd, 1)

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        if self.closed:
            raise ValueError("this UIO file is closed")
        return self._fd

    def read(self, nbytes: int = 4) -> bytes:
        """Wait for an interrupt and return the count of all so far, 4 bytes in the CPU's order."""
        if nbytes != 4:
            raise OSError(errno.EINVAL, f"a UIO file is read 4 bytes at a time, not {nbytes}")
        os.eventfd_read(self.fileno())
        return struct.pack("=I", self.device.count & 0xFFFFFFFF)

    def write(self, data: bytes) -> int:
        """Enable (any non-zero word) or disable (zero) the interrupt; 4 bytes."""
        if len(data) != 4:
            raise OSError(errno.EINVAL, f"a UIO file takes 4 bytes at a time, not {len(data)}")
        self.device.enable(any(data))
        return 4

    def close(self) -> None:
        """Close the descriptor; a second call does nothing."""
        if not self.closed:
            self.device.detach(self)
            self.closed = True
            os.close(self._fd)

    def __enter__(self) -> UioFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
