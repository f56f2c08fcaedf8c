"""Board "remote": the PL of a board that another process serves, here or on another machine."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pynq.metadata.runtime_metadata_parser import RuntimeMetadataParser
from pynq.pl_server.device import Device
from pynq.pl_server.remote_device import (
    PYNQ_PORT,
    RemoteDevice,
    _get_bitstream_handler,
    remote_device_pb2_grpc,
)

from pynq_torch.board.device import VirtualMemory, _forget_clocks
from pynq_torch.board.memory import DDR_BYTES
from pynq_torch.board.pynq_metadata import parse_handoff
from pynq_torch.board.xsa import handoff_file
from pynq_torch.errors import BoardError, PynqTorchError

from .link import Link
from .memory import Piece, RemoteMemory
from .registers import Registers, RemoteArray
from .steps import PlainSteps, Steps, StepsTogether
from .wire import HELLO, VERSION, unpack

__all__ = ["RemoteBoard", "host_and_port"]


class RemoteBoard(RemoteDevice):
    """A served board as the device of pynq.

    Files and bitstreams go as pynq's own `RemoteDevice` sends them. Registers and buffers go in
    messages of many steps where the server is this project's, else by PYNQ.remote's calls.

    Parameters
    ----------
    address : str, optional
        ``host`` or ``host:port``. Default: ``PYNQ_TORCH_ADDRESS``, else this PC.
    access : str or path, optional
        The access file of a server that has one. Default: ``PYNQ_TORCH_ACCESS``.

    Attributes
    ----------
    calls : Calls
        What went over the connection so far.
    simulates : bool
        Whether it is a virtual board, for which simulation images are.

    Raises
    ------
    BoardError
        Nothing answers there, it is no board, another client has it, or it speaks another version.
    """

    def __init__(self, *, address: str | None = None, access: str | None = None) -> None:
        Device.__init__(self, "remote0")
        address = address or os.environ.get("PYNQ_TORCH_ADDRESS") or "127.0.0.1"
        access = access or os.environ.get("PYNQ_TORCH_ACCESS") or None
        self.address = address
        self.ip_addr, self.port = host_and_port(address)
        self._link = Link(self.ip_addr, self.port, access)
        self.calls = self._link.calls
        self._stub: dict[str, Any] = {"device": remote_device_pb2_grpc.RemoteDeviceStub(self._link)}
        try:
            said = self._hello()
            self.arch, self.name = self.get_arch(), self.get_board_name()
            self.steps: Steps = (
                StepsTogether(self._link, said["session"]) if said else PlainSteps(self._link)
            )
            self.simulates = bool(said.get("simulates"))
        except BaseException as error:
            self._link.close("was never used")
            if isinstance(error, NotImplementedError):
                raise BoardError(
                    f"the server at {self._link.where} is none of PYNQ.remote: {error} Check the "
                    "address, and start `python -m pynq_torch serve` there."
                ) from error
            raise
        self.board_name = f"{said['board']}, remote" if self.simulates else ""
        self.capabilities = {"MEMORY_MAPPED": True, "REGISTER_RW": False, "CALLABLE": False}
        self.memory = RemoteMemory(self.steps)
        self._closed, self.loads = False, 0
        self.timestamp = self.bitfile_name = ""
        self._pid = os.getpid()
        self._at_close: list[Callable[[], object]] = []
        self._clock_at = 0.0, 0.0
        #: By address: registers that are known, what AP_CTRL said at the end of a run, errors of
        #: runs that ended with their start, and what a run writes.
        self.noted: dict[int, int] = {}
        self.first: dict[int, int] = {}
        self.failed: dict[int, Exception] = {}
        self.results: dict[int, tuple[int | None, list[Piece]]] = {}
        self.clear_dict()

    def _hello(self) -> dict[str, Any]:
        """Open the board; return what a server of this project says of it, nothing for others."""
        try:
            said, _ = unpack(self._link.unary_unary(HELLO)(b""))
        except NotImplementedError:
            return {}
        if said.get("version") != VERSION:
            raise BoardError(
                f"{self._link.where} speaks version {said.get('version')} of pynq_torch's service, "
                f"this client version {VERSION}: install the same pynq_torch on both sides"
            )
        return said

    # ---- what pynq asks of a device ----------------------------------------------------------

    @property
    def default_memory(self) -> VirtualMemory:
        """DDR, where ``allocate`` without a target takes its memory."""
        return self.get_memory({"base_address": 0, "size": DDR_BYTES, "idx": 0})

    def get_memory(self, description: dict[str, Any]) -> VirtualMemory:
        """Return the memory that an entry of ``mem_dict`` describes."""
        return VirtualMemory(self, description)

    def allocate(self, shape: Any, dtype: Any, **options: Any) -> Any:
        """Allocate a buffer in the board's CMA memory."""
        return self.default_memory.allocate(shape, dtype, **options)

    def flush(self, bo: Any, offset: int, ptr: int, size: int) -> None:
        """Let the board have what the program wrote to a buffer."""
        self.memory.flush(Piece(bo, offset, size))

    def invalidate(self, bo: Any, offset: int, ptr: int, size: int) -> None:
        """Let the program see what the board has in a buffer."""
        piece = Piece(bo, offset, size)
        self.memory.fetch(piece)
        self.memory.show(piece)

    def mmap(self, base_addr: int, length: int) -> Any:
        """Return the array over a physical range."""
        entries = (e for e in self.ip_dict.values() if e.get("phys_addr") == base_addr)
        fields = ((e.get("registers") or {}).get("CTRL", {}).get("fields", {}) for e in entries)
        unit = any("AP_START" in known for known in fields)
        registers: Any = Registers(self, base_addr, length, unit)
        return RemoteArray.over(registers, base_addr, length, None)

    def get_bitfile_metadata(
        self, bitfile_name: str, partial: bool = False
    ) -> RuntimeMetadataParser:
        """Parse the handoff of a bitstream, without what the protocol lacks: interrupts and GPIO.

        Drivers poll then, as for an IP whose interrupt is not connected.
        """
        path = Path(bitfile_name)
        if partial:
            raise BoardError(
                f"{path.name} is a partial bitstream, which board 'remote' cannot load"
            )
        parser = parse_handoff(handoff_file(path))
        for entry in (*parser.ip_dict.values(), *parser.hierarchy_dict.values()):
            entry["interrupts"], entry["gpio"] = {}, {}
        return parser

    def gen_cache(self, bitstream: Any, parser: Any = None) -> None:
        """Do nothing: board 'remote' keeps no cache that could go stale."""

    def shutdown(self) -> None:
        """Do nothing: only whole bitstreams are loaded, which end what runs."""

    def download(self, bitstream: Any, parser: Any = None) -> None:
        """Load an overlay."""
        path = Path(bitstream.bitfile_name)
        if parser is None:
            raise BoardError(
                f"{path.name} has no hardware handoff: use pynq.Overlay, which reads it"
            )
        parser.bin_data = _get_bitstream_handler(str(path)).get_bin_data()
        if not self.steps.owns:
            # The client does not send a file whose name is there, whatever is in it.
            bitstream.binfile_name = f"{hashlib.sha256(parser.bin_data).hexdigest()[:16]}.bin"
        self.timestamp = ""
        try:
            super().download(bitstream, parser)
        finally:
            self.loads += 1
            for known in (self.noted, self.first, self.failed, self.results):
                known.clear()
            self.memory.forget(busy=False)

    # ---- life --------------------------------------------------------------------------------

    def wait_clock(self) -> float:
        """Return the seconds that bounded waits count: board rtl's own while it runs."""
        now = time.perf_counter()
        if self.steps.clock is None:
            return now
        if self.steps.clock != self._clock_at[0]:
            self._clock_at = self.steps.clock, now
        return self._clock_at[0] + now - self._clock_at[1]

    @property
    def closed(self) -> bool:
        """Whether the board was given back, or its server has gone."""
        return self._closed or bool(self._link.lost)

    def install(self) -> None:
        """Become the device that pynq uses."""
        from pynq.ps import Clocks

        Device._devices = [self]
        Device.active_device = self
        _forget_clocks()
        Clocks.set_device(self)

    def on_close(self, call: Callable[[], object]) -> None:
        """Call ``call`` when the board is closed."""
        self._at_close.append(call)

    def close(self) -> None:
        """Give the board back; the server frees its buffers and ends what runs."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        for call in self._at_close:
            call()
        self.memory.disown("belongs to a board that was closed")
        with suppress(PynqTorchError):  # where the server has gone, there is nothing to give back
            self.steps.leave()
        self._link.close("was closed by this program")

    def left_in_child(self) -> None:
        """Let go of the board in a forked child: it is its parent's."""
        self._closed = True
        why = f"belongs to process {self._pid}, from which this one was forked"
        self.memory.disown(why)
        self._link.lost = why

    def __repr__(self) -> str:
        loaded = Path(self.bitfile_name).name if self.bitfile_name else "no overlay"
        return f"<RemoteBoard {self._link.where}: {self.name}, {loaded}>"


def host_and_port(address: str) -> tuple[str, int]:
    """Return where an address is; PYNQ.remote's port where it names none.

    Raises
    ------
    BoardError
        It is no ``host`` and no ``host:port``.
    """
    if address.count(":") > 1 and not address.startswith("["):  # IPv6 alone
        return f"[{address}]", PYNQ_PORT
    host, colon, port = address.rpartition(":")
    if not colon or "]" in port:
        return address, PYNQ_PORT
    if not port.isdecimal() or not 0 < int(port) < 1 << 16 or not host:
        raise BoardError(f"address is {address!r}; expected a host or host:port")
    return host, int(port)
