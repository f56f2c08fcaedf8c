"""A block design of RTL kernels as SystemVerilog for synthesis: the PS7 and all around it.

Vivado makes the top from its own IP. For open tools it is written here: the PS7 primitive, the
shims of ``hw/rtl`` between its AXI3 ports and the kernels' AXI4, an interrupt controller with the
registers of Xilinx' own, and the reset.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pynq_torch.errors import HandoffError

from .model import Bus, Cell, Design, Segment

__all__ = ["PRIMITIVES", "PS7_PORTS", "read_ports", "write_top"]

_DECLARED = re.compile(
    r"^[ \t]*(?:input|output)\b[^;\n]*?(\w+)[ \t]*[,;]?[ \t]*(?://.*)?$", re.MULTILINE
)
#: Outputs of a kernel that AXI3 or the shims have no use for: what they say is fixed.
_UNUSED = re.compile(r"_(A[RW](ID|SIZE|BURST|LOCK|CACHE|PROT|QOS|REGION|USER)|W(ID|USER))$")
#: A read or write address, as the PS7 drives or takes it; then the channels of data and answers.
_ADDRESS = {"VALID": 1, "ADDR": 32, "LEN": 4}
_HP_IN = {
    **{f"A{way}{name}": bits for way in "RW" for name, bits in
       {**_ADDRESS, "ID": 6, "SIZE": 2, "BURST": 2, "LOCK": 2, "CACHE": 4, "PROT": 3,
        "QOS": 4}.items()},
    "RREADY": 1, "WVALID": 1, "WID": 6, "WDATA": 64, "WSTRB": 8, "WLAST": 1, "BREADY": 1,
}  # fmt: skip
_HP_OUT = {
    "ARREADY": 1, "AWREADY": 1, "WREADY": 1, "RVALID": 1, "RID": 6, "RDATA": 64, "RRESP": 2,
    "RLAST": 1, "BVALID": 1, "BID": 6, "BRESP": 2,
}  # fmt: skip
_GP_OUT = {
    "ARVALID": 1, "ARID": 12, "ARADDR": 32, "ARLEN": 4, "RREADY": 1, "AWVALID": 1, "AWID": 12,
    "AWADDR": 32, "WVALID": 1, "WDATA": 32, "WSTRB": 4, "WLAST": 1, "BREADY": 1,
}  # fmt: skip
_GP_IN = {
    "ARREADY": 1, "RVALID": 1, "RID": 12, "RDATA": 32, "RRESP": 2, "RLAST": 1, "AWREADY": 1,
    "WREADY": 1, "BVALID": 1, "BID": 12, "BRESP": 2,
}  # fmt: skip
_HPS = [f"SAXIHP{number}" for number in range(4)]
#: The ports of the PS7 primitive that a top may use: direction and bits. Place and route grounds
#: the others.
PS7_PORTS: Mapping[str, tuple[str, int]] = {
    "FCLKCLK": ("output", 4),
    "FCLKRESETN": ("output", 4),
    "IRQF2P": ("input", 20),
    **{f"{port}ACLK": ("input", 1) for port in ("MAXIGP0", *_HPS)},
    **{f"MAXIGP0{name}": ("output", bits) for name, bits in _GP_OUT.items()},
    **{f"MAXIGP0{name}": ("input", bits) for name, bits in _GP_IN.items()},
    **{f"{port}{name}": ("output", bits) for port in _HPS for name, bits in _HP_OUT.items()},
    **{f"{port}{name}": ("input", bits) for port in _HPS for name, bits in _HP_IN.items()},
}
#: What the port of the PS7 always gets: INCR bursts, secure data that may be buffered.
_FIXED = {"BURST": "2'b01", "LOCK": "2'b00", "CACHE": "4'b0011", "PROT": "3'b000", "QOS": "4'b0000"}
#: Signals of a kernel's memory port, with the bits of their nets.
_DRIVES = {
    **{f"A{way}{name}": bits for way in "RW" for name, bits in
       {"VALID": 1, "ADDR": 64, "LEN": 8}.items()},
    "RREADY": 1, "WVALID": 1, "WDATA": 0, "WSTRB": -1, "WLAST": 1, "BREADY": 1,
}  # fmt: skip
_TAKES = {
    "ARREADY": 1, "RVALID": 1, "RDATA": 0, "RRESP": 2, "RLAST": 1, "AWREADY": 1, "WREADY": 1,
    "BVALID": 1, "BRESP": 2,
}  # fmt: skip
#: Of AXI4-Lite: whether the units share the net.
_LITE = {
    "AWVALID": "", "AWREADY": "", "AWADDR": "shared", "WVALID": "", "WREADY": "",
    "WDATA": "shared", "WSTRB": "shared", "BVALID": "", "BREADY": "", "BRESP": "", "ARVALID": "",
    "ARREADY": "", "ARADDR": "shared", "RVALID": "", "RREADY": "", "RDATA": "", "RRESP": "",
}  # fmt: skip


def _ports(ports: Mapping[str, tuple[str, int]]) -> str:
    return ", ".join(f"{way} wire [{bits - 1}:0] {name}" for name, (way, bits) in ports.items())


#: Declarations of the primitives in a top, for a reader that must know their ports.
PRIMITIVES = (
    f"(* blackbox *) module PS7 ({_ports(PS7_PORTS)}); endmodule\n"
    "(* blackbox *) module BUFG (input wire I, output wire O); endmodule\n"
)


def read_ports(text: str) -> frozenset[str]:
    """Return the names of the ports that a Verilog file declares, one a line."""
    # In the older style names alone are in the head, and declarations follow it.
    head = text.partition("\n);")[0]
    return frozenset(_DECLARED.findall(head) or _DECLARED.findall(text))


def write_top(
    design: Design,
    ports: Mapping[str, frozenset[str]],
    parameters: Mapping[str, Mapping[str, int]] | None = None,
) -> str:
    """Return the module ``<design>_top``.

    Parameters
    ----------
    design : Design
        Of kernels with AXI4-Lite registers and memory ports, and an ``axi_intc``.
    ports : mapping of str to frozenset of str
        The ports of each kernel's RTL, by the kernel's name.
    parameters : mapping of str to mapping of str to int, optional
        Of a unit's RTL, by the unit's name.

    Raises
    ------
    HandoffError
        Something in the design has no RTL here, or a kernel's RTL lacks a port.
    """
    registers = [s for s in design.segments if s.master[1] == "M_AXI_GP0"]
    body = _units(design, registers, ports, parameters or {})
    for port in (bus.name for bus in design.cells[0].buses if bus.name.startswith("S_AXI_HP")):
        masters = [s.master for s in design.segments if s.slave[1] == port]
        body += _memory_port(design, port.removeprefix("S_AXI_"), masters)
    lines = [
        f"// Overlay {design.name}: {design.summary}",
        f"// Written by pynq_torch from hw/overlays/{design.name}/overlay.toml; edit that instead.",
        "`default_nettype none",
        f"module {design.name}_top;",
        *_system(design, [segment.base >> 16 for segment in registers]),
        *body,
        "endmodule",
        "`default_nettype wire",
    ]
    return "\n".join(lines) + "\n"


def _units(
    design: Design,
    registers: Sequence[Segment],
    ports: Mapping[str, frozenset[str]],
    parameters: Mapping[str, Mapping[str, int]],
) -> list[str]:
    """Return the instances of the units behind the register bundles `registers`."""
    slaves = sorted(segment.slave[0] for segment in registers)
    if slaves != sorted(cell.name for cell in design.cells if cell.role == "peripheral"):
        raise HandoffError(
            f"{design.name}: open tools make units with one register bundle each; found bundles of "
            f"{', '.join(slaves) or 'none'}. Use --tool vivado"
        )
    body: list[str] = []
    if all(cell.kind != "axi_intc" for cell in design.cells):
        body.append("  assign irq = 1'b0;")
    for index, segment in enumerate(registers):
        cell = design.cell(segment.slave[0])
        if cell.kind == "axi_intc":
            body += _interrupt_controller(design, cell, index)
        elif cell.is_kernel:
            given = parameters.get(cell.name, {})
            body += _unit(cell, segment.slave[1], index, ports[cell.kind], given)
        else:
            raise HandoffError(
                f"{design.name}: {cell.name} is the vendor's {cell.kind}, which open tools cannot "
                "make; expected kernels with RTL and an axi_intc. Use --tool vivado"
            )
    return body


def _instance(module: str, name: str, pins: Mapping[str, str], given: Mapping[str, object]) -> str:
    values = ", ".join(f".{key}({value})" for key, value in given.items())
    wired = ",\n".join(f"    .{pin}({net})" for pin, net in pins.items())
    return f"  {module} {f'#({values}) ' if values else ''}{name} (\n{wired}\n  );"


def _wire(bits: int, name: str) -> str:
    return f"  wire {f'[{bits - 1}:0] ' if bits > 1 else ''}{name};"


def _system(design: Design, pages: list[int]) -> Iterator[str]:
    """Yield the PS7, clock, reset, and what distributes the registers."""
    hps = [
        name for name in _HPS if any(b.name == f"S_AXI_{name[4:]}" for b in design.cells[0].buses)
    ]
    used = {name: net for name in PS7_PORTS if (net := _ps7_net(name, hps))}
    yield from (_wire(PS7_PORTS[name][1], name) for name in used if used[name] == name)
    yield from ("  wire clk, rst_n, irq;", "  wire fclk = FCLKCLK[0];")
    yield _instance("PS7", "ps7", used, {})
    yield _instance("BUFG", "clock", {"I": "fclk", "O": "clk"}, {})
    reset = {"clk_i": "clk", "fclk_resetn_i": "FCLKRESETN[0]", "rst_no": "rst_n"}
    yield _instance("ps_reset", "reset", reset, {})
    count = len(pages)
    for signal, shared in _LITE.items():
        bits = {"DATA": 32, "RESP": 2, "ADDR": 16, "STRB": 4}.get(signal[-4:], 1)
        name = signal.lower()
        if shared:
            yield _wire(bits, name)
        else:
            yield f"  wire [{count - 1}:0]{f'[{bits - 1}:0]' if bits > 1 else ''} {name};"
    pins = {"clk_i": "clk", "rst_ni": "rst_n"}
    pins |= {f"{name.lower()}_i": f"MAXIGP0{name}" for name in _GP_OUT}
    pins |= {f"{name.lower()}_o": f"MAXIGP0{name}" for name in _GP_IN}
    # Towards the units the directions are the other way round: no name comes twice.
    for name in _LITE:
        out = name not in _TAKES
        pins[f"lite_{name.lower()}_{'o' if out else 'i'}"] = name.lower()
    listed = ", ".join(f"16'h{page:04x}" for page in reversed(pages))
    given = {"SLAVES": count, "PAGES": f"{{{listed}}}"}
    yield _instance("axi3_registers", "registers", pins, given)


def _ps7_net(name: str, hps: list[str]) -> str:
    """Return the net of a port of the PS7, ``""`` where nothing uses it."""
    if name.startswith("SAXI") and name[:7] not in hps:
        return ""
    if name.endswith("ACLK"):
        return "clk"
    if name == "IRQF2P":
        return "{19'd0, irq}"
    fixed = _FIXED.get(name.removeprefix(name[:7])[2:], "") if name.startswith("SAXI") else ""
    return fixed or name


def _unit(
    cell: Cell, slave: str, index: int, ports: frozenset[str], given: Mapping[str, int]
) -> Iterator[str]:
    """Yield a compute unit with the nets of its memory ports."""
    pins = {"ap_clk": "clk", "ap_rst_n": "rst_n"}
    if "interrupt" in ports:
        yield _wire(1, f"{cell.name}_interrupt")
        pins["interrupt"] = f"{cell.name}_interrupt"
    bits = int(cell.parameters[f"C_{slave.upper()}_ADDR_WIDTH"])
    pins |= {f"{slave}_{name}": net for name, net in _lite_nets(index, bits).items()}
    for bus in cell.buses:
        if bus.protocol == "axis":
            raise HandoffError(
                f"{cell.name}: {bus.name} is a stream, and a DMA is the vendor's; expected memory "
                "ports alone. Use --tool vivado"
            )
        if bus.is_source:
            yield from _master_nets(cell, bus, ports, pins)
    extra = {port for port in ports - pins.keys() if not _UNUSED.search(port)}
    if wrong := sorted(pins.keys() - ports | extra):
        raise HandoffError(
            f"{cell.name}: its RTL and the interface of {cell.kind}.cpp differ in "
            f"{', '.join(wrong)}; expected the same ports"
        )
    yield _instance(cell.kind, cell.name, pins, given)


def _lite_nets(index: int, address_bits: int) -> dict[str, str]:
    nets = {name: f"{name.lower()}{'' if how else f'[{index}]'}" for name, how in _LITE.items()}
    return nets | {name: f"{name.lower()}[{address_bits - 1}:0]" for name in ("ARADDR", "AWADDR")}


def _master_nets(
    cell: Cell, bus: Bus, ports: frozenset[str], pins: dict[str, str]
) -> Iterator[str]:
    """Yield the nets of a memory port, all of them: a direction that the kernel lacks is 0."""
    if bus.data_bits not in (32, 64):
        raise HandoffError(
            f"{cell.name}: {bus.name} has {bus.data_bits} bits; the shim to the PS' memory ports "
            "takes 32 or 64. Use --tool vivado"
        )
    widths = {0: bus.data_bits, -1: bus.data_bits // 8}
    signals = {**_DRIVES, **_TAKES}
    here = {_reads(name) for name in signals if f"{bus.name}_{name}" in ports}
    for name, bits in signals.items():
        port, net = f"{bus.name}_{name}", f"{cell.name}_{bus.name}_{name}"
        yield _wire(widths.get(bits, bits), net)
        if not here or _reads(name) in here:
            pins[port] = net
        elif name in _DRIVES:
            yield f"  assign {net} = '0;"
    for name in ("BID", "RID", "BUSER", "RUSER"):  # inputs of an export: AXI4 without IDs
        if f"{bus.name}_{name}" in ports:
            pins[f"{bus.name}_{name}"] = "'0"


def _reads(name: str) -> bool:
    return name.startswith(("AR", "R"))


def _memory_port(design: Design, port: str, masters: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the shim of one memory port of the PS; the first master is number 0."""
    pins = {"clk_i": "clk", "rst_ni": "rst_n"}
    for name in (*_DRIVES, *_TAKES):
        nets = [f"{cell}_{bus}_{name}" for cell, bus in reversed(masters)]
        if name in ("RRESP", "RLAST", "BRESP"):
            shared = f"{port.lower()}_{name}"
            yield _wire(1 if name == "RLAST" else 2, shared)
            yield from (f"  assign {net} = {shared};" for net in nets)
            pins[f"{name.lower()}_o"] = shared
        elif name == "RDATA":
            wide = f"{port.lower()}_RDATA"
            yield f"  wire [{len(masters) - 1}:0][63:0] {wide};"
            for number, (cell, bus) in enumerate(masters):
                top = design.cell(cell).bus(bus).data_bits - 1
                yield f"  assign {cell}_{bus}_RDATA = {wide}[{number}][{top}:0];"
            pins["rdata_o"] = wide
        else:
            if name in ("ARADDR", "AWADDR"):
                nets = [f"{net}[31:0]" for net in nets]
            elif name in ("WDATA", "WSTRB"):
                nets = [f"{64 if name == 'WDATA' else 8}'({net})" for net in nets]
            pins[f"{name.lower()}_{'i' if name in _DRIVES else 'o'}"] = f"{{{', '.join(nets)}}}"
    ps = f"SAXI{port}"
    moving = [name for name in _HP_IN if name[2:] not in _FIXED]
    pins |= {f"ps_{name.lower()}_o": f"{ps}{name}" for name in moving}
    pins |= {f"ps_{name.lower()}_i": f"{ps}{name}" for name in _HP_OUT}
    narrow = [int(design.cell(cell).bus(bus).data_bits == 32) for cell, bus in reversed(masters)]
    bits = f"{len(masters)}'b{''.join(map(str, narrow))}"
    given = {"MASTERS": len(masters), "NARROW": bits}
    yield _instance("axi3_memory", f"memory_{port.lower()}", pins, given)


def _interrupt_controller(design: Design, cell: Cell, index: int) -> Iterator[str]:
    """Yield the interrupt controller; its first source is input 0."""
    source = {sink: net.source for net in design.nets for sink in net.sinks}
    count = int(cell.parameters["C_NUM_INTR_INPUTS"])
    first = source[(cell.name, "intr")]
    if design.cell(first[0]).kind == "xlconcat":
        sources = [source[(first[0], f"In{number}")] for number in range(count)]
    else:
        sources = [first]
    listed = ", ".join("_".join(pin) for pin in reversed(sources))
    yield f"  assign bresp[{index}] = 2'b00;"
    yield f"  assign rresp[{index}] = 2'b00;"
    pins = {"clk_i": "clk", "rst_ni": "rst_n", "intr_i": f"{{{listed}}}", "irq_o": "irq"}
    for name, net in _lite_nets(index, 5).items():
        if name not in ("WSTRB", "BRESP", "RRESP"):
            out = name in _TAKES
            pins[f"{name.lower()}_{'o' if out else 'i'}"] = net
    yield _instance("axi_intc", cell.name, pins, {"INPUTS": count})
