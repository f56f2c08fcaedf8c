"""The virtual PYNQ-Z2: a ``pynq.Device`` whose programmable logic is processes on this PC."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pynq.metadata.runtime_metadata_parser import RuntimeMetadataParser
from pynq.mmio import MMIO
from pynq.pl_server.device import Device
from pynqmetadata.frontends import Metadata

from pynq_torch import paths
from pynq_torch.errors import BoardError, BoardHang, HandoffError

from .bus import Bus, IpModel, RegisterArray
from .engine import EngineProcess, State
from .events import EventLoop
from .handoff import PACKAGE, Handoff, IpInstance, read_handoff
from .hls_binding import Binding
from .hls_ip import HlsKernel, NoModel
from .interrupts import deferred_interrupt
from .linux import FIRST_PL_IRQ, Linux
from .memory import CMA_BYTES, DDR_BYTES, Allocation, PhysicalMemory
from .slcr import SLCR_BASE, SLCR_BYTES, Slcr
from .streams import Endpoint, Ring
from .vain_polls import VainPolls

#: IRQ_F2P[0..7] are GIC interrupts 61 to 68, [8..15] are 84 to 91 (UG585, table 7-3).
_PL_IRQS = (*range(FIRST_PL_IRQ, FIRST_PL_IRQ + 8), *range(84, 92))
#: Processor time that the PL gets before the write which starts something returns: about what the
#: board's processor takes for a few Python statements. The limit is for a PC that has none to give.
_SETTLE_CPU_S, _SETTLE_LIMIT_S = 1e-3, 0.5


class VirtualMemory:
    """A memory as ``overlay.<name>`` and ``allocate(target=...)`` see it (pynq: ``XrtMemory``)."""

    def __init__(self, device: VirtualBoard, description: dict[str, Any]) -> None:
        self.device = device
        self.desc = description
        self.idx = description.get("idx", 0)
        self.base_address = int(description.get("base_address", description.get("phys_addr", 0)))
        self.size = int(description.get("size", description.get("addr_range", DDR_BYTES)))

    def allocate(self, shape: Any, dtype: Any, **options: Any) -> Any:
        """Allocate a buffer in CMA memory; block RAM is reached through ``mmio`` instead."""
        if self.base_address != 0:
            raise BoardError(
                f"the memory at 0x{self.base_address:08x} is block RAM of the PL; use its .mmio, "
                "or "
                "allocate() without a target for DDR"
            )
        return self.device.memory.allocate(shape, dtype, device=self.device, **options)

    @property
    def mmio(self) -> MMIO:
        """The memory as an MMIO object."""
        return MMIO(self.base_address, self.size, device=self.device)

    def read(self, address: int) -> int:
        """Read a 32-bit word at a byte offset into the memory."""
        return int(self.mmio.read(address))

    def write(self, address: int, value: Any) -> None:
        """Write a 32-bit word, or bytes, at a byte offset into the memory."""
        self.mmio.write(address, value)

    @property
    def mem_used(self) -> int:
        """Bytes of CMA in use."""
        return self.device.memory.used_bytes

    @property
    def num_buffers(self) -> int:
        """Live buffers."""
        return len(self.device.memory.buffers())


class VirtualBoard(Device):
    """A PYNQ-Z2 without the board.

    Parameters
    ----------
    name : str
        Engine behind the kernels: ``"csim"`` (compiled C++).
    cma_bytes : int
        Size of the CMA region in bytes (image v3.1: 128 MB).
    strict_cache : bool
        A missing ``flush`` or ``invalidate`` gives stale data.
    guard : bool
        Kernels may touch their buffers only.
    kernels : sequence of paths
        Folders with HLS sources, searched before ``PYNQ_TORCH_KERNELS`` and ``hw/kernels``.
    sanitize : bool
        Build kernels with ``-fsanitize=address,undefined``.
    hang_timeout_s : float
        A program that polls while nothing in the PL can move any more gets ``BoardHang`` after
        this long; ten times as long where another thread may still start what it waits for.
    """

    _probe_priority_ = 10
    _unit_types: tuple[type[Any], ...] = (HlsKernel,)
    _engine_types: tuple[type[Any], ...] = (EngineProcess,)

    @classmethod
    def _probe_(cls) -> list[Device]:
        # A virtual board exists only when it is asked for (use_board); pynq finds none by itself.
        return []

    def __init__(
        self,
        name: str = "csim",
        *,
        cma_bytes: int = CMA_BYTES,
        strict_cache: bool = False,
        guard: bool = True,
        kernels: Iterable[str | os.PathLike[str]] = (),
        sanitize: bool = False,
        hang_timeout_s: float = 30.0,
    ) -> None:
        if not 0 < hang_timeout_s < float("inf"):
            raise ValueError(
                f"hang_timeout_s is {hang_timeout_s}; expected a number of seconds greater than 0 "
                "and finite: every wait here ends"
            )
        super().__init__(f"virtual_{name}")
        self.board_name = name
        self.name = "Pynq-Z2"
        self.arch = "armv7l"
        self.capabilities = {"MEMORY_MAPPED": True, "REGISTER_RW": False, "CALLABLE": False}
        self.kernel_paths = _kernel_paths(kernels)
        self.sanitize = sanitize
        self.hang_timeout_s = hang_timeout_s
        self.memory = PhysicalMemory(cma_bytes, strict_cache, guard)
        self.memory.busy = self._any_busy
        self.bus = Bus()
        self.vain_polls = VainPolls(self.bus, hang_timeout_s)
        self.handoff: Handoff | None = None
        self.tool_version: tuple[int, int] = (2022, 2)
        self.ip: dict[str, IpModel] = {}
        self.rings: list[Ring] = []
        self._events: EventLoop | None = None
        self._loading = threading.RLock()
        self._remarked: set[str] = set()
        self._progress: tuple[Any, ...] = ()
        self._progress_at = time.monotonic()
        self._pid = os.getpid()
        self.closed = False
        self._at_close: list[Callable[[], object]] = []
        self._at_load: list[Callable[[], object]] = []
        self._at_unload: list[Callable[[], object]] = []
        self.timestamp = ""
        self.bitfile_name = ""
        self.clear_dict()
        self.slcr = Slcr(self, IpInstance("slcr", "xilinx.com:ps7:slcr:1.0"))
        self.bus.attach(SLCR_BASE, SLCR_BYTES, self.slcr, "", "SLCR")
        self.linux = Linux(self)

    # ---- what pynq asks of a device ----------------------------------------------------------

    @property
    def default_memory(self) -> VirtualMemory:
        """DDR, where ``allocate`` without a target takes its memory."""
        return VirtualMemory(self, {"base_address": 0, "size": DDR_BYTES, "idx": 0})

    def get_memory(self, description: dict[str, Any]) -> VirtualMemory:
        """Return the memory that an entry of ``mem_dict`` describes."""
        return VirtualMemory(self, description)

    def get_memory_by_name(self, name: str) -> VirtualMemory:
        """Return the memory called ``name`` in ``mem_dict``."""
        if name not in self.mem_dict:
            raise BoardError(
                f"no memory is called {name!r}; there are {', '.join(self.mem_dict) or 'none'}"
            )
        return self.get_memory(self.mem_dict[name])

    def flush(self, bo: Allocation, offset: int, ptr: int, size: int) -> None:
        """Write the CPU's cached copy of a buffer to DDR."""
        self.memory.flush(bo)

    def invalidate(self, bo: Allocation, offset: int, ptr: int, size: int) -> None:
        """Drop the CPU's cached copy of a buffer."""
        self.memory.invalidate(bo)

    def mmap(self, base_addr: int, length: int) -> Any:
        """Return the array over a physical range, as ``/dev/mem`` would."""
        import numpy as np

        if base_addr < DDR_BYTES:
            view = self.memory.view(base_addr, length)
            return np.frombuffer(view, np.uint32, length >> 2)
        region = self.bus.find(base_addr)
        offset = base_addr - region.base
        plain = region.model.memory(region.slave)
        if plain is not None and offset + length <= len(plain):
            return np.frombuffer(plain[offset : offset + length], np.uint32, length >> 2)
        backing = region.model.backing(region.slave)
        return RegisterArray.over(
            self.bus, base_addr, length, backing[offset:] if backing is not None else None
        )

    def get_bitfile_metadata(
        self, bitfile_name: str, partial: bool = False
    ) -> RuntimeMetadataParser:
        """Parse the ``.hwh`` beside a bitstream; never from pynq's cache, which may be stale."""
        if partial:
            raise BoardError(
                f"{Path(bitfile_name).name} is a partial bitstream: partial reconfiguration is not "
                "modelled"
            )
        path = Path(bitfile_name).with_suffix(".hwh")
        try:
            handoff = read_handoff(path)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise HandoffError(
                f"{path.name} is damaged: {error}. Copy the .hwh of the Vivado run again."
            ) from error
        if handoff.package != PACKAGE:
            warnings.warn(
                f"{path.name} is for package {handoff.package}; a PYNQ-Z2 has {PACKAGE}. The same "
                "die, "
                "other pins.",
                stacklevel=2,
            )
        try:
            parser = RuntimeMetadataParser(_metadata(path))
        except Exception as error:  # pynqmetadata has a dozen kinds of its own
            short = [
                ip.vlnv for ip in handoff.ips.values() if "." not in ip.vlnv.rpartition(":")[2]
            ]
            hint = (
                f" (pynq needs a minor version; these have none: {', '.join(short)})"
                if short
                else ""
            )
            raise HandoffError(
                f"pynq's own parser fails on {path.name}: {type(error).__name__}: {error}{hint}. "
                "It "
                "would fail on the board too. Copy the .hwh of the Vivado run again, or repackage "
                "an IP that has no version like 1.0."
            ) from error
        for index, entry in enumerate(parser.mem_dict.values(), start=1):
            # What XRT adds to each memory on the board (pynq: _unify_dictionaries).
            entry.update(
                base_address=entry["phys_addr"],
                size=entry["addr_range"],
                idx=index,
                tag=f"MIG{index}",
                streaming=False,
                raw_type=2,
            )
        parser.mem_dict["PSDDR"] = {
            "raw_type": 2,
            "used": 1,
            "base_address": 0,
            "size": DDR_BYTES,
            "type": "DDR4",
            "streaming": False,
            "idx": 0,
            "tag": "PSDDR",
        }
        parser.handoff = handoff
        return parser

    def gen_cache(self, bitstream: Any, parser: Any = None) -> None:
        """Do nothing: the virtual board keeps no cache that could go stale."""

    def download(self, bitstream: Any, parser: Any = None) -> None:
        """Load an overlay: end the old design's engines, build and start the new one's."""
        if self.closed:
            raise BoardError(
                f"{Path(bitstream.bitfile_name).name} cannot be loaded: the PL "
                f"{self.memory.gone}; call pynq_torch.use_board() again"
            )
        if parser is None:
            raise BoardError(
                f"{Path(bitstream.bitfile_name).name} was downloaded without a hardware handoff: "
                "use pynq.Overlay, which reads the .hwh, instead of pynq.Bitstream"
            )
        handoff: Handoff = parser.handoff
        builds = self._build(handoff)
        # Half an overlay is none: another thread's download waits, and so does Ctrl-C (some 50 ms).
        with self._loading, deferred_interrupt():
            self.timestamp = ""  # nothing is loaded, until `post_download` says what is
            self._unload()
            self.handoff = handoff
            self.tool_version = _version(handoff.tool_version)
            try:
                self._populate(handoff, builds)
            except BaseException:
                self._unload()
                raise
            self.post_download(bitstream, parser, self.name)
            for call in self._at_load:
                call()

    # ---- building the PL ---------------------------------------------------------------------

    def _build(self, handoff: Handoff) -> dict[str, Any]:
        """Compile every kernel of the design, before anything of the old one is touched."""
        sources = {}
        for ip in handoff.ips.values():
            if ip.is_kernel and (ip.slaves or ip.stream_ports) and ip.vlnv_name not in sources:
                source = self._find_source(ip)
                if source is not None:
                    sources[ip.vlnv_name] = source
        from .models import MODELS

        kinds = {ip.vlnv_name for ip in handoff.ips.values()} & set(MODELS)

        def build(source: Any) -> Any:
            return self._build_kernel(source, handoff)

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            prepared = [pool.submit(MODELS[kind].prepare) for kind in sorted(kinds)]
            built = dict(zip(sources, pool.map(build, sources.values()), strict=True))
            for task in prepared:
                task.result()
        self._check_sources(handoff, built)
        return built

    def _check_sources(self, handoff: Handoff, builds: dict[str, Any]) -> None:
        """Refuse C++ that is not what the design was built from; say once what else differs."""
        from pynq_torch.hls import Build

        for ip in handoff.ips.values():
            build = builds.get(ip.vlnv_name) if ip.is_kernel else None
            if not isinstance(build, Build):
                continue
            remarks = "; ".join(Binding(ip, build.interface).check(handoff.path))
            if not remarks:
                continue
            text = (
                f"{ip.vlnv_name}: {build.interface.source} and {handoff.path} differ: {remarks}. "
                "Are these the sources the bitstream was built from?"
            )
            if text not in self._remarked:
                self._remarked.add(text)
                warnings.warn(text, stacklevel=2)

    def _find_source(self, ip: IpInstance) -> Any:
        """Return the source of an IP's kernel; what a program was given comes first.

        Wherever it lies in there, it comes before the project's own kernel of the same name.
        """
        from pynq_torch import hls

        given = [path for path in self.kernel_paths if path != paths.KERNELS]
        kernel = hls.find_kernel(ip.vlnv_name, given)
        return kernel or hls.find_kernel(ip.vlnv_name, self.kernel_paths)

    def _build_kernel(self, source: Any, handoff: Handoff) -> Any:
        from pynq_torch import hls

        return hls.build(source, tool=handoff.hls_tool, sanitize=self.sanitize)

    def _make_unit(self, ip: IpInstance, build: Any, rings: dict[str, Ring]) -> IpModel:
        """Return the model of a compute unit that was built."""
        return HlsKernel(self, ip, build, rings)

    def _start_units(self, handoff: Handoff) -> None:
        """Start what several units share; called once every model of the overlay exists."""

    def _populate(self, handoff: Handoff, builds: dict[str, Any]) -> None:
        from .models import MODELS

        by_ip: dict[str, dict[str, Ring]] = {}
        for link in handoff.links:
            if not self._modelled(link.source, handoff, builds) and not self._modelled(
                link.sink, handoff, builds
            ):
                continue
            ring = Ring(link.source, link.sink, link.data_bytes or link.sink_bytes or 4, link.depth)
            self.rings.append(ring)
            for end in (link.source, link.sink):
                if end is not None:
                    by_ip.setdefault(end.ip, {})[end.port] = ring
        # Block RAM first: an engine maps the memories that exist when it starts.
        ordered = sorted(handoff.ips.values(), key=lambda ip: ip.vlnv_name != "axi_bram_ctrl")
        for ip in ordered:
            if ip.vlnv_name == "processing_system7" or not (ip.slaves or ip.stream_ports):
                continue
            model: IpModel
            if ip.vlnv_name in builds and ip.is_kernel:
                rings = by_ip.setdefault(ip.name, {})
                model = self._make_unit(ip, builds[ip.vlnv_name], rings)
            elif ip.vlnv_name in MODELS:
                model = MODELS[ip.vlnv_name](self, ip)
            elif ip.slaves:
                model = NoModel(self, ip, [str(p) for p in self.kernel_paths])
            else:
                continue
            self.ip[ip.name] = model
            for slave in ip.slaves:
                self.bus.attach(slave.base, slave.nbytes, model, slave.interface, ip.name)
        self._start_units(handoff)
        for model in self.ip.values():
            model.connect()

    @staticmethod
    def _modelled(end: Endpoint | None, handoff: Handoff, builds: dict[str, Any]) -> bool:
        from .models import MODELS

        if end is None:
            return False
        kind = handoff.ips[end.ip].vlnv_name
        return kind in builds or kind in MODELS

    def open_ring(self, end: Endpoint, direction: str, data_bytes: int) -> Ring:
        """Return a stream whose other end nothing modelled holds: it blocks, as open wires do."""
        ring = Ring(end, None, data_bytes) if direction == "out" else Ring(None, end, data_bytes)
        self.rings.append(ring)
        return ring

    def stream_rings(self, ip: str) -> dict[str, Ring]:
        """Return the streams of an IP by bus interface name."""
        found: dict[str, Ring] = {}
        for ring in self.rings:
            for end in (ring.source, ring.sink):
                if end is not None and end.ip == ip:
                    found[end.port] = ring
        return found

    def _unload(self) -> None:
        if self.ip:
            for call in self._at_unload:
                call()
        for model in self.ip.values():
            with model.lock:
                model.close()
        self.ip.clear()
        for ring in self.rings:
            ring.close()
        self.rings.clear()
        self.bus.clear(keep=[self.slcr])
        self.memory.drop_windows()
        self._progress = ()

    # ---- progress, hangs, interrupts -----------------------------------------------------------

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

    def settle(self) -> None:
        """Let the PL get on with what a program just started; long work goes on by itself.

        On the board a short run is over before the next Python statement. Published programs rely
        on it, mostly unknowingly: they start a kernel or a DMA and use the result without a wait.
        """
        engines = self.engines()
        deadline = time.monotonic() + _SETTLE_LIMIT_S
        used: float | None = None
        looks = 0
        while any(e.can_move for e in engines):
            looks += 1
            if looks < 200:
                os.sched_yield()
            else:
                time.sleep(5e-5)
            if looks < 200 and looks % 16:
                continue  # a look at the processor time costs more than the pause
            if time.monotonic() > deadline:
                return
            if any(e.state == State.BOOTING for e in engines):
                continue  # starting a process is nothing the board has to do
            now = sum(e.cpu_seconds for e in engines)
            used = now if used is None else used
            if now - used > _SETTLE_CPU_S:
                return

    def polled(self, model: IpModel, polls: int) -> None:
        """Note that a program read "still busy" from ``model`` for the ``polls``-th time in a row.

        Gives the engines processor time, and ends a wait that can never end.
        """
        if polls < 100:
            os.sched_yield()  # on a PC with few cores the engine may be waiting for this one
            return
        time.sleep(2e-5 if polls < 2000 else 5e-4)
        if polls % 64 == 0:
            self._check_progress()

    def wait_clock(self) -> float:
        """Return the seconds that bounded waits count: the wall clock of this PC."""
        return time.perf_counter()

    def _check_progress(self) -> None:
        error = self._events.error if self._events is not None else None
        if error is not None and self._events is not None:
            self._events.error = None
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
            silent = sorted({end.ip for ring in self.rings for end in self._unmodelled(ring)})
            held = sorted({e.name for e in engines if e.stopped})
            outlook = (
                f"the process of {', '.join(held)} is stopped by a signal"
                if held
                else f"here this waits for ever, since {', '.join(silent)} has no model and passes "
                "nothing on; the board may go on"
                if silent
                else "on the board this waits for ever"
            )
            raise BoardHang(
                f"the program polls a register, and for {self.hang_timeout_s:g} s nothing in the "
                f"PL has moved or can move: {outlook}.\n{self.activity()}\n"
                "Use pynq_torch.wait(...) or pynq_torch.transfer(...) for a wait with a timeout "
                "and a diagnosis."
            )

    def _unmodelled(self, ring: Ring) -> list[Endpoint]:
        """Return the ends of a stream that belong to an IP without a model."""
        return [
            end
            for end in (ring.source, ring.sink)
            if end is not None and (end.ip not in self.ip or isinstance(self.ip[end.ip], NoModel))
        ]

    def activity(self) -> str:
        """Say what every compute unit and every stream is doing, a line each."""
        lines = []
        for name, model in self.cus.items():
            engine = model.engine
            where = f" on {engine.blocked_on}" if engine.blocked_on else ""
            stopped = (
                f"; its process is stopped (kill -CONT {engine.pid} lets it go on)"
                if engine.stopped
                else ""
            )
            lines.append(
                f"  {name}: {engine.state.name}{where}, {engine.completed} runs finished{stopped}"
            )
        for ring in self.rings:
            silent = "".join(f"; {end.ip} has no model" for end in self._unmodelled(ring))
            lines.append(
                f"  {ring.source} -> {ring.sink}: {ring.beats_written} beats sent, "
                f"{ring.occupancy} waiting, {ring.packets} TLAST{silent}"
            )
        return "\n".join(lines)

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
        if self.handoff is None:
            return
        for net in self.handoff.interrupts:
            if net.ip != model.ip.name:
                continue
            level = model.irq(net.pin)
            if net.target:
                controller = self.ip.get(net.target)
                if controller is not None:
                    with controller.lock:
                        controller.set_input(net.index, level)
            elif net.index < len(_PL_IRQS):
                self.linux.set_irq(_PL_IRQS[net.index], level)

    def clock_hz(self, ip: IpInstance) -> float:
        """Return the frequency of the PS clock that drives an IP, as the board would run it."""
        index = ip.clock[-1:]
        return self.slcr.fclk_hz(int(index) if index.isdigit() and int(index) < 4 else 0)

    # ---- life --------------------------------------------------------------------------------

    def install(self) -> None:
        """Become the device that pynq uses."""
        from pynq.ps import Clocks

        Device._devices = [self]
        Device.active_device = self
        _forget_clocks()
        Clocks.set_device(self)
        self.linux.install()

    def close(self) -> None:
        """End every engine and give memory, processes and descriptors back."""
        if self.closed or os.getpid() != self._pid:
            return  # a forked child must not end its parent's engines
        self.closed = True
        self._unload()
        self._disown("belongs to a board that was closed")
        for call in self._at_close:
            call()
        self.linux.uninstall()
        if self._events is not None:
            self._events.close()
        self.memory.close()

    def on_close(self, call: Callable[[], object]) -> None:
        """Call ``call`` when the board is closed: for who keeps some of its memory ready."""
        self._at_close.append(call)

    def on_load(self, call: Callable[[], object]) -> None:
        """Call ``call`` each time an overlay has been loaded."""
        self._at_load.append(call)

    def on_unload(self, call: Callable[[], object]) -> None:
        """Call ``call`` before a loaded overlay goes, also when the board is closed."""
        self._at_unload.append(call)

    def left_in_child(self) -> None:
        """Let go of the PL in a forked child: engines, registers and memory are its parent's."""
        self.closed = True
        self._disown(f"belongs to process {self._pid}, from which this one was forked")

    def _disown(self, why: str) -> None:
        self.bus.clear()
        self.bus.gone = why
        self.memory.disown(why)

    def __repr__(self) -> str:
        loaded = Path(self.bitfile_name).name if self.bitfile_name else "no overlay"
        return f"<VirtualBoard {self.board_name}: PYNQ-Z2, {loaded}>"


def _metadata(path: Path) -> Any:
    """Return the parsed handoff in the form that pynq 3.1 reads.

    pynqmetadata 0.2 files a manager's subordinate ports by port and address block; pynq 3.1.2 looks
    memories up by port alone and fails on every design with block RAM. The port's name is added as
    a second key; nothing of either package is changed.
    """
    found = Metadata(input=path)
    for block in found.blocks.values():
        for port in block.ports.values():
            for key, entry in getattr(port, "addrmap", {}).items():
                port._addrmap_obj.setdefault(entry["subord_port"], port._addrmap_obj[key])
    return found


def _forget_clocks() -> None:
    """Let ``pynq.Clocks`` make its registers again: it keeps those of the first device for ever."""
    from pynq.ps import Clocks

    if "_real_instance" in vars(Clocks):
        del Clocks._real_instance


def _kernel_paths(given: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Folders searched for kernels: those given, the environment's, then the project's own."""
    folders: list[Path] = []
    given = [given] if isinstance(given, (str, os.PathLike)) else given
    for item in (*given, *paths.environment_kernels()):
        path = Path(item).expanduser().resolve()
        if not path.is_dir():
            raise BoardError(f"the kernel folder {path} does not exist")
        folders.append(path)
    if paths.KERNELS.is_dir():
        folders.append(paths.KERNELS)
    return folders


def _version(text: str) -> tuple[int, int]:
    year, _, release = text.partition(".")
    if not year.isdigit():
        return (2022, 2)
    return int(year), int(release[:1] or 0)


__all__: Sequence[str] = ["VirtualBoard", "VirtualMemory"]
