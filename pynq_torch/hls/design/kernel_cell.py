"""An HLS kernel's interface as a cell of the block design, named as Vivado names it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pynq_torch.errors import InterfaceError
from pynq_torch.hls.interface import Argument, Interface, Register
from pynq_torch.hls.registers import is_renamed

from .catalogue import stream_bus
from .model import Bus, Cell, Field, Pin, RegisterEntry

__all__ = ["kernel_cell", "register_entries", "stream_ports"]

_RW, _RO, _WO = "read-write", "read-only", "write-only"
_RESERVED = "Reserved, 0 on read"


def _control(chain: bool) -> dict[str, tuple[str, str, tuple[Field, ...]]]:
    """Return the control registers by their header name: handoff name, text, fields."""
    continues = (
        (Field("AP_CONTINUE", 4, 1, _RW, "Let the next run end"), Field("RESERVED_1", 5, 2, _RO))
        if chain
        else (Field("RESERVED_1", 4, 3, _RO, _RESERVED),)
    )
    control = (
        Field("AP_START", 0, 1, _RW, "Start; clears itself when the kernel is ready for more"),
        Field("AP_DONE", 1, 1, _RO, "Done; cleared by reading" if not chain else "Done"),
        Field("AP_IDLE", 2, 1, _RO, "Idle"),
        Field("AP_READY", 3, 1, _RO, "Ready for the next start; cleared by reading"),
        *continues,
        Field("AUTO_RESTART", 7, 1, _RW, "Start again when ready"),
        Field("RESERVED_2", 8, 1, _RO, _RESERVED),
        Field("INTERRUPT", 9, 1, _RO, "The interrupt output"),
        Field("RESERVED_3", 10, 22, _RO, _RESERVED),
    )
    enable = (
        Field("Enable", 0, 1, _RW, "Drive the interrupt output"),
        Field("RESERVED", 1, 31, _RO, _RESERVED),
    )

    def channels(suffix: str, access: str) -> tuple[Field, ...]:
        return (
            Field(f"CHAN0_INT_{suffix}", 0, 1, access, "Channel 0: done"),
            Field(f"CHAN1_INT_{suffix}", 1, 1, access, "Channel 1: ready"),
            Field("RESERVED_0", 2, 30, _RO, _RESERVED),
        )

    return {
        "AP_CTRL": ("CTRL", "Control signals", control),
        "GIE": ("GIER", "Global interrupt enable", enable),
        "IER": ("IP_IER", "Interrupt enable", channels("EN", _RW)),
        "ISR": ("IP_ISR", "Interrupt status; writing 1 toggles", channels("ST", _RO)),
    }


def register_entries(
    registers: Sequence[Register], *, chain: bool = False
) -> Iterator[RegisterEntry]:
    """Yield a bundle's registers under the names of the hardware handoff.

    A value of more than 32 bits becomes ``x_1``, ``x_2``; a memory ``Memory_x``.
    """
    control = _control(chain)
    for register in registers:
        if register.role == "control":
            name, text, fields = control.get(
                register.name, (register.name, register.name.replace("_", " ").lower(), ())
            )
            yield RegisterEntry(name, register.offset, 32, _RW, text, fields)
        elif register.role == "memory":
            yield RegisterEntry(
                f"Memory_{register.name}", register.offset, register.nbytes, _RW,
                f"Memory {register.name}",
            )  # fmt: skip
        elif register.role == "valid":
            value = register.name.removesuffix("_ctrl")
            fields = (
                Field(f"{value}_ap_vld", 0, 1, _RO, f"{value} is valid; cleared by reading"),
                Field("RESERVED", 1, 31, _RO, _RESERVED),
            )
            yield RegisterEntry(register.name, register.offset, 32, _RO, f"Valid {value}", fields)
        else:
            yield from _data(register)


def _data(register: Register) -> Iterator[RegisterEntry]:
    access = _RO if register.direction == "out" else _WO
    words = -(-register.width // 32)
    for word in range(words):
        bits = min(32, register.width - 32 * word)
        name = register.name if words == 1 else f"{register.name}_{word + 1}"
        first, last = 32 * word, 32 * word + bits - 1
        fields: tuple[Field, ...] = (
            Field(register.name, 0, bits, access, f"Bit {last} to {first} of {register.name}"),
        )
        if bits < 32:
            fields += (Field("RESERVED", bits, 32 - bits, _RO, _RESERVED),)
        yield RegisterEntry(
            name, register.offset + 4 * word, 32, access, f"Data of {register.name}", fields
        )


def stream_ports(argument: Argument, tool: str) -> list[str]:
    """Return the AXI4-Stream ports of an argument; an array of streams has several."""
    if argument.axis is None:
        return []
    port = argument.name + ("_r" if is_renamed(argument.name, tool) else "")
    count = argument.axis.count
    return [port] if count == 1 else [f"{port}_{i}" for i in range(count)]


def _stream_buses(argument: Argument, tool: str) -> Iterator[Bus]:
    axis = argument.axis
    if axis is None:
        return
    for name in stream_ports(argument, tool):
        yield stream_bus(
            name,
            is_source=argument.direction == "out",
            data_bytes=axis.data_bytes,
            channels=axis.channels,
        )


def kernel_cell(name: str, interface: Interface) -> Cell:
    """Return the cell of one compute unit.

    Parameters
    ----------
    name : str
        The instance (``gemm_0``).
    interface : Interface
        Of the kernel.

    Raises
    ------
    InterfaceError
        The kernel cannot be started by a program: its block protocol is on wires.
    """
    if interface.control_bundle is None and interface.control != "ap_ctrl_none":
        raise InterfaceError(
            f"{interface.top} has {interface.control} on wires, which nothing drives. Put its "
            "control into a bundle: #pragma HLS INTERFACE s_axilite port=return",
            cu=name,
        )
    parameters: dict[str, str] = {}
    buses = _register_buses(interface, parameters)
    for bundle, axi in interface.axi_bundles.items():
        generic = f"C_M_AXI_{bundle.upper()}"
        parameters[f"{generic}_ADDR_WIDTH"] = str(axi.address_bits)
        parameters[f"{generic}_DATA_WIDTH"] = str(axi.data_bits)
        port = f"m_axi_{bundle}"
        buses.append(Bus(port, "aximm", True, axi.data_bits, space=f"Data_{port}"))
    for argument in interface.arguments:
        buses += _stream_buses(argument, interface.tool)
    pins = [Pin("ap_clk", "I", "clk"), Pin("ap_rst_n", "I", "rst", active_low=True)]
    if interface.control_bundle is not None:
        pins.append(Pin("interrupt", "O", "interrupt"))
    vlnv = f"xilinx.com:hls:{interface.top}:1.0"
    return Cell(name, vlnv, {}, parameters, tuple(buses), tuple(pins))


def _register_buses(interface: Interface, parameters: dict[str, str]) -> list[Bus]:
    """Return the AXI4-Lite buses of a kernel, and add their widths to its parameters."""
    buses: list[Bus] = []
    chain = interface.control == "ap_ctrl_chain"
    for bundle, registers in interface.bundles.items():
        generic = f"C_S_AXI_{bundle.upper()}"
        end = max((register.offset + register.nbytes for register in registers), default=16)
        parameters[f"{generic}_ADDR_WIDTH"] = str(max(4, (end - 1).bit_length()))
        parameters[f"{generic}_DATA_WIDTH"] = "32"
        buses.append(
            Bus(
                f"s_axi_{bundle}", "aximm", False, 32, block="Reg",
                registers=tuple(register_entries(registers, chain=chain)),
                base_parameter=f"{generic}_BASEADDR", high_parameter=f"{generic}_HIGHADDR",
            )
        )  # fmt: skip
    return buses
