"""The wires of a design between pins of its IP, as a hardware handoff has them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass, field

__all__ = ["Pin", "Wiring", "wiring_of"]


@dataclass(frozen=True)
class Pin:
    """A pin, the net it is on, and its width where the handoff gives it."""

    ip: str
    name: str  #: in lower case: Vivado's releases differ
    net: str
    width: int | None


@dataclass(frozen=True)
class Wiring:
    """What drives each net, and the inputs of each IP."""

    drivers: dict[str, Pin] = field(default_factory=dict)  #: by net
    inputs: dict[str, dict[str, Pin]] = field(default_factory=dict)  #: by IP and pin
    kinds: dict[str, str] = field(default_factory=dict)  #: by IP, third field of the VLNV
    parameters: dict[str, dict[str, str]] = field(default_factory=dict)  #: by IP


def wiring_of(modules: Iterable[tuple[str, ET.Element]]) -> Wiring:
    """Return the wires between named modules."""
    found = Wiring()
    for ip, module in modules:
        found.kinds[ip] = module.get("MODTYPE", "")
        found.parameters[ip] = {
            item.get("NAME", ""): item.get("VALUE", "")
            for item in module.findall("./PARAMETERS/PARAMETER")
        }
        inputs = found.inputs.setdefault(ip, {})
        for port in module.findall("./PORTS/PORT"):
            left, right = port.get("LEFT", ""), port.get("RIGHT", "")
            known = left.isdigit() and right.isdigit()
            width = abs(int(left) - int(right)) + 1 if known else None
            pin = Pin(ip, port.get("NAME", "").lower(), port.get("SIGNAME", ""), width)
            if not pin.net:
                continue
            if port.get("DIR") == "O":
                found.drivers[pin.net] = pin
            else:
                inputs[pin.name] = pin
    return found
