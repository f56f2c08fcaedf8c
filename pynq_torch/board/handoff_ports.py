"""The ports of an IP and its AXI interfaces, as a hardware handoff has them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field

from .ip_table import Treatment, names

AXIS = "xilinx.com:interface:axis:1.0"
_KINDS = {AXIS: "axis", "xilinx.com:interface:aximm:1.0": "aximm"}
INITIATORS, TARGETS = ("INITIATOR", "MASTER"), ("TARGET", "SLAVE")
#: What Vivado writes as the BUSNAME of an interface that nothing is connected to.
UNCONNECTED = "__NOC__"
_CONSTANTS = names(Treatment.PASSED, "constant")
_POLARITY = {"ACTIVE_LOW": True, "ACTIVE_HIGH": False}


@dataclass(frozen=True)
class HandoffPort:
    """One port of an IP as Vivado has it."""

    name: str
    direction: str  #: "I", "O" or "IO"
    width: int | None  #: None where the handoff does not give it
    signal_is: str = ""  #: "clk", "rst", "INTERRUPT", ...
    active_low: bool | None = None  #: None where the handoff does not say
    constant: int | None = None  #: what an xlconstant ties it to
    net: str = ""  #: empty where nothing is connected


@dataclass(frozen=True)
class HandoffBus:
    """One AXI interface of an IP as Vivado has it."""

    name: str
    kind: str  #: "axis" or "aximm"
    initiator: bool
    data_bytes: int | None  #: None where the handoff does not give it
    port_map: dict[str, str] = field(default_factory=dict)  #: AXI's name -> the port's
    connected: bool = True
    net: str = ""  #: the initiator's and the target's have the same; empty where unconnected


def constants_of(modules: list[ET.Element]) -> dict[str, int]:
    """Return the nets that an xlconstant drives, with its value."""
    found = {}
    for module in modules:
        if module.get("MODTYPE") not in _CONSTANTS:
            continue
        for item in module.findall("./PARAMETERS/PARAMETER"):
            if item.get("NAME") == "CONST_VAL":
                try:
                    value = int(item.get("VALUE", "0"), 0)
                except ValueError:
                    continue  # "010", as in published handoffs: decimal or binary, it does not say
                for port in module.findall("./PORTS/PORT"):
                    found[port.get("SIGNAME", "")] = value
    found.pop("", None)
    return found


def ports_of(module: ET.Element, constants: dict[str, int]) -> Iterator[HandoffPort]:
    """Yield the ports of a module."""
    for port in module.findall("./PORTS/PORT"):
        left, right = port.get("LEFT", ""), port.get("RIGHT", "")
        # A vector has both bounds as numbers; without them it is one bit, or Vivado left them out.
        width = abs(int(left) - int(right)) + 1 if left.isdigit() and right.isdigit() else None
        yield HandoffPort(
            port.get("NAME", ""),
            port.get("DIR", ""),
            width,
            port.get("SIGIS", ""),
            _POLARITY.get(port.get("POLARITY", "")),
            constants.get(port.get("SIGNAME", "")),
            port.get("SIGNAME", ""),
        )


def buses_of(module: ET.Element) -> Iterator[HandoffBus]:
    """Yield the AXI interfaces of a module."""
    for bus in module.findall("./BUSINTERFACES/BUSINTERFACE"):
        kind = _KINDS.get(bus.get("VLNV", ""))
        if kind is None or bus.get("TYPE") not in (*INITIATORS, *TARGETS):
            continue
        nbytes: int | None = data_bytes(bus)
        net = bus.get("BUSNAME", "")
        if kind == "aximm":
            bits = bus.get("DATAWIDTH", "")
            nbytes = int(bits) // 8 if bits.isdigit() else None
        yield HandoffBus(
            bus.get("NAME", ""),
            kind,
            bus.get("TYPE") in INITIATORS,
            nbytes or None,
            {
                item.get("LOGICAL", ""): item.get("PHYSICAL", "")
                for item in bus.findall("./PORTMAPS/PORTMAP")
            },
            net not in ("", UNCONNECTED),
            net if net != UNCONNECTED else "",
        )


def data_bytes(bus: ET.Element) -> int:
    """Return the bytes of an AXI4-Stream's TDATA, 0 where the handoff does not say."""
    for item in bus.findall("PARAMETER"):
        if item.get("NAME") == "TDATA_NUM_BYTES":
            return int(item.get("VALUE", "0"))
    return 0
