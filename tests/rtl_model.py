"""A model's library driven from Python, signal by signal: slow, and enough to test one."""

from __future__ import annotations

import ctypes
from pathlib import Path


class _Signal(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("width", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
    ]


_HANDLE = ctypes.c_void_p


class _Api(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32),
        ("create", ctypes.CFUNCTYPE(_HANDLE, ctypes.c_uint32, ctypes.c_uint32)),
        ("destroy", ctypes.CFUNCTYPE(None, _HANDLE)),
        ("eval", ctypes.CFUNCTYPE(ctypes.c_int, _HANDLE)),
        ("error", ctypes.CFUNCTYPE(ctypes.c_char_p, _HANDLE)),
        (
            "signals",
            ctypes.CFUNCTYPE(ctypes.c_size_t, _HANDLE, ctypes.POINTER(ctypes.POINTER(_Signal))),
        ),
        ("wave_open", ctypes.CFUNCTYPE(ctypes.c_int, _HANDLE, ctypes.c_char_p)),
        ("wave_dump", ctypes.CFUNCTYPE(None, _HANDLE, ctypes.c_uint64)),
        ("wave_flush", ctypes.CFUNCTYPE(None, _HANDLE)),
        ("wave_close", ctypes.CFUNCTYPE(None, _HANDLE)),
        ("state", ctypes.CFUNCTYPE(_HANDLE, _HANDLE, ctypes.POINTER(ctypes.c_size_t))),
    ]


class Model:
    """One model; ``model["port"]`` reads and writes a signal."""

    def __init__(self, library: Path, *, seed: int = 1, fill: int = 0) -> None:
        entry = ctypes.CDLL(str(library)).pynq_torch_model
        entry.restype = ctypes.POINTER(_Api)
        self.api = entry().contents
        assert self.api.version == 2
        self.handle = self.api.create(seed, fill)
        rows = ctypes.POINTER(_Signal)()
        count = self.api.signals(self.handle, ctypes.byref(rows))
        self.signals = {rows[i].name.decode(): rows[i] for i in range(count)}
        self.time_ps = 0

    def _bytes(self, name: str) -> tuple[_Signal, int]:
        row = self.signals[name]
        for limit in (8, 16, 32, 64):
            if row.width <= limit:
                return row, limit // 8
        return row, (row.width + 31) // 32 * 4

    def __getitem__(self, name: str) -> int:
        row, nbytes = self._bytes(name)
        return int.from_bytes(ctypes.string_at(row.data, nbytes), "little")

    def __setitem__(self, name: str, value: int) -> None:
        row, nbytes = self._bytes(name)
        ctypes.memmove(row.data, value.to_bytes(nbytes, "little"), nbytes)

    @property
    def error(self) -> str:
        return self.api.error(self.handle).decode()

    def eval(self) -> int:
        return self.api.eval(self.handle)

    def clock(self, cycles: int = 1, *, waves: bool = False) -> int:
        failed = 0
        for _ in range(cycles):
            for level in (0, 1):
                self["ap_clk"] = level
                failed |= self.eval()
                if waves:
                    self.api.wave_dump(self.handle, self.time_ps)
                    self.time_ps += 5000
        return failed

    def reset(self) -> None:
        self["ap_rst_n"] = 0
        self.clock(4)
        self["ap_rst_n"] = 1

    def close(self) -> None:
        self.api.destroy(self.handle)
