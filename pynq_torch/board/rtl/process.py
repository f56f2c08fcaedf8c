"""The PL process: every unit with RTL of an overlay, in one clock (``engines/rtl``)."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pynq_torch.board.engine import PlProcess, end_process
from pynq_torch.board.memory import PhysicalMemory
from pynq_torch.board.streams import Ring
from pynq_torch.errors import BoardError, RtlTimeout

from . import layout as at
from .hangs import BUSY_SHARE, HangWatch, Progress
from .layout import Answer, FaultKind, Operation, PlState
from .plan import PlOptions, Row, UnitPlan, text_of
from .records import PortCounters, TraceWindow, read_counters, read_trace
from .shared import NO_UNIT, PlFault, PlMemory

if TYPE_CHECKING:
    from .build import BuiltModel
    from .observe.waves import Waves

_LOG_BYTES = 16 << 20
#: Looks at the answer before this program goes to sleep for it.
_SPINS = 40
#: How long it may take to load the models, and to see them through their reset.
START_TIMEOUT_S = 60.0


class PlEnded(Exception):
    """The process ended while a request waited; `Pl.fault` says why."""


class Pl:
    """The running PL: an executable of ``engines/rtl/main.cpp``, and its units.

    `rebuild` returns the model of a unit that writes ``"fst"`` or ``"vcd"``.
    """

    def __init__(
        self,
        executable: Path,
        memory: PhysicalMemory,
        plans: Sequence[UnitPlan],
        options: PlOptions,
        rebuild: Callable[[str, str], BuiltModel],
    ) -> None:
        self.executable = executable
        self.memory = memory
        self.plans = tuple(plans)
        self.options = options
        self.rebuild = rebuild
        self.port_rows = [row for plan in plans for row in plan.rows]
        self._shared = PlMemory(len(self.plans), len(self.port_rows))
        self._words, self._quads = self._shared.words, self._shared.quads
        self._boxes = self._shared.boxes
        self._config_fd = os.memfd_create("pl-setup", os.MFD_CLOEXEC)
        self._log_fd = os.memfd_create("pl-log", os.MFD_CLOEXEC)
        self._bell_fd = _event()
        self.done_fds = [_event() for _ in self.plans]
        self._answer_fds = [_event() for _ in self.plans]
        self._pollers = [_poller(fd) for fd in self._answer_fds]
        self._life_read, self._life_write = os.pipe2(os.O_CLOEXEC)
        self._process: PlProcess | None = None
        self._log_begin = 0
        self._closed = False
        self._ending = threading.Lock()
        self._hangs = HangWatch()
        self.spawns = 0
        #: What programs wrote to each unit's registers, but for AP_CTRL.
        self.written: list[dict[tuple[int, int], int]] = [{} for _ in self.plans]
        #: Held during an access to registers of a unit.
        self.locks: list[AbstractContextManager[object]] = []
        #: What a new process would not know of each unit, with what to do; empty: nothing.
        self.unsaved: list[Callable[[], str]] = []
        #: Unit -> the recording of its waves that is open; `recording` is held while it changes.
        self.recordings: dict[str, Waves] = {}
        self.recording = threading.RLock()

    # ---- life ------------------------------------------------------------------------------

    def spawn(self, *, counts_on: bool = False) -> None:
        """Start the process, or start it again: every register has its reset value.

        Cycles, counters, the trace and the numbers of runs begin again, unless it `counts_on`.
        """
        self.kill()
        cycle = self.cycle if counts_on else None
        self._shared.clear(cycle)
        for fd in (self._bell_fd, *self.done_fds, *self._answer_fds):
            _drain(fd)
        rings = list(dict.fromkeys(s.ring for plan in self.plans for s in plan.streams))
        os.ftruncate(self._config_fd, 0)
        os.pwrite(self._config_fd, text_of(self._setup(rings, cycle)).encode(), 0)
        fds = [self._shared.fd, self.memory.fd, self.memory.grants_fd, self._config_fd]
        fds += [self._bell_fd, *self.done_fds, *self._answer_fds, self._life_read]
        fds += [ring.fd for ring in rings]
        fds += [s.peer_fd for plan in self.plans for s in plan.streams if s.peer_fd >= 0]
        self._log_begin = os.lseek(self._log_fd, 0, os.SEEK_END)
        self._process = PlProcess([str(self.executable), str(self._config_fd)], fds, self._log_fd)
        self.spawns += 1

    def _setup(self, rings: Sequence[Ring], cycle: int | None) -> list[Row]:
        options = dict(vars(self.options))
        del options["hang_timeout_s"]
        rows: list[Row] = [
            ("page", self._shared.fd),
            ("grants", self.memory.grants_fd),
            ("bell", self._bell_fd),
            ("life", self._life_read),
            ("guard", int(self.memory.guard)),
            ("silicon", int(self.memory.as_silicon)),
            *options.items(),
            ("check", int(self.spawns == 0)),  # what depends on initial values shows every time
            ("ports", len(self.port_rows)),
            ("trace", at.TRACE_RECORDS),
        ]
        if cycle is not None:
            rows.append(("cycle", cycle))
        for window in self.memory.windows:
            rows.append(("window", window.base, window.nbytes, window.file_offset, self.memory.fd))
        rows += [("ring", ring.fd) for ring in rings]
        for plan, *events in zip(self.plans, self.done_fds, self._answer_fds, strict=True):
            rows += plan.setup(events, rings)
        return rows

    def kill(self) -> None:
        """End the process at once."""
        process, self._process = self._process, None
        if process is not None:
            end_process(process)

    def close(self) -> None:
        """End the process and give every descriptor back."""
        if self._closed:
            return
        self._closed = True
        self.kill()
        fds = [self._shared.fd, self._config_fd, self._log_fd, self._bell_fd]
        for fd in (*fds, *self.done_fds, *self._answer_fds, self._life_read, self._life_write):
            os.close(fd)

    # ---- requests --------------------------------------------------------------------------

    def wake(self) -> None:
        """Ring the bell: the process looks at requests, waves and streams."""
        os.eventfd_write(self._bell_fd, 1)

    def read(self, unit: int, slave: int, offset: int) -> tuple[Answer, int]:
        """Read a register."""
        answer = self._request(unit, Operation.READ, slave, offset, 1)
        return answer, self._boxes[unit][at.B_WORDS >> 2]

    def write(
        self,
        unit: int,
        slave: int,
        offset: int,
        words: Sequence[int],
        operation: Operation = Operation.WRITE,
    ) -> Answer:
        """Write registers that follow each other, at most `BLOCK_WORDS`.

        A `Operation.REPLAY` is a write of the board's own, which the trace does not have.
        """
        box, first = self._boxes[unit], at.B_WORDS >> 2
        self._settle(unit)
        for index, word in enumerate(words, first):
            box[index] = word
        return self._request(unit, operation, slave, offset, len(words))

    def reset(self, unit: int) -> Answer:
        """Hold a unit's reset for 16 cycles; whatever it had under way is dropped."""
        return self._request(unit, Operation.RESET, 0, 0, 0)

    def _request(
        self, unit: int, operation: Operation, slave: int, offset: int, count: int
    ) -> Answer:
        box = self._boxes[unit]
        self._settle(unit)
        box[at.B_OPERATION], box[at.B_SLAVE] = operation, slave
        box[at.B_OFFSET], box[at.B_COUNT] = offset, count
        box[at.B_REQUEST] = (box[at.B_REQUEST] + 1) & 0xFFFFFFFF
        self.wake()
        self._settle(unit)
        return Answer(box[at.B_RESULT])

    def _settle(self, unit: int) -> None:
        """Wait for the answer to the last request; one that Ctrl-C interrupted included."""
        box = self._boxes[unit]
        spins = 0
        self._hangs.silent_s = 0.0
        while box[at.B_RESPONSE] != box[at.B_REQUEST]:
            spins += 1
            if spins < _SPINS:
                continue
            self._pollers[unit].poll(100)
            _drain(self._answer_fds[unit])
            self.end_if_stuck(unanswered=True)
            if self.faulted and box[at.B_RESPONSE] != box[at.B_REQUEST]:
                raise PlEnded

    # ---- a process that hangs --------------------------------------------------------------

    def end_if_stuck(self, *, unanswered: bool = False) -> None:
        """End a process that computes and no cycle ends, or that does nothing at all.

        To be called again and again while a program waits. A clock that is halted takes no
        processor time, and a model that is slow ends a cycle now and then. `unanswered` says that
        a request waits for its answer, which never takes long.
        """
        if self.state == PlState.BOOTING:  # which has a limit of its own
            return
        now = Progress(self.spawns, self.cycle, time.monotonic(), self.cpu_seconds)
        kind = self._hangs.look(now, self.options.hang_timeout_s, self.pid, unanswered)
        if kind is not None:
            self._end(kind)

    def _end(self, kind: FaultKind) -> None:
        """End the process for a reason that it cannot tell itself."""
        with self._ending:
            if self.faulted:
                return
            self.kill()
            self._words[at.P_KIND] = kind
            self._words[at.P_UNIT] = 0 if len(self.plans) == 1 else NO_UNIT
            self._quads[at.P_FAULT_CYCLE] = self.cycle
            self._words[at.P_STATE] = PlState.FAULT

    # ---- status ----------------------------------------------------------------------------

    @property
    def units(self) -> list[str]:
        """Names of its units."""
        return [plan.name for plan in self.plans]

    @property
    def state(self) -> PlState:
        """What the process does at this moment."""
        return PlState(self._words[at.P_STATE])

    @property
    def cycle(self) -> int:
        """Cycles of the clock since the overlay was loaded, a few ago."""
        return self._quads[at.P_CYCLE]

    @property
    def clock_hz(self) -> float:
        """The clock that every unit has."""
        return self.options.clock_hz

    @property
    def pid(self) -> int | None:
        """The process, while there is one."""
        return self._process.pid if self._process is not None else None

    @property
    def faulted(self) -> bool:
        """True when the process ended, with or without a word."""
        if self._words[at.P_STATE] == PlState.FAULT:
            return True
        return self._process is not None and self._process.poll() is not None

    @property
    def cpu_seconds(self) -> float:
        """Processor time the process has used."""
        if self._process is None:
            return 0.0
        try:
            return time.clock_gettime(~self._process.pid << 3 | 2)
        except OSError:
            return float("inf")

    @property
    def log(self) -> str:
        """What the models printed."""
        return self._log_from(0)

    @property
    def printed(self) -> str:
        """What the models printed since the process started."""
        return self._log_from(self._log_begin).strip()

    def _log_from(self, begin: int) -> str:
        return os.pread(self._log_fd, _LOG_BYTES, begin).decode(errors="replace")

    def box(self, unit: int) -> tuple[memoryview, memoryview, memoryview]:
        """Return the box of a unit as bytes, 32-bit and 64-bit words."""
        return self._shared.raw[unit], self._boxes[unit], self._shared.box_quads[unit]

    def trace_window(self, after: int = 0, last: int | None = None) -> TraceWindow:
        """Return the last transactions on the buses; see `read_trace`."""
        return read_trace(self._shared.trace, self.port_rows, after=after, last=last)

    def port_counters(self) -> tuple[PortCounters, ...]:
        """Return the counters of every port."""
        return read_counters(self._shared.counters, self.port_rows)

    def check(self) -> None:
        """Raise `BoardError` if the process has ended; the next register access says why."""
        if self.faulted:
            raise BoardError(
                f"the PL with {', '.join(self.units)} has ended: {self.fault().text or 'a crash'}"
            )

    def fault(self) -> PlFault:
        """Return how the process ended."""
        process = self._process
        if process is not None and self._words[at.P_STATE] == PlState.FAULT:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)  # it closes the files of waves first
        fault = self._shared.fault()
        if fault.kind != FaultKind.NONE:
            return fault
        code = process.poll() if process is not None else None
        number = -code if code is not None and code < 0 else 0
        text = f"its process ended by itself (exit status {code})" if not number else ""
        return replace(fault, kind=FaultKind.CRASH, text=text, signal=number)

    def wait_running(self) -> None:
        """Wait until every model is loaded and its reset is over, at most `START_TIMEOUT_S`.

        Raises
        ------
        RtlTimeout
            The reset is not over by then, and the process has computed all the time.
        BoardError
            The reset is not over by then, and the process has done next to nothing.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        while self.state == PlState.BOOTING and not self.faulted:
            if time.monotonic() > deadline:
                raise self._not_started()
            time.sleep(2e-4)

    def _not_started(self) -> Exception:
        units, log, cpu_s = ", ".join(self.units), self.printed or "empty", self.cpu_seconds
        text = f"the PL process of {units} did not start within {START_TIMEOUT_S:g} s"
        busy = cpu_s > BUSY_SHARE * START_TIMEOUT_S
        self._end(FaultKind.STUCK if busy else FaultKind.CRASH)
        if not busy:
            return BoardError(f"{text}; its log: {log}")
        return RtlTimeout(
            f"{text}, and computed for {cpu_s:.0f} s of them: is there an endless loop in an "
            f"initial block, or in an always block while the reset is held? Its log: {log}",
            units,
        )


def _event() -> int:
    return os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)


def _poller(fd: int) -> select.poll:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return poller


def _drain(fd: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.eventfd_read(fd)
