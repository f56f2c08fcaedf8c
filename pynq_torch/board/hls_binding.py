"""Where a kernel's arguments are in the registers and streams that the handoff lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from pynq_torch.errors import InterfaceError
from pynq_torch.hls.interface import Argument, Interface
from pynq_torch.paths import KERNELS

from .engine import NO_OFFSET
from .handoff import IpInstance
from .handoff_registers import HandoffValue
from .hls_match import (
    Derived,
    Element,
    Number,
    SlaveMatch,
    bus_differences,
    element_of,
    named,
    number_of,
)
from .hls_pieces import Move, gathers, moves_of
from .hls_wires import WiredInput, input_port, is_input
from .streams import Endpoint

_CONTROL_NAMES = ("AP_CTRL", "GIE", "IER", "ISR")
_LARGEST_SLAVE = 16 << 20
_ARRAYS = ("m_axi", "memory", "axis_array")
_NOWHERE = (NO_OFFSET,) * 4
_Listed = TypeVar("_Listed")


class Binding:
    """The C++ interface of a kernel matched with one instance of it in a design.

    The handoff is the hardware: an offset it lists wins over the one derived from the source.
    """

    def __init__(self, ip: IpInstance, interface: Interface) -> None:
        self.ip = ip
        self.interface = interface
        #: First byte of each AXI-Lite slave in the engine's register space, by interface name.
        self.page: dict[str, int] = {}
        self.nbytes = 0
        for slave in ip.slaves:
            self.page[slave.interface] = self.nbytes
            self.nbytes += (min(slave.nbytes, _LARGEST_SLAVE) + 4095) & ~4095
        #: The slave with AP_CTRL, and the names of its control registers by their offset.
        self.control_slave = self._slave_of(interface.control_bundle)
        self.control: dict[int, str] = {}
        if self.control_slave is None:
            self._check_control()
        else:
            derived = {
                r.name: r.offset
                for r in interface.bundles.get(interface.control_bundle or "", ())
                if r.role == "control"
            }
            usual = zip(_CONTROL_NAMES, (0, 4, 8, 12), strict=True)
            self.control = {derived.get(name, offset): name for name, offset in usual}
        #: Stream ports in the order of the engine's rings, with their arguments.
        self.ports = self._bind_streams()
        self._matches = self._match()
        #: Where the ap_vld words are.
        self.valid: set[int] = set()
        #: Where the addresses are that the kernel writes through, and their bytes.
        self.outputs: list[tuple[int, int]] = []
        #: Inputs that are wires; their values are behind the registers of all slaves.
        self.wired: list[WiredInput] = []
        #: What puts arrays in pieces together, also there.
        self.moves: list[Move] = []
        #: For each argument, and last the return value: (data, out, valid, address bytes).
        self.offsets = [self._offsets_of(argument) for argument in interface.arguments]
        returned = interface.returns
        self.offsets.append(_NOWHERE if returned is None else self._offsets_of(returned))

    def check(self, handoff: Path) -> list[str]:
        """Refuse a source that is not what the design was built from.

        Return the differences that need not matter, a sentence each.

        Raises
        ------
        InterfaceError
            The kernel would take values from other registers than a program writes.
        """
        problems, remarks = [], []
        for slave, match in self._matches.items():
            problems += match.problems
            remarks += match.remarks
            if match.is_unlisted and any(self.ip.registers.values()):
                remarks.append(f"the handoff lists no register of an argument on {slave}")
        self._check_pieces(handoff)
        for argument in self.interface.arguments:
            if is_input(argument) and input_port(self.ip.ports, argument) is None:
                remarks.append(
                    f"{argument.ctype} {argument.name} is a wire, and the handoff has no port of "
                    "that name: it reads 0"
                )
        for wrong, text in bus_differences(self.interface, self.ip.buses):
            (problems if wrong else remarks).append(text)
        if problems:
            listed = "".join(f"\n  - {problem}" for problem in dict.fromkeys(problems))
            raise InterfaceError(
                f"{self.ip.name}: {self.interface.source} is not the source that {handoff} was "
                f"built from, and results would be wrong:{listed}\n{self._remedy()}",
                self.ip.name,
            )
        return remarks

    def _check_pieces(self, handoff: Path) -> None:
        """Refuse arrays that HLS gives ports which the C++ cannot be handed as one array."""
        for argument in self.interface.arguments:
            partition = argument.partition
            if partition is not None and argument.kind in ("memory", "none"):
                wrong = not gathers(argument)
            else:  # some releases leave what is behind an AXI port whole
                wrong = argument.kind in _ARRAYS and self._has_pieces(argument.name)
            if wrong:
                where = partition.where if partition is not None else handoff.name
                raise InterfaceError(
                    f"{self.ip.name}: {where}: ARRAY_PARTITION cuts argument "
                    f"{argument.ctype} {argument.name} into ports of its own ({argument.name}_0, "
                    f"{argument.name}_1, ...), and compiled C++ takes one array. Copy it into a "
                    "local array and partition that, or use board rtl with the RTL that HLS "
                    "exported.",
                    self.ip.name,
                )
            if argument.kind == "none" and argument.length is not None:
                raise InterfaceError(
                    f"{self.ip.name}: {self.interface.source}: argument {argument.ctype} "
                    f"{argument.name} has no s_axilite, m_axi or axis interface, and the memory "
                    "ports that HLS makes of it are not modelled. Give it one of these "
                    "interfaces.",
                    self.ip.name,
                )

    def _has_pieces(self, name: str) -> bool:
        """Tell whether the handoff has an array in pieces, which are no arguments of their own."""
        if any(argument.name == f"{name}_0" for argument in self.interface.arguments):
            return False
        listed = [value.name for values in self.ip.values.values() for value in values]
        pieces = re.compile(rf"{re.escape(name)}(_r|_V)?_0(_.*)?")
        return any(pieces.fullmatch(item) for item in (*listed, *self.ip.stream_ports))

    def _remedy(self) -> str:
        again = (
            "Build the overlay again ('python -m pynq_torch overlay build NAME'), or restore the "
            "source."
        )
        if not self.interface.source.is_relative_to(KERNELS):
            return again
        return (
            f"{again} Where the design is another one with a kernel of this name, name the folder "
            "of its own sources: PYNQ_TORCH_KERNELS=FOLDER."
        )

    def elements(self) -> dict[str, Element]:
        """Return what is known of the elements behind pointers, by the handoff's name."""
        found = {}
        for match in self._matches.values():
            for one, value in match.pairs():
                element = element_of(one.argument) if one.argument is not None else None
                if element is not None:
                    found[value.name] = element
        return found

    def numbers(self) -> dict[str, Number]:
        """Return what is known of the numbers in registers, by the handoff's name."""
        found = {}
        for match in self._matches.values():
            for one, value in match.pairs():
                if one.argument is not None and one.register.role == "data":
                    number = number_of(one.argument)
                    if number is not None:
                        found[value.name] = number
        return found

    def _match(self) -> dict[str, SlaveMatch]:
        """Lay the registers of the source over those of each slave."""
        arguments = {a.name: a for a in self.interface.arguments}
        derived: dict[str, list[Derived]] = {slave: [] for slave in self.page}
        for bundle, registers in self.interface.bundles.items():
            slave = self._slave_of(bundle)
            if slave is not None:
                derived[slave] += [
                    Derived(bundle, r, arguments.get(r.argument or "")) for r in registers
                ]
        return {s: SlaveMatch(found, self._values_of(s)) for s, found in derived.items()}

    def _values_of(self, slave: str) -> tuple[HandoffValue, ...]:
        return _of_slave(self.ip.values, slave) or ()

    def _slave_of(self, bundle: str | None) -> str | None:
        """Return the hwh's interface name for a bundle: ``s_axi_<bundle>``."""
        if bundle is None:
            return None
        found = named(self.page, f"s_axi_{bundle}", f"s_axi_{bundle}_r", bundle)
        return found or (next(iter(self.page)) if len(self.page) == 1 else None)

    def _check_control(self) -> None:
        """Refuse sources without the bitstream's control register: they would never start."""
        for slave, registers in self.ip.registers.items():
            if not {"CTRL", "AP_CTRL"} & set(registers):
                continue
            raise InterfaceError(
                f"{self.ip.name}: the handoff lists a control register on {slave or 'its slave'}, "
                f"and {self.interface.source} has no s_axilite interface for return. Give the "
                "directives file (directives.tcl, hls_config.cfg) that the bitstream was built "
                "with beside the source, or write the pragmas into it.",
                self.ip.name,
            )

    def _bind_streams(self) -> list[tuple[Endpoint, Argument]]:
        ports: list[tuple[Endpoint, Argument]] = []
        taken: set[str] = set()
        for argument in self.interface.arguments:
            if argument.axis is None:
                continue
            count = argument.axis.count
            for index in range(count):
                stem = argument.name if count == 1 else f"{argument.name}_{index}"
                name = self._stream_port(stem, argument.direction, taken)
                taken.add(name)
                ports.append((Endpoint(self.ip.name, name), argument))
        return ports

    def _stream_port(self, stem: str, direction: str, taken: set[str]) -> str:
        declared = self.ip.stream_ports
        free = [name for name in declared if name not in taken]
        suffixes = ("", "_r", "_V", "_V_V", "_r_V", "_V_data_V")
        found = named(free, *(f"{stem}{suffix}" for suffix in suffixes))
        if found is not None:
            return found
        wanted = [n for n in free if declared[n][0] == (direction == "out")]
        if not wanted:
            raise InterfaceError(
                f"{self.ip.name}: the source has a stream {stem} ({direction}), the handoff has no "
                f"such port left; its stream ports are {', '.join(declared) or 'none'}. Are these "
                "the sources the bitstream was built from?",
                self.ip.name,
            )
        return wanted[0]

    def _offsets_of(self, argument: Argument) -> tuple[int, int, int, int]:
        if argument.axis is not None:
            # An array behind an axis port has no register; `out` only marks its direction.
            return NO_OFFSET, 0 if argument.direction == "out" else NO_OFFSET, NO_OFFSET, 0
        slave = self._slave_of(argument.bundle)
        if slave is None or argument.offset is None:
            self._check_wired(argument)
            return self._wire(argument)
        page = self.page[slave]
        listed = _of_slave(self.ip.registers, slave) or {}
        match, bundle = self._matches[slave], argument.bundle or ""

        def place(derived: int | None) -> int:
            """Prefer the offset the handoff lists for this register: that is the hardware."""
            if derived is None:
                return NO_OFFSET
            value = match.found.get((bundle, derived))
            return page + (derived if value is None else value.offset)

        data = place(argument.offset)
        if gathers(argument):
            return self._gather(argument, place), NO_OFFSET, NO_OFFSET, 0
        out = NO_OFFSET
        if argument.kind == "scalar_ptr" and argument.direction != "in":
            out = place(argument.offset_out) if argument.offset_out is not None else data
        valid = place(argument.offset_valid)
        if argument.offset_valid is not None and match.is_taken(bundle, argument.offset_valid):
            valid = NO_OFFSET
        if valid != NO_OFFSET:
            self.valid.add(valid)
        nbytes = 4
        if argument.kind in ("m_axi", "burst_maxi"):
            nbytes = self._address_bytes(argument, listed, data - page)
            if argument.direction != "in":
                self.outputs.append((data, nbytes))
        return data, out, valid, nbytes

    def _check_wired(self, argument: Argument) -> None:
        """Refuse a source that wires what the bitstream has in a register: it would stay 0."""
        for registers in self.ip.registers.values():
            at = registers.get(argument.name, registers.get(f"{argument.name}_1"))
            if at is not None and argument.bundle is None:
                raise InterfaceError(
                    f"{self.ip.name}: the handoff has register {argument.name} at 0x{at:02x}, and "
                    f"{self.interface.source} gives {argument.name} no s_axilite interface. Is the "
                    f"pragma '#pragma HLS INTERFACE s_axilite port={argument.name} bundle=...' "
                    "missing, or its port misspelt? 'python -m pynq_torch hls interface FILE.cpp "
                    "--top NAME' shows what was read.",
                    self.ip.name,
                )

    def _gather(self, argument: Argument, place: Callable[[int], int]) -> int:
        """Give an array in pieces a place behind the registers, where it is whole."""
        registers = self.interface.bundles[argument.bundle or ""]
        at, last = self.nbytes, (argument.length or 0) * argument.width // 8
        self.moves += moves_of(argument, registers, place, at)
        self.nbytes += (last + 15) & ~7
        return at

    def _wire(self, argument: Argument) -> tuple[int, int, int, int]:
        """Give the value of an input port a place behind the registers."""
        port = input_port(self.ip.ports, argument)
        if port is None:
            return _NOWHERE
        # The engine reads whole words of the C++ type, which may be wider than the port.
        bits = port.width or 1
        item = WiredInput(port, self.nbytes, max(bits, argument.width) // 64 * 8 + 16)
        self.wired.append(item)
        self.nbytes += item.nbytes
        return item.at, NO_OFFSET, NO_OFFSET, 8 if bits > 32 else 4

    def _address_bytes(self, argument: Argument, listed: dict[str, int], at: int) -> int:
        if listed:
            # The hwh splits a 64-bit address into x_1 and x_2 (REGISTERS: names).
            return 8 if at + 4 in listed.values() else 4
        register = next(
            (r for r in self.interface.bundles.get(argument.bundle or "", ()) if r.offset == at),
            None,
        )
        return 8 if register is not None and register.width == 64 else 4


def _of_slave(listed: Mapping[str, _Listed], slave: str) -> _Listed | None:
    """Return what the handoff lists for a slave; the only list there is may be without its name."""
    found = listed.get(slave) or listed.get("")
    return next(iter(listed.values())) if not found and len(listed) == 1 else found
