"""Which memory port of the PS each AXI4 manager of a design reaches."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

#: Memory ports of the PS that the model tells apart (UG585, figure 5-1): four HP ports.
_HP = {f"S_AXI_HP{index}": index for index in range(4)}
#: ACP and the GP ports are modelled as the HP port whose place in the design they take.
_OTHER = {"S_AXI_ACP": 0, "S_AXI_GP0": 0, "S_AXI_GP1": 1}
_AXI = "xilinx.com:interface:aximm:1.0"
_MANAGERS, _SUBORDINATES = ("INITIATOR", "MASTER"), ("TARGET", "SLAVE")


def memory_ports(path: Path) -> dict[tuple[str, str], int]:
    """Follow each AXI4 manager of a ``.hwh`` through interconnects to a memory port of the PS.

    Returns the number of the HP port by (the IP's full name, its interface).
    """
    managers: list[tuple[tuple[str, str], str]] = []
    takes: dict[str, tuple[str, str]] = {}  # net -> (module, interface)
    onward: dict[str, list[str]] = {}  # interconnect -> nets of its managers
    for module in ET.parse(path).getroot().findall("./MODULES/MODULE"):
        name, kind = module.get("FULLNAME", "").strip("/"), module.get("MODTYPE", "")
        for bus in module.findall("./BUSINTERFACES/BUSINTERFACE"):
            net = bus.get("BUSNAME", "")
            if bus.get("VLNV") != _AXI or not net:
                continue
            if bus.get("TYPE") in _SUBORDINATES:
                takes[net] = (name, bus.get("NAME", ""))
            elif kind == "processing_system7":
                continue
            elif _passes_on(kind):
                onward.setdefault(name, []).append(net)
            elif bus.get("TYPE") in _MANAGERS:
                managers.append(((name, bus.get("NAME", "")), net))
    found = {name: _follow(net, takes, onward, set()) for name, net in managers}
    return {name: port for name, port in found.items() if port is not None}


def _passes_on(kind: str) -> bool:
    words = ("interconnect", "smartconnect", "crossbar", "register_slice", "converter", "coupler")
    return kind.startswith(("axi_", "smartconnect")) and any(word in kind for word in words)


def _follow(
    net: str, takes: dict[str, tuple[str, str]], onward: dict[str, list[str]], seen: set[str]
) -> int | None:
    if net not in takes or net in seen:
        return None
    seen.add(net)
    module, interface = takes[net]
    port = _HP.get(interface, _OTHER.get(interface))
    if port is not None:
        return port
    below = (_follow(each, takes, onward, seen) for each in onward.get(module, ()))
    return next((port for port in below if port is not None), None)
