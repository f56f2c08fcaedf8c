"""The ports of a kernel's top module, put together to AXI interfaces.

Where the handoff says which port is which signal of an interface (Vivado's PORTMAPS), that holds;
otherwise the names do: Vitis HLS and everybody who packages IP writes ``<interface>_<signal>``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pynq_torch.errors import RtlPortError

from .ports import AxiInterfaces, AxiMaster, AxiSlave, AxiStream, PortDecl

if TYPE_CHECKING:
    from pynq_torch.board.handoff import IpInstance

__all__ = ["group"]

_SIGNAL = re.compile(
    r"(?P<name>.+)_(?P<signal>A[WR](?:ADDR|VALID|READY|LEN|SIZE|BURST|LOCK|CACHE|PROT|QOS|REGION|"
    r"ID|USER)|W(?:DATA|STRB|VALID|READY|LAST|ID|USER)|B(?:RESP|VALID|READY|ID|USER)|"
    r"R(?:DATA|RESP|VALID|READY|LAST|ID|USER)|T(?:DATA|VALID|READY|KEEP|STRB|LAST|USER|ID|DEST))",
    re.IGNORECASE,
)
# Names of clocks and resets where the handoff does not mark them.
_CLOCK = re.compile(r"(.*_)?(ap_|a|s_)?cl(oc)?k(_?\d|_i)?", re.IGNORECASE)
_RESET = re.compile(
    r"(.*_)?(n_?)?(ap_|a|s_)?(rst|reset)_?(?P<low>n|ni|b)?(_?\d|_i)?", re.IGNORECASE
)
_LOW_BEFORE = re.compile(r"(.*_)?n_?(rst|reset)", re.IGNORECASE)  # nrst, n_reset
_INTERRUPT = re.compile(r"(interrupt|irq|intr)(_o)?", re.IGNORECASE)
#: Block-level control where it is wires.
BLOCK_INPUTS = ("ap_start", "ap_continue", "ap_ce")
#: Data widths that AXI4 has, in bits.
_WIDTHS = (32, 64, 128, 256, 512, 1024)
_LITE, _FULL, _STREAM = "AXI4-Lite interface", "AXI4 interface", "AXI4-Stream"
#: The signals that a subordinate drives and takes, and those of a manager's two directions.
_SLAVE = (
    "AWREADY WREADY BVALID ARREADY RVALID RDATA",
    "AWADDR AWVALID WDATA WVALID BREADY ARADDR ARVALID RREADY",
)
_READS = ("ARADDR ARVALID RREADY", "ARREADY RDATA RVALID")
_WRITES = ("AWADDR AWVALID WDATA WVALID BREADY", "AWREADY WREADY BVALID")
_OTHER_VERSION = (
    ". They are of two versions: export the RTL again, or build the overlay again, so that both "
    "are of one"
)


def group(
    ports: Sequence[PortDecl], ip: IpInstance | None = None, *, top: str = "", where: str = ""
) -> AxiInterfaces:
    """Put the ports of a top module together to AXI interfaces.

    Parameters
    ----------
    ports : sequence of PortDecl
    ip : IpInstance, optional
        The kernel in the handoff: its PORTMAPS win over names, and what it says must be so.
    top, where : str
        The module and its file, for messages.

    Raises
    ------
    RtlPortError
        The ports are no AXI interfaces, or not those of the handoff.
    """
    return _Grouping(ports, ip, top, where).interfaces()


class _Grouping:
    """The ports of one top, taken one interface after the other."""

    def __init__(
        self, ports: Sequence[PortDecl], ip: IpInstance | None, top: str, where: str
    ) -> None:
        self.ports = {port.name: port for port in ports}
        self.left = dict(self.ports)
        self.ip = ip
        self.known = ip.ports if ip is not None else {}
        self.top = top or (ip.vlnv_name if ip else "the top")
        self.where = f" ({where})" if where else ""
        for port in ports:
            if port.direction == "inout":
                raise self.error(f"port {port.name} is inout; a kernel inside the PL has none")

    def error(self, text: str) -> RtlPortError:
        cu = self.ip.name if self.ip else self.top
        return RtlPortError(f"{cu}: module {self.top}{self.where}: {text}", cu)

    def interfaces(self) -> AxiInterfaces:
        self._check_widths()
        clocks, resets, interrupt = self._clocks(), self._resets(), self._interrupt()
        bundles = self._bundles()
        slaves: list[AxiSlave] = []
        masters: list[AxiMaster] = []
        streams: list[AxiStream] = []
        for name, signals in bundles.items():
            if "TVALID" in signals or "TDATA" in signals:
                streams.append(self._stream(name, signals))
            elif self._is_master(name, signals):
                masters.append(self._master(name, signals))
            else:
                slaves.append(self._slave(name, signals))
        if not bundles:
            raise self.error(
                "none of its ports belongs to an AXI interface; they are "
                f"{', '.join(self.ports) or 'none'}. Names like s_axi_control_AWADDR, "
                "m_axi_gmem_ARADDR, data_TVALID are expected, or PORTMAPS in the handoff"
            )
        if not clocks:
            raise self.error("it has no clock: a port called ap_clk (or aclk, clk) is expected")
        constants = {p.name: self._tie(p) for p in self.left.values() if p.direction == "in"}
        others = tuple(p.name for p in self.left.values() if p.direction == "out")
        axi = (tuple(slaves), tuple(masters), tuple(streams))
        found = AxiInterfaces(clocks, resets, interrupt, *axi, constants, others)
        if self.ip is not None:
            self._check_buses(self.ip, found)
        return found

    # ---- taking ports ------------------------------------------------------------------------

    def _clocks(self) -> tuple[str, ...]:
        marked = [n for n, p in self.known.items() if p.signal_is == "clk" and p.direction == "I"]
        named = [
            port.name
            for port in self.ports.values()
            if port.direction == "in" and port.width == 1 and _CLOCK.fullmatch(port.name)
        ]
        there = dict.fromkeys(name for name in (*marked, *named) if name in self.ports)
        return tuple(
            self.left.pop(name).name for name in sorted(there, key=lambda name: name != "ap_clk")
        )

    def _resets(self) -> tuple[tuple[str, bool], ...]:
        found = {}
        for name, port in self.ports.items():
            match, known = _RESET.fullmatch(name), self.known.get(name)
            marked = known is not None and known.signal_is == "rst"
            if port.direction != "in" or port.width != 1 or not (match or marked):
                continue
            found[name] = bool(match and (match["low"] or _LOW_BEFORE.match(name)))
            if known is not None and known.active_low is not None:
                found[name] = known.active_low
            self.left.pop(name, None)
        return tuple(found.items())

    def _interrupt(self) -> str:
        pins = self.ip.interrupt_pins if self.ip else ()
        for name, port in self.left.items():
            named = name in pins or (not pins and _INTERRUPT.fullmatch(name))
            if named and port.direction == "out":
                return self.left.pop(name).name
        return ""

    def _bundles(self) -> dict[str, dict[str, str]]:
        """Return the signals of each interface: by PORTMAPS, then by names."""
        found: dict[str, dict[str, str]] = {}
        buses = self.ip.buses if self.ip else {}
        # Two names may differ only in case; where one of them is meant, it is written so.
        names = {**{name.lower(): name for name in buses}, **{name: name for name in buses}}
        ports = {**{name.lower(): name for name in self.ports}, **{n: n for n in self.ports}}
        for bus in buses.values():
            for signal, physical in bus.port_map.items():
                port = ports.get(physical) or ports.get(physical.lower(), "")
                if port in self.left:
                    found.setdefault(bus.name, {})[signal.upper()] = self.left.pop(port).name
        for port in list(self.left):
            if match := _SIGNAL.fullmatch(port):
                name = match["name"]
                bundle = found.setdefault(names.get(name, names.get(name.lower(), name)), {})
                bundle[match["signal"].upper()] = self.left.pop(port).name
        order = {name: i for i, name in enumerate(self.ports)}
        return dict(sorted(found.items(), key=lambda item: min(order[n] for n in item[1].values())))

    def _tie(self, port: PortDecl) -> int:
        known = self.known.get(port.name)
        if known is not None and known.constant is not None:
            return known.constant & ((1 << port.width) - 1)
        # Block-level control by wires instead of registers: high in every design that works.
        return int(port.name in BLOCK_INPUTS)

    # ---- interfaces --------------------------------------------------------------------------

    def _is_master(self, name: str, signals: Mapping[str, str]) -> bool:
        for signal in ("ARVALID", "AWVALID", "ARADDR", "AWADDR"):
            if signal in signals:
                return self.ports[signals[signal]].direction == "out"
        raise self.error(
            f"{name} has {', '.join(signals.values())} and neither AWVALID nor ARVALID: it is no "
            "AXI interface"
        )

    def _require(self, what: str, signals: Mapping[str, str], out: str, into: str) -> None:
        """Check that signals are there, and go where they must."""
        for wanted, direction in ((out, "out"), (into, "in")):
            for signal in wanted.split():
                if signal not in signals:
                    raise self.error(f"the {what} has no {signal}; it has {', '.join(signals)}")
                port = self.ports[signals[signal]]
                if port.direction != direction:
                    raise self.error(
                        f"port {port.name} of the {what} is an {port.direction}put; "
                        f"an {direction}put is expected"
                    )

    def _width(self, signals: Mapping[str, str], *names: str) -> int:
        return max((self.ports[signals[n]].width for n in names if n in signals), default=0)

    def _data_width(self, what: str, signals: Mapping[str, str]) -> int:
        widths = {self.ports[signals[n]].width for n in ("RDATA", "WDATA") if n in signals}
        if len(widths) != 1 or not widths <= set(_WIDTHS):
            raise self.error(
                f"the {what} has {' and '.join(map(str, sorted(widths)))} bits of data; one of "
                f"{', '.join(map(str, _WIDTHS))} is expected, the same both ways"
            )
        return widths.pop()

    def _slave(self, name: str, signals: Mapping[str, str]) -> AxiSlave:
        what = f"{_LITE} {name}"
        self._require(what, signals, *_SLAVE)
        width, address = self._data_width(what, signals), self._width(signals, "AWADDR", "ARADDR")
        return AxiSlave(name, signals, width, address, "AWLEN" in signals or "ARLEN" in signals)

    def _master(self, name: str, signals: Mapping[str, str]) -> AxiMaster:
        what, reads, writes = f"{_FULL} {name}", "ARVALID" in signals, "AWVALID" in signals
        if reads:
            self._require(what, signals, *_READS)
        if writes:
            self._require(what, signals, *_WRITES)
        width, address = self._data_width(what, signals), self._width(signals, "AWADDR", "ARADDR")
        number = self._width(signals, "AWID", "ARID")
        return AxiMaster(name, signals, width, address, number, reads, writes)

    def _stream(self, name: str, signals: Mapping[str, str]) -> AxiStream:
        what = f"{_STREAM} {name}"
        if "TVALID" not in signals:
            raise self.error(f"the {what} has no TVALID; it has {', '.join(signals)}")
        direction = self.ports[signals["TVALID"]].direction
        back = "TREADY" if "TREADY" in signals else ""
        ways = ("TVALID TDATA", back)
        self._require(what, signals, *(ways if direction == "out" else ways[::-1]))
        width = self._width(signals, "TDATA")
        if width % 8:
            raise self.error(f"the {what} has {width} bits of TDATA; whole bytes are expected")
        return AxiStream(name, signals, direction, width)

    # ---- against the handoff -----------------------------------------------------------------

    def _check_widths(self) -> None:
        for name, port in self.known.items():
            there = self.ports.get(name)
            if there is not None and port.width is not None and port.width != there.width:
                raise self.error(
                    f"port {name} has {there.width} bits, and {port.width} in the handoff"
                    + _OTHER_VERSION
                )

    def _check_buses(self, ip: IpInstance, found: AxiInterfaces) -> None:
        """Compare the interfaces with those of the handoff, and name both where they differ."""
        rtl = {item.name: (*_bus_of(item), item.data_width) for item in found.ports}

        def listed(names: Sequence[str]) -> str:
            return ", ".join(f"{name} ({_kind(*rtl[name][:2])})" for name in names) or "none"

        for bus in ip.buses.values():
            there = _kind(bus.kind, bus.initiator)
            if bus.name not in rtl:
                raise self.error(
                    f"the handoff has the {there} {bus.name}, and the module does not; it has "
                    f"{listed([*rtl])}{_OTHER_VERSION}"
                )
            kind, initiator, width = rtl[bus.name]
            here = _kind(kind, initiator)
            if (kind, initiator) != (bus.kind, bus.initiator):
                raise self.error(
                    f"{bus.name} is an {here}, and in the handoff an {there}{_OTHER_VERSION}"
                )
            if bus.data_bytes is not None and width != 8 * bus.data_bytes:
                raise self.error(
                    f"the {here} {bus.name} has {width} bits of data, and {8 * bus.data_bytes} in "
                    f"the handoff{_OTHER_VERSION}"
                )
        extra = [name for name in rtl if name not in ip.buses]
        if ip.buses and extra:
            raise self.error(
                f"it has {listed(extra)}, and the handoff does not; there it has "
                f"{', '.join(ip.buses)}{_OTHER_VERSION}"
            )


def _bus_of(item: AxiSlave | AxiMaster | AxiStream) -> tuple[str, bool]:
    """Return the kind of bus that the handoff calls an interface, and whether it initiates."""
    if isinstance(item, AxiStream):
        return "axis", item.direction == "out"
    return "aximm", isinstance(item, AxiMaster)


def _kind(kind: str, initiator: bool) -> str:
    if kind == "axis":
        return "AXI4-Stream output" if initiator else "AXI4-Stream input"
    return "AXI4 manager" if initiator else "AXI4-Lite subordinate"
