"""Loading an overlay into the PL: kernels found and built, models made and wired."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pynq_torch import hls, paths
from pynq_torch.errors import BoardError

from .bus import IpModel
from .handoff import Handoff, IpInstance
from .handoff_wires import Wiring
from .hls_binding import Binding
from .hls_ip import HlsKernel
from .ip.axi_bram import AxiBram
from .ip.axi_dma import AxiDma
from .ip.axi_fifo import AxiFifo
from .ip.axi_gpio import AxiGpio
from .ip.axi_iic import AxiIic
from .ip.axi_intc import AxiIntc
from .ip.axi_quad_spi import AxiQuadSpi
from .ip.axi_timer import AxiTimer
from .ip.axi_uartlite import AxiUartLite
from .ip.axi_vdma import AxiVdma
from .ip.axis import AxisIp
from .ip.xadc_wiz import XadcWiz
from .memory import PhysicalMemory
from .no_model import NoModel
from .programmable_logic import ProgrammableLogic
from .streams import Endpoint, Ring
from .wires import Wires

#: Which class models which Xilinx IP, by the third field of the VLNV.
MODELS: dict[str, type[IpModel]] = {
    name: model
    for model in (
        *(AxiBram, AxiDma, AxiFifo, AxiGpio, AxiIic, AxiIntc, AxiQuadSpi, AxiTimer),
        *(AxiUartLite, AxiVdma, AxisIp, XadcWiz),
    )
    for name in model.vlnv_names
}


class LoadablePl(ProgrammableLogic):
    """A PL that overlays are loaded into; boards of other engines find and build otherwise."""

    def __init__(
        self,
        memory: PhysicalMemory,
        hang_timeout_s: float,
        kernel_paths: list[Path],
        sanitize: bool,
    ) -> None:
        super().__init__(memory, hang_timeout_s)
        self.kernel_paths = kernel_paths
        self.sanitize = sanitize
        self._loading = threading.RLock()
        self._remarked: set[str] = set()  # differences that were warned of
        self._at_load: list[Callable[[], object]] = []
        self._at_unload: list[Callable[[], object]] = []

    def on_load(self, call: Callable[[], object]) -> None:
        """Call ``call`` each time an overlay has been loaded."""
        self._at_load.append(call)

    def on_unload(self, call: Callable[[], object]) -> None:
        """Call ``call`` before a loaded overlay goes, also when the board is closed."""
        self._at_unload.append(call)

    def _find_source(self, ip: IpInstance) -> Any:
        """Return the source of an IP's kernel.

        A kernel in a folder that the program gave comes before the project's own of that name, and
        a function of the IP's name before one that lacks the packager's version, or has it.
        """
        given = [path for path in self.kernel_paths if path != paths.KERNELS]
        name, *packaged = ip.top_names
        kernel = hls.find_kernel(name, given) or hls.find_kernel(name, [paths.KERNELS])
        others = (hls.find_kernel(top, given) for top in packaged)
        return kernel or next(filter(None, others), None)

    def _kernel_of(self, ip: IpInstance) -> str:
        """Return the name under which an IP's build is: units of one kernel share it."""
        return ip.vlnv_name

    def _build_kernel(self, source: Any, handoff: Handoff) -> Any:
        # Not for our own: testbenches check their indices, and the check costs vectorisation.
        own = paths.KERNELS in source.source.parents
        checked = self.memory.guard and not own and not self.sanitize
        cflags = [hls.CHECK_INDICES] if checked else []
        return hls.build(source, tool=handoff.hls_tool, sanitize=self.sanitize, cflags=cflags)

    def _make_unit(self, ip: IpInstance, build: Any, rings: dict[str, Ring]) -> IpModel:
        return HlsKernel(self, ip, build, rings)

    def _start_units(self, handoff: Handoff) -> None:
        """Start what several units share; called once every model of the overlay exists."""

    def _build(self, handoff: Handoff) -> dict[str, Any]:
        """Compile every kernel of the design, before anything of the old one is touched."""
        sources: dict[str, Any] = {}
        for ip in handoff.ips.values():
            kernel = self._kernel_of(ip)
            if ip.is_kernel and (ip.slaves or ip.stream_ports) and kernel not in sources:
                source = self._find_source(ip)
                if source is not None:
                    sources[kernel] = source
        kinds = {ip.vlnv_name for ip in handoff.ips.values()} & set(MODELS)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            prepared = [pool.submit(MODELS[kind].prepare) for kind in sorted(kinds)]
            tasks = {n: pool.submit(self._build_kernel, s, handoff) for n, s in sources.items()}
            builds = {name: task.result() for name, task in tasks.items()}
            for task in prepared:
                task.result()
        self._check_sources(handoff, builds)
        return builds

    def _check_sources(self, handoff: Handoff, builds: dict[str, Any]) -> None:
        """Refuse C++ that is not what the design was built from; say once what else differs."""
        for ip in handoff.ips.values():
            build = builds.get(self._kernel_of(ip)) if ip.is_kernel else None
            if not isinstance(build, hls.Build):
                continue
            remarks = "; ".join(Binding(ip, build.interface).check(handoff.path))
            text = (
                f"{ip.vlnv_name}: {build.interface.source} and {handoff.path} differ: {remarks}. "
                "Are these the sources the bitstream was built from?"
            )
            if remarks and text not in self._remarked:
                self._remarked.add(text)
                warnings.warn(text, stacklevel=3)

    def _populate(self, handoff: Handoff, builds: dict[str, Any]) -> None:
        """Make the streams and the models of a design, and start them."""
        rings = self._make_rings(handoff, builds)
        # Block RAM first: an engine maps the memories that exist when it starts.
        for ip in sorted(handoff.ips.values(), key=lambda ip: ip.vlnv_name != "axi_bram_ctrl"):
            if ip.vlnv_name == "processing_system7" or not (ip.slaves or ip.stream_ports):
                continue
            model: IpModel
            kernel = self._kernel_of(ip)
            if kernel in builds and ip.is_kernel:
                model = self._make_unit(ip, builds[kernel], rings.setdefault(ip.name, {}))
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

    def _make_rings(self, handoff: Handoff, builds: dict[str, Any]) -> dict[str, dict[str, Ring]]:
        """Make the streams that a model is at one end of; return them by IP and bus interface."""

        def modelled(end: Endpoint | None) -> bool:
            ip = handoff.ips[end.ip] if end is not None else None
            return ip is not None and (self._kernel_of(ip) in builds or ip.vlnv_name in MODELS)

        found: dict[str, dict[str, Ring]] = {}
        for link in handoff.links:
            if not modelled(link.source) and not modelled(link.sink):
                continue
            ring = Ring(link.source, link.sink, link.data_bytes or link.sink_bytes or 4, link.depth)
            self.rings.append(ring)
            for end in (link.source, link.sink):
                if end is not None:
                    found.setdefault(end.ip, {})[end.port] = ring
        return found

    def _unload(self) -> None:
        if self.ip:
            for call in self._at_unload:
                call()
        for model in self.ip.values():
            with model.lock:
                model.close()
        self.ip.clear()
        self.wires = Wires(self, Wiring())
        for ring in self.rings:
            ring.close()
        self.rings.clear()
        self.bus.clear(keep=[self.slcr, self.xadc])
        self.memory.drop_windows()
        self._progress = ()


def search_paths(given: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Folders searched for kernels: those given, the environment's, then the project's own."""
    folders: list[Path] = []
    given = [given] if isinstance(given, (str, os.PathLike)) else given
    for item in (*given, *paths.environment_kernels()):
        path = Path(item).expanduser().absolute()
        if not path.is_dir():
            raise BoardError(f"the kernel folder {path} does not exist")
        # A link is followed at each load: it may point somewhere else by then.
        folders.append(paths.KERNELS if path.resolve() == paths.KERNELS else path)
    if paths.KERNELS.is_dir():
        folders.append(paths.KERNELS)
    return folders
