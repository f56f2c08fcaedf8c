"""The register file of an HLS kernel, with the compiled C++ behind it.

Semantics of the control registers: UG1399, "S_AXILITE Control Register Map"; differences between
releases as found in generated headers (see ``pynq_torch.hls.registers``).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

from pynq_torch.hls.ap_ctrl import (
    AP_CONTINUE,
    AP_DONE,
    AP_IDLE,
    AP_READY,
    AP_START,
    AUTO_RESTART,
    INTERRUPT,
)
from pynq_torch.hls.build import Build
from pynq_torch.hls.interface import Interface
from pynq_torch.models.run_model import RunCycles, cycles_of_run

from .bus import IpModel
from .engine import EngineProcess, Flag, State
from .engine_faults import warn_outside
from .handoff import IpInstance
from .hls_binding import Binding
from .hls_wires import InputWires
from .runs import Run, Scalars
from .services import BoardServices
from .streams import Ring
from .vain_polls import why_idle

#: How long a finished kernel's process may take to say that it is done.
_DONE_LAG_S = 0.01
#: How long a kernel that runs all the time may take to see what a program has written.
_CATCH_UP_S = 0.25


class HlsKernel(IpModel):
    """A compute unit: AXI-Lite register file in front, an engine process behind."""

    def __init__(
        self, board: BoardServices, ip: IpInstance, build: Build, rings: dict[str, Ring]
    ) -> None:
        super().__init__(board, ip)
        self.interface: Interface = build.interface
        binding = Binding(ip, build.interface)
        self._page, self._nbytes = binding.page, binding.nbytes
        self._control_slave, self._control = binding.control_slave, binding.control
        self._data_from = 4 + max(self._control, default=-4)
        #: What C++ says of elements behind pointers and of numbers, by the argument's name.
        self.elements, self.numbers = binding.elements(), binding.numbers()
        self.ports = [port for port, _ in binding.ports]
        self._open_streams(binding, rings)
        self.engine = self._make_engine(build, rings)
        self._words = self.engine.registers.cast("I")
        self._moves = binding.moves
        self._inputs = InputWires(board, ip.name, binding.wired, self.engine.registers)
        self._offsets = binding.offsets
        self.engine.set_offsets(binding.offsets)
        self._scalars = Scalars(build.interface, binding.offsets)
        self._given: bytes | None = None  # the registers with them at the last start
        self._valid, self._pointers = binding.valid, binding.outputs
        self._chain = self.interface.control == "ap_ctrl_chain"
        # A kernel without a control register runs as soon as the bitstream is loaded: ap_ctrl_none,
        # or ap_ctrl_hs whose ap_start is a wire (tied high in every design that works).
        self.free_running = self._control_slave is None
        release = board.tool_version
        self._ready_clears = self.interface.tool == "vitis" and release >= (2021, 1)
        self._isr_clears = release == (2022, 1)
        self._shows_interrupt = release >= (2022, 1)
        self._gie = self._ier = self._isr = 0
        self._done = self._ready = False
        self._auto = self._was_reset = self._watched = False
        self._seen = self._polls = 0
        self._outside: set[str] = set()  # indices that were warned of
        self._written: int | None = None  # runs that were over when its input changed
        self._last_run: Run | None = None
        self.engine.set_flag(Flag.CHAIN, self._chain)
        self.engine.set_flag(Flag.FREE_RUNNING, self.free_running)
        self.engine.spawn()

    def _open_streams(self, binding: Binding, rings: dict[str, Ring]) -> None:
        """Give the stream ports that the design leaves open a ring."""
        for port, argument in binding.ports:
            if port.port not in rings and argument.axis is not None:
                nbytes = argument.axis.data_bytes
                rings[port.port] = self.board.open_ring(port, argument.direction, nbytes)

    def _make_engine(self, build: Build, rings: dict[str, Ring]) -> EngineProcess:
        """Return the engine that computes for this unit; it does not run yet."""
        return EngineProcess(
            build.executable,
            self.ip.name,
            self.board.memory,
            max(self._nbytes, 4096),
            [rings[port.port] for port in self.ports],
            self.ports,
        )

    # ---- the bus ---------------------------------------------------------------------------

    def connect(self) -> None:
        """Start a kernel that has no control register."""
        self._inputs.connect(self._relatch)
        if self.free_running:
            self.engine.start()

    def _relatch(self) -> None:
        """Let a kernel that runs all the time take its inputs again."""
        if self.free_running or self._auto:
            self._gather()
            self._written = self.engine.completed
            self.engine.set_flag(Flag.RELATCH, True)

    def _gather(self) -> None:
        """Put arrays together that have their elements in several registers or windows."""
        registers = self.engine.registers
        for source, target, nbytes in self._moves:
            registers[target : target + nbytes] = registers[source : source + nbytes]

    def backing(self, slave: str = "") -> memoryview | None:
        """Return the engine's register page."""
        return self.engine.registers[self._page.get(slave, 0) :]

    def read(self, offset: int, slave: str = "") -> int:
        """Read a register as the HLS register file answers it."""
        if slave == self._control_slave and offset in self._control:
            return self._read_control(self._control[offset])
        at = self._page.get(slave, 0) + offset
        if at + 4 > self._nbytes:
            return 0
        if self._written is not None:
            self._catch_up()
        if self.engine.words[3] == State.FAULT:
            self.raise_fault()  # what the register holds is of an earlier run
        value = self._words[at >> 2]
        if at == 0 and self.free_running and all(data for data, *_ in self._offsets):
            self.board.vain_polls.note(
                lambda: f"{self.ip.name} runs all the time: it has no AP_CTRL, and 0x00 stays 0."
            )
        if at in self._valid:
            # Clearing a zero as well would lose a flag that the engine sets at this moment.
            if value:
                self._words[at >> 2] = 0  # ap_vld is clear-on-read
            else:
                self._note_flag("ap_vld", "an earlier read cleared it, or the run wrote no result")
        return value

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Write a register; AP_START starts the engine."""
        if slave == self._control_slave and offset in self._control:
            self._write_control(self._control[offset], value)
            return
        at = self._page.get(slave, 0) + offset
        if at + 4 <= self._nbytes:
            self._words[at >> 2] = value
            self._relatch()

    def write_block(self, offset: int, words: memoryview, slave: str = "") -> None:
        """Write registers that follow each other: at once, where none of them is a control."""
        at, nbytes = self._page.get(slave, 0) + offset, 4 * len(words)
        plain = slave != self._control_slave or offset >= self._data_from
        if plain and at + nbytes <= self._nbytes and not (self.free_running or self._auto):
            self.engine.registers[at : at + nbytes] = words.cast("B")
        else:
            super().write_block(offset, words, slave)

    def _catch_up(self) -> None:
        """Let a kernel that runs all the time see what was just written, before its result is read.

        On the board it has run often between two accesses; here it takes turns with the program.
        """
        assert self._written is not None
        seen, self._written = self._written + 2, None  # the current run may have begun before
        deadline = time.monotonic() + _CATCH_UP_S
        while self.engine.completed < seen and time.monotonic() < deadline:
            waits = self.engine.state in (State.WAIT_READ, State.WAIT_WRITE)
            if waits and not self.engine.can_move:
                return  # it waits for a stream, and goes on when that does
            if self.engine.faulted:
                self.raise_fault()
            time.sleep(2e-5)

    # ---- control registers -----------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """True from AP_START until the run is over."""
        engine = self.engine
        return (
            self._auto
            or engine.completed < engine.started
            or engine.state not in (State.IDLE, State.BOOTING)
        )

    def _update(self) -> None:
        """Take note of runs that ended since the last look."""
        if self.engine.words[3] == State.FAULT:
            self.raise_fault()
        ended = self.engine.completed
        if ended == self._seen:
            return
        self._seen = ended
        self._polls = 0
        self._done = self._ready = True
        self._isr |= self._ier & 3
        self._last_run = self._run_of(ended)
        registers = self.engine.registers
        self.board.memory.check_overruns(
            self.ip.name,
            [(at, int.from_bytes(registers[at : at + n], "little")) for at, n in self._pointers],
        )
        self.board.memory.note_read_ahead(self.ip.name, self.engine.take_read_ahead())
        warn_outside(self.ip.name, self.engine.take_outside(), self._outside)

    def _run_of(self, number: int) -> Run:
        return Run(number, self.engine.seconds, cycles_of=self._cycles_of())

    def _cycles_of(self) -> Callable[[], RunCycles]:
        """Return what works out the cycles in the PL of the run that ended last."""
        if self._given is None:
            return lambda: RunCycles(None, note="it starts by itself: its arguments are not known")
        values = self._scalars.values(self._given)
        clock_hz = self.board.clock_hz(self.ip)
        return functools.partial(cycles_of_run, self.interface, values, clock_hz)

    def raise_fault(self) -> None:
        """Raise what happened to the engine, with a fresh one in its place."""
        error = self.engine.fault()
        self.reset()
        raise error

    def reset(self) -> None:
        """Give up the current run and start afresh; data registers keep their values.

        A board does this by loading the overlay again.
        """
        with self.lock:
            self._auto, self._was_reset = False, True
            self.engine.set_flag(Flag.AUTO_RESTART, False)
            self.engine.spawn()
            self.board.memory.mend()
            self._seen = self._polls = self._isr = 0
            self._done = self._ready = False
            if self.free_running:
                self.engine.start()

    def _look(self) -> bool:
        """Take note of runs that ended; return whether the unit is busy at that same moment.

        An end between the two would show as idle now, and as the end of the next run later.
        """
        while True:
            self._update()
            busy = self.busy
            if self._auto or self.engine.completed == self._seen:
                return busy

    def _read_control(self, name: str) -> int:
        busy = self._look()
        if name == "GIE":
            return self._gie
        if name == "IER":
            return self._ier
        if name == "ISR":
            value = self._isr
            if not value:
                self._note_flag("ISR", "enable it in IER (register 0x08) before the start")
            if self._isr_clears:
                self._isr = 0
                self.board.raise_irq(self)
            return value
        if busy and not self._done:
            self._polls += 1
            if self._polls % 64 == 0 and self.engine.faulted:
                self.raise_fault()
            self.board.polled(self, self._polls)
            busy = self._look()
        value = (AP_START if busy else AP_IDLE) | (AUTO_RESTART if self._auto else 0)
        if self._done:
            value |= AP_DONE
            if not self._chain:
                self._done = False
        elif not busy:
            self.board.vain_polls.note(self._why_idle)
        if self._ready and self._ready_clears:
            value |= AP_READY
            self._ready = False
        if self._shows_interrupt and self.irq(""):
            value |= INTERRUPT
        return value

    def _why_idle(self) -> str:
        return why_idle(self.ip.name, self.engine.started, self._was_reset)

    def _note_flag(self, flag: str, advice: str) -> None:
        """Note the poll of a flag that only a run can set."""
        if not self.busy and self.engine.completed == self._seen:
            ended = f"{self.ip.name} is idle: its last run has ended, and {flag} stays 0; {advice}."
            self.board.vain_polls.note(lambda: ended if self.engine.started else self._why_idle())

    def _write_control(self, name: str, value: int) -> None:
        if name == "GIE":
            self._gie = value & 1
        elif name == "IER":
            self._ier = value & 3
        elif name == "ISR":
            self._update()
            self._isr ^= value & 3  # toggle on write
        else:
            self._write_ap_ctrl(value)
        if name != "AP_CTRL":
            if self._gie and self._ier and not self._watched:
                self._watched = True
                self.board.watch(self.engine.done_fd, self._on_done)
            self.board.raise_irq(self)

    def _write_ap_ctrl(self, value: int) -> None:
        self._update()
        if value & AP_CONTINUE and self._chain:
            self._done = False
            self.engine.resume()
        start = value & AP_START and not self._still_busy()
        auto = bool(value & AUTO_RESTART)
        if auto != self._auto:
            self.engine.set_flag(Flag.AUTO_RESTART, auto)
            self._auto = auto
        if start:
            if self.engine.faulted:
                self.raise_fault()
            self._seen = self.engine.completed
            self._gather()
            self._given = None if auto else self._scalars.taken(self.engine.registers)
            self.engine.start()
            self.board.settle()

    def _still_busy(self) -> bool:
        """Say whether ap_start is high already, so that a write to it has no effect.

        On silicon a kernel is done a few cycles after its last beat or write. Its process takes
        longer to say so, and a program that starts it again in between must not lose the start.
        """
        deadline = time.monotonic() + _DONE_LAG_S
        while self.busy and time.monotonic() < deadline:
            if self._auto or self.engine.state == State.FAULT:
                break
            time.sleep(1e-4)
        return self._look()

    def _on_done(self) -> None:
        with self.lock:
            if self.engine.words[3] == State.FAULT:
                return  # the next register access raises it in the program's own thread
            self._update()
            self.board.raise_irq(self)

    def irq(self, pin: str) -> bool:
        """Return the interrupt output: GIE and any bit of ISR."""
        return bool(self._gie and self._isr)

    @property
    def last_run(self) -> Run | None:
        """The run that ended last, also where a stream told the program so, and no register."""
        with self.lock:
            if self.engine.state not in (State.FAULT, State.BOOTING):
                self._still_busy()
        return self._last_run

    # ---- for people ------------------------------------------------------------------------

    @property
    def log(self) -> str:
        """What the kernel printed."""
        return self.engine.log

    def describe(self) -> dict[str, object]:
        """Return the unit's condition for a diagnosis."""
        return {
            "ip": self.ip.name,
            "kernel": self.interface.top,
            "state": self.engine.state.name,
            "starts": self.engine.started,
            "runs": self.engine.completed,
            "blocked_on": self.engine.blocked_on,
            "streams": {
                str(p): {"waiting": r.occupancy, "beats": r.beats_written, "packets": r.packets}
                for p, r in zip(self.ports, self.engine.rings, strict=True)
            },
        }

    def close(self) -> None:
        """End the engine."""
        if self._watched:
            self.board.unwatch(self.engine.done_fd)
        self.engine.close()
