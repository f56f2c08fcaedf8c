"""What the virtual board needs from a hardware handoff beyond what pynq's own parser returns.

pynq keeps the IP with its registers and interrupts; the board also needs every AXI-Lite slave of an
IP, the AXI4-Stream connections, and the memories that PL masters reach.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pynq_torch.errors import HandoffError

from .handoff_ports import (
    AXIS,
    UNCONNECTED,
    HandoffBus,
    HandoffPort,
    buses_of,
    constants_of,
    data_bytes,
    ports_of,
)
from .handoff_registers import HandoffRegister, HandoffValue, registers_of, values_of
from .streams import DEFAULT_DEPTH, Endpoint

#: The part of a PYNQ-Z2 (and of a PYNQ-Z1): xc7z020clg400-1.
DEVICE, PACKAGE = "7z020", "clg400"
#: Stream IP that moves beats unchanged: S_AXIS in, M_AXIS out.
PASS_THROUGH = {
    "axis_data_fifo",
    "axis_register_slice",
    "axis_clock_converter",
    "axis_subset_converter",
    "fifo_generator",
}


@dataclass(frozen=True)
class Slave:
    """One AXI-Lite (or AXI4) slave interface of an IP in the processor's address map."""

    interface: str
    base: int
    nbytes: int
    block: str  #: the address block's name
    memory: bool  #: MEMTYPE="MEMORY"


@dataclass(frozen=True)
class IpInstance:
    """One IP of the design."""

    name: str  #: full name, hierarchies separated by "/"
    vlnv: str
    parameters: dict[str, str] = field(default_factory=dict)
    slaves: tuple[Slave, ...] = ()
    #: register name -> byte offset, per address block
    registers: dict[str, dict[str, int]] = field(default_factory=dict)
    #: AXI4-Stream interfaces: name -> (is_source, TDATA bytes)
    stream_ports: dict[str, tuple[bool, int]] = field(default_factory=dict)
    interrupt_pins: tuple[str, ...] = ()
    clock: str = ""  #: PS clock that drives the IP, e.g. "FCLK_CLK0"
    ports: dict[str, HandoffPort] = field(default_factory=dict)
    buses: dict[str, HandoffBus] = field(default_factory=dict)
    #: arguments in registers, per address block
    values: dict[str, tuple[HandoffValue, ...]] = field(default_factory=dict)

    @property
    def vlnv_name(self) -> str:
        """Third field of the VLNV: ``gemm`` of ``xilinx.com:hls:gemm:1.0``."""
        return self.vlnv.split(":")[2] if self.vlnv.count(":") >= 3 else self.vlnv

    @property
    def is_kernel(self) -> bool:
        """True for what is not Xilinx's own IP: a kernel exported by HLS or packaged by a user."""
        vendor, _, rest = self.vlnv.lower().partition(":")
        return vendor != "xilinx.com" or rest.startswith(("hls:", "module_ref:", "user:"))


@dataclass(frozen=True)
class StreamLink:
    """A stream from one IP to another, with what lies between them resolved."""

    source: Endpoint | None
    sink: Endpoint | None
    data_bytes: int
    sink_bytes: int
    depth: int
    through: tuple[str, ...] = ()


@dataclass(frozen=True)
class InterruptNet:
    """An interrupt output and the input it drives."""

    ip: str
    pin: str
    target: str  #: full name of an ``axi_intc``, or ``""`` for the processing system
    index: int  #: input of the controller, or bit of IRQ_F2P


@dataclass(frozen=True)
class Handoff:
    """A parsed ``.hwh``."""

    path: Path
    device: str
    package: str
    tool_version: str
    ips: dict[str, IpInstance]
    links: tuple[StreamLink, ...]
    interrupts: tuple[InterruptNet, ...] = ()

    @property
    def hls_tool(self) -> str:
        """``"vivado"`` where the design was made before Vitis HLS (2020.2), else ``"vitis"``."""
        year, _, release = self.tool_version.partition(".")
        if not year.isdigit():
            return "vitis"
        return "vivado" if (int(year), release[:1]) < (2020, "2") else "vitis"


def read_handoff(path: Path) -> Handoff:
    """Parse a ``.hwh``.

    Raises
    ------
    HandoffError
        The file is missing, is no XML, is no handoff, or is for another part.
    """
    if not path.is_file():
        raise HandoffError(
            f"{path.name} is missing: pynq needs the hardware handoff beside the bitstream, with "
            "the "
            f"same name ({path}). Copy it from Vivado's hw_handoff folder."
        )
    try:
        root = ET.parse(path).getroot()
    except (ET.ParseError, UnicodeDecodeError) as error:
        raise HandoffError(
            f"{path.name} is not XML ({error}): it is damaged or another file. Copy the .hwh again."
        ) from error
    info = root.find("SYSTEMINFO")
    modules = root.findall("./MODULES/MODULE")
    if info is None or not modules:
        raise HandoffError(
            f"{path.name} is XML but no hardware handoff: it has no SYSTEMINFO or no MODULES. "
            "Use the .hwh of the block design, not that of a single IP."
        )
    device = info.get("DEVICE", "").removeprefix("xc")
    if device != DEVICE:
        raise HandoffError(
            f"{path.name} is for a {info.get('DEVICE')} ({info.get('BOARD') or 'no board named'}); "
            f"a PYNQ-Z2 is a {DEVICE}. Build the overlay for xc7z020clg400-1."
        )
    if not any(m.get("MODTYPE") == "processing_system7" for m in modules):
        raise HandoffError(
            f"{path.name} has no processing_system7: without the processing system there is no "
            "address map."
        )
    if not all(m.get("INSTANCE") and m.get("FULLNAME") for m in modules):
        raise HandoffError(
            f"{path.name} has a MODULE without INSTANCE or FULLNAME: it is damaged. Copy the .hwh "
            "of the Vivado run again."
        )
    names = {m.get("INSTANCE", ""): m.get("FULLNAME", "").strip("/") for m in modules}
    ranges: dict[str, list[Slave]] = {}
    for module in modules:
        if module.get("MODTYPE") != "processing_system7":
            continue
        for item in module.findall("./MEMORYMAP/MEMRANGE"):
            target = names.get(item.get("INSTANCE", ""), item.get("INSTANCE", ""))
            base, high = int(item.get("BASEVALUE", "0"), 16), int(item.get("HIGHVALUE", "0"), 16)
            ranges.setdefault(target, []).append(
                Slave(
                    item.get("SLAVEBUSINTERFACE", ""),
                    base,
                    high - base + 1,
                    item.get("ADDRESSBLOCK", ""),
                    item.get("MEMTYPE") == "MEMORY",
                )
            )
    constants = constants_of(modules)
    ips = {m.get("FULLNAME", "").strip("/"): _instance(m, ranges, constants) for m in modules}
    return Handoff(
        path,
        device,
        info.get("PACKAGE", ""),
        root.get("VIVADOVERSION", ""),
        ips,
        tuple(_links(modules)),
        tuple(_interrupts(modules)),
    )


def _instance(
    module: ET.Element, ranges: dict[str, list[Slave]], constants: dict[str, int]
) -> IpInstance:
    name = module.get("FULLNAME", "").strip("/")
    listed: dict[str, list[HandoffRegister]] = {}
    for block in module.findall("./ADDRESSBLOCKS/ADDRESSBLOCK"):
        listed.setdefault(block.get("INTERFACE", ""), []).extend(registers_of(block))
    ports: dict[str, tuple[bool, int]] = {}
    for bus in module.findall("./BUSINTERFACES/BUSINTERFACE"):
        if bus.get("VLNV") == AXIS and bus.get("TYPE") in (
            "INITIATOR",
            "TARGET",
            "MASTER",
            "SLAVE",
        ):
            ports[bus.get("NAME", "")] = (
                bus.get("TYPE") in ("INITIATOR", "MASTER"),
                data_bytes(bus),
            )
    clock = next(
        (
            port.get("SIGNAME", "").rpartition("_FCLK_")[2]
            for port in module.findall("./PORTS/PORT")
            if port.get("SIGIS") == "clk" and "_FCLK_CLK" in port.get("SIGNAME", "")
        ),
        "CLK0",
    )
    return IpInstance(
        name,
        module.get("VLNV", ""),
        {p.get("NAME", ""): p.get("VALUE", "") for p in module.findall("./PARAMETERS/PARAMETER")},
        tuple(ranges.get(name, ())),
        {block: {r.name: r.offset for r in found} for block, found in listed.items()},
        ports,
        tuple(
            p.get("NAME", "")
            for p in module.findall("./PORTS/PORT")
            if p.get("SIGIS") == "INTERRUPT" and p.get("DIR") == "O"
        ),
        f"FCLK_{clock}",
        {port.name: port for port in ports_of(module, constants)},
        {bus.name: bus for bus in buses_of(module)},
        {block: values_of(found) for block, found in listed.items()},
    )


def _links(modules: list[ET.Element]) -> Iterator[StreamLink]:
    """Follow each stream from its source through FIFOs and slices to the IP that takes it."""
    sinks: dict[str, tuple[str, str, int]] = {}  # bus name -> ip, port, bytes
    sources: list[tuple[str, str, int, str]] = []
    onward: dict[str, tuple[str, int]] = {}  # pass-through ip -> bus name behind it, FIFO depth
    for module in modules:
        name, kind = module.get("FULLNAME", "").strip("/"), module.get("MODTYPE", "")
        depth = next(
            (
                int(p.get("VALUE", "0"))
                for p in module.findall("./PARAMETERS/PARAMETER")
                if p.get("NAME") in ("FIFO_DEPTH", "C_FIFO_DEPTH") and p.get("VALUE", "").isdigit()
            ),
            2,
        )
        for bus in module.findall("./BUSINTERFACES/BUSINTERFACE"):
            if bus.get("VLNV") != AXIS:
                continue
            bus_name, port, width = bus.get("BUSNAME", ""), bus.get("NAME", ""), data_bytes(bus)
            if bus_name == UNCONNECTED:
                # One name for every open port: without one of its own each would meet all others.
                bus_name = f"{UNCONNECTED}{name}/{port}"
            if bus.get("TYPE") in ("TARGET", "SLAVE"):
                sinks[bus_name] = (name, port, width)
            elif bus.get("TYPE") in ("INITIATOR", "MASTER"):
                if kind in PASS_THROUGH:
                    onward[name] = (bus_name, depth)
                else:
                    sources.append((name, port, width, bus_name))
    for ip, port, width, bus_name in sources:
        through: list[str] = []
        depth = DEFAULT_DEPTH
        while (
            bus_name in sinks and sinks[bus_name][0] in onward and sinks[bus_name][0] not in through
        ):
            through.append(sinks[bus_name][0])
            bus_name, extra = onward[through[-1]]
            depth += extra
        sink = sinks.get(bus_name)
        yield StreamLink(
            Endpoint(ip, port),
            Endpoint(sink[0], sink[1]) if sink else None,
            width,
            sink[2] if sink else width,
            depth,
            tuple(through),
        )


def _interrupts(modules: list[ET.Element]) -> Iterator[InterruptNet]:
    """Follow interrupt nets through concat blocks, counting bits as the wires do."""
    # Net name -> (module name, kind, input index) of what it drives.
    sinks: dict[str, list[tuple[str, str, int]]] = {}
    onward: dict[str, str] = {}  # concat -> net behind it
    widths: dict[str, dict[int, int]] = {}
    sources: list[tuple[str, str, str]] = []
    for module in modules:
        name, kind = module.get("FULLNAME", "").strip("/"), module.get("MODTYPE", "")
        concat = kind in ("xlconcat", "ilconcat")
        for port in module.findall("./PORTS/PORT"):
            pin, net = port.get("NAME", ""), port.get("SIGNAME", "")
            if not net:
                continue
            if concat and pin == "dout":
                onward[name] = net
            elif concat and pin[:2] in ("In", "in") and pin[2:].isdigit():
                index = int(pin[2:])
                sinks.setdefault(net, []).append((name, "concat", index))
                left, right = port.get("LEFT", "0"), port.get("RIGHT", "0")
                widths.setdefault(name, {})[index] = int(left or 0) - int(right or 0) + 1
            elif kind == "axi_intc" and pin == "intr":
                sinks.setdefault(net, []).append((name, "intc", 0))
            elif kind == "processing_system7" and pin == "IRQ_F2P":
                sinks.setdefault(net, []).append(("", "ps", 0))
            elif (port.get("DIR") == "O" and port.get("SIGIS") == "INTERRUPT" and not concat) or (
                port.get("DIR") == "O" and kind == "axi_intc" and pin == "irq"
            ):
                sources.append((name, pin, net))

    def follow(net: str, offset: int, seen: tuple[str, ...]) -> Iterator[tuple[str, int]]:
        for name, what, index in sinks.get(net, ()):
            if what != "concat":
                yield name, offset
            elif name in onward and name not in seen:
                below = sum(widths[name].get(i, 1) for i in range(index))
                yield from follow(onward[name], offset + below, (*seen, name))

    for ip, pin, net in sources:
        for target, index in follow(net, 0, ()):
            yield InterruptNet(ip, pin, target, index)
