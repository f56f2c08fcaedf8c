"""An overlay's description completed into a block design.

What the description leaves out is the same for every overlay: the processing system, its reset,
one SmartConnect for the registers and one for each memory port in use, the concatenation of
interrupts, and the addresses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pynq_torch.errors import HandoffError
from pynq_torch.hls.interface import Interface

from . import part
from .catalogue import xilinx_cell
from .description import InstanceDescription, OverlayDescription
from .description import Pin as PinName
from .kernel_cell import kernel_cell
from .model import Bus, Cell, Design, Net, Pin, Segment

__all__ = ["Design", "elaborate"]

PS, RESET, PERIPHERY, CONCAT = "processing_system7_0", "rst_ps7_0", "axi_periph", "xlconcat_0"
_RANGE = 0x1_0000
_EXTERNAL = (
    ("DDR", "xilinx.com:interface:ddrx_rtl:1.0"),
    ("FIXED_IO", "xilinx.com:display_processing_system7:fixedio_rtl:1.0"),
)


def elaborate(description: OverlayDescription, interfaces: Mapping[str, Interface]) -> Design:
    """Complete a description into a block design.

    Parameters
    ----------
    description : OverlayDescription
        What a person wrote.
    interfaces : mapping of str to Interface
        The interface of every kernel it names.

    Raises
    ------
    HandoffError
        The description contradicts itself or a kernel: an unknown port, a master without a memory
        port, overlapping addresses, a clock the board cannot make.
    """
    where = description.path
    sources = len(description.interrupts)
    cells = [_cell(instance, interfaces, sources) for instance in description.instances]
    by_name = {cell.name: cell for cell in cells}
    reserved = sorted(set(by_name) & {PS, RESET, PERIPHERY, CONCAT})
    if reserved:
        raise HandoffError(f"{where}: the name {reserved[0]} is the generator's own; use another")
    memory = _memory_masters(description, by_name)
    slaves = [
        (cell.name, bus)
        for cell in cells
        for bus in cell.buses
        if bus.protocol == "aximm" and not bus.is_source
    ]
    ports = [port for port in part.MEMORY_PORTS if port in memory]
    system = [_processing_system(description, ports), _reset(), _connect(PERIPHERY, 1, len(slaves))]
    links = [((PS, "M_AXI_GP0"), (PERIPHERY, "S00_AXI"))]
    links += [
        ((PERIPHERY, f"M{index:02}_AXI"), (name, bus.name))
        for index, (name, bus) in enumerate(slaves)
    ]
    for port in ports:
        system.append(_connect(_memory(port), len(memory[port]), 1, part.MEMORY_PORT_BITS))
        links += _memory_links(port, memory[port])
    links += [_stream(description, by_name, *ends) for ends in description.streams]
    interrupt_nets, helpers = _interrupts(description, by_name)
    everything = (*system, *helpers, *cells)
    return Design(
        name=description.name,
        summary=description.summary,
        clock_mhz=part.clock_dividers(description.clock_mhz).mhz,
        cells=everything,
        links=tuple(links),
        nets=(*_clock_and_reset(everything), *interrupt_nets),
        segments=(*_addresses(description, slaves), *_memory_segments(memory)),
        external=_EXTERNAL,
    )


def _memory(port: str) -> str:
    return f"axi_mem_{port.lower()}"


def _memory_links(
    port: str, masters: Sequence[tuple[str, Bus]]
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield the links of a memory port's interconnect: from its masters, and to the PS."""
    for index, (name, bus) in enumerate(masters):
        yield (name, bus.name), (_memory(port), f"S{index:02}_AXI")
    yield (_memory(port), "M00_AXI"), (PS, f"S_AXI_{port}")


def _cell(
    instance: InstanceDescription, interfaces: Mapping[str, Interface], interrupts: int
) -> Cell:
    if instance.ip is not None:
        return xilinx_cell(instance.name, instance.ip, instance.parameters, interrupts)
    kernel = str(instance.kernel)
    if instance.parameters:
        raise HandoffError(
            f"{instance.name}: a kernel has no parameters; they are in its C++ ({kernel}.hpp)"
        )
    if kernel not in interfaces:
        raise HandoffError(
            f"{instance.name}: no interface of the kernel {kernel!r} was given; there are "
            f"{', '.join(interfaces) or 'none'}"
        )
    return kernel_cell(instance.name, interfaces[kernel])


def _memory_masters(
    description: OverlayDescription, cells: Mapping[str, Cell]
) -> dict[str, list[tuple[str, Bus]]]:
    """Return the masters of each memory port that is in use."""
    found: dict[str, list[tuple[str, Bus]]] = {}
    for instance in description.instances:
        cell = cells[instance.name]
        masters = {
            bus.name.removeprefix("m_axi_"): bus
            for bus in cell.buses
            if bus.protocol == "aximm" and bus.is_source
        }
        if set(masters) != set(instance.memory):
            raise HandoffError(
                f"{description.path}: {instance.name} has the masters "
                f"{', '.join(masters) or '(none)'} but memory = names "
                f"{', '.join(instance.memory) or '(none)'}; give each a port of "
                f"{', '.join(part.MEMORY_PORTS)}"
            )
        for master, port in instance.memory.items():
            found.setdefault(port, []).append((instance.name, masters[master]))
    return found


def _processing_system(description: OverlayDescription, ports: Sequence[str]) -> Cell:
    dividers = part.clock_dividers(description.clock_mhz)
    config = {
        "PCW_CRYSTAL_PERIPHERAL_FREQMHZ": str(part.CRYSTAL_MHZ),
        "PCW_EN_CLK0_PORT": "1",
        "PCW_EN_RST0_PORT": "1",
        "PCW_FPGA0_PERIPHERAL_FREQMHZ": f"{dividers.mhz:.6f}".rstrip("0").rstrip("."),
        "PCW_USE_M_AXI_GP0": "1",
        **{f"PCW_USE_S_AXI_{port}": str(int(port in ports)) for port in part.MEMORY_PORTS},
        **{f"PCW_S_AXI_{port}_DATA_WIDTH": str(part.MEMORY_PORT_BITS) for port in ports},
        "PCW_USE_FABRIC_INTERRUPT": str(int(bool(description.interrupts))),
        "PCW_IRQ_F2P_INTR": str(int(bool(description.interrupts))),
    }
    parameters = {
        **config,
        "PCW_ACT_FPGA0_PERIPHERAL_FREQMHZ": f"{dividers.mhz:.6f}",
        "PCW_IOPLL_CTRL_FBDIV": str(part.IO_PLL_MULTIPLIER),
        "C_BASEADDR": "0x00000000",
        "C_HIGHADDR": f"0x{part.DDR_BYTES - 1:08X}",
    }
    for clock in range(4):
        first, second = (dividers.divisor0, dividers.divisor1) if clock == 0 else (1, 1)
        parameters[f"PCW_FCLK{clock}_PERIPHERAL_CLKSRC"] = "IO PLL"
        parameters[f"PCW_FCLK{clock}_PERIPHERAL_DIVISOR0"] = str(first)
        parameters[f"PCW_FCLK{clock}_PERIPHERAL_DIVISOR1"] = str(second)
        parameters[f"PCW_FPGA_FCLK{clock}_ENABLE"] = str(int(clock == 0))
    buses = [Bus("M_AXI_GP0", "aximm", True, 32, space="Data")]
    pins = [
        Pin("FCLK_CLK0", "O", "clk"),
        Pin("FCLK_RESET0_N", "O", "rst", active_low=True),
        Pin("M_AXI_GP0_ACLK", "I", "clk"),
    ]
    for port in ports:
        bits = part.MEMORY_PORT_BITS
        buses.append(Bus(f"S_AXI_{port}", "aximm", False, bits, block=f"{port}_DDR_LOWOCM"))
        pins.append(Pin(f"S_AXI_{port}_ACLK", "I", "clk"))
    if description.interrupts:
        pins.append(Pin("IRQ_F2P", "I", "interrupt"))
    vlnv = "xilinx.com:ip:processing_system7:5.5"
    return Cell(PS, vlnv, config, parameters, tuple(buses), tuple(pins), "ps")


def _reset() -> Cell:
    pins = (
        Pin("slowest_sync_clk", "I", "clk"),
        Pin("ext_reset_in", "I", "rst", active_low=True),
        Pin("peripheral_aresetn", "O", "rst", active_low=True),
    )
    return Cell(RESET, "xilinx.com:ip:proc_sys_reset:5.0", pins=pins, role="helper")


def _connect(name: str, slaves: int, masters: int, bits: int = 32) -> Cell:
    """Return a SmartConnect; it converts widths and AXI4 to the PS' AXI3."""
    config = {"NUM_SI": str(slaves), "NUM_MI": str(masters), "NUM_CLKS": "1"}
    buses = [Bus(f"S{i:02}_AXI", "aximm", False, 32) for i in range(slaves)]
    buses += [Bus(f"M{i:02}_AXI", "aximm", True, bits) for i in range(masters)]
    pins = (Pin("aclk", "I", "clk"), Pin("aresetn", "I", "rst", active_low=True))
    vlnv = "xilinx.com:ip:smartconnect:1.0"
    return Cell(name, vlnv, config, config, tuple(buses), pins, "bus")


def _clock_and_reset(cells: tuple[Cell, ...]) -> tuple[Net, Net, Net]:
    def inputs(kind: str) -> tuple[tuple[str, str], ...]:
        return tuple(
            (cell.name, pin.name)
            for cell in cells
            for pin in cell.pins
            if pin.kind == kind and pin.direction == "I" and pin.name != "ext_reset_in"
        )

    return (
        Net((PS, "FCLK_CLK0"), inputs("clk")),
        Net((PS, "FCLK_RESET0_N"), ((RESET, "ext_reset_in"),)),
        Net((RESET, "peripheral_aresetn"), inputs("rst")),
    )


def _stream(
    description: OverlayDescription, cells: Mapping[str, Cell], source: PinName, sink: PinName
) -> tuple[tuple[str, str], tuple[str, str]]:
    for pin, drives in ((source, True), (sink, False)):
        buses = [bus for bus in cells[pin.instance].buses if bus.protocol == "axis"]
        found = [bus.name for bus in buses if bus.is_source == drives]
        _check_pin(description, pin, f"stream {'output' if drives else 'input'}", found)
    widths = [cells[pin.instance].bus(pin.name).data_bits for pin in (source, sink)]
    if widths[0] != widths[1]:
        raise HandoffError(
            f"{description.path}: {source} is {widths[0]} bits wide and {sink} {widths[1]}; "
            "make them equal, nothing converts between them"
        )
    return (source.instance, source.name), (sink.instance, sink.name)


def _check_pin(
    description: OverlayDescription, pin: PinName, what: str, found: Sequence[str]
) -> None:
    if pin.name not in found:
        raise HandoffError(
            f"{description.path}: {pin} is no {what}; {pin.instance} has "
            f"{', '.join(found) or 'none'}"
        )


def _interrupts(
    description: OverlayDescription, cells: Mapping[str, Cell]
) -> tuple[tuple[Net, ...], tuple[Cell, ...]]:
    sources = description.interrupts
    if not sources:
        return (), ()
    controllers = [cell.name for cell in cells.values() if cell.kind == "axi_intc"]
    if len(controllers) != 1:
        raise HandoffError(
            f"{description.path}: interrupts need one axi_intc, there are {len(controllers)}; "
            'add [instances.axi_intc_0] with ip = "axi_intc"'
        )
    for source in sources:
        found = [pin.name for pin in cells[source.instance].pins if pin.kind == "interrupt"]
        _check_pin(description, source, "interrupt", found)
    controller = controllers[0]
    out = Net((controller, "irq"), ((PS, "IRQ_F2P"),))
    if len(sources) == 1:
        only = sources[0]
        return (Net((only.instance, only.name), ((controller, "intr"),)), out), ()
    inputs = tuple(Pin(f"In{index}", "I", "interrupt") for index in range(len(sources)))
    config = {"NUM_PORTS": str(len(sources))}
    pins = (*inputs, Pin("dout", "O", "interrupt", len(sources)))
    concat = Cell(CONCAT, "xilinx.com:ip:xlconcat:2.1", config, config, (), pins, "helper")
    nets = [
        Net((source.instance, source.name), ((CONCAT, pin.name),))
        for source, pin in zip(sources, inputs, strict=True)
    ]
    return (*nets, Net((CONCAT, "dout"), ((controller, "intr"),)), out), (concat,)


def _addresses(
    description: OverlayDescription, slaves: list[tuple[str, Bus]]
) -> tuple[Segment, ...]:
    wanted = {instance.name: instance.address for instance in description.instances}
    taken: dict[int, str] = {}
    for name, address in wanted.items():
        if address is None:
            continue
        if address % _RANGE or not part.GP0_BASE <= address < part.GP0_END:
            raise HandoffError(
                f"{description.path}: {name} at 0x{address:08x}; an address is a multiple of 64 KB "
                f"in 0x{part.GP0_BASE:08x} to 0x{part.GP0_END - 1:08x} (M_AXI_GP0)"
            )
        if address in taken:
            raise HandoffError(
                f"{description.path}: {name} and {taken[address]} are both at 0x{address:08x}"
            )
        taken[address] = name
    segments = []
    for name, bus in slaves:
        base = wanted[name]
        if base is None:
            base = next(a for a in range(part.GP0_BASE, part.GP0_END, _RANGE) if a not in taken)
            taken[base] = name
        wanted[name] = None  # a second slave of the same instance takes the next free range
        master, slave = (PS, "M_AXI_GP0"), (name, bus.name)
        segments.append(Segment(master, "Data", slave, bus.block, base, _RANGE))
    return tuple(segments)


def _memory_segments(memory: Mapping[str, list[tuple[str, Bus]]]) -> tuple[Segment, ...]:
    return tuple(
        Segment(
            (name, bus.name), bus.space, (PS, f"S_AXI_{port}"), f"{port}_DDR_LOWOCM",
            0, part.DDR_BYTES,
        )
        for port, masters in memory.items()
        for name, bus in masters
    )  # fmt: skip
