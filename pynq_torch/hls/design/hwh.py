"""A block design as a hardware handoff, in the form Vivado 2023 writes.

Left out is what neither pynq, nor Linux, nor the virtual board reads: the single wires of
memory-mapped buses, the pins of the DDR, and the hundreds of PS parameters that configure nothing
in the PL. Vivado's own handoff replaces it when the overlay is built for a real board.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable

from . import part
from .model import Bus, Cell, Design, Pin, RegisterEntry

__all__ = ["TOOL_VERSION", "write_hwh"]

#: The version whose form and register rules the handoff follows; readers choose by it.
TOOL_VERSION = "2023.2"
_ROLES = {"bus": ("BUS", "BUS"), "ps": ("PERIPHERAL", None)}
_VLNV = {"aximm": "xilinx.com:interface:aximm:1.0", "axis": "xilinx.com:interface:axis:1.0"}


class _Wiring:
    """Who is connected to whom, by cell and pin."""

    def __init__(self, design: Design) -> None:
        self.pins: dict[tuple[str, str], tuple[str, list[tuple[str, str]]]] = {}
        self.buses: dict[tuple[str, str], str] = {}
        for net in design.nets:
            signal = "_".join(net.source)
            self.pins[net.source] = (signal, list(net.sinks))
            for sink in net.sinks:
                self.pins[sink] = (signal, [net.source])
        for source, sink in design.links:
            self.buses[source] = self.buses[sink] = "_".join(source)
            self._wires(design, source, sink)

    def _wires(self, design: Design, source: tuple[str, str], sink: tuple[str, str]) -> None:
        """Connect the single wires of a stream, where both ends have them."""
        ends = [
            {signal.logical: signal for signal in design.cell(cell).bus(bus).signals}
            for cell, bus in (source, sink)
        ]
        for logical in sorted(ends[0].keys() & ends[1].keys()):
            first = (source[0], ends[0][logical].physical)
            second = (sink[0], ends[1][logical].physical)
            name = f"{'_'.join(source)}_{logical.lower()}"
            self.pins[first] = (name, [second])
            self.pins[second] = (name, [first])


def write_hwh(design: Design) -> str:
    """Return the hardware handoff of `design`; the same design gives the same bytes."""
    root = ET.Element("EDKSYSTEM", EDWVERSION="1.2", VIVADOVERSION=TOOL_VERSION)
    root.append(
        ET.Comment(
            f" Written by pynq_torch.hls.design from hw/overlays/{design.name}/overlay.toml, "
            "not by Vivado "
        )
    )
    ET.SubElement(
        root,
        "SYSTEMINFO",
        ARCH="zynq",
        BOARD=part.BOARD_PART,
        DEVICE=part.DEVICE,
        NAME=design.name,
        PACKAGE=part.PACKAGE,
        SPEEDGRADE=part.SPEEDGRADE,
    )
    ET.SubElement(root, "EXTERNALPORTS")
    ET.SubElement(root, "EXTERNALINTERFACES")
    modules = ET.SubElement(root, "MODULES")
    wiring = _Wiring(design)
    for cell in design.cells:
        _module(modules, design, cell, wiring)
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8" standalone="no" ?>\n{text}\n'


def _module(parent: ET.Element, design: Design, cell: Cell, wiring: _Wiring) -> None:
    ip_type, module_class = _ROLES.get(cell.role, ("PERIPHERAL", "PERIPHERAL"))
    version = cell.vlnv.split(":")[3]
    attributes = {
        "FULLNAME": f"/{cell.name}",
        "HWVERSION": version,
        "INSTANCE": cell.name,
        "IPTYPE": ip_type,
        "IS_ENABLE": "1",
        "MODTYPE": cell.kind,
        "VLNV": cell.vlnv,
    }
    if module_class is not None:
        attributes["MODCLASS"] = module_class
    if cell.role == "ps":
        attributes |= {"CONFIGURABLE": "TRUE", "IS_PL": "FALSE"}
    module = ET.SubElement(parent, "MODULE", dict(sorted(attributes.items())))
    ET.SubElement(module, "DOCUMENTS")
    _address_blocks(module, cell)
    _parameters(module, design, cell)
    ports = ET.SubElement(module, "PORTS")
    for pin in sorted((*cell.pins, *_bus_pins(cell)), key=lambda pin: pin.name):
        _port(ports, design, cell, pin, wiring)
    buses = ET.SubElement(module, "BUSINTERFACES")
    for bus in cell.buses:
        _bus(buses, cell, bus, wiring)
    _memory_map(module, design, cell)


def _properties(parent: ET.Element, values: Iterable[tuple[str, object]]) -> None:
    for name, value in values:
        ET.SubElement(parent, "PROPERTY", NAME=name, VALUE=str(value))


def _address_blocks(module: ET.Element, cell: Cell) -> None:
    slaves = [bus for bus in cell.buses if bus.block]
    if not slaves:
        return
    blocks = ET.SubElement(module, "ADDRESSBLOCKS")
    for bus in slaves:
        memory = cell.role == "ps"
        block = ET.SubElement(
            blocks,
            "ADDRESSBLOCK",
            ACCESS="" if memory else "read-write",
            INTERFACE=bus.name,
            NAME=bus.block,
            RANGE=str(part.DDR_BYTES if memory else 0x1_0000),
            USAGE="memory" if memory else "register",
        )
        if bus.registers:
            registers = ET.SubElement(block, "REGISTERS")
            for register in bus.registers:
                _register(registers, register)


def _register(parent: ET.Element, entry: RegisterEntry) -> None:
    register = ET.SubElement(parent, "REGISTER", NAME=entry.name)
    _properties(
        register,
        (
            ("DESCRIPTION", entry.description),
            ("ADDRESS_OFFSET", entry.offset),
            ("SIZE", entry.size),
            ("ACCESS", entry.access),
            ("IS_ENABLED", "true"),
            ("RESET_VALUE", 0),
        ),
    )
    fields = ET.SubElement(register, "FIELDS")
    for item in entry.fields:
        field = ET.SubElement(fields, "FIELD", NAME=item.name)
        _properties(
            field,
            (
                ("DESCRIPTION", item.description),
                ("ADDRESS_OFFSET", item.offset),
                ("ACCESS", item.access),
                ("BIT_OFFSET", item.offset),
                ("BIT_WIDTH", item.width),
            ),
        )


def _parameters(module: ET.Element, design: Design, cell: Cell) -> None:
    parameters = ET.SubElement(module, "PARAMETERS")
    values = {**cell.config, **cell.parameters}
    if cell.role == "peripheral":
        values["Component_Name"] = f"{design.name}_{cell.name}_0"
        values["EDK_IPTYPE"] = "PERIPHERAL"
    for segment in design.segments:
        if segment.slave[0] == cell.name and cell.role != "ps":
            bus = cell.bus(segment.slave[1])
            values[bus.base_parameter] = f"0x{segment.base:08X}"
            values[bus.high_parameter] = f"0x{segment.base + segment.size - 1:08X}"
    for name, value in values.items():
        ET.SubElement(parameters, "PARAMETER", NAME=name, VALUE=value)


def _bus_pins(cell: Cell) -> Iterable[Pin]:
    return (
        Pin(signal.physical, signal.direction, "data", signal.width)
        for bus in cell.buses
        for signal in bus.signals
    )


def _port(parent: ET.Element, design: Design, cell: Cell, pin: Pin, wiring: _Wiring) -> None:
    attributes = {"DIR": pin.direction, "NAME": pin.name}
    attributes["SIGIS"] = {"interrupt": "INTERRUPT", "data": "undef"}.get(pin.kind, pin.kind)
    if pin.kind == "clk":
        attributes["CLKFREQUENCY"] = str(round(design.clock_mhz * 1e6))
    if pin.kind == "interrupt":
        attributes["SENSITIVITY"] = "LEVEL_HIGH"
    if pin.active_low:
        attributes["POLARITY"] = "ACTIVE_LOW"
    # A vector of one bit is a vector too where the IP declares it so (IRQ_F2P, intr).
    if pin.width > 1 or pin.name in ("IRQ_F2P", "intr", "dout"):
        attributes |= {"LEFT": str(pin.width - 1), "RIGHT": "0"}
    signal, others = wiring.pins.get((cell.name, pin.name), ("", []))
    if signal:
        attributes["SIGNAME"] = signal
    port = ET.SubElement(parent, "PORT", dict(sorted(attributes.items())))
    if others:
        connections = ET.SubElement(port, "CONNECTIONS")
        for instance, name in others:
            ET.SubElement(connections, "CONNECTION", INSTANCE=instance, PORT=name)


def _bus(parent: ET.Element, cell: Cell, bus: Bus, wiring: _Wiring) -> None:
    roles = {
        ("aximm", True): "MASTER",
        ("aximm", False): "SLAVE",
        ("axis", True): "INITIATOR",
        ("axis", False): "TARGET",
    }
    attributes = {
        # Vivado's word for an interface that is connected to nothing.
        "BUSNAME": wiring.buses.get((cell.name, bus.name), "__NOC__"),
        "NAME": bus.name,
        "TYPE": roles[bus.protocol, bus.is_source],
        "VLNV": _VLNV[bus.protocol],
    }
    parameters = dict(bus.parameters)
    if bus.protocol == "aximm":
        attributes["DATAWIDTH"] = str(bus.data_bits)
        parameters["DATA_WIDTH"] = str(bus.data_bits)
    element = ET.SubElement(parent, "BUSINTERFACE", dict(sorted(attributes.items())))
    for name, value in parameters.items():
        ET.SubElement(element, "PARAMETER", NAME=name, VALUE=value)
    maps = ET.SubElement(element, "PORTMAPS")
    for signal in bus.signals:
        ET.SubElement(maps, "PORTMAP", LOGICAL=signal.logical, PHYSICAL=signal.physical)


def _memory_map(module: ET.Element, design: Design, cell: Cell) -> None:
    segments = [segment for segment in design.segments if segment.master[0] == cell.name]
    if not segments:
        return
    table = ET.SubElement(module, "MEMORYMAP")
    for segment in segments:
        target = design.cell(segment.slave[0])
        bus = target.bus(segment.slave[1])
        ET.SubElement(
            table,
            "MEMRANGE",
            ADDRESSBLOCK=segment.block,
            BASENAME=bus.base_parameter,
            BASEVALUE=f"0x{segment.base:08X}",
            HIGHNAME=bus.high_parameter,
            HIGHVALUE=f"0x{segment.base + segment.size - 1:08X}",
            INSTANCE=target.name,
            IS_DATA="TRUE",
            IS_INSTRUCTION="TRUE",
            MASTERBUSINTERFACE=segment.master[1],
            MEMTYPE="MEMORY" if target.role == "ps" else "REGISTER",
            SLAVEBUSINTERFACE=segment.slave[1],
        )
    peripherals = ET.SubElement(module, "PERIPHERALS")
    for name in dict.fromkeys(segment.slave[0] for segment in segments):
        ET.SubElement(peripherals, "PERIPHERAL", INSTANCE=name)
