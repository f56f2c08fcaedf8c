"""The memory that the board shares with the PL process (layout: ``engines/rtl/layout.hpp``)."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass

from . import layout as at
from .layout import FaultKind
from .records import counters_nbytes, trace_nbytes

NO_UNIT = 0xFFFF_FFFF


@dataclass(frozen=True)
class PlFault:
    """How the PL process ended, as it said itself."""

    kind: FaultKind
    unit: int | None
    port: str
    text: str
    cycle: int
    address: int | None
    access: str
    signal: int


class PlMemory:
    """The page of the PL, a box for each unit, the counters of so many ports, and the trace."""

    def __init__(self, units: int, ports: int) -> None:
        starts = [at.PAGE_BYTES + i * at.BOX_BYTES for i in range(units)]
        counters_at = at.PAGE_BYTES + units * at.BOX_BYTES
        trace_at = (counters_at + counters_nbytes(max(ports, 1)) + 63) & ~63
        nbytes = (trace_at + trace_nbytes(at.TRACE_RECORDS) + 4095) & ~4095
        self.fd = os.memfd_create("pl", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, nbytes)
        view = memoryview(mmap.mmap(self.fd, nbytes))
        self.page = view[: at.PAGE_BYTES]
        self.words, self.quads = self.page.cast("I"), self.page.cast("Q")
        self.raw = [view[start : start + at.BOX_BYTES] for start in starts]
        self.boxes = [raw.cast("I") for raw in self.raw]
        self.box_quads = [raw.cast("Q") for raw in self.raw]
        self.quads[at.P_COUNTERS_AT], self.quads[at.P_TRACE_AT] = counters_at, trace_at
        self.counters, self.trace = view[counters_at:trace_at], view[trace_at:]

    def clear(self, cycle: int | None) -> None:
        """Empty it for a new process, but for what counts on from `cycle`."""
        places = bytes(self.page[64:80])
        self.page[:] = bytes(at.PAGE_BYTES)
        self.page[64:80] = places
        self.words[at.P_MAGIC], self.words[at.P_VERSION] = at.MAGIC, at.VERSION
        self.words[at.P_NUNITS] = len(self.raw)
        for raw in self.raw:
            kept = [(part, bytes(raw[part])) for part in at.B_KEPT if cycle is not None]
            raw[: at.B_WAVES.start] = bytes(at.B_WAVES.start)
            for part, content in kept:
                raw[part] = content
        if cycle is None:
            self.counters[:] = bytes(len(self.counters))
        else:
            self.quads[at.P_CYCLE] = cycle

    def fault(self) -> PlFault:
        """Return how the process ended; its kind is NONE where it ended without a word."""
        words, unit = self.words, self.words[at.P_UNIT]
        return PlFault(
            FaultKind(words[at.P_KIND]),
            unit if unit < len(self.raw) else None,
            self._text(at.P_PORT),
            self._text(at.P_MESSAGE),
            self.quads[at.P_FAULT_CYCLE] or self.quads[at.P_CYCLE],
            self.quads[at.P_ADDRESS] if words[at.P_PHYSICAL] else None,
            {1: "read from", 2: "wrote to"}.get(words[at.P_ACCESS], "touched"),
            words[at.P_SIGNAL],
        )

    def _text(self, part: slice) -> str:
        return bytes(self.page[part]).split(b"\0", 1)[0].decode(errors="replace")
