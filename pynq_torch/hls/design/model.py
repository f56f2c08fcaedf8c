"""The values a block design is made of: cells with buses and pins, connections, addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Bus", "Cell", "Design", "Field", "Net", "Pin", "RegisterEntry", "Segment", "Signal"]


@dataclass(frozen=True)
class Field:
    """Bits of a register."""

    name: str
    offset: int
    width: int
    access: str
    description: str = ""


@dataclass(frozen=True)
class RegisterEntry:
    """A register as the handoff lists it; `size` in bits (in bytes for a memory window)."""

    name: str
    offset: int
    size: int
    access: str
    description: str
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True)
class Signal:
    """One wire bundle of a bus: its role in the protocol and the pin it is."""

    logical: str
    physical: str
    direction: str  #: "I" or "O", seen from the cell
    width: int = 1


@dataclass(frozen=True)
class Bus:
    """A bus interface of a cell.

    Parameters
    ----------
    name : str
        As in Vivado (``s_axi_control``, ``M_AXIS_MM2S``).
    protocol : {"aximm", "axis"}
        Memory-mapped or stream.
    is_source : bool
        A master, or the source of a stream.
    data_bits : int
        Width of the data.
    parameters : mapping of str to str
        What the handoff says about it (``TDATA_NUM_BYTES``).
    signals : tuple of Signal
        Of a stream; those of memory-mapped buses are left out of the handoff.
    space : str
        Of a master: the address space in Vivado (``Data_m_axi_gmem0``).
    block : str
        Of a slave: its address block (``Reg``).
    registers : tuple of RegisterEntry
        Of a slave.
    base_parameter, high_parameter : str
        Of a slave: the parameters that carry its address range in the handoff.
    """

    name: str
    protocol: str
    is_source: bool
    data_bits: int = 32
    parameters: Mapping[str, str] = field(default_factory=dict)
    signals: tuple[Signal, ...] = ()
    space: str = ""
    block: str = ""
    registers: tuple[RegisterEntry, ...] = ()
    base_parameter: str = "C_BASEADDR"
    high_parameter: str = "C_HIGHADDR"


@dataclass(frozen=True)
class Pin:
    """A single pin of a cell; `kind` is ``clk``, ``rst``, ``interrupt`` or ``data``."""

    name: str
    direction: str
    kind: str = "data"
    width: int = 1
    active_low: bool = False


@dataclass(frozen=True)
class Cell:
    """One block of the design.

    Parameters
    ----------
    name : str
        The instance.
    vlnv : str
        Vendor, library, name and version.
    config : mapping of str to str
        The configuration for Vivado (``CONFIG.*``).
    parameters : mapping of str to str
        Further parameters in the handoff.
    buses, pins : tuple
        Its interfaces.
    role : {"ps", "bus", "peripheral", "helper"}
        What it is in the system.
    """

    name: str
    vlnv: str
    config: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    buses: tuple[Bus, ...] = ()
    pins: tuple[Pin, ...] = ()
    role: str = "peripheral"

    @property
    def kind(self) -> str:
        """The VLNV's third field."""
        return self.vlnv.split(":")[2]

    @property
    def is_kernel(self) -> bool:
        """Whether it is a kernel of HLS."""
        return ":hls:" in self.vlnv

    def bus(self, name: str) -> Bus:
        """Return the bus called `name`."""
        return next(bus for bus in self.buses if bus.name == name)


@dataclass(frozen=True)
class Net:
    """A wire: its driver and what it drives, each ``(cell, pin)``."""

    source: tuple[str, str]
    sinks: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Segment:
    """A range of a master's address space."""

    master: tuple[str, str]
    space: str
    slave: tuple[str, str]
    block: str
    base: int
    size: int


@dataclass(frozen=True)
class Design:
    """A whole block design.

    Parameters
    ----------
    name, summary : str
        Of the overlay.
    clock_mhz : float
        The PL clock, as the board will have it.
    cells : tuple of Cell
        The processing system first.
    links : tuple of ((cell, bus), (cell, bus))
        Bus connections, source first.
    nets : tuple of Net
        Clocks, resets and interrupts.
    segments : tuple of Segment
        The address map of every master.
    external : tuple of (str, str)
        Interfaces of the processing system that go to the board, with their VLNV.
    """

    name: str
    summary: str
    clock_mhz: float
    cells: tuple[Cell, ...]
    links: tuple[tuple[tuple[str, str], tuple[str, str]], ...]
    nets: tuple[Net, ...]
    segments: tuple[Segment, ...]
    external: tuple[tuple[str, str], ...] = ()

    @property
    def kernels(self) -> tuple[Cell, ...]:
        """The cells that are kernels of HLS."""
        return tuple(cell for cell in self.cells if cell.is_kernel)

    def cell(self, name: str) -> Cell:
        """Return the cell called `name`."""
        return next(cell for cell in self.cells if cell.name == name)
