"""A compute unit in RTL as the processor sees it: every register access goes to the model."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from pynq_torch.board.bus import IpModel
from pynq_torch.board.engine import EngineProcess
from pynq_torch.board.runs import Run
from pynq_torch.board.streams import Endpoint, Ring
from pynq_torch.board.vain_polls import why_idle
from pynq_torch.errors import KernelError, NotModelledWarning, RtlResetWarning
from pynq_torch.hls.ap_ctrl import AP_DONE, AP_IDLE, AP_START, AUTO_RESTART

from . import layout as at
from .faults import answer_error, dropped_bursts
from .grouping import BLOCK_INPUTS
from .layout import Answer
from .plan import StreamPlan, UnitPlan
from .process import Pl, PlEnded
from .unit_engine import RtlEngine

if TYPE_CHECKING:
    from pynq_torch.board.device import VirtualBoard
    from pynq_torch.board.handoff import IpInstance

    from .build import BuiltModel

__all__ = ["RtlUnit"]

_Answered = TypeVar("_Answered")
_ISR = 0xC
_CONTROL_REGISTERS = (0x4, 0x8, _ISR)
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
        self.ports = [Endpoint(ip.name, stream.name) for stream in interfaces.streams]
        for stream, end in zip(interfaces.streams, self.ports, strict=True):
            if stream.name not in rings:
                nbytes = max(stream.data_width // 8, 1)
                rings[stream.name] = board.open_ring(end, stream.direction, nbytes)
        self._rings = [rings[stream.name] for stream in interfaces.streams]
        self._engine: RtlEngine | None = None
        self._seen = self._polls = 0
        self._watched = False
        #: Runs of which the program has seen the end, and whether the unit starts by itself.
        self._told, self._auto = 0, False
        self._error: KernelError | None = None

    def _find_control(self) -> int:
        """Return the interface with AP_CTRL, by its registers or by the nets of the top.

        A design with registers of its own at offset 0 has none: -1.
        """
        for name, registers in self.ip.registers.items():
            if {"CTRL", "AP_CTRL"} & set(registers):
                if name in self._slaves:
                    return self._slaves[name]
                if len(self._slaves) == 1:
                    return 0
        if any(self.ip.registers.values()):
            return -1
        return 0 if self._slaves and {"ap_start", "ap_done"} & {*self.model.nets} else -1

    def plan_streams(
        self,
        units: set[str],
        memory_ports: dict[tuple[str, str], int],
        engines: dict[str, EngineProcess],
    ) -> None:
        """Note what is at the other end of each stream and each AXI4 manager."""
        interfaces = self.model.interfaces
        for master in interfaces.masters:
            self.plan.memory_ports[master.name] = memory_ports.get((self.ip.name, master.name), 0)
        for stream, ring in zip(interfaces.streams, self._rings, strict=True):
            out = stream.direction == "out"
            other = ring.sink if out else ring.source
            local = other is not None and other.ip in units
            hp = fd = -1
            if other is not None and not local:
                manager = f"M_AXI_{other.port.rpartition('_')[2]}"
                hp = memory_ports.get((other.ip, manager), -1)
                fd = engines[other.ip].fd if other.ip in engines else -1
            self.plan.streams.append(StreamPlan(stream.name, out, ring, local, hp, fd))

    def plan_wires(self) -> None:
        """Tie the other inputs to what their wires carry now."""
        wires = self.board.wires
        for name in self.model.interfaces.constants:
            port = self.ip.ports.get(name)
            if port is None or not port.net or name in BLOCK_INPUTS:
                continue
            level = wires.read_input(self.ip.name, port)
            self.plan.ties[name] = value = level.part(0, port.width or 1).value
            if not level.unfollowed and not wires.is_fixed(port.net):
                warnings.warn(
                    f"{self.ip.name}.{name} stays {value:#x} on board rtl, as its wire is when the "
                    "overlay is loaded: later changes do not reach it. Board csim follows them.",
                    NotModelledWarning,
                    stacklevel=2,
                )

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
    def _written(self) -> dict[tuple[int, int], int]:
        return self.pl.written[self.engine.index]

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
        unit = self.engine.index
        answer, value = self._access(lambda number: self.pl.read(unit, number, offset), slave)
        self._judge(answer, offset, "read", slave)
        if slave == self._control or len(self._slaves) == 1:
            self._after_read(offset, value)
        return value

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Write a register of the RTL."""
        self._check()
        self._write(offset, [value], slave)

    def write_block(self, offset: int, words: memoryview, slave: str = "") -> None:
        """Write registers that follow each other, in one request."""
        self._check()
        for begin in range(0, len(words), at.BLOCK_WORDS):
            block = words[begin : begin + at.BLOCK_WORDS].tolist()
            self._write(offset + 4 * begin, block, slave)

    def _write(self, offset: int, words: list[int], slave: str) -> None:
        unit = self.engine.index
        answer = self._access(lambda number: self.pl.write(unit, number, offset, words), slave)
        self._judge(answer, offset, "written", slave)
        self._note(offset, words, slave)

    def _access(self, access: Callable[[int], _Answered], slave: str) -> _Answered:
        try:
            return access(self._slaves.get(slave, 0))
        except PlEnded:
            raise self._ended() from None

    def _judge(self, answer: Answer, offset: int, what: str, slave: str) -> None:
        if answer == Answer.DONE:
            return
        if answer == Answer.NO_ANSWER:
            self._reset()
        name = f"{self.ip.name}.{slave}" if slave else self.ip.name
        raise answer_error(answer, name, self.ip.name, offset, what, self.model)

    def _note(self, offset: int, words: list[int], slave: str) -> None:
        control = bool(self._control) and slave in (self._control, "")
        written, number = self._written, self._slaves.get(slave, 0)
        for here, word in zip(range(offset, offset + 4 * len(words), 4), words, strict=True):
            if not control or here >= 0x10 or here in _KEPT_REGISTERS:
                written[number, here] = word
            if control and here in _CONTROL_REGISTERS:
                self.board.raise_irq(self)
            elif control and here == 0:
                self._auto = bool(word & AUTO_RESTART)
                if word & AP_START:
                    self._polls = 0
                    self.board.settle()
        if not control:
            self.board.settle()  # any register may set it to work

    def _after_read(self, offset: int, value: int) -> None:
        if not self._control:
            return
        if offset in _CONTROL_REGISTERS:
            self.board.raise_irq(self)
        engine = self.engine
        if offset == _ISR and not value and not engine.started:
            self.board.vain_polls.note(lambda: why_idle(self.ip.name, 0))
        if offset:
            return
        if engine.completed != self._seen:
            self._seen = engine.completed
            self._check_overrun()
            self.board.memory.note_read_ahead(self.ip.name, engine.take_read_ahead())
        if value & AP_DONE:
            self._told = engine.completed
        if value & (AP_DONE | AP_IDLE):
            self._polls = 0
            if not value & AP_DONE:
                self.board.vain_polls.note(lambda: why_idle(self.ip.name, engine.started))
        elif value & AP_START or engine.watched:
            self._polls += 1
            self.board.polled(self, self._polls)

    # ---- runs ------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """True while a run is under way."""
        return self.engine.completed < self.engine.started

    @property
    def last_run(self) -> Run | None:
        """The run that ended last, with its cycles and phases.

        One that is about to end, as after the last beat of a DMA, is waited for.
        """
        deadline = time.monotonic() + _LAST_CYCLES_S
        while self.busy and self.engine.can_move and time.monotonic() < deadline:
            time.sleep(1e-4)
        return self.run(self.engine.completed)

    def run(self, number: int) -> Run | None:
        """Return a run by its number since the overlay was loaded; the last 16 are kept."""
        record = self.engine.run(number)
        if record is None:
            return None
        _, begin, end, ns, idle, *phases = record
        return Run(
            number,
            ns * 1e-9,
            COUNTED if self.engine.watched else COUNTED_UNSEEN,
            cycles=end - begin - idle,
            phases=dict(zip(self.engine.phase_names(), phases, strict=False)),
        )

    def _check_overrun(self) -> None:
        memory = self.board.memory
        written = tuple(self._written.items())
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
        self._forget(0)

    def _forget(self, completed: int) -> None:
        self._written.clear()
        self._seen = self._told = completed
        self._polls, self._auto = 0, False

    def reset(self) -> None:
        """Hold the unit's reset; bursts that are on their way are an `RtlResetWarning`."""
        if dropped := self._reset():
            warnings.warn(dropped_bursts(self.ip.name, *dropped), RtlResetWarning, stacklevel=2)

    def _reset(self) -> tuple[int, str] | None:
        """Reset it; return how many bursts were on their way and the first one's port, if any."""
        with self.lock:
            if self.pl.faulted:
                self._ended()
                return None
            try:
                self.pl.reset(self.engine.index)
            except PlEnded:
                self._ended()
            self.board.memory.mend()
            self._forget(self.engine.completed)
            self.board.raise_irq(self)
            return self.engine.dropped

    def unsaved(self) -> str:
        """Say what a new model would not know of this unit, and what to do; empty: nothing."""
        if not self._control:
            if not self._written:
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
