"""Reads what a diagnosis needs from live hardware, through nothing but pynq and registers.

Where the board can say more than its registers (a virtual one can), its IP answer `describe()`;
it is asked if it is there, and nothing depends on it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from . import ChannelState, Facts, KernelState
from .streams import kernels_on_stream

__all__ = ["beats_left", "board_says", "gather", "kernels_on_stream", "read_channel", "read_kernel"]

# Offsets within a channel of the AXI DMA (PG021, table 2-5; S2MM starts at 0x30).
SR, ADDRESS, ADDRESS_MSB, LENGTH = 0x04, 0x18, 0x1C, 0x28
#: Bytes that one scatter-gather descriptor says it moved (PG021, table 2-26).
_DESCRIPTOR_BYTES = 0x03FFFFFF


def is_channel(target: Any) -> bool:
    """Whether `target` is one of pynq's DMA channels, simple or scatter-gather."""
    return (
        hasattr(target, "_mmio") and hasattr(target, "_flush_before") and hasattr(target, "_offset")
    )


def side_of(channel: Any) -> str:
    """Return ``"send"`` or ``"recv"``."""
    return "send" if channel._flush_before else "recv"


def is_scatter_gather(channel: Any) -> bool:
    """Whether a channel works on descriptors."""
    return hasattr(channel, "_num_descr")


def board_says(device: Any, name: str) -> dict[str, Any]:
    """Return what the board knows about the IP `name` beyond its registers; empty on hardware."""
    models = getattr(device, "ip", None)
    model = models.get(name) if isinstance(models, dict) else None
    describe = getattr(model, "describe", None)
    return dict(describe()) if callable(describe) else {}


def read_channel(
    channel: Any,
    *,
    requested: int | None = None,
    changed: int | None = None,
    said: dict[str, Any] | None = None,
) -> ChannelState:
    """Read one channel.

    `requested` and `changed` are the bytes asked for and a lower bound of those received, where the
    caller knows; `said` is what the board adds for this channel.
    """
    mmio, base = channel._mmio, channel._offset
    status = int(mmio.read(base + SR))
    side = side_of(channel)
    buffer = channel._active_buffer
    if is_scatter_gather(channel):
        length = 0
        address = int(buffer.physical_address) if buffer is not None else 0
        moved: int | None = None
        exact = True
        if channel._descr is not None:
            channel._descr.invalidate()
            moved = sum(int(word) & _DESCRIPTOR_BYTES for word in channel._descr[:, 7])
        if requested is None and buffer is not None:
            requested = int(buffer.nbytes)
    else:
        length = int(mmio.read(base + LENGTH))
        address = int(mmio.read(base + ADDRESS)) | int(mmio.read(base + ADDRESS_MSB)) << 32
        requested = _requested(channel, status, length) if requested is None else requested
        moved, exact = _moved(side, status, length, requested, changed)
    if said and requested is not None and not moved and "bytes" in said:
        moved, exact = int(said["bytes"]), True
    built = int(channel._max_size), int(channel._align), bool(channel._dre)
    return ChannelState(side, status, length, address, requested, moved, exact, *built)


def _requested(channel: Any, status: int, length: int) -> int | None:
    """Bytes that a simple channel was asked for, from its registers and pynq's own notes."""
    buffer = channel._active_buffer
    if buffer is None:
        # Armed by hand, register by register: a running channel that is not idle has a length.
        return length if length and not status & 3 else None
    nbytes = int(buffer.nbytes)
    limit = int(channel._max_size)
    if nbytes > limit and length == nbytes & limit:
        return nbytes
    # While it runs LENGTH reads what was programmed, which may be less than the buffer.
    return length if not status & 3 else nbytes


def _moved(
    side: str, status: int, length: int, requested: int | None, changed: int | None
) -> tuple[int | None, bool]:
    if requested is None:
        return None, True
    if status & 2:
        # S2MM_LENGTH holds the bytes received once the packet has ended (PG021, table 2-24).
        return (length, True) if side == "recv" else (requested, True)
    return changed or None, False


def read_kernel(name: str, ip: Any, device: Any = None) -> KernelState:
    """Read the block control of an HLS IP.

    AP_DONE and AP_READY are clear-on-read: the value read here is the only trace that is left of
    them, and is part of the diagnosis.
    """
    registers = getattr(ip, "_registers", None) or {}
    said = board_says(device, name) if device is not None else {}
    note = ""
    if said:
        note = f"{said.get('starts', 0)} starts, {said.get('runs', 0)} runs ended"
        if said.get("blocked_on"):
            note += f", waits on stream {said['blocked_on']}"
        if said.get("activity"):
            note += f"; {said['activity']}"
    if "CTRL" not in registers and registers:
        return KernelState(name, None, note)
    return KernelState(name, int(ip.mmio.read(0)), note)


def is_stale(device: Any, name: str, address: int) -> bool:
    """Whether the design now loaded has no IP called `name` at `address`."""
    loaded = getattr(device, "ip_dict", None)
    if not name or not isinstance(loaded, dict):
        return False
    return bool(loaded.get(name, {}).get("phys_addr") != address)


def gather(
    dma: Any,
    *,
    waited_s: float,
    sent: int | None = None,
    received: int | None = None,
    changed: int | None = None,
    before: dict[str, Any] | None = None,
) -> Facts:
    """Read everything about a DMA and the HLS IP on its streams.

    `sent` and `received` are the bytes asked for on each side, `changed` a lower bound of those
    received, where the caller knows; `before` is what `board_says` returned before the transfer.
    """
    device, name = dma.device, dma._fullpath
    if is_stale(device, name, dma.mmio.base_addr):
        return Facts(name, waited_s, stale=True)
    said = board_says(device, name)
    send, recv = said.get("MM2S", {}), said.get("S2MM", {})
    sender, receiver = (
        None if channel is None else read_channel(channel, requested=asked, changed=more, said=side)
        for channel, asked, more, side in (
            (dma.sendchannel, sent, None, send),
            (dma.recvchannel, received, changed, recv),
        )
    )
    near = kernels_on_stream(dma).items()
    kernels = tuple(read_kernel(cu, _window(device, entry), device) for cu, entry in near)
    sides = (("MM2S", send), ("S2MM", recv))
    notes = tuple(f"{key}: {text}" for key, side in sides for text in side.get("ignored", ()))
    tlast, left = _tlast(said, before or {}), beats_left(said)
    return Facts(name, waited_s, sender, receiver, kernels, False, tlast, notes, left)


def beats_left(said: dict[str, Any]) -> int:
    """Return the beats of earlier transfers before a DMA's IP, from what `board_says` returned."""
    return int(said.get("MM2S", {}).get("left", 0))


def _tlast(said: dict[str, Any], before: dict[str, Any]) -> bool | None:
    """Whether a packet ended on the receive side since `before`; only some boards know."""
    now = said.get("S2MM", {})
    if "packets" not in now:
        return None
    earlier = before.get("S2MM", {}).get("packets", 0)
    return bool(now.get("tlast")) or int(now["packets"]) > int(earlier)


def _window(device: Any, entry: dict[str, Any]) -> Any:
    """Return an IP's registers without making its driver, which might write to them."""
    from pynq import MMIO

    mmio = MMIO(entry["phys_addr"], 4, device=device)
    return SimpleNamespace(mmio=mmio, _registers=entry["registers"])
