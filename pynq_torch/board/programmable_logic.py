"""The PL of a virtual board: the models of the overlay's IP, and whether they can still move."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from pynq_torch.errors import BoardHang

from .bus import Bus, IpModel
from .engine import EngineProcess, State
from .events import EventLoop
from .handoff import Handoff, IpInstance
from .handoff_nets import InterruptNet
from .handoff_wires import Wiring
from .hls_ip import HlsKernel
from .linux import FIRST_PL_IRQ, Linux
from .memory import PhysicalMemory
from .slcr import SLCR_BASE, SLCR_BYTES, Slcr
from .streams import Endpoint, Ring
from .vain_polls import VainPolls
from .wires import Wires
from .xadc import XADC_BASE, XADC_BYTES, PsXadc

#: IRQ_F2P[0..7] are GIC interrupts 61 to 68, [8..15] are 84 to 91 (UG585, table 7-3).
_PL_IRQS = (*range(FIRST_PL_IRQ, FIRST_PL_IRQ + 8), *range(84, 92))
#: Processor time that the PL gets for each register access of a program: about what the board's
#: processor takes for a few Python statements. The limit is for a PC that has none to give.
_HOST_CPU_S, _HOST_LIMIT_S = 1e-3, 0.5
#: A program that polls learns within this time that what it waits for has ended with an error.
_CHECK_S = 0.05


class ProgrammableLogic:
    """What is in the PL and the PS around it; to the models it is their `BoardServices`."""

    _unit_types: tuple[type[Any], ...] = (HlsKernel,)
    _engine_types: tuple[type[Any], ...] = (EngineProcess,)

    def __init__(self, memory: PhysicalMemory, hang_timeout_s: float) -> None:
        self.memory = memory
        memory.busy = self._any_busy
        self.hang_timeout_s = hang_timeout_s
        self.bus = Bus()
        self.vain_polls = VainPolls(self.bus, hang_timeout_s)
        self.handoff: Handoff | None = None
        self.tool_version = (2022, 2)
        self.ip: dict[str, IpModel] = {}
        self.rings: list[Ring] = []
        self._events: EventLoop | None = None
        self._progress: tuple[Any, ...] = ()
        self._progress_at: float
        self._checked_at = 0.0
        self.slcr = Slcr(self, IpInstance("slcr", "xilinx.com:ps7:slcr:1.0"))
        self.bus.attach(SLCR_BASE, SLCR_BYTES, self.slcr, "", "SLCR")
        self.xadc = PsXadc(self, IpInstance("xadc", "xilinx.com:ps7:xadc:1.0"))
        self.bus.attach(XADC_BASE, XADC_BYTES, self.xadc, "", "XADC")
        self.linux = Linux()
        self.wires = Wires(self, Wiring())
        self.linux.gpio.before_read = lambda: self.wires.read_emio()
        self.linux.gpio.after_drive = lambda: self.wires.update()

    @property
    def cus(self) -> dict[str, Any]:
        """The compute units of the loaded overlay by name (`HlsKernel`, on ``rtl`` `RtlUnit`)."""
        return {name: m for name, m in self.ip.items() if isinstance(m, self._unit_types)}

    def engines(self) -> list[Any]:
        """Return what every unit and data mover of the loaded overlay runs in."""
        return [
            e
            for m in tuple(self.ip.values())  # another thread may load an overlay meanwhile
            if isinstance(e := getattr(m, "engine", None), self._engine_types)
        ]

    def _any_busy(self) -> bool:
        return any(e.completed < e.started or e.state == State.RUNNING for e in self.engines())

    def open_ring(self, end: Endpoint, direction: str, data_bytes: int) -> Ring:
        """Return a stream that blocks, as open wires do: nothing modelled is at its other end."""
        ring = Ring(end, None, data_bytes) if direction == "out" else Ring(None, end, data_bytes)
        self.rings.append(ring)
        return ring

    def stream_rings(self, ip: str) -> dict[str, Ring]:
        """Return the streams of an IP by bus interface name."""
        ends = ((end, ring) for ring in self.rings for end in (ring.source, ring.sink))
        return {end.port: ring for end, ring in ends if end is not None and end.ip == ip}

    def clock_hz(self, ip: IpInstance) -> float:
        """Return the frequency of the PS clock that drives an IP, as the board would run it."""
        index = ip.clock[-1:]
        return self.slcr.fclk_hz(int(index) if index.isdigit() and int(index) < 4 else 0)

    def watch(self, fd: int, callback: Callable[[], None]) -> None:
        """Call ``callback`` in another thread each time the eventfd ``fd`` fires."""
        if self._events is None:
            self._events = EventLoop()
        self._events.watch(fd, callback)

    def unwatch(self, fd: int) -> None:
        """Stop watching ``fd``."""
        if self._events is not None:
            self._events.unwatch(fd)

    def raise_irq(self, model: IpModel) -> None:
        """Carry the interrupt outputs of ``model`` to what they are wired to."""
        for net in self.interrupt_nets:
            if net.ip == model.ip.name:
                self.set_interrupt(net.target, net.index, model.irq(net.pin))
        self.wires.update()

    @property
    def interrupt_nets(self) -> tuple[InterruptNet, ...]:
        """The interrupts of the loaded design that no gate is in the way of."""
        return self.handoff.interrupts if self.handoff is not None else ()

    def set_interrupt(self, target: str, index: int, level: bool) -> None:
        """Drive an input of the interrupt controller `target`, or of the PS where it is empty."""
        if target:
            controller = self.ip.get(target)
            if controller is not None:
                with controller.lock:
                    controller.set_input(index, level)
        elif index < len(_PL_IRQS):
            self.linux.set_irq(_PL_IRQS[index], level)

    def settle(self) -> None:
        """Let the PL get on with what a program just started; long work goes on by itself.

        On the board a short run is over before the next Python statement. Published programs rely
        on it, mostly unknowingly: they start a kernel or a DMA and use the result without a wait.
        """
        self.bus.before_access = self.pass_host_time
        self.pass_host_time()

    def pass_host_time(self) -> None:
        """Give the PL the time that a register access takes a program on the board.

        From a start on this comes before every access, until nothing can move any more.
        """
        engines = self.engines()
        if not self._work_along(engines) or not any(e.can_move for e in engines):
            self.bus.before_access = None

    def _work_along(self, engines: list[Any]) -> bool:
        """Wait while the engines work, for the time of an access; False where they do not."""
        deadline = time.monotonic() + _HOST_LIMIT_S
        used: float | None = None
        looks = 0
        while any(e.can_move for e in engines):
            looks += 1
            if looks < 200:
                os.sched_yield()
                if looks % 16:
                    continue  # a look at the processor time costs more than the pause
            else:
                time.sleep(5e-5)
            if time.monotonic() > deadline:
                return False  # a process that was stopped, or has no processor to run on
            if any(e.state == State.BOOTING for e in engines):
                continue  # starting a process is nothing the board has to do
            now = sum(e.cpu_seconds for e in engines)
            used = now if used is None else used
            if not now - used <= _HOST_CPU_S:  # nor is it once a process has ended
                return True
        return True

    def polled(self, model: IpModel, polls: int) -> None:
        """Note that a program read "still busy" from ``model`` for the ``polls``-th time in a row.

        Gives the engines processor time, and ends a wait that can never end.
        """
        if polls < 100:
            os.sched_yield()  # on a PC with few cores the engine may be waiting for this one
        else:
            time.sleep(2e-5 if polls < 2000 else 5e-4)
        # On a PC with much else to do a few polls may take the whole time of a wait.
        now = time.monotonic()
        self._checked_at = now if polls <= 1 else self._checked_at
        if polls % 64 == 0 or now - self._checked_at > _CHECK_S:
            self._checked_at = now
            self._check_progress()

    def wait_clock(self) -> float:
        """Return the seconds that bounded waits count: the wall clock of this PC."""
        return time.perf_counter()

    def _check_progress(self) -> None:
        """Raise what a callback or an engine ran into, or `BoardHang` where nothing can move."""
        if self._events is not None and self._events.error is not None:
            error, self._events.error = self._events.error, None
            raise error
        for model in tuple(self.ip.values()):
            engine = getattr(model, "engine", None)
            if (
                isinstance(model, self._unit_types)
                and isinstance(engine, self._engine_types)
                and engine.faulted
            ):
                model.raise_fault()
        engines = self.engines()
        running = any(
            e.state in (State.RUNNING, State.BOOTING) and e.completed < e.started and not e.stopped
            for e in engines
        )
        now = (
            tuple((e.state, e.started, e.completed) for e in engines),
            tuple((r.beats_written, r.beats_read) for r in self.rings),
        )
        if running or now != self._progress:
            self._progress = now
            self._progress_at = time.monotonic()
        elif time.monotonic() - self._progress_at > self.hang_timeout_s:
            self._progress = ()
            raise BoardHang(
                f"the program polls a register, and for {self.hang_timeout_s:g} s nothing in the "
                f"PL has moved or can move: {self._outlook(engines)}.\n{self.activity()}\n"
                "Use pynq_torch.wait(...) or pynq_torch.transfer(...) for a wait with a timeout "
                "and a diagnosis."
            )

    def _outlook(self, engines: list[Any]) -> str:
        held = sorted({e.name for e in engines if e.stopped})
        if held:
            return f"the process of {', '.join(held)} is stopped by a signal"
        silent = sorted({end.ip for ring in self.rings for end in self._unmodelled(ring)})
        if silent:
            return (
                f"here this waits for ever, since {', '.join(silent)} has no model and passes "
                "nothing on; the board may go on"
            )
        return "on the board this waits for ever"

    def _unmodelled(self, ring: Ring) -> list[Endpoint]:
        """Return the ends of a stream that belong to an IP without a model."""
        ends = (end for end in (ring.source, ring.sink) if end is not None)
        return [e for e in ends if e.ip not in self.ip or self.ip[e.ip].passes_nothing]

    def activity(self) -> str:
        """Say what every compute unit and every stream is doing, a line each."""
        lines = []
        for name, model in self.cus.items():
            engine = model.engine
            where = f" on {engine.blocked_on}" if engine.blocked_on else ""
            text = f"  {name}: {engine.state.name}{where}, {engine.completed} runs finished"
            if engine.stopped:
                text += f"; its process is stopped (kill -CONT {engine.pid} lets it go on)"
            lines.append(text)
        for ring in self.rings:
            silent = "".join(f"; {end.ip} has no model" for end in self._unmodelled(ring))
            lines.append(
                f"  {ring.source} -> {ring.sink}: {ring.beats_written} beats sent, "
                f"{ring.occupancy} waiting, {ring.packets} TLAST{silent}"
            )
        return "\n".join(lines)
