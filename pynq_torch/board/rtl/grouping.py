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

_MEMORY_MAPPED = re.compile(
    r"(?P<name>.+)_(?P<signal>AW(?:ADDR|VALID|READY|LEN|SIZE|BURST|LOCK|CACHE|PROT|QOS|REGION|ID|"
    r"USER)|W(?:DATA|STRB|VALID|READY|LAST|ID|USER)|B(?:RESP|VALID|READY|ID|USER)|AR(?:ADDR|VALID|"
    r"READY|LEN|SIZE|BURST|LOCK|CACHE|PROT|QOS|REGION|ID|USER)|R(?:DATA|RESP|VALID|READY|LAST|ID|"
    r"USER))",
    re.IGNORECASE,
)
_STREAM = re.compile(
    r"(?P<name>.+)_(?P<signal>T(?:DATA|VALID|READY|KEEP|STRB|LAST|USER|ID|DEST))", re.IGNORECASE
)
# Names of clocks and resets where the handoff does not mark them.
_CLOCK = re.compile(r"(.*_)?(ap_|a|s_)?cl(oc)?k(_?\d|_i)?", re.IGNORECASE)
_RESET = re.compile(
    r"(.*_)?(n_?)?(ap_|a|s_)?(rst|reset)_?(?P<low>n|ni|b)?(_?\d|_i)?", re.IGNORECASE
)
_LOW_BEFORE = re.compile(r"(.*_)?n_?(rst|reset)", re.IGNORECASE)  # nrst, n_reset
_INTERRUPT = re.compile(r"(interrupt|irq|intr)(_o)?", re.IGNORECASE)
#: Data widths that AXI4 has, in bits.
_WIDTHS = (32, 64, 128, 256, 512, 1024)


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
        self.folded = {port.name.lower(): port.name for port in ports}
        self.ip = ip
        self.top = top or (ip.vlnv_name if ip else "the top")
        self.where = f" ({where})" if where else ""
        self.left = dict(self.ports)
        for port in ports:
            if port.direction == "inout":
                raise self.error(f"port {port.name} is inout; a kernel inside the PL has none")

    def error(self, text: str) -> RtlPortError:
        cu = self.ip.name if self.ip else self.top
        return RtlPortError(f"{cu}: module {self.top}{self.where}: {text}", cu)

    def interfaces(self) -> AxiInterfaces:
        if self.ip is not None:
            self._check_widths(self.ip)
        clocks, resets, interrupt = self._clocks(), self._resets(), self._interrupt()
        bundles = self._bundles()
        slaves: list[AxiSlave] = []
        masters: list[AxiMaster] = []
        streams: list[AxiStream] = []
        for name, signals in bundles.items():
            if any(signal in signals for signal in ("TVALID", "TDATA")):
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
        found = AxiInterfaces(
            clocks,
            resets,
            interrupt,
            tuple(slaves),
            tuple(masters),
            tuple(streams),
            {p.name: self._tie(p) for p in self.left.values() if p.direction == "in"},
            tuple(p.name for p in self.left.values() if p.direction == "out"),
        )
        if self.ip is not None:
            self._check_buses(self.ip, found)
        return found

    # ---- taking ports ------------------------------------------------------------------------

    def _clocks(self) -> tuple[str, ...]:
        marked = [
            port.name
            for port in (self.ip.ports.values() if self.ip else ())
            if port.signal_is == "clk" and port.direction == "I" and port.name in self.ports
        ]
        named = [
            port.name
            for port in self.ports.values()
            if port.direction == "in" and port.width == 1 and _CLOCK.fullmatch(port.name)
        ]
        names = sorted(dict.fromkeys([*marked, *named]), key=lambda name: name != "ap_clk")
        return tuple(self.left.pop(name).name for name in names)

    def _resets(self) -> tuple[tuple[str, bool], ...]:
        found = {}
        for name, port in self.ports.items():
            match = _RESET.fullmatch(name)
            known = self.ip.ports.get(name) if self.ip else None
            marked = known is not None and known.signal_is == "rst"
            if port.direction != "in" or port.width != 1 or not (match or marked):
                continue
            low = bool(match and (match["low"] or _LOW_BEFORE.match(name)))
            if known is not None and known.active_low is not None:
                low = known.active_low
            found[name] = low
            self.left.pop(name, None)
        return tuple(found.items())

    def _interrupt(self) -> str:
        pins = self.ip.interrupt_pins if self.ip else ()
        for name in list(self.left):
            named = name in pins or (not pins and _INTERRUPT.fullmatch(name))
            if named and self.ports[name].direction == "out":
                return self.left.pop(name).name
        return ""

    def _bundles(self) -> dict[str, dict[str, str]]:
        """Return the signals of each interface: by PORTMAPS, then by names."""
        found: dict[str, dict[str, str]] = {}
        names: dict[str, str] = {}
        for bus in self.ip.buses.values() if self.ip else ():
            names[bus.name.lower()] = bus.name
            for signal, physical in bus.port_map.items():
                name = self.folded.get(physical.lower())
                if name in self.left:
                    found.setdefault(bus.name, {})[signal.upper()] = self.left.pop(name).name
        for port in self.ports.values():
            match = _MEMORY_MAPPED.fullmatch(port.name) or _STREAM.fullmatch(port.name)
            if match is None or port.name not in self.left:
                continue
            name = names.get(match["name"].lower(), match["name"])
            found.setdefault(name, {})[match["signal"].upper()] = self.left.pop(port.name).name
        order = list(self.ports)
        return dict(
            sorted(
                found.items(), key=lambda item: order.index(min(item[1].values(), key=order.index))
            )
        )

    def _tie(self, port: PortDecl) -> int:
        known = self.ip.ports.get(port.name) if self.ip else None
        if known is not None and known.constant is not None:
            return known.constant & ((1 << port.width) - 1)
        # Block-level control by wires instead of registers: high in every design that works.
        return int(port.name in ("ap_start", "ap_continue", "ap_ce"))

    # ---- interfaces --------------------------------------------------------------------------

    def _is_master(self, name: str, signals: Mapping[str, str]) -> bool:
        for signal in ("ARVALID", "AWVALID", "ARADDR", "AWADDR"):
            if signal in signals:
                return self.ports[signals[signal]].direction == "out"
        raise self.error(
            f"{name} has {', '.join(signals.values())} and neither AWVALID nor ARVALID: it is no "
            "AXI interface"
        )

    def _require(
        self, name: str, kind: str, signals: Mapping[str, str], out: str, into: str
    ) -> None:
        """Check that signals are there, and go where they must."""
        for wanted, direction in ((out, "out"), (into, "in")):
            for signal in wanted.split():
                if signal not in signals:
                    raise self.error(
                        f"the {kind} {name} has no {signal}; it has {', '.join(signals)}"
                    )
                port = self.ports[signals[signal]]
                if port.direction != direction:
                    raise self.error(
                        f"port {port.name} of the {kind} {name} is an {port.direction}put; "
                        f"an {direction}put is expected"
                    )

    def _width(self, signals: Mapping[str, str], *names: str) -> int:
        return max(
            (self.ports[signals[name]].width for name in names if name in signals), default=0
        )

    def _data_width(self, name: str, kind: str, signals: Mapping[str, str]) -> int:
        widths = {self.ports[signals[n]].width for n in ("RDATA", "WDATA") if n in signals}
        if len(widths) != 1 or not widths <= set(_WIDTHS):
            raise self.error(
                f"the {kind} {name} has {' and '.join(map(str, sorted(widths)))} bits of data; one "
                f"of {', '.join(map(str, _WIDTHS))} is expected, the same both ways"
            )
        return widths.pop()

    def _slave(self, name: str, signals: Mapping[str, str]) -> AxiSlave:
        kind = "AXI4-Lite interface"
        self._require(
            name,
            kind,
            signals,
            "AWREADY WREADY BVALID ARREADY RVALID RDATA",
            "AWADDR AWVALID WDATA WVALID BREADY ARADDR ARVALID RREADY",
        )
        width = self._data_width(name, kind, signals)
        full = "AWLEN" in signals or "ARLEN" in signals
        return AxiSlave(name, signals, width, self._width(signals, "AWADDR", "ARADDR"), full)

    def _master(self, name: str, signals: Mapping[str, str]) -> AxiMaster:
        kind = "AXI4 interface"
        reads = "ARVALID" in signals
        writes = "AWVALID" in signals
        if reads:
            self._require(name, kind, signals, "ARADDR ARVALID RREADY", "ARREADY RDATA RVALID")
        if writes:
            self._require(
                name,
                kind,
                signals,
                "AWADDR AWVALID WDATA WVALID BREADY",
                "AWREADY WREADY BVALID",
            )
        return AxiMaster(
            name,
            signals,
            self._data_width(name, kind, signals),
            self._width(signals, "AWADDR", "ARADDR"),
            self._width(signals, "AWID", "ARID"),
            reads,
            writes,
        )

    def _stream(self, name: str, signals: Mapping[str, str]) -> AxiStream:
        kind = "AXI4-Stream"
        if "TVALID" not in signals:
            raise self.error(f"the {kind} {name} has no TVALID; it has {', '.join(signals)}")
        out = self.ports[signals["TVALID"]].direction == "out"
        back = "TREADY" if "TREADY" in signals else ""
        if out:
            self._require(name, kind, signals, "TVALID TDATA", back)
        else:
            self._require(name, kind, signals, back, "TVALID TDATA")
        width = self._width(signals, "TDATA")
        if width % 8:
            raise self.error(
                f"the {kind} {name} has {width} bits of TDATA; whole bytes are expected"
            )
        return AxiStream(name, signals, "out" if out else "in", width)

    # ---- against the handoff -----------------------------------------------------------------

    def _check_widths(self, ip: IpInstance) -> None:
        for name, port in ip.ports.items():
            known = self.ports.get(name)
            if known is not None and port.width is not None and port.width != known.width:
                raise self.error(
                    f"port {name} has {known.width} bits, and {port.width} in the handoff. "
                    + _OTHER_VERSION
                )

    def _check_buses(self, ip: IpInstance, found: AxiInterfaces) -> None:
        """Compare the interfaces with those of the handoff, and name both where they differ."""
        rtl: dict[str, tuple[str, bool, int]] = {}
        rtl |= {item.name: ("aximm", False, item.data_width) for item in found.slaves}
        rtl |= {item.name: ("aximm", True, item.data_width) for item in found.masters}
        rtl |= {s.name: ("axis", s.direction == "out", s.data_width) for s in found.streams}
        for bus in ip.buses.values():
            if bus.name not in rtl:
                raise self.error(
                    f"the handoff has the {_kind(bus.kind, bus.initiator)} {bus.name}, and the "
                    f"module does not; it has {_listed(rtl)}. " + _OTHER_VERSION
                )
            kind, initiator, width = rtl[bus.name]
            if (kind, initiator) != (bus.kind, bus.initiator):
                raise self.error(
                    f"{bus.name} is an {_kind(kind, initiator)}, and in the handoff an "
                    f"{_kind(bus.kind, bus.initiator)}. " + _OTHER_VERSION
                )
            if bus.data_bytes is not None and width != 8 * bus.data_bytes:
                raise self.error(
                    f"the {_kind(kind, initiator)} {bus.name} has {width} bits of data, and "
                    f"{8 * bus.data_bytes} in the handoff. " + _OTHER_VERSION
                )
        extra = {name: value for name, value in rtl.items() if name not in ip.buses}
        if ip.buses and extra:
            raise self.error(
                f"it has {_listed(extra)}, and the handoff does not; there it has "
                f"{', '.join(ip.buses)}. " + _OTHER_VERSION
            )


_OTHER_VERSION = (
    "They are of two versions: export the RTL again, or build the overlay again, so that both are "
    "of one"
)


def _kind(kind: str, initiator: bool) -> str:
    if kind == "axis":
        return "AXI4-Stream output" if initiator else "AXI4-Stream input"
    return "AXI4 manager" if initiator else "AXI4-Lite subordinate"


def _listed(found: Mapping[str, tuple[str, bool, int]]) -> str:
    return ", ".join(f"{name} ({_kind(k, i)})" for name, (k, i, _) in found.items()) or "none"
