"""The channels of an AXI DMA: their state, and how they are made ready, reset and drained."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from pynq_torch.buffers import pool_of
from pynq_torch.diagnosis import ERROR_MASK
from pynq_torch.diagnosis.snapshot import SR, is_scatter_gather, side_of
from pynq_torch.errors import TransferError, TransferTimeout

from .polling import check_timeout, ends

__all__ = ["channels_of", "dma_of", "is_dma", "make_ready", "reset", "run_out"]

_CR = 0x00
_RUN, _RESET, _IOC = 0x0001, 0x0004, 0x1000
#: What waits in FIFOs arrives within microseconds; a packet is at most what they hold.
_DRAIN_S, _DRAIN_ROUNDS = 5e-3, 64


def is_dma(target: Any) -> bool:
    """Whether `target` is one of pynq's DMA drivers."""
    return hasattr(target, "sendchannel") and hasattr(target, "recvchannel")


def channels_of(dma: Any) -> list[Any]:
    """Return the channels a DMA was built with, send first."""
    return [c for c in (dma.sendchannel, dma.recvchannel) if c is not None]


def dma_of(channel: Any) -> Any:
    """Return what a diagnosis needs of a DMA, made from one of its channels."""
    mmio, sends = channel._mmio, channel._flush_before
    entries = getattr(mmio.device, "ip_dict", None) or {}
    here = (item for item in entries.items() if item[1].get("phys_addr") == mmio.base_addr)
    found: tuple[str, dict[str, Any]] = next(here, ("", {}))
    parameters = found[1].get("parameters", {})
    key = "c_include_s2mm" if sends else "c_include_mm2s"
    other = None
    if int(parameters.get(key, parameters.get(key.upper(), 0))) and not is_scatter_gather(channel):
        other = SimpleNamespace(
            _mmio=mmio,
            _offset=0x30 if sends else 0,
            _flush_before=not sends,
            _max_size=channel._max_size,
            _align=channel._align,
            _dre=True,
            _active_buffer=None,
            _interrupt=None,
        )
    send, recv = (channel, other) if sends else (other, channel)
    return SimpleNamespace(
        mmio=mmio, device=mmio.device, _fullpath=found[0], sendchannel=send, recvchannel=recv
    )


def _status(channel: Any) -> int:
    return int(channel._mmio.read(channel._offset + SR))


def _state(channel: Any) -> int:
    """Return DMASR reduced to: 0 running, 1 ended, 2 stopped with an error or halted."""
    status = _status(channel)
    if status & ERROR_MASK:
        return 2
    if status & 0x2:
        return 1
    if status & 0x1:
        # A scatter-gather channel without a transfer is halted; so is one that was stopped.
        return 1 if is_scatter_gather(channel) else 2
    return 0


def run_out(channels: list[Any], timeout_s: float) -> bool:
    """Wait until every channel has ended well; False on an error or when time is up."""
    failed = False

    def over() -> bool:
        nonlocal failed
        states = [_state(channel) for channel in channels]
        failed = 2 in states
        return failed or all(states)

    return ends(over, timeout_s) and not failed


def make_ready(dma: Any) -> None:
    """Bring both channels into the state a transfer starts from."""
    halted = False
    for channel in channels_of(dma):
        status, gathers = _status(channel), is_scatter_gather(channel)
        halted = halted or bool(status & (ERROR_MASK if gathers else ERROR_MASK | 0x1))
        if not status & (ERROR_MASK | 0x3) and (gathers or not channel._first_transfer):
            side = side_of(channel)
            raise TransferError(
                f"{dma._fullpath}.{side}channel is still running on an earlier transfer; "
                f"wait for it with pynq_torch.wait(dma.{side}channel, timeout_s=...), "
                "or give it up with pynq_torch.reset(dma)"
            )
    if halted:
        reset(dma)


def reset(dma: Any, timeout_s: float = 1.0, *, drain: bool = True) -> None:
    """Reset a DMA and start its channels: what it was doing is aborted.

    What was sent and not taken is dropped. What an IP on its streams, or a FIFO on the way, has
    taken is not touched: an IP that is in the middle of a packet goes on from there. Load the
    overlay again where that matters.

    Parameters
    ----------
    dma : pynq.lib.DMA
        The DMA; one reset covers both channels.
    timeout_s : float
        Bound for each step.
    drain : bool
        Also receive, and throw away, what still waits on the stream: a reset leaves the rest of a
        packet in the FIFOs on the way, and the next transfer would begin with it.

    Raises
    ------
    TransferTimeout
        The reset bit does not clear: the DMA's clock does not run, or an access never ended.
    """
    timeout_s = check_timeout(timeout_s)
    if not is_dma(dma):
        raise TypeError(
            f"expected a pynq.lib.DMA, found {type(dma).__name__}: one reset covers both "
            "channels, so pass the DMA itself"
        )
    _reset(dma, timeout_s)
    if drain and dma.recvchannel is not None:
        _drain(dma, timeout_s)


def _reset(dma: Any, timeout_s: float) -> None:
    channels = channels_of(dma)
    for channel in channels:
        channel._mmio.write(channel._offset + _CR, _RESET)
    for channel in channels:
        if not _clears(channel, _CR, _RESET, timeout_s):
            raise TransferTimeout(
                f"{dma._fullpath}: DMACR.Reset did not clear within {timeout_s:g} s: its clock "
                "does not run, or a memory access never ended. Load the overlay again."
            )
        channel._active_buffer = None
        channel.transferred = 0
        if is_scatter_gather(channel):
            channel._descr, channel._transfer_started, channel._cyclic = None, False, False
            continue
        base = channel._offset
        channel._mmio.write(base + _CR, _RUN | (_IOC if channel._interrupt else 0))
        if not _clears(channel, SR, 1, timeout_s):
            raise TransferTimeout(
                f"{dma._fullpath}: the channel at 0x{base:02x} did not start within "
                f"{timeout_s:g} s of a reset. Load the overlay again."
            )
        channel._first_transfer = True


def _drain(dma: Any, timeout_s: float) -> None:
    """Receive until nothing comes for a while; bounded, for a source that never stops."""
    channel = dma.recvchannel
    limit = int(channel._max_size) // int(channel._align) * int(channel._align)
    scratch = pool_of(dma.device).take((min(16384, limit),), np.dtype("u1"))
    for _ in range(_DRAIN_ROUNDS):
        channel.transfer(scratch)
        quiet = not ends(lambda: _state(channel) != 0, _DRAIN_S)
        _reset(dma, timeout_s)
        if quiet:
            return


def _clears(channel: Any, register: int, mask: int, timeout_s: float) -> bool:
    offset = channel._offset + register
    return ends(lambda: not int(channel._mmio.read(offset)) & mask, timeout_s)
