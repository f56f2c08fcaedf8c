"""What the ports of a kernel's top module are: AXI interfaces, clocks, resets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["AxiInterfaces", "AxiMaster", "AxiSlave", "AxiStream", "PortDecl"]


@dataclass(frozen=True)
class PortDecl:
    """One port of a top module: its name, ``"in"``, ``"out"`` or ``"inout"``, and its bits."""

    name: str
    direction: str
    width: int


@dataclass(frozen=True)
class AxiSlave:
    """An AXI4-Lite subordinate: the registers.

    Parameters
    ----------
    name : str
        The interface, as in the handoff: ``"s_axi_control"``.
    signals : mapping of str to str
        AXI's name in capitals (``"AWADDR"``) to the port's.
    data_width, address_width : int
        In bits.
    full : bool
        It has the signals of AXI4 (AWLEN, WLAST) too.
    """

    name: str
    signals: Mapping[str, str]
    data_width: int
    address_width: int
    full: bool = False


@dataclass(frozen=True)
class AxiMaster:
    """An AXI4 manager: a port to memory. Attributes as those of `AxiSlave`."""

    name: str
    signals: Mapping[str, str]
    data_width: int
    address_width: int
    id_width: int
    reads: bool
    writes: bool


@dataclass(frozen=True)
class AxiStream:
    """An AXI4-Stream; `direction` is ``"in"`` where the kernel takes it, else ``"out"``."""

    name: str
    signals: Mapping[str, str]
    direction: str
    data_width: int


@dataclass(frozen=True)
class AxiInterfaces:
    """All interfaces of a top module.

    Parameters
    ----------
    clocks : tuple of str
        Ports that get the clock; the first is the main one.
    resets : tuple of (str, bool)
        Ports that get the reset, with whether they are active low.
    interrupt : str
        The interrupt's port, ``""`` where there is none.
    slaves, masters, streams : tuple
        Its AXI interfaces, in the order of the source.
    constants : mapping of str to int
        Inputs that belong to no interface, with what the design ties them to (0 where nothing
        does).
    others : tuple of str
        Outputs that belong to no interface.
    """

    clocks: tuple[str, ...]
    resets: tuple[tuple[str, bool], ...]
    interrupt: str
    slaves: tuple[AxiSlave, ...] = ()
    masters: tuple[AxiMaster, ...] = ()
    streams: tuple[AxiStream, ...] = ()
    constants: Mapping[str, int] = field(default_factory=dict)
    others: tuple[str, ...] = ()
