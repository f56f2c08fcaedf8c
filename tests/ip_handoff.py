"""A hardware handoff with Xilinx IP only, written the way Vivado writes one."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import quoteattr

AXI_DMA = {
    "C_INCLUDE_SG": 0,
    "C_SG_LENGTH_WIDTH": 20,
    "C_MICRO_DMA": 0,
    "C_INCLUDE_MM2S": 1,
    "C_M_AXI_MM2S_DATA_WIDTH": 32,
    "C_M_AXIS_MM2S_TDATA_WIDTH": 32,
    "C_INCLUDE_MM2S_DRE": 0,
    "C_MM2S_BURST_SIZE": 16,
    "C_INCLUDE_S2MM": 1,
    "C_M_AXI_S2MM_DATA_WIDTH": 32,
    "C_S_AXIS_S2MM_TDATA_WIDTH": 32,
    "C_INCLUDE_S2MM_DRE": 0,
    "C_S2MM_BURST_SIZE": 16,
}
_SLAVE = {"axi_dma": "S_AXI_LITE", "axi_intc": "s_axi", "scale_stream": "s_axi_control"}
_VERSIONS = {
    "axi_iic": "2.1",
    "audio_codec_ctrl": "1.0",
    "axi_dma": "7.1",
    "axi_intc": "4.1",
    "axi_bram_ctrl": "4.1",
    "axis_switch": "1.1",
    "axi_vdma": "6.3",
}
_IRQ = {
    "axi_dma": ("mm2s_introut", "s2mm_introut"),
    "axi_gpio": ("ip2intc_irpt",),
    "axi_timer": ("interrupt",),
    "axi_fifo_mm_s": ("interrupt",),
    "axi_iic": ("iic2intc_irpt",),
    "axi_quad_spi": ("ip2intc_irpt",),
    "axi_uartlite": ("interrupt",),
    "axi_vdma": ("mm2s_introut", "s2mm_introut"),
}


#: Direction, net, width and, where it is not "undef", SIGIS.
Pin = tuple[str, str, int] | tuple[str, str, int, str]


@dataclass
class Ip:
    kind: str
    name: str
    base: int
    parameters: dict[str, object] = field(default_factory=dict)
    nbytes: int = 0x10000
    #: Bytes of streams that are not those of an AXI DMA.
    streams: dict[str, int] = field(default_factory=dict)
    library: str = "ip"
    #: Further pins, by name.
    pins: dict[str, Pin] = field(default_factory=dict)


def _tag(name: str, attributes: dict[str, object], *children: str) -> str:
    text = " ".join(f"{k}={quoteattr(str(v))}" for k, v in attributes.items())
    return f"<{name} {text}>{''.join(children)}</{name}>"


def _port(
    name: str, direction: str, net: str, width: int = 1, kind: str = "undef", to: str = ""
) -> str:
    """One pin; ``to`` names the other end of its net as "instance/pin"."""
    bits = {"LEFT": width - 1, "RIGHT": 0} if width > 1 else {}
    instance, _, pin = to.partition("/")
    end = (
        _tag("CONNECTIONS", {}, _tag("CONNECTION", {"INSTANCE": instance, "PORT": pin}))
        if to
        else ""
    )
    return _tag(
        "PORT", {"DIR": direction, "NAME": name, "SIGIS": kind, "SIGNAME": net, **bits}, end
    )


def _stream(name: str, source: bool, net: str, nbytes: int) -> str:
    return _tag(
        "BUSINTERFACE",
        {
            "BUSNAME": net,
            "NAME": name,
            "TYPE": "INITIATOR" if source else "TARGET",
            "VLNV": "xilinx.com:interface:axis:1.0",
        },
        _tag("PARAMETER", {"NAME": "TDATA_NUM_BYTES", "VALUE": nbytes}),
        "<PORTMAPS/>",
    )


def _module(
    ip: Ip, irqs: dict[str, tuple[str, str]], streams: dict[str, str], others: list[str]
) -> str:
    version = _VERSIONS.get(ip.kind, "2.0")
    ports = [_port("s_axi_aclk", "I", "ps_FCLK_CLK0", kind="clk")]
    for pin, (net, to) in irqs.items():
        ports.append(_port(pin, "O", net, kind="INTERRUPT", to=to))
    buses = [
        _tag(
            "BUSINTERFACE",
            {
                "BUSNAME": f"periph_{ip.name}",
                "NAME": _SLAVE.get(ip.kind, "S_AXI"),
                "TYPE": "SLAVE",
                "VLNV": "xilinx.com:interface:aximm:1.0",
            },
            "<PORTMAPS/>",
        )
    ]
    for name, net in streams.items():
        source = name.startswith(("M", "scaled", "out", "AXI_STR_TX"))
        key = "C_M_AXIS_MM2S_TDATA_WIDTH" if source else "C_S_AXIS_S2MM_TDATA_WIDTH"
        nbytes = ip.streams.get(name) or int(str(ip.parameters[key])) // 8
        buses.append(_stream(name, source, net, nbytes))
    parameters = ip.parameters | {
        "C_BASEADDR": hex(ip.base),
        "C_HIGHADDR": hex(ip.base + ip.nbytes - 1),
    }
    listed = {**parameters, **{k.lower(): v for k, v in ip.parameters.items()}}
    return _tag(
        "MODULE",
        {
            "FULLNAME": f"/{ip.name}",
            "INSTANCE": ip.name,
            "IPTYPE": "PERIPHERAL",
            "IS_ENABLE": 1,
            "MODTYPE": ip.kind,
            "VLNV": f"xilinx.com:{ip.library}:{ip.kind}:{version}",
        },
        "<DOCUMENTS/>",
        "<ADDRESSBLOCKS/>",
        _tag(
            "PARAMETERS",
            {},
            *(_tag("PARAMETER", {"NAME": k, "VALUE": v}) for k, v in listed.items()),
        ),
        _tag("PORTS", {}, *ports, *others),
        _tag("BUSINTERFACES", {}, *buses),
    )


def _memrange(ip: Ip) -> str:
    return _tag(
        "MEMRANGE",
        {
            "ADDRESSBLOCK": "Mem0" if ip.kind == "axi_bram_ctrl" else "Reg",
            "BASENAME": "C_BASEADDR",
            "BASEVALUE": f"0x{ip.base:08X}",
            "HIGHNAME": "C_HIGHADDR",
            "HIGHVALUE": f"0x{ip.base + ip.nbytes - 1:08X}",
            "INSTANCE": ip.name,
            "IS_DATA": "TRUE",
            "IS_INSTRUCTION": "TRUE",
            "MASTERBUSINTERFACE": "M_AXI_GP0",
            "MEMTYPE": "MEMORY" if ip.kind == "axi_bram_ctrl" else "REGISTER",
            "SLAVEBUSINTERFACE": _SLAVE.get(ip.kind, "S_AXI"),
        },
    )


def write_design(
    folder: Path,
    name: str,
    ips: list[Ip],
    streams: dict[str, str] | None = None,
    interrupts: list[str] | None = None,
    intc: bool = True,
    ps_pins: dict[str, Pin] | None = None,
) -> Path:
    """Write ``name.hwh`` and ``name.bit`` and return the path of the ``.bit``.

    ``streams`` maps "dma.M_AXIS_MM2S" to "dma.S_AXIS_S2MM"; ``interrupts`` lists "ip/pin" in the
    order of the concat block's inputs, in front of an interrupt controller or of IRQ_F2P itself.
    """
    pins = interrupts or []
    nets = {pin: pin.replace("/", "_") for pin in pins}
    ends: dict[str, str] = {}
    for source, sink in (streams or {}).items():
        ends[source] = ends[sink] = source.replace(".", "_")
    modules = []
    ranged = list(ips)
    controller = Ip("axi_intc", "axi_intc_0", 0x41800000)
    if pins and intc:
        controller.parameters = {"C_NUM_INTR_INPUTS": len(pins), "C_KIND_OF_INTR": "0xfffffff0"}
        ranged.append(controller)
    for ip in ips:
        irqs = {
            pin: (nets[full], f"xlconcat_0/In{pins.index(full)}")
            for pin in _IRQ.get(ip.kind, ())
            if (full := f"{ip.name}/{pin}") in nets
        }
        owned = (end.partition(".") for end in ends)
        buses = {bus: ends[f"{name}.{bus}"] for name, _, bus in owned if name == ip.name}
        others = [_port(name, *pin) for name, pin in ip.pins.items()]
        modules.append(_module(ip, irqs, buses, others))
    if pins:
        behind = "axi_intc_0/intr" if intc else "ps/IRQ_F2P"
        inputs = [_port(f"In{i}", "I", nets[pin], to=pin) for i, pin in enumerate(pins)]
        modules.append(
            _tag(
                "MODULE",
                {
                    "FULLNAME": "/xlconcat_0",
                    "INSTANCE": "xlconcat_0",
                    "IPTYPE": "PERIPHERAL",
                    "IS_ENABLE": 1,
                    "MODTYPE": "xlconcat",
                    "VLNV": "xilinx.com:ip:xlconcat:2.1",
                },
                "<DOCUMENTS/>",
                _tag(
                    "PARAMETERS", {}, _tag("PARAMETER", {"NAME": "NUM_PORTS", "VALUE": len(pins)})
                ),
                _tag("PORTS", {}, *inputs, _port("dout", "O", "concat_dout", len(pins), to=behind)),
                "<BUSINTERFACES/>",
            )
        )
        if intc:
            modules.append(
                _module(
                    controller,
                    {},
                    {},
                    [
                        _port(
                            "intr", "I", "concat_dout", len(pins), "INTERRUPT", "xlconcat_0/dout"
                        ),
                        _port("irq", "O", "intc_irq", kind="INTERRUPT", to="ps/IRQ_F2P"),
                    ],
                )
            )
    driver = (
        ("intc_irq", "axi_intc_0/irq", 1) if intc else ("concat_dout", "xlconcat_0/dout", len(pins))
    )
    others = [_port(name, *pin) for name, pin in (ps_pins or {}).items()]
    modules.append(_ps(ranged, driver if pins else None, others))
    text = _tag(
        "EDKSYSTEM",
        {"EDWVERSION": "1.2", "TIMESTAMP": "Mon Jan  3 10:00:00 2022", "VIVADOVERSION": "2022.1"},
        _tag(
            "SYSTEMINFO",
            {
                "ARCH": "zynq",
                "DEVICE": "7z020",
                "NAME": name,
                "PACKAGE": "clg400",
                "SPEEDGRADE": "-1",
            },
        ),
        "<EXTERNALPORTS/>",
        "<EXTERNALINTERFACES/>",
        _tag("MODULES", {}, *modules),
    )
    (folder / f"{name}.hwh").write_text('<?xml version="1.0" encoding="UTF-8"?>\n' + text)
    bit = folder / f"{name}.bit"
    bit.write_bytes(_bit_header(name))
    return bit


def _ps(ips: list[Ip], irq: tuple[str, str, int] | None, others: list[str]) -> str:
    parameters: dict[str, object] = {"PCW_USE_S_AXI_HP0": 1}
    for i in range(4):
        parameters |= {
            f"PCW_FPGA_FCLK{i}_ENABLE": int(i == 0),
            f"PCW_FCLK_CLK{i}_BUF": "TRUE" if i == 0 else "FALSE",
            f"PCW_EN_CLK{i}_PORT": int(i == 0),
            f"PCW_FCLK{i}_PERIPHERAL_DIVISOR0": 10,
            f"PCW_FCLK{i}_PERIPHERAL_DIVISOR1": 1,
        }
    ports = [_port("FCLK_CLK0", "O", "ps_FCLK_CLK0", kind="clk")]
    if irq is not None:
        ports.append(_port("IRQ_F2P", "I", irq[0], irq[2], "INTERRUPT", irq[1]))
    return _tag(
        "MODULE",
        {
            "FULLNAME": "/ps",
            "INSTANCE": "ps",
            "IPTYPE": "PERIPHERAL",
            "IS_ENABLE": 1,
            "IS_PL": "FALSE",
            "MODTYPE": "processing_system7",
            "VLNV": "xilinx.com:ip:processing_system7:5.5",
        },
        "<DOCUMENTS/>",
        "<ADDRESSBLOCKS/>",
        _tag(
            "PARAMETERS",
            {},
            *(_tag("PARAMETER", {"NAME": k, "VALUE": v}) for k, v in parameters.items()),
        ),
        _tag("PORTS", {}, *ports, *others),
        _tag(
            "BUSINTERFACES",
            {},
            _tag(
                "BUSINTERFACE",
                {
                    "BUSNAME": "ps_M_AXI_GP0",
                    "NAME": "M_AXI_GP0",
                    "TYPE": "MASTER",
                    "VLNV": "xilinx.com:interface:aximm:1.0",
                },
                "<PORTMAPS/>",
            ),
        ),
        _tag("MEMORYMAP", {}, *(_memrange(ip) for ip in ips if ip.base)),
    )


def _bit_header(name: str) -> bytes:
    """A .bit header without configuration frames (field layout as write_bitstream makes it)."""
    fields = [
        (b"a", f"{name};UserID=0XFFFFFFFF;Version=2022.1\0"),
        (b"b", "7z020clg400\0"),
        (b"c", "2022/01/03\0"),
        (b"d", "10:00:00\0"),
    ]
    out = bytes.fromhex("0009 0ff0 0ff0 0ff0 0ff0 00 0001")
    for key, text in fields:
        out += key + struct.pack(">H", len(text)) + text.encode()
    return out + b"e" + struct.pack(">I", 0)
