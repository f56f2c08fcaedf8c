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
    """An AXI4-Lite subordinate: the registers."""

    name: str  #: as in the handoff: ``"s_axi_control"``
    signals: Mapping[str, str]  #: AXI's name in capitals (``"AWADDR"``) to the port's
    data_width: int
    address_width: int
    full: bool = False  #: it has the signals of AXI4 (AWLEN, WLAST) too


@dataclass(frozen=True)
class AxiMaster:
    """An AXI4 manager: a port to memory."""

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
    """All interfaces of a top module, in the order of the source."""

    clocks: tuple[str, ...]  #: ports that get the clock; the first is the main one
    resets: tuple[tuple[str, bool], ...]  #: with whether they are active low
    interrupt: str  #: ``""`` where there is none
    slaves: tuple[AxiSlave, ...] = ()
    masters: tuple[AxiMaster, ...] = ()
    streams: tuple[AxiStream, ...] = ()
    #: Other inputs, with what the design ties them to: 0 where nothing does.
    constants: Mapping[str, int] = field(default_factory=dict)
    others: tuple[str, ...] = ()  #: other outputs

    @property
    def ports(self) -> tuple[AxiSlave | AxiMaster | AxiStream, ...]:
        """All AXI interfaces, in the order in which the PL process numbers them."""
        return (*self.slaves, *self.masters, *self.streams)
