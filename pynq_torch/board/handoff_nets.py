"""AXI4-Stream links and interrupt nets, followed through what only passes them on."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass

from .axis_parameters import NotCarried, settings_of
from .handoff_ports import AXIS, INITIATORS, TARGETS, UNCONNECTED, data_bytes
from .ip_table import Treatment, names
from .streams import DEFAULT_DEPTH, Endpoint

#: Stream IP that moves beats unchanged: S_AXIS in, M_AXIS out.
_PASS_THROUGH = names(Treatment.PASSED, "stream")
_CONCATS = names(Treatment.PASSED, "concat")


@dataclass(frozen=True)
class StreamLink:
    """A stream from one IP to another, with what is between them resolved."""

    source: Endpoint | None
    sink: Endpoint | None
    data_bytes: int
    sink_bytes: int
    depth: int
    through: tuple[str, ...] = ()


@dataclass(frozen=True)
class InterruptNet:
    """An interrupt output and the input it drives."""

    ip: str
    pin: str
    target: str  #: full name of an ``axi_intc``, or ``""`` for the processing system
    index: int  #: input of the controller, or bit of IRQ_F2P


def full_name(module: ET.Element) -> str:
    """Return an instance's name with its hierarchy, as pynq writes it."""
    return module.get("FULLNAME", "").strip("/")


@dataclass
class _Streams:
    """The stream interfaces of a design, by the nets that connect them."""

    sinks: dict[str, tuple[Endpoint, int]]  #: net -> end, bytes
    sources: list[tuple[Endpoint, int, str]]
    #: IP that only passes beats on, or resizes them -> net behind it, FIFO depth
    onward: dict[str, tuple[str, int]]
    resizers: set[str]
    dmas: set[str]


def stream_links(modules: list[ET.Element]) -> Iterator[StreamLink]:
    """Follow each stream from its source through FIFOs and slices to the IP that takes it.

    A DMA moves bytes, whatever the width of a beat: a width converter on the way to or from one is
    a part of the link, whose beats are as wide as those at its other end.
    """
    found = _streams(modules)
    # Those behind a converter last: the way to it may have shown that it is a part of a link.
    sources = sorted(found.sources, key=lambda source: source[0].ip in found.resizers)
    part_of_link: set[str] = set()
    for source, width, first in sources:
        if source.ip in part_of_link:
            continue
        whole = _follow(found, first, past_resizers=True)
        ends_at = found.sinks[whole[0]][0].ip if whole[0] in found.sinks else ""
        sends = source.ip in found.dmas
        if not sends and ends_at not in found.dmas:
            whole = _follow(found, first, past_resizers=False)
        net, depth, through = whole
        sink, sink_width = found.sinks.get(net, (None, width))
        resized = found.resizers & set(through)
        part_of_link |= resized
        yield StreamLink(
            source,
            sink,
            (sink_width or width) if resized and sends else width,
            sink_width,
            depth,
            through,
        )


def _follow(found: _Streams, net: str, past_resizers: bool) -> tuple[str, int, tuple[str, ...]]:
    """Return the last net of a link, the depth of its FIFOs, and the IP on the way."""
    through: list[str] = []
    depth = DEFAULT_DEPTH
    while net in found.sinks:
        ip = found.sinks[net][0].ip
        if ip not in found.onward or ip in through or (ip in found.resizers and not past_resizers):
            break
        through.append(ip)
        net, extra = found.onward[ip]
        depth += extra
    return net, depth, tuple(through)


def _streams(modules: list[ET.Element]) -> _Streams:
    found = _Streams({}, [], {}, set(), set())
    for module in modules:
        name, kind = full_name(module), module.get("MODTYPE", "")
        if kind == "axi_dma":
            found.dmas.add(name)
        resizes = kind == "axis_dwidth_converter"
        if resizes:
            found.resizers.add(name)
        passes = kind in _PASS_THROUGH or (
            kind == "axis_subset_converter" and _changes_nothing(module)
        )
        for bus in module.findall("./BUSINTERFACES/BUSINTERFACE"):
            if bus.get("VLNV") != AXIS:
                continue
            net, end = bus.get("BUSNAME", ""), Endpoint(name, bus.get("NAME", ""))
            if net == UNCONNECTED:
                # One name for every open port: without one of its own each would meet all others.
                net = f"{UNCONNECTED}{name}/{end.port}"
            if bus.get("TYPE") in TARGETS:
                found.sinks[net] = (end, data_bytes(bus))
            elif bus.get("TYPE") in INITIATORS:
                if passes or resizes:
                    found.onward[name] = (net, _fifo_depth(module))
                if not passes:
                    found.sources.append((end, data_bytes(bus), net))
    return found


def _changes_nothing(module: ET.Element) -> bool:
    """Say whether beats leave a converter as they came."""
    listed = module.findall("./PARAMETERS/PARAMETER")
    parameters = {item.get("NAME", ""): item.get("VALUE", "") for item in listed}
    try:
        return settings_of(module.get("MODTYPE", ""), parameters).passes
    except NotCarried:
        return False


def _fifo_depth(module: ET.Element) -> int:
    for item in module.findall("./PARAMETERS/PARAMETER"):
        text = item.get("VALUE", "")
        if item.get("NAME") in ("FIFO_DEPTH", "C_FIFO_DEPTH") and text.isdigit():
            return int(text)
    return 2


def interrupt_nets(modules: list[ET.Element]) -> Iterator[InterruptNet]:
    """Follow interrupt nets through concat blocks, counting bits as the wires do."""
    sinks: dict[str, list[tuple[str, int | None]]] = {}  # net -> name, and which input of a concat
    onward: dict[str, str] = {}  # concat -> net behind it
    widths: dict[str, dict[int, int]] = {}
    sources: list[tuple[str, str, str]] = []
    for module in modules:
        name, kind = full_name(module), module.get("MODTYPE", "")
        concat = kind in _CONCATS
        for port in module.findall("./PORTS/PORT"):
            pin, net = port.get("NAME", ""), port.get("SIGNAME", "")
            if not net:
                continue
            if concat and pin == "dout":
                onward[name] = net
            elif concat and pin[:2] in ("In", "in") and pin[2:].isdigit():
                index = int(pin[2:])
                sinks.setdefault(net, []).append((name, index))
                left, right = port.get("LEFT", "0"), port.get("RIGHT", "0")
                widths.setdefault(name, {})[index] = int(left or 0) - int(right or 0) + 1
            elif (kind, pin) == ("axi_intc", "intr"):
                sinks.setdefault(net, []).append((name, None))
            elif (kind, pin) == ("processing_system7", "IRQ_F2P"):
                sinks.setdefault(net, []).append(("", None))
            elif not concat and _is_interrupt(port, kind):
                sources.append((name, pin, net))

    def follow(net: str, offset: int, seen: tuple[str, ...]) -> Iterator[tuple[str, int]]:
        for name, index in sinks.get(net, ()):
            if index is None:
                yield name, offset
            elif name in onward and name not in seen:
                below = sum(widths[name].get(i, 1) for i in range(index))
                yield from follow(onward[name], offset + below, (*seen, name))

    for ip, pin, net in sources:
        for target, index in follow(net, 0, ()):
            yield InterruptNet(ip, pin, target, index)


def _is_interrupt(port: ET.Element, kind: str) -> bool:
    said = port.get("SIGIS") == "INTERRUPT" or (kind, port.get("NAME")) == ("axi_intc", "irq")
    return said and port.get("DIR") == "O"
