"""A compute unit in RTL as the processor sees it: every register access goes to the model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pynq_torch.board.bus import IpModel
from pynq_torch.board.engine import EngineProcess, State, is_stopped
from pynq_torch.board.hls_ip import Run, why_idle
from pynq_torch.board.streams import Endpoint, Ring
from pynq_torch.errors import BusError, KernelError, RtlTimeout

from . import layout as at
from .layout import Answer
from .process import Pl, PlEnded, StreamPlan, UnitPlan

if TYPE_CHECKING:
    from pynq_torch.board.device import VirtualBoard
    from pynq_torch.board.handoff import IpInstance

    from .build import BuiltModel

__all__ = ["RtlEngine", "RtlUnit"]

_Answered = TypeVar("_Answered")
_AP_START, _AP_DONE, _AP_IDLE, _AUTO_RESTART = 1, 2, 4, 0x80
_CONTROL_REGISTERS = (0x4, 0x8, 0xC)
#: Of these, what a new model is given: IP_ISR toggles where 1 is written.
_KEPT_REGISTERS = (0x4, 0x8)
#: What the last few cycles of a run may take on this PC.
_LAST_CYCLES_S = 0.02
#: Provenance of a run's cycles.
COUNTED = "cycles (RTL, AP_START to ap_done)"
COUNTED_UNSEEN = (
    "cycles (RTL, AP_START to the first read of AP_DONE: the top module has no nets ap_start, "
    "ap_done and ap_idle)"
)


class RtlEngine:
    """What a unit is doing in the PL process; the counterpart of an `EngineProcess`."""

    def __init__(self, pl: Pl, index: int, rings: Sequence[Ring], ports: Sequence[str]) -> None:
        self.pl = pl
        self.name = pl.units[index]
        self.index = index
        self.rings = tuple(rings)
        self.ports = tuple(ports)
        self.raw, self.words, self._quads = pl.box(index)
        self.done_fd = pl.done_fds[index]
        self.executable = pl.plans[index].model.library

    @property
    def state(self) -> State:
        """What the unit does at this moment."""
        return State.FAULT if self.faulted else State(self.words[at.B_STATE])

    @property
    def started(self) -> int:
        """Runs that began."""
        return self._quads[at.B_STARTED]

    @property
    def completed(self) -> int:
        """Runs that ended since the process started."""
        return self._quads[at.B_COMPLETED]

    @property
    def can_move(self) -> bool:
        """Whether a clock brings the unit on, without anything from outside."""
        state = self.words[at.B_STATE]
        if state in (State.WAIT_READ, State.WAIT_WRITE):
            index = self.words[at.B_BLOCKED]
            if index >= len(self.rings):
                return False
            ring = self.rings[index]
            return ring.occupancy > 0 if state == State.WAIT_READ else ring.occupancy < ring.depth
        return state in (State.RUNNING, State.BOOTING) and not self.faulted

    @property
    def cpu_seconds(self) -> float:
        """Processor time of the whole PL, the unit's share of it."""
        return self.pl.cpu_seconds / max(len(self.pl.plans), 1)

    @property
    def seconds(self) -> float:
        """Wall clock of the last run on this PC."""
        run = self.run(self.completed)
        return run[3] * 1e-9 if run is not None else 0.0

    @property
    def pid(self) -> int | None:
        """The PL process."""
        return self.pl.pid

    @property
    def blocked_on(self) -> str | None:
        """The stream port the unit waits for, if it does."""
        if self.words[at.B_STATE] not in (State.WAIT_READ, State.WAIT_WRITE):
            return None
        index = self.words[at.B_BLOCKED]
        return self.ports[index] if index < len(self.ports) else f"stream {index}"

    @property
    def stopped(self) -> bool:
        """Whether the PL process is held by a signal (SIGSTOP) or a debugger."""
        return is_stopped(self.pid)

    @property
    def faulted(self) -> bool:
        """True when the PL process is gone."""
        return self.pl.faulted

    @property
    def irq(self) -> bool:
        """Level of the interrupt output."""
        return bool(self.words[at.B_IRQ])

    @property
    def watched(self) -> bool:
        """Whether the ends of runs are seen inside the model."""
        return bool(self.words[at.B_WATCHED])

    def run(self, number: int) -> tuple[int, ...] | None:
        """Return the record of a run (`layout.RUN`), while it is kept."""
        if not number:
            return None
        begin = at.B_RUNS + number % at.RUNS_KEPT * at.RECORD_BYTES
        record = at.RUN.unpack_from(self.raw, begin)
        return record if record[0] == number else None

    def phase_names(self) -> list[str]:
        """Return the names of the phases that the model counts."""
        names = []
        for i in range(self.words[at.B_NPHASES]):
            begin = at.B_NAMES + i * at.B_NAME_BYTES
            raw = bytes(self.raw[begin : begin + at.B_NAME_BYTES])
            names.append(raw.split(b"\0", 1)[0].decode())
        return names

    @property
    def last_activity(self) -> str:
        """Say when something last moved on the unit's buses."""
        moved, port = self._quads[at.B_MOVED], self.words[at.B_MOVED_PORT]
        names = self.pl.plans[self.index].ports
        where = f" on {names[port]}" if port < len(names) else ""
        ago = max(self.pl.cycle - moved, 0)
        return f"last bus activity in cycle {moved}{where}, {ago} cycles ago"


class RtlUnit(IpModel):
    """A compute unit whose registers are those of its RTL.

    Parameters
    ----------
    board, ip
        As for every model.
    model : BuiltModel
    rings : dict
        Rings by bus interface name.
    """

    board: VirtualBoard

    def __init__(
        self, board: VirtualBoard, ip: IpInstance, model: BuiltModel, rings: dict[str, Ring]
    ) -> None:
        super().__init__(board, ip)
        self.model = model
        interfaces = model.interfaces
        self._slaves = {slave.name: i for i, slave in enumerate(interfaces.slaves)}
        control = self._find_control()
        self._control = interfaces.slaves[control].name if control >= 0 else ""
        self.plan = UnitPlan(ip.name, model, control=control)
        self.ports: list[Endpoint] = []
        self._rings: list[Ring] = []
        for stream in interfaces.streams:
            end = Endpoint(ip.name, stream.name)
            ring = rings.get(stream.name)
            if ring is None:
                ring = board.open_ring(end, stream.direction, max(stream.data_width // 8, 1))
                rings[stream.name] = ring
            self.ports.append(end)
            self._rings.append(ring)
        self.free_running = control < 0
        self._engine: RtlEngine | None = None
        self._seen = self._polls = 0
        self._watched = False
        #: Runs of which the program has seen the end, and whether the unit starts by itself.
        self._told, self._auto = 0, False
        self._error: KernelError | None = None

    def _find_control(self) -> int:
        """Return the interface with AP_CTRL: the one whose registers say so, or that is so called.

        A design with registers of its own at offset 0 has none.
        """
        for name, registers in self.ip.registers.items():
            if {"CTRL", "AP_CTRL"} & set(registers):
                if name in self._slaves:
                    return self._slaves[name]
                if len(self._slaves) == 1:
                    return 0
        if any(self.ip.registers.values()):
            return -1
        nets = set(self.model.nets)
        return 0 if self._slaves and nets & {"ap_start", "ap_done"} else -1

    def plan_streams(
        self,
        units: set[str],
        memory_ports: dict[tuple[str, str], int],
        engines: dict[str, EngineProcess],
    ) -> None:
        """Note what stands behind each stream and each AXI4 manager."""
        interfaces = self.model.interfaces
        for master in interfaces.masters:
            self.plan.memory_ports[master.name] = memory_ports.get((self.ip.name, master.name), 0)
        for stream, ring in zip(interfaces.streams, self._rings, strict=True):
            out = stream.direction == "out"
            other = ring.sink if out else ring.source
            local = other is not None and other.ip in units
            hp, peer = -1, None
            if other is not None and not local:
                manager = f"M_AXI_{other.port.rpartition('_')[2]}"
                hp = memory_ports.get((other.ip, manager), -1)
                peer = engines.get(other.ip)
            fd = -1 if peer is None else peer.fd
            self.plan.streams.append(StreamPlan(stream.name, out, ring, local, hp, fd))

    def attach(self, pl: Pl, index: int) -> None:
        """Take up the connection to the PL process."""
        self._engine = RtlEngine(pl, index, self._rings, [str(port) for port in self.ports])

    # ---- the bus ---------------------------------------------------------------------------

    @property
    def engine(self) -> RtlEngine:
        """What the unit is doing."""
        if self._engine is None:
            raise AttributeError(f"{self.ip.name} is not in a running PL yet")
        return self._engine

    @property
    def pl(self) -> Pl:
        """The process that it is in."""
        return self.engine.pl

    @property
    def interface(self) -> Any:
        """What its ports are."""
        return self.model.interfaces

    def connect(self) -> None:
        """Have its interrupt output followed, where something is connected to it."""
        handoff = self.board.handoff
        nets = handoff.interrupts if handoff is not None else ()
        if any(net.ip == self.ip.name for net in nets) and not self._watched:
            self._watched = True
            self.board.watch(self.engine.done_fd, self._on_done)

    def read(self, offset: int, slave: str = "") -> int:
        """Read a register of the RTL."""
        self._check()
        answer, words = self._access(lambda i: self.pl.read(self.engine.index, i, offset), slave)
        self._judge(answer, offset, "read", slave)
        value = words[0]
        if slave == self._control or len(self._slaves) == 1:
            value = self._after_read(offset, value, slave)
        return value

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Write a register of the RTL."""
        self.write_block(offset, memoryview(value.to_bytes(4, "little")).cast("I"), slave)

    def write_block(self, offset: int, words: memoryview, slave: str = "") -> None:
        """Write registers that follow each other, in one request."""
        self._check()
        for begin in range(0, len(words), at.BLOCK_WORDS):
            block = words[begin : begin + at.BLOCK_WORDS].tolist()
            first = offset + 4 * begin
            answer = self._access(partial(self._write_words, first, block), slave)
            self._judge(answer, first, "written", slave)
            self._note(first, block, slave)

    def _write_words(self, offset: int, words: list[int], slave: int) -> Answer:
        return self.pl.write(self.engine.index, slave, offset, words)

    def _access(self, access: Callable[[int], _Answered], slave: str) -> _Answered:
        number = self._slaves.get(slave, 0)
        try:
            return access(number)
        except PlEnded:
            raise self._ended() from None

    def _judge(self, answer: Answer, offset: int, what: str, slave: str) -> None:
        if answer == Answer.DONE:
            return
        name = f"{self.ip.name}.{slave}" if slave else self.ip.name
        if answer == Answer.NO_ANSWER:
            self.reset()
            raise RtlTimeout(
                f"{name} did not answer when register 0x{offset:02x} was {what}: a handshake of "
                "its AXI4-Lite interface never came. On the board this freezes the processor. "
                f"The unit was reset.{self._without_reset()}",
                self.ip.name,
            )
        word, kind = ("SLVERR", "slave") if answer == Answer.REFUSED else ("DECERR", "decode")
        raise BusError(
            f"{name} answered {word} when register 0x{offset:02x} was {what}: on the board this "
            "ends the program with a bus error. It has no such register, or refuses this access.",
            offset,
            kind,
        )

    def _without_reset(self) -> str:
        """Say which inputs may be a reset that nobody took for one."""
        interfaces = self.model.interfaces
        if interfaces.resets:
            return ""
        low = [name for name, value in interfaces.constants.items() if not value]
        tied = f"; tied to 0: {', '.join(low)}" if low else ""
        return (
            f" No input of module {self.model.top} was recognised as a reset, so there was none"
            f"{tied}. Names like ap_rst_n, aresetn, nrst, rst are."
        )

    def _note(self, offset: int, words: list[int], slave: str) -> None:
        control = bool(self._control) and slave in (self._control, "")
        for i, word in enumerate(words):
            here = offset + 4 * i
            if not control or here >= 0x10 or here in _KEPT_REGISTERS:
                self.pl.written[self.engine.index][self._slaves.get(slave, 0), here] = word
            if control and here in _CONTROL_REGISTERS:
                self.board.raise_irq(self)
            elif control and here == 0:
                self._auto = bool(word & _AUTO_RESTART)
                if word & _AP_START:
                    self._polls = 0
                    self.board.settle()

    def _after_read(self, offset: int, value: int, slave: str) -> int:
        if self._control and offset == 0:
            self._update()
            if value & _AP_DONE:
                self._told = self.engine.completed
            if value & (_AP_DONE | _AP_IDLE):
                self._polls = 0
                if not value & _AP_DONE:
                    self.board.vain_polls.note(lambda: why_idle(self.ip.name, self.engine.started))
            elif value & _AP_START or self.engine.watched:
                self._polls += 1
                self.board.polled(self, self._polls)
        elif self._control and offset in _CONTROL_REGISTERS:
            self.board.raise_irq(self)
        return value

    # ---- runs ------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """True while a run is under way."""
        return self.engine.completed < self.engine.started

    def _update(self) -> None:
        ended = self.engine.completed
        if ended != self._seen:
            self._seen = ended
            self._check_overrun()

    @property
    def last_run(self) -> Run | None:
        """The run that ended last, with its cycles and phases.

        One that is about to end, as after the last beat of a DMA, is waited for.
        """
        engine = self.engine
        deadline = time.monotonic() + _LAST_CYCLES_S
        while self.busy and engine.can_move and time.monotonic() < deadline:
            time.sleep(1e-4)
        return self.run(engine.completed)

    def run(self, number: int) -> Run | None:
        """Return a run by its number since the overlay was loaded; the last 16 are kept."""
        record = self.engine.run(number)
        if record is None:
            return None
        names = self.engine.phase_names()
        kind = COUNTED if self.engine.watched else COUNTED_UNSEEN
        return Run(
            number,
            record[3] * 1e-9,
            kind,
            cycles=record[2] - record[1] - record[4],
            phases=dict(zip(names, record[5:], strict=False)),
        )

    def _check_overrun(self) -> None:
        memory = self.board.memory
        written = tuple(self.pl.written[self.engine.index].items())
        memory.check_overruns(
            self.ip.name,
            [(at, low) for (_, at), low in written if at >= 0x10 and low >= memory.cma_base],
        )

    # ---- faults and resets -----------------------------------------------------------------

    def _check(self) -> None:
        error = self.pending_error()
        if error is not None:
            raise error
        if self.pl.faulted:
            raise self._ended()

    def _ended(self) -> KernelError:
        """Return what ended the PL, with a new one in its place; other units get it too."""
        return self.board.pl_ended(self)  # type: ignore[no-any-return]

    def pending_error(self) -> KernelError | None:
        """Take the error that waits for the next access, if there is one."""
        error, self._error = self._error, None
        return error

    def raise_fault(self) -> None:
        """Raise what ended the PL."""
        raise self._ended()

    def fail(self, error: KernelError | None) -> None:
        """Keep an error for the next access, and forget what the old PL knew."""
        self._error = error
        self.pl.written[self.engine.index].clear()
        self._seen = self._polls = self._told = 0
        self._auto = False

    def reset(self) -> None:
        """Hold the unit's reset: whatever it had under way is dropped, registers start again."""
        with self.lock:
            if self.pl.faulted:
                self._ended()
                return
            try:
                self.pl.reset(self.engine.index)
            except PlEnded:
                self._ended()
            self.board.memory.mend()
            self.pl.written[self.engine.index].clear()
            self._seen = self._told = self.engine.completed
            self._polls, self._auto = 0, False
            self.board.raise_irq(self)

    def unsaved(self) -> str:
        """Say what a new model would not know of this unit, and what to do; empty: nothing."""
        if not self._control:
            if not self.pl.written[self.engine.index]:
                return ""
            return (
                "has no AP_CTRL, and writing its registers again could start it; open waves "
                "before the first write to it"
            )
        if self._auto:
            return "starts by itself (AUTO_RESTART); write 0 to AP_CTRL first, and read AP_DONE"
        if self.engine.completed > self._told:
            return "has ended a run whose AP_DONE nobody has read; read AP_CTRL first"
        if self.engine.irq:
            return "holds its interrupt; write what IP_ISR (0x0c) reads to it first"
        return ""

    # ---- interrupts, people ----------------------------------------------------------------

    def _on_done(self) -> None:
        with self.lock:
            if not self.pl.faulted:
                self.board.raise_irq(self)

    def irq(self, pin: str) -> bool:
        """Return the level of the interrupt output."""
        return self.engine.irq

    @property
    def log(self) -> str:
        """What the models of the PL printed."""
        return self.pl.log

    def describe(self) -> dict[str, object]:
        """Return the unit's condition for a diagnosis."""
        engine = self.engine
        return {
            "ip": self.ip.name,
            "kernel": self.model.top,
            "state": engine.state.name,
            "starts": engine.started,
            "runs": engine.completed,
            "blocked_on": engine.blocked_on,
            "activity": engine.last_activity,
            "cycle": self.pl.cycle,
            "streams": {
                str(p): {"waiting": r.occupancy, "beats": r.beats_written, "packets": r.packets}
                for p, r in zip(self.ports, self._rings, strict=True)
            },
        }

    def close(self) -> None:
        """Stop following the interrupt output; the process is the board's to end."""
        if self._watched:
            self._watched = False
            self.board.unwatch(self.engine.done_fd)
