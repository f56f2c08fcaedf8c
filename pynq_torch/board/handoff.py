"""What the virtual board needs from a hardware handoff beyond what pynq's own parser returns.

pynq keeps the IP with its registers and interrupts; the board also needs every AXI-Lite slave of an
IP, the AXI4-Stream connections, and the memories that PL masters reach.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

from pynq_torch.errors import HandoffError

from .handoff_nets import InterruptNet, StreamLink, full_name, interrupt_nets, stream_links
from .handoff_ports import HandoffBus, HandoffPort, buses_of, constants_of, ports_of
from .handoff_ranges import Slave, ranges_of
from .handoff_registers import HandoffRegister, HandoffValue, registers_of, values_of
from .handoff_wires import Wiring, wiring_of

#: The part of a PYNQ-Z2 (and of a PYNQ-Z1): xc7z020clg400-1.
DEVICE, PACKAGE = "7z020", "clg400"


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
    def top_names(self) -> tuple[str, ...]:
        """What the top module or function may be called, likeliest first.

        Vivado's packager adds the version to one of the two: IP ``myip`` 1.0 has the module
        ``myip_v1_0``, and a module ``myip`` becomes IP ``myip_v1_0``.
        """
        name, version = self.vlnv_name, self.vlnv.rpartition(":")[2]
        bare = re.sub(r"_v\d+_\d+$", "", name)
        if bare != name:
            return name, bare
        if "." not in version or ":hls:" in self.vlnv:  # a kernel of HLS has its function's name
            return (name,)
        return name, f"{name}_v{version.replace('.', '_')}"

    @property
    def is_kernel(self) -> bool:
        """True for what is not Xilinx's own IP: a kernel exported by HLS or packaged by a user."""
        vendor, _, rest = self.vlnv.lower().partition(":")
        return vendor != "xilinx.com" or rest.startswith(("hls:", "module_ref:", "user:"))


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
    wiring: Wiring = field(default_factory=Wiring)

    @property
    def release(self) -> tuple[int, int]:
        """Year and number of the tools' release; 2022.2 where the handoff does not say."""
        year, _, number = self.tool_version.partition(".")
        return (int(year), int(number[:1] or 0)) if year.isdigit() else (2022, 2)

    @property
    def hls_tool(self) -> str:
        """``"vivado"`` where the design was made before Vitis HLS (2020.2), else ``"vitis"``."""
        return "vivado" if self.release < (2020, 2) else "vitis"


def _root_of(path: Path) -> ET.Element:
    if not path.is_file():
        raise HandoffError(
            f"{path.name} is missing: pynq needs the hardware handoff beside the bitstream, with "
            f"the same name ({path}). Copy it from Vivado's hw_handoff folder."
        )
    try:
        return ET.parse(path).getroot()
    except (ET.ParseError, LookupError, ValueError) as error:  # the latter two: of its encoding
        raise HandoffError(
            f"{path.name} is not XML ({error}): it is damaged or another file. Copy the .hwh again."
        ) from error


def read_handoff(path: Path) -> Handoff:
    """Parse a ``.hwh``.

    Raises
    ------
    HandoffError
        The file is missing, is no XML, is no handoff, is for another part, or its address map
        cannot be.
    """
    root = _root_of(path)
    info = root.find("SYSTEMINFO")
    modules = root.findall("./MODULES/MODULE")
    if info is None or not modules:
        raise HandoffError(
            f"{path.name} is XML but no hardware handoff: it has no SYSTEMINFO or no MODULES. "
            "Use the .hwh of the block design, not that of a single IP."
        )
    _check_design(path.name, info, modules)
    names = {m.get("INSTANCE", ""): full_name(m) for m in modules}
    ranges = ranges_of(path.name, modules, names)
    constants = constants_of(modules)
    return Handoff(
        path,
        DEVICE,
        info.get("PACKAGE", ""),
        root.get("VIVADOVERSION", ""),
        {full_name(m): _instance(m, ranges, constants) for m in modules},
        tuple(stream_links(modules)),
        tuple(interrupt_nets(modules)),
        wiring_of((full_name(m), m) for m in modules),
    )


def _check_design(file: str, info: ET.Element, modules: list[ET.Element]) -> None:
    if info.get("DEVICE", "").removeprefix("xc") != DEVICE:
        raise HandoffError(
            f"{file} is for a {info.get('DEVICE')} ({info.get('BOARD') or 'no board named'}); "
            f"a PYNQ-Z2 is a {DEVICE}. Build the overlay for xc7z020clg400-1."
        )
    if not any(m.get("MODTYPE") == "processing_system7" for m in modules):
        raise HandoffError(
            f"{file} has no processing_system7: without the processing system there is no address "
            "map."
        )
    if not all(m.get("INSTANCE") and m.get("FULLNAME") for m in modules):
        raise HandoffError(
            f"{file} has a MODULE without INSTANCE or FULLNAME: it is damaged. Copy the .hwh of "
            "the Vivado run again."
        )


def _instance(
    module: ET.Element, ranges: dict[str, list[Slave]], constants: dict[str, int]
) -> IpInstance:
    name = full_name(module)
    listed: dict[str, list[HandoffRegister]] = {}
    for block in module.findall("./ADDRESSBLOCKS/ADDRESSBLOCK"):
        listed.setdefault(block.get("INTERFACE", ""), []).extend(registers_of(block))
    ports = {port.name: port for port in ports_of(module, constants)}
    buses = {bus.name: bus for bus in buses_of(module)}
    clocks = (
        port.get("SIGNAME", "").rpartition("_FCLK_")[2]
        for port in module.findall("./PORTS/PORT")
        if port.get("SIGIS") == "clk" and "_FCLK_CLK" in port.get("SIGNAME", "")
    )
    return IpInstance(
        name,
        module.get("VLNV", ""),
        {p.get("NAME", ""): p.get("VALUE", "") for p in module.findall("./PARAMETERS/PARAMETER")},
        tuple(ranges.get(name, ())),
        {block: {r.name: r.offset for r in found} for block, found in listed.items()},
        {n: (b.initiator, b.data_bytes or 0) for n, b in buses.items() if b.kind == "axis"},
        tuple(n for n, p in ports.items() if p.signal_is == "INTERRUPT" and p.direction == "O"),
        f"FCLK_{next(clocks, 'CLK0')}",
        ports,
        buses,
        {block: values_of(found) for block, found in listed.items()},
    )
