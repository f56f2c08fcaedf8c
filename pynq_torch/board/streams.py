"""AXI4-Stream connections: a shared-memory ring of beats each (layout: ``stream.hpp``)."""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass

_HEADER = struct.Struct("<IIII QQQ II QII")
_SIDE_BYTES = 40
_WITHDRAWN_AT = 36  # of a beat's side channels
_DATA_OFFSET = 64
#: Beats a ring can hold in transit. Only a buffer between two processes: what a sender may leave
#: behind is `depth`.
CAPACITY = 4096
#: Beats that sit in register slices and skid buffers between two IPs without a FIFO. The IPs here
#: have two to four each; a program must not rely on more.
DEFAULT_DEPTH = 16


def memfd_name(text: str) -> str:
    """Return a name for shared memory, which Linux shows in ``/proc``; it has room for 249 bytes.

    Names of IPs have no limit.
    """
    return text.encode()[:249].decode(errors="ignore")


@dataclass(frozen=True)
class Endpoint:
    """One side of a stream: the IP's full name and its bus interface."""

    ip: str
    port: str

    def __str__(self) -> str:
        return f"{self.ip}.{self.port}"


def _counter(at: int, text: str) -> int:
    return property(lambda ring: int.from_bytes(ring._map[at : at + 8], "little"), doc=text)  # type: ignore[return-value]


class Ring:
    """A stream connection between two IPs.

    `source` or `sink` is None where nothing that is modelled is connected. `depth` is how many
    beats the FIFOs on the way hold when the receiver does not take them.
    """

    def __init__(
        self,
        source: Endpoint | None,
        sink: Endpoint | None,
        data_bytes: int,
        depth: int = DEFAULT_DEPTH,
    ) -> None:
        self.source = source
        self.sink = sink
        self.data_bytes = data_bytes
        self.depth = depth
        self._stride = (_SIDE_BYTES + data_bytes + 7) & ~7
        nbytes = _DATA_OFFSET + self._stride * CAPACITY
        self.fd = os.memfd_create(memfd_name(f"ring-{source}-{sink}"), os.MFD_CLOEXEC)
        os.ftruncate(self.fd, nbytes)
        self._map = mmap.mmap(self.fd, nbytes)
        self.reset()

    def reset(self) -> None:
        """Empty the ring. Both sides must be at rest."""
        header = (0, self.data_bytes, CAPACITY, self.depth, *[0] * 8)
        _HEADER.pack_into(self._map, 0, *header)
        self.fifo = max(self.depth - DEFAULT_DEPTH, 0)

    @property
    def fifo(self) -> int:
        """Beats of `depth` that are in FIFOs, which a reset of the sender does not empty."""
        return int.from_bytes(self._map[56:60], "little")

    @fifo.setter
    def fifo(self, beats: int) -> None:
        self._map[56:60] = beats.to_bytes(4, "little")

    beats_written = _counter(16, "Beats that went in.")
    beats_read = _counter(24, "Beats that came out.")
    packets = _counter(32, "TLASTs that went in.")
    withdrawn_before = _counter(
        48, "Beats that had gone in when the sender last took back what it could; 0: it never did."
    )

    @property
    def occupancy(self) -> int:
        """Beats waiting in the ring."""
        read = self.beats_read  # first: the other count is never behind it
        return self.beats_written - read - self._withdrawn_from(read)

    @property
    def full(self) -> bool:
        """Whether every slot is in use, even by a beat that was taken back and not yet passed."""
        read = self.beats_read
        return self.beats_written - read >= CAPACITY

    def lets_go_on(self, *, for_data: bool) -> bool:
        """Whether who waits for a beat (`for_data`), or for room, is about to wake up."""
        if for_data:
            return self.occupancy > 0
        return self.occupancy <= self.depth and not self.full

    @property
    def left_over(self) -> int:
        """Beats waiting that were in a FIFO when the sender was reset, where no reset reaches."""
        read = self.beats_read
        return max(self.withdrawn_before - read - self._withdrawn_from(read), 0)

    def _withdrawn_from(self, read: int) -> int:
        """Beats from number `read` on that the sender took back and nobody has passed."""
        first = _DATA_OFFSET + _WITHDRAWN_AT
        return sum(
            self._map[first + position % CAPACITY * self._stride]
            for position in range(read, self.withdrawn_before)
        )

    def close(self) -> None:
        """Give the memory back."""
        self._map.close()
        os.close(self.fd)

    def __repr__(self) -> str:
        width = self.data_bytes * 8
        return f"<Ring {self.source} -> {self.sink}, {width} bit, {self.occupancy} beats waiting>"
