"""A real PYNQ-Z2 as it is served: its FPGA manager's files, and how a client's design is ended."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from pynq_torch.errors import BitstreamError

from .files import FIRMWARE, MANAGER, BoardFiles

__all__ = ["LocalFiles", "device_code"]

_READABLE = ("/proc/version", "/proc/meminfo", "/proc/device-tree/chosen/pynq_board")
#: UG470, tables 1-1 and 5-20: the XC7Z020's code without its revision, and the words before it.
_XC7Z020, _REVISION = 0x03727093, 0x0FFFFFFF
_SYNC, _WRITE_IDCODE = 0xAA995566, 0x30018001


def device_code(frames: bytes) -> int | None:
    """Return for which device a bitstream's frames say that they are; ``None`` without a word.

    Parameters
    ----------
    frames : bytes
        In the order of bytes that the FPGA manager takes (``.bin``).
    """
    words = np.frombuffer(frames[: len(frames) & ~3], "<u4")
    begins = np.flatnonzero(words == _SYNC)
    if not len(begins):
        return None
    writes = np.flatnonzero(words[begins[0] : begins[0] + 256] == _WRITE_IDCODE)
    at = begins[0] + writes[0] + 1 if len(writes) else len(words)
    return int(words[at]) if at < len(words) else None


class LocalFiles(BoardFiles):
    """The files of the board that this process runs on.

    Parameters
    ----------
    root : pathlib.Path
        Where its file system starts.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        super().__init__(dict, _no_download)
        self._root = root
        self._loaded = ""

    def read(self, path: str) -> bytes | None:
        """Return a file's content; None where there is none that a client may read."""
        if path not in (*_READABLE, f"{MANAGER}state", f"{MANAGER}flags"):
            return None
        real = self._real(path)
        return real.read_bytes() if real.is_file() else None

    def end_design(self) -> None:
        """Configure the PL again, where a client has: that stops every engine in it."""
        if self._loaded:
            self._real(f"{MANAGER}firmware").write_text(self._loaded)

    def _real(self, path: str) -> Path:
        return self._root / path.lstrip("/")

    def _store(self, name: str, data: bytes) -> None:
        code = device_code(data)
        if code is None or code & _REVISION != _XC7Z020:
            found = "no device" if code is None else f"device code 0x{code:08x}"
            raise BitstreamError(
                f"{name} is for {found}; expected the XC7Z020's (0x{_XC7Z020:08x}). A simulation "
                "image has no frames; build the real bitstream with Vivado for the PYNQ-Z2."
            )
        target = self._real(f"{FIRMWARE}{Path(name).name}")
        part = target.with_name(f"{target.name}.part")
        try:
            part.write_bytes(data)
            os.replace(part, target)
        except OSError:
            part.unlink(missing_ok=True)  # a full disk: leave nothing half written behind
            raise

    def _set_flags(self, flags: str) -> None:
        super()._set_flags(flags)
        self._real(f"{MANAGER}flags").write_text(flags)

    def _configure(self, name: str) -> None:
        self._real(f"{MANAGER}firmware").write_text(name)
        self._loaded = name
        state = (self.read(f"{MANAGER}state") or b"").decode().strip()
        if state != "operating":
            raise BitstreamError(
                f"{name}: the FPGA manager's state is {state!r} after it was loaded"
            )


def _no_download(path: Path) -> None:
    raise AssertionError(f"{path}: a real board is configured by its FPGA manager")
