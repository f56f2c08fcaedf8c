"""The Xilinx IP that an overlay's description may instantiate, as cells.

Only registers that a program uses are listed: PG021 (AXI DMA) and PG099 (AXI interrupt controller).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pynq_torch.errors import HandoffError

from .model import Bus, Cell, Field, Pin, RegisterEntry, Signal

__all__ = ["CATALOGUE", "stream_bus", "xilinx_cell"]

_RW, _RO, _WO = "read-write", "read-only", "write-only"

#: PG021, MM2S_DMACR and S2MM_DMACR (tables 2-6 and 2-16): bit, width, access.
_DMA_CONTROL = (
    Field("RS", 0, 1, _RW, "Run or stop the channel"),
    Field("Reset", 2, 1, _RW, "Soft reset of both channels"),
    Field("Keyhole", 3, 1, _RW, "Every beat to the same address"),
    Field("Cyclic_BD_Enable", 4, 1, _RW, "Descriptors in a ring"),
    Field("IOC_IrqEn", 12, 1, _RW, "Interrupt on complete"),
    Field("Dly_IrqEn", 13, 1, _RW, "Interrupt on the delay timer"),
    Field("Err_IrqEn", 14, 1, _RW, "Interrupt on error"),
    Field("IRQThreshold", 16, 8, _RW, "Packets to an interrupt"),
    Field("IRQDelay", 24, 8, _RW, "Delay to an interrupt"),
)
#: PG021, MM2S_DMASR and S2MM_DMASR (tables 2-7 and 2-17).
_DMA_STATUS = (
    Field("Halted", 0, 1, _RO, "The channel is stopped"),
    Field("Idle", 1, 1, _RO, "The transfer is done"),
    Field("SGIncld", 3, 1, _RO, "Scatter-gather is built in"),
    Field("DMAIntErr", 4, 1, _RO, "Internal error"),
    Field("DMASlvErr", 5, 1, _RO, "The memory answered with an error"),
    Field("DMADecErr", 6, 1, _RO, "No memory at that address"),
    Field("SGIntErr", 8, 1, _RO, "Scatter-gather: internal error"),
    Field("SGSlvErr", 9, 1, _RO, "Scatter-gather: slave error"),
    Field("SGDecErr", 10, 1, _RO, "Scatter-gather: decode error"),
    Field("IOC_Irq", 12, 1, _RW, "Complete; write 1 to clear"),
    Field("Dly_Irq", 13, 1, _RW, "Delay; write 1 to clear"),
    Field("Err_Irq", 14, 1, _RW, "Error; write 1 to clear"),
    Field("IRQThresholdSts", 16, 8, _RO, "Packets still to come"),
    Field("IRQDelaySts", 24, 8, _RO, "Delay still to come"),
)


def stream_bus(
    name: str,
    *,
    is_source: bool,
    data_bytes: int,
    channels: Mapping[str, int],
    prefix: str | None = None,
) -> Bus:
    """Return an AXI4-Stream bus.

    Parameters
    ----------
    name : str
        Of the interface; its pins are ``<prefix>_TDATA`` and so on.
    is_source : bool
        Whether the cell drives it.
    data_bytes : int
        Bytes of TDATA.
    channels : mapping of str to int
        Side channels present (``TLAST``, ``TKEEP``, ``TSTRB``, ``TUSER``, ``TID``, ``TDEST``) and
        their widths in bits.
    prefix : str, optional
        Of the pins, with lower-case endings; `name` with upper-case endings where None.
    """
    forward, backward = ("O", "I") if is_source else ("I", "O")
    widths = {"TDATA": 8 * data_bytes, **channels}

    def physical(logical: str) -> str:
        return f"{name}_{logical}" if prefix is None else f"{prefix}_{logical.lower()}"

    signals = [Signal(role, physical(role), forward, widths[role]) for role in sorted(widths)]
    signals += [
        Signal("TREADY", physical("TREADY"), backward),
        Signal("TVALID", physical("TVALID"), forward),
    ]
    parameters = _stream_parameters(data_bytes, channels)
    return Bus(name, "axis", is_source, 8 * data_bytes, parameters, tuple(signals))


def _stream_parameters(data_bytes: int, channels: Mapping[str, int]) -> dict[str, str]:
    """Return the parameters of an AXI4-Stream bus as a hardware handoff has them."""
    return {
        "HAS_TKEEP": str(int("TKEEP" in channels)),
        "HAS_TLAST": str(int("TLAST" in channels)),
        "HAS_TREADY": "1",
        "HAS_TSTRB": str(int("TSTRB" in channels)),
        "TDATA_NUM_BYTES": str(data_bytes),
        "TDEST_WIDTH": str(channels.get("TDEST", 0)),
        "TID_WIDTH": str(channels.get("TID", 0)),
        "TUSER_WIDTH": str(channels.get("TUSER", 0)),
    }


#: PG021, table 2-5: register, offset within the channel, text, lowest bit and width of its field.
_DMA_POINTERS = (
    ("CURDESC", 0x08, "Current_Descriptor_Pointer", 6, 26),
    ("CURDESC_MSB", 0x0C, "Current_Descriptor_Pointer", 0, 32),
    ("TAILDESC", 0x10, "Tail_Descriptor_Pointer", 6, 26),
    ("TAILDESC_MSB", 0x14, "Tail_Descriptor_Pointer", 0, 32),
)


def _dma_registers(length_bits: int) -> tuple[RegisterEntry, ...]:
    """Return both channels' registers; Vivado lists those of scatter-gather in either mode."""
    registers = []
    channels = (("MM2S", 0x00, "SA", "Source"), ("S2MM", 0x30, "DA", "Destination"))
    for channel, base, address, what in channels:
        pointers = (
            *_DMA_POINTERS,
            (address, 0x18, f"{what}_Address", 0, 32),
            (f"{address}_MSB", 0x1C, f"{what}_Address", 0, 32),
            ("LENGTH", 0x28, "Length", 0, length_bits),
        )
        entries = [("DMACR", 0x00, "control", _DMA_CONTROL), ("DMASR", 0x04, "status", _DMA_STATUS)]
        for name, offset, field, low, width in pointers:
            text = field.replace("_", " ").lower()
            entries.append((name, offset, text, (Field(field, low, width, _RW, text),)))
        registers += [
            RegisterEntry(f"{channel}_{name}", base + offset, 32, _RW, f"{channel} {text}", fields)
            for name, offset, text, fields in entries
        ]
    return tuple(registers)


def _axi_dma(name: str, config: Mapping[str, str]) -> Cell:
    data = int(config["c_m_axi_mm2s_data_width"])
    width = int(config["c_m_axis_mm2s_tdata_width"])
    config = {**config, "c_s_axis_s2mm_tdata_width": str(width)}  # as the stream below has it
    channels = {"TLAST": 1, "TKEEP": width // 8}
    # A channel that is not built has no master, no stream and no interrupt.
    built = [name for name in ("mm2s", "s2mm") if config[f"c_include_{name}"] == "1"]
    streams = {
        channel: stream_bus(
            name, is_source=name[0] == "M", data_bytes=width // 8, channels=channels,
            prefix=name.lower(),
        )
        for channel, name in (("mm2s", "M_AXIS_MM2S"), ("s2mm", "S_AXIS_S2MM"))
    }  # fmt: skip
    masters = [(f"M_AXI_{channel.upper()}", f"Data_{channel.upper()}") for channel in built]
    if config["c_include_sg"] == "1":
        masters.insert(0, ("M_AXI_SG", "Data_SG"))
    clocks = ["s_axi_lite_aclk", *(f"{master.lower()}_aclk" for master, _ in masters)]
    registers = _dma_registers(int(config["c_sg_length_width"]))
    return Cell(
        name,
        "xilinx.com:ip:axi_dma:7.1",
        # The width of the incoming stream follows from what is connected: Vivado derives it.
        {key: value for key, value in config.items() if key != "c_s_axis_s2mm_tdata_width"},
        # Vivado lists the generics of the HDL beside the configuration, in capitals.
        {**config, **{key.upper(): value for key, value in config.items()}},
        (
            Bus("S_AXI_LITE", "aximm", False, 32, block="Reg", registers=registers),
            *(Bus(master, "aximm", True, data, space=space) for master, space in masters),
            *(streams[channel] for channel in built),
        ),
        (
            *(Pin(clock, "I", "clk") for clock in clocks),
            Pin("axi_resetn", "I", "rst", active_low=True),
            *(Pin(f"{channel}_introut", "O", "interrupt") for channel in built),
        ),
    )


#: PG099, table 2-3: register, offset, access, whether it has a bit an interrupt.
_INTC_REGISTERS = (
    ("ISR", 0x00, _RW, "Interrupt status"),
    ("IPR", 0x04, _RO, "Interrupt pending"),
    ("IER", 0x08, _RW, "Interrupt enable"),
    ("IAR", 0x0C, _WO, "Interrupt acknowledge"),
    ("SIE", 0x10, _RW, "Set interrupt enables"),
    ("CIE", 0x14, _RW, "Clear interrupt enables"),
)


def _axi_intc(name: str, config: Mapping[str, str]) -> Cell:
    inputs = int(config["C_NUM_INTR_INPUTS"])
    registers = [
        RegisterEntry(register, offset, inputs, access, text, (Field("INT", 0, inputs, access),))
        for register, offset, access, text in _INTC_REGISTERS
    ]
    registers.append(RegisterEntry("IVR", 0x18, 5, _RO, "Vector", (Field("IVN", 0, 5, _RO),)))
    enables = (Field("ME", 0, 1, _RW, "Drive irq"), Field("HIE", 1, 1, _RW, "Take interrupts"))
    registers.append(RegisterEntry("MER", 0x1C, 2, _RW, "Master enable", enables))
    return Cell(
        name,
        "xilinx.com:ip:axi_intc:4.1",
        # The number of inputs follows from what is connected: Vivado derives it by itself.
        {key: value for key, value in config.items() if key != "C_NUM_INTR_INPUTS"},
        config,
        (Bus("S_AXI", "aximm", False, 32, block="Reg", registers=tuple(registers)),),
        (
            Pin("s_axi_aclk", "I", "clk"),
            Pin("s_axi_aresetn", "I", "rst", active_low=True),
            Pin("intr", "I", "interrupt", inputs),
            Pin("irq", "O", "interrupt"),
        ),
    )


#: PG144, table 2-4, with the names of Vivado's handoffs, which list both channels and the
#: interrupt's registers of every GPIO: register, offset, its fields.
_GPIO_REGISTERS = (
    ("GPIO_DATA", 0x00, ("CH1_DATA",)),
    ("GPIO_TRI", 0x04, ("CH1_TRI",)),
    ("GPIO2_DATA", 0x08, ("CH2_DATA",)),
    ("GPIO2_TRI", 0x0C, ("CH2_TRI",)),
    ("GIER", 0x11C, ("INT_EN",)),
    ("IP_ISR", 0x120, ("CH1_INT_S", "CH2_INT_S")),
    ("IP_IER", 0x128, ("CH1_INT_EN", "CH2_INT_EN")),
)


def _axi_gpio(name: str, config: Mapping[str, str]) -> Cell:
    def width(field: str) -> int:
        if field.endswith(("_DATA", "_TRI")):
            return int(config["C_GPIO2_WIDTH" if "2" in field else "C_GPIO_WIDTH"])
        return 1

    registers = tuple(
        RegisterEntry(
            register,
            offset,
            32,
            _RW,
            register.replace("_", " "),
            tuple(
                Field(field, 31 if field == "INT_EN" else bit, width(field), _RW)
                for bit, field in enumerate(fields)
            ),
        )
        for register, offset, fields in _GPIO_REGISTERS
    )
    has_interrupt = config["C_INTERRUPT_PRESENT"] == "1"
    return Cell(
        name,
        "xilinx.com:ip:axi_gpio:2.0",
        config,
        config,
        (Bus("S_AXI", "aximm", False, 32, block="Reg", registers=registers),),
        (
            Pin("s_axi_aclk", "I", "clk"),
            Pin("s_axi_aresetn", "I", "rst", active_low=True),
            *([Pin("ip2intc_irpt", "O", "interrupt")] if has_interrupt else []),
        ),
    )


#: IP name -> how to make the cell, and the configuration it starts from.
CATALOGUE: Mapping[str, tuple[Callable[[str, Mapping[str, str]], Cell], Mapping[str, str]]] = {
    "axi_dma": (
        _axi_dma,
        {
            "c_addr_width": "32",
            "c_include_mm2s": "1",
            "c_include_mm2s_dre": "0",
            "c_include_s2mm": "1",
            "c_include_s2mm_dre": "0",
            "c_include_sg": "0",
            "c_m_axi_mm2s_data_width": "32",
            "c_m_axi_s2mm_data_width": "32",
            "c_m_axis_mm2s_tdata_width": "32",
            "c_micro_dma": "0",
            "c_mm2s_burst_size": "16",
            "c_s2mm_burst_size": "16",
            "c_s_axis_s2mm_tdata_width": "32",
            "c_sg_include_stscntrl_strm": "0",
            "c_sg_length_width": "23",
        },
    ),
    "axi_gpio": (
        _axi_gpio,
        {
            "C_ALL_INPUTS": "0",
            "C_ALL_INPUTS_2": "0",
            "C_ALL_OUTPUTS": "0",
            "C_ALL_OUTPUTS_2": "0",
            "C_DOUT_DEFAULT": "0x00000000",
            "C_GPIO2_WIDTH": "32",
            "C_GPIO_WIDTH": "32",
            "C_INTERRUPT_PRESENT": "0",
            "C_IS_DUAL": "0",
            "C_TRI_DEFAULT": "0xFFFFFFFF",
        },
    ),
    "axi_intc": (
        _axi_intc,
        {"C_HAS_FAST": "0", "C_IRQ_CONNECTION": "1", "C_IRQ_IS_LEVEL": "1"},
    ),
}


def xilinx_cell(name: str, ip: str, parameters: Mapping[str, str], interrupts: int) -> Cell:
    """Return the cell of a Xilinx IP.

    Parameters
    ----------
    name : str
        The instance.
    ip : str
        A key of `CATALOGUE`.
    parameters : mapping of str to str
        Where the configuration differs from the catalogue's.
    interrupts : int
        Sources connected to an interrupt controller.

    Raises
    ------
    HandoffError
        The IP or one of the parameters is not in the catalogue.
    """
    if ip not in CATALOGUE:
        raise HandoffError(
            f"{name}: the IP {ip!r} is not in the catalogue; known are {', '.join(CATALOGUE)}. "
            "Draw the design in Vivado and use its .hwh, or add the IP to catalogue.py"
        )
    make, defaults = CATALOGUE[ip]
    unknown = sorted(set(parameters) - set(defaults))
    if unknown:
        raise HandoffError(
            f"{name}: {ip} has no parameter {unknown[0]!r} here; known are {', '.join(defaults)}"
        )
    config = {**defaults, **parameters}
    if ip == "axi_intc":
        config["C_NUM_INTR_INPUTS"] = str(max(interrupts, 1))
    return make(name, config)
