"""Board ``rtl``: the virtual PYNQ-Z2 with RTL behind the registers, cycle by cycle."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pynq_torch.board.bus import IpModel
from pynq_torch.board.device import VirtualBoard
from pynq_torch.board.engine import EngineProcess
from pynq_torch.board.hls_ip import HlsKernel
from pynq_torch.board.ip.axi_dma import AxiDma
from pynq_torch.board.ip.axi_vdma import AxiVdma
from pynq_torch.board.memory import CMA_BYTES
from pynq_torch.board.streams import Ring
from pynq_torch.errors import KernelError, NotModelledWarning, RtlFallback, RtlPortError

from .build import BuiltModel, build_engine, build_model
from .fallback import FallbackKernel
from .faults import error_of
from .hangs import LOOK_S
from .layout import PlState
from .memory_model import check_options
from .plan import PlOptions
from .process import Pl
from .sources import RtlSource, find_rtl
from .unit import RtlUnit
from .unit_engine import RtlEngine
from .wiring import memory_ports

if TYPE_CHECKING:
    from pynq_torch.board.handoff import Handoff, IpInstance

    from .records import PortCounters, Transaction

__all__ = ["TIMEOUT_CYCLES", "RtlBoard"]

#: A run that takes longer is taken for one that never ends: a second at 100 MHz.
TIMEOUT_CYCLES = 100_000_000
#: What a register access takes a Python program on the board (27 to 36 us measured by others).
_ACCESS_S = 31e-6
#: The most cycles that one access waits for because the program slept before it, a twelfth of a
#: second at 100 MHz; and the time that an access may take on a slow PC.
_SLEPT_CYCLES, _LIMIT_S, _SLEPT_LIMIT_S = 1 << 23, 5.0, 30.0


class RtlBoard(VirtualBoard):
    """A virtual PYNQ-Z2 that simulates the RTL of its kernels.

    A kernel without RTL runs as its compiled C++, with the cycles of its model, and a warning.
    While a run goes on, the seconds of ``wait(timeout_s=...)`` are the board's own: 10 s are 10^9
    cycles of 100 MHz, before which `timeout_cycles` ends it. While the clock is halted they are
    those of this PC.

    Parameters
    ----------
    name, cma_bytes, strict_cache, guard, kernels, sanitize
        As for `VirtualBoard`.
    hang_timeout_s : float
        As for `VirtualBoard`; also how long RTL may compute without ending a cycle.
    memory : {"pynq-z2", "ideal"}
        How long the way to DDR takes: as on the board, or a cycle.
    stalls : float
        Share of cycles in which a bus makes the design wait at random; from 0 to below 1.
    seed : int
        Of these waits.
    timeout_cycles : int
        A run that takes more gets `RtlTimeout`; 0: none does.
    """

    _unit_types = (HlsKernel, RtlUnit)
    _engine_types = (EngineProcess, RtlEngine)

    def __init__(
        self,
        name: str = "rtl",
        *,
        cma_bytes: int = CMA_BYTES,
        strict_cache: bool = False,
        guard: bool | str = True,
        kernels: Iterable[str | os.PathLike[str]] = (),
        sanitize: bool = False,
        hang_timeout_s: float = 30.0,
        memory: str = "pynq-z2",
        stalls: float = 0.0,
        seed: int = 0,
        timeout_cycles: int = TIMEOUT_CYCLES,
    ) -> None:
        check_options(memory, stalls, seed, timeout_cycles)
        super().__init__(
            name,
            cma_bytes=cma_bytes,
            strict_cache=strict_cache,
            guard=guard,
            kernels=kernels,
            sanitize=sanitize,
            hang_timeout_s=hang_timeout_s,
        )
        self.on_unload(self._end_recordings)
        #: The process that simulates the loaded overlay; None where no unit of it has RTL.
        self.pl: Pl | None = None
        self.memory_model = memory
        self._options = PlOptions(
            memory, stalls, seed, timeout_cycles=timeout_cycles, hang_timeout_s=hang_timeout_s
        )
        self._sources: dict[str, RtlSource] = {}
        # What `wait_clock` saw last: wall clock, seconds so far, the PL and its cycles.
        self._waiting = threading.Lock()
        self._wall, self._elapsed = time.perf_counter(), 0.0
        self._counted: tuple[Pl | None, int, int] = (None, 0, 0)
        #: Kernels that a warning has named, and those of the overlay being loaded.
        self._told: set[str] = set()
        self._without: list[str] = []
        #: The PL's cycle and the PC's clock after the last access of the program.
        self._accessed = (0, 0.0)
        self._told_slow: set[str] = set()

    # ---- building the PL ---------------------------------------------------------------------

    def _find_source(self, ip: IpInstance) -> Any:
        source = find_rtl(self.kernel_paths, ip.vlnv_name, ip)
        if source is not None:
            return source
        kernel = super()._find_source(ip)
        if kernel is not None and ip.vlnv_name not in self._told:
            self._without.append(ip.vlnv_name)
        return kernel

    def _kernel_of(self, ip: IpInstance) -> str:
        # Instances of one IP may have parameters of their own; those alike share what is built.
        return ip.name

    def _build_kernel(self, source: Any, handoff: Handoff) -> Any:
        if isinstance(source, RtlSource) and source.ip is not None:
            self._sources[source.ip.name] = source
            return build_model(source)
        return super()._build_kernel(source, handoff)

    def _build(self, handoff: Handoff) -> dict[str, Any]:
        self._without = []
        builds = super()._build(handoff)
        _check_interrupts(handoff, builds)
        if self._without:
            self._told.update(self._without)
            kernels = sorted(set(self._without))
            names = ", ".join(kernels)
            verb, whose = ("has", "its") if len(kernels) == 1 else ("have", "their")
            warnings.warn(
                f"{names} {verb} no RTL: board rtl runs {whose} compiled C++ instead, with "
                "modelled cycles (Run.kind says so). RTL belongs into a folder rtl/ beside the "
                "C++, or the export of Vitis HLS into a folder given with kernels=[...].",
                RtlFallback,
                stacklevel=2,
            )
        if any(isinstance(build, BuiltModel) for build in builds.values()):
            build_engine()
        return builds

    def _make_unit(self, ip: IpInstance, build: Any, rings: dict[str, Ring]) -> IpModel:
        if isinstance(build, BuiltModel):
            return RtlUnit(self, ip, build, rings)
        return FallbackKernel(self, ip, build, rings)

    def _rtl_units(self) -> list[RtlUnit]:
        return [model for model in tuple(self.ip.values()) if isinstance(model, RtlUnit)]

    def _start_units(self, handoff: Handoff) -> None:
        units = self._rtl_units()
        if not units:
            return
        names = {unit.ip.name for unit in units}
        ports = memory_ports(handoff.path)
        for model in self.ip.values():
            if isinstance(model, (AxiDma, AxiVdma)):
                # A process that starts with the first transfer would be waited for in cycles.
                model.start_engine()
        engines = {
            name: engine
            for name, model in self.ip.items()
            if isinstance(engine := getattr(model, "engine", None), EngineProcess)
        }
        for unit in units:
            unit.plan_streams(names, ports, engines)
            unit.plan_wires()
        options = replace(self._options, clock_hz=self.clock_hz(units[0].ip) or 100e6)
        self.pl = Pl(build_engine(), self.memory, [u.plan for u in units], options, self._rebuild)
        for index, unit in enumerate(units):
            unit.attach(self.pl, index)
            self.pl.locks.append(unit.lock)
            self.pl.unsaved.append(unit.unsaved)
        self._boot()

    def _boot(self) -> None:
        """Start the process, and raise what keeps it from running."""
        assert self.pl is not None
        self.pl.spawn()
        self.pl.wait_running()
        if self.pl.faulted:
            raise error_of(self.pl, self.memory)

    def _end_recordings(self) -> None:
        for recording in set(self.pl.recordings.values()) if self.pl is not None else ():
            recording.overlay_goes()

    def _unload(self) -> None:
        super()._unload()
        if self.pl is not None:
            self.pl.close()
            self.pl = None

    def _rebuild(self, unit: str, waves: str) -> BuiltModel:
        """Return the model of a unit's kernel that writes ``waves``."""
        return build_model(self._sources[unit], waves=waves)

    def pl_ended(self, asking: RtlUnit) -> KernelError:
        """Return what ended the PL, with a fresh one in its place.

        Units that were running get the same error at their next access.
        """
        with self._loading:
            pl = self.pl
            if pl is None or not pl.faulted:  # another thread has seen to it
                error = asking.pending_error()
                return error or KernelError(
                    f"{asking.ip.name} was reset: the PL ended, and another thread was told why",
                    asking.ip.name,
                )
            error = error_of(pl, self.memory, asking.ip.name)
            for unit in self._rtl_units():
                others = unit is not asking and unit.busy
                unit.fail(error_of(pl, self.memory, unit.ip.name) if others else None)
            self.memory.mend()
            self._boot()
            return error

    # ---- progress ----------------------------------------------------------------------------

    def settle(self) -> None:
        """Let the PL get on with what a program just started, for as long as a statement takes."""
        if self.pl is not None:
            self.pl.wake()
            self._accessed = (self.pl.cycle, time.monotonic())
        super().settle()

    def _work_along(self, engines: list[Any]) -> bool:
        """Let the clock run for the time that the program took since its last access.

        That is what an access takes on the board, and longer where it slept while a run goes on.
        """
        pl = self.pl
        if pl is None:
            return super()._work_along(engines)
        begin, since = min(self._accessed[0], pl.cycle), self._accessed[1]
        slept_s = time.monotonic() - since if any(u.busy for u in self._rtl_units()) else 0.0
        asked = int(max(slept_s, _ACCESS_S) * pl.clock_hz)
        until = begin + min(asked, _SLEPT_CYCLES)
        deadline = time.monotonic() + min(_LIMIT_S + 300 * slept_s, _SLEPT_LIMIT_S)
        looks = 0
        units = [e for e in engines if isinstance(e, RtlEngine)]
        moving = True
        while pl.cycle < until and (moving := any(e.can_move for e in units)):
            looks += 1
            if looks < 200:
                os.sched_yield()
            else:
                time.sleep(5e-5)
            if looks % 16 == 0 and time.monotonic() > deadline:
                break
        self._accessed = (pl.cycle, time.monotonic())
        behind = moving and pl.cycle < begin + asked
        if behind and slept_s > _ACCESS_S and any(e.can_move for e in units):
            self._tell_slow(slept_s, asked, pl.cycle - begin)
        others = super()._work_along([e for e in engines if e not in units])
        return others or pl.cycle > begin

    def _tell_slow(self, slept_s: float, asked: int, ran: int) -> None:
        """Say once that a program which slept goes on before the run is over."""
        names = ", ".join(unit.ip.name for unit in self._rtl_units() if unit.busy)
        if names in self._told_slow:
            return
        self._told_slow.add(names)
        warnings.warn(
            f"the program waited {slept_s:.3g} s for {names} without looking at it. On a board "
            f"these are {asked} cycles, of which {ran} were simulated: its run is not over. Wait "
            "for AP_DONE or the interrupt instead.",
            NotModelledWarning,
            stacklevel=6,
        )

    def wait_clock(self) -> float:
        """Return the seconds that bounded waits count.

        While a run goes on they are the board's own: cycles by the clock's frequency. While the
        clock is halted, or nothing runs, they are those of this PC, but for those in which it let
        this program wait.
        """
        pl, wall = self.pl, time.perf_counter()
        if pl is not None:
            pl.end_if_stuck()  # its cycles would never say that time has passed
        with self._waiting:
            passed = min(wall - self._wall, LOOK_S)
            if pl is not None:
                cycles = pl.cycle
                same = (pl, pl.spawns) == self._counted[:2]
                if same and pl.state == PlState.RUNNING and any(u.busy for u in self._rtl_units()):
                    passed = min(passed, (cycles - self._counted[2]) / pl.clock_hz)
                self._counted = (pl, pl.spawns, cycles)
            self._wall = wall
            self._elapsed += passed
            return self._elapsed

    def _check_progress(self) -> None:
        if self.pl is not None:
            self.pl.end_if_stuck()
        super()._check_progress()

    # ---- for people --------------------------------------------------------------------------

    def trace_records(self) -> Sequence[Transaction]:
        """Return the transactions on the buses, oldest first; the last 65,536 are kept."""
        return self.pl.trace_window().transactions if self.pl is not None else ()

    def counter_records(self) -> Sequence[PortCounters]:
        """Return what every port moved and waited for since the overlay was loaded."""
        return self.pl.port_counters() if self.pl is not None else ()

    def waves(self, path: str | os.PathLike[str], units: Any = None, **options: Any) -> Any:
        """Record waves; see `pynq_torch.board.rtl.observe.waves.Waves`."""
        from .observe.waves import Waves

        return Waves(self, path, units, **options)

    def trace(self) -> Any:
        """Return the transactions on the buses as a table, an `observe.bus_trace.Trace`."""
        from .observe.bus_trace import Trace

        return Trace.of(self)

    def counters(self) -> Any:
        """Return the counters of the ports, as `observe.bus_counters.Counters`."""
        from .observe.bus_counters import Counters

        return Counters.of(self)


def _check_interrupts(handoff: Handoff, builds: Mapping[str, Any]) -> None:
    """Raise where the design connects an interrupt that a kernel's RTL does not have.

    A program would wait for it for ever. One that is connected to nothing need not be there.
    """
    for net in handoff.interrupts:
        ip = handoff.ips.get(net.ip)
        build = builds.get(ip.name) if ip is not None else None
        if isinstance(build, BuiltModel) and build.interfaces.interrupt != net.pin:
            raise RtlPortError(
                f"{net.ip}: the design connects its interrupt output {net.pin}, and module "
                f"{build.top} has no such output. Add it, or build the overlay again without it",
                net.ip,
            )
