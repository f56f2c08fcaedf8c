"""A kernel's RTL as an IP for Vivado, in the place of what Vitis HLS packages of its C++.

Vivado's packager takes a top in Verilog or VHDL, not in SystemVerilog, and reads from attributes
which bus a port belongs to (UG1118, "Top-Level HDL Requirements"; UG994, "Inferring AXI
Interfaces"). So the top here is a wrapper in Verilog. The IP has the name, the buses and the
registers that Vitis HLS would give it: block design, handoff and drivers stay as they are.

No Vivado has seen it: the wrapper is read by Verilator, the Tcl runs with every command recorded.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pynq_torch.errors import BitstreamError
from pynq_torch.hls.design.build import make_design
from pynq_torch.hls.design.model import Bus, Cell
from pynq_torch.hls.design.part import PART
from pynq_torch.models import yosys
from pynq_torch.paths import ROOT, to_write

from .grouping import group
from .lint import find_verilator
from .ports import AxiInterfaces, AxiMaster, AxiSlave, AxiStream, PortDecl
from .sources import RtlSource, find_rtl
from .verilate import elaborate

__all__ = ["write_ips", "write_packaging", "write_wrapper"]

_WAYS = {"in": "input", "out": "output", "inout": "inout"}


def write_ips(
    name: str, *, root: Path | None = None, out: Path | None = None
) -> dict[str, tuple[Path, tuple[Path, ...]]]:
    """Write what Vivado packages the RTL kernels of an overlay from.

    Parameters
    ----------
    name : str
        The overlay.
    root : pathlib.Path, optional
        The project.
    out : pathlib.Path, optional
        Where each kernel's folder is made, by default ``hw/build/rtl/ip``.

    Returns
    -------
    dict of str to tuple
        For each kernel with RTL its folder, with ``package.tcl`` and ``src``, and the files of the
        project that are in it.

    Raises
    ------
    BitstreamError
        No kernel of the overlay has RTL.
    RtlError
        Verilator is missing, or cannot read the RTL, or its ports are not those of the kernel.
    """
    root = root or ROOT
    out = out or to_write(root / "hw" / "build") / "rtl" / "ip"
    cells = {cell.kind: cell for cell in make_design(name, root)[0].kernels}
    kernels = root / "hw" / "kernels"
    sources = ((kernel, find_rtl([kernels], kernel)) for kernel in cells)
    # An export of Vitis HLS has been packaged by it.
    found = {kernel: source for kernel, source in sources if source and not source.export}
    if not found:
        raise BitstreamError(
            f"{name}: none of {', '.join(cells)} has RTL; expected {kernels}/KERNEL/rtl. Without "
            "--rtl Vivado takes what Vitis HLS makes of the C++"
        )
    return {kernel: _write(source, cells[kernel], out) for kernel, source in found.items()}


def _write(source: RtlSource, cell: Cell, out: Path) -> tuple[Path, tuple[Path, ...]]:
    ports, interfaces = _read(source, cell)
    files = (*source.files, *sorted(yosys.beside(source.files)))
    folder = out / cell.kind
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "src").mkdir(parents=True)
    for path in files:
        shutil.copy(path, folder / "src")
    top = f"{source.top}_ip"
    wrapper = write_wrapper(source.top, ports, interfaces)
    (folder / "src" / f"{top}.v").write_text(wrapper, encoding="utf-8")
    names = [f"{top}.v", *(path.name for path in files)]
    (folder / "package.tcl").write_text(write_packaging(cell, top, names), encoding="utf-8")
    return folder, files


def _read(source: RtlSource, cell: Cell) -> tuple[Sequence[PortDecl], AxiInterfaces]:
    """Return the ports of the RTL, which have to be those of the block design's cell."""
    with tempfile.TemporaryDirectory(prefix="rtl-") as work:
        ports = elaborate(find_verilator(), source, Path(work)).ports
    interfaces = group(ports, None, top=source.top)
    buses, expected = ({b.name for b in have} for have in (interfaces.ports, cell.buses))
    if buses != expected:
        raise BitstreamError(
            f"the RTL of {cell.kind} has the buses {', '.join(sorted(buses))}, its C++ "
            f"{', '.join(sorted(expected))}; a block design needs the same"
        )
    return ports, interfaces


# ---- the wrapper ---------------------------------------------------------------------------------


def write_wrapper(top: str, ports: Sequence[PortDecl], interfaces: AxiInterfaces) -> str:
    """Return the module ``<top>_ip`` in Verilog: the ports of `top`, with their buses named.

    Parameters
    ----------
    top : str
        The module to wrap.
    ports : sequence of PortDecl
        Its ports, in their order.
    interfaces : AxiInterfaces
        What these are.
    """
    about = dict(_attributes(interfaces))
    declared = [_declared(port, about.get(port.name, ())) for port in ports]
    connected = [f"        .{port.name}({port.name})" for port in ports]
    return "\n".join(
        [
            f"// {top} for Vivado's IP packager; written by pynq_torch.",
            f"module {top}_ip (",
            ",\n".join(declared),
            ");",
            f"    {top} {top}_0 (",
            ",\n".join(connected),
            "    );",
            "endmodule",
            "",
        ]
    )


def _declared(port: PortDecl, attributes: Sequence[str]) -> str:
    names = ("X_INTERFACE_INFO", "X_INTERFACE_PARAMETER")
    given = [f'{n} = "{text}"' for n, text in zip(names, attributes, strict=False)]
    above = f"    (* {', '.join(given)} *)\n" if given else ""
    bits = f"[{port.width - 1}:0] " if port.width > 1 else ""
    return f"{above}    {_WAYS[port.direction]} wire {bits}{port.name}"


def _attributes(interfaces: AxiInterfaces) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each port's name, with what the packager reads: its bus, and the bus's parameters."""
    signal = "xilinx.com:signal"
    buses = ":".join(bus.name for bus in interfaces.ports)
    resets = ":".join(name for name, _ in interfaces.resets)
    for clock in interfaces.clocks:
        belongs = [f"ASSOCIATED_BUSIF {buses}"] if buses else []
        belongs += [f"ASSOCIATED_RESET {resets}"] if resets else []
        yield clock, (f"{signal}:clock:1.0 {clock} CLK", ", ".join(belongs))
    for reset, active_low in interfaces.resets:
        polarity = f"POLARITY ACTIVE_{'LOW' if active_low else 'HIGH'}"
        yield reset, (f"{signal}:reset:1.0 {reset} RST", polarity)
    if interfaces.interrupt:
        about = f"{signal}:interrupt:1.0 {interfaces.interrupt} INTERRUPT"
        yield interfaces.interrupt, (about, "SENSITIVITY LEVEL_HIGH")
    for bus in interfaces.ports:
        kind = "axis" if isinstance(bus, AxiStream) else "aximm"
        for number, (name, port) in enumerate(bus.signals.items()):
            info = f"xilinx.com:interface:{kind}:1.0 {bus.name} {name}"
            yield port, (info, _protocol(bus)) if not number and kind == "aximm" else (info,)


def _protocol(bus: AxiSlave | AxiMaster | AxiStream) -> str:
    if isinstance(bus, AxiMaster):
        return f"PROTOCOL AXI4, DATA_WIDTH {bus.data_width}, ADDR_WIDTH {bus.address_width}"
    return "PROTOCOL AXI4LITE"


# ---- the script ----------------------------------------------------------------------------------

_HEAD = """\
# {kernel}: its RTL as the IP {vlnv}. Written by pynq_torch.
#
# vivado -mode batch -source package.tcl
set here [file dirname [file normalize [info script]]]
create_project -force package $here/project -part {part}
foreach name {{{names}}} {{ add_files -norecurse $here/src/$name }}
set_property top {top} [current_fileset]
update_compile_order -fileset sources_1
ipx::package_project -root_dir $here -vendor {vendor} -library {library} -taxonomy /UserIP \\
    -import_files -force
set core [ipx::current_core]
set_property name {kernel} $core
set_property version {version} $core
set_property display_name {{{kernel} (RTL)}} $core

# What the packager made up: names here are those of Vitis HLS.
foreach map [ipx::get_memory_maps -of_objects $core] {{
    ipx::remove_memory_map [get_property name $map] $core
}}
foreach space [ipx::get_address_spaces -of_objects $core] {{
    ipx::remove_address_space [get_property name $space] $core
}}
"""
_TAIL = """\
ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity $core
ipx::save_core $core
close_project -delete
"""


def write_packaging(cell: Cell, top: str, names: Sequence[str]) -> str:
    """Return the Tcl that packages RTL as the IP of a block design's cell.

    Parameters
    ----------
    cell : Cell
        The kernel in a block design, with its buses and registers.
    top : str
        The wrapper's module.
    names : sequence of str
        The files in ``src``, beside the script.
    """
    vendor, library, kernel, version = cell.vlnv.split(":")
    head = _HEAD.format(
        kernel=kernel, vlnv=cell.vlnv, part=PART, names=" ".join(names), top=top, vendor=vendor,
        library=library, version=version,
    )  # fmt: skip
    return "\n".join([head, *(line for bus in cell.buses for line in _bus(bus)), "", _TAIL])


def _bus(bus: Bus) -> Iterator[str]:
    """Yield the address space of a manager, or the registers of a subordinate."""
    interface = f"[ipx::get_bus_interfaces {bus.name} -of_objects $core]"
    if bus.space:
        yield f"set space [ipx::add_address_space {bus.space} $core]"
        yield "set_property range 4294967296 $space"
        yield f"set_property width {bus.data_bits} $space"
        yield f"set_property master_address_space_ref {bus.space} {interface}"
    if not bus.block:
        return
    yield f"set map [ipx::add_memory_map {bus.name} $core]"
    yield f"set_property slave_memory_map_ref {bus.name} {interface}"
    yield f"set block [ipx::add_address_block {bus.block} $map]"
    yield "set_property range 65536 $block"
    yield "set_property width 32 $block"
    yield "set_property usage register $block"
    for entry in bus.registers:
        yield f"set register [ipx::add_register {entry.name} $block]"
        yield f"set_property address_offset 0x{entry.offset:x} $register"
        yield f"set_property size {entry.size} $register"
        yield f"set_property access {entry.access} $register"
        for item in entry.fields:
            yield f"set field [ipx::add_field {item.name} $register]"
            yield f"set_property bit_offset {item.offset} $field"
            yield f"set_property bit_width {item.width} $field"
            yield f"set_property access {item.access} $field"
