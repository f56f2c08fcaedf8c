"""AXI4-Stream connections: a shared-memory ring of beats each (layout: ``stream.hpp``)."""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass

RING_MAGIC = 0x52494E47
_HEADER = struct.Struct("<IIII QQQ II")
_SIDE_BYTES = 40
_DATA_OFFSET = 64
#: Beats a ring can hold in transit. Only a buffer between two processes: what a sender may leave
#: behind is `depth`.
CAPACITY = 4096
#: Beats that sit in register slices and skid buffers between two IPs without a FIFO. The IPs here
#: have two to four each; a program must not rely on more.
DEFAULT_DEPTH = 16


@dataclass(frozen=True)
class Endpoint:
    """One side of a stream: the IP's full name and its bus interface."""

    ip: str
    port: str

    def __str__(self) -> str:
        return f"{self.ip}.{self.port}"


class Ring:
    """A stream connection between two IPs.

    Parameters
    ----------
    source, sink : Endpoint or None
        The sender and the receiver; ``None`` where nothing that is modelled is connected.
    data_bytes : int
        TDATA width in bytes.
    depth : int
        Beats that FIFOs on the way hold when the receiver does not take them.
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
        stride = (_SIDE_BYTES + data_bytes + 7) & ~7
        nbytes = _DATA_OFFSET + stride * CAPACITY
        self.fd = os.memfd_create(f"ring-{source}-{sink}", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, nbytes)
        self._map = mmap.mmap(self.fd, nbytes)
        self.reset()

    def reset(self) -> None:
        """Empty the ring. Both sides must be at rest."""
        _HEADER.pack_into(
            self._map, 0, RING_MAGIC, self.data_bytes, CAPACITY, self.depth, 0, 0, 0, 0, 0
        )

    @property
    def beats_written(self) -> int:
        """Beats that went in."""
        return int.from_bytes(self._map[16:24], "little")

    @property
    def beats_read(self) -> int:
        """Beats that came out."""
        return int.from_bytes(self._map[24:32], "little")

    @property
    def packets(self) -> int:
        """TLASTs that went in."""
        return int.from_bytes(self._map[32:40], "little")

    @property
    def occupancy(self) -> int:
        """Beats waiting in the ring."""
        return self.beats_written - self.beats_read

    def close(self) -> None:
        """Give the memory back."""
        self._map.close()
        os.close(self.fd)

    def __repr__(self) -> str:
        width = self.data_bytes * 8
        return f"<Ring {self.source} -> {self.sink}, {width} bit, {self.occupancy} beats waiting>"
