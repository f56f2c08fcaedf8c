"""What the PL process writes into shared memory: transactions on the buses, counters of the ports.

The layouts are those of ``board/engines/rtl/trace.hpp`` and ``counters.hpp``.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

import numpy as np

__all__ = [
    "PortCounters",
    "PortRow",
    "TraceWindow",
    "Transaction",
    "counters_nbytes",
    "read_counters",
    "read_cycle",
    "read_trace",
    "trace_nbytes",
]

Shared: TypeAlias = mmap.mmap | memoryview | bytes | bytearray

_TRACE_MAGIC, _COUNTERS_MAGIC = 0x54524143, 0x434E5452
_HEADER_NBYTES = 64
_RECORD = np.dtype(
    [(name, "<u8") for name in ("begin", "first", "end", "address")]
    + [("bytes", "<u4"), ("beats", "<u4"), ("value", "<u8"), ("id", "<u4"), ("port", "<u2")]
    + [(name, "u1") for name in ("kind", "resp", "size", "burst")]
    + [("flags", "<u2"), ("stalls", "<u4")]
)
#: What a port counts in a direction.
_COUNTS = (
    "transactions", "beats", "bytes", "busy", "stall_address", "stall_memory", "stall_design",
    "wait_response", "latency_sum", "latency_max", "errors",
)  # fmt: skip
_DIRECTION = np.dtype([(name, "<u8") for name in (*_COUNTS, "reserved")])
#: By number in a record.
KINDS = ("read", "write", "register read", "register write", "stream in", "stream out")
RESPONSES = ("OKAY", "EXOKAY", "SLVERR", "DECERR")
BURSTS = ("FIXED", "INCR", "WRAP")
_CUT = 1


@dataclass(frozen=True)
class PortRow:
    """A row of the board's table of ports, which records refer to by number."""

    unit: str  #: the compute unit, ``"gemm_0"``
    port: str  #: its port or bundle, ``"m_axi_gmem"``
    width_bits: int = 0  #: of the data; 0 where nobody knows

    def __str__(self) -> str:
        return f"{self.unit}.{self.port}"


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transaction on a bus, from its address to its last data or response.

    Parameters
    ----------
    cycle, first, done : int
        Of the PL's clock: address (of a stream: its first beat), first data beat, end.
    unit, port : str
        Where.
    kind : str
        ``"read"`` and ``"write"`` of memory by the design, ``"register read"`` and ``"register
        write"`` by the PS, ``"stream in"`` and ``"stream out"`` for a packet.
    address : int
        Physical; in the unit for registers.
    beats, bytes : int
        Moved; writes count the bytes whose strobe was high.
    resp : str
        ``"OKAY"``, ``"SLVERR"`` or ``"DECERR"``.
    value : int
        Of the register; the first 8 bytes of a burst, least significant first.
    id : int
        ARID or AWID; TDEST.
    beat_bytes : int
        Bytes that a beat may carry.
    burst : str
        ``"INCR"``, ``"FIXED"`` or ``"WRAP"``.
    stalls : int
        Cycles in which data could have moved and the design was not ready.
    cut : bool
        It never ended: `done` is when the board gave up, or the run was over.
    """

    cycle: int
    unit: str
    port: str
    kind: str
    address: int
    beats: int
    bytes: int
    resp: str
    first: int
    done: int
    value: int = 0
    id: int = 0
    beat_bytes: int = 0
    burst: str = "INCR"
    stalls: int = 0
    cut: bool = False

    @property
    def latency(self) -> int:
        """Cycles from the address to the end."""
        return self.done - self.cycle

    def __str__(self) -> str:
        where = f"{self.unit}.{self.port}"
        what = "" if self.kind.startswith("stream") else f" at 0x{self.address:08x}"
        if self.kind.startswith("register"):
            moved = f" = 0x{self.value:08x}"
        else:
            moved = f", {self.beats} beats, {self.bytes} bytes"
        end = "never ended" if self.cut else f"ended at {self.done}"
        resp = "" if self.resp == "OKAY" else f", {self.resp}"
        return f"cycle {self.cycle}: {where} {self.kind}{what}{moved}{resp}, {end}"


@dataclass(frozen=True)
class TraceWindow:
    """The transactions that a ring still held."""

    transactions: tuple[Transaction, ...]  #: in the order in which they ended
    written: int  #: since the overlay was loaded; the next reading starts there
    dropped: int  #: of those asked for, the ones that newer ones had overwritten


@dataclass(frozen=True, slots=True)
class PortCounters:
    """One direction of a port, counted since the overlay was loaded.

    Parameters
    ----------
    unit, port : str
        Where.
    direction : str
        ``"read"``: towards the design. ``"write"``: from it.
    transactions, beats, bytes : int
        Ended bursts or packets; what they moved.
    cycles : int
        The clock has run for so long.
    busy : int
        Cycles with something under way.
    stall_address, stall_memory, stall_design, wait_response : int
        Cycles in which an address waited to be taken, data waited for memory, for the design, or
        all data was written and the response had not come.
    latency_sum, latency_max : int
        Cycles from the address to the end, over all transactions.
    errors : int
        Transactions that were answered with an error.
    """

    unit: str
    port: str
    direction: str
    transactions: int
    beats: int
    bytes: int
    cycles: int
    busy: int
    stall_address: int
    stall_memory: int
    stall_design: int
    wait_response: int
    latency_sum: int
    latency_max: int
    errors: int

    @property
    def stalls(self) -> int:
        """Cycles of all the waits."""
        return self.stall_address + self.stall_memory + self.stall_design

    @property
    def utilisation(self) -> float:
        """Share of the cycles in which a beat moved."""
        return self.beats / self.cycles if self.cycles else 0.0

    @property
    def latency_mean(self) -> float:
        """Mean cycles of a transaction."""
        return self.latency_sum / self.transactions if self.transactions else 0.0

    def since(self, before: PortCounters) -> PortCounters:
        """Return what was counted after an earlier reading; `latency_max` stays that of both."""
        if (self.unit, self.port, self.direction) != (before.unit, before.port, before.direction):
            raise ValueError(
                f"these are counters of {self.unit}.{self.port} ({self.direction}), those before "
                f"of {before.unit}.{before.port} ({before.direction}); compare the same port"
            )
        less = {}
        for name in [f.name for f in fields(self)[3:] if f.name != "latency_max"]:
            now, then = getattr(self, name), getattr(before, name)
            less[name] = now - then
            if now < then:
                raise ValueError(
                    f"{name} of {self.unit}.{self.port} went from {then} to {now}: an overlay was "
                    "loaded in between; read both after it"
                )
        return replace(self, **less)


def trace_nbytes(capacity: int) -> int:
    """Return the size of a ring of so many transactions, a power of two."""
    if capacity < 1 or capacity & (capacity - 1):
        raise ValueError(f"a trace of {capacity} transactions; expected a power of two")
    return _HEADER_NBYTES + capacity * _RECORD.itemsize


def counters_nbytes(ports: int) -> int:
    """Return the size of the table of counters of so many ports."""
    return _HEADER_NBYTES + ports * 2 * _DIRECTION.itemsize


def _checked(memory: Shared, magic: int, what: str) -> memoryview:
    view = memoryview(memory).cast("B")
    if len(view) < _HEADER_NBYTES:
        raise ValueError(f"the {what} is {len(view)} bytes; expected at least {_HEADER_NBYTES}")
    found = int.from_bytes(view[:4], "little")
    if found != magic:
        raise ValueError(
            f"the {what} begins with 0x{found:08x}; expected 0x{magic:08x}: the PL process has not "
            "started, or has another layout than this package"
        )
    return view


def read_trace(
    memory: Shared, ports: Sequence[PortRow], *, after: int = 0, last: int | None = None
) -> TraceWindow:
    """Read a ring of transactions while the PL process may be writing it.

    `after` is `TraceWindow.written` of an earlier reading, whose transactions are left out; `last`
    is how many of the newest to return at most.

    Raises
    ------
    ValueError
        The memory holds something else, or names a port that the table does not have.
    """
    view = _checked(memory, _TRACE_MAGIC, "trace")
    record_bytes, capacity = (int.from_bytes(view[at : at + 4], "little") for at in (4, 8))
    if record_bytes != _RECORD.itemsize or len(view) < trace_nbytes(capacity):
        raise ValueError(
            f"the trace has {capacity} records of {record_bytes} bytes in {len(view)}; expected "
            f"records of {_RECORD.itemsize} bytes that fit"
        )
    written = int.from_bytes(view[16:24], "little")
    start = max(after, written - capacity, 0)
    if last is not None:
        after = start = max(start, written - last)
    ring = np.frombuffer(view, _RECORD, capacity, _HEADER_NBYTES)
    rows = ring[np.arange(start, written) % capacity]
    # What was overwritten while it was copied is torn.
    torn = max(0, int.from_bytes(view[16:24], "little") - capacity - start)
    rows = rows[torn:]
    return TraceWindow(
        tuple(_transaction(row, ports) for row in rows.tolist()),
        written,
        max(0, start + min(torn, written - start) - after),
    )


def _transaction(row: tuple[int, ...], ports: Sequence[PortRow]) -> Transaction:
    begin, first, end, address, nbytes, beats, value, number, port, kind, *rest = row
    resp, size, burst, flags, stalls = rest
    if port >= len(ports) or kind >= len(KINDS):
        raise ValueError(
            f"the trace holds a record of port {port} and kind {kind}; expected below "
            f"{len(ports)} and {len(KINDS)}: the table of ports is not that of this PL process"
        )
    where = ports[port]
    return Transaction(
        cycle=begin,
        unit=where.unit,
        port=where.port,
        kind=KINDS[kind],
        address=address,
        beats=beats,
        bytes=nbytes,
        resp=RESPONSES[resp & 3],
        first=first,
        done=end,
        value=value,
        id=number,
        beat_bytes=1 << size,
        burst=BURSTS[burst] if burst < len(BURSTS) else str(burst),
        stalls=stalls,
        cut=bool(flags & _CUT),
    )


def read_cycle(memory: Shared) -> int:
    """Return the cycles that the clock has run since the overlay was loaded."""
    return int.from_bytes(_checked(memory, _COUNTERS_MAGIC, "table of counters")[8:16], "little")


def read_counters(
    memory: Shared, ports: Sequence[PortRow], *, idle: bool = False
) -> tuple[PortCounters, ...]:
    """Read the counters of all ports; with `idle` also directions in which nothing ever happened.

    Raises
    ------
    ValueError
        The memory holds something else.
    """
    view = _checked(memory, _COUNTERS_MAGIC, "table of counters")
    count = int.from_bytes(view[4:8], "little")
    if count != len(ports) or len(view) < counters_nbytes(count):
        raise ValueError(
            f"the table of counters is for {count} ports in {len(view)} bytes; expected "
            f"{len(ports)} ports in at least {counters_nbytes(len(ports))}"
        )
    cycles = read_cycle(memory)
    table = np.frombuffer(view, _DIRECTION, 2 * count, _HEADER_NBYTES).copy().tolist()
    directions = [(where, way) for where in ports for way in ("read", "write")]
    return tuple(
        PortCounters(
            where.unit, where.port, way, cycles=cycles, **dict(zip(_COUNTS, row, strict=False))
        )
        for (where, way), row in zip(directions, table, strict=True)
        if idle or any(row)
    )
