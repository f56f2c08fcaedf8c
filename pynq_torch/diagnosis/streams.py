"""What is on a design's AXI4-Streams: the kernels at a DMA, and the DMAs at a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["kernels_on_stream", "stream_hint"]

#: Registers of the block control, as a handoff has them.
_CONTROL = {"CTRL", "GIER", "IP_IER", "IP_ISR"}


def stream_hint(device: Any, name: str, *, only: bool = False) -> str:
    """Say in one or two sentences how data get to a kernel that has AXI4-Streams.

    `name` is the instance, or the kernel's name in its VLNV. Empty where the design has no such
    kernel, or it has no streams; with `only` also where it reaches memory by itself.
    """
    graph = getattr(getattr(device, "parser", None), "systemgraph", None)
    for block in getattr(graph, "blocks", {}).values():
        instance = getattr(block, "hierarchy_name", "") or block.name
        kernel = getattr(getattr(block, "vlnv", None), "name", "")
        if name in (instance, _flat(instance), kernel):
            if only and any(type(port).__name__ == "ManagerPort" for port in block.ports.values()):
                return ""
            return _text(device, instance, block)
    return ""


def _text(device: Any, instance: str, block: Any) -> str:
    if not any(type(port).__name__ == "StreamPort" for port in block.ports.values()):
        return ""
    sides = _sides(device, block)
    start = f"{instance} takes its data from AXI4-Streams, not from a call"
    if not sides:
        return f"{start}; no DMA is connected to them."
    lines = []
    registers = set(device.ip_dict.get(instance, {}).get("registers") or {})
    if "CTRL" in registers:
        more = "..." if registers - _CONTROL else ""
        lines.append(f"overlay.{instance.replace('/', '.')}.start({more})")
    lines += _transfers({dma.replace("/", "."): channels for dma, channels in sides.items()})
    names = " and ".join(sides)
    return f"{start}: move buffers from pynq.allocate with {names}, {'; '.join(lines)}."


def _transfers(sides: dict[str, set[str]]) -> list[str]:
    """Return the calls that move a packet: of several DMAs, all but one begin without waiting."""
    *others, last = sorted(sides, key=lambda dma: (len(sides[dma]), sides[dma] == {"MM2S"}, dma))
    calls, waits = [], []
    for dma in others:
        if "S2MM" in sides[dma]:
            calls.append(f"overlay.{dma}.recvchannel.transfer(y)")
            waits.append(f"overlay.{dma}.recvchannel.wait()")
        if "MM2S" in sides[dma]:
            calls.append(f"overlay.{dma}.sendchannel.transfer(x)")
    given = {"MM2S": "send=x", "S2MM": "recv=y"}
    operands = ", ".join(text for channel, text in given.items() if channel in sides[last])
    return [*calls, f"pynq_torch.transfer(overlay.{last}, {operands})", *waits]


def _sides(device: Any, block: Any) -> dict[str, set[str]]:
    """Return the DMAs that the streams of a block lead to, with the channels that they use."""
    dmas = {
        _flat(path): path
        for path, entry in device.ip_dict.items()
        if entry.get("type", "").split(":")[2:3] == ["axi_dma"]
    }
    found: dict[str, set[str]] = {}

    def passes(port: Any, neighbour: Any) -> bool:
        dma = dmas.get(_name(neighbour))
        if dma is not None:
            found.setdefault(dma, set()).add(port.name.rpartition("_")[2].upper())
        return dma is None  # go on past a FIFO, a slice or another kernel

    _visit(block, passes)
    return found


def kernels_on_stream(dma: Any) -> dict[str, Any]:
    """Return the HLS IP that streams connect to a DMA: full name -> its entry of ``ip_dict``.

    Empty where the design's graph does not say, or the neighbours have no block control.
    """
    device = getattr(dma, "device", None)
    graph = getattr(getattr(device, "parser", None), "systemgraph", None)
    block = getattr(graph, "blocks", {}).get(_flat(getattr(dma, "_fullpath", "")))
    found: dict[str, Any] = {}
    if block is None:
        return found
    entries = {_flat(name): entry for name, entry in dma.device.ip_dict.items()}

    def passes(port: Any, neighbour: Any) -> bool:
        entry = entries.get(_name(neighbour))
        if entry is None:
            return True  # go on past a FIFO or a slice
        if "AP_START" in entry.get("registers", {}).get("CTRL", {}).get("fields", {}):
            found[entry["fullpath"]] = entry
        return False

    _visit(block, passes)
    return found


def _flat(path: str) -> str:
    return path.replace("/", "_")


def _name(block: Any) -> str:
    return _flat(getattr(block, "hierarchy_name", ""))


def _visit(block: Any, passes: Callable[[Any, Any], bool]) -> None:
    """Call `passes` for each port and block that streams lead to, and go on where it is true."""
    waiting, seen = [block], {block.ref}
    while waiting:
        for port in waiting.pop().ports.values():
            if type(port).__name__ != "StreamPort":
                continue
            for other in port.destinations().values():
                neighbour = other.parent()
                known = not hasattr(neighbour, "ports") or neighbour.ref in seen
                if not known and passes(other, neighbour):
                    seen.add(neighbour.ref)
                    waiting.append(neighbour)
