"""AXI DMA transfers that end: checked before, bounded, and diagnosed when they do not work."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pynq_torch import events
from pynq_torch.buffers import buffer_of, check_alive, pool_of
from pynq_torch.diagnosis import ERROR_MASK, Facts, diagnose, snapshot
from pynq_torch.diagnosis.facts import beats
from pynq_torch.errors import TransferError, TransferTimeout

from .polling import attach, check_timeout, ends

__all__ = ["Moved", "TransferError", "reset", "transfer", "wait_channels"]

_CR, _SR = 0x00, 0x04
_RUN, _RESET, _IOC = 0x0001, 0x0004, 0x1000
#: What waits in FIFOs arrives within microseconds; a packet is at most what they hold.
_DRAIN_S, _DRAIN_ROUNDS = 5e-3, 64

_RECOVERED = (
    "\n  now: the DMA has been reset and can be used. What an IP had taken of the packet, it still "
    "has: load the overlay again if its next result is wrong."
)
_LEFT = (
    "\n  now: the transfer is still running; mend the cause and pynq_torch.wait(dma), or give it "
    "up "
    "with pynq_torch.reset(dma)."
)


class Moved(NamedTuple):
    """Bytes that a transfer moved."""

    sent: int
    received: int


class _Sibling:
    """The other channel of a DMA of which only one channel is at hand."""

    _active_buffer = None
    _interrupt = None

    def __init__(self, known: Any, offset: int) -> None:
        self._mmio, self._offset, self._flush_before = known._mmio, offset, offset == 0
        self._max_size, self._align, self._dre = known._max_size, known._align, True


class DmaView:
    """What a diagnosis needs of a DMA, made from one of its channels."""

    def __init__(self, channel: Any, name: str, parameters: dict[str, Any]) -> None:
        self.mmio = channel._mmio
        self.device = channel._mmio.device
        self._fullpath = name
        send = channel._flush_before
        key = "c_include_s2mm" if send else "c_include_mm2s"
        built = bool(int(parameters.get(key, parameters.get(key.upper(), 0))))
        other: Any = None
        if built and not snapshot.is_scatter_gather(channel):
            other = _Sibling(channel, 0x30 if send else 0)
        self.sendchannel: Any = channel if send else other
        self.recvchannel: Any = other if send else channel

    @classmethod
    def of_channel(cls, channel: Any) -> DmaView:
        mmio = channel._mmio
        entries = getattr(mmio.device, "ip_dict", None) or {}
        for name, entry in entries.items():
            if entry.get("phys_addr") == mmio.base_addr:
                return cls(channel, name, entry.get("parameters", {}))
        return cls(channel, "", {})


def is_dma(target: Any) -> bool:
    """Whether `target` is one of pynq's DMA drivers."""
    return hasattr(target, "sendchannel") and hasattr(target, "recvchannel")


def channels_of(dma: Any) -> list[Any]:
    """Return the channels a DMA was built with, send first."""
    return [c for c in (dma.sendchannel, dma.recvchannel) if c is not None]


def _state(channel: Any) -> int:
    """Return DMASR reduced to: 0 running, 1 ended, 2 stopped with an error or halted."""
    status = int(channel._mmio.read(channel._offset + _SR))
    if status & ERROR_MASK:
        return 2
    if status & 0x2:
        return 1
    if status & 0x1:
        # A scatter-gather channel without a transfer is halted; so is one that was stopped.
        return 1 if snapshot.is_scatter_gather(channel) else 2
    return 0


def wait_channels(dma: Any, channels: list[Any], timeout_s: float) -> None:
    """Wait until every one of `channels` has ended; see :func:`pynq_torch.wait`."""
    for channel in channels:
        _check_waitable(dma, channel)
    if not _run_out(channels, timeout_s):
        raise _failure(dma, timeout_s, channels)
    for channel in channels:
        _finish(channel)


def _check_waitable(dma: Any, channel: Any) -> None:
    if snapshot.is_scatter_gather(channel):
        if channel._cyclic:
            raise TransferError("a cyclic transfer never ends; stop it with channel.stop()")
        armed = channel._transfer_started
    else:
        length = int(channel._mmio.read(channel._offset + snapshot.LENGTH))
        armed = channel._active_buffer is not None or length
    stale = snapshot.is_stale(dma.device, dma._fullpath, channel._mmio.base_addr)
    if not armed and not stale:
        facts = snapshot.gather(dma, waited_s=0.0)
        if any(c.lost_length for c in facts.channels):
            found = diagnose(facts)
            raise TransferError(found.explain(f"{dma._fullpath}: nothing was started"), found)
        side = "send" if channel._flush_before else "recv"
        raise TransferError(
            f"{dma._fullpath}.{side}channel has nothing to wait for: it was never armed "
            "(upstream's "
            f"wait() hangs here). Call {side}channel.transfer(buffer) first, or "
            "pynq_torch.transfer(dma, send=..., recv=...)."
        )


def _run_out(channels: list[Any], timeout_s: float) -> bool:
    """Wait until every channel has ended well; False on an error or when time is up."""
    failed = False

    def over() -> bool:
        nonlocal failed
        states = [_state(channel) for channel in channels]
        failed = 2 in states
        return failed or all(states)

    return ends(over, timeout_s) and not failed


def _finish(channel: Any) -> None:
    """Let pynq do what follows a transfer: it returns at once, the channel has ended."""
    if channel._active_buffer is not None:
        channel.wait()
    if channel._interrupt:
        channel._clear_interrupt()


def _failure(
    dma: Any, waited_s: float, channels: list[Any], **known: Any
) -> TransferError | TransferTimeout:
    """Return the exception for channels that did not end well."""
    facts = snapshot.gather(dma, waited_s=waited_s, **known)
    found = diagnose(facts)
    sides = " and ".join("send" if c._flush_before else "recv" for c in channels)
    if any(c.failed for c in facts.channels):
        text = found.explain(f"{dma._fullpath}: the transfer ({sides}) stopped with an error")
        return TransferError(text, found)
    text = found.explain(
        f"{dma._fullpath}: the transfer ({sides}) has not ended within {waited_s:g} s"
    )
    return attach(TransferTimeout(text), found)


def _recovered(dma: Any) -> str:
    """Say what a DMA that was reset after a failure can be used for."""
    left = snapshot.beats_left(snapshot.board_says(dma.device, dma._fullpath))
    if not left:
        return _RECOVERED
    return (
        "\n  now: the DMA has been reset, but a FIFO before the IP, or its input registers, still "
        f"hold {beats(left)}, which no reset of the DMA reaches: load the overlay again before the "
        "next transfer."
    )


def transfer(
    dma: Any,
    send: Any = None,
    recv: Any = None,
    timeout_s: float = 10.0,
    *,
    exact: bool = True,
    recover: bool = True,
) -> Moved:
    """Send and receive through a DMA, and wait for both sides.

    The receive side is armed before the send side. A DMA that an earlier error has halted is
    reset first.

    Parameters
    ----------
    dma : pynq.lib.DMA
        Upstream's object, e.g. ``overlay.axi_dma_0``.
    send, recv : PynqBuffer or torch.Tensor over CMA memory, optional
        At least one. Contiguous; the whole of it is moved.
    timeout_s : float
        Seconds for both sides together.
    exact : bool
        Raise if fewer bytes arrive than `recv` holds; otherwise return how many did.
    recover : bool
        Reset the DMA after a timeout, an error or Ctrl-C, so that it stops writing to the buffers
        and can be used again. ``False`` leaves the transfer running: once the cause is mended
        (the IP started, say), ``pynq_torch.wait(dma)`` sees its end.

    Returns
    -------
    Moved
        ``sent`` and ``received``, in bytes.

    Raises
    ------
    TransferError
        The transfer cannot work (its length, alignment, a busy DMA, ...), or stopped with an error.
    TransferTimeout
        It did not end; the message is a diagnosis.
    BufferFreed
        A buffer was freed.
    """
    timeout_s = check_timeout(timeout_s)
    if not is_dma(dma):
        raise TypeError(
            f"expected a pynq.lib.DMA, found {type(dma).__name__}; is the IP an axi_dma, and is "
            "its "
            "version one that pynq has a driver for (ignore_version=True)?"
        )
    out, into = _operand(dma, "send", send), _operand(dma, "recv", recv)
    if out is None and into is None:
        raise TransferError("nothing to do: give send=, recv= or both")
    if all(b is None or b.nbytes == 0 for b in (out, into)):
        return Moved(0, 0)
    _check(dma, out, into)
    _make_ready(dma)
    probe = _Probe(into)
    before = snapshot.board_says(dma.device, dma._fullpath)
    left = snapshot.beats_left(before)
    if left and out is not None:
        found = diagnose(Facts(dma._fullpath, left=left))
        raise TransferError(found.explain(f"{dma._fullpath} cannot be used"), found)
    used = []
    begun: dict[str, float] = {}
    failure: TransferError | TransferTimeout | None = None
    try:
        for channel, buffer in ((dma.recvchannel, into), (dma.sendchannel, out)):
            if buffer is not None:
                begun["recv" if channel is dma.recvchannel else "send"] = time.perf_counter()
                channel.transfer(buffer)
                used.append(channel)
        ended = _run_out(used, timeout_s)
        end = time.perf_counter()
        for side, begin in begun.items():
            events.transfers.publish(events.Transfer(f"{dma._fullpath}.{side}", begin, end))
        if not ended:
            failure = _failure(
                dma,
                timeout_s,
                used[::-1],
                sent=None if out is None else int(out.nbytes),
                received=None if into is None else int(into.nbytes),
                changed=probe.changed(),
                before=before,
            )
            raise failure
    except BaseException as error:
        # Ctrl-C included: nothing may go on writing to buffers that the program gives up.
        if recover:
            reset(dma)
        if error is failure:  # whose message says last what the reset left
            error.args = (f"{error}{_recovered(dma) if recover else _LEFT}",)
        raise
    for channel in used:
        _finish(channel)
    moved = Moved(
        0 if out is None else int(dma.sendchannel.transferred),
        0 if into is None else int(dma.recvchannel.transferred),
    )
    if exact and into is not None and moved.received < into.nbytes:
        facts = snapshot.gather(
            dma, waited_s=0.0, received=int(into.nbytes), sent=moved.sent or None, before=before
        )
        found = diagnose(facts)
        raise TransferError(found.explain(f"{dma._fullpath}: a short packet was received"), found)
    return moved


def _operand(dma: Any, side: str, data: Any) -> Any:
    if data is None:
        return None
    buffer = buffer_of(data)
    if buffer is None:
        if getattr(data, "nbytes", None) == 0:
            return data
        raise TransferError(
            f"{side} is {type(data).__name__} in ordinary memory, which the PL cannot reach; "
            "expected "
            "a buffer from pynq.allocate() or a tensor over one: buffers.to_buffer(data), "
            "buffers.empty_tensor(shape)"
        )
    check_alive(buffer)
    if not buffer.flags.c_contiguous:
        raise TransferError(
            f"{side} has strides {buffer.strides} for shape {buffer.shape}: a DMA moves contiguous "
            "bytes; pass buffers.to_buffer(data.copy()), or a contiguous part"
        )
    if buffer.device is not None and buffer.device is not dma.device:
        raise TransferError(f"{side} was allocated on another device than {dma._fullpath} is on")
    return buffer


def _check(dma: Any, out: Any, into: Any) -> None:
    """Refuse what is known not to work before any register is written."""
    name = dma._fullpath
    if snapshot.is_stale(dma.device, name, dma.mmio.base_addr):
        found = diagnose(Facts(name, stale=True))
        raise TransferError(found.explain(f"{name} cannot be used"), found)
    for side, channel, buffer in (
        ("send", dma.sendchannel, out),
        ("recv", dma.recvchannel, into),
    ):
        if buffer is None:
            continue
        if channel is None:
            raise TransferError(
                f"{name} has no {side} channel: it was built without it ('Enable "
                f"{'Read' if side == 'send' else 'Write'} Channel' in the block design)"
            )
        nbytes, limit, width = int(buffer.nbytes), int(channel._max_size), int(channel._align)
        scattered = snapshot.is_scatter_gather(channel)
        if nbytes == 0:
            raise TransferError(
                f"{side} is empty and the other side is not: a DMA cannot move 0 bytes; leave "
                f"{side} out"
            )
        if nbytes > limit and not scattered:
            raise TransferError(
                f"{side} has {nbytes} bytes; {name}'s length register holds at most {limit} "
                f"({limit.bit_length()} bits). Transfer in pieces of at most that, or build the "
                "DMA with "
                "a wider 'Width of Buffer Length Register' (up to 26 bits)."
            )
        if scattered and nbytes < 2 * width:
            raise TransferError(
                f"{side} has {nbytes} bytes; pynq's scatter-gather driver splits a transfer in "
                "two and "
                f"needs at least {2 * width}"
            )
        address = int(buffer.physical_address)
        if not channel._dre and address % width:
            raise TransferError(
                f"{side} starts at 0x{address:08x}, no multiple of the {width} bytes of {name}'s "
                "memory "
                "port, and the DMA was built without data realignment. Transfer from the start of "
                "a "
                "buffer, or build it with 'Allow Unaligned Transfers'."
            )


def _make_ready(dma: Any) -> None:
    """Bring both channels into the state a transfer starts from."""
    halted = False
    for channel in channels_of(dma):
        status = int(channel._mmio.read(channel._offset + _SR))
        if snapshot.is_scatter_gather(channel):
            halted = halted or bool(status & ERROR_MASK)
            busy = not status & (ERROR_MASK | 0x3)
        else:
            halted = halted or bool(status & (ERROR_MASK | 0x1))
            busy = not status & (ERROR_MASK | 0x3) and not channel._first_transfer
        if busy:
            side = "send" if channel._flush_before else "recv"
            raise TransferError(
                f"{dma._fullpath}.{side}channel is still running on an earlier transfer; wait for "
                "it with "
                f"pynq_torch.wait(dma.{side}channel, timeout_s=...), or give it up with "
                "pynq_torch.reset(dma)"
            )
    if halted:
        reset(dma)


def reset(dma: Any, timeout_s: float = 1.0, *, drain: bool = True) -> None:
    """Reset a DMA and start its channels: whatever it was doing is given up.

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
        mmio, base = channel._mmio, channel._offset
        if not ends(partial(_clear, mmio, base + _CR, _RESET), timeout_s):
            raise TransferTimeout(
                f"{dma._fullpath}: DMACR.Reset did not clear within {timeout_s:g} s: its clock "
                "does not run, or a memory access never ended. Load the overlay again."
            )
        channel._active_buffer = None
        channel.transferred = 0
        if snapshot.is_scatter_gather(channel):
            channel._descr, channel._transfer_started, channel._cyclic = None, False, False
            continue
        mmio.write(base + _CR, _RUN | (_IOC if channel._interrupt else 0))
        if not ends(partial(_clear, mmio, base + _SR, 1), timeout_s):
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


def _clear(mmio: Any, offset: int, mask: int) -> bool:
    return not int(mmio.read(offset)) & mask


class _Probe:
    """A lower bound of how much of a buffer was written, from 64 samples taken before.

    The length register of a simple DMA tells the bytes received only once the transfer has ended.
    """

    def __init__(self, buffer: Any) -> None:
        self._buffer = buffer
        if buffer is not None:
            self._bytes = buffer.reshape(-1).view("u1")
            self._step = max(1, self._bytes.size // 64)
            self._before = bytes(self._bytes[:: self._step])

    def changed(self) -> int | None:
        """Return one more than the last sampled byte that changed; ``None`` if none did."""
        if self._buffer is None:
            return None
        self._buffer.invalidate()
        now = bytes(self._bytes[:: self._step])
        last = [
            i for i, pair in enumerate(zip(self._before, now, strict=True)) if pair[0] != pair[1]
        ]
        return last[-1] * self._step + 1 if last else None
