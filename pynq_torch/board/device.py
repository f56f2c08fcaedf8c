"""The virtual PYNQ-Z2: a ``pynq.Device`` whose programmable logic is processes on this PC."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pynq.metadata.runtime_metadata_parser import RuntimeMetadataParser
from pynq.mmio import MMIO
from pynq.pl_server.device import Device

from pynq_torch.errors import BoardError
from pynq_torch.hls.design.image import warn_of_refusal

from .cma_buffer import Allocation
from .handoff import Handoff
from .interrupts import deferred_interrupt
from .loading import LoadablePl, search_paths
from .memory import CMA_BYTES, DDR_BYTES, PhysicalMemory
from .pynq_metadata import parse_handoff
from .register_array import RegisterArray
from .wires import Wires
from .xsa import handoff_file


class VirtualMemory:
    """A memory as ``overlay.<name>`` and ``allocate(target=...)`` see it (pynq: ``XrtMemory``)."""

    def __init__(self, device: VirtualBoard, description: dict[str, Any]) -> None:
        self.device = device
        self.desc = description
        self.idx = description.get("idx", 0)
        self.base_address = int(description.get("base_address", description.get("phys_addr", 0)))
        self.size = int(description.get("size", description.get("addr_range", DDR_BYTES)))

    def allocate(self, shape: Any, dtype: Any, **options: Any) -> Any:
        """Allocate a buffer in CMA memory; block RAM is reached through ``mmio`` instead.

        The frames of `pynq.lib.video` name a `cache` to come back to when they are freed. Here
        their memory is free then, and the next frame gets some of its own.
        """
        options = {k: v for k, v in options.items() if k not in ("cache", "pointer")}
        if self.base_address != 0:
            raise BoardError(
                f"the memory at 0x{self.base_address:08x} is block RAM of the PL; use its .mmio, "
                "or allocate() without a target for DDR"
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


class VirtualBoard(LoadablePl, Device):
    """A PYNQ-Z2 without the board.

    Parameters
    ----------
    name : str
        Engine behind the kernels: ``"csim"`` (compiled C++).
    cma_bytes : int
        Size of the CMA region in bytes (image v3.1: 128 MB).
    strict_cache : bool
        A missing ``flush`` or ``invalidate`` gives stale data.
    guard : bool or "silicon"
        Kernels may touch their buffers only, and read 64 bytes around them; ``"silicon"`` (or
        ``False``) lets them read and write whatever the board would.
    kernels : sequence of paths
        Folders with HLS sources, searched before ``PYNQ_TORCH_KERNELS`` and ``hw/kernels``.
    sanitize : bool
        Build kernels with ``-fsanitize=address,undefined``.
    hang_timeout_s : float
        A program that polls while nothing in the PL can move any more gets ``BoardHang`` after
        this long; ten times as long where another thread may still start what it waits for.
    """

    #: Simulation images are for such a board.
    simulates = True

    def __init__(
        self,
        name: str = "csim",
        *,
        cma_bytes: int = CMA_BYTES,
        strict_cache: bool = False,
        guard: bool | str = True,
        kernels: Iterable[str | os.PathLike[str]] = (),
        sanitize: bool = False,
        hang_timeout_s: float = 30.0,
    ) -> None:
        if not 0 < hang_timeout_s < float("inf"):
            raise ValueError(
                f"hang_timeout_s is {hang_timeout_s}; expected a number of seconds greater than 0 "
                "and finite: every wait here ends"
            )
        Device.__init__(self, f"virtual_{name}")
        folders = search_paths(kernels)
        memory = PhysicalMemory(cma_bytes, strict_cache, guard)
        LoadablePl.__init__(self, memory, hang_timeout_s, folders, sanitize)
        self.board_name = name
        self.name = "Pynq-Z2"
        self.arch = "armv7l"
        self.capabilities = {"MEMORY_MAPPED": True, "REGISTER_RW": False, "CALLABLE": False}
        self._pid = os.getpid()
        self.closed = False
        self._at_close: list[Callable[[], object]] = []
        self.timestamp = ""
        self.bitfile_name = ""
        self.clear_dict()

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
        self.bus.pass_time()
        self.memory.flush(bo)

    def invalidate(self, bo: Allocation, offset: int, ptr: int, size: int) -> None:
        """Drop the CPU's cached copy of a buffer."""
        self.bus.pass_time()
        self.memory.invalidate(bo)

    def mmap(self, base_addr: int, length: int) -> Any:
        """Return the array over a physical range, as ``/dev/mem`` would."""
        if base_addr < DDR_BYTES:
            return np.frombuffer(self.memory.view(base_addr, length), np.uint32, length >> 2)
        region = self.bus.find(base_addr)
        offset = base_addr - region.base
        plain = region.model.memory(region.slave)
        if plain is not None and offset + length <= len(plain):
            return np.frombuffer(plain[offset : offset + length], np.uint32, length >> 2)
        backing = region.model.backing(region.slave)
        shown = backing[offset:] if backing is not None else None
        return RegisterArray.over(self.bus, base_addr, length, shown)

    def get_bitfile_metadata(
        self, bitfile_name: str, partial: bool = False
    ) -> RuntimeMetadataParser:
        """Parse the handoff of a bitstream; never from pynq's cache, which may be stale."""
        if partial:
            raise BoardError(
                f"{Path(bitfile_name).name} is a partial bitstream: partial reconfiguration is not "
                "modelled"
            )
        return parse_handoff(handoff_file(Path(bitfile_name)))

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
        warn_of_refusal(Path(bitstream.bitfile_name))
        handoff: Handoff = parser.handoff
        builds = self._build(handoff)
        # Half an overlay is none: another thread's download waits, and so does Ctrl-C (some 50 ms).
        with self._loading, deferred_interrupt():
            self.timestamp = ""  # nothing is loaded, until `post_download` says what is
            self._unload()
            self.handoff = handoff
            self.wires = Wires(self, handoff.wiring)
            self.tool_version = handoff.release
            try:
                self._populate(handoff, builds)
            except BaseException:
                self._unload()
                raise
            self.post_download(bitstream, parser, self.name)
            for call in self._at_load:
                call()

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


def _forget_clocks() -> None:
    """Let ``pynq.Clocks`` make its registers again: it would keep those of the first device."""
    from pynq.ps import Clocks

    if "_real_instance" in vars(Clocks):
        del Clocks._real_instance


__all__: Sequence[str] = ["VirtualBoard", "VirtualMemory"]
