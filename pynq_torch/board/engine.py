"""An engine process: one compute unit or DMA of the virtual PL (layout: ``engine.hpp``)."""

from __future__ import annotations

import contextlib
import enum
import mmap
import os
import signal
import struct
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from pynq_torch.errors import InterfaceError, KernelFault

from .engine_faults import Ended
from .memory import PhysicalMemory
from .streams import Endpoint, Ring, memfd_name

_MAGIC = 0x50594E51
_HEADER_BYTES = 4096
_MESSAGE, _OUTSIDE, _READ_AHEAD = slice(96, 760), slice(760, 1016), 127
_USER = slice(1024, 2048)
_WINDOWS_AT, _OFFSETS_AT = 2048, 2432
_WINDOW = struct.Struct("<QQQ")
_OFFSETS = struct.Struct("<IIII")
NO_OFFSET = 0xFFFFFFFF
_LOG_BYTES = 16 << 20
_RETURN_SLOT_LIMIT = 104
#: The engine reports faults itself and maps shared memory at places ASan would refuse.
_SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:handle_abort=0:allow_user_segv_handler=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:abort_on_error=1",
}
_MARK = "PYNQ_TORCH_ENGINE"


class State(enum.IntEnum):
    """What an engine is doing."""

    BOOTING = 0
    IDLE = 1
    RUNNING = 2
    WAIT_READ = 3  #: blocked on a stream that has no beat
    WAIT_WRITE = 4  #: blocked on a stream that takes no beat
    FAULT = 5


class Flag(enum.IntFlag):
    """What the board asks of an engine besides starts."""

    AUTO_RESTART = 1
    FREE_RUNNING = 2
    ABORT = 4
    CHAIN = 8
    RELATCH = 16


class EngineProcess:
    """A running engine.

    `executable` is built from a kernel's C++ (``pynq_torch.hls.build``) or from ``engines/*.cpp``.
    The register space has all bundles; `rings` are in the order of the kernel's stream ports, which
    `ports` names for messages.
    """

    def __init__(
        self,
        executable: Path,
        name: str,
        memory: PhysicalMemory,
        registers_nbytes: int = 4096,
        rings: Sequence[Ring] = (),
        ports: Sequence[Endpoint | str] = (),
    ) -> None:
        self.executable = executable
        self.name = name
        self.memory = memory
        self.rings = tuple(rings)
        self.ports = tuple(map(str, ports))
        self._nbytes = _HEADER_BYTES + (registers_nbytes + 4095 & ~4095)
        self.fd = os.memfd_create(memfd_name(f"mailbox-{name}"), os.MFD_CLOEXEC)
        os.ftruncate(self.fd, self._nbytes)
        self._map = mmap.mmap(self.fd, self._nbytes)
        self.words = memoryview(self._map).cast("I")
        self._counters = memoryview(self._map)[:_HEADER_BYTES].cast("Q")
        self.registers = memoryview(self._map)[_HEADER_BYTES:]
        self.user = memoryview(self._map)[_USER]
        self._log_fd = os.memfd_create(memfd_name(f"log-{name}"), os.MFD_CLOEXEC)
        self.start_fd = os.eventfd(0, os.EFD_CLOEXEC)
        self.done_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._life_read, self._life_write = os.pipe2(os.O_CLOEXEC)
        self._log_begin = 0
        self._offsets: tuple[tuple[int, int, int, int], ...] = ()
        self._process: PlProcess | None = None
        self._closed = False

    # ---- life ------------------------------------------------------------------------------

    def set_offsets(self, offsets: Sequence[tuple[int, int, int, int]]) -> None:
        """Tell where each argument's registers are: data, out, valid, bytes; return value last."""
        if len(offsets) > _RETURN_SLOT_LIMIT:
            raise InterfaceError(
                f"{self.name} has {len(offsets)} arguments with its return value; board csim takes "
                f"at most {_RETURN_SLOT_LIMIT}. Put some of them into an array or a struct"
            )
        self._offsets = tuple(offsets)

    def spawn(self) -> None:
        """Start the process, or start it again after a fault; registers keep their values."""
        self.kill()
        self._prepare_mailbox()
        for fd in (self.start_fd, self.done_fd):
            os.set_blocking(fd, False)
            with contextlib.suppress(BlockingIOError):  # nothing pending is what is wanted
                os.eventfd_read(fd)
        os.set_blocking(self.start_fd, True)
        memory, rings = self.memory, [ring.fd for ring in self.rings]
        events = [self.start_fd, self.done_fd, self._life_read]
        shared = [memory.fd, memory.grants_fd, memory.grants_nbytes]
        numbers = [self.fd, self._nbytes, *shared, *events, *rings]
        # A fault shows what this process printed, not what the one before it did.
        self._log_begin = os.lseek(self._log_fd, 0, os.SEEK_END)
        self._process = PlProcess(
            [str(self.executable), *map(str, numbers)],
            [self.fd, memory.fd, memory.grants_fd, *events, *rings],
            self._log_fd,
        )

    def _prepare_mailbox(self) -> None:
        self.words[0] = _MAGIC
        self.words[1] = len(self.rings)
        self.words[2] &= ~Flag.ABORT
        self.words[3] = State.BOOTING
        self._counters[2] = self._counters[3] = self._counters[4] = 0
        self.words[12:22] = memoryview(bytes(40)).cast("I")
        self.words[22] = len(self.memory.windows)
        self.words[23] = int(self.memory.guard)
        self._map[_MESSAGE] = bytes(_MESSAGE.stop - _MESSAGE.start)
        self._counters[_READ_AHEAD] = 0
        self._map[_OUTSIDE] = bytes(256)
        for i, window in enumerate(self.memory.windows):
            place = (window.base, window.nbytes, window.file_offset)
            _WINDOW.pack_into(self._map, _WINDOWS_AT + i * _WINDOW.size, *place)
        for i, offsets in enumerate(self._offsets):
            _OFFSETS.pack_into(self._map, _OFFSETS_AT + i * _OFFSETS.size, *offsets)

    def kill(self) -> None:
        """End the process at once; what it was computing is lost."""
        if self._process is not None:
            end_process(self._process)
            self._process = None

    def close(self) -> None:
        """End the process and give every descriptor back."""
        if self._closed:
            return
        self._closed = True
        self.kill()
        events = (self.start_fd, self.done_fd, self._life_read, self._life_write)
        for fd in (self.fd, self._log_fd, *events):
            os.close(fd)

    # ---- commands --------------------------------------------------------------------------

    def set_flag(self, flag: Flag, on: bool) -> None:
        """Switch one of the standing orders."""
        if on:
            self.words[2] |= flag
        else:
            self.words[2] &= ~flag

    def start(self) -> None:
        """Ring the doorbell: one run (or the first of many under AUTO_RESTART)."""
        # Not "+= 1": under AUTO_RESTART one start gives many runs.
        self._counters[2] = self._counters[3] + 1
        os.eventfd_write(self.start_fd, 1)

    def resume(self) -> None:
        """ap_continue: let a chained kernel go on after its done."""
        self._counters[4] += 1

    # ---- status ----------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """What the engine does at this moment."""
        return State(self.words[3])

    @property
    def started(self) -> int:
        """The run that was asked for last, counted from 1."""
        return self._counters[2]

    @property
    def completed(self) -> int:
        """Runs that ended since the process started."""
        return self._counters[3]

    @property
    def can_move(self) -> bool:
        """Whether the engine has work that it can get on with, without anything from outside."""
        state = self.state
        if state in (State.FAULT, State.BOOTING):
            return state == State.BOOTING
        return self._goes_on(state)

    def _goes_on(self, state: State) -> bool:
        """Whether a process that is idle, runs or waits can get on."""
        if state in (State.WAIT_READ, State.WAIT_WRITE):
            index = self.words[17]
            if self.state != state:
                return True  # it just went on; the index may be that of its next wait
            return index < len(self.rings) and self.rings[index].lets_go_on(
                for_data=state == State.WAIT_READ
            )
        if state == State.RUNNING:
            return True
        if self.words[2] & (Flag.AUTO_RESTART | Flag.FREE_RUNNING):
            return any(
                r.sink is not None and r.sink.ip == self.name and r.occupancy for r in self.rings
            )
        return self.completed < self.started

    @property
    def cpu_seconds(self) -> float:
        """Processor time the process has used."""
        if self._process is None:
            return 0.0
        try:
            # The clock of another process, as clock_getcpuclockid(3) makes its number.
            return time.clock_gettime(~self._process.pid << 3 | 2)
        except OSError:
            return float("inf")  # the process has ended

    @property
    def seconds(self) -> float:
        """Wall clock of the last run on this PC."""
        return self._counters[5] * 1e-9

    @property
    def pid(self) -> int | None:
        """The process, while there is one."""
        return self._process.pid if self._process is not None else None

    @property
    def stopped(self) -> bool:
        """Whether the process is held by a signal (SIGSTOP) or a debugger."""
        return is_stopped(self.pid)

    @property
    def blocked_on(self) -> str | None:
        """The stream port the engine waits for, if it does."""
        if self.state not in (State.WAIT_READ, State.WAIT_WRITE):
            return None
        index = self.words[17]
        return self.ports[index] if index < len(self.ports) else f"stream {index}"

    def take_read_ahead(self) -> int:
        """Return the address of a read just outside a buffer since the last look; 0: none."""
        address, self._counters[_READ_AHEAD] = self._counters[_READ_AHEAD], 0
        return address

    def take_outside(self) -> str:
        """Return the first use of an index outside its array since the last look, or ``""``."""
        text = self._text(_OUTSIDE)
        if text:
            self._map[_OUTSIDE] = bytes(256)
        return text

    def _text(self, place: slice) -> str:
        return bytes(self._map[place]).partition(b"\0")[0].decode(errors="replace")

    @property
    def faulted(self) -> bool:
        """True when the engine crashed, or its process ended without a report."""
        if self.words[3] == State.FAULT:
            return True
        return self._process is not None and self._process.poll() is not None

    @property
    def log(self) -> str:
        """What the kernel printed."""
        return self._log_from(0)

    def _log_from(self, begin: int) -> str:
        size = min(os.fstat(self._log_fd).st_size, _LOG_BYTES)
        return os.pread(self._log_fd, max(size - begin, 0), begin).decode(errors="replace")

    def fault(self) -> KernelFault:
        """Return the exception that tells what happened; the engine is dead."""
        words = self.words
        return Ended(
            self.name,
            message=self._text(_MESSAGE),
            outside=self._text(_OUTSIDE),
            printed=self._log_from(self._log_begin).strip(),
            signal=words[12],
            access=words[13],
            stray=bool(words[16]),
            address=self._counters[7],
            exit_code=self._process.poll() if self._process is not None else None,
        ).error(self.memory)


class PlProcess(subprocess.Popen[bytes]):
    """A process of the virtual PL.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments.
    fds : sequence of int
        What it inherits.
    log_fd : int
        Where it prints.
    """

    def __init__(self, command: Sequence[str], fds: Sequence[int], log_fd: int) -> None:
        #: In the environment of all that the design starts.
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        super().__init__(
            command,
            pass_fds=fds,
            stdin=subprocess.DEVNULL,
            stdout=log_fd,
            stderr=log_fd,
            # Ctrl-C in the terminal is for the program, not for the PL.
            start_new_session=True,
            env={**os.environ, **_SANITIZERS, _MARK: self.mark},
        )


def end_process(process: PlProcess) -> None:
    """End an engine at once, with what its design forked or started by ``system()``."""
    # One that is there has adopted its daemons; those of one that was killed have another parent.
    started = _descendants(process.pid) if process.poll() is None else _marked(process.mark)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for pid in started:  # those that left the engine's session, as daemons do
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def _descendants(pid: int) -> list[int]:
    """Return every process that descends from one; an engine adopts those whose parent ended."""
    found: list[int] = []
    left = [pid]
    while left:
        for path in Path(f"/proc/{left.pop()}/task").glob("*/children"):
            try:
                children = [int(text) for text in path.read_text().split()]
            except OSError:
                continue  # the thread has ended
            found += children
            left += children
    return found


def _marked(mark: str) -> list[int]:
    """Return every process that inherited the environment of an engine."""
    text = f"{_MARK}={mark}\0".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if text in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue  # it has ended, or is another user's
    return found


def is_stopped(pid: int | None) -> bool:
    """Say whether a process is held by a signal (SIGSTOP) or a debugger."""
    if pid is None:
        return False
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False  # the process has ended
    return status.rpartition(b")")[2].split()[0] in (b"T", b"t")  # proc(5): the third field
