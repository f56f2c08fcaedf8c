"""The PL process: every unit with RTL of an overlay, in one clock (``engines/rtl``)."""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pynq_torch.board.engine import end_process, is_stopped
from pynq_torch.board.memory import PhysicalMemory
from pynq_torch.board.streams import Ring
from pynq_torch.errors import BoardError, RtlTimeout, WaveError

from . import layout as at
from .layout import Answer, FaultKind, Operation, PlState
from .records import PortCounters, PortRow, TraceWindow, read_counters, read_trace

if TYPE_CHECKING:
    from .build import BuiltModel
    from .observe.waves import Waves
    from .ports import AxiMaster, AxiSlave, AxiStream

_LOG_BYTES = 16 << 20
#: Looks at the answer before the process goes to sleep for it.
_SPINS = 40
#: How long it may take to load the models, and to see them through their reset.
START_TIMEOUT_S = 60.0
# A process that computes uses nearly all of a processor, one whose clock stands next to nothing.
# Looks that are further apart do not say what it did between them.
_BUSY_SHARE, _LOOKS_APART_S = 0.1, 5.0
#: The most that one look says about a process that does nothing.
_LOOK_S = 0.2
_NO_UNIT = 0xFFFF_FFFF


@dataclass(frozen=True)
class StreamPlan:
    """A stream of a unit: the ring it is on, and what stands behind that."""

    name: str
    out: bool
    ring: Ring
    local: bool  #: the other end is in the same process
    hp: int = -1  #: the memory port of the DMA behind it; -1 where there is none
    peer_fd: int = -1  #: the mailbox of the process at the other end; -1 where there is none


@dataclass
class UnitPlan:
    """What the process has to know of one unit.

    Parameters
    ----------
    name : str
        The instance.
    model : BuiltModel
        Its library, and the interfaces of its top.
    memory_ports : dict
        AXI4 manager -> number of the HP port.
    streams : list of StreamPlan
    control : int
        Index of the AXI4-Lite interface with AP_CTRL; -1 where there is none.
    """

    name: str
    model: BuiltModel
    memory_ports: dict[str, int] = field(default_factory=dict)
    streams: list[StreamPlan] = field(default_factory=list)
    control: int = -1

    @property
    def interfaces(self) -> list[AxiSlave | AxiMaster | AxiStream]:
        """Its AXI interfaces, in the order of the process's table."""
        found = self.model.interfaces
        return [*found.slaves, *found.masters, *found.streams]

    @property
    def rows(self) -> list[PortRow]:
        """Its AXI ports, in the order of the process's table."""
        return [PortRow(self.name, port.name, port.data_width) for port in self.interfaces]

    @property
    def ports(self) -> list[str]:
        """Names of its AXI ports."""
        return [row.port for row in self.rows]


@dataclass(frozen=True)
class PlOptions:
    """What the whole PL is simulated with.

    Parameters
    ----------
    memory : str
        Memory model: ``"pynq-z2"`` or ``"ideal"``.
    stalls : float
        Share of cycles in which a channel pauses at random, from 0 to below 1.
    seed : int
        Of the pauses, and of the registers' initial values.
    clock_hz : float
    timeout_cycles : int
        A run that takes longer ends with an error; 0: none does.
    fill : int
        What registers hold that are not reset: 0 zeros, 1 ones, 2 random values.
    history : int
        Cycles before their trigger that waves can show.
    hang_timeout_s : float
        So long the process may compute without the end of a cycle, or leave a request unanswered.
    """

    memory: str = "pynq-z2"
    stalls: float = 0.0
    seed: int = 0
    clock_hz: float = 100e6
    timeout_cycles: int = 0
    fill: int = 0
    history: int = 0
    hang_timeout_s: float = 30.0


@dataclass(frozen=True)
class PlFault:
    """How the process ended, as it said itself."""

    kind: FaultKind
    unit: int | None
    port: str
    text: str
    cycle: int
    address: int | None = None
    access: str = ""
    signal: int = 0


class _Progress(NamedTuple):
    """How far a process had come, and when."""

    spawns: int
    cycle: int
    wall_s: float
    cpu_s: float


class Pl:
    """The running PL.

    Parameters
    ----------
    executable : Path
        Built from ``engines/rtl/main.cpp``.
    memory : PhysicalMemory
    plans : sequence of UnitPlan
    options : PlOptions
    rebuild : callable, optional
        Returns the model of a unit that writes ``"fst"`` or ``"vcd"``.
    """

    def __init__(
        self,
        executable: Path,
        memory: PhysicalMemory,
        plans: Sequence[UnitPlan],
        options: PlOptions,
        rebuild: Callable[[str, str], BuiltModel] | None = None,
    ) -> None:
        self._rebuild = rebuild
        self.executable = executable
        self.memory = memory
        self.plans = tuple(plans)
        self.options = options
        self.port_rows = [row for plan in plans for row in plan.rows]
        n = len(self.plans)
        counters_at = at.PAGE_BYTES + n * at.BOX_BYTES
        trace_at = counters_at + 64 + 192 * max(len(self.port_rows), 1)
        trace_at = (trace_at + 63) & ~63
        self._nbytes = trace_at + 64 + 64 * at.TRACE_RECORDS
        self._nbytes = (self._nbytes + 4095) & ~4095
        self.fd = os.memfd_create("pl", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, self._nbytes)
        self._map = mmap.mmap(self.fd, self._nbytes)
        view = memoryview(self._map)
        self.words = view[: at.PAGE_BYTES].cast("I")
        self._quads = view[: at.PAGE_BYTES].cast("Q")
        starts = [at.PAGE_BYTES + i * at.BOX_BYTES for i in range(n)]
        self._raw = [view[start : start + at.BOX_BYTES] for start in starts]
        self._boxes = [raw.cast("I") for raw in self._raw]
        self._box_quads = [raw.cast("Q") for raw in self._raw]
        self._quads[at.P_COUNTERS_AT], self._quads[at.P_TRACE_AT] = counters_at, trace_at
        #: What the counters and the trace are read from (`records`).
        self.counters = view[counters_at:trace_at]
        self.trace = view[trace_at:]
        self._config_fd = os.memfd_create("pl-setup", os.MFD_CLOEXEC)
        self._log_fd = os.memfd_create("pl-log", os.MFD_CLOEXEC)
        self._bell_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.done_fds = [os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK) for _ in self.plans]
        self._answer_fds = [os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK) for _ in self.plans]
        self._pollers = []
        for fd in self._answer_fds:
            poller = select.poll()
            poller.register(fd, select.POLLIN)
            self._pollers.append(poller)
        self._life_read, self._life_write = os.pipe2(os.O_CLOEXEC)
        self._process: subprocess.Popen[bytes] | None = None
        self._log_begin = 0
        self._closed = False
        self._ending = threading.Lock()
        self._progress = _Progress(0, 0, 0.0, 0.0)
        self._looked = self._silent_s = self._cpu_seen = 0.0
        self.spawns = 0
        #: What programs wrote to each unit's registers, but for AP_CTRL.
        self.written: list[dict[tuple[int, int], int]] = [{} for _ in self.plans]
        #: Held during an access to registers of a unit.
        self.locks: list[AbstractContextManager[object]] = []
        #: What a new process would not know of each unit, with what to do; empty: nothing.
        self.unsaved: list[Callable[[], str]] = []
        #: Unit -> the recording of its waves that is open; `recording` is held by who changes it.
        self.recordings: dict[str, Waves] = {}
        self.recording = threading.RLock()

    # ---- life ------------------------------------------------------------------------------

    def spawn(self, *, counts_on: bool = False) -> None:
        """Start the process, or start it again: every register has its reset value.

        Parameters
        ----------
        counts_on : bool
            Cycles, counters, the trace and the numbers of runs go on where the process before had
            come to, rather than begin again.
        """
        self.kill()
        cycle = self.cycle if counts_on else None
        self._map[: at.PAGE_BYTES] = bytes(64) + self._map[64:80] + bytes(at.PAGE_BYTES - 80)
        self.words[at.P_MAGIC], self.words[at.P_VERSION] = at.MAGIC, at.VERSION
        self.words[at.P_NUNITS] = len(self.plans)
        for raw in self._raw:
            kept = [(part, bytes(raw[part])) for part in at.B_KEPT if counts_on]
            raw[: at.B_WAVES.start] = bytes(at.B_WAVES.start)
            for part, content in kept:
                raw[part] = content
        if cycle is None:
            self.counters[:] = bytes(len(self.counters))
        else:
            self._quads[at.P_CYCLE] = cycle
        for fd in (self._bell_fd, *self.done_fds, *self._answer_fds):
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(fd)
        rings = list(dict.fromkeys(s.ring for plan in self.plans for s in plan.streams))
        text = self._setup(rings, cycle).encode()
        os.ftruncate(self._config_fd, 0)
        os.pwrite(self._config_fd, text, 0)
        fds = [self.fd, self.memory.fd, self.memory.grants_fd, self._config_fd, self._bell_fd]
        fds += [*self.done_fds, *self._answer_fds, self._life_read, *(r.fd for r in rings)]
        fds += [s.peer_fd for plan in self.plans for s in plan.streams if s.peer_fd >= 0]
        self._log_begin = os.lseek(self._log_fd, 0, os.SEEK_END)
        # A session of its own: Ctrl-C in the terminal is for the program, not for the PL.
        self._process = subprocess.Popen(
            [str(self.executable), str(self._config_fd)],
            pass_fds=fds,
            stdin=subprocess.DEVNULL,
            stdout=self._log_fd,
            stderr=self._log_fd,
            start_new_session=True,
        )
        self.spawns += 1

    def _setup(self, rings: Sequence[Ring], cycle: int | None) -> str:
        o = self.options
        rows: list[Sequence[object]] = [
            ("page", self.fd),
            ("grants", self.memory.grants_fd),
            ("bell", self._bell_fd),
            ("life", self._life_read),
            ("guard", int(self.memory.guard)),
            ("memory", o.memory),
            ("stalls", repr(float(o.stalls))),
            ("seed", o.seed & 0xFFFFFFFF),
            ("fill", o.fill),
            ("clock_hz", repr(float(o.clock_hz))),
            ("timeout_cycles", o.timeout_cycles),
            ("history", o.history),
            ("check", int(self.spawns == 0)),  # what depends on initial values shows every time
            ("ports", len(self.port_rows)),
            ("trace", at.TRACE_RECORDS),
        ]
        if cycle is not None:
            rows.append(("cycle", cycle))
        for window in self.memory.windows:
            rows.append(("window", window.base, window.nbytes, window.file_offset, self.memory.fd))
        rows += [("ring", ring.fd) for ring in rings]
        index = itertools.count()
        for number, plan in enumerate(self.plans):
            rows += self._unit_rows(number, plan, rings, index)
        return "".join("\t".join(map(str, row)) + "\n" for row in rows)

    def _unit_rows(
        self, number: int, plan: UnitPlan, rings: Sequence[Ring], index: itertools.count[int]
    ) -> list[Sequence[object]]:
        interfaces = plan.model.interfaces
        done, answer = self.done_fds[number], self._answer_fds[number]
        rows: list[Sequence[object]] = [("unit", plan.name, plan.model.library, done, answer)]
        for port in plan.interfaces:
            rows += [
                ("alias", f"{port.name}_{name}", actual)
                for name, actual in port.signals.items()
                if actual != f"{port.name}_{name}"
            ]
        rows += [("constant", name, value) for name, value in interfaces.constants.items()]
        rows += [("clock", name) for name in interfaces.clocks]
        rows += [("reset", name, int(not low)) for name, low in interfaces.resets]
        if interfaces.interrupt:
            rows += [("interrupt", interfaces.interrupt)]
        if plan.control >= 0:
            rows += [("control", plan.control)]
        rows += [("lite", slave.name, next(index)) for slave in interfaces.slaves]
        for master in interfaces.masters:
            rows += [("axi", master.name, plan.memory_ports.get(master.name, 0), next(index))]
        for s in plan.streams:
            way = "out" if s.out else "in"
            ring = rings.index(s.ring)
            rows += [("stream", s.name, way, ring, int(s.local), s.hp, next(index), s.peer_fd)]
        return rows

    def kill(self) -> None:
        """End the process at once."""
        process = self._process
        if process is not None:
            end_process(process)
            self._process = None

    def close(self) -> None:
        """End the process and give every descriptor back."""
        if self._closed:
            return
        self._closed = True
        self.kill()
        for fd in (
            self.fd,
            self._config_fd,
            self._log_fd,
            self._bell_fd,
            *self.done_fds,
            *self._answer_fds,
            self._life_read,
            self._life_write,
        ):
            os.close(fd)

    # ---- requests --------------------------------------------------------------------------

    def wake(self) -> None:
        """Ring the bell: the process looks at requests, waves and streams."""
        os.eventfd_write(self._bell_fd, 1)

    def read(self, unit: int, slave: int, offset: int, count: int = 1) -> tuple[Answer, list[int]]:
        """Read registers that follow each other."""
        answer = self._request(unit, Operation.READ, slave, offset, count)
        first = at.B_WORDS >> 2
        return answer, self._boxes[unit][first : first + count].tolist()

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
        for index, word in enumerate(words):
            box[first + index] = word
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
        os.eventfd_write(self._bell_fd, 1)
        self._settle(unit)
        return Answer(box[at.B_RESULT])

    def _settle(self, unit: int) -> None:
        """Wait for the answer to the last request; one that Ctrl-C interrupted included."""
        box = self._boxes[unit]
        spins = 0
        self._silent_s = 0.0
        while box[at.B_RESPONSE] != box[at.B_REQUEST]:
            spins += 1
            if spins < _SPINS:
                continue
            self._pollers[unit].poll(100)
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._answer_fds[unit])
            self.end_if_stuck(unanswered=True)
            if self.faulted and box[at.B_RESPONSE] != box[at.B_REQUEST]:
                raise PlEnded

    def end_if_stuck(self, *, unanswered: bool = False) -> None:
        """End a process that computes and no cycle ends, or that does nothing at all.

        To be called again and again while a program waits. A clock that is halted takes no
        processor time, and a model that is slow ends a cycle now and then.

        Parameters
        ----------
        unanswered : bool
            A request waits for its answer, which never takes long.
        """
        if self.state == PlState.BOOTING:  # which has a limit of its own
            return
        now = _Progress(self.spawns, self.cycle, time.monotonic(), self.cpu_seconds)
        last, looked, self._looked = self._progress, self._looked, now.wall_s
        if self._is_silent(now, looked, unanswered):
            self._end(FaultKind.SILENT)
            return
        if (now.spawns, now.cycle) != (last.spawns, last.cycle) or (
            now.wall_s - looked > _LOOKS_APART_S
        ):
            self._progress = now
            return
        wall_s, cpu_s = now.wall_s - last.wall_s, now.cpu_s - last.cpu_s
        if min(wall_s, cpu_s) > self.options.hang_timeout_s and cpu_s > _BUSY_SHARE * wall_s:
            self._end(FaultKind.STUCK)

    def _is_silent(self, now: _Progress, looked: float, unanswered: bool) -> bool:
        """Say whether the process has done nothing for too long although it should."""
        since = now.wall_s - looked
        if now.cpu_s != self._cpu_seen or not (unanswered or is_stopped(self.pid)):
            self._silent_s = 0.0
        else:
            self._silent_s += min(since, _LOOK_S)  # this program may have been stopped itself
        self._cpu_seen = now.cpu_s
        return self._silent_s > self.options.hang_timeout_s

    def _end(self, kind: FaultKind) -> None:
        """End the process for a reason that it cannot tell itself."""
        with self._ending:
            if self.faulted:
                return
            self.kill()
            self.words[at.P_KIND] = kind
            self.words[at.P_UNIT] = 0 if len(self.plans) == 1 else _NO_UNIT
            self._quads[at.P_FAULT_CYCLE] = self.cycle
            self.words[at.P_STATE] = PlState.FAULT

    # ---- status ----------------------------------------------------------------------------

    @property
    def units(self) -> list[str]:
        """Names of its units."""
        return [plan.name for plan in self.plans]

    @property
    def state(self) -> PlState:
        """What the process does at this moment."""
        return PlState(self.words[at.P_STATE])

    @property
    def cycle(self) -> int:
        """Cycles of the clock since the overlay was loaded, a few ago."""
        return self._quads[at.P_CYCLE]

    @property
    def pid(self) -> int | None:
        """The process, while there is one."""
        return self._process.pid if self._process is not None else None

    @property
    def faulted(self) -> bool:
        """True when the process ended, with or without a word."""
        if self.words[at.P_STATE] == PlState.FAULT:
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

    def _log_from(self, begin: int) -> str:
        size = min(os.fstat(self._log_fd).st_size, begin + _LOG_BYTES)
        return os.pread(self._log_fd, max(size - begin, 0), begin).decode(errors="replace")

    @property
    def printed(self) -> str:
        """What the models printed since the process started."""
        return self._log_from(self._log_begin).strip()

    def box(self, unit: int) -> tuple[memoryview, memoryview, memoryview]:
        """Return the box of a unit as bytes, 32-bit and 64-bit words."""
        return self._raw[unit], self._boxes[unit], self._box_quads[unit]

    @property
    def clock_hz(self) -> float:
        """The clock that every unit has."""
        return self.options.clock_hz

    def trace_window(self, after: int = 0, last: int | None = None) -> TraceWindow:
        """Return the last transactions on the buses; see `read_trace`."""
        return read_trace(self.trace, self.port_rows, after=after, last=last)

    def port_counters(self) -> tuple[PortCounters, ...]:
        """Return the counters of every port."""
        return read_counters(self.counters, self.port_rows)

    def check(self) -> None:
        """Raise `BoardError` if the process has ended; the next register access says why."""
        if self.faulted:
            raise BoardError(
                f"the PL with {', '.join(self.units)} has ended: {self.fault().text or 'a crash'}"
            )

    def load_waves(self, units: Mapping[str, str], history: int = 0) -> None:
        """Load the builds of units that write waves, in a process of their own.

        Parameters
        ----------
        units : mapping of str to str
            Unit -> ``"fst"``, ``"vcd"`` or ``""``.
        history : int
            Cycles before their trigger that waves can show.

        Raises
        ------
        WaveError
            A unit is running, and its run would be lost.

        Notes
        -----
        Every unit begins from its reset. Registers are written again as programs wrote them, all
        but AP_CTRL, and the trace has none of it; whatever else a unit remembered is gone. Cycles,
        counters, trace and runs go on. Nothing is done where the builds are loaded already.
        """
        if not self.lacks_waves(units, history):
            return
        assert self._rebuild is not None
        wanted = [units.get(plan.name, plan.model.waves) for plan in self.plans]
        self.check_idle()
        models = [
            plan.model if plan.model.waves == waves else self._rebuild(plan.name, waves)
            for plan, waves in zip(self.plans, wanted, strict=True)
        ]
        with contextlib.ExitStack() as held:
            for lock in self.locks:
                held.enter_context(lock)
            self.check_idle()  # another thread had all the time of a build
            for plan, model in zip(self.plans, models, strict=True):
                plan.model = model
            self.options = replace(self.options, history=max(history, self.options.history))
            self.restart()

    def lacks_waves(self, units: Mapping[str, str], history: int = 0) -> bool:
        """Tell whether `load_waves` has to start again."""
        loaded = {plan.name: plan.model.waves for plan in self.plans}
        return history > self.options.history or any(loaded[u] != w for u, w in units.items())

    def check_idle(self) -> None:
        """Raise where a new process would drop a run; who waits for it would be told nothing.

        Raises
        ------
        WaveError
            A unit is running, or nobody can see that it is not, or its registers hold what a
            program has yet to read.
        """
        for plan, box, words in zip(self.plans, self._box_quads, self._boxes, strict=True):
            if box[at.B_COMPLETED] < box[at.B_STARTED]:
                unseen = "" if words[at.B_WATCHED] else ", or nobody has read its AP_DONE"
                raise WaveError(
                    f"{plan.name} is running{unseen}; open waves before the start, or wait for it. "
                    "Its model is one without them, and another one begins from its reset"
                )
        for plan, unsaved in zip(self.plans, self.unsaved, strict=True):
            if lost := unsaved():
                raise WaveError(
                    f"{plan.name} {lost}. Its model is one without waves, and another one begins "
                    "from its reset"
                )

    def restart(self) -> None:
        """Put a new process in the place of this one, with the registers as programs wrote them."""
        self.spawn(counts_on=True)
        self.wait_running()
        self.check()
        for unit, registers in enumerate(self.written):
            for (slave, offset), word in sorted(registers.items()):
                self.write(unit, slave, offset, [word], Operation.REPLAY)

    def wave_box(self, unit: str) -> memoryview:
        """Return the part of a unit's box that steers its waves."""
        return self._raw[self.units.index(unit)][at.B_WAVES]

    def fault(self) -> PlFault:
        """Return how the process ended."""
        process = self._process
        if process is not None and self.words[at.P_STATE] == PlState.FAULT:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)  # it closes the files of waves first
        unit = self.words[at.P_UNIT]
        kind = FaultKind(self.words[at.P_KIND])
        text = bytes(self._map[at.P_MESSAGE]).split(b"\0", 1)[0].decode(errors="replace")
        number = self.words[at.P_SIGNAL]
        if kind == FaultKind.NONE:
            kind = FaultKind.CRASH
            code = process.poll() if process is not None else None
            number = -code if code is not None and code < 0 else 0
            text = f"its process ended by itself (exit status {code})" if not number else ""
        return PlFault(
            kind,
            unit if unit < len(self.plans) else None,
            bytes(self._map[at.P_PORT]).split(b"\0", 1)[0].decode(errors="replace"),
            text,
            self._quads[at.P_FAULT_CYCLE] or self.cycle,
            self._quads[at.P_ADDRESS] if self.words[at.P_PHYSICAL] else None,
            {1: "read from", 2: "wrote to"}.get(self.words[at.P_ACCESS], "touched"),
            number,
        )

    def wait_running(self, timeout_s: float | None = None) -> None:
        """Wait until every model is loaded and its reset is over.

        Parameters
        ----------
        timeout_s : float, optional
            Default: `START_TIMEOUT_S`.

        Raises
        ------
        RtlTimeout
            The reset is not over by then, and the process has computed all the time.
        BoardError
            The reset is not over by then, and the process has done next to nothing.
        """
        timeout_s = START_TIMEOUT_S if timeout_s is None else timeout_s
        deadline = time.monotonic() + timeout_s
        while self.state == PlState.BOOTING:
            if self.faulted:
                return
            if time.monotonic() > deadline:
                raise self._not_started(timeout_s)
            time.sleep(2e-4)

    def _not_started(self, timeout_s: float) -> Exception:
        units, log, cpu_s = ", ".join(self.units), self.printed or "empty", self.cpu_seconds
        text = f"the PL process of {units} did not start within {timeout_s:g} s"
        busy = cpu_s > _BUSY_SHARE * timeout_s
        self._end(FaultKind.STUCK if busy else FaultKind.CRASH)
        if not busy:
            return BoardError(f"{text}; its log: {log}")
        return RtlTimeout(
            f"{text}, and computed for {cpu_s:.0f} s of them: is there an endless loop in an "
            f"initial block, or in an always block while the reset is held? Its log: {log}",
            units,
        )


class PlEnded(Exception):
    """The process ended while a request waited; `Pl.fault` says why."""
