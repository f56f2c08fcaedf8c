"""What an HLS kernel looks like from outside: its arguments, registers and AXI ports.

These are plain values. :mod:`pynq_torch.hls.parse` reads the C++ into arguments,
:mod:`pynq_torch.hls.registers` gives the arguments their offsets.
"""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["Argument", "AxiBundle", "Axis", "Interface", "Partition", "Register"]


@dataclass(frozen=True)
class Register:
    """One register of an AXI4-Lite slave.

    Parameters
    ----------
    name : str
        Its name in the generated driver header (``in1``, ``out_r``, ``x_ctrl``, ``AP_CTRL``).
    offset : int
        Byte offset within the slave.
    width : int
        Bits that mean something; of one element, for a memory window.
    direction : {"in", "out", "inout"}
        As the kernel sees it: ``"in"`` is written by the program.
    role : {"control", "data", "valid", "memory"}
        ``valid`` is the ap_vld word of an output.
    nbytes : int
        Span in the address map, in bytes.
    argument : str or None
        The C argument behind it (``"return"`` for the return value).
    """

    name: str
    offset: int
    width: int
    direction: str
    role: str
    nbytes: int = 4
    argument: str | None = None


@dataclass(frozen=True)
class Axis:
    """The AXI4-Stream port of an argument.

    Parameters
    ----------
    data_bytes : int
        Bytes of TDATA.
    has_last, has_keep, has_strb : bool
        Which of the single-purpose side channels exist.
    user_bits, id_bits, dest_bits : int
        Widths of TUSER, TID and TDEST; 0 where the channel is absent.
    count : int
        Ports, for an array of streams.
    """

    data_bytes: int
    has_last: bool = False
    has_keep: bool = False
    has_strb: bool = False
    user_bits: int = 0
    id_bits: int = 0
    dest_bits: int = 0
    count: int = 1

    @property
    def channels(self) -> dict[str, int]:
        """The side channels that exist (``TLAST``, ``TUSER`` ...), with their widths in bits."""
        widths = {
            "TLAST": int(self.has_last),
            "TKEEP": self.data_bytes if self.has_keep else 0,
            "TSTRB": self.data_bytes if self.has_strb else 0,
            "TUSER": self.user_bits,
            "TID": self.id_bits,
            "TDEST": self.dest_bits,
        }
        return {name: bits for name, bits in widths.items() if bits}


@dataclass(frozen=True)
class Partition:
    """An ARRAY_PARTITION that cuts an argument into pieces (UG1399, "pragma HLS array_partition").

    Parameters
    ----------
    kind : {"complete", "cyclic", "block"}
        Each element is a piece, or elements go to the pieces in turn, or in runs.
    pieces : int
        How many there are.
    where : str
        File and line.
    """

    kind: str
    pieces: int
    where: str

    def place(self, index: int, length: int) -> tuple[int, int]:
        """Return the piece that has an element of `length`, and which of its elements that is."""
        if self.kind == "cyclic":
            return index % self.pieces, index // self.pieces
        return divmod(index, -(-length // self.pieces))


@dataclass(frozen=True)
class Argument:
    """One argument of the top function, or its return value.

    Parameters
    ----------
    name : str
        As in the source; ``"return"`` for the return value.
    index : int
        Position, from 0; -1 for the return value.
    ctype : str
        The canonical C++ type.
    kind : str
        ``"scalar"`` (s_axilite by value), ``"scalar_ptr"`` (s_axilite pointer or reference),
        ``"memory"`` (s_axilite array), ``"m_axi"``, ``"burst_maxi"`` (``hls::burst_maxi``),
        ``"axis"`` (stream), ``"axis_array"`` (array or pointer behind an axis port) or
        ``"none"`` (a wire: no register).
    direction : {"in", "out", "inout"}
        What the function does with it.
    bundle : str or None
        The s_axilite bundle of its registers; of its address register, for m_axi.
    m_axi_bundle : str or None
        The AXI4 master it goes through.
    width : int
        Bits of one element; of TDATA for an axis port.
    length : int or None
        Elements of an array (product of its dimensions); ``depth=`` of an m_axi pointer.
    offset : int or None
        First data register; the address register of m_axi, the window of a memory.
    offset_out : int or None
        The ``_o`` register of an inout.
    offset_valid : int or None
        The ap_vld word of an output.
    axis : Axis or None
        The stream port.
    partition : Partition or None
        How it is cut into several ports.
    """

    name: str
    index: int
    ctype: str
    kind: str
    direction: str
    bundle: str | None = None
    m_axi_bundle: str | None = None
    width: int = 0
    length: int | None = None
    offset: int | None = None
    offset_out: int | None = None
    offset_valid: int | None = None
    axis: Axis | None = None
    partition: Partition | None = None


@dataclass(frozen=True)
class AxiBundle:
    """One AXI4 master (``m_axi_<name>``).

    Parameters
    ----------
    name : str
        The bundle, without the ``m_axi_`` prefix.
    data_bits : int
        Width of the widest element that goes through it, or what ``max_widen_bitwidth`` allows, in
        bits, a power of two of at least 32.
    address_bits : int
        32 or 64.
    arguments : tuple of str
        The C arguments that share it.
    """

    name: str
    data_bits: int
    address_bits: int
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Interface:
    """Everything a program sees of a kernel.

    Parameters
    ----------
    top : str
        The top function, without namespaces.
    source : pathlib.Path
        The file it is defined in.
    tool : {"vitis", "vivado"}
        Whose rules gave the offsets: Vitis HLS (2020.2 and later) or Vivado HLS.
    control : {"ap_ctrl_hs", "ap_ctrl_chain", "ap_ctrl_none"}
        The block protocol.
    control_bundle : str or None
        The s_axilite bundle with AP_CTRL; None where the block signals are wires.
    arguments : tuple of Argument
        In C order.
    returns : Argument or None
        The return value, None for void.
    bundles : dict of str to tuple of Register
        The AXI4-Lite slaves (``s_axi_<name>``), registers in order of offset.
    axi_bundles : dict of str to AxiBundle
        The AXI4 masters.
    qualified : str
        The top function as C++ names it, with namespaces and template arguments.
    notes : tuple of str
        What was assumed, and what could not be known.
    warnings : tuple of str
        What a directive or the source says without effect, with file and line.
    """

    top: str
    source: Path
    tool: str
    control: str
    control_bundle: str | None
    arguments: tuple[Argument, ...]
    returns: Argument | None
    bundles: dict[str, tuple[Register, ...]]
    axi_bundles: dict[str, AxiBundle] = field(default_factory=dict)
    qualified: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def argument(self, name: str) -> Argument:
        """Return the argument called `name` in the source.

        Raises
        ------
        KeyError
            There is no such argument; the message lists the existing ones.
        """
        for argument in self.arguments:
            if argument.name == name:
                return argument
        known = ", ".join(argument.name for argument in self.arguments)
        raise KeyError(f"{self.top} has no argument {name!r}; it has: {known or 'none'}")

    def as_json(self) -> dict[str, Any]:
        """Return the interface as plain dicts and lists, ready for :func:`json.dumps`."""
        data = asdict(self)
        data["source"] = str(self.source)
        data["m_axi"] = data.pop("axi_bundles")
        data["axis"] = {a["name"]: a["axis"] for a in data["arguments"] if a["axis"] is not None}
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Interface:
        """Rebuild an interface from what :meth:`as_json` returned."""
        return _schema().validate_python({**data, "axi_bundles": data["m_axi"]})


@functools.cache
def _schema() -> TypeAdapter[Interface]:
    from pydantic import TypeAdapter  # slow to load

    return TypeAdapter(Interface)
