"""What a block diagram of a design has: its IP with their ports, and what connects them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .handoff import Handoff, IpInstance
from .ip_table import Treatment, names
from .pynq_metadata import parse_handoff
from .xsa import handoff_file

__all__ = ["Block", "Diagram", "Wire", "diagram_of", "read_diagram"]

_PROCESSOR = "processing_system7"
_INTERCONNECTS = names(Treatment.PASSED, "AXI4 interconnect")


@dataclass(frozen=True)
class Block:
    """One IP of a design."""

    name: str  #: full name, hierarchies separated by "/"
    kind: str  #: "processor", "kernel", "interconnect" or "IP"
    type: str  #: third field of its VLNV
    ports: tuple[str, ...]  #: those that are connected, in the handoff's order
    facts: tuple[str, ...] = ()  #: its addresses and its clock, a line each
    registers: tuple[str, ...] = ()  #: offset and name, a line each


@dataclass(frozen=True)
class Wire:
    """One connection, from the end that begins a transfer (or drives the wire) to the other."""

    kind: str  #: "registers", "memory", "stream" or "interrupt"
    source: tuple[str, str]  #: block and port
    sink: tuple[str, str]
    bits: int | None = None  #: of data; None where the handoff does not say


@dataclass(frozen=True)
class Diagram:
    """A design as it is drawn."""

    name: str
    blocks: tuple[Block, ...]
    wires: tuple[Wire, ...]


def read_diagram(bitstream: Path) -> Diagram:
    """Return the diagram of the design in a bitstream, from the handoff that belongs to it.

    Raises
    ------
    HandoffError
        The handoff is missing or of no use.
    """
    return diagram_of(parse_handoff(handoff_file(bitstream)).handoff)


def diagram_of(handoff: Handoff) -> Diagram:
    """Return what is to be drawn of a handoff: every IP that data or an interrupt reach."""
    wires = (*_buses(handoff), *_interrupts(handoff))
    ports: dict[str, dict[str, None]] = {}
    for wire in wires:
        for name, port in (wire.source, wire.sink):
            ports.setdefault(name, {})[port] = None
    blocks = tuple(
        Block(
            ip.name, _kind(ip), ip.vlnv_name, tuple(ports.get(ip.name, ())),
            tuple(_facts(handoff, ip)), tuple(_registers(ip)),
        )
        for ip in handoff.ips.values()
        if ip.name in ports or ip.is_kernel or ip.vlnv_name == _PROCESSOR
    )  # fmt: skip
    return Diagram(handoff.path.stem, blocks, wires)


def _kind(ip: IpInstance) -> str:
    if ip.vlnv_name == _PROCESSOR:
        return "processor"
    if ip.vlnv_name in _INTERCONNECTS:
        return "interconnect"
    return "kernel" if ip.is_kernel else "IP"


def _buses(handoff: Handoff) -> Iterator[Wire]:
    targets = {
        bus.net: (ip.name, bus.name)
        for ip in handoff.ips.values()
        for bus in ip.buses.values()
        if bus.net and not bus.initiator
    }
    controlled = _from_processor(handoff, targets)
    for ip in handoff.ips.values():
        for bus in ip.buses.values():
            if not bus.initiator or bus.net not in targets:
                continue
            kind = "registers" if ip.name in controlled else "memory"
            bits = bus.data_bytes and 8 * bus.data_bytes
            kind = "stream" if bus.kind == "axis" else kind
            yield Wire(kind, (ip.name, bus.name), targets[bus.net], bits)


def _from_processor(handoff: Handoff, targets: dict[str, tuple[str, str]]) -> set[str]:
    """Return the processor and the interconnects that its GP ports reach: the way to registers."""
    todo = [ip.name for ip in handoff.ips.values() if ip.vlnv_name == _PROCESSOR]
    found: set[str] = set()
    while todo:
        name = todo.pop()
        found.add(name)
        for bus in handoff.ips[name].buses.values():
            target = targets.get(bus.net, ("", ""))[0] if bus.initiator else ""
            reached = handoff.ips.get(target)
            if reached is not None and reached.vlnv_name in _INTERCONNECTS:
                todo += [target] if target not in found else []
    return found


def _interrupts(handoff: Handoff) -> Iterator[Wire]:
    processor = next(ip.name for ip in handoff.ips.values() if ip.vlnv_name == _PROCESSOR)
    for net in handoff.interrupts:
        end = (net.target, f"intr[{net.index}]") if net.target else (processor, "IRQ_F2P")
        yield Wire("interrupt", (net.ip, net.pin), end)


def _facts(handoff: Handoff, ip: IpInstance) -> Iterator[str]:
    for slave in ip.slaves:
        size = f"{slave.nbytes >> 10} KB" if slave.nbytes >= 1024 else f"{slave.nbytes} B"
        yield f"0x{slave.base:08x}, {size}"
    if ip.clock:
        number = ip.clock.removeprefix("FCLK_CLK")
        for parameters in handoff.wiring.parameters.values():
            mhz = parameters.get(f"PCW_ACT_FPGA{number}_PERIPHERAL_FREQMHZ")
            if mhz is not None:
                yield f"{ip.clock}, {float(mhz):g} MHz"


def _registers(ip: IpInstance) -> Iterator[str]:
    for block in ip.registers.values():
        for name, offset in sorted(block.items(), key=lambda item: item[1]):
            yield f"0x{offset:02x} {name}"
