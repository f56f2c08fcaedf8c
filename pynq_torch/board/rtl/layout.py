"""What the board shares with the PL process (layout: ``engines/rtl/layout.hpp``)."""

from __future__ import annotations

import enum
import struct

MAGIC, VERSION = 0x4C505450, 2
PAGE_BYTES, BOX_BYTES, RECORD_BYTES = 4096, 16384, 168
#: Words that one request carries.
BLOCK_WORDS = 1024
MAX_PHASES, RUNS_KEPT = 16, 16
#: Transactions that the trace keeps; the oldest go first.
TRACE_RECORDS = 1 << 16

# Indices of 32-bit words of the page, and slices of its bytes.
P_STATE, P_KIND, P_UNIT, P_SIGNAL, P_ACCESS, P_PHYSICAL, P_RESPONSE = 3, 6, 7, 8, 9, 14, 15
P_MAGIC, P_VERSION, P_NUNITS = 0, 1, 2
# Indices of its 64-bit words.
P_CYCLE, P_ADDRESS, P_FAULT_CYCLE, P_COUNTERS_AT, P_TRACE_AT = 2, 5, 6, 8, 9
P_PORT, P_MESSAGE = slice(80, 144), slice(144, 4096)

# Indices of 32-bit words of a unit's box.
(B_REQUEST, B_RESPONSE, B_OPERATION, B_SLAVE, B_OFFSET, B_COUNT, B_RESULT, B_NPHASES) = range(8)
B_STATE, B_BLOCKED, B_IRQ, B_WATCHED, B_MOVED_PORT = 8, 9, 10, 11, 20
B_DROPPED, B_DROPPED_PORT = 24, 25
# Indices of its 64-bit words.
B_STARTED, B_COMPLETED, B_BEGUN, B_MOVED, B_READ_AHEAD = 6, 7, 8, 9, 11
B_NAMES, B_NAME_BYTES = 128, 24
B_RUNS, B_WORDS, B_WAVES = 1024, 4096, slice(8192, 16384)
#: What of it outlives a process that another one takes the place of: runs that ended.
B_KEPT = (
    slice(8 * B_COMPLETED, 8 * B_COMPLETED + 8),
    slice(B_RUNS, B_RUNS + RUNS_KEPT * RECORD_BYTES),
)
#: Number, first and last cycle, nanoseconds, idle cycles, phases.
RUN = struct.Struct(f"<QQQQQ{MAX_PHASES}Q")


class PlState(enum.IntEnum):
    """What the PL process is doing."""

    BOOTING = 0
    ASLEEP = 1  #: the clock is halted, nothing needs it
    RUNNING = 2
    FAULT = 3


class FaultKind(enum.IntEnum):
    """Why the PL process ended."""

    NONE = 0
    PROTOCOL = 1
    TIMEOUT = 2
    MODEL = 3
    ACCESS = 4
    CRASH = 5
    SETUP = 6
    STUCK = 7  #: it was ended: it computed, and no cycle ended
    SILENT = 8  #: it was ended: it did not compute, and did not answer


class Operation(enum.IntEnum):
    """What a request asks for."""

    READ = 1
    WRITE = 2
    RESET = 3
    REPLAY = 4  #: a write that the trace does not have


class Answer(enum.IntEnum):
    """How a register access ended."""

    DONE = 0
    REFUSED = 2  #: SLVERR
    NOBODY = 3  #: DECERR
    NO_ANSWER = 4  #: a handshake never came
