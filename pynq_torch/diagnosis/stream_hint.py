"""Which DMA moves the data of a kernel with streams, for those who call it like a function."""

from __future__ import annotations

from typing import Any

__all__ = ["stream_hint"]


def stream_hint(device: Any, name: str) -> str:
    """Say how data get to a kernel that has AXI4-Streams.

    Parameters
    ----------
    device : pynq.Device
        With the design's graph, as pynq's parser makes it.
    name : str
        The instance, or the kernel's name in its VLNV.

    Returns
    -------
    str
        One or two sentences; empty where the design has no such kernel, or it has no streams.
    """
    graph = getattr(getattr(device, "parser", None), "systemgraph", None)
    for block in getattr(graph, "blocks", {}).values():
        instance = getattr(block, "hierarchy_name", "") or block.name
        kernel = getattr(getattr(block, "vlnv", None), "name", "")
        if name in (instance, instance.replace("/", "_"), kernel):
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
    for dma, channels in sides.items():
        operands = [
            text
            for channel, text in (("MM2S", "send=x"), ("S2MM", "recv=y"))
            if channel in channels
        ]
        lines.append(f"pynq_torch.transfer(overlay.{dma.replace('/', '.')}, {', '.join(operands)})")
    if "CTRL" in (device.ip_dict.get(instance, {}).get("registers") or {}):
        lines.insert(0, f"overlay.{instance.replace('/', '.')}.start()")
    names = " and ".join(sides)
    return f"{start}: move buffers from pynq.allocate with {names}, {'; '.join(lines)}."


def _sides(device: Any, block: Any) -> dict[str, set[str]]:
    """Return the DMAs that the streams of a block lead to, with the channels that they use."""
    dmas = {
        path.replace("/", "_"): path
        for path, entry in device.ip_dict.items()
        if entry.get("type", "").split(":")[2:3] == ["axi_dma"]
    }
    found: dict[str, set[str]] = {}
    waiting, seen = [block], {block.ref}
    while waiting:
        here = waiting.pop()
        for port in here.ports.values():
            if type(port).__name__ != "StreamPort":
                continue
            for other in port.destinations().values():
                neighbour = other.parent()
                if not hasattr(neighbour, "ports"):
                    continue
                dma = dmas.get(getattr(neighbour, "hierarchy_name", "").replace("/", "_"))
                if dma is not None:
                    found.setdefault(dma, set()).add(other.name.rpartition("_")[2].upper())
                elif neighbour.ref not in seen:  # a FIFO, a slice or another kernel
                    seen.add(neighbour.ref)
                    waiting.append(neighbour)
    return found
