"""The register file of an HLS kernel, with the compiled C++ behind it.

Semantics of the control registers: UG1399, "S_AXILITE Control Register Map"; differences between
releases as found in generated headers (see ``pynq_torch.hls.registers``).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InterfaceError, NoModelError
from .bus import IpModel
from .engine import NO_OFFSET, EngineProcess, Flag, State
from .streams import Endpoint, Ring

if TYPE_CHECKING:
    from ..hls.build import Build
    from ..hls.interface import Argument, Interface
    from .device import VirtualBoard
    from .handoff import IpInstance

_AP_START, _AP_DONE, _AP_IDLE, _AP_READY = 1, 2, 4, 8
#: How long a finished kernel's process may take to say that it is done.
_DONE_LAG_S = 0.01
_AP_CONTINUE, _AUTO_RESTART, _INTERRUPT = 0x10, 0x80, 0x200
_CATCH_UP_S = 0.25


@dataclass(frozen=True)
class Run:
    """One finished run of a compute unit."""

    number: int
    seconds: float
    kind: str = "measured (csim, wall clock of this PC)"


class NoModel(IpModel):
    """An IP that nothing models: its registers read back what was written.

    Starting it, where it is an HLS kernel, is an error that names the folders searched.
    """

    def __init__(self, board: VirtualBoard, ip: IpInstance, searched: Sequence[str] = ()) -> None:
        super().__init__(board, ip)
        self._words: dict[tuple[str, int], int] = {}
        self._searched = tuple(searched)

    def read(self, offset: int, slave: str = "") -> int:
        """Read back what was written; a kernel that never ran is idle."""
        value = self._words.get((slave, offset), 0)
        return value | _AP_IDLE if offset == 0 and self.ip.is_kernel else value

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Keep the value; refuse to start."""
        if offset == 0 and value & _AP_START and self.ip.is_kernel:
            folders = "\n  ".join(self._searched) or "none"
            raise NoModelError(
                f"{self.ip.name} ({self.ip.vlnv}) was started, and there is no model for it: no "
                "folder named "
                f"{self.ip.vlnv_name}/ with its C++ and no top function {self.ip.vlnv_name}() was "
                "found.\n"
                f"Folders searched:\n  {folders}\nGive the folder with its HLS sources: --kernels "
                "DIR, "
                "PYNQ_TORCH_KERNELS=DIR or use_board(..., kernels=[DIR]).",
                self.ip.name,
            )
        self._words[slave, offset] = value


class HlsKernel(IpModel):
    """A compute unit: AXI-Lite register file in front, an engine process behind.

    Parameters
    ----------
    board, ip
        As for every model.
    build : Build
        The compiled kernel and its interface.
    rings : dict
        Rings by bus interface name.
    """

    def __init__(
        self, board: VirtualBoard, ip: IpInstance, build: Build, rings: dict[str, Ring]
    ) -> None:
        super().__init__(board, ip)
        self.interface: Interface = build.interface
        self._page: dict[str, int] = {}
        nbytes = 0
        for slave in ip.slaves:
            self._page[slave.interface] = nbytes
            nbytes += (min(slave.nbytes, 16 << 20) + 4095) & ~4095
        self._nbytes = nbytes
        self._control_slave = self._slave_of(self.interface.control_bundle)
        control = {
            r.name: r.offset
            for r in self.interface.bundles.get(self.interface.control_bundle or "", ())
            if r.role == "control"
        }
        self._control: dict[int, str] = {}
        if self._control_slave is not None:
            self._control = {
                control.get(n, d): n for n, d in zip(_CONTROL_NAMES, (0, 4, 8, 12), strict=True)
            }
        else:
            self._check_control()
        self.ports, ordered = self._bind_streams(rings)
        self.engine = EngineProcess(
            build.executable, ip.name, board.memory, max(nbytes, 4096), ordered, self.ports
        )
        self._words = self.engine.registers.cast("I")
        self._valid: set[int] = set()
        self._pointers: list[tuple[int, int]] = []
        self.engine.set_offsets(self._argument_offsets())
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
        self._auto = False
        self._seen = 0
        self._polls = 0
        self._watched = False
        self._written: int | None = (
            None  # runs that were over when a running kernel's input changed
        )
        self.last_run: Run | None = None
        self.engine.set_flag(Flag.CHAIN, self._chain)
        self.engine.set_flag(Flag.FREE_RUNNING, self.free_running)
        self.engine.spawn()

    # ---- where things are ------------------------------------------------------------------

    def _slave_of(self, bundle: str | None) -> str | None:
        """Return the hwh's interface name for a bundle: ``s_axi_<bundle>``."""
        if bundle is None:
            return None
        names = {name.lower(): name for name in self._page}
        for candidate in (f"s_axi_{bundle}", f"s_axi_{bundle}_r", bundle):
            if candidate.lower() in names:
                return names[candidate.lower()]
        if len(names) == 1:
            return next(iter(names.values()))
        return None

    def _check_control(self) -> None:
        """Refuse sources without the bitstream's control register: they would never start."""
        for slave, registers in self.ip.registers.items():
            if not {"CTRL", "AP_CTRL"} & set(registers):
                continue
            raise InterfaceError(
                f"{self.ip.name}: the handoff lists a control register on {slave or 'its slave'}, "
                "and "
                f"{self.interface.source} has no s_axilite interface for return. Give the "
                "directives "
                "file (directives.tcl, hls_config.cfg) that the bitstream was built with beside "
                "the source, "
                "or write the pragmas into it.",
                self.ip.name,
            )

    def _bind_streams(self, rings: dict[str, Ring]) -> tuple[list[Endpoint], list[Ring]]:
        ports: list[Endpoint] = []
        ordered: list[Ring] = []
        taken: set[str] = set()
        declared = self.ip.stream_ports
        for argument in self.interface.arguments:
            if argument.axis is None:
                continue
            count = argument.axis.count
            for index in range(count):
                stem = argument.name if count == 1 else f"{argument.name}_{index}"
                name = self._stream_port(stem, argument.direction, declared, taken)
                taken.add(name)
                ports.append(Endpoint(self.ip.name, name))
                if name not in rings:
                    rings[name] = self.board.open_ring(
                        Endpoint(self.ip.name, name), argument.direction, argument.axis.data_bytes
                    )
                ordered.append(rings[name])
        return ports, ordered

    def _stream_port(
        self, stem: str, direction: str, declared: dict[str, tuple[bool, int]], taken: set[str]
    ) -> str:
        free = [n for n in declared if n not in taken]
        lower = {n.lower(): n for n in free}
        for candidate in (
            stem,
            f"{stem}_r",
            f"{stem}_V",
            f"{stem}_V_V",
            f"{stem}_r_V",
            f"{stem}_V_data_V",
        ):
            if candidate.lower() in lower:
                return lower[candidate.lower()]
        wanted = [n for n in free if declared[n][0] == (direction == "out")]
        if not wanted:
            raise InterfaceError(
                f"{self.ip.name}: the source has a stream {stem} ({direction}), the handoff has no "
                "such port "
                f"left; its stream ports are {', '.join(declared) or 'none'}. Are these the "
                "sources the "
                "bitstream was built from?",
                self.ip.name,
            )
        return wanted[0]

    def _argument_offsets(self) -> list[tuple[int, int, int, int]]:
        rows = [self._offsets_of(a) for a in self.interface.arguments]
        if self.interface.returns is not None:
            rows.append(self._offsets_of(self.interface.returns))
        else:
            rows.append((NO_OFFSET,) * 4)
        return rows

    def _offsets_of(self, argument: Argument) -> tuple[int, int, int, int]:
        if argument.axis is not None:
            # An array behind an axis port has no register; `out` only marks its direction.
            return NO_OFFSET, 0 if argument.direction == "out" else NO_OFFSET, NO_OFFSET, 0
        slave = self._slave_of(argument.bundle)
        if slave is None or argument.offset is None:
            return (NO_OFFSET,) * 4
        page = self._page[slave]
        listed = self.ip.registers.get(slave) or self.ip.registers.get("") or {}
        if not listed and len(self.ip.registers) == 1:
            listed = next(iter(self.ip.registers.values()))
        names = {
            r.offset: r.name
            for r in self.interface.bundles.get(argument.bundle or "", ())
            if r.argument == argument.name or r.offset == argument.offset
        }

        def place(derived: int | None) -> int:
            """Prefer the offset the handoff lists for this register: that is the hardware."""
            if derived is None:
                return NO_OFFSET
            name = names.get(derived, argument.name)
            stem = name.removesuffix("_data")
            for candidate in (
                name,
                f"{name}_1",
                f"Memory_{name}",
                stem,
                f"{stem}_1",
                f"Memory_{stem}",
            ):
                if candidate in listed:
                    return page + listed[candidate]
            if listed and derived not in listed.values():
                warnings.warn(
                    f"{self.ip.name}: the source puts register {name} at 0x{derived:02x}, the "
                    "handoff lists no "
                    "such register; are these the sources the bitstream was built from?",
                    stacklevel=2,
                )
            return page + derived

        data = place(argument.offset)
        out = NO_OFFSET
        if argument.kind == "scalar_ptr" and argument.direction != "in":
            out = place(argument.offset_out) if argument.offset_out is not None else data
        valid = place(argument.offset_valid)
        if valid != NO_OFFSET:
            self._valid.add(valid)
        nbytes = 4
        if argument.kind in ("m_axi", "burst_maxi"):
            nbytes = self._address_bytes(argument, listed, data - page)
            if argument.direction != "in":
                self._pointers.append((data, nbytes))
        return data, out, valid, nbytes

    def _address_bytes(self, argument: Argument, listed: dict[str, int], at: int) -> int:
        if listed:
            # The hwh splits a 64-bit address into x_1 and x_2 (REGISTERS: names).
            return 8 if at + 4 in listed.values() else 4
        register = next(
            (r for r in self.interface.bundles.get(argument.bundle or "", ()) if r.offset == at),
            None,
        )
        return 8 if register is not None and register.width == 64 else 4

    # ---- the bus ---------------------------------------------------------------------------

    def connect(self) -> None:
        """Start a kernel that has no control register."""
        if self.free_running:
            self.engine.start()

    def backing(self, slave: str = "") -> memoryview | None:
        """Return the engine's register page."""
        page = self._page.get(slave, 0)
        return self.engine.registers[page:]

    def read(self, offset: int, slave: str = "") -> int:
        """Read a register as the HLS register file answers it."""
        if slave == self._control_slave and offset in self._control:
            return self._read_control(self._control[offset])
        at = self._page.get(slave, 0) + offset
        if at + 4 > self._nbytes:
            return 0
        if self._written is not None:
            self._catch_up()
        value = self._words[at >> 2]
        # Clearing a zero as well would lose a flag that the engine sets at this moment.
        if value and at in self._valid:
            self._words[at >> 2] = 0  # ap_vld is clear-on-read
        return value

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Write a register; AP_START starts the engine."""
        if slave == self._control_slave and offset in self._control:
            self._write_control(self._control[offset], value)
            return
        at = self._page.get(slave, 0) + offset
        if at + 4 <= self._nbytes:
            self._words[at >> 2] = value
            if self.free_running or self._auto:
                self._written = self.engine.completed

    def _catch_up(self) -> None:
        """Let a kernel that runs all the time see what was just written, before its result is read.

        On the board it has run often between two accesses; here it takes turns with the program.
        """
        assert self._written is not None
        seen, self._written = self._written + 2, None  # the run at work may have begun before
        deadline = time.monotonic() + _CATCH_UP_S
        while self.engine.completed < seen and time.monotonic() < deadline:
            if (
                self.engine.state in (State.WAIT_READ, State.WAIT_WRITE)
                and not self.engine.can_move
            ):
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
        self.last_run = Run(ended, self.engine.seconds)
        self._check_overrun()

    def _check_overrun(self) -> None:
        """Find writes past the end of a buffer that stayed within its last page."""
        for at, nbytes in self._pointers:
            address = int.from_bytes(self.engine.registers[at : at + nbytes], "little")
            first = self.board.memory.overrun(address)
            if first is not None:
                allocation = self.board.memory.find(address)
                raise self.board.fault_error(
                    f"{self.ip.name} wrote past the end of the {allocation}: the first byte behind "
                    "it that "
                    f"changed is at physical address 0x{first:08x}. On the board this overwrites "
                    "whatever lies "
                    "there. Check the length given to the kernel, and its loop bounds.",
                    self.ip.name,
                    first,
                )

    def raise_fault(self) -> None:
        """Raise what happened to the engine, with a fresh one in its place."""
        error = self.engine.fault()
        self.reset()
        raise error

    def reset(self) -> None:
        """Give up the run at work and start afresh; data registers keep their values.

        A board does this by loading the overlay again.
        """
        with self.lock:
            self._auto = False
            self.engine.set_flag(Flag.AUTO_RESTART, False)
            self.engine.spawn()
            self._seen = self._polls = self._isr = 0
            self._done = self._ready = False
            if self.free_running:
                self.engine.start()

    def _read_control(self, name: str) -> int:
        self._update()
        if name == "GIE":
            return self._gie
        if name == "IER":
            return self._ier
        if name == "ISR":
            value = self._isr
            if self._isr_clears:
                self._isr = 0
                self.board.raise_irq(self)
            return value
        busy = self.busy
        if busy and not self._done:
            self._polls += 1
            if self._polls % 64 == 0 and self.engine.faulted:
                self.raise_fault()
            self.board.polled(self, self._polls)
            self._update()
            busy = self.busy
        value = (_AP_START if busy else _AP_IDLE) | (_AUTO_RESTART if self._auto else 0)
        if self._done:
            value |= _AP_DONE
            if not self._chain:
                self._done = False
        if self._ready and self._ready_clears:
            value |= _AP_READY
            self._ready = False
        if self._shows_interrupt and self.irq(""):
            value |= _INTERRUPT
        return value

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
        if value & _AP_CONTINUE and self._chain:
            self._done = False
            self.engine.resume()
        start = value & _AP_START and not self._still_busy()
        auto = bool(value & _AUTO_RESTART)
        if auto != self._auto:
            self.engine.set_flag(Flag.AUTO_RESTART, auto)
            self._auto = auto
        if start:
            if self.engine.faulted:
                self.raise_fault()
            self._done = self._ready = False
            self._seen = self.engine.completed
            self.engine.start()
            self.board.settle()

    def _still_busy(self) -> bool:
        """Say whether ap_start is high already, so that a write to it has no effect.

        On silicon a kernel is done a few cycles after its last beat or write. Its process takes
        longer to say so, and a program that starts it anew in between must not lose the start.
        """
        deadline = time.monotonic() + _DONE_LAG_S
        while self.busy and time.monotonic() < deadline:
            if self._auto or self.engine.state == State.FAULT:
                break
            time.sleep(1e-4)
        self._update()
        return self.busy

    def _on_done(self) -> None:
        with self.lock:
            if self.engine.words[3] == State.FAULT:
                return  # the next register access raises it in the program's own thread
            self._update()
            self.board.raise_irq(self)

    def irq(self, pin: str) -> bool:
        """Return the interrupt output: GIE and any bit of ISR."""
        return bool(self._gie and self._isr)

    # ---- for people ------------------------------------------------------------------------

    @property
    def log(self) -> str:
        """What the kernel printed."""
        return self.engine.log

    def describe(self) -> dict[str, object]:
        """Return the unit's condition for a diagnosis."""
        state = self.engine.state
        return {
            "ip": self.ip.name,
            "kernel": self.interface.top,
            "state": state.name,
            "starts": self.engine.started,
            "runs": self.engine.completed,
            "blocked_on": self.engine.blocked_on,
            "streams": {
                str(p): {"waiting": r.occupancy, "beats": r.beats_written, "packets": r.packets}
                for p, r in zip(self.ports, self.engine.rings, strict=True)
            },
        }

    def wait_booted(self, timeout_s: float = 10.0) -> None:
        """Wait until the process serves; a program that cannot start says why."""
        deadline = time.monotonic() + timeout_s
        while self.engine.state == State.BOOTING and time.monotonic() < deadline:
            if self.engine.faulted:
                self.raise_fault()
            time.sleep(0.0005)

    def close(self) -> None:
        """End the engine."""
        if self._watched:
            self.board.unwatch(self.engine.done_fd)
        self.engine.close()


_CONTROL_NAMES = ("AP_CTRL", "GIE", "IER", "ISR")
