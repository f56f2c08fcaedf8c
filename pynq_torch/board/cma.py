"""Which ranges of the CMA region are free, and which of them the engines may touch."""

from __future__ import annotations

import bisect
import mmap
import os

from pynq_torch.errors import CmaExhausted

_SLOT_BYTES = 16  # begin and end, 64 bits each
_GRANT_SLOTS = 1 << 16


class FreeRanges:
    """The free ranges of a region, sorted by address: [start, end)."""

    def __init__(self, start: int, end: int) -> None:
        self._ranges = [(start, end)]

    @property
    def nbytes(self) -> int:
        """Bytes in all ranges together."""
        return sum(end - start for start, end in self._ranges)

    @property
    def largest(self) -> int:
        """Bytes of the longest range."""
        return max((end - start for start, end in self._ranges), default=0)

    def take(self, nbytes: int, guard: int) -> tuple[int, int] | None:
        """Take the first range that is long enough; return its start and length."""
        for index, (start, end) in enumerate(self._ranges):
            room = end - start
            if room < nbytes:
                continue
            taken = min(room, nbytes + guard)  # the end of the region needs no guard page
            if room == taken:
                del self._ranges[index]
            else:
                self._ranges[index] = (start + taken, end)
            return start, taken
        return None

    def put_back(self, start: int, nbytes: int) -> None:
        """Free a range, joined with its free neighbours."""
        end = start + nbytes
        index = bisect.bisect_left(self._ranges, (start, end))
        if index < len(self._ranges) and self._ranges[index][0] == end:
            end = self._ranges.pop(index)[1]
        if index > 0 and self._ranges[index - 1][1] == start:
            index -= 1
            start = self._ranges.pop(index)[0]
        self._ranges.insert(index, (start, end))


class Grants:
    """The ranges that belong to buffers, a table in shared memory (layout: ``engine.hpp``)."""

    def __init__(self) -> None:
        self.nbytes = 16 + _GRANT_SLOTS * _SLOT_BYTES
        self.fd = os.memfd_create("grants", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, self.nbytes)
        self._words = memoryview(mmap.mmap(self.fd, self.nbytes)).cast("Q")
        self._generation = 0
        self._free_slots: list[int] = []
        self._next_slot = 0

    def take_slot(self) -> int:
        """Return a slot of the table that no buffer has."""
        slot = self._free_slots.pop() if self._free_slots else self._next_slot
        if slot >= _GRANT_SLOTS:
            raise CmaExhausted(f"more than {_GRANT_SLOTS} buffers are alive at once")
        self._next_slot = max(self._next_slot, slot + 1)
        return slot

    def free_slot(self, slot: int) -> None:
        """Let another buffer have the slot."""
        self._free_slots.append(slot)

    def grant(self, slot: int, begin: int, end: int) -> None:
        """Open ``[begin, end)`` to the engines in place of what the slot had."""
        # Engines may read at any moment, so every word is written at once (struct.pack_into writes
        # zeros first) and a range half written is empty.
        words, at = self._words, 2 + 2 * slot
        words[at + 1] = 0
        words[at] = begin
        words[at + 1] = end
        words[1] = self._next_slot
        self._generation += 1
        words[0] = self._generation
